// Measures matrix products as a share of limits from the same run: peak fused multiply-adds, peak
// bf16 dot products, or read bandwidth.
//
//   matmul_bench [matmul|linear|prepare] [--dtype f32] [--shape M,N,K] [--threads T] [--isa v4]
//                [--layout nn|nt|tn|tt] [--seconds S] [--release] [--clock wall|cpu]
//
// matmul: [M,K] @ [K,N]. linear: M tokens multiplied by weights [N,K]; for a small M the limit is
// in bytes, not in operations. `--shape smollm2` (linear) is one token multiplied by all weights of
// SmolLM2-135M.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace {

using wick::DType;
using wick::Layout;
using wick::Shape;
using wick::cpu::Isa;
using wick::cpu::ThreadPool;

bool use_cpu_clock = false;

/// Returns the wall time in seconds, or this thread's CPU time if other programs share the machine.
double now() {
  timespec t{};
  clock_gettime(use_cpu_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// ---- Limits. Twelve independent chains of an operation on registers. Returns floating-point
// operations.

constexpr int kPeakSteps = 40000;
#define WICK_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
// Opaque to the optimizer, so that all twelve chains run.
#define WICK_KEEP(i) asm volatile("" : "+x"(a##i));
#define WICK_KEEP512(i) asm volatile("" : "+v"(a##i));

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double fma_avx512() {
  const __m512 m = _mm512_set1_ps(0.5f);
#define WICK_STEP(i) __m512 a##i = _mm512_set1_ps(i);
  WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  for (int s = 0; s < kPeakSteps; ++s) {
#define WICK_STEP(i) a##i = _mm512_fmadd_ps(m, a##i, m);
    WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
    WICK_KEEP512(0)
  }
  WICK_CHAINS(WICK_KEEP512)
  return kPeakSteps * 12.0 * 32;
}
__attribute__((target("avx512f,avx512bf16"))) double bf16_dot() {
  const __m512 m = _mm512_set1_ps(0.5f);
  const __m512bh h = reinterpret_cast<__m512bh>(m);
#define WICK_STEP(i) __m512 a##i = _mm512_set1_ps(i);
  WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  for (int s = 0; s < kPeakSteps; ++s) {
#define WICK_STEP(i) a##i = _mm512_dpbf16_ps(a##i, h, h);
    WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
    WICK_KEEP512(0)
  }
  WICK_CHAINS(WICK_KEEP512)
  return kPeakSteps * 12.0 * 64;
}
__attribute__((target("avx2,fma"))) double fma_avx2() {
  const __m256 m = _mm256_set1_ps(0.5f);
#define WICK_STEP(i) __m256 a##i = _mm256_set1_ps(i);
  WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  for (int s = 0; s < kPeakSteps; ++s) {
#define WICK_STEP(i) a##i = _mm256_fmadd_ps(m, a##i, m);
    WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
    WICK_KEEP(0)
  }
  WICK_CHAINS(WICK_KEEP)
  return kPeakSteps * 12.0 * 16;
}
#endif
double mul_add_baseline() {
  using V = float __attribute__((vector_size(16)));
  const V m = V{} + 0.5f;
#define WICK_STEP(i) V a##i = V{} + float(i);
  WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  for (int s = 0; s < kPeakSteps; ++s) {
#define WICK_STEP(i) a##i = m * a##i + m;
    WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  }
  volatile float sink = 0;
#define WICK_STEP(i) sink = sink + a##i[0];
  WICK_CHAINS(WICK_STEP)
#undef WICK_STEP
  return kPeakSteps * 12.0 * 8;
}

constexpr size_t kReadBytes = size_t{256} << 20;

struct Limits {
  Isa isa;
  int threads;
  std::vector<uint64_t> memory;
  double flops = 0, dots = 0, read = 0;  // maximum rates so far

  static double rate_of(int threads, const std::function<double()>& work) {
    std::vector<double> amounts(static_cast<size_t>(threads));
    const double start = now();
    ThreadPool::global().run(threads, [&](int t) { amounts[static_cast<size_t>(t)] = work(); });
    const double seconds = now() - start;
    double total = 0;
    for (const double amount : amounts) total += amount;
    return total / seconds;
  }

  void measure(bool bandwidth) {
    double (*fma)() = mul_add_baseline;
#if defined(__x86_64__)
    if (isa >= Isa::v4) fma = fma_avx512;
    if (isa == Isa::v3) fma = fma_avx2;
    if (isa >= Isa::v4 && wick::cpu::has_avx512_bf16()) {
      dots = std::max(dots, rate_of(threads, bf16_dot));
    }
#endif
    flops = std::max(flops, rate_of(threads, fma));
    if (!bandwidth) return;
    if (memory.empty()) {
      memory.resize(kReadBytes / 8 + (size_t{2} << 18));
      madvise(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 0x1fffff) &
                                      ~uintptr_t{0x1fffff}),
              kReadBytes, MADV_HUGEPAGE);
      std::fill(memory.begin(), memory.end(), 1);
    }
    std::atomic<size_t> next{0};
    read = std::max(
        read, rate_of(threads, [&] {
          // Uses four streams at once, because some machines need them to reach the full rate of a
          // core.
          constexpr size_t kPiece = size_t{1} << 17, kStream = kPiece / 4;  // words
          using V = uint64_t __attribute__((vector_size(32), aligned(8)));
          V sum[4] = {};
          double bytes = 0;
          for (size_t at; (at = next.fetch_add(kPiece)) < kReadBytes / 8; bytes += kPiece * 8.0) {
            for (size_t i = at; i < at + kStream; i += 8) {
              for (size_t j = 0; j < 4; ++j) {
                const uint64_t* line = &memory[i + j * kStream];
                __builtin_prefetch(line + 256);
                sum[j] += *reinterpret_cast<const V*>(line) + *reinterpret_cast<const V*>(line + 4);
              }
            }
          }
          volatile uint64_t sink = sum[0][0] + sum[1][0] + sum[2][0] + sum[3][0];
          (void)sink;
          return bytes;
        }));
  }
};

