// Functions with PyTorch's names that are composed of ops: wick/tensor/functions.h.
#include "wick/tensor/functions.h"

#include <fmt/format.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <variant>

#include "python/bindings/operators.h"
#include "python/bindings/ops.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

using namespace nb::literals;

ValuesIndices middle(const Tensor& x, int dim, bool keepdim) {
  Sorted result = unlocked([&] { return median(x, dim, keepdim); }, x);
  return {std::move(result.values), std::move(result.indices)};
}

Tensor deviation(const Tensor& x, std::span<const int> dims, bool keepdim, int64_t correction,
                 std::optional<bool> unbiased) {
  return std_dev(x, dims, keepdim, unbiased ? int64_t{*unbiased} : correction);
}

Tensor square(const Tensor& x) { return mul(x, x); }

void bind_elements(OpBinder& ops) {
#define WICK_OF_FLOATS(name, what)                              \
  ops.made(#name, &wick::name,                                  \
           what                                                 \
           "\n\nAny shape, kept. Floats, kept; computed in "    \
           "float64 for float32 and float64, else in float32.", \
           "x"_a);
  WICK_OF_FLOATS(log2, "The logarithm to base 2.")
  WICK_OF_FLOATS(log10, "The logarithm to base 10.")
  WICK_OF_FLOATS(exp2, "2 to the power of each element.")
  WICK_OF_FLOATS(tan, "The tangent, of radians.")
  WICK_OF_FLOATS(sinh, "The hyperbolic sine.")
  WICK_OF_FLOATS(cosh, "The hyperbolic cosine.")
#undef WICK_OF_FLOATS
  ops.made("square", &square, "x * x.\n\nAny shape and real dtype, kept.",
           "x"_a);
  ops.made("trunc", &trunc, "Rounds each element towards zero.\n\nAny shape, kept. Floats, kept.",
           "x"_a);
  ops.made("isfinite", &isfinite,
           "True where x is neither infinite nor NaN.\n\nAny shape, kept. Floats -> bool.",
           "x"_a);
  ops.made("round_to", &round_to,
           "Rounds each element to `decimals` decimals, ties away from zero; negative decimals "
           "round to tens, hundreds and so on.\n\nAny shape, kept. Floats, kept. Errors: "
           "decimals outside [-300, 300].",
           "x"_a, "decimals"_a = 0);
  ops.made("leaky_relu", &leaky_relu,
           "x if x is positive, else negative_slope * x.\n\nAny shape, kept. Floats, kept.", "x"_a,
           "negative_slope"_a = 0.01);
  ops.made("softplus", &softplus,
           "log(1 + exp(beta * x)) / beta, or x itself where beta * x > threshold.\n\nAny shape,"
           " kept. Floats, kept.",
           "x"_a, "beta"_a = 1.0, "threshold"_a = 20.0);
  ops.made("mish", &mish, "x * tanh(softplus(x)).\n\nAny shape, kept. Floats, kept.", "x"_a);
  ops.made("selu", &selu,
           "Scaled ELU: scale * elu(x, alpha), with constants that preserve mean and "
           "variance.\n\nAny shape, kept. Floats, kept.",
           "x"_a);
  ops.made("hardsigmoid", &hardsigmoid,
           "min(max(x / 6 + 1/2, 0), 1).\n\nAny shape, kept. Floats, kept.", "x"_a);
  ops.made("hardswish", &hardswish, "x * hardsigmoid(x).\n\nAny shape, kept. Floats, kept.", "x"_a);
}

