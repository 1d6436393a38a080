// y = f(x): for each row of WICK_UNARY and each of its dtypes one kernel over a dense run.
// out[i] = f(in[i]) for i in [0, n), a cache line of output at a time. Moves 2·n·size bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class F, class S>
struct Lines {
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict x,
                                            int64_t n) const {
    if constexpr (kStepwise<S>) {
      alignas(64) float wide[kPiece];
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t m = n - i < kPiece ? (n - i) / kLine<S> * kLine<S> : kPiece;
        widen(wide, x + i, m);
        for (int64_t j = 0; j < m; ++j) wide[j] = F::call(wide[j]);
        narrow(y + i, wide, m);
      }
    } else {
      const int64_t whole = n / kLine<S> * kLine<S>;
      for (int64_t i = 0; i < whole; ++i) y[i] = store<S>(F::call(load(x[i])));
    }
  }
};

template <class F, class S>
void unary(int64_t n, void* out, const void* in, bool stream) {
  cover(n, stream, Lines<F, S>{}, static_cast<S*>(out), static_cast<const S*>(in));
}

#define WICK_UNARY(name, ...)   \
  struct name##_row {           \
    template <class T>          \
    static inline T call(T x) { \
      return fn::name(x);       \
    }                           \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(UnaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &unary<F, Storage<kDType>>;
  }
}

constexpr UnaryKernels make_table() {
  UnaryKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F>(UnaryKernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_UNARY(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
  return table;
}

}  // namespace

constexpr UnaryKernels unary_kernels = make_table();
static_assert(complete(unary_kernels.run, OpKind::Unary));

}  // namespace wick::cpu::WICK_ISA
