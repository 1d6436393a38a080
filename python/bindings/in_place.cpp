// In-place writes: x[…] = value, x.add_(y) and so on. They write to elements that no other tensor
// or array shares, or to a leaf while calls aren't recorded.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/operators.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// The value to assign: the caller's tensor by reference, or a tensor made for the call. The
/// caller's tensor isn't copied, because the copy would be another owner of its elements.
class Value {
 public:
  explicit Value(Tensor made) : made_(std::move(made)) {}
  /// Moves the value to x's device if necessary.
  Value(const Tensor& given, const Tensor& x) {
    if (given.device() == x.device()) {
      given_ = &given;
    } else {
      made_ = given.to(x.device());
    }
  }
  const Tensor& get() const { return given_ != nullptr ? *given_ : made_; }

 private:
  const Tensor* given_ = nullptr;
  Tensor made_;
};

/// Converts a tensor or a number to a value.
std::optional<Value> operand_for(const Tensor& x, nb::handle value, const char* op) {
  if (nb::isinstance<Tensor>(value)) return Value(nb::cast<const Tensor&>(value), x);
  nb::detail::make_caster<ScalarArg> number;
  if (number.from_python(value, 0, nullptr)) return Value(beside(x, number.value, op));
  return std::nullopt;
}

/// Converts what a user assigns: a tensor, a number, or anything that wick.tensor accepts.
Value value_for(const Tensor& x, nb::handle value, const char* op) {
  if (auto operand = operand_for(x, value, op)) return *std::move(operand);
  const nb::object make = nb::module_::import_("wick").attr("tensor");
  const bool is_list = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
  if (!is_list && !is_array(value)) {
    throw nb::type_error(fmt::format("{}: need a tensor, a number, a list or an array: not '{}'",
                                     op, type_text(value))
                             .c_str());
  }
  const nb::object made = is_list ? make(value, dtype_object(x.dtype())) : make(value);
  return Value(nb::cast<Tensor>(made).to(x.device()));
}

/// Returns a copy of x with `value` at ids and masks. Indexing a tensor of element numbers with the
/// same index gives the positions.
Tensor with_chosen(const Tensor& x, nb::handle index, const Tensor& value) {
  const Tensor numbers = Tensor::arange(0, x.elems(), 1, DType::i64, x.device()).reshape(x.shape());
  const Tensor places = nb::cast<Tensor>(nb::cast(numbers).attr("__getitem__")(index));
  const Tensor source = value.to(x.dtype()).broadcast_to(places.shape());
  return unlocked(
      [&] {
        return scatter(x.detach().flatten(), places.flatten(), source.flatten(), 0)
            .reshape(x.shape());
      },
      x);
}

/// Errors: the value needs a gradient, which the assignment wouldn't record.
void require_no_gradient(const Tensor& value) {
  if (!value.needs_grad() || !grad_enabled()) return;
  throw Error(ErrorKind::not_implemented, "index", "not differentiable", value.str(),
              "assign value.detach(), or make a new tensor with wick.where or wick.scatter");
}

void assign(Tensor& x, nb::handle index, nb::handle given) {
  const Value assigned = value_for(x, given, "index");
  const Tensor& value = assigned.get();
  if (gives_view(index)) {
    // The view is dropped before the write, because x must be the only owner of the elements.
    const Layout where = view_at(x, index).layout();
    unlocked([&] { slice_set(x, value, where); }, x);
    return;
  }
  require_no_gradient(value);
  const Tensor changed = with_chosen(x, index, value);
  const Layout all = x.layout();
  unlocked([&] { slice_set(x, changed, all); }, x);
}

/// Overwrites x with make() without recording calls. Errors: x would have to be recorded.
template <class F>
nb::object overwrite(nb::handle self, const F& make) {
  auto& x = nb::cast<Tensor&>(self);
  const bool is_recorded = x.needs_grad() && grad_enabled();
  const Layout all = x.layout();
  // If x needs a gradient, slice_set throws.
  const Tensor result = is_recorded ? x.detach() : make(x.detach());
  unlocked([&] { slice_set(x, result, all); }, x);
  return nb::borrow(self);
}

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

/// The other operand of an in-place method. Errors: it is neither a tensor nor a number; it
/// broadcasts x to a larger shape; it needs a gradient.
Tensor other_for(const Tensor& x, nb::handle other, const char* op) {
  const std::optional<Value> operand = operand_for(x, other, op);
  if (!operand) {
    throw nb::type_error(
        fmt::format("{}: other: need a tensor or a number: not '{}'", op, type_text(other))
            .c_str());
  }
  const Tensor& value = operand->get();
  if (value.needs_grad() && grad_enabled()) {
    throw Error(ErrorKind::not_implemented, op, "not differentiable", value.str(),
                "write in place under wick.no_grad(), or detach the value");
  }
  if (!(value.shape() == x.shape())) (void)value.broadcast_to(x.shape());
  return value.detach();
}

