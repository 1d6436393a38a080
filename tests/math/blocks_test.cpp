#include "wick/math/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/backend/block_reference.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"
#include "wick/math/activation.h"
#include "wick/math/quants.h"

namespace wick::math_test {
namespace {

float half_at(const unsigned char* p) {
  return static_cast<float>(small_f16().value(p[0] | static_cast<std::uint32_t>(p[1]) << 8));
}
unsigned bit(const unsigned char* p, std::size_t i) { return p[i / 8] >> (i % 8) & 1u; }

/// Returns `count` bits of a byte, from bit `first` on.
int bits(unsigned char byte, int first, int count) { return byte >> first & ((1 << count) - 1); }

/// q4_k: d, dmin, 12 bytes of scales, 128 bytes of nibbles. For blocks 0 to 3, the scales are the
/// low six bits of bytes 0 to 3, and the minima those of bytes 4 to 7. For blocks 4 to 7, byte 8 +
/// i has the low four bits of both; the top two bits are those of bytes i and 4 + i.
float q4_k_element(const unsigned char* b, std::size_t j) {
  const unsigned char* s = b + 4;
  const std::size_t block = j / 32, i = block % 4;
  const int scale = block < 4 ? bits(s[i], 0, 6) : bits(s[8 + i], 0, 4) + 16 * bits(s[i], 6, 2);
  const int minimum =
      block < 4 ? bits(s[4 + i], 0, 6) : bits(s[8 + i], 4, 4) + 16 * bits(s[4 + i], 6, 2);
  // 64 values share 32 bytes; the first half uses the low nibbles.
  const int q = bits(b[16 + j / 64 * 32 + j % 32], j % 64 < 32 ? 0 : 4, 4);
  const float product = half_at(b) * static_cast<float>(scale) * static_cast<float>(q);
  return product - half_at(b + 2) * static_cast<float>(minimum);
}

/// q6_k: 128 bytes of low bits, 64 bytes of high bits, 16 scales, d. 128 values share 64 low bytes
/// (64 of them use the low nibbles) and 32 high bytes (each set of 32 values uses two bits).
float q6_k_element(const unsigned char* b, std::size_t j) {
  const std::size_t half = j / 128, in_half = j % 128;
  const int low = bits(b[64 * half + in_half % 64], in_half < 64 ? 0 : 4, 4);
  const int high = bits(b[128 + 32 * half + in_half % 32], static_cast<int>(in_half / 32 * 2), 2);
  const auto scale = static_cast<float>(static_cast<signed char>(b[192 + j / 16]));
  return half_at(b + 208) * scale * static_cast<float>(low + 16 * high - 32);
}

/// Returns value j of a block, numbering the bytes as in the format's description.
float element(Format f, const unsigned char* b, std::size_t j) {
  const float d = half_at(b);
  const auto nibble = [&](const unsigned char* qs) {
    return static_cast<int>(j < 16 ? qs[j] % 16 : qs[j - 16] / 16);
  };
  switch (f) {
    case kQ4_0:
      return d * static_cast<float>(nibble(b + 2) - 8);
    case kQ4_1:
      return d * static_cast<float>(nibble(b + 4)) + half_at(b + 2);
    case kQ5_0: {
      const int q = nibble(b + 6) + 16 * static_cast<int>(bit(b + 2, j));
      return d * static_cast<float>(q - 16);
    }
    case kQ5_1: {
      const int q = nibble(b + 8) + 16 * static_cast<int>(bit(b + 4, j));
      return d * static_cast<float>(q) + half_at(b + 2);
    }
    case kQ8_0:
      return d * static_cast<float>(static_cast<signed char>(b[2 + j]));
    case kQ4_K:
      return q4_k_element(b, j);
    case kQ6_K:
      return q6_k_element(b, j);
    default:  // later formats: the backends' reference
      return reference::block_value(kQuants[f].dtype, b, static_cast<int>(j));
  }
}

class Blocks : public testing::TestWithParam<Format> {};

TEST_P(Blocks, DequantizeIsTheDefinition) {
  const Format f = GetParam();
  const auto size = static_cast<std::size_t>(kFormatBytes[f]);
  constexpr std::size_t kBlocks = 4000;
  std::mt19937 g(static_cast<unsigned>(f));
  std::vector<unsigned char> bytes(size * kBlocks);
  for (unsigned char& b : bytes) b = static_cast<unsigned char>(g());
  const auto values = static_cast<std::size_t>(kFormatValues[f]);
  std::vector<float> out(values * kBlocks);
  for (const NamedLoops& set : available_loops()) {
    set.loops->dequantize[f](bytes.data(), out.data(), kBlocks);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float want = element(f, &bytes[i / values * size], i % values);
      if (std::isnan(want) && std::isnan(out[i])) continue;
      ASSERT_EQ(view<std::uint32_t>(out[i]), view<std::uint32_t>(want)) << set.name << ' ' << i;
    }
  }
}

std::string format_name(const testing::TestParamInfo<Format>& param) {
  return std::string(name(kQuants[param.param].dtype));
}
INSTANTIATE_TEST_SUITE_P(Math, Blocks, testing::ValuesIn([] {
                           std::vector<Format> all;
                           for (int f = 0; f < kFormats; ++f) all.push_back(static_cast<Format>(f));
                           return all;
                         }()),
                         format_name);

template <class Block>
void expect_values_are_those_of_dequantize() {
  std::mt19937 g(5);
  for (int i = 0; i < 2000; ++i) {
    unsigned char bytes[sizeof(Block)];
    for (unsigned char& b : bytes) b = static_cast<unsigned char>(g());
    Block block;
    std::memcpy(&block, bytes, sizeof block);
    float all[math::kBlockValues<Block>];
    dequantize(block, all);
    for (int j = 0; j < math::kBlockValues<Block>; ++j) {
      const float one = value_of(block, j);
      if (std::isnan(one) && std::isnan(all[j])) continue;
      ASSERT_EQ(view<std::uint32_t>(one), view<std::uint32_t>(all[j])) << i << ' ' << j;
    }
  }
}

TEST(BlockValues, OneValueIsThatOfAll) {
#define WICK_QUANT(name, Type, ...) expect_values_are_those_of_dequantize<math::Block##Type>();
#include "wick/math/quants.def"
}

/// Returns blocks of normal values at many scales, constant blocks, zeros, and ties for the largest
/// magnitude.
std::vector<float> values_to_quantize() {
  std::mt19937 g(3);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int b = 0; b < 3000; ++b) {
    const float scale = std::ldexp(1.0f, static_cast<int>(g() % 40) - 30);
    for (int j = 0; j < 32; ++j) x.push_back(scale * normal(g));
  }
  for (const float v : {0.0f, -0.0f, 1.0f, -1.0f, 1e-7f, 3e4f}) x.insert(x.end(), 32, v);
  for (int j = 0; j < 32; ++j) x.push_back(j % 2 == 0 ? 2.0f : -2.0f);
  for (int j = 0; j < 32; ++j) x.push_back(j % 2 == 0 ? -2.0f : 2.0f);
  for (int j = 0; j < 32; ++j)
    x.push_back(static_cast<float>(j) - 8.0f);  // quotients that are ties
  for (int j = 0; j < 32; ++j) x.push_back((static_cast<float>(j) - 16.0f) / 2.0f);
  // Here a fused product and sum would give 11 instead of 12.
  x.insert(x.end(), {0x1.407b4cp-17f, -0x1.186bep-18f});
  x.insert(x.end(), 30, 0.0f);
  // Quotients of Q8_0 that end in one half are rounded away from zero, not to even.
  for (int j = 0; j < 32; ++j) x.push_back(j == 5 ? 127.0f : static_cast<float>(j - 16) + 0.5f);
  return x;
}

