// Functions that are declared by hand in C++, one line each.

#include <cmath>
#include <optional>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// A tensor or a prepared weight.
Tensor linear_any(const Tensor& x, nb::handle weight) {
  if (nb::isinstance<Weight>(weight)) {
    const auto& prepared = nb::cast<const Weight&>(weight);
    return unlocked([&] { return linear(x, prepared); }, x);
  }
  if (!nb::isinstance<Tensor>(weight)) throw nb::type_error("linear: need a Weight or a Tensor");
  const auto& matrix = nb::cast<const Tensor&>(weight);
  return unlocked([&] { return linear(x, Weight(matrix)); }, x, matrix);
}

Tensor attention_of(const Tensor& q, const Tensor& k, const Tensor& v, std::optional<float> scale,
                    bool causal, int64_t window, float soft_cap) {
  AttentionParams params;
  params.scale = scale.value_or(
      q.rank() > 0 && q.size(-1) > 0 ? 1.0f / std::sqrt(static_cast<float>(q.size(-1))) : 1.0f);
  params.causal = causal;
  params.window = window;
  params.soft_cap = soft_cap;
  return unlocked([&] { return attention(q, k, v, params); }, q, k);
}

void bind_weight(nb::module_& m) {
  nb::class_<Weight>(m, "Weight",
                     "A weight matrix [n, k] in the form its device multiplies fastest, for "
                     "wick.linear.\nfloat32 float16 bfloat16 q4_0 q4_1 q5_0 q8_0 q4_k q6_k.")
      .def(
          "__init__",
          [](Weight* self, const Tensor& matrix) {
            const nb::gil_scoped_release released;
            new (self) Weight(matrix);
          },
          "matrix"_a)
      .def_prop_ro("n", &Weight::n, "Rows: outputs of linear.")
      .def_prop_ro("k", &Weight::k, "Columns: inputs of linear.")
      .def_prop_ro(
          "dtype", [](const Weight& w) { return dtype_object(w.dtype()); },
          nb::sig("def dtype(self) -> DType"))
      .def_prop_ro("device", &Weight::device);
}

}  // namespace

void bind_move_ops(OpBinder& ops) {
  for (const char* name : {"full", "zeros", "ones", "zeros_like", "ones_like"}) {
    served()[Op::fill].emplace_back(name);
  }
  served()[Op::iota].emplace_back("arange");
  ops.add_as(
      Op::copy, "copy", [](const Tensor& x) { return unlocked([&] { return x.clone(); }, x); },
      "A dense copy of its own.", "x"_a);
  ops.add(Op::copy, "cat", &cat, "Joined along an existing dim; all other sizes are equal.",
          "tensors"_a, "dim"_a = 0);
  ops.add(Op::copy, "stack", &stack, "Of one shape, joined along a new dim.", "tensors"_a,
          "dim"_a = 0);
  ops.add(Op::cast, "cast", &cast, "typing.Any shape, kept.", "x"_a, "dtype"_a);
  ops.add_as(
      Op::affine, "affine",
      [](const Tensor& x, ScalarArg mul, ScalarArg add) {
        const Scalar by = fitting(mul, x.dtype(), "affine"),
                     plus = fitting(add, x.dtype(), "affine");
        return unlocked([&] { return affine(x, by, plus); }, x);
      },
      "typing.Any shape, kept.", "x"_a, "mul"_a, "add"_a = 0);
  ops.add_as(
      Op::index_select, "index_select",
      [](const Tensor& x, const Tensor& ids, int dim, DTypeArg dtype) {
        const DType to = dtype.get_or(DType::f32);
        return unlocked([&] { return index_select(x, ids, dim, to); }, x, ids);
      },
      "ids of any shape, which replaces the dim; uint8, uint32, int32 or int64. dtype: what blocks "
      "become.\nErrors: an id out of range, but the largest value of an unsigned dtype gives "
      "zeros.",
      "x"_a, "ids"_a, "dim"_a = 0, "dtype"_a = nb::none());
}

void bind_matrix_ops(OpBinder& ops, nb::module_& m) {
  bind_weight(m);
  ops.add(Op::matmul, "matmul", &matmul, "Errors: a rank below 2, inner dimensions differ.", "a"_a,
          "b"_a);
  ops.add_as(Op::linear, "linear", &linear_any,
             "x [.., k], a wick.Weight or a tensor [n, k] -> [.., n]. Errors: k differs.", "x"_a,
             "weight"_a.sig("Weight | Tensor"));
  ops.add(Op::quantize, "quantize", &quantize,
          "[.., k], kept; k a multiple of the block. From float32.", "x"_a, "dtype"_a);
  ops.add_as(
      Op::dequantize, "dequantize",
      [](const Tensor& x, DTypeArg dtype) {
        const DType to = dtype.get_or(DType::f32);
        return unlocked([&] { return dequantize(x, to); }, x);
      },
      "typing.Any shape, kept.", "x"_a, "dtype"_a = nb::none());
}

void bind_norm_ops(OpBinder& ops) {
  ops.add(Op::softmax, "softmax", &softmax, "typing.Any shape, kept.", "x"_a, "dim"_a = -1);
  ops.add(Op::log_softmax, "log_softmax", &log_softmax, "typing.Any shape, kept.", "x"_a,
          "dim"_a = -1);
  ops.add(Op::rms_norm, "rms_norm", &rms_norm, "x [.., d], kept; weight [d].", "x"_a, "weight"_a,
          "eps"_a = 1e-5f);
  ops.add(Op::rope, "rope", &rope, "x [.., t, d], kept; cos and sin [t, d/2], float32.", "x"_a,
          "cos"_a, "sin"_a);
  ops.add(Op::rope_interleaved, "rope_interleaved", &rope_interleaved,
          "x [.., t, d], kept; cos and sin [t, d/2], float32.", "x"_a, "cos"_a, "sin"_a);
  ops.add_as(
      Op::attention, "attention", &attention_of,
      "q [b, h, m, d], k [b, g, n, d], v [b, g, n, e] -> [b, h, m, e]; h is a multiple of g. "
      "scale: 1 / sqrt(d)\nunless given; causal: query i sees keys up to i + n - m; window: "
      "so many keys back; soft_cap: cap * tanh(score / cap).",
      "q"_a, "k"_a, "v"_a, "scale"_a = nb::none(), "causal"_a = false, "window"_a = 0,
      "soft_cap"_a = 0.0f);
}

}  // namespace wick::python
