#include "wick/backend/gpu/linear/pack_rows.h"

#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {
namespace {

const KernelFamily<PackRowsArgs> kPackRows("pack_rows", "pack_rows");

}  // namespace

void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in) {
  const Layout& layout = in.layout;
  const int last = layout.rank() - 1;
  const int64_t k = layout.shape()[last], row_threads = (pitch + kPackEach - 1) / kPackEach;
  if (layout.elems() == 0) return;
  const int64_t rows = layout.elems() / k, threads = rows * row_threads;
  constexpr int64_t kMost = int64_t{1} << 30;  // threads of a launch
  if (threads > kMost && last > 0) {
    const int64_t size = layout.shape()[0], some = (size + 1) / 2;
    const Layout first = layout.narrow(0, 0, some), rest = layout.narrow(0, some, size - some);
    pack_rows(gpu, out, dtype, pitch, {in.data, in.dtype, first});
    return pack_rows(gpu, advance(out, dtype, rows / size * some * pitch), dtype, pitch,
                     {in.data, in.dtype, rest});
  }
  const CollapsedDims<1> collapsed = collapse<1>({&layout}, (1u << last) - 1);
  collapsed.for_each_piece([&](const StridedIndex<1>& strided,
                               const std::array<int64_t, 1>& start) {
    kPackRows().launch(
        gpu,
        Grid{.blocks = {static_cast<unsigned>((threads + kPackThreads - 1) / kPackThreads), 1, 1},
             .threads = kPackThreads,
             .pdl = true},
        {out, advance(in.data, in.dtype, start[0]), strided,
         Divider(static_cast<uint32_t>(row_threads)), static_cast<uint32_t>(k), layout.stride(last),
         pitch, uint32_t{out_format(dtype)}, uint32_t{out_format(in.dtype)}});
  });
}

}  // namespace wick::gpu
