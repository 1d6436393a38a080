// y = f(a, b), and y = x·mul + add: for each row of WICK_BINARY and each of its dtypes one kernel
// over a run of n elements. Element i of an operand is at base + i·stride; a stride of 0 repeats
// one value. Moves n·(sizes of the operands that aren't repeated + size out) bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Returns whether all went well: integer division finds its zero divisors on the way.
template <class F, class C>
inline bool apply(C* __restrict y, const C* __restrict a, const C* __restrict b, int64_t n) {
  const int64_t vectors = n / kPad<C>;
  if constexpr (F::kChecksDivisor && fn::Whole<C>) {
    C zeros = 0;
    for (int64_t i = 0; i < vectors * kPad<C>; ++i) {
      const bool zero = b[i] == C{0};
      zeros = static_cast<C>(zeros | (zero ? C{1} : C{0}));
      y[i] = F::call(a[i], zero ? C{1} : b[i]);
    }
    return zeros == C{0};
  } else {
    for (int64_t i = 0; i < vectors * kPad<C>; ++i) y[i] = F::call(a[i], b[i]);
    return true;
  }
}

template <class F, class S>
bool binary(int64_t n, char* out, int64_t out_stride, const char* a, int64_t a_stride,
            const char* b, int64_t b_stride, bool stream) {
  using C = Compute<S>;
  alignas(64) C a_tile[kTile<C>];
  alignas(64) C b_tile[kTile<C>];
  alignas(64) C y_tile[kTile<C>];
  const bool direct = writes_directly<S>(out_stride, stream);
  const C* x = a_stride == 0 ? splat_tile<S>(a_tile, a, n) : nullptr;
  const C* z = b_stride == 0 ? splat_tile<S>(b_tile, b, n) : nullptr;
  bool fine = true;
  while (n > 0) {
    const int64_t m = next_piece<C>(n);
    if (a_stride != 0) x = load_tile<S>(a_tile, a, a_stride, m);
    if (b_stride != 0) z = load_tile<S>(b_tile, b, b_stride, m);
    C* y = direct && m >= kPad<C> ? reinterpret_cast<C*>(out) : y_tile;
    fine = apply<F, C>(y, x, z, padded<C>(m)) && fine;
    if (y == y_tile) store_tile<S>(out, out_stride, y, m, stream);
    n -= m;
    a += m * a_stride;
    b += m * b_stride;
    out += m * out_stride;
  }
  if (stream) stream_fence();
  return fine;
}

template <class S>
void affine(int64_t n, char* out, int64_t out_stride, const char* in, int64_t in_stride,
            const void* mul_value, const void* add_value, bool stream) {
  using C = Compute<S>;
  alignas(64) C x_tile[kTile<C>];
  alignas(64) C y_tile[kTile<C>];
  const C mul = at<C>(static_cast<const char*>(mul_value));
  const C add = at<C>(static_cast<const char*>(add_value));
  const bool direct = writes_directly<S>(out_stride, stream);
  const C* x = in_stride == 0 ? splat_tile<S>(x_tile, in, n) : nullptr;
  while (n > 0) {
    const int64_t m = next_piece<C>(n);
    if (in_stride != 0) x = load_tile<S>(x_tile, in, in_stride, m);
    C* y = direct && m >= kPad<C> ? reinterpret_cast<C*>(out) : y_tile;
    const int64_t vectors = padded<C>(m) / kPad<C>;
    const C* __restrict from = x;
    C* __restrict to = y;
    for (int64_t i = 0; i < vectors * kPad<C>; ++i) to[i] = fn::add(fn::mul(from[i], mul), add);
    if (y == y_tile) store_tile<S>(out, out_stride, y, m, stream);
    n -= m;
    in += m * in_stride;
    out += m * out_stride;
  }
  if (stream) stream_fence();
}

#define WICK_BINARY(name, ...)                                  \
  struct name##_row {                                           \
    static constexpr bool kChecksDivisor = Op::name == Op::div; \
    template <class T>                                          \
    static inline T call(T a, T b) {                            \
      return fn::name(a, b);                                    \
    }                                                           \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(BinaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &binary<F, Storage<kDType>>;
  }
}
template <DType kDType>
constexpr void add_affine(BinaryKernels& table) {
  if constexpr (!is_block(kDType)) {
    table.affine[static_cast<int>(kDType)] = &affine<Storage<kDType>>;
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
#define WICK_DTYPE(dtype, ...) add_affine<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

constexpr bool has_all(const AffineKernel (&run)[kRealDTypeCount]) {
  for (AffineKernel kernel : run) {
    if (kernel == nullptr) return false;
  }
  return true;
}

}  // namespace

constexpr BinaryKernels binary_kernels = make_table();
static_assert(complete(binary_kernels.run, OpKind::Binary));
static_assert(has_all(binary_kernels.affine));

}  // namespace wick::cpu::WICK_ISA
