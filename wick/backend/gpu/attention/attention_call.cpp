#include "wick/backend/gpu/attention/attention_call.h"

#include <algorithm>

#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/layout/access.h"

namespace wick::gpu {
namespace {

MaskKind mask_kind(DType dtype) {
  return dtype == DType::f32    ? kMaskF32
         : dtype == DType::f16  ? kMaskF16
         : dtype == DType::bf16 ? kMaskBf16
                                : kMaskHides;
}

}  // namespace

const void* at_offset(const ConstView& v) {
  return static_cast<const char*>(v.data) + bytes_of(v.dtype, v.layout.offset());
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

ScoreBias make_bias(const AttentionBias& of) {
  ScoreBias bias{};
  if (of.mask.data != nullptr) {
    const Layout& ml = of.mask.layout;
    bias.mask = at_offset(of.mask);
    bias.mask_batch = ml.stride(0), bias.mask_head = ml.stride(1);
    bias.mask_query = ml.stride(2), bias.mask_key = ml.stride(3);
    bias.kind = mask_kind(of.mask.dtype);
    const Shape& shape = ml.shape();
    const bool vectors = Access(bias.mask, of.mask.dtype)
                             .run(shape[3], bias.mask_key)
                             .dim(shape[0], bias.mask_batch)
                             .dim(shape[1], bias.mask_head)
                             .dim(shape[2], bias.mask_query)
                             .vectors_of(4);
    bias.vectors = vectors ? 1 : 0;
  }
  if (of.slopes.data != nullptr) {
    bias.slopes = static_cast<const float*>(at_offset(of.slopes));
    bias.slope_step = of.slopes.layout.stride(0);
  }
  if (of.sinks.data != nullptr) {
    bias.sinks = static_cast<const float*>(at_offset(of.sinks));
    bias.sink_step = of.sinks.layout.stride(0);
  }
  return bias;
}

void set_pages(Gpu& gpu, const char* op, const ConstView& named, AttentionCall& c,
               const ConstView& k, const ConstView& v, const ConstView& tables,
               const ConstView& lengths, const ConstView& counts, int64_t most) {
  const Layout& tl = tables.layout;
  KeyPages& pages = c.pages;
  c.k_batch = c.v_batch = 0;
  const int64_t size = k.layout.shape()[2];
  pages.keys = count32(size), pages.chunks = pages.keys / kAttentionChunk,
  pages.count = count32(k.layout.shape()[0]);
  if (tables.data != nullptr) {
    pages.tables = static_cast<const uint32_t*>(at_offset(tables));
    pages.table_row = tl.stride(0), pages.table_step = tl.stride(1);
    pages.k_page = k.layout.stride(0), pages.v_page = v.layout.stride(0);
    c.keys = count32(pages.count == 0 ? 0 : tl.shape()[1] * size);
    pages.note = gpu.note(op, named, tables, pages.count);
  }
  c.keys = static_cast<uint32_t>(std::min<int64_t>(c.keys, most));
  if (lengths.data != nullptr) {
    pages.lengths = static_cast<const uint32_t*>(at_offset(lengths));
    pages.length_step = lengths.layout.stride(0);
  }
  pages.faults = gpu.fault_line();
  pages.length_note =
      gpu.note(op, named, counts, int64_t{c.keys} + (lengths.data != nullptr ? 1 : 0));
}

}  // namespace wick::gpu
