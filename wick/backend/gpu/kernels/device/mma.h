#pragma once

// The matrix units of both vendors behind one face: 16 rows of a times 16 rows of b.
//
// A wave is what runs in lockstep on the device: 32 lanes, or 64 on AMD's data-centre cards. A lane
// brings pieces: 8 neighbouring k of one row, 16 bytes. Which lane brings which doesn't matter to
// the sums as long as a and b agree, so pieces are dealt out as each unit wants its operands.
//
//   kWave             lanes
//   kDepth            k of one multiplication
//   kPieces           of each operand and lane
//   kSums             of each lane
//   row(lane, piece), chunk(lane, piece)   where a piece comes from: its row, its eight of k
//   multiply<T>(sums, a, b)                sums += a·bᵀ in f32
//   fours(sums, visit)                     visit(row, column, four sums of neighbouring columns)

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// A lane's part of 16 rows.
template <u32 kPieces>
struct Fragment {
  Bytes16 piece[kPieces];
};

#if WICK_MMA

/// NVIDIA from sm_80 on: mma.sync of 16 by 8 by 16. Source: PTX ISA, "Matrix Fragments for
/// mma.m16n8k16". Its rows of k are dealt out so that a lane's are neighbours.
struct MatrixUnit {
  static constexpr u32 kWave = 32, kDepth = 32, kPieces = 2, kSums = 8;
  WICK_DEVICE static u32 row(u32 lane, u32 piece) { return lane / 4 + piece * 8; }
  WICK_DEVICE static u32 chunk(u32 lane, u32) { return lane % 4; }

  template <class T>
  WICK_DEVICE static void multiply(float (&sums)[kSums], const Fragment<kPieces>& a,
                                   const Fragment<kPieces>& b) {
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
#pragma unroll
      for (u32 n = 0; n < 2; ++n) {
        multiply_once<T>(sums + 4 * n, a.piece[0].w + 2 * half, a.piece[1].w + 2 * half,
                         b.piece[n].w + 2 * half);
      }
    }
  }

  /// Lanes 2j and 2j + 1 have two columns each of two rows: each takes one row of all four.
  template <class Visit>
  WICK_DEVICE static void fours(const float (&sums)[kSums], Visit&& visit) {
    const u32 lane_of_wave = lane(), odd = lane_of_wave % 2;
#pragma unroll
    for (u32 n = 0; n < 2; ++n) {
      const float* s = sums + 4 * n;
      const float give[2] = {odd != 0 ? s[0] : s[2], odd != 0 ? s[1] : s[3]};
      const float get[2] = {shuffle_xor<1>(give[0]), shuffle_xor<1>(give[1])};
      const float four[4] = {odd != 0 ? get[0] : s[0], odd != 0 ? get[1] : s[1],
                             odd != 0 ? s[2] : get[0], odd != 0 ? s[3] : get[1]};
      visit(lane_of_wave / 4 + odd * 8, n * 8 + lane_of_wave % 4 / 2 * 4, four);
    }
  }

 private:
  template <class T>
  WICK_DEVICE static void multiply_once(float* sums, const u32* low, const u32* high,
                                        const u32* b) {
    if constexpr (kSame<T, bf16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(low[0]), "r"(high[0]), "r"(low[1]), "r"(high[1]), "r"(b[0]), "r"(b[1]));
    } else {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(low[0]), "r"(high[0]), "r"(low[1]), "r"(high[1]), "r"(b[0]), "r"(b[1]));
    }
  }
};

#elif WICK_WMMA

/// AMD's gfx11 and gfx12: WMMA of 16 by 16 by 16. b goes first, so that a lane's sums are of one
/// row. On gfx11 both halves of a wave bring the same rows and have every other column; on gfx12 a
/// half brings eight of k and has eight columns. Source: "RDNA3" and "RDNA4" Instruction Set
/// Architecture, "Wave Matrix Multiply Accumulate".
struct MatrixUnit {
#if WICK_WMMA == 12
  static constexpr u32 kPieces = 1;
#else
  static constexpr u32 kPieces = 2;
#endif
  static constexpr u32 kWave = 32, kDepth = 16, kSums = 8;
  WICK_DEVICE static u32 row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 chunk(u32 lane, u32 piece) { return kPieces == 2 ? piece : lane / 16; }

