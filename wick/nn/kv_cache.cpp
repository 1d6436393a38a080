#include "wick/nn/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::nn {
namespace {

constexpr int64_t kFirstCapacity = 512;
/// Elements from a row of transposed keys to the next. Rows a power of two apart would fall into
/// the same cache sets. AMD's begin with a cache line: a wave of 32 reads one of 16-bit keys.
int64_t pitch(int64_t capacity, const KvCacheOptions& options) {
  if (options.device.kind != DeviceKind::hip) return capacity + 32;
  const int64_t line = 128 / bytes_of(options.dtype, 1);
  return (capacity + line - 1) / line * line + line;
}

}  // namespace

KvCache::KvCache(const KvCacheOptions& options) : options_(options) {
  const KvCacheOptions& o = options_;
  constexpr int64_t kMost = int64_t{1} << 20;
  const bool sizes_fit = o.layers > 0 && o.layers < kMost && o.heads > 0 && o.heads < kMost &&
                         o.key_size > 0 && o.key_size < kMost && o.value_size > 0 &&
                         o.value_size < kMost && o.context > 0 && o.context < (int64_t{1} << 40);
  if (!sizes_fit || !dtypes::kActivations.contains(o.dtype)) {
    throw Error("kv cache", "options out of range",
                fmt::format("{} layers, {} heads, sizes {} and {}, context {}, {}", o.layers,
                            o.heads, o.key_size, o.value_size, o.context, name(o.dtype)));
  }
  const MemoryInfo memory = backend(o.device).memory_info();
  const double needed = static_cast<double>(o.layers) * static_cast<double>(o.heads) *
                        static_cast<double>(o.key_size + o.value_size) *
                        static_cast<double>(o.context) * static_cast<double>(bytes_of(o.dtype, 1));
  const double free =
      static_cast<double>(memory.limit_bytes) - static_cast<double>(memory.in_use_bytes);
  if (needed > free) {
    throw Error(ErrorKind::memory, "kv cache", "not enough memory",
                fmt::format("context {} needs {:.1f} GiB on {}, {:.1f} GiB are left", o.context,
                            needed / 0x1p30, o.device.str(), std::max(free, 0.0) / 0x1p30),
                "ask for a shorter context");
  }
  layers_.resize(static_cast<size_t>(o.layers));
}

size_t KvCache::full_bytes() const {
  const KvCacheOptions& o = options_;
  return static_cast<size_t>(
      bytes_of(o.dtype, o.layers * o.heads * (o.key_size + o.value_size) * o.context));
}

void KvCache::reserve(int64_t count) {
  if (count < 0 || count > options_.context - length_) {
    throw Error(ErrorKind::runtime, "kv cache", "context is full",
                fmt::format("{} positions held, {} more", length_, count),
                fmt::format("the context is {}", options_.context));
  }
  const int64_t end = length_ + count;
  if (end <= capacity_) return;
  grow(std::min(options_.context, std::max({end, capacity_ * 2, kFirstCapacity})));
}

void KvCache::grow(int64_t capacity) {
  const KvCacheOptions& o = options_;
  for (Layer& layer : layers_) {
    Tensor keys = Tensor::empty({1, o.heads, o.key_size, pitch(capacity, o)}, o.dtype, o.device);
    Tensor values = Tensor::empty({1, o.heads, capacity, o.value_size}, o.dtype, o.device);
    if (length_ > 0) {
      slice_set(keys, layer.keys.narrow(3, 0, length_), 3, 0);
      slice_set(values, layer.values.narrow(2, 0, length_), 2, 0);
    }
    layer = {std::move(keys), std::move(values)};
  }
  capacity_ = capacity;
}

const KvCache::Layer& KvCache::layer(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(layers_.size())) {
    throw Error(ErrorKind::index, "kv cache", "no such layer", fmt::format("{}", index),
                fmt::format("there are {}", layers_.size()));
  }
  return layers_[static_cast<size_t>(index)];
}

void KvCache::append(int64_t index, const Tensor& keys, const Tensor& values, int64_t skip) {
  layer(index);
  Layer& l = layers_[static_cast<size_t>(index)];
  // The padding of the keys isn't room.
  if (skip < 0 || skip > capacity_ - length_ || keys.size(-2) > capacity_ - length_ - skip) {
    throw Error(ErrorKind::runtime, "kv cache", "more positions than reserved", keys.str(),
                fmt::format("{} held, room for {}", length_ + skip, capacity_));
  }
  slice_set(l.keys, keys.transpose(2, 3), 3, length_ + skip);
  slice_set(l.values, values, 2, length_ + skip);
}

void KvCache::advance(int64_t count) {
  if (count < 0 || count > capacity_ - length_) {
    throw Error(ErrorKind::runtime, "kv cache", "more positions than reserved",
                fmt::format("{} held, {} more", length_, count),
                fmt::format("room for {}", capacity_));
  }
  length_ += count;
}

void KvCache::truncate(int64_t length) { length_ = std::clamp<int64_t>(length, 0, length_); }

Tensor KvCache::keys(int64_t index, int64_t count) const {
  const Layer& l = layer(index);
  if (count > capacity_) {
    throw Error(ErrorKind::runtime, "kv cache", "more positions than reserved",
                fmt::format("{}", count), fmt::format("room for {}", capacity_));
  }
  return l.keys.narrow(3, 0, count).transpose(2, 3);
}

Tensor KvCache::values(int64_t index, int64_t count) const {
  return layer(index).values.narrow(2, 0, count);
}

Tensor KvCache::key_room(int64_t index) const {
  return layer(index).keys.narrow(3, 0, capacity_).transpose(2, 3).squeeze(0);
}

Tensor KvCache::value_room(int64_t index) const { return layer(index).values.squeeze(0); }

}  // namespace wick::nn
