// Functions that move, choose and order elements, and random numbers.
#include <string>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  throw Error("pad", "no such mode", name, "constant, reflect or replicate");
}

Tensor pad_with(const Tensor& x, const Pairs& padding, const std::string& mode, ScalarArg value) {
  std::vector<Padding> sides;
  for (const auto& [before, after] : padding) sides.push_back({before, after});
  const PadMode how = pad_mode(mode);
  const Scalar filling = fitting(value, x.dtype(), "pad");
  return unlocked([&] { return pad(x, sides, how, filling); }, x);
}

ValuesIndices sorted(const Tensor& x, int dim, bool descending) {
  Sorted result = unlocked([&] { return sort(x, dim, descending); }, x);
  return {std::move(result.values), std::move(result.indices)};
}

ValuesIndices top(const Tensor& x, int64_t k, int dim, bool largest) {
  Sorted result = unlocked([&] { return topk(x, k, dim, largest); }, x);
  return {std::move(result.values), std::move(result.indices)};
}

Tensor identity(int64_t rows, std::optional<int64_t> columns, DTypeArg dtype, DeviceArg device) {
  return eye(rows, columns.value_or(rows), dtype.get_or(DType::f32), device.get());
}

/// uniform or normal.
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
      "A dense copy of its own.", "x"_a);
  ops.add(Op::copy, "cat", &cat, "Joined along an existing dim; all other sizes are equal.",
          "tensors"_a, "dim"_a = 0);
  ops.add(Op::copy, "stack", &stack, "Of one shape, joined along a new dim.", "tensors"_a,
          "dim"_a = 0);
  ops.add(Op::copy, "flip", static_cast<Tensor (*)(const Tensor&, std::span<const int>)>(&flip),
          "A view with dims (all, where none is named) running backwards.", "x"_a,
          "dim"_a = nb::none());
  ops.add(
      Op::copy, "roll",
      static_cast<Tensor (*)(const Tensor&, std::span<const int64_t>, std::span<const int>)>(&roll),
      "Elements moved on along dims, one shift a dim; what leaves at an end comes back at the "
      "other.",
      "x"_a, "shifts"_a, "dims"_a);
  ops.add(Op::copy, "repeat",
          static_cast<Tensor (*)(const Tensor&, std::span<const int64_t>)>(&repeat),
          "Laid out so many times along each of the last dims, or of more than there are.", "x"_a,
          "counts"_a);
  ops.add_as(Op::copy, "pad", &pad_with,
             "With elements around it: (before, after) for each of the last dims, in their order. "
             "mode: \"constant\", \"reflect\" or \"replicate\".",
             "x"_a, "padding"_a, "mode"_a = "constant", "value"_a = 0);
  ops.add(Op::copy, "tril", &tril, "The lower triangle of matrices, the rest 0.", "x"_a,
          "diagonal"_a = 0);
  ops.add(Op::copy, "triu", &triu, "The upper triangle of matrices, the rest 0.", "x"_a,
          "diagonal"_a = 0);
}

void bind_index(OpBinder& ops) {
  ops.add_as(
      Op::index_select, "index_select",
      [](const Tensor& x, const Tensor& ids, int dim, DTypeArg dtype) {
        const DType to = dtype.get_or(DType::f32);
        return unlocked([&] { return index_select(x, ids, dim, to); }, x, ids);
      },
      "ids of any shape, which replaces the dim; uint8, uint32, int32 or int64. dtype: what blocks "
      "become.\nErrors: an id out of range, but the largest value of an unsigned dtype gives "
      "zeros.",
      "x"_a, "ids"_a, "dim"_a = 0, "dtype"_a = nb::none());
  constexpr const char* kIds =
      "ids of x's rank, any size along the dim and no larger elsewhere; uint8, uint32, int32 or "
      "int64.\nErrors: an id out of range, but the largest value of an unsigned dtype is padding.";
  ops.add(Op::gather, "gather", &gather, kIds, "x"_a, "ids"_a, "dim"_a);
  ops.add(Op::scatter, "scatter", &scatter, kIds, "x"_a, "ids"_a, "source"_a, "dim"_a);
  ops.add(Op::scatter_add, "scatter_add", &scatter_add, kIds, "x"_a, "ids"_a, "source"_a, "dim"_a);
  ops.add(Op::index_add, "index_add", &index_add, "ids [n]; source of x's shape but for n.", "x"_a,
          "ids"_a, "source"_a, "dim"_a);
  ops.add_as(
      Op::one_hot, "one_hot",
      [](const Tensor& ids, int64_t depth, DTypeArg dtype) {
        return one_hot(ids, depth, dtype.get_or(DType::f32));
      },
      "ids of any shape -> [.., depth], float32 unless dtype says otherwise.", "ids"_a, "depth"_a,
      "dtype"_a = nb::none());
}