void put(std::vector<unsigned char>* out, std::uint32_t half) {
  out->push_back(static_cast<unsigned char>(half));
  out->push_back(static_cast<unsigned char>(half >> 8));
}

/// The reference rounding: every operation in float, rounded once.
std::vector<unsigned char> reference(Format f, const float* x) {
  std::vector<unsigned char> out;
  std::vector<int> q(32);
  if (f == kQ4_0 || f == kQ5_0) {
    const int half = f == kQ4_0 ? 8 : 16;
    std::size_t best = 0;
    for (std::size_t j = 0; j < 32; ++j) best = std::fabs(x[j]) > std::fabs(x[best]) ? j : best;
    const float d = x[best] / static_cast<float>(-half);
    const float inverse = d != 0 ? 1 / d : 0;
    put(&out, small_f16().nearest(d));
    for (std::size_t j = 0; j < 32; ++j) {
      const float product = x[j] * inverse;
      q[j] = std::min(2 * half - 1, static_cast<int>(product + static_cast<float>(half) + 0.5f));
    }
  } else if (f == kQ4_1 || f == kQ5_1) {
    const int most = f == kQ4_1 ? 15 : 31;
    const float low = *std::min_element(x, x + 32), high = *std::max_element(x, x + 32);
    const float d = (high - low) / static_cast<float>(most);
    const float inverse = d != 0 ? 1 / d : 0;
    put(&out, small_f16().nearest(d));
    put(&out, small_f16().nearest(low));
    for (std::size_t j = 0; j < 32; ++j) {
      const float product = (x[j] - low) * inverse;
      q[j] = std::min(most, static_cast<int>(product + 0.5f));
    }
  } else {
    float largest = 0;
    for (std::size_t j = 0; j < 32; ++j) largest = std::max(largest, std::fabs(x[j]));
    const float d = largest / 127;
    const float inverse = d != 0 ? 1 / d : 0;
    put(&out, small_f16().nearest(d));
    for (std::size_t j = 0; j < 32; ++j) {
      out.push_back(static_cast<unsigned char>(static_cast<int>(std::round(x[j] * inverse))));
    }
    return out;
  }
  if (f == kQ5_0 || f == kQ5_1) {
    std::uint32_t fifth = 0;
    for (std::size_t j = 0; j < 32; ++j) fifth |= static_cast<std::uint32_t>(q[j] / 16) << j;
    put(&out, fifth & 0xffff);
    put(&out, fifth >> 16);
    for (int& v : q) v %= 16;
  }
  for (std::size_t j = 0; j < 16; ++j)
    out.push_back(static_cast<unsigned char>(q[j] + 16 * q[j + 16]));
  return out;
}

