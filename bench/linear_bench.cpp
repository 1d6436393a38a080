// Measures quantized GEMMs against the machine's limits. Prints JSON.
//
//   linear_bench [--isa v3] [--type q4_0] [--rows N --depth K] [--columns C] [--threads T]
//                [--seconds S] [--clock cpu] [--mb M]
//   linear_bench --model [the same, but for the shape]
//   linear_bench --prepare [--type …] [--threads T]
//   linear_bench --error [--type …] [--rows N --depth K] [--columns C]
//
// GEMMs with few columns are compared with the bandwidth of a loop that reads memory, and
// GEMMs with many columns with the peak rate of the instruction set's 8-bit dot products on
// registers. Weights alternate between copies, of 160 MiB unless --mb says otherwise, that don't
// fit into the cache. Every time is the minimum of many, since other processes may run; the limits
// are measured in between. --model adds up the GEMMs of one pass through SmolLM2-135M. --error
// compares GEMMs of random weights and normally distributed activations with the same weights in
// f64.

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/quant.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// Disables warnings about undefined registers in GCC's own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace {

using namespace wick;

/// The clock is the wall time, or with --clock cpu the calling thread's CPU time, for busy machines
/// and one thread.
bool cpu_clock = false;

double now() {
  if (cpu_clock) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The block dtypes with kernels of their own.
std::vector<DType> own_types() {
  std::vector<DType> types;
  for (const QuantInfo& row : kQuants) {
    if (dtypes::kOwnProducts.contains(row.dtype)) types.push_back(row.dtype);
  }
  return types;
}

struct Options {
  cpu::Isa isa = cpu::available_isas().back();
  std::vector<DType> types = own_types();
  int64_t rows = 2048, depth = 2048;
  std::vector<int64_t> columns = {1, 2, 4, 8, 16, 24, 32, 64, 512};
  int threads = 1;
  double seconds = 1.0;
  size_t mb = 160;  // of copies of a weight
  bool model = false;
};

/// Memory on huge pages, written once.
struct Buffer {
  size_t bytes;
  uint8_t* data;
  explicit Buffer(size_t size) : bytes(size) {
    data = static_cast<uint8_t*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 1, bytes);
  }
  ~Buffer() { munmap(data, bytes); }
};

// ---- Limits.

/// Reads `bytes` (a multiple of 512) from each of two addresses at once, prefetching `ahead` bytes.
using Reader = uint64_t (*)(const uint8_t* p, const uint8_t* q, size_t bytes, size_t ahead);

template <class Vec>
inline __attribute__((always_inline)) uint64_t read_two(const uint8_t* p, const uint8_t* q,
                                                        size_t bytes, size_t ahead) {
  Vec sum[4] = {};
  for (size_t at = 0; at < bytes; at += 2 * sizeof(Vec)) {
    if (ahead > 0 && at % 128 == 0) {
      __builtin_prefetch(p + at + ahead);
      __builtin_prefetch(p + at + ahead + 64);
      __builtin_prefetch(q + at + ahead);
      __builtin_prefetch(q + at + ahead + 64);
    }
    const auto* a = reinterpret_cast<const Vec*>(p + at);
    const auto* b = reinterpret_cast<const Vec*>(q + at);
    sum[0] ^= a[0];
    sum[1] ^= a[1];
    sum[2] ^= b[0];
    sum[3] ^= b[1];
  }
  return sum[0][0] ^ sum[1][1] ^ sum[2][0] ^ sum[3][1];
}

typedef uint64_t Vec16 __attribute__((vector_size(16), may_alias));
typedef uint64_t Vec64 __attribute__((vector_size(64), may_alias));

uint64_t read_plain(const uint8_t* p, const uint8_t* q, size_t bytes, size_t ahead) {
  return read_two<Vec16>(p, q, bytes, ahead);
}
#if defined(__x86_64__)
__attribute__((target("avx512f"))) uint64_t read_wide(const uint8_t* p, const uint8_t* q,
                                                      size_t bytes, size_t ahead) {
  return read_two<Vec64>(p, q, bytes, ahead);
}
#endif

