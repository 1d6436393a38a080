// Gemms of bf16 on the tiles of AMX: their bits are those of the order of sums that
// docs/design/numerics/matmul.md defines, computed here element by element. It is built twice: with
// the processor's tiles, and with portable code for their instructions (amx_tiles_stand_in.h).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "wick/backend/cpu/linear/gemm.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

float without_denormal(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// Σ a[p]·b[p]. k is a multiple of 32, or behind it both are zeros.
float in_order(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (size_t p = 0; p < a.size(); p += 32) {
    float even = 0, odd = 0;
    for (size_t q = p; q < std::min(p + 32, a.size()); q += 2) {
      even = without_denormal(std::fma(a[q], b[q], even));
      if (q + 1 < a.size()) odd = without_denormal(std::fma(a[q + 1], b[q + 1], odd));
    }
    sum = without_denormal(sum + without_denormal(even + odd));
  }
  return sum;
}

float rounded(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  word += 0x7fff + (word >> 16 & 1);
  word &= 0xffff0000;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

/// Values of bf16 that need rounding, of widely different magnitudes.
std::vector<float> values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> all(count);
  for (float& x : all) {
    const float significand = static_cast<float>(random() % 256 + 256) / 256;
    x = std::ldexp(random() % 2 == 0 ? significand : -significand,
                   static_cast<int>(random() % 24) - 12);
    x = rounded(x);
  }
  return all;
}

std::vector<float> row_of(const std::vector<float>& all, int64_t row, int64_t stride,
                          int64_t k_stride, int64_t k) {
  std::vector<float> line(static_cast<size_t>(k));
  for (int64_t p = 0; p < k; ++p) {
    line[static_cast<size_t>(p)] = all[static_cast<size_t>(row * stride + p * k_stride)];
  }
  return line;
}

class Bf16Tiles : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::bf16_compute(cpu::gemm_kernels(cpu::selected_isa())) != cpu::Compute::bf16_tiles) {
      GTEST_SKIP() << "needs a processor with tiles of bf16";
    }
  }
};

constexpr int64_t kRows[] = {9, 16, 17, 32, 40, 65}, kColumns[] = {9, 16, 31, 32, 33, 80},
                  kDepths[] = {1, 2, 31, 32, 33, 63, 96, 777};

TEST_F(Bf16Tiles, PromptsHaveTheBitsOfTheOrder) {
  for (const int64_t k : kDepths) {
    for (const int64_t n : kColumns) {
      const std::vector<float> w = values(static_cast<size_t>(n * k), 1);
      const Weight weight(Tensor::from(w, {n, k}).to(DType::bf16));
      for (const int64_t rows : kRows) {
        const std::vector<float> x = values(static_cast<size_t>(rows * k), 2);
        const std::vector<float> out =
            linear(Tensor::from(x, {rows, k}), weight).to_vector<float>();
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < n; ++c) {
            const float want = in_order(row_of(x, r, k, 1, k), row_of(w, c, k, 1, k));
            ASSERT_EQ(out[static_cast<size_t>(r * n + c)], want)
                << rows << 'x' << n << 'x' << k << ": " << r << ' ' << c;
          }
        }
      }
    }
  }
}

/// Blocks of k, blocks of rows, and results that wait for the last block.
TEST_F(Bf16Tiles, LongSumsAndManyRowsHaveTheBitsOfTheOrder) {
  for (const auto& [rows, n, k] : std::initializer_list<std::array<int64_t, 3>>{
           {20, 48, 1600}, {33, 20, 17'000}, {2100, 40, 2000}}) {
    const std::vector<float> w = values(static_cast<size_t>(n * k), 3),
                             x = values(static_cast<size_t>(rows * k), 4);
    const Weight weight(Tensor::from(w, {n, k}).to(DType::bf16));
    const Tensor in = Tensor::from(x, {rows, k});
    const std::vector<float> wide = linear(in, weight).to_vector<float>(),
                             narrow = linear(in.to(DType::bf16), weight).to_vector<float>();
    for (int64_t i = 0; i < rows * n; i += 7) {
      const float want = in_order(row_of(x, i / n, k, 1, k), row_of(w, i % n, k, 1, k));
      ASSERT_EQ(wide[static_cast<size_t>(i)], want) << rows << 'x' << n << 'x' << k << ": " << i;
      ASSERT_EQ(narrow[static_cast<size_t>(i)], rounded(want)) << i;
    }
  }
}

TEST_F(Bf16Tiles, MatmulOfAnyLayoutHasTheBitsOfTheOrder) {
  for (const int64_t k : kDepths) {
    for (const auto& [m, n] :
         std::initializer_list<std::array<int64_t, 2>>{{9, 20}, {70, 33}, {33, 16}}) {
      for (int layout = 0; layout < 8; ++layout) {
        // Transposed operands, and every second element along k.
        const bool a_turned = (layout & 1) != 0, b_turned = (layout & 2) != 0;
        const int64_t step = (layout & 4) != 0 ? 2 : 1, depth = k * step;
        const std::vector<float> a = values(static_cast<size_t>(m * depth), 5),
                                 b = values(static_cast<size_t>(depth * n), 6);
        const Tensor left = a_turned ? Tensor::from(a, {depth, m}).to(DType::bf16).transpose(0, 1)
                                     : Tensor::from(a, {m, depth}).to(DType::bf16);
        const Tensor right = b_turned ? Tensor::from(b, {n, depth}).to(DType::bf16).transpose(0, 1)
                                      : Tensor::from(b, {depth, n}).to(DType::bf16);
        const std::vector<float> out =
            matmul(left.slice(1, 0, depth, step), right.slice(0, 0, depth, step))
                .to_vector<float>();
        for (int64_t i = 0; i < m * n; ++i) {
          const std::vector<float> row = row_of(a, i / n, a_turned ? 1 : depth,
                                                (a_turned ? m : 1) * step, k),
                                   column = row_of(b, i % n, b_turned ? depth : 1,
                                                   (b_turned ? 1 : n) * step, k);
          // The shorter side is on the left; neither product nor order depends on it.
          ASSERT_EQ(out[static_cast<size_t>(i)], rounded(in_order(row, column)))
              << m << 'x' << n << 'x' << k << " layout " << layout << ": " << i;
        }
      }
    }
  }
}

TEST_F(Bf16Tiles, NumbersBelowTheNormalRangeAreZeros) {
  constexpr int64_t kN = 16, kK = 32;
  std::vector<float> w(kN * kK, 0x1p-64f), x(kN * kK, 0x1p-64f);  // products are denormal
  const Weight weight(Tensor::from(w, {kN, kK}).to(DType::bf16));
  for (const float out : linear(Tensor::from(x, {kN, kK}), weight).to_vector<float>()) {
    EXPECT_EQ(out, 0.0f);
  }
}

}  // namespace
}  // namespace wick
