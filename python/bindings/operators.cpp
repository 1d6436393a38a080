// Operators of wick.Tensor with tensors and with numbers on either side.
#include "python/bindings/operators.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/op/op.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using UnaryFunction = Tensor (*)(const Tensor&);
using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

struct Bounds {
  int64_t low, high;
};

Bounds bounds_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return {0, 1};
    case DType::u8:
      return {0, 255};
    case DType::u32:
      return {0, UINT32_MAX};
    case DType::i16:
      return {INT16_MIN, INT16_MAX};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

/// Looks up the C++ functions of ops.def's rows by name.
template <class Function>
struct Row {
  std::string_view name;
  Function function;
};
constexpr Row<UnaryFunction> kUnary[] = {
#define WICK_UNARY(name, ...) {#name, &wick::name},
#include "wick/op/ops.def"
};
constexpr Row<BinaryFunction> kBinary[] = {
#define WICK_BINARY(name, ...) {#name, &wick::name},
#define WICK_COMPARE(name, ...) {#name, &wick::name},
#include "wick/op/ops.def"
};

template <class Rows>
constexpr auto find(const Rows& rows, std::string_view name) {
  for (const auto& row : rows) {
    if (row.name == name) return row.function;
  }
  return decltype(rows[0].function){};
}

/// The dtypes that a row supports.
constexpr DTypeSet dtypes_of(std::string_view row) {
  for (const OpInfo& op : kOps) {
    if (op.name == row) return op.dtypes;
  }
  return {};
}

/// The largest integers not above a / b, like Python's //.
Tensor floor_divide(const Tensor& a, const Tensor& b) {
  const Tensor quotient = named("//", "div", &div)(a, b);
  if (is_float(a.dtype())) return floor(quotient);
  if (info(a.dtype()).kind != DTypeKind::signed_integer) return quotient;
  // Truncating division is one too large if there is a remainder whose sign differs from b's.
  const Tensor rest = sub(a, mul(quotient, b));
  const Tensor zero = Tensor::full({}, 0, a.dtype(), a.device());
  return sub(quotient, logical_and(ne(rest, zero), lt(bitwise_xor(rest, b), zero)).to(a.dtype()));
}

/// Errors: x is an integer or bool tensor, which / doesn't convert to float.
void require_floats(const Tensor& x) {
  if (is_float(x.dtype()) || is_block(x.dtype())) return;
  throw Error(ErrorKind::type, "/", "needs floats", x.str(),
              x.dtype() == DType::boolean
                  ? "convert first: x.to(wick.float32) / y"
                  : "use // for integer quotients, or convert first: x.to(wick.float32) / y");
}

/// Elementwise quotients. Errors: those of require_floats.
Tensor true_divide(const Tensor& a, const Tensor& b) {
  require_floats(a);
  return div(a, b);
}

/// An operator with its methods: the plain one, and the reflected one for a number on the left.
/// Python reflects comparisons itself.
struct BinaryOperator {
  const char* method;
  const char* reflected;  ///< null: no reflected method
  const char* row;
  const char* doc;
  const char* shown = nullptr;             ///< its name in error messages; null: the row's name
  void (*check)(const Tensor&) = nullptr;  ///< check of the tensor operand; null: none
};
constexpr BinaryOperator kOperators[] = {
    {"__add__", "__radd__", "add", "add"},
    {"__sub__", "__rsub__", "sub", "sub"},
    {"__mul__", "__rmul__", "mul", "mul"},
    {"__pow__", "__rpow__", "pow", "pow"},
    {"__mod__", "__rmod__", "rem", "rem"},
    {"__and__", "__rand__", "bitwise_and", "bitwise_and"},
    {"__or__", "__ror__", "bitwise_or", "bitwise_or"},
    {"__xor__", "__rxor__", "bitwise_xor", "bitwise_xor"},
    {"__lshift__", "__rlshift__", "shift_left", "shift_left"},
    {"__rshift__", "__rrshift__", "shift_right", "shift_right"},
    {"__eq__", nullptr, "eq", "Elementwise eq."},
    {"__ne__", nullptr, "ne", "Elementwise ne."},
    {"__lt__", nullptr, "lt", "Elementwise lt."},
    {"__le__", nullptr, "le", "Elementwise le."},
    {"__gt__", nullptr, "gt", "Elementwise gt."},
    {"__ge__", nullptr, "ge", "Elementwise ge."},
};

