// The gradients of attention: selects the kernels of a call and their grids.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/attention/attention_call.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/gradient_abi.h"
#include "wick/backend/gpu/layout/access.h"
#include "wick/base/environment.h"
#include "wick/base/precision.h"

namespace wick::gpu {
namespace {

const KernelFamily<GradientArgs, DType> kSums("gradient", "gradient_sums_{}");
const KernelFamily<GradientArgs, DType> kQueries("gradient", "gradient_queries_{}");
const KernelFamily<GradientArgs, DType> kKeys("gradient", "gradient_keys_{}");
const KernelFamily<SinkGradientArgs> kSinkGradient("sink_gradient", "sink_gradient");

/// Terms of weights and of the gradients of scores on matrix units: as many as the bound needs, or
/// one.
enum class GradientTerms { exact, fast };
constexpr std::array<std::string_view, 2> kernel_labels(GradientTerms) { return {"exact", "fast"}; }

/// Kernels on matrix units, and those for calls with a soft cap, a mask or slopes. Only
/// flash_gradient.gpu has kernels of width 256.
template <class... Keys>
struct FlashKernels {
  KernelFamily<FlashGradientArgs, Keys..., OneOf<64, 128, 256>, DType> plain;
  KernelFamily<BiasedFlashGradientArgs, Keys..., OneOf<64, 128, 256>, DType> biased;

  void launch(Gpu& gpu, const Grid& grid, const FlashGradientArgs& args, const ScoreBias* bias,
              Keys... keys, int64_t width, DType dtype) const {
    if (bias == nullptr) {
      plain(keys..., width, dtype).launch(gpu, grid, args);
    } else {
      biased(keys..., width, dtype).launch(gpu, grid, {args.of, *bias, args.grid});
    }
  }
};
const FlashKernels<> kFlashSums{{"flash_gradient", "flash_sums_{}_{}"},
                                {"flash_gradient", "flash_bias_sums_{}_{}"}},
    kWgmmaSums{{"flash_gradient_wgmma", "flash_wgmma_sums_{}_{}"},
               {"flash_gradient_wgmma", "flash_wgmma_bias_sums_{}_{}"}};
const FlashKernels<GradientTerms> kFlashQueries{{"flash_gradient", "flash_queries_{}_{}_{}"},
                                                {"flash_gradient", "flash_bias_queries_{}_{}_{}"}},
    kFlashKeys{{"flash_gradient", "flash_keys_{}_{}_{}"},
               {"flash_gradient", "flash_bias_keys_{}_{}_{}"}},
    kWgmmaQueries{{"flash_gradient_wgmma", "flash_wgmma_queries_{}_{}_{}"},
                  {"flash_gradient_wgmma", "flash_wgmma_bias_queries_{}_{}_{}"}},
    kWgmmaKeys{{"flash_gradient_wgmma", "flash_wgmma_keys_{}_{}_{}"},
               {"flash_gradient_wgmma", "flash_wgmma_bias_keys_{}_{}_{}"}};

// AMD's.
const FlashKernels<> kMmaSums{{"flash_gradient_mma", "flash_mma_sums_{}_{}"},
                              {"flash_gradient_mma", "flash_mma_bias_sums_{}_{}"}};
const FlashKernels<GradientTerms> kMmaQueries{
    {"flash_gradient_mma", "flash_mma_queries_{}_{}_{}"},
    {"flash_gradient_mma", "flash_mma_bias_queries_{}_{}_{}"}},
    kMmaKeys{{"flash_gradient_mma", "flash_mma_keys_{}_{}_{}"},
             {"flash_gradient_mma", "flash_mma_bias_keys_{}_{}_{}"}};
// AMD's for heads of more than 128 elements, with and without a bias.
const KernelFamily<GradientArgs, DType> kWideSums("flash_gradient_mma", "flash_mma_wide_sums_{}");
const KernelFamily<GradientArgs, GradientTerms, DType> kWideQueries("flash_gradient_mma",
                                                                    "flash_mma_wide_queries_{}_{}"),
    kWideKeys("flash_gradient_mma", "flash_mma_wide_keys_{}_{}");

constexpr int64_t kVector = 8;  // elements that the kernels on matrix units load at once

/// Whether the rows of x [b, h, m, d] are vectors.
bool has_vectors(const ConstView& x) {
  const Layout& l = x.layout;
  const Shape& s = l.shape();
  return s[3] % kVector == 0 && Access(at_offset(x), x.dtype)
                                    .run(s[3], l.stride(3))
                                    .dim(s[0], l.stride(0))
                                    .dim(s[1], l.stride(1))
                                    .dim(s[2], l.stride(2))
                                    .vectors_of(kVector);
}

/// An operand whose rows are vectors: the view itself, or a dense copy.
class VectorRows {
 public:
  VectorRows(GpuBackend& backend, const ConstView& x) : view_(x) {
    if (has_vectors(x)) return;
    const int64_t bytes = bytes_of(x.dtype, x.layout.elems());
    copy_.emplace(backend.gpu(), static_cast<size_t>(bytes));
    const View dense{copy_->data(), x.dtype, Layout::contiguous(x.layout.shape())};
    backend.copy(dense, x);
    view_ = dense;
  }
  const ConstView& view() const { return view_; }

