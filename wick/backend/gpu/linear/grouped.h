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

/// The launches of one call of grouped_linear. A launch takes a limited number of experts and of
/// pairs of a row and an expert.
class ExpertLaunches {
 public:
  /// ids: dense, `pairs` of them, n for each row of x. note: Gpu::note of the call.
  ExpertLaunches(Gpu& gpu, std::vector<const void*> weights, const uint32_t* ids, int64_t pairs,
                 int64_t n, uint32_t note)
      : gpu_(gpu), weights_(std::move(weights)), ids_(ids), pairs_(pairs), n_(n), note_(note) {}

  /// Calls launch(experts, pairs) for each launch.
  template <class Launch>
  void for_each(Launch&& launch) const {
    constexpr size_t kMost = Experts::kMost;
    constexpr int64_t kMostPairs = 32768;  // along the grid's y axis
    for (size_t first = 0; first < weights_.size(); first += kMost) {
      Experts experts;
      const size_t held = std::min(kMost, weights_.size() - first);
      std::copy_n(weights_.begin() + static_cast<ptrdiff_t>(first), held, experts.weights);
      experts.first = static_cast<uint32_t>(first);
      experts.held = static_cast<uint32_t>(held);
      experts.count = static_cast<uint32_t>(weights_.size());
      experts.each = static_cast<uint32_t>(n_);
      experts.ids = ids_;
      experts.line = gpu_.fault_line();
      experts.note = note_;
      for (int64_t pair = 0; pair < pairs_; pair += kMostPairs) {
        experts.first_pair = static_cast<uint32_t>(pair);
        launch(experts, static_cast<unsigned>(std::min(kMostPairs, pairs_ - pair)));
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
