// Recurrences over the rows of sequences: causal_conv, ssm_scan and gated_delta_scan.
#include "wick/tensor/recurrent_ops.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/fused.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/select.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

constexpr int kRowsDim[] = {2};

/// A named operand of a call, for error messages.
struct Named {
  const char* name;
  const Tensor& tensor;
};

std::string listed(std::initializer_list<Named> operands) {
  std::string all;
  for (const auto& [name, tensor] : operands) {
    if (!tensor.defined()) continue;
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", name, tensor.str());
  }
  return all;
}

/// Errors: an operand is missing, or has another dtype or device; the state can't be written.
void check_recurrence(Op op, std::initializer_list<Named> operands, const Tensor& state,
                      const Tensor& slots) {
  const char* const as = name(op).data();
  const Tensor& first = operands.begin()->tensor;
  for (const auto& [_, tensor] : operands) {
    check_operand(op, tensor);
    check_device(as, first, tensor);
  }
  check_device(as, first, state);
  check_device(as, first, slots);
  if (tape::is_wanted(state)) tape::refuse(as, state, "it writes to its state; detach it");
  if (!state.storage()->writable()) {
    throw Error(ErrorKind::runtime, as, "the state is read-only", state.str());
  }
}

/// Whether the operands' rows are those of whole sequences, and the state's rows have this shape.
bool sequences_fit(int64_t rows, const Tensor& state, const Tensor& slots, const Shape& of_row) {
  if (slots.rank() != 1 || slots.dtype() != DType::u32 || state.dtype() != DType::f32 ||
      state.rank() != of_row.rank() + 1 || !state.layout().is_contiguous()) {
    return false;
  }
  for (int d = 0; d < of_row.rank(); ++d) {
    if (state.size(d + 1) != of_row[d]) return false;
  }
  return slots.size(0) > 0 ? rows % slots.size(0) == 0 : rows == 0;
}

bool any_wanted(std::initializer_list<Named> operands, const Tensor& optional) {
  for (const auto& [_, tensor] : operands) {
    if (tape::is_wanted(tensor)) return true;
  }
  return optional.defined() && tape::is_wanted(optional);
}

Tensor in_f32(const Tensor& x) { return x.defined() ? x.to(DType::f32) : x; }

/// The operands of the scans in f32; d may be undefined.
struct SsmTensors {
  Tensor x, dt, a, b, c, d;
};
struct DeltaTensors {
  Tensor q, k, v, g, beta;
};

ConstView optional_view(const Tensor& x) { return x.defined() ? x.view() : ConstView{}; }

Recurrence recurrence_of(const OpCall& call) {
  return {call.x(kRecurrentState).mutable_view(), call.x(kRecurrentState + 1).view()};
}

/// The states of a call's sequences, [b, ..].
Tensor states_of(const char* op, const Tensor& state, const Tensor& slots) {
  return index_select_as(op, state, slots);
}

/// Writes the states [b, ..] of a call's sequences.
void store_states(const Tensor& state, const Tensor& slots, const Tensor& states) {
  Shape ones = Shape{slots.size(0)};
  for (int d = 1; d < states.rank(); ++d) ones = ones.with_inserted(d, 1);
  const Tensor ids = slots.reshape(ones).broadcast_to(states.shape());
  const Tensor all = scatter(state, ids, states.detach(), 0);
  apply_into({Op::copy, {&all}}, state);
}

/// x [b, each, g, m] at row i → [b, h, m]: each group's vector for all of its heads.
Tensor of_heads(const Tensor& x, int64_t i, int64_t heads) {
  const Tensor row = x.narrow(1, i, 1);  // [b, 1, g, m]
  const int64_t b = row.size(0), g = row.size(2), m = row.size(3);
  return row.reshape({b, g, 1, m}).broadcast_to({b, g, heads / g, m}).reshape({b, heads, m});
}

/// x [t, ..] → [b, each, ..]
Tensor by_sequence(const Tensor& x, int64_t sequences) {
  Shape shape = Shape{sequences, x.size(0) / sequences};
  for (int d = 1; d < x.rank(); ++d) shape = shape.with_inserted(d + 1, x.size(d));
  return x.reshape(shape);
}

/// Joins each row's y [b, h, p] → [t, h, p].
Tensor joined(const std::vector<Tensor>& ys, const Shape& shape) {
  std::vector<Tensor> rows;
  for (const Tensor& y : ys) rows.push_back(y.unsqueeze(1));
  return cat(rows, 1).reshape(shape);
}

Tensor composed_conv(const Tensor& x, const Tensor& weight, const Tensor& state,
                     const Tensor& slots, const Tensor& bias) {
  const int64_t k = weight.size(1), each = x.size(0) / slots.size(0);
  const Tensor parts[] = {states_of("causal_conv", state, slots), by_sequence(x, slots.size(0))};
  const Tensor all = k == 1 ? parts[1] : cat(parts, 1);  // [b, k - 1 + each, c]
  Tensor y;
  for (int64_t j = 0; j < k; ++j) {
    const Tensor term = all.narrow(1, j, each) * weight.narrow(1, j, 1).squeeze(1);
    y = y.defined() ? y + term : bias.defined() ? bias + term : term;
  }
  if (k > 1) store_states(state, slots, all.narrow(1, each, k - 1));
  return y.reshape(x.shape());
}

