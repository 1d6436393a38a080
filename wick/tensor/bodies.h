#pragma once

// The bodies of ops (see OpBody in call.h). Each is defined in the file named above it.

#include "wick/tensor/call.h"

namespace wick::bodies {

// map_ops.cpp: one body for all rows of a kind, and where.
extern const OpBody unary, unary_with, test, binary, compare;
extern const OpBody where;
// ops.cpp
extern const OpBody reduce, arg_reduce;
extern const OpBody fill, iota, copy, cast, index_select;
// part_ops.cpp
extern const OpBody cat, roll, repeat, pad, triangle;
// index_ops.cpp
extern const OpBody gather, scatter, index_add, one_hot, sort, argsort, cumsum, cumprod;
// random.cpp
extern const OpBody random;
// linear_ops.cpp
extern const OpBody matmul, quantize, dequantize, linear, rope, cached_attention;
extern const OpBody attention_of_pages, store_in_pages;
// grouped_linear.cpp
extern const OpBody grouped_linear, route_experts, gate_experts, combine_experts;
// attention_ops.cpp
extern const OpBody attention, attention_gradient;
// recurrent_ops.cpp
extern const OpBody causal_conv, ssm_scan, gated_delta_scan;
// spatial_ops.cpp
extern const OpBody conv2d, conv2d_weight, conv_transpose2d, pool2d, pool2d_grad, upsample2d,
    upsample2d_grad;
// custom.cpp
extern const OpBody custom;
// norm_ops.cpp
extern const OpBody softmax, rms_norm, rms_norm_pair, rms_norm_add, layer_norm, group_norm,
    batch_norm;
// norm_grads.cpp
extern const OpBody softmax_grad, norm_grad, norm_sums;

}  // namespace wick::bodies
