#pragma once

// The layout of quantised weights on a device, and the functions by which gemms read them.
//
// A unit is 16 rows by a chunk of 8 blocks (256 values). The units of a group of 16 rows follow one
// another. A unit consists of pieces of 256 B, 16 B for each row, and in some formats a tail of a
// few bytes for each row:
//   q4_0    8 pieces of nibbles, a block each │ d of 8 blocks                       2304 B
//   q4_1    8 of nibbles │ d │ m                                                    2560 B
//   q5_0    2 × (4 of nibbles, 1 of fifth bits) │ d                                 2816 B
//   q5_1    2 × (4 of nibbles, 1 of fifth bits) │ d │ m                             3072 B
//   q8_0    16 of int8, half a block each │ d                                       4352 B
//   q2_k    4 of two bits, two blocks each │ 16 bytes sc | mn<<4 │ tail d, dmin     1344 B
//   q3_k    2 × (2 of two bits, 1 of third bits) │ six bits: factors and d          1792 B
//   q4_k    8 of nibbles │ header: d, dmin, then 8 bytes sc | m<<6, then 8 nibbles m>>2
//                                                                                   2304 B
//   q5_k    2 × (4 of nibbles, 1 of fifth bits) │ header of q4_k                    2816 B
//   q6_k    8 of low nibbles │ 4 of high bits │ 16 int8 scales │ 16 rows × d        3360 B
//   iq4_nl  8 of nibbles │ d                                                        2304 B
//   iq4_xs  8 of nibbles │ tail d and factors                                       2176 B
//   mxfp4   8 of nibbles │ tail 8 exponents                                         2176 B
// On AMD a q6_k unit takes 3456 B and a q2_k unit 1408 B, so that each unit begins a cache line of
// 128 B.
//
// On NVIDIA the nibbles of iq4_nl, iq4_xs and mxfp4, which are indices of a table, are reordered in
// each word (order_nibbles), for look_up.
//
// Byte i of a block's nibbles has value i (low) and value 16 + i (high), as q4_0 in a file. Word i
// of a block's nibbles is the word of the values 4·i to 4·i + 3 and 16 + 4·i to 16 + 4·i + 3; all
// other bits of these values are in word i of another piece, in the same bytes:
//   two bits    block j of a chunk takes, of piece j / 2, bits 2·(j mod 2) of each low nibble (the
//               low value) and of each high nibble (the high value)
//   fifth bits  and third bits: of the piece of its half, bit j mod 4 of each low and high nibble
//
// In q6_k the 6 bits are q − 32 in two's complement. A piece of high bits serves two blocks, and a
// word serves half a block's nibbles: byte b of word w has, from bit 4·t + 2·h on, the high bits
// that belong to byte 8·(w mod 2) + 4·t + b of the nibbles of block w / 2; h = 0 for the low
// nibble.
//
// The factors of q3_k and iq4_xs are 6 bits in two's complement. Factor p of q3_k is in word p / 5
// from bit 6·(p mod 5) on; factor 15 is in word 3 from bit 16 on, above d. Of iq4_xs, word 0 of the
// tail has d, then factors 0 and 1; word 1 has factors 2 to 6 and the low two bits of factor 7; the
// high four bits of word 0 are its other bits.

#include "wick/backend/gpu/kernels/device/code_table.h"
#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/layout/locate_once.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/math/activation.h"

namespace wick::gpu {

/// kQuants: pieces of quants. kScales: pieces behind them. kTail: bytes of each row behind those.
/// The other constants are properties of UnitFormat.
template <UnitFormat kOf>
struct Unit {
  static constexpr UnitFormat kFormat = kOf;
  static constexpr UnitPieces kPieces = kOf.unit;
  static constexpr u32 kQuants = kPieces.quants, kScales = kPieces.scales, kTail = kPieces.tail;
  static constexpr u32 kBits = kOf.bits, kHigh = kOf.high, kOffset = kOf.offset;
  static constexpr bool kMinimum = kOf.minimum, kCoded = kOf.table != math::CodeTable::none,
                        kExponents = kOf.exponents;
  /// kShared: half a superblock is added at once, by kSums integer sums.
  static constexpr bool kShared = kOf.halves != 0;
  static constexpr u32 kSums = kOf.halves;
  /// kParts: 16 values share a factor. kFactor: 32 values share one. kSuper: a chunk is a
  /// superblock; only superblocks have factors.
  static constexpr bool kParts = kOf.factors == 16, kFactor = kOf.factors == 32;
  static constexpr bool kSuper = kParts || kFactor;
  /// Quants as bytes are so many times too large, with a sign: q3_k and q6_k.
  static constexpr u32 kTimes = kShared || !kParts ? 1 : kHigh == 2 ? 4 : 32;
  /// Whether fifth bits remain to be added to nibbles.
  static constexpr bool kFifth = kBits == 4 && kHigh == 1;

