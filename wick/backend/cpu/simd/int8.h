#pragma once

// Integer dot products of 16 rows side by side, a row per 32-bit lane, in the widest registers of
// the instruction set. For kernel sources only (see isa.h).
//
// F32x16  16 floats
// U8x64   64 unsigned bytes: four columns of 16 rows
// I8x4    four int8 activations, repeated for every row
// I16x32  two int16 of each of 16 rows
// I32x16  an integer per row, or two sums of 16 bits
//
// load_u8, load_i8  16 integers as floats
// load_e8m0         16 exponents e as the floats 2^(e − 128)
// load_pairs        32 bytes, two per row; load_nibble_pairs their low or high nibbles
// dot_pairs         dot products of two int16 per row with the two int16 at x
//
// Of x86 alone:
// add_pairs         adds the products of 64 bytes and activations to 16-bit sums, two per row
// combine_pairs     adds the two sums of each row, times a factor, to 32-bit sums

#include "wick/backend/cpu/simd/vec16.h"

/// Functions of this layer, and static members of the types built on it.
#define WICK_SIMD static inline __attribute__((always_inline))

namespace wick::cpu::WICK_ISA {
namespace {

using F32x16 = Vec16<float>;

/// 16 f16 at any address.
WICK_SIMD F32x16 load_f16(const uint8_t* p) {
  F32x16 y;
#pragma GCC unroll 4
  for (int i = 0; i < F32x16::kRegisters; ++i) {
    y.v[i] = load_narrow(reinterpret_cast<const f16*>(p) + i * kLanes<float>);
  }
  return y;
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#if defined(__AVX512BW__)
#include "wick/backend/cpu/simd/int8_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "wick/backend/cpu/simd/int8_avx2.h"
#elif defined(__aarch64__)
#define WICK_NEON_INT8 1
#include "wick/backend/cpu/simd/int8_neon.h"
#else
#define WICK_PORTABLE_INT8 1
#include "wick/backend/cpu/simd/int8_portable.h"
#endif
