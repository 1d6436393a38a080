#include "wick/backend/cpu/linear/stacked_rows.h"

#include <algorithm>

#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/pages.h"

namespace wick::cpu {
namespace {

/// A thread packs so many bytes before it releases their source's pages.
constexpr int64_t kPackPiece = 256 << 10;

}  // namespace

StackedRows::StackedRows(std::span<const ConstView> parts) : parts_(parts), starts_{0} {
  for (const ConstView& part : parts) starts_.push_back(count() + part.layout.shape()[0]);
}

size_t StackedRows::part_of(int64_t row) const {
  const auto after = std::upper_bound(starts_.begin() + 1, starts_.end() - 1, row);
  return static_cast<size_t>(after - starts_.begin()) - 1;
}

const uint8_t* StackedRows::pointer(size_t part, int64_t row) const {
  const ConstView& view = parts_[part];
  const int64_t elem = view.layout.offset() + (row - starts_[part]) * view.layout.stride(0);
  return static_cast<const uint8_t*>(view.data) + bytes_of(view.dtype, elem);
}

void StackedRows::read(int64_t begin, std::span<Row> out) const {
  size_t part = part_of(begin);
  for (Row& row : out) {
    row = {};
    if (begin >= count()) continue;
    while (begin >= starts_[part + 1]) ++part;
    row = {pointer(part, begin++), parts_[part].layout.stride(1)};
  }
}

void StackedRows::release(int64_t begin, int64_t end) const {
  end = std::min(end, count());
  for (size_t part = part_of(begin); begin < end; ++part) {
    const int64_t stop = std::min(end, starts_[part + 1]);
    if (stop <= begin) continue;
    const Layout& layout = parts_[part].layout;
    const int64_t k = layout.shape()[1];
    if (layout.stride(1) == 1 && (layout.stride(0) == k || stop - begin == 1)) {
      const int64_t bytes = bytes_of(parts_[part].dtype, k) * (stop - begin);
      release_whole_pages(pointer(part, begin), static_cast<size_t>(bytes));
    }
    begin = stop;
  }
}

void pack_panels(const StackedRows& rows, int64_t panel_rows, int64_t panel_bytes, bool release,
                 const std::function<void(int64_t panel)>& pack) {
  const int64_t panels = (rows.count() + panel_rows - 1) / panel_rows;
  const int64_t piece = std::max<int64_t>(1, kPackPiece / std::max<int64_t>(panel_bytes, 1));
  parallel_for(panels, piece, [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += piece) {
      const int64_t to = std::min(end, from + piece);
      for (int64_t panel = from; panel < to; ++panel) pack(panel);
      if (release) rows.release(from * panel_rows, to * panel_rows);
    }
  });
  // The pages at the borders of pieces.
  if (release) rows.release(0, rows.count());
}

}  // namespace wick::cpu