  template <class T>
  WICK_DEVICE static void multiply(float (&sums)[kSums], const Fragment<kPieces>& a,
                                   const Fragment<kPieces>& b) {
    typedef float Sums __attribute__((ext_vector_type(8)));
    Sums s = __builtin_bit_cast(Sums, sums);
    if constexpr (kSame<T, bf16>) {
      typedef short Shorts __attribute__((ext_vector_type(8 * kPieces)));
      const Shorts x = __builtin_bit_cast(Shorts, b), y = __builtin_bit_cast(Shorts, a);
#if WICK_WMMA == 12
      s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x, y, s);
#else
      s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, s);
#endif
    } else {
      typedef _Float16 Halves __attribute__((ext_vector_type(8 * kPieces)));
      const Halves x = __builtin_bit_cast(Halves, b), y = __builtin_bit_cast(Halves, a);
#if WICK_WMMA == 12
      s = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x, y, s);
#else
      s = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, s);
#endif
    }
#pragma unroll
    for (u32 i = 0; i < kSums; ++i) sums[i] = s[i];
  }

  template <class Visit>
  WICK_DEVICE static void fours(const float (&sums)[kSums], Visit&& visit) {
    const u32 lane_of_wave = lane(), upper = lane_of_wave / 16;
    float eight[8];  // neighbouring columns from 8·upper on
    if constexpr (kPieces == 1) {
#pragma unroll
      for (u32 i = 0; i < 8; ++i) eight[i] = sums[i];
    } else {  // the halves have even and odd columns, and exchange them
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const float other = shuffle_xor<16>(upper != 0 ? sums[i] : sums[i + 4]);
        const float mine = upper != 0 ? sums[i + 4] : sums[i];
        eight[2 * i] = upper != 0 ? other : mine;
        eight[2 * i + 1] = upper != 0 ? mine : other;
      }
    }
#pragma unroll
    for (u32 j = 0; j < 2; ++j) {
      const float four[4] = {eight[4 * j], eight[4 * j + 1], eight[4 * j + 2], eight[4 * j + 3]};
      visit(lane_of_wave % 16, upper * 8 + j * 4, four);
    }
  }
};

#elif WICK_MFMA

/// AMD's gfx908, gfx90a, gfx942 and later: MFMA of 16 by 16. b goes first, so that a lane's sums
/// are of one row. Source: "CDNA3" Instruction Set Architecture, "Matrix Arithmetic Instructions".
struct MatrixUnit {
  static constexpr u32 kWave = 64, kDepth = 32, kPieces = 1, kSums = 4;
  WICK_DEVICE static u32 row(u32 lane, u32) { return lane % 16; }
  WICK_DEVICE static u32 chunk(u32 lane, u32) { return lane / 16; }

  template <class T>
  WICK_DEVICE static void multiply(float (&sums)[kSums], const Fragment<kPieces>& a,
                                   const Fragment<kPieces>& b) {
    typedef float Sums __attribute__((ext_vector_type(4)));
    Sums s = __builtin_bit_cast(Sums, sums);
    if constexpr (kSame<T, bf16>) {
#if WICK_MFMA == 1
      typedef short Part __attribute__((ext_vector_type(2)));
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        s = __builtin_amdgcn_mfma_f32_16x16x8bf16(part<Part>(b, i), part<Part>(a, i), s, 0, 0, 0);
      }
#else
      typedef short Part __attribute__((ext_vector_type(4)));
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        s = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(part<Part>(b, i), part<Part>(a, i), s, 0, 0,
                                                      0);
      }
#endif
    } else {
#if WICK_MFMA == 2
      // Its products of f16 take numbers below the normal range for zeros; in f32 they count.
      typedef _Float16 Eight __attribute__((ext_vector_type(8)));
      const Eight x = part<Eight>(b, 0), y = part<Eight>(a, 0);
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        s = __builtin_amdgcn_mfma_f32_16x16x4f32(static_cast<float>(x[i]), static_cast<float>(y[i]),
                                                 s, 0, 0, 0);
      }
#else
      typedef _Float16 Part __attribute__((ext_vector_type(4)));
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        s = __builtin_amdgcn_mfma_f32_16x16x16f16(part<Part>(b, i), part<Part>(a, i), s, 0, 0, 0);
      }
#endif
    }
#pragma unroll
    for (u32 i = 0; i < kSums; ++i) sums[i] = s[i];
  }

  template <class Visit>
  WICK_DEVICE static void fours(const float (&sums)[kSums], Visit&& visit) {
    const u32 lane_of_wave = thread_index() % kWave;
    visit(lane_of_wave % 16, lane_of_wave / 16 * 4, sums);
  }

 private:
  /// Part i of a piece.
  template <class Part>
  WICK_DEVICE static Part part(const Fragment<kPieces>& from, u32 i) {
    struct Parts {
      Part part[sizeof(Bytes16) / sizeof(Part)];
    };
    return __builtin_bit_cast(Parts, from.piece[0]).part[i];
  }
};

#endif

}  // namespace wick::gpu
