#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// The logits of one step, of which a sampler reads as few as it needs: they may be in the memory
/// of a GPU. Tokens rank as in likeliest.h.
class WICK_API LogitSource {
 public:
  struct Token {
    float logit;
    int32_t id;
  };
  /// Sums over tokens. They are integers, so they don't depend on the order of summation.
  struct Sums {
    uint64_t count = 0;
    uint64_t weights = 0;    ///< of math::token_weight
    uint64_t distances = 0;  ///< of math::weighted_distance
  };

  virtual ~LogitSource();
  virtual size_t size() const = 0;
  /// Whether all logits are finite or -inf.
  virtual bool good() = 0;
  virtual std::vector<float> all() = 0;
  /// The logits of tokens, whose ids are below size().
  virtual std::vector<float> at(std::span<const int32_t> ids) = 0;
  /// The `count` tokens that rank highest, at most size(), in order of rank. Tokens at -inf may be
  /// missing.
  virtual std::vector<Token> top(size_t count) = 0;
  /// Sums over the tokens that rank below `last`, except those at -inf. Weights are those of logits
  /// divided by `heat`, relative to `top`, which is at least last.logit.
  virtual Sums below(Token last, double top, double heat) = 0;
};

/// Logits in the host's memory.
class WICK_API SpanLogits final : public LogitSource {
 public:
  explicit SpanLogits(std::span<const float> logits) : logits_(logits) {}
  size_t size() const override { return logits_.size(); }
  bool good() override;
  std::vector<float> all() override { return {logits_.begin(), logits_.end()}; }
  std::vector<float> at(std::span<const int32_t> ids) override;
  std::vector<Token> top(size_t count) override;
  Sums below(Token last, double top, double heat) override;

 private:
  std::span<const float> logits_;
};

}  // namespace wick
