#pragma once

// Dense tensors for steps that a backend runs as separate ops.

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

/// A dense tensor that is freed at the end of a scope.
class Temporary {
 public:
  Temporary(Gpu& gpu, const Shape& shape, DType dtype = DType::f32)
      : dtype_(dtype),
        layout_(Layout::contiguous(shape)),
        memory_(gpu, static_cast<size_t>(bytes_of(dtype, shape.elems()))) {}
  View view() const { return {memory_.data(), dtype_, layout_}; }

 private:
  DType dtype_;
  Layout layout_;
  Scratch memory_;
};

}  // namespace wick::gpu
