#pragma once

// Accesses to memory that isn't there: the signal becomes an error of what made them.

#include <csetjmp>
#include <cstdint>

namespace emu {

/// Where a thread goes on after a bad access, and what is known of it.
struct FaultGuard {
  sigjmp_buf back;
  bool caught = false;         // a signal came, and its handler jumped to `back`
  bool refused = false;        // a check found the access, and kept it from being made
  bool non_canonical = false;  // no address that there can be: the signal doesn't tell it
  uintptr_t address = 0;
};

/// Catches bad accesses of this thread with the guard; with null they go where they went before
/// there were guards. Gives back the guard that it had.
FaultGuard* guard_faults(FaultGuard* guard);

/// Notes in this thread's guard, if it has one, that an access was refused.
void refuse_access();

/// While it lives no fault of this thread is caught: a jump would leave locks locked for ever.
class FaultPause {
 public:
  FaultPause() : guard_(guard_faults(nullptr)) {}
  ~FaultPause() { guard_faults(guard_); }
  FaultPause(const FaultPause&) = delete;
  FaultPause& operator=(const FaultPause&) = delete;

 private:
  FaultGuard* const guard_;
};

/// Does work under a guard of its own, and puts the thread's back. False where the work faulted:
/// nothing that it began is destroyed then, so it mustn't hold a lock.
template <class Work>
[[gnu::noinline]] bool survives(FaultGuard& guard, const Work& work) {
  FaultGuard* const before = guard_faults(nullptr);
  if (sigsetjmp(guard.back, 0) != 0) {
    guard_faults(before);
    return false;
  }
  guard_faults(&guard);
  try {
    work();
  } catch (...) {
    guard_faults(before);
    throw;
  }
  guard_faults(before);
  return true;
}

}  // namespace emu
