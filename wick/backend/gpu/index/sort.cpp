// Sorting along a dim: kernels/index/sort.gpu and sort_long.gpu.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/index/sort_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

using Bits = OneOf<8, 16, 32, 64>;
const KernelFamily<SortShortArgs, Bits> kSortShortRows("sort", "sort_short_u{}");
const KernelFamily<SortBlockArgs, Bits> kSortBlocks("sort", "sort_block_u{}");
const KernelFamily<SortSelectArgs, Bits> kSortSelect("sort_long", "sort_select_u{}");
const KernelFamily<SortCountArgs, Bits> kSortCount("sort_long", "sort_count_u{}");
const KernelFamily<SortOffsetsArgs> kSortOffsets("sort_long", "sort_offsets");
const KernelFamily<SortScatterArgs, Bits> kSortScatter("sort_long", "sort_scatter_u{}");

/// The most elements of rows that are sorted in chunks at once. Bounds the scratch memory: 1 GiB
/// for elements of 4 bytes, unless one row takes more.
constexpr int64_t kMostElems = int64_t{1} << 26;

SortKeys keys_of(DType dtype, bool descending) {
  const int64_t bits = 8 * info(dtype).block_bytes;
  const uint64_t all = ~uint64_t{0} >> (64 - bits), top = uint64_t{1} << (bits - 1);
  SortKeys keys{};
  keys.turn = descending ? all : 0;
  keys.most = all;
  if (is_float(dtype)) {
    keys.sign = top;
    keys.positive = top ^ keys.turn;
    keys.negative = all ^ keys.turn;
    switch (dtype) {
      case DType::f8e4m3:
        keys.most = 0x7e;
        break;
      case DType::f16:
        keys.most = 0x7c00;
        break;
      case DType::bf16:
        keys.most = 0x7f80;
        break;
      case DType::f64:
        keys.most = uint64_t{0x7ff} << 52;
        break;
      default:
        keys.most = 0x7f800000;
        break;
    }
  } else {
    const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
    keys.sign = is_signed ? top : 0;
    keys.positive = keys.negative = keys.sign ^ keys.turn;
  }
  return keys;
}

/// The stride of an output along a dim, and its offset; 0 if it is absent.
int64_t stride(const View& view, int dim) {
  return view.data == nullptr ? 0 : view.layout.stride(dim);
}
int64_t offset(const View& view) { return view.data == nullptr ? 0 : view.layout.offset(); }
void* at(const View& view, int64_t elems) {
  return view.data == nullptr ? nullptr : advance(view.data, view.dtype, elems);
}

/// Launches one sort.
class SortLauncher {
 public:
  SortLauncher(Gpu& gpu, const View& values, const View& indices, const ConstView& in, int dim,
               bool descending)
      : gpu_(gpu),
        values_(values),
        indices_(indices),
        in_(in),
        bytes_(info(in.dtype).block_bytes),
        n_(in.layout.shape()[dim]),
        rows_({in.layout.offset(), offset(values), offset(indices)}) {
    const View& any = values.data != nullptr ? values : indices;
    for (int d = 0; d < in.layout.rank(); ++d) {
      if (d == dim) continue;
      rows_.add(in.layout.shape()[d], {in.layout.stride(d), stride(values, d), stride(indices, d)});
    }
    rows_.sort();  // rows that are neighbours in the input's memory become neighbours
    source_ = {nullptr, nullptr, nullptr, in.layout.stride(dim), static_cast<u32>(n_)};
    target_ = {nullptr, nullptr, stride(values, dim), stride(indices, dim),
               static_cast<u32>(any.layout.shape()[dim])};
    keys_ = keys_of(in.dtype, descending);
  }

  /// Whether neighbours in memory belong to different rows.
  bool is_across() const {
    if (rows_.dims.empty() || n_ <= 1) return false;
    const int64_t next = std::abs(rows_.dims.back().stride[0]);
    return next != 0 && next < std::abs(source_.step);
  }

