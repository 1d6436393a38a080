#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

enum class DeviceKind : uint8_t { cpu, cuda, hip };

/// A handle to a device: `cpu`, `cuda:0`, `hip:1`.
struct WICK_API Device {
  DeviceKind kind = DeviceKind::cpu;
  int32_t index = 0;

  static constexpr Device cpu() { return {}; }
  /// Parses "cpu", "cuda:N" or "hip:N" (N defaults to 0). Errors: anything else.
  static Device parse(std::string_view text);
  std::string str() const;
  bool operator==(const Device&) const = default;
};

}  // namespace wick
