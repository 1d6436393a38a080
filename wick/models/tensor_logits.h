#pragma once

#include "wick/base/export.h"
#include "wick/base/sampling/logit_source.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// Logits on a device, of which the host reads the tokens that a sampler asks for.
class WICK_API TensorLogits final : public LogitSource {
 public:
  /// logits f32 [vocabulary]
  explicit TensorLogits(const Tensor& logits) : logits_(logits) {}

  size_t size() const override { return static_cast<size_t>(logits_.elems()); }
  bool good() override;
  std::vector<float> all() override;
  std::vector<float> at(std::span<const int32_t> ids) override;
  std::vector<Token> top(size_t count) override;
  Sums below(Token last, double top, double heat) override;

  /// The number of bytes that were copied to the host.
  uint64_t bytes_copied() const { return bytes_; }

 private:
  template <class T>
  std::vector<T> copied(const Tensor& x);

  Tensor logits_;
  uint64_t bytes_ = 0;
};

}  // namespace wick::models