  void run() {
    const int64_t chunk_threads = divide_up(n_, kSortChunk) * kSortThreads;
    int64_t threads = int64_t{1} << width_log();
    if (n_ > kSortShort) threads = kSortMostThreads;
    if (n_ > kSortBlock) {
      // A piece has at most 2^31 / threads rows.
      threads = std::max(chunk_threads, n_ * ((int64_t{1} << 31) / kMostElems));
    }
    rows_.for_each_piece(threads, [&](const StridedIndex<3>& rows, const auto& start) {
      source_.elements = advance(in_.data, in_.dtype, start[0]);
      target_.values = at(values_, start[1]);
      target_.indices = static_cast<u32*>(at(indices_, start[2]));
      if (n_ <= kSortShort) {
        in_short_rows(rows);
      } else if (n_ <= kSortBlock) {
        in_blocks(rows, source_, false);
      } else if (target_.keep <= kSortMostSelected) {
        select(rows);
      } else {
        in_passes(rows);
      }
    });
  }

 private:
  Bits bits() const { return 8 * bytes_; }
  /// log2 of the threads of a short row.
  u32 width_log() const {
    return ceil_log(static_cast<uint64_t>(std::min<int64_t>(n_, kSortShort)));
  }

  void in_short_rows(const StridedIndex<3>& rows) const {
    const SortShortArgs args{source_, target_, keys_, rows, width_log(), is_across() ? 1u : 0u};
    Grid grid = grid_of(divide_up(rows.elems, kSortShortThreads >> args.width_log));
    grid.threads = kSortShortThreads;
    kSortShortRows(bits()).launch(gpu_, grid, args);
  }

  /// Sorts rows that a thread block holds. `follows`: another kernel of this sort wrote the input.
  void in_blocks(const StridedIndex<3>& rows, const SortInput& in, bool follows) const {
    Grid grid = grid_of(rows.elems);
    grid.threads = kSortLeastThreads;
    while (grid.threads * kSortEach < in.n) grid.threads *= 2;
    grid.shared_bytes = sort_shared_bytes(grid.threads);
    grid.pdl = follows;
    const u32 each = (in.n + grid.threads - 1) / grid.threads;
    kSortBlocks(bits()).launch(gpu_, grid, {in, target_, keys_, rows, each});
  }

  /// Reduces rows to candidates for the first elements until a thread block can sort them.
  void select(const StridedIndex<3>& rows) const {
    SortInput in = source_;
    std::optional<Scratch> held[2];
    for (size_t k = 0; in.n > kSortBlock; k ^= 1) {
      const u32 chunks = chunks_of(in.n), keep = target_.keep;
      const u32 n_out = (chunks - 1) * keep + std::min(keep, in.n - (chunks - 1) * kSortChunk);
      const SortMoved out =
          moved(held[k].emplace(gpu_, moved_bytes(rows.elems, n_out)), rows.elems, n_out);
      Grid grid = grid_of(int64_t{rows.elems} * chunks);
      grid.pdl = in.keys != nullptr;
      kSortSelect(bits()).launch(gpu_, grid, {in, out, keys_, rows, chunks, keep, n_out});
      in = {source_.elements, out.keys, out.places, 1, n_out};
    }
    in_blocks(rows, in, true);
  }

