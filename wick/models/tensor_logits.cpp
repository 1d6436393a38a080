#include "wick/models/tensor_logits.h"

#include <algorithm>

#include "wick/base/sampling/likeliest.h"
#include "wick/math/sampling.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/ops.h"

namespace wick::models {

template <class T>
std::vector<T> TensorLogits::copied(const Tensor& x) {
  bytes_ += static_cast<uint64_t>(x.elems()) * sizeof(T);
  return x.to_vector<T>();
}

bool TensorLogits::good() {
  // NaN isn't below infinity.
  return wick::all(logits_ < Tensor::full({1}, -kExcluded, DType::f32, logits_.device()))
      .item<bool>();
}

std::vector<float> TensorLogits::all() { return copied<float>(logits_); }

std::vector<float> TensorLogits::at(std::span<const int32_t> ids) {
  if (ids.empty()) return {};
  const std::vector<uint32_t> words(ids.begin(), ids.end());
  const Shape shape{static_cast<int64_t>(words.size())};
  return copied<float>(index_select(logits_, Tensor::from(words, shape, logits_.device()), 0));
}

std::vector<LogitSource::Token> TensorLogits::top(size_t count) {
  // Adding 0 makes -0 equal to +0. Equal logits keep the order of their ids.
  const auto sorted = topk(logits_ + 0.0, static_cast<int64_t>(std::min(count, size())), 0);
  const std::vector<float> values = copied<float>(sorted.values);
  const std::vector<uint32_t> ids = copied<uint32_t>(sorted.indices);
  std::vector<Token> tokens;
  for (size_t i = 0; i < ids.size(); ++i) {
    tokens.push_back({values[i], static_cast<int32_t>(ids[i])});
  }
  return tokens;
}

/// Computes math::token_weight and math::weighted_distance of each token. They are below 2^63, so
/// i64 holds them.
LogitSource::Sums TensorLogits::below(Token last, double top, double heat) {
  const Device device = logits_.device();
  const auto number = [&](double x, DType dtype) { return Tensor::full({1}, x, dtype, device); };
  const Tensor ids = Tensor::arange(0, logits_.elems(), 1, DType::u32, device);
  const Tensor equal = eq(logits_, number(last.logit, DType::f32));
  const Tensor after = ids > number(last.id, DType::u32);
  const Tensor lower = logits_ < number(last.logit, DType::f32);
  const Tensor finite = logits_ > number(kExcluded, DType::f32);
  const Tensor counted = (lower | (equal & after)) & finite;
  // Tokens that don't count get a difference whose weight is 0.
  constexpr double kFar = -1000;
  const Tensor differences = (logits_.to(DType::f64) - top) / heat;
  const Tensor less = where(counted, differences, number(kFar, DType::f64));
  const Tensor weights = (exp(less) * math::kTopWeight + 0.5).to(DType::i64);
  const Tensor distances = (weights.to(DType::f64) * neg(less) + 0.5).to(DType::i64);
  const Tensor sums[] = {sum(counted.to(DType::i64), {}, true), sum(weights, {}, true),
                         sum(distances, {}, true)};
  const std::vector<int64_t> values = copied<int64_t>(cat(sums, 0));
  return {.count = static_cast<uint64_t>(values[0]),
          .weights = static_cast<uint64_t>(values[1]),
          .distances = static_cast<uint64_t>(values[2])};
}

}  // namespace wick::models
