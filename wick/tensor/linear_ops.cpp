// matmul, linear, quantisation and fused ops of transformers: these functions check shapes and call
// the backend.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/fused.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

std::string operands(const Tensor& a, const Tensor& b) {
  return fmt::format("lhs {}, rhs {}", a.str(), b.str());
}

/// The elements per row of cached_attention's result. Errors: the operands don't fit.
int64_t attention_width(const Tensor& qkv, const AttentionStep& step) {
  const auto& [cos, sin, positions, keys, values, params, tables, sinks] = step;
  check_operand(Op::attention, qkv);
  check_operand(Op::attention, keys);
  check_same(Op::attention, keys, values);
  for (const Tensor* t : {&cos, &sin, &positions, &keys}) check_device("cached_attention", qkv, *t);
  if (tables.defined()) check_device("cached_attention", qkv, tables);
  if (sinks.defined()) check_device("cached_attention", qkv, sinks);
  const int rank = tables.defined() ? 4 : 3;
  const bool ranks = qkv.dtype() == DType::f32 && qkv.rank() == 2 && keys.rank() == rank &&
                     values.rank() == rank && positions.rank() == 1 && cos.rank() == 2 &&
                     cos.shape() == sin.shape() && cos.dtype() == DType::f32 &&
                     sin.dtype() == DType::f32 && positions.dtype() == DType::u32;
  const int64_t g = ranks ? keys.size(-3) : 0, d = ranks ? keys.size(-1) : 0;
  const int64_t rest = ranks ? qkv.size(1) - g * (d + values.size(-1)) : 0;
  const auto tables_fit = [&] {
    return !tables.defined() ||
           (tables.rank() == 2 && tables.dtype() == DType::u32 && tables.size(0) > 0 &&
            qkv.size(0) % tables.size(0) == 0 && keys.size(0) == values.size(0));
  };
  const auto sinks_fit = [&] {
    return !sinks.defined() ||
           (sinks.rank() == 1 && sinks.dtype() == DType::f32 && sinks.size(0) == rest / d);
  };
  const bool fits = ranks && g > 0 && d > 0 && values.size(-3) == g &&
                    values.size(-2) == keys.size(-2) && positions.size(0) == qkv.size(0) &&
                    rest > 0 && rest % (g * d) == 0 && 2 * cos.size(1) <= d && tables_fit() &&
                    sinks_fit();
  if (!fits) {
    throw Error("cached_attention", "operands don't fit",
                fmt::format("qkv {}, cos {}, positions {}, keys {}, values {}, tables {}, sinks {}",
                            qkv.str(), cos.str(), positions.str(), keys.str(), values.str(),
                            tables.str(), sinks.str()),
                "need qkv f32 [t, h·d + g·d + g·e], positions u32 [t], keys [g, c, d], values "
                "[g, c, e], h a multiple of g; with tables u32 [b, n], t a multiple of b, keys "
                "[p, g, c, d], values [p, g, c, e]; sinks f32 [h]");
  }
  if (!params.causal || !std::isfinite(params.scale) || params.window < 0 ||
      !(params.soft_cap >= 0.0f)) {
    throw Error("cached_attention", "parameters out of range",
                fmt::format("causal {}, scale {}, window {}, soft_cap {}", params.causal,
                            params.scale, params.window, params.soft_cap));
  }
  if (!keys.storage()->writable() || !values.storage()->writable()) {
    throw Error(ErrorKind::runtime, "cached_attention", "the cache is read-only", keys.str());
  }
  return rest / d * values.size(-1);
}

/// The views of cos, sin, positions, keys, values, tables and sinks, which are the operands from
/// index `first` on. A cache without tables is treated as one page.
CachedAttention cached(const OpCall& call, size_t first, const AttentionParams& params) {
  const Tensor& tables = call.x(first + 5);
  const auto pages = [&](const Tensor& cache) {
    View view = cache.mutable_view();
    if (!tables.defined()) view.layout = view.layout.unsqueeze(0);
    return view;
  };
  return {.cos = call.x(first).view(),
          .sin = call.x(first + 1).view(),
          .positions = call.x(first + 2).view(),
          .keys = pages(call.x(first + 3)),
          .values = pages(call.x(first + 4)),
          .tables = view_of(tables),
          .params = params,
          .sinks = view_of(call.x(first + 6))};
}