Tensor composed_ssm(const SsmTensors& of, const Tensor& state, const Tensor& slots) {
  const int64_t sequences = slots.size(0), each = of.x.size(0) / sequences, h = of.x.size(1);
  const Tensor x = by_sequence(of.x, sequences), dt = by_sequence(of.dt, sequences);
  const Tensor b = by_sequence(of.b, sequences), c = by_sequence(of.c, sequences);
  Tensor s = states_of("ssm_scan", state, slots);  // [b, h, m, p]
  std::vector<Tensor> ys;
  for (int64_t i = 0; i < each; ++i) {
    const Tensor xi = x.narrow(1, i, 1).squeeze(1), step = dt.narrow(1, i, 1).squeeze(1);
    const Tensor decay = exp(step * of.a).unsqueeze(-1).unsqueeze(-1);
    const Tensor input = (step.unsqueeze(-1) * xi).unsqueeze(2);  // [b, h, 1, p]
    s = s * decay + of_heads(b, i, h).unsqueeze(-1) * input;
    Tensor y = sum(s * of_heads(c, i, h).unsqueeze(-1), kRowsDim);
    if (of.d.defined()) y = y + of.d.unsqueeze(-1) * xi;
    ys.push_back(y);
  }
  store_states(state, slots, s);
  return joined(ys, of.x.shape());
}

Tensor composed_delta(const DeltaTensors& of, const Tensor& state, const Tensor& slots) {
  const int64_t sequences = slots.size(0), each = of.v.size(0) / sequences, h = of.v.size(1);
  const Tensor q = by_sequence(of.q, sequences), k = by_sequence(of.k, sequences);
  const Tensor v = by_sequence(of.v, sequences), g = by_sequence(of.g, sequences);
  const Tensor beta = by_sequence(of.beta, sequences);
  Tensor s = states_of("gated_delta_scan", state, slots);  // [b, h, m, e]
  std::vector<Tensor> ys;
  for (int64_t i = 0; i < each; ++i) {
    const auto row = [i](const Tensor& x) { return x.narrow(1, i, 1).squeeze(1); };
    const Tensor ki = of_heads(k, i, h).unsqueeze(-1), qi = of_heads(q, i, h).unsqueeze(-1);
    s = s * exp(row(g)).unsqueeze(-1).unsqueeze(-1);
    const Tensor change = (row(v) - sum(s * ki, kRowsDim)) * row(beta).unsqueeze(-1);
    s = s + ki * change.unsqueeze(2);
    ys.push_back(sum(s * qi, kRowsDim));
  }
  store_states(state, slots, s);
  return joined(ys, of.v.shape());
}

}  // namespace

namespace bodies {

const OpBody causal_conv{[](const OpCall& call) { return like(call.x()); },
                         [](Backend& backend, const OpCall& call, const Tensor* out) {
                           backend.causal_conv(out->mutable_view(), call.x().view(),
                                               call.x(3).view(), optional_view(call.x(4)),
                                               recurrence_of(call));
                         }};

const OpBody ssm_scan{[](const OpCall& call) { return like(call.x()); },
                      [](Backend& backend, const OpCall& call, const Tensor* out) {
                        backend.ssm_scan(out->mutable_view(),
                                         {.x = call.x().view(),
                                          .dt = call.x(3).view(),
                                          .a = call.x(4).view(),
                                          .b = call.x(5).view(),
                                          .c = call.x(6).view(),
                                          .d = optional_view(call.x(7))},
                                         recurrence_of(call));
                      }};

const OpBody gated_delta_scan{[](const OpCall& call) { return like(call.x()); },
                              [](Backend& backend, const OpCall& call, const Tensor* out) {
                                backend.gated_delta_scan(out->mutable_view(),
                                                         {.q = call.x(3).view(),
                                                          .k = call.x(4).view(),
                                                          .v = call.x().view(),
                                                          .g = call.x(5).view(),
                                                          .beta = call.x(6).view()},
                                                         recurrence_of(call));
                              }};

}  // namespace bodies

Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& state, const Tensor& slots,
                   const Tensor& bias) {
  const std::initializer_list<Named> operands = {{"x", x}, {"weight", weight}};
  check_recurrence(Op::causal_conv, operands, state, slots);
  if (bias.defined()) {
    check_operand(Op::causal_conv, bias);
    check_device("causal_conv", x, bias);
  }
  const bool fits = x.rank() == 2 && weight.rank() == 2 && weight.size(0) == x.size(1) &&
                    weight.size(1) > 0 &&
                    sequences_fit(x.size(0), state, slots, {weight.size(1) - 1, x.size(1)}) &&
                    (!bias.defined() || (bias.rank() == 1 && bias.size(0) == x.size(1)));
  if (!fits) {
    throw Error(
        "causal_conv", "operands don't fit",
        listed({{"x", x}, {"weight", weight}, {"bias", bias}, {"state", state}, {"slots", slots}}),
        "need x [t,c], weight [c,k], bias [c], a dense f32 state [s,k-1,c] and slots u32 "
        "[b], t a multiple of b");
  }
  if (x.elems() == 0) return Tensor::empty(x.shape(), x.dtype(), x.device());
  const Tensor x32 = in_f32(x), w32 = in_f32(weight), bias32 = in_f32(bias);
  state.storage()->count_write();
  const Tensor y = any_wanted(operands, bias)
                       ? composed_conv(x32, w32, state, slots, bias32)
                       : apply({Op::causal_conv, {&x32, &state, &slots, &w32, &bias32}});
  return y.to(x.dtype());
}

