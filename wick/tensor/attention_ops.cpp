// Attention with queries, keys and values in separate tensors: of a batch, of concatenated
// sequences, and with keys and values in pages.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "wick/base/block_pages.h"
#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/select.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

std::string shown(const Tensor& q, const Tensor& k, const Tensor& v) {
  return fmt::format("q {}, k {}, v {}", q.str(), k.str(), v.str());
}

void check_kinds(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  check_operand(Op::attention, q, op);
  check_operand(Op::attention, k, op);
  check_same(Op::attention, k, v, op);
  check_device(op, q, k);
}

/// The parameters for backends. The default scale is 1 / sqrt(head size).
AttentionParams params_of(const Tensor& q, const AttentionOptions& options) {
  const int64_t d = q.defined() && q.rank() > 0 ? q.size(-1) : 0;
  const float by_size = d > 0 ? 1.0f / std::sqrt(static_cast<float>(d)) : 1.0f;
  return {.scale = options.scale.value_or(by_size),
          .causal = options.causal,
          .window = options.window,
          .soft_cap = options.soft_cap};
}

void check_params(const char* op, const AttentionParams& params) {
  if (std::isfinite(params.scale) && params.window >= 0 && params.soft_cap >= 0.0f) return;
  throw Error(op, "parameters out of range",
              fmt::format("scale {}, window {}, soft_cap {}", params.scale, params.window,
                          params.soft_cap));
}

/// Errors: x isn't f32 [h] for q [b, h, m, ..].
void check_by_head(const Tensor& q, const Tensor& x, const char* what) {
  if (!x.defined()) return;
  check_device("attention", q, x);
  if (x.dtype() != DType::f32 || x.rank() != 1 || x.size(0) != q.size(1)) {
    throw Error("attention", fmt::format("{} don't fit", what),
                fmt::format("q {}, {} {}", q.str(), what, x.str()), "need f32, one per head");
  }
}

/// Errors: the mask, the slopes or the sinks don't fit q [b, h, m, ..].
void check_bias(const Tensor& q, const Tensor& mask, const Tensor& slopes, const Tensor& sinks) {
  if (mask.defined()) {
    check_device("attention", q, mask);
    if (!dtypes::kActivations.contains(mask.dtype()) && stored(mask.dtype()) != DType::u8) {
      throw Error(ErrorKind::type, "attention", "unsupported mask dtype", mask.str(),
                  "f32, f16 and bf16 are added, bool and u8 hide by 0");
    }
  }
  check_by_head(q, slopes, "slopes");
  check_by_head(q, sinks, "sinks");
}

ResultSpec checked_attention(const OpCall& call) {
  const Tensor &q = call.x(0), &k = call.x(1), &v = call.x(2);
  check_kinds("attention", q, k, v);
  check_params("attention", call.get<AttentionParams>());
  const auto dims_fit = [&] {
    return q.size(0) == k.size(0) && k.size(0) == v.size(0) && k.size(1) == v.size(1) &&
           k.size(2) == v.size(2) && q.size(3) == k.size(3) && k.size(1) > 0 &&
           q.size(1) % k.size(1) == 0;
  };
  const bool ranks_fit = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (ranks_fit) check_bias(q, call.x(3), call.x(4), call.x(5));
  if (!ranks_fit || !dims_fit()) {
    throw Error("attention", "operands don't fit", shown(q, k, v),
                "need q [b,h,m,d], k [b,g,n,d], v [b,g,n,e] with h a multiple of g");
  }
  // Stored as [b, m, h, e]: the next projection reads the heads of a token as one row.
  const Shape tokens{q.size(0), q.size(2), q.size(1), v.size(3)};
  return {q.dtype(), Layout::contiguous(tokens).transpose(1, 2)};
}

/// The terms of the scores of q [b, h, m, ..] and k [.., n, ..], and the sinks. The mask is
/// broadcast.
AttentionBias bias_of(const Tensor& q, const Tensor& k, const Tensor& mask, const Tensor& slopes,
                      const Tensor& sinks) {
  AttentionBias bias;
  if (mask.defined()) {
    bias.mask = mask.view();
    bias.mask.layout = bias.mask.layout.broadcast_to({q.size(0), q.size(1), q.size(2), k.size(2)});
  }
  if (slopes.defined()) bias.slopes = slopes.view();
  if (sinks.defined()) bias.sinks = sinks.view();
  return bias;
}

