#include "wick/backend/cpu/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "wick/backend/cpu/search/search_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// The weights of a row, scaled to a largest weight of 1 in each block, so that sums of squares
/// neither overflow nor vanish. Scaling a block's weights doesn't change its best quants.
std::vector<float> usable_weights(const float* w, int64_t k, int64_t block) {
  std::vector<float> out(static_cast<size_t>(k), 1.0f);
  if (w == nullptr) return out;
  for (int64_t first = 0; first < k; first += block) {
    float* const to = out.data() + first;
    float largest = 0.0f;
    for (int64_t i = 0; i < block; ++i) {
      const float v = w[first + i];
      to[i] = std::isfinite(v) && v > 0.0f ? v : 0.0f;
      largest = std::max(largest, to[i]);
    }
    if (largest == 0.0f) {
      std::fill(to, to + block, 1.0f);
    } else {
      for (int64_t i = 0; i < block; ++i) to[i] /= largest;
    }
  }
  return out;
}

}  // namespace

SearchBlocks search_blocks(Isa isa, DType dtype) {
  const SearchBlocks found = WICK_SELECT_KERNELS(isa, search_kernels, no_dots).of(dtype);
  if (found != nullptr) return found;
  return WICK_SELECT_KERNELS(isa, lattice_kernels, no_dots).of(dtype);
}

void search_rows(DType dtype, const float* x, int64_t rows, int64_t k, const float* w,
                 std::byte* out) {
  if (!dtypes::kSearched.contains(dtype)) {
    throw Error(ErrorKind::type, "quantize", "no search for this dtype", std::string(name(dtype)),
                "use " + names(dtypes::kSearched));
  }
  const int64_t block = info(dtype).block_elems;
  if (k % block != 0) {
    throw Error("quantize", "row isn't a whole number of blocks",
                fmt::format("{} values, {}", k, name(dtype)),
                fmt::format("multiples of {}", block));
  }
  if (rows <= 0 || k <= 0) return;
  const SearchBlocks search = search_blocks(selected_isa(), dtype);
  const std::vector<float> weights = usable_weights(w, k, block);
  const int64_t row_blocks = k / block, bytes = info(dtype).block_bytes;
  parallel_for(rows * row_blocks, 1024 / block, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % row_blocks, count = std::min(end - begin, row_blocks - first);
      search(x + begin * block, weights.data() + first * block, count,
             reinterpret_cast<uint8_t*>(out) + begin * bytes);
      begin += count;
    }
  });
}

}  // namespace wick::cpu
