// y = f(x; p, q): for each row of WICK_UNARY_WITH and each of its dtypes one kernel over a dense
// run. out[i] = f(in[i]; p, q) for i in [0, n), a cache line of output at a time. Moves 2·n·size
// bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class F, class S>
struct Lines {
  Compute<S> p, q;
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict x,
                                            int64_t n) const {
    if constexpr (F::kOp == Op::powf) {
      lines_of_many(y, x, n);
      return;
    }
    if constexpr (F::kOp == Op::clamp && !fn::Whole<S>) {
      // Bounds that are neither NaN nor 0: one instruction each, which passes NaN through.
      if (p == p && q == q && p != Compute<S>(0) && q != Compute<S>(0)) {
        map_lines<S, false>(y, x, n, [u = p, v = q](Compute<S> w) {
          const Compute<S> above = u > w ? u : w;
          return v < above ? v : above;
        });
        return;
      }
    }
    map_lines<S, false>(y, x, n,
                        [u = p, v = q](Compute<S> w) { return F::template call<S>(w, u, v); });
  }

  /// Uses p as an array of equal numbers. If GCC knows that p is one number, it moves the tests of
  /// p out of the loop, and vectorises none of the loop's versions.
  WICK_FN void lines_of_many(S* __restrict y, const S* __restrict x, int64_t n) const {
    constexpr int64_t kN = kLine<S>;
    alignas(64) Compute<S> ps[kN], wide[kN];
    for (int64_t j = 0; j < kN; ++j) ps[j] = p;
    asm volatile("" : : "r"(ps) : "memory");
    for (int64_t i = 0; i + kN <= n; i += kN) {
      if constexpr (kConvertsByRun<S>) {
        widen_run(wide, x + i, kN);
      } else {
        for (int64_t j = 0; j < kN; ++j) wide[j] = widen(x[i + j]);
      }
      for (int64_t j = 0; j < kN; ++j) wide[j] = F::template call<S>(wide[j], ps[j], q);
      if constexpr (kConvertsByRun<S>) {
        narrow_run(y + i, wide, kN);
      } else {
        for (int64_t j = 0; j < kN; ++j) y[i + j] = narrow<S>(wide[j]);
      }
    }
  }
};

template <class F, class S>
void unary_with(int64_t n, void* out, const void* in, const void* p, const void* q, bool stream) {
  const Lines<F, S> lines{at<Compute<S>>(static_cast<const char*>(p)),
                          at<Compute<S>>(static_cast<const char*>(q))};
  cover(n, stream, lines, static_cast<S*>(out), static_cast<const S*>(in));
}

#define WICK_NUMBERS_1(p, q) p
#define WICK_NUMBERS_2(p, q) p, q
#define WICK_UNARY_WITH(name, dtypes, numbers, ...)                                            \
  struct name##_row {                                                                          \
    static constexpr Op kOp = Op::name;                                                        \
    template <class S>                                                                         \
    static inline Compute<S> call(Compute<S> x, Compute<S> p, [[maybe_unused]] Compute<S> q) { \
      WICK_ROW_CALL(name, x, WICK_NUMBERS_##numbers(p, q))                                     \
    }                                                                                          \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(UnaryWithKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &unary_with<F, Storage<kDType>>;
  }
}

constexpr UnaryWithKernels make_table() {
  UnaryWithKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F>(UnaryWithKernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_UNARY_WITH(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
  return table;
}

}  // namespace

constexpr UnaryWithKernels unary_with_kernels = make_table();
static_assert(complete(unary_with_kernels.run, OpKind::unary_with));

}  // namespace wick::cpu::WICK_ISA
