#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "wick/base/dtype.h"

// The contract of quantised products, one value after the other, straight from
// docs/design/numerics/quantised.md. Shares no code with the library.

namespace wick::reference {

/// A 16-bit float with `mantissa` explicit bits, decoded by its definition.
inline double decode_half(uint16_t bits, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double significand =
      exponent == 0 ? std::ldexp(fraction, -mantissa) : 1.0 + std::ldexp(fraction, -mantissa);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias);
}

/// The nearest value of such a type, ties to even, as a float.
inline float round_to_half(float x, int mantissa) {
  if (!std::isfinite(x) || x == 0.0f) return x;
  const int bias = (1 << (14 - mantissa)) - 1;
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  const double y = std::ldexp(
      std::nearbyint(std::ldexp(static_cast<double>(x), mantissa - exponent)), exponent - mantissa);
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -mantissa), bias);
  if (std::fabs(y) > largest) return std::copysign(std::numeric_limits<float>::infinity(), x);
  return static_cast<float>(y);
}

inline uint16_t read_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

/// Weight i of a block: d·quant + m.
struct Block {
  float d = 0, m = 0;
  int quant[32];
  bool has_min = false;

  Block(DType type, const uint8_t* p) {
    d = static_cast<float>(decode_half(read_u16(p), 10));
    for (int i = 0; i < 32; ++i) {
      switch (type) {
        case DType::q4_0:
          quant[i] = (i < 16 ? p[2 + i] & 15 : p[2 + i - 16] >> 4) - 8;
          break;
        case DType::q4_1:
          quant[i] = i < 16 ? p[4 + i] & 15 : p[4 + i - 16] >> 4;
          break;
        default:  // q8_0
          quant[i] = p[2 + i] < 128 ? p[2 + i] : p[2 + i] - 256;
      }
    }
    if (type == DType::q4_1) {
      has_min = true;
      m = static_cast<float>(decode_half(read_u16(p + 2), 10));
    }
  }
};

/// amax/127 with four significant bits, rounded up.
inline float activation_scale(float amax) {
  const float quotient = amax / 127.0f;
  const int exponent = std::ilogb(quotient) - 3;
  return static_cast<float>(
      std::ldexp(std::ceil(std::ldexp(static_cast<double>(quotient), -exponent)), exponent));
}

struct Activations {
  std::vector<float> d;
  std::vector<int> q;

  Activations(const float* x, int64_t k) {
    for (int64_t b = 0; b < k / 32; ++b) {
      float amax = 0;
      bool finite = true;
      for (int i = 0; i < 32; ++i) {
        finite = finite && std::isfinite(x[b * 32 + i]);
        if (finite) amax = std::fmax(amax, std::fabs(x[b * 32 + i]));
      }
      const bool live = finite && amax > 1e-30f;
      const float scale = live ? activation_scale(amax) : 0.0f;
      d.push_back(finite ? scale : std::numeric_limits<float>::quiet_NaN());
      const float inverse = live ? 1.0f / scale : 0.0f;
      for (int i = 0; i < 32; ++i) {
        q.push_back(live ? static_cast<int>(std::nearbyintf(x[b * 32 + i] * inverse)) : 0);
      }
    }
  }
};

/// One output: `row` in file layout.
inline float dot(DType type, const uint8_t* row, const Activations& x) {
  const int bytes = info(type).block_bytes;
  const size_t blocks = x.d.size();
  float y = 0;
  for (size_t first = 0; first < blocks; first += 8) {
    float p = 0;
    for (size_t b = first; b < blocks && b < first + 8; ++b) {
      const Block w(type, row + b * static_cast<size_t>(bytes));
      int dot = 0, sum = 0;
      for (size_t i = 0; i < 32; ++i) {
        dot += w.quant[i] * x.q[b * 32 + i];
        sum += x.q[b * 32 + i];
      }
      if (w.has_min) {
        const float scaled = x.d[b] * static_cast<float>(sum);
        p = std::fma(w.m, scaled, p);
      }
      const float scale = w.d * x.d[b];
      p = std::fma(scale, static_cast<float>(dot), p);
    }
    y = y + p;
  }
  return y;
}

}  // namespace wick::reference