/// Returns the bytes per second that a loop reads from memory, with the buffer split among the
/// threads: the maximum for one stream per thread and for two, with and without prefetching.
double read_bandwidth(const Buffer& buffer, int threads) {
  Reader read = read_plain;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) read = read_wide;
#endif
  const size_t part = buffer.bytes / static_cast<size_t>(threads) / 1024 * 1024;
  std::vector<uint64_t> sinks(static_cast<size_t>(threads) * 8);
  double best = 0;
  for (int variant = 0; variant < 4; ++variant) {
    const size_t ahead = variant % 2 == 0 ? 8192 : 0;
    const double start = now();
    cpu::ThreadPool::global().run(threads, [&](int t) {
      const uint8_t* p = buffer.data + static_cast<size_t>(t) * part;
      uint64_t& sink = sinks[static_cast<size_t>(t) * 8];
      if (variant < 2) {
        sink += read(p, p + part / 2, part / 2, ahead);
      } else {
        for (size_t at = 0; at < part; at += 1024) sink += read(p + at, p + at + 512, 512, ahead);
      }
    });
    best = std::max(best, static_cast<double>(part) * threads / (now() - start));
  }
  return best;
}

#if defined(__x86_64__)
constexpr int kPeakSteps = 20000;

/// Twelve independent sums of two operands measure the instruction's own rate.
__attribute__((target("avx512f,avx512vnni"))) void peak_vnni(int64_t* sink) {
  __m512i acc[12];
  for (auto& a : acc) a = _mm512_setzero_si512();
  __m512i w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(5);
  for (int i = 0; i < kPeakSteps; ++i) {
    asm volatile("" : "+v"(w), "+v"(x));
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_dpbusd_epi32(a, w, x);
  }
  for (auto& a : acc) *sink += _mm512_reduce_add_epi32(a);
}
__attribute__((target("avx512f,avx512bw"))) void peak_v4(int64_t* sink) {
  __m512i acc[12];
  for (auto& a : acc) a = _mm512_setzero_si512();
  __m512i w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(5);
  for (int i = 0; i < kPeakSteps; ++i) {
    asm volatile("" : "+v"(w), "+v"(x));
#pragma GCC unroll 12
    for (auto& a : acc) {
      asm volatile("" : "+v"(w));  // computes each product again
      a = _mm512_add_epi16(a, _mm512_maddubs_epi16(w, x));
    }
  }
  for (auto& a : acc) *sink += _mm512_reduce_add_epi32(a);
}
__attribute__((target("avx2"))) void peak_v3(int64_t* sink) {
  __m256i acc[8];
  for (auto& a : acc) a = _mm256_setzero_si256();
  __m256i w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(5);
  for (int i = 0; i < kPeakSteps; ++i) {
    asm volatile("" : "+v"(w), "+v"(x));
#pragma GCC unroll 8
    for (auto& a : acc) {
      asm volatile("" : "+v"(w));
      a = _mm256_add_epi16(a, _mm256_maddubs_epi16(w, x));
    }
  }
  for (auto& a : acc) *sink += _mm256_extract_epi32(a, 0);
}
#endif

/// Returns the operations (a multiplication or an addition) per second of the 8-bit dot product.
double dot_peak(cpu::Isa isa, int threads) {
#if defined(__x86_64__)
  double ops = 0;
  void (*peak)(int64_t*) = nullptr;
  if (isa == cpu::Isa::v4_vnni || isa == cpu::Isa::amx) {  // the peak of VNNI, for comparison
    ops = 12.0 * 64 * 2, peak = peak_vnni;
  } else if (isa == cpu::Isa::v4) {
    ops = 12.0 * 64 * 2, peak = peak_v4;
  } else {
    ops = 8.0 * 32 * 2, peak = peak_v3;
    if (!__builtin_cpu_supports("avx2")) return 0;
  }
  std::vector<int64_t> sinks(static_cast<size_t>(threads) * 16);
  const double start = now();
  cpu::ThreadPool::global().run(threads, [&](int t) { peak(&sinks[static_cast<size_t>(t) * 16]); });
  return ops * kPeakSteps * threads / (now() - start);
#else
  return 0;
#endif
}

