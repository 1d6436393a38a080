// The table of gradient rules: op → vector-Jacobian product. Rules are composed of functions over
// tensors, so gradients can be differentiated. A static assertion checks that the table has a rule
// for exactly the rows of ops.def that declare one.

#include "wick/tensor/gradients.h"

#include <array>
#include <numbers>

namespace wick::tape {
namespace {

struct OpRow {
  Op op;
  OpRule rule;
};
constexpr Keeps kKeepsResult = Keeps::result;

// clang-format off
#define WICK_GRADIENT(body) [](const Vjp& v) body
constexpr OpRow kRows[] = {
    {Op::copy, {WICK_GRADIENT({ v.to_x(v.grad()); })}},
    {Op::cast, {WICK_GRADIENT({ v.to_x(v.grad().to(v.x().dtype())); })}},
    {Op::cat, {cat_rule}},
    {Op::pad, {pad_rule}},
    {Op::roll, {roll_rule}},
    {Op::repeat, {repeat_rule}},
    {Op::tril, {tril_rule}},
    {Op::triu, {triu_rule}},

    {Op::neg, {WICK_GRADIENT({ v.to_x(neg(v.grad())); })}},
    {Op::abs, {WICK_GRADIENT({ v.to_x(v.grad() * sign(v.x())); })}},
    {Op::sqr, {WICK_GRADIENT({ v.to_x(v.grad() * times(v.x(), 2)); })}},
    {Op::sqrt, {WICK_GRADIENT({ v.to_x(times(v.grad(), 0.5) / v.y()); }), kKeepsResult}},
    {Op::rsqrt, {WICK_GRADIENT({ v.to_x(times(v.grad() * v.y(), -0.5) / v.x()); }), kKeepsResult}},
    {Op::recip, {WICK_GRADIENT({ v.to_x(neg(v.grad() * sqr(v.y()))); }), kKeepsResult}},
    {Op::exp, {WICK_GRADIENT({ v.to_x(v.grad() * v.y()); }), kKeepsResult}},
    {Op::log, {WICK_GRADIENT({ v.to_x(v.grad() / v.x()); })}},
    {Op::tanh, {WICK_GRADIENT({ v.to_x(v.grad() * one_less(sqr(v.y()))); }), kKeepsResult}},
    {Op::sigmoid, {WICK_GRADIENT({ v.to_x(v.grad() * v.y() * one_less(v.y())); }), kKeepsResult}},
    {Op::silu, {silu_rule}},
    {Op::relu, {relu_rule}},
    {Op::sign, {step_rule}},
    {Op::floor, {step_rule}},
    {Op::ceil, {step_rule}},
    {Op::round, {step_rule}},
    {Op::sin, {WICK_GRADIENT({ v.to_x(v.grad() * cos(v.x())); })}},
    {Op::cos, {WICK_GRADIENT({ v.to_x(neg(v.grad() * sin(v.x()))); })}},
    {Op::log1p, {WICK_GRADIENT({ v.to_x(v.grad() / plus(v.x(), 1.0)); })}},
    {Op::expm1, {WICK_GRADIENT({ v.to_x(v.grad() * exp(v.x())); })}},
    {Op::erf, {WICK_GRADIENT({
        v.to_x(v.grad() * times(exp(neg(sqr(v.x()))), 2 * std::numbers::inv_sqrtpi)); })}},
    {Op::normcdf, {normcdf_rule}},
    {Op::gelu, {gelu_rule}},
    {Op::gelu_erf, {gelu_erf_rule}},

    {Op::affine, {WICK_GRADIENT({ v.to_x(affine(v.grad(), v.get<Numbers>().p, 0.0)); })}},
    {Op::clamp, {clamp_rule}},
    {Op::powf, {powf_rule}},
    {Op::elu, {elu_rule}},

    {Op::add, {WICK_GRADIENT({ v.to(0, v.grad()); v.to(1, v.grad()); })}},
    {Op::sub, {WICK_GRADIENT({
        v.to(0, v.grad());
        v.to_if_wanted(1, [&] { return neg(v.grad()); }); })}},
    {Op::mul, {WICK_GRADIENT({
        v.to_if_wanted(0, [&] { return v.grad() * v.x(1); });
        v.to_if_wanted(1, [&] { return v.grad() * v.x(0); }); })}},
    {Op::div, {WICK_GRADIENT({
        v.to_if_wanted(0, [&] { return v.grad() / v.x(1); });
        v.to_if_wanted(1, [&] { return neg(v.grad() * v.y() / v.x(1)); }); }), kKeepsResult}},
    {Op::maximum, {maximum_rule}},
    {Op::minimum, {minimum_rule}},
    {Op::rem, {rem_rule}},
    {Op::pow, {pow_rule, kKeepsResult}},
    {Op::atan2, {atan2_rule}},
    {Op::silu_mul, {silu_mul_rule}},
    {Op::where, {where_rule}},

    {Op::sum, {sum_rule}},
    {Op::prod, {prod_rule}},
    {Op::mean, {mean_rule}},
    {Op::max, {best_rule, kKeepsResult}},
    {Op::min, {best_rule, kKeepsResult}},

    {Op::index_select, {index_select_rule}},
    {Op::gather, {gather_rule}},
    {Op::scatter, {scatter_rule}},
    {Op::scatter_add, {scatter_add_rule}},
    {Op::index_add, {index_add_rule}},
    {Op::sort, {sort_rule, Keeps::second}},
    {Op::topk, {sort_rule, Keeps::second}},
    {Op::cumsum, {cumsum_rule}},
    {Op::cumprod, {cumprod_rule}},

    {Op::matmul, {matmul_rule}},
    {Op::linear, {linear_rule}},
    {Op::conv2d, {conv2d_rule}},
    {Op::conv_transpose2d, {conv_transpose2d_rule}},
    {Op::max_pool2d, {max_pool2d_rule}},
    {Op::avg_pool2d, {avg_pool2d_rule}},
    {Op::upsample_nearest2d, {upsample_nearest2d_rule}},
    {Op::upsample_bilinear2d, {upsample_bilinear2d_rule}},

    {Op::softmax, {softmax_rule, kKeepsResult}},
    {Op::log_softmax, {log_softmax_rule, kKeepsResult}},
    {Op::rms_norm, {rms_norm_rule}},
    {Op::layer_norm, {layer_norm_rule}},
    {Op::group_norm, {group_norm_rule}},
    {Op::batch_norm, {batch_norm_rule}},
    {Op::rope, {rope_rule}},
    {Op::rope_interleaved, {rope_interleaved_rule}},
    {Op::attention, {attention_rule}},
};
// clang-format on

/// Whether each op whose row declares a rule has one, and no other op has any.
constexpr bool complete(std::span<const OpRow> rows) {
  std::array<int, kOpCount> rules{};
  for (const OpRow& row : rows) {
    if (row.rule.rule == nullptr) return false;
    ++rules[static_cast<size_t>(row.op)];
  }
  for (int op = 0; op < kOpCount; ++op) {
    const int wanted = info(static_cast<Op>(op)).gradient == Gradient::rule ? 1 : 0;
    if (rules[static_cast<size_t>(op)] != wanted) return false;
  }
  return true;
}
static_assert(complete(kRows));

constexpr auto kByOp = [] {
  std::array<OpRule, kOpCount> rules;
  for (const OpRow& row : kRows) rules[static_cast<size_t>(row.op)] = row.rule;
  return rules;
}();

}  // namespace

const OpRule& rule_of(Op op, Part part) {
  static constexpr OpRule kNone, kConvWeight{conv2d_weight_rule}, kMaxPool{max_pool2d_grad_rule},
      kAvgPool{avg_pool2d_grad_rule}, kNearest{upsample_nearest2d_grad_rule},
      kBilinear{upsample_bilinear2d_grad_rule}, kCustom{custom_rule, Keeps::result};
  switch (part) {
    case Part::result:
      return kByOp[static_cast<size_t>(op)];
    case Part::cached:
    case Part::paged:
    case Part::grouped:
    case Part::pair:
    case Part::summed:
    case Part::routed:
    case Part::gated:
    case Part::combined:
    case Part::custom_in_place:
      return kNone;
    case Part::custom:
      return kCustom;
    case Part::weight_gradient:
      return kConvWeight;
    case Part::input_gradient:
      break;
  }
  if (op == Op::attention)
    return kNone;  // attention_rule makes no such call if it's differentiated
  if (op == Op::max_pool2d) return kMaxPool;
  if (op == Op::avg_pool2d) return kAvgPool;
  return op == Op::upsample_nearest2d ? kNearest : kBilinear;
}

}  // namespace wick::tape
