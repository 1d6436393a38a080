// Binds the rows of ops.def as functions and methods; the regular rows are bound by the macros.
#include "python/bindings/ops.h"

#include <algorithm>
#include <utility>

#include "python/bindings/operators.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// Python functions, and the C++ functions of other names that implement them.
constexpr std::pair<std::string_view, std::string_view> kMadeOf[] = {
    {"copy", "clone"},
    {"grad", "backward"},
    {"index", "permute"},
    {"index", "reshape"},
    {"index", "slice"},
    {"index", "squeeze"},
    {"index", "unsqueeze"},
    {"max", "maximum"},
    {"min", "minimum"},
    {"rope_of_tokens", "rope_interleaved"},
    {"split", "size"},
    {"stack", "cat"},
    {"upsample_bilinear2d", "size"},
    {"upsample_bilinear2d_grad", "size"},
    {"upsample_nearest2d", "size"},
    {"upsample_nearest2d_grad", "size"},
};

std::string dtype_names(DTypeSet set) {
  if (set == dtypes::kReal) return "all real dtypes";
  if (set == dtypes::kAny) return "all real dtypes and bool";
  if (set == dtypes::kFloats) return "all float dtypes";
  if (set == dtypes::kIntegers) return "all integer dtypes";
  if (set == dtypes::kBits) return "all integer dtypes and bool";
  std::string names;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (set.contains(dtype)) names += (names.empty() ? "" : " ") + python_name(dtype);
  }
  return names;
}

std::string_view class_name(NumericClass numeric_class) {
  switch (numeric_class) {
    case NumericClass::exact:
      return "exact";
    case NumericClass::tree:
      return "tree";
    case NumericClass::blocked:
      return "blocked";
    case NumericClass::bound:
      return "bound";
  }
  return "";
}

std::string_view kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::unary:
      return "unary";
    case OpKind::unary_with:
      return "unary_with";
    case OpKind::test:
      return "test";
    case OpKind::binary:
      return "binary";
    case OpKind::compare:
      return "compare";
    case OpKind::reduce:
      return "reduce";
    case OpKind::arg:
      return "arg";
    case OpKind::other:
      return "other";
  }
  return "";
}

/// Whether a row returns bools.
bool gives_truth(Op op) {
  return info(op).kind == OpKind::test || info(op).kind == OpKind::compare;
}

void add_unary(OpBinder& ops, Op op, Tensor (*function)(const Tensor&)) {
  ops.add(op, name(op).data(), function,
          gives_truth(op) ? "Any shape, kept. The result is bool." : "Any shape, kept.", "x"_a);
}

void add_binary(OpBinder& ops, Op op, Tensor (*function)(const Tensor&, const Tensor&)) {
  const char* const row = name(op).data();
  ops.add(op, row, function,
          gives_truth(op)
              ? "Shapes broadcast; both operands have one dtype and device; a number is "
                "converted to the tensor's dtype. The result is bool."
              : "Shapes broadcast; both operands have one dtype and device; a number is "
                "converted to the tensor's dtype.",
          "a"_a, "b"_a);
  const DTypeSet takes = info(op).dtypes;
  ops.overload<true>(
      op, row,
      [function, row, takes](const Tensor& a, ScalarArg b) {
        const Tensor number = beside(a, b, row, takes);
        return unlocked([&] { return function(a, number); }, a);
      },
      "a"_a, "b"_a);
  ops.overload<false>(
      op, row,
      [function, row, takes](ScalarArg a, const Tensor& b) {
        const Tensor number = beside(b, a, row, takes);
        return unlocked([&] { return function(number, b); }, b);
      },
      "a"_a, "b"_a);
}

void add_reduce(OpBinder& ops, Op op,
                Tensor (*function)(const Tensor&, std::span<const int>, bool)) {
  ops.add(
      op, name(op).data(), function,
      info(op).kind == OpKind::arg
          ? "Over one or several dims, or all dims if none are given; they are removed, or stay "
            "as size 1 with keepdim. The result is the row-major index among the reduced "
            "elements, uint32."
          : "Over one or several dims, or all dims if none are given; they are removed, or stay "
            "as size 1 with keepdim.",
      "x"_a, "dim"_a = nb::none(), "keepdim"_a = false);
}

