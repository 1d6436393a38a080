#pragma once

#include <cstdint>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// Rows of a step that belong to b sequences of equally many rows each, one sequence behind
/// another.
struct WICK_API SequenceRows {
  Tensor positions;  ///< u32 [t], of the rows in their sequences, ascending by one
  Tensor tables;     ///< u32 [b, n], see KvCache::tables
  Tensor lengths;    ///< u32 [b]: positions of each sequence, these included

  /// With the lengths that follow from the positions.
  SequenceRows(const Tensor& positions, const Tensor& tables);
};

/// Cosines and sines of rows, f32 [t, r/2]: see RopeTable.
struct Rotation {
  Tensor cos, sin;
};

/// Grouped attention of t rows with a cache: q [t, h, d] and k [t, g, d] are rotated
/// (rope_interleaved), k and v [t, g, e] stored in pages (key_pages [p, g, d, size], value_pages
/// [p, g, size, e]), and each row attends to its sequence's positions up to its own → [t, h·e].
/// Errors: those of rope_interleaved, store_in_pages and attention_of_pages.
WICK_API Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const SequenceRows& rows,
                       const Rotation& rotation, const Tensor& key_pages, const Tensor& value_pages,
                       const AttentionOptions& options);

}  // namespace wick::nn
