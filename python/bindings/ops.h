#pragma once

// How functions over tensors become functions of the module and methods of Tensor, both at once.

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "python/bindings/arguments.h"
#include "python/bindings/axis.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/python.h"
#include "wick/op/op.h"

namespace wick::python {

/// How Python hands over an argument of C++ type T, and what becomes of it in the call.
template <class T>
struct PyArg {
  using Type = T;
  static const std::decay_t<T>& get(const std::decay_t<T>& value, const char*) { return value; }
};
template <class Python>
struct Converted {
  using Type = Python;
  static auto get(const Python& value, const char* op) {
    if constexpr (requires { value.get(op); }) {
      return value.get(op);
    } else {
      return value.get();
    }
  }
};
template <>
struct PyArg<DType> : Converted<DTypeArg> {};
template <>
struct PyArg<Device> : Converted<DeviceArg> {};
template <>
struct PyArg<Scalar> : Converted<ScalarArg> {};
template <>
struct PyArg<const Shape&> : Converted<ShapeArg> {};
template <>
struct PyArg<std::span<const int>> : Converted<DimsArg> {};
template <>
struct PyArg<std::span<const int64_t>> : Converted<IntsArg> {};
template <>
struct PyArg<ListOf<int>> : Converted<DimsArg> {};
template <>
struct PyArg<ListOf<int64_t>> : Converted<IntsArg> {};
template <>
struct PyArg<std::span<const Tensor>> : Converted<TensorsArg> {};
template <>
struct PyArg<std::array<int64_t, 2>> : Converted<IntsArg> {};
/// (before, after) of each dim.
template <>
struct PyArg<ListOf<Padding>> {
  using Type = std::vector<std::pair<int64_t, int64_t>>;
  static std::vector<Padding> get(const Type& pairs, const char*) {
    std::vector<Padding> sides;
    for (const auto& [before, after] : pairs) sides.push_back({before, after});
    return sides;
  }
};
template <>
struct PyArg<PadMode> {
  using Type = std::string;
  static PadMode get(const std::string& name, const char* op) {
    if (name == "constant") return PadMode::constant;
    if (name == "reflect") return PadMode::reflect;
    if (name == "replicate") return PadMode::replicate;
    throw Error(op, "no such mode", name, "constant, reflect or replicate");
  }
};

/// The names by which a row of ops.def is served: functions of the module.
std::map<Op, std::vector<std::string>>& served();

/// A row's sentence, `more` or else what the row says behind it, dtypes and class.
std::string docstring(Op op, std::string_view more);

/// Whether a function may become a method: its first operand is the tensor.
template <class... Args>
struct FirstIsTensor : std::false_type {};
template <class... Rest>
struct FirstIsTensor<const Tensor&, Rest...> : std::true_type {};

/// Binds functions, one line each.
class OpBinder {
 public:
  OpBinder(nb::module_& module, TensorClass& tensor) : module_(module), tensor_(tensor) {}

  /// The function of a row as wick.name and, where its first operand is a tensor, Tensor.name.
  /// `more`: shapes and errors, after the row's sentence. `names`: nb::arg of each parameter.
  /// `name` is kept.
  template <class Result, class... Args, class First, class... Rest>
  void add(Op op, const char* name, Result (*f)(Args...), std::string_view more, const First& first,
           const Rest&... names) {
    served()[op].emplace_back(name);
    bind<FirstIsTensor<Args...>::value>(
        op, name,
        [f, name](typename PyArg<Args>::Type... args) {
          return call(f, PyArg<Args>::get(args, name)...);
        },
        docstring(op, more), first, names...);
  }
  /// The same for what isn't a function as it stands: `f` takes and gives what nanobind knows.
  template <class F, class First, class... Rest>
  void add_as(Op op, const char* name, const F& f, std::string_view more, const First& first,
              const Rest&... names) {
    served()[op].emplace_back(name);
    bind<true>(op, name, f, docstring(op, more), first, names...);
  }
  /// The same without a method.
  template <class F, class First, class... Rest>
  void function(Op op, const char* name, const F& f, std::string_view more, const First& first,
                const Rest&... names) {
    served()[op].emplace_back(name);
    bind<false>(op, name, f, docstring(op, more), first, names...);
  }

  /// A function made of rows, as wick.name and, where its first operand is a tensor, Tensor.name.
  /// Its errors begin with its name, whichever row they are of.
  template <class Result, class... Args, class First, class... Rest>
  void made(const char* name, Result (*f)(Args...), const char* doc, const First& first,
            const Rest&... names) {
    const auto bound = [f, name](typename PyArg<Args>::Type... args) -> Result {
      try {
        return call(f, PyArg<Args>::get(args, name)...);
      } catch (const Error& error) {
        throw_named(error, name, error.op());
      }
    };
    define(module_, name, bound, first, names..., doc);
    if constexpr (FirstIsTensor<Args...>::value) define(tensor_, name, bound, names..., doc);
  }
  /// The same for what isn't a function as it stands: `f` takes and gives what nanobind knows.
  template <bool kIsMethod, class F, class First, class... Rest>
  void made_as(const char* name, const F& f, const char* doc, const First& first,
               const Rest&... names) {
    const auto bound = renamed(name, f);
    define(module_, name, bound, first, names..., doc);
    if constexpr (kIsMethod) define(tensor_, name, bound, names..., doc);
  }
  /// A method alone, of the tensor that f takes first.
  template <class F, class... Rest>
  void method(const char* name, const F& f, const char* doc, const Rest&... names) {
    define(tensor_, name, renamed(name, f), names..., doc);
  }

  /// Another way to call what was bound last under a name, which serves the same row.
  template <bool kIsMethod, class F, class First, class... Rest>
  void overload(Op op, const char* name, const F& f, const First& first, const Rest&... names) {
    const auto bound = named(name, wick::name(op), f);
    define(module_, name, bound, first, names...);
    if constexpr (kIsMethod) define(tensor_, name, bound, names...);
  }

 private:
  template <class Result, class... Args, class... Values>
  static Result call(Result (*f)(Args...), Values&&... values) {
    return unlocked([&] { return f(values...); }, values...);
  }
  template <bool kIsMethod, class F, class First, class... Rest>
  void bind(Op op, const char* name, const F& f, const std::string& doc, const First& first,
            const Rest&... names) {
    const auto bound = named(name, wick::name(op), f);
    define(module_, name, bound, first, names..., doc.c_str());
    if constexpr (kIsMethod) define(tensor_, name, bound, names..., doc.c_str());
  }

  nb::module_& module_;
  TensorClass& tensor_;
};

/// What max and min along a dim, sort and topk give: it unpacks like a pair.
struct ValuesIndices {
  Tensor values, indices;
};

/// Functions that no macro of ops.def declares, by family.
void bind_map_ops(OpBinder& ops);
/// Those that rows.cpp makes of their rows.
void bind_rows_of_arguments(OpBinder& ops);
void bind_move_ops(OpBinder& ops, nb::module_& m);
void bind_linear_ops(OpBinder& ops, nb::module_& m);
void bind_norm_ops(OpBinder& ops);
void bind_spatial_ops(OpBinder& ops);
/// Functions made of rows: wick/tensor/functions.h.
void bind_functions(OpBinder& ops, nb::module_& m);

}  // namespace wick::python
