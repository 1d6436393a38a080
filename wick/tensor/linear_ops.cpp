// Products, quantisation and the fused ops of a transformer: shapes checked, then the backend.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

std::string operands(const Tensor& a, const Tensor& b) {
  return fmt::format("lhs {}, rhs {}", a.str(), b.str());
}

/// Elements of a row that cached_attention makes of one of qkv. Errors: its.
int64_t attention_width(const Tensor& qkv, const AttentionStep& step) {
  const auto& [cos, sin, positions, keys, values, params] = step;
  check_operand(Op::attention, qkv);
  check_operand(Op::attention, keys);
  check_same(Op::attention, keys, values);
  for (const Tensor* t : {&cos, &sin, &positions, &keys}) check_device("cached_attention", qkv, *t);
  const bool ranks = qkv.dtype() == DType::f32 && qkv.rank() == 2 && keys.rank() == 3 &&
                     values.rank() == 3 && positions.rank() == 1 && cos.rank() == 2 &&
                     cos.shape() == sin.shape() && cos.dtype() == DType::f32 &&
                     sin.dtype() == DType::f32 && positions.dtype() == DType::u32;
  const int64_t g = ranks ? keys.size(0) : 0, d = ranks ? keys.size(2) : 0;
  const int64_t rest = ranks ? qkv.size(1) - g * (d + values.size(2)) : 0;
  const bool fits = ranks && g > 0 && d > 0 && values.size(0) == g &&
                    values.size(1) == keys.size(1) && positions.size(0) == qkv.size(0) &&
                    rest > 0 && rest % (g * d) == 0 && 2 * cos.size(1) <= d;
  if (!fits) {
    throw Error("cached_attention", "operands don't fit",
                fmt::format("qkv {}, cos {}, positions {}, keys {}, values {}", qkv.str(),
                            cos.str(), positions.str(), keys.str(), values.str()),
                "need qkv f32 [t, h·d + g·d + g·e], positions u32 [t], keys [g, c, d], values "
                "[g, c, e], h a multiple of g");
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
  return rest / d * values.size(2);
}

CachedAttention views(const AttentionStep& step) {
  return {.cos = step.cos.view(),
          .sin = step.sin.view(),
          .positions = step.positions.view(),
          .keys = step.keys.mutable_view(),
          .values = step.values.mutable_view(),
          .params = step.params};
}

/// Errors: parts of a fused product that don't fit. What attention takes is checked elsewhere.
LinearFusion checked(const FusedLinear& f, const Tensor& x, const Shape& out) {
  LinearFusion fusion;
  const bool attention = f.attention != nullptr;
  if (!f.norm.defined() && !f.silu_mul && !attention && !f.residual.defined()) return fusion;
  const auto f32_here = [&](const Tensor& t) {
    return t.dtype() == DType::f32 && t.device() == x.device();
  };
  const bool one_input = int{f.norm.defined()} + int{f.silu_mul} + int{attention} <= 1;
  const bool norm_fits =
      !f.norm.defined() || (f32_here(f.norm) && f.norm.rank() == 1 && f.norm.size(0) == x.size(-1));
  const bool residual_fits =
      !f.residual.defined() || (f32_here(f.residual) && f.residual.shape() == out);
  if (x.dtype() != DType::f32 || !one_input || !norm_fits || !residual_fits) {
    throw Error("linear", "operands of a fused product don't fit",
                fmt::format("x {}, norm {}, residual {}", x.str(), f.norm.str(), f.residual.str()),
                "need f32, one of norm [k], silu_mul and attention, and a residual of the "
                "result's shape");
  }
  if (f.norm.defined()) {
    fusion.input = LinearFusion::Input::rms_norm;
    fusion.norm = f.norm.view();
    fusion.eps = f.eps;
  } else if (f.silu_mul) {
    fusion.input = LinearFusion::Input::silu_mul;
  } else if (attention) {
    fusion.input = LinearFusion::Input::attention;
  }
  fusion.add = f.residual.defined();
  if (fusion.add) fusion.residual = f.residual.view();
  return fusion;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operand(Op::matmul, a);
  check_same(Op::matmul, a, b);
  if (a.rank() < 2 || b.rank() < 2) {
    throw Error("matmul", "rank below 2", operands(a, b), "unsqueeze a vector first");
  }
  if (a.shape().back(0) != b.shape().back(1)) {
    throw Error(
        "matmul", "inner dimensions differ", operands(a, b),
        fmt::format("need lhs[-1] == rhs[-2] ({} != {})", a.shape().back(0), b.shape().back(1)));
  }
  auto batch = [](const Tensor& t) {
    return Shape(t.shape().dims().first(static_cast<size_t>(t.rank() - 2)));
  };
  const Shape batches = broadcast_shapes("matmul", batch(a), batch(b));
  auto expand = [&](const Tensor& t) {
    std::vector<int64_t> dims(batches.dims().begin(), batches.dims().end());
    dims.push_back(t.shape().back(1));
    dims.push_back(t.shape().back(0));
    return t.detach().broadcast_to(Shape(dims));
  };
  std::vector<int64_t> dims(batches.dims().begin(), batches.dims().end());
  dims.push_back(a.shape().back(1));
  dims.push_back(b.shape().back(0));
  Tensor out = Tensor::empty(Shape(dims), a.dtype(), a.device());
  backend(a.device()).matmul(out.mutable_view(), expand(a).view(), expand(b).view());
  if (tape::is_wanted(a, b)) tape::remember(out, Op::matmul, {a, b});
  return out;
}

Weight::Weight(std::span<const Tensor> matrices, Device device, bool release) : device_(device) {
  if (matrices.empty()) throw Error("weight", "no matrices");
  const Tensor& first = matrices.front();
  std::vector<Tensor> parts;
  std::vector<ConstView> views;
  for (const Tensor& m : matrices) {
    check_operand(Op::linear, m, "weight");
    check_same(Op::linear, first, m, "weight");
    if (m.rank() != 2 || m.shape()[1] != first.size(1)) {
      throw Error("weight", "not matrices of one width", operands(first, m),
                  "need [n, k] of one k");
    }
    parts.push_back(m.to(device));
    views.push_back(parts.back().view());
    // Pages of any other memory would come back as zeros.
    release = release && m.storage()->file_backed();
  }
  prepared_ = backend(device_).prepare(views, release);
  sources_.assign(matrices.begin(), matrices.end());
}

Tensor Weight::matrix(DType dtype) const {
  prepared();
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

/// The ops that a fused product stands for, one after another, each remembered.
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
  Tensor out = Tensor::empty(in.shape().with(in.rank() - 1, weight.n()), in.dtype(), in.device());
  backend(in.device()).linear(out.mutable_view(), in.view(), weight.prepared(), {});
  if (tape::is_wanted(in) || (weight.needs_grad() && tape::enabled())) {
    std::vector<Tensor> inputs = {in};
    if (weight.needs_grad()) {
      inputs.insert(inputs.end(), weight.sources().begin(), weight.sources().end());
    }
    tape::remember(out, Op::linear, std::move(inputs), weight);
  }
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
  if (tape::is_wanted(x) || tape::is_wanted(fusion.norm, fusion.residual) ||
      (weight.needs_grad() && tape::enabled())) {
    return linear_in_steps(x, weight, fusion);
  }
  Tensor out = Tensor::empty(x.shape().with(x.rank() - 1, weight.n()), x.dtype(), x.device());
  LinearFusion checked_fusion = checked(fusion, x, out.shape());
  CachedAttention attention;
  if (fusion.attention != nullptr) {
    attention = views(*fusion.attention);
    checked_fusion.attention = &attention;
  }
  backend(x.device()).linear(out.mutable_view(), x.view(), weight.prepared(), checked_fusion);
  return out;
}

Tensor quantize(const Tensor& x, DType dtype) {
  if (!x.defined() || x.dtype() != DType::f32 || !dtypes::kWrittenBlocks.contains(dtype)) {
    throw Error(ErrorKind::type, "quantize", "not this conversion",
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
  Tensor out = Tensor::empty(x.shape(), dtype, x.device());
  backend(x.device()).quantize(out.mutable_view(), x.view());
  return out;
}

Tensor dequantize(const Tensor& x, DType dtype) {
  if (!x.defined() || !is_block(x.dtype()) || !dtypes::kActivations.contains(dtype)) {
    throw Error(ErrorKind::type, "dequantize", "not this conversion",
                fmt::format("{} to {}", x.str(), name(dtype)), "a block dtype to f32, f16 or bf16");
  }
  Tensor out = Tensor::empty(x.shape(), dtype, x.device());
  backend(x.device()).dequantize(out.mutable_view(), x.view());
  return out;
}

namespace {

/// Whether a table of rope is one of x's [t, r/2], one a batch, or has x's dims in front.
bool is_table_of(const Tensor& x, const Tensor& table) {
  const int rank = table.rank();
  if (table.dtype() != DType::f32 || rank < 2 || rank > x.rank()) return false;
  if (rank > 3 && rank != x.rank()) return false;
  for (int d = 0; d + 2 < rank; ++d) {
    if (table.size(d) != x.size(d) && table.size(d) != 1) return false;
  }
  return table.size(-2) == x.size(-2) && table.size(-1) * 2 <= x.size(-1);
}
/// A table a batch gets dims of one for all that lies between.
Tensor below_batch(const Tensor& x, Tensor table) {
  while (table.rank() > 2 && table.rank() < x.rank()) table = table.unsqueeze(1);
  return table;
}
/// A table as often as x's dims in front of it say.
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
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device())
      .rope(out.mutable_view(), x.view(), repeated(x, cos), repeated(x, sin),
            op == Op::rope_interleaved);
  if (tape::is_wanted(x) || tape::is_wanted(cos, sin)) tape::remember(out, op, {x, cos, sin});
  return out;
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rotate(Op::rope, x, cos, sin);
}

Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  return rotate(Op::rope_interleaved, x, cos, sin);
}

Tensor cached_attention(const Tensor& qkv, const AttentionStep& step) {
  const int64_t wide = attention_width(qkv, step);
  for (const Tensor* t : {&qkv, &step.cos, &step.sin, &step.keys, &step.values}) {
    if (tape::is_wanted(*t)) {
      tape::refuse("cached_attention", *t, "it writes to its cache; use attention");
    }
  }
  Tensor out = Tensor::empty({qkv.size(0), wide}, DType::f32, qkv.device());
  backend(qkv.device()).cached_attention(out.mutable_view(), qkv.view(), views(step));
  return out;
}

}  // namespace wick
