#pragma once

// Recurrences over the rows of sequences, each of which has a state of fixed size. The conventions
// of wick/tensor/ops.h hold here.

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// A convolution of each channel with the rows before: x [t, c], weight [c, k], bias [c] or
/// undefined → [t, c], y[i] = bias + Σ_j weight[j] · x[i − k + 1 + j]. The t rows belong to b
/// sequences of t / b rows each. slots u32 [b] name each sequence's row of `state` [s, k − 1, c],
/// which holds the inputs before the sequence's first row, oldest first; a new sequence starts from
/// zeros. The state is f32 and dense, and is written in place. The split of a sequence's rows into
/// calls changes no bit. f32, f16 or bf16: x's dtype, kept; the other operands may have another of
/// these; everything is computed in f32 and rounded once. Class exact. If a gradient is needed, the
/// call is composed of ops that have gradients, and its last bits may differ. Errors: sizes don't
/// fit; the state needs a gradient or is mapped; a slot is out of range, or two sequences have one
/// slot (a GPU reports these two at the next synchronisation, and gives zeros).
WICK_API Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& state,
                            const Tensor& slots, const Tensor& bias = {});

/// The recurrence of Mamba-2. x [t, h, p], dt [t, h], a [h], b and c [t, g, m], d [h] or undefined
/// → [t, h, p]. For each head and row: S = S · exp(dt · a) + b ⊗ (dt · x), y = Sᵀ c + d · x. Heads
/// share b and c in g groups; h is a multiple of g. state [s, h, m, p]. Sequences, slots, dtypes,
/// class and errors are those of causal_conv. Source: Dao and Gu, "Transformers are SSMs", 2024.
WICK_API Tensor ssm_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                         const Tensor& c, const Tensor& state, const Tensor& slots,
                         const Tensor& d = {});

/// The gated delta rule. q and k [t, r, m], v [t, h, e], g and beta [t, h] → [t, h, e], of v's
/// dtype. For each head and row: S = S · exp(g), S = S + k ⊗ ((v − Sᵀ k) · beta), y = Sᵀ q. Heads
/// share q and k in r groups; h is a multiple of r. state [s, h, m, e]. Sequences, slots, dtypes,
/// class and errors are those of causal_conv. Source: Yang et al., "Gated Delta Networks", 2024.
WICK_API Tensor gated_delta_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                 const Tensor& beta, const Tensor& state, const Tensor& slots);

}  // namespace wick