void bind_order(OpBinder& ops) {
  ops.add_as(Op::sort, "sort", &sorted, "Values and uint32 indices, of x's shape.", "x"_a,
             "dim"_a = -1, "descending"_a = false);
  ops.add(Op::argsort, "argsort", &argsort, "uint32, of x's shape.", "x"_a, "dim"_a = -1,
          "descending"_a = false);
  ops.add_as(Op::topk, "topk", &top, "Values and uint32 indices, k along the dim.", "x"_a, "k"_a,
             "dim"_a = -1, "largest"_a = true);
  ops.add(Op::cumsum, "cumsum", &cumsum, "Any shape, kept.", "x"_a, "dim"_a = -1);
}

void bind_random(OpBinder& ops, nb::module_& m) {
  ops.function(Op::uniform, "uniform", &random_of<Op::uniform, &uniform>,
               "The same numbers after the same wick.set_seed, on every device.", "shape"_a,
               "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = nb::none(), "device"_a = "cpu",
               "requires_grad"_a = false);
  ops.function(Op::normal, "normal", &random_of<Op::normal, &normal>,
               "The same numbers after the same wick.set_seed, on every device.", "shape"_a,
               "mean"_a = 0.0, "deviation"_a = 1.0, "dtype"_a = nb::none(), "device"_a = "cpu",
               "requires_grad"_a = false);
  m.def(
      "set_seed",
      [](uint64_t seed, DeviceArg device) {
        device.given() ? set_seed(seed, device.get()) : set_seed(seed);
      },
      "seed"_a, "device"_a = nb::none(),
      "Begins a device's sequence of random numbers anew, or those of all.");
  m.def(
      "get_seed", [](DeviceArg device) { return get_seed(device.get()); }, "device"_a = "cpu",
      "The seed that a device's sequence began with.");
}

/// In place, of tensors that share their elements with nobody.
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
      "Writes a number over target[index] in place, or over all of it; index: what gives a view, "
      "e.g. (..., 0).\nErrors: another tensor or array shares the elements; it needs a gradient.");
  served()[Op::copy].emplace_back("slice_set");
  m.def(
      "slice_set",
      [](Tensor& target, const Tensor& source, int dim, int64_t start) {
        unlocked([&] { slice_set(target, source, dim, start); }, source);
      },
      "target"_a, "source"_a, "dim"_a, "start"_a,
      "Writes source over target from an index of a dim on, in place and converted to its dtype: "
      "all other sizes are equal.\nErrors: sizes that don't fit, another tensor or array shares "
      "the "
      "elements.");
}

}  // namespace

void bind_move_ops(OpBinder& ops, nb::module_& m) {
  for (const char* name :
       {"full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "eye"}) {
    served()[Op::fill].emplace_back(name);
  }
  served()[Op::iota].emplace_back("arange");
  m.def("eye", &identity, "rows"_a, "columns"_a = nb::none(), "dtype"_a = nb::none(),
        "device"_a = "cpu",
        "1 on the diagonal and 0 elsewhere.\nfloat32 unless dtype says otherwise.");
  bind_copies(ops);
  bind_index(ops);
  bind_order(ops);
  bind_writing(m);
  bind_random(ops, m);
}

}  // namespace wick::python
