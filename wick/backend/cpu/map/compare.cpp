// u8 = f(a, b) and u8 = f(x): for each row of WICK_COMPARE and WICK_TEST and each of its dtypes one
// kernel over a dense run. out[i] = f(a[i], b[i]) for i in [0, n), a cache line of output at a
// time. Moves n·(2·size + 1) bytes (a test: n·(size + 1)).

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::u8;

template <class F, class S>
struct CompareLines {
  __attribute__((noinline)) void operator()(u8* __restrict y, const S* __restrict a,
                                            const S* __restrict b, int64_t n) const {
    constexpr int64_t kN = 64;
    if constexpr (kConvertsByRun<S>) {
      for (int64_t i = 0; i < n; i += kN) {
        alignas(64) float u[kN], v[kN];
        widen_run(u, a + i, kN);
        widen_run(v, b + i, kN);
        for (int64_t j = 0; j < kN; ++j) y[i + j] = F::template call<S>(u[j], v[j]) ? 1 : 0;
      }
    } else {
      const int64_t whole = n / kN * kN;
      for (int64_t i = 0; i < whole; ++i) {
        y[i] = F::template call<S>(widen(a[i]), widen(b[i])) ? 1 : 0;
      }
    }
  }
};

template <class F, class S>
struct TestLines {
  __attribute__((noinline)) void operator()(u8* __restrict y, const S* __restrict x,
                                            int64_t n) const {
    constexpr int64_t kN = 64;
    if constexpr (kConvertsByRun<S>) {
      for (int64_t i = 0; i < n; i += kN) {
        alignas(64) float u[kN];
        widen_run(u, x + i, kN);
        for (int64_t j = 0; j < kN; ++j) y[i + j] = F::template call<S>(u[j]) ? 1 : 0;
      }
    } else {
      const int64_t whole = n / kN * kN;
      for (int64_t i = 0; i < whole; ++i) y[i] = F::template call<S>(widen(x[i])) ? 1 : 0;
    }
  }
};

template <class F, class S>
void compare(int64_t n, void* out, const void* a, const void* b, bool stream) {
  cover(n, stream, CompareLines<F, S>{}, static_cast<u8*>(out), static_cast<const S*>(a),
        static_cast<const S*>(b));
}
template <class F, class S>
void test(int64_t n, void* out, const void* in, bool stream) {
  cover(n, stream, TestLines<F, S>{}, static_cast<u8*>(out), static_cast<const S*>(in));
}

#define WICK_COMPARE(name, ...)                           \
  struct name##_row {                                     \
    template <class S>                                    \
    static inline bool call(Compute<S> a, Compute<S> b) { \
      WICK_ROW_CALL(name, a, b)                           \
    }                                                     \
  };
#define WICK_TEST(name, ...)                \
  struct name##_row {                       \
    template <class S>                      \
    static inline bool call(Compute<S> x) { \
      WICK_ROW_CALL(name, x)                \
    }                                       \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(CompareKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &compare<F, Storage<kDType>>;
  }
}
template <Op kOp, class F, DType kDType>
constexpr void add_dtype(UnaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &test<F, Storage<kDType>>;
  }
}

constexpr CompareKernels make_table() {
  CompareKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F, class Kernel>(Kernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_COMPARE(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#define WICK_TEST(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.test[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
  return table;
}

}  // namespace

constexpr CompareKernels compare_kernels = make_table();
static_assert(complete(compare_kernels.run, OpKind::compare));
static_assert(complete(compare_kernels.test, OpKind::test));

}  // namespace wick::cpu::WICK_ISA
