#pragma once

// NumPy's name of an argument `dim`: every function with a `dim` takes `axis` in its place, as
// PyTorch's do. That is a second signature of the function; argument_errors.cpp leaves it out of
// errors unless the call names `axis`.

#include <string_view>

#include "python/bindings/binding.h"

namespace wick::python {

inline constexpr const char* kDim = "dim";
inline constexpr const char* kAxis = "axis";

template <uint32_t kFlags, bool kLocked>
bool is_dim(const nb::arg_t<kFlags, kLocked>& argument) {
  return argument.name_ != nullptr && std::string_view(argument.name_) == kDim;
}
template <class Other>
bool is_dim(const Other&) {
  return false;
}
template <uint32_t kFlags, bool kLocked>
bool is_dim(const nb::arg_v_t<kFlags, kLocked>& argument) {
  return is_dim(static_cast<const nb::arg_t<kFlags, kLocked>&>(argument));
}

/// An annotation of a function with `axis` for `dim`.
template <class Annotation>
decltype(auto) with_axis(const Annotation& annotation) {
  if constexpr (nb::detail::arg_traits<Annotation>::is_arg) {
    Annotation renamed = annotation;
    if (is_dim(annotation)) renamed.name_ = kAxis;
    return renamed;
  } else {
    return (annotation);
  }
}

/// owner.def(name, f, annotations...), and with `axis` for `dim`. `owner`: a module or a class.
template <class Owner, class F, class... Annotations>
void define(Owner& owner, const char* name, const F& f, const Annotations&... annotations) {
  owner.def(name, f, annotations...);
  if ((is_dim(annotations) || ...)) {
    owner.def(name, f, with_axis(annotations)...);
  }
}

}  // namespace wick::python
