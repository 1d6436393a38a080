// Linear layers with prepared weights.

#include <optional>
#include <utility>
#include <vector>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/decoded_weight.h"
#include "wick/backend/gpu/linear/float_weight.h"
#include "wick/backend/gpu/linear/prepared_size.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/backend/gpu/linear/temporary.h"
#include "wick/backend/linear_steps.h"

namespace wick::gpu {

std::unique_ptr<PreparedWeight> GpuBackend::prepare(std::span<const ConstView> parts, bool) {
  const DType dtype = parts.front().dtype;
  if (!is_block(dtype)) return prepare_float(gpu_, parts);
  return dtypes::kOwnProducts.contains(dtype) ? prepare_quantized(gpu_, parts)
                                              : prepare_decoded(gpu_, parts);
}

size_t prepared_size(DeviceKind kind, DType dtype, int64_t n, int64_t k) {
  if (!is_block(dtype)) return Pool::rounded(float_bytes(dtype, n, k));
  return Pool::rounded(dtypes::kOwnProducts.contains(dtype)
                           ? quantized_bytes(kind, dtype, n, k)
                           : static_cast<size_t>(n * bytes_of(dtype, k)));
}

void GpuBackend::linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                        const LinearFusion& fusion) {
  using Input = LinearFusion::Input;
  if (out.layout.elems() == 0) return;
  const ConstView* const residual = fusion.add ? &fusion.residual : nullptr;
  if (dtypes::kOwnProducts.contains(weight.dtype)) {
    const QuantizedRows rows(gpu_, out.layout.elems() / weight.n, weight.k, weight.dtype);
    const RowBlocks blocks = rows.blocks();
    if (fusion.input != Input::attention) {
      quantize_rows(gpu_, fusion, x, weight.k, blocks);
    } else if (!attention_to_blocks(gpu_, x, *fusion.attention, weight.k, blocks)) {
      const Temporary input(gpu_, linear_input_shape(x, weight));
      run_linear_input(*this, input.view(), x, fusion);
      quantize_rows(gpu_, {}, input.view(), weight.k, blocks);
    }
    multiply(out, rows, static_cast<const QuantizedWeight&>(weight), residual);
    return;
  }
  const bool decoded = is_block(weight.dtype);
  const auto by_float = [&](const ConstView& in) {
    if (linear_gemv(gpu_, out, in, weight, residual, fusion.each)) return;
    if (residual == nullptr || !adds_residual_apart(gpu_, out, in, weight, fusion.each)) {
      return linear_float(gpu_, out, in, weight, residual, fusion.each);
    }
    const Temporary product(gpu_, out.layout.shape());
    linear_float(gpu_, product.view(), in, weight, nullptr, fusion.each);
    binary(Op::add, out, *residual, product.view());
  };
  if (fusion.input == Input::plain && !decoded) return by_float(x);
  if (fusion.input == Input::plain && x.dtype == DType::f32 && x.layout.is_contiguous()) {
    linear_decoded(gpu_, out, x, weight, residual);
    return;
  }
  const Temporary input(gpu_, linear_input_shape(x, weight));
  run_linear_input(*this, input.view(), x, fusion);
  if (decoded) return linear_decoded(gpu_, out, input.view(), weight, residual);
  by_float(input.view());
}

void GpuBackend::grouped_linear(const View& out, const ConstView& x,
                                std::span<const PreparedWeight* const> experts,
                                const ConstView& ids, const GroupedRows& taken) {
  if (out.layout.elems() == 0) return;
  LinearFusion input;
  if (taken.silu_mul) input.input = LinearFusion::Input::silu_mul;
  const PreparedWeight& any = *experts.front();
  const bool quantized = dtypes::kOwnProducts.contains(any.dtype), decoded = is_block(any.dtype);
  std::vector<const void*> weights;
  for (const PreparedWeight* w : experts) {
    weights.push_back(quantized ? static_cast<const QuantizedWeight*>(w)->units
                      : decoded ? decoded_weight_data(*w)
                                : float_weight_data(*w));
  }
  std::optional<Scratch> dense_ids;
  ConstView dense = ids;
  if (!ids.layout.is_contiguous()) {
    dense_ids.emplace(gpu_, static_cast<size_t>(ids.layout.elems()) * sizeof(uint32_t));
    const View copied{dense_ids->data(), DType::u32, Layout::contiguous(ids.layout.shape())};
    copy(copied, ids);
    dense = {copied.data, copied.dtype, copied.layout};
  }
  const auto count = static_cast<int64_t>(experts.size());
  const ExpertLaunches launches(
      gpu_, std::move(weights), static_cast<const uint32_t*>(dense.data) + dense.layout.offset(),
      ids.layout.elems(), ids.layout.shape()[1], gpu_.note("grouped_linear", x, ids, count));
  if (quantized) {
    const QuantizedRows rows(gpu_, x.layout.shape()[0], any.k, any.dtype);
    quantize_rows(gpu_, input, x, any.k, rows.blocks());
    return multiply_grouped(out, rows, static_cast<const QuantizedWeight&>(any), launches,
                            taken.silu_mul);
  }
  if (!decoded && !taken.silu_mul) {
    return grouped_float(gpu_, out, x, experts, launches, taken);
  }
  const Temporary made(gpu_, linear_input_shape(x, any));
  run_linear_input(*this, made.view(), x, input);
  if (!decoded) return grouped_float(gpu_, out, made.view(), experts, launches, taken);
  grouped_decoded(gpu_, out, made.view(), any, launches);
}

}  // namespace wick::gpu
