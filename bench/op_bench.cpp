// Measures ops on the CPU, each as a share of a limit from the same run. bench/op_bench.py compares
// them with PyTorch.
//
//   op_bench [--threads N] [--only SUBSTRING]   prints all rows as JSON
//   op_bench --list                             prints their keys
//   op_bench --serve                            prints one row for each input line "THREADS KEY"
//
// A row is the minimum of many calls that write to the same memory. With one thread, the clock is
// the thread's CPU time, so that a busy machine disturbs less; with several, it is the wall time.

#include "bench/op_bench.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "wick/backend/cpu/thread_pool.h"

#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace wick::bench {
namespace {

using cpu::ThreadPool;

double now() {
  timespec t{};
  clock_gettime(ThreadPool::global().threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// ---- Limits: seconds a unit of work ----

/// Twelve independent chains of one operation on registers; counts multiply-adds per call.
constexpr int kPeakSteps = 20000;
#define WICK_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#if defined(__x86_64__)
#define WICK_START(i) __m512 a##i = _mm512_set1_ps(i);
#define WICK_KEEP(i) asm volatile("" : "+v"(a##i));
__attribute__((target("avx512f"))) double fma_avx512() {
  const __m512 m = _mm512_set1_ps(0.5f);
  WICK_CHAINS(WICK_START)
#define WICK_STEP(i) a##i = _mm512_fmadd_ps(m, a##i, m);
  for (int s = 0; s < kPeakSteps; ++s) {
    WICK_CHAINS(WICK_STEP) WICK_CHAINS(WICK_KEEP)
  }
#undef WICK_STEP
  return kPeakSteps * 12.0 * 16;
}
__attribute__((target("avx512f,avx512bf16"))) double dot_avx512() {
  const __m512bh h = reinterpret_cast<__m512bh>(_mm512_set1_ps(0.5f));
  WICK_CHAINS(WICK_START)
#define WICK_STEP(i) a##i = _mm512_dpbf16_ps(a##i, h, h);
  for (int s = 0; s < kPeakSteps; ++s) {
    WICK_CHAINS(WICK_STEP) WICK_CHAINS(WICK_KEEP)
  }
#undef WICK_STEP
  return kPeakSteps * 12.0 * 32;
}
#undef WICK_START
#undef WICK_KEEP
#define WICK_START(i) __m256 a##i = _mm256_set1_ps(i);
#define WICK_KEEP(i) asm volatile("" : "+x"(a##i));
__attribute__((target("avx2,fma"))) double fma_avx2() {
  const __m256 m = _mm256_set1_ps(0.5f);
  WICK_CHAINS(WICK_START)
#define WICK_STEP(i) a##i = _mm256_fmadd_ps(m, a##i, m);
  for (int s = 0; s < kPeakSteps; ++s) {
    WICK_CHAINS(WICK_STEP) WICK_CHAINS(WICK_KEEP)
  }
#undef WICK_STEP
  return kPeakSteps * 12.0 * 8;
}
#undef WICK_START
#undef WICK_KEEP

using Peak = double (*)();
Peak peak_of(Limit limit) {
  if (limit == Limit::dot) return __builtin_cpu_supports("avx512bf16") ? dot_avx512 : nullptr;
  return __builtin_cpu_supports("avx512f") ? fma_avx512
         : __builtin_cpu_supports("fma")   ? fma_avx2
                                           : nullptr;
}
#else
using Peak = double (*)();
Peak peak_of(Limit) { return nullptr; }
#endif

/// Memory for the limits, touched once.
class Limits {
 public:
  /// Returns one measurement; rows use the minimum of several.
  double measure(Limit limit) {
    if (limit == Limit::none) return 0;
    if (limit == Limit::copy) {
      return std::min(time_copy(false), time_copy(true)) / (2.0 * static_cast<double>(kBytes));
    }
    if (limit == Limit::read) return time_read() / static_cast<double>(kBytes);
    const Peak peak = peak_of(limit);
    if (peak == nullptr) return 0;
    const int threads = ThreadPool::global().threads();
    double done = 0;
    const double start = now();
    ThreadPool::global().run(threads, [&](int part) {
      const double mine = peak();
      if (part == 0) done = mine;
    });
    return (now() - start) / (done * threads);
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20, kPiece = size_t{1} << 16;

  template <class F>
  double time_pieces(const F& piece) {
    const double start = now();
    cpu::parallel_for(kBytes / kPiece, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) piece(static_cast<size_t>(i) * kPiece);
    });
    return now() - start;
  }
  double time_copy([[maybe_unused]] bool stream) {
    return time_pieces([&](size_t at) {
#if defined(__x86_64__)
      if (stream) {
        for (size_t i = at; i < at + kPiece; i += 16) {
          _mm_stream_si128(reinterpret_cast<__m128i*>(&to_[i]),
                           _mm_load_si128(reinterpret_cast<const __m128i*>(&from_[i])));
        }
        _mm_sfence();
        return;
      }
#endif
      std::memcpy(&to_[at], &from_[at], kPiece);
    });
  }
  double time_read() {
    return time_pieces([&](size_t at) { read_piece(&from_[at]); });
  }
  static void read_piece(const char* from) {
    using V = uint64_t __attribute__((vector_size(16), may_alias));
    V a{}, b{}, c{}, d{};
    for (size_t i = 0; i < kPiece; i += 64) {
      const auto* line = reinterpret_cast<const V*>(from + i);
      a ^= line[0];
      b ^= line[1];
      c ^= line[2];
      d ^= line[3];
    }
    const V sum = a ^ b ^ c ^ d;
    asm volatile("" : : "m"(sum));
  }

  Tensor a_ = Tensor::full({static_cast<int64_t>(kBytes)}, 1, DType::u8);
  Tensor b_ = Tensor::full({static_cast<int64_t>(kBytes)}, 2, DType::u8);
  const char* from_ = static_cast<const char*>(a_.storage()->data());
  char* to_ = static_cast<char*>(b_.storage()->data());
};

const char* name_of(Limit limit) {
  constexpr const char* kNames[] = {"none", "copy", "read", "fma", "dot"};
  return kNames[static_cast<int>(limit)];
}

class Bench {
 public:
  Bench() {
    add_linear(rows_);
    add_fused(rows_);
    add_reduce(rows_);
    add_conv(rows_);
    add_map(rows_);
    add_index(rows_);
    for (size_t i = 0; i < rows_.size(); ++i) by_key_[rows_[i].key()] = i;
  }
  const std::vector<OpRow>& rows() const { return rows_; }
  const OpRow* find(const std::string& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &rows_[found->second];
  }

  /// Measures one row and returns JSON. Its operands are kept until another row's are made.
  std::string measure(const OpRow& row, int threads) {
    ThreadPool::global().set_threads(threads);
    if (made_ != &row) {
      call_ = nullptr;
      call_ = row.make();
      made_ = &row;
      call_();
    }
    constexpr double kBudget = 0.05;
    double best = 1e30, unit = 1e30, spent = 0;
    for (int rep = 0; rep < 2 || (rep < 50 && spent < kBudget); ++rep) {
      best = std::min(best, time_calls(best));
      spent += best * calls_for(best);
      if (rep < 3) unit = std::min(unit, limits_.measure(row.limit));
    }
    const double allowed = unit * row.work;
    return fmt::format(
        R"({{"key": "{}", "name": "{}", "dtype": "{}", "shape": "{}", "threads": {}, )"
        R"("seconds": {:.4g}, "limit": "{}", "limit_seconds": {:.4g}, "share": {:.3f}}})",
        row.key(), row.name, wick::name(row.dtype), row.shape, threads, best, name_of(row.limit),
        allowed, allowed / best);
  }

 private:
  /// Measures several short calls at once, since reading the clock takes as long as a call.
  static int calls_for(double seconds) {
    return seconds > 1 ? 1 : std::clamp(static_cast<int>(2e-4 / seconds), 1, 1000);
  }
  double time_calls(double expected) const {
    const int calls = calls_for(expected);
    const double start = now();
    for (int i = 0; i < calls; ++i) call_();
    return (now() - start) / calls;
  }

  std::vector<OpRow> rows_;
  std::map<std::string, size_t> by_key_;
  Limits limits_;
  const OpRow* made_ = nullptr;
  OpRow::Call call_;
};

int serve(Bench& bench) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int threads = 0;
    std::string key;
    words >> threads >> std::ws;
    std::getline(words, key);
    const OpRow* row = bench.find(key);
    if (row == nullptr || threads < 1) {
      fmt::print(stderr, "op_bench: no such row: {}\n", line);
      return 2;
    }
    fmt::print("{}\n", bench.measure(*row, threads));
    std::fflush(stdout);
  }
  return 0;
}

