// grouped_linear: one op that reads its ids on the device. If weights have several dtypes or a
// gradient is needed, the host sorts the rows by expert and runs one linear for each expert.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/fused.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

constexpr const char* kOp = "grouped_linear";

void check(const Tensor& x, std::span<const Weight> experts, const Tensor& chosen,
           const ExpertRows& rows) {
  check_operand(Op::linear, x, kOp);
  if (!chosen.defined()) throw Error(kOp, "undefined tensor");
  check_device(kOp, x, chosen);
  if (experts.empty()) throw Error(kOp, "no weights");
  if (x.rank() != 2 || chosen.rank() != 2 || chosen.size(0) != x.size(0) ||
      chosen.dtype() != DType::u32 || !dtypes::kActivations.contains(x.dtype())) {
    throw Error(kOp, "operands don't fit", fmt::format("x {}, chosen {}", x.str(), chosen.str()),
                "need x [t, k] of f32, f16 or bf16 and chosen u32 [t, n]");
  }
  for (const Weight& w : experts) {
    if (w.n() != experts.front().n() || w.k() != x.size(1) || w.device() != x.device()) {
      throw Error(kOp, "weights differ in size or device",
                  fmt::format("[{},{}]@{} and [{},{}]@{}", experts.front().n(), x.size(1),
                              x.device().str(), w.n(), w.k(), w.device().str()));
    }
  }
  const int64_t each = rows.each == 0 ? x.size(0) : rows.each;
  if (rows.each < 0 || rows.of_token < 1 || each % rows.of_token != 0 ||
      (each > 0 && x.size(0) % each != 0)) {
    throw Error(kOp, "rows aren't whole sequences",
                fmt::format("x {}, sequences of {} rows, tokens of {} rows", x.str(), rows.each,
                            rows.of_token),
                "need x [t, k], t a multiple of a sequence's rows, and these of a token's rows");
  }
}

/// Sorts rows by expert on the host, runs each expert once, and puts the results back in order.
Tensor by_expert(const Tensor& x, std::span<const Weight> experts, const Tensor& chosen) {
  chosen.require_values(kOp);
  const int64_t t = x.size(0), n = chosen.size(1), width = experts.front().n();
  const std::vector<uint32_t> ids = chosen.to_vector<uint32_t>();
  std::vector<std::vector<uint32_t>> rows(experts.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= experts.size()) {
      throw Error(ErrorKind::index, kOp, "index of a weight out of range",
                  fmt::format("{} of {}", ids[i], experts.size()));
    }
    rows[ids[i]].push_back(static_cast<uint32_t>(i));
  }
  std::vector<Tensor> parts;
  std::vector<uint32_t> places(ids.size());
  uint32_t place = 0;
  for (size_t e = 0; e < experts.size(); ++e) {
    if (rows[e].empty()) continue;
    std::vector<uint32_t> tokens;
    for (uint32_t i : rows[e]) {
      tokens.push_back(i / static_cast<uint32_t>(n));
      places[i] = place++;
    }
    const Tensor of_expert =
        Tensor::from(tokens, Shape{static_cast<int64_t>(tokens.size())}, x.device());
    parts.push_back(linear(index_select(x, of_expert, 0), experts[e], FusedLinear{.each = 1}));
  }
  if (parts.empty()) return Tensor::zeros({t, n, width}, x.dtype(), x.device());
  return index_select(cat(parts, 0), Tensor::from(places, Shape{t * n}, x.device()), 0)
      .reshape({t, n, width});
}

}  // namespace

Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts, const Tensor& chosen) {
  return grouped_linear(x, experts, chosen, {});
}

Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts, const Tensor& chosen,
                      const ExpertRows& rows) {
  check(x, experts, chosen, rows);
  const bool one_dtype = std::all_of(experts.begin(), experts.end(), [&](const Weight& w) {
    return w.dtype() == experts.front().dtype();
  });
  const bool grad =
      tape::is_wanted(x) ||
      (tape::enabled() &&
       std::any_of(experts.begin(), experts.end(), [](const Weight& w) { return w.needs_grad(); }));
  // A trace records the op even if a gradient is needed: such functions are called, not replayed.
  const bool sorts = !one_dtype || (recorder() == nullptr && grad);
  if (sorts) return by_expert(x, experts, chosen);
  return apply({.op = Op::linear,
                .inputs = {&x, &chosen},
                .attributes = LinearSteps{.each = rows.each, .of_token = rows.of_token},
                .called_as = kOp,
                .part = Part::grouped,
                .experts = experts});
}

namespace bodies {

const OpBody grouped_linear{
    [](const OpCall& call) {
      return dense(call.x().dtype(),
                   {call.x().size(0), call.x(1).size(1), call.experts.front().n()});
    },
    [](Backend& backend, const OpCall& call, const Tensor* out) {
      std::vector<const PreparedWeight*> experts;
      experts.reserve(call.experts.size());
      for (const Weight& w : call.experts) experts.push_back(&w.prepared());
      const auto& steps = call.get<LinearSteps>();
      backend.grouped_linear(out->mutable_view(), call.x().view(), experts, call.x(1).view(),
                             {steps.silu_mul, steps.each, steps.of_token});
    }};

// Graphs alone have calls of the following three (graph/fuse_experts.cpp), with checked operands.
const OpBody route_experts{
    [](const OpCall& call) {
      return dense(DType::f32, {call.x().size(0), call.get<ExpertRouting>().used});
    },
    [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.route_experts(out[0].mutable_view(), out[1].mutable_view(), call.x(0).view(),
                            view_of(call.x(1)), call.get<ExpertRouting>());
    }};
const OpBody gate_experts{[](const OpCall& call) {
                            const Shape& y = call.x().shape();
                            return dense(DType::f32, y.with(2, y.back() / 2));
                          },
                          [](Backend& backend, const OpCall& call, const Tensor* out) {
                            const auto& numbers = call.get<Numbers>();
                            backend.gate_experts(out->mutable_view(), call.x(0).view(),
                                                 {view_of(call.x(1)), view_of(call.x(2))},
                                                 numbers.p.f, numbers.q.f);
                          }};
const OpBody combine_experts{[](const OpCall& call) {
                               return dense(DType::f32, {call.x().size(0), call.x().size(2)});
                             },
                             [](Backend& backend, const OpCall& call, const Tensor* out) {
                               backend.combine_experts(out->mutable_view(), call.x(0).view(),
                                                       call.x(1).view(), view_of(call.x(2)),
                                                       {view_of(call.x(3)), view_of(call.x(4))});
                             }};

}  // namespace bodies

}  // namespace wick
