#pragma once

// Portable code for the instructions of AMX (simd/amx.h), so that tests of kernels run on every
// processor. It ends the process where the processor would raise an invalid opcode. Include it
// before the source of the kernels, with WICK_AMX_STAND_IN defined.

#include <cstdint>
#include <cstdlib>

#include "wick/backend/cpu/simd/amx.h"

namespace wick::cpu::WICK_ISA {
namespace {

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
/// Demands that the shapes of three tiles fit a product.
template <int kSum, int kA, int kB>
void demand_shapes() {
  const TileShapes& s = tiles.shapes;
  demand(kSum != kA && kSum != kB && kA != kB);
  demand(s.rows[kSum] == s.rows[kA] && s.row_bytes[kSum] == s.row_bytes[kB] &&
         s.row_bytes[kA] == 4 * s.rows[kB] && s.row_bytes[kB] % 4 == 0);
}
/// B: the type of b's bytes.
template <int kSum, int kA, int kB, class B>
void multiply_bytes() {
  const TileShapes& s = tiles.shapes;
  demand_shapes<kSum, kA, kB>();
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

/// x, or a zero of its sign if it is below the normal range.
inline float without_denormal(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}
/// The bf16 at the beginning of these bytes.
inline float bf16_at(const uint8_t* bytes) {
  const uint32_t word = static_cast<uint32_t>(bytes[0]) << 16 | static_cast<uint32_t>(bytes[1])
                                                                    << 24;
  float x;
  __builtin_memcpy(&x, &word, 4);
  return without_denormal(x);
}
template <int kSum, int kA, int kB>
void multiply_bf16() {
  const TileShapes& s = tiles.shapes;
  demand_shapes<kSum, kA, kB>();
  for (int m = 0; m < s.rows[kA]; ++m) {
    for (int n = 0; n < s.row_bytes[kSum] / 4; ++n) {
      float chains[2] = {};
      for (int k = 0; k < s.rows[kB]; ++k) {
        for (int i = 0; i < 2; ++i) {
          chains[i] = without_denormal(__builtin_fmaf(bf16_at(tiles.data[kA][m] + 4 * k + 2 * i),
                                                      bf16_at(tiles.data[kB][k] + 4 * n + 2 * i),
                                                      chains[i]));
        }
      }
      float sum;
      __builtin_memcpy(&sum, tiles.data[kSum][m] + 4 * n, 4);
      sum = without_denormal(without_denormal(sum) + without_denormal(chains[0] + chains[1]));
      __builtin_memcpy(tiles.data[kSum][m] + 4 * n, &sum, 4);
    }
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
