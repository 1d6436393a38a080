#pragma once

// Includes nanobind with all its standard-library casters. Every file must include all of them: a
// file that lacks one would treat the type as a bound class, and the linker would choose between
// the two.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "python/bindings/gil.h"

// These aren't in the stable ABI, which the wheel for CPython 3.12 and later uses.
#undef PyTuple_GET_ITEM
#undef PyTuple_GET_SIZE
#undef PyTuple_SET_ITEM
#undef PyList_GET_ITEM
#undef PyList_GET_SIZE
#undef PyList_SET_ITEM
#undef PyFloat_AS_DOUBLE
#undef PyBytes_AS_STRING
#pragma GCC poison PyObject_CallOneArg PyObject_CallMethodOneArg PyObject_CallMethodNoArgs

namespace wick::python {

namespace nb = nanobind;

/// Decodes bytes; those that aren't UTF-8 become U+FFFD.
inline nb::object to_text(std::string_view bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

}  // namespace wick::python
