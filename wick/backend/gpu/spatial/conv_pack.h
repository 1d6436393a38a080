#pragma once

// Copies of the operands of convolutions in the layouts that the fastest kernels take.

#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/spatial/conv_gemm.h"

namespace wick::gpu {

/// A job of conv2d or conv2d_input in f16 or bf16 whose operands are packed. An image that has its
/// channels innermost already isn't copied.
class PackedConv {
 public:
  PackedConv(GpuBackend& backend, const ConvJob& job);
  const ConvJob& job() const { return job_; }

 private:
  void pack_image(GpuBackend& backend);
  void pack_filters(GpuBackend& backend);

  ConvJob job_;
  int64_t channels_;  ///< of a group of b, rounded up to whole pieces
  std::optional<Scratch> image_, filters_;
};

/// A job of conv2d or conv2d_input in f32 whose filters are copied: the rows of a are adjacent, and
/// their number is rounded up to a multiple of four.
class TurnedFilters {
 public:
  TurnedFilters(GpuBackend& backend, const ConvJob& job);
  const ConvJob& job() const { return job_; }

 private:
  ConvJob job_;
  std::optional<Scratch> filters_;
};

}  // namespace wick::gpu
