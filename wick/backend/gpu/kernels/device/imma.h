#pragma once

// The int8 matrix units of both vendors behind one interface: 16 rows of weights times kColumns
// columns of activations, 32 of k deep, summed in integers.
//
// The 32 of k are two halves of 16; a half is four words of four bytes. A lane supplies kWords
// words of the low half and the same words of the high half, for kSlots rows and for one column.
//
//   kWave                              lanes that run in lockstep
//   kColumns                           columns of a multiplication
//   kWords, kSlots                     words of a half, and rows, that a lane supplies
//   word(lane)                         index of the lane's first word in a half
//   row(lane, slot), column(lane)      rows and column of the lane's operands
//   kResultRows, kResultColumns        results of a lane: i = r · kResultColumns + c
//   result_row(lane, r)                row of a lane's result
//   result_column(lane, c)             column of a lane's result
//   column_at(place), result_place(lane)  an order of columns in which a lane's are neighbours
//   place_of(column)                   the inverse of column_at; AMD gfx11 only
//   apart(column)                      1 if, of the results with one index, those of this
//                                      column lie in the upper 16 of 32 lanes, 0 if in the lower
//                                      16; always 0 where a result's row isn't lane % 16
//   kExchanges                         whether a lane supplies one word and exchange() exists
//   exchange(w)                        transposes 4 by 4 words among four groups of 16 lanes: w
//                                      holds the words of piece lane / 16 before, and word
//                                      lane / 16 of each of the four pieces afterwards
//   low, high, multiply                adds the products of the low half, the high half, or both
//   from, to_float                     the start value of a sum; a sum below 2^22 as a float
//   Start                              from(0) for each result, to be made before a loop

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// A lane's words of the low and of the high half.
template <u32 kCount>
struct ByteHalves {
  u32 low[kCount], high[kCount];
};

#if WICK_MMA

/// NVIDIA, sm_80 and later. Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with integer type".
struct ByteUnit {
  static constexpr u32 kWave = 32, kColumns = 8, kWords = 1, kSlots = 2;
  static constexpr bool kExchanges = false;
  static constexpr u32 kResultRows = 2, kResultColumns = 2, kResults = 4;
  using Rows = ByteHalves<kSlots>;
  using Columns = ByteHalves<1>;
  WICK_DEVICE static u32 word(u32 lane) { return lane % 4; }
  WICK_DEVICE static u32 row(u32 lane, u32 slot) { return lane / 4 + 8 * slot; }
  WICK_DEVICE static u32 column(u32 lane) { return lane / 4; }
  WICK_DEVICE static u32 result_row(u32 lane, u32 r) { return lane / 4 + 8 * r; }
  WICK_DEVICE static u32 result_column(u32 lane, u32 c) { return lane % 4 * 2 + c; }
  WICK_DEVICE static u32 column_at(u32 place) { return place; }
  WICK_DEVICE static u32 result_place(u32 lane) { return lane % 4 * 2; }
  WICK_DEVICE static u32 apart(u32) { return 0; }

  WICK_DEVICE static void half(i32 (&s)[kResults], const u32* rows, u32 column) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%7, %8, %9, %10};"
        : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(column), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]));
  }
  WICK_DEVICE static void low(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.low, b.low[0]);
  }
  WICK_DEVICE static void high(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.high, b.high[0]);
  }
  WICK_DEVICE static void multiply(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])
        : "r"(a.low[0]), "r"(a.low[1]), "r"(a.high[0]), "r"(a.high[1]), "r"(b.low[0]),
          "r"(b.high[0]), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]));
  }

  // Sums start at the bit pattern of 1.5·2^23. Read as floats they are too large by this number: a
  // subtraction is faster than a conversion.
  WICK_DEVICE static i32 from(i32 x) { return x + 0x4b400000; }
  struct Start {
    WICK_DEVICE i32 operator[](u32) const { return from(0); }
  };
  WICK_DEVICE static float to_float(i32 sum) {
    return bits_f32(static_cast<u32>(sum)) - 12582912.0f;
  }
};

#elif WICK_WMMA

/// AMD gfx11 and gfx12 (WMMA). Activations are the first operand, which puts all results of a lane
/// in one row. On gfx11 both halves of a wave supply the same words, and each has every other
/// column of the results. On gfx12 each half supplies eight of k and has eight columns. Source:
/// "RDNA3" and "RDNA4" Instruction Set Architecture, "Wave Matrix Multiply Accumulate".
struct ByteUnit {
#if WICK_WMMA == 12
  static constexpr u32 kWords = 2;
  WICK_DEVICE static u32 word(u32 lane) { return lane / 16 * 2; }
  WICK_DEVICE static u32 result_column(u32 lane, u32 c) { return lane / 16 * 8 + c; }
  WICK_DEVICE static u32 column_at(u32 place) { return place; }
  WICK_DEVICE static u32 apart(u32 column) { return column / 8 % 2; }
#else
  static constexpr u32 kWords = 4;
  WICK_DEVICE static u32 word(u32) { return 0; }
  WICK_DEVICE static u32 result_column(u32 lane, u32 c) { return c * 2 + lane / 16; }
  WICK_DEVICE static u32 column_at(u32 place) { return place % 8 * 2 + place / 8; }
  WICK_DEVICE static u32 place_of(u32 column) { return column / 2 + column % 2 * 8; }
  WICK_DEVICE static u32 apart(u32 column) { return column % 2; }
#endif
  static constexpr u32 kWave = 32, kColumns = 16, kSlots = 1;
  static constexpr bool kExchanges = false;
  static constexpr u32 kResultRows = 1, kResultColumns = 8, kResults = 8;
  using Rows = ByteHalves<kWords>;
  using Columns = ByteHalves<kWords>;
  WICK_DEVICE static u32 row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 column(u32 lane) { return lane % 16; }
  WICK_DEVICE static u32 result_row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 result_place(u32 lane) { return lane / 16 * 8; }