void bind_reductions(OpBinder& ops) {
  ops.made("std", &deviation,
           "The standard deviation over dims, the square root of var.\n\nShapes and dtypes are "
           "those of var. correction: 1 gives the sample deviation (unbiased=True), 0 the "
           "population deviation (unbiased=False).",
           "x"_a, "dim"_a = nb::none(), nb::kw_only(), "keepdim"_a = false, "correction"_a = 1,
           "unbiased"_a = nb::none());
  ops.made("norm", &norm,
           "The p-norm (sum of |x|^p)^(1/p) over dims, or over all dims if none are "
           "given.\n\nFloats, kept. p: infinity gives the largest |x|, 0 the number of non-zero "
           "elements. Errors: p is negative.",
           "x"_a, "p"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false);
  ops.made_as<true>(
      "median", [](const Tensor& x) { return unlocked([&] { return median(x); }, x); },
      "The median, the lower of two middle elements; NaN if there is a NaN.\n\nWithout dim, the "
      "median of all elements. With dim, the values and their uint32 indices along it; the dim "
      "is removed, or stays as size 1 with keepdim.\nErrors: there are no elements.",
      "x"_a);
  ops.made_as<true>(
      "median", [](const Tensor& x, int dim, bool keepdim) { return middle(x, dim, keepdim); }, "",
      "x"_a, "dim"_a, "keepdim"_a = false);
}

void bind_products(OpBinder& ops) {
  ops.made("mm", &mm,
           "a [m, k] @ b [k, n] -> [m, n].\n\nErrors: an operand doesn't have rank 2; k differs.",
           "a"_a, "b"_a);
  ops.made("bmm", &bmm,
           "a [b, m, k] @ b [b, k, n] -> [b, m, n].\n\nErrors: an operand doesn't have rank 3; b or "
           "k differs.",
           "a"_a,
           "b"_a);
  ops.made("mv", &mv, "a [m, k] @ b [k] -> [m].\n\nErrors: the ranks are wrong; k differs.",
           "a"_a, "b"_a);
  ops.made("dot", &dot, "The inner product of a [k] and b [k] -> [].\n\nErrors: an operand isn't"
                        " a vector; k differs.",
           "a"_a, "b"_a);
  ops.made("outer", &outer, "The outer product of a [m] and b [n] -> [m, n].\n\nErrors: an "
                            "operand isn't a vector.",
           "a"_a, "b"_a);
}

std::vector<Tensor> grids(const nb::args& vectors, const std::string& indexing) {
  if (indexing != "ij" && indexing != "xy") {
    throw Error("meshgrid", "no such indexing", indexing, "ij or xy");
  }
  const bool is_sequence = vectors.size() == 1 && !nb::isinstance<Tensor>(vectors[0]);
  const std::vector<Tensor> all =
      TensorsArg{is_sequence ? nb::handle(vectors[0]) : nb::handle(vectors)}.get("meshgrid");
  return meshgrid(all, indexing == "xy");
}

void bind_shapes(OpBinder& ops, nb::module_& m) {
  ops.made("unbind", &unbind, "One view for each position along a dim, without that dim.\n\nAny "
                              "shape except [].",
           "x"_a, "dim"_a = 0);
  constexpr auto kRepeat = [](const Tensor& x, int64_t count, std::optional<int> dim) {
    const auto run = [&] {
      return dim ? repeat_interleave(x, count, *dim) : repeat_interleave(x.flatten(), count, 0);
    };
    return unlocked(run, x);
  };
  ops.made_as<true>("repeat_interleave", kRepeat,
                    "Repeats each slice along a dim several times in succession.\n\nrepeats (or count): a number, or a "
                    "tensor of integers, one for each slice. Without a dim x is flattened. Errors: "
                    "a negative number, a tensor of another shape.",
                    "x"_a, "repeats"_a, "dim"_a = nb::none());
  ops.made_as<true>("repeat_interleave", kRepeat, "", "x"_a, "count"_a, "dim"_a = nb::none());
  ops.made_as<true>(
      "repeat_interleave",
      [](const Tensor& x, const Tensor& repeats, std::optional<int> dim) {
        const auto run = [&] {
          return dim ? repeat_interleave(x, repeats, *dim)
                     : repeat_interleave(x.flatten(), repeats, 0);
        };
        return unlocked(run, x);
      },
      "", "x"_a, "repeats"_a, "dim"_a = nb::none());
  m.def(
      "meshgrid", &grids, "vectors"_a, nb::kw_only(), "indexing"_a = "ij",
      nb::sig("def meshgrid(*vectors: Tensor | collections.abc.Sequence[Tensor], indexing: str = "
              "'ij') -> list[Tensor]"),
      "Expands vectors [n0], [n1], … to coordinate grids [n0, n1, …], one view for each vector. "
      "indexing: \"ij\", or \"xy\", which swaps the first two dims of the grids.");
}

