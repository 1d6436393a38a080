#pragma once

// Binds functions over tensors as functions of the module and methods of Tensor.

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

/// The Python type of an argument of C++ type T, and its conversion.
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
/// A pair (before, after) for each dim.
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

/// For each row of ops.def, the names of the module's functions that use it.
std::map<Op, std::vector<std::string>>& served();

/// The docstring of a row: its first line; `more`, or else the row's other lines; dtypes and class.
std::string docstring(Op op, std::string_view more);

/// Whether a function can become a method, because its first parameter is a tensor.
template <class... Args>
struct FirstIsTensor : std::false_type {};
template <class... Rest>
struct FirstIsTensor<const Tensor&, Rest...> : std::true_type {};

/// Binds functions.
class OpBinder {
 public:
  OpBinder(nb::module_& module, TensorClass& tensor) : module_(module), tensor_(tensor) {}

  /// Binds the function of a row as wick.name and, if its first parameter is a tensor, as
  /// Tensor.name. `more`: shapes and errors, after the row's first line. `names`: an nb::arg for
  /// each parameter. The string `name` must stay alive.
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
  /// Binds a callable `f` whose types nanobind knows, as a function and as a method.
  template <class F, class First, class... Rest>
  void add_as(Op op, const char* name, const F& f, std::string_view more, const First& first,
              const Rest&... names) {
    served()[op].emplace_back(name);
    bind<true>(op, name, f, docstring(op, more), first, names...);
  }
  /// Binds a callable `f` as a function only.
  template <class F, class First, class... Rest>
  void function(Op op, const char* name, const F& f, std::string_view more, const First& first,
                const Rest&... names) {
    served()[op].emplace_back(name);
    bind<false>(op, name, f, docstring(op, more), first, names...);
  }

  /// Binds a function composed of rows, as wick.name and, if its first parameter is a tensor, as
  /// Tensor.name. All its errors begin with its name.
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
  /// Binds a callable composed of rows; kIsMethod: also as a method.
  template <bool kIsMethod, class F, class First, class... Rest>
  void made_as(const char* name, const F& f, const char* doc, const First& first,
               const Rest&... names) {
    const auto bound = renamed(name, f);
    define(module_, name, bound, first, names..., doc);
    if constexpr (kIsMethod) define(tensor_, name, bound, names..., doc);
  }
  /// Binds a method only; f takes the tensor as its first argument.
  template <class F, class... Rest>
  void method(const char* name, const F& f, const char* doc, const Rest&... names) {
    define(tensor_, name, renamed(name, f), names..., doc);
  }

  /// Adds an overload to the function bound last under a name, for the same row.
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

/// The result of max and min along a dim, sort and topk; it unpacks like a pair.
struct ValuesIndices {
  Tensor values, indices;
};

/// Binds functions that the macros of ops.def don't declare, by family.
void bind_map_ops(OpBinder& ops);
/// Binds the functions that rows.cpp generates from their rows.
void bind_rows_of_arguments(OpBinder& ops);
void bind_move_ops(OpBinder& ops, nb::module_& m);
void bind_linear_ops(OpBinder& ops, nb::module_& m);
void bind_norm_ops(OpBinder& ops);
void bind_spatial_ops(OpBinder& ops);
/// Binds functions composed of rows: wick/tensor/functions.h.
void bind_functions(OpBinder& ops, nb::module_& m);

}  // namespace wick::python
