// The steps around the products of a mixture of experts: kernels/linear/experts.gpu.

#include "wick/backend/expert_steps.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/experts_abi.h"
#include "wick/backend/gpu/linear/temporary.h"

namespace wick::gpu {
namespace {

const KernelFamily<RouteArgs, OneOf<128, 256, 512>> kRoute("experts", "route_experts_{}");
const KernelFamily<GateArgs> kGate("experts", "gate_experts");
const KernelFamily<CombineArgs, OneOf<8, 32>> kCombine("experts", "combine_experts_{}");

/// Rows along the grid's y axis.
constexpr int64_t kMostRows = 32768;

template <class T>
T* data_of(const View& x) {
  return static_cast<T*>(x.data) + x.layout.offset();
}
const float* floats_of(const ConstView& x) {
  return x.data == nullptr ? nullptr : static_cast<const float*>(x.data) + x.layout.offset();
}

/// The bias for pairs from `first` on.
ExpertBiases bias_of(Gpu& gpu, const ExpertBias& of, int64_t first) {
  ExpertBiases made;
  if (of.bias.data == nullptr) return made;
  const int64_t experts = of.bias.layout.shape()[0];
  made.bias = floats_of(of.bias);
  made.ids = static_cast<const uint32_t*>(of.ids.data) + of.ids.layout.offset() + first;
  made.experts = static_cast<uint32_t>(experts);
  made.note = gpu.note("index_select", of.bias, of.ids, experts);
  made.line = gpu.fault_line();
  return made;
}
/// Makes the temporary tensors of run_route_experts and its siblings.
auto make_on(Gpu& gpu) {
  return [&gpu](const Shape& shape, DType dtype) { return Temporary(gpu, shape, dtype); };
}

}  // namespace

void GpuBackend::gate_experts(const View& out, const ConstView& y, const ExpertBias& bias,
                              double alpha, double limit) {
  const Shape& shape = out.layout.shape();
  if (out.layout.elems() == 0) return;
  if (!y.layout.is_contiguous()) {
    return run_gate_experts(*this, out, y, bias, alpha, limit, make_on(gpu_));
  }
  const int64_t all = shape[0] * shape[1], k = shape[2];
  for (int64_t first = 0; first < all; first += kMostRows) {
    const int64_t rows = std::min(kMostRows, all - first);
    GateArgs args{};
    args.out = data_of<float>(out) + first * k;
    args.y = floats_of(y) + first * 2 * k;
    args.bias = bias_of(gpu_, bias, first);
    args.k = static_cast<uint32_t>(k);
    args.alpha = static_cast<float>(alpha);
    args.limit = static_cast<float>(limit);
    Grid grid{{(args.k + kCombineThreads - 1) / kCombineThreads, static_cast<unsigned>(rows), 1}};
    grid.threads = kCombineThreads;
    grid.pdl = true;
    kGate().launch(gpu_, grid, args);
  }
}

void GpuBackend::route_experts(const View& ids, const View& weights, const ConstView& logits,
                               const ConstView& bias, const ExpertRouting& routing) {
  const int64_t rows = logits.layout.shape()[0], experts = logits.layout.shape()[1];
  if (ids.layout.elems() == 0) return;
  if (experts > kMostRouted || routing.used > kMostChosen) {
    return run_route_experts(*this, ids, weights, logits, bias, routing, make_on(gpu_));
  }
  RouteArgs args{};
  args.ids = data_of<uint32_t>(ids);
  args.weights = data_of<float>(weights);
  args.logits = floats_of(logits);
  args.bias = floats_of(bias);
  args.row_step = logits.layout.stride(0);
  args.step = logits.layout.stride(1);
  args.bias_step = bias.data == nullptr ? 0 : bias.layout.stride(0);
  args.rows = static_cast<uint32_t>(rows);
  args.experts = static_cast<uint32_t>(experts);
  args.used = static_cast<uint32_t>(routing.used);
  args.scores = static_cast<uint32_t>(routing.scores);
  args.softmax_of_chosen = routing.softmax_of_chosen ? 1 : 0;
  args.normalize = routing.normalize ? 1 : 0;
  args.scaled = routing.scaled ? 1 : 0;
  args.scale = static_cast<float>(routing.scale);
  constexpr unsigned kEach = kRouteThreads / 32;
  Grid grid{{static_cast<unsigned>((rows + kEach - 1) / kEach), 1, 1}};
  grid.threads = kRouteThreads;
  grid.pdl = true;
  kRoute(experts <= 128 ? 128 : experts <= 256 ? 256 : 512).launch(gpu_, grid, args);
}

void GpuBackend::combine_experts(const View& out, const ConstView& y, const ConstView& weights,
                                 const ConstView& residual, const ExpertBias& bias) {
  const Shape& shape = y.layout.shape();
  if (out.layout.elems() == 0) return;
  if (shape[1] > kMostChosen || !y.layout.is_contiguous() || out.layout.stride(1) != 1) {
    return run_combine_experts(*this, out, y, weights, residual, bias, make_on(gpu_));
  }
  for (int64_t first = 0; first < shape[0]; first += kMostRows) {
    const int64_t rows = std::min(kMostRows, shape[0] - first);
    CombineArgs args{};
    args.out = data_of<float>(out) + first * out.layout.stride(0);
    args.y = floats_of(y) + first * shape[1] * shape[2];
    args.weights = floats_of(weights) + first * weights.layout.stride(0);
    args.out_row = out.layout.stride(0);
    args.weights_row = weights.layout.stride(0);
    args.weights_step = weights.layout.stride(1);
    if (residual.data != nullptr) {
      args.residual_row = residual.layout.stride(0);
      args.residual_step = residual.layout.stride(1);
      args.residual = floats_of(residual) + first * args.residual_row;
    }
    args.bias = bias_of(gpu_, bias, first * shape[1]);
    args.n = static_cast<uint32_t>(shape[1]);
    args.k = static_cast<uint32_t>(shape[2]);
    Grid grid{{(args.k + kCombineThreads - 1) / kCombineThreads, static_cast<unsigned>(rows), 1}};
    grid.threads = kCombineThreads;
    grid.pdl = true;
    kCombine(args.n <= 8 ? 8 : 32).launch(gpu_, grid, args);
  }
}

}  // namespace wick::gpu
