#pragma once

#include <algorithm>

#include "wick/backend/cpu/linear/gemm.h"

namespace wick::cpu {

/// A strided matrix of bf16 that is packed in pairs along k, block by block, as rows or as columns.
/// k0 and k count pairs.
class PackedPairs final : public GemmColumns, public GemmRowSource {
 public:
  PackedPairs(const GemmKernels& kernels, Compute compute, const void* data, int64_t stride,
              int64_t k_stride, int64_t k)
      : kernels_(kernels),
        pack_rows_(compute == Compute::bf16_tiles ? kernels.pack_tile_rows
                                                  : kernels.pack_pair_rows),
        data_(static_cast<const uint16_t*>(data)),
        stride_(stride),
        k_stride_(k_stride),
        k_(k) {}

  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    const int64_t panel_stride = (k + 1) * kernels_.type(Compute::bf16_dot).col_panel;
    kernels_.pack_pair_cols(args(col, cols, k0, k, scratch, panel_stride));
    return {scratch, panel_stride};
  }
  void pack(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
            int64_t panel_stride) const override {
    pack_rows_(args(row, rows, k0, k, panels, panel_stride));
  }

 private:
  PackArgs args(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
                int64_t panel_stride) const {
    PackArgs args{};
    args.data = data_ + row * stride_ + 2 * k0 * k_stride_;
    args.row_stride = stride_;
    args.k_stride = k_stride_;
    args.rows = rows;
    args.k = std::min(2 * k, k_ - 2 * k0);
    args.panels = panels;
    args.panel_stride = panel_stride;
    return args;
  }

  const GemmKernels& kernels_;
  const GemmKernels::Pack pack_rows_;
  const uint16_t* data_;
  int64_t stride_, k_stride_, k_;
};

/// A strided matrix B that is packed block by block.
class PackedColumns final : public GemmColumns {
 public:
  PackedColumns(const GemmKernels& kernels, Compute compute, const void* data, DType dtype,
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
