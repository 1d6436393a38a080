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

/// Calls body(first column, Columns<..>()) for all columns, by two vectors, by one, and singly.
template <class Body>
WICK_FN void for_columns(int64_t columns, const Body& body) {
  int64_t i = 0;
  for (; i + 2 * kWidth <= columns; i += 2 * kWidth) body(i, Columns<2>());
  for (; i + kWidth <= columns; i += kWidth) body(i, Columns<1>());
  for (; i < columns; ++i) body(i, Columns<0>());
}

// y = bias + Σ_j weight[j] · x[i − k + 1 + j]: a chain of fma from bias (0 without one), j
// ascending. Index map: columns are channels; the channels of a row follow each other. Bytes moved:
// x and y once; x is read from a cache for the other taps.
void conv(const ConvColumns& of) {
  constexpr int64_t kTaps = 16;  // taps of a pass; later passes continue the sums of y
  const int64_t before = of.taps - 1;
  for (int64_t i = 0; i < of.rows; ++i) {
    float* y = of.y + i * of.y_step;
    for (int64_t first = 0; first < of.taps; first += kTaps) {
      const int64_t taps = min(of.taps - first, kTaps);
      const float* inputs[kTaps];
      for (int64_t j = 0; j < taps; ++j) {
        const int64_t row = of.first + i - before + first + j;
        inputs[j] = row < 0 ? of.state + (row + before) * of.state_step
                            : of.x + (row - of.x_first) * of.x_step;
      }
      const float* start = first > 0 ? y : of.bias;
      for_columns(of.channels, [&]<class C>(int64_t at, C) {
        C sum = start != nullptr ? C::load(start + at) : C::of(0.0f);
        for (int64_t j = 0; j < taps; ++j) {
          sum = C::fma(C::load(of.weight + (first + j) * of.weight_step + at),
                       C::load(inputs[j] + at), sum);
        }
        sum.store(y + at);
      });
    }
  }
}

/// kRows rows of ssm_scan for the columns at `at`, which go through the state together.
template <int kRows, class C>
WICK_FN void ssm_rows(const ScanColumns& of, int64_t at, int64_t row) {
  C x[kRows], input[kRows], decay[kRows], y[kRows];
  const float *b = of.b + row * of.b_step, *c = of.c + row * of.c_step;
  for (int r = 0; r < kRows; ++r) {
    const float dt = of.factor[(row + r) * of.factor_step];
    decay[r] = C::of(math::exp(dt * of.a));
    x[r] = C::load(of.x + (row + r) * of.x_step + at);
    input[r] = C::of(dt) * x[r];
    y[r] = C::of(0.0f);
  }
  float* state = of.state + at;
  for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
    C s = C::load(state);
    for (int r = 0; r < kRows; ++r) {
      s = C::fma(s, decay[r], input[r] * C::of(b[r * of.b_step + n]));
      y[r] = C::fma(s, C::of(c[r * of.c_step + n]), y[r]);
    }
    s.store(state);
  }
  for (int r = 0; r < kRows; ++r) {
    if (of.d != nullptr) y[r] = C::fma(C::of(*of.d), x[r], y[r]);
    y[r].store(of.y + (row + r) * of.y_step + at);
  }
}

// S = fma(S, exp(dt · a), (dt · x) · b), y = chain of fma(S, c, y) from 0 over m, then fma(d, x,
// y). Index map: the state of some columns stays in a cache for all rows of the sequence. Each of
// its elements is read once for some rows.
void ssm(const ScanColumns& of) {
  constexpr int kRows = kVectorBytes == 64 ? 4 : 2;  // as many as fit in the registers
  for_columns(of.columns, [&]<class C>(int64_t at, C) {
    int64_t i = 0;
    for (; i + kRows <= of.rows; i += kRows) ssm_rows<kRows, C>(of, at, i);
    for (; i < of.rows; ++i) ssm_rows<1, C>(of, at, i);
  });
}

// S = S · exp(g), held = chain of fma(S, k, held) from 0 over m, change = (v − held) · beta, S =
// fma(k, change, S), y = chain of fma(S, q, y) from 0 over m. Index map: that of ssm. The loop that
// changes an element for one row also decays it for the next row.
void delta(const ScanColumns& of) {
  for_columns(of.columns, [&]<class C>(int64_t at, C) {
    const auto decay_of = [&](int64_t i) { return C::of(math::exp(of.decay[i * of.decay_step])); };
    const auto changed = [&](int64_t i, const C& held) {
      return (C::load(of.x + i * of.x_step + at) - held) * C::of(of.factor[i * of.factor_step]);
    };
    C held = C::of(0.0f);
    const C first = decay_of(0);
    float* state = of.state + at;
    for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
      const C s = C::load(state) * first;
      s.store(state);
      held = C::fma(s, C::of(of.b[n]), held);
    }
    for (int64_t i = 0; i < of.rows; ++i) {
      const float *k = of.b + i * of.b_step, *q = of.c + i * of.c_step;
      const C change = changed(i, held);
      C y = C::of(0.0f);
      state = of.state + at;
      if (i + 1 == of.rows) {
        for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
          const C s = C::fma(C::of(k[n]), change, C::load(state));
          s.store(state);
          y = C::fma(s, C::of(q[n]), y);
        }
      } else {
        const C decay = decay_of(i + 1);
        const float* next = k + of.b_step;
        held = C::of(0.0f);
        for (int64_t n = 0; n < of.m; ++n, state += of.state_step) {
          const C s = C::fma(C::of(k[n]), change, C::load(state));
          y = C::fma(s, C::of(q[n]), y);
          const C decayed = s * decay;
          decayed.store(state);
          held = C::fma(decayed, C::of(next[n]), held);
        }
      }
      y.store(of.y + i * of.y_step + at);
    }
  });
}

}  // namespace

constexpr RecurrentKernels recurrent_kernels{conv, ssm, delta};

}  // namespace wick::cpu::WICK_ISA