// ---- GEMMs.

/// A weight with random quants and reasonable scales.
struct Weight {
  int64_t n, k;
  std::vector<uint8_t> raw;
  std::unique_ptr<PreparedWeight> packed;

  Weight(cpu::CpuBackend& backend, DType type, int64_t rows, int64_t depth)
      : n(rows), k(depth), raw(static_cast<size_t>(bytes_of(type, n * k))) {
    uint64_t state = 1;
    const auto random = [&] {
      state = state * 6364136223846793005u + 1;
      return static_cast<uint8_t>(state >> 56);
    };
    for (uint8_t& b : raw) b = random();
    const QuantInfo& row = quant(type);
    const auto scale = static_cast<size_t>(row.at), minimum = static_cast<size_t>(row.minimum_at);
    for (size_t at = 0; at < raw.size(); at += static_cast<size_t>(info(type).block_bytes)) {
      // f16 scales near 0.01, minima near −0.02, with the signs of both inverted for half of the
      // blocks, so that rows have different means.
      const auto sign = static_cast<uint8_t>(random() & 0x80);
      if (row.scale == QuantScale::e8m0) {
        raw[at + scale] = 121;
      } else {
        raw[at + scale + 1] = static_cast<uint8_t>(0x20 ^ sign);
      }
      if (row.has_minimum()) raw[at + minimum + 1] = static_cast<uint8_t>(0xA4 ^ sign);
    }
    const ConstView part{raw.data(), type, Layout::contiguous({n, k})};
    packed = backend.prepare(std::span(&part, 1), false);
  }
};

struct Products {
  cpu::CpuBackend& backend;
  std::vector<float> x, out;

  double run(const Weight& w, int64_t columns) {
    x.resize(static_cast<size_t>(columns * w.k), 0.5f);
    out.resize(static_cast<size_t>(columns * w.n));
    const View to{out.data(), DType::f32, Layout::contiguous({columns, w.n})};
    const ConstView from{x.data(), DType::f32, Layout::contiguous({columns, w.k})};
    const double start = now();
    backend.linear(to, from, *w.packed, {});
    return now() - start;
  }
};

void bench_shape(const Options& o, const Buffer& memory) {
  cpu::CpuBackend backend(o.isa);
  bool first = true;
  fmt::print("{{\"isa\": \"{}\", \"threads\": {}, \"rows\": [", cpu::name(o.isa), o.threads);
  for (DType type : o.types) {
    std::vector<Weight> copies;
    size_t bytes = 0;
    while (bytes < o.mb << 20) {
      copies.emplace_back(backend, type, o.rows, o.depth);
      bytes += copies.back().packed->bytes;
      copies.back().raw = {};
    }
    Products products{backend, {}, {}};
    for (int i = 0; i < 4096; ++i) products.x.push_back(static_cast<float>(i % 17) - 8.0f);
    for (int64_t columns : o.columns) {
      double best = 1e9, bandwidth = 0, peak = 0;
      size_t next = 0;
      int limits = 0;
      const double end = now() + o.seconds;
      while (now() < end || limits < 3) {
        bandwidth = std::max(bandwidth, read_bandwidth(memory, o.threads));
        for (int i = 0; i < 20; ++i) peak = std::max(peak, dot_peak(o.isa, o.threads));
        ++limits;
        for (const double until = now() + 0.1; now() < until;) {
          // Several weights are measured together, because part of a single one may still be in the
          // cache.
          const size_t run = columns <= 4 ? 4 : 1;
          double time = 0;
          for (size_t i = 0; i < run; ++i) {
            time += products.run(copies[next++ % copies.size()], columns);
          }
          best = std::min(best, time / static_cast<double>(run));
        }
      }
      const double gbps = static_cast<double>(copies[0].packed->bytes) / best * 1e-9;
      const double gops = 2e-9 * static_cast<double>(o.rows * o.depth * columns) / best;
      fmt::print(
          "{}\n  {{\"type\": \"{}\", \"n\": {}, \"k\": {}, \"columns\": {}, \"us\": {:.1f}, "
          "\"gbps\": {:.1f}, \"of_read\": {:.2f}, \"gops\": {:.0f}, \"of_peak\": {:.2f}, "
          "\"read_gbps\": {:.1f}, \"peak_gops\": {:.0f}}}",
          first ? "" : ",", name(type), o.rows, o.depth, columns, best * 1e6, gbps,
          gbps * 1e9 / bandwidth, gops, peak > 0 ? gops * 1e9 / peak : 0.0, bandwidth * 1e-9,
          peak * 1e-9);
      std::fflush(stdout);
      first = false;
    }
  }
  fmt::print("\n]}}\n");
}

