#pragma once

// Arguments of attention's kernels, made from the views of a call.

#include "wick/backend/backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// The address of a view's first element.
const void* at_offset(const ConstView& v);

/// The operands and parameters of attention. Errors: a count is 2^30 or more.
AttentionCall make_call(const View& out, const ConstView& q, const ConstView& k, const ConstView& v,
                        const AttentionParams& params);

ScoreBias make_bias(const AttentionBias& of);

}  // namespace wick::gpu
