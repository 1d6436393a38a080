#pragma once

// Error messages name the Python function that was called, even if it is implemented by a function
// of another name: wick.amax by max, x // y by div.

#include <string_view>
#include <utility>

#include "wick/base/error.h"

namespace wick::python {

/// Rethrows the error with the name `name` if it is an error of `made_of`, or of another function
/// that `name` is implemented by.
[[noreturn]] void throw_named(const Error& error, const char* name, std::string_view made_of);

/// Wraps f so that its errors have the name `name`. Both strings must stay alive.
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

/// Wraps f so that all its errors begin with `name`.
template <class F>
auto renamed(const char* name, const F& f) {
  return renamed_call(name, f, &F::operator());
}

template <class F>
auto named(const char* name, std::string_view made_of, const F& f) {
  return named_call(name, made_of, f, &F::operator());
}

}  // namespace wick::python
