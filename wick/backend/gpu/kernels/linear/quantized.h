#pragma once

// The layout of quantised weights on a device, and the functions by which gemms read them.
//
// A unit is 16 rows by a chunk of 8 blocks (256 values). The units of a group of 16 rows follow one
// another. A unit consists of pieces of 256 B, 16 B for each row:
//   q4_0  8 pieces of nibbles, a block each │ d of 8 blocks                         2304 B
//   q4_1  8 of nibbles │ d │ m                                                      2560 B
//   q8_0  16 of int8, half a block each │ d                                         4352 B
//   q4_k  8 of nibbles │ header: d, dmin, then 8 bytes sc | m<<6, then 8 nibbles m>>2
//                                                                                   2304 B
//   q6_k  8 of low nibbles │ 4 of high bits │ 16 int8 scales │ 16 rows × d          3360 B
// On AMD a q6_k unit takes 3456 B, so that each unit begins a cache line of 128 B.
//
// Byte i of a block's nibbles has value i (low) and value 16 + i (high), as q4_0 in a file.
//
// In q6_k the 6 bits are q − 32 in two's complement. A piece of high bits serves two blocks, and a
// word serves half a block's nibbles: byte b of word w has, from bit 4·t + 2·h on, the high bits
// that belong to byte 8·(w mod 2) + 4·t + b of the nibbles of block w / 2; h = 0 for the low
// nibble.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/math/activation.h"

namespace wick::gpu {

/// kQuants: pieces of quants. kScales: pieces behind them. kTail: bytes of each row behind those.
template <UnitPieces kOf>
struct Unit {
  static constexpr UnitPieces kPieces = kOf;
  static constexpr u32 kQuants = kOf.quants, kScales = kOf.scales, kTail = kOf.tail;
};
struct Q4_0 : Unit<kUnitOfQ4_0> {
  static constexpr bool kMinimum = false;
};
struct Q4_1 : Unit<kUnitOfQ4_1> {
  static constexpr bool kMinimum = true;
};
struct Q8_0 : Unit<kUnitOfQ8_0> {
  static constexpr bool kMinimum = false;
};
struct Q4_K : Unit<kUnitOfQ4_K> {
  static constexpr bool kMinimum = true;
};
struct Q6_K : Unit<kUnitOfQ6_K> {
  static constexpr bool kMinimum = false;
};
template <class Q>
inline constexpr u32 kUnitBytes = unit_bytes(Q::kPieces, WICK_AMD != 0);

/// Element j of eight f16.
WICK_DEVICE float half_at(const Bytes16& s, u32 j) {
  return to_f32(f16{static_cast<u16>(s.w[j / 2] >> j % 2 * 16)});
}

/// The scales of a row of a unit, in registers.
template <class Q>
struct UnitScales {
  Bytes16 w[Q::kScales];
  u32 tail;