using ReduceFunction = Tensor (*)(const Tensor&, std::span<const int>, bool);

/// PyTorch's max and min: of all elements; along one dim, with indices; of two tensors.
void add_best(OpBinder& ops, Op op, ReduceFunction values, ReduceFunction indices,
              Tensor (*of_two)(const Tensor&, const Tensor&)) {
  const char* const name = info(op).name.data();
  const char* const several = op == Op::max ? "amax" : "amin";
  ops.add_as(
      op, name,
      [values](const Tensor& x) { return unlocked([&] { return values(x, {}, false); }, x); },
      "Without dim, reduces all elements. With dim, returns values and uint32 indices along it, "
      "which are those of argmax (argmin); the dim is removed, or stays as size 1 with keepdim. "
      "With another tensor, the elementwise maximum (minimum). amax (amin) gives values over "
      "several dims.",
      "x"_a);
  ops.overload<true>(
      op, name,
      [of_two](const Tensor& x, const Tensor& other) {
        return unlocked([&] { return of_two(x, other); }, x, other);
      },
      "x"_a, "other"_a);
  ops.overload<true>(
      op, name,
      [values, indices, name, several](const Tensor& x, IntsArg dim, bool keepdim) {
        if (!is_int(dim.object)) {
          throw nb::type_error(
              fmt::format("{0}: dim: need one int, not '{1}': {0} along a dim gives values and "
                          "indices; {2} gives values over any dims",
                          name, type_text(dim.object), several)
                  .c_str());
        }
        const std::vector<int> dims = DimsArg{dim.object}.get(name);
        return unlocked(
            [&] { return ValuesIndices{values(x, dims, keepdim), indices(x, dims, keepdim)}; }, x);
      },
      "x"_a, "dim"_a, "keepdim"_a = false);
  ops.add(op, several, values,
          "The values without indices, over one or several dims, or all dims if none are given; "
          "they are removed, or stay as size 1 with keepdim.",
          "x"_a, "dim"_a = nb::none(), "keepdim"_a = false);
}

