#pragma once

// The sizes in the written orders of operations (docs/design/numerics). They are part of the
// numeric contract: kernels of every backend and instruction set use these.

#include "wick/math/fn.h"

namespace wick::math {

// Sums of rows and other ordered reductions, also those in norms and softmax (reduce.md).

/// Elements of a chunk. The results of a row's chunks are combined by twos.
inline constexpr i64 kSumChunk = 4096;
/// Accumulators of a chunk: element i goes to accumulator i mod kSumAccumulators.
inline constexpr int kSumAccumulators = 128;

// Cumulative sums (reduce.md).

/// Elements of a group, groups of a larger group, and larger groups of a chunk.
inline constexpr int kScanGroup = 16;
/// Elements of a chunk. Chunks are added one after another.
inline constexpr i64 kScanChunk = i64{kScanGroup} * kScanGroup * kScanGroup;

// Attention (attention.md).

/// Keys of a chunk, which has a maximum and a sum of its own.
inline constexpr i64 kAttentionChunk = 256;

// Gemms of quantised weights (quantised.md).

/// Values of a block of activations. Each block has its own scale unless blocks share one.
inline constexpr int kActivationBlock = 32;
/// Blocks of activations that share a scale, for weights of q2_k, q4_k and q5_k.
inline constexpr int kSharedBlocks = 4;
/// Blocks whose products are summed before the sum is added to the total.
inline constexpr int kChunkBlocks = 8;
/// Values of a chunk of weights that are decoded to floats.
inline constexpr i64 kDecodedChunk = 256;

// Gradients of convolution weights by dot products (convolution.md).

/// Chains of a dot product: pixel x of a row goes to chain x mod kDotLanes.
inline constexpr int kDotLanes = 16;

}  // namespace wick::math
