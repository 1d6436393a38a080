// y = f(a, b): for each row of WICK_BINARY and each of its dtypes one kernel over a dense run.
// out[i] = f(a[i], b[i]) for i in [0, n), a cache line of output at a time. Moves 3·n·size bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class S, bool kExact, class Function>
WICK_FN void pair_lines(S* __restrict y, const S* __restrict a, const S* __restrict b, int64_t n,
                        const Function& f) {
  if constexpr (kConvertsByRun<S>) {
    constexpr int64_t kN = kLine<S>;
    for (int64_t i = 0; i < n; i += kN) {
      alignas(64) float u[kN], v[kN];
      widen_run(u, a + i, kN);
      widen_run(v, b + i, kN);
      for (int64_t j = 0; j < kN; ++j) u[j] = f(u[j], v[j]);
      if constexpr (kExact) {
        narrow_run_exact(y + i, u, kN);
      } else {
        narrow_run(y + i, u, kN);
      }
    }
  } else {
    const int64_t whole = n / kLine<S> * kLine<S>;
    for (int64_t i = 0; i < whole; ++i) y[i] = narrow<S>(f(widen(a[i]), widen(b[i])));
  }
}

/// Whether every quotient a / b of a piece is at most 2^40 and none is NaN.
template <class S>
WICK_FN bool all_near(const S* a, const S* b, int64_t n) {
  int far = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float top = math::abs(widen(a[i])), bottom = math::abs(widen(b[i]));
    far |= !(top * 0x1p-40f <= bottom && bottom > 0x1p-80f && bottom < 0x1p100f);
  }
  return far == 0;
}

template <class F, class S>
struct Lines {
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict a,
                                            const S* __restrict b, int64_t n) const {
    const auto call = [](Compute<S> u, Compute<S> v) { return F::template call<S>(u, v); };
    if constexpr (F::kOp == Op::rem && math::kSame<Compute<S>, float>) {
      // math::rem takes six steps for large quotients, which most pieces don't have.
      constexpr int64_t kPiece = 512;
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t m = n - i < kPiece ? n - i : kPiece;
        if (all_near(a + i, b + i, m)) {
          pair_lines<S, false>(y + i, a + i, b + i, m, fn::rem_of_near);
        } else {
          pair_lines<S, false>(y + i, a + i, b + i, m, call);
        }
      }
    } else {
      pair_lines<S, F::kSelects>(y, a, b, n, call);
    }
  }
};

/// Integer division. Records zero divisors, and divides by one instead.
template <class F, class S>
struct DivisionLines {
  bool* fine;
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict a,
                                            const S* __restrict b, int64_t n) const {
    S zeros = 0;
    const int64_t whole = n / kLine<S> * kLine<S>;
    for (int64_t i = 0; i < whole; ++i) {
      const bool zero = b[i] == S{0};
      zeros = static_cast<S>(zeros | (zero ? S{1} : S{0}));
      y[i] = F::template call<S>(a[i], zero ? S{1} : b[i]);
    }
    *fine = *fine && zeros == S{0};
  }
};

template <class F, class S>
bool binary(int64_t n, void* out, const void* a, const void* b, bool stream) {
  S* y = static_cast<S*>(out);
  const S* u = static_cast<const S*>(a);
  const S* v = static_cast<const S*>(b);
  bool fine = true;
  if constexpr (F::kChecksDivisor && fn::Whole<S>) {
    cover(n, stream, DivisionLines<F, S>{&fine}, y, u, v);
  } else {
    cover(n, stream, Lines<F, S>{}, y, u, v);
  }
  return fine;
}

#define WICK_BINARY(name, ...)                                                           \
  struct name##_row {                                                                    \
    static constexpr Op kOp = Op::name;                                                  \
    static constexpr bool kChecksDivisor = Op::name == Op::div || Op::name == Op::rem;   \
    static constexpr bool kSelects = Op::name == Op::maximum || Op::name == Op::minimum; \
    template <class S>                                                                   \
    static inline Compute<S> call(Compute<S> a, Compute<S> b) {                          \
      WICK_ROW_CALL(name, a, b)                                                          \
    }                                                                                    \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(BinaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &binary<F, Storage<kDType>>;
  }
}
constexpr BinaryKernels make_table() {
  BinaryKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F>(BinaryKernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_BINARY(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
  return table;
}

}  // namespace

constexpr BinaryKernels binary_kernels = make_table();
static_assert(complete(binary_kernels.run, OpKind::binary));

}  // namespace wick::cpu::WICK_ISA
