#include "wick/io/guarded_range.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "wick/base/pages.h"

namespace wick::io {

/// An element of the list that the handler walks. Entries are reused and never freed, so the
/// handler needs no lock. end == 0 marks an unused entry.
struct GuardedRange::Entry {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> damaged{false};
  Entry* next = nullptr;
};

namespace {

using Entry = GuardedRange::Entry;

static_assert(std::atomic<uintptr_t>::is_always_lock_free &&
              std::atomic<Entry*>::is_always_lock_free);

/// The previously installed handler. Never freed, because another thread may be reading it.
struct Previous {
  struct sigaction action;
};

std::mutex mutex;  // held by writers; the handler only loads
std::atomic<Entry*> entries{nullptr};
std::atomic<const Previous*> previous{nullptr};
std::atomic<uintptr_t> page_size{0};

/// Calls of the previous handler in progress on this thread.
thread_local int passing_on __attribute__((tls_model("initial-exec"))) = 0;

/// Marks the range that holds `address` as damaged and returns its end; 0 if no range holds it.
uintptr_t damage(uintptr_t address) {
  for (Entry* e = entries.load(std::memory_order_acquire); e != nullptr; e = e->next) {
    const uintptr_t end = e->end.load(std::memory_order_seq_cst);
    const uintptr_t begin = e->begin.load(std::memory_order_seq_cst);
    // If the entry changed in between, it belongs to a new range, which this thread can't be
    // reading.
    if (address < begin || address >= end || e->end.load(std::memory_order_seq_cst) != end)
      continue;
    e->damaged.store(true, std::memory_order_seq_cst);
    return end;
  }
  return 0;
}

void end_process(int signal) {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  // Needed for signals sent by kill() or raise(); a faulting instruction would fault again by
  // itself.
  ::raise(signal);
}

void pass_on(int signal, siginfo_t* details, void* context) {
  const Previous* const before = previous.load(std::memory_order_acquire);
  const bool standard = before == nullptr || before->action.sa_handler == SIG_DFL ||
                        before->action.sa_handler == SIG_IGN;
  const bool sent = details->si_code <= 0;
  if (!standard && passing_on == 0) {
    ++passing_on;
    if ((before->action.sa_flags & SA_SIGINFO) != 0) {
      before->action.sa_sigaction(signal, details, context);
    } else {
      before->action.sa_handler(signal);
    }
    --passing_on;
    return;
  }
  if (sent && before != nullptr && before->action.sa_handler == SIG_IGN && passing_on == 0) return;
  // There is no previous handler, or it raised the signal again, as Python's faulthandler does.
  end_process(signal);
}

void on_bus_error(int signal, siginfo_t* details, void* context) {
  const int error = errno;
  const uintptr_t page = page_size.load(std::memory_order_relaxed);
  if (details->si_code > 0) {
    const auto address = reinterpret_cast<uintptr_t>(details->si_addr);
    const uintptr_t end = damage(address);
    const uintptr_t first = address & ~(page - 1);
    // Maps to the end of the range at once, because one mapping per page could exceed the limit on
    // mappings. Uses the system call directly: ThreadSanitizer would treat mmap as a write that
    // races with other threads' reads, and a signal handler must not call its interceptor.
    if (end != 0 &&
        ::syscall(SYS_mmap, first, end - first, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != -1) {
      errno = error;
      return;
    }
  }
  pass_on(signal, details, context);
  errno = error;
}

}  // namespace

GuardedRange::GuardedRange(const void* begin, size_t bytes) {
  claim_signal();
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t page = page_size.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  Entry* entry = entries.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->end.load(std::memory_order_relaxed) != 0) entry = entry->next;
  if (entry == nullptr) {
    entry = new Entry;
    entry->next = entries.load(std::memory_order_relaxed);
    entries.store(entry, std::memory_order_release);
  }
  entry->damaged.store(false, std::memory_order_seq_cst);
  entry->begin.store(first, std::memory_order_seq_cst);
  // The mapping covers the whole last page of the file.
  entry->end.store(first + (bytes + page - 1) / page * page, std::memory_order_seq_cst);
  entry_ = entry;
}

GuardedRange::~GuardedRange() { entry_->end.store(0, std::memory_order_seq_cst); }

bool GuardedRange::is_damaged() const noexcept {
  return entry_->damaged.load(std::memory_order_seq_cst);
}

void GuardedRange::claim_signal() {
  struct sigaction now{};
  if (::sigaction(SIGBUS, nullptr, &now) != 0) return;
  const auto is_ours = [](const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_bus_error;
  };
  if (is_ours(now)) return;
  const std::lock_guard lock(mutex);
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || is_ours(now)) return;
  page_size.store(page_bytes(), std::memory_order_relaxed);
  previous.store(new Previous{now}, std::memory_order_release);
  struct sigaction ours{};
  ours.sa_sigaction = &on_bus_error;
  // SA_NODEFER: the previous handler may raise the signal again.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace wick::io
