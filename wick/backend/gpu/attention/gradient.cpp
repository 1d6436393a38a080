// The gradients of attention: selects the kernels of a call and their grids.

#include <optional>

#include "wick/backend/gpu/attention/attention_call.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/gradient_abi.h"
#include "wick/backend/gpu/layout/access.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

const KernelFamily<GradientArgs, DType> kSums("gradient", "gradient_sums_{}");
const KernelFamily<GradientArgs, DType> kQueries("gradient", "gradient_queries_{}");
const KernelFamily<GradientArgs, DType> kKeys("gradient", "gradient_keys_{}");

using FlashFamily = KernelFamily<FlashGradientArgs, OneOf<64, 128>, DType>;
const FlashFamily kFlashSums("flash_gradient", "flash_sums_{}_{}");
const FlashFamily kFlashQueries("flash_gradient", "flash_queries_{}_{}");
const FlashFamily kFlashKeys("flash_gradient", "flash_keys_{}_{}");

// Kernels of calls with a soft cap, a mask or slopes.
using BiasedFlashFamily = KernelFamily<BiasedFlashGradientArgs, OneOf<64, 128>, DType>;
const BiasedFlashFamily kBiasedFlashSums("flash_gradient", "flash_sums_bias_{}_{}");
const BiasedFlashFamily kBiasedFlashQueries("flash_gradient", "flash_queries_bias_{}_{}");
const BiasedFlashFamily kBiasedFlashKeys("flash_gradient", "flash_keys_bias_{}_{}");

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

/// Launches the kernels of a call. sums, queries and keys launch one kernel each for a number of
/// tiles.
template <class Sums, class Queries, class Keys>
void launch_all(const GradientCall& of, int64_t tile, Sums&& sums, Queries&& queries,
                Keys&& keys) {
  const AttentionCall& c = of.call;
  const int64_t row_tiles = divide_up(int64_t{c.queries} * c.group, tile),
                key_tiles = divide_up(c.keys, tile);
  if (row_tiles > 0) sums(row_tiles);
  if (of.dq != nullptr && row_tiles > 0) queries(row_tiles);
  if (of.dk != nullptr && key_tiles > 0) keys(key_tiles);
}

void launch_plain(Gpu& gpu, const GradientCall& of, DType dtype, const ScoreBias& bias) {
  const AttentionCall& c = of.call;
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  const auto launch = [&](const auto& kernels, int64_t width) {
    return [&gpu, &of, &kernels, &bias, dtype, heads, width](int64_t tiles) {
      const int64_t slabs = std::max<int64_t>(1, divide_up(width, kGradientWidth));
      const Grid grid{.blocks = {count32(tiles * heads * slabs), 1, 1},
                      .threads = kGradientThreads,
                      .pdl = true};
      kernels(dtype).launch(
          gpu, grid, {of, bias, static_cast<uint32_t>(tiles), static_cast<uint32_t>(slabs)});
    };
  };
  launch_all(of, kGradientTile, launch(kSums, 1), launch(kQueries, c.d),
             launch(kKeys, std::max(c.d, c.e)));
}

/// bias: null, or the terms of the scores.
void launch_flash(Gpu& gpu, const GradientCall& of, DType dtype, const ScoreBias* bias) {
  const AttentionCall& c = of.call;
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  const int64_t width = c.d <= 64 && c.e <= 64 ? 64 : 128;
  const auto launch = [&](const FlashFamily& plain, const BiasedFlashFamily& biased) {
    return [&gpu, &of, &plain, &biased, bias, dtype, heads, width](int64_t tiles) {
      const Grid grid{.blocks = {count32(tiles * heads), 1, 1},
                      .threads = kFlashGradientThreads,
                      .shared_bytes = flash_gradient_bytes(static_cast<uint32_t>(width)),
                      .pdl = true};
      const auto blocks = static_cast<uint32_t>(tiles);
      if (bias == nullptr) {
        plain(width, dtype).launch(gpu, grid, {of, blocks});
      } else {
        biased(width, dtype).launch(gpu, grid, {of, *bias, blocks});
      }
    };
  };
  launch_all(of, kFlashGradientTile, launch(kFlashSums, kBiasedFlashSums),
             launch(kFlashQueries, kBiasedFlashQueries), launch(kFlashKeys, kBiasedFlashKeys));
}

/// Whether kernels on matrix units take a call. Errors: WICK_GPU_ATTENTION is none of its choices.
bool takes_flash(const Gpu& gpu, const ConstView& q, const ConstView& v) {
  const int64_t d = q.layout.shape()[3], e = v.layout.shape()[3];
  return gpu.device.kind == DeviceKind::cuda && q.dtype != DType::f32 &&
         gpu.has(Feature::matrix_unit) && d <= 128 && e <= 128 && d % kVector == 0 &&
         e % kVector == 0 && flash_gradient_bytes(d <= 64 && e <= 64 ? 64 : 128) <=
                                 static_cast<uint64_t>(gpu.info.shared_bytes) &&
         environment_choice("WICK_GPU_ATTENTION") != "plain";
}

}  // namespace

void GpuBackend::attention_gradient(const View& dq, const View& dk, const View& dv,
                                    const ConstView& grad, const ConstView& q, const ConstView& k,
                                    const ConstView& v, const AttentionParams& params,
                                    const AttentionBias& bias) {
  const auto has_elements = [](const View& x) { return x.data != nullptr && x.layout.elems() > 0; };
  const View none{nullptr, q.dtype, {}};
  const bool of_keys = has_elements(dk) || has_elements(dv);
  if (!has_elements(dq) && !of_keys) return;
  const auto run = [&](const ConstView& g, const ConstView& a, const ConstView& b,
                       const ConstView& c, auto&& launch) {
    GradientCall of = make_gradient_call(has_elements(dq) ? dq : none, of_keys ? dk : none,
                                         of_keys ? dv : none, g, a, b, c, params);
    const int64_t rows = int64_t{of.call.batch} * of.call.heads * of.call.queries;
    const Scratch sums(gpu_, static_cast<size_t>(rows) * sizeof(RowSums));
    of.sums = sums.data<RowSums>();
    launch(of);
  };
  const bool biased =
      bias.mask.data != nullptr || bias.slopes.data != nullptr || params.soft_cap > 0.0f;
  const ScoreBias terms = make_bias(bias);
  if (takes_flash(gpu_, q, v)) {
    const VectorRows g(*this, grad), a(*this, q), b(*this, k), c(*this, v);
    run(g.view(), a.view(), b.view(), c.view(), [&](const GradientCall& of) {
      launch_flash(gpu_, of, q.dtype, biased ? &terms : nullptr);
    });
  } else {
    run(grad, q, k, v, [&](const GradientCall& of) { launch_plain(gpu_, of, q.dtype, terms); });
  }
}

}  // namespace wick::gpu
