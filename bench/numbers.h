#pragma once

#include <cstdint>

namespace wick::bench {

/// Numbers from a linear congruential generator.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed) {}
  uint32_t bits() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ ^ state_ >> 15;
  }
  /// Returns a number in [-1, 1).
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f; }
  /// Returns an approximately normal number.
  float normal() {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(bits() >> 8) * 0x1p-24f - 0.5f;
    return sum * 1.7f;
  }

 private:
  uint32_t state_;
};

}  // namespace wick::bench
