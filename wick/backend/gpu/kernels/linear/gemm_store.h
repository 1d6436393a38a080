#pragma once

// Stores the sums of a gemm: the epilogue.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"

namespace wick::gpu {

/// Four neighbours that are accessed at once.
template <class S>
struct alignas(16) Four {
  S v[4];
};

/// The bits of a sum in an OutFormat.
WICK_DEVICE u32 encode(u32 format, float x) {
  if (format == kStoreF32) return f32_bits(x);
  return format == kStoreF16 ? from_f32<f16>(x).bits : from_f32<bf16>(x).bits;
}
/// Stores a sum as one element.
WICK_DEVICE void store_as(void* out, u32 format, i64 at, float x) {
  const u32 bits = encode(format, x);
  if (format == kStoreF32) {
    static_cast<u32*>(out)[at] = bits;
  } else {
    static_cast<u16*>(out)[at] = static_cast<u16>(bits);
  }
}
/// Stores four neighbouring sums at once.
WICK_DEVICE void store_four_as(void* out, u32 format, const float (&x)[4]) {
  struct alignas(8) Words {
    u32 w[2];
  };
  if (format == kStoreF32) {
    *static_cast<Vec<float, 4>*>(out) = Vec<float, 4>::of(x);
  } else {
    Words words;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      words.w[i] = format == kStoreF16 ? narrow_two<f16>(x[2 * i], x[2 * i + 1])
                                       : narrow_two<bf16>(x[2 * i], x[2 * i + 1]);
    }
    *static_cast<Words*>(out) = words;
  }
}

/// The epilogue of float gemms: scales sums, adds the residual and rounds to the output format.
class FloatStore {
 public:
  /// For the tile of matrix `matrix` that begins at first_row and first_column.
  WICK_DEVICE FloatStore(void* out, const Gemm& p, const i64 (&start)[4], u32 matrix, u32 first_row,
                         u32 first_column)
      : p_(p),
        rows_(p.m - first_row),
        columns_(p.n - first_column),
        shift_(p.format == kStoreF32 ? 2 : 1) {
    to_ = static_cast<char*>(out) +
          ((start[0] + first_row * p.out_row + first_column * p.out_col) << shift_);
    residual_ = p.residual + start[3] + first_row * p.residual_row + first_column * p.residual_col;
    scales_ = p.scale + u64{matrix} * p.m + first_row;
  }

  /// Stores four neighbouring columns of a row of the tile. kFours: Gemm::fours isn't 0.
  template <bool kFours>
  WICK_DEVICE void store(u32 row, u32 column, const float* sums) const {
    if (row >= rows_ || column >= columns_) return;
    const float scale = p_.scale != nullptr ? scales_[row] : 1.0f;
    float x[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j) x[j] = sums[j] * scale;
    if constexpr (kFours) {
      if (p_.residual != nullptr) {
        const Four<float> added =
            *reinterpret_cast<const Four<float>*>(residual_ + row * p_.residual_row + column);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) x[j] = x[j] + added.v[j];
      }
      store_four_as(to_ + (row * p_.out_row << shift_) + (column << shift_), p_.format, x);
    } else {
#pragma unroll 1  // limits the code size
      for (u32 j = 0; j < 4 && column < columns_; ++j, ++column) {
        float y = x[0];
        if (p_.residual != nullptr) {
          y = y + residual_[row * p_.residual_row + column * p_.residual_col];
        }
        store_as(to_, p_.format, row * p_.out_row + column * p_.out_col, y);
        x[0] = x[1];
        x[1] = x[2];
        x[2] = x[3];
      }
    }
  }

 private:
  const Gemm& p_;
  u32 rows_, columns_, shift_;
  char* to_;
  const float *residual_, *scales_;
};

/// Stores a tile's sums as elements of T.
template <class T, class Loop>
WICK_DEVICE void store_plainly(const Loop& loop, void* out, const Gemm& p, const i64 (&start)[4],
                               const TilePlace& place) {
  loop.each([&](u32 row, u32 column, const typename Loop::Sum* sums) {
    row += place.row * Loop::kM;
    column += place.column * Loop::kN;
    if (row >= p.m) return;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      if (column + j >= p.n) break;
      T& to = static_cast<T*>(out)[start[0] + row * p.out_row + (column + j) * p.out_col];
      if constexpr (kSame<T, f8e4m3> || kSame<T, double>) {
        to = narrow<T>(sums[j]);
      } else {
        to = static_cast<T>(sums[j]);
      }
    }
  });
}

/// Stores a tile's sums. T is the dtype of a's elements.
template <class T, class Loop>
WICK_DEVICE void store_tile(const Loop& loop, void* out, const Gemm& p, const i64 (&start)[4],
                            const TilePlace& place) {
  if constexpr (kSame<T, float> || kSame<T, f16> || kSame<T, bf16>) {
    const FloatStore to(out, p, start, place.matrix, place.row * Loop::kM, place.column * Loop::kN);
    if (p.fours != 0) {
      loop.each([&](u32 row, u32 column, const float* sums) {
        to.template store<true>(row, column, sums);
      });
    } else {
      loop.each([&](u32 row, u32 column, const float* sums) {
        to.template store<false>(row, column, sums);
      });
    }
  } else {
    store_plainly<T>(loop, out, p, start, place);
  }
}

}  // namespace wick::gpu
