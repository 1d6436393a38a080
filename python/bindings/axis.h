#pragma once

// NumPy's argument names: every function with an argument `dim` also accepts `axis`, and every
// function with `keepdim` also accepts `keepdims`, as in PyTorch. Each combination is a further
// signature of the function; argument_errors.cpp omits it from error messages unless the call uses
// its names.

#include <string_view>

#include "python/bindings/binding.h"

namespace wick::python {

struct Alias {
  const char* name;
  const char* other;
};
inline constexpr Alias kAliases[] = {{"dim", "axis"}, {"keepdim", "keepdims"}};
inline constexpr unsigned kAliasCount = 2;

/// The set of aliases of an argument's name: bit i stands for kAliases[i].
template <uint32_t kFlags, bool kLocked>
unsigned aliases_of(const nb::arg_t<kFlags, kLocked>& argument) {
  unsigned found = 0;
  for (unsigned i = 0; i < kAliasCount; ++i) {
    const bool is_one =
        argument.name_ != nullptr && std::string_view(argument.name_) == kAliases[i].name;
    found |= is_one ? 1u << i : 0u;
  }
  return found;
}
template <class Other>
unsigned aliases_of(const Other&) {
  return 0;
}
template <uint32_t kFlags, bool kLocked>
unsigned aliases_of(const nb::arg_v_t<kFlags, kLocked>& argument) {
  return aliases_of(static_cast<const nb::arg_t<kFlags, kLocked>&>(argument));
}

/// A copy of an annotation with the aliases `which` in place of the names.
template <class Annotation>
decltype(auto) with_aliases(const Annotation& annotation, unsigned which) {
  if constexpr (nb::detail::arg_traits<Annotation>::is_arg) {
    Annotation renamed = annotation;
    for (unsigned i = 0; i < kAliasCount; ++i) {
      if ((aliases_of(annotation) & which & 1u << i) != 0) renamed.name_ = kAliases[i].other;
    }
    return renamed;
  } else {
    return (annotation);
  }
}

/// Defines a function with owner.def, and again with the aliases of its arguments. `owner`: a
/// module or a class.
template <class Owner, class F, class... Annotations>
void define(Owner& owner, const char* name, const F& f, const Annotations&... annotations) {
  const unsigned all = (aliases_of(annotations) | ... | 0u);
  for (unsigned which = 0; which < 1u << kAliasCount; ++which) {
    if ((which & ~all) == 0) owner.def(name, f, with_aliases(annotations, which)...);
  }
}

}  // namespace wick::python
