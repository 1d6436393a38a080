#include "wick/nn/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "wick/base/error.h"
#include "wick/math/scalar.h"

namespace wick::nn {
namespace {

/// The index, as a real number, of the pair that makes `turns` full rotations within the trained
/// context.
double pair_with_turns(const RopeOptions& o, double turns) {
  const double context = static_cast<double>(o.original_context);
  return static_cast<double>(o.dims) * math::log(context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * math::log(o.base));
}

void check(const RopeOptions& o) {
  const auto fits = [&](const std::vector<float>& divisors) {
    return divisors.empty() || static_cast<int64_t>(divisors.size()) == o.dims / 2;
  };
  const auto positive = [](const std::vector<float>& divisors) {
    return std::all_of(divisors.begin(), divisors.end(),
                       [](float d) { return d > 0.0f && std::isfinite(d); });
  };
  const bool divisors_fit = fits(o.frequency_divisors) && fits(o.long_divisors);
  const bool divisors_positive = positive(o.frequency_divisors) && positive(o.long_divisors);
  const bool valid =
      o.dims > 0 && o.dims % 2 == 0 && o.base > 1.0 && std::isfinite(o.base) && o.factor > 0.0 &&
      std::isfinite(o.factor) && o.attention_factor > 0.0 && std::isfinite(o.attention_factor) &&
      divisors_fit && divisors_positive &&
      (o.scaling != RopeScaling::yarn ||
       (o.original_context > 0 && o.beta_fast > 0.0 && o.beta_slow > 0.0 &&
        std::isfinite(o.beta_fast) && std::isfinite(o.beta_slow))) &&
      (o.scaling != RopeScaling::dynamic || (o.original_context > 0 && o.dims > 2)) &&
      (o.long_divisors.empty() || o.original_context > 0);
  if (!valid) {
    throw Error(
        "rope", "options out of range",
        fmt::format("dims {}, base {}, factor {}, original context {}, attention factor {}, "
                    "betas {} and {}, {} and {} divisors",
                    o.dims, o.base, o.factor, o.original_context, o.attention_factor, o.beta_fast,
                    o.beta_slow, o.frequency_divisors.size(), o.long_divisors.size()),
        "need even dims > 0, base > 1, positive factors and betas, and dims / 2 positive divisors "
        "or none");
  }
}

}  // namespace

RopeTable::RopeTable(const RopeOptions& o, Device device) : options_(o), device_(device) {
  check(o);
  magnitude_ = o.attention_factor;
  if (o.scaling == RopeScaling::yarn) magnitude_ *= 1.0 + 0.1 * math::log(o.factor);
}

std::vector<double> RopeTable::frequencies_of(double base,
                                              const std::vector<float>& divisors) const {
  const RopeOptions& o = options_;
  std::vector<double> frequencies;
  const int64_t pairs = o.dims / 2;
  double low = 0, high = 0;
  if (o.scaling == RopeScaling::yarn) {
    low = pair_with_turns(o, o.beta_fast), high = pair_with_turns(o, o.beta_slow);
    if (o.whole_pairs) low = std::floor(low), high = std::ceil(high);
    low = std::max(0.0, low), high = std::min(static_cast<double>(o.dims - 1), high);
  }
  for (int64_t i = 0; i < pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(o.dims);
    double frequency = math::exp(exponent * math::log(base));
    if (!divisors.empty()) frequency /= static_cast<double>(divisors[static_cast<size_t>(i)]);
    const double squeezed = frequency / o.factor;
    if (o.scaling == RopeScaling::linear) frequency = squeezed;
    if (o.scaling == RopeScaling::yarn) {
      const double along = (static_cast<double>(i) - low) / std::max(0.001, high - low);
      const double keep = 1.0 - std::clamp(along, 0.0, 1.0);
      frequency = squeezed * (1.0 - keep) + frequency * keep;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

double RopeTable::base_at(int64_t position) const {
  const RopeOptions& o = options_;
  const auto length = static_cast<double>(position + 1);
  const auto trained = static_cast<double>(o.original_context), dims = static_cast<double>(o.dims);
  if (length <= trained) return o.base;
  const double grown = o.factor * length / trained - (o.factor - 1.0);
  return o.base * math::pow(grown, dims / (dims - 2.0));
}

void RopeTable::reserve(int64_t end) {
  const int64_t have = cos_.defined() ? cos_.size(0) : 0;
  if (end <= have) return;
  const int64_t rows = std::max<int64_t>({end, have * 2, 256});
  const RopeOptions& o = options_;
  std::vector<double> frequencies = frequencies_of(o.base, o.frequency_divisors);
  const size_t pairs = frequencies.size();
  std::vector<float> cosines(static_cast<size_t>(rows) * pairs), sines(cosines.size());
  for (int64_t position = 0; position < rows; ++position) {
    const size_t row = static_cast<size_t>(position) * pairs;
    if (o.scaling == RopeScaling::dynamic && position >= o.original_context) {
      frequencies = frequencies_of(base_at(position), o.frequency_divisors);
    }
    if (!o.long_divisors.empty() && position == o.original_context) {
      frequencies = frequencies_of(o.base, o.long_divisors);
    }
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cosines[row + i] = static_cast<float>(math::cos(angle) * magnitude_);
      sines[row + i] = static_cast<float>(math::sin(angle) * magnitude_);
    }
  }
  const Shape shape{rows, static_cast<int64_t>(pairs)};
  cos_ = Tensor::from(cosines, shape, device_);
  sin_ = Tensor::from(sines, shape, device_);
}

}  // namespace wick::nn
