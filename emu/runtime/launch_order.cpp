#include "emu/runtime/launch_order.h"

namespace emu {

LaunchOrder& LaunchOrder::get() {
  static auto* order = new LaunchOrder;  // threads of streams may outlive the process's statics
  return *order;
}

LaunchSet*& LaunchOrder::running() {
  static thread_local LaunchSet none;
  static thread_local LaunchSet* set = &none;
  return set;
}

void LaunchOrder::end(uint32_t number) {
  std::lock_guard lock(mutex_);
  --running_launches_;
  LaunchSet launch{generation_, {}};
  launch.numbers.set(number);
  ended_.add(launch);
  // If numbers were used again meanwhile, the launch itself is the only one whose tags remain.
  running()->add(launch);
}

void LaunchOrder::seen_by_host(const LaunchSet& launches) {
  if (!active) return;
  std::lock_guard lock(mutex_);
  host_.add(launches);
}

LaunchSet LaunchOrder::seen_by_host() {
  if (!active) return {};
  std::lock_guard lock(mutex_);
  return host_;
}

void LaunchOrder::wait_for_any() {
  if (!active) return;
  std::lock_guard lock(mutex_);
  running()->add(ended_);
}

}  // namespace emu
