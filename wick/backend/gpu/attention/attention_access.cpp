#include "wick/backend/gpu/attention/attention_access.h"

#include <algorithm>

#include "wick/backend/gpu/layout/access.h"

namespace wick::gpu {
namespace {

/// Number of contiguous keys: those of a page, or all.
int64_t keys_of_piece(const AttentionCall& c) {
  return c.pages.tables == nullptr ? c.keys : c.pages.keys;
}
int64_t pages_of(const AttentionCall& c) { return c.pages.tables == nullptr ? 1 : c.pages.count; }

/// All heads of keys, or of values. The caller adds the dims of a head.
Access keys_of_heads(const AttentionCall& c, DType cache) {
  return Access(c.k, cache)
      .dim(c.batch, c.k_batch)
      .dim(c.heads / c.group, c.k_head)
      .dim(pages_of(c), c.pages.k_page);
}
Access values_of_heads(const AttentionCall& c, DType cache) {
  return Access(c.v, cache)
      .dim(c.batch, c.v_batch)
      .dim(c.heads / c.group, c.v_head)
      .dim(pages_of(c), c.pages.v_page);
}
/// Runs of neighbouring keys, for one element of each.
Access along_keys(const AttentionCall& c, DType cache) {
  return keys_of_heads(c, cache).run(keys_of_piece(c), c.k_key).dim(c.d, c.k_step);
}
/// Runs of one key's elements.
Access along_key_elements(const AttentionCall& c, DType cache) {
  return keys_of_heads(c, cache).run(c.d, c.k_step).dim(keys_of_piece(c), c.k_key);
}
/// Runs of one value's elements.
Access along_value_elements(const AttentionCall& c, DType cache) {
  return values_of_heads(c, cache).run(c.e, c.v_step).dim(keys_of_piece(c), c.v_key);
}

bool has_vectors(const AttentionCall& c, DType cache, int64_t n) {
  return c.e % n == 0 && along_keys(c, cache).vectors_of(n) &&
         along_value_elements(c, cache).vectors_of(n);
}

}  // namespace

bool takes_decode_layout(const AttentionCall& c, DType cache) {
  const int64_t keys = std::min<int64_t>(c.keys, kAttentionChunk);
  return has_vectors(c, cache, 2) &&
         Access(c.k, cache).run(keys, c.k_key).dim(c.d, c.k_step).has_u32_distances(1) &&
         Access(c.v, cache).run(c.e, c.v_step).dim(keys, c.v_key).has_u32_distances(1);
}

bool takes_staged_layout(const AttentionCall& c, DType cache) {
  return has_vectors(c, cache, kMostVectorBytes / info(cache).block_bytes);
}

bool takes_rows_layout(const AttentionCall& c, DType cache) {
  const int64_t n = kMostVectorBytes / info(cache).block_bytes;
  return c.d % n == 0 && c.e % n == 0 && along_key_elements(c, cache).vectors_of(n) &&
         along_value_elements(c, cache).vectors_of(n);
}

bool takes_flash_layout(const AttentionCall& c, DType cache) {
  constexpr int64_t kVector = 8;
  // The kernel selects the layout of keys by k_key.
  const Access keys = c.k_key == 1 ? along_keys(c, cache) : along_key_elements(c, cache);
  return c.d % kVector == 0 && c.e % kVector == 0 && keys.vectors_of(kVector) &&
         along_value_elements(c, cache).vectors_of(kVector);
}

}  // namespace wick::gpu
