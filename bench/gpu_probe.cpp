// Whether a GPU gives the CPU's bits, and at what share of its copy bandwidth, as JSON.
//
//   gpu_probe DEVICE [--small]
//
// silu, rms_norm, sums of rows of many lengths, and products of Q4_1 and Q8_0 weights with one
// column, against the CPU kernels of every instruction set here. --small takes shapes an emulator
// can do.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "bench/gpu_time.h"
#include "bench/numbers.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/base/error.h"
#include "wick/math/blocks.h"
#include "wick/math/half.h"

namespace {

using namespace wick;

using bench::Numbers;

template <class T>
T store(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return math::from_f32<T>(x);
  }
}

/// Of either sign and of magnitudes from 2^-7 to 2^7.
template <class T>
std::vector<T> numbers(size_t count, uint32_t seed) {
  Numbers random(seed);
  std::vector<T> v(count);
  for (T& x : v) {
    const uint32_t bits = random.bits();
    x = store<T>(math::bits_f32((bits & 0x807fffffu) | (120 + bits % 14) << 23));
  }
  return v;
}

/// The first `count` of a list that is made once.
template <class T>
std::span<const T> shared_numbers(size_t count) {
  static std::vector<T> all;
  if (all.size() < count) all = numbers<T>(count, 1);
  return {all.data(), count};
}