void run_attention(Backend& backend, const OpCall& call, const Tensor* out) {
  const Tensor &q = call.x(0), &k = call.x(1);
  backend.attention(out->mutable_view(), q.view(), k.view(), call.x(2).view(),
                    call.get<AttentionParams>(), bias_of(q, k, call.x(3), call.x(4), call.x(5)));
}

}  // namespace

namespace {

/// Where the gradients lie in the result of Part::input_gradient, a dense vector: those of q, k and
/// v one after another, each at a multiple of 64 elements.
struct GradientParts {
  int64_t k = 0, v = 0, elems = 0;
  GradientParts(const Tensor& q, const Tensor& keys, const Tensor& values,
                const AttentionGradient& what) {
    const auto room = [](const Tensor& x) { return (x.elems() + 63) / 64 * 64; };
    k = what.of_q ? room(q) : 0;
    v = k + (what.of_keys ? room(keys) : 0);
    elems = v + (what.of_keys ? room(values) : 0);
  }
  /// The gradient at `at`.
  static Tensor of(const Tensor& all, const Shape& shape, int64_t at) {
    return Tensor(all.storage(), all.dtype(), layout(shape, at));
  }
  static Layout layout(const Shape& shape, int64_t at) {
    const Layout dense = Layout::contiguous(shape);
    return Layout(shape, dense.strides(), at);
  }
};

/// Operands: q, k, v, mask, slopes, sinks, and the gradient of the result. attention_rule makes the
/// call from those of a checked call of attention.
ResultSpec checked_gradient(const OpCall& call) {
  const Tensor &q = call.x(0), &k = call.x(1), &v = call.x(2), &grad = call.x(6);
  check_kinds(call.name(), q, k, v);
  check_same(Op::attention, q, k, call.name());
  check_same(Op::attention, q, grad, call.name());
  const Shape result{q.size(0), q.size(1), q.size(2), v.size(3)};
  if (!(grad.shape() == result)) {
    throw Error(call.name(), "the gradient has another shape", grad.str(),
                fmt::format("need {}", result.str()));
  }
  const GradientParts parts(q, k, v, call.get<AttentionGradient>());
  return dense(q.dtype(), {parts.elems});
}
/// Each query's part of the gradient of its head's sink.
ResultSpec sink_gradient(const OpCall& call) {
  const Tensor& q = call.x(0);
  return dense(DType::f32, {q.size(0), q.size(1), q.size(2)});
}

void run_gradient(Backend& backend, const OpCall& call, const Tensor* out) {
  const Tensor &q = call.x(0), &k = call.x(1), &v = call.x(2), &mask = call.x(3),
               &slopes = call.x(4), &sinks = call.x(5);
  const auto& what = call.get<AttentionGradient>();
  const GradientParts parts(q, k, v, what);
  const View all = out->mutable_view();
  const auto part = [&](bool wanted, const Tensor& of, int64_t at) {
    return wanted ? View{all.data, all.dtype, GradientParts::layout(of.shape(), at)}
                  : View{nullptr, all.dtype, {}};
  };
  const View none{nullptr, DType::f32, {}};
  backend.attention_gradient(
      part(what.of_q, q, 0), part(what.of_keys, k, parts.k), part(what.of_keys, v, parts.v),
      what.of_sinks ? out[1].mutable_view() : none, call.x(6).view(), q.view(), k.view(), v.view(),
      what.params, bias_of(q, k, mask, slopes, sinks));
}

std::optional<BlockPages> blocks_of(const Tensor& pages) {
  return pages.defined() ? BlockPages::of(pages.dtype(), pages.shape()) : std::nullopt;
}

/// The sizes of the pages of keys or of values.
struct PageSizes {
  int64_t pages = 0, heads = 0, positions = 0, width = 0;
  bool fit = false;  // the tensor is one of pages
  explicit PageSizes(const Tensor& x) {
    if (const std::optional<BlockPages> blocks = blocks_of(x)) {
      pages = blocks->pages, heads = blocks->heads, width = blocks->width;
      positions = BlockPages::kPositions, fit = true;
    } else if (x.defined() && x.rank() == 4) {
      pages = x.size(0), heads = x.size(1), positions = x.size(2), width = x.size(3), fit = true;
    }
  }
};

/// Errors: pages of blocks aren't laid out as kernels read them (block_pages.h).
void check_blocks(const char* op, const Tensor& x, const BlockPages& blocks) {
  constexpr int64_t kAligned = 16;  // bytes
  const Layout& l = x.layout();
  const int64_t inner = l.shape()[4];
  bool fits = l.stride(4) == 1 && l.stride(3) == inner && l.offset() % kAligned == 0;
  if (l.shape()[2] > 1) fits = fits && l.stride(2) == l.shape()[3] * inner;
  if (blocks.pages > 1) fits = fits && l.stride(0) % kAligned == 0;
  if (blocks.heads > 1) fits = fits && l.stride(1) % kAligned == 0;
  if (!fits) {
    throw Error(op, "pages of blocks with another layout", x.str(),
                "need each head's bytes in a row, from a multiple of 16 on");
  }
}

/// Operands: q, key pages, value pages, tables, lengths, slopes, sinks. attention_of_pages has
/// checked them.
ResultSpec paged_result(const OpCall& call) {
  const Tensor &q = call.x(0), &v = call.x(2);
  const Shape tokens{q.size(0), q.size(2), q.size(1), PageSizes(v).width};
  return {q.dtype(), Layout::contiguous(tokens).transpose(1, 2)};
}

void run_paged(Backend& backend, const OpCall& call, const Tensor* out) {
  const Tensor &q = call.x(0), &pages = call.x(1);
  backend.attention_of_pages(out->mutable_view(), q.view(), pages.view(), call.x(2).view(),
                             {call.x(3).view(), call.x(4).view()}, call.get<AttentionParams>(),
                             bias_of(q, pages, {}, call.x(5), call.x(6)));
}

}  // namespace

