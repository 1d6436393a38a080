#include "wick/backend/gpu/reduce/reduce_plan.h"

#include <algorithm>
#include <cstdlib>

#include "wick/backend/gpu/kernels/device/features.h"

namespace wick::gpu {

Reduction::Reduction(const Layout& in, const Layout& out, uint32_t dims)
    : kept(collapse<2>({&in, &out}, ~dims)), reduced(collapse<1>({&in}, dims)) {
  // The dims with the input's smallest strides become the innermost ones. Dims with stride 0 become
  // the outermost ones, because vectors along them would load one element.
  kept.sort(RepeatedDims::outermost);
  n = reduced.elems;
}

bool Reduction::is_across() const {
  if (kept.dims.empty() || n <= 1) return false;
  const int64_t across = std::abs(kept.dims.back().stride[0]);
  return across != 0 && across < std::abs(reduced_step());
}

bool Reduction::is_dense(const void* data, DType dtype, int64_t each) const {
  return reduced.dims.size() <= 1 && has_dense_runs(data, dtype, each);
}

bool Reduction::has_dense_runs(const void* data, DType dtype, int64_t each) const {
  if (reduced.dims.empty() || reduced.dims.back().size % each != 0) return false;
  Access rows = access_of(kept, 0, data, info(dtype).block_bytes);
  for (size_t d = 0; d + 1 < reduced.dims.size(); ++d) {
    rows.dim(reduced.dims[d].size, reduced.dims[d].stride[0]);
  }
  return rows.run(reduced.dims.back().size, reduced_step()).vectors_of(each);
}

bool Reduction::has_dense_columns(const void* data, DType dtype, int64_t each) const {
  if (kept.dims.empty() || kept.dims.back().size % each != 0) return false;
  Access columns = access_of(kept, 0, data, info(dtype).block_bytes, kept.dims.size() - 1);
  for (const auto& d : reduced.dims) columns.dim(d.size, d.stride[0]);
  return columns.vectors_of(each);
}

int64_t Reduction::most_threads() const {
  // Rows take 128 threads for each of 8 chunks. With fewer columns than a thread block has, each
  // column takes a warp.
  constexpr int64_t kMost = 1024;
  return std::clamp(int64_t{1} << ceil_log(static_cast<uint64_t>(n)), int64_t{kWarp}, kMost);
}

Line Reduction::line() const {
  Line line;
  line.rank = 1;  // for no element or a single one
  if (n <= 1) return line;
  line.rank = 0;
  for (const auto& d : reduced.dims) {
    line.divider[line.rank] = Divider(static_cast<uint32_t>(std::min(d.size, int64_t{1} << 31)));
    line.size[line.rank] = d.size;
    line.inverse[line.rank] = 1.0 / static_cast<double>(d.size);
    line.stride[line.rank] = d.stride[0];
    ++line.rank;
  }
  return line;
}

Columns columns_of(const StridedIndex<2>& kept, int64_t n) {
  Columns columns;
  columns.outer = kept;
  const uint32_t last = --columns.outer.rank;
  columns.columns = kept.size[last].by;
  columns.outer.elems = kept.elems / columns.columns;
  columns.in_step = kept.stride[0][last];
  columns.out_step = kept.stride[1][last];
  columns.n = static_cast<uint64_t>(n);
  return columns;
}

}  // namespace wick::gpu
