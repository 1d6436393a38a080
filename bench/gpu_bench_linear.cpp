// Measures GEMMs with quantized weights on a GPU. Prints lines of JSON.
//
//   gpu_bench_linear DEVICE [--small] [--types=q4_0,q8_0] [--shape=NxK] [--prompt | --decode]
//
// For one column and a few: the rate of reading weights, in bytes of their file layout, also as a
// share of the device's copy bandwidth. Weights that are decoded to f32 have one row for each
// number of columns. For 512 columns: operations per second of each kernel that the device has.
// Some rows of the result are compared with the CPU's bits, or, if the CPU doesn't support the
// type, with GEMVs of one column at a time. --small uses shapes that an emulator can handle and
// measures nothing.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bench/gpu_time.h"
#include "bench/numbers.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/base/error.h"
#include "wick/math/half.h"

namespace {

using namespace wick;

using bench::Numbers;

/// Returns random blocks with scales of some magnitude. The first rows are random and are then
/// repeated.
std::vector<uint8_t> random_weight(DType type, int64_t n, int64_t k) {
  const auto row = static_cast<size_t>(bytes_of(type, k));
  const auto block = static_cast<size_t>(info(type).block_bytes);
  std::vector<uint8_t> bytes(row * static_cast<size_t>(n));
  Numbers random(7);
  const size_t own = std::min<size_t>(static_cast<size_t>(n), 509) * row;
  const QuantInfo& row_of = quant(type);
  for (size_t at = 0; at < own; ++at) bytes[at] = static_cast<uint8_t>(random.bits());
  for (size_t at = 0; at < own; at += block) {
    for (const int place : {row_of.at, row_of.minimum_at}) {
      if (place < 0) continue;
      uint8_t* const to = &bytes[at + static_cast<size_t>(place)];
      const float d = random.normal() * 0.01f;
      const math::f16 half = math::from_f32<math::f16>(d);
      if (row_of.scale == QuantScale::f16) std::memcpy(to, &half, 2);
      if (row_of.scale == QuantScale::f32) std::memcpy(to, &d, 4);
      if (row_of.scale == QuantScale::e8m0) *to = static_cast<uint8_t>(116 + *to % 8);
    }
  }
  for (size_t at = own; at < bytes.size(); at += own) {
    std::memcpy(&bytes[at], bytes.data(), std::min(own, bytes.size() - at));
  }
  return bytes;
}

class Buffer {
 public:
  Buffer(gpu::GpuBackend& backend, size_t bytes) : backend_(backend), bytes_(bytes) {
    data = backend_.alloc(bytes_);
  }
  Buffer(gpu::GpuBackend& backend, const void* from, size_t bytes) : Buffer(backend, bytes) {
    backend_.upload(data, from, bytes);
  }
  ~Buffer() { backend_.free(data, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data;

 private:
  gpu::GpuBackend& backend_;
  size_t bytes_;
};

struct Options {
  bool small = false, decode = true, prompt = true;
  std::pair<int64_t, int64_t> shape = {};  // n, k; zeros: the shapes in run()
  std::vector<DType> types = {DType::q4_0,   DType::q4_1,   DType::q8_0, DType::q4_k, DType::q6_k,
                              DType::q5_0,   DType::q5_1,   DType::q2_k, DType::q3_k, DType::q5_k,
                              DType::iq4_nl, DType::iq4_xs, DType::mxfp4};
};

class Bench {
 public:
  Bench(Device device, const Options& options)
      : backend_(gpu::backend_of(device)), gpu_(backend_.gpu()), options_(options) {
    gpu_.enter();
    if (!options_.small) copy_rate_ = time_.copy_rate();
    fmt::print("{{\"device\": \"{}\", \"name\": \"{}\", \"kernels\": \"{}\"{}}}\n", device.str(),
               gpu_.info.name, gpu_.compiled_for(),
               options_.small ? "" : fmt::format(", \"copy_gb_s\": {:.0f}", copy_rate_ / 1e9));
  }

  void run() {
    const std::pair<int64_t, int64_t> large[] = {
        {4096, 4096}, {14336, 4096}, {4096, 14336}, {6144, 4096}, {28672, 4096}};
    const std::pair<int64_t, int64_t> tiny[] = {{144, 512}, {48, 1536}};
    auto shapes =
        options_.small ? std::span<const std::pair<int64_t, int64_t>>(tiny) : std::span(large);
    if (options_.shape.first != 0) shapes = std::span(&options_.shape, 1);
    if (!options_.small) quantize_activationss();
    for (const DType type : options_.types) {
      for (const auto& [n, k] : shapes) weight(type, n, k);
    }
  }
  int64_t different() const { return different_; }

 private:
  /// Returns the seconds of one of `times` consecutive calls in a graph; the minimum of seven.
  template <class F>
  double seconds(int times, const F& call) {
    call(0);  // loads the kernel and allocates memory
    gpu_.synchronize();
    if (options_.small) return NAN;
    const std::unique_ptr<DeviceGraph> recording = backend_.record([&] {
      for (int i = 0; i < times; ++i) call(i);
    });
    return time_.best(7, [&] { recording->replay(); }) / times;
  }

  /// The activations of a GEMM, and its expected results.
  struct Columns {
    int64_t count, k;
    std::vector<float> x;
    Columns(int64_t columns, int64_t depth) : count(columns), k(depth) {
      Numbers random(8);
      for (int64_t i = 0; i < count * k; ++i) x.push_back(random.normal());
    }
  };

  /// Returns the expected results of some rows, column by column: [columns][rows].
  std::vector<float> expected(const std::vector<uint8_t>& file, DType type, int64_t k,
                              const std::vector<int64_t>& rows, const Columns& columns,
                              std::string& by) {
    const auto row_bytes = static_cast<size_t>(bytes_of(type, k));
    std::vector<uint8_t> some;
    for (const int64_t r : rows) {
      const auto* from = file.data() + static_cast<size_t>(r) * row_bytes;
      some.insert(some.end(), from, from + row_bytes);
    }
    const auto n = static_cast<int64_t>(rows.size());
    std::vector<float> y(static_cast<size_t>(n * columns.count));
    const Layout x_layout = Layout::contiguous({columns.count, k});
    const Layout y_layout = Layout::contiguous({columns.count, n});
    try {
      cpu::CpuBackend cpu(cpu::available_isas().back());
      const ConstView part{some.data(), type, Layout::contiguous({n, k})};
      const auto prepared = cpu.prepare(std::span(&part, 1), false);
      cpu.linear({y.data(), DType::f32, y_layout}, {columns.x.data(), DType::f32, x_layout},
                 *prepared, {});
      by = "cpu";
      return y;
    } catch (const Error&) {
      by = "one column at a time";
    }
    const Buffer on_device(backend_, some.data(), some.size());
    const Buffer x(backend_, columns.x.data(), columns.x.size() * 4), out(backend_, y.size() * 4);
    const ConstView part{on_device.data, type, Layout::contiguous({n, k})};
    const auto prepared = backend_.prepare(std::span(&part, 1), false);
    for (int64_t c = 0; c < columns.count; ++c) {
      backend_.linear({out.data, DType::f32, Layout({1, n}, {n, 1}, c * n)},
                      {x.data, DType::f32, Layout({1, k}, {k, 1}, c * k)}, *prepared, {});
    }
    backend_.download(y.data(), out.data, y.size() * 4);
    return y;
  }

  /// Measures the quantization of activations before GEMMs, with preceding ops fused into it. The
  /// launches are consecutive, and each waits for the previous one.
  void quantize_activationss() {
    using Input = LinearFusion::Input;
    const std::tuple<Input, std::string_view, int64_t> all[] = {
        {Input::plain, "plain", 4096},
        {Input::rms_norm, "rms_norm", 2048},
        {Input::rms_norm, "rms_norm", 4096},
        {Input::silu_mul, "silu_mul", 8192},
        {Input::silu_mul, "silu_mul", 14336}};
    for (const int64_t rows : {1, 512}) {
      for (const auto& [input, what, k] : all) {
        const int64_t width = input == Input::silu_mul ? 2 * k : k;
        const Columns columns(rows, width);
        const Buffer x(backend_, columns.x.data(), columns.x.size() * 4);
        const gpu::QuantizedRows quantized(gpu_, rows, k, DType::q8_0);
        LinearFusion fusion;
        fusion.input = input;
        fusion.norm = {x.data, DType::f32, Layout::contiguous({k})};
        fusion.eps = 1e-5f;
        const ConstView in{x.data, DType::f32, Layout::contiguous({rows, width})};
        const double time =
            seconds(50, [&](int) { gpu::quantize_rows(gpu_, fusion, in, k, quantized.blocks()); });
        fmt::print(
            "{{\"quantize_activations\": \"{}\", \"rows\": {}, \"k\": {}, \"us\": {:.2f}}}\n", what,
            rows, k, time * 1e6);
      }
    }
  }

  void weight(DType type, int64_t n, int64_t k) {
    const std::vector<uint8_t> file = random_weight(type, n, k);
    std::vector<std::unique_ptr<PreparedWeight>> copies;
    {
      const Buffer on_device(backend_, file.data(), file.size());
      const ConstView part{on_device.data, type, Layout::contiguous({n, k})};
      // There are so many copies that weights come from memory, not from the cache.
      const size_t most = options_.small ? 1 : size_t{400} << 20;
      do {
        copies.push_back(backend_.prepare(std::span(&part, 1), false));
      } while (copies.size() * copies[0]->bytes < most);
    }
    std::vector<int64_t> rows;
    for (int64_t r = 0; r < n; r += std::max<int64_t>(1, n / 61)) rows.push_back(r);
    const Columns columns(options_.small ? 140 : 512, k);
    std::string by;
    const std::vector<float> want = expected(file, type, k, rows, columns, by);
    const Buffer x(backend_, columns.x.data(), columns.x.size() * 4);
    const Buffer y(backend_, static_cast<size_t>(columns.count * n) * 4);

    const auto measure = [&](int64_t count, std::string_view path) {
      gpu_.check(gpu_.driver.api.set_bytes(y.data, 0xff, static_cast<size_t>(count * n) * 4,
                                           gpu_.stream()),
                 "clearing");
      const View out{y.data, DType::f32, Layout::contiguous({count, n})};
      const ConstView in{x.data, DType::f32, Layout::contiguous({count, k})};
      const bool own = dtypes::kOwnProducts.contains(type);
      const gpu::QuantizedRows quantized(gpu_, own ? count : 0, k, type);
      const double before =
          own ? seconds(20, [&](int) { gpu::quantize_rows(gpu_, {}, in, k, quantized.blocks()); })
              : 0.0;
      setenv("WICK_GPU_LINEAR", std::string(path).c_str(), 1);
      const int times = static_cast<int>(std::max<size_t>(copies.size(), 8));
      const double time = seconds(times, [&](int i) {
        const auto& weight = *copies[static_cast<size_t>(i) % copies.size()];
        if (!own) return backend_.linear(out, in, weight, {});
        gpu::multiply(out, quantized, static_cast<const gpu::QuantizedWeight&>(weight), nullptr);
      });
      unsetenv("WICK_GPU_LINEAR");
      std::vector<float> got(static_cast<size_t>(count * n));
      backend_.download(got.data(), y.data, got.size() * 4);
      int64_t differ = 0;
      for (int64_t c = 0; c < count; ++c) {
        for (size_t i = 0; i < rows.size(); ++i) {
          const float a = want[static_cast<size_t>(c) * rows.size() + i];
          const float b = got[static_cast<size_t>(c * n + rows[i])];
          differ += std::memcmp(&a, &b, 4) != 0;
        }
      }
      different_ += differ;
      fmt::print(
          "{{\"type\": \"{}\", \"n\": {}, \"k\": {}, \"columns\": {}, \"path\": \"{}\", "
          "\"differ\": {}, \"of\": {}, \"from\": \"{}\"",
          name(type), n, k, count, path.empty() ? "default" : path, differ,
          count * static_cast<int64_t>(rows.size()), by);
      if (!options_.small) {
        const double rate = static_cast<double>(file.size()) / time;
        fmt::print(
            ", \"us\": {:.2f}, \"gb_s\": {:.0f}, \"share_of_copy\": {:.3f}, \"top_s\": {:.1f}, "
            "\"quantize_us\": {:.2f}",
            time * 1e6, rate / 1e9, rate / copy_rate_,
            2e-12 * static_cast<double>(n * k * count) / time, before * 1e6);
      }
      fmt::print("}}\n");
      std::fflush(stdout);
    };
    const std::vector<std::string_view> paths = gpu::gemm_paths(gpu_, type);
    if (options_.decode) {
      for (const int64_t count : {1, 2, 4, 8, 16, 32}) {
        measure(count, "");
        if (paths.size() > 1 && (count == 2 || count == 4)) measure(count, "dot");
      }
    }
    if (options_.prompt) {
      for (const int64_t count : {48, 64, 128}) {
        if (count >= columns.count) continue;
        if (paths.size() > 1) measure(count, "few");
        measure(count, "");
      }
      for (const std::string_view path : paths) {
        if (path == "many" || path == "f16" || paths.size() == 1 || options_.small)
          measure(columns.count, path);
      }
    }
  }

  gpu::GpuBackend& backend_;
  gpu::Gpu& gpu_;
  const Options options_;
  int64_t different_ = 0;
  bench::GpuTime time_{gpu_};
  double copy_rate_ = NAN;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small") {
      options.small = true;
    } else if (word == "--prompt") {
      options.decode = false;
    } else if (word == "--decode") {
      options.prompt = false;
    } else if (word.starts_with("--shape=") && word.find('x') != std::string::npos) {
      options.shape = {std::stoll(word.substr(8)), std::stoll(word.substr(word.find('x') + 1))};
    } else if (word.starts_with("--types=")) {
      options.types.clear();
      for (size_t at = 8; at < word.size();) {
        const size_t end = std::min(word.find(',', at), word.size());
        const auto type = parse_dtype(word.substr(at, end - at));
        if (!type || !is_block(*type)) {
          throw Error("types", "no such type", word.substr(at, end - at));
        }
        options.types.push_back(*type);
        at = end + 1;
      }
    } else {
      throw Error("arguments", "unknown", word);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "gpu_bench_linear DEVICE [--small] [--types=q4_0,q8_0] [--shape=NxK] [--prompt | "
               "--decode]\n");
    return 2;
  }
  try {
    Bench bench(Device::parse(argv[1]), parse(argc, argv));
    bench.run();
    return bench.different() == 0 ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_bench_linear: {}\n", error.what());
    return 2;
  }
}
