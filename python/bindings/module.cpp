// The extension module wick._core. All its members give `wick` as their module, where users find
// them.
#include "python/bindings/binding.h"
#include "python/bindings/python.h"

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
  bind_writing_in_place(tensor);
  bind_arrays(m, tensor);
  bind_dlpack(m, tensor);
  bind_ops(m, tensor);
  bind_autograd(m, tensor);
  bind_compile(m);
  bind_custom(m);
  bind_gguf(m);
  bind_models(m);
}
