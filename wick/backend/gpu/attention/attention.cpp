// Attention: selects the kernel of a call and its grid.

#include "wick/backend/gpu/attention/attention.h"

#include <algorithm>
#include <optional>

#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/attention/attention_call.h"
#include "wick/backend/gpu/attention/cache_blocks.h"
#include "wick/backend/gpu/attention/decode_paged.h"
#include "wick/backend/gpu/attention/decode_rows.h"
#include "wick/backend/gpu/attention/decode_warps.h"
#include "wick/backend/gpu/attention/flash.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/layout/access.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

const KernelFamily<AttentionRowsArgs, OneOf<1, 4>, DType> kAttentionRows("attention",
                                                                         "attention_{}_{}");
const KernelFamily<BiasedRowsArgs, OneOf<1, 4>, DType> kBiasedRows("attention_bias",
                                                                   "attention_bias_{}_{}");
const KernelFamily<BiasedCombineArgs> kBiasedCombine("attention_bias", "attention_bias_combine");
const KernelFamily<FillCacheArgs, DType> kFillCache("attention", "fill_cache_{}");
const KernelFamily<DecodeArgs, DType> kDecode("decode", "decode_{}");
const KernelFamily<DecodeArgs, DType> kDecodeStaged("decode", "decode_staged_{}");
const KernelFamily<DecodeArgs, DType> kDecodeStream("decode", "decode_stream_{}");
const KernelFamily<DecodeArgs, DType> kDecodeCluster("decode", "decode_cluster_{}");
const KernelFamily<DecodeArgs, OneOf<64, 128>, DType> kDecodeClusterHead("decode",
                                                                         "decode_cluster_{}_{}");
const KernelFamily<DecodeArgs, OneOf<64, 128>, DType> kDecodeStagedHead("decode",
                                                                        "decode_staged_{}_{}");
const KernelFamily<DecodeArgs, OneOf<64, 128>, DType> kDecodeRing("decode_ring",
                                                                  "decode_ring_{}_{}");
const KernelFamily<SinkDecodeArgs, DType> kSinkDecode("decode_sinks", "decode_sinks_{}");
const KernelFamily<SinkDecodeArgs, DType> kSinkDecodeStaged("decode_sinks",
                                                            "decode_staged_sinks_{}");
const KernelFamily<SinkDecodeArgs, DType> kSinkDecodeStream("decode_sinks",
                                                            "decode_stream_sinks_{}");
const KernelFamily<SinkDecodeArgs, DType> kSinkDecodeCluster("decode_sinks",
                                                             "decode_cluster_sinks_{}");
const KernelFamily<DecodeArgs, DType> kDecodeBlocks("decode_blocks", "decode_{}");
const KernelFamily<SinkDecodeArgs, DType> kSinkDecodeBlocks("decode_blocks", "decode_sinks_{}");

/// Launches the kernels that take any layout. bias: null, or the terms of the scores.
void launch_rows(Gpu& gpu, const AttentionCall& c, DType cache, const ScoreBias* bias = nullptr) {
  const int64_t rows = int64_t{c.queries} * c.group;
  const int64_t per_warp = rows <= 8 ? 1 : 4;
  const int64_t blocks = divide_up(rows, 8 * per_warp), slabs = divide_up(c.e, kRowsWidth);
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  // If there are too few thread blocks for the device, several of them share a row's chunks.
  const int64_t thread_blocks = blocks * slabs * heads, wanted = 2 * gpu.info.multiprocessors;
  const int64_t splits =
      Partials::fit(c) ? std::clamp<int64_t>(wanted / thread_blocks, 1, Partials::chunks_of(c)) : 1;
  const Partials partials(gpu, c, splits > 1);
  const Grid grid{.blocks = {count32(thread_blocks * splits), 1, 1}, .threads = kRowsThreads};
  const AttentionRowsArgs args{c, partials.get(), static_cast<uint32_t>(blocks),
                               static_cast<uint32_t>(slabs), static_cast<uint32_t>(splits)};
  if (bias == nullptr) {
    kAttentionRows(per_warp, cache).launch(gpu, grid, args);
    if (splits > 1) combine(gpu, c, partials);
  } else {
    kBiasedRows(per_warp, cache).launch(gpu, grid, {args, *bias});
    if (splits > 1) {
      kBiasedCombine().launch(gpu, combine_grid(c), {{c, args.partials}, *bias});
    }
  }
}