void bind_values_indices(nb::module_& m) {
  nb::class_<ValuesIndices>(m, "ValuesIndices",
                            "Elements along a dim and their indices: values, indices = x.max(1).")
      .def_ro("values", &ValuesIndices::values)
      .def_ro("indices", &ValuesIndices::indices, "uint32.")
      .def(
          "__iter__",
          [](const ValuesIndices& p) {
            return nb::make_tuple(p.values, p.indices).attr("__iter__")();
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
      .def("__len__", [](const ValuesIndices&) { return 2; })
      .def("__getitem__",
           [](const ValuesIndices& p, int i) {
             if (i < -2 || i > 1) throw nb::index_error("there are values and indices");
             return i == 0 || i == -2 ? p.values : p.indices;
           })
      .def("__repr__", [](const ValuesIndices& p) {
        const auto shown = [](const Tensor& x) {
          return nb::cast<std::string>(nb::repr(nb::cast(x)));
        };
        return fmt::format("ValuesIndices(values={}, indices={})", shown(p.values),
                           shown(p.indices));
      });
}

/// Errors: x has integers; the message says how to convert it.
Tensor mean_of_floats(const Tensor& x, std::span<const int> dims, bool keepdim) {
  if (is_integer(x.dtype())) {
    throw Error(ErrorKind::type, "mean", "unsupported dtype", x.str(),
                "takes floats: convert it first, as with .to(wick.float32)");
  }
  return mean(x, dims, keepdim);
}

void bind_rows(OpBinder& ops) {
#define WICK_UNARY(name, ...) add_unary(ops, Op::name, &wick::name);
#define WICK_TEST(name, ...) add_unary(ops, Op::name, &wick::name);
#define WICK_BINARY(name, ...) add_binary(ops, Op::name, &wick::name);
#define WICK_COMPARE(name, ...) add_binary(ops, Op::name, &wick::name);
#define WICK_REDUCE(name, ...)                                              \
  if (Op::name != Op::max && Op::name != Op::min && Op::name != Op::mean) { \
    add_reduce(ops, Op::name, static_cast<ReduceFunction>(&wick::name));    \
  }
#define WICK_ARG WICK_REDUCE
#include "wick/op/ops.def"
  add_reduce(ops, Op::mean, &mean_of_floats);
  add_best(ops, Op::max, &wick::max, &wick::argmax, &wick::maximum);
  add_best(ops, Op::min, &wick::min, &wick::argmin, &wick::minimum);
}

/// A row as a Python object.
struct PyOp {
  Op op;
};

void bind_op_info(nb::module_& m) {
  nb::class_<PyOp>(m, "Op", "A row of the table of operations: see wick.ops().")
      .def_prop_ro("name", [](PyOp o) { return name(o.op); })
      .def_prop_ro(
          "kind", [](PyOp o) { return kind_name(info(o.op).kind); },
          "\"unary\", \"unary_with\" (numbers), \"test\", \"binary\", \"compare\", \"reduce\", "
          "\"arg\" or \"other\".")
      .def_prop_ro(
          "numeric_class", [](PyOp o) { return class_name(info(o.op).numeric_class); },
          "How far results may differ across devices: \"exact\", \"tree\", \"blocked\" or "
          "\"bound\".")
      .def_prop_ro("doc", [](PyOp o) { return info(o.op).doc; })
      .def_prop_ro(
          "dtypes",
          [](PyOp o) {
            nb::list list;
            for (int d = 0; d < kDTypeCount; ++d) {
              const auto dtype = static_cast<DType>(d);
              if (info(o.op).dtypes.contains(dtype)) list.append(dtype_object(dtype));
            }
            return list;
          },
          nb::sig("def dtypes(self) -> list[DType]"))
      .def_prop_ro(
          "functions", [](PyOp o) { return served()[o.op]; },
          "Names of the functions of this module that use this row.")
      .def("__repr__", [](PyOp o) { return fmt::format("<wick.Op {}>", name(o.op)); });
  m.def(
      "ops",
      [] {
        nb::list all;
        for (int i = 0; i < kOpCount; ++i) all.append(nb::cast(PyOp{static_cast<Op>(i)}));
        return all;
      },
      nb::sig("def ops() -> list[Op]"),
      "All ops, with name, dtypes, numeric class and functions.");
}

}  // namespace

std::map<Op, std::vector<std::string>>& served() {
  static auto* const names = new std::map<Op, std::vector<std::string>>();
  return *names;
}

void throw_named(const Error& error, const char* name, std::string_view made_of) {
  const std::string_view message = error.what(), op = error.op();
  const auto is_part = [&](const auto& row) { return row.first == name && row.second == op; };
  const bool renamed = op == made_of || std::ranges::any_of(kMadeOf, is_part);
  constexpr size_t kColon = 2;
  if (!renamed || op == name || message.size() < op.size() + kColon) throw;
  throw Error(error.kind(), name, message.substr(op.size() + kColon));
}

std::string docstring(Op op, std::string_view more) {
  const OpInfo& row = info(op);
  const size_t line = row.doc.find('\n');
  std::string doc(row.doc.substr(0, line));
  if (doc.back() != '.') doc += '.';
  if (more.empty() && line != std::string_view::npos) more = row.doc.substr(line + 1);
  return fmt::format("{}\n\n{}{}Dtypes: {}. Class: {}.", doc, more, more.empty() ? "" : "\n",
                     dtype_names(row.dtypes), class_name(row.numeric_class));
}

void bind_ops(nb::module_& m, TensorClass& tensor) {
  bind_values_indices(m);
  OpBinder ops(m, tensor);
  bind_rows(ops);
  bind_rows_of_arguments(ops);
  bind_map_ops(ops);
  bind_move_ops(ops, m);
  bind_linear_ops(ops, m);
  bind_norm_ops(ops);
  bind_spatial_ops(ops);
  bind_functions(ops, m);
  bind_op_info(m);
}

}  // namespace wick::python
