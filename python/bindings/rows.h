#pragma once

// Generates the Python function of a row of ops.def from the arguments that the row declares and
// from the type of its C++ function. Each parameter takes the next argument; a parameter struct
// takes the arguments with the names of its fields.

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "python/bindings/fields.h"
#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/op/arguments.h"

namespace wick::python {

/// The Python value of a default in a row: None, True, a number, "text".
nb::object default_value(std::string_view text);
/// A zero-terminated copy of text that lives as long as the process.
const char* kept_text(std::string_view text);

inline ValuesIndices to_python(Sorted sorted) {
  return {std::move(sorted.values), std::move(sorted.indices)};
}
inline std::tuple<Tensor, Tensor> to_python(NormGradient gradient) {
  return {std::move(gradient.x), std::move(gradient.statistics)};
}
inline Tensor to_python(Tensor x) { return x; }

template <Op kOp, class Result, class... Params>
class RowFunction {
 public:
  using Function = Result (*)(Params...);
  static constexpr Arguments kArguments = arguments_of(kOp);

  static void bind(OpBinder& ops, Function f) {
    bind_all(ops, f, std::make_index_sequence<kArguments.count>());
  }

 private:
  template <size_t P>
  using Param = std::decay_t<std::tuple_element_t<P, std::tuple<Params...>>>;
  static constexpr size_t kParams = sizeof...(Params);
  /// The number of dims that a window moves along. x may lack the batch dim before the channels.
  static constexpr int kWindow = (FieldsOf<std::decay_t<Params>>::kWindow + ... + 0);

  /// The destination of an argument: a parameter, and a field of it.
  struct Place {
    size_t param = kParams;
    int field = -1;
  };
  template <size_t P>
  static constexpr int field_named(std::string_view name) {
    int at = -1, i = 0;
    std::apply([&](const auto&... field) { ((at = field.name == name ? i : at, ++i), ...); },
               FieldsOf<Param<P>>::kAll);
    return at;
  }
  static constexpr size_t fields_of(size_t param) {
    size_t count = 0, p = 0;
    ((count = p++ == param
                  ? std::tuple_size_v<std::decay_t<decltype(FieldsOf<std::decay_t<Params>>::kAll)>>
                  : count),
     ...);
    return count;
  }
  template <size_t... P>
  static constexpr Place place_of(size_t argument, std::index_sequence<P...>) {
    Place place;
    const auto find = [&]<size_t I>(std::string_view name, Place& to) {
      if (const int field = field_named<I>(name); field >= 0) to = {I, field};
    };
    (find.template operator()<P>(kArguments[argument].name, place), ...);
    if (place.field >= 0) return place;
    // The other arguments go to the parameters that aren't structs, in order.
    size_t skip = 0;
    for (size_t i = 0; i < argument; ++i) {
      Place other;
      (find.template operator()<P>(kArguments[i].name, other), ...);
      if (other.field < 0) ++skip;
    }
    for (size_t p = 0; p < kParams; ++p) {
      if (fields_of(p) == 0 && skip-- == 0) return {p, -1};
    }
    return place;
  }
  template <size_t I>
  static constexpr Place kPlace = place_of(I, std::make_index_sequence<kParams>());

  /// Whether every argument has a parameter, and every parameter that isn't a struct has an
  /// argument.
  static constexpr bool fits() {
    return []<size_t... I>(std::index_sequence<I...>) {
      std::array<bool, kParams> given{};
      const bool all = ((kPlace<I>.param < kParams) && ... && true);
      ((given[kPlace<I>.param] = true), ...);
      for (size_t p = 0; p < kParams; ++p) {
        if (!given[p] && fields_of(p) == 0) return false;
      }
      return all;
    }(std::make_index_sequence<kArguments.count>());
  }

  /// The Python type of argument I.
  template <size_t I>
  static auto python_type() {
    if constexpr (kPlace<I>.field >= 0) {
      using Fields = FieldsOf<Param<kPlace<I>.param>>;
      return std::type_identity<typename std::decay_t<std::tuple_element_t<
          static_cast<size_t>(kPlace<I>.field), std::decay_t<decltype(Fields::kAll)>>>::Python>();
    } else {
      using P = std::tuple_element_t<kPlace<I>.param, std::tuple<Params...>>;
      if constexpr (std::is_same_v<P, const Tensor&> && kArguments[I].is_none()) {
        return std::type_identity<MaybeTensor>();
      } else if constexpr (kWindow > 0 && std::is_same_v<P, int64_t>) {
        return std::type_identity<IntsArg>();
      } else {
        return std::type_identity<typename PyArg<P>::Type>();
      }
    }
  }
  template <size_t I>
  using Python = typename decltype(python_type<I>())::type;

