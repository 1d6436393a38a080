#pragma once

#include <cstdint>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// The rows of a step. They belong to b sequences with t / b rows each; the sequences are
/// concatenated.
struct WICK_API SequenceRows {
  Tensor positions;  ///< u32 [t]: position of each row in its sequence, ascending by one
  Tensor tables;     ///< u32 [b, n]: page tables, see KvCache::tables
  Tensor lengths;    ///< u32 [b]: length of each sequence, including these rows

  /// Computes the lengths from the positions.
  SequenceRows(const Tensor& positions, const Tensor& tables);
  /// The rows of one sequence without a cache; tables and lengths are undefined.
  explicit SequenceRows(const Tensor& of_rows) : positions(of_rows) {}
};

/// Cosines and sines for each row, f32 [t, r/2]; see RopeTable.
struct Rotation {
  Tensor cos, sin;
};

/// Grouped-query attention of t rows with a cache. Rotates q [t, h, d] and k [t, g, d]
/// (rope_interleaved; an undefined rotation is none), stores k and v [t, g, e] in the pages
/// (key_pages [p, g, d, size], value_pages [p, g, size, e]), and lets each row attend to its
/// sequence up to its own position → [t, h·e]. The pages may be those of blocks (block_pages.h). An
/// undefined k or v isn't stored: the pages, any views of a cache, hold it already. sinks: f32 [h]
/// as in attention, or undefined. Errors: those of rope_interleaved, store_in_pages and
/// attention_of_pages.
WICK_API Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const SequenceRows& rows,
                       const Rotation& rotation, const Tensor& key_pages, const Tensor& value_pages,
                       const AttentionOptions& options, const Tensor& sinks = {});

/// Attention among the t rows of one sequence without a cache: q [t, h, d], k [t, g, d], v [t, g,
/// e] → [t, h·e]. mask is undefined or broadcasts to [1, h, t, t]. Errors: those of
/// rope_interleaved and attention.
WICK_API Tensor attend_within(const Tensor& q, const Tensor& k, const Tensor& v,
                              const Rotation& rotation, const AttentionOptions& options,
                              const Tensor& mask);

}  // namespace wick::nn