class Quantize : public testing::TestWithParam<Format> {};

TEST_P(Quantize, IsTheReferenceRounding) {
  const Format f = GetParam();
  const std::vector<float> x = values_to_quantize();
  const std::size_t blocks = x.size() / 32;
  const auto size = static_cast<std::size_t>(kFormatBytes[f]);
  std::vector<unsigned char> out(blocks * size);
  for (const NamedLoops& set : available_loops()) {
    set.loops->quantize[f](x.data(), out.data(), blocks);
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::vector<unsigned char> want = reference(f, &x[32 * i]);
      ASSERT_EQ(want.size(), size);
      ASSERT_EQ(std::memcmp(&out[i * size], want.data(), size), 0) << set.name << " block " << i;
    }
  }
}

/// A round trip stays within half a step (a whole step at the clamped end of Q4_0 and Q5_0), and a
/// block that is already on the grid is unchanged.
TEST_P(Quantize, RoundTrip) {
  const Format f = GetParam();
  const std::vector<float> x = values_to_quantize();
  const std::size_t blocks = x.size() / 32;
  const auto size = static_cast<std::size_t>(kFormatBytes[f]);
  std::vector<unsigned char> bytes(blocks * size);
  std::vector<float> y(x.size());
  const Loops& loops = *available_loops().back().loops;
  loops.quantize[f](x.data(), bytes.data(), blocks);
  loops.dequantize[f](bytes.data(), y.data(), blocks);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float* block = &x[i / 32 * 32];
    const float low = *std::min_element(block, block + 32),
                high = *std::max_element(block, block + 32);
    const float amax = std::max(std::fabs(low), std::fabs(high));
    const float step = f == kQ4_0   ? amax / 8
                       : f == kQ5_0 ? amax / 16
                       : f == kQ4_1 ? (high - low) / 15
                       : f == kQ5_1 ? (high - low) / 31
                                    : amax / 127;
    // d and m are f16: 2^-11 of the largest value, or half of the smallest f16 times the largest q.
    const float rounding = amax * 0x1p-10f + 0x1p-25f * 128;
    ASSERT_LE(std::fabs(x[i] - y[i]), (f == kQ4_0 || f == kQ5_0 ? 1.0f : 0.501f) * step + rounding)
        << i;
  }
  std::vector<float> grid(32);
  for (int j = 0; j < 32; ++j)
    grid[static_cast<std::size_t>(j)] =
        static_cast<float>(f == kQ5_0 || f == kQ5_1 ? j - 16 : j % 16 - 8);
  if (f == kQ8_0) grid[0] = 127.0f;
  std::vector<unsigned char> block(size);
  std::vector<float> back(32);
  loops.quantize[f](grid.data(), block.data(), 1);
  loops.dequantize[f](block.data(), back.data(), 1);
  EXPECT_EQ(back, grid);
}