  WICK_DEVICE void load(const u8* unit, u32 row) {
    const Bytes16* from = reinterpret_cast<const Bytes16*>(unit) + row;
#pragma unroll
    for (u32 i = 0; i < Q::kScales; ++i) w[i] = load_streamed(from + (Q::kQuants + i) * kUnitRows);
    if constexpr (Q::kTail != 0) {
      tail = reinterpret_cast<const u16*>(unit + (Q::kQuants + Q::kScales) * kPieceBytes)[row];
    }
  }
  /// q4_k: factor(j) multiplies the dot product of block j, offset(j) the sum of its activations;
  /// both are below 64.
  WICK_DEVICE u32 factor(u32 j) const { return w[0].w[1 + j / 4] >> j % 4 * 8 & 63; }
  WICK_DEVICE u32 offset(u32 j) const {
    const u32 low = w[0].w[1 + j / 4] >> (j % 4 * 8 + 6) & 3, high = w[0].w[3] >> j * 4 & 15;
    return low | high << 2;
  }
  /// q4_k: the offsets of half h's four blocks as bytes. It takes more registers and less time than
  /// offset().
  WICK_DEVICE u32 offsets(u32 h) const {
    const u32 even = w[0].w[3] & 0x0f0f0f0fu, odd = w[0].w[3] >> 4 & 0x0f0f0f0fu;
    return alternate_bytes(even, odd, h) << 2 | (w[0].w[1 + h] >> 6 & 0x03030303u);
  }
  /// q4_k: moves the second four blocks to the place of the first four.
  WICK_DEVICE void move_up() {
    w[0].w[1] = w[0].w[2];
    w[0].w[3] >>= 16;
  }
  /// q4_k: d and dmin of the superblock.
  WICK_DEVICE float d() const { return half_at(w[0], 0); }
  WICK_DEVICE float dmin() const { return half_at(w[0], 1); }
  /// d of block j in the order of docs/design/numerics/quantised.md. Not for q4_k.
  WICK_DEVICE float scale(u32 j) const {
    if constexpr (kSame<Q, Q6_K>) {
      return to_f32(f16{static_cast<u16>(tail)});
    } else {
      return half_at(w[0], j);
    }
  }
  /// q4_1: m of block j.
  WICK_DEVICE float minimum(u32 j) const { return half_at(w[1], j); }
  /// q6_k: the scale of half h of block j.
  WICK_DEVICE i32 part(u32 j, u32 h) const {
    return static_cast<i8>(w[0].w[j / 2] >> (j % 2 * 16 + h * 8));
  }
};

/// A row of a unit, in registers.
template <class Q>
struct UnitRow {
  Bytes16 w[Q::kQuants];
  UnitScales<Q> scales;

  WICK_DEVICE void load(const u8* unit, u32 row) {
    const Bytes16* from = reinterpret_cast<const Bytes16*>(unit) + row;
#pragma unroll
    for (u32 i = 0; i < Q::kQuants; ++i) w[i] = load_streamed(from + i * kUnitRows);
    scales.load(unit, row);
  }
};

/// Four times the values q − 32 of a word of nibbles and a word of high bits, for the low nibbles
/// (kHigh = 0) or the high ones. `odd`: the word's index in its block is odd.
template <u32 kHigh>
WICK_DEVICE i32 six_bits(u32 nibbles, u32 high_bits, u32 odd) {
  const u32 low = (kHigh != 0 ? nibbles >> 2 : nibbles << 2) & 0x3c3c3c3cu;
  return static_cast<i32>(low | (high_bits << (6 - (odd * 4 + kHigh * 2)) & 0xc0c0c0c0u));
}

/// Σ u·q of a block's low nibbles (kHigh = 0) or high nibbles.
template <u32 kHigh>
WICK_DEVICE i32 half_dot(const Bytes16& nibbles, const Bytes16& x) {
  i32 dot = 0;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const u32 u = nibbles.w[i] >> 4 * kHigh & 0x0f0f0f0fu;
    dot = dot4(static_cast<i32>(u), static_cast<i32>(x.w[i]), dot);
  }
  return dot;
}

/// Σ u·q of block j with the activations `low` and `high`, whose sum is `sum`.
template <class Q>
WICK_DEVICE i32 block_dot(const UnitRow<Q>& u, u32 j, const Bytes16& low, const Bytes16& high,
                          i32 sum) {
  i32 dot = 0;
  if constexpr (kSame<Q, Q6_K>) {
    i32 first = 0, second = 0;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 nibbles = u.w[j].w[i], bits = u.w[8 + j / 2].w[j % 2 * 2 + i / 2];
      first = dot4(six_bits<0>(nibbles, bits, i % 2), static_cast<i32>(low.w[i]), first);
      second = dot4(six_bits<1>(nibbles, bits, i % 2), static_cast<i32>(high.w[i]), second);
    }
    dot = (u.scales.part(j, 0) * first + u.scales.part(j, 1) * second) >> 2;  // exact
  } else if constexpr (kSame<Q, Q8_0>) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      dot = dot4(static_cast<i32>(u.w[2 * j].w[i]), static_cast<i32>(low.w[i]), dot);
      dot = dot4(static_cast<i32>(u.w[2 * j + 1].w[i]), static_cast<i32>(high.w[i]), dot);
    }
  } else {
    if constexpr (kSame<Q, Q4_0>) dot = -8 * sum;  // nibbles are stored with 8 added
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = u.w[j].w[i];
      dot = dot4(static_cast<i32>(word & 0x0f0f0f0fu), static_cast<i32>(low.w[i]), dot);
      dot = dot4(static_cast<i32>(word >> 4 & 0x0f0f0f0fu), static_cast<i32>(high.w[i]), dot);
    }
  }
  return dot;
}

