// Matrix instructions of CDNA, in waves of 64 lanes. The sums are exact.
#include "corpus.h"

typedef float float16v __attribute__((ext_vector_type(16)));
typedef float float32v __attribute__((ext_vector_type(32)));
typedef i32 int16v __attribute__((ext_vector_type(16)));
typedef i32 int32v __attribute__((ext_vector_type(32)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef i16 short4 __attribute__((ext_vector_type(4)));
typedef double double4 __attribute__((ext_vector_type(4)));

/// Returns an integer element of a matrix, given the matrix, block, row and column.
DEVICE i32 number(u32 matrix, u32 block, u32 row, u32 column) {
  const u32 x = (matrix * 97 + block * 57 + row * 31 + column * 7) * 2654435761u >> 15;
  return static_cast<i32>(x % 17) - 8;
}
/// Returns element (row, k) of A, and element (k, column) of B, which is stored as its transpose.
DEVICE i32 a_of(u32 block, u32 row, u32 k) { return number(group(), block, row, k); }
DEVICE i32 b_of(u32 block, u32 column, u32 k) { return number(group() + 50, block, column, k); }
DEVICE i32 c_of(u32 block, u32 row, u32 column) { return number(90, block, row, column); }

/// Returns the expected result at a row and column of the block.
DEVICE i32 product(u32 block, u32 row, u32 column, u32 depth) {
  i32 sum = c_of(block, row, column);
  for (u32 k = 0; k < depth; ++k) sum += a_of(block, row, k) * b_of(block, column, k);
  return sum;
}

/// Converts a small integer to f16 or bf16.
DEVICE i16 brain(i32 x) {
  return static_cast<i16>(__builtin_bit_cast(u32, static_cast<float>(x)) >> 16);
}

/// The position of 32-bit results by lane and register.
template <u32 kSize>
struct Place {
  u32 block, row, column;
  DEVICE_METHOD Place(u32 lane, u32 reg) {
    column = lane % kSize;
    if (kSize == 4) {
      block = lane / 4;
      row = reg;
    } else if (kSize == 16) {
      block = reg / 4;
      row = lane / 16 * 4 + reg % 4;
    } else {
      block = reg / 16;
      row = reg % 16 / 4 * 8 + lane / 32 * 4 + reg % 4;
    }
  }
};

#ifdef __AMDGCN__
#define MFMA(kSize, kDepth, kRegisters, Vector, call)                           \
  {                                                                             \
    Vector c;                                                                   \
    for (u32 r = 0; r < kRegisters; ++r) {                                      \
      const Place<kSize> p(lane(), r);                                          \
      c[r] = c_of(p.block, p.row, p.column);                                    \
    }                                                                           \
    c = call;                                                                   \
    u32 sum = 0;                                                                \
    for (u32 r = 0; r < kRegisters; ++r) sum = sum * 31 + static_cast<i32>(c[r]); \
    out.put(sum);                                                               \
  }
#else
#define MFMA(kSize, kDepth, kRegisters, Vector, call)                           \
  {                                                                             \
    u32 sum = 0;                                                                \
    for (u32 r = 0; r < kRegisters; ++r) {                                      \
      const Place<kSize> p(lane(), r);                                          \
      sum = sum * 31 + static_cast<u32>(product(p.block, p.row, p.column, kDepth)); \
    }                                                                           \
    out.put(sum);                                                               \
  }
#endif

/// Computes the row (or column), block and first k of a lane that holds `each` consecutive k.
#define LANE(kSize, kBlocks, each)                  \
  const u32 row = lane() % kSize;                   \
  const u32 block = lane() / kSize % kBlocks;       \
  const u32 k = lane() / (kSize * kBlocks) * each;  \
  (void)row, (void)block, (void)k

#define F32_KERNEL(name, kSize, kDepth, kBlocks, kRegisters, Vector)                              \
  KERNEL mfma_f32_##name(ARGUMENTS) {                                                             \
    ENTER;                                                                                        \
    LANE(kSize, kBlocks, 1);                                                                      \
    const float a = a_of(block, row, k), b = b_of(block, row, k);                                 \
    (void)a, (void)b;                                                                             \
    MFMA(kSize, kDepth, kRegisters, Vector, __builtin_amdgcn_mfma_f32_##name(a, b, c, 0, 0, 0)); \
  }
F32_KERNEL(32x32x1f32, 32, 1, 2, 32, float32v)
F32_KERNEL(16x16x1f32, 16, 1, 4, 16, float16v)
F32_KERNEL(4x4x1f32, 4, 1, 16, 4, float4)
F32_KERNEL(32x32x2f32, 32, 2, 1, 16, float16v)
F32_KERNEL(16x16x4f32, 16, 4, 1, 4, float4)

#define FOUR_KERNEL(sums, name, kSize, kDepth, kBlocks, kRegisters, Vector, In, convert)          \
  KERNEL mfma_##sums##_##name(ARGUMENTS) {                                                        \
    ENTER;                                                                                        \
    LANE(kSize, kBlocks, 4);                                                                      \
    In a, b;                                                                                      \
    for (u32 i = 0; i < 4; ++i) {                                                                 \
      a[i] = convert(a_of(block, row, k + i));                                                    \
      b[i] = convert(b_of(block, row, k + i));                                                    \
    }                                                                                             \
    (void)a, (void)b;                                                                             \
    MFMA(kSize, kDepth, kRegisters, Vector,                                                       \
         __builtin_amdgcn_mfma_##sums##_##name(a, b, c, 0, 0, 0));                                \
  }
#define TO_HALF(x) static_cast<half>(static_cast<float>(x))
FOUR_KERNEL(f32, 32x32x4f16, 32, 4, 2, 32, float32v, half4, TO_HALF)
FOUR_KERNEL(f32, 16x16x4f16, 16, 4, 4, 16, float16v, half4, TO_HALF)
FOUR_KERNEL(f32, 4x4x4f16, 4, 4, 16, 4, float4, half4, TO_HALF)
FOUR_KERNEL(f32, 32x32x8f16, 32, 8, 1, 16, float16v, half4, TO_HALF)
FOUR_KERNEL(f32, 16x16x16f16, 16, 16, 1, 4, float4, half4, TO_HALF)
FOUR_KERNEL(f32, 32x32x4bf16_1k, 32, 4, 2, 32, float32v, short4, brain)
FOUR_KERNEL(f32, 16x16x4bf16_1k, 16, 4, 4, 16, float16v, short4, brain)
FOUR_KERNEL(f32, 4x4x4bf16_1k, 4, 4, 16, 4, float4, short4, brain)
FOUR_KERNEL(f32, 32x32x8bf16_1k, 32, 8, 1, 16, float16v, short4, brain)
FOUR_KERNEL(f32, 16x16x16bf16_1k, 16, 16, 1, 4, float4, short4, brain)

#define TWO_KERNEL(name, kSize, kDepth, kBlocks, kRegisters, Vector)                              \
  KERNEL mfma_f32_##name(ARGUMENTS) {                                                             \
    ENTER;                                                                                        \
    LANE(kSize, kBlocks, 2);                                                                      \
    short2 a, b;                                                                                  \
    for (u32 i = 0; i < 2; ++i) {                                                                 \
      a[i] = brain(a_of(block, row, k + i));                                                      \
      b[i] = brain(b_of(block, row, k + i));                                                      \
    }                                                                                             \
    (void)a, (void)b;                                                                             \
    MFMA(kSize, kDepth, kRegisters, Vector, __builtin_amdgcn_mfma_f32_##name(a, b, c, 0, 0, 0)); \
  }
TWO_KERNEL(32x32x2bf16, 32, 2, 2, 32, float32v)
TWO_KERNEL(16x16x2bf16, 16, 2, 4, 16, float16v)
TWO_KERNEL(4x4x2bf16, 4, 2, 16, 4, float4)
TWO_KERNEL(32x32x4bf16, 32, 4, 1, 16, float16v)
TWO_KERNEL(16x16x8bf16, 16, 8, 1, 4, float4)

#define BYTE_KERNEL(name, kSize, kDepth, kBlocks, kRegisters, Vector)                             \
  KERNEL mfma_i32_##name(ARGUMENTS) {                                                             \
    ENTER;                                                                                        \
    LANE(kSize, kBlocks, 4);                                                                      \
    u32 a = 0, b = 0;                                                                             \
    for (u32 i = 0; i < 4; ++i) {                                                                 \
      a |= static_cast<u32>(a_of(block, row, k + i) & 255) << (8 * i);                            \
      b |= static_cast<u32>(b_of(block, row, k + i) & 255) << (8 * i);                            \
    }                                                                                             \
    MFMA(kSize, kDepth, kRegisters, Vector, __builtin_amdgcn_mfma_i32_##name(a, b, c, 0, 0, 0)); \
  }
BYTE_KERNEL(32x32x4i8, 32, 4, 2, 32, int32v)
BYTE_KERNEL(16x16x4i8, 16, 4, 4, 16, int16v)
BYTE_KERNEL(4x4x4i8, 4, 4, 16, 4, int4)
BYTE_KERNEL(32x32x8i8, 32, 8, 1, 16, int16v)
BYTE_KERNEL(16x16x16i8, 16, 16, 1, 4, int4)

KERNEL mfma_f64(ARGUMENTS) {
  ENTER;
#ifdef __AMDGCN__
  {
    LANE(16, 1, 1);
    double4 c;
    for (u32 r = 0; r < 4; ++r) c[r] = c_of(0, r * 4 + lane() / 16, lane() % 16);
    c = __builtin_amdgcn_mfma_f64_16x16x4f64(a_of(0, row, k), b_of(0, row, k), c, 0, 0, 0);
    for (u32 r = 0; r < 4; ++r) out.put(c[r]);
  }
  LANE(4, 4, 1);
  const double c = c_of(block, lane() / 16, lane() % 4);
  out.put(__builtin_amdgcn_mfma_f64_4x4x4f64(a_of(block, row, k), b_of(block, row, k), c, 0, 0, 0));
#else
  for (u32 r = 0; r < 4; ++r) {
    out.put(static_cast<double>(product(0, r * 4 + lane() / 16, lane() % 16, 4)));
  }
  out.put(static_cast<double>(product(lane() / 4 % 4, lane() / 16, lane() % 4, 4)));
#endif
}

/// The addend is a constant.
KERNEL mfma_from_zero(ARGUMENTS) {
  ENTER;
#ifdef __AMDGCN__
  LANE(16, 1, 1);
  float4 c = {};
  c = __builtin_amdgcn_mfma_f32_16x16x4f32(a_of(0, row, k), b_of(0, row, k), c, 0, 0, 0);
  for (u32 r = 0; r < 4; ++r) out.put(c[r]);
#else
  for (u32 r = 0; r < 4; ++r) {
    const Place<16> p(lane(), r);
    const i32 sum = product(0, p.row, p.column, 4) - c_of(0, p.row, p.column);
    out.put(static_cast<float>(sum));
  }
#endif
}
