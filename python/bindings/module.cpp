// The extension wick._core. All that it holds names `wick` as its module, where users find it.
#include <cstring>

#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

PyObject* error_type = nullptr;

void raise_error(const Error& error) {
  const nb::object message = nb::steal(PyUnicode_DecodeUTF8(
      error.what(), static_cast<Py_ssize_t>(std::strlen(error.what())), "replace"));
  const nb::object raised = nb::steal(PyObject_CallOneArg(error_type, message.ptr()));
  if (!raised.is_valid()) return;  // what went wrong there is raised
  const std::string& op = error.op();
  const nb::object name =
      nb::steal(PyUnicode_DecodeUTF8(op.data(), static_cast<Py_ssize_t>(op.size()), "replace"));
  if (PyObject_SetAttrString(raised.ptr(), "op", name.ptr()) != 0) return;
  PyErr_SetObject(error_type, raised.ptr());
}

}  // namespace

void bind_errors(nb::module_& m) {
  error_type = PyErr_NewExceptionWithDoc(
      "wick.Error",
      "What wick refuses, `op: what is wrong: operands: rule`; the attribute op is what stands in "
      "front.",
      PyExc_RuntimeError, nullptr);
  if (error_type == nullptr) throw nb::python_error();
  m.attr("Error") = nb::borrow(error_type);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise_error(error);
    }
  });
}

}  // namespace wick::python

NB_MODULE(_core, m) {
  using namespace wick::python;
  m.attr("__name__") = "wick";
  m.attr("_version") = WICK_VERSION;
  bind_errors(m);
  bind_dtypes(m);
  bind_devices(m);
  TensorClass tensor = bind_tensor(m);
  bind_construction(m);
  bind_operators(tensor);
  bind_indexing(m, tensor);
  bind_arrays(m, tensor);
  bind_dlpack(m, tensor);
  bind_ops(m, tensor);
  bind_autograd(m, tensor);
  bind_gguf(m);
  bind_models(m);
}
