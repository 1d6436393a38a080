#include "wick/nn/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "wick/base/block_pages.h"
#include "wick/base/error.h"
#include "wick/tensor/call.h"
#include "wick/tensor/ops.h"

namespace wick::nn {
namespace {

constexpr int64_t kFirstPages = 2;

static_assert(BlockPages::kPositions == KvCache::kPage);

/// Errors: a head can't be cut into blocks of the cache's dtype.
void check_blocks(const KvLayer& layer, DType dtype) {
  const auto check = [&](const char* what, int64_t elements) {
    if (layer.heads == 0 || elements % BlockPages::kValues == 0) return;
    throw Error(ErrorKind::not_implemented, "kv cache",
                fmt::format("{} needs heads of a multiple of 32 elements", name(dtype)),
                fmt::format("this model's {} {}", what, elements), "use f16, bf16 or f32");
  };
  check("keys have", layer.key_size);
  check("values have", layer.value_size);
  check("values begin in its keys at element", layer.value_first);
}

int64_t pages_for(int64_t positions) { return (positions + KvCache::kPage - 1) / KvCache::kPage; }

}  // namespace

KvCache::KvCache(const KvCacheOptions& options) : options_(options) {
  KvCacheOptions& o = options_;
  constexpr int64_t kMost = int64_t{1} << 20;
  const auto below_most = [](int64_t n, int64_t least) { return n >= least && n < kMost; };
  const bool sizes_fit = !o.layers.empty() && static_cast<int64_t>(o.layers.size()) < kMost &&
                         o.context > 0 && o.context < (int64_t{1} << 40) &&
                         below_most(o.sequences, 1) && o.positions >= 0;
  if (!sizes_fit || !dtypes::kCaches.contains(o.dtype)) {
    throw Error("kv cache", "options out of range",
                fmt::format("{} layers, context {}, {}, {} sequences", o.layers.size(), o.context,
                            name(o.dtype), o.sequences));
  }
  for (const KvLayer& layer : o.layers) {
    if (below_most(layer.heads, 0) && below_most(layer.key_size, layer.heads == 0 ? 0 : 1) &&
        below_most(layer.value_size, 0)) {
      if (is_block(o.dtype)) check_blocks(layer, o.dtype);
      continue;
    }
    throw Error(
        "kv cache", "options out of range",
        fmt::format("{} heads, sizes {} and {}", layer.heads, layer.key_size, layer.value_size));
  }
  if (o.positions == 0) o.positions = o.sequences * o.context;
  if (!o.devices.empty() && o.devices.size() != o.layers.size()) {
    throw Error("kv cache", "options out of range",
                fmt::format("{} devices of {} layers", o.devices.size(), o.layers.size()));
  }
  require_memory();
  layers_.resize(o.layers.size());
  sequences_.resize(static_cast<size_t>(o.sequences));
}

Device KvCache::device_of(size_t layer) const {
  return options_.devices.empty() ? options_.device : options_.devices[layer];
}

/// The memory of a layer of a full cache.
double KvCache::bytes_of_layer(size_t layer) const {
  const KvLayer& of = options_.layers[layer];
  const double each = static_cast<double>(of.heads * (of.key_size + of.value_size)) *
                      bytes_per_element(options_.dtype);
  double states = 0;
  for (const Shape& state : of.states) {
    states += static_cast<double>(bytes_of(DType::f32, state.elems()));
  }
  return each * static_cast<double>(options_.positions) +
         states * static_cast<double>(options_.sequences);
}

/// Errors: a device has less memory left than its layers of a full cache take.
void KvCache::require_memory() const {
  std::vector<std::pair<Device, double>> needed;
  for (size_t i = 0; i < options_.layers.size(); ++i) {
    const Device device = device_of(i);
    const auto at = std::find_if(needed.begin(), needed.end(),
                                 [&](const auto& of) { return of.first == device; });
    if (at == needed.end()) {
      needed.emplace_back(device, bytes_of_layer(i));
    } else {
      at->second += bytes_of_layer(i);
    }
  }
  for (const auto& [device, bytes] : needed) {
    const MemoryInfo memory = backend(device).memory_info();
    const double free =
        static_cast<double>(memory.limit_bytes) - static_cast<double>(memory.in_use_bytes);
    if (bytes <= free) continue;
    throw Error(
        ErrorKind::memory, "kv cache", "not enough memory",
        fmt::format("context {} needs {:.1f} GiB on {}, {:.1f} GiB are left", options_.context,
                    bytes / 0x1p30, device.str(), std::max(free, 0.0) / 0x1p30),
        device.kind == DeviceKind::cpu
            ? "ask for a shorter context"
            : "ask for a shorter context, or for fewer layers on the GPU");
  }
}

bool KvCache::has_states() const {
  return std::any_of(options_.layers.begin(), options_.layers.end(), [](const KvLayer& layer) {
    return std::any_of(layer.states.begin(), layer.states.end(),
                       [](const Shape& state) { return state.elems() > 0; });
  });
}

size_t KvCache::full_bytes() const {
  double all = 0;
  for (size_t i = 0; i < options_.layers.size(); ++i) all += bytes_of_layer(i);
  return static_cast<size_t>(all);
}

const KvCache::Sequence& KvCache::of(int64_t sequence) const {
  if (sequence < 0 || sequence >= sequences()) {
    throw Error(ErrorKind::index, "kv cache", "no such sequence", fmt::format("{}", sequence),
                fmt::format("there are {}", sequences()));
  }
  return sequences_[static_cast<size_t>(sequence)];
}

KvCache::Sequence& KvCache::of(int64_t sequence) {
  return const_cast<Sequence&>(std::as_const(*this).of(sequence));
}

/// The maximum number of pages. The last page of each sequence may be partly filled.
int64_t KvCache::most_pages() const {
  const int64_t all = sequences() * pages_for(options_.context);
  return std::min(all, pages_for(options_.positions) + sequences() - 1);
}

void KvCache::reserve(int64_t count, int64_t sequence) {
  Sequence& s = of(sequence);
  if (count < 0 || count > options_.context - s.length) {
    throw Error(ErrorKind::runtime, "kv cache", "context is full",
                fmt::format("{} positions held, {} more", s.length, count),
                fmt::format("the context is {}", options_.context));
  }
  const int64_t wanted = pages_for(s.length + count), held = static_cast<int64_t>(s.pages.size());
  if (wanted <= held) {
    if (count > 0 && s.cleared) clear_states(sequence);
    return;
  }
  const int64_t missing = wanted - held - static_cast<int64_t>(free_.size());
  if (missing > 0) {
    if (pages_ + missing > most_pages()) {
      throw Error(ErrorKind::runtime, "kv cache", "all pages are in use",
                  fmt::format("sequence {} needs {} more", sequence, missing),
                  fmt::format("there is room for {} positions", options_.positions));
    }
    grow(std::min(most_pages(), std::max({pages_ + missing, 2 * pages_, kFirstPages})));
  }
  for (int64_t i = held; i < wanted; ++i) {
    s.pages.push_back(free_.back());
    free_.pop_back();
  }
  ++changes_;
  if (wanted > entries_) {
    entries_ = std::min(pages_for(options_.context), std::max({wanted, 2 * entries_, kFirstPages}));
    ++moves_;
  }
  if (s.cleared) clear_states(sequence);
}

/// Sets a sequence's states to zero.
void KvCache::clear_states(int64_t sequence) {
  for (const Layer& layer : layers_) {
    for (const Tensor& state : layer.states) {
      if (state.elems() == 0) continue;
      apply_into({.op = Op::fill, .attributes = Numbers{0.0, 0.0}}, state.narrow(0, sequence, 1));
    }
  }
  of(sequence).cleared = false;
}

void KvCache::grow(int64_t pages) {
  const KvCacheOptions& o = options_;
  const auto grown = [&](const Tensor& old, const Shape& shape, Device device) {
    if (shape.elems() == 0) return Tensor();
    Tensor larger = Tensor::empty(shape, is_block(o.dtype) ? DType::u8 : o.dtype, device);
    if (pages_ > 0) slice_set(larger, old, 0, 0);
    return larger;
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    const KvLayer& of = o.layers[i];
    const Device device = device_of(i);
    Layer& layer = layers_[i];
    if (is_block(o.dtype)) {
      layer.keys =
          grown(layer.keys, BlockPages::keys(o.dtype, pages, of.heads, of.key_size), device);
      layer.values =
          grown(layer.values, BlockPages::values(o.dtype, pages, of.heads, of.value_size), device);
    } else {
      layer.keys = grown(layer.keys, {pages, of.heads, of.key_size, kPage}, device);
      layer.values = grown(layer.values, {pages, of.heads, kPage, of.value_size}, device);
    }
    if (!layer.states.empty()) continue;
    for (const Shape& state : of.states) {
      const Shape of_all = state.with_inserted(0, sequences());
      layer.states.push_back(Tensor::empty(of_all, DType::f32, device));
    }
  }
  std::vector<uint32_t> more;
  for (int64_t page = pages; page > pages_; --page) more.push_back(static_cast<uint32_t>(page - 1));
  free_.insert(free_.begin(), more.begin(), more.end());
  pages_ = pages;
  ++moves_;
}

void KvCache::advance(int64_t count, int64_t sequence) {
  Sequence& s = of(sequence);
  const int64_t room = std::min(static_cast<int64_t>(s.pages.size()) * kPage, options_.context);
  if (count < 0 || count > room - s.length) {
    throw Error(ErrorKind::runtime, "kv cache", "more positions than reserved",
                fmt::format("{} held, {} more", s.length, count), fmt::format("room for {}", room));
  }
  s.length += count;
}

void KvCache::truncate(int64_t length, int64_t sequence) {
  Sequence& s = of(sequence);
  length = std::clamp<int64_t>(length, 0, s.length);
  if (has_states() && length > 0 && length < s.length) {
    throw Error(ErrorKind::runtime, "kv cache", "a recurrent state can't be shortened",
                fmt::format("{} positions held, {} to keep", s.length, length),
                "truncate to 0 and run the sequence's tokens again");
  }
  s.length = length;
  if (length == 0) s.cleared = true;
  const auto kept = static_cast<size_t>(pages_for(s.length));
  if (s.pages.size() <= kept) return;
  free_.insert(free_.end(), s.pages.rbegin(), s.pages.rend() - static_cast<ptrdiff_t>(kept));
  s.pages.resize(kept);
  ++changes_;
}

const KvCache::Layer& KvCache::layer(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(layers_.size())) {
    throw Error(ErrorKind::index, "kv cache", "no such layer", fmt::format("{}", index),
                fmt::format("there are {}", layers_.size()));
  }
  if (pages_ == 0) throw Error(ErrorKind::runtime, "kv cache", "nothing was reserved");
  return layers_[static_cast<size_t>(index)];
}