// ---- Few queries (decoding) ----

constexpr int64_t kClusterBlocks = 2;  // thread blocks with a cluster that a multiprocessor holds
constexpr int64_t kStreamBlocks = 3;   // streaming thread blocks that a multiprocessor holds
constexpr int64_t kStreamBytes = int64_t{kStreamPieces} * kStreamPieceBytes;

/// Bytes of shared memory of a thread block of decode.gpu, without its tile.
int64_t decode_shared(const AttentionCall& c, int64_t rows, int64_t fresh) {
  const int64_t d = divide_up(c.d, 4) * 4, e = divide_up(c.e, 4) * 4;
  return 4 * (rows * (d + kAttentionChunk) + fresh * (d + e) + (2 * rows + 4) / 4 * 4 + 4);
}
/// Bytes of a tile of decode.gpu; `shares`: of one block of a cluster.
int64_t tile_bytes(const AttentionCall& c, DType cache, bool shares) {
  return bytes_of(cache,
                  shares ? int64_t{c.d} * kClusterPitch + int64_t{kAttentionChunk} * kClusterWidth
                         : kAttentionChunk * (int64_t{c.d} + c.e));
}

/// Whether some kernels are compiled for the heads' size.
bool takes_head(const AttentionCall& c) { return c.d == c.e && (c.d == 64 || c.d == 128); }

/// How decode.gpu or decode_ring.gpu takes a call. `rows` is 0 if they can't.
struct DecodeShape {
  int64_t rows = 0, tiles = 1, cluster = 1, slices = 1, fresh = 0, shared = 0;
  bool staged = false, streams = false, ring = false;

  DecodeShape(const Gpu& gpu, const AttentionCall& c, DType dtype, bool cached, bool sunk) {
    const int64_t sets = int64_t{c.batch} * c.queries * (c.heads / c.group);
    const int64_t chunks = Partials::chunks_of(c), multiprocessors = gpu.info.multiprocessors;
    const int64_t most_shared = gpu.info.shared_bytes;
    const bool stream_any = attention_staging == AttentionStaging::stream;
    const bool stages = stages_attention(gpu) && !is_block(dtype) && takes_staged_layout(c, dtype);
    // The query heads of a key head share loads if there is enough work for all multiprocessors.
    const int64_t few_tiles = divide_up(c.group, kDecodeRows);
    if (stages && !stream_any && gpu.has(Feature::cluster) && c.e % kClusterWidth == 0 &&
        8 * kClusterWidth % c.e == 0) {
      // If there are more thread blocks than run at once, larger tiles are faster.
      const int64_t thread_blocks = sets * few_tiles * chunks,
                    room = kClusterBlocks * multiprocessors;
      slices = c.e / kClusterWidth;
      cluster = thread_blocks * 8 <= multiprocessors || slices == 8 ? 8 : 4;
      if (thread_blocks * cluster > room) cluster = slices = 1;
    }
    const bool shares = cluster > 1 || stream_any || sets * c.group * chunks > multiprocessors;
    tiles = shares ? few_tiles : c.group;
    rows = divide_up(c.group, tiles);
    const int64_t some_fresh = is_block(dtype) ? 0 : cached ? c.queries + 1 : 1;
    // Measured on an H200: if each thread block has a multiprocessor to itself, it is faster with a
    // whole chunk in shared memory.
    ring = stages && cluster == 1 && rows > 1 && !sunk && gpu.has(Feature::wgmma) &&
           (dtype == DType::f16 || dtype == DType::bf16) && takes_head(c) &&
           (stream_any || sets * tiles * chunks > multiprocessors);
    if (ring) {
      fresh = some_fresh;
      shared = decode_shared(c, rows, fresh) + kRingBarrierBytes +
               kRingBuffers * int64_t{ring_piece_bytes(c.d)};
      return;
    }
    // Elements of a piece of keys.
    const int64_t elements = kStreamPieceBytes / bytes_of(dtype, kAttentionChunk);
    // Measured on an H200: as long as there are few thread blocks, they are faster if they have a
    // whole chunk in shared memory.
    const bool many = stream_any || 2 * sets * tiles * chunks > 3 * multiprocessors;
    streams = stages && many && cluster == 1 && rows > 1 && c.d % elements == 0 &&
              (c.e == 32 || c.e == 64 || c.e == 128);
    if (streams) {
      fresh = some_fresh;
      shared = decode_shared(c, rows, fresh) + kStreamBytes;
      if (shared <= most_shared) return;
      streams = false, fresh = 0;
    }
    shared = decode_shared(c, rows, 0) + tile_bytes(c, dtype, cluster > 1);
    staged = stages && shared <= most_shared;
    if (staged) return;
    cluster = slices = 1;
    fresh = some_fresh;
    shared = decode_shared(c, rows, fresh);
    if (shared > most_shared) rows = 0;
  }
};

