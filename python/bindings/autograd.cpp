// Gradients: leaves, backward and wick.grad. no_grad and enable_grad are defined in wick/_grad.py.
#include "wick/tensor/autograd.h"

#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/tape.h"

namespace wick::python {
namespace {

using namespace nb::literals;

bool is_leaf(const Tensor& x) { return x.node() == nullptr || x.node()->rule == nullptr; }

/// Makes the tensor a leaf in place, or removes its gradient node.
void set_requires_grad(Tensor& x, bool wanted) {
  if (wanted == x.needs_grad()) return;
  if (!wanted && !is_leaf(x)) {
    throw Error(ErrorKind::runtime, "requires_grad", "not a leaf", x.str(), "use detach()");
  }
  x = x.requires_grad(wanted);
}

std::optional<Tensor> grad_of(const Tensor& x) {
  if (x.node() == nullptr || !is_leaf(x)) return std::nullopt;
  const Tensor gradient = x.grad();
  return gradient.defined() ? std::optional(gradient) : std::nullopt;
}

void set_grad(const Tensor& x, MaybeTensor grad_arg) {
  const Tensor gradient = grad_arg.get();
  if (!gradient.defined()) return x.zero_grad();
  set_gradient(x, gradient);
}

std::vector<std::optional<Tensor>> gradients_of(const Tensor& y, TensorsArg inputs,
                                                MaybeTensor gradient, bool create_graph) {
  const std::vector<Tensor> of = inputs.get("grad");
  const Tensor given = gradient.get();
  const ReleasedGil released;
  std::vector<std::optional<Tensor>> result;
  for (Tensor& g : gradients(y, of, given, create_graph)) {
    result.push_back(g.defined() ? std::optional(std::move(g)) : std::nullopt);
  }
  return result;
}

}  // namespace

void bind_autograd(nb::module_& m, TensorClass& tensor) {
  tensor
      .def_prop_rw("requires_grad", &Tensor::needs_grad, &set_requires_grad,
                   "Whether this tensor is a leaf or depends on one. Setting it makes the tensor"
                   " a leaf.",
                   nb::for_setter(nb::arg("requires_grad")))
      .def(
          "requires_grad_",
          [](nb::handle self, bool wanted) {
            set_requires_grad(nb::cast<Tensor&>(self), wanted);
            return nb::borrow(self);
          },
          "requires_grad"_a = true,
          nb::sig("def requires_grad_(self, requires_grad: bool = True) -> Tensor"),
          "Makes this tensor a leaf in place and returns it.")
      .def_prop_ro("is_leaf", &is_leaf,
                   "Whether the tensor isn't the recorded result of a "
                   "function.")
      .def_prop_rw(
          "grad", &grad_of, &set_grad,
          "The gradient that backward() has accumulated for a leaf, or None. Assigning None or "
          "del clears it; a tensor of the leaf's shape, dtype and device replaces it.",
          nb::for_setter(nb::arg("grad").none()))
      .def("zero_grad", &Tensor::zero_grad, "Clears grad.")
      .def("detach", &Tensor::detach,
           "A tensor with the same elements that isn't connected to "
           "the gradient graph.")
      .def(
          "backward",
          [](const Tensor& y, MaybeTensor gradient, bool create_graph) {
            const Tensor given = gradient.get();
            const ReleasedGil released;
            backward(y, given, create_graph);
          },
          "gradient"_a = nb::none(), "create_graph"_a = false,
          "Computes the gradient of this tensor with respect to every leaf that it depends on, "
          "and adds it to that leaf's grad.\nThe tensor must have one element, unless `gradient`"
          " is given, which has its shape and dtype. create_graph: the gradients can be "
          "differentiated again.\nErrors: the tensor depends on no leaf; an op in between isn't "
          "differentiable.");
  // def_prop_rw has no deleter.
  const nb::object grad = tensor.attr("grad");
  tensor.attr("grad") =
      grad.attr("deleter")(nb::cpp_function([](Tensor& x) { x.zero_grad(); }, nb::is_method()));
  m.def("_grad", named("grad", "gradients", &gradients_of), "y"_a, "inputs"_a,
        "gradient"_a = nb::none(), "create_graph"_a = false);
  m.def("is_grad_enabled", &grad_enabled,
        "Whether calls on this thread are recorded for "
        "gradients.");
  m.def("set_grad_enabled", &set_grad_enabled, "enabled"_a,
        "Enables or disables recording of calls on this thread for gradients; see wick.no_grad.");
}

}  // namespace wick::python
