#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// Random numbers of `counters` consecutive counters from `first` on, four of f32 or two of f64 for
/// each: uniform in [a, b), or normal with mean a and standard deviation b.
struct RandomKernels {
  using F32 = void (*)(uint64_t seed, uint64_t first, int64_t counters, float a, float b,
                       float* out);
  using F64 = void (*)(uint64_t seed, uint64_t first, int64_t counters, double a, double b,
                       double* out);
  F32 uniform_f32, normal_f32;
  F64 uniform_f64, normal_f64;
};

/// True when there is a kernel for both distributions in both compute types.
constexpr bool complete(const RandomKernels& table) {
  return table.uniform_f32 != nullptr && table.normal_f32 != nullptr &&
         table.uniform_f64 != nullptr && table.normal_f64 != nullptr;
}

WICK_DECLARE_KERNELS(RandomKernels, random_kernels)

}  // namespace wick::cpu
