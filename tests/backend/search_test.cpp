// Quantisation by search: the errors of fixed data, exact blocks, weights, unusual values, and
// equal blocks of all instruction sets.
#include "wick/backend/cpu/search/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/backend/block_reference.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/backend/cpu/search/search_kernels.h"
#include "wick/base/error.h"
#include "wick/base/quant.h"

namespace wick::cpu::test {
namespace {

constexpr int64_t kRows = 16, kColumns = 1024;

std::vector<DType> types() {
  std::vector<DType> found;
  for (const QuantInfo& type : kQuants) {
    if (dtypes::kSearched.contains(type.dtype)) found.push_back(type.dtype);
  }
  return found;
}

std::vector<std::byte> searched(DType type, const std::vector<float>& x, int64_t columns,
                                const float* weights = nullptr) {
  const auto rows = static_cast<int64_t>(x.size()) / columns;
  std::vector<std::byte> out(static_cast<size_t>(bytes_of(type, rows * columns)));
  search_rows(type, x.data(), rows, columns, weights, out.data());
  return out;
}

std::vector<float> values_of(DType type, const std::vector<std::byte>& blocks, size_t count) {
  return reference::row_values(type, reinterpret_cast<const uint8_t*>(blocks.data()),
                               static_cast<int64_t>(count));
}

/// sqrt(Σ w·(y − x)² / Σ w·x²)
double relative_error(const std::vector<float>& x, const std::vector<float>& y,
                      const std::vector<float>& w) {
  double errors = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = w.empty() ? 1.0 : w[i % w.size()];
    errors += weight * (double{y[i]} - double{x[i]}) * (double{y[i]} - double{x[i]});
    all += weight * double{x[i]} * double{x[i]};
  }
  return std::sqrt(errors / all);
}

/// Whether the quants of a type index a codebook of vectors.
bool has_codebook(DType type) {
  return DTypeSet::of(DType::iq1_s, DType::iq1_m, DType::iq2_xxs, DType::iq2_xs, DType::iq2_s,
                      DType::iq3_xxs, DType::iq3_s)
      .contains(type);
}

double error_of(DType type, const std::vector<float>& x, const std::vector<float>& w,
                bool use_weights) {
  const auto blocks = searched(type, x, kColumns, use_weights ? w.data() : nullptr);
  return relative_error(x, values_of(type, blocks, x.size()), w);
}

/// Sums of twelve uniform numbers: nearly normal, and the same with every standard library.
struct Data {
  std::vector<float> normal, heavy, weights;
  Data() {
    std::mt19937 random(7);
    const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
    const auto gauss = [&] {
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += uniform();
      return sum;
    };
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      normal.push_back(static_cast<float>(0.02 * gauss()));
    }
    for (int64_t i = 0; i < kRows * kColumns; ++i) {  // Student's t with 4 degrees of freedom
      double squares = 0;
      const double g = gauss();
      for (int j = 0; j < 4; ++j) squares += std::pow(gauss(), 2);
      heavy.push_back(static_cast<float>(0.02 * g / std::sqrt(squares / 4)));
    }
    for (int64_t i = 0; i < kColumns; ++i) {
      weights.push_back(static_cast<float>(std::exp(1.5 * gauss())));
    }
  }
};
const Data& data() {
  static const Data all;
  return all;
}

/// Relative errors of llama.cpp's quantisers on the same data, and with the weights as importance
/// matrix, measured by bench/quantize_compare.py --test-data (llama.cpp 11434).
struct Figures {
  DType type;
  double normal, normal_weighted, heavy, heavy_weighted;
};
constexpr Figures kPeer[] = {
#include "tests/backend/search_figures.inc"
};

TEST(Search, ErrorsAreAtMostThoseOfLlamaCpp) {
  const Data& d = data();
  EXPECT_EQ(std::size(kPeer), types().size());
  // q1_0 has llama.cpp's scales, but for the order of sums.
  constexpr double kSame = 1 + 1e-6;
  for (const Figures& peer : kPeer) {
    SCOPED_TRACE(name(peer.type));
    EXPECT_LE(error_of(peer.type, d.normal, {}, false), peer.normal * kSame);
    EXPECT_LE(error_of(peer.type, d.normal, d.weights, true), peer.normal_weighted * kSame);
    EXPECT_LE(error_of(peer.type, d.heavy, {}, false), peer.heavy * kSame);
    EXPECT_LE(error_of(peer.type, d.heavy, d.weights, true), peer.heavy_weighted * kSame);
  }
}

TEST(Search, WeightsLowerTheWeightedError) {
  const Data& d = data();
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const double with = error_of(type, d.heavy, d.weights, true);
    EXPECT_LT(with, error_of(type, d.heavy, d.weights, false));
    // The price is a larger error of all columns alike.
    const auto blocks = searched(type, d.heavy, kColumns, d.weights.data());
    EXPECT_GT(relative_error(d.heavy, values_of(type, blocks, d.heavy.size()), {}),
              error_of(type, d.heavy, {}, false));
  }
}

