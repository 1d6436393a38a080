#pragma once

// Declarations that the files of the extension share: one bind_… function per file, called by
// module.cpp.

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
void bind_custom(nb::module_& m);
void bind_gguf(nb::module_& m);
void bind_models(nb::module_& m);
void bind_session(nb::module_& m);

/// Whether x[index] is a view: the index has no ids and no masks.
bool gives_view(nb::handle index);
/// x[index] as a view. Errors: the index doesn't give a view.
Tensor view_at(const Tensor& x, nb::handle index);

/// The buffer protocol slots of the class Tensor.
PyType_Slot* buffer_slots();

/// A tensor that shares the memory of a Python array and keeps it alive, or a copy if the elements
/// aren't aligned. Errors: the object isn't an array; wick doesn't have its dtype.
Tensor from_array(nb::handle array, const char* op);
/// Whether from_array accepts the object.
bool is_array(nb::handle object);
Tensor from_dlpack(nb::handle object);

/// Converts bytes of another library to bool: shares them if all are 0 or 1, else makes a copy with
/// 1 for other values.
Tensor truths_of(const Tensor& bytes);

/// A dense read-only copy of x on the host, or x itself if possible. Block dtypes are supported.
/// Errors: a block tensor that isn't contiguous.
Tensor on_host(const Tensor& x);

/// Runs f, which releases a Python object, with the GIL, on any thread; does nothing after the
/// interpreter has ended.
template <class F>
void with_gil_if_alive(const F& f) {
  if (!Py_IsInitialized()) return;
  const HeldGil held;
  f();
}

}  // namespace wick::python
