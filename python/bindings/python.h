#pragma once

// What the files of the extension share: one bind_… function each, called by module.cpp.

#include "python/bindings/binding.h"
#include "wick/tensor/tensor.h"

namespace wick::python {

using TensorClass = nb::class_<Tensor>;

void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_devices(nb::module_& m);
TensorClass bind_tensor(nb::module_& m);
void bind_construction(nb::module_& m);
void bind_operators(TensorClass& tensor);
void bind_indexing(nb::module_& m, TensorClass& tensor);
void bind_writing_in_place(TensorClass& tensor);
void bind_arrays(nb::module_& m, TensorClass& tensor);
void bind_dlpack(nb::module_& m, TensorClass& tensor);
void bind_ops(nb::module_& m, TensorClass& tensor);
void bind_autograd(nb::module_& m, TensorClass& tensor);
void bind_compile(nb::module_& m);
void bind_gguf(nb::module_& m);
void bind_models(nb::module_& m);

/// Whether x[index] shares x's elements: no ids, no masks.
bool gives_view(nb::handle index);
/// x[index]. Errors: an index that gives no view.
Tensor view_at(const Tensor& x, nb::handle index);

/// The slots of the buffer protocol, for the class.
PyType_Slot* buffer_slots();

/// A tensor over memory that a Python object owns and keeps for it, or a copy of it where its
/// elements aren't aligned. Errors: an object without such memory, a dtype that wick doesn't have.
Tensor from_array(nb::handle array, const char* op);
/// Whether from_array takes it.
bool is_array(nb::handle object);
Tensor from_dlpack(nb::handle object);

/// Bytes of another library's as bool: shared where all are 0 or 1, else a copy in which others are 1.
Tensor truths_of(const Tensor& bytes);

/// The elements on the host, dense; read-only. Block dtypes, too. Errors: blocks in rows that
/// aren't neighbours.
Tensor on_host(const Tensor& x);

/// Lets go of a Python object, on whatever thread; not once the interpreter has ended.
template <class F>
void with_gil_if_alive(const F& f) {
  if (!Py_IsInitialized()) return;
  const HeldGil held;
  f();
}

}  // namespace wick::python