/// Scaling the weights by a power of two changes nothing, and weights that aren't usable count as
/// none.
TEST(Search, WeightsOfAnySize) {
  const Data& d = data();
  const std::vector<float> x(d.normal.begin(), d.normal.begin() + kColumns);
  std::vector<float> scaled = d.weights, ones(kColumns, 1.0f), bad(kColumns, NAN);
  for (float& w : scaled) w *= 0x1p90f;
  for (size_t i = 0; i < bad.size(); ++i) bad[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -1.0f : INFINITY;
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const auto plain = searched(type, x, kColumns);
    EXPECT_EQ(searched(type, x, kColumns, ones.data()), plain);
    EXPECT_EQ(searched(type, x, kColumns, bad.data()), plain);
    EXPECT_EQ(searched(type, x, kColumns, scaled.data()),
              searched(type, x, kColumns, d.weights.data()));
  }
}

/// Values that a type represents exactly come back.
TEST(Search, ExactBlocks) {
  std::mt19937 random(3);
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const int64_t count = info(type).block_elems;
    const auto bytes = static_cast<size_t>(info(type).block_bytes);
    // A type's own output for random values is representable, and quantising it again is exact but
    // for rounding.
    std::vector<float> x(static_cast<size_t>(count));
    for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64.0f;
    const auto once = searched(type, x, count);
    ASSERT_EQ(once.size(), bytes);
    const std::vector<float> values = values_of(type, once, x.size());
    const auto twice = searched(type, values, count);
    EXPECT_LT(relative_error(values, values_of(type, twice, x.size()), {}), 2e-3);
  }
  // Small integers times a power of two.
  for (const DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q4_k,
                           DType::q5_k, DType::q6_k}) {
    SCOPED_TRACE(name(type));
    std::vector<float> x(256);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i % 16) - 8) / 8;
    const std::vector<float> y = values_of(type, searched(type, x, 256), x.size());
    const bool exact = type == DType::q4_0 || type == DType::q4_1;
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], exact ? 0.0 : 0.02) << i;
  }
}

/// Random blocks whose scales are finite: their values come back.
TEST(Search, RandomBlocksOfFewBits) {
  std::mt19937 random(5);
  for (const DType type : types()) {
    const bool few_levels =
        DTypeSet::of(DType::tq2_0, DType::nvfp4, DType::q1_0, DType::q2_0).contains(type);
    if (!few_levels && !has_codebook(type)) continue;
    SCOPED_TRACE(name(type));
    const QuantInfo& form = quant(type);
    const auto size = static_cast<size_t>(info(type).block_bytes);
    int exact = 0;
    constexpr int kBlocks = 200;
    for (int b = 0; b < kBlocks; ++b) {
      std::vector<std::byte> block(size);
      for (std::byte& byte : block) byte = static_cast<std::byte>(random() & 255);
      const auto at = static_cast<size_t>(form.at);
      constexpr uint16_t kScale = 0x211f;  // 0.01 in f16
      if (form.scale == QuantScale::f16) {
        std::memcpy(block.data() + at, &kScale, 2);
      } else if (form.scale == QuantScale::nibbles) {
        for (size_t i = 0; i < 4; ++i) {
          const std::byte low = block[at + 2 * i + 1] & std::byte{15};
          block[at + 2 * i + 1] = low | static_cast<std::byte>((kScale >> 4 * i & 15) << 4);
        }
      } else {
        for (size_t i = 0; i < 4; ++i) {
          block[at + i] = (block[at + i] & std::byte{63}) | std::byte{16};
        }
      }
      if (type == DType::tq2_0) {  // without the fourth level
        for (size_t i = 0; i < 64; ++i) block[i] = block[i] & std::byte{0x55};
      }
      const auto count = static_cast<size_t>(info(type).block_elems);
      const std::vector<float> x = values_of(type, block, count);
      const auto again = searched(type, x, static_cast<int64_t>(count));
      const double error = relative_error(x, values_of(type, again, count), {});
      EXPECT_LT(error, 0.1);
      exact += error < 1e-6 ? 1 : 0;
    }
    EXPECT_GE(exact, kBlocks * 97 / 100);
  }
}

TEST(Search, TernaryValuesAreExact) {
  std::mt19937 random(6);
  for (const DType type : {DType::tq1_0, DType::tq2_0, DType::q2_0}) {
    for (const uint32_t zeros : {0u, 1u, 5u, 60u}) {
      std::vector<float> x(512);
      for (float& v : x) v = random() % (zeros + 2) > 1 ? 0.0f : random() % 2 == 0 ? 0.37f : -0.37f;
      const std::vector<float> y = values_of(type, searched(type, x, 512), x.size());
      EXPECT_LT(relative_error(x, y, {}), 5e-4) << name(type) << " " << zeros;
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i] == 0.0f, y[i] == 0.0f) << i;
    }
  }
}

