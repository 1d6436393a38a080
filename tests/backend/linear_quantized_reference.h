#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/backend/block_reference.h"

// The contract of quantized GEMMs from docs/design/numerics/quantised.md, computed one value
// after another. Shares no code with the library.

namespace wick::reference {

/// A block of 32 weights. Weight i is d·factor[i / 16]·quant + m. For q4_k, m is −dmin·minimum, and
/// d and dmin are the superblock's.
struct Block {
  float d = 0, m = 0;
  float dmin = 0;
  int minimum = 0;
  int quant[32];
  int factor[2] = {1, 1};
  bool has_min = false;

  /// Reads block b of a row in file layout.
  Block(DType type, const uint8_t* row, size_t b) {
    const auto bytes = static_cast<size_t>(info(type).block_bytes);
    if (type == DType::q4_k) {
      read_q4_k(row + b / 8 * bytes, static_cast<int>(b % 8));
    } else if (type == DType::q6_k) {
      read_q6_k(row + b / 8 * bytes, static_cast<int>(b % 8));
    } else {
      read_plain(type, row + b * bytes);
    }
  }

  void read_plain(DType type, const uint8_t* p) {
    d = read_f16(p);
    has_min = type == DType::q4_1;
    if (has_min) m = read_f16(p + 2);
    for (int i = 0; i < 32; ++i) {
      switch (type) {
        case DType::q4_0:
          quant[i] = (i < 16 ? p[2 + i] & 15 : p[2 + i - 16] >> 4) - 8;
          break;
        case DType::q4_1:
          quant[i] = i < 16 ? p[4 + i] & 15 : p[4 + i - 16] >> 4;
          break;
        case DType::q5_0:
          quant[i] =
              (i < 16 ? p[6 + i] & 15 : p[6 + i - 16] >> 4) + (p[2 + i / 8] >> i % 8 & 1) * 16 - 16;
          break;
        default:  // q8_0
          quant[i] = p[2 + i] < 128 ? p[2 + i] : p[2 + i] - 256;
      }
    }
  }

  void read_q4_k(const uint8_t* p, int b) {
    const uint8_t* s = p + 4;
    factor[0] = factor[1] = b < 4 ? s[b] % 64 : s[b + 4] % 16 + s[b - 4] / 64 * 16;
    minimum = b < 4 ? s[b + 4] % 64 : s[b + 4] / 16 + s[b] / 64 * 16;
    d = read_f16(p);
    dmin = read_f16(p + 2);
    m = -(dmin * static_cast<float>(minimum));
    has_min = true;
    for (int i = 0; i < 32; ++i) {
      const int byte = p[16 + b / 2 * 32 + i];
      quant[i] = b % 2 == 0 ? byte % 16 : byte / 16;
    }
  }

  void read_q6_k(const uint8_t* p, int b) {
    const int half = b / 4, quarter = b % 4;
    d = read_f16(p + 208);
    for (int i = 0; i < 32; ++i) {
      const int byte = p[64 * half + quarter % 2 * 32 + i];
      const int low = quarter < 2 ? byte % 16 : byte / 16;
      const int high = p[128 + 32 * half + i] / (1 << 2 * quarter) % 4;
      quant[i] = low + 16 * high - 32;
    }
    for (int i = 0; i < 2; ++i) factor[i] = static_cast<int8_t>(p[192 + 2 * b + i]);
  }
};

/// Returns amax/127 rounded up to four significant bits.
inline float activation_scale(float amax) {
  const float quotient = amax / 127.0f;
  const int exponent = std::ilogb(quotient) - 3;
  return static_cast<float>(
      std::ldexp(std::ceil(std::ldexp(static_cast<double>(quotient), -exponent)), exponent));
}

/// Returns the number of consecutive blocks of a row whose activations share a scale.
inline int64_t sharing_blocks(DType weights) { return weights == DType::q4_k ? 4 : 1; }

struct Activations {
  std::vector<float> d;  // scale of each block of 32
  std::vector<int> q;

