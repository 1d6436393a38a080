#pragma once

// Kernels that touch memory that isn't there: the signal becomes an error of the launch.

#include <csetjmp>
#include <cstdint>

namespace emu {

/// Where a thread that runs a kernel goes on after a bad access.
struct FaultGuard {
  sigjmp_buf back;
  uintptr_t address = 0;  // that was touched
};

/// Catches bad accesses of this thread until it is given null; other ones go where they went
/// before.
void guard_faults(FaultGuard* guard);

}  // namespace emu
