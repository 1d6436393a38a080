#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/backend/block_reference.h"

// The contract of quantized GEMMs from docs/design/numerics/quantised.md, computed one value
// after another. Shares no code with the library.

namespace wick::reference {

/// A block of 32 weights. Weight i is d·factor[i / 16]·quant[i] + m. In superblocks with minima, d
/// and dmin are the superblock's, and m of weight i is −dmin·minimum[i / 16].
struct Block {
  float d = 0, m = 0;
  float dmin = 0;
  int quant[32];
  int factor[2] = {1, 1};
  int minimum[2] = {0, 0};

  /// Reads block b of a row in file layout.
  Block(DType type, const uint8_t* row, size_t b) {
    const auto bytes = static_cast<size_t>(info(type).block_bytes);
    if (info(type).block_elems == 256) {
      read_part(type, row + b / 8 * bytes, static_cast<int>(b % 8));
    } else {
      read_plain(type, row + b * bytes);
    }
  }

  void read_plain(DType type, const uint8_t* p) {
    constexpr int kNormal[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
    constexpr int kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    d = type == DType::mxfp4 ? std::ldexp(1.0f, p[0] - 128) : read_f16(p);
    if (type == DType::q4_1 || type == DType::q5_1) m = read_f16(p + 2);
    for (int i = 0; i < 32; ++i) {
      // Returns the nibble of weight i of the sixteen bytes at q.
      const auto nibble = [i](const uint8_t* q) { return i < 16 ? q[i] % 16 : q[i - 16] / 16; };
      switch (type) {
        case DType::q4_0:
          quant[i] = nibble(p + 2) - 8;
          break;
        case DType::q4_1:
          quant[i] = nibble(p + 4);
          break;
        case DType::q5_0:
          quant[i] = nibble(p + 6) + 16 * bits_at(p + 2, i, 1) - 16;
          break;
        case DType::q5_1:
          quant[i] = nibble(p + 8) + 16 * bits_at(p + 4, i, 1);
          break;
        case DType::iq4_nl:
          quant[i] = kNormal[nibble(p + 2)];
          break;
        case DType::mxfp4:
          quant[i] = kTwiceE2m1[nibble(p + 1)];
          break;
        default:  // q8_0
          quant[i] = p[2 + i] < 128 ? p[2 + i] : p[2 + i] - 256;
      }
    }
  }

  /// Reads block b of the superblock at p.
  void read_part(DType type, const uint8_t* p, int b) {
    const QuantInfo& row = wick::quant(type);
    d = read_f16(p + row.at);
    if (row.has_minimum()) dmin = read_f16(p + row.minimum_at);
    for (int half = 0; half < 2; ++half) {
      const int part = 2 * b + half;
      switch (type) {
        case DType::q2_k:
          factor[half] = p[part] % 16;
          minimum[half] = p[part] / 16;
          break;
        case DType::q3_k:
          factor[half] = bits_at(p + 96 + part % 8, part / 8 * 4, 4) +
                         16 * bits_at(p + 104 + part % 4, part / 4 * 2, 2) - 32;
          break;
        case DType::q6_k:
          factor[half] = static_cast<int8_t>(p[192 + part]);
          break;
        case DType::iq4_xs:
          factor[half] = bits_at(p + 4, 4 * b, 4) + 16 * bits_at(p + 2, 2 * b, 2) - 32;
          break;
        default:  // q4_k, q5_k
          factor[half] = packed_scale(p + 4, b);
          minimum[half] = packed_minimum(p + 4, b);
      }
    }
    for (int i = 0; i < 32; ++i) {
      // The byte of weight i if each 32 bytes hold 64 or 128 weights.
      const int by_two = b / 2 * 32 + i, by_four = b / 4 * 32 + i;
      switch (type) {
        case DType::q2_k:
          quant[i] = bits_at(p + 16 + by_four, b % 4 * 2, 2);
          break;
        case DType::q3_k:
          quant[i] = bits_at(p + 32 + by_four, b % 4 * 2, 2) + 4 * bits_at(p + i, b, 1) - 4;
          break;
        case DType::q4_k:
          quant[i] = bits_at(p + 16 + by_two, b % 2 * 4, 4);
          break;
        case DType::q5_k:
          quant[i] = bits_at(p + 48 + by_two, b % 2 * 4, 4) + 16 * bits_at(p + 16 + i, b, 1);
          break;
        case DType::q6_k:
          quant[i] = bits_at(p + b / 4 * 64 + b % 2 * 32 + i, b % 4 / 2 * 4, 4) +
                     16 * bits_at(p + 128 + by_four, b % 4 * 2, 2) - 32;
          break;
        default: {  // iq4_xs: the sixteen bytes of a block are those of iq4_nl
          uint8_t plain[18] = {};
          std::memcpy(plain + 2, p + 8 + 16 * b, 16);
          const Block block(DType::iq4_nl, plain, 0);
          quant[i] = block.quant[i];
        }
      }
    }
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
inline int64_t sharing_blocks(DType weights) {
  return weights == DType::q2_k || weights == DType::q4_k || weights == DType::q5_k ? 4 : 1;
}

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

  /// Returns the sum of half a block.
  int half_sum(size_t block, size_t half) const {
    int total = 0;
    for (size_t i = 0; i < 16; ++i) total += q[block * 32 + half * 16 + i];
    return total;
  }
  int sum(size_t block) const { return half_sum(block, 0) + half_sum(block, 1); }
};

/// Returns the integer dot product of a block of weights, with their factors, and a block of
/// activations.
inline int block_dot(const Block& w, const Activations& x, size_t block) {
  int total = 0;
  for (size_t i = 0; i < 32; ++i) total += w.factor[i / 16] * w.quant[i] * x.q[block * 32 + i];
  return total;
}

/// Returns the blocks of a row in file layout.
inline std::vector<Block> blocks_of(DType type, const uint8_t* row, int64_t k) {
  std::vector<Block> blocks;
  for (size_t b = 0; b < static_cast<size_t>(k) / 32; ++b) blocks.emplace_back(type, row, b);
  return blocks;
}

/// Returns the sum of a superblock with minima that starts at block `first`.
inline float shared_chunk(DType type, const std::vector<Block>& row, const Activations& x,
                          size_t first) {
  float p = 0;
  for (size_t half = first; half < first + 8; half += 4) {
    int products[2] = {}, minima = 0;  // over the first and the last two blocks
    float d = 0, dmin = 0;
    for (size_t b = half; b < half + 4; ++b) {
      const Block& w = row[b];
      products[(b - half) / 2] += block_dot(w, x, b);
      for (size_t i = 0; i < 2; ++i) minima += w.minimum[i] * x.half_sum(b, i);
      d = w.d;
      dmin = w.dmin;
    }
    float t;
    if (type == DType::q5_k) {
      t = d * static_cast<float>(products[0]);
      t = std::fma(d, static_cast<float>(products[1]), t);
    } else {
      t = d * static_cast<float>(products[0] + products[1]);
    }
    t = std::fma(-dmin, static_cast<float>(minima), t);
    p = std::fma(x.d[half], t, p);
  }
  return p;
}

/// Returns the sum of a chunk whose blocks have activations with their own scales.
inline float plain_chunk(DType type, const std::vector<Block>& row, const Activations& x,
                         size_t first) {
  float p = 0;
  for (size_t b = first; b < x.d.size() && b < first + 8; ++b) {
    const Block& w = row[b];
    if (type == DType::q4_1 || type == DType::q5_1) {
      const float scaled = x.d[b] * static_cast<float>(x.sum(b));
      p = std::fma(w.m, scaled, p);
    }
    const float scale = w.d * x.d[b];
    p = std::fma(scale, static_cast<float>(block_dot(w, x, b)), p);
  }
  return p;
}

/// Returns one output of a type with kernels of its own.
inline float own_dot(DType type, const std::vector<Block>& row, const Activations& x) {
  float y = 0;
  for (size_t first = 0; first < x.d.size(); first += 8) {
    y = y + (sharing_blocks(type) > 1 ? shared_chunk(type, row, x, first)
                                      : plain_chunk(type, row, x, first));
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
    std::vector<Activations> activations;
    for (int64_t c = 0; c < columns; ++c) activations.emplace_back(type, x + c * k, k);
    for (int64_t r = 0; r < n; ++r) {
      const std::vector<Block> blocks = blocks_of(type, row(r), k);
      for (int64_t c = 0; c < columns; ++c) {
        at(c, r) = own_dot(type, blocks, activations[static_cast<size_t>(c)]);
      }
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
