#pragma once

// Elements of a KV cache whose pages hold blocks of q8_0 or q4_0 (wick/base/block_pages.h). An
// element is the product of its quant and the scale of its block, rounded to f16: the value that a
// cache of f16 would hold.

#include "wick/backend/gpu/kernels/attention/cache_blocks_abi.h"
#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/math/blocks.h"

namespace wick::gpu {

/// A byte of such pages. Pointers to it count bytes.
template <class Block>
struct BlockByte {
  math::u8 byte;
};
template <class T>
struct BlockOf {};
template <class B>
struct BlockOf<BlockByte<B>> {
  using Type = B;
};
template <class T>
inline constexpr bool kIsBlocks = false;
template <class B>
inline constexpr bool kIsBlocks<BlockByte<B>> = true;

/// Bytes of quants of a block.
template <class Block>
inline constexpr u32 kQuantBytes = sizeof(Block) - kBlockScaleBytes;

/// The element of a quant and a scale.
WICK_DEVICE float cached_element(float scale, i32 quant) {
  return to_f32(from_f32<f16>(scale * static_cast<float>(quant)));
}
/// The quants of two adjacent bytes, in the low 16 bits of `bytes`. kAt: the byte. shift: for q4_0,
/// 0 for the low and 4 for the high nibbles.
template <class Block>
struct QuantPair {
  u32 bytes;
  template <u32 kAt>
  WICK_DEVICE i32 get(u32 shift) const {
    if constexpr (kSame<Block, math::BlockQ8_0>) {
      return static_cast<math::i8>(bytes >> 8 * kAt);
    } else {
      return static_cast<i32>(bytes >> (8 * kAt + shift) & 15u) - 8;
    }
  }
};

WICK_DEVICE u32 load_u16(const void* from) { return *static_cast<const u16*>(from); }
WICK_DEVICE float scale_in(u32 halves, u32 i) {
  return to_f32(__builtin_bit_cast(f16, static_cast<u16>(halves >> 16 * i)));
}

/// For kRows rows r: adds the products of factors[r · row + i] and elements i of two neighbouring
/// keys, for i in index order. `group`: the first byte of the keys' blocks for the first 32
/// elements; `groups` of them follow, `step` bytes apart. A piece is 16 bytes of quants of each
/// key; the loads of a piece are in flight while the one before is added.
template <u32 kRows, class Block>
WICK_DEVICE void add_key_blocks(float (&a)[kRows][2], const BlockByte<Block>* group, u32 key,
                                u32 step, u32 groups, const float* factors, u32 row) {
  constexpr u32 kPiece = 16, kPieces = kQuantBytes<Block> / kPiece, kKeys = kBlockPageKeys;
  constexpr u32 kElements = 32 / kPieces;  // of a piece
  struct Piece {
    u32 scales;
    u32 quants[kPiece / 2];  // two bytes of each of two rows
  };
  const char* const at = reinterpret_cast<const char*>(group);
  const auto load = [&](Piece& to, u32 n) WICK_INLINE {
    const char* const from = at + n / kPieces * step;
    to.scales = *reinterpret_cast<const u32*>(from + kBlockScaleBytes * key);
    const char* const quants = from + (kBlockScaleBytes + n % kPieces * kPiece) * kKeys + key;
#pragma unroll
    for (u32 i = 0; i < kPiece; i += 2) {
      to.quants[i / 2] = load_u16(quants + i * kKeys) | load_u16(quants + (i + 1) * kKeys) << 16;
    }
  };
  const auto add = [&](const Piece& x, u32 n) WICK_INLINE {
    const float scale0 = scale_in(x.scales, 0), scale1 = scale_in(x.scales, 1);
#pragma unroll
    for (u32 i = 0; i < kElements; i += 4) {
      float y[4][2];
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const u32 byte = (i + j) % kPiece, shift = (i + j) / kPiece * 4;
        const QuantPair<Block> pair{x.quants[byte / 2] >> byte % 2 * 16};
        y[j][0] = cached_element(scale0, pair.template get<0>(shift));
        y[j][1] = cached_element(scale1, pair.template get<1>(shift));
      }
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) {
        const float* const of_row = factors + r * row + kElements * n + i;
        const auto f = *reinterpret_cast<const Vec<float, 4>*>(of_row);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) {
          a[r][0] = fma(f[j], y[j][0], a[r][0]);
          a[r][1] = fma(f[j], y[j][1], a[r][1]);
        }
      }
    }
  };
  Piece now, next = {};
  load(now, 0);
  const u32 pieces = groups * kPieces;
#pragma unroll 1
  for (u32 n = 0; n < pieces; ++n) {
    if (n + 1 < pieces) load(next, n + 1);
    add(now, n);
    now = next;
  }
}

/// For kRows rows r, and keys j from `first` to `end` in order: adds the products of
/// factors[r * row + j] and elements x and x + 1 of value j. `values`: the first byte of value 0;
/// `step` bytes lead to the next value.
template <u32 kRows, class Block>
WICK_DEVICE void add_value_blocks(float (&a)[kRows][2], const BlockByte<Block>* values, u32 x,
                                  u32 step, const float* factors, u32 row, i32 first, i32 end) {
  constexpr u32 kBytes = kQuantBytes<Block>, kAhead = 16;
  const u32 shift = x % 32 / kBytes * 4;
  const char* const block =
      reinterpret_cast<const char*>(values) + x / 32 * static_cast<u32>(sizeof(Block));
  const u32 quant = kBlockScaleBytes + x % 32 % kBytes;
  // The scale in the low half, two bytes of quants in the high half.
  const auto load = [&](i32 j) WICK_INLINE {
    const char* const from = block + static_cast<u32>(j) * step;
    return load_u16(from) | load_u16(from + quant) << 16;
  };
  const auto add = [&](u32 y, i32 j) WICK_INLINE {
    const float scale = scale_in(y, 0);
    const QuantPair<Block> pair{y >> 16};
    const float x0 = cached_element(scale, pair.template get<0>(shift));
    const float x1 = cached_element(scale, pair.template get<1>(shift));
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const float f = factors[r * row + static_cast<u32>(j)];
      a[r][0] = fma(f, x0, a[r][0]);
      a[r][1] = fma(f, x1, a[r][1]);
    }
  };
  i32 j = first;
  if (j + static_cast<i32>(kAhead) <= end) {
    u32 now[kAhead], next[kAhead] = {};
#pragma unroll
    for (u32 n = 0; n < kAhead; ++n) now[n] = load(j + static_cast<i32>(n));
#pragma unroll 1
    for (; j + static_cast<i32>(kAhead) <= end; j += static_cast<i32>(kAhead)) {
      const i32 ahead = j + static_cast<i32>(kAhead);
      if (ahead + static_cast<i32>(kAhead) <= end) {
#pragma unroll
        for (u32 n = 0; n < kAhead; ++n) next[n] = load(ahead + static_cast<i32>(n));
      }
#pragma unroll
      for (u32 n = 0; n < kAhead; ++n) add(now[n], j + static_cast<i32>(n));
#pragma unroll
      for (u32 n = 0; n < kAhead; ++n) now[n] = next[n];
    }
  }
#pragma unroll 1
  for (; j < end; ++j) add(load(j), j);
}

}  // namespace wick::gpu