 private:
  std::optional<Scratch> copy_;
  ConstView view_;
};

GradientCall make_gradient_call(const View& dq, const View& dk, const View& dv,
                                const ConstView& grad, const ConstView& q, const ConstView& k,
                                const ConstView& v, const AttentionParams& params) {
  GradientCall c{};
  // `out` isn't used; grad has its shape.
  c.call = make_call({nullptr, grad.dtype, grad.layout}, q, k, v, params);
  const auto set = [](const auto& view, auto& to, i64& batch, i64& head, i64& row, i64& step) {
    if (view.data == nullptr) return;
    const Layout& l = view.layout;
    to = const_cast<void*>(at_offset(view));
    batch = l.stride(0), head = l.stride(1), row = l.stride(2), step = l.stride(3);
  };
  set(grad, c.g, c.g_batch, c.g_head, c.g_query, c.g_step);
  set(dq, c.dq, c.dq_batch, c.dq_head, c.dq_query, c.dq_step);
  set(dk, c.dk, c.dk_batch, c.dk_head, c.dk_key, c.dk_step);
  set(dv, c.dv, c.dv_batch, c.dv_head, c.dv_key, c.dv_step);
  return c;
}

/// Launches the kernels of a call. sums, queries and keys launch one kernel each for a grid.
template <class Sums, class Queries, class Keys>
void launch_all(const GradientCall& of, DType dtype, int64_t tile, Sums&& sums, Queries&& queries,
                Keys&& keys) {
  const AttentionCall& c = of.call;
  const int64_t rows = int64_t{c.queries} * c.group, row_tiles = divide_up(rows, tile),
                key_tiles = divide_up(c.keys, tile);
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  // What thread blocks that run at the same time stream takes less than half of an H100's cache.
  const auto grid = [&](int64_t tiles, int64_t streamed) {
    constexpr int64_t kSection = int64_t{16} << 20;  // bytes
    const int64_t head = std::max<int64_t>(1, bytes_of(dtype, streamed * (int64_t{c.d} + c.e)));
    return GradientGrid{static_cast<uint32_t>(tiles),
                        static_cast<uint32_t>(std::clamp<int64_t>(kSection / head, 1, heads))};
  };
  if (row_tiles > 0) sums(grid(row_tiles, c.keys));
  if (of.dq != nullptr && row_tiles > 0) queries(grid(row_tiles, c.keys));
  if (of.dk != nullptr && key_tiles > 0) keys(grid(key_tiles, rows));
}

/// How to launch kernels whose thread blocks compute a slab of the results' `width` elements.
/// block: the threads and the shared memory of a thread block.
template <class Kernels, class... Keys>
auto launch_of_slabs(Gpu& gpu, const GradientCall& of, const ScoreBias& bias, const Grid& block,
                     const Kernels& kernels, int64_t width, Keys... keys) {
  const AttentionCall& c = of.call;
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  const int64_t slabs = std::max<int64_t>(1, divide_up(width, kGradientWidth));
  return [=, &gpu, &of, &bias, &kernels](const GradientGrid& order) {
    Grid grid = block;
    grid.blocks[0] = count32(order.blocks * heads * slabs);
    grid.pdl = true;
    kernels(keys...).launch(gpu, grid, {of, bias, order, static_cast<uint32_t>(slabs)});
  };
}

void launch_plain(Gpu& gpu, const GradientCall& of, DType dtype, const ScoreBias& bias) {
  const AttentionCall& c = of.call;
  const Grid block{.blocks = {1, 1, 1}, .threads = kGradientThreads};
  launch_all(of, dtype, kGradientTile, launch_of_slabs(gpu, of, bias, block, kSums, 1, dtype),
             launch_of_slabs(gpu, of, bias, block, kQueries, c.d, dtype),
             launch_of_slabs(gpu, of, bias, block, kKeys, std::max(c.d, c.e), dtype));
}

/// The kernels of a call on matrix units.
struct FlashSet {
  const FlashKernels<>& sums;
  const FlashKernels<GradientTerms>&queries, &keys;
};
const FlashSet kFlashSet{kFlashSums, kFlashQueries, kFlashKeys},
    kWgmmaSet{kWgmmaSums, kWgmmaQueries, kWgmmaKeys}, kMmaSet{kMmaSums, kMmaQueries, kMmaKeys};

/// How kernels on matrix units take a call.
struct GradientPlan {
  const FlashSet* kernels = nullptr;  ///< null: the call takes the kernels for any layout
  GradientTerms terms = GradientTerms::exact;
  bool parts = false;         ///< whether heads have more than `width` elements; only AMD's kernels
  int64_t slabs_of_keys = 1;  ///< thread blocks that share the elements of dk and dv
  int64_t width = 0;          ///< elements to which heads, or parts of wide ones, are padded
  int64_t held = 0;           ///< rows or keys of a thread block
  int64_t threads = 0;        ///< threads of a thread block
  int64_t shared = 0;         ///< bytes of shared memory
  int64_t shared_of_sums = 0;

