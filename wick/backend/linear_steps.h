#pragma once

// The step in front of a fused linear, by the ops that it stands for: for backends, or weights,
// without a kernel that does both.

#include "wick/backend/backend.h"

namespace wick {

/// The shape of what goes into the product.
inline Shape linear_input_shape(const ConstView& x, const PreparedWeight& weight) {
  return x.layout.shape().with(x.layout.rank() - 1, weight.k);
}

/// Computes what goes into the product: `to` f32, dense, of linear_input_shape. A plain x is
/// converted to f32.
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
    case LinearFusion::Input::attention:
      return backend.cached_attention(to, x, *fusion.attention);
  }
}

}  // namespace wick
