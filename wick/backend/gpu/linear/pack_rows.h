#pragma once

#include <cstdint>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// Copies the rows of a view [.., k] of f32, f16 or bf16 to rows that are `pitch` elements apart (a
/// multiple of 4). Each element is rounded once; zeros fill the rows behind k.
void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in);

/// Rows of a matrix [t, k] that a list in device memory names.
struct ChosenRows {
  const uint32_t* tokens;
  int64_t count;
};
/// pack_rows of chosen rows of `in`.
void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in,
               const ChosenRows& chosen);

/// Rows that split_rows.gpu makes: `terms` f16 for each element, 1 or 2, each term with `half`
/// elements in a row, and an f32 scale for each row.
struct SplitRows {
  void* data;
  float* scale;
  int64_t terms, half;
};
/// Splits the rows of a view [.., k] of f32 or bf16, or chosen rows of one.
void split_rows(Gpu& gpu, const SplitRows& out, const ConstView& in);
void split_rows(Gpu& gpu, const SplitRows& out, const ConstView& in, const ChosenRows& chosen);

}  // namespace wick::gpu
