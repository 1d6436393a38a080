#pragma once

// Experts and ids for the tests of grouped_linear.

#include "tests/graph/graph_tests.h"

namespace wick::test {

class WithExperts : public OnDevices {
 protected:
  std::vector<Weight> experts(int64_t count, int64_t n, int64_t k, DType dtype) const {
    std::vector<Weight> all;
    for (int64_t e = 0; e < count; ++e) {
      const Tensor matrix = x({n, k}, static_cast<uint64_t>(100 + e)) * 0.1f;
      all.emplace_back(dtypes::kWrittenBlocks.contains(dtype) ? quantize(matrix, dtype)
                                                              : matrix.to(dtype));
    }
    return all;
  }
  Tensor ids(const std::vector<uint32_t>& words, int64_t n) const {
    return Tensor::from(words, {static_cast<int64_t>(words.size()) / n, n}, GetParam());
  }
  /// n experts for each of t rows. Some are chosen several times, the last one never.
  Tensor some_ids(int64_t t, int64_t n, int64_t count, uint32_t seed) const {
    std::vector<uint32_t> words;
    for (int64_t i = 0; i < t * n; ++i) {
      seed = seed * 1664525u + 1013904223u;
      words.push_back(static_cast<uint32_t>((seed >> 16) % static_cast<uint32_t>(count - 1)));
    }
    return ids(words, n);
  }
};

}  // namespace wick::test
