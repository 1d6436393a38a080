#pragma once

// Decodes the block formats by their definition, one value after another, in f64, which represents
// each value exactly before it is rounded to f32. Shares no code with the library.

#include <cstring>

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

/// Returns value i of a block.
inline float block_value(DType type, const uint8_t* p, int i) {
  constexpr int kNormal[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
  // Returns the nibble of value i; 16 bytes hold 32 values.
  const auto nibble = [i](const uint8_t* q) {
    return i % 32 < 16 ? q[i % 32] % 16 : q[i % 32 - 16] / 16;
  };
  const auto half = [](const uint8_t* at) { return decode_half(read_u16(at), 10); };
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
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

/// Writes a scale into a block, and the factor of the minima if the format has minima. d and m are
/// f16. An e8m0 exponent is set near one for a finite normal d, and to the lowest or highest value
/// otherwise.
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
