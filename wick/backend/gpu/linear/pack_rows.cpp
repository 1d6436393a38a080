#include "wick/backend/gpu/linear/pack_rows.h"

#include <algorithm>

#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {
namespace {

const KernelFamily<PackRowsArgs> kPackRows("pack_rows", "pack_rows");
const KernelFamily<SplitRowsArgs> kSplitRows("split_rows", "split_rows");

constexpr int64_t kMost = int64_t{1} << 30;  // threads of a launch

/// The rows of a matrix [t, k], t below 2^31, whose first row is at offset 0.
StridedIndex<1> rows_of(const Layout& matrix) {
  StridedIndex<1> rows;
  rows.rank = 1;
  rows.elems = static_cast<uint32_t>(matrix.shape()[0]);
  rows.stride[0][0] = matrix.stride(0);
  return rows;
}

int64_t threads_of(int64_t pitch) { return (pitch + kPackEach - 1) / kPackEach; }

/// Launches pack_rows. Of `args`, the caller sets the operands and the rows.
void launch_pack(Gpu& gpu, PackRowsArgs args, DType dtype, int64_t pitch, const ConstView& in) {
  const int last = in.layout.rank() - 1;
  const int64_t row_threads = threads_of(pitch), threads = args.count * row_threads;
  args.row_threads = Divider(static_cast<uint32_t>(row_threads));
  args.k = static_cast<uint32_t>(in.layout.shape()[last]);
  args.k_stride = in.layout.stride(last);
  args.pitch = pitch;
  args.format = uint32_t{out_format(dtype)};
  args.in_format = uint32_t{out_format(in.dtype)};
  kPackRows().launch(
      gpu,
      Grid{.blocks = {static_cast<unsigned>((threads + kPackThreads - 1) / kPackThreads), 1, 1},
           .threads = kPackThreads,
           .pdl = true},
      args);
}

/// Launches split_rows for `count` rows. Of `args`, the caller sets the operands and the rows.
void launch_split(Gpu& gpu, SplitRowsArgs args, uint32_t count, const SplitRows& out,
                  const ConstView& in) {
  const int last = in.layout.rank() - 1;
  args.k = static_cast<uint32_t>(in.layout.shape()[last]);
  args.k_stride = in.layout.stride(last);
  args.half = static_cast<uint32_t>(out.half);
  args.parts = static_cast<uint32_t>(out.terms);
  args.in_format = uint32_t{out_format(in.dtype)};
  kSplitRows().launch(gpu, Grid{.blocks = {count, 1, 1}, .threads = kSplitThreads, .pdl = true},
                      args);
}

}  // namespace

void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in) {
  const Layout& layout = in.layout;
  const int last = layout.rank() - 1;
  if (layout.elems() == 0) return;
  const int64_t rows = layout.elems() / layout.shape()[last];
  if (rows * threads_of(pitch) > kMost && last > 0) {
    const int64_t size = layout.shape()[0], some = (size + 1) / 2;
    const Layout first = layout.narrow(0, 0, some), rest = layout.narrow(0, some, size - some);
    pack_rows(gpu, out, dtype, pitch, {in.data, in.dtype, first});
    return pack_rows(gpu, advance(out, dtype, rows / size * some * pitch), dtype, pitch,
                     {in.data, in.dtype, rest});
  }
  const CollapsedDims<1> collapsed = collapse<1>({&layout}, (1u << last) - 1);
  collapsed.for_each_piece(
      [&](const StridedIndex<1>& strided, const std::array<int64_t, 1>& start) {
        PackRowsArgs args = {};
        args.out = out;
        args.in = advance(in.data, in.dtype, start[0]);
        args.count = strided.elems;
        args.rows = strided;
        launch_pack(gpu, args, dtype, pitch, in);
      });
}

void pack_rows(Gpu& gpu, void* out, DType dtype, int64_t pitch, const ConstView& in,
               const ChosenRows& chosen) {
  const int64_t most = std::max<int64_t>(kMost / std::max<int64_t>(threads_of(pitch), 1), 1);
  for (int64_t first = 0; first < chosen.count; first += most) {
    PackRowsArgs args = {};
    args.out = advance(out, dtype, first * pitch);
    args.in = advance(in.data, in.dtype, in.layout.offset());
    args.tokens = chosen.tokens + first;
    args.count = static_cast<uint32_t>(std::min(most, chosen.count - first));
    args.rows = rows_of(in.layout);
    launch_pack(gpu, args, dtype, pitch, in);
  }
}

void split_rows(Gpu& gpu, const SplitRows& out, const ConstView& in) {
  const auto rows = collapse<1>({&in.layout}, (1u << (in.layout.rank() - 1)) - 1);
  rows.for_each_piece([&](const StridedIndex<1>& strided, const std::array<int64_t, 1>& start) {
    SplitRowsArgs args = {};
    args.out = out.data;
    args.scale = out.scale;
    args.in = advance(in.data, in.dtype, start[0]);
    args.rows = strided;
    launch_split(gpu, args, strided.elems, out, in);
  });
}

void split_rows(Gpu& gpu, const SplitRows& out, const ConstView& in, const ChosenRows& chosen) {
  constexpr int64_t kMostRows = kMost / kSplitThreads;
  for (int64_t first = 0; first < chosen.count; first += kMostRows) {
    SplitRowsArgs args = {};
    args.out = advance(out.data, DType::f16, first * out.terms * out.half);
    args.scale = out.scale + first;
    args.in = advance(in.data, in.dtype, in.layout.offset());
    args.tokens = chosen.tokens + first;
    args.rows = rows_of(in.layout);
    const int64_t count = std::min(kMostRows, chosen.count - first);
    launch_split(gpu, args, static_cast<uint32_t>(count), out, in);
  }
}

}  // namespace wick::gpu
