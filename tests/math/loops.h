#pragma once

// Plain loops over every function of wick/math, compiled once per instruction set (loops.cpp).

#include <cstddef>

// The functions of one and of two floats.
#define WICK_MATH_UNARY(X) \
  X(exp)                   \
  X(log)                   \
  X(tanh)                  \
  X(sigmoid)               \
  X(silu)                  \
  X(expm1)                 \
  X(log1p)                 \
  X(sin)                   \
  X(cos)                   \
  X(erf)                   \
  X(normcdf)               \
  X(gelu)                  \
  X(gelu_erf)              \
  X(rsqrt)                 \
  X(recip)                 \
  X(sqrt)                  \
  X(abs)                   \
  X(neg)                   \
  X(sqr)                   \
  X(square)                \
  X(relu)                  \
  X(sign)                  \
  X(rint)                  \
  X(floor)                 \
  X(ceil)                  \
  X(round)
#define WICK_MATH_BINARY(X) \
  X(pow)                    \
  X(atan2)                  \
  X(rem)                    \
  X(elu)                    \
  X(maximum)                \
  X(minimum)

// The integer functions that vectorize, and the comparisons, which floats have as well.
#define WICK_MATH_WHOLE_UNARY(X) \
  X(neg)                         \
  X(abs)                         \
  X(sqr)                         \
  X(relu)                        \
  X(sign)                        \
  X(bitwise_not)                 \
  X(logical_not)                 \
  X(to_bool)
#define WICK_MATH_WHOLE_BINARY(X) \
  X(add)                          \
  X(sub)                          \
  X(mul)                          \
  X(maximum)                      \
  X(minimum)                      \
  X(bitwise_and)                  \
  X(bitwise_or)                   \
  X(bitwise_xor)                  \
  X(logical_and)                  \
  X(logical_or)                   \
  X(logical_xor)                  \
  X(shift_left)                   \
  X(shift_right)
#define WICK_MATH_COMPARE(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)

namespace wick::math_test {

#define X(name) k_##name,
enum Unary { WICK_MATH_UNARY(X) kUnaries };
enum class Binary { WICK_MATH_BINARY(X) kCount };
enum class WholeUnary { WICK_MATH_WHOLE_UNARY(X) kCount };
enum class WholeBinary { WICK_MATH_WHOLE_BINARY(X) kCount };
enum class Compare { WICK_MATH_COMPARE(X) kCount };
#undef X
inline constexpr int kBinaries = static_cast<int>(Binary::kCount);
inline constexpr int kWholeUnaries = static_cast<int>(WholeUnary::kCount);
inline constexpr int kWholeBinaries = static_cast<int>(WholeBinary::kCount);
inline constexpr int kCompares = static_cast<int>(Compare::kCount);

#define X(name) #name,
inline constexpr const char* kUnaryNames[] = {WICK_MATH_UNARY(X)};
inline constexpr const char* kBinaryNames[] = {WICK_MATH_BINARY(X)};
#undef X

/// The ten real dtypes in the order of the cast table.
enum Real { kU8, kU32, kI16, kI32, kI64, kBF16, kF16, kF32, kF64, kF8E4M3, kReals };
inline constexpr const char* kRealNames[kReals] = {"u8",   "u32", "i16", "i32", "i64",
                                                   "bf16", "f16", "f32", "f64", "f8e4m3"};
inline constexpr int kRealBytes[kReals] = {1, 4, 2, 4, 8, 2, 2, 4, 8, 1};

/// The block formats in the order of their table.
enum Format {
#define WICK_QUANT(name, Type, ...) k##Type,
#include "wick/math/quants.def"
  kFormats
};
inline constexpr int kFormatBytes[kFormats] = {
#define WICK_QUANT(name, Type, number, values, bytes, ...) bytes,
#include "wick/math/quants.def"
};
inline constexpr int kFormatValues[kFormats] = {
#define WICK_QUANT(name, Type, number, values, ...) values,
#include "wick/math/quants.def"
};

/// The operands and results of loops: arrays of the named type.
using Loop1 = void (*)(const void* in, void* out, std::size_t n);
using Loop2 = void (*)(const void* a, const void* b, void* out, std::size_t n);

/// The float types. Functions of narrow types compute in f32 and round once.
enum Float { kFloat32, kFloat64, kFloat16, kFloatB16, kFloat8, kFloats };
/// The integer types: the first five of Real.
inline constexpr int kWholes = 5;
/// The types with comparisons: the integers, f32 and f64.
inline constexpr int kCompared = 7;

struct Loops {
  Loop1 unary[kFloats][kUnaries];
  Loop2 binary[kFloats][kBinaries];
  Loop1 whole_unary[kWholes][kWholeUnaries];
  Loop2 whole_binary[kWholes][kWholeBinaries];
  Loop2 compare[kCompared][kCompares];  // results are bytes of 0 and 1
  Loop1 sin_of_near, cos_of_near;       // f32
  Loop1 sin_of_near_f64, cos_of_near_f64;
  /// cast[to][from]
  void (*cast[kReals][kReals])(const void*, void*, std::size_t);
  void (*dequantize[kFormats])(const void*, float*, std::size_t blocks);
  void (*quantize[kFormats])(const float*, void*, std::size_t blocks);
  void (*activation)(const float*, signed char* q, float* d, int* sum, std::size_t blocks);
  /// The form for math::kSharedBlocks blocks that share a scale, which is stored in the d of each.
  void (*shared_activation)(const float*, signed char* q, float* d, int* sum, std::size_t blocks);
  void (*uniform_f32)(unsigned long seed, float*, std::size_t groups);
  void (*uniform_f64)(unsigned long seed, double*, std::size_t groups);
};

extern const Loops kLoopsV2, kLoopsV3, kLoopsV4;
/// The same functions compiled without vectorization, which gives the results of scalar calls.
extern const Loops kLoopsScalar;

}  // namespace wick::math_test
