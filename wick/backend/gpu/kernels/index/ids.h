#pragma once

// Ids that select slices of a tensor.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/math/fn.h"

namespace wick::gpu {

enum class IdType : math::u32 { u8, u32, i32, i64 };

/// Ids as they are passed to kernels.
struct Ids {
  const void* data = nullptr;
  IdType type = IdType::u32;
  math::u32 note = 0;  ///< identifies the launch in a fault
  FaultLine* line = nullptr;
  math::i64 size = 0;  ///< ids must be below it
  math::i64 step = 0;  ///< units of the input from one slice to the next
};

}  // namespace wick::gpu