/// Runs every GEMM of one pass through SmolLM2-135M, with separate weights.
void bench_model(const Options& o, const Buffer& memory) {
  cpu::CpuBackend backend(o.isa);
  const int64_t shapes[][2] = {{960, 576}, {576, 576}, {3072, 576}, {576, 1536}};
  bool first = true;
  fmt::print("{{\"isa\": \"{}\", \"threads\": {}, \"model\": \"SmolLM2-135M\", \"rows\": [",
             cpu::name(o.isa), o.threads);
  for (DType type : o.types) {
    std::vector<Weight> weights;
    for (int layer = 0; layer < 30; ++layer) {
      for (const auto& s : shapes) weights.emplace_back(backend, type, s[0], s[1]);
    }
    weights.emplace_back(backend, DType::q8_0, 49152, 576);
    Products products{backend, {}, {}};
    for (int i = 0; i < 4096; ++i) products.x.push_back(static_cast<float>(i % 17) - 8.0f);
    for (int64_t columns : o.columns) {
      double bytes = 0, ops = 0, best = 1e9, bandwidth = 0, peak = 0;
      // The output matrix is multiplied by one column, however long the prompt is.
      std::vector<double> each(weights.size(), 1e9);
      const double end = now() + o.seconds;
      for (int rounds = 0; rounds < 5 || now() < end; ++rounds) {
        bandwidth = std::max(bandwidth, read_bandwidth(memory, o.threads));
        for (int i = 0; i < 20; ++i) peak = std::max(peak, dot_peak(o.isa, o.threads));
        double total = 0;
        bytes = ops = 0;
        for (size_t i = 0; i < weights.size(); ++i) {
          const Weight& w = weights[i];
          const int64_t c = i + 1 == weights.size() ? 1 : columns;
          const double time = products.run(w, c);
          each[i] = std::min(each[i], time);
          total += time;
          bytes += static_cast<double>(w.packed->bytes);
          ops += 2.0 * static_cast<double>(w.n * w.k * c);
        }
        best = std::min(best, total);
      }
      double sum = 0;
      for (double t : each) sum += t;
      fmt::print(
          "{}\n  {{\"type\": \"{}\", \"columns\": {}, \"ms\": {:.3f}, \"ms_sum_of_best\": {:.3f}, "
          "\"gbps\": {:.1f}, \"of_read\": {:.2f}, \"gops\": {:.0f}, \"of_peak\": {:.2f}}}",
          first ? "" : ",", name(type), columns, best * 1e3, sum * 1e3, bytes / sum * 1e-9,
          bytes / sum / bandwidth, ops / sum * 1e-9, peak > 0 ? ops / sum / peak : 0.0);
      std::fflush(stdout);
      first = false;
    }
  }
  fmt::print("\n]}}\n");
}

