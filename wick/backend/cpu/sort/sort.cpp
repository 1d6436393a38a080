#include <algorithm>
#include <memory>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/sort/sort_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {
namespace {

constexpr int64_t kElemsPerThread = 4096;

/// The stride of an output that may be absent.
int64_t stride(const View& view, int dim) {
  return view.data == nullptr ? 0 : view.layout.stride(dim);
}
void* at(const View& view, int64_t elems) {
  if (view.data == nullptr) return nullptr;
  return static_cast<char*>(view.data) + elems * info(view.dtype).block_bytes;
}

}  // namespace

void CpuBackend::sort(const View& values, const View& indices, const ConstView& in, int dim,
                      bool descending) {
  const SortKernels& table = WICK_SELECT_KERNELS(isa_, sort_kernels, no_dots);
  const Layout& x = in.layout;
  const View& any = values.data != nullptr ? values : indices;
  if (any.data == nullptr || any.layout.elems() == 0) return;

  CollapsedDims<3> rows({x.offset(), values.data == nullptr ? 0 : values.layout.offset(),
                         indices.data == nullptr ? 0 : indices.layout.offset()});
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim) rows.add(x.shape()[d], {x.stride(d), stride(values, d), stride(indices, d)});
  }
  rows.sort();  // neighbouring rows of the input become neighbours in the loop

  SortRows all{};
  all.n = x.shape()[dim];
  all.keep = any.layout.shape()[dim];
  all.descending = descending;
  all.x_step = x.stride(dim);
  all.values_step = stride(values, dim);
  all.indices_step = stride(indices, dim);
  const auto dtype = static_cast<size_t>(in.dtype);
  parallel_for(
      rows.elems, std::max<int64_t>(1, kElemsPerThread / all.n), [&](int64_t begin, int64_t end) {
        std::unique_ptr<char[]> memory;
        int64_t bytes = 0;
        rows.runs(begin, end, [&](const auto& offset, const auto& next, int64_t count) {
          SortRows lines = all;
          lines.x = static_cast<const char*>(in.data) + offset[0] * info(in.dtype).block_bytes;
          lines.values = at(values, offset[1]);
          lines.indices = static_cast<uint32_t*>(at(indices, offset[2]));
          lines.x_next = next[0], lines.values_next = next[1], lines.indices_next = next[2];
          lines.lines = count;
          const int64_t needed = table.bytes[dtype](lines);
          if (needed > bytes) {
            memory = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(needed) + 64);
            bytes = needed;
          }
          const auto address = reinterpret_cast<uintptr_t>(memory.get());
          table.run[dtype](lines, memory.get() + (-address & 63));
        });
      });
}

}  // namespace wick::cpu
