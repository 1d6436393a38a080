// Conversion between blocks and floats must have the bits of the formats' definitions, for every
// instruction set and layout of the float side.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "tests/backend/linear_quantized_reference.h"
#include "tests/backend/parity_case.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/math/k_blocks.h"

namespace wick {
namespace {

using cpu::Isa;

/// Finds f16 bits by searching all values. This is slow, but independent of the library's method.
uint16_t f16_bits(float x) {
  static const std::vector<std::pair<float, uint16_t>> all = [] {
    std::vector<std::pair<float, uint16_t>> values;
    for (int b = 0; b <= 0x7C00; ++b) {
      const auto bits = static_cast<uint16_t>(b);
      values.emplace_back(static_cast<float>(reference::decode_half(bits, 10)), bits);
    }
    return values;
  }();
  const float y = std::fabs(reference::round_to_half(x, 10));
  const auto at = std::lower_bound(all.begin(), all.end(), std::pair<float, uint16_t>(y, 0));
  return static_cast<uint16_t>(at->second | (std::signbit(x) ? 0x8000 : 0));
}

void write_u16(std::vector<uint8_t>& out, uint16_t v) {
  out.push_back(static_cast<uint8_t>(v));
  out.push_back(static_cast<uint8_t>(v >> 8));
}

/// Quantizes one block in file layout, following the formats' reference quantizers.
std::vector<uint8_t> reference_quantize(DType type, const float* x) {
  std::vector<uint8_t> out;
  if (type == DType::q8_0) {
    float amax = 0;
    for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[i]));
    const float d = amax / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    write_u16(out, f16_bits(d));
    for (int i = 0; i < 32; ++i) {
      out.push_back(static_cast<uint8_t>(static_cast<int>(std::round(x[i] * inverse))));
    }
    return out;
  }
  int q[32];
  if (type == DType::q4_0 || type == DType::q5_0) {
    const int half = type == DType::q4_0 ? 8 : 16;
    int largest = 0;
    for (int i = 1; i < 32; ++i) {
      if (std::fabs(x[i]) > std::fabs(x[largest])) largest = i;
    }
    const float d = x[largest] / static_cast<float>(-half);
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    write_u16(out, f16_bits(d));
    for (int i = 0; i < 32; ++i) {
      const float scaled = x[i] * inverse;
      q[i] = std::min(2 * half - 1, static_cast<int>(scaled + static_cast<float>(half) + 0.5f));
    }
  } else {
    const float low = *std::min_element(x, x + 32), high = *std::max_element(x, x + 32);
    const int most = type == DType::q5_1 ? 31 : 15;
    const float d = (high - low) / static_cast<float>(most);
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    write_u16(out, f16_bits(d));
    write_u16(out, f16_bits(low));
    for (int i = 0; i < 32; ++i) {
      const float scaled = (x[i] - low) * inverse;
      q[i] = std::min(most, static_cast<int>(scaled + 0.5f));
    }
  }
  for (int byte = 0; (type == DType::q5_0 || type == DType::q5_1) && byte < 4; ++byte) {
    int bits = 0;
    for (int i = 0; i < 8; ++i) bits |= q[8 * byte + i] / 16 << i;
    out.push_back(static_cast<uint8_t>(bits));
  }
  for (int& v : q) v %= 16;
  for (int i = 0; i < 16; ++i) out.push_back(static_cast<uint8_t>(q[i] | q[i + 16] << 4));
  return out;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

float element(DType dtype, const std::vector<uint8_t>& bytes, int64_t i) {
  if (dtype == DType::f32) {
    float x;
    std::memcpy(&x, bytes.data() + 4 * i, 4);
    return x;
  }
  return static_cast<float>(reference::decode_half(reference::read_u16(bytes.data() + 2 * i),
                                                   dtype == DType::f16 ? 10 : 7));
}

/// Layouts of [2, rows, k]: dense, and every second element in reverse order with swapped outer
/// dims.
std::vector<Layout> layouts(int64_t rows, int64_t k) {
  return {Layout::contiguous({2, rows, k}), Layout({2, rows, k}, {2 * k, 4 * k, -2}, 2 * k - 1)};
}

void quantize_case(Isa isa, DType type, DType) {
  cpu::CpuBackend backend(isa);
  const int64_t rows = 9, k = 32 * 37;
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  for (const Layout& layout : layouts(rows, k)) {
    std::vector<float> x(static_cast<size_t>(4 * rows * k));
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t kind = i / 64 % 8;
      x[i] = kind == 0   ? 0.0f
             : kind == 1 ? normal(rng) * 1e-7f
             : kind == 2 ? std::round(normal(rng) * 4.0f)
             : kind == 3 ? 1.0f
             : kind == 4 ? normal(rng) * 1e-34f
                         : normal(rng);
    }
    // The rows of the block side have their own pitch.
    const int64_t pitch = k + 96;
    const auto block = static_cast<size_t>(info(type).block_bytes);
    std::vector<uint8_t> out(static_cast<size_t>(bytes_of(type, 2 * rows * pitch)), 0xCD);
    backend.quantize({out.data(), type, Layout({2, rows, k}, {rows * pitch, pitch, 1}, 0)},
                     {x.data(), DType::f32, layout});
    for (int64_t r = 0; r < 2 * rows; ++r) {
      for (int64_t b = 0; b < pitch / 32; ++b) {
        std::vector<uint8_t> want(block, 0xCD);
        if (b < k / 32) {
          float values[32];
          for (int64_t i = 0; i < 32; ++i) {
            values[i] = x[static_cast<size_t>(layout.offset() + r / rows * layout.stride(0) +
                                              r % rows * layout.stride(1) +
                                              (b * 32 + i) * layout.stride(2))];
          }
          want = reference_quantize(type, values);
        }
        const uint8_t* got = out.data() + bytes_of(type, r * pitch + b * 32);
        ASSERT_EQ(want, std::vector<uint8_t>(got, got + block)) << "row " << r << " block " << b;
      }
    }
  }
}

