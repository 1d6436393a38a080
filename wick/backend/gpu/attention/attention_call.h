#pragma once

// Arguments of attention's kernels, made from the views of a call.

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// The address of a view's first element.
const void* at_offset(const ConstView& v);

/// The operands and parameters of attention. Errors: a count is 2^30 or more.
AttentionCall make_call(const View& out, const ConstView& q, const ConstView& k, const ConstView& v,
                        const AttentionParams& params);

/// Sets the pages of a call's keys k and values v, [pages, g, size, ..]. Without tables there is
/// one page. `counts` has the number of keys in device memory, `most` is its upper bound. named:
/// the caller's tensor of pages, for errors.
void set_pages(Gpu& gpu, const char* op, const ConstView& named, AttentionCall& c,
               const ConstView& k, const ConstView& v, const ConstView& tables,
               const ConstView& lengths, const ConstView& counts, int64_t most);

ScoreBias make_bias(const AttentionBias& of);
inline HeadSinks sinks_of(const ScoreBias& bias) { return {bias.sinks, bias.sink_step}; }
/// Whether a call needs the kernels for masks, slopes and sinks.
inline bool is_biased(const AttentionBias& of) {
  return of.mask.data != nullptr || of.slopes.data != nullptr || of.sinks.data != nullptr;
}

}  // namespace wick::gpu
