// Scattering by sorted ids: kernels/index/sort_ids.gpu and scatter_segments.gpu.

#include <algorithm>
#include <bit>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/index/index_select.h"
#include "wick/backend/gpu/index/scatter.h"
#include "wick/backend/gpu/reduce/sum_element.h"

namespace wick::gpu {
namespace {

const KernelFamily<SortIdsArgs> kSortIdsBlock("sort_ids", "sort_ids_block");
const KernelFamily<SortIdsArgs> kMakeIdKeys("sort_ids", "make_id_keys");
const KernelFamily<SortIdsArgs> kCountIdDigits("sort_ids", "count_id_digits");
const KernelFamily<SortIdsArgs> kScanIdDigits("sort_ids", "scan_id_digits");
const KernelFamily<SortIdsArgs> kPlaceIds("sort_ids", "place_ids");
const KernelFamily<ScatterSegmentsArgs, OneOf<1, 2, 4, 8, 16>> kSegments("scatter_segments",
                                                                         "scatter_segments_{}");
const KernelFamily<ScatterSegmentsArgs, SumElement> kAddSegments("scatter_segments",
                                                                 "scatter_add_segments_{}");
const KernelFamily<ScatterSegmentsArgs, SumElement> kAddSegmentsVec("scatter_segments",
                                                                    "scatter_add_segments_vec_{}");

/// The most ids that one thread block sorts faster than several kernels.
constexpr int64_t kBlockKeys = 16384;
/// The most ids that are sorted at once, unless one line has more. Each takes 16 bytes of scratch
/// memory.
constexpr int64_t kMostKeys = int64_t{1} << 26;
/// The most different keys of lines that are sorted at once: lines times places.
constexpr int64_t kKeyLimit = int64_t{1} << 30;

unsigned blocks_of(int64_t count, int64_t each) {
  return static_cast<unsigned>(divide_up(count, each));
}

/// Sorted keys in device memory.
class SortedIds {
 public:
  SortedIds(Gpu& gpu, const IdKeys& from, uint32_t total)
      : words_(gpu, size_t{total} * 4 * sizeof(uint32_t)) {
    const auto bits = std::max(static_cast<uint32_t>(std::bit_width(from.none)), 1u);
    SortIdsArgs c{};
    c.keys = array(0, total), c.order = array(1, total);
    c.keys_next = array(2, total), c.order_next = array(3, total);
    c.total = total;
    c.passes = static_cast<uint32_t>(divide_up(bits, kIdDigitBits));
    c.digit_bits = static_cast<uint32_t>(divide_up(bits, c.passes));
    c.tiles = blocks_of(total, kSortIdsThreads * kSortIdsEach);
    c.from = from;
    const bool odd = c.passes % 2 != 0;
    keys_ = odd ? c.keys_next : c.keys;
    order_ = odd ? c.order_next : c.order;
    if (total <= kBlockKeys) {
      kSortIdsBlock().launch(gpu, Grid{.threads = kSortIdsBlockThreads, .pdl = true}, c);
    } else {
      sort(gpu, c);
    }
  }
  const uint32_t* keys() const { return keys_; }
  const uint32_t* order() const { return order_; }

 private:
  uint32_t* array(size_t index, size_t total) const {
    return words_.data<uint32_t>() + index * total;
  }

  static void sort(Gpu& gpu, SortIdsArgs& c) {
    const Scratch counts(gpu, (size_t{c.tiles} << c.digit_bits) * sizeof(uint32_t));
    c.counts = counts.data<uint32_t>();
    Grid each{.threads = kSortIdsThreads, .pdl = true};
    each.blocks[0] = blocks_of(c.total, kSortIdsThreads);
    kMakeIdKeys().launch(gpu, each, c);
    uint32_t* const order = c.order;
    c.order = nullptr;  // the keys are in the order of the ids
    each.blocks[0] = c.tiles;
    for (uint32_t pass = 0; pass < c.passes; ++pass) {
      kCountIdDigits().launch(gpu, each, c);
      kScanIdDigits().launch(gpu, Grid{.threads = kSortIdsBlockThreads, .pdl = true}, c);
      kPlaceIds().launch(gpu, each, c);
      c.shift += c.digit_bits;
      std::swap(c.keys, c.keys_next);
      uint32_t* const sorted = c.order_next;
      c.order_next = pass == 0 ? order : c.order;
      c.order = sorted;
    }
  }

