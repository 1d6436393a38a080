// The map kernels of one dtype. Files include this header once for each dtype, with WICK_MAP_DTYPE
// its name and WICK_MAP_FLOATS 1 if it is a float.

#define WICK_MAP_COMBINE_(a, b) a##_##b
#define WICK_MAP_COMBINE(a, b) WICK_MAP_COMBINE_(a, b)
#define WICK_MAP_NAME(name) WICK_MAP_COMBINE(name, WICK_MAP_DTYPE)
#define WICK_MAP_TYPE wick::gpu::WICK_MAP_COMBINE(Storage, WICK_MAP_DTYPE)

#define WICK_MAP_OUT static_cast<WICK_MAP_TYPE*>(args.out)
#define WICK_MAP_TRUTHS static_cast<wick::math::u8*>(args.out)
#define WICK_MAP_IN(operand) static_cast<const WICK_MAP_TYPE*>(args.operand)
#define WICK_MAP_NUMBERS wick::gpu::Numbers<wick::gpu::Compute<WICK_MAP_TYPE>>::of(args.p, args.q)

#define WICK_MAP_UNARY(name)                                                          \
  WICK_KERNEL(WICK_MAP_NAME(name), UnaryArgs, wick::gpu::kMapThreads) {               \
    wick::gpu::map_vectorized(                                                        \
        WICK_MAP_OUT, WICK_MAP_IN(in), args.strided, args.rest, [](auto body) {       \
          body([](auto x) { return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x); }); \
        });                                                                           \
  }
#define WICK_MAP_UNARY_WITH(name)                                                               \
  WICK_KERNEL(WICK_MAP_NAME(name), UnaryWithArgs, wick::gpu::kMapThreads) {                     \
    const auto numbers = WICK_MAP_NUMBERS;                                                      \
    wick::gpu::map_vectorized(                                                                  \
        WICK_MAP_OUT, WICK_MAP_IN(in), args.strided, args.rest, [&](auto body) {                \
          body([&](auto x) { return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x, numbers); }); \
        });                                                                                     \
  }
#define WICK_MAP_BINARY(name)                                                                   \
  WICK_KERNEL(WICK_MAP_NAME(name), BinaryArgs, wick::gpu::kMapThreads) {                        \
    const wick::gpu::Divisions divisions = args.divisions;                                      \
    wick::gpu::map_vectorized(WICK_MAP_OUT, WICK_MAP_IN(a), WICK_MAP_IN(b), args.strided,       \
                              args.rest, args.repeated, [&](auto body) {                        \
                                body([&](auto x, auto y) {                                      \
                                  return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x, y,       \
                                                                                    divisions); \
                                });                                                             \
                              });                                                               \
  }
#define WICK_RARE_ROW(name)
#define WICK_MAP_Real(kernel) kernel
#define WICK_MAP_Any(kernel) kernel
#if WICK_MAP_FLOATS
#define WICK_MAP_Floats(kernel) kernel
#define WICK_MAP_Integers(kernel)
#define WICK_MAP_Bits(kernel)
#else
#define WICK_MAP_Floats(kernel)
#define WICK_MAP_Integers(kernel) kernel
#define WICK_MAP_Bits(kernel) kernel
#endif

#define WICK_UNARY(name, dtypes, ...) WICK_MAP_##dtypes(WICK_IF_RARE(name, WICK_MAP_UNARY)(name))
#define WICK_UNARY_WITH(name, dtypes, ...) \
  WICK_MAP_##dtypes(WICK_IF_RARE(name, WICK_MAP_UNARY_WITH)(name))
#define WICK_BINARY(name, dtypes, ...) WICK_MAP_##dtypes(WICK_IF_RARE(name, WICK_MAP_BINARY)(name))
#include "wick/op/ops.def"

WICK_KERNEL(WICK_MAP_NAME(unary_scalar), UnaryScalarArgs, wick::gpu::kMapThreads) {
  wick::gpu::map_scalar(WICK_MAP_OUT, WICK_MAP_IN(in), args.strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(args.row, [&](auto row) {
      body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(unary_with_scalar), UnaryWithScalarArgs, wick::gpu::kMapThreads) {
  const auto numbers = WICK_MAP_NUMBERS;
  wick::gpu::map_scalar(WICK_MAP_OUT, WICK_MAP_IN(in), args.strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(args.row, [&](auto row) {
      body([&](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x, numbers); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(binary_scalar), BinaryScalarArgs, wick::gpu::kMapThreads) {
  const wick::gpu::Divisions divisions = args.divisions;
  wick::gpu::map_scalar(WICK_MAP_OUT, WICK_MAP_IN(a), WICK_MAP_IN(b), args.strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(args.row, [&](auto row) {
      body([&](auto x, auto y) {
        return decltype(row)::template call<WICK_MAP_TYPE>(x, y, divisions);
      });
    });
  });
}

#if WICK_AMD
WICK_KERNEL(WICK_MAP_NAME(binary_rows), BinaryRowsArgs, wick::gpu::kMapThreads) {
  wick::gpu::map_rows(WICK_MAP_OUT, WICK_MAP_IN(matrix), WICK_MAP_IN(row), args);
}
#endif

// One kernel serves all rows: each takes an instruction or two for an element.

WICK_KERNEL(WICK_MAP_NAME(test), TestArgs, wick::gpu::kMapThreads) {
  wick::gpu::map_vectorized(
      WICK_MAP_TRUTHS, WICK_MAP_IN(in), args.strided, args.rest, [&](auto body) {
        wick::gpu::with_row<WICK_MAP_TYPE>(args.row, [&](auto row) {
          body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
        });
      });
}
WICK_KERNEL(WICK_MAP_NAME(test_scalar), TestScalarArgs, wick::gpu::kMapThreads) {
  wick::gpu::map_scalar(WICK_MAP_TRUTHS, WICK_MAP_IN(in), args.strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(args.row, [&](auto row) {
      body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(compare), CompareArgs, wick::gpu::kMapThreads) {
  const wick::gpu::Truth truth = args.truth;
  wick::gpu::map_vectorized(
      WICK_MAP_TRUTHS, WICK_MAP_IN(a), WICK_MAP_IN(b), args.strided, args.rest, args.repeated,
      [&](auto body) { body([&](auto x, auto y) { return truth.of(x, y); }); });
}
WICK_KERNEL(WICK_MAP_NAME(compare_scalar), CompareScalarArgs, wick::gpu::kMapThreads) {
  const wick::gpu::Truth truth = args.truth;
  wick::gpu::map_scalar(WICK_MAP_TRUTHS, WICK_MAP_IN(a), WICK_MAP_IN(b), args.strided,
                        [&](auto body) { body([&](auto x, auto y) { return truth.of(x, y); }); });
}

#undef WICK_MAP_COMBINE_
#undef WICK_MAP_COMBINE
#undef WICK_MAP_NAME
#undef WICK_MAP_TYPE
#undef WICK_MAP_OUT
#undef WICK_MAP_TRUTHS
#undef WICK_MAP_IN
#undef WICK_MAP_NUMBERS
#undef WICK_MAP_UNARY
#undef WICK_MAP_UNARY_WITH
#undef WICK_MAP_BINARY
#undef WICK_RARE_ROW
#undef WICK_MAP_Real
#undef WICK_MAP_Any
#undef WICK_MAP_Floats
#undef WICK_MAP_Integers
#undef WICK_MAP_Bits
#undef WICK_MAP_DTYPE
#undef WICK_MAP_FLOATS