/// Launches decode.gpu or decode_ring.gpu for few queries of a cache whose neighbouring keys are
/// contiguous, or decode_blocks.gpu if `dtype` is that of a cache's blocks (see block_view);
/// returns false if it doesn't take the call. The result goes to `blocks` if blocks.q isn't null.
/// sinks: of the heads; their pointer may be null.
bool launch_decode(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype,
                   const Blocks& blocks, const HeadSinks& sinks) {
  const bool sunk = sinks.of != nullptr;
  const bool of_blocks = is_block(dtype);
  if (!sunk && !of_blocks && launch_decode_paged(gpu, c, cache, dtype, blocks)) return true;
  const int64_t sets = int64_t{c.batch} * c.queries * (c.heads / c.group);
  if (c.queries > kMostOrderedQueries || !holds_chunks(c.pages, kAttentionChunk) ||
      (!of_blocks && !takes_decode_layout(c, dtype))) {
    return false;
  }
  const DecodeShape shape(gpu, c, dtype, cache.qkv != nullptr, sunk);
  const int64_t chunks = Partials::chunks_of(c), thread_blocks = sets * shape.tiles * shape.cluster;
  if (shape.rows == 0 || (chunks > 1 && (thread_blocks > Gpu::kZeros || !Partials::fit(c)))) {
    return false;
  }
  const int64_t most = shape.streams ? kStreamBlocks : 4;
  const int64_t at_once = shape.cluster > 1
                              ? kClusterBlocks
                              : std::clamp<int64_t>(gpu.info.shared_bytes / shape.shared, 1, most);
  // Streaming thread blocks are small. Twice as many as run at once balance the load better.
  const bool small = shape.streams || shape.ring;
  const int64_t wanted = gpu.info.multiprocessors * at_once * (small ? 2 : 1);
  // If a few thread blocks would take a second chunk, it is better that each takes one: the last
  // ones, which begin last, may have few keys.
  const bool one_each = 2 * thread_blocks * chunks <= 3 * int64_t{gpu.info.multiprocessors};
  const int64_t splits = one_each ? chunks : std::clamp<int64_t>(wanted / thread_blocks, 1, chunks);
  const Partials partials(gpu, c, chunks > 1);
  const DecodePlan plan{static_cast<uint32_t>(shape.rows),
                        static_cast<uint32_t>(shape.tiles),
                        static_cast<uint32_t>(splits),
                        static_cast<uint32_t>(shape.fresh),
                        static_cast<uint32_t>(shape.cluster),
                        static_cast<uint32_t>(shape.slices),
                        gpu.zeros(),
                        blocks};
  const bool direct = shape.cluster == 1 && !small && !shape.staged;
  const unsigned threads = direct && gpu.device.kind != DeviceKind::cuda
                               ? decode_threads_on_amd(plan.rows)
                               : kDecodeThreads;
  const Grid grid{.blocks = {count32(thread_blocks * splits), 1, 1},
                  .threads = threads,
                  .shared_bytes = static_cast<unsigned>(shape.shared),
                  .pdl = true,
                  .cluster = static_cast<unsigned>(shape.cluster)};
  const DecodeArgs args{c, cache, plan, partials.get()};
  if (sunk) {
    const auto& kernels = of_blocks           ? kSinkDecodeBlocks
                          : shape.cluster > 1 ? kSinkDecodeCluster
                          : shape.streams     ? kSinkDecodeStream
                          : shape.staged      ? kSinkDecodeStaged
                                              : kSinkDecode;
    kernels(dtype).launch(gpu, grid, {args, sinks});
  } else if (shape.ring) {
    kDecodeRing(int64_t{c.d}, dtype).launch(gpu, grid, args);
  } else if (shape.staged && takes_head(c)) {
    const auto& kernels = shape.cluster > 1 ? kDecodeClusterHead : kDecodeStagedHead;
    kernels(int64_t{c.d}, dtype).launch(gpu, grid, args);
  } else {
    const auto& kernels = of_blocks           ? kDecodeBlocks
                          : shape.cluster > 1 ? kDecodeCluster
                          : shape.streams     ? kDecodeStream
                          : shape.staged      ? kDecodeStaged
                                              : kDecode;
    kernels(dtype).launch(gpu, grid, args);
  }
  return true;
}

