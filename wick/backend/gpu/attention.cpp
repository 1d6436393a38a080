// Attention: which kernel takes a call, and how it is spread over the device.

#include "wick/backend/gpu/attention.h"

#include <algorithm>
#include <cstdlib>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention_call.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

constexpr int64_t kRowsWidth = 128;  // elements of v that a group of the rows' kernel takes
constexpr size_t kMostParts = size_t{256} << 20;  // bytes of parts that chunks may take

std::string_view suffix(DType dtype) {
  return dtype == DType::f32 ? "f32" : dtype == DType::f16 ? "f16" : "bf16";
}

uint32_t attention_dtype(DType dtype) {
  return dtype == DType::f32 ? kAttentionF32 : dtype == DType::f16 ? kAttentionF16 : kAttentionBf16;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const void* at_offset(const ConstView& v) {
  return static_cast<const char*>(v.data) + bytes_of(v.dtype, v.layout.offset());
}

uint32_t count32(int64_t count) {
  if (count >= int64_t{1} << 30) {
    throw Error("attention", "too large for a GPU", std::to_string(count), "need < 2^30");
  }
  return static_cast<uint32_t>(count);
}

AttentionCall make_call(const View& out, const ConstView& q, const ConstView& k, const ConstView& v,
                        const AttentionParams& params) {
  const Layout &ql = q.layout, &kl = k.layout, &vl = v.layout, &ol = out.layout;
  AttentionCall c{};
  c.q = at_offset(q), c.k = at_offset(k), c.v = at_offset(v);
  c.out = const_cast<void*>(at_offset(out));
  c.q_batch = ql.stride(0), c.q_head = ql.stride(1), c.q_query = ql.stride(2);
  c.q_step = ql.stride(3);
  c.k_batch = kl.stride(0), c.k_head = kl.stride(1), c.k_key = kl.stride(2);
  c.k_step = kl.stride(3);
  c.v_batch = vl.stride(0), c.v_head = vl.stride(1), c.v_key = vl.stride(2);
  c.v_step = vl.stride(3);
  c.out_batch = ol.stride(0), c.out_head = ol.stride(1), c.out_query = ol.stride(2);
  c.out_step = ol.stride(3);
  c.batch = count32(ql.shape()[0]), c.heads = count32(ql.shape()[1]);
  c.queries = count32(ql.shape()[2]), c.d = count32(ql.shape()[3]);
  c.group = kl.shape()[1] == 0 ? 1 : c.heads / count32(kl.shape()[1]);
  c.keys = count32(kl.shape()[2]), c.e = count32(vl.shape()[3]);
  c.causal = params.causal ? 1 : 0;
  // As large as any distance between a query and a key.
  c.window = static_cast<uint32_t>(std::min<int64_t>(params.window, int64_t{1} << 30));
  c.scale = params.scale, c.soft_cap = params.soft_cap;
  c.dtype = attention_dtype(q.dtype);
  return c;
}

/// Memory for the parts of chunks that are joined later.
class Parts {
 public:
  /// None where they would take too much.
  Parts(Gpu& gpu, const AttentionCall& c, bool wanted)
      : scratch_(gpu, wanted ? bytes_of_parts(c) : 0) {
    chunks_ = chunks_of(c);
    rows_ = rows_of(c);
    wanted_ = wanted;
  }
  static int64_t chunks_of(const AttentionCall& c) {
    return std::max<int64_t>(1, ceil_div(c.keys, kAttentionChunk));
  }
  static int64_t rows_of(const AttentionCall& c) { return int64_t{c.batch} * c.heads * c.queries; }
  static bool fit(const AttentionCall& c) { return bytes_of_parts(c) <= kMostParts; }
  AttentionParts get() const {
    float* const memory = wanted_ ? scratch_.data<float>() : nullptr;
    return {memory, wanted_ ? memory + 2 * rows_ * chunks_ : nullptr,
            static_cast<uint32_t>(chunks_)};
  }

 private:
  static size_t bytes_of_parts(const AttentionCall& c) {
    return static_cast<size_t>(rows_of(c) * chunks_of(c) * (c.e + 2) * 4);
  }
  Scratch scratch_;
  int64_t chunks_, rows_;
  bool wanted_;
};

/// The kernel for any layout.
void launch_rows(Gpu& gpu, const AttentionCall& c, DType cache) {
  const int64_t rows = int64_t{c.queries} * c.group;
  const int64_t per_team = rows <= 8 ? 1 : 4;
  const int64_t blocks = ceil_div(rows, 8 * per_team), slabs = ceil_div(c.e, kRowsWidth);
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  // Too few groups for the device share out the chunks.
  const int64_t groups = blocks * slabs * heads, wanted = 2 * gpu.info.processors;
  const int64_t splits =
      Parts::fit(c) ? std::clamp<int64_t>(wanted / groups, 1, Parts::chunks_of(c)) : 1;
  const Parts parts(gpu, c, splits > 1);
  const std::string name = std::string(per_team == 1 ? "attention_1_" : "attention_4_");
  gpu.launch("attention", name + std::string(suffix(cache)),
             Grid{.groups = {count32(groups * splits), 1, 1}}, c, parts.get(),
             static_cast<uint32_t>(blocks), static_cast<uint32_t>(slabs),
             static_cast<uint32_t>(splits));
  if (splits > 1) {
    gpu.launch("attention", "attention_join",
               Grid{.groups = {count32(Parts::rows_of(c)), 1, 1}, .items = 128}, c, parts.get());
  }
}

// ---- Few queries ----

constexpr int64_t kMostDecodeQueries = 8;
constexpr int64_t kDecodeRows = 4;  // heads that a group takes at most

bool is_multiple(const void* p, size_t of) { return reinterpret_cast<uintptr_t>(p) % of == 0; }

/// Whether pieces of `elems` elements, neighbouring keys of one element and neighbouring elements
/// of one value, can be read at once.
bool reads_pieces(const AttentionCall& c, DType cache, int64_t elems) {
  const auto even = [&](int64_t stride) { return stride % elems == 0; };
  const auto bytes = static_cast<size_t>(bytes_of(cache, elems));
  return is_multiple(c.k, bytes) && is_multiple(c.v, bytes) && even(c.k_step) && even(c.k_head) &&
         even(c.k_batch) && even(c.v_key) && even(c.v_head) && even(c.v_batch) && c.e % elems == 0;
}

/// Bytes of a group's shared memory in decode.gpu, without a tile and with one.
int64_t decode_shared(const AttentionCall& c, int64_t rows, int64_t fresh) {
  const int64_t d = ceil_div(c.d, 4) * 4, e = ceil_div(c.e, 4) * 4;
  return 4 * (rows * (d + kAttentionChunk) + fresh * (d + e) + (2 * rows + 4) / 4 * 4);
}
int64_t tile_bytes(const AttentionCall& c, DType cache) {
  return bytes_of(cache, kAttentionChunk * (int64_t{c.d} + c.e));
}

/// The kernel for few queries of a cache whose keys lie side by side; false if this isn't one.
bool launch_decode(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype) {
  const int64_t key_heads = c.heads / c.group, sets = int64_t{c.batch} * c.queries * key_heads;
  const int64_t spans[] = {c.d * c.k_step, kAttentionChunk * c.v_key};
  const bool small = std::all_of(std::begin(spans), std::end(spans), [&](int64_t elems) {
    return elems >= 0 && bytes_of(dtype, elems) < int64_t{1} << 32;
  });
  if (c.queries > kMostDecodeQueries || c.k_key != 1 || c.v_step != 1 || !small ||
      !reads_pieces(c, dtype, 2)) {
    return false;
  }
  // Heads of a key head share what is loaded where there is work enough for all processors.
  const int64_t chunks = Parts::chunks_of(c), processors = gpu.info.processors;
  int64_t rows = 1, tiles = c.group;
  if (sets * c.group * chunks > processors) {
    tiles = ceil_div(c.group, kDecodeRows);
    rows = ceil_div(c.group, tiles);
  }
  int64_t shared = decode_shared(c, rows, cache.qkv != nullptr ? c.queries + 1 : 1);
  const int64_t most_shared = gpu.info.shared_bytes, with_tile = shared + tile_bytes(c, dtype);
  const bool copies = gpu.device.kind == DeviceKind::cuda
                          ? attention_staging != AttentionStaging::never
                          : attention_staging == AttentionStaging::always;
  const bool staged =
      copies && with_tile <= most_shared && reads_pieces(c, dtype, 16 / bytes_of(dtype, 1));
  if (staged) shared = with_tile;
  if (shared > most_shared) return false;

  const int64_t at_once = std::clamp<int64_t>(most_shared / shared, 1, 4);
  int64_t splits = std::clamp<int64_t>(processors * at_once / (sets * tiles), 1, chunks);
  if (chunks > 1 && (sets * tiles > Gpu::kZeros || !Parts::fit(c))) return false;
  const Parts parts(gpu, c, chunks > 1);
  const DecodePlan plan{static_cast<uint32_t>(rows), static_cast<uint32_t>(tiles),
                        static_cast<uint32_t>(splits), gpu.zeros()};
  const std::string name = staged ? "decode_staged_" : "decode_";
  gpu.launch("decode", name + std::string(suffix(dtype)),
             Grid{.groups = {count32(sets * tiles * splits), 1, 1},
                  .shared_bytes = static_cast<unsigned>(shared),
                  .early = true},
             c, cache, plan, parts.get());
  return true;
}

// ---- Many queries ----

/// Whether results have to have the CPU's bits where the contract lets them be free: attention of
/// many queries then takes the ordered form, too.
bool ordered_attention() {
  static const bool ordered = [] {
    const char* value = std::getenv("WICK_REPRODUCIBLE");
    return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
  }();
  return ordered;
}

constexpr int64_t kFlashRows = 64, kLeastSplitKeys = 256;

/// The kernel for matrix units; false where there are none for this.
bool launch_flash(Gpu& gpu, const AttentionCall& c, DType cache) {
  const bool by_key = c.k_key == 1, sizes = c.d <= 128 && c.e <= 128 && c.d % 8 == 0;
  const auto whole = [](int64_t stride) { return stride % 8 == 0; };
  if (gpu.device.kind != DeviceKind::cuda || ordered_attention() || cache == DType::f32 || !sizes ||
      !(by_key ? whole(c.k_step) : c.k_step == 1 && whole(c.k_key)) || c.v_step != 1 ||
      !whole(c.k_head) || !whole(c.k_batch) || !whole(c.v_key) || !whole(c.v_head) ||
      !whole(c.v_batch) || c.e % 8 != 0 || !is_multiple(c.k, 16) || !is_multiple(c.v, 16)) {
    return false;
  }
  const int64_t width = c.d <= 64 && c.e <= 64 ? 64 : 128, parts_of_q = cache == DType::f16 ? 2 : 3;
  const int64_t shared = width * 2 * (parts_of_q * kFlashRows + 4 * 64) + kFlashRows * 4;
  if (shared > gpu.info.shared_bytes) return false;
  const int64_t blocks = ceil_div(int64_t{c.queries} * c.group, kFlashRows);
  const int64_t groups = blocks * c.batch * (c.heads / c.group);
  const int64_t most_splits = std::max<int64_t>(1, c.keys / kLeastSplitKeys);
  const int64_t splits =
      Parts::fit(c) ? std::clamp<int64_t>(2 * gpu.info.processors / groups, 1, most_splits) : 1;
  const Parts parts(gpu, c, splits > 1);
  AttentionParts where = parts.get();
  where.chunks = static_cast<uint32_t>(splits);
  const std::string name = width == 64 ? "flash_64_" : "flash_128_";
  gpu.launch("flash", name + std::string(suffix(cache)),
             Grid{.groups = {count32(groups * splits), 1, 1},
                  .items = 128,
                  .shared_bytes = static_cast<unsigned>(shared),
                  .early = true},
             c, where, static_cast<uint32_t>(blocks), static_cast<uint32_t>(splits));
  if (splits > 1) {
    gpu.launch("flash", "flash_join",
               Grid{.groups = {count32(Parts::rows_of(c)), 1, 1}, .items = 128, .early = true}, c,
               where);
  }
  return true;
}

/// Few queries always take the ordered form.
void launch_many(Gpu& gpu, const AttentionCall& c, DType dtype) {
  if (c.queries > kMostDecodeQueries && launch_flash(gpu, c, dtype)) return;
  launch_rows(gpu, c, dtype);
}

CacheCall make_cache_call(Gpu& gpu, const AttentionCall& call, const ConstView& qkv,
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
  fill.key_head = keys.stride(0), fill.key_position = keys.stride(1);
  fill.key_step = keys.stride(2);
  fill.value_head = values.stride(0), fill.value_position = values.stride(1);
  fill.value_step = values.stride(2);
  fill.positions = call.positions;
  fill.t = call.queries, fill.heads = call.heads, fill.key_heads = call.heads / call.group;
  fill.d = call.d, fill.e = call.e, fill.half = count32(where.cos.layout.shape()[1]);
  fill.limit = count32(std::min(keys.shape()[1], where.cos.layout.shape()[0]));
  fill.faults = gpu.fault_line();
  fill.note = gpu.note("cached_attention", where.keys, where.positions, fill.limit);
  return fill;
}

}  // namespace