  /// The value of parameter P from the arguments `given`.
  template <size_t P, size_t... I, class Given>
  static decltype(auto) value(const Given& given, std::index_sequence<I...>) {
    using Type = std::tuple_element_t<P, std::tuple<Params...>>;
    if constexpr (fields_of(P) > 0) {
      std::decay_t<Type> params;
      (set_field<P, I>(params, std::get<I>(given)), ...);
      return params;
    } else {
      constexpr size_t kAt = ((kPlace<I>.param == P ? I + 1 : 0) + ... + 0) - 1;
      return plain<Type, kAt>(std::get<kAt>(given), std::get<0>(given));
    }
  }
  template <size_t P, size_t I, class Params_, class Value>
  static void set_field(Params_& params, const Value& value) {
    if constexpr (kPlace<I>.param == P) {
      std::get<static_cast<size_t>(kPlace<I>.field)>(FieldsOf<Params_>::kAll)
          .set(params, value, name(kOp).data());
    }
  }
  /// The value of a parameter that isn't a struct. Numbers are converted for x's dtype if the op
  /// supports integers.
  template <class Type, size_t I, class Value, class First>
  static decltype(auto) plain(const Value& value, const First& x) {
    const char* const op = name(kOp).data();
    if constexpr (std::is_same_v<Value, MaybeTensor>) {
      return value.get();
    } else if constexpr (std::is_same_v<Type, DType> && kArguments[I].is_none()) {
      return value.get_or(DType::f32);
    } else if constexpr (std::is_same_v<Type, Scalar> && std::is_same_v<First, Tensor> &&
                         !(info(kOp).dtypes == dtypes::kFloats)) {
      return fitting(value, x.dtype(), op);
    } else if constexpr (std::is_same_v<Value, IntsArg> && std::is_same_v<Type, int64_t>) {
      return one(value, op, kArguments[I].name);
    } else if constexpr (std::is_same_v<Value, IntsArg> &&
                         std::is_same_v<Type, std::array<int64_t, 2>>) {
      return two(value, op, kArguments[I].name);
    } else {
      return PyArg<Type>::get(value, op);
    }
  }

  template <class... Values>
  static Result call(Function f, const Values&... values) {
    return unlocked([&] { return f(values...); }, values...);
  }
  /// An input without a batch dim gives a result without it.
  template <class... Rest>
  static Result call_window(Function f, const Tensor& x, const Rest&... rest) {
    const bool lacks = x.rank() == kWindow + 1 && !is_block(x.dtype());
    return unlocked([&] { return lacks ? f(x.unsqueeze(0), rest...).squeeze(0) : f(x, rest...); },
                    x);
  }

  template <size_t I>
  static auto annotation() {
    const char* const text = kept_text(kArguments[I].name);
    if constexpr (kArguments[I].is_none()) {
      return nb::arg(text) = nb::none();
    } else if constexpr (kArguments[I].is_optional()) {
      return nb::arg(text) = default_value(kArguments[I].otherwise);
    } else {
      return nb::arg(text);
    }
  }

  template <size_t... I>
  static void bind_all(OpBinder& ops, Function f, std::index_sequence<I...> arguments) {
    static_assert(fits(), "the row's arguments aren't those of its function");
    const auto bound = [f, arguments](Argument_<I>... values) {
      const auto given = std::tie(values...);
      return [&]<size_t... P>(std::index_sequence<P...>) {
        if constexpr (std::is_void_v<Result>) {
          call(f, value<P>(given, arguments)...);
        } else if constexpr (kWindow > 0) {
          return call_window(f, value<P>(given, arguments)...);
        } else {
          return to_python(call(f, value<P>(given, arguments)...));
        }
      }(std::make_index_sequence<kParams>());
    };
    // Functions that write to their first operand aren't methods.
    if constexpr (FirstIsTensor<Params...>::value && !std::is_void_v<Result>) {
      ops.add_as(kOp, name(kOp).data(), bound, "", annotation<I>()...);
    } else {
      ops.function(kOp, name(kOp).data(), bound, "", annotation<I>()...);
    }
  }
  /// The Python type of argument I.
  template <size_t I>
  using Argument_ = Python<I>;
};

/// Binds the function of a row.
template <Op kOp, class Result, class... Params>
void bind_row(OpBinder& ops, Result (*f)(Params...)) {
  RowFunction<kOp, Result, Params...>::bind(ops, f);
}

}  // namespace wick::python