/// Writes projected keys and values to the cache, and the rotated queries to `q` unless it is null.
void fill_cache(Gpu& gpu, const CacheCall& c, DType dtype, float* q) {
  const int64_t heads = 2 * int64_t{c.key_heads} + (q == nullptr ? 0 : c.heads);
  const unsigned thread_blocks = count32(heads * divide_up(c.t, kFillTokens));
  kFillCache(dtype).launch(gpu, Grid{.blocks = {thread_blocks, 1, 1}, .threads = kFillThreads},
                           {c, q});
}

CacheCall make_cache_call(const AttentionCall& call, const ConstView& qkv,
                          const CachedAttention& where) {
  const Layout &keys = where.keys.layout, &values = where.values.layout;
  CacheCall fill{};
  fill.qkv = static_cast<const float*>(at_offset(qkv));
  fill.cos = static_cast<const float*>(at_offset(where.cos));
  fill.sin = static_cast<const float*>(at_offset(where.sin));
  fill.qkv_row = qkv.layout.stride(0), fill.qkv_step = qkv.layout.stride(1);
  fill.cos_row = where.cos.layout.stride(0), fill.cos_step = where.cos.layout.stride(1);
  fill.sin_row = where.sin.layout.stride(0), fill.sin_step = where.sin.layout.stride(1);
  fill.keys = const_cast<void*>(call.k), fill.values = const_cast<void*>(call.v);
  fill.key_head = keys.stride(1), fill.key_position = keys.stride(2);
  fill.key_step = keys.stride(3);
  fill.value_head = values.stride(1), fill.value_position = values.stride(2);
  fill.value_step = values.stride(3);
  fill.positions = call.positions;
  fill.pages = call.pages;
  fill.t = call.batch * call.queries, fill.each = call.queries;
  fill.heads = call.heads, fill.key_heads = call.heads / call.group;
  fill.d = call.d, fill.e = call.e, fill.half = count32(where.cos.layout.shape()[1]);
  fill.limit = call.keys;
  return fill;
}

/// Launches the fastest kernel that takes a call. Kernels of few queries take no masks and slopes.
void launch_any(Gpu& gpu, const AttentionCall& call, DType cache, const AttentionBias& added) {
  if (is_biased(added)) {
    const ScoreBias bias = make_bias(added);
    const bool only_sinks = bias.mask == nullptr && bias.slopes == nullptr;
    if (only_sinks && launch_decode(gpu, call, {}, cache, {}, sinks_of(bias))) return;
    const FlashPlan flash(gpu, call, cache, false, true);
    if (flash.takes) {
      launch_flash(gpu, flash, call, {}, cache, &bias);
    } else {
      launch_rows(gpu, call, cache, &bias);
    }
    return;
  }
  if (launch_decode(gpu, call, {}, cache, {}, {})) return;
  if (launch_decode_warps(gpu, call, cache)) return;
  if (launch_decode_rows(gpu, call, cache)) return;
  const FlashPlan flash(gpu, call, cache, false, false);
  if (flash.takes) {
    launch_flash(gpu, flash, call, {}, cache);
  } else {
    launch_rows(gpu, call, cache);
  }
}

}  // namespace

bool ordered_attention() { return environment_choice("WICK_REPRODUCIBLE") == "1"; }

AttentionStaging attention_staging = AttentionStaging::where_copies_run_alone;