  typedef i32 Sums __attribute__((ext_vector_type(8)));
  WICK_DEVICE static void half(i32 (&s)[kResults], const u32* rows, const u32* columns) {
    typedef i32 Words __attribute__((ext_vector_type(kWords)));
    Words a, b;
    Sums sums;
#pragma unroll
    for (u32 i = 0; i < kWords; ++i) {
      a[i] = static_cast<i32>(rows[i]);
      b[i] = static_cast<i32>(columns[i]);
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i) sums[i] = s[i];
#if WICK_WMMA == 12
    sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, b, true, a, sums, false);
#else
    sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, b, true, a, sums, false);
#endif
#pragma unroll
    for (u32 i = 0; i < 8; ++i) s[i] = sums[i];
  }
  WICK_DEVICE static void low(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.low, b.low);
  }
  WICK_DEVICE static void high(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.high, b.high);
  }
  WICK_DEVICE static void multiply(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.low, b.low);
    half(s, a.high, b.high);
  }
  WICK_DEVICE static i32 from(i32 x) { return x; }
  /// The compiler copies zeros that it knows of to registers before each multiplication.
  struct Start {
    Sums sums = {};
    WICK_DEVICE Start() { asm volatile("" : "+v"(sums)); }
    WICK_DEVICE i32 operator[](u32 i) const { return sums[i]; }
  };
  WICK_DEVICE static float to_float(i32 sum) { return static_cast<float>(sum); }
};

#elif WICK_MFMA

/// AMD gfx908, gfx90a and gfx942 (MFMA). Activations are the first operand, which puts all results
/// of a lane in one row. Source: "CDNA2" and "CDNA3" Instruction Set Architecture, "Matrix
/// Arithmetic Instructions".
struct ByteUnit {
  static constexpr u32 kWave = 64, kColumns = 16, kWords = 1, kSlots = 1;
  static constexpr bool kExchanges = true;
  static constexpr u32 kResultRows = 1, kResultColumns = 4, kResults = 4;
  using Rows = ByteHalves<1>;
  using Columns = ByteHalves<1>;
  WICK_DEVICE static u32 word(u32 lane) { return lane / 16; }
  WICK_DEVICE static u32 row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 column(u32 lane) { return lane % 16; }
  WICK_DEVICE static u32 result_row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 result_column(u32 lane, u32 c) { return lane / 16 * 4 + c; }
  WICK_DEVICE static u32 column_at(u32 place) { return place; }
  WICK_DEVICE static u32 result_place(u32 lane) { return lane / 16 * 4; }
  WICK_DEVICE static u32 apart(u32 column) { return column / 4 % 2; }

  WICK_DEVICE static void exchange(u32 (&w)[4]) {
    const u32 lane = thread_index() % kWave;
    const bool upper = lane / 32 != 0, odd = lane / 16 % 2 != 0;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const u32 mine = upper ? w[i] : w[2 + i];
      const auto other = static_cast<u32>(
          __builtin_amdgcn_ds_bpermute(static_cast<i32>((lane ^ 32) * 4), static_cast<i32>(mine)));
      w[i] = upper ? other : w[i];
      w[2 + i] = upper ? w[2 + i] : other;
    }
#pragma unroll
    for (u32 i = 0; i < 4; i += 2) {
      const u32 other = shuffle_xor<16>(odd ? w[i] : w[i + 1]);
      w[i] = odd ? other : w[i];
      w[i + 1] = odd ? w[i + 1] : other;
    }
  }

  typedef i32 Sums __attribute__((ext_vector_type(4)));
#if WICK_MFMA == 3
  WICK_DEVICE static void both(i32 (&s)[kResults], u32 row_low, u32 row_high, u32 column_low,
                               u32 column_high) {
    const Sums sums = __builtin_amdgcn_mfma_i32_16x16x32_i8(
        static_cast<i64>(column_low | u64{column_high} << 32),
        static_cast<i64>(row_low | u64{row_high} << 32), Sums{s[0], s[1], s[2], s[3]}, 0, 0, 0);
#pragma unroll
    for (u32 i = 0; i < kResults; ++i) s[i] = sums[i];
  }
  WICK_DEVICE static void low(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    both(s, a.low[0], 0, b.low[0], 0);
  }
  WICK_DEVICE static void high(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    both(s, a.high[0], 0, b.high[0], 0);
  }
  WICK_DEVICE static void multiply(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    both(s, a.low[0], a.high[0], b.low[0], b.high[0]);
  }
#else
  WICK_DEVICE static void half(i32 (&s)[kResults], u32 row, u32 column) {
    const Sums sums = __builtin_amdgcn_mfma_i32_16x16x16i8(
        static_cast<i32>(column), static_cast<i32>(row), Sums{s[0], s[1], s[2], s[3]}, 0, 0, 0);
#pragma unroll
    for (u32 i = 0; i < kResults; ++i) s[i] = sums[i];
  }
  WICK_DEVICE static void low(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.low[0], b.low[0]);
  }
  WICK_DEVICE static void high(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    half(s, a.high[0], b.high[0]);
  }
  WICK_DEVICE static void multiply(i32 (&s)[kResults], const Rows& a, const Columns& b) {
    low(s, a, b);
    high(s, a, b);
  }
#endif
  WICK_DEVICE static i32 from(i32 x) { return x; }
  struct Start {
    WICK_DEVICE i32 operator[](u32) const { return from(0); }
  };
  WICK_DEVICE static float to_float(i32 sum) { return static_cast<float>(sum); }
};

#endif

}  // namespace wick::gpu
