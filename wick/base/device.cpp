#include "wick/base/device.h"

#include <fmt/format.h>

#include <charconv>

#include "wick/base/error.h"

namespace wick {

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  Device device;
  bool valid = true;
  if (kind == "cpu") {
    device.kind = DeviceKind::cpu;
  } else if (kind == "cuda") {
    device.kind = DeviceKind::cuda;
  } else if (kind == "hip") {
    device.kind = DeviceKind::hip;
  } else {
    valid = false;
  }
  if (valid && colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + colon + 1, end, device.index);
    valid = result.ec == std::errc() && result.ptr == end && device.index >= 0 &&
            (device.kind != DeviceKind::cpu || device.index == 0);
  }
  if (!valid) {
    throw Error("device", "not a device", fmt::format("'{}'", text), "use cpu, cuda:N or hip:N");
  }
  return device;
}

std::string Device::str() const {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return fmt::format("cuda:{}", index);
    case DeviceKind::hip:
      return fmt::format("hip:{}", index);
  }
  return "?";
}

}  // namespace wick