  Scratch words_;
  const uint32_t *keys_, *order_;
};

/// Bytes of the largest units, up to 16, in which the columns of every place and of every source
/// can be moved.
int64_t unit_bytes(const Scatter& s) {
  const int64_t bytes = s.out.bytes;
  if (s.columns.dims.empty()) return bytes;
  const size_t last = s.columns.dims.size() - 1;
  Access to = access_of(s.columns, 0, s.out, last), from = access_of(s.columns, 1, s.source, last);
  if (!to.is_dense() || !from.is_dense()) return bytes;
  // Starts and the columns' size must be whole units, too: they count as strides.
  to.dim(2, s.lines.start[1]).dim(s.places, s.ids.step).dim(2, s.columns.inner(0).size);
  from.dim(2, s.lines.start[0]).dim(s.n, s.source_step);
  for (const auto& line : s.lines.dims) {
    from.dim(line.size, line.stride[0]);
    to.dim(line.size, line.stride[1]);
  }
  return std::max(to.alignment(from.alignment(kMostVectorBytes)), bytes);
}

/// Launches the kernels for a piece of the columns and all keys.
void launch_for(Gpu& gpu, const Scatter& s, const ScatterSegmentsArgs& call, int64_t unit) {
  ScatterSegmentsArgs c = call;
  const auto columns = static_cast<int64_t>(c.columns.elems);
  c.width_log = ceil_log(std::min(c.columns.elems, kSegmentThreads));
  c.tiles = blocks_of(columns, int64_t{1} << c.width_log);
  const int64_t keys = kSegmentThreads >> c.width_log;  // of a thread block
  // AMD's drivers launch fewer than 2^32 threads at once.
  const int64_t most = std::max<int64_t>((int64_t{1} << 23) / c.tiles, 1) * keys;
  for (int64_t first = 0; first < int64_t{call.total}; first += most) {
    const int64_t count = std::min(most, int64_t{call.total} - first);
    c.first = static_cast<uint32_t>(first);
    Grid grid{.threads = kSegmentThreads, .pdl = true};
    grid.blocks[0] = blocks_of(count, keys) * c.tiles;
    if (!s.add) {
      kSegments(unit).launch(gpu, grid, c);
    } else {
      (unit == kMostVectorBytes ? kAddSegmentsVec : kAddSegments)(sum_element(s.dtype))
          .launch(gpu, grid, c);
    }
  }
}

/// Sorts the ids of some lines that name places [first, first + count), and moves their sources.
void launch_lines(Gpu& gpu, const Scatter& s, StridedIndex<3> lines,
                  const std::array<int64_t, 3>& start, int64_t first, int64_t count, int64_t unit) {
  IdKeys from{};
  from.ids = s.ids;
  from.ids.data = id_at(s.ids, start[2]);
  from.lines = lines;
  from.n = Divider(static_cast<uint32_t>(s.n));
  from.id_step = s.id_step;
  from.first = first;
  from.places = static_cast<uint32_t>(count);
  from.none = lines.elems * from.places;
  from.reports = first == 0 ? 1 : 0;
  const uint32_t total = lines.elems * static_cast<uint32_t>(s.n);
  const SortedIds sorted(gpu, from, total);

  // Strides count units.
  const int64_t factor = unit / s.out.bytes;
  for (uint32_t d = 0; d < lines.rank; ++d) {
    lines.stride[0][d] /= factor;
    lines.stride[1][d] /= factor;
  }
  CollapsedDims<2> columns = s.columns;
  for (size_t d = 0; d < columns.dims.size(); ++d) {
    auto& dim = columns.dims[d];
    if (d + 1 == columns.dims.size()) {
      dim.size /= factor;
    } else {
      for (int64_t& stride : dim.stride) stride /= factor;
    }
  }
  columns.elems /= factor;
  ScatterSegmentsArgs c{};
  c.keys = sorted.keys(), c.order = sorted.order();
  c.lines = lines;
  c.total = total, c.none = from.none;
  c.n = static_cast<uint32_t>(s.n);
  c.places = Divider(static_cast<uint32_t>(std::max<int64_t>(count, 1)));
  c.source_step = s.source_step / factor, c.out_step = s.ids.step / factor;
  columns.for_each_piece(kSegmentThreads, [&](const StridedIndex<2>& piece, const auto& at) {
    c.columns = piece;
    c.out = s.out.at(start[1] + first * s.ids.step + at[0] * factor);
    c.source = s.source.at(start[0] + at[1] * factor);
    launch_for(gpu, s, c, unit);
  });
}

}  // namespace

void launch_segments(Gpu& gpu, const Scatter& s) {
  int64_t unit = unit_bytes(s);
  if (s.add && unit != kMostVectorBytes) unit = s.out.bytes;
  // A line with more places takes several sorts.
  const int64_t range = std::clamp<int64_t>(s.places, 1, kKeyLimit);
  // The most lines that are sorted at once. for_each_piece() limits pieces to 2^31 threads.
  const int64_t most = std::max<int64_t>(std::min(kMostKeys / s.n, kKeyLimit / range), 1);
  for (int64_t first = 0; first == 0 || first < s.places; first += range) {
    const int64_t count = std::min(range, s.places - first);
    s.lines.for_each_piece(divide_up(2 * kKeyLimit, most),
                           [&](const StridedIndex<3>& lines, const auto& start) {
                             launch_lines(gpu, s, lines, start, first, count, unit);
                           });
  }
}

}  // namespace wick::gpu
