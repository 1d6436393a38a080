#pragma once

// Decodes the block formats by their definition, one value after another, in f64, which represents
// each value exactly before it is rounded to f32. Shares no code with the library.

#include <bit>
#include <cstring>

#include "tests/backend/codebook_reference.h"
#include "tests/backend/half_reference.h"
#include "wick/base/quant.h"

namespace wick::reference {

/// Returns bits [first, first + count) of bytes that form a little-endian number.
inline int bits_at(const uint8_t* bytes, int first, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) {
    value += (bytes[(first + i) / 8] >> (first + i) % 8) % 2 << i;
  }
  return value;
}

/// Returns the scale or minimum of block b of q4_k and q5_k: six bits each, packed in 12 bytes.
inline int packed_scale(const uint8_t* s, int b) {
  return b < 4 ? s[b] % 64 : s[b + 4] % 16 + s[b - 4] / 64 * 16;
}
inline int packed_minimum(const uint8_t* s, int b) {
  return b < 4 ? s[b + 4] % 64 : s[b + 4] / 16 + s[b] / 64 * 16;
}

inline double half_at(const uint8_t* at) { return decode_half(read_u16(at), 10); }

/// Returns a code of eight values or of four, in the order of the values.
inline int code_of_eight(uint32_t entry, int l) {
  return static_cast<int>(entry >> 3 * (7 - l)) % 8;
}
inline int code_of_four(uint32_t entry, int l) {
  return static_cast<int>(entry >> 3 * (3 - l)) % 8;
}
/// Returns −1 or 1 for value l of eight, of which seven bits from `first` on have the signs and the
/// number of negative values is even.
inline int sign_of_seven(const uint8_t* bytes, int first, int l) {
  const auto seven = static_cast<unsigned>(bits_at(bytes, first, 7));
  return (l < 7 ? seven >> l : static_cast<unsigned>(std::popcount(seven))) % 2 == 0 ? 1 : -1;
}

/// Returns value i of a block of a format with a codebook. Indices, signs and scales are found by
/// their bit offsets in the fields.
inline float codebook_value(DType type, const uint8_t* p, int i) {
  constexpr int kThree[] = {8, 25, 43}, kEight[] = {4, 12, 20, 28, 36, 44, 52, 62};
  const int b = i / 32, g = i / 8, l = i % 8;
  // Returns 2·s + 1 for the s of `count` bits from `first` on.
  const auto odd = [](const uint8_t* at, int first, int count) {
    return 2 * bits_at(at, first, count) + 1;
  };
  switch (type) {
    case DType::iq2_xxs: {  // of each 64 bits: four indices, four times seven signs, the scale
      const uint8_t* of = p + 2 + 8 * b;
      const int m = kThree[code_of_eight(kEights256[of[g % 4]], l)];
      const int sign = sign_of_seven(of, 32 + 7 * (g % 4), l);
      return static_cast<float>(half_at(p) * odd(of, 60, 4) / 8 * m * sign);
    }
    case DType::iq2_xs: {
      const int m = kThree[code_of_eight(kEights512[bits_at(p + 2, 16 * g, 9)], l)];
      const int sign = sign_of_seven(p + 2, 16 * g + 9, l);
      return static_cast<float>(half_at(p) * odd(p + 66, i / 16 * 4, 4) / 8 * m * sign);
    }
    case DType::iq2_s: {
      const int index = p[2 + g] + 256 * bits_at(p + 66, 2 * g, 2);
      const int m = kThree[code_of_eight(kEights1024[index], l)];
      const int sign = 1 - 2 * bits_at(p + 34, i, 1);
      return static_cast<float>(half_at(p) * odd(p + 74, i / 16 * 4, 4) / 8 * m * sign);
    }
    case DType::iq3_xxs: {
      const int m = kEight[code_of_four(kFours256[p[2 + i / 4]], i % 4)];
      const int sign = sign_of_seven(p + 66, 32 * b + 7 * (g % 4), l);
      return static_cast<float>(half_at(p) * odd(p + 66, 32 * b + 28, 4) / 4 * m * sign);
    }
    case DType::iq3_s: {
      const int index = p[2 + i / 4] + 256 * bits_at(p + 66, i / 4, 1);
      const int m = 2 * code_of_four(kFours512[index], i % 4) + 1;
      const int sign = 1 - 2 * bits_at(p + 74, i, 1);
      return static_cast<float>(half_at(p) * odd(p + 106, 4 * b, 4) * m * sign);
    }
    case DType::iq1_s: {
      const int index = p[2 + g] + 256 * bits_at(p + 34, 16 * b + 3 * (g % 4), 3);
      const double shift = bits_at(p + 34, 16 * b + 15, 1) == 0 ? 0.125 : -0.125;
      const double level = code_of_eight(kEights2048[index], l) - 1 + shift;
      return static_cast<float>(half_at(p) * odd(p + 34, 16 * b + 12, 3) * level);
    }
    case DType::iq1_m: {
      int d = 0;
      for (int w = 0; w < 4; ++w) d += bits_at(p + 48, 16 * w + 12, 4) << 4 * w;
      const int index = p[g] + 256 * bits_at(p + 32, 4 * g, 3);
      const double shift = bits_at(p + 32, 4 * g + 3, 1) == 0 ? 0.125 : -0.125;
      const double level = code_of_eight(kEights2048[index], l) - 1 + shift;
      const int scale = odd(p + 48, b / 2 * 16 + b % 2 * 6 + i / 16 % 2 * 3, 3);
      return static_cast<float>(decode_half(static_cast<uint16_t>(d), 10) * scale * level);
    }
    default:
      return NAN;
  }
}