struct Options {
  std::string what = "matmul", layout = "nn";
  DType dtype = DType::f32;
  std::array<int64_t, 3> shape = {1024, 1024, 1024};
  bool smollm2 = false, release = false;
  int threads = 1;
  Isa isa = wick::cpu::selected_isa();
  double seconds = 2;
};

[[noreturn]] void usage(const std::string& problem) {
  fmt::print(stderr, "matmul_bench: {}; see the opening comment of bench/matmul_bench.cpp\n",
             problem);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto next = [&]() -> std::string {
      if (i + 1 >= argc) usage(arg + " needs a value");
      return argv[++i];
    };
    if (arg == "matmul" || arg == "linear" || arg == "prepare") {
      o.what = arg;
    } else if (arg == "--dtype") {
      const auto dtype = wick::parse_dtype(next());
      if (!dtype) usage("unknown dtype");
      o.dtype = *dtype;
    } else if (arg == "--shape") {
      const std::string text = next();
      o.smollm2 = text == "smollm2";
      if (!o.smollm2 &&
          std::sscanf(text.c_str(), "%ld,%ld,%ld", &o.shape[0], &o.shape[1], &o.shape[2]) != 3) {
        usage("--shape is M,N,K");
      }
    } else if (arg == "--threads") {
      o.threads = std::atoi(next().c_str());
    } else if (arg == "--layout") {
      o.layout = next();
    } else if (arg == "--seconds") {
      o.seconds = std::atof(next().c_str());
    } else if (arg == "--clock") {
      use_cpu_clock = next() == "cpu";
    } else if (arg == "--release") {
      o.release = true;
    } else if (arg == "--isa") {
      const std::string text = next();
      bool found = false;
      for (const Isa isa : wick::cpu::available_isas()) {
        if (wick::cpu::name(isa) == text) o.isa = isa, found = true;
      }
      if (!found) usage("no such ISA here");
    } else {
      usage("unknown argument " + arg);
    }
  }
  if (use_cpu_clock && o.threads != 1) usage("--clock cpu counts one thread");
  return o;
}

