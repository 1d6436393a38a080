#include "wick/backend/cpu/fused/pages.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"
#include "wick/math/blocks.h"

namespace wick::cpu {
namespace {

int64_t word_at(const ConstView& words, int64_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const uint32_t*>(words.data) + words.layout.offset() + offset,
              sizeof word);
  return int64_t{word};
}

constexpr int64_t kGrainElems = 16384;

/// Interleaves `count` rows of blocks with the keys of a page and a head (base/block_pages.h), from
/// a position on.
void store_keys(uint8_t* page, const BlockPages& of, int64_t position, int64_t count,
                const uint8_t* rows) {
  constexpr int64_t kScale = BlockPages::kScaleBytes;
  static_assert(kScale == math::kBlockScaleBytes);
  const int64_t bytes = of.block_bytes(), row_bytes = bytes_of(of.dtype, of.width);
  for (int64_t block = 0; block < row_bytes; block += bytes, page += of.step()) {
    const uint8_t* const from = rows + block;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(page + (position + i) * kScale, from + i * row_bytes, kScale);
    }
    for (int64_t byte = kScale; byte < bytes; ++byte) {
      uint8_t* const to = page + byte * BlockPages::kPositions + position;
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * row_bytes + byte];
    }
  }
}

}  // namespace

PagePlaces::PagePlaces(const Operands& operands) : of_(operands) {
  const int64_t count = of_.tables.data == nullptr ? 1 : of_.tables.layout.shape()[0];
  each_ = of_.positions.layout.shape()[0] / count;
  for (int64_t i = 0; i < count; ++i) {
    firsts_.push_back(position_of(i * each_));
    check(i);
  }
  if (count > 1) check_own_pages();
}

int64_t PagePlaces::position_of(int64_t row) const {
  return word_at(of_.positions, row * of_.positions.layout.stride(0));
}

int64_t PagePlaces::page_of(int64_t sequence, int64_t entry) const {
  if (of_.tables.data == nullptr) return 0;
  const Layout& tables = of_.tables.layout;
  return word_at(of_.tables, sequence * tables.stride(0) + entry * tables.stride(1));
}

void PagePlaces::check(int64_t sequence) const {
  const int64_t start = first(sequence), end = start + each_;
  const int64_t entries = of_.tables.data == nullptr ? 1 : of_.tables.layout.shape()[1];
  for (int64_t i = 1; i < each_; ++i) {
    const int64_t position = position_of(sequence * each_ + i);
    if (position == start + i) continue;
    throw Error(ErrorKind::index, of_.op, "a position that doesn't follow",
                std::to_string(position), "need " + std::to_string(start + i));
  }
  if (end > std::min(entries * of_.size, of_.limit)) {
    throw Error(ErrorKind::index, of_.op, "position outside the cache", std::to_string(end - 1));
  }
  for (int64_t i = of_.reads ? 0 : start / of_.size; i * of_.size < end; ++i) {
    if (page_of(sequence, i) < of_.pages) continue;
    throw Error(ErrorKind::index, of_.op, "page out of range", std::to_string(page_of(sequence, i)),
                "there are " + std::to_string(of_.pages));
  }
}

void PagePlaces::check_own_pages() const {
  std::vector<int64_t> written;
  for (int64_t s = 0; s < sequences(); ++s) {
    for (int64_t i = first(s) / of_.size; i * of_.size < first(s) + each_; ++i) {
      written.push_back(page_of(s, i));
    }
  }
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice == written.end()) return;
  throw Error(ErrorKind::index, of_.op, "two sequences write to one page", std::to_string(*twice));
}

void PagePlaces::store(CpuBackend& backend, const View& pages, const ConstView& rows,
                       int64_t sequence) const {
  const int64_t start = first(sequence), end = start + each_;
  for (int64_t at = start; at < end;) {
    const int64_t in_page = at % of_.size, count = std::min(end - at, of_.size - in_page);
    const Layout page = pages.layout.narrow(0, page_of(sequence, at / of_.size), 1);
    backend.cast({pages.data, pages.dtype, page.narrow(2, in_page, count)},
                 {rows.data, rows.dtype, rows.layout.narrow(2, at - start, count)});
    at += count;
  }
}

void PagePlaces::store_blocks(CpuBackend& backend, const View& pages, const BlockPages& of,
                              const ConstView& rows, int64_t sequence) const {
  const int64_t start = first(sequence), row_bytes = bytes_of(of.dtype, of.width);
  const Workspace made(static_cast<size_t>(of.heads * each_ * row_bytes));
  backend.quantize({made.data(), of.dtype, Layout::contiguous(rows.layout.shape())}, rows);
  // Neighbouring rows of a head, as far as they lie in one page.
  parallel_for(of.heads * each_, kGrainElems / of.width, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t head = begin / each_, i = begin % each_, position = (start + i) % of_.size;
      const int64_t count = std::min({end - begin, each_ - i, of_.size - position});
      const Layout& l = pages.layout;
      uint8_t* const to = static_cast<uint8_t*>(pages.data) + l.offset() +
                          page_of(sequence, (start + i) / of_.size) * l.stride(0) +
                          head * l.stride(1);
      const uint8_t* const from = made.bytes() + begin * row_bytes;
      if (of.by_element) {
        store_keys(to, of, position, count, from);
      } else {
        std::memcpy(to + position * row_bytes, from, static_cast<size_t>(count * row_bytes));
      }
      begin += count;
    }
  });
}

void CpuBackend::store_in_pages(const View& pages, const ConstView& rows, const ConstView& tables,
                                const ConstView& positions) {
  if (rows.layout.elems() == 0) return;
  const Shape& shape = pages.layout.shape();
  const std::optional<BlockPages> blocks = BlockPages::of(pages.dtype, shape);
  const PagePlaces places({.op = "store_in_pages",
                           .tables = tables,
                           .positions = positions,
                           .pages = shape[0],
                           .size = blocks ? BlockPages::kPositions : shape[2],
                           .limit = INT64_MAX,
                           .reads = false});
  for (int64_t i = 0; i < places.sequences(); ++i) {
    const Layout own = rows.layout.narrow(0, i * places.each(), places.each());
    const ConstView heads{rows.data, rows.dtype, own.transpose(0, 1).unsqueeze(0)};
    if (blocks) {
      places.store_blocks(*this, pages, *blocks, heads, i);
    } else {
      places.store(*this, pages, heads, i);
    }
  }
}

}  // namespace wick::cpu