/// The least error of the levels -d and d for 128 values each, which the mean magnitude as d has.
double error_of_signs(const std::vector<float>& x) {
  double errors = 0;
  for (size_t first = 0; first < x.size(); first += 128) {
    double squares = 0, magnitudes = 0;
    for (size_t i = first; i < first + 128; ++i) {
      squares += std::pow(double{x[i]}, 2);
      magnitudes += std::fabs(double{x[i]});
    }
    errors += squares - magnitudes * magnitudes / 128;
  }
  return errors;
}

TEST(Search, UnusualValues) {
  const auto kinds = [] {
    std::vector<std::pair<std::string, std::vector<float>>> rows;
    const auto row = [&](const char* name, auto f) {
      std::vector<float> x(256);
      for (size_t i = 0; i < x.size(); ++i) x[i] = f(i);
      rows.emplace_back(name, x);
    };
    row("zeros", [](size_t) { return 0.0f; });
    row("negative zeros", [](size_t) { return -0.0f; });
    row("denormals", [](size_t i) { return static_cast<float>(i) * 1e-42f; });
    row("tiny", [](size_t i) { return std::sin(static_cast<float>(i)) * 1e-20f; });
    row("constant", [](size_t) { return 0.37f; });
    row("negative constant", [](size_t) { return -0.37f; });
    row("one outlier", [](size_t i) { return i == 77 ? 1000.0f : 0.001f; });
    row("one value", [](size_t i) { return i == 200 ? -3.0f : 0.0f; });
    row("large", [](size_t i) { return std::sin(static_cast<float>(i)) * 30000.0f; });
    row("positive", [](size_t i) { return 1.0f + static_cast<float>(i % 7); });
    row("two values", [](size_t i) { return i % 2 == 0 ? 1.0f : -1.0f; });
    return rows;
  }();
  for (const DType type : types()) {
    for (const auto& [name, x] : kinds) {
      SCOPED_TRACE(std::string(wick::name(type)) + " " + name);
      const std::vector<float> y = values_of(type, searched(type, x, 256), x.size());
      double errors = 0, all = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isfinite(y[i])) << i;
        errors += std::pow(double{y[i]} - double{x[i]}, 2);
        all += std::pow(double{x[i]}, 2);
      }
      // No worse than zeros, but for the rounding of the scale.
      EXPECT_LE(errors, all * 1.001);
      if (name.ends_with("constant") || name == "one value" || name == "one outlier") {
        // Codebooks have no level 0 for the values beside a large one.
        const bool alike = name.ends_with("constant");
        const double most = has_codebook(type) && !alike ? 0.6 : 0.02;
        const double rounding = all * 0x1p-22;  // of the scale to f16
        EXPECT_LE(errors, type == DType::q1_0 ? error_of_signs(x) + rounding : all * most);
      }
    }
    // Values that aren't finite give some block, without a crash.
    for (const float bad : {NAN, INFINITY, -INFINITY, 3e38f}) {
      std::vector<float> x(256, 0.5f);
      x[17] = bad;
      searched(type, x, 256);
      searched(type, std::vector<float>(256, bad), 256);
    }
  }
}

TEST(Search, EqualBlocksOfAllInstructionSetsAndThreads) {
  const Data& d = data();
  const int before = threads();
  std::vector<float> w(kColumns);
  for (size_t i = 0; i < w.size(); ++i) w[i] = d.weights[i] / 128.0f;
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const int64_t block = info(type).block_elems;
    std::vector<uint8_t> first;
    for (const Isa isa : available_isas()) {
      std::vector<uint8_t> out(static_cast<size_t>(bytes_of(type, kColumns)));
      search_blocks(isa, type)(d.heavy.data(), w.data(), kColumns / block, out.data());
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << name(isa);
    }
    set_threads(1);
    const auto alone = searched(type, d.heavy, kColumns, d.weights.data());
    set_threads(3);
    EXPECT_EQ(searched(type, d.heavy, kColumns, d.weights.data()), alone);
    set_threads(before);
  }
}

TEST(Search, Errors) {
  std::vector<float> x(256);
  std::vector<std::byte> out(1024);
  const auto error = [&](DType type, int64_t columns) -> std::string {
    try {
      search_rows(type, x.data(), 1, columns, nullptr, out.data());
    } catch (const Error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_EQ(error(DType::q4_k, 128),
            "quantize: row isn't a whole number of blocks: 128 values, q4_k: multiples of 256");
  EXPECT_TRUE(error(DType::f16, 256).starts_with("quantize: no search for this dtype: f16: use "));
  EXPECT_TRUE(
      error(DType::q8_k, 256).starts_with("quantize: no search for this dtype: q8_k: use "));
  search_rows(DType::q4_k, nullptr, 0, 256, nullptr, nullptr);
}

}  // namespace
}  // namespace wick::cpu::test
