#pragma once

// The written orders of docs/design/numerics/ as plain scalar code: what every backend's bits are
// compared with. Shares the scalar functions with the kernels and nothing else.

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tests/parity/harness.h"

namespace wick::parity {

/// The row sum: chunks of 4096, element c of a chunk to accumulator c mod 128; chunks join by twos.
template <class A>
A ordered_sum(std::span<const A> x) {
  std::vector<A> sums;
  for (size_t start = 0; start < x.size(); start += 4096) {
    std::array<A, 128> acc{};
    for (size_t c = 0; c < 4096 && start + c < x.size(); ++c) acc[c % 128] += x[start + c];
    std::array<A, 32> lane;
    for (size_t l = 0; l < 32; ++l) {
      lane[l] = (acc[4 * l] + acc[4 * l + 1]) + (acc[4 * l + 2] + acc[4 * l + 3]);
    }
    for (size_t distance = 16; distance > 0; distance /= 2) {
      std::array<A, 32> next;
      for (size_t l = 0; l < 32; ++l) next[l] = lane[l] + lane[l ^ distance];
      lane = next;
    }
    sums.push_back(lane[0]);
  }
  while (sums.size() > 1) {
    std::vector<A> next;
    for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums = next;
  }
  return sums.empty() ? A{0} : sums[0];
}

/// Calls body with a float, or with a double where the dtype computes in f64.
template <class F>
void with_compute_type(DType dtype, F&& body) {
  if (dtype == DType::f64) {
    body(double{});
  } else {
    body(float{});
  }
}

/// A tensor's elements as numbers of the compute type, in row-major order.
template <class A>
std::vector<A> elements(const TestTensor& t) {
  std::vector<A> result;
  for (uint64_t bits : t.bits()) result.push_back(static_cast<A>(decode(t.dtype(), bits)));
  return result;
}

/// Shape as (outer, n, inner) around a dim: element (o, i, j) has the row-major index
/// (o * n + i) * inner + j.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
  Around(const Shape& shape, int dim) {
    for (int d = 0; d < shape.rank(); ++d) {
      (d < dim ? outer : d == dim ? n : inner) *= shape[d];
    }
  }
};

}  // namespace wick::parity
