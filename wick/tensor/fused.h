#pragma once

// Fused ops of transformers. Each gives the same bits as the composition of ops that it replaces.
// wick/graph inserts them into graphs; tests and profiles call the functions here directly.

#include <cstddef>

#include "wick/tensor/ops.h"

namespace wick {

/// The operands of cached_attention besides the projections: rope tables, positions and the cache.
/// The t rows of a call belong to b sequences of t / b rows each; without tables there is one
/// sequence.
struct AttentionStep {
  Tensor cos, sin;   ///< [p, r/2] f32
  Tensor positions;  ///< u32 [t] on the device, ascending by one within a sequence
  /// Keys in f32, f16 or bf16, written in place: pages [p, g, size, d], or [g, capacity, d] without
  /// tables.
  Tensor keys;
  Tensor values;  ///< values in pages [p, g, size, e], or [g, capacity, e] without tables
  AttentionParams params;
  Tensor tables = {};  ///< u32 [b, n] on the device: the page numbers of each sequence
  Tensor sinks = {};   ///< f32 [h], as in attention, or undefined
};

/// Steps that linear fuses before and after its gemm, so that a GPU launches fewer kernels.
struct FusedLinear {
  Tensor norm = {};       ///< [k] f32; if defined, rms_norm with this weight is applied to x first
  float eps = 0;          ///< epsilon of that rms_norm
  bool silu_mul = false;  ///< silu_mul of the halves of x [.., 2k] comes first
  Tensor residual = {};   ///< [.., n]; if defined, it is added to the result
  /// If set, x is the qkv of cached_attention, whose result goes into the gemm. Must outlive the
  /// call.
  const AttentionStep* attention = nullptr;
  /// If above 0, x [t, k] consists of matrices of `each` rows, and each matrix gets the bits that
  /// it has alone. Otherwise the order of sums may depend on the number of rows of x: see
  /// Weight::rows_alike.
  int64_t each = 0;
};

/// Indices of the operands of a cached_attention call.
enum CachedOperand : size_t {
  kCachedQkv,
  kCachedCos,
  kCachedSin,
  kCachedPositions,
  kCachedKeys,
  kCachedValues,
  kCachedTables,
  kCachedSinks,
  kCachedOperands
};
/// Indices of the operands of a linear call with fused steps; unused operands are undefined. The
/// operands from kLinearCos on are those of cached_attention, in its order.
enum LinearOperand : size_t {
  kLinearX,
  kLinearNorm,
  kLinearResidual,
  kLinearCos,
  kLinearKeys = kLinearCos + kCachedKeys - kCachedCos,
  kLinearValues,
  kLinearTables,
  kLinearSinks,
  kLinearOperands
};

/// The operand that a recurrence writes to.
inline constexpr size_t kRecurrentState = 1;
constexpr bool is_recurrence(Op op) {
  return op == Op::causal_conv || op == Op::ssm_scan || op == Op::gated_delta_scan;
}

/// Computes linear(rms_norm(x, norm, eps), weight) + residual, or the variants that FusedLinear
/// describes, with the same bits as the separate ops. f32; with `each` alone, every dtype of
/// linear. Class: that of linear. Errors: sizes don't fit; more than one of norm, silu_mul and
/// attention is set; x's rows aren't a multiple of `each`; the errors of cached_attention.
WICK_API Tensor linear(const Tensor& x, const Weight& weight, const FusedLinear& fusion);

/// The sequences that the rows of grouped_linear's x belong to. With f16 and bf16 weights on GPUs,
/// the order of sums depends on the rows of a sequence, the numbers of ids and of experts, and the
/// sizes, never on the ids' values or on other sequences. Sequences of at most Weight::rows_alike
/// tokens, and those of few rows for each expert, have the bits of their rows alone.
struct ExpertRows {
  int64_t each = 0;      ///< rows of x of each sequence; 0: all rows are one sequence
  int64_t of_token = 1;  ///< rows of x that belong to one token
};
/// grouped_linear of several sequences, each of which gets the bits that it has alone. Errors:
/// those of grouped_linear; x's rows aren't a multiple of `each`, or `each` isn't one of
/// `of_token`.
WICK_API Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts,
                               const Tensor& chosen, const ExpertRows& rows);

/// One attention step with a cache. qkv [t, h·d + g·d + g·e] holds the queries, keys and values of
/// t rows. Rotates queries and keys by their positions (rope_interleaved), writes keys and values
/// to the cache (store_in_pages), and lets every row attend to its sequence up to its own position
/// (attention_of_pages) → [t, h·e]. qkv f32. Class tree. Errors: those of the three ops; params
/// that aren't causal.
WICK_API Tensor cached_attention(const Tensor& qkv, const AttentionStep& step);

}  // namespace wick
