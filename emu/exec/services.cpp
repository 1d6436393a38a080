#include "emu/exec/services.h"

#include <cfenv>
#include <chrono>
#include <cstdio>
#include <exception>

#include "emu/exec/fault.h"
#include "emu/exec/launch.h"
#include "emu/exec/mode.h"

namespace emu {
namespace {

enum Register : uint32_t {
  kMode = 1,
  kStatus = 2,
  kHardwareId = 4,
  kShaderCycles = 29,
};

uint64_t nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace

Stop fail(Wave* w, const Op* op, const char* what) { return fail(w, op, std::string(what)); }

const Op* jump(Wave* w, const Op* op, uint64_t address) {
  const FaultPause pause;  // functions are lowered under a lock
  try {
    return enter(w, address - w->launch->base);
  } catch (const std::exception& error) {
    char where[48];
    std::snprintf(where, sizeof where,
                  "a jump to 0x%llx: ", static_cast<unsigned long long>(address));
    fail(w, op, std::string(where) + error.what());
    return nullptr;
  }
}

bool interrupt_host(Wave* w, const Op* op) {
  const auto& serve = w->launch->interrupt;
  if (serve == nullptr) return true;
  const FaultPause pause;  // the host's services take locks
  fenv_t mode;             // the wave's
  fegetenv(&mode);
  fesetenv(FE_DFL_ENV);
  const std::string error = serve();
  fesetenv(&mode);
  if (error.empty()) return true;
  fail(w, op, error);
  return false;
}

uint32_t hardware_register(const Wave* w, uint32_t id) {
  switch (id) {
    case kMode:
      return w->mode;
    case kStatus: {
      const uint64_t live = w->lanes == 64 ? ~uint64_t{0} : 0xffffffff;
      const uint64_t vcc = uint64_t{w->s[kVcc + 1]} << 32 | w->s[kVcc];
      return (w->scc & 1) | uint32_t{(w->exec() & live) == 0} << 9 |
             uint32_t{(vcc & live) == 0} << 10;
    }
    case kHardwareId:
      return w->index;
    case kShaderCycles:
      return static_cast<uint32_t>(core_clock()) & 0xfffff;
    default:
      return 0;
  }
}

void set_hardware_register(Wave* w, uint32_t id, uint32_t value) {
  if (id != kMode) return;
  w->mode = value;
  set_host_mode(host_mode_32(value));
}

uint64_t core_clock() { return nanoseconds() * 2; }
uint64_t real_time() { return nanoseconds() / 10; }

}  // namespace emu