/// Errors: the operands of the fused steps don't fit. attention_width checks those of attention.
void check_steps(const OpCall& call, const Shape& out) {
  const Tensor &x = call.x(kLinearX), &norm = call.x(kLinearNorm),
               &residual = call.x(kLinearResidual);
  const auto& steps = call.get<LinearSteps>();
  if (!norm.defined() && !steps.silu_mul && !steps.attention && !residual.defined()) return;
  const auto f32_here = [&](const Tensor& t) {
    return t.dtype() == DType::f32 && t.device() == x.device();
  };
  const bool one_input = int{norm.defined()} + int{steps.silu_mul} + int{steps.attention} <= 1;
  const bool norm_fits =
      !norm.defined() || (f32_here(norm) && norm.rank() == 1 && norm.size(0) == x.size(-1));
  const bool residual_fits = !residual.defined() || (f32_here(residual) && residual.shape() == out);
  if (x.dtype() == DType::f32 && one_input && norm_fits && residual_fits) return;
  throw Error("linear", "operands of a fused product don't fit",
              fmt::format("x {}, norm {}, residual {}", x.str(), norm.str(), residual.str()),
              "need f32, one of norm [k], silu_mul and attention, and a residual of the "
              "result's shape");
}

ResultSpec checked_linear(const OpCall& call) {
  const Tensor& x = call.x();
  const Weight& weight = *call.weight;
  const Shape shape = x.shape().with(x.rank() - 1, weight.n());
  if (call.inputs.size() > 1) check_steps(call, shape);
  return dense(x.dtype(), shape);
}

void run_linear(Backend& backend, const OpCall& call, const Tensor* out) {
  LinearFusion fusion;
  CachedAttention attention;
  if (const auto* steps = std::get_if<LinearSteps>(&call.attributes)) fusion.each = steps->each;
  if (call.inputs.size() > 1) {
    const auto& steps = call.get<LinearSteps>();
    if (call.x(kLinearNorm).defined()) {
      fusion.input = LinearFusion::Input::rms_norm;
      fusion.norm = call.x(kLinearNorm).view();
      fusion.eps = steps.eps;
    } else if (steps.silu_mul) {
      fusion.input = LinearFusion::Input::silu_mul;
    } else if (steps.gelu_mul) {
      fusion.input = LinearFusion::Input::gelu_mul;
    } else if (steps.attention) {
      fusion.input = LinearFusion::Input::attention;
      attention = cached(call, kLinearCos, steps.params);
      fusion.attention = &attention;
    }
    fusion.add = call.x(kLinearResidual).defined();
    fusion.residual = view_of(call.x(kLinearResidual));
  }
  backend.linear(out->mutable_view(), call.x().view(), call.weight->prepared(), fusion);
}

/// All dims except the last two.
Shape batch_of(const Tensor& t) {
  return Shape(t.shape().dims().first(static_cast<size_t>(t.rank() - 2)));
}
/// [batch dims.., rows, columns]
Shape matrices(const Shape& batch, int64_t rows, int64_t columns) {
  std::vector<int64_t> dims(batch.dims().begin(), batch.dims().end());
  dims.push_back(rows);
  dims.push_back(columns);
  return Shape(dims);
}

ResultSpec checked_matmul(const OpCall& call) {
  const Tensor &a = call.x(0), &b = call.x(1);
  check_operand(call.op, a);
  check_same(call.op, a, b);
  if (a.rank() < 2 || b.rank() < 2) {
    throw Error("matmul", "rank below 2", operands(a, b), "unsqueeze a vector first");
  }
  if (a.shape().back(0) != b.shape().back(1)) {
    throw Error(
        "matmul", "inner dimensions differ", operands(a, b),
        fmt::format("need lhs[-1] == rhs[-2] ({} != {})", a.shape().back(0), b.shape().back(1)));
  }
  const Shape batch = broadcast_shapes("matmul", batch_of(a), batch_of(b));
  return dense(a.dtype(), matrices(batch, a.shape().back(1), b.shape().back(0)));
}

