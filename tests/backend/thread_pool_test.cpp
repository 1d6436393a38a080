#include "wick/backend/cpu/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/expect_error.h"

namespace wick::cpu {
namespace {

using test::error_of;
using testing::HasSubstr;

ThreadPool& pool() { return ThreadPool::global(); }

class ThreadPoolTest : public testing::Test {
 protected:
  void SetUp() override { pool().set_threads(3); }
};

/// Runs `body` in a child of fork. Returns its exit status, or -1 if it hangs for 10 seconds.
template <class F>
int in_child(F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  for (int i = 0; i < 2000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

// ThreadSanitizer ends a process that starts threads after a fork. The AddressSanitizer of GCC 12
// forks while it holds its allocator's lock, for which the child then waits.
#ifdef WICK_SANITIZED
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "sanitizers allow no threads after a fork"
#else
#define SKIP_UNDER_SANITIZERS()
#endif

TEST_F(ThreadPoolTest, EveryPartRunsOnce) {
  for (int parts : {0, 1, 2, 3, 4, 17}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(parts));
    pool().run(parts, [&](int part) { ++calls[static_cast<size_t>(part)]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1) << parts;
  }
}

TEST_F(ThreadPoolTest, PartsRunAtTheSameTime) {
  // Each part waits for the others, so this only ends if every part has its own thread.
  std::atomic<int> arrived{0};
  pool().run(3, [&](int) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST_F(ThreadPoolTest, WorkersWakeFromSleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(50 * round));  // near the time for which workers spin
    std::atomic<int> arrived{0};
    pool().run(3, [&](int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
  }
}

TEST_F(ThreadPoolTest, ParallelForCoversTheRangeOnce) {
  for (int64_t n : {-1, 0, 1, 2, 7, 1000, 1001}) {
    for (int64_t grain : {-5, 0, 1, 3, 999, 1000, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(std::max<int64_t>(n, 0)));
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& count : seen) ASSERT_EQ(count, 1) << n << " by " << grain;
    }
  }
}

TEST_F(ThreadPoolTest, NestedRegionsRunOnTheirThread) {
  std::atomic<int> total{0};
  pool().run(3, [&](int) {
    const auto here = std::this_thread::get_id();
    pool().run(3, [&](int) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      parallel_for(10, 1,
                   [&](int64_t begin, int64_t end) { total += static_cast<int>(end - begin); });
    });
  });
  EXPECT_EQ(total, 3 * 3 * 10);
}

TEST_F(ThreadPoolTest, HostThreadsShareThePool) {
  constexpr int kHosts = 4, kRegions = 300;
  std::vector<int64_t> sums(kHosts);
  {
    std::vector<std::jthread> hosts;
    for (int h = 0; h < kHosts; ++h) {
      hosts.emplace_back([&, h] {
        for (int r = 0; r < kRegions; ++r) {
          std::atomic<int64_t> sum{0};
          parallel_for(100, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) sum += i;
          });
          sums[static_cast<size_t>(h)] += sum;
        }
      });
    }
  }
  for (int64_t sum : sums) EXPECT_EQ(sum, kRegions * 4950);
}

TEST_F(ThreadPoolTest, CountChangesWhileOthersRun) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> hosts;
    for (int h = 0; h < 2; ++h) {
      hosts.emplace_back([&] {
        while (!stop) {
          std::atomic<int> sum{0};
          parallel_for(64, 1, [&](int64_t b, int64_t e) { sum += static_cast<int>(e - b); });
          if (sum != 64) ++wrong;
          // A number of parts computed before the change must work, too.
          std::atomic<int> parts{0};
          pool().run(4, [&](int) { ++parts; });
          if (parts != 4) ++wrong;
        }
      });
    }
    for (int i = 0; i < 60; ++i) {
      pool().set_threads(i % 4 + 1);
      EXPECT_EQ(pool().threads(), i % 4 + 1);
    }
    stop = true;
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPoolTest, CountLimits) {
  for (int wrong : {0, -1, INT32_MIN, 1025, INT32_MAX}) {
    EXPECT_EQ(error_of([&] { pool().set_threads(wrong); }),
              "threads: count out of range: " + std::to_string(wrong) + ": need 1 to 1024");
  }
  EXPECT_EQ(pool().threads(), 3);
  std::atomic<int> refused{0};
  pool().run(3, [&](int) {
    if (error_of([] { pool().set_threads(2); }) ==
        "threads: count changed inside a parallel region") {
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

/// A program's signal handlers run on its own threads, never on a worker inside a kernel.
TEST_F(ThreadPoolTest, WorkersTakeNoSignals) {
  const pthread_t own = pthread_self();
  std::atomic<int> own_open{0}, worker_open{0}, worker_parts{0};
  pool().run(3, [&](int) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    const bool is_own = pthread_equal(own, pthread_self()) != 0;
    if (!is_own) ++worker_parts;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM}) {
      if (sigismember(&mask, signal) == 0) ++(is_own ? own_open : worker_open);
    }
    EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);  // a fault is delivered to the thread that causes it
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_GT(worker_parts, 0);
  EXPECT_EQ(worker_open, 0);
  EXPECT_GT(own_open, 0);
}

TEST_F(ThreadPoolTest, WhatAPartThrowsReachesTheCaller) {
  for (int thrower : {0, 1, 2}) {
    std::atomic<int> done{0};
    EXPECT_EQ(error_of([&] {
                pool().run(3, [&](int part) {
                  if (part == thrower) throw Error("part", "wrong", std::to_string(part));
                  ++done;
                });
              }),
              "part: wrong: " + std::to_string(thrower));
    EXPECT_EQ(done, 2);  // run() waited for the others
  }
  EXPECT_THAT(error_of([] { pool().run(3, [](int) { throw Error("part", "all of them"); }); }),
              HasSubstr("all of them"));
  // The pool remains usable.
  std::atomic<int> arrived{0};
  pool().run(3, [&](int) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
}

TEST_F(ThreadPoolTest, AChildOfForkHasWorkingRegions) {
  SKIP_UNDER_SANITIZERS();
  pool().run(3, [](int) {});  // starts the workers that the child loses
  const int status = in_child([] {
    std::atomic<int> arrived{0};
    pool().run(3, [&](int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    pool().set_threads(2);
    pool().run(2, [&](int) { ++arrived; });
    return arrived == 5 ? 42 : 1;
  });
  EXPECT_EQ(status, 42);
}

TEST_F(ThreadPoolTest, AChildOfForkExits) {
  SKIP_UNDER_SANITIZERS();
  pool().run(3, [](int) {});
  // exit(), unlike _exit(), destroys static objects, including the pool.
  EXPECT_EQ(in_child([]() -> int { std::exit(43); }), 43);
}

TEST_F(ThreadPoolTest, ForkWhileAnotherThreadsRegionRuns) {
  SKIP_UNDER_SANITIZERS();
  std::atomic<bool> started{false}, stop{false};
  std::jthread host([&] {
    pool().run(3, [&](int) {
      started = true;
      while (!stop) std::this_thread::yield();
    });
  });
  while (!started) std::this_thread::yield();
  const int status = in_child([] {
    std::atomic<int> sum{0};
    parallel_for(64, 1, [&](int64_t b, int64_t e) { sum += static_cast<int>(e - b); });
    return sum == 64 ? 42 : 1;
  });
  stop = true;
  EXPECT_EQ(status, 42);
}

TEST_F(ThreadPoolTest, ForkInsideARegionIsAnErrorThere) {
  for (int forker : {0, 1}) {
    std::atomic<bool> forked{false};
    std::atomic<int> others{0};
    pid_t child = -1;
    std::string error = "no error";
    try {
      pool().run(3, [&](int part) {
        if (part == forker) {
          while (others < 2) std::this_thread::yield();
          child = fork();
          forked = true;
        } else {
          ++others;
          while (!forked) std::this_thread::yield();  // all threads are busy when the fork happens
        }
      });
    } catch (const Error& e) {
      error = e.what();
    }
    if (child == 0) _exit(error.find("threads: forked inside a parallel region") == 0 ? 2 : 1);
    EXPECT_EQ(error, "no error");
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << forker << ": " << status;
  }
}

}  // namespace
}  // namespace wick::cpu