void bind_operator(TensorClass& tensor, const BinaryOperator& op, BinaryFunction function) {
  const char* const shown = op.shown != nullptr ? op.shown : op.row;
  const DTypeSet takes = dtypes_of(op.row);
  const auto number_beside = [shown, takes, check = op.check](const Tensor& a,
                                                              const OperandArg& b) {
    const ScalarArg& number = b.get(shown);
    if (check != nullptr) check(a);
    return beside(a, number, shown, takes);
  };
  const std::string with_tensor =
      std::string("def ") + op.method + "(self, other: Tensor, /) -> Tensor";
  const std::string with_number =
      std::string("def ") + op.method + "(self, other: float, /) -> Tensor";
  tensor.def(
      op.method,
      [function](const Tensor& a, const Tensor& b) {
        return unlocked([&] { return function(a, b); }, a, b);
      },
      nb::is_operator(), nb::sig(with_tensor.c_str()), op.doc);
  tensor.def(
      op.method,
      [function, number_beside](const Tensor& a, OperandArg b) {
        const Tensor number = number_beside(a, b);
        return unlocked([&] { return function(a, number); }, a);
      },
      nb::is_operator(), nb::sig(with_number.c_str()));
  if (op.reflected == nullptr) return;
  const std::string reflected =
      std::string("def ") + op.reflected + "(self, other: float, /) -> Tensor";
  tensor.def(
      op.reflected,
      [function, number_beside](const Tensor& a, OperandArg b) {
        const Tensor number = number_beside(a, b);
        return unlocked([&] { return function(number, a); }, a);
      },
      nb::is_operator(), nb::sig(reflected.c_str()));
}

/// Advice for a float beside a tensor of a dtype, for an op that supports the dtypes `takes`.
const char* float_advice(DType dtype, DTypeSet takes) {
  const bool kept = takes.contains(dtype);
  if (takes.contains(DType::f32)) {
    return !kept                     ? "convert with .to(wick.float32)"
           : dtype == DType::boolean ? "convert with .to(wick.float32), or use True or False"
                                     : "convert with .to(wick.float32), or use an int";
  }
  if (!kept) return "convert with .to(wick.int64), and use an int";
  return dtype == DType::boolean ? "use True or False" : "use an int";
}

void bind_sign(TensorClass& tensor, const char* method, UnaryFunction function, const char* doc) {
  tensor.def(
      method, [function](const Tensor& x) { return unlocked([&] { return function(x); }, x); },
      doc);
}

}  // namespace

void check_fits(int64_t value, DType dtype) {
  const auto [low, high] = bounds_of(dtype);
  if (value >= low && value <= high) return;
  PyErr_SetString(PyExc_OverflowError,
                  fmt::format("{} is out of bounds for {}", value, python_name(dtype)).c_str());
  throw nb::python_error();
}

Scalar fitting(const ScalarArg& value, DType dtype, const char* op, DTypeSet takes) {
  if (is_float(dtype)) return value.is_large ? Scalar(value.to_double()) : value.get();
  if (!is_integer(dtype) && dtype != DType::boolean) return value.get();
  if (!value.is_integer) {
    (void)value.get();  // an exception of the object takes precedence
    throw nb::type_error(fmt::format("{}: a float with {}: dtypes aren't promoted: {}", op,
                                     python_name(dtype), float_advice(dtype, takes))
                             .c_str());
  }
  const Scalar integer = value.get();
  if (dtype == DType::boolean && integer.i != 0 && integer.i != 1) {
    throw nb::type_error(
        fmt::format("{}: {} with bool: dtypes aren't promoted: convert the tensor first, "
                    "as with .to(wick.{})",
                    op, integer.i, takes.contains(DType::i64) ? "int64" : "float32")
            .c_str());
  }
  check_fits(integer.i, dtype);
  return integer;
}

Tensor beside(const Tensor& x, const ScalarArg& value, const char* op, DTypeSet takes) {
  return Tensor::full({}, fitting(value, x.dtype(), op, takes), x.dtype(), x.device());
}

Tensor product(const Tensor& a, const Tensor& b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (!row && !column) return matmul(a, b);
  const Tensor result = matmul(row ? a.unsqueeze(0) : a, column ? b.unsqueeze(1) : b);
  const Tensor flat = column ? result.squeeze(-1) : result;
  return row ? flat.squeeze(column ? -1 : -2) : flat;
}

void bind_operators(TensorClass& tensor) {
  for (const BinaryOperator& op : kOperators) {
    if (const BinaryFunction function = find(kBinary, op.row)) bind_operator(tensor, op, function);
  }
  bind_sign(tensor, "__neg__", find(kUnary, "neg"), "neg");
  bind_sign(tensor, "__abs__", find(kUnary, "abs"), "abs");
  if (const UnaryFunction invert = find(kUnary, "bitwise_not")) {
    bind_sign(tensor, "__invert__", invert, "bitwise_not");
  }
  bind_operator(tensor,
                {"__truediv__", "__rtruediv__", "div", "div of floats", "/", &require_floats},
                &true_divide);
  bind_operator(tensor, {"__floordiv__", "__rfloordiv__", "div", "floor of div", "//"},
                &floor_divide);
  tensor.def("__pos__", [](const Tensor& x) { return x; });
  tensor.def(
      "__matmul__",
      [](const Tensor& a, const Tensor& b) { return unlocked([&] { return product(a, b); }, a, b); },
      nb::is_operator(), "matmul");
}

}  // namespace wick::python
