#pragma once

// Exponentials and logarithms of whole vectors. For kernels: in the namespace of an instruction
// set.

#include "wick/backend/cpu/lanes.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// The exponentials of a vector; the compiler keeps the lanes in their register.
template <class A>
WICK_FN auto exp_lanes(decltype(splat(A{})) v) {
  alignas(kVectorBytes) A lane[kLanes<A>];
  store(lane, v);
  for (int l = 0; l < kLanes<A>; ++l) lane[l] = math::exp(lane[l]);
  return load(lane);
}

template <class A>
WICK_FN auto log_lanes(decltype(splat(A{})) v) {
  alignas(kVectorBytes) A lane[kLanes<A>];
  store(lane, v);
  for (int l = 0; l < kLanes<A>; ++l) lane[l] = math::log(lane[l]);
  return load(lane);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
