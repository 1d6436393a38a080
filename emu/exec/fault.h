#pragma once

// Turns SIGSEGV and SIGBUS from accesses to unmapped memory into errors of the code that made them.

#include <csetjmp>
#include <cstdint>

namespace emu {

/// Where a thread resumes after a bad access, and what is known about the access.
struct FaultGuard {
  sigjmp_buf back;
  bool caught = false;         // a signal arrived and its handler jumped to `back`
  bool refused = false;        // a check rejected the access before it was made
  bool non_canonical = false;  // the address isn't canonical, so the signal doesn't report it
  uintptr_t address = 0;
};

/// Makes `guard` catch bad accesses of this thread; null restores the signal's previous handling.
/// Returns the previous guard.
FaultGuard* guard_faults(FaultGuard* guard);

/// Records in this thread's guard, if it has one, that an access was rejected.
void refuse_access();

/// Disables catching of faults on this thread for its lifetime: a jump would leave locks locked for
/// ever.
class FaultPause {
 public:
  FaultPause() : guard_(guard_faults(nullptr)) {}
  ~FaultPause() { guard_faults(guard_); }
  FaultPause(const FaultPause&) = delete;
  FaultPause& operator=(const FaultPause&) = delete;

 private:
  FaultGuard* const guard_;
};

/// Runs `work` under a guard and restores the thread's previous guard. Returns false if `work`
/// faulted. Destructors of objects that `work` created don't run then, so `work` mustn't hold a
/// lock.
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