void run_matmul(Backend& backend, const OpCall& call, const Tensor* out) {
  const auto expanded = [&](const Tensor& t) {
    ConstView view = t.view();
    view.layout =
        view.layout.broadcast_to(matrices(batch_of(*out), t.shape().back(1), t.shape().back(0)));
    return view;
  };
  backend.matmul(out->mutable_view(), expanded(call.x(0)), expanded(call.x(1)));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return apply({Op::matmul, {&a, &b}}); }

Weight::Weight(std::span<const Tensor> matrices, Device device, bool release) : device_(device) {
  if (matrices.empty()) throw Error("weight", "no matrices");
  const Tensor& first = matrices.front();
  std::vector<Tensor> parts;
  std::vector<ConstView> views;
  bool mapped = true;
  for (const Tensor& m : matrices) {
    check_operand(Op::linear, m, "weight");
    check_same(Op::linear, first, m, "weight");
    m.require_values("weight");
    if (m.rank() != 2 || m.shape()[1] != first.size(1)) {
      throw Error("weight", "not matrices with equal k", operands(first, m),
                  "need [n, k] of one k");
    }
    parts.push_back(m.to(device));
    views.push_back(parts.back().view());
    mapped = mapped && m.storage()->file_backed();
  }
  // Only file-backed pages can be released, because the system can read them from the file again.
  prepared_ = backend(device_).prepare(views, release && mapped);
  if (mapped || !release) sources_.assign(matrices.begin(), matrices.end());
}

Tensor Weight::matrix(DType dtype) const {
  prepared();
  if (sources_.empty()) {
    throw Error(ErrorKind::runtime, "weight", "the source matrices were released", {},
                "load the model without releasing them");
  }
  std::vector<Tensor> parts;
  for (const Tensor& m : sources_) {
    parts.push_back((is_block(m.dtype()) ? dequantize(m, dtype) : m.to(dtype)).to(device_));
  }
  return parts.size() == 1 ? parts.front() : cat(parts, 0);
}

bool Weight::needs_grad() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Tensor& m) { return m.needs_grad(); });
}

const PreparedWeight& Weight::prepared() const {
  if (prepared_ == nullptr) throw Error("weight", "undefined");
  return *prepared_;
}

Tensor linear(const Tensor& x, const Weight& weight) { return linear(x, weight, {}); }

namespace {

/// The call of a linear without fused steps.
OpCall plain_call(const Tensor& x, const Weight& weight, int64_t each) {
  OpCall call{.op = Op::linear, .inputs = {&x}, .weight = &weight};
  if (each > 0) call.attributes = LinearSteps{.each = each};
  return call;
}

/// Runs the ops of a fused linear separately, so that each is recorded for gradients.
Tensor linear_in_steps(const Tensor& x, const Weight& weight, const FusedLinear& fusion) {
  if (fusion.attention != nullptr) {
    tape::refuse("linear", x, "attention with a cache writes to it");
  }
  Tensor in = x;
  if (fusion.norm.defined()) in = rms_norm(x, fusion.norm, fusion.eps);
  if (fusion.silu_mul) {
    const std::vector<Tensor> halves = x.chunk(2, -1);
    in = silu_mul(halves[0], halves[1]);
  }
  const Tensor out = apply(plain_call(in, weight, fusion.each));
  return fusion.residual.defined() ? out + fusion.residual : out;
}

}  // namespace

