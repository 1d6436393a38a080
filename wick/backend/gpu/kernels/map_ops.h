#pragma once

// The rows of ops.def by numbers of their own, for kernels that have all of them.

#include "wick/math/fn.h"

namespace wick::gpu {

enum class UnaryRow : math::u32 {
#define WICK_UNARY(name, ...) name,
#include "wick/op/ops.def"
};
enum class BinaryRow : math::u32 {
#define WICK_BINARY(name, ...) name,
#include "wick/op/ops.def"
};

}  // namespace wick::gpu
