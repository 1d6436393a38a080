// Matrix multiplication and weights.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"
#include "wick/tensor/fused.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// Errors: the bias doesn't fit the result of linear with n rows of weights.
void check_bias(const Tensor& x, const Tensor& bias, int64_t n) {
  const std::string operands = fmt::format("x {}, bias {}", x.str(), bias.str());
  if (bias.device() != x.device()) {
    throw Error("linear", "bias is on another device", operands, "move one of them");
  }
  if (bias.dtype() != x.dtype()) {
    throw Error(ErrorKind::type, "linear", "bias has the wrong dtype", operands,
                fmt::format("dtypes aren't promoted: convert the bias to {}", name(x.dtype())));
  }
  if (bias.rank() != 1 || bias.size(0) != n) {
    throw Error("linear", "bias has the wrong shape", operands, fmt::format("need [{}]", n));
  }
}

/// Implements linear with a tensor or a prepared weight, and with fused steps.
Tensor linear_any(const Tensor& x, WeightArg arg, MaybeTensor bias_arg, MaybeTensor norm, float eps,
                  bool silu_mul, MaybeTensor residual) {
  const nb::handle weight = arg.object;
  FusedLinear fusion{
      .norm = norm.get(), .eps = eps, .silu_mul = silu_mul, .residual = residual.get()};
  const bool is_fused = fusion.norm.defined() || silu_mul || fusion.residual.defined();
  const Tensor bias = bias_arg.get();
  const auto product = [&](const Weight& w) {
    if (bias.defined()) check_bias(x, bias, w.n());
    const Tensor y = is_fused ? linear(x, w, fusion) : linear(x, w);
    return bias.defined() ? add(y, bias) : y;
  };
  if (nb::isinstance<Weight>(weight)) {
    const auto& prepared = nb::cast<const Weight&>(weight);
    return unlocked([&] { return product(prepared); }, x);
  }
  if (!nb::isinstance<Tensor>(weight)) throw nb::type_error("linear: need a Weight or a Tensor");
  const auto& matrix = nb::cast<const Tensor&>(weight);
  return unlocked([&] { return product(Weight(matrix)); }, x, matrix);
}

/// Completes "ij,jk" to "ij,jk->ik": the letters that occur once, in alphabetical order.
std::string with_result(std::string_view equation) {
  std::string full(equation);
  if (equation.find("->") != std::string_view::npos) return full;
  full += "->";
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (std::isalpha(static_cast<unsigned char>(letter)) == 0) continue;
    if (std::ranges::count(equation, letter) == 1) full += letter;
  }
  return full;
}

Tensor einsum_of(std::string_view given, const nb::args& operands) {
  const std::string equation = with_result(given);
  const std::vector<Tensor> tensors = operands.size() == 1 && !nb::isinstance<Tensor>(operands[0])
                                          ? TensorsArg{operands[0]}.get("einsum")
                                          : TensorsArg{operands}.get("einsum");
  return unlocked([&] { return einsum(equation, tensors); }, tensors);
}

void bind_weight(nb::module_& m) {
  nb::class_<Weight>(m, "Weight",
                     "A weight matrix [n, k], packed into the layout that the device's gemm "
                     "kernels read, for wick.linear.\nfloat32, float16, bfloat16 or any block "
                     "dtype.")
      .def(
          "__init__",
          [](Weight* self, const Tensor& matrix) {
            const ReleasedGil released;
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

void bind_linear_ops(OpBinder& ops, nb::module_& m) {
  bind_weight(m);
  ops.add(Op::matmul, "matmul", &product, "", "a"_a, "b"_a);
  ops.function(Op::einsum, "einsum", &einsum_of, "", "equation"_a, "operands"_a,
               nb::sig("def einsum(equation: str, *operands: Tensor | "
                       "collections.abc.Sequence[Tensor]) -> Tensor"));
  ops.add_as(
      Op::linear, "linear", &linear_any,
      "x [.., k]; weight: a wick.Weight or a tensor [n, k] -> [.., n]. bias [n] of x's dtype is "
      "added. Fused steps in float32: norm [k]: rms_norm of x first; silu_mul: x is [.., 2k], "
      "and silu of the first half times the second half goes into the gemm; residual [.., n] is "
      "added. Errors: k differs; the bias has another shape.",
      "x"_a, "weight"_a, "bias"_a = nb::none(), nb::kw_only(), "norm"_a = nb::none(),
      "eps"_a = 1e-5, "silu_mul"_a = false, "residual"_a = nb::none());
  ops.add_as(
      Op::linear, "grouped_linear",
      [](const Tensor& x, WeightsArg experts, const Tensor& chosen, int64_t each,
         int64_t of_token) {
        const std::vector<Weight> weights = experts.get("grouped_linear");
        return unlocked(
            [&] {
              return grouped_linear(x, weights, chosen, {.each = each, .of_token = of_token});
            },
            x, chosen);
      },
      "Chooses a weight for each row: x [t, k], chosen uint32 [t, n] -> [t, n, width]. each: the "
      "rows of x of one sequence, which gets the bits that it has alone; 0: all rows are one "
      "sequence. With f16 and bf16 weights on GPUs, the order of sums depends on the rows of a "
      "sequence, never on ids or on other sequences. of_token: rows of x that belong to one token. "
      "Errors: those of linear; chosen isn't [t, n]; t isn't a multiple of each.",
      "x"_a, "experts"_a, "chosen"_a, nb::kw_only(), "each"_a = 0, "of_token"_a = 1);
}

}  // namespace wick::python
