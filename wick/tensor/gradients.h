#pragma once

// Gradient rules by family for the table in gradients.cpp, and helpers that they share.

#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick::tape {

using RuleFunction = void(const Vjp&);

// gradients_map.cpp
RuleFunction atan2_rule, clamp_rule, elu_rule, gelu_erf_rule, gelu_rule, maximum_rule, minimum_rule,
    normcdf_rule, pow_rule, powf_rule, relu_rule, rem_rule, silu_mul_rule, silu_rule, step_rule,
    where_rule;
// gradients_reduce.cpp
RuleFunction batch_norm_rule, best_rule, group_norm_rule, layer_norm_rule, log_softmax_rule,
    mean_rule, prod_rule, rms_norm_rule, softmax_rule, sum_rule;
// gradients_parts.cpp
RuleFunction cat_rule, pad_rule, repeat_rule, roll_rule, tril_rule, triu_rule;
// gradients_index.cpp
RuleFunction cumprod_rule, cumsum_rule, gather_rule, index_add_rule, index_select_rule,
    scatter_add_rule, scatter_rule, sort_rule;
// gradients_linear.cpp
RuleFunction attention_rule, linear_rule, matmul_rule, rope_interleaved_rule, rope_rule;
// gradients_spatial.cpp
RuleFunction avg_pool2d_rule, conv2d_rule, conv_transpose2d_rule, max_pool2d_rule,
    upsample_bilinear2d_rule, upsample_nearest2d_rule;
// Rules of calls that compute a gradient themselves; see Part in call.h.
RuleFunction avg_pool2d_grad_rule, conv2d_weight_rule, max_pool2d_grad_rule,
    upsample_bilinear2d_grad_rule, upsample_nearest2d_grad_rule;

// custom.cpp
RuleFunction custom_rule;

/// The gradients of attention's q, k, v and sinks; those that weren't wanted are undefined.
struct AttentionGradients {
  Tensor q, k, v, sinks;
};
/// The gradients of attention(q, k, v, .., mask, slopes, sinks) from that of its result, of one
/// dtype. Class bound. It can't be differentiated.
AttentionGradients attention_gradient(const Tensor& grad, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const AttentionGradient& what,
                                      const Tensor& mask, const Tensor& slopes,
                                      const Tensor& sinks);

/// The gradient of a reduction's result, reshaped so that the reduced dims have size 1.
Tensor kept_grad(const Vjp& v);

inline Tensor times(const Tensor& x, double by) { return affine(x, by, 0.0); }
inline Tensor plus(const Tensor& x, double more) { return affine(x, 1.0, more); }
/// 1 − x.
inline Tensor one_less(const Tensor& x) { return affine(x, -1.0, 1.0); }
/// A scalar 0.
inline Tensor zero_like(const Tensor& x) { return Tensor::zeros({}, x.dtype(), x.device()); }
/// g where the condition holds, else 0.
inline Tensor kept_where(const Tensor& condition, const Tensor& g) {
  return where(condition, g, zero_like(g));
}
/// The dtype in which rules of several steps compute, because squares of f16 numbers overflow.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace wick::tape
