// wick.Error and what is derived from it: wick's message under the type that Python's own functions
// would raise, so that `except IndexError` and `except wick.Error` both do.
#include <array>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>

#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

/// A type for messages whose second part, what is wrong, holds one of some words.
struct Kind {
  const char* name;
  PyObject** base;  ///< beside wick.Error
  const char* doc;
  std::array<std::string_view, 8> words;
};

// The first that fits counts; of none it is wick.Error itself.
const Kind kKinds[] = {
    {"OutOfMemoryError", &PyExc_MemoryError, "No memory left on the device.", {"out of memory"}},
    {"FileError", &PyExc_OSError, "A file can't be read or written.", {"cannot "}},
    {"DTypeError",
     &PyExc_TypeError,
     "Tensors of a dtype that the call doesn't take.",
     {"dtype", "not a float", "this conversion"}},
    {"OutOfRangeError",
     &PyExc_IndexError,
     "A dim, an id or a position that isn't there.",
     {"id out of range", "dimension out of range", "outside the dimension", "token outside",
      "too many indices", "mask of another shape", "ellipsis"}},
    {"ShapeError",
     &PyExc_ValueError,
     "Shapes or sizes that don't fit, or too large ones.",
     {"shape", "dimension", "size", "fit", "rank", "element", "whole blocks"}},
};

PyObject* error_type = nullptr;
std::array<PyObject*, std::size(kKinds)> kind_types{};

nb::object text_of(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

PyObject* type_of(const Error& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.size(), error.op().size() + 2));
  what = what.substr(0, what.find(": "));
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    for (std::string_view word : kKinds[k].words) {
      if (!word.empty() && what.find(word) != std::string_view::npos) return kind_types[k];
    }
  }
  return error_type;
}

void raise_error(const Error& error) {
  PyObject* const type = type_of(error);
  const nb::object raised =
      nb::steal(PyObject_CallFunctionObjArgs(type, text_of(error.what()).ptr(), nullptr));
  if (!raised.is_valid()) return;  // what went wrong there is raised
  if (PyObject_SetAttrString(raised.ptr(), "op", text_of(error.op()).ptr()) != 0) return;
  PyErr_SetObject(type, raised.ptr());
}

PyObject* make_type(nb::module_& m, const char* name, const char* doc, PyObject* bases) {
  PyObject* const type =
      PyErr_NewExceptionWithDoc((std::string("wick.") + name).c_str(), doc, bases, nullptr);
  if (type == nullptr) throw nb::python_error();
  m.attr(name) = nb::borrow(type);
  return type;
}

}  // namespace

void bind_errors(nb::module_& m) {
  error_type = make_type(
      m, "Error",
      "What wick refuses, `op: what is wrong: operands: rule`; the attribute op is what stands in "
      "front.",
      PyExc_RuntimeError);
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    const nb::tuple bases = nb::make_tuple(nb::borrow(error_type), nb::borrow(*kKinds[k].base));
    kind_types[k] = make_type(m, kKinds[k].name, kKinds[k].doc, bases.ptr());
  }
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise_error(error);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, "a value of another type than what is needed here");
    }
  });
}

}  // namespace wick::python
