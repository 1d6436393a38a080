// Functions that move, select and sort elements, and random numbers.
#include <string>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

Tensor identity(int64_t rows, std::optional<int64_t> columns, DTypeArg dtype, DeviceArg device) {
  return eye(rows, columns.value_or(rows), dtype.get_or(DType::f32), device.get());
}

/// Implements uniform and normal.
template <Op kOp, Tensor (*kFunction)(const Shape&, double, double, DType, Device)>
Tensor random_of(ShapeArg shape, double a, double b, DTypeArg dtype, DeviceArg device,
                 bool requires_grad) {
  const Shape sizes = shape.get(name(kOp));
  const DType type = dtype.get_or(DType::f32);
  const Device place = device.get();
  const Tensor x = unlocked([&] { return kFunction(sizes, a, b, type, place); }, sizes);
  return requires_grad ? x.requires_grad() : x;
}

void bind_copies(OpBinder& ops) {
  ops.add_as(
      Op::copy, "copy", [](const Tensor& x) { return unlocked([&] { return x.clone(); }, x); },
      "Returns a dense copy with its own storage.", "x"_a);
  ops.add(Op::cat, "stack", &stack, "Concatenates tensors of one shape along a new dim.",
          "tensors"_a, "dim"_a = 0);
  ops.add(Op::copy, "flip", &flip, "A view with the dims reversed, or all dims if none are given.",
          "x"_a, "dim"_a = nb::none());
  ops.overload<true>(
      Op::copy, "flip", [](const Tensor& x, DimsArg dims) { return flip(x, dims.get("flip")); },
      "x"_a, "dims"_a);
}

/// Converts the order of PyTorch's F.pad: two sizes of the last dim first, then those of the dim
/// before it.
std::vector<Padding> paired(const std::vector<int64_t>& sizes) {
  if (sizes.size() % 2 != 0) {
    throw Error("pad", "an odd number of sizes", fmt::format("{}", sizes.size()),
                "need two sizes for each dim, those of the last dim first");
  }
  std::vector<Padding> padding;
  for (size_t i = sizes.size(); i > 0; i -= 2) padding.push_back({sizes[i - 2], sizes[i - 1]});
  return padding;
}

using WithIds = Tensor (*)(const Tensor&, const Tensor&, int);
using WithSource = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, int);

/// Overloads with PyTorch's argument order and names where a row's differ.
void bind_orders(OpBinder& ops) {
  ops.overload<true>(
      Op::pad, "pad",
      [](const Tensor& x, const std::vector<int64_t>& padding, const std::string& mode,
         ScalarArg value) {
        const std::vector<Padding> sides = paired(padding);
        const PadMode how = PyArg<PadMode>::get(mode, "pad");
        const Scalar element = fitting(value, x.dtype(), "pad");
        return unlocked([&] { return pad(x, sides, how, element); }, x);
      },
      "x"_a, "padding"_a, "mode"_a = "constant", "value"_a = 0);
  const auto with_ids = [&](Op op, const char* name, WithIds f) {
    ops.overload<true>(
        op, name,
        [f](const Tensor& x, int dim, const Tensor& index) {
          return unlocked([&] { return f(x, index, dim); }, x, index);
        },
        "x"_a, "dim"_a, "index"_a);
  };
  with_ids(Op::gather, "gather", &gather);
  with_ids(Op::index_select, "index_select",
           [](const Tensor& x, const Tensor& ids, int dim) { return index_select(x, ids, dim); });
  const auto with_source = [&](Op op, const char* name, const char* source, WithSource f) {
    ops.overload<true>(
        op, name,
        [f](const Tensor& x, int dim, const Tensor& index, const Tensor& from) {
          return unlocked([&] { return f(x, index, from, dim); }, x, index);
        },
        "x"_a, "dim"_a, "index"_a, nb::arg(source));
  };
  with_source(Op::scatter, "scatter", "src", &scatter);
  with_source(Op::scatter_add, "scatter_add", "src", &scatter_add);
  with_source(Op::index_add, "index_add", "source", &index_add);
}

void bind_random(OpBinder& ops, nb::module_& m) {
  ops.function(Op::uniform, "uniform", &random_of<Op::uniform, &uniform>, "", "shape"_a,
               "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = nb::none(), "device"_a = "cpu",
               "requires_grad"_a = false);
  ops.function(Op::normal, "normal", &random_of<Op::normal, &normal>, "", "shape"_a, "mean"_a = 0.0,
               "deviation"_a = 1.0, "dtype"_a = nb::none(), "device"_a = "cpu",
               "requires_grad"_a = false);
  m.def(
      "set_seed",
      [](uint64_t seed, DeviceArg device) {
        device.given() ? set_seed(seed, device.get()) : set_seed(seed);
      },
      "seed"_a, "device"_a = nb::none(),
      "Restarts the random numbers of a device from a seed, or those of all devices.");
  m.def(
      "get_seed", [](DeviceArg device) { return get_seed(device.get()); }, "device"_a = "cpu",
      "The seed that a device's random numbers started from.");
}

/// Functions that write in place to tensors whose elements nobody else shares.
void bind_writing(nb::module_& m) {
  served()[Op::fill].emplace_back("const_set");
  m.def(
      "const_set",
      [](Tensor& target, ScalarArg value, const nb::object& index) {
        const Scalar element = fitting(value, target.dtype(), "const_set");
        const Layout where = index.is_none() ? target.layout() : view_at(target, index).layout();
        unlocked([&] { const_set(target, element, where); }, target);
      },
      "target"_a, "value"_a, "index"_a = nb::none(),
      nb::sig("def const_set(target: Tensor, value: float, index: typing.Any = None) -> None"),
      "Writes a number to target[index] in place, or to all of target. index must give a view, "
      "e.g. (..., 0).\nErrors: another tensor or array shares the elements; a gradient would be "
      "needed.");
  served()[Op::copy].emplace_back("slice_set");
  m.def(
      "slice_set",
      [](Tensor& target, const Tensor& source, int dim, int64_t start) {
        unlocked([&] { slice_set(target, source, dim, start); }, source);
      },
      "target"_a, "source"_a, "dim"_a, "start"_a,
      "Copies source, converted to target's dtype, into target from index `start` of a dim on, "
      "in place. All other sizes must be equal.\nErrors: sizes don't fit; another tensor or "
      "array shares the elements.");
}

}  // namespace

void bind_move_ops(OpBinder& ops, nb::module_& m) {
  for (const char* name :
       {"full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "eye"}) {
    served()[Op::fill].emplace_back(name);
  }
  served()[Op::iota].emplace_back("arange");
  m.def("eye", &identity, "rows"_a, "columns"_a = nb::none(), "dtype"_a = nb::none(),
        "device"_a = "cpu", "The identity matrix.\ndtype: float32 by default.");
  bind_copies(ops);
  bind_orders(ops);
  bind_writing(m);
  bind_random(ops, m);
}

}  // namespace wick::python
