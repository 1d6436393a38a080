#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/math/orders.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// Rows of a norm or softmax: `count` rows of n elements. Strides count elements: `row` from row to
/// row, `step` from element to element. `stream` asks for non-temporal stores, from kernels that
/// have them; rows then start at a cache line.
struct RowsIn {
  const void* data;
  int64_t row, step;
};
struct RowsOut {
  void* data;
  int64_t row, step;
  bool stream;
};

/// Rows of rope. cos and sin are f32 with `half` elements per row.
struct RopeRows {
  RowsIn x, cos, sin;
  RowsOut y;
  int64_t count, d, half;
};

/// Masks of attention: u8 masks hide the keys where they are 0, the others are added to scores.
enum class MaskKind : uint8_t { hides, f32, f16, bf16 };

/// One call of the attention kernel: some queries of some query heads that share one key head. Row
/// r of the task is query first_query + r / heads of head r % heads.
struct AttentionTask {
  // Inputs. Strides count elements.
  const void *q, *k, *v;
  void* out;
  int64_t q_head, q_query, q_step;
  int64_t k_key, k_step;
  int64_t v_key, v_step;  // v_key of blocks: bytes
  bool v_by_element;      // values of blocks lie as keys do
  int64_t out_head, out_query, out_step;
  int64_t first_query, queries, heads;
  int64_t keys, d, e;
  /// The pages of the sequence; null: keys are contiguous. Entry i is the page with keys from i ·
  /// page_keys on.
  const uint32_t* table;
  int64_t table_step, page_keys, k_page, v_page;  // k_page, v_page: strides from page to page, of
                                                  // blocks in bytes
  /// Query i sees keys [i + low, i + high) within [0, keys).
  int64_t low, high;
  float scale, soft_cap;
  /// The mask's element of the first head, query 0 and key 0, or null.
  const void* mask;
  int64_t mask_head, mask_query, mask_key;
  MaskKind mask_kind;
  const float* slopes;
  int64_t slopes_step, shift;  // slopes_step: from head to head; key i + shift has the position of
                               // query i
  const float* sinks;          // a score of each head without a key, or null
  int64_t sinks_step;          // from head to head
  int dtype;                   // of q and out: bf16, f16, f32
  /// Working memory of attention_scratch_floats() floats, aligned to 64 bytes.
  float* scratch;
};

using math::kAttentionChunk;
/// Rows that share one pass over a chunk of keys.
inline constexpr int64_t kAttentionRows = 6;

/// Sizes are rounded up to a multiple of so many floats, a multiple of every vector width.
inline constexpr int64_t kAttentionPad = 64;

[[gnu::always_inline]] inline constexpr int64_t attention_padded(int64_t n) {
  return (n + kAttentionPad - 1) / kAttentionPad * kAttentionPad;
}

/// The working memory of a task in floats: q, o, m and l of every row, a chunk of k and v as f32,
/// and the scores and sums of one pass.
constexpr int64_t attention_scratch_floats(int64_t rows, int64_t d, int64_t e) {
  const int64_t ep = attention_padded(e);
  return attention_padded(rows * d) + rows * ep + 2 * attention_padded(rows) +
         kAttentionChunk * (d + ep) + kAttentionRows * (kAttentionChunk + ep);
}

/// Tables are indexed by dtype; null if the op's row doesn't name the dtype.
struct FusedKernels {
  using RmsNorm = void (*)(const RowsIn& x, const RowsIn& weight, const RowsOut& y, int64_t count,
                           int64_t n, float eps);
  using Softmax = void (*)(const RowsIn& x, const RowsOut& y, int64_t count, int64_t n, bool log);
  using Rope = void (*)(const RopeRows& rows, bool interleaved);
  RmsNorm rms_norm[kRealDTypeCount];  // weight of x's dtype
  RmsNorm rms_norm_f32_weight[kRealDTypeCount];
  Softmax softmax[kRealDTypeCount];
  Rope rope[kRealDTypeCount];
};

struct LayerNormKernels {
  /// weight and bias: null, or n dense elements of the compute type.
  using LayerNorm = void (*)(const RowsIn& x, const void* weight, const void* bias,
                             const RowsOut& y, int64_t count, int64_t n, float eps);
  LayerNorm layer_norm[kRealDTypeCount];
};

/// Bytes of one row of the columns of a softmax_columns call, in the compute type.
inline constexpr int kSoftmaxColumnBytes = 256;
struct SoftmaxColumnsKernels {
  /// Softmax of `cols` neighbouring columns of n rows; x.step and y.step lead from row to row.
  /// scratch is aligned to 64 bytes and holds n · kSoftmaxColumnBytes.
  using SoftmaxColumns = void (*)(const RowsIn& x, const RowsOut& y, int64_t cols, int64_t n,
                                  bool log, void* scratch);
  SoftmaxColumns run[kRealDTypeCount];
};

/// True when a table has a kernel for every dtype of an op's row, and no other.
template <class Kernel>
constexpr bool complete(const Kernel (&table)[kRealDTypeCount], Op op) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    if ((table[d] != nullptr) != info(op).dtypes.contains(static_cast<DType>(d))) return false;
  }
  return true;
}

struct AttentionKernels {
  using Attend = void (*)(const AttentionTask& task);
  Attend attend[3];         // dtype of k and v: bf16, f16, f32
  Attend attend_blocks[2];  // pages of q8_0 and of q4_0 (base/block_pages.h)
};
constexpr bool complete(const AttentionKernels& table) {
  static_assert(info(Op::attention).dtypes == DTypeSet::of(DType::bf16, DType::f16, DType::f32));
  return table.attend[0] != nullptr && table.attend[1] != nullptr && table.attend[2] != nullptr &&
         table.attend_blocks[0] != nullptr && table.attend_blocks[1] != nullptr;
}

WICK_DECLARE_KERNELS(FusedKernels, fused_kernels)
WICK_DECLARE_KERNELS(LayerNormKernels, layer_norm_kernels)
WICK_DECLARE_KERNELS(SoftmaxColumnsKernels, softmax_columns_kernels)
WICK_DECLARE_KERNELS(AttentionKernels, attention_kernels)

}  // namespace wick::cpu