void bind_binary(TensorClass& tensor, const char* name, BinaryFunction function, const char* doc) {
  tensor.def(name,
             named(name, "slice_set",
                   [name, function](nb::handle self, nb::handle other) {
                     return overwrite(self, [&](const Tensor& x) {
                       const Tensor value = other_for(x, other, name);
                       return unlocked([&] { return function(x, value); }, x);
                     });
                   }),
             "other"_a,
             nb::sig(fmt::format("def {}(self, other: Tensor | float) -> Tensor", name).c_str()),
             doc);
}

/// Binds x + alpha * other and x - alpha * other.
void bind_sum(TensorClass& tensor, const char* name, BinaryFunction function, const char* doc) {
  tensor.def(name,
             named(name, "slice_set",
                   [name, function](nb::handle self, nb::handle other, ScalarArg alpha) {
                     return overwrite(self, [&](const Tensor& x) {
                       const Tensor value = other_for(x, other, name);
                       const bool is_one = alpha.is_integer && alpha.i == 1;
                       const Tensor scaled =
                           is_one ? value : mul(value, beside(value, alpha, name));
                       return unlocked([&] { return function(x, scaled); }, x);
                     });
                   }),
             "other"_a, nb::kw_only(), "alpha"_a = 1,
             nb::sig(fmt::format(
                         "def {}(self, other: Tensor | float, *, alpha: float = 1) -> Tensor", name)
                         .c_str()),
             doc);
}

}  // namespace

void bind_writing_in_place(TensorClass& tensor) {
  tensor.def("__setitem__", named("index", "slice_set", &assign), "index"_a.none(),
             "value"_a.none(),
             nb::sig("def __setitem__(self, index: typing.Any, value: typing.Any, /) -> None"),
             "Writes a tensor, number, list or array, which broadcasts, to the elements that "
             "x[index] selects.\nErrors: another tensor or array shares the elements; a gradient"
             " would be needed. Write to leaves under wick.no_grad().");
  bind_sum(tensor, "add_", &add,
           "Adds alpha * other, which broadcasts, in place; returns the "
           "tensor.");
  bind_sum(tensor, "sub_", &sub,
           "Subtracts alpha * other, which broadcasts, in place; returns the tensor.");
  bind_binary(tensor, "mul_", &mul,
              "Multiplies by other, which broadcasts, in place; returns the tensor.");
  bind_binary(tensor, "div_", &div,
              "Divides by other, which broadcasts, in place; returns the "
              "tensor.");
  tensor
      .def("copy_",
           named("copy_", "slice_set",
                 [](nb::handle self, const Tensor& source) {
                   auto& x = nb::cast<Tensor&>(self);
                   const Layout all = x.layout();
                   if (source.device() == x.device()) {
                     unlocked([&] { slice_set(x, source, all); }, x);
                   } else {
                     const Tensor here = source.to(x.device());
                     unlocked([&] { slice_set(x, here, all); }, x);
                   }
                   return nb::borrow(self);
                 }),
           "source"_a, nb::sig("def copy_(self, source: Tensor) -> Tensor"),
           "Copies source, which broadcasts and is converted to the tensor's dtype and device, "
           "into the tensor; returns the tensor.")
      .def("fill_",
           named("fill_", "const_set",
                 [](nb::handle self, ScalarArg value) {
                   auto& x = nb::cast<Tensor&>(self);
                   const Scalar element = fitting(value, x.dtype(), "fill_");
                   unlocked([&] { const_set(x, element); }, x);
                   return nb::borrow(self);
                 }),
           "value"_a, nb::sig("def fill_(self, value: float) -> Tensor"),
           "Sets every element to one value in place; returns the tensor.")
      .def("zero_",
           named("zero_", "const_set",
                 [](nb::handle self) {
                   auto& x = nb::cast<Tensor&>(self);
                   unlocked([&] { const_set(x, 0); }, x);
                   return nb::borrow(self);
                 }),
           nb::sig("def zero_(self) -> Tensor"),
           "Sets every element to 0 in place; returns the "
           "tensor.")
      .def(
          "clamp_",
          named("clamp_", "slice_set",
                [](nb::handle self, std::optional<ScalarArg> min, std::optional<ScalarArg> max) {
                  constexpr double kInfinity = std::numeric_limits<double>::infinity();
                  const Scalar low = min ? min->get() : Scalar(-kInfinity);
                  const Scalar high = max ? max->get() : Scalar(kInfinity);
                  return overwrite(self, [&](const Tensor& x) {
                    return unlocked([&] { return clamp(x, low, high); }, x);
                  });
                }),
          "min"_a = nb::none(), "max"_a = nb::none(),
          nb::sig("def clamp_(self, min: float | None = None, max: float | None = None) -> Tensor"),
          "Clamps the elements to [min, max] in place; a bound of None doesn't limit; returns "
          "the tensor.");
}

}  // namespace wick::python
