#pragma once

// Results of gemms with quantised weights in memory. For kernel sources only (see isa.h).

#include "wick/backend/cpu/linear/quantized_kernels.h"
#include "wick/backend/cpu/linear/quantized_sources.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class Storage>
WICK_SIMD void store_as(const GemmOutput& out, int64_t at, int64_t count, const float* v) {
  Storage y[kPanelRows];
  narrow_run(y, v, kPanelRows);
  auto* to = static_cast<Storage*>(out.data) + at;
  for (int64_t r = 0; r < count; ++r) to[r * out.stride] = y[r];
}

/// Stores `count` rows from `row` on of `columns` columns; `v` has 16 floats for each column.
[[maybe_unused]] void store_slowly(const GemmOutput& out, int64_t column, int64_t columns,
                                   int64_t row, int64_t count, const float* v) {
  for (int64_t j = 0; j < columns; ++j, v += kPanelRows) {
    const int64_t at = out.at(column + j) + row * out.stride;
    if (out.type == ActivationType::f16) {
      store_as<math::f16>(out, at, count, v);
    } else if (out.type == ActivationType::bf16) {
      store_as<math::bf16>(out, at, count, v);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        static_cast<float*>(out.data)[at + r * out.stride] = v[r];
      }
    }
  }
}

/// Stores rows `row` to row + 15, as far as they exist, of the columns of a tile.
template <int kColumns>
WICK_SIMD void store_rows(const GemmOutput& out, int64_t column, int64_t row, int64_t rows,
                          const F32x16 (&totals)[kColumns]) {
  const int64_t count = rows - row < kPanelRows ? rows - row : kPanelRows;
  if (out.type == ActivationType::f32 && out.stride == 1 && count == kPanelRows) {
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      store_16(static_cast<float*>(out.data) + out.at(column + j) + row, totals[j]);
    }
    return;
  }
  float y[kColumns * kPanelRows];
  WICK_UNROLL
  for (int j = 0; j < kColumns; ++j) store_16(y + j * kPanelRows, totals[j]);
  store_slowly(out, column, kColumns, row, count, y);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