namespace bodies {

const OpBody attention{checked_attention, run_attention};
const OpBody attention_gradient{
    .infer = checked_gradient, .run = run_gradient, .infer_second = sink_gradient};
const OpBody attention_of_pages{paged_result, run_paged};
const OpBody store_in_pages{nullptr, [](Backend& backend, const OpCall& call, const Tensor* pages) {
                              backend.store_in_pages(pages->mutable_view(), call.x(0).view(),
                                                     call.x(1).view(), call.x(2).view());
                            }};

}  // namespace bodies

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 const Tensor& mask, const Tensor& slopes, const Tensor& sinks) {
  // The gradient of a narrow mask that broadcasts is summed in f32 and rounded once.
  const bool narrow = mask.defined() && (mask.dtype() == DType::f16 || mask.dtype() == DType::bf16);
  const Tensor added = narrow && tape::is_wanted(mask) ? cast(mask, DType::f32) : mask;
  return apply({Op::attention, {&q, &k, &v, &added, &slopes, &sinks}, params_of(q, options)});
}

namespace tape {

AttentionGradients attention_gradient(const Tensor& grad, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const AttentionGradient& what,
                                      const Tensor& mask, const Tensor& slopes,
                                      const Tensor& sinks) {
  const OpCall call{.op = Op::attention,
                    .inputs = {&q, &k, &v, &mask, &slopes, &sinks, &grad},
                    .attributes = what,
                    .called_as = "attention_gradient",
                    .part = Part::input_gradient};
  AttentionGradients gradients;
  Tensor all;
  if (what.of_sinks) {
    std::array<Tensor, 2> both = apply_pair(call);
    all = std::move(both[0]);
    gradients.sinks = sum(both[1].transpose(0, 1).flatten(1, 2), 1);
  } else {
    all = apply(call);
  }
  const GradientParts parts(q, k, v, what);
  if (what.of_q) gradients.q = parts.of(all, q.shape(), 0);
  if (!what.of_keys) return gradients;
  gradients.k = parts.of(all, k.shape(), parts.k);
  gradients.v = parts.of(all, v.shape(), parts.v);
  return gradients;
}

}  // namespace tape

