#include "wick/base/sampling/likeliest.h"

#include <fmt/format.h>

#include <cstring>

#include "wick/base/error.h"

namespace wick {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

// This loop uses the compiler's vector types, because g++ 12 doesn't vectorise the plain one and
// greedy decoding spends all its time here.
Largest largest(std::span<const float> logits) {
  const float* const x = logits.data();
  const size_t count = logits.size();
  using Floats = float __attribute__((vector_size(16)));
  using Masks = int32_t __attribute__((vector_size(16)));
  constexpr size_t kVectors = 4, kStep = 4 * kVectors;
  Floats top[kVectors];
  Masks good[kVectors];
  for (size_t j = 0; j < kVectors; ++j) {
    top[j] = Floats{} - kInf;
    good[j] = Masks{} == 0;
  }
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (size_t j = 0; j < kVectors; ++j) {
      Floats v;
      std::memcpy(&v, x + i + 4 * j, sizeof(v));
      top[j] = v > top[j] ? v : top[j];
      good[j] &= v < kInf;
    }
  }
  Largest all;
  const auto add = [&](float value) {
    all.value = value > all.value ? value : all.value;
    all.bad |= !(value < kInf);  // true for NaN too
  };
  for (size_t j = 0; j < kVectors; ++j) {
    for (size_t lane = 0; lane < 4; ++lane) {
      all.value = top[j][lane] > all.value ? top[j][lane] : all.value;
      all.bad |= good[j][lane] == 0;
    }
  }
  for (; i < count; ++i) add(x[i]);
  return all;
}

void check_count(size_t logits) {
  if (logits == 0) throw Error("sample", "no logits");
  if (logits >= size_t{1} << 21) {
    throw Error("sample", "too many logits", fmt::format("{}", logits), "need < 2^21");
  }
}

void throw_bad_logits(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInf)) {
      throw Error("sample", "bad logit", fmt::format("{} for token {}", logits[i], i),
                  "need finite numbers or -inf");
    }
  }
  throw Error("sample", "every logit is -inf", fmt::format("{} logits", logits.size()));
}

}  // namespace wick
