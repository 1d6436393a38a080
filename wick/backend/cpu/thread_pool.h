#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace wick::cpu {

/// Pauses the core for a moment, between two polls of a variable that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The process's worker threads. A region is work of some microseconds that is split among them.
/// Workers spin for a while after each region before they sleep: a generated token takes hundreds
/// of small regions, each of which then starts in well under a microsecond.
///
/// Any host thread may start a region. While one runs, nested regions and those of other host
/// threads run whole on the calling thread, so cores are never oversubscribed.
///
/// A child of fork has no workers; its first region starts new ones. Forking inside a region is an
/// error in the child, thrown when that region ends there.
class ThreadPool {
 public:
  static ThreadPool& global();

  /// Threads a region may use, the caller's included.
  int threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Waits for the region that runs. Errors: fewer than 1 or more than 1024; called inside a
  /// region.
  void set_threads(int count);

  /// Calls body(part) for every part in [0, parts), parts <= threads(), each on its own thread if
  /// one is free. Returns when all are done. An exception of a part is rethrown here once no part
  /// runs any more; of several exceptions, one.
  template <class F>
  void run(int parts, F&& body) {
    using Body = std::remove_reference_t<F>;
    run_parts(
        parts, [](void* b, int part) { (*static_cast<Body*>(b))(part); },
        const_cast<std::remove_const_t<Body>*>(&body));
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

 private:
  using Call = void (*)(void* body, int part);
  struct Crew;  // the workers and what they share; each process has its own

  ThreadPool();
  void run_parts(int parts, Call call, void* body);
  void start_workers(Crew& crew, int count);
  static void stop_workers(Crew& crew);
  static void work(Crew& crew, uint32_t seen);

  std::atomic<int> threads_{1};
  std::atomic<Crew*> crew_;
};

/// Calls body(begin, end) for pieces of [0, n) of at least `grain` indices. Threads take pieces as
/// they become free, so that an interrupted core doesn't delay the others.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  ThreadPool& pool = ThreadPool::global();
  const int parts = static_cast<int>(std::min<int64_t>(pool.threads(), (n + grain - 1) / grain));
  if (parts <= 1) {
    body(int64_t{0}, n);
    return;
  }
  const int64_t piece = std::max(grain, (n + parts * 4 - 1) / (parts * 4));
  std::atomic<int64_t> next{0};
  pool.run(parts, [&](int) {
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= n) return;
      body(begin, std::min(n, begin + piece));
    }
  });
}

}  // namespace wick::cpu
