#pragma once

#include "wick/backend/cpu/linear/gemm.h"

namespace wick::cpu {

/// B as it lies in memory, packed block by block on its way to the tiles.
class PackedOnTheWay final : public GemmColumns {
 public:
  PackedOnTheWay(const GemmKernels& kernels, Compute compute, const void* data, DType dtype,
                 int64_t col_stride, int64_t k_stride)
      : pack_(kernels.pack_cols[static_cast<size_t>(dtype)]),
        panel_(kernels.type(compute).col_panel),
        data_(static_cast<const char*>(data)),
        bytes_(info(dtype).block_bytes),
        col_stride_(col_stride),
        k_stride_(k_stride) {}

  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    PackArgs args{};
    args.data = data_ + (col * col_stride_ + k0 * k_stride_) * bytes_;
    args.row_stride = col_stride_;
    args.k_stride = k_stride_;
    args.rows = cols;
    args.k = k;
    args.panels = scratch;
    args.panel_stride = (k + 1) * panel_;
    pack_(args);
    return {scratch, args.panel_stride};
  }

 private:
  GemmKernels::Pack pack_;
  int64_t panel_;
  const char* data_;
  int64_t bytes_, col_stride_, k_stride_;
};

}  // namespace wick::cpu
