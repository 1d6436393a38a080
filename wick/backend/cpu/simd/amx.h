#pragma once

// The tiles of AMX: eight registers of up to 16 rows of 64 bytes, and products of matrices of
// bytes or bf16. For kernel sources only (see isa.h). Tests that define WICK_AMX_STAND_IN define
// the functions themselves (tests/backend/amx_tiles_stand_in.h).

#include <cstdint>

#include "wick/math/fn.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// The operand of LDTILECFG: rows of each tile, and bytes of a row.
struct alignas(64) TileShapes {
  uint8_t palette = 1, first_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  WICK_FN void set(int tile, int row_count, int bytes) {
    rows[tile] = static_cast<uint8_t>(row_count);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

#if !defined(WICK_AMX_STAND_IN)

WICK_FN void configure_tiles(const TileShapes& shapes) {
  asm volatile("ldtilecfg %0" : : "m"(shapes));
}
WICK_FN void release_tiles() { asm volatile("tilerelease"); }
template <int kTile>
WICK_FN void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
/// Rows that are `stride` bytes apart.
template <int kTile>
WICK_FN void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
WICK_FN void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}
/// kSum[m][n] += Σ a[m][4k + i]·b[k][4n + i] over k and i = 0 … 3. The bytes of a are signed, and
/// so are those of b.
template <int kSum, int kA, int kB>
WICK_FN void multiply_signed() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}
/// The same with unsigned bytes in b.
template <int kSum, int kA, int kB>
WICK_FN void multiply_unsigned() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}
/// kSum[m][n] += even + odd for bf16: even = Σ a[m][2k]·b[k][2n], a chain of fma from zero over k,
/// and odd the same of a[m][2k + 1]·b[k][2n + 1]. Numbers below the normal range are zeros.
template <int kSum, int kA, int kB>
WICK_FN void multiply_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
