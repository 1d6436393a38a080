#pragma once

// Runs the step before a fused linear as separate ops, for backends and weights that have no kernel
// for both.

#include "wick/backend/backend.h"

namespace wick {

/// The shape of the gemm's input.
inline Shape linear_input_shape(const ConstView& x, const PreparedWeight& weight) {
  return x.layout.shape().with(x.layout.rank() - 1, weight.k);
}

/// Computes the gemm's input from x into `to`, which is dense f32 of linear_input_shape. Without a
/// fused step, x is copied or cast to f32.
inline void run_linear_input(Backend& backend, const View& to, const ConstView& x,
                             const LinearFusion& fusion) {
  const int last = x.layout.rank() - 1;
  const int64_t k = to.layout.shape()[last];
  switch (fusion.input) {
    case LinearFusion::Input::plain:
      x.dtype == DType::f32 ? backend.copy(to, x) : backend.cast(to, x);
      return;
    case LinearFusion::Input::rms_norm:
      return backend.rms_norm(to, x, fusion.norm, fusion.eps);
    case LinearFusion::Input::silu_mul:
      return backend.binary(Op::silu_mul, to, {x.data, x.dtype, x.layout.narrow(last, 0, k)},
                            {x.data, x.dtype, x.layout.narrow(last, k, k)});
    case LinearFusion::Input::gelu_mul:
      backend.unary(Op::gelu, to, {x.data, x.dtype, x.layout.narrow(last, 0, k)});
      return backend.binary(Op::mul, to, to, {x.data, x.dtype, x.layout.narrow(last, k, k)});
    case LinearFusion::Input::attention:
      return backend.cached_attention(to, x, *fusion.attention);
  }
}

}  // namespace wick