  Activations(DType weights, const float* x, int64_t k) {
    const int64_t shared = 32 * sharing_blocks(weights);
    for (int64_t at = 0; at < k; at += shared) {
      float amax = 0;
      bool finite = true;
      for (int64_t i = at; i < at + shared; ++i) {
        finite = finite && std::isfinite(x[i]);
        if (finite) amax = std::fmax(amax, std::fabs(x[i]));
      }
      const bool live = finite && amax > 1e-30f;
      const float scale = live ? activation_scale(amax) : 0.0f;
      for (int64_t b = 0; b < shared / 32; ++b) {
        d.push_back(finite ? scale : std::numeric_limits<float>::quiet_NaN());
      }
      const float inverse = live ? 1.0f / scale : 0.0f;
      for (int64_t i = at; i < at + shared; ++i) {
        q.push_back(live ? static_cast<int>(std::nearbyintf(x[i] * inverse)) : 0);
      }
    }
  }

  int sum(size_t block) const {
    int total = 0;
    for (size_t i = 0; i < 32; ++i) total += q[block * 32 + i];
    return total;
  }
};

/// Returns the integer dot product of a block of weights, with their factors, and a block of
/// activations.
inline int block_dot(const Block& w, const Activations& x, size_t block) {
  int total = 0;
  for (size_t i = 0; i < 32; ++i) total += w.factor[i / 16] * w.quant[i] * x.q[block * 32 + i];
  return total;
}

/// Returns the sum of a superblock of q4_k that starts at block `first`.
inline float q4_k_chunk(const uint8_t* row, const Activations& x, size_t first) {
  float p = 0;
  for (size_t half = first; half < first + 8; half += 4) {
    int products = 0, minima = 0;
    float d = 0, dmin = 0;
    for (size_t b = half; b < half + 4; ++b) {
      const Block w(DType::q4_k, row, b);
      products += block_dot(w, x, b);
      minima += w.minimum * x.sum(b);
      d = w.d;
      dmin = w.dmin;
    }
    const float scaled = d * static_cast<float>(products);
    const float t = std::fma(-dmin, static_cast<float>(minima), scaled);
    p = std::fma(x.d[half], t, p);
  }
  return p;
}

/// Returns one output of a type with kernels of its own. `row` is in file layout.
inline float own_dot(DType type, const uint8_t* row, const Activations& x) {
  const size_t blocks = x.d.size();
  float y = 0;
  for (size_t first = 0; first < blocks; first += 8) {
    float p = 0;
    for (size_t b = first; type != DType::q4_k && b < blocks && b < first + 8; ++b) {
      const Block w(type, row, b);
      if (w.has_min) {
        const float scaled = x.d[b] * static_cast<float>(x.sum(b));
        p = std::fma(w.m, scaled, p);
      }
      const float scale = w.d * x.d[b];
      p = std::fma(scale, static_cast<float>(block_dot(w, x, b)), p);
    }
    if (type == DType::q4_k) p = q4_k_chunk(row, x, first);
    y = y + p;
  }
  return y;
}

/// Returns the product [columns, n] of a weight [n, k] and x [columns, k].
inline std::vector<float> product(DType type, const std::vector<uint8_t>& weight, int64_t n,
                                  int64_t k, const float* x, int64_t columns) {
  std::vector<float> y(static_cast<size_t>(n * columns));
  const auto at = [&](int64_t c, int64_t r) -> float& { return y[static_cast<size_t>(c * n + r)]; };
  const auto row = [&](int64_t r) { return weight.data() + bytes_of(type, r * k); };
  if (dtypes::kOwnProducts.contains(type)) {
    for (int64_t c = 0; c < columns; ++c) {
      const Activations activations(type, x + c * k, k);
      for (int64_t r = 0; r < n; ++r) at(c, r) = own_dot(type, row(r), activations);
    }
    return y;
  }
  for (int64_t r = 0; r < n; ++r) {
    const std::vector<float> w = row_values(type, row(r), k);
    for (int64_t c = 0; c < columns; ++c) at(c, r) = decoded_dot(w, x + c * k);
  }
  return y;
}

}  // namespace wick::reference
