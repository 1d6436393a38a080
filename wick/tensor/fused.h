#pragma once

// Fused ops of transformers: each has the bits of the composition of ops that it stands for.
// wick/graph puts them in that composition's place; functions call them for tests and profiles.

#include <cstddef>

#include "wick/tensor/ops.h"

namespace wick {

/// Where new positions and what they attend to lie: the operands of cached_attention beside its
/// projections. The t rows belong to b sequences of t / b rows each, one sequence where there are
/// no tables.
struct AttentionStep {
  Tensor cos, sin;   ///< [p, r/2] f32
  Tensor positions;  ///< u32 [t], ascending by one in a sequence, on the device
  /// f32 f16 or bf16, written in place: pages [pages, g, size, d], or [g, capacity, d] without
  /// tables
  Tensor keys;
  Tensor values;  ///< [pages, g, size, e] or [g, capacity, e], so, too
  AttentionParams params;
  Tensor tables = {};  ///< u32 [b, n]: the pages of each sequence, on the device
};

/// What comes before a product and after it, in one op with it: fewer, larger steps on a GPU.
struct FusedLinear {
  Tensor norm = {};       ///< [k] f32; defined: x's rows go through rms_norm with it first
  float eps = 0;          ///< of that
  bool silu_mul = false;  ///< x is [.., 2k]: silu of its first half times its second
  Tensor residual = {};   ///< [.., n]; defined: added to the product
  /// x is the qkv of cached_attention, whose result goes into the product. Outlives the call.
  const AttentionStep* attention = nullptr;
  /// Above 0: x is [t, k], t a multiple of it, and each `each` rows get the bits that they have
  /// alone. A product's order may otherwise depend on how many rows x has: see Weight::rows_alike.
  int64_t each = 0;
};

/// Places of the operands of cached_attention's call.
enum CachedOperand : size_t {
  kCachedQkv,
  kCachedCos,
  kCachedSin,
  kCachedPositions,
  kCachedKeys,
  kCachedValues,
  kCachedTables,
  kCachedOperands
};
/// Places of the operands of linear's call, where steps come before or after the product; what
/// isn't used is undefined. Those from kLinearCos on are cached_attention's.
enum LinearOperand : size_t {
  kLinearX,
  kLinearNorm,
  kLinearResidual,
  kLinearCos,
  kLinearKeys = kLinearCos + kCachedKeys - kCachedCos,
  kLinearValues,
  kLinearTables,
  kLinearOperands
};

/// linear(rms_norm(x, norm, eps), weight) + residual, and the like: the same bits as the ops one
/// after another. f32; `each` by itself takes every dtype of linear. Class that of linear. Errors:
/// sizes that don't fit, more than one of norm, silu_mul and attention; those of cached_attention.
WICK_API Tensor linear(const Tensor& x, const Weight& weight, const FusedLinear& fusion);

/// One step of attention with a cache: of qkv [t, h·d + g·d + g·e] the queries and keys are rotated
/// (rope_interleaved) by their positions, keys and values go into the caches at them
/// (store_in_pages), and every row attends to its sequence's positions up to its own
/// (attention_of_pages) → [t, h·e]. qkv f32. Class tree. Errors: those of these ops, params that
/// aren't causal. On a GPU nothing checks that sequences don't write to one page.
WICK_API Tensor cached_attention(const Tensor& qkv, const AttentionStep& step);

}  // namespace wick
