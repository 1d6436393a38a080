#pragma once

// Few rows of activations in shared memory, and the vectors of weights that they are multiplied
// with.

#include "wick/backend/gpu/kernels/linear/gemm_columns.h"
#include "wick/backend/gpu/kernels/linear/gemm_store.h"
#include "wick/backend/gpu/kernels/linear/rows_in.h"

namespace wick::gpu {

/// kX rows of x along a slice of k, in f32, or in bf16 for bf16 weights. The elements that a
/// lane multiplies with one vector of weights are split into planes of 16 bytes per vector, so that
/// neighbouring lanes read neighbouring addresses.
template <class W, u32 kX>
class SharedX {
 public:
  static constexpr bool kNarrow = kSame<W, bf16>;
  /// Elements of a vector of weights, which has 16 bytes.
  static constexpr u32 kPack = 16 / sizeof(W);
  static constexpr u32 kPlanes = shared_x_bytes(kSame<W, f16>) / 16;

  /// packs: vectors of weights along the slice.
  WICK_DEVICE SharedX(Bytes16* shared, u32 packs) : shared_(shared), packs_(packs) {}

  /// Loads the slice that begins with vector `first` of rows, which are columns of gemm_columns.h;
  /// zeros behind k and in rows that don't exist. All threads of the thread block must call it.
  template <class Rows>
  WICK_DEVICE void fill(const void* x, u32 format, const Gemm& p, const Rows& rows,
                        u32 first) const {
    const u32 elems = packs_ * kPack, bytes = format == kStoreF32 ? 4 : 2;
    // Whether four neighbours can be read at once.
    const bool fours =
        p.a_k == 1 && p.a_row % 4 == 0 && reinterpret_cast<u64>(x) % (4 * bytes) == 0;
    for (u32 row = 0; row < kX; ++row) {
      const bool has_row = rows.has(row);
      const i64 start = has_row ? rows.source(row) * p.a_row : 0;
      for (u32 e = thread_index() * 4; e < elems; e += block_threads() * 4) {
        const u32 at = first * kPack + e;
        const i64 from = start + at * p.a_k;
        float v[4];
        if (has_row && fours && at + 4 <= p.k) {
          load_four_as(x, format, from, v);
        } else {
#pragma unroll
          for (u32 i = 0; i < 4; ++i) {
            v[i] = has_row && at + i < p.k ? load_as(x, format, from + i * p.a_k) : 0.0f;
          }
        }
        put(row, e, v);
      }
    }
  }
  /// Four values that belong to a vector of weights, from value 4·four on.
  WICK_DEVICE void get(u32 row, u32 pack, u32 four, float (&x)[4]) const {
    const u32 plane = kPlanes == 2 ? four : 0;
    const Bytes16 b = shared_[(row * kPlanes + plane) * packs_ + pack];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      if constexpr (kNarrow) {
        const u32 word = b.w[2 * four + i / 2];
        x[i] = bits_f32(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
      } else {
        x[i] = bits_f32(b.w[i]);
      }
    }
  }

 private:
  /// Stores four elements from e on, a multiple of four.
  WICK_DEVICE void put(u32 row, u32 e, const float (&v)[4]) const {
    const u32 in_pack = e % kPack, pack = e / kPack;
    if constexpr (kNarrow) {
      u32* const words = shared_[row * packs_ + pack].w + in_pack / 2;
      *reinterpret_cast<u64*>(words) =
          narrow_two<bf16>(v[0], v[1]) | u64{narrow_two<bf16>(v[2], v[3])} << 32;
    } else {
      shared_[(row * kPlanes + in_pack / 4) * packs_ + pack] = {
          {f32_bits(v[0]), f32_bits(v[1]), f32_bits(v[2]), f32_bits(v[3])}};
    }
  }

  Bytes16* shared_;
  u32 packs_;
};

/// Element i of a vector of weights.
template <class W>
WICK_DEVICE float weight_at(const Bytes16& pack, u32 i) {
  if constexpr (kSame<W, float>) {
    return bits_f32(pack.w[i]);
  } else if constexpr (kSame<W, bf16>) {
    return bits_f32(i % 2 == 0 ? pack.w[i / 2] << 16 : pack.w[i / 2] & 0xffff0000u);
  } else {
    return to_f32(f16{static_cast<u16>(pack.w[i / 2] >> i % 2 * 16)});
  }
}

}  // namespace wick::gpu
