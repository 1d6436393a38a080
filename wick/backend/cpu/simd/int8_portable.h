#pragma once

// int8 arithmetic as plain loops, which the compiler vectorises for SSE4; simd/int8.h says
// what the types and functions are.

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/simd/vec16.h"

namespace wick::cpu::WICK_ISA {
namespace {

struct U8x64 {
  uint8_t v[64];
};
struct I8x4 {
  int16_t v[8];  // twice
};
struct I32x16 {
  int32_t v[16];
};
struct I16x32 {
  int16_t v[32];
};

WICK_SIMD U8x64 load_bytes(const uint8_t* p) {
  U8x64 y;
  __builtin_memcpy(&y, p, sizeof y);
  return y;
}
WICK_SIMD void store_bytes(uint8_t* p, const U8x64& v) { __builtin_memcpy(p, &v, sizeof v); }
WICK_SIMD U8x64 low_nibbles(U8x64 v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e & 15);
  return v;
}
WICK_SIMD U8x64 high_nibbles(U8x64 v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e >> 4);
  return v;
}
/// low | bit `bit` of each byte as bit 4.
WICK_SIMD U8x64 add_bit(U8x64 low, const U8x64& bits, int bit) {
  for (int i = 0; i < 64; ++i) {
    low.v[i] = static_cast<uint8_t>(low.v[i] | (bits.v[i] >> bit & 1) << 4);
  }
  return low;
}
/// (v >> shift) & mask of each byte.
WICK_SIMD U8x64 bit_field(U8x64 v, int shift, int mask) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e >> shift & mask);
  return v;
}
/// The top two bits of each byte of `low`, and bit 6 + `bit` of `high` as bit 2.
WICK_SIMD U8x64 top_three(U8x64 low, const U8x64& high, int bit) {
  for (int i = 0; i < 64; ++i) {
    low.v[i] = static_cast<uint8_t>(low.v[i] >> 6 | (high.v[i] >> (4 + bit) & 4));
  }
  return low;
}
/// Entries of a table of 16 bytes.
WICK_SIMD U8x64 look_up(const uint8_t* table, U8x64 nibbles) {
  for (uint8_t& e : nibbles.v) e = table[e];
  return nibbles;
}
WICK_SIMD U8x64 low_six(U8x64 v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e & 63);
  return v;
}
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_SIMD U8x64 top_pairs(U8x64 a, const U8x64& b, const U8x64& c) {
  for (int i = 0; i < 64; ++i) {
    a.v[i] = static_cast<uint8_t>(a.v[i] >> 6 | b.v[i] >> 6 << 2 | c.v[i] >> 6 << 4);
  }
  return a;
}
WICK_SIMD F32x16 load_u8(const uint8_t* p) {
  float y[16];
  for (int r = 0; r < 16; ++r) y[r] = static_cast<float>(p[r]);
  return load_16(y);
}
WICK_SIMD F32x16 load_i8(const uint8_t* p) {
  float y[16];
  for (int r = 0; r < 16; ++r) y[r] = static_cast<float>(static_cast<int8_t>(p[r]));
  return load_16(y);
}
/// 2^(e − 128) of 16 bytes e.
WICK_SIMD F32x16 load_e8m0(const uint8_t* p) {
  uint32_t bits[16];
  for (int r = 0; r < 16; ++r) {
    bits[r] = p[r] < 2 ? 0x00200000u << p[r] : (p[r] - 1u) << 23;
  }
  float y[16];
  __builtin_memcpy(y, bits, sizeof y);
  return load_16(y);
}
WICK_SIMD I8x4 load_quad(const uint8_t* p) {
  int8_t x[4];
  __builtin_memcpy(x, p, sizeof x);
  I8x4 q;
  for (int i = 0; i < 8; ++i) q.v[i] = x[i & 3];
  return q;
}
WICK_SIMD F32x16 to_f32(const I32x16& v) {
  float y[16];
  for (int r = 0; r < 16; ++r) y[r] = static_cast<float>(v.v[r]);
  return load_16(y);
}
WICK_SIMD I16x32 load_pairs(const uint8_t* p) {
  I16x32 y;
  for (int i = 0; i < 32; ++i) y.v[i] = p[i];
  return y;
}
WICK_SIMD I16x32 load_nibble_pairs(const uint8_t* p, int half) {
  I16x32 y;
  for (int i = 0; i < 32; ++i) y.v[i] = static_cast<int16_t>(half == 0 ? p[i] & 15 : p[i] >> 4);
  return y;
}
WICK_SIMD I32x16 dot_pairs(const I16x32& w, const uint8_t* x, I32x16 sums) {
  int16_t two[2];
  __builtin_memcpy(two, x, sizeof two);
  for (int r = 0; r < 16; ++r) sums.v[r] += w.v[2 * r] * two[0] + w.v[2 * r + 1] * two[1];
  return sums;
}
WICK_SIMD I32x16 dot_pairs(const I16x32& w, const uint8_t* x) { return dot_pairs(w, x, I32x16{}); }

}  // namespace
}  // namespace wick::cpu::WICK_ISA
