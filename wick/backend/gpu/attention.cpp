// Attention: which kernel takes a call, and how it is spread over the device.

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

/// The kernel for any layout.
void launch_rows(Gpu& gpu, const AttentionCall& c, DType cache) {
  const int64_t rows = int64_t{c.queries} * c.group;
  const int64_t per_team = rows <= 8 ? 1 : 4;
  const int64_t blocks = ceil_div(rows, 8 * per_team), slabs = ceil_div(c.e, kRowsWidth);
  const int64_t heads = int64_t{c.batch} * (c.heads / c.group);
  const int64_t all_rows = int64_t{c.batch} * c.heads * c.queries;
  const int64_t chunks = std::max<int64_t>(1, ceil_div(c.keys, kAttentionChunk));

  // Too few groups for the device share out the chunks.
  const int64_t groups = blocks * slabs * heads, wanted = 2 * gpu.info.processors;
  int64_t splits = std::clamp<int64_t>(wanted / groups, 1, chunks);
  const auto part_bytes = static_cast<size_t>(all_rows * chunks * (c.e + 2) * 4);
  if (part_bytes > kMostParts) splits = 1;
  const size_t sums_bytes = static_cast<size_t>(all_rows * chunks) * 8;
  AttentionParts parts{nullptr, nullptr, static_cast<uint32_t>(chunks)};
  const Scratch scratch(gpu, splits == 1 ? 0 : part_bytes);
  if (splits > 1) {
    parts.largest_sum = scratch.data<float>();
    parts.out = scratch.data<float>() + sums_bytes / 4;
  }
  const std::string name = std::string(per_team == 1 ? "attention_1_" : "attention_4_");
  gpu.launch("attention", name + std::string(suffix(cache)),
             Grid{.groups = {count32(groups * splits), 1, 1}}, c, parts,
             static_cast<uint32_t>(blocks), static_cast<uint32_t>(slabs),
             static_cast<uint32_t>(splits));
  if (splits > 1) {
    gpu.launch("attention", "attention_join",
               Grid{.groups = {count32(all_rows), 1, 1}, .items = 128}, c, parts);
  }
}

}  // namespace

void GpuBackend::attention(const View& out, const ConstView& q, const ConstView& k,
                           const ConstView& v, const AttentionParams& params) {
  if (out.layout.elems() == 0) return;
  launch_rows(gpu_, make_call(out, q, k, v, params), k.dtype);
}

void GpuBackend::cached_attention(const View& out, const ConstView& qkv,
                                  const CachedAttention& where) {
  const Layout &keys = where.keys.layout, &values = where.values.layout;
  const int64_t t = qkv.layout.shape()[0], g = keys.shape()[0], capacity = keys.shape()[1];
  const int64_t d = keys.shape()[2], e = values.shape()[2];
  if (out.layout.elems() == 0) return;
  const int64_t h = out.layout.shape()[1] / e;

  // The queries as rows of their own, since they are rotated.
  const Scratch rotated(gpu_, static_cast<size_t>(h * t * d) * 4);
  const View q{rotated.data(), DType::f32, Layout::contiguous({1, h, t, d})};
  const Layout& ol = out.layout;
  const View heads{
      out.data, out.dtype,
      Layout({1, h, t, e}, {0, e * ol.stride(1), ol.stride(0), ol.stride(1)}, ol.offset())};
  AttentionCall call =
      make_call(heads, q, {where.keys.data, where.keys.dtype, keys.unsqueeze(0)},
                {where.values.data, where.values.dtype, values.unsqueeze(0)}, where.params);
  call.positions = static_cast<const uint32_t*>(at_offset(where.positions));
  call.causal = 1;

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
  fill.t = count32(t), fill.heads = count32(h), fill.key_heads = count32(g);
  fill.d = call.d, fill.e = call.e, fill.half = count32(where.cos.layout.shape()[1]);
  fill.limit = count32(std::min(capacity, where.cos.layout.shape()[0]));
  fill.faults = gpu_.fault_line();
  fill.note = gpu_.note("cached_attention", where.keys, where.positions, fill.limit);
  call.keys = fill.limit;

  gpu_.launch("attention", std::string("fill_cache_") + std::string(suffix(where.keys.dtype)),
              Grid{.groups = {count32(t * (h + 2 * g)), 1, 1}, .items = 64}, fill,
              rotated.data<float>());
  launch_rows(gpu_, call, where.keys.dtype);
}

}  // namespace wick::gpu
