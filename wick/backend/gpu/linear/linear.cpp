// Products with prepared weights.

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/decoded_weight.h"
#include "wick/backend/gpu/linear/float_weight.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

/// A dense f32 tensor for the length of a scope.
class Temporary {
 public:
  Temporary(Gpu& gpu, const Shape& shape)
      : layout_(Layout::contiguous(shape)),
        memory_(gpu, static_cast<size_t>(bytes_of(DType::f32, shape.elems()))) {}
  View view() const { return {memory_.data(), DType::f32, layout_}; }

 private:
  Layout layout_;
  Scratch memory_;
};

}  // namespace

std::unique_ptr<PreparedWeight> GpuBackend::prepare(std::span<const ConstView> parts, bool) {
  const DType dtype = parts.front().dtype;
  if (!is_block(dtype)) return prepare_float(gpu_, parts);
  return dtypes::kOwnProducts.contains(dtype) ? prepare_quantized(gpu_, parts)
                                              : prepare_decoded(*this, parts);
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
      const Temporary input(gpu_, x.layout.shape().with(1, weight.k));
      cached_attention(input.view(), x, *fusion.attention);
      quantize_rows(gpu_, {}, input.view(), weight.k, blocks);
    }
    multiply(out, rows, static_cast<const QuantizedWeight&>(weight), residual);
    return;
  }
  const bool decoded = is_block(weight.dtype);
  if (fusion.input == Input::plain && !decoded) {
    linear_float(gpu_, out, x, weight, residual, fusion.each);
    return;
  }
  if (fusion.input == Input::plain && x.dtype == DType::f32 && x.layout.is_contiguous()) {
    linear_decoded(gpu_, out, x, weight, residual);
    return;
  }
  const int last = x.layout.rank() - 1;
  const Temporary input(gpu_, x.layout.shape().with(last, weight.k));
  if (fusion.input == Input::attention) {
    cached_attention(input.view(), x, *fusion.attention);
  } else if (fusion.input == Input::plain) {
    x.dtype == DType::f32 ? copy(input.view(), x) : cast(input.view(), x);
  } else if (fusion.input == Input::rms_norm) {
    rms_norm(input.view(), x, fusion.norm, fusion.eps);
  } else {
    binary(Op::silu_mul, input.view(), {x.data, x.dtype, x.layout.narrow(last, 0, weight.k)},
           {x.data, x.dtype, x.layout.narrow(last, weight.k, weight.k)});
  }
  if (decoded) return linear_decoded(gpu_, out, input.view(), weight, residual);
  linear_float(gpu_, out, input.view(), weight, residual, fusion.each);
}

}  // namespace wick::gpu
