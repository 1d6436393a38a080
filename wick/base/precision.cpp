#include "wick/base/precision.h"

#include <atomic>

#include "wick/base/environment.h"

namespace wick {
namespace {

enum class Setting : uint8_t { unset, full, fast };
std::atomic<Setting> setting = Setting::unset;

}  // namespace

Precision precision() {
  if (setting.load(std::memory_order_relaxed) == Setting::unset) {
    // A call of set_precision at the same time takes precedence.
    Setting unset = Setting::unset;
    setting.compare_exchange_strong(
        unset, environment_choice("WICK_PRECISION") == "fast" ? Setting::fast : Setting::full,
        std::memory_order_relaxed);
  }
  return setting.load(std::memory_order_relaxed) == Setting::fast ? Precision::fast
                                                                  : Precision::full;
}

void set_precision(Precision value) {
  setting.store(value == Precision::fast ? Setting::fast : Setting::full,
                std::memory_order_relaxed);
}

}  // namespace wick