bool stages_attention(const Gpu& gpu) {
  if (gpu.device.kind == DeviceKind::cuda) return attention_staging != AttentionStaging::never;
  return attention_staging == AttentionStaging::always ||
         attention_staging == AttentionStaging::stream;
}

void GpuBackend::attention(const View& out, const ConstView& q, const ConstView& k,
                           const ConstView& v, const AttentionParams& params,
                           const AttentionBias& bias) {
  if (out.layout.elems() == 0) return;
  launch_any(gpu_, make_call(out, q, k, v, params), k.dtype, bias);
}

void GpuBackend::attention_of_pages(const View& out, const ConstView& q, const ConstView& k,
                                    const ConstView& v, const PagedSequences& sequences,
                                    const AttentionParams& params, const AttentionBias& bias) {
  if (out.layout.elems() == 0) return;
  const auto call_of = [&](const ConstView& keys, const ConstView& values) {
    AttentionCall call = make_call(out, q, keys, values, params);
    set_pages(gpu_, "attention_of_pages", k, call, keys, values, sequences.tables,
              sequences.lengths, sequences.lengths, int64_t{1} << 30);
    return call;
  };
  const std::optional<BlockPages> of_keys = BlockPages::of(k.dtype, k.layout.shape()),
                                  of_values = BlockPages::of(v.dtype, v.layout.shape());
  if (!of_keys || !of_values) {
    launch_any(gpu_, call_of(k, v), k.dtype, bias);
    return;
  }
  const bool only_sinks = bias.mask.data == nullptr && bias.slopes.data == nullptr;
  if (only_sinks && !of_values->by_element) {
    const AttentionCall call = call_of(block_view(k, *of_keys), block_view(v, *of_values));
    if (launch_decode(gpu_, call, {}, of_keys->dtype, {}, sinks_of(make_bias(bias)))) return;
  }
  const ExpandedPages keys(gpu_, k, *of_keys, sequences);
  if (const std::optional<ConstView> part = keys.part(k, v, *of_values)) {
    launch_any(gpu_, call_of(keys.view(), *part), DType::f16, bias);
    return;
  }
  const ExpandedPages values(gpu_, v, *of_values, sequences);
  launch_any(gpu_, call_of(keys.view(), values.view()), DType::f16, bias);
}

namespace {

/// The operands of cached_attention [t, h · e], except the queries, and those of fill_cache.
struct CachedCall {
  AttentionCall call;
  CacheCall fill;
  ScoreBias bias;  // its sinks
  DType dtype;

  CachedCall(Gpu& gpu, const View& out, const ConstView& qkv, const CachedAttention& where) {
    const Layout &keys = where.keys.layout, &values = where.values.layout, &ol = out.layout;
    const int64_t t = qkv.layout.shape()[0], d = keys.shape()[3], e = values.shape()[3];
    const int64_t h = ol.shape()[1] / e;
    const int64_t b = where.tables.data == nullptr ? 1 : where.tables.layout.shape()[0], m = t / b;
    const int64_t row = ol.stride(0), step = ol.stride(1);
    const View heads{out.data, out.dtype,
                     Layout({b, h, m, e}, {m * row, e * step, row, step}, ol.offset())};
    // If the queries are rotated first, they lie as [h, t, d].
    const ConstView queries{nullptr, DType::f32, Layout({b, h, m, d}, {m * d, t * d, d, 1}, 0)};
    call = make_call(heads, queries, where.keys, where.values, where.params);
    call.positions = static_cast<const uint32_t*>(at_offset(where.positions));
    call.causal = 1;
    set_pages(gpu, "cached_attention", where.keys, call, where.keys, where.values, where.tables, {},
              where.positions, where.cos.layout.shape()[0]);
    fill = make_cache_call(call, qkv, where);
    bias = make_bias({{}, {}, where.sinks});
    dtype = where.keys.dtype;
  }
};

}  // namespace