Tensor attention_of_lengths(const Tensor& q, const Tensor& k, const Tensor& v,
                            std::span<const int64_t> query_starts,
                            std::span<const int64_t> key_starts, const AttentionOptions& options,
                            const Tensor& slopes, const Tensor& sinks) {
  const char* const op = "attention_of_lengths";
  check_kinds(op, q, k, v);
  check_params(op, params_of(q, options));
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || k.size(0) != v.size(0)) {
    throw Error(op, "operands don't fit", shown(q, k, v),
                "need q [t,h,d], k [s,g,d], v [s,g,e] with h a multiple of g");
  }
  const auto rise = [](std::span<const int64_t> starts, int64_t all) {
    if (starts.empty() || starts.front() != 0 || starts.back() != all) return false;
    for (size_t i = 1; i < starts.size(); ++i) {
      if (starts[i] < starts[i - 1]) return false;
    }
    return true;
  };
  if (query_starts.size() != key_starts.size() || !rise(query_starts, q.size(0)) ||
      !rise(key_starts, k.size(0))) {
    throw Error(
        op, "starts don't fit",
        fmt::format("{}, {} and {} starts", shown(q, k, v), query_starts.size(), key_starts.size()),
        "need as many of both, from 0 up to all of the rows");
  }
  std::vector<Tensor> parts;
  for (size_t i = 0; i + 1 < query_starts.size(); ++i) {
    const auto rows = [&](const Tensor& x, std::span<const int64_t> starts) {
      return x.narrow(0, starts[i], starts[i + 1] - starts[i]).transpose(0, 1).unsqueeze(0);
    };
    parts.push_back(attention(rows(q, query_starts), rows(k, key_starts), rows(v, key_starts),
                              options, {}, slopes, sinks)
                        .squeeze(0)
                        .transpose(0, 1));
  }
  if (parts.empty()) return Tensor::empty({0, q.size(1), v.size(2)}, q.dtype(), q.device());
  return cat(parts, 0);
}

namespace {

/// attention_of_pages on gathered pages, composed of ops that have gradients.
Tensor attention_of_gathered(const Tensor& q, const Tensor& key_pages, const Tensor& value_pages,
                             const Tensor& tables, const Tensor& lengths,
                             const AttentionOptions& options, const Tensor& slopes,
                             const Tensor& sinks) {
  const int64_t size = key_pages.size(2);
  const std::vector<uint32_t> counts = lengths.to_vector<uint32_t>();
  std::vector<Tensor> parts;
  for (int64_t b = 0; b < q.size(0); ++b) {
    const int64_t length = counts[static_cast<size_t>(b)];
    if (length > tables.size(1) * size) {
      throw Error(ErrorKind::index, "attention_of_pages", "a length beyond the table",
                  fmt::format("{} of tables {}", length, tables.str()));
    }
    const Tensor table = tables.narrow(0, b, 1).squeeze(0).narrow(0, 0, (length + size - 1) / size);
    // [pages, g, size, d] → [1, g, length, d]
    const auto gathered = [&](const Tensor& pages) {
      return index_select_as("attention_of_pages", pages, table)
          .transpose(0, 1)
          .reshape({1, pages.size(1), table.size(0) * size, pages.size(3)})
          .narrow(2, 0, length);
    };
    parts.push_back(attention(q.narrow(0, b, 1), gathered(key_pages), gathered(value_pages),
                              options, {}, slopes, sinks));
  }
  return cat(parts, 0);
}

}  // namespace