INSTANTIATE_TEST_SUITE_P(Math, Quantize, testing::Values(kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0));

/// The quantized rows, and the values after a round trip.
struct RoundTrip {
  std::vector<unsigned char> bytes;
  std::vector<float> back;

  RoundTrip(const Loops& loops, Format f, const std::vector<float>& x)
      : bytes(x.size() / static_cast<std::size_t>(kFormatValues[f]) *
              static_cast<std::size_t>(kFormatBytes[f])),
        back(x.size()) {
    const std::size_t blocks = x.size() / static_cast<std::size_t>(kFormatValues[f]);
    loops.quantize[f](x.data(), bytes.data(), blocks);
    loops.dequantize[f](bytes.data(), back.data(), blocks);
  }
};

double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
    all += static_cast<double>(x[i]) * x[i];
  }
  return std::sqrt(error / all);
}

class QuantizeK : public testing::TestWithParam<Format> {};

TEST_P(QuantizeK, IsTheSameEverywhere) {
  std::vector<float> x = values_to_quantize();
  x.resize(x.size() / 256 * 256);
  std::mt19937 g(5);
  for (int i = 0; i < 256 * 64; ++i) {  // infinities and NaNs must do no harm
    x.push_back(view<float>(static_cast<std::uint32_t>(g())));
  }
  const RoundTrip scalar(kLoopsScalar, GetParam(), x);
  for (const NamedLoops& set : available_loops()) {
    const RoundTrip other(*set.loops, GetParam(), x);
    // Blocks are specified for finite values.
    const auto size = static_cast<std::size_t>(kFormatBytes[GetParam()]);
    for (std::size_t b = 0; b < x.size() / 256; ++b) {
      if (std::any_of(&x[256 * b], &x[256 * b] + 256,
                      [](float v) { return !(std::fabs(v) < 1e6f); })) {
        continue;
      }
      ASSERT_EQ(std::memcmp(&scalar.bytes[b * size], &other.bytes[b * size], size), 0)
          << set.name << " block " << b;
    }
  }
}

/// Each value's error is at most its block's step plus the effect of rounding scales to 6 or 8
/// bits.
TEST_P(QuantizeK, ErrorOfAValue) {
  const Format f = GetParam();
  std::vector<float> x = values_to_quantize();
  x.resize(x.size() / 256 * 256);
  const RoundTrip trip(*available_loops().back().loops, f, x);
  const std::size_t part = f == kQ4_K ? 32 : 16;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float *all = &x[i / 256 * 256], *block = &x[i / part * part];
    const auto range = [](const float* v, std::size_t n) {
      return std::max(0.0f, *std::max_element(v, v + n)) -
             std::min(0.0f, *std::min_element(v, v + n));
    };
    float largest = 0;
    for (std::size_t p = 0; p < 256; p += part) largest = std::max(largest, range(all + p, part));
    // A step of the block, plus half a unit of its scale for each step of the range, plus another
    // half unit for its minimum.
    const float rounding = f == kQ4_K ? 1.0f : 0.5f;
    const float steps = f == kQ4_K ? 15.0f : 31.0f, units = f == kQ4_K ? 63.0f : 127.0f;
    const float bound = 1.1f * range(block, part) / steps + rounding * largest / units +
                        largest * 0x1p-10f + 0x1p-24f * units * 32;
    ASSERT_LE(std::fabs(x[i] - trip.back[i]), bound) << i;
  }
}

/// The search and the finer scales must give smaller errors than the plain formats with as many
/// bits or more.
TEST(QuantizeKError, BelowThePlainFormats) {
  std::mt19937 g(9);
  std::normal_distribution<float> normal;
  std::vector<float> x(256 * 400);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(g) * std::exp(0.5f * static_cast<float>(i / 32 % 4));
  }
  const Loops& loops = *available_loops().back().loops;
  const auto error = [&](Format f) { return relative_error(x, RoundTrip(loops, f, x).back); };
  EXPECT_LT(error(kQ4_K), 0.95 * error(kQ4_1));
  EXPECT_LT(error(kQ4_K), 0.075);
  EXPECT_LT(error(kQ6_K), 0.019);
}

