// Kernels of recurrences. Vectors hold columns, which are independent, so the width of a vector
// changes no bit.

#include "wick/backend/cpu/recurrent/recurrent_kernels.h"

#include "wick/backend/cpu/simd/vec.h"
#include "wick/math/recurrence.h"

namespace wick::cpu::WICK_ISA {
namespace {

using V = Vec<float>;
constexpr int64_t kWidth = kLanes<float>;

/// kCount vectors of columns, or, for kCount = 0, one column.
template <int kCount>
struct Columns {
  static constexpr int64_t kSize = kCount * kWidth;
  V v[kCount];

  static WICK_FN Columns of(float x) {
    Columns r;
    for (int i = 0; i < kCount; ++i) r.v[i] = splat(x);
    return r;
  }
  static WICK_FN Columns load(const float* p) {
    Columns r;
    __builtin_memcpy(r.v, p, sizeof r.v);
    return r;
  }
  WICK_FN void store(float* p) const { __builtin_memcpy(p, v, sizeof v); }
  WICK_FN Columns operator*(const Columns& o) const {
    Columns r;
    for (int i = 0; i < kCount; ++i) r.v[i] = v[i] * o.v[i];
    return r;
  }
  WICK_FN Columns operator-(const Columns& o) const {
    Columns r;
    for (int i = 0; i < kCount; ++i) r.v[i] = v[i] - o.v[i];
    return r;
  }
  /// a · b + c, rounded once.
  static WICK_FN Columns fma(const Columns& a, const Columns& b, const Columns& c) {
    Columns r;
    for (int i = 0; i < kCount; ++i) r.v[i] = WICK_ISA::fma(a.v[i], b.v[i], c.v[i]);
    return r;
  }
};
template <>
struct Columns<0> {
  static constexpr int64_t kSize = 1;
  float v;

  static WICK_FN Columns of(float x) { return {x}; }
  static WICK_FN Columns load(const float* p) { return {*p}; }
  WICK_FN void store(float* p) const { *p = v; }
  WICK_FN Columns operator*(const Columns& o) const { return {v * o.v}; }
  WICK_FN Columns operator-(const Columns& o) const { return {v - o.v}; }
  static WICK_FN Columns fma(const Columns& a, const Columns& b, const Columns& c) {
    return {math::fma(a.v, b.v, c.v)};
  }
};

/// Calls body(first column, Columns<..>()) for all columns, by four vectors, by one, and singly.
template <class Body>
WICK_FN void for_columns(int64_t columns, const Body& body) {
  int64_t i = 0;
  for (; i + 4 * kWidth <= columns; i += 4 * kWidth) body(i, Columns<4>());
  for (; i + kWidth <= columns; i += kWidth) body(i, Columns<1>());
  for (; i < columns; ++i) body(i, Columns<0>());
}

// y = bias + Σ_j weight[j] · x[i − k + 1 + j]: a chain of fma from bias (0 without one), j
// ascending. Index map: columns are channels. Bytes moved: x, y and the state once; x is read from
// a cache for the other taps.
void conv(const ConvColumns& of) {
  const int64_t before = of.taps - 1;
  for_columns(of.channels, [&]<class C>(int64_t at, C) {
    // Input i − before + j of row i; negative ones are in the state.
    const auto input = [&](int64_t row) {
      return C::load(row < 0 ? of.state + (row + before) * of.state_step + at
                             : of.x + row * of.x_step + at);
    };
    const C start = of.bias != nullptr ? C::load(of.bias + at) : C::of(0.0f);
    for (int64_t i = 0; i < of.rows; ++i) {
      C y = start;
      for (int64_t j = 0; j < of.taps; ++j) {
        y = C::fma(C::load(of.weight + j * of.weight_step + at), input(i - before + j), y);
      }
      y.store(of.y + i * of.y_step + at);
    }
    for (int64_t j = 0; j < before; ++j) {  // ascending: a state row comes from a later one or x
      input(of.rows - before + j).store(of.state + j * of.state_step + at);
    }
  });
}

// S = fma(S, exp(dt · a), (dt · x) · b), y = chain of fma(S, c, y) from 0 over m, then fma(d, x,
// y). Index map: the rows of the state for some columns stay in a cache for all rows of the
// sequence.
void ssm(const ScanColumns& of) {
  for_columns(of.columns, [&]<class C>(int64_t at, C) {
    for (int64_t i = 0; i < of.rows; ++i) {
      const float dt = of.factor[i * of.factor_step];
      const C decay = C::of(math::exp(dt * of.a));
      const C x = C::load(of.x + i * of.x_step + at), input = C::of(dt) * x;
      const float *b = of.b + i * of.b_step, *c = of.c + i * of.c_step;
      C y = C::of(0.0f);
      float* state = of.state + at;
      for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
        const C s = C::fma(C::load(state), decay, input * C::of(b[n]));
        s.store(state);
        y = C::fma(s, C::of(c[n]), y);
      }
      if (of.d != nullptr) y = C::fma(C::of(*of.d), x, y);
      y.store(of.y + i * of.y_step + at);
    }
  });
}

// S = S · exp(g), held = chain of fma(S, k, held) from 0 over m, change = (v − held) · beta, S =
// fma(k, change, S), y = chain of fma(S, q, y) from 0 over m. Index map: that of ssm.
void delta(const ScanColumns& of) {
  for_columns(of.columns, [&]<class C>(int64_t at, C) {
    for (int64_t i = 0; i < of.rows; ++i) {
      const C decay = C::of(math::exp(of.decay[i * of.decay_step]));
      const float *k = of.b + i * of.b_step, *q = of.c + i * of.c_step;
      C held = C::of(0.0f);
      float* state = of.state + at;
      for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
        const C s = C::load(state) * decay;
        s.store(state);
        held = C::fma(s, C::of(k[n]), held);
      }
      const C v = C::load(of.x + i * of.x_step + at);
      const C change = (v - held) * C::of(of.factor[i * of.factor_step]);
      C y = C::of(0.0f);
      state = of.state + at;
      for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
        const C s = C::fma(C::of(k[n]), change, C::load(state));
        s.store(state);
        y = C::fma(s, C::of(q[n]), y);
      }
      y.store(of.y + i * of.y_step + at);
    }
  });
}

}  // namespace

constexpr RecurrentKernels recurrent_kernels{conv, ssm, delta};

}  // namespace wick::cpu::WICK_ISA
