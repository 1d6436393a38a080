// Elementwise functions that take numbers besides tensors.
#include <fmt/format.h>

#include <limits>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// A branch of where: a tensor or a number.
struct Branch {
  Tensor tensor;
  ScalarArg number;
};

Branch branch_of(TensorOrNumber arg, const char* name) {
  if (nb::isinstance<Tensor>(arg.object)) return {nb::cast<const Tensor&>(arg.object), {}};
  nb::detail::make_caster<ScalarArg> number;
  if (!number.from_python(arg.object, 0, nullptr)) {
    throw nb::type_error(
        fmt::format("where: {}: need a tensor or a number: not '{}'", name, type_text(arg.object))
            .c_str());
  }
  return {{}, number.value};
}

/// The dtype for two numbers: bool for bools, int64 for ints, else float32.
DType common_dtype(const ScalarArg& a, const ScalarArg& b) {
  if (a.is_bool && b.is_bool) return DType::boolean;
  return a.is_integer && b.is_integer ? DType::i64 : DType::f32;
}

/// A number gets the dtype and device of the tensor beside it.
Tensor where_of(const Tensor& condition, TensorOrNumber a, TensorOrNumber b) {
  const Branch first = branch_of(a, "a"), second = branch_of(b, "b");
  const auto tensor_of = [&](const Branch& branch, const Branch& other) {
    if (branch.tensor.defined()) return branch.tensor;
    if (other.tensor.defined()) return beside(other.tensor, branch.number, "where");
    const DType dtype = common_dtype(first.number, second.number);
    return Tensor::full({}, fitting(branch.number, dtype, "where"), dtype, condition.device());
  };
  const Tensor yes = tensor_of(first, second), no = tensor_of(second, first);
  return unlocked([&] { return where(condition, yes, no); }, condition, yes, no);
}

/// Clamps x; a bound of None doesn't limit it.
Tensor clamp_to(const Tensor& x, std::optional<ScalarArg> low, std::optional<ScalarArg> high) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Scalar from = low ? low->get() : Scalar(-kInfinity);
  const Scalar to = high ? high->get() : Scalar(kInfinity);
  return unlocked([&] { return clamp(x, from, to); }, x);
}

Tensor var_of(const Tensor& x, DimsArg dim, bool keepdim, int64_t correction,
              std::optional<bool> unbiased) {
  const std::vector<int> dims = dim.get("var");
  const int64_t less = unbiased ? int64_t{*unbiased} : correction;
  return unlocked([&] { return var(x, dims, keepdim, less); }, x);
}

}  // namespace

void bind_map_ops(OpBinder& ops) {
  ops.add_as(Op::clamp, "clamp", &clamp_to, "", "x"_a, "min"_a = nb::none(), "max"_a = nb::none());
  ops.add_as(Op::where, "where", &where_of, "", "condition"_a, "a"_a, "b"_a);
  ops.add_as(
      Op::where, "masked_fill",
      [](const Tensor& x, const Tensor& mask, ScalarArg value) {
        const Scalar filling = fitting(value, x.dtype(), "masked_fill");
        return unlocked([&] { return masked_fill(x, mask, filling); }, x, mask);
      },
      "Replaces the elements of x where the mask (bool, uint8, uint32, int64) is non-zero by a "
      "number. The mask broadcasts.",
      "x"_a, "mask"_a, "value"_a);
  // Only by keyword: in PyTorch the second positional argument may be `unbiased`.
  ops.add_as(Op::var, "var", &var_of, "", "x"_a, "dim"_a = nb::none(), nb::kw_only(),
             "keepdim"_a = false, "correction"_a = 1, "unbiased"_a = nb::none());
}

}  // namespace wick::python