Tensor attention_of_pages(const Tensor& q, const Tensor& key_pages, const Tensor& value_pages,
                          const Tensor& tables, const Tensor& lengths,
                          const AttentionOptions& options, const Tensor& slopes,
                          const Tensor& sinks) {
  const char* const op = "attention_of_pages";
  const std::optional<BlockPages> of_keys = blocks_of(key_pages),
                                  of_values = blocks_of(value_pages);
  if (of_keys && of_values) {
    check_operand(Op::attention, q, op);
    check_device(op, q, key_pages);
    check_device(op, q, value_pages);
    check_blocks(op, key_pages, *of_keys);
    check_blocks(op, value_pages, *of_values);
  } else {
    check_kinds(op, q, key_pages, value_pages);
  }
  const AttentionParams params = params_of(q, options);
  check_params(op, params);
  for (const Tensor* t : {&tables, &lengths}) {
    if (!t->defined()) throw Error(op, "undefined tensor");
    check_device(op, q, *t);
  }
  const PageSizes keys(key_pages), values(value_pages);
  const bool types_fit = !of_keys || (of_keys->by_element && of_keys->dtype == of_values->dtype);
  const bool fits = types_fit && q.rank() == 4 && keys.fit && values.fit && tables.rank() == 2 &&
                    lengths.rank() == 1 && tables.size(0) == q.size(0) &&
                    lengths.size(0) == q.size(0) && keys.pages == values.pages &&
                    keys.heads == values.heads && keys.positions == values.positions &&
                    q.size(3) == keys.width && keys.heads > 0 && keys.positions > 0 &&
                    q.size(1) % keys.heads == 0 && dtypes::kIds.contains(tables.dtype()) &&
                    lengths.dtype() == DType::u32;
  if (!fits) {
    throw Error(op, "operands don't fit",
                fmt::format("{}, tables {}, lengths {}", shown(q, key_pages, value_pages),
                            tables.str(), lengths.str()),
                "need q [b,h,m,d], pages [p,g,size,d] and [p,g,size,e], h a multiple of g, tables "
                "[b, pages] of ids, lengths u32 [b]");
  }
  check_bias(q, {}, slopes, sinks);
  if (q.size(0) == 0) {
    return Tensor::empty({0, q.size(1), q.size(2), values.width}, q.dtype(), q.device());
  }
  for (const Tensor* t : {&q, &key_pages, &value_pages, &slopes, &sinks}) {
    if (t->defined() && tape::is_wanted(*t)) {
      if (of_keys) tape::refuse(op, *t, "its keys and values are quantised; detach it");
      return attention_of_gathered(q, key_pages, value_pages, tables, lengths, options, slopes,
                                   sinks);
    }
  }
  const Tensor pages = tables.dtype() == DType::u32 ? tables : cast(tables, DType::u32);
  return apply({.op = Op::attention,
                .inputs = {&q, &key_pages, &value_pages, &pages, &lengths, &slopes, &sinks},
                .attributes = params,
                .called_as = "attention_of_pages",
                .part = Part::paged});
}

void store_in_pages(const Tensor& pages, const Tensor& rows, const Tensor& tables,
                    const Tensor& positions) {
  const char* const op = "store_in_pages";
  const std::optional<BlockPages> blocks = blocks_of(pages);
  if (!blocks) check_operand(Op::store_in_pages, pages);
  check_operand(Op::store_in_pages, rows);
  if (blocks) check_blocks(op, pages, *blocks);
  for (const Tensor* t : {&rows, &tables, &positions}) {
    if (!t->defined()) throw Error(op, "undefined tensor");
    check_device(op, pages, *t);
  }
  const PageSizes sizes(pages);
  const bool fits = sizes.fit && rows.rank() == 3 && tables.rank() == 2 && positions.rank() == 1 &&
                    sizes.heads == rows.size(1) && sizes.positions > 0 &&
                    sizes.width == rows.size(2) && positions.size(0) == rows.size(0) &&
                    tables.size(0) > 0 && rows.size(0) % tables.size(0) == 0 &&
                    tables.dtype() == DType::u32 && positions.dtype() == DType::u32;
  if (!fits) {
    throw Error(
        op, "operands don't fit",
        fmt::format("pages {}, rows {}, tables {}, positions {}", pages.str(), rows.str(),
                    tables.str(), positions.str()),
        "need pages [p,g,size,d], rows [t,g,d], tables u32 [b,n] and positions u32 [t], t a "
        "multiple of b");
  }
  if (tape::is_wanted(pages, rows)) tape::refuse(op, rows, "it writes to its pages; detach both");
  if (!pages.storage()->writable()) {
    throw Error(ErrorKind::runtime, op, "the pages are read-only", pages.str());
  }
  if (pages.layout().overlaps_itself()) throw Error(op, "the pages' elements overlap", pages.str());
  if (rows.elems() == 0) return;
  apply_into({Op::store_in_pages, {&rows, &tables, &positions}}, pages);
}

}  // namespace wick
