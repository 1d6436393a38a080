#pragma once

// The tiles of AMX: eight registers of up to 16 rows of 64 bytes, and products of matrices of
// bytes. For kernel sources only (see isa.h). With WICK_AMX_STAND_IN, portable code takes the place
// of the instructions, so that tests of kernels run on every processor; it ends the process where
// the processor would raise an invalid opcode.

#include <cstdint>
#include <cstdlib>

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

#if defined(WICK_AMX_STAND_IN)

struct StandInTiles {
  TileShapes shapes;
  uint8_t data[8][16][64];
};
thread_local StandInTiles tiles;

inline void demand(bool holds) {
  if (!holds) std::abort();
}
inline void configure_tiles(const TileShapes& shapes) {
  for (int t = 0; t < 8; ++t) demand(shapes.rows[t] <= 16 && shapes.row_bytes[t] <= 64);
  tiles = {shapes, {}};
}
inline void release_tiles() { tiles = {}; }
template <int kTile>
void zero_tile() {
  for (auto& row : tiles.data[kTile]) {
    for (uint8_t& byte : row) byte = 0;
  }
}
template <int kTile>
void load_tile(const void* from, int64_t stride) {
  demand(tiles.shapes.rows[kTile] > 0);
  zero_tile<kTile>();
  for (int r = 0; r < tiles.shapes.rows[kTile]; ++r) {
    __builtin_memcpy(tiles.data[kTile][r], static_cast<const uint8_t*>(from) + r * stride,
                     tiles.shapes.row_bytes[kTile]);
  }
}
template <int kTile>
void store_tile(void* to, int64_t stride) {
  for (int r = 0; r < tiles.shapes.rows[kTile]; ++r) {
    __builtin_memcpy(static_cast<uint8_t*>(to) + r * stride, tiles.data[kTile][r],
                     tiles.shapes.row_bytes[kTile]);
  }
}
/// B: the type of b's bytes.
template <int kSum, int kA, int kB, class B>
void multiply_bytes() {
  const TileShapes& s = tiles.shapes;
  demand(kSum != kA && kSum != kB && kA != kB);
  demand(s.rows[kSum] == s.rows[kA] && s.row_bytes[kSum] == s.row_bytes[kB] &&
         s.row_bytes[kA] == 4 * s.rows[kB] && s.row_bytes[kB] % 4 == 0);
  for (int m = 0; m < s.rows[kA]; ++m) {
    for (int n = 0; n < s.row_bytes[kSum] / 4; ++n) {
      int32_t sum;
      __builtin_memcpy(&sum, tiles.data[kSum][m] + 4 * n, 4);
      for (int k = 0; k < s.row_bytes[kA]; ++k) {
        sum += static_cast<int8_t>(tiles.data[kA][m][k]) *
               static_cast<B>(tiles.data[kB][k / 4][4 * n + k % 4]);
      }
      __builtin_memcpy(tiles.data[kSum][m] + 4 * n, &sum, 4);
    }
  }
}
template <int kSum, int kA, int kB>
void multiply_signed() {
  multiply_bytes<kSum, kA, kB, int8_t>();
}
template <int kSum, int kA, int kB>
void multiply_unsigned() {
  multiply_bytes<kSum, kA, kB, uint8_t>();
}

#else

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

#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