  /// The piece of block j's low bits, the first of two for 8 bits.
  WICK_DEVICE static constexpr u32 low_piece(u32 j) {
    return kBits == 4 && kHigh != 1 ? j : j / 4 * (kQuants / 2) + j % 4 * kBits / 4;
  }
  /// The piece of block j's high bits. Not for q6_k.
  WICK_DEVICE static constexpr u32 high_piece(u32 j) { return j / 4 * (kQuants / 2) + kBits; }
};
struct Q4_0 : Unit<kFormatOfQ4_0> {};
struct Q4_1 : Unit<kFormatOfQ4_1> {};
struct Q5_0 : Unit<kFormatOfQ5_0> {};
struct Q5_1 : Unit<kFormatOfQ5_1> {};
struct Q8_0 : Unit<kFormatOfQ8_0> {};
struct Q2_K : Unit<kFormatOfQ2_K> {};
struct Q3_K : Unit<kFormatOfQ3_K> {};
struct Q4_K : Unit<kFormatOfQ4_K> {};
struct Q5_K : Unit<kFormatOfQ5_K> {};
struct Q6_K : Unit<kFormatOfQ6_K> {};
struct IQ4_NL : Unit<kFormatOfIQ4_NL> {};
struct IQ4_XS : Unit<kFormatOfIQ4_XS> {};
struct MXFP4 : Unit<kFormatOfMXFP4> {};
template <class Q>
inline constexpr u32 kUnitBytes = unit_bytes(Q::kPieces, WICK_AMD != 0);

/// Element j of eight f16.
WICK_DEVICE float half_at(const Bytes16& s, u32 j) {
  return to_f32(f16{static_cast<u16>(s.w[j / 2] >> j % 2 * 16)});
}
/// The six bits of x from bit `from` on, sign-extended.
WICK_DEVICE i32 signed_six(u32 x, u32 from) { return static_cast<i32>(x << (26 - from)) >> 26; }

// ---- Words of quants ----

/// The nibbles of word i of block j: quants without their fifth bits. low, high: the words of the
/// pieces low_piece(j) and high_piece(j).
template <class Q>
WICK_DEVICE u32 nibbles_in(u32 low, u32 high, u32 j) {
  if constexpr (Q::kBits != 2) {
    return low;
  } else {
    const u32 two = low >> j % 2 * 2 & 0x33333333u;
    return Q::kHigh != 0 ? two | (high >> j % 4 & 0x11111111u) << 2 : two;
  }
}
/// The fifth bits that belong to nibbles, in the lowest bits of the nibbles of the result.
WICK_DEVICE u32 fifths_in(u32 high, u32 j) { return high >> j % 4; }

/// Entries of the format's table, with the bits of kFlip inverted, for the low (kHalf = 0) or the
/// high half of a word's quants.
template <class Q, u32 kHalf, u64 kFlip>
WICK_DEVICE u32 entries(u32 nibbles) {
  constexpr bool kNormal = Q::kFormat.table == math::CodeTable::normal;
  constexpr u64 kFirst = kNormal ? math::kNormalCode.first : math::kE2m1Code.first;
  constexpr u64 kSecond = kNormal ? math::kNormalCode.second : math::kE2m1Code.second;
  return look_up<(kFirst ^ kFlip), (kSecond ^ kFlip)>(nibbles, kHalf);
}

/// Quants as bytes, of the low (kHalf = 0) or high nibbles of a word; kTimes too large.
template <class Q, u32 kHalf>
WICK_DEVICE u32 quant_bytes(u32 nibbles, u32 fifths) {
  if constexpr (Q::kCoded) {
    return entries<Q, kHalf, 0>(nibbles);
  } else if constexpr (Q::kTimes == 32) {  // q3_k: (q − 4) · 32
    return ((kHalf != 0 ? nibbles << 1 : nibbles << 5) & 0xe0e0e0e0u) ^ 0x80808080u;
  } else {
    const u32 four = nibbles >> 4 * kHalf & 0x0f0f0f0fu;
    if constexpr (!Q::kFifth) return four;
    return four | ((kHalf != 0 ? fifths : fifths << 4) & 0x10101010u);
  }
}

/// Each byte of x times `by`; no product exceeds 255.
WICK_DEVICE u32 multiply_bytes(u32 x, u32 by) {
#if WICK_AMD
  // AMD multiplies pairs of 16 bits faster than words.
  typedef u16 Pair __attribute__((ext_vector_type(2)));
  const u16 factor = static_cast<u16>(by);
  return __builtin_bit_cast(u32, __builtin_bit_cast(Pair, x) * Pair{factor, factor});
#else
  return x * by;
#endif
}
/// c + the first int16 of `pair` times byte 2·upper of `bytes` + the second int16 times the next
/// byte. The bytes are below 128.
WICK_DEVICE i32 dot_pair(u32 pair, u32 bytes, u32 upper, i32 c) {
#if WICK_AMD
  const u32 two = bytes >> upper * 16;
  c += multiply_small(static_cast<i16>(pair), static_cast<i32>(two & 255));
  return c + multiply_small(static_cast<i32>(pair) >> 16, static_cast<i32>(two >> 8 & 255));
#else
  return upper != 0 ? __dp2a_hi(static_cast<i32>(pair), static_cast<i32>(bytes), c)
                    : __dp2a_lo(static_cast<i32>(pair), static_cast<i32>(bytes), c);
#endif
}

// ---- Rows of units ----

/// The scales of a row of a unit, in registers.
template <class Q>
struct UnitScales {
  Bytes16 w[Q::kScales == 0 ? 1 : Q::kScales];
  u32 tail[Q::kTail == 8 ? 2 : 1];

