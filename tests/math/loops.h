#pragma once

// Plain loops over every function of wick/math, compiled once per instruction set (loops.cpp).

#include <cstddef>

// name of each f32 function of one argument; the f64 ones are these and sin, cos.
#define WICK_MATH_UNARY(X) \
  X(exp)                   \
  X(log)                   \
  X(tanh)                  \
  X(sigmoid)               \
  X(silu)                  \
  X(rsqrt)                 \
  X(recip)                 \
  X(sqrt)                  \
  X(abs)                   \
  X(neg)                   \
  X(sqr)                   \
  X(square)                \
  X(relu)                  \
  X(rint)                  \
  X(floor)                 \
  X(round)

namespace wick::math_test {

enum Unary {
#define X(name) k_##name,
  WICK_MATH_UNARY(X)
#undef X
      kUnaryF32,
  k_sin = kUnaryF32,
  k_cos,
  kUnaryF64
};

inline constexpr const char* kUnaryNames[kUnaryF64] = {
#define X(name) #name,
    WICK_MATH_UNARY(X)
#undef X
        "sin",
    "cos"};

/// The ten real dtypes in the order of the cast table.
enum Real { kU8, kU32, kI16, kI32, kI64, kBF16, kF16, kF32, kF64, kF8E4M3, kReals };
inline constexpr const char* kRealNames[kReals] = {"u8",   "u32", "i16", "i32", "i64",
                                                   "bf16", "f16", "f32", "f64", "f8e4m3"};
inline constexpr int kRealBytes[kReals] = {1, 4, 2, 4, 8, 2, 2, 4, 8, 1};

enum Format { kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ6_K, kFormats };
inline constexpr int kFormatBytes[kFormats] = {18, 20, 22, 24, 34, 144, 210};
inline constexpr int kFormatValues[kFormats] = {32, 32, 32, 32, 32, 256, 256};

struct Loops {
  void (*f32[kUnaryF32])(const float*, float*, std::size_t);
  void (*f64[kUnaryF64])(const double*, double*, std::size_t);
  /// A 16-bit type through an f32 function and back: computed in f32, rounded once.
  void (*f16[kUnaryF32])(const void*, void*, std::size_t);
  void (*bf16[kUnaryF32])(const void*, void*, std::size_t);
  void (*maximum_f32)(const float*, const float*, float*, std::size_t);
  void (*minimum_f32)(const float*, const float*, float*, std::size_t);
  void (*maximum_f64)(const double*, const double*, double*, std::size_t);
  void (*minimum_f64)(const double*, const double*, double*, std::size_t);
  /// cast[to][from]
  void (*cast[kReals][kReals])(const void*, void*, std::size_t);
  void (*dequantize[kFormats])(const void*, float*, std::size_t blocks);
  void (*quantize[kFormats])(const float*, void*, std::size_t blocks);
  void (*activation)(const float*, signed char* q, float* d, int* sum, std::size_t blocks);
  void (*uniform_f32)(unsigned long seed, float*, std::size_t groups);
  void (*uniform_f64)(unsigned long seed, double*, std::size_t groups);
};

extern const Loops kLoopsV2, kLoopsV3, kLoopsV4;
/// The same bodies with vectorisation switched off: what scalar calls give.
extern const Loops kLoopsScalar;

}  // namespace wick::math_test
