// y = f(x): for each row of WICK_UNARY and each of its dtypes one kernel over a run of n elements.
// Element i of the run is in + i·in_stride → out + i·out_stride. Moves n·(size in + size out)
// bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class F, class C>
inline void apply(C* __restrict y, const C* __restrict x, int64_t n) {
  const int64_t vectors = n / kPad<C>;
  for (int64_t i = 0; i < vectors * kPad<C>; ++i) y[i] = F::call(x[i]);
}

template <class F, class S>
void unary(int64_t n, char* out, int64_t out_stride, const char* in, int64_t in_stride,
           bool stream) {
  using C = Compute<S>;
  alignas(64) C x_tile[kTile<C>];
  alignas(64) C y_tile[kTile<C>];
  const bool direct = writes_directly<S>(out_stride, stream);
  const C* x = in_stride == 0 ? splat_tile<S>(x_tile, in, n) : nullptr;
  while (n > 0) {
    const int64_t m = next_piece<C>(n);
    if (in_stride != 0) x = load_tile<S>(x_tile, in, in_stride, m);
    C* y = direct && m >= kPad<C> ? reinterpret_cast<C*>(out) : y_tile;
    apply<F, C>(y, x, padded<C>(m));
    if (y == y_tile) store_tile<S>(out, out_stride, y, m, stream);
    n -= m;
    in += m * in_stride;
    out += m * out_stride;
  }
  if (stream) stream_fence();
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
