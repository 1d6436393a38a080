#pragma once

// Errors name the function that Python's caller knows, where it is made of a function of another
// name: wick.amax of max, x // y of div.

#include <string_view>
#include <utility>

#include "wick/base/error.h"

namespace wick::python {

/// Throws the error again, under the name `name` if it is of the function `made_of` or of another
/// one that `name` is made of.
[[noreturn]] void throw_named(const Error& error, const char* name, std::string_view made_of);

/// f as it is, but for the name in its errors. `name` and `made_of` are kept.
template <class R, class... Args>
auto named(const char* name, std::string_view made_of, R (*f)(Args...)) {
  return [f, name, made_of](Args... args) -> R {
    try {
      return f(std::forward<Args>(args)...);
    } catch (const Error& error) {
      throw_named(error, name, made_of);
    }
  };
}

template <class F, class R, class... Args>
auto named_call(const char* name, std::string_view made_of, const F& f, R (F::*)(Args...) const) {
  return [f, name, made_of](Args... args) -> R {
    try {
      return f(std::forward<Args>(args)...);
    } catch (const Error& error) {
      throw_named(error, name, made_of);
    }
  };
}

template <class F, class R, class... Args>
auto renamed_call(const char* name, const F& f, R (F::*)(Args...) const) {
  return [f, name](Args... args) -> R {
    try {
      return f(std::forward<Args>(args)...);
    } catch (const Error& error) {
      throw_named(error, name, error.op());
    }
  };
}

/// f, whose errors begin with `name`, whichever function they are of.
template <class F>
auto renamed(const char* name, const F& f) {
  return renamed_call(name, f, &F::operator());
}

template <class F>
auto named(const char* name, std::string_view made_of, const F& f) {
  return named_call(name, made_of, f, &F::operator());
}

}  // namespace wick::python