/// Fills memory with random bits that are small finite numbers in every dtype.
void fill(DType dtype, void* data, int64_t elems) {
  uint32_t state = 1;
  const auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int64_t i = 0; i < elems; ++i) {
    const auto r = random();
    switch (dtype) {
      case DType::f32:
        static_cast<float*>(data)[i] = static_cast<float>(r) * 0x1p-24f - 0.5f;
        break;
      case DType::f64:
        static_cast<double*>(data)[i] = static_cast<double>(r) * 0x1p-24 - 0.5;
        break;
      case DType::f16:
        static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((r & 0x83ff) | 0x3400);
        break;
      case DType::bf16:
        static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((r & 0x807f) | 0x3e80);
        break;
      default:
        std::memset(static_cast<char*>(data) + i * wick::info(dtype).block_bytes, r & 0x3f,
                    static_cast<size_t>(wick::info(dtype).block_bytes));
    }
  }
}

class Memory {
 public:
  Memory(wick::cpu::CpuBackend& backend, DType dtype, int64_t elems)
      : backend_(backend),
        bytes_(static_cast<size_t>(wick::bytes_of(dtype, elems))),
        data_(backend.alloc(bytes_)) {
    fill(dtype, data_, elems);
  }
  ~Memory() { backend_.free(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return data_; }

 private:
  wick::cpu::CpuBackend& backend_;
  size_t bytes_;
  void* data_;
};

Layout matrix(int64_t rows, int64_t cols, bool transposed) {
  if (!transposed) return Layout::contiguous(Shape{rows, cols});
  return Layout::contiguous(Shape{cols, rows}).transpose(0, 1);
}

/// The measured call, with the memory and the weights that it uses.
struct Work {
  explicit Work(Isa isa) : backend(isa) {}

  void* memory(DType dtype, int64_t elems) {
    held.push_back(std::make_unique<Memory>(backend, dtype, elems));
    return held.back()->get();
  }