  WICK_DEVICE void load(const u8* unit, u32 row) {
    const Bytes16* from = reinterpret_cast<const Bytes16*>(unit) + Q::kQuants * kUnitRows + row;
    if constexpr (Q::kScales >= 1) w[0] = load_streamed(from);
    if constexpr (Q::kScales == 2) w[1] = load_streamed(from + kUnitRows);
    const u8* behind = unit + (Q::kQuants + Q::kScales) * kPieceBytes;
    if constexpr (Q::kTail == 2) {
      tail[0] = reinterpret_cast<const u16*>(behind)[row];
    } else if constexpr (Q::kTail == 4) {
      tail[0] = reinterpret_cast<const u32*>(behind)[row];
    } else if constexpr (Q::kTail == 8) {
      const u64 both = reinterpret_cast<const u64*>(behind)[row];
      tail[0] = static_cast<u32>(both);
      tail[1] = static_cast<u32>(both >> 32);
    }
  }
  /// q4_k and q5_k: factor(j) multiplies the dot product of block j, offset(j) the sum of its
  /// activations; both are below 64.
  WICK_DEVICE u32 factor(u32 j) const { return w[0].w[1 + j / 4] >> j % 4 * 8 & 63; }
  WICK_DEVICE u32 offset(u32 j) const {
    const u32 low = w[0].w[1 + j / 4] >> (j % 4 * 8 + 6) & 3, high = w[0].w[3] >> j * 4 & 15;
    return low | high << 2;
  }
  /// q4_k and q5_k: the offsets of half h's four blocks as bytes. It takes more registers and less
  /// time than offset().
  WICK_DEVICE u32 offsets(u32 h) const {
    const u32 even = w[0].w[3] & 0x0f0f0f0fu, odd = w[0].w[3] >> 4 & 0x0f0f0f0fu;
    return alternate_bytes(even, odd, h) << 2 | (w[0].w[1 + h] >> 6 & 0x03030303u);
  }
  /// q2_k: mn of blocks j and j + 1, two bytes each; j is even.
  WICK_DEVICE u32 pair_offsets(u32 j) const { return w[0].w[j / 2] >> 4 & 0x0f0f0f0fu; }
  /// q2_k, q4_k and q5_k: moves the second four blocks to the place of the first four.
  WICK_DEVICE void move_up() {
    if constexpr (Q::kParts) {
      w[0].w[0] = w[0].w[2];
      w[0].w[1] = w[0].w[3];
    } else {
      w[0].w[1] = w[0].w[2];
      w[0].w[3] >>= 16;
    }
  }
  /// q2_k, q4_k and q5_k: d and dmin of the superblock.
  WICK_DEVICE float d() const {
    if constexpr (Q::kTail == 4) return to_f32(f16{static_cast<u16>(tail[0])});
    return half_at(w[0], 0);
  }
  WICK_DEVICE float dmin() const {
    if constexpr (Q::kTail == 4) return to_f32(f16{static_cast<u16>(tail[0] >> 16)});
    return half_at(w[0], 1);
  }
  /// d of block j in the order of docs/design/numerics/quantised.md. Not for formats whose halves
  /// are added at once.
  WICK_DEVICE float scale(u32 j) const {
    if constexpr (Q::kExponents) {
      math::BlockMXFP4 block;
      block.e = static_cast<u8>(tail[j / 4] >> j % 4 * 8);
      return math::scale_of(block, 0);
    } else if constexpr (Q::kTail != 0) {  // q6_k and iq4_xs
      return to_f32(f16{static_cast<u16>(tail[0])});
    } else {
      return half_at(w[0], Q::kParts ? 6 : j);
    }
  }
  /// q4_1 and q5_1: m of block j.
  WICK_DEVICE float minimum(u32 j) const { return half_at(w[1], j); }
  /// iq4_xs: the factor of block j.
  WICK_DEVICE i32 block_factor(u32 j) const {
    if (j < 2) return signed_six(tail[0], 16 + 6 * j);
    if (j < 7) return signed_six(tail[1], 6 * (j - 2));
    return (static_cast<i32>(tail[0]) >> 28) * 4 + static_cast<i32>(tail[1] >> 30);
  }
  /// q2_k, q3_k and q6_k: the factor of half h of block j.
  WICK_DEVICE i32 part(u32 j, u32 h) const {
    const u32 p = 2 * j + h;
    if constexpr (Q::kShared) {
      return static_cast<i32>(w[0].w[p / 4] >> p % 4 * 8 & 15);
    } else if constexpr (Q::kHigh == 1) {
      return p == 15 ? signed_six(w[0].w[3], 16) : signed_six(w[0].w[p / 5], 6 * (p % 5));
    } else {
      return static_cast<i8>(w[0].w[p / 4] >> p % 4 * 8);
    }
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
  /// Word i of block j: its nibbles, and its fifth bits if there are any.
  WICK_DEVICE u32 nibbles(u32 j, u32 i) const {
    return nibbles_in<Q>(w[Q::low_piece(j)].w[i],
                         Q::kHigh == 1 ? w[Q::high_piece(j) % Q::kQuants].w[i] : 0, j);
  }
  WICK_DEVICE u32 fifths(u32 j, u32 i) const {
    return Q::kFifth ? fifths_in(w[Q::high_piece(j) % Q::kQuants].w[i], j) : 0;
  }
};

/// Four times the values q − 32 of a word of nibbles and a word of high bits, for the low nibbles
/// (kHigh = 0) or the high ones. `odd`: the word's index in its block is odd.
template <u32 kHigh>
WICK_DEVICE i32 six_bits(u32 nibbles, u32 high_bits, u32 odd) {
  const u32 low = (kHigh != 0 ? nibbles >> 2 : nibbles << 2) & 0x3c3c3c3cu;
  return static_cast<i32>(low | (high_bits << (6 - (odd * 4 + kHigh * 2)) & 0xc0c0c0c0u));
}

/// Σ u·q of the low (kHalf = 0) or high half of block j, kTimes too large. Not for q8_0.
template <class Q, u32 kHalf>
WICK_DEVICE i32 half_dot(const UnitRow<Q>& u, u32 j, const Bytes16& x) {
  i32 dot = 0;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const i32 q = static_cast<i32>(x.w[i]);
    if constexpr (Q::kHigh == 2) {
      dot = dot4(six_bits<kHalf>(u.w[j].w[i], u.w[8 + j / 2].w[j % 2 * 2 + i / 2], i % 2), q, dot);
    } else {
      dot = dot4(static_cast<i32>(quant_bytes<Q, kHalf>(u.nibbles(j, i), u.fifths(j, i))), q, dot);
    }
  }
  return dot;
}

/// Σ f·u·q of block j with the activations `low` and `high`, whose sum is `sum`. In formats whose
/// halves are added at once, the factors f of whole blocks are left out.
template <class Q>
WICK_DEVICE i32 block_dot(const UnitRow<Q>& u, u32 j, const Bytes16& low, const Bytes16& high,
                          i32 sum) {
  i32 dot = 0;
  if constexpr (Q::kParts) {
    dot = multiply_small(u.scales.part(j, 0), half_dot<Q, 0>(u, j, low)) +
          multiply_small(u.scales.part(j, 1), half_dot<Q, 1>(u, j, high));
    dot >>= Q::kTimes == 32 ? 5 : Q::kTimes == 4 ? 2 : 0;  // exact
  } else if constexpr (Q::kBits == 8) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      dot = dot4(static_cast<i32>(u.w[2 * j].w[i]), static_cast<i32>(low.w[i]), dot);
      dot = dot4(static_cast<i32>(u.w[2 * j + 1].w[i]), static_cast<i32>(high.w[i]), dot);
    }
  } else {
    if constexpr (Q::kOffset != 0) dot = -static_cast<i32>(Q::kOffset) * sum;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 nibbles = u.nibbles(j, i), fifths = u.fifths(j, i);
      dot = dot4(static_cast<i32>(quant_bytes<Q, 0>(nibbles, fifths)), static_cast<i32>(low.w[i]),
                 dot);
      dot = dot4(static_cast<i32>(quant_bytes<Q, 1>(nibbles, fifths)), static_cast<i32>(high.w[i]),
                 dot);
    }
    if constexpr (Q::kFactor && !Q::kShared) {
      dot = multiply_small(u.scales.block_factor(j), dot);
    }
  }
  return dot;
}