class DeviceBuffer {
 public:
  DeviceBuffer(gpu::Gpu& gpu, size_t bytes) : gpu_(gpu), bytes_(bytes) {
    gpu_.enter();
    data = gpu_.pool.take(bytes);
  }
  template <class T>
  DeviceBuffer(gpu::Gpu& gpu, const std::vector<T>& from)
      : DeviceBuffer(gpu, std::span<const T>(from)) {}
  template <class T>
  DeviceBuffer(gpu::Gpu& gpu, std::span<const T> from)
      : DeviceBuffer(gpu, from.size() * sizeof(T)) {
    gpu_.check(gpu_.driver.api.copy_to_device(data, from.data(), bytes_, gpu_.stream()), "copying");
    gpu_.synchronize();
  }
  ~DeviceBuffer() { gpu_.pool.give(data); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  template <class T>
  std::vector<T> get(size_t count) const {
    std::vector<T> v(count);
    gpu_.check(gpu_.driver.api.copy_to_host(v.data(), data, count * sizeof(T), gpu_.stream()),
               "copying");
    gpu_.synchronize();
    return v;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  void* data = nullptr;

 private:
  gpu::Gpu& gpu_;
  size_t bytes_;
};

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

class Probe {
 public:
  Probe(Device device, bool small) : backend_(device), small_(small) {
    gpu_.enter();
    if (!small_) copy_rate_ = time_.copy_rate();
    fmt::print(
        "{{\"device\": \"{}\", \"name\": \"{}\", \"architecture\": \"{}\", \"driver\": "
        "\"{}\", \"copy_gb_s\": {}, \"rows\": [",
        device.str(), gpu_.info.name, gpu_.info.architecture, gpu_.driver.version(),
        small_ ? "null" : fmt::format("{:.0f}", copy_rate_ / 1e9));
  }

  void run() {
    const int64_t many = small_ ? 40'007 : int64_t{64} << 20;
    silu<float>("f32", DType::f32, many);
    silu<math::f16>("f16", DType::f16, many);
    silu<math::bf16>("bf16", DType::bf16, many);
    for (const int64_t n : {1, 5, 64, 127, 576, 1000, 1024, 4096, 4097, 14336, 32768}) {
      const int64_t rows = small_ ? 9 : std::max<int64_t>(many / n, 1);
      sum<float>("f32", DType::f32, rows, n);
      if (n >= 64) sum<math::bf16>("bf16", DType::bf16, rows, n);
    }
    for (const int64_t n : {64, 576, 1024, 2048, 4096, 8192, 14336}) {
      const int64_t rows = small_ ? 5 : many / n;
      rms_norm<float>("f32", DType::f32, rows, n);
      rms_norm<math::bf16>("bf16", DType::bf16, rows, n);
    }
    const std::pair<int64_t, int64_t> large[] = {
        {2048, 2048}, {4096, 4096}, {14336, 4096}, {4096, 14336}, {128256, 4096}};
    const std::pair<int64_t, int64_t> tiny[] = {{64, 576}, {48, 1536}};
    for (const auto& [n, k] : small_ ? std::span<const std::pair<int64_t, int64_t>>(tiny)
                                     : std::span<const std::pair<int64_t, int64_t>>(large)) {
      gemv<math::BlockQ4_0>("q4_0", DType::q4_0, n, k);
      gemv<math::BlockQ4_1>("q4_1", DType::q4_1, n, k);
      gemv<math::BlockQ8_0>("q8_0", DType::q8_0, n, k);
    }
    fmt::print("\n], \"modules_loaded\": {}, \"different\": {}}}\n", gpu_.modules_loaded(),
               different_);
  }
  int64_t different() const { return different_; }

 private:
  /// Seconds of one of `times` calls in a row, as a graph, the best of five.
  template <class F>
  double seconds(int times, const F& call) {
    if (small_) {
      call(0);
      gpu_.synchronize();
      return NAN;
    }
    void *captured = nullptr, *graph = nullptr;
    call(0);  // loads what is to be loaded
    gpu_.check(gpu_.driver.api.capture_begin(gpu_.stream(), 2), "beginning a capture");
    for (int i = 0; i < times; ++i) call(i);
    gpu_.check(gpu_.driver.api.capture_end(gpu_.stream(), &captured), "ending a capture");
    gpu_.check(gpu_.driver.api.graph_instantiate(&graph, captured, 0), "making a graph");
    const double best = time_.best(5, [&] {
      gpu_.check(gpu_.driver.api.graph_launch(graph, gpu_.stream()), "launching a graph");
    });
    gpu_.driver.api.graph_exec_destroy(graph);
    gpu_.driver.api.graph_destroy(captured);
    return best / times;
  }

  void report(const std::string& what, const std::string& differ, double time, double bytes) {
    fmt::print("{}\n  {{\"op\": \"{}\", \"differ\": {{{}}}", first_ ? "" : ",", what, differ);
    if (!small_) {
      fmt::print(", \"us\": {:.2f}, \"gb_s\": {:.0f}, \"share_of_copy\": {:.3f}", time * 1e6,
                 bytes / time / 1e9, bytes / time / copy_rate_);
    }
    fmt::print("}}");
    std::fflush(stdout);
    first_ = false;
  }

  /// Against each instruction set: how many of the elements have other bits.
  template <class T, class F>
  std::string compare(const std::vector<T>& got, const F& on_cpu) {
    std::string text;
    for (const cpu::Isa isa : cpu::available_isas()) {
      if (isa == cpu::Isa::v2) continue;
      cpu::CpuBackend backend(isa);
      std::vector<T> want(got.size());
      on_cpu(backend, want.data());
      int64_t count = 0;
      for (size_t i = 0; i < got.size(); ++i) count += !same(got[i], want[i]);
      different_ += count;
      text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", cpu::name(isa), count);
    }
    return text;
  }

  template <class T>
  void silu(const char* name, DType dtype, int64_t n) {
    const auto in = shared_numbers<T>(static_cast<size_t>(n));
    DeviceBuffer x(gpu_, in), y(gpu_, in.size() * sizeof(T));
    const Layout layout = Layout::contiguous({n});
    const double time = seconds(20, [&](int) {
      backend_.unary(Op::silu, {y.data, dtype, layout}, {x.data, dtype, layout});
    });
    const std::string differ = compare(y.get<T>(in.size()), [&](cpu::CpuBackend& b, T* out) {
      b.unary(Op::silu, {out, dtype, layout}, {in.data(), dtype, layout});
    });
    report(fmt::format("silu.{}[{}]", name, n), differ, time,
           2.0 * static_cast<double>(n * sizeof(T)));
  }

  template <class T>
  void sum(const char* name, DType dtype, int64_t rows, int64_t n) {
    const auto in = shared_numbers<T>(static_cast<size_t>(rows * n));
    DeviceBuffer x(gpu_, in), y(gpu_, static_cast<size_t>(rows) * sizeof(T));
    const Layout wide = Layout::contiguous({rows, n}), narrow = Layout::contiguous({rows, 1});
    const double time = seconds(20, [&](int) {
      backend_.reduce(Op::sum, {y.data, dtype, narrow}, {x.data, dtype, wide}, 2);
    });
    const std::string differ =
        compare(y.get<T>(static_cast<size_t>(rows)), [&](cpu::CpuBackend& b, T* out) {
          b.reduce(Op::sum, {out, dtype, narrow}, {in.data(), dtype, wide}, 2);
        });
    report(fmt::format("sum.{}[{},{}]", name, rows, n), differ, time,
           static_cast<double>(rows * (n + 1)) * sizeof(T));
  }

  template <class T>
  void rms_norm(const char* name, DType dtype, int64_t rows, int64_t n) {
    const auto in = shared_numbers<T>(static_cast<size_t>(rows * n));
    const auto weight = numbers<T>(static_cast<size_t>(n), 4);
    DeviceBuffer x(gpu_, in), w(gpu_, weight), y(gpu_, in.size() * sizeof(T));
    const float eps = 1e-5f;
    const Layout layout = Layout::contiguous({rows, n}), line = Layout::contiguous({n});
    const double time = seconds(20, [&](int) {
      backend_.rms_norm({y.data, dtype, layout}, {x.data, dtype, layout}, {w.data, dtype, line},
                        eps);
    });
    const std::string differ = compare(y.get<T>(in.size()), [&](cpu::CpuBackend& b, T* out) {
      b.rms_norm({out, dtype, layout}, {in.data(), dtype, layout}, {weight.data(), dtype, line},
                 eps);
    });
    report(fmt::format("rms_norm.{}[{},{}]", name, rows, n), differ, time,
           2.0 * static_cast<double>(rows * n) * sizeof(T));
  }

  template <class Block>
  void gemv(const char* name, DType dtype, int64_t n, int64_t k) {
    std::vector<Block> blocks(static_cast<size_t>(n * k / 32));
    Numbers random(7);
    for (Block& block : blocks) {
      for (auto& q : block.qs) q = static_cast<std::remove_reference_t<decltype(q)>>(random.bits());
      block.d = math::from_f32<math::f16>(random.uniform() * 0.01f);
      if constexpr (requires { block.m; })
        block.m = math::from_f32<math::f16>(random.uniform() * 0.05f);
    }
    const auto x = numbers<float>(static_cast<size_t>(k), 8);
    DeviceBuffer in(gpu_, x), y(gpu_, static_cast<size_t>(n) * 4);
    const View out{y.data, DType::f32, Layout::contiguous({1, n})};
    // Copies enough that weights come out of memory, not of the cache.
    std::vector<std::unique_ptr<PreparedWeight>> weights;
    {
      const DeviceBuffer file(gpu_, blocks);
      const ConstView on_device{file.data, dtype, Layout::contiguous({n, k})};
      const size_t most = small_ ? 1 : size_t{400} << 20;
      do {
        weights.push_back(gpu::prepare_quantized(gpu_, std::span(&on_device, 1)));
      } while (weights.size() * weights[0]->bytes < most);
    }
    const gpu::QuantizedRows rows(gpu_, 1, k, dtype);
    gpu::quantize_rows(gpu_, {}, {in.data, DType::f32, Layout::contiguous({1, k})}, k,
                       rows.blocks());
    const double time = seconds(static_cast<int>(2 * weights.size()), [&](int i) {
      const auto& weight = *weights[static_cast<size_t>(i) % weights.size()];
      gpu::multiply(out, rows, static_cast<const gpu::QuantizedWeight&>(weight), nullptr);
    });
    const std::string differ =
        compare(y.get<float>(static_cast<size_t>(n)), [&](cpu::CpuBackend& b, float* want) {
          const ConstView part{blocks.data(), dtype, Layout::contiguous({n, k})};
          const auto prepared = b.prepare(std::span(&part, 1), false);
          b.linear({want, DType::f32, Layout::contiguous({1, n})},
                   {x.data(), DType::f32, Layout::contiguous({1, k})}, *prepared, {});
        });
    report(fmt::format("gemv.{}[{},{}]", name, n, k), differ, time,
           static_cast<double>(weights[0]->bytes));
  }

  gpu::GpuBackend backend_;
  gpu::Gpu& gpu_ = backend_.gpu();
  const bool small_;
  bool first_ = true;
  int64_t different_ = 0;
  bench::GpuTime time_{gpu_};
  double copy_rate_ = NAN;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "gpu_probe DEVICE [--small]\n");
    return 2;
  }
  try {
    Probe probe(Device::parse(argv[1]), argc > 2 && std::string_view(argv[2]) == "--small");
    probe.run();
    return probe.different() == 0 ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_probe: {}\n", error.what());
    return 2;
  }
}
