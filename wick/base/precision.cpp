#include "wick/base/precision.h"

#include <atomic>

#include "wick/base/environment.h"

namespace wick {
namespace {

enum class Setting : uint8_t { unset, full, fast };
std::atomic<Setting> setting = Setting::unset;

}  // namespace

Precision precision() {
  const Setting set = setting.load(std::memory_order_relaxed);
  if (set != Setting::unset) return set == Setting::fast ? Precision::fast : Precision::full;
  return environment_choice("WICK_PRECISION") == "fast" ? Precision::fast : Precision::full;
}

void set_precision(Precision value) {
  setting.store(value == Precision::fast ? Setting::fast : Setting::full,
                std::memory_order_relaxed);
}

}  // namespace wick