  /// Sorts rows in chunks, digit by digit.
  void in_passes(const StridedIndex<3>& rows) const {
    const u32 chunks = chunks_of(source_.n), passes = static_cast<u32>(bytes_);
    const size_t lines = size_t{rows.elems} * kSortDigits;
    const Scratch counts(gpu_, lines * (chunks + 1) * sizeof(u32));
    u32* const totals = counts.data<u32>() + lines * chunks;
    // The first pass reads the input and the last pass writes the outputs.
    std::optional<Scratch> held[2];
    SortMoved buffers[2] = {};
    for (u32 k = 0; k < std::min(passes - 1, 2u); ++k) {
      buffers[k] =
          moved(held[k].emplace(gpu_, moved_bytes(rows.elems, source_.n)), rows.elems, source_.n);
    }
    SortInput in = source_;
    for (u32 pass = 0; pass < passes; ++pass) {
      const bool last = pass + 1 == passes;
      Grid grid = grid_of(int64_t{rows.elems} * chunks);
      grid.pdl = pass > 0;
      kSortCount(bits()).launch(gpu_, grid,
                                {in, counts.data<u32>(), keys_, rows, chunks, 8 * pass});
      grid.pdl = true;
      Grid offsets = grid_of(divide_up(static_cast<int64_t>(lines), kSortThreads / kWarp));
      offsets.pdl = true;
      kSortOffsets().launch(gpu_, offsets, {counts.data<u32>(), totals, chunks, lines});
      grid.shared_bytes = sort_shared_bytes(kSortThreads);
      const SortMoved out = last ? SortMoved{} : buffers[pass % 2];
      kSortScatter(bits()).launch(gpu_, grid,
                                  {in, out, target_, counts.data<u32>(), totals, keys_, rows,
                                   chunks, 8 * pass, last ? 1u : 0u});
      in = {source_.elements, out.keys, out.places, 1, source_.n};
    }
  }

  /// Keys and places of `rows` rows of n elements in scratch memory: first the places.
  size_t moved_bytes(u32 rows, u32 n) const {
    return size_t{rows} * n * (sizeof(u32) + static_cast<size_t>(bytes_)) + 8;
  }
  static SortMoved moved(const Scratch& memory, u32 rows, u32 n) {
    // Keys of 8 bytes are aligned.
    const size_t count = (size_t{rows} * n + 1) / 2 * 2;
    return {memory.data<u32>() + count, memory.data<u32>()};
  }
  static u32 chunks_of(u32 n) { return static_cast<u32>(divide_up(n, kSortChunk)); }
  static Grid grid_of(int64_t blocks) {
    Grid grid{{static_cast<unsigned>(blocks), 1, 1}};
    grid.threads = kSortThreads;
    return grid;
  }

  Gpu& gpu_;
  const View& values_;
  const View& indices_;
  const ConstView& in_;
  const int64_t bytes_, n_;
  CollapsedDims<3> rows_;
  SortInput source_;
  SortOutput target_;
  SortKeys keys_;
};

/// The layout of a dense tensor whose innermost dim is `dim`.
Layout dense_along(const Shape& shape, int dim) {
  Layout::Strides strides{};
  int64_t step = shape[dim];
  strides[static_cast<size_t>(dim)] = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (d == dim) continue;
    strides[static_cast<size_t>(d)] = step;
    step *= shape[d];
  }
  return {shape, strides, 0};
}

}  // namespace

void GpuBackend::sort(const View& values, const View& indices, const ConstView& in, int dim,
                      bool descending) {
  const View& any = values.data != nullptr ? values : indices;
  if (any.data == nullptr || any.layout.elems() == 0) return;
  SortLauncher launcher(gpu_, values, indices, in, dim, descending);
  if (in.layout.shape()[dim] <= kSortShort || !launcher.is_across()) return launcher.run();

  // Columns are transposed first, and the results transposed back: three copies cost less than
  // accesses that use a few bytes of each cache line.
  const Scratch elements(gpu_, static_cast<size_t>(bytes_of(in.dtype, in.layout.elems())));
  const View rows{elements.data(), in.dtype, dense_along(in.layout.shape(), dim)};
  copy(rows, in);
  const auto elems = static_cast<size_t>(any.layout.elems());
  std::optional<Scratch> sorted, places;
  View to = values, to_indices = indices;
  if (values.data != nullptr) {
    sorted.emplace(gpu_, elems * static_cast<size_t>(info(values.dtype).block_bytes));
    to = {sorted->data(), values.dtype, dense_along(values.layout.shape(), dim)};
  }
  if (indices.data != nullptr) {
    places.emplace(gpu_, elems * sizeof(u32));
    to_indices = {places->data(), indices.dtype, dense_along(indices.layout.shape(), dim)};
  }
  SortLauncher(gpu_, to, to_indices, rows, dim, descending).run();
  if (values.data != nullptr) copy(values, to);
  if (indices.data != nullptr) copy(indices, to_indices);
}

}  // namespace wick::gpu
