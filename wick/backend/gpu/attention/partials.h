#pragma once

// Steps that the launches of attention kernels share: counts of 32 bits, dtypes, chunks of pages,
// and partial results: their memory and their combination.

#include <algorithm>
#include <string>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/base/error.h"

namespace wick::gpu {

inline uint32_t attention_dtype(DType dtype) {
  return dtype == DType::f32 ? kAttentionF32 : dtype == DType::f16 ? kAttentionF16 : kAttentionBf16;
}

/// Errors: the count is 2^30 or more.
inline uint32_t count32(int64_t count) {
  if (count >= int64_t{1} << 30) {
    throw Error("attention", "too large for a GPU", std::to_string(count), "need < 2^30");
  }
  return static_cast<uint32_t>(count);
}

/// Whether a chunk of `keys` keys never crosses a page.
inline bool holds_chunks(const KeyPages& pages, uint32_t keys) {
  return pages.tables == nullptr || pages.keys % keys == 0;
}

/// Memory for the partial results of chunks.
class Partials {
 public:
  /// Allocates nothing unless `wanted`.
  Partials(Gpu& gpu, const AttentionCall& c, bool wanted)
      : scratch_(gpu, wanted ? bytes_of_partials(c) : 0) {
    chunks_ = chunks_of(c);
    sums_ = sums_of(c);
    wanted_ = wanted;
  }
  static int64_t chunks_of(const AttentionCall& c) {
    return std::max<int64_t>(1, divide_up(c.keys, kAttentionChunk));
  }
  static int64_t rows_of(const AttentionCall& c) { return int64_t{c.batch} * c.heads * c.queries; }
  static bool fit(const AttentionCall& c) { return bytes_of_partials(c) <= kMostPartialBytes; }
  AttentionPartials get() const {
    float* const memory = wanted_ ? scratch_.data<float>() : nullptr;
    return {memory, wanted_ ? memory + sums_ : nullptr, static_cast<uint32_t>(chunks_)};
  }

 private:
  static constexpr size_t kMostPartialBytes = size_t{256} << 20;
  /// Floats in front of the outputs, which kernels access in vectors of 16 bytes.
  static int64_t sums_of(const AttentionCall& c) {
    return divide_up(2 * rows_of(c) * chunks_of(c), 4) * 4;
  }
  static size_t bytes_of_partials(const AttentionCall& c) {
    return static_cast<size_t>((sums_of(c) + rows_of(c) * chunks_of(c) * c.e) * 4);
  }
  Scratch scratch_;
  int64_t chunks_, sums_;
  bool wanted_;
};

/// The grid of a kernel that combines partial results: a thread block for each row.
inline Grid combine_grid(const AttentionCall& c, bool pdl = false) {
  return {.blocks = {count32(Partials::rows_of(c)), 1, 1}, .threads = kCombineThreads, .pdl = pdl};
}

/// Launches attention_combine, which combines partial results in the order of the chunks.
void combine(Gpu& gpu, const AttentionCall& c, const Partials& partials);

}  // namespace wick::gpu
