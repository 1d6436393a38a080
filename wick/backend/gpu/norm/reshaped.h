#pragma once

// The rows of group_norm and of its gradient: views of images with another shape.

#include <optional>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

/// A view with another shape: of the same memory, or of a dense copy if the strides don't allow it.
class Reshaped {
 public:
  /// reads: whether the elements are read, so a copy needs them.
  Reshaped(GpuBackend& backend, Gpu& gpu, const ConstView& from, const Shape& shape, bool reads)
      : view_{const_cast<void*>(from.data), from.dtype, from.layout} {  // a source isn't written
    if (const auto layout = from.layout.reshape(shape)) {
      view_.layout = *layout;
      return;
    }
    const Shape& own = from.layout.shape();
    copy_.emplace(gpu, static_cast<size_t>(bytes_of(from.dtype, own.elems())));
    dense_ = {copy_->data(), from.dtype, Layout::contiguous(own)};
    if (reads) backend.copy(dense_, from);
    view_ = {copy_->data(), from.dtype, Layout::contiguous(shape)};
  }
  const View& view() const { return view_; }
  /// Copies what was written to `to`, the view that was reshaped.
  void finish(GpuBackend& backend, const View& to) const {
    if (copy_) backend.copy(to, dense_);
  }

 private:
  View view_, dense_{};
  std::optional<Scratch> copy_;
};

}  // namespace wick::gpu