void dequantize_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const int64_t rows = 9, size = info(type).block_elems, k = size * (size == 32 ? 37 : 5);
  std::mt19937 rng(5);
  std::vector<uint8_t> in(static_cast<size_t>(bytes_of(type, 2 * rows * k)));
  for (uint8_t& b : in) b = static_cast<uint8_t>(rng());  // all f16 values and quants occur
  for (const Layout& layout : layouts(rows, k)) {
    std::vector<uint8_t> out(static_cast<size_t>(bytes_of(dtype, 4 * rows * k)), 0xCD);
    backend.dequantize({out.data(), dtype, layout},
                       {in.data(), type, Layout::contiguous({2, rows, k})});
    for (int64_t r = 0; r < 2 * rows; ++r) {
      for (int64_t b = 0; b < k / size; ++b) {
        const auto want =
            reference::row_values(type, in.data() + bytes_of(type, r * k + b * size), size);
        for (int64_t i = 0; i < size; ++i) {
          const int64_t at = layout.offset() + r / rows * layout.stride(0) +
                             r % rows * layout.stride(1) + (b * size + i) * layout.stride(2);
          float y = want[static_cast<size_t>(i)];
          if (dtype != DType::f32) y = reference::round_to_half(y, dtype == DType::f16 ? 10 : 7);
          ASSERT_TRUE(same(y, element(dtype, out, at))) << fmt::format(
              "row {} block {} value {}: want {:a}, got {:a}", r, b, i, y, element(dtype, out, at));
        }
      }
    }
  }
}

/// The rounding of superblocks has no reference. Every instruction set must give, under every
/// layout, the bits of quantizing the blocks one after another.
void quantize_super_case(Isa isa, DType type, DType) {
  cpu::CpuBackend backend(isa);
  const int64_t rows = 5, k = 256 * 3, pitch = k + 256;
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  const auto block = static_cast<size_t>(info(type).block_bytes);
  for (const Layout& layout : layouts(rows, k)) {
    std::vector<float> x(static_cast<size_t>(4 * rows * k));
    for (float& v : x) v = normal(rng);
    std::vector<uint8_t> out(static_cast<size_t>(bytes_of(type, 2 * rows * pitch)), 0xCD);
    backend.quantize({out.data(), type, Layout({2, rows, k}, {rows * pitch, pitch, 1}, 0)},
                     {x.data(), DType::f32, layout});
    for (int64_t r = 0; r < 2 * rows; ++r) {
      for (int64_t b = 0; b < pitch / 256; ++b) {
        std::vector<uint8_t> want(block, 0xCD);
        float values[256];
        for (int64_t i = 0; b < k / 256 && i < 256; ++i) {
          values[i] = x[static_cast<size_t>(layout.offset() + r / rows * layout.stride(0) +
                                            r % rows * layout.stride(1) +
                                            (b * 256 + i) * layout.stride(2))];
        }
        if (b < k / 256 && type == DType::q4_k) {
          math::quantize(values, reinterpret_cast<math::BlockQ4_K*>(want.data()));
        } else if (b < k / 256) {
          math::quantize(values, reinterpret_cast<math::BlockQ6_K*>(want.data()));
        }
        const uint8_t* got = out.data() + bytes_of(type, r * pitch + b * 256);
        ASSERT_EQ(want, std::vector<uint8_t>(got, got + block)) << "row " << r << " block " << b;
      }
    }
  }
}

const bool kRegistered = [] {
  for (Isa isa : cpu::kIsas) {
    for (DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0}) {
      parity::add_case("quantize", isa, type, DType::f32, "9x1184", quantize_case);
    }
    for (DType type : {DType::q4_k, DType::q6_k}) {
      parity::add_case("quantize", isa, type, DType::f32, "5x768", quantize_super_case);
    }
    for (const QuantInfo& quant : kQuants) {
      const DType type = quant.dtype;
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        parity::add_case("dequantize", isa, type, dtype, "9x1184", dequantize_case);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace wick