/// Values that a superblock represents exactly are unchanged.
TEST_P(QuantizeK, TheGridStays) {
  const Format f = GetParam();
  std::vector<float> grid(256);
  for (std::size_t j = 0; j < 256; ++j) {
    const std::size_t block = j / (f == kQ4_K ? 32 : 16);
    const auto q = static_cast<float>(f == kQ4_K ? j % 16 : j % 16 * 4 % 63);
    // The largest value is 63 times a power of two, so that scales with 6 and 8 bits are exact.
    const float scale = f == kQ4_K ? (block == 3 ? 63.0f : static_cast<float>(7 * block + 7))
                                   : (block == 3 ? -128.0f : static_cast<float>(block) - 20.0f);
    grid[j] = f == kQ4_K ? scale * q - 63.0f * static_cast<float>(block % 2)
                         : scale * (q - (j % 16 == 0 ? 32.0f : 31.0f));
  }
  const RoundTrip trip(*available_loops().back().loops, f, grid);
  EXPECT_EQ(trip.back, grid);
}

INSTANTIATE_TEST_SUITE_P(Math, QuantizeK, testing::Values(kQ4_K, kQ6_K));

/// Returns amax/127 rounded up to four significant bits.
float activation_scale(float amax) {
  const float quotient = amax / 127.0f;
  const int exponent = std::ilogb(quotient) - 3;
  return static_cast<float>(
      std::ldexp(std::ceil(std::ldexp(static_cast<double>(quotient), -exponent)), exponent));
}

struct Activation {
  std::vector<signed char> q;
  std::vector<float> d;
  std::vector<int> sum;
};
Activation run_activation(const Loops& loops, const std::vector<float>& x, bool shared) {
  Activation a{std::vector<signed char>(x.size(), 99), std::vector<float>(x.size() / 32),
               std::vector<int>(x.size() / 32)};
  const auto loop = shared ? loops.shared_activation : loops.activation;
  loop(x.data(), a.q.data(), a.d.data(), a.sum.data(), x.size() / 32);
  return a;
}

/// Returns ordinary values, and special values alone and among others in every block of 128.
std::vector<float> activations() {
  std::vector<float> x = values_to_quantize();
  x.resize((x.size() + 127) / 128 * 128, 0.25f);
  for (const float special :
       {INFINITY, -INFINITY, NAN, -NAN, 1e-30f, 1.0000002e-30f, 1e-38f, 1e-42f, 3e38f}) {
    for (int j = 0; j < 32; ++j) x.push_back(j == 17 ? special : 0.0f);
    for (int j = 0; j < 96; ++j) x.push_back(-1e-41f);
    for (int block = 0; block < 4; ++block) {
      for (int j = 0; j < 128; ++j) {
        const float other = block % 2 == 0 ? 1e-3f * static_cast<float>(j - 60) : -0.0f;
        x.push_back(j == 32 * block + 9 * block ? special : other);
      }
    }
  }
  for (int j = 0; j < 128; ++j) x.push_back(j == 3 ? INFINITY : (j == 9 ? NAN : 1.0f));
  x.insert(x.end(), 128, 0.0f);
  return x;
}

/// Checks `n` values that share a scale, from `first` on.
void check_activation(const Activation& a, const std::vector<float>& x, std::size_t first,
                      std::size_t n) {
  bool finite = true;
  float amax = 0;
  for (std::size_t j = first; j < first + n; ++j) {
    finite &= std::isfinite(x[j]);
    amax = std::max(amax, std::fabs(x[j]));
  }
  const bool live = finite && amax > 1e-30f;
  const float d = live ? activation_scale(amax) : 0.0f;
  for (std::size_t b = first / 32; b < (first + n) / 32; ++b) {
    if (finite) {
      ASSERT_EQ(view<std::uint32_t>(a.d[b]), view<std::uint32_t>(d));
    } else {
      ASSERT_TRUE(std::isnan(a.d[b]));
    }
    int sum = 0;
    for (std::size_t j = 32 * b; j < 32 * b + 32; ++j) {
      const int q = live ? static_cast<int>(std::nearbyint(x[j] * (1.0f / d))) : 0;
      ASSERT_EQ(a.q[j], q) << j % 32;
      ASSERT_LE(std::abs(q), 127);
      sum += q;
    }
    ASSERT_EQ(a.sum[b], sum);
  }
}

