// Measures reductions, norms, softmax, rope and attention as a share of limits from the same run:
// copying or reading as many bytes with the same footprint, the function's instructions or
// exponentials in the L1 cache, or peak fused multiply-adds. Prints one JSON object; times are the
// minimum of many short runs.
//
//   fused_bench [--filter TEXT] [--threads T] [--isa v4] [--seconds S] [--clock wall|cpu]

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
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

using namespace wick;
using cpu::CpuBackend;
using cpu::Isa;
using cpu::ThreadPool;

bool use_cpu_clock = false;
double seconds_per_row = 0.4;

double now() {
  timespec t{};
  clock_gettime(use_cpu_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Returns the minimum time of one call, in seconds, from runs so long that reading the clock
/// doesn't matter.
double best_time(const std::function<void()>& call) {
  constexpr double kRunSeconds = 100e-6;
  int repeats = 1;
  const auto run = [&] {
    const double start = now();
    for (int i = 0; i < repeats; ++i) call();
    return now() - start;
  };
  call();
  while (run() < kRunSeconds) repeats *= 2;
  double best = 1e9;
  for (const double end = now() + seconds_per_row; now() < end;) {
    best = std::min(best, run() / repeats);
  }
  return best;
}

// ---- Limits. ----

constexpr int kPeakSteps = 2000;

/// Returns the multiply-adds per second of one thread, from twelve independent chains.
double peak_fma(Isa isa) {
  double per_step = 0;
  void (*work)() = nullptr;
#if defined(__x86_64__)
#define WICK_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define WICK_START512(i) __m512 a##i = _mm512_set1_ps(i);
#define WICK_STEP512(i) a##i = _mm512_fmadd_ps(m, a##i, m);
#define WICK_KEEP512(i) asm volatile("" : "+v"(a##i));
#define WICK_START256(i) __m256 a##i = _mm256_set1_ps(i);
#define WICK_STEP256(i) a##i = _mm256_fmadd_ps(m, a##i, m);
#define WICK_KEEP256(i) asm volatile("" : "+x"(a##i));
  struct Loops {
    __attribute__((target("avx512f"))) static void avx512() {
      const __m512 m = _mm512_set1_ps(0.5f);
      WICK_CHAINS(WICK_START512)
      for (int s = 0; s < kPeakSteps; ++s) {
        WICK_CHAINS(WICK_STEP512) WICK_CHAINS(WICK_KEEP512)
      }
    }
    __attribute__((target("avx2,fma"))) static void avx2() {
      const __m256 m = _mm256_set1_ps(0.5f);
      WICK_CHAINS(WICK_START256)
      for (int s = 0; s < kPeakSteps; ++s) {
        WICK_CHAINS(WICK_STEP256) WICK_CHAINS(WICK_KEEP256)
      }
    }
  };
  if (isa >= Isa::v4) work = Loops::avx512, per_step = 12 * 16;
  if (isa == Isa::v3) work = Loops::avx2, per_step = 12 * 8;
#endif
  return work == nullptr ? 0 : kPeakSteps * per_step / best_time(work);
}

struct Buffer {
  CpuBackend& backend;
  size_t bytes;
  void* data;
  Buffer(CpuBackend& b, size_t n)
      : backend(b), bytes(std::max<size_t>(n, 64)), data(b.alloc(bytes)) {
    std::memset(data, 0, bytes);
  }
  ~Buffer() { backend.free(data, bytes); }
  Buffer(const Buffer&) = delete;
};

class Bench {
 public:
  Bench(Isa isa, std::string filter) : backend_(isa), isa_(isa), filter_(std::move(filter)) {}

  void run() {
    peak_fma_ = peak_fma(isa_);
    for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      norm(dtype, 1, 576);
      norm(dtype, 512, 576);
      norm(dtype, 16384, 1024);
      softmax(dtype, 1024, 1024);
      rope(dtype, 512);
    }
    softmax(DType::f32, 1, 49152);
    for (DType dtype : {DType::f32, DType::bf16}) {
      reduce(Op::sum, dtype, 2), reduce(Op::sum, dtype, 1), reduce(Op::sum, dtype, 3);
      reduce(Op::max, dtype, 2), reduce(Op::max, dtype, 1);
      reduce(Op::argmax, dtype, 2), reduce(Op::argmax, dtype, 1);
    }
    for (DType cache : {DType::f16, DType::bf16, DType::f32}) {
      attention(512, 512, cache);
      attention(1, 128, cache);
      attention(1, 2048, cache);
    }
    fmt::print(
        "{{\"isa\": \"{}\", \"threads\": {}, \"peak_fma_gflops\": {:.1f}, \"rows\": [{}\n]}}\n",
        cpu::name(isa_), ThreadPool::global().threads(), 2e-9 * peak_fma_, rows_);
  }

 private:
  void report(const std::string& name, const char* limit, double seconds, double limit_seconds) {
    rows_ += fmt::format(
        "{}\n  {{\"test\": \"{}\", \"us\": {:.3f}, \"limit\": \"{}\", \"limit_us\": {:.3f}, "
        "\"share\": {:.3f}}}",
        rows_.empty() ? "" : ",", name, seconds * 1e6, limit, limit_seconds * 1e6,
        limit_seconds / seconds);
    fmt::print(stderr, "{:40} {:10.2f} us   {:.2f} of {}\n", name, seconds * 1e6,
               limit_seconds / seconds, limit);
  }
  bool wanted(const std::string& name) const { return name.find(filter_) != std::string::npos; }

  View fill(const Buffer& buffer, DType dtype, const Shape& shape) {
    View view{buffer.data, dtype, Layout::contiguous(shape)};
    const int64_t n = shape.elems();
    std::vector<float> values(static_cast<size_t>(n));
    uint32_t state = 1;
    for (float& v : values) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(state >> 8) * 0x1p-22f - 2.0f;
    }
    backend_.cast(view, {values.data(), DType::f32, Layout::contiguous(shape)});
    return view;
  }

  void norm(DType dtype, int64_t rows, int64_t n) {
    const std::string name = fmt::format("rms_norm.{}[{},{}]", wick::name(dtype), rows, n);
    if (!wanted(name)) return;
    const auto bytes = static_cast<size_t>(bytes_of(dtype, rows * n));
    Buffer a(backend_, bytes), b(backend_, bytes), w(backend_, static_cast<size_t>(n) * 4);
    const View x = fill(a, dtype, {rows, n}), weight = fill(w, DType::f32, {n});
    const View y{b.data, dtype, x.layout};
    // The instruction rate is that of the same kernel with rows in the L1 cache.
    const int64_t near_rows = std::max<int64_t>(1, std::min(rows, 8192 / bytes_of(dtype, n)));
    View near_x = x, near_y = y;
    near_x.layout = near_y.layout = Layout::contiguous({near_rows, n});
    const double near = best_time([&] { backend_.rms_norm(near_y, near_x, weight, 1e-5f); }) *
                        static_cast<double>(rows) / static_cast<double>(near_rows) /
                        ThreadPool::global().threads();
    const double copy = best_time([&] { backend_.copy(y, x); });
    report(name, near > copy ? "instr" : "copy",
           best_time([&] { backend_.rms_norm(y, x, weight, 1e-5f); }), std::max(copy, near));
  }

  void softmax(DType dtype, int64_t rows, int64_t n) {
    const std::string name = fmt::format("softmax.{}[{},{}]", wick::name(dtype), rows, n);
    if (!wanted(name)) return;
    const auto bytes = static_cast<size_t>(bytes_of(dtype, rows * n));
    Buffer a(backend_, bytes), b(backend_, bytes);
    const View x = fill(a, dtype, {rows, n});
    const View y{b.data, dtype, x.layout};
    // Computes as many exponentials in f32, the compute type of softmax, in a block that stays in
    // the L1 cache and is long enough to make the call overhead negligible.
    constexpr int64_t kBlock = 3072;
    Buffer c(backend_, kBlock * 4), d(backend_, kBlock * 4);
    const View block_x = fill(c, DType::f32, {kBlock}), block_y{d.data, DType::f32, block_x.layout};
    const double block = best_time([&] { backend_.unary(Op::exp, block_y, block_x); });
    const double exps =
        block * static_cast<double>(rows * n) / kBlock / ThreadPool::global().threads();
    const double copy = best_time([&] { backend_.copy(y, x); });
    report(name, exps > copy ? "exp" : "copy", best_time([&] { backend_.softmax(y, x, 1, false); }),
           std::max(exps, copy));
  }

  void rope(DType dtype, int64_t t) {
    const std::string name = fmt::format("rope.{}[9,{},64]", wick::name(dtype), t);
    if (!wanted(name)) return;
    const Shape shape{9, t, 64};
    const auto bytes = static_cast<size_t>(bytes_of(dtype, shape.elems()));
    Buffer a(backend_, bytes), b(backend_, bytes), c(backend_, static_cast<size_t>(t) * 128);
    const View x = fill(a, dtype, shape), cos = fill(c, DType::f32, {t, 32});
    const View y{b.data, dtype, x.layout};
    // The instruction rate is that of the same kernel with rows in the L1 cache.
    const int64_t near_rows = std::min<int64_t>(t, 4096 / bytes_of(dtype, 64));
    View near_x = x, near_y = y, near_cos = cos;
    near_x.layout = near_y.layout = Layout::contiguous({1, near_rows, 64});
    near_cos.layout = Layout::contiguous({near_rows, 32});
    const double near =
        best_time([&] { backend_.rope(near_y, near_x, near_cos, near_cos, false); }) * 9 *
        static_cast<double>(t) / static_cast<double>(near_rows) / ThreadPool::global().threads();
    const double copy = best_time([&] { backend_.copy(y, x); });
    report(name, near > copy ? "instr" : "copy",
           best_time([&] { backend_.rope(y, x, cos, cos, false); }), std::max(near, copy));
  }

  void reduce(Op op, DType dtype, uint32_t dims) {
    const std::string name = fmt::format("{}.{}[4096,4096] {}", wick::name(op), wick::name(dtype),
                                         dims == 3   ? "all"
                                         : dims == 2 ? "rows"
                                                     : "columns");
    if (!wanted(name)) return;
    const Shape shape{4096, 4096};
    const auto bytes = static_cast<size_t>(bytes_of(dtype, shape.elems()));
    Buffer a(backend_, bytes), b(backend_, 4096 * 4);
    const View x = fill(a, dtype, shape);
    const Shape out{dims & 1 ? 1 : 4096, dims & 2 ? 1 : 4096};
    const bool arg = info(op).kind == OpKind::arg;
    const View y{b.data, arg ? DType::u32 : dtype, Layout::contiguous(out)};
    // The limit of reading is the maximum of as many bytes as 32-bit integers.
    const View words{a.data, DType::i32, Layout::contiguous({static_cast<int64_t>(bytes / 4)})};
    int32_t top = 0;
    const View one{&top, DType::i32, Layout::contiguous({1})};
    const double read = best_time([&] { backend_.reduce(Op::max, one, words, 1); });
    report(name, "read", best_time([&] {
             if (arg) {
               backend_.arg_reduce(op, y, x, dims == 2 ? 1 : 0);
             } else {
               backend_.reduce(op, y, x, dims);
             }
           }),
           read);
  }

  /// The shape of SmolLM2: 9 heads on 3 key heads of size 64, in the cache's layout.
  void attention(int64_t m, int64_t n, DType cache) {
    const std::string name = fmt::format("attention.{}_cache m {} n {}", wick::name(cache), m, n);
    if (!wanted(name)) return;
    const int64_t capacity = (n + 63) / 64 * 64 + 64;
    const Shape qs{1, 9, m, 64}, ks{1, 3, 64, capacity}, vs{1, 3, capacity, 64};
    Buffer qb(backend_, static_cast<size_t>(qs.elems()) * 4),
        ob(backend_, static_cast<size_t>(qs.elems()) * 4),
        kb(backend_, static_cast<size_t>(bytes_of(cache, ks.elems()))),
        vb(backend_, static_cast<size_t>(bytes_of(cache, vs.elems())));
    const View q = fill(qb, DType::f32, qs), out{ob.data, DType::f32, q.layout};
    View k = fill(kb, cache, ks), v = fill(vb, cache, vs);
    k.layout = k.layout.transpose(2, 3).narrow(2, 0, n);
    v.layout = v.layout.narrow(2, 0, n);
    AttentionParams params;
    params.scale = 0.125f;
    const double pairs = static_cast<double>(m) * static_cast<double>(n - m) +
                         static_cast<double>(m) * static_cast<double>(m + 1) / 2;
    const double fmas = 9 * 128 * pairs;
    report(name, "fma", best_time([&] { backend_.attention(out, q, k, v, params, {}); }),
           fmas / peak_fma_ / ThreadPool::global().threads());
  }

  CpuBackend backend_;
  Isa isa_;
  std::string filter_, rows_;
  double peak_fma_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Isa isa = cpu::selected_isa();
    int threads = 1;
    std::string filter;
    for (int i = 1; i < argc; ++i) {
      const std::string option = argv[i], value = i + 1 < argc ? argv[++i] : "";
      if (option == "--filter") {
        filter = value;
      } else if (option == "--threads") {
        threads = std::atoi(value.c_str());
      } else if (option == "--seconds") {
        seconds_per_row = std::atof(value.c_str());
      } else if (option == "--clock") {
        use_cpu_clock = value == "cpu";
      } else if (option == "--isa") {
        bool known = false;
        for (Isa candidate : cpu::available_isas()) {
          if (cpu::name(candidate) == value) isa = candidate, known = true;
        }
        if (!known) throw Error("--isa", "not available on this machine", value);
      } else {
        throw Error("fused_bench", "unknown option", option,
                    "[--filter TEXT] [--threads T] [--isa v4] [--seconds S] [--clock wall|cpu]");
      }
    }
    ThreadPool::global().set_threads(threads);
    Bench(isa, filter).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
