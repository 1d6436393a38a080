// The kernels of one dtype: included once for each, with WICK_MAP_DTYPE its name and
// WICK_MAP_FLOATS 1 if it is a float.

#define WICK_MAP_COMBINE_(a, b) a##_##b
#define WICK_MAP_COMBINE(a, b) WICK_MAP_COMBINE_(a, b)
#define WICK_MAP_NAME(name) WICK_MAP_COMBINE(name, WICK_MAP_DTYPE)
#define WICK_MAP_TYPE wick::gpu::WICK_MAP_COMBINE(Storage, WICK_MAP_DTYPE)

#define WICK_MAP_UNARY(name)                                                               \
  WICK_KERNEL(WICK_MAP_NAME(name), wick::gpu::kMapThreads)                                 \
  (WICK_MAP_TYPE * out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided, \
   wick::math::u32 rest) {                                                                 \
    wick::gpu::map_vectorized(out, in, strided, rest, [](auto body) {                      \
      body([](auto x) { return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x); });          \
    });                                                                                    \
  }
#define WICK_MAP_UNARY_WITH(name)                                                           \
  WICK_KERNEL(WICK_MAP_NAME(name), wick::gpu::kMapThreads)                                  \
  (WICK_MAP_TYPE * out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided,  \
   wick::math::u32 rest, wick::gpu::Numbers<wick::gpu::Compute<WICK_MAP_TYPE>> numbers) {   \
    wick::gpu::map_vectorized(out, in, strided, rest, [&](auto body) {                      \
      body([&](auto x) { return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x, numbers); }); \
    });                                                                                     \
  }
#define WICK_MAP_BINARY(name)                                                                \
  WICK_KERNEL(WICK_MAP_NAME(name), wick::gpu::kMapThreads)                                   \
  (WICK_MAP_TYPE * out, const WICK_MAP_TYPE* a, const WICK_MAP_TYPE* b,                      \
   const wick::gpu::StridedIndex<3> strided, wick::math::u32 rest, wick::math::u32 repeated, \
   wick::gpu::Divisions divisions) {                                                         \
    wick::gpu::map_vectorized(out, a, b, strided, rest, repeated, [&](auto body) {           \
      body([&](auto x, auto y) {                                                             \
        return wick::gpu::name##_row::call<WICK_MAP_TYPE>(x, y, divisions);                  \
      });                                                                                    \
    });                                                                                      \
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

WICK_KERNEL(WICK_MAP_NAME(unary_scalar), wick::gpu::kMapThreads)
(WICK_MAP_TYPE* out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided,
 wick::gpu::UnaryRow op) {
  wick::gpu::map_scalar(out, in, strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(op, [&](auto row) {
      body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(unary_with_scalar), wick::gpu::kMapThreads)
(WICK_MAP_TYPE* out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided,
 wick::gpu::UnaryWithRow op, wick::gpu::Numbers<wick::gpu::Compute<WICK_MAP_TYPE>> numbers) {
  wick::gpu::map_scalar(out, in, strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(op, [&](auto row) {
      body([&](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x, numbers); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(binary_scalar), wick::gpu::kMapThreads)
(WICK_MAP_TYPE* out, const WICK_MAP_TYPE* a, const WICK_MAP_TYPE* b,
 const wick::gpu::StridedIndex<3> strided, wick::gpu::BinaryRow op,
 wick::gpu::Divisions divisions) {
  wick::gpu::map_scalar(out, a, b, strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(op, [&](auto row) {
      body([&](auto x, auto y) {
        return decltype(row)::template call<WICK_MAP_TYPE>(x, y, divisions);
      });
    });
  });
}

// One kernel for all rows: they take an instruction or two an element.

WICK_KERNEL(WICK_MAP_NAME(test), wick::gpu::kMapThreads)
(wick::math::u8* out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided,
 wick::math::u32 rest, wick::gpu::TestRow op) {
  wick::gpu::map_vectorized(out, in, strided, rest, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(op, [&](auto row) {
      body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
    });
  });
}
WICK_KERNEL(WICK_MAP_NAME(test_scalar), wick::gpu::kMapThreads)
(wick::math::u8* out, const WICK_MAP_TYPE* in, const wick::gpu::StridedIndex<2> strided,
 wick::gpu::TestRow op) {
  wick::gpu::map_scalar(out, in, strided, [&](auto body) {
    wick::gpu::with_row<WICK_MAP_TYPE>(op, [&](auto row) {
      body([](auto x) { return decltype(row)::template call<WICK_MAP_TYPE>(x); });
    });
  });
}

WICK_KERNEL(WICK_MAP_NAME(compare), wick::gpu::kMapThreads)
(wick::math::u8* out, const WICK_MAP_TYPE* a, const WICK_MAP_TYPE* b,
 const wick::gpu::StridedIndex<3> strided, wick::math::u32 rest, wick::math::u32 repeated,
 wick::gpu::Truth truth) {
  wick::gpu::map_vectorized(out, a, b, strided, rest, repeated, [&](auto body) {
    body([&](auto x, auto y) { return truth.of(x, y); });
  });
}
WICK_KERNEL(WICK_MAP_NAME(compare_scalar), wick::gpu::kMapThreads)
(wick::math::u8* out, const WICK_MAP_TYPE* a, const WICK_MAP_TYPE* b,
 const wick::gpu::StridedIndex<3> strided, wick::gpu::Truth truth) {
  wick::gpu::map_scalar(out, a, b, strided,
                        [&](auto body) { body([&](auto x, auto y) { return truth.of(x, y); }); });
}

#undef WICK_MAP_COMBINE_
#undef WICK_MAP_COMBINE
#undef WICK_MAP_NAME
#undef WICK_MAP_TYPE
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
