// wick.Error and its subclasses. Each subclass also derives from Python's matching exception type,
// so both `except IndexError` and `except wick.Error` catch it.
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <typeinfo>

#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

/// The Python type for a kind of errors.
struct Type {
  ErrorKind kind;
  const char* name;
  PyObject** base;  ///< the base type besides wick.Error
  const char* doc;
};

// Errors of other kinds are raised as wick.Error itself.
const Type kTypes[] = {
    {ErrorKind::value, "ArgumentError", &PyExc_ValueError,
     "An argument, a shape or the contents of a file is invalid."},
    {ErrorKind::type, "DTypeError", &PyExc_TypeError, "The call doesn't support a tensor's dtype."},
    {ErrorKind::index, "OutOfRangeError", &PyExc_IndexError,
     "A dim, an id or a position is out of range."},
    {ErrorKind::memory, "OutOfMemoryError", &PyExc_MemoryError, "The device is out of memory."},
    {ErrorKind::file, "FileError", &PyExc_OSError,
     "A file can't be read or written, is truncated, or changed while it was in use."},
    {ErrorKind::not_implemented, "NotSupportedError", &PyExc_NotImplementedError,
     "wick doesn't implement the request."},
};
static_assert(std::size(kTypes) + 1 == kErrorKindCount, "a type for each kind but runtime");

std::array<PyObject*, kErrorKindCount> types{};

void raise_error(const Error& error) {
  PyObject* const type = types[static_cast<size_t>(error.kind())];
  const nb::object raised =
      nb::steal(PyObject_CallFunctionObjArgs(type, to_text(error.what()).ptr(), nullptr));
  if (!raised.is_valid()) return;  // the exception raised there propagates
  if (PyObject_SetAttrString(raised.ptr(), "op", to_text(error.op()).ptr()) != 0) return;
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
  PyObject* const error_type = make_type(
      m, "Error",
      "An error of wick with the message `op: what is wrong: operands: rule`; the attribute op "
      "is the text before the first colon.",
      PyExc_RuntimeError);
  types.fill(error_type);
  for (const Type& t : kTypes) {
    const nb::tuple bases = nb::make_tuple(nb::borrow(error_type), nb::borrow(*t.base));
    types[static_cast<size_t>(t.kind)] = make_type(m, t.name, t.doc, bases.ptr());
  }
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise_error(error);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, "a value has the wrong type");
    }
  });
}

}  // namespace wick::python
