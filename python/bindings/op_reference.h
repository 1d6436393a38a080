#pragma once

// References from C++ to the Python objects of custom ops, and how Python's garbage collector sees
// them. A compiled function or the record of a tensor keeps an op alive, and the op often refers to
// the function or the tensor: through an attribute, or through the globals of its methods.

#include <vector>

#include "python/bindings/binding.h"
#include "wick/tensor/custom.h"

namespace wick::python {

/// A reference to a Python op that any thread may drop.
class OpReference {
 public:
  /// The thread must hold the GIL.
  explicit OpReference(nb::object op);
  ~OpReference();
  OpReference(const OpReference&) = delete;
  OpReference& operator=(const OpReference&) = delete;

  /// Errors: release_ops() has been called.
  const nb::object& get() const;
  /// The op, or null after release_ops().
  PyObject* ptr() const { return op_.ptr(); }

 private:
  friend void release_ops();
  nb::object op_;
};

/// The base of custom ops whose bodies are methods of a Python object.
class HasOpReference {
 public:
  virtual ~HasOpReference() = default;
  virtual const OpReference& op_reference() const = 0;
};

/// Whether traverse functions may follow references of C++ objects to ops: there is a Python op,
/// and no thread runs wick's code without the GIL. Such a thread changes the numbers of owners, by
/// which a traverse function knows that its object alone refers to an op. During a collection the
/// answer is the same, because a thread needs the GIL to change it.
bool can_traverse_ops();
/// Visits the Python objects of those ops that have one, for a tp_traverse function.
int traverse_ops(const std::vector<const CustomBody*>& ops, visitproc visit, void* arg);

/// Drops all references to ops.
void release_ops();
/// Drops all references to ops when the interpreter clears the module, after the functions of
/// atexit. The collector, which then runs once more, can't see references of C++ objects that
/// several Python objects share.
void release_ops_with(nb::module_& m);

}  // namespace wick::python
