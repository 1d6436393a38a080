#include "wick/backend/gpu/attention/decode_paged.h"

#include <algorithm>
#include <initializer_list>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/kernels/attention/decode_paged_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<PagedArgs, OneOf<64, 128>> kDecodePaged("decode_paged", "decode_paged_{}");

/// Whether all strides fit u32.
bool fits_u32(std::initializer_list<int64_t> strides) {
  return std::all_of(strides.begin(), strides.end(),
                     [](int64_t s) { return s >= 0 && s < int64_t{1} << 32; });
}

/// Whether the kernels support the call; see decode_paged.h.
bool takes(const Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype,
           const Blocks& blocks) {
  const bool to_blocks = blocks.q != nullptr;
  return gpu.has(Feature::cluster) &&
         attention_staging == AttentionStaging::where_copies_run_alone && dtype == DType::f16 &&
         cache.qkv != nullptr && c.queries == 1 && c.window == 0 && c.soft_cap <= 0 &&
         c.pages.tables != nullptr && c.pages.keys == kAttentionChunk && c.pages.table_step == 1 &&
         c.d == c.e && (c.d == 64 || c.d == 128) && c.group % kPagedHeads == 0 &&
         (to_blocks ? blocks.shared == 1 : c.dtype == kAttentionF32) &&
         takes_staged_layout(c, dtype) && takes_decode_layout(c, dtype) && cache.qkv_step == 1 &&
         cache.cos_step == 1 && cache.sin_step == 1 && cache.qkv_row % 2 == 0 &&
         reinterpret_cast<uintptr_t>(cache.qkv) % 8 == 0 &&
         fits_u32({cache.qkv_row, cache.cos_row, cache.sin_row, c.pages.table_row, c.k_head,
                   c.k_step, c.v_head, c.v_key});
}

/// How thread blocks share the work. The plan counts one thread block per multiprocessor.
struct PagedPlan {
  bool pays;  ///< whether the thread blocks fill nearly all multiprocessors in every wave
  uint32_t log_splits;
  int64_t shared;  ///< bytes of shared memory of a thread block

  PagedPlan(const Gpu& gpu, const AttentionCall& c) {
    const int64_t sets = int64_t{c.batch} * c.heads / kPagedHeads,
                  multiprocessors = gpu.info.multiprocessors;
    const int64_t chunks = divide_up(c.keys, kAttentionChunk);
    log_splits = 2 * sets <= multiprocessors && chunks <= int64_t{kMostSharedChunks} ? 1 : 0;
    // Measured on an H100: a thread block needs about 10 us for a chunk. In a small grid, all
    // thread blocks of decode_cluster or decode_stream together need no longer. A last wave of
    // thread blocks that is mostly empty costs as much as a full one.
    const int64_t blocks = sets << log_splits, rounds = divide_up(blocks, multiprocessors);
    pays = chunks > 1 && 8 * blocks >= 7 * rounds * multiprocessors;
    const int64_t kept = log_splits == 0 ? 0 : divide_up(chunks, int64_t{1} << log_splits);
    shared = c.d == 64 ? bytes<64>(kept) : bytes<128>(kept);
  }

 private:
  template <uint32_t kSize>
  static int64_t bytes(int64_t kept) {
    using Places = PagedPlaces<kSize>;
    return int64_t{Places::kKept} + kept * int64_t{Places::kKeptBytes};
  }
};

}  // namespace

bool launch_decode_paged(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype,
                         const Blocks& blocks) {
  if (!takes(gpu, c, cache, dtype, blocks)) return false;
  const PagedPlan plan(gpu, c);
  constexpr uint32_t kMostSequences = 65535;  // limit of the grid's y axis
  if (!plan.pays || plan.shared > gpu.info.shared_bytes || c.batch > kMostSequences) return false;
  const auto word = [](int64_t x) { return static_cast<uint32_t>(x); };
  PagedArgs call{};
  call.qkv = cache.qkv, call.cos = cache.cos, call.sin = cache.sin;
  call.positions = c.positions, call.tables = c.pages.tables;
  call.k = static_cast<uint16_t*>(cache.keys), call.v = static_cast<uint16_t*>(cache.values);
  call.k_page = c.pages.k_page, call.v_page = c.pages.v_page;
  call.qkv_row = word(cache.qkv_row), call.cos_row = word(cache.cos_row);
  call.sin_row = word(cache.sin_row), call.table_row = word(c.pages.table_row);
  call.k_head = word(c.k_head), call.k_step = word(c.k_step);
  call.v_head = word(c.v_head), call.v_key = word(c.v_key);
  call.heads = c.heads, call.key_heads = c.heads / c.group, call.tiles = c.group / kPagedHeads;
  call.half = cache.half, call.limit = c.keys, call.pages = c.pages.count, call.sequences = c.batch;
  call.log_splits = plan.log_splits;
  call.scale = c.scale;
  call.out = static_cast<float*>(c.out);
  call.out_row = c.out_batch, call.out_head = c.out_head, call.out_step = c.out_step;
  call.blocks = blocks;
  call.faults = c.pages.faults, call.note = c.pages.note, call.length_note = c.pages.length_note;
  const unsigned partials = 1u << plan.log_splits;
  kDecodePaged(c.d).launch(gpu,
                           Grid{.blocks = {c.heads / kPagedHeads * partials, c.batch, 1},
                                .threads = kDecodeThreads,
                                .shared_bytes = static_cast<unsigned>(plan.shared),
                                .pdl = true,
                                .cluster = partials},
                           call);
  return true;
}

}  // namespace wick::gpu