  wick::cpu::CpuBackend backend;
  std::vector<std::unique_ptr<Memory>> held;
  std::vector<std::unique_ptr<wick::PreparedWeight>> weights;
  double flops = 0, bytes = 0;
  std::function<void()> call;
};

void make_matmul(const Options& o, Work& work) {
  const auto [m, n, k] = o.shape;
  const wick::View a{work.memory(o.dtype, m * k), o.dtype, matrix(m, k, o.layout[0] == 't')};
  const wick::View b{work.memory(o.dtype, k * n), o.dtype, matrix(k, n, o.layout[1] == 't')};
  const wick::View out{work.memory(o.dtype, m * n), o.dtype, matrix(m, n, false)};
  work.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  work.bytes = static_cast<double>(wick::bytes_of(o.dtype, m * k + k * n + m * n));
  work.call = [=, &work] { work.backend.matmul(out, a, b); };
}

void make_linear(const Options& o, Work& work) {
  struct Size {
    int64_t n, k, count;
  };
  std::vector<Size> sizes = {{o.shape[1], o.shape[2], 1}};
  if (o.smollm2) {
    sizes = {{960, 576, 30}, {576, 576, 30}, {3072, 576, 30}, {576, 1536, 30}, {49152, 576, 1}};
  }
  const int64_t rows = o.smollm2 ? 1 : o.shape[0];
  int64_t most_n = 0, most_k = 0;
  for (const Size& s : sizes) {
    const Memory source(work.backend, o.dtype, s.n * s.k);
    const wick::ConstView view{source.get(), o.dtype, matrix(s.n, s.k, false)};
    for (int64_t i = 0; i < s.count; ++i) {
      work.weights.push_back(work.backend.prepare({&view, 1}, false));
      work.bytes += static_cast<double>(work.weights.back()->bytes);
      work.flops += 2.0 * static_cast<double>(rows * s.n) * static_cast<double>(s.k);
    }
    most_n = std::max(most_n, s.n);
    most_k = std::max(most_k, s.k);
  }
  void* x = work.memory(DType::f32, rows * most_k);
  void* y = work.memory(DType::f32, rows * most_n);
  work.call = [=, &work] {
    for (const auto& w : work.weights) {
      work.backend.linear({y, DType::f32, matrix(rows, w->n, false)},
                          {x, DType::f32, matrix(rows, w->k, false)}, *w, {});
    }
  };
}

/// Measures packing of weights from a mapped file, as with a model.
void make_prepare(const Options& o, Work& work) {
  const int64_t n = o.shape[1], k = o.shape[2];
  const auto size = static_cast<size_t>(wick::bytes_of(o.dtype, n * k));
  std::FILE* tmp = std::tmpfile();
  if (tmp == nullptr) usage("no temporary file");
  {
    const Memory source(work.backend, o.dtype, n * k);
    if (std::fwrite(source.get(), 1, size, tmp) != size) usage("no room for a temporary file");
  }
  work.backend.trim();
  std::fflush(tmp);
  work.bytes = static_cast<double>(size);
  work.call = [=, &work] {
    work.weights.clear();
    void* file = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fileno(tmp), 0);
    const wick::ConstView view{file, o.dtype, matrix(n, k, false)};
    const double start = now();
    work.weights.push_back(work.backend.prepare({&view, 1}, o.release));
    fmt::print(stderr, "{:.1f} ms\n", (now() - start) * 1e3);
    munmap(file, size);
  };
}

void report(const Options& o, const Work& work, const Limits& limits, int runs, double best) {
  const auto [m, n, k] = o.shape;
  fmt::print(
      "{{\"bench\": \"{}\", \"dtype\": \"{}\", \"shape\": [{}, {}, {}], \"layout\": \"{}\", "
      "\"isa\": \"{}\", \"threads\": {}, \"runs\": {}, \"ms\": {:.4f}, \"gflops\": {:.1f}, "
      "\"gbytes_per_s\": {:.1f}, \"peak_fma_gflops\": {:.1f}, \"peak_bf16_dot_gflops\": {:.1f}, "
      "\"read_gbytes_per_s\": {:.1f}, \"share_of_fma\": {:.3f}, \"share_of_bf16_dot\": {:.3f}, "
      "\"share_of_read\": {:.3f}}}\n",
      o.what, wick::name(o.dtype), o.smollm2 ? 1 : m, o.smollm2 ? 0 : n, o.smollm2 ? 0 : k,
      o.layout, wick::cpu::name(o.isa), o.threads, runs, best * 1e3, work.flops / best / 1e9,
      work.bytes / best / 1e9, limits.flops / 1e9, limits.dots / 1e9, limits.read / 1e9,
      work.flops / best / limits.flops, limits.dots > 0 ? work.flops / best / limits.dots : 0.0,
      limits.read > 0 ? work.bytes / best / limits.read : 0.0);
}

int run(const Options& o) {
  ThreadPool::global().set_threads(o.threads);
  Work work(o.isa);
  (o.what == "matmul" ? make_matmul : o.what == "linear" ? make_linear : make_prepare)(o, work);
  Limits limits{o.isa, o.threads, {}};
  double best = 1e30;
  int runs = 0;
  const double end = now() + o.seconds;
  const bool bandwidth = o.what != "matmul" || o.shape[0] <= 16 || o.shape[1] <= 16;
  while (now() < end || runs < 3) {
    limits.measure(bandwidth);
    for (int repeat = 0; repeat < 3; ++repeat, ++runs) {
      const double start = now();
      work.call();
      best = std::min(best, now() - start);
    }
  }
  report(o, work, limits, runs, best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const wick::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
