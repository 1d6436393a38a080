#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// How angles are scaled for contexts longer than the trained one.
enum class RopeScaling : uint8_t { none, linear, yarn, dynamic };

/// Parameters of a RopeTable's angles.
struct RopeOptions {
  int64_t dims = 0;       ///< rotated elements of a head; even
  double base = 10000.0;  ///< θ: pair i rotates by position · θ^(−2i / dims)
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;            ///< linear, yarn: ratio of the context to the trained context
  int64_t original_context = 0;   ///< yarn, dynamic, long_divisors: the trained context
  double attention_factor = 1.0;  ///< factor of cos and sin
  /// yarn: pairs that make more than beta_fast rotations within the trained context keep their
  /// frequency, pairs that make fewer than beta_slow get it divided by `factor`.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool whole_pairs = true;  ///< yarn: the bounds of these ranges of pairs are whole numbers
  // dynamic: a position p beyond the trained context n has the base of a sequence that it ends,
  // θ · (factor · (p + 1) / n − (factor − 1))^(dims / (dims − 2)).

  /// Divisors of the pairs' frequencies, dims / 2 of them, or none (Llama 3.1, LongRoPE).
  std::vector<float> frequency_divisors = {};
  /// LongRoPE: the divisors at positions beyond the trained context, which are those of a sequence
  /// that the position ends; none: frequency_divisors at all positions.
  std::vector<float> long_divisors = {};
};

/// Cosines and sines of every pair at every position. The table grows as positions are requested.
/// Angles are computed in f64 with wick's own functions, so all machines get the same bits.
/// Sources: Su et al., "RoFormer", 2021; Peng et al., "YaRN", 2023, which describes dynamic
/// scaling, too; Ding et al., "LongRoPE", 2024.
class WICK_API RopeTable {
 public:
  RopeTable() = default;
  /// Errors: dims is odd or not positive, or 2 with dynamic scaling; a base, factor or divisor
  /// isn't positive.
  RopeTable(const RopeOptions& options, Device device);

  /// Cosines (sines) f32 [count, dims / 2] of the positions start, start + 1, ….
  Tensor cos(int64_t start, int64_t count) const { return cos_.narrow(0, start, count); }
  Tensor sin(int64_t start, int64_t count) const { return sin_.narrow(0, start, count); }
  /// Extends the table to the positions [0, end).
  void reserve(int64_t end);

 private:
  /// The frequencies of a base and of divisors of the pairs.
  std::vector<double> frequencies_of(double base, const std::vector<float>& divisors) const;
  /// The base at a position of dynamic scaling.
  double base_at(int64_t position) const;

  RopeOptions options_;
  double magnitude_ = 1.0;
  Device device_;
  Tensor cos_, sin_;
};

}  // namespace wick::nn
