#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/math/orders.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// What a KV cache stores for one layer: heads · (key_size + value_size) elements of each position,
/// and recurrent states of each sequence, whose size doesn't depend on its length.
struct KvLayer {
  int64_t heads = 0;        ///< number of key/value heads; 0: the layer stores nothing
  int64_t key_size = 0;     ///< elements of a key head
  int64_t value_size = 0;   ///< elements of a value head; 0: the values are parts of the keys
  int64_t value_first = 0;  ///< the values' first element in a key, if value_size is 0
  std::vector<Shape> states = {};  ///< shapes of a sequence's recurrent states, f32
};

/// Sizes of a KV cache.
struct KvCacheOptions {
  std::vector<KvLayer> layers = {};
  int64_t context = 0;  ///< maximum length of a sequence
  DType dtype = DType::f16;
  Device device = {};
  int64_t sequences = 1;
  int64_t positions = 0;  ///< maximum total length of all sequences; 0: sequences · context
  std::vector<Device> devices = {};  ///< of each layer; empty: all are on `device`
};

/// Keys and values of sequences, in pages of 256 positions that each belong to one sequence. Memory
/// grows with the number of used pages. Functions that take a sequence throw if it doesn't exist.
///
/// A recurrent state holds all positions of a sequence, so such a sequence can only be cleared, not
/// shortened. A sequence starts from states of zeros.
///
/// Keys are stored transposed, [pages, heads, key_size, 256], because attention kernels vectorise
/// along positions. A page is one chunk of attention's reduction order.
///
/// With q8_0 and q4_0, keys and values are quantised to blocks of 32 elements of a head when they
/// are stored, as by `quantize`. Attention reads the dequantised values, rounded to f16. Recurrent
/// states stay f32.
class WICK_API KvCache {
 public:
  static constexpr int64_t kPage = math::kAttentionChunk;  ///< positions per page

  KvCache() = default;
  /// Errors: sizes are out of range; the dtype isn't one of dtypes::kCaches; a head's size isn't a
  /// multiple of the dtype's blocks; the cache would need more memory than a device has.
  explicit KvCache(const KvCacheOptions& options);

  int64_t sequences() const { return static_cast<int64_t>(sequences_.size()); }
  /// The number of positions stored for a sequence.
  int64_t length(int64_t sequence = 0) const { return of(sequence).length; }
  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }
  /// The maximum length of a sequence.
  int64_t context() const { return options_.context; }
  /// The number of positions that page tables have entries for; doubles as needed, up to the
  /// context.
  int64_t reach() const { return entries_ * kPage; }
  /// The memory that a full cache takes.
  size_t full_bytes() const;

  /// Reserves pages for `count` more positions of a sequence. Errors: the sequence would exceed its
  /// context; the sequences together would exceed their limit; out of memory.
  void reserve(int64_t count, int64_t sequence = 0);
  /// Adds `count` positions, which the caller has stored, to a sequence's length. Errors: `count`
  /// exceeds the reserved positions.
  void advance(int64_t count, int64_t sequence = 0);
  /// Shortens a sequence to `length` and frees the pages that become empty. Errors: the cache has
  /// recurrent states, and `length` is neither 0 nor all of the sequence.
  void truncate(int64_t length, int64_t sequence = 0);
  /// Whether a layer has recurrent states.
  bool has_states() const;

  /// The pages of all sequences: keys [pages, heads, key_size, 256], values [pages, heads, 256,
  /// value_size]; undefined if the layer stores none. With block dtypes they are tensors of u8 (see
  /// BlockPages). Errors: the layer doesn't exist; nothing has been reserved yet.
  Tensor keys(int64_t layer) const;
  Tensor values(int64_t layer) const;
  /// The recurrent states of all sequences, f32 [sequences, ..] each. Errors: those of keys().
  std::span<const Tensor> states(int64_t layer) const { return this->layer(layer).states; }
  /// The rows of sequences in states(): u32 [sequences] on a device.
  Tensor slots(std::span<const int64_t> sequences, Device device) const;
  /// The page numbers of a sequence, in order of position, including reserved pages.
  std::span<const uint32_t> pages(int64_t sequence = 0) const { return of(sequence).pages; }
  /// The page tables of sequences: u32 [sequences, n] on a device, where n is the power of two that
  /// holds their pages, at most reach() / 256: steps choose kernels by the keys that tables have
  /// room for. Entries after a sequence's last page are 0.
  Tensor tables(std::span<const int64_t> sequences, Device device) const;
  /// The page tables on the host, row by row, with reach() / 256 entries each.
  std::vector<uint32_t> table_rows(std::span<const int64_t> sequences) const;

  /// A counter that increases when the memory of keys() and values() moves or reach() grows.
  /// Captured graphs that use them are then invalid.
  int64_t moves() const { return moves_; }
  /// A counter that increases when pages are assigned or freed. Page tables made before are then
  /// outdated.
  int64_t changes() const { return changes_; }

 private:
  struct Sequence {
    int64_t length = 0;
    std::vector<uint32_t> pages;
    bool cleared = true;  // its states must be set to zero before the next step
  };
  struct Layer {
    Tensor keys;    // [pages, heads, key_size, 256], or BlockPages::keys
    Tensor values;  // [pages, heads, 256, value_size], or BlockPages::values
    std::vector<Tensor> states;
  };
  std::vector<uint32_t> table_rows(std::span<const int64_t> sequences, int64_t entries) const;
  const Sequence& of(int64_t sequence) const;
  Sequence& of(int64_t sequence);
  const Layer& layer(int64_t index) const;
  int64_t most_pages() const;
  Device device_of(size_t layer) const;
  double bytes_of_layer(size_t layer) const;
  void require_memory() const;
  void grow(int64_t pages);
  void clear_states(int64_t sequence);

  KvCacheOptions options_;
  std::vector<Sequence> sequences_;
  std::vector<Layer> layers_;
  std::vector<uint32_t> free_;  // free page numbers; the next one to assign is last
  int64_t pages_ = 0;           // number of allocated pages
  int64_t entries_ = 0;         // entries per page table
  int64_t moves_ = 0, changes_ = 0;
};

}  // namespace wick::nn