AttentionStaging attention_staging = AttentionStaging::where_copies_run_alone;

void GpuBackend::attention(const View& out, const ConstView& q, const ConstView& k,
                           const ConstView& v, const AttentionParams& params) {
  if (out.layout.elems() == 0) return;
  const AttentionCall call = make_call(out, q, k, v, params);
  if (!launch_decode(gpu_, call, {}, k.dtype)) launch_many(gpu_, call, k.dtype);
}

void GpuBackend::cached_attention(const View& out, const ConstView& qkv,
                                  const CachedAttention& where) {
  const Layout &keys = where.keys.layout, &values = where.values.layout;
  const int64_t t = qkv.layout.shape()[0], g = keys.shape()[0];
  const int64_t d = keys.shape()[2], e = values.shape()[2];
  if (out.layout.elems() == 0) return;
  const int64_t h = out.layout.shape()[1] / e;

  const Layout& ol = out.layout;
  const View heads{
      out.data, out.dtype,
      Layout({1, h, t, e}, {0, e * ol.stride(1), ol.stride(0), ol.stride(1)}, ol.offset())};
  const ConstView no_queries{nullptr, DType::f32, Layout::contiguous({1, h, t, d})};
  AttentionCall call =
      make_call(heads, no_queries, {where.keys.data, where.keys.dtype, keys.unsqueeze(0)},
                {where.values.data, where.values.dtype, values.unsqueeze(0)}, where.params);
  call.positions = static_cast<const uint32_t*>(at_offset(where.positions));
  call.causal = 1;
  const CacheCall fill = make_cache_call(gpu_, call, qkv, where);
  call.keys = fill.limit;
  if (launch_decode(gpu_, call, fill, where.keys.dtype)) return;

  const Scratch rotated(gpu_, static_cast<size_t>(h * t * d) * 4);
  call.q = rotated.data();
  gpu_.launch("attention", std::string("fill_cache_") + std::string(suffix(where.keys.dtype)),
              Grid{.groups = {count32(t * (h + 2 * g)), 1, 1}, .items = 64}, fill,
              rotated.data<float>());
  launch_many(gpu_, call, where.keys.dtype);
}

}  // namespace wick::gpu
