#pragma once

// The orders of summation specified in docs/design/numerics/, as plain scalar code. Every backend's
// bits are compared with it. It shares only the scalar functions with the kernels.

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tests/parity/harness.h"

namespace wick::parity {

/// Computes the order of the row sum with any combining function: chunks of 4096 elements, where
/// element c of a chunk goes to accumulator c mod 128. Chunks are combined pairwise.
template <class A, class Join>
A ordered_tree(std::span<const A> x, A neutral, const Join& join) {
  std::vector<A> parts;
  for (size_t start = 0; start < x.size(); start += 4096) {
    std::array<A, 128> acc;
    acc.fill(neutral);
    for (size_t c = 0; c < 4096 && start + c < x.size(); ++c) {
      acc[c % 128] = join(acc[c % 128], x[start + c]);
    }
    std::array<A, 32> lane;
    for (size_t l = 0; l < 32; ++l) {
      lane[l] = join(join(acc[4 * l], acc[4 * l + 1]), join(acc[4 * l + 2], acc[4 * l + 3]));
    }
    for (size_t distance = 16; distance > 0; distance /= 2) {
      std::array<A, 32> next;
      for (size_t l = 0; l < 32; ++l) next[l] = join(lane[l], lane[l ^ distance]);
      lane = next;
    }
    parts.push_back(lane[0]);
  }
  while (parts.size() > 1) {
    std::vector<A> next;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(join(parts[i], parts[i + 1]));
    if (parts.size() % 2 == 1) next.push_back(parts.back());
    parts = next;
  }
  return parts.empty() ? neutral : parts[0];
}

template <class A>
A ordered_sum(std::span<const A> x) {
  return ordered_tree<A>(x, A{0}, [](A a, A b) { return a + b; });
}
template <class A>
A ordered_product(std::span<const A> x) {
  return ordered_tree<A>(x, A{1}, [](A a, A b) { return a * b; });
}

/// The type of exact values beside those of A. It is twice as precise; long double would take many
/// times as long, because processors handle its infinities and NaNs in microcode.
template <class A>
using ExactOf = std::conditional_t<std::is_same_v<A, float>, double, long double>;

/// Calls body with a float, or with a double if the dtype computes in f64.
template <class F>
void with_compute_type(DType dtype, F&& body) {
  if (dtype == DType::f64) {
    body(double{});
  } else {
    body(float{});
  }
}

/// Returns a tensor's elements in the compute type, in row-major order.
template <class A>
std::vector<A> elements(const TestTensor& t) {
  std::vector<A> result;
  for (uint64_t bits : t.bits()) result.push_back(static_cast<A>(decode(t.dtype(), bits)));
  return result;
}

/// Views a shape as (outer, n, inner) around a dim: element (o, i, j) has the row-major index (o *
/// n + i) * inner + j.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;
  Around(const Shape& shape, int dim) {
    for (int d = 0; d < shape.rank(); ++d) {
      (d < dim ? outer : d == dim ? n : inner) *= shape[d];
    }
  }
};

}  // namespace wick::parity