void GpuBackend::cached_attention(const View& out, const ConstView& qkv,
                                  const CachedAttention& where) {
  if (out.layout.elems() == 0) return;
  CachedCall at(gpu_, out, qkv, where);
  if (launch_decode(gpu_, at.call, at.fill, at.dtype, {}, sinks_of(at.bias))) return;
  const ScoreBias* const bias = at.bias.sinks != nullptr ? &at.bias : nullptr;
  const FlashPlan flash(gpu_, at.call, at.dtype, true, bias != nullptr);
  if (flash.takes) {
    fill_cache(gpu_, at.fill, at.dtype, nullptr);
    launch_flash(gpu_, flash, at.call, at.fill, at.dtype, bias);
    return;
  }
  const AttentionCall& c = at.call;
  const Scratch rotated(gpu_, size_t{c.batch} * c.heads * c.queries * c.d * 4);
  at.call.q = rotated.data();
  fill_cache(gpu_, at.fill, at.dtype, rotated.data<float>());
  launch_rows(gpu_, at.call, at.dtype, bias);
}

namespace {

/// The operands of fill_cache for rows f32 [t, g, width] that go into pages unchanged: they are
/// passed as values of heads without keys. The heads of a row are contiguous.
CacheCall make_store_call(Gpu& gpu, const View& pages, const ConstView& rows,
                          const ConstView& tables, const ConstView& positions) {
  const Layout &pl = pages.layout, &rl = rows.layout;
  AttentionCall call{};
  set_pages(gpu, "store_in_pages", pages, call, pages, pages, tables, {}, positions,
            int64_t{1} << 30);
  CacheCall fill{};
  fill.qkv = static_cast<const float*>(at_offset(rows));
  fill.qkv_row = rl.stride(0), fill.qkv_step = rl.stride(2);
  fill.keys = fill.values = const_cast<void*>(at_offset(pages));
  fill.value_head = pl.stride(1), fill.value_position = pl.stride(2);
  fill.value_step = pl.stride(3);
  fill.positions = static_cast<const uint32_t*>(at_offset(positions));
  fill.pages = call.pages;
  fill.t = count32(rl.shape()[0]), fill.each = count32(rl.shape()[0] / tables.layout.shape()[0]);
  fill.key_heads = count32(rl.shape()[1]), fill.e = count32(rl.shape()[2]);
  fill.limit = call.keys;
  return fill;
}

}  // namespace

void GpuBackend::store_in_pages(const View& pages, const ConstView& rows, const ConstView& tables,
                                const ConstView& positions) {
  const Layout& rl = rows.layout;
  if (rl.elems() == 0) return;
  const bool side_by_side = rl.shape()[1] == 1 || rl.stride(1) == rl.shape()[2] * rl.stride(2);
  const std::optional<BlockPages> blocks = BlockPages::of(pages.dtype, pages.layout.shape());
  const bool as_they_are = rows.dtype == DType::f32 && (side_by_side || blocks.has_value());
  const Scratch floats(gpu_, as_they_are ? 0 : static_cast<size_t>(rl.elems()) * 4);
  const View dense{floats.data(), DType::f32, Layout::contiguous(rl.shape())};
  if (!as_they_are) cast(dense, rows);
  const int64_t t = rl.shape()[0];
  const bool in_a_row = t == 1 || positions.layout.stride(0) == 1;
  const Scratch words(gpu_, in_a_row ? 0 : static_cast<size_t>(t) * 4);
  const View list{words.data(), DType::u32, Layout::contiguous({t})};
  if (!in_a_row) copy(list, positions);
  const ConstView from = as_they_are ? rows : ConstView(dense);
  const ConstView places = in_a_row ? positions : ConstView(list);
  if (blocks) {
    store_blocks(gpu_, pages, *blocks, from, tables, places);
  } else {
    fill_cache(gpu_, make_store_call(gpu_, pages, from, tables, places), pages.dtype, nullptr);
  }
}

bool attention_to_blocks(Gpu& gpu, const ConstView& qkv, const CachedAttention& where, int64_t k,
                         const RowBlocks& to) {
  // A thread block has too little of a row for several blocks to share a scale.
  if (to.shared != 1) return false;
  if (qkv.layout.elems() == 0 || where.values.layout.shape()[3] % 32 != 0) return false;
  const View nowhere{nullptr, DType::f32, Layout::contiguous({qkv.layout.shape()[0], k})};
  const CachedCall at(gpu, nowhere, qkv, where);
  return launch_decode(gpu, at.call, at.fill, at.dtype,
                       {to.q, to.scales, static_cast<uint32_t>(to.padded), 1, 0}, sinks_of(at.bias));
}

}  // namespace wick::gpu