/// q4_k: p = fma(d_x, fma(−dmin, M, d·I), p), with exact I and M.
WICK_DEVICE float add_half(float p, float d, float dmin, float products, float minima, float d_x) {
  return fma(d_x, fma(-dmin, minima, d * products), p);
}

/// The residual of a result; 0 if there is no residual.
WICK_DEVICE float residual_at(const LinearOut& out, u32 column, u32 row) {
  if (out.residual == nullptr) return 0.0f;
  i64 at[2];
  out.columns.locate(column, at);
  return out.residual[at[1] + row * out.row[1]];
}

/// Stores a result rounded to the output dtype; `place` is its offset.
WICK_DEVICE void store_value(const LinearOut& out, i64 place, float y) {
  if (out.stored == Stored::f32) {
    static_cast<float*>(out.data)[place] = y;
  } else if (out.stored == Stored::f16) {
    static_cast<f16*>(out.data)[place] = from_f32<f16>(y);
  } else {
    static_cast<bf16*>(out.data)[place] = from_f32<bf16>(y);
  }
}

/// Stores a result, with the residual added if there is one.
WICK_DEVICE void store_result(const LinearOut& out, u32 column, u32 row, float y, float residual) {
  i64 at[2];
  out.columns.locate(column, at);
  store_value(out, at[0] + row * out.row[0], out.residual != nullptr ? residual + y : y);
}

/// Stores the results of rows `row` to `row` + 3, as far as they are below `rows`, of the column at
/// offsets `at`. `row` is a multiple of four.
WICK_DEVICE void store_four(const LinearOut& out, const i64 (&at)[2], u32 row, u32 rows,
                            const Vec<float, 4>& four) {
  float y[4];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) y[i] = four[i];
  if (out.fours != 0 && row + 4 <= rows) {
    if (out.residual != nullptr) {
      const auto residual = *reinterpret_cast<const Vec<float, 4>*>(out.residual + at[1] + row);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) y[i] = residual[i] + y[i];
    }
    const i64 place = at[0] + row;
    if (out.stored == Stored::f32) {
      *reinterpret_cast<Vec<float, 4>*>(static_cast<float*>(out.data) + place) =
          Vec<float, 4>::of(y);
    } else if (out.stored == Stored::f16) {
      *reinterpret_cast<Vec<f16, 4>*>(static_cast<f16*>(out.data) + place) = Vec<f16, 4>::of(y);
    } else {
      *reinterpret_cast<Vec<bf16, 4>*>(static_cast<bf16*>(out.data) + place) = Vec<bf16, 4>::of(y);
    }
    return;
  }
#pragma unroll 1
  for (u32 i = 0; i < 4 && row + i < rows; ++i) {
    float value = four[i];
    if (out.residual != nullptr) {
      value = out.residual[at[1] + (row + i) * out.row[1]] + value;
    }
    store_value(out, at[0] + (row + i) * out.row[0], value);
  }
}

/// Stores a tile of 128 rows from shared memory, where columns are kTilePitch apart. Each of the
/// first `warps` warps stores a column at a time.
inline constexpr u32 kTileRows = 128, kTilePitch = kTileRows + 4;
WICK_DEVICE void store_tile(const LinearOut& out, const float* tile, u32 first_row, u32 rows,
                            u32 first_column, u32 columns, u32 width, u32 warps) {
  for (u32 c = warp_index(); c < width && first_column + c < columns; c += warps) {
    i64 at[2];
    out.columns.locate(first_column + c, at);
    const u32 row = first_row + lane() * 4;
    const auto* from = reinterpret_cast<const Vec<float, 4>*>(tile + c * kTilePitch);
    if (row < rows) store_four(out, at, row, rows, from[lane()]);
  }
}

}  // namespace wick::gpu