  /// Errors: WICK_GPU_ATTENTION is none of its choices.
  GradientPlan(const Gpu& gpu, const ConstView& q, const ConstView& k, const ConstView& v) {
    const int64_t d = q.layout.shape()[3], e = v.layout.shape()[3];
    const std::string_view wanted = environment_choice("WICK_GPU_ATTENTION");
    const int64_t largest = std::max(d, e);
    if (q.dtype == DType::f32 || largest > 256 || d % kVector != 0 || e % kVector != 0 ||
        !gpu.has(Feature::matrix_unit) || wanted == "plain") {
      return;
    }
    const bool amd = gpu.device.kind == DeviceKind::hip;
    parts = amd && largest > 128;
    width = largest <= 64 ? 64 : largest <= 128 || amd ? 128 : 256;
    const auto wide = static_cast<uint32_t>(width);
    const int64_t keys = k.layout.shape()[2],
                  rows = q.layout.shape()[2] * (q.layout.shape()[1] / k.layout.shape()[1]);
    // If its thread blocks leave many multiprocessors idle, the smaller ones of flash_gradient.gpu
    // are faster.
    const int64_t tiles = divide_up(std::min(rows, keys), kWgmmaGradientHeld),
                  heads = k.layout.shape()[0] * k.layout.shape()[1];
    const bool enough = 2 * tiles * heads >= gpu.info.multiprocessors || wanted == "wgmma";
    const bool wgmma = gpu.has(Feature::wgmma) && width <= 128 && wanted != "mma" && enough &&
                       int64_t{wgmma_gradient_bytes(wide)} <= gpu.info.shared_bytes;
    held = wgmma ? kWgmmaGradientHeld : kFlashGradientTile;
    threads = wgmma ? kWgmmaGradientThreads : kFlashGradientThreads;
    if (amd) {
      kernels = &kMmaSet;
      shared = mma_gradient_bytes(wide, false);
      shared_of_sums = mma_gradient_bytes(wide, true);
    } else {
      kernels = wgmma ? &kWgmmaSet : &kFlashSet;
      shared = wgmma ? wgmma_gradient_bytes(wide) : flash_gradient_bytes(wide);
      shared_of_sums = shared;
      slabs_of_keys = wgmma ? 1 : flash_gradient_slabs(wide, true);
    }
    if (shared > gpu.info.shared_bytes) kernels = nullptr;
    if (precision() == Precision::fast && !ordered_attention()) terms = GradientTerms::fast;
  }
};

/// bias: null, or the terms of the scores.
void launch_matrix_units(Gpu& gpu, const GradientPlan& plan, const GradientCall& of, DType dtype,
                         const ScoreBias* bias) {
  const int64_t heads = int64_t{of.call.batch} * (of.call.heads / of.call.group);
  const auto launch = [&](const auto& kernels, int64_t slabs, int64_t shared, auto... keys) {
    return [&gpu, &plan, &of, &kernels, bias, dtype, heads, slabs, shared,
            keys...](const GradientGrid& order) {
      const Grid grid{.blocks = {count32(order.blocks * heads * slabs), 1, 1},
                      .threads = static_cast<unsigned>(plan.threads),
                      .shared_bytes = static_cast<unsigned>(shared),
                      .pdl = true};
      kernels.launch(gpu, grid, {of, order}, bias, keys..., plan.width, dtype);
    };
  };
  const FlashSet& kernels = *plan.kernels;
  launch_all(of, dtype, plan.held, launch(kernels.sums, 1, plan.shared_of_sums),
             launch(kernels.queries, 1, plan.shared, plan.terms),
             launch(kernels.keys, plan.slabs_of_keys, plan.shared, plan.terms));
}

void launch_wide(Gpu& gpu, const GradientPlan& plan, const GradientCall& of, DType dtype,
                 const ScoreBias& bias) {
  const AttentionCall& c = of.call;
  Grid block{.blocks = {1, 1, 1}, .threads = static_cast<unsigned>(plan.threads)};
  Grid of_sums = block;
  block.shared_bytes = static_cast<unsigned>(plan.shared);
  of_sums.shared_bytes = static_cast<unsigned>(plan.shared_of_sums);
  launch_all(
      of, dtype, plan.held, launch_of_slabs(gpu, of, bias, of_sums, kWideSums, 1, dtype),
      launch_of_slabs(gpu, of, bias, block, kWideQueries, c.d, plan.terms, dtype),
      launch_of_slabs(gpu, of, bias, block, kWideKeys, std::max(c.d, c.e), plan.terms, dtype));
}

/// Launches sink_gradient, after the sums of the rows have been computed.
void launch_sinks(Gpu& gpu, const GradientCall& of, const View& out, const ScoreBias& bias) {
  const AttentionCall& c = of.call;
  const Layout& l = out.layout;
  SinkGradientArgs args{};
  args.sums = of.sums;
  args.sinks = bias.sinks, args.sink_step = bias.sink_step;
  args.out = static_cast<float*>(const_cast<void*>(at_offset(out)));
  args.out_batch = l.stride(0), args.out_head = l.stride(1), args.out_query = l.stride(2);
  args.rows = static_cast<uint64_t>(l.elems());
  args.heads = c.heads, args.group = c.group, args.queries = c.queries;
  const int64_t blocks = divide_up(l.elems(), int64_t{kSinkGradientThreads});
  kSinkGradient().launch(
      gpu, Grid{.blocks = {count32(blocks), 1, 1}, .threads = kSinkGradientThreads, .pdl = true},
      args);
}

}  // namespace

void GpuBackend::attention_gradient(const View& dq, const View& dk, const View& dv,
                                    const View& d_sinks, const ConstView& grad, const ConstView& q,
                                    const ConstView& k, const ConstView& v,
                                    const AttentionParams& params, const AttentionBias& bias) {
  const auto has_elements = [](const View& x) { return x.data != nullptr && x.layout.elems() > 0; };
  const View none{nullptr, q.dtype, {}};
  const bool biased = is_biased(bias) || params.soft_cap > 0.0f;
  const ScoreBias terms = make_bias(bias);
  const bool of_keys = has_elements(dk) || has_elements(dv);
  const bool of_sinks = has_elements(d_sinks);
  if (!has_elements(dq) && !of_keys && !of_sinks) return;
  const auto run = [&](const ConstView& g, const ConstView& a, const ConstView& b,
                       const ConstView& c, auto&& launch) {
    GradientCall of = make_gradient_call(has_elements(dq) ? dq : none, of_keys ? dk : none,
                                         of_keys ? dv : none, g, a, b, c, params);
    const int64_t rows = int64_t{of.call.batch} * of.call.heads * of.call.queries;
    const Scratch sums(gpu_, static_cast<size_t>(rows) * sizeof(RowSums));
    of.sums = sums.data<RowSums>();
    launch(of);
    if (of_sinks) launch_sinks(gpu_, of, d_sinks, terms);
  };
  const GradientPlan flash(gpu_, q, k, v);
  if (flash.kernels != nullptr) {
    const VectorRows g(*this, grad), a(*this, q), b(*this, k), c(*this, v);
    run(g.view(), a.view(), b.view(), c.view(), [&](const GradientCall& of) {
      if (flash.parts) return launch_wide(gpu_, flash, of, q.dtype, terms);
      launch_matrix_units(gpu_, flash, of, q.dtype, biased ? &terms : nullptr);
    });
  } else {
    run(grad, q, k, v, [&](const GradientCall& of) { launch_plain(gpu_, of, q.dtype, terms); });
  }
}

}  // namespace wick::gpu
