// Checks GEMMs on a GPU against f64 for some elements, and measures their time.
//
//   gpu_bench_gemm DEVICE [--small] [--only TEXT]...
//
// Prints one line of JSON per GEMM: its time; TFLOP/s, and the ratio to the vendor's library in
// the same run if it is installed; for few rows, the weight bytes per second and their share of the
// device's copy speed. `worst` is the largest error as a share of the `bound` class.
// WICK_GPU_GEMM=plain|mma|wgmma selects the main loop. --small uses shapes that an emulator can
// handle. Exits with 1 if an error is too large.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_time.h"
#include "bench/peers/cublas.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/error.h"
#include "wick/math/half.h"

namespace {

using namespace wick;

/// Returns element i of the numbers that all operands consist of, in (-1, 1).
float number(int64_t i) {
  auto x = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(static_cast<int32_t>(x >> 32)) * 0x1p-31f;
}

/// Returns x as bits of a dtype.
uint32_t encode(DType dtype, float x) {
  if (dtype == DType::f16) return math::from_f32<math::f16>(x).bits;
  if (dtype == DType::bf16) return math::from_f32<math::bf16>(x).bits;
  return math::f32_bits(x);
}
double decode(DType dtype, uint32_t bits) {
  if (dtype == DType::f16) return math::to_f32(math::f16{static_cast<uint16_t>(bits)});
  if (dtype == DType::bf16) return math::to_f32(math::bf16{static_cast<uint16_t>(bits)});
  return math::bits_f32(bits);
}
double stored(DType dtype, int64_t i) { return decode(dtype, encode(dtype, number(i))); }
/// Returns half a unit in the last place of a result.
double half_ulp(DType dtype, double x) {
  const int bits = dtype == DType::f16 ? 10 : dtype == DType::bf16 ? 7 : 23;
  return std::ldexp(0.5, (x == 0 ? -126 : std::ilogb(x)) - bits);
}

class Memory {
 public:
  Memory(gpu::GpuBackend& backend, size_t bytes)
      : backend_(backend), bytes_(bytes), data_(backend.alloc(bytes)) {}
  ~Memory() { backend_.free(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return data_; }

 private:
  gpu::GpuBackend& backend_;
  size_t bytes_;
  void* data_;
};

struct Shape2 {
  int64_t m, n, k;
};

class Bench {
 public:
  Bench(Device device, bool small, std::vector<std::string> only)
      : backend_(device), gpu_(backend_.gpu()), small_(small), only_(std::move(only)) {
    gpu_.enter();
    if (device.kind == DeviceKind::cuda) peer_ = bench::Cublas::open(gpu_.main_stream());
    if (!small_) copy_rate_ = time_.copy_rate();
    const char* loop = std::getenv("WICK_GPU_GEMM");
    fmt::print(
        "{{\"device\": \"{}\", \"name\": \"{}\", \"architecture\": \"{}\", \"main_loop\": "
        "\"{}\", \"cublas\": {}, \"copy_gb_s\": {:.0f}}}\n",
        device.str(), gpu_.info.name, gpu_.compiled_for(), loop == nullptr ? "best" : loop,
        peer_ != nullptr, copy_rate_ / 1e9);
  }

