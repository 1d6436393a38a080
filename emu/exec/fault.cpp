#include "emu/exec/fault.h"

#include <csignal>
#include <mutex>
#include <utility>

namespace emu {
namespace {

thread_local FaultGuard* current = nullptr;
struct sigaction previous_segv, previous_bus;

void on_fault(int signal, siginfo_t* info, void* context) {
  if (FaultGuard* guard = current; guard != nullptr) {
    current = nullptr;
    guard->caught = true;
    guard->address = reinterpret_cast<uintptr_t>(info->si_addr);
    // The signal reports the address of an unmapped page, but not an address that isn't canonical.
    guard->non_canonical = guard->address == 0 && info->si_code == SI_KERNEL;
    siglongjmp(guard->back, 1);
  }
  const struct sigaction& before = signal == SIGSEGV ? previous_segv : previous_bus;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    sigaction(signal, &before, nullptr);  // the access is retried and ends the process
  }
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  // sigsetjmp doesn't save the signal mask, so the signal must not be blocked during the handler.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

}  // namespace

FaultGuard* guard_faults(FaultGuard* guard) {
  static std::once_flag once;
  if (guard != nullptr) std::call_once(once, install);
  return std::exchange(current, guard);
}

void refuse_access() {
  if (current != nullptr) current->refused = true;
}

}  // namespace emu