Tensor ssm_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                const Tensor& c, const Tensor& state, const Tensor& slots, const Tensor& d) {
  const std::initializer_list<Named> operands = {
      {"x", x}, {"dt", dt}, {"a", a}, {"b", b}, {"c", c}};
  check_recurrence(Op::ssm_scan, operands, state, slots);
  if (d.defined()) {
    check_operand(Op::ssm_scan, d);
    check_device("ssm_scan", x, d);
  }
  const auto dims_fit = [&] {
    const int64_t t = x.size(0), h = x.size(1), g = b.size(1);
    return dt.size(0) == t && dt.size(1) == h && a.size(0) == h && b.size(0) == t && g > 0 &&
           h % g == 0 && sequences_fit(t, state, slots, {h, b.size(2), x.size(2)}) &&
           (!d.defined() || (d.rank() == 1 && d.size(0) == h));
  };
  if (x.rank() != 3 || dt.rank() != 2 || a.rank() != 1 || b.rank() != 3 ||
      !(b.shape() == c.shape()) || !dims_fit()) {
    throw Error(
        "ssm_scan", "operands don't fit",
        listed({{"x", x},
                {"dt", dt},
                {"a", a},
                {"b", b},
                {"c", c},
                {"d", d},
                {"state", state},
                {"slots", slots}}),
        "need x [t,h,p], dt [t,h], a and d [h], b and c [t,g,m], h a multiple of g, a dense "
        "f32 state [s,h,m,p] and slots u32 [n], t a multiple of n");
  }
  if (x.elems() == 0) return Tensor::empty(x.shape(), x.dtype(), x.device());
  const SsmTensors of{in_f32(x), in_f32(dt), in_f32(a), in_f32(b), in_f32(c), in_f32(d)};
  state.storage()->count_write();
  const Tensor y =
      any_wanted(operands, d)
          ? composed_ssm(of, state, slots)
          : apply({Op::ssm_scan, {&of.x, &state, &slots, &of.dt, &of.a, &of.b, &of.c, &of.d}});
  return y.to(x.dtype());
}

Tensor gated_delta_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                        const Tensor& beta, const Tensor& state, const Tensor& slots) {
  const std::initializer_list<Named> operands = {
      {"q", q}, {"k", k}, {"v", v}, {"g", g}, {"beta", beta}};
  check_recurrence(Op::gated_delta_scan, operands, state, slots);
  const auto dims_fit = [&] {
    const int64_t t = v.size(0), h = v.size(1), r = q.size(1);
    return q.size(0) == t && r > 0 && h % r == 0 && g.size(0) == t && g.size(1) == h &&
           sequences_fit(t, state, slots, {h, q.size(2), v.size(2)});
  };
  if (v.rank() != 3 || q.rank() != 3 || g.rank() != 2 || !(q.shape() == k.shape()) ||
      !(g.shape() == beta.shape()) || !dims_fit()) {
    throw Error("gated_delta_scan", "operands don't fit",
                listed({{"q", q},
                        {"k", k},
                        {"v", v},
                        {"g", g},
                        {"beta", beta},
                        {"state", state},
                        {"slots", slots}}),
                "need q and k [t,r,m], v [t,h,e], g and beta [t,h], h a multiple of r, a dense f32 "
                "state [s,h,m,e] and slots u32 [n], t a multiple of n");
  }
  if (v.elems() == 0) return Tensor::empty(v.shape(), v.dtype(), v.device());
  const DeltaTensors of{in_f32(q), in_f32(k), in_f32(v), in_f32(g), in_f32(beta)};
  state.storage()->count_write();
  const Tensor y =
      any_wanted(operands, {})
          ? composed_delta(of, state, slots)
          : apply({Op::gated_delta_scan, {&of.v, &state, &slots, &of.q, &of.k, &of.g, &of.beta}});
  return y.to(v.dtype());
}

}  // namespace wick