/// Formats whose halves are added at once: p = fma(d_x, fma(−dmin, M, t), p), with the exact M and
/// the products t of a half.
WICK_DEVICE float add_half(float p, float t, float dmin, float minima, float d_x) {
  return fma(d_x, fma(-dmin, minima, t), p);
}

/// The offsets of a column in the result and in the residual.
WICK_DEVICE void locate_column(const LinearOut& out, u32 column, i64 (&at)[2]) {
#if WICK_AMD
  // The unrolled loop of locate() is hundreds of instructions on AMD, most of them before it.
  if (out.columns.step != 0) {
    at[0] = at[1] = i64{column} * out.columns.step;
  } else {
    locate_once(out.columns, column, at);
  }
#else
  out.columns.locate(column, at);
#endif
}

/// The residual of a result; 0 if there is no residual.
WICK_DEVICE float residual_at(const LinearOut& out, u32 column, u32 row) {
  if (out.residual == nullptr) return 0.0f;
  i64 at[2];
  locate_column(out, column, at);
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
  locate_column(out, column, at);
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

/// Stores a tile of 128 rows and `width` columns (gemm_columns.h) from shared memory, where columns
/// are kTilePitch apart. Each of the first `warps` warps stores a column at a time.
inline constexpr u32 kTileRows = 128, kTilePitch = kTileRows + 4;
template <class Columns>
WICK_DEVICE void store_tile(const LinearOut& out, const float* tile, u32 first_row, u32 rows,
                            const Columns& columns, u32 width, u32 warps) {
  for (u32 c = uniform_warp_index(); c < width && columns.has(c); c += warps) {
    i64 at[2];
    locate_column(out, columns.place(c), at);
    const u32 row = first_row + lane() * 4;
    const auto* from = reinterpret_cast<const Vec<float, 4>*>(tile + c * kTilePitch);
    if (row < rows) store_four(out, at, row, rows, from[lane()]);
  }
}

}  // namespace wick::gpu
