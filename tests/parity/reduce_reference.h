#pragma once

// Plain reductions: which elements go into each result, and the specified order of one reduction.

#include <cstdint>
#include <span>
#include <vector>

#include "tests/parity/harness.h"
#include "tests/parity/ordered.h"
#include "wick/math/scalar.h"

namespace wick::parity {

inline Shape reduced_shape(const Shape& shape, uint32_t dims) {
  Shape result = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d) & 1) result = result.with(d, 1);
  }
  return result;
}

/// Returns, for each output in row-major order, the row-major indices of the inputs that it
/// reduces, in order.
inline std::vector<std::vector<size_t>> groups(const Shape& shape, uint32_t dims) {
  const Shape out = reduced_shape(shape, dims);
  std::vector<std::vector<size_t>> result(static_cast<size_t>(out.elems()));
  for (int64_t i = 0; i < shape.elems(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (((dims >> d) & 1) == 0) at += rest % shape[d] * stride, stride *= shape[d];
      rest /= shape[d];
    }
    result[static_cast<size_t>(at)].push_back(static_cast<size_t>(i));
  }
  return result;
}

/// Returns the specified result of one set of elements, given by their bits.
inline uint64_t reduce_group(Op op, DType dtype, std::span<const uint64_t> x) {
  const int width = 8 * info(dtype).block_bytes;
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  uint64_t result = 0;
  if (!is_float(dtype)) {
    if (op == Op::sum) {
      for (uint64_t v : x) result += static_cast<uint64_t>(decode_int(dtype, v));
      return result & mask;
    }
    if (op == Op::prod) {
      result = 1;
      for (uint64_t v : x) result *= static_cast<uint64_t>(decode_int(dtype, v));
      return result & mask;
    }
    result = x[0];
    for (uint64_t v : x) {
      const int64_t a = decode_int(dtype, v), b = decode_int(dtype, result);
      if (op == Op::max ? a > b : a < b) result = v;
    }
    return result;
  }
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    std::vector<A> values;
    for (uint64_t v : x) values.push_back(static_cast<A>(decode(dtype, v)));
    A y = 0;
    if (op == Op::sum || op == Op::mean) {
      y = ordered_sum<A>(values);
      if (op == Op::mean) y = y / static_cast<A>(values.size());
    } else if (op == Op::prod) {
      y = ordered_product<A>(values);
    } else if (op != Op::max && op != Op::min) {
      ADD_FAILURE() << name(op) << " has no reference";
    } else {
      y = values[0];
      for (A v : values) y = op == Op::max ? math::maximum(y, v) : math::minimum(y, v);
    }
    result = encode(dtype, y);
  });
  return result;
}

}  // namespace wick::parity