TEST(ActivationBlocks, FollowTheContract) {
  const std::vector<float> x = activations();
  for (const NamedLoops& set : available_loops()) {
    for (const bool shared : {false, true}) {
      const Activation a = run_activation(*set.loops, x, shared);
      const std::size_t each = shared ? 128 : 32;
      for (std::size_t at = 0; at < x.size(); at += each) {
        SCOPED_TRACE(std::string(set.name) + ", from " + std::to_string(at));
        check_activation(a, x, at, each);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// An inverse that is kUlps off.
template <int kUlps>
struct Off {
  float operator()(float d) const {
    return view<float>(view<std::uint32_t>(1.0f / d) + static_cast<std::uint32_t>(kUlps));
  }
};

template <int kUlps>
void check_refined_inverses() {
  const auto scale = [](float amax) {
    return view<std::uint32_t>(math::ActivationStep(view<std::uint32_t>(amax)).d());
  };
  for (std::uint32_t d = scale(1.1e-30f); d <= scale(0x1.fffffep127f); d += 0x00100000u) {
    ASSERT_EQ(math::RefinedQuotients<Off<kUlps>>().inverse(view<float>(d)), 1.0f / view<float>(d));
  }
}

/// The quotients without divisions are those of IEEE, also if the inverse from which they start has
/// more than the error that is allowed.
TEST(ActivationBlocks, RefinedQuotients) {
  for (const std::uint32_t exponent : {27u, 28u, 29u, 127u, 253u, 254u}) {
    for (std::uint32_t mantissa = 0; mantissa < 1u << 23; ++mantissa) {
      const float x = view<float>(exponent << 23 | mantissa);
      if (x <= 1e-30f) continue;
      ASSERT_EQ(math::RefinedQuotients<Off<0>>().by_127(x), x / 127.0f);
    }
  }
  check_refined_inverses<-2>();
  check_refined_inverses<-1>();
  check_refined_inverses<0>();
  check_refined_inverses<1>();
  check_refined_inverses<2>();
}

/// quantize_four gives the bytes that quantize gives, for ties, both zeros, and blocks of zeros and
/// with infinities and NaNs.
TEST(ActivationBlocks, FourAtOnce) {
  for (const float amax : {1.0f, 127.0f, 3e-30f, 0x1.fffffep127f, 0.0f, 1e-31f, HUGE_VALF, NAN}) {
    const math::ActivationStep step(view<std::uint32_t>(amax));
    std::vector<float> x = {0.0f, -0.0f, amax, -amax};
    for (int i = -256; i < 256; ++i) {
      const float tie = static_cast<float>(i) * 0.5f * step.d();
      x.push_back(std::abs(tie) <= amax ? tie : amax / 3);
    }
    for (std::size_t at = 0; at < x.size(); at += 4) {
      const float four[4] = {x[at], x[at + 1], x[at + 2], x[at + 3]};
      const std::uint32_t bytes = step.quantize_four(four);
      for (std::size_t i = 0; i < 4; ++i) {
        const int expected = amax <= 0x1.fffffep127f ? step.quantize(four[i]) : 0;
        ASSERT_EQ(static_cast<std::int8_t>(bytes >> 8 * i), expected) << amax << " " << four[i];
      }
    }
  }
}

/// Tests every mantissa of the largest magnitude, at both ends and in the middle of the range of
/// nonzero blocks. Values never exceed 127 without a clamp, and the scale is the smallest possible
/// one with four significant bits.
TEST(ActivationBlocks, EveryMantissa) {
  for (const std::uint32_t exponent : {27u, 28u, 127u, 130u, 253u, 254u}) {
    int largest = 0, smallest = 127;
    for (std::uint32_t mantissa = 0; mantissa < 1u << 23; ++mantissa) {
      const float amax = view<float>(exponent << 23 | mantissa);
      if (amax <= 1e-30f) continue;
      const math::ActivationStep step(view<std::uint32_t>(amax));
      const int q = step.quantize(amax);
      largest = std::max(largest, q);
      smallest = std::min(smallest, q);
      const float least = amax / 127.0f;
      const float below = view<float>(view<std::uint32_t>(step.d()) - 0x00100000u);
      ASSERT_TRUE(step.quantize(-amax) == -q && step.d() >= least && std::isfinite(step.d()) &&
                  (view<std::uint32_t>(step.d()) & 0x000fffffu) == 0 && below < least)
          << amax;
    }
    EXPECT_EQ(largest, 127) << exponent;
    EXPECT_EQ(smallest, exponent == 27 ? smallest : 113) << exponent;
  }
}

}  // namespace
}  // namespace wick::math_test
