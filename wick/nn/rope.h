#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// How positions beyond the trained context are squeezed into it.
enum class RopeScaling : uint8_t { none, linear, yarn };

/// Which angles a RopeTable holds.
struct RopeOptions {
  int64_t dims = 0;       ///< rotated elements of a head, even
  double base = 10000.0;  ///< θ: pair i turns by position · θ^(−2i / dims)
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;            ///< linear, yarn: how many times longer than trained
  int64_t original_context = 0;   ///< yarn: positions trained on
  double attention_factor = 1.0;  ///< cos and sin are multiplied by it
  double beta_fast = 32.0;  ///< yarn: turns within the trained context above which a pair is kept
  double beta_slow = 1.0;   ///< yarn: and below which it is fully squeezed
  /// Divisors of each pair's frequency, dims / 2 of them or none (Llama 3.1, LongRoPE).
  std::vector<float> frequency_divisors = {};
};

/// Cosines and sines of every pair at every position, grown as positions are asked for. The angles
/// are computed in f64 with wick's own functions, so every machine rotates by the same bits.
/// Sources: Su et al., "RoFormer", 2021; Peng et al., "YaRN", 2023.
class WICK_API RopeTable {
 public:
  RopeTable() = default;
  /// Errors: dims odd or not positive, a base, factor or divisor that isn't positive.
  RopeTable(const RopeOptions& options, Device device);

  /// f32 [count, dims / 2] for positions start, start + 1, …
  Tensor cos(int64_t start, int64_t count) const { return cos_.narrow(0, start, count); }
  Tensor sin(int64_t start, int64_t count) const { return sin_.narrow(0, start, count); }
  /// Makes positions [0, end) available.
  void reserve(int64_t end);

 private:
  std::vector<double> frequencies_;
  double magnitude_ = 1.0;
  Device device_;
  Tensor cos_, sin_;
};

}  // namespace wick::nn
