#pragma once

#include <cstdint>

#include "wick/backend/cpu/fused/fused_kernels.h"

namespace wick::cpu {

/// A tensor of one batch element: strides from head to head, from query or key to the next, and
/// from element to element. Strides count elements.
template <class Data>
struct HeadRows {
  Data data;
  int64_t head, row, step;
};

/// What the softmax of a row needs besides its scores, and the sum that its gradient subtracts.
struct GradientSums {
  float largest, inverse, delta;
};

/// One call of a kernel of attention's gradients, for the query heads that share one key head. Row
/// r is query r / heads of head r % heads.
struct AttentionGradientTask {
  HeadRows<const void*> q, g, k, v;  // the key head's heads of q and g; k and v without heads
  HeadRows<void*> dq, dk, dv;        // data may be null
  int64_t heads, queries, keys, d, e;
  /// Query i sees keys [i + low, i + high) within [0, keys).
  int64_t low, high;
  float scale, soft_cap;
  /// The mask's element of the first head, query 0 and key 0, or null.
  const void* mask;
  int64_t mask_head, mask_query, mask_key;
  MaskKind mask_kind;
  const float* slopes;
  int64_t slopes_step, shift;  // key i + shift has the position of query i
  const float* sinks;          // of the key head's heads, or null
  float* d_sinks;              // of the first head's query 0, or null
  int64_t sinks_step, d_sinks_head, d_sinks_query;
  GradientSums* sums;    // of all rows of the key head
  int64_t first, count;  // the rows, or the keys, of the task
  /// Of `whole` and `store`: sums of dk and dv over the rows of a part, [part][keys] of
  /// gradient_padded(d) and gradient_padded(e) floats, and the number of parts.
  float *dk_sums, *dv_sums;
  int64_t parts;
  /// Working memory of attention_gradient_floats() floats, aligned to 64 bytes.
  float* scratch;
};

/// Keys of a packed chunk, and rows of a packed tile.
inline constexpr int64_t kGradientChunk = 128, kGradientRows = 64;
/// Keys of a task of `keys`.
inline constexpr int64_t kGradientKeys = 64;

/// Rows of matrices are padded to a multiple of 16 floats, the columns of a panel.
[[gnu::always_inline]] inline constexpr int64_t gradient_padded(int64_t n) {
  return (n + 15) / 16 * 16;
}

/// The working memory in floats of `rows` for `rows` rows that see `keys` keys.
constexpr int64_t gradient_rows_floats(int64_t rows, int64_t keys, int64_t d, int64_t e) {
  const int64_t dp = gradient_padded(d), ep = gradient_padded(e);
  return rows * (2 * dp + ep + 3 * gradient_padded(keys + kGradientChunk)) +
         kGradientChunk * (dp + ep) + 16 * (dp > ep ? dp : ep);
}
/// The working memory in floats of `keys`.
constexpr int64_t gradient_keys_floats(int64_t d, int64_t e) {
  const int64_t dp = gradient_padded(d), ep = gradient_padded(e);
  return kGradientKeys * 2 * (dp + ep) + kGradientRows * (dp + ep + 3 * kGradientKeys);
}

/// Rows that `whole` processes together.
inline constexpr int64_t kGradientBlock = 48;
/// The working memory in floats of `whole`, which packs all keys.
constexpr int64_t gradient_whole_floats(int64_t keys, int64_t d, int64_t e) {
  const int64_t dp = gradient_padded(d), ep = gradient_padded(e), line = gradient_padded(keys);
  return line * (2 * dp + ep) + kGradientBlock * (2 * dp + ep + 3 * line) +
         16 * (dp > ep ? dp : ep);
}

/// Kernels by dtype of all operands and results: bf16, f16, f32. `whole` and `store` multiply each
/// pair of tiles once; they need memory for sums of all keys. `rows` and `keys` need little memory.
struct AttentionGradientKernels {
  using Run = void (*)(const AttentionGradientTask& task);
  Run whole[3];  // dq of some rows, unless its data is null, and their sums of dk and dv
  Run store[3];  // dk and dv of some keys from the sums of all parts
  Run rows[3];   // the sums of rows, and dq unless its data is null
  Run keys[3];   // dk and dv from the sums of the rows
};
constexpr bool complete(const AttentionGradientKernels& table) {
  for (int i = 0; i < 3; ++i) {
    if (table.whole[i] == nullptr || table.store[i] == nullptr) return false;
    if (table.rows[i] == nullptr || table.keys[i] == nullptr) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(AttentionGradientKernels, attention_gradient_kernels)

}  // namespace wick::cpu