  void run() {
    const auto both = {DType::bf16, DType::f16};
    if (small_) {
      for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        for (const char* layout : {"nn", "nt", "tn", "tt"}) matmul(dtype, layout, {72, 136, 96});
        linear(dtype, DType::f32, 1, {1, 200, 264});
        linear(dtype, DType::f32, 20, {1, 200, 264});
      }
      return;
    }
    for (const DType dtype : both) {
      for (const char* layout : {"nn", "nt", "tn", "tt"}) {
        matmul(dtype, layout, {4096, 4096, 4096});
      }
    }
    for (const Shape2 s : {Shape2{512, 4096, 11008},
                           {512, 11008, 4096},
                           {2048, 4096, 4096},
                           {8192, 8192, 8192},
                           {16, 4096, 4096},
                           {64, 4096, 4096},
                           {128, 4096, 4096},
                           {1, 4096, 4096},
                           {4095, 4095, 4095},
                           {4097, 4099, 4101},
                           {1000, 1000, 1000},
                           {300, 500, 700}}) {
      matmul(DType::bf16, "nn", s);
      matmul(DType::bf16, "nt", s);
    }
    for (const char* layout : {"nn", "nt", "tn", "tt"}) {
      matmul(DType::f32, layout, {4096, 4096, 4096});
    }
    matmul(DType::f32, "nn", {512, 4096, 11008});
    matmul(DType::f32, "nn", {4095, 4095, 4095});
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Shape2 s : {Shape2{1000, 1000, 1000},
                             {1024, 1024, 1024},
                             {1023, 1025, 1000},
                             {1024, 1024, 1000},
                             {255, 257, 4096},
                             {256, 256, 4096},
                             {2049, 2047, 2049},
                             {2048, 2048, 2048}}) {
        matmul(dtype, "nn", s);
        matmul(dtype, "nt", s);
      }
      for (const int64_t rows : {2, 8, 32}) matmul(dtype, "nn", {rows, 4096, 4096});
    }
    // The weights of an 8B model, and one more.
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const auto& [n, k] : std::initializer_list<std::pair<int64_t, int64_t>>{
               {4096, 4096}, {6144, 4096}, {28672, 4096}, {4096, 14336}, {14336, 4096}}) {
        for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64})
          linear(dtype, DType::f32, rows, {1, n, k});
      }
      for (const int64_t rows : {1, 2, 8}) linear(dtype, DType::f32, rows, {1, 128256, 4096});
      for (const int64_t rows : {9, 24, 128, 512, 2048}) {
        linear(dtype, DType::f32, rows, {1, 4096, 4096});
        linear(dtype, DType::f32, rows, {1, 28672, 4096});
      }
      linear(dtype, DType::f32, 1, {1, 576, 576});
      linear(dtype, DType::f32, 1, {1, 1536, 576});
    }
    for (const int64_t rows : {1, 512}) {
      linear(DType::bf16, DType::bf16, rows, {1, 4096, 4096});
      linear(DType::f16, DType::f16, rows, {1, 4096, 4096});
    }
  }
  bool failed() const { return failed_; }

 private:
  bool wanted(std::string_view what) const {
    return only_.empty() || std::any_of(only_.begin(), only_.end(), [&](const std::string& text) {
             return what.find(text) != std::string_view::npos;
           });
  }
  /// Returns the seconds of one of `times` calls; the minimum of some rounds.
  template <class F>
  double seconds(int times, const F& round) {
    return time_.best(small_ ? 1 : 7, round) / times;
  }
  /// Returns the seconds of one of `times` calls in a graph.
  template <class F>
  double seconds_recorded(int times, const F& call) {
    if (small_) return NAN;
    const auto recording = backend_.record([&] {
      for (int i = 0; i < times; ++i) call(i);
    });
    recording->replay();
    return seconds(times, [&] { recording->replay(); });
  }

  /// Returns the first numbers of a dtype on the device. They are made once; operands are parts of
  /// them.
  const void* numbers(DType dtype, int64_t count) {
    auto& [memory, held] = numbers_[static_cast<size_t>(dtype)];
    if (held < count) {
      const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
      std::vector<char> host(static_cast<size_t>(count) * bytes);
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = encode(dtype, number(i));
        std::memcpy(&host[static_cast<size_t>(i) * bytes], &bits, bytes);
      }
      memory = std::make_unique<Memory>(backend_, host.size());
      backend_.upload(memory->data(), host.data(), host.size());
      held = count;
    }
    return memory->data();
  }

  /// Returns the largest error of some elements as a share of the permitted error. a(i, p) and b(p,
  /// j) return the operands' elements.
  template <class A, class B>
  double worst(DType dtype, const Shape2& s, const void* out, const A& a, const B& b) {
    std::vector<char> host(static_cast<size_t>(s.m * s.n * info(dtype).block_bytes));
    backend_.download(host.data(), out, host.size());
    double most = 0;
    const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
    for (int64_t sample = 0; sample < 400; ++sample) {
      int64_t at = (sample * 7919 + sample * sample * 104729) % (s.m * s.n);
      if (sample < 4) at = sample / 2 * (s.m - 1) * s.n + sample % 2 * (s.n - 1);  // the corners
      const int64_t i = at / s.n, j = at % s.n;
      double sum = 0, magnitude = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const double product = a(i, p) * b(p, j);
        sum += product;
        magnitude += std::fabs(product);
      }
      uint32_t bits = 0;
      std::memcpy(&bits, &host[static_cast<size_t>(at) * bytes], bytes);
      const double got = decode(dtype, bits);
      const double limit = half_ulp(dtype, std::max(std::fabs(got), std::fabs(sum))) +
                           4 * std::sqrt(static_cast<double>(s.k)) * 0x1p-24 * magnitude;
      const double share = std::fabs(got - sum) / limit;
      if (!(share <= most)) most = share;
    }
    failed_ = failed_ || !(most <= 1);
    return most;
  }

  void matmul(DType dtype, std::string_view layout, const Shape2& s) {
    const std::string what =
        fmt::format("matmul.{}.{}[{},{},{}]", name(dtype), layout, s.m, s.n, s.k);
    if (!wanted(what)) return;
    const bool a_turned = layout[0] == 't', b_turned = layout[1] == 't';
    const int64_t start_b = 4096;
    const void* const all = numbers(dtype, start_b + std::max(s.m * s.k, s.k * s.n));
    const Memory out(backend_, static_cast<size_t>(s.m * s.n * 4));
    const auto matrix = [&](int64_t rows, int64_t columns, bool turned, int64_t start) {
      Layout l = Layout::contiguous(turned ? Shape{columns, rows} : Shape{rows, columns}, start);
      return ConstView{all, dtype, turned ? l.transpose(0, 1) : l};
    };
    const ConstView a = matrix(s.m, s.k, a_turned, 0), b = matrix(s.k, s.n, b_turned, start_b);
    const View to{out.data(), dtype, Layout::contiguous({s.m, s.n})};
    backend_.matmul(to, a, b);
    backend_.synchronize();
    const double error = worst(
        dtype, s, out.data(),
        [&](int64_t i, int64_t p) { return stored(dtype, a_turned ? p * s.m + i : i * s.k + p); },
        [&](int64_t p, int64_t j) {
          return stored(dtype, start_b + (b_turned ? j * s.k + p : p * s.n + j));
        });
    const double operations = 2.0 * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
    const int times = operations > 1e11 ? 10 : 30;
    const double time = seconds_recorded(times, [&](int) { backend_.matmul(to, a, b); });
    fmt::print("{{\"op\": \"{}\", \"worst\": {:.3f}", what, error);
    if (!small_) {
      fmt::print(
          ", \"us\": {:.1f}, \"tflops\": {:.1f}, \"gb_s\": {:.0f}", time * 1e6,
          operations / time / 1e12,
          static_cast<double>((s.m * s.k + s.k * s.n + s.m * s.n) * info(dtype).block_bytes) /
              time / 1e9);
      if (const auto peer = peer_seconds(dtype, a_turned, b_turned, s, to.data, times)) {
        fmt::print(", \"cublas_tflops\": {:.1f}, \"of_cublas\": {:.3f}", operations / *peer / 1e12,
                   *peer / time);
      }
    }
    fmt::print("}}\n");
    std::fflush(stdout);
  }

  std::optional<double> peer_seconds(DType dtype, bool a_turned, bool b_turned, const Shape2& s,
                                     void* out, int times) {
    if (peer_ == nullptr) return std::nullopt;
    const char* const all = static_cast<const char*>(numbers(dtype, 0));
    const char* const b = all + 4096 * info(dtype).block_bytes;
    bool done = true;
    const auto round = [&] {
      for (int i = 0; i < times; ++i) {
        done = done && peer_->multiply(dtype, a_turned, b_turned, static_cast<int>(s.m),
                                       static_cast<int>(s.n), static_cast<int>(s.k), all, b, out);
      }
    };
    round();
    const double time = seconds(times, round);
    return done ? std::optional(time) : std::nullopt;
  }

  /// Measures rows of x multiplied by weights [n, k].
  void linear(DType dtype, DType x_dtype, int64_t rows, Shape2 s) {
    s.m = rows;
    const std::string what =
        fmt::format("linear.{}.{}[{},{},{}]", name(dtype), name(x_dtype), s.m, s.n, s.k);
    if (!wanted(what)) return;
    const ConstView w{numbers(dtype, s.n * s.k), dtype, Layout::contiguous({s.n, s.k})};
    // x is another part of the numbers: a row times itself would be a sum of squares, for which the
    // class permits more.
    const int64_t start_x = 4096;
    const ConstView x{numbers(x_dtype, start_x + s.m * s.k), x_dtype,
                      Layout::contiguous({s.m, s.k}, start_x)};
    const Memory out(backend_, static_cast<size_t>(s.m * s.n * 4));
    const View to{out.data(), x_dtype, Layout::contiguous({s.m, s.n})};
    // There are more copies than fit into any cache.
    const double bytes = static_cast<double>(s.n * s.k * info(dtype).block_bytes);
    const int copies = small_ ? 1 : static_cast<int>(std::ceil(4e8 / bytes));
    std::vector<std::unique_ptr<PreparedWeight>> weights;
    for (int i = 0; i < std::min(copies, 64); ++i) {
      weights.push_back(backend_.prepare({&w, 1}, false));
    }
    backend_.linear(to, x, *weights[0], {});
    backend_.synchronize();
    const auto rounded = [&](double v) {
      return dtype == DType::bf16 ? decode(DType::bf16, encode(DType::bf16, static_cast<float>(v)))
                                  : v;
    };
    const double error = worst(
        x_dtype, s, out.data(),
        [&](int64_t i, int64_t p) { return rounded(stored(x_dtype, start_x + i * s.k + p)); },
        [&](int64_t p, int64_t j) { return stored(dtype, j * s.k + p); });
    const int times = std::max(30, static_cast<int>(weights.size()));
    const double time = seconds_recorded(times, [&](int i) {
      backend_.linear(to, x, *weights[static_cast<size_t>(i) % weights.size()], {});
    });
    fmt::print("{{\"op\": \"{}\", \"worst\": {:.3f}", what, error);
    if (!small_) {
      fmt::print(
          ", \"us\": {:.2f}, \"tflops\": {:.1f}, \"weights_gb_s\": {:.0f}, "
          "\"share_of_copy\": {:.3f}",
          time * 1e6, 2.0 * static_cast<double>(s.m * s.n * s.k) / time / 1e12, bytes / time / 1e9,
          bytes / time / copy_rate_);
    }
    fmt::print("}}\n");
    std::fflush(stdout);
  }

  gpu::GpuBackend backend_;
  gpu::Gpu& gpu_;
  std::unique_ptr<bench::Cublas> peer_;
  struct Numbers {
    std::unique_ptr<Memory> memory;
    int64_t held = 0;
  };
  Numbers numbers_[kRealDTypeCount];
  const bool small_;
  const std::vector<std::string> only_;
  bool failed_ = false;
  bench::GpuTime time_{gpu_};
  double copy_rate_ = NAN;
};

}  // namespace

int main(int argc, char** argv) {
  bool small = false;
  std::string device;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--small") {
      small = true;
    } else if (word == "--only" && i + 1 < argc) {
      only.emplace_back(argv[++i]);
    } else {
      device = word;
    }
  }
  if (device.empty()) {
    fmt::print(stderr, "gpu_bench_gemm DEVICE [--small] [--only TEXT]...\n");
    return 2;
  }
  try {
    Bench bench(Device::parse(device), small, only);
    bench.run();
    return bench.failed() ? 1 : 0;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_bench_gemm: {}\n", error.what());
    return 2;
  }
}
