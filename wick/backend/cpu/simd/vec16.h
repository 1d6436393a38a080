#pragma once

// Sixteen numbers in as many registers as that takes, so that an order of operations with sixteen
// lanes is the same on every instruction set. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/simd/convert.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class T>
struct Vec16 {
  static constexpr int kRegisters = 16 / kLanes<T>;
  Vec<T> v[kRegisters];
};

#define WICK_VEC16_LOOP _Pragma("GCC unroll 8") for (int i = 0; i < Vec16<T>::kRegisters; ++i)

template <class T>
WICK_FN Vec16<T> load_16(const T* p) {
  Vec16<T> y;
  WICK_VEC16_LOOP y.v[i] = load(p + i * kLanes<T>);
  return y;
}
/// The first n numbers; the other lanes are 0.
template <class T>
WICK_FN Vec16<T> load_16_partial(const T* p, int64_t n) {
  if constexpr (Vec16<T>::kRegisters == 1) {
    return {{load_partial(p, static_cast<int>(n))}};
  } else {
    T lane[16] = {};
    for (int64_t i = 0; i < n; ++i) lane[i] = p[i];
    return load_16(lane);
  }
}
template <class T>
WICK_FN void store_16(T* p, Vec16<T> x) {
  WICK_VEC16_LOOP store(p + i * kLanes<T>, x.v[i]);
}
template <class T>
WICK_FN Vec16<T> splat_16(T x) {
  Vec16<T> y;
  WICK_VEC16_LOOP y.v[i] = splat(x);
  return y;
}
template <class T>
WICK_FN Vec16<T> add(Vec16<T> a, Vec16<T> b) {
  WICK_VEC16_LOOP a.v[i] = a.v[i] + b.v[i];
  return a;
}
template <class T>
WICK_FN Vec16<T> mul(Vec16<T> a, Vec16<T> b) {
  WICK_VEC16_LOOP a.v[i] = a.v[i] * b.v[i];
  return a;
}
/// a * b + c with one rounding.
template <class T>
WICK_FN Vec16<T> fma(Vec16<T> a, Vec16<T> b, Vec16<T> c) {
  WICK_VEC16_LOOP c.v[i] = fma(a.v[i], b.v[i], c.v[i]);
  return c;
}
template <class T>
WICK_FN Vec16<T> multiply_add(Vec16<T> a, Vec16<T> b, Vec16<T> c) {
  WICK_VEC16_LOOP c.v[i] = multiply_add(a.v[i], b.v[i], c.v[i]);
  return c;
}

#undef WICK_VEC16_LOOP

}  // namespace
}  // namespace wick::cpu::WICK_ISA
