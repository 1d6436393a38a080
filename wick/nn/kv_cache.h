#pragma once

#include <cstdint>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// What a KV cache holds: its size is layers · heads · (key_size + value_size) · context elements.
struct KvCacheOptions {
  int64_t layers = 0;
  int64_t heads = 0;     ///< key/value heads
  int64_t key_size = 0;  ///< elements of a key head
  int64_t value_size = 0;
  int64_t context = 0;  ///< most positions it may hold
  DType dtype = DType::f16;
  Device device = {};
};

/// Keys and values of the positions seen so far, one pair of tensors a layer. Memory grows with the
/// positions held, up to `context`.
///
/// Keys are stored transposed, [1, heads, key_size, capacity]: attention runs along positions, and
/// takes the transposed view at full speed.
class WICK_API KvCache {
 public:
  KvCache() = default;
  /// Errors: sizes out of range, a dtype other than f32, f16 and bf16, more memory than the device
  /// has.
  explicit KvCache(const KvCacheOptions& options);

  int64_t length() const { return length_; }
  /// Positions there is room for without moving what is held.
  int64_t capacity() const { return capacity_; }
  int64_t context() const { return options_.context; }
  /// Bytes of a cache that holds `context` positions.
  size_t full_bytes() const;

  /// Makes room for `count` more positions. Errors: more than `context` in all; out of memory.
  void reserve(int64_t count);
  /// Stores keys and values [1, heads, t, size] of the positions from length() + `skip` on for one
  /// layer. Errors: no such layer, more positions than reserved.
  void append(int64_t layer, const Tensor& keys, const Tensor& values, int64_t skip = 0);
  /// Counts `count` appended positions of every layer as seen. Errors: more than reserved.
  void advance(int64_t count);
  /// Forgets all positions from `length` on.
  void truncate(int64_t length);

  /// The first `count` positions: [1, heads, count, size]. Errors: no such layer, more than
  /// reserved.
  Tensor keys(int64_t layer, int64_t count) const;
  Tensor values(int64_t layer, int64_t count) const;

  /// All of a layer's room, for cached_attention: [heads, capacity, size]. Errors: no such layer.
  Tensor key_room(int64_t layer) const;
  Tensor value_room(int64_t layer) const;

 private:
  struct Layer {
    Tensor keys;    // [1, heads, key_size, padded capacity]
    Tensor values;  // [1, heads, capacity, value_size]
  };
  void grow(int64_t capacity);
  const Layer& layer(int64_t index) const;

  KvCacheOptions options_;
  std::vector<Layer> layers_;
  int64_t length_ = 0, capacity_ = 0;
};

}  // namespace wick::nn
