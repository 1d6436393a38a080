#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/math/orders.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// What a KV cache holds: a position takes layers · heads · (key_size + value_size) elements.
struct KvCacheOptions {
  int64_t layers = 0;
  int64_t heads = 0;     ///< key/value heads
  int64_t key_size = 0;  ///< elements of a key head
  int64_t value_size = 0;
  int64_t context = 0;  ///< most positions of a sequence
  DType dtype = DType::f16;
  Device device = {};
  int64_t sequences = 1;
  int64_t positions = 0;  ///< most of all sequences together; 0: sequences · context
};

/// Keys and values of the positions that sequences have seen so far, in pages of 256 positions that
/// belong to one sequence each. Memory grows with the pages in use. Functions that take a sequence
/// throw if there is no such.
///
/// A layer's keys are stored transposed, [pages, heads, key_size, 256]: attention runs along
/// positions, and a page is a chunk of its order.
class WICK_API KvCache {
 public:
  static constexpr int64_t kPage = math::kAttentionChunk;  ///< positions of a page

  KvCache() = default;
  /// Errors: sizes out of range, a dtype other than f32, f16 and bf16, more memory than the device
  /// has.
  explicit KvCache(const KvCacheOptions& options);

  int64_t sequences() const { return static_cast<int64_t>(sequences_.size()); }
  /// Positions that a sequence has seen.
  int64_t length(int64_t sequence = 0) const { return of(sequence).length; }
  /// Most positions of a sequence.
  int64_t context() const { return options_.context; }
  /// Positions that tables of pages reach to; grows by doubling up to the context.
  int64_t reach() const { return entries_ * kPage; }
  /// Bytes of a cache that is full.
  size_t full_bytes() const;

  /// Makes room for `count` more positions of a sequence. Errors: more than its context; more than
  /// all sequences may have together; out of memory.
  void reserve(int64_t count, int64_t sequence = 0);
  /// Counts `count` positions of a sequence as seen. Errors: more than reserved.
  void advance(int64_t count, int64_t sequence = 0);
  /// Forgets a sequence's positions from `length` on; pages that then hold none are free for
  /// others.
  void truncate(int64_t length, int64_t sequence = 0);

  /// The pages of all sequences: keys [pages, heads, key_size, 256], values [pages, heads, 256,
  /// value_size]. Errors: no such layer, nothing reserved yet.
  Tensor keys(int64_t layer) const;
  Tensor values(int64_t layer) const;
  /// Which pages hold a sequence's positions, those reserved included, in order.
  std::span<const uint32_t> pages(int64_t sequence = 0) const { return of(sequence).pages; }
  /// Tables of pages of some sequences: u32 [sequences, reach() / 256] on the device, 0 behind a
  /// sequence's last page.
  Tensor tables(std::span<const int64_t> sequences) const;
  /// The same on the host, row by row.
  std::vector<uint32_t> table_rows(std::span<const int64_t> sequences) const;

  /// Goes up when the memory of keys() and values() moves or reach() grows: recordings that hold
  /// them are void.
  int64_t moves() const { return moves_; }
  /// Goes up when pages change hands: tables are out of date.
  int64_t changes() const { return changes_; }

 private:
  struct Sequence {
    int64_t length = 0;
    std::vector<uint32_t> pages;
  };
  struct Layer {
    Tensor keys;    // [pages, heads, key_size, 256]
    Tensor values;  // [pages, heads, 256, value_size]
  };
  const Sequence& of(int64_t sequence) const;
  Sequence& of(int64_t sequence);
  const Layer& layer(int64_t index) const;
  int64_t most_pages() const;
  void grow(int64_t pages);

  KvCacheOptions options_;
  std::vector<Sequence> sequences_;
  std::vector<Layer> layers_;
  std::vector<uint32_t> free_;  // pages, the next one last
  int64_t pages_ = 0;           // there are
  int64_t entries_ = 0;         // of a table
  int64_t moves_ = 0, changes_ = 0;
};

}  // namespace wick::nn
