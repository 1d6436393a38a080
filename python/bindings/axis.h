#pragma once

// Every function with an argument `dim` also accepts NumPy's name `axis` for it, as in PyTorch.
// This is a second signature of the function; argument_errors.cpp omits it from error messages
// unless the call names `axis`.

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

/// A copy of an annotation that names `axis` instead of `dim`.
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

/// Defines a function with owner.def, and again with `axis` instead of `dim`. `owner`: a module or
/// a class.
template <class Owner, class F, class... Annotations>
void define(Owner& owner, const char* name, const F& f, const Annotations&... annotations) {
  owner.def(name, f, annotations...);
  if ((is_dim(annotations) || ...)) {
    owner.def(name, f, with_axis(annotations)...);
  }
}

}  // namespace wick::python
