// Compiled functions. wick.compile (wick/_compile.py) wraps functions from lists of tensors to
// lists of tensors.
#include "wick/graph/compile.h"

#include <utility>

#include "python/bindings/binding.h"
#include "python/bindings/op_reference.h"
#include "python/bindings/python.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// A Compiled with a Python function. The garbage collector can traverse it, because functions
/// and custom ops often refer to the object compiled from them.
class PythonCompiled {
 public:
  PythonCompiled(nb::object function, const CompileOptions& options)
      : function_(std::move(function)),
        compiled_([this](std::span<const Tensor> arguments) { return call(arguments); }, options) {}
  PythonCompiled(const PythonCompiled&) = delete;
  PythonCompiled& operator=(const PythonCompiled&) = delete;

  const Compiled& compiled() const { return compiled_; }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(self));
#endif
    if (!nb::inst_ready(self)) return 0;
    const PythonCompiled& compiled = *nb::inst_ptr<PythonCompiled>(self);
    Py_VISIT(compiled.function_.ptr());
    if (!can_traverse_ops()) return 0;
    return traverse_ops(compiled.compiled_.owned_custom_ops(), visit, arg);
  }
  static int clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<PythonCompiled>(self)->function_.reset();
    return 0;
  }

 private:
  std::vector<Tensor> call(std::span<const Tensor> arguments) const {
    const HeldGil held;
    nb::list list;
    for (const Tensor& x : arguments) list.append(nb::cast(x));
    return nb::cast<std::vector<Tensor>>(function_(list));
  }

  nb::object function_;
  Compiled compiled_;
};

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PythonCompiled::traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&PythonCompiled::clear)},
                       {0, nullptr}};

}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<PythonCompiled>(m, "_Compiled", nb::type_slots(slots))
      .def(
          "__init__",
          [](PythonCompiled* self, nb::object function, bool fuse, size_t most_executables) {
            new (self) PythonCompiled(std::move(function),
                                      {.fuse = fuse, .most_executables = most_executables});
          },
          "function"_a, "fuse"_a, "most_executables"_a)
      .def(
          "__call__",
          [](const PythonCompiled& self, const std::vector<Tensor>& arguments) {
            const ReleasedGil released;  // the function reacquires the GIL when it is called
            return self.compiled()(arguments);
          },
          "arguments"_a)
      .def_prop_ro("executables",
                   [](const PythonCompiled& self) { return self.compiled().executables(); });
  m.def("_is_traced", [](const Tensor& x) { return x.storage()->is_traced(); });
}

}  // namespace wick::python
