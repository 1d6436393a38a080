#pragma once

// grouped_linear on GPUs: splits a call into launches. Ids on the device choose the weight of each
// row.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/linear/grouped_abi.h"

namespace wick::gpu {

/// The experts and ids of one call of grouped_linear, and its launches. A launch takes a limited
/// number of experts and of pairs of a row and an expert.
class ExpertLaunches {
 public:
  /// ids: dense, `pairs` of them, n for each row of x. note: Gpu::note of the call.
  ExpertLaunches(Gpu& gpu, std::vector<const void*> weights, const uint32_t* ids, int64_t pairs,
                 int64_t n, uint32_t note)
      : gpu_(gpu), weights_(std::move(weights)), ids_(ids), pairs_(pairs), n_(n), note_(note) {}

  int64_t pairs() const { return pairs_; }
  /// The number of ids of a row of x.
  int64_t each() const { return n_; }
  /// The launches of kernels that find other things than the weights' data by ids.
  ExpertLaunches with(std::vector<const void*> weights) const {
    return ExpertLaunches(gpu_, std::move(weights), ids_, pairs_, n_, note_);
  }
  /// The launches of rows [first, first + rows) of x.
  ExpertLaunches part(int64_t first, int64_t rows) const {
    return ExpertLaunches(gpu_, weights_, ids_ + first * n_, rows * n_, n_, note_);
  }
  /// The number of experts.
  int64_t count() const { return static_cast<int64_t>(weights_.size()); }

  /// Whether there are so few pairs for each expert, on average, that it isn't slower to read an
  /// expert's weight once for each of its rows than to multiply tiles that are mostly empty.
  bool are_few() const { return pairs_ <= 4 * count(); }

  /// Experts `first` to at most `first` + kMost.
  Experts experts(int64_t first) const {
    Experts some;
    const int64_t held = std::min(int64_t{Experts::kMost}, count() - first);
    std::copy_n(weights_.begin() + first, held, some.weights);
    some.first = static_cast<uint32_t>(first);
    some.held = static_cast<uint32_t>(held);
    some.count = static_cast<uint32_t>(weights_.size());
    some.each = static_cast<uint32_t>(n_);
    some.ids = ids_;
    some.line = gpu_.fault_line();
    some.note = note_;
    return some;
  }

  /// Calls launch(experts, pairs) for each launch of kernels that take a pair at a time.
  template <class Launch>
  void for_each(Launch&& launch) const {
    constexpr int64_t kMostPairs = 32768;  // along the grid's y axis
    for (int64_t first = 0; first < count(); first += Experts::kMost) {
      Experts some = experts(first);
      for (int64_t pair = 0; pair < pairs_; pair += kMostPairs) {
        some.first_pair = static_cast<uint32_t>(pair);
        launch(some, static_cast<unsigned>(std::min(kMostPairs, pairs_ - pair)));
      }
    }
  }

 private:
  Gpu& gpu_;
  std::vector<const void*> weights_;
  const uint32_t* ids_;
  int64_t pairs_, n_;
  uint32_t note_;
};

}  // namespace wick::gpu
