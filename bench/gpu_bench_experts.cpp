// Measures grouped_linear, the gemms of mixtures of experts, on a GPU. Prints lines of JSON.
//
//   gpu_bench_experts DEVICE [--small] [--types=q4_k,f16]
//
// For experts of the sizes of some models, and for several numbers of tokens: the time of a call,
// and for quantised weights that of each kernel (`path`). "loop" is one linear for each expert, of
// rows that are in the experts' order already, in one graph: what a host that knows the ids could
// reach. The results of quantised weights are compared with those of the kernel for a pair at a
// time. --small uses shapes that an emulator can handle and measures nothing.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/gpu_time.h"
#include "bench/numbers.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/random.h"

namespace {

using namespace wick;

struct Layer {
  int64_t experts, top, n, k;
};

class Bench {
 public:
  Bench(Device device, bool small)
      : device_(device), backend_(gpu::backend_of(device)), gpu_(backend_.gpu()), small_(small) {
    gpu_.enter();
    fmt::print("{{\"device\": \"{}\", \"name\": \"{}\", \"kernels\": \"{}\"}}\n", device.str(),
               gpu_.info.name, gpu_.compiled_for());
  }

  void layer(DType type, const Layer& of) {
    const bool quantised = is_block(type);
    const Tensor matrix = normal({of.n, of.k}, 0, 0.1, DType::f32, device_);
    std::vector<Weight> weights;
    std::vector<const PreparedWeight*> prepared;
    for (int64_t e = 0; e < of.experts; ++e) {
      weights.emplace_back(quantised ? quantize(matrix, type) : matrix.to(type));
    }
    for (const Weight& w : weights) prepared.push_back(&w.prepared());
    const std::vector<int64_t> small{40}, large{1, 16, 32, 64, 128, 512, 2048};
    for (const int64_t tokens : small_ ? small : large) rows(type, of, prepared, tokens);
  }
  bool differ() const { return differ_; }

 private:
  /// Returns the seconds of a call, of several in a graph; the minimum of seven.
  template <class F>
  double seconds(const F& call) {
    call();  // loads the kernels and allocates memory
    gpu_.synchronize();
    if (small_) return NAN;
    constexpr int kTimes = 10;
    const std::unique_ptr<DeviceGraph> graph = backend_.record([&] {
      for (int i = 0; i < kTimes; ++i) call();
    });
    return time_.best(7, [&] { graph->replay(); }) / kTimes;
  }

  void print(DType type, const Layer& of, int64_t tokens, std::string_view path, double time) {
    fmt::print(
        "{{\"type\": \"{}\", \"experts\": {}, \"top\": {}, \"n\": {}, \"k\": {}, \"tokens\": {}, "
        "\"path\": \"{}\"",
        name(type), of.experts, of.top, of.n, of.k, tokens, path);
    if (!small_) {
      const double flops =
          2 * static_cast<double>(tokens * of.top * of.n) * static_cast<double>(of.k);
      fmt::print(", \"us\": {:.2f}, \"tops\": {:.1f}", time * 1e6, flops / time * 1e-12);
    }
    fmt::print("}}\n");
    std::fflush(stdout);
  }

  void rows(DType type, const Layer& of, const std::vector<const PreparedWeight*>& weights,
            int64_t tokens) {
    const DType dtype = is_block(type) ? DType::f32 : type;
    const Tensor x = normal({tokens, of.k}, 0, 1, DType::f32, device_).to(dtype);
    // Each token has `top` different experts.
    std::vector<uint32_t> ids;
    std::vector<int64_t> counts(static_cast<size_t>(of.experts));
    bench::Numbers random(9);
    for (int64_t t = 0; t < tokens; ++t) {
      const auto first = static_cast<int64_t>(random.bits() % static_cast<uint64_t>(of.experts));
      for (int64_t j = 0; j < of.top; ++j) {
        const int64_t expert = (first + j * j + j) % of.experts;
        ids.push_back(static_cast<uint32_t>(expert));
        ++counts[static_cast<size_t>(expert)];
      }
    }
    const Tensor chosen = Tensor::from(ids, {tokens, of.top}, device_);
    const Tensor y = Tensor::zeros({tokens, of.top, of.n}, dtype, device_);
    const auto call = [&] {
      backend_.grouped_linear(y.mutable_view(), x.view(), weights, chosen.view(), {});
    };
    std::vector<std::string_view> paths{""};
    if (dtypes::kOwnProducts.contains(type)) paths = gpu::gemm_paths(gpu_, type);
    std::vector<float> first;
    for (const std::string_view path : paths) {
      setenv("WICK_GPU_LINEAR", std::string(path).c_str(), 1);
      const double time = seconds(call);
      unsetenv("WICK_GPU_LINEAR");
      print(type, of, tokens, path.empty() ? "default" : path, time);
      if (paths.size() == 1) continue;
      const std::vector<float> got = y.to_vector<float>();
      if (first.empty()) first = got;
      if (std::memcmp(first.data(), got.data(), got.size() * 4) == 0) continue;
      fmt::print(stderr, "gpu_bench_experts: {}: {} has other bits\n", name(type), path);
      differ_ = true;
    }
    const int64_t pairs = tokens * of.top;
    const Tensor ordered = normal({pairs, of.k}, 0, 1, DType::f32, device_).to(dtype);
    const Tensor to = y.reshape({pairs, of.n});
    print(type, of, tokens, "loop", seconds([&] {
            int64_t at = 0;
            for (size_t e = 0; e < counts.size(); at += counts[e++]) {
              if (counts[e] == 0) continue;
              backend_.linear(to.narrow(0, at, counts[e]).mutable_view(),
                              ordered.narrow(0, at, counts[e]).view(), *weights[e], {});
            }
          }));
  }

  Device device_;
  gpu::GpuBackend& backend_;
  gpu::Gpu& gpu_;
  const bool small_;
  bool differ_ = false;
  bench::GpuTime time_{gpu_};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "gpu_bench_experts DEVICE [--small] [--types=q4_k,f16]\n");
    return 2;
  }
  try {
    bool small = false;
    std::vector<DType> types{DType::q4_k, DType::q4_0, DType::q8_0,
                             DType::q6_k, DType::f16,  DType::bf16};
    for (int i = 2; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--small") {
        small = true;
      } else if (word.starts_with("--types=")) {
        types.clear();
        for (size_t at = 8; at < word.size();) {
          const size_t end = std::min(word.find(',', at), word.size());
          const auto type = parse_dtype(word.substr(at, end - at));
          if (!type) throw Error("types", "no such type", word.substr(at, end - at));
          types.push_back(*type);
          at = end + 1;
        }
      } else {
        throw Error("arguments", "unknown", word);
      }
    }
    Bench bench(Device::parse(argv[1]), small);
    const std::vector<Layer> tiny{{4, 2, 144, 256}};
    const std::vector<Layer> models{{128, 8, 768, 2048}, {8, 2, 14336, 4096}};
    for (const DType type : types) {
      for (const Layer& layer : small ? tiny : models) bench.layer(type, layer);
    }
    return bench.differ() ? 1 : 0;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_bench_experts: {}\n", error.what());
    return 2;
  }
}