/// Converts an index to slices: one slice or a sequence. Errors: other indices.
std::vector<Slice> slices_of(nb::handle where) {
  std::vector<Slice> slices;
  const auto add = [&](nb::handle one) {
    if (!PySlice_Check(one.ptr())) {
      throw nb::type_error(
          fmt::format("slice_assign: where: need a slice or a sequence of slices: not '{}'",
                      type_text(one))
              .c_str());
    }
    const auto bound = [&](const char* name) -> std::optional<int64_t> {
      const nb::object value = one.attr(name);
      if (value.is_none()) return std::nullopt;
      return to_int(value, "slice_assign");
    };
    slices.push_back({bound("start"), bound("stop"), bound("step").value_or(1)});
  };
  if (PyTuple_Check(where.ptr()) || PyList_Check(where.ptr())) {
    for (const nb::object& one : items_of(where)) add(one);
  } else {
    add(where);
  }
  return slices;
}

/// Functions that move elements.
void bind_moves(OpBinder& ops) {
  ops.made(
      "broadcast_left", &broadcast_left,
      "Broadcasts x along new leading dims: the result has the shape `shape` followed by x's "
      "shape. A view.\n\nErrors: the result has more than 8 dims.",
      "x"_a, "shape"_a);
  ops.made_as<false>(
      "embedding",
      [](const Tensor& ids, const Tensor& weight) {
        return unlocked([&] { return embedding(ids, weight); }, ids, weight);
      },
      "Looks up rows of a table weight [n, d] by ids of any shape -> [ids.., d].\n\nThe method "
      "belongs to the table: weight.embedding(ids). Errors: weight doesn't have rank 2; an id is"
      " out of range.",
      "ids"_a, "weight"_a);
  ops.method(
      "embedding",
      [](const Tensor& weight, const Tensor& ids) {
        return unlocked([&] { return embedding(ids, weight); }, ids, weight);
      },
      "Looks up rows of this table [n, d] by ids of any shape -> [ids.., d].\n\nErrors: the "
      "table doesn't have rank 2; an id is out of range.",
      "ids"_a);
  ops.made_as<true>(
      "slice_scatter",
      [](const Tensor& x, const Tensor& source, int dim, std::optional<int64_t> start,
         std::optional<int64_t> end, int64_t step) {
        return unlocked(
            [&] {
              return slice_scatter(x, source, dim, Slice{start, end, step});
            },
            x, source);
      },
      "A copy of x in which the elements start, start + step, … before end along a dim are "
      "replaced by source.\n\nThe other sizes of source are x's; if end is None, the slice ends "
      "where source does. Errors: sizes, dtypes or devices differ; step is below 1.",
      "x"_a, "source"_a, "dim"_a = 0, "start"_a = nb::none(), "end"_a = nb::none(), "step"_a = 1);
  ops.made_as<true>(
      "slice_assign",
      [](const Tensor& x, nb::handle where, const Tensor& source) {
        const std::vector<Slice> slices = slices_of(where);
        return unlocked([&] { return slice_assign(x, slices, source); }, x, source);
      },
      "A copy of x in which a region is replaced by source, which broadcasts to the "
      "region.\n\nwhere: a slice of the first dim, or a sequence of slices of the first dims, "
      "such as (slice(0, 2), slice(None, None, 3)). Errors: there are more slices than dims; "
      "sizes, dtypes or devices don't fit; a step is below 1.",
      "x"_a, "where"_a, "source"_a);
  ops.made(
      "pixel_shuffle", &pixel_shuffle,
      "Moves channels to pixels: x [.., c * r * r, h, w] -> [.., c, h * r, w * r].\n\nErrors: "
      "the rank is below 3; r * r doesn't divide the channels.",
      "x"_a, "upscale_factor"_a);
  ops.made("pixel_unshuffle", &pixel_unshuffle,
           "The inverse of pixel_shuffle: x [.., c, h * r, w * r] -> [.., c * r * r, h, "
           "w].\n\nErrors: the rank is below 3; r doesn't divide the sizes.",
           "x"_a, "downscale_factor"_a);
}