Tensor KvCache::keys(int64_t index) const { return layer(index).keys; }

Tensor KvCache::values(int64_t index) const { return layer(index).values; }

std::vector<uint32_t> KvCache::table_rows(std::span<const int64_t> sequences) const {
  return table_rows(sequences, entries_);
}

std::vector<uint32_t> KvCache::table_rows(std::span<const int64_t> sequences,
                                          int64_t entries) const {
  std::vector<uint32_t> rows;
  rows.reserve(sequences.size() * static_cast<size_t>(entries));
  for (int64_t sequence : sequences) {
    const Sequence& s = of(sequence);
    rows.insert(rows.end(), s.pages.begin(), s.pages.end());
    rows.resize(rows.size() + static_cast<size_t>(entries) - s.pages.size(), 0);
  }
  return rows;
}

Tensor KvCache::slots(std::span<const int64_t> sequences, Device device) const {
  std::vector<uint32_t> rows;
  for (const int64_t sequence : sequences) {
    of(sequence);  // checks that it exists
    rows.push_back(static_cast<uint32_t>(sequence));
  }
  return Tensor::from(rows, {static_cast<int64_t>(rows.size())}, device);
}

Tensor KvCache::tables(std::span<const int64_t> sequences, Device device) const {
  size_t most = 1;
  for (const int64_t sequence : sequences) most = std::max(most, of(sequence).pages.size());
  const int64_t entries = std::min(entries_, static_cast<int64_t>(std::bit_ceil(most)));
  return Tensor::from(table_rows(sequences, entries),
                      {static_cast<int64_t>(sequences.size()), entries}, device);
}

}  // namespace wick::nn