/// Returns digit n of the five digits in base 3 of which a byte has the first 256th.
inline int base_3_digit(int byte, int n) {
  double fraction = byte / 256.0;
  for (int i = 0; i < n; ++i) fraction = 3 * fraction - std::floor(3 * fraction);
  return static_cast<int>(std::floor(3 * fraction));
}

/// Returns value i of a block.
inline float block_value(DType type, const uint8_t* p, int i) {
  constexpr int kNormal[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
  // Returns the nibble of value i; 16 bytes hold 32 values.
  const auto nibble = [i](const uint8_t* q) {
    return i % 32 < 16 ? q[i % 32] % 16 : q[i % 32 - 16] / 16;
  };
  const auto half = half_at;
  const auto as_int8 = [](int byte) { return byte < 128 ? byte : byte - 256; };
  const int b = i / 32, l = i % 32;  // of a superblock
  switch (type) {
    case DType::q4_0:
      return static_cast<float>(half(p) * (nibble(p + 2) - 8));
    case DType::q4_1:
      return static_cast<float>(half(p) * nibble(p + 4) + half(p + 2));
    case DType::q5_0:
      return static_cast<float>(half(p) * (nibble(p + 6) + 16 * bits_at(p + 2, i, 1) - 16));
    case DType::q5_1:
      return static_cast<float>(half(p) * (nibble(p + 8) + 16 * bits_at(p + 4, i, 1)) +
                                half(p + 2));
    case DType::q8_0:
      return static_cast<float>(half(p) * as_int8(p[2 + i]));
    case DType::q8_1:
      return static_cast<float>(half(p) * as_int8(p[4 + i]));
    // 32 bytes hold 128 values, of which each set of 32 takes two bits per byte.
    case DType::q2_k: {
      const int q = bits_at(p + 16 + b / 4 * 32 + l, b % 4 * 2, 2), s = p[i / 16];
      return static_cast<float>(half(p + 80) * (s % 16) * q - half(p + 82) * (s / 16));
    }
    case DType::q3_k: {
      const int q = bits_at(p + 32 + b / 4 * 32 + l, b % 4 * 2, 2) + 4 * bits_at(p + l, b, 1) - 4;
      const uint8_t* s = p + 96;
      const int part = i / 16, low = part < 8 ? s[part] % 16 : s[part - 8] / 16;
      const int high = bits_at(s + 8 + part % 4, part / 4 * 2, 2);
      return static_cast<float>(half(p + 108) * (low + 16 * high - 32) * q);
    }
    case DType::q4_k: {
      const int q = bits_at(p + 16 + b / 2 * 32 + l, b % 2 * 4, 4);
      return static_cast<float>(half(p) * packed_scale(p + 4, b) * q -
                                half(p + 2) * packed_minimum(p + 4, b));
    }
    case DType::q5_k: {
      const int q = bits_at(p + 48 + b / 2 * 32 + l, b % 2 * 4, 4) + 16 * bits_at(p + 16 + l, b, 1);
      return static_cast<float>(half(p) * packed_scale(p + 4, b) * q -
                                half(p + 2) * packed_minimum(p + 4, b));
    }
    case DType::q6_k: {
      const int low = bits_at(p + b / 4 * 64 + b % 2 * 32 + l, b % 4 < 2 ? 0 : 4, 4);
      const int q = low + 16 * bits_at(p + 128 + b / 4 * 32 + l, b % 4 * 2, 2) - 32;
      return static_cast<float>(half(p + 208) * as_int8(p[192 + i / 16]) * q);
    }
    case DType::q8_k: {
      float d;
      std::memcpy(&d, p, 4);
      return static_cast<float>(static_cast<double>(d) * as_int8(p[4 + i]));
    }
    case DType::iq4_nl:
      return static_cast<float>(half(p) * kNormal[nibble(p + 2)]);
    case DType::iq4_xs: {
      const int scale = bits_at(p + 4, 4 * b, 4) + 16 * bits_at(p + 2, 2 * b, 2) - 32;
      return static_cast<float>(half(p) * scale * kNormal[nibble(p + 8 + 16 * b)]);
    }
    case DType::mxfp4: {  // one sign bit, two exponent bits, one mantissa bit
      const int q = nibble(p + 1), exponent = q / 2 % 4;
      const double size = exponent == 0 ? q % 2 * 0.5 : std::ldexp(1 + q % 2 * 0.5, exponent - 1);
      const double value = std::ldexp(size, p[0] - 127);
      return static_cast<float>(q >= 8 && value != 0 ? -value : value);
    }
    case DType::nvfp4: {  // as mxfp4, with an unsigned e4m3 for each 16 values, whose NaN is zero
      const int byte = p[4 + i / 16 * 8 + i % 8], q = i % 16 < 8 ? byte % 16 : byte / 16;
      const int s = p[i / 16], e = s / 8 % 16;
      const double scale =
          s == 127 ? 0 : std::ldexp(s % 8 + (e == 0 ? 0 : 8), (e == 0 ? 1 : e) - 10);
      const int exponent = q / 2 % 4;
      const double size = exponent == 0 ? q % 2 * 0.5 : std::ldexp(1 + q % 2 * 0.5, exponent - 1);
      return static_cast<float>(q > 8 ? -size * scale : size * scale);
    }
    case DType::tq1_0: {  // 32 bytes of five values, 16 bytes of five, 4 bytes of four
      const int digit = i < 160   ? base_3_digit(p[i % 32], i / 32)
                        : i < 240 ? base_3_digit(p[32 + i % 16], (i - 160) / 16)
                                  : base_3_digit(p[48 + i % 4], (i - 240) / 4);
      return static_cast<float>(half(p + 52) * (digit - 1));
    }
    case DType::tq2_0:
      return static_cast<float>(half(p + 64) * (bits_at(p + i / 128 * 32 + l, b % 4 * 2, 2) - 1));
    case DType::q1_0:
      return static_cast<float>(bits_at(p + 2, i, 1) == 1 ? half(p) : -half(p));
    case DType::q2_0:
      return static_cast<float>(half(p) * (bits_at(p + 2, 2 * i, 2) - 1));
    case DType::iq1_s:
    case DType::iq1_m:
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s:
      return codebook_value(type, p, i);
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

/// Returns the f16 of a block whose bits are the highest four of each of four words, and writes it.
inline uint16_t read_nibbles(const uint8_t* at) {
  uint16_t bits = 0;
  for (int w = 0; w < 4; ++w) bits = static_cast<uint16_t>(bits | at[2 * w + 1] / 16 << 4 * w);
  return bits;
}
inline void write_nibbles(uint8_t* at, uint16_t bits) {
  for (int w = 0; w < 4; ++w) {
    at[2 * w + 1] = static_cast<uint8_t>(at[2 * w + 1] % 16 + (bits >> 4 * w) % 16 * 16);
  }
}

/// Writes a scale into a block, and the factor of the minima if the format has minima. d and m are
/// f16. Scales of other types are set near one for a finite normal d, and to the lowest or highest
/// value otherwise.
inline void write_scales(DType type, uint8_t* block, uint16_t d, uint16_t m) {
  const QuantInfo& row = quant(type);
  const auto scale = static_cast<float>(decode_half(d, 10));
  switch (row.scale) {
    case QuantScale::f16:
      std::memcpy(block + row.at, &d, 2);
      break;
    case QuantScale::f32:
      std::memcpy(block + row.at, &scale, 4);
      break;
    case QuantScale::e8m0:
      block[row.at] = static_cast<uint8_t>(std::isinf(scale)             ? 255
                                           : std::isnan(scale)           ? 254
                                           : std::fabs(scale) < 0x1p-14f ? d % 4
                                           : std::fabs(scale) > 6e4f     ? 250
                                                                         : 118 + d % 8);
      break;
    case QuantScale::e4m3:
      for (int part = 0; part < info(type).block_elems / row.part; ++part) {
        block[row.at + part] =
            static_cast<uint8_t>(std::isinf(scale)             ? 0xFF
                                 : std::isnan(scale)           ? 0x7F
                                 : std::fabs(scale) < 0x1p-14f ? part + d % 4
                                 : std::fabs(scale) > 6e4f     ? 0x7E - part
                                                               : 16 + (d + part) % 16);
      }
      break;
    case QuantScale::nibbles:
      write_nibbles(block + row.at, d);
  }
  if (row.has_minimum()) std::memcpy(block + row.minimum_at, &m, 2);
}

/// Decodes a row of k values.
inline std::vector<float> row_values(DType type, const uint8_t* row, int64_t k) {
  std::vector<float> values;
  const int64_t each = info(type).block_elems;
  for (int64_t i = 0; i < k; ++i) {
    const uint8_t* block = row + i / each * info(type).block_bytes;
    values.push_back(block_value(type, block, static_cast<int>(i % each)));
  }
  return values;
}

/// Returns one output of a GEMM with a type that has no kernels of its own.
inline float decoded_dot(const std::vector<float>& w, const float* x) {
  float y = 0;
  for (size_t first = 0; first < w.size(); first += 256) {
    float p = 0;
    for (size_t i = first; i < w.size() && i < first + 256; ++i) p = std::fma(w[i], x[i], p);
    y = y + p;
  }
  return y;
}

}  // namespace wick::reference