Tensor linear(const Tensor& x, const Weight& weight, const FusedLinear& fusion) {
  if (!weight.defined()) throw Error("linear", "undefined weight");
  if (!x.defined()) throw Error("linear", "undefined tensor");
  const int64_t wide = fusion.silu_mul ? 2 * weight.k() : weight.k();
  const int64_t given = fusion.attention != nullptr ? attention_width(x, *fusion.attention)
                        : x.rank() < 1              ? -1
                                                    : x.shape().back();
  const std::string_view kRule =
      "need x [.., k] of f32, f16 or bf16 for a weight [n, k] on its device";
  if (!dtypes::kActivations.contains(x.dtype()) || given != wide || x.device() != weight.device()) {
    throw Error("linear", "operands don't fit",
                fmt::format("x {}, weight {}[{},{}]@{}", x.str(), name(weight.dtype()), weight.n(),
                            weight.k(), weight.device().str()),
                kRule);
  }
  if (fusion.each < 0 || (fusion.each > 0 && (x.rank() != 2 || x.size(0) % fusion.each != 0))) {
    throw Error("linear", "rows aren't whole matrices",
                fmt::format("x {}, matrices of {} rows", x.str(), fusion.each),
                "need x [t, k], t a multiple of the rows of a matrix");
  }
  const bool wants_sinks = fusion.attention != nullptr && fusion.attention->sinks.defined() &&
                           tape::is_wanted(fusion.attention->sinks);
  if (tape::is_wanted(x) || tape::is_wanted(fusion.norm, fusion.residual) || wants_sinks ||
      (weight.needs_grad() && tape::enabled())) {
    return linear_in_steps(x, weight, fusion);
  }
  const bool plain = !fusion.norm.defined() && !fusion.silu_mul && fusion.attention == nullptr &&
                     !fusion.residual.defined();
  if (plain) return apply(plain_call(x, weight, fusion.each));
  const AttentionStep none;
  const AttentionStep& step = fusion.attention != nullptr ? *fusion.attention : none;
  return apply({.op = Op::linear,
                .inputs = {&x, &fusion.norm, &fusion.residual, &step.cos, &step.sin,
                           &step.positions, &step.keys, &step.values, &step.tables, &step.sinks},
                .attributes = LinearSteps{.silu_mul = fusion.silu_mul,
                                          .attention = fusion.attention != nullptr,
                                          .eps = fusion.eps,
                                          .params = step.params,
                                          .each = fusion.each},
                .weight = &weight});
}

Tensor quantize(const Tensor& x, DType dtype) {
  if (!x.defined() || x.dtype() != DType::f32 || !dtypes::kWrittenBlocks.contains(dtype)) {
    throw Error(ErrorKind::type, "quantize", "unsupported conversion",
                fmt::format("{} to {}", x.str(), name(dtype)),
                "f32 to " + names(dtypes::kWrittenBlocks));
  }
  const int32_t block = info(dtype).block_elems;
  if (x.rank() == 0 || x.shape().back() % block != 0) {
    throw Error("quantize", "rows aren't whole blocks",
                fmt::format("{} to {}", x.str(), name(dtype)),
                fmt::format("need a multiple of {}", block));
  }
  if (tape::is_wanted(x)) {
    tape::refuse("quantize", x, "blocks hold rounded numbers: detach its input first");
  }
  return apply({Op::quantize, {&x}, Conversion{dtype}});
}

Tensor dequantize(const Tensor& x, DType dtype) {
  if (!x.defined() || !is_block(x.dtype()) || !dtypes::kActivations.contains(dtype)) {
    throw Error(ErrorKind::type, "dequantize", "unsupported conversion",
                fmt::format("{} to {}", x.str(), name(dtype)), "a block dtype to f32, f16 or bf16");
  }
  return apply({Op::dequantize, {&x}, Conversion{dtype}});
}

