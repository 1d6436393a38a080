#include "wick/backend/cpu/fused/pages.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "wick/base/error.h"

namespace wick::cpu {
namespace {

int64_t word_at(const ConstView& words, int64_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const uint32_t*>(words.data) + words.layout.offset() + offset,
              sizeof word);
  return int64_t{word};
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

/// Where the blocks of rows [g, each, width] go in a page: byte `byte` of block n of head h at
/// position p.
uint8_t* block_byte(const View& pages, const BlockPages& of, int64_t page, int64_t head,
                    int64_t position, int64_t n, int64_t byte) {
  constexpr int64_t kScale = 2;  // bytes of the scale, in front of the quants
  const Layout& l = pages.layout;
  int64_t at = l.offset() + page * l.stride(0) + head * l.stride(1);
  if (!of.by_element) {
    at += position * of.step() + n * of.block_bytes() + byte;
  } else if (byte < kScale) {
    at += n * of.step() + kScale * position + byte;
  } else {
    at += n * of.step() + byte * BlockPages::kPositions + position;
  }
  return static_cast<uint8_t*>(pages.data) + at;
}

void PagePlaces::store_blocks(CpuBackend& backend, const View& pages, const BlockPages& of,
                              const ConstView& rows, int64_t sequence) const {
  const int64_t start = first(sequence), bytes = of.block_bytes(),
                blocks = of.width / BlockPages::kValues;
  std::vector<uint8_t> made(static_cast<size_t>(of.heads * each_ * blocks * bytes));
  backend.quantize({made.data(), of.dtype, Layout::contiguous(rows.layout.shape())}, rows);
  for (int64_t head = 0; head < of.heads; ++head) {
    for (int64_t i = 0; i < each_; ++i) {
      const int64_t at = start + i, page = page_of(sequence, at / of_.size), p = at % of_.size;
      const uint8_t* from = made.data() + (head * each_ + i) * blocks * bytes;
      if (!of.by_element) {
        std::memcpy(block_byte(pages, of, page, head, p, 0, 0), from,
                    static_cast<size_t>(blocks * bytes));
        continue;
      }
      for (int64_t n = 0; n < blocks; ++n, from += bytes) {
        for (int64_t b = 0; b < bytes; ++b) *block_byte(pages, of, page, head, p, n, b) = from[b];
      }
    }
  }
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