int run(std::span<char*> words) {
  int threads = 1;
  std::string only;
  bool list = false, serving = false;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--list") {
      list = true;
    } else if (word == "--serve") {
      serving = true;
    } else if (word == "--threads" && has_value) {
      threads = std::stoi(words[++i]);
    } else if (word == "--only" && has_value) {
      only = words[++i];
    } else {
      fmt::print(stderr, "usage: op_bench [--threads N] [--only SUBSTRING] | --list | --serve\n");
      return 2;
    }
  }
  Bench bench;
  if (serving) return serve(bench);
  const char* before = "[";
  for (const OpRow& row : bench.rows()) {
    if (row.key().find(only) == std::string::npos) continue;
    if (list) {
      fmt::print("{}\n", row.key());
      continue;
    }
    fmt::print("{}\n{}", before, bench.measure(row, threads));
    std::fflush(stdout);
    before = ",";
  }
  if (!list) fmt::print("{}\n]\n", *before == '[' ? "[" : "");
  return 0;
}

}  // namespace

std::string OpRow::key() const { return fmt::format("{}.{}[{}]", name, wick::name(dtype), shape); }

Tensor random_tensor(const Shape& shape, DType dtype, uint64_t seed) {
  const auto n = static_cast<size_t>(shape.elems());
  std::vector<float> values(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& value : values) {
    // The sum of four uniform numbers is approximately normal.
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = state ^ (state >> 29);
    const auto sum = static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                         (bits >> 32 & 0xffff) + (bits >> 48));
    value = static_cast<float>((sum * 0x1p-16 - 2) * (is_float(dtype) ? 1.7 : 20));
  }
  return Tensor::from(values, shape).to(dtype);
}

Tensor random_ids(const Shape& shape, int64_t below, DType dtype, uint64_t seed) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elems()));
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 7;
  for (int64_t& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
  }
  return Tensor::from(values, shape).to(dtype);
}

}  // namespace wick::bench

int main(int argc, char** argv) {
  try {
    return wick::bench::run(std::span(argv, static_cast<size_t>(argc)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "op_bench: {}\n", error.what());
    return 2;
  }
}