namespace {

/// Whether a rope table fits x [.., t, d]: it is [t, r/2], [b, t, r/2], or has x's leading dims
/// before [t, r/2].
bool is_table_of(const Tensor& x, const Tensor& table) {
  const int rank = table.rank();
  if (table.dtype() != DType::f32 || rank < 2 || rank > x.rank()) return false;
  if (rank > 3 && rank != x.rank()) return false;
  for (int d = 0; d + 2 < rank; ++d) {
    if (table.size(d) != x.size(d) && table.size(d) != 1) return false;
  }
  return table.size(-2) == x.size(-2) && table.size(-1) * 2 <= x.size(-1);
}
/// A table [b, t, r/2] with dims of size 1 inserted after the batch, up to x's rank.
Tensor below_batch(const Tensor& x, Tensor table) {
  while (table.rank() > 2 && table.rank() < x.rank()) table = table.unsqueeze(1);
  return table;
}
/// The view of a table, broadcast to x's leading dims.
ConstView repeated(const Tensor& x, const Tensor& table) {
  ConstView view = table.view();
  if (table.rank() > 2) {
    view.layout = view.layout.broadcast_to(x.shape().with(x.rank() - 1, table.size(-1)));
  }
  return view;
}

Tensor rotate(Op op, const Tensor& x, const Tensor& given_cos, const Tensor& given_sin) {
  check_operand(op, x);
  const char* op_name = name(op).data();
  check_device(op_name, x, given_cos);
  check_device(op_name, x, given_sin);
  if (!is_table_of(x, given_cos) || !is_table_of(x, given_sin) ||
      !(given_cos.shape() == given_sin.shape())) {
    throw Error(op_name, "operands don't fit",
                fmt::format("x {}, cos {}, sin {}", x.str(), given_cos.str(), given_sin.str()),
                "need x [.., t, d] and f32 tables [t, r/2], or [b, t, r/2] for x [b, .., t, d], "
                "or [.., t, r/2], with r <= d");
  }
  const Tensor cos = below_batch(x, given_cos), sin = below_batch(x, given_sin);
  return apply({op, {&x, &cos, &sin}});
}

ResultSpec checked_conversion(const OpCall& call) {
  return dense(call.get<Conversion>().dtype, call.x().shape());
}

}  // namespace

namespace bodies {

const OpBody matmul{checked_matmul, run_matmul};
const OpBody linear{checked_linear, run_linear};
const OpBody quantize{checked_conversion,
                      [](Backend& backend, const OpCall& call, const Tensor* out) {
                        backend.quantize(out->mutable_view(), call.x().view());
                      }};
const OpBody dequantize{checked_conversion,
                        [](Backend& backend, const OpCall& call, const Tensor* out) {
                          backend.dequantize(out->mutable_view(), call.x().view());
                        }};
const OpBody rope{[](const OpCall& call) { return like(call.x()); },
                  [](Backend& backend, const OpCall& call, const Tensor* out) {
                    const Tensor& x = call.x();
                    backend.rope(out->mutable_view(), x.view(), repeated(x, call.x(1)),
                                 repeated(x, call.x(2)), call.op == Op::rope_interleaved);
                  }};

/// Operands: qkv, cos, sin, positions, keys, values. Writes to keys and values.
const OpBody cached_attention{
    [](const OpCall& call) {
      const Tensor &qkv = call.x(0), &keys = call.x(4), &values = call.x(5);
      const int64_t g = keys.size(-3), d = keys.size(-1), e = values.size(-1);
      const int64_t queries = qkv.size(1) - g * (d + e);
      return dense(DType::f32, {qkv.size(0), queries / d * e});
    },
    [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.cached_attention(out->mutable_view(), call.x().view(),
                               cached(call, 1, call.get<AttentionParams>()));
    }};

}  // namespace bodies

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rotate(Op::rope, x, cos, sin);
}

Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rotate(Op::rope_interleaved, x, cos, sin);
}

Tensor cached_attention(const Tensor& qkv, const AttentionStep& step) {
  attention_width(qkv, step);
  for (const Tensor* t : {&qkv, &step.cos, &step.sin, &step.keys, &step.values, &step.sinks}) {
    if (t->defined() && tape::is_wanted(*t)) {
      tape::refuse("cached_attention", *t, "it writes to its cache; use attention");
    }
  }
  return apply({.op = Op::attention,
                .inputs = {&qkv, &step.cos, &step.sin, &step.positions, &step.keys, &step.values,
                           &step.tables, &step.sinks},
                .attributes = step.params,
                .called_as = "cached_attention",
                .part = Part::cached});
}

}  // namespace wick
