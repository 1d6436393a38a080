#pragma once

// Convolutions as gemms: the descriptions that the kernels take. Nothing here needs a device.

#include <cstdint>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/kernels/spatial/conv_abi.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// A convolution or one of its gradients, with the operands of its gemms (ConvGemm).
struct ConvJob {
  View out;
  ConstView a, b;
  int64_t groups = 1;
  ConvGemm gemm;  ///< for the first elements of the operands, with all terms in one slab

  /// Rows of b and terms of the largest gemm, the number of gemms and of their phases.
  int64_t rows() const;
  int64_t terms() const;
  int64_t gemms() const;
  int64_t phases() const;
  /// Whether offsets of terms, and positions, fit 32 bits.
  bool is_near() const;
  /// Whether is_near(), and the offsets of rows of b fit 32 bits too.
  bool has_near_rows() const;
};

/// out = conv2d(x, w).
ConvJob forward_job(const View& out, const ConstView& x, const ConstView& w,
                    const ConvParams& params);
/// grad_x, the gradient with respect to x.
ConvJob input_job(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                  const ConvParams& params);
/// grad_w, the gradient with respect to w.
ConvJob weight_job(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                   const ConvParams& params);

/// Whether conv2d_weight has so few channels in a group that conv_depthwise.gpu takes it.
bool takes_depthwise_weight(const ConvJob& job);
/// Slabs of a job's terms. The last one may have fewer terms.
struct ConvSlabs {
  int64_t count, terms;
};
/// The slabs of conv2d_weight. They depend on the shape alone.
ConvSlabs slabs_of(const ConvJob& job);
/// The slabs of conv2d and conv2d_input. Only jobs of few tiles have several.
ConvSlabs slabs_of_few_tiles(const ConvJob& job);

}  // namespace wick::gpu