/// The result of unique: its values, or a tuple of them and the other results asked for.
using Tensors = nb::typed<nb::tuple, Tensor, nb::ellipsis>;
std::variant<Tensor, Tensors> unique_parts(const Tensor& x, bool return_inverse,
                                           bool return_counts) {
  if (!return_inverse && !return_counts) return unlocked([&] { return unique(x); }, x);
  const Unique all = unlocked([&] { return unique_all(x); }, x);
  if (!return_counts) return Tensors(nb::make_tuple(all.values, all.inverse));
  if (!return_inverse) return Tensors(nb::make_tuple(all.values, all.counts));
  return Tensors(nb::make_tuple(all.values, all.inverse, all.counts));
}

/// Functions that wait for the device.
void bind_questions(OpBinder& ops) {
  ops.made("equal", &equal,
           "Whether shapes, dtypes and all elements are equal; NaN equals nothing.", "a"_a, "b"_a);
  ops.made("allclose", &allclose,
           "Whether |a - b| <= atol + rtol * |b| for all elements.\n\nAn infinity is close to "
           "itself only, and NaN to NaN only if equal_nan.",
           "a"_a, "b"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  ops.made("nonzero", &nonzero,
           "The indices of the non-zero elements in row-major order: int64 [n, rank].", "x"_a);
  ops.made("masked_select", &masked_select,
           "The elements of x where the mask, which broadcasts to x's shape, is non-zero: [n].",
           "x"_a,
           "mask"_a);
  ops.made("unique", &unique,
           "The distinct elements in ascending order: [n].\n\nreturn_inverse: also returns the index "
           "of each element of x among them, int64 of x's shape. return_counts: also returns how "
           "often each occurs, int64 [n]. The result is sorted also with sorted=False.",
           "x"_a);
  ops.made_as<true>(
      "unique",
      [](const Tensor& x, bool, bool return_inverse, bool return_counts) {
        return unique_parts(x, return_inverse, return_counts);
      },
      "", "x"_a, "sorted"_a = true, "return_inverse"_a = false, "return_counts"_a = false);
}

/// Implements rand(2, 3) and randn((2, 3)).
template <Tensor (*kFunction)(const Shape&, double, double, DType, Device)>
Tensor random_tensor(const char* op, double b, const nb::args& sizes, DTypeArg dtype,
                     DeviceArg device, bool requires_grad) {
  const Shape shape(to_ints(sizes, op));
  const DType type = dtype.get_or(DType::f32);
  const Device place = device.get();
  const Tensor x = unlocked([&] { return kFunction(shape, 0, b, type, place); }, shape);
  return requires_grad ? x.requires_grad() : x;
}

template <Tensor (*kFunction)(const Shape&, double, double, DType, Device)>
Tensor random_like(const Tensor& x, double b, DTypeArg dtype) {
  const DType type = dtype.get_or(x.dtype());
  return unlocked([&] { return kFunction(x.shape(), 0, b, type, x.device()); }, x);
}

void bind_random(nb::module_& m) {
#define WICK_RANDOM(name, row, b, what)                                                         \
  m.def(#name,                                                                                  \
        named(#name, #row,                                                                      \
              [](const nb::args& shape, DTypeArg dtype, DeviceArg device, bool requires_grad) { \
                return random_tensor<&row>(#name, b, shape, dtype, device, requires_grad);      \
              }),                                                                               \
        "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = "cpu",                   \
        "requires_grad"_a = false,                                                              \
        nb::sig("def " #name "(*shape: " WICK_INTS ", dtype: DType | str | None = None, "       \
                "device: Device | str = 'cpu', requires_grad: bool = False) -> Tensor"),        \
        what                                                                                    \
        " dtype: float32 by default.\nThe same seed (wick.manual_seed) gives the same "         \
        "numbers on every device.");                                                            \
  m.def(#name "_like",                                                                          \
        named(#name "_like", #row,                                                              \
              [](const Tensor& x, DTypeArg dtype) { return random_like<&row>(x, b, dtype); }),  \
        "x"_a, "dtype"_a = nb::none(),                                                          \
        nb::sig("def " #name "_like(x: Tensor, dtype: DType | str | None = None) -> Tensor"),   \
        what " The shape and device are those of x. dtype: x's by default.");
  WICK_RANDOM(rand, uniform, 1, "Random numbers from the uniform distribution over [0, 1).")
  WICK_RANDOM(randn, normal, 1, "Random numbers from the standard normal distribution.")
#undef WICK_RANDOM
  m.def(
      "randint",
      [](int64_t low, int64_t high, ShapeArg size, DTypeArg dtype, DeviceArg device) {
        const Shape shape = size.get("randint");
        const DType type = dtype.get_or(DType::i64);
        const Device place = device.get();
        return unlocked([&] { return randint(low, high, shape, type, place); }, shape);
      },
      "low"_a, "high"_a, "size"_a, "dtype"_a = nb::none(), "device"_a = "cpu",
      nb::sig("def randint(low: int, high: int, size: " WICK_INTS
              ", dtype: DType | str | None = None, device: Device | str = 'cpu') -> Tensor"),
      "Random integers in [low, high). dtype: int64 by default.\nErrors: high <= low; the range "
      "is larger than 2^32.");
  m.def(
      "randint",
      [](int64_t high, ShapeArg size, DTypeArg dtype, DeviceArg device) {
        // NumPy's randint(low, high) would be taken for a size.
        if (PyIndex_Check(size.object.ptr()) != 0) {
          throw nb::type_error(
              "randint: size is an integer: pass a shape, e.g. (3,), or low, high and size");
        }
        const Shape shape = size.get("randint");
        const DType type = dtype.get_or(DType::i64);
        const Device place = device.get();
        return unlocked([&] { return randint(0, high, shape, type, place); }, shape);
      },
      "high"_a, "size"_a, "dtype"_a = nb::none(), "device"_a = "cpu",
      nb::sig("def randint(high: int, size: collections.abc.Sequence[typing.SupportsIndex]"
              ", dtype: DType | str | None = None, device: Device | str = 'cpu') -> Tensor"));
  m.def(
      "randperm", [](int64_t n, DeviceArg device) { return randperm(n, device.get()); }, "n"_a,
      "device"_a = "cpu", "A random permutation of 0 to n - 1: int64 [n].\nErrors: n is "
                          "negative.");
  m.def(
      "manual_seed", [](uint64_t seed) { set_seed(seed); }, "seed"_a,
      "Restarts the random numbers of all devices from a seed, like wick.set_seed.");
}

void bind_making(nb::module_& m) {
  m.def(
      "linspace",
      [](double start, double end, int64_t steps, DTypeArg dtype, DeviceArg device) {
        return linspace(start, end, steps, dtype.get_or(DType::f32), device.get());
      },
      "start"_a, "end"_a, "steps"_a, "dtype"_a = nb::none(), "device"_a = "cpu",
      "`steps` evenly spaced numbers from start to end, both included. dtype: float32 by "
      "default.\nErrors: steps is negative; the dtype isn't a float.");
}

}  // namespace

void bind_functions(OpBinder& ops, nb::module_& m) {
  bind_elements(ops);
  bind_reductions(ops);
  bind_products(ops);
  bind_shapes(ops, m);
  bind_moves(ops);
  bind_questions(ops);
  bind_random(m);
  bind_making(m);
}

}  // namespace wick::python