/// Prints the root mean square error of results, relative to the root mean square result.
void bench_error(const Options& o) {
  cpu::CpuBackend backend(o.isa);
  const int64_t columns = o.columns.front();
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(columns * o.depth));
  for (float& value : x) value = normal(rng);
  bool first = true;
  fmt::print("{{\"error\": [");
  for (DType type : o.types) {
    const Weight w(backend, type, o.rows, o.depth);
    std::vector<float> out(static_cast<size_t>(columns * w.n));
    std::vector<float> values(static_cast<size_t>(w.n * w.k));
    backend.linear({out.data(), DType::f32, Layout::contiguous({columns, w.n})},
                   {x.data(), DType::f32, Layout::contiguous({columns, w.k})}, *w.packed, {});
    backend.dequantize({values.data(), DType::f32, Layout::contiguous({w.n, w.k})},
                       {w.raw.data(), type, Layout::contiguous({w.n, w.k})});
    double errors = 0, squares = 0;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < w.n; ++r) {
        const float *a = &x[static_cast<size_t>(c * w.k)],
                    *b = &values[static_cast<size_t>(r * w.k)];
        double sum = 0;
        for (int64_t i = 0; i < w.k; ++i)
          sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        const double off = static_cast<double>(out[static_cast<size_t>(c * w.n + r)]) - sum;
        errors += off * off;
        squares += sum * sum;
      }
    }
    fmt::print("{}\n  {{\"type\": \"{}\", \"percent\": {:.3f}}}", first ? "" : ",", name(type),
               100 * std::sqrt(errors / squares));
    first = false;
  }
  fmt::print("\n]}}\n");
}

/// Measures packing of blocks that are in memory already.
void bench_prepare(const Options& o) {
  cpu::CpuBackend backend(o.isa);
  bool first = true;
  fmt::print("{{\"threads\": {}, \"prepare\": [", o.threads);
  for (DType type : o.types) {
    const int64_t n = 49152, k = 4096;
    const auto bytes = static_cast<size_t>(bytes_of(type, n * k));
    const Buffer raw(bytes);
    const ConstView part{raw.data, type, Layout::contiguous({n, k})};
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const double start = now();
      const auto packed = backend.prepare(std::span(&part, 1), false);
      best = std::min(best, now() - start);
    }
    fmt::print("{}\n  {{\"type\": \"{}\", \"mb\": {:.0f}, \"ms\": {:.1f}, \"gbps\": {:.2f}}}",
               first ? "" : ",", name(type), static_cast<double>(bytes) * 1e-6, best * 1e3,
               static_cast<double>(bytes) / best * 1e-9);
    first = false;
  }
  fmt::print("\n]}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  bool prepare = false, error = false;
  std::map<std::string, std::string> values;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--model") {
      o.model = true;
    } else if (key == "--prepare") {
      prepare = true;
    } else if (key == "--error") {
      error = true;
    } else if (i + 1 < argc) {
      values[key] = argv[++i];
    }
  }
  for (const auto& [key, value] : values) {
    if (key == "--isa") {
      for (cpu::Isa isa : cpu::available_isas()) {
        if (cpu::name(isa) == value) o.isa = isa;
      }
    } else if (key == "--type") {
      o.types = {parse_dtype(value).value()};
    } else if (key == "--rows") {
      o.rows = std::stoll(value);
    } else if (key == "--depth") {
      o.depth = std::stoll(value);
    } else if (key == "--columns") {
      o.columns = {std::stoll(value)};
    } else if (key == "--threads") {
      o.threads = std::stoi(value);
    } else if (key == "--mb") {
      o.mb = std::stoull(value);
    } else if (key == "--clock") {
      cpu_clock = value == "cpu";
    } else if (key == "--seconds") {
      o.seconds = std::stod(value);
    } else {
      fmt::print(stderr, "linear_bench: unknown option: {}\n", key);
      return 2;
    }
  }
  cpu::ThreadPool::global().set_threads(o.threads);
  if (prepare || error) {
    if (prepare) bench_prepare(o);
    if (error) bench_error(o);
    return 0;
  }
  const Buffer memory(size_t{64} << 20);
  if (o.model) {
    bench_model(o, memory);
  } else {
    bench_shape(o, memory);
  }
}
