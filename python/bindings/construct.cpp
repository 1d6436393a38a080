// Functions that make tensors from Python numbers and lists, from one value, or from a range.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/operators.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// Nested lists and tuples of numbers, or of tensors and arrays of one shape.
class Nested {
 public:
  explicit Nested(nb::handle data) {
    measure(data);
    read(data, 0);
  }

  /// Makes the tensor. Numbers go to the CPU by default, tensors stay on their device.
  Tensor make(DTypeArg wanted, DeviceArg wanted_device) const {
    if (!tensors_.empty()) return stacked(wanted, wanted_device);
    return of_numbers(wanted).to(wanted_device.given() ? wanted_device.get() : Device::cpu());
  }

 private:
  Tensor of_numbers(DTypeArg wanted) const {
    const bool integers = all_integers_ && !any_large_ && !floats_.empty();
    const DType dtype =
        wanted.get_or(!integers ? DType::f32 : all_bools_ ? DType::boolean : DType::i64);
    const Shape shape(sizes_);
    if (all_integers_ && any_large_ && !(wanted.given() && is_float(dtype))) overflow("64 bits");
    if (is_integer(dtype)) {
      if (!all_integers_) refuse_float(dtype);
      for (int64_t value : integers_) check_fits(value, dtype);
    }
    if (dtype == DType::f32) {
      return Tensor::from(std::vector<float>(floats_.begin(), floats_.end()), shape);
    }
    if (integers) return Tensor::from(integers_, shape).to(dtype);
    return Tensor::from(floats_, shape).to(dtype);
  }

  /// Errors: shapes differ; dtypes or devices differ and none is requested.
  Tensor stacked(DTypeArg wanted, DeviceArg wanted_device) const {
    const Tensor& first = tensors_.front();
    const DType dtype = wanted.get_or(first.dtype());
    const Device device = wanted_device.given() ? wanted_device.get() : first.device();
    std::vector<Tensor> parts;
    for (const Tensor& t : tensors_) {
      const auto refuse = [&](ErrorKind kind, const char* what, const char* rule) {
        throw Error(kind, "tensor", what, fmt::format("{} and {}", first.str(), t.str()), rule);
      };
      if (is_block(t.dtype())) {
        throw Error(ErrorKind::type, "tensor", "unsupported dtype", t.str());
      }
      if (t.shape() != first.shape()) {
        refuse(ErrorKind::value, "ragged lists", "need one shape everywhere");
      }
      if (!wanted.given() && t.dtype() != dtype) {
        refuse(ErrorKind::type, "dtypes differ", "dtypes aren't promoted: give a dtype");
      }
      if (!wanted_device.given() && t.device() != device) {
        refuse(ErrorKind::value, "devices differ", "give a device");
      }
      parts.push_back(t.to(dtype).to(device));
    }
    std::vector<int64_t> sizes = sizes_;
    sizes.insert(sizes.end(), first.shape().dims().begin(), first.shape().dims().end());
    const Shape shape(sizes);  // throws for too many dims
    return unlocked([&] { return stack(parts, 0).reshape(shape); }, parts);
  }

  static bool is_list(nb::handle object) {
    return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  }
  static Py_ssize_t count(nb::handle list) {
    return PyList_Check(list.ptr()) ? PyList_Size(list.ptr()) : PyTuple_Size(list.ptr());
  }
  static nb::object at(nb::handle list, Py_ssize_t i) {
    const nb::object item = nb::borrow(PyList_Check(list.ptr()) ? PyList_GetItem(list.ptr(), i)
                                                                : PyTuple_GetItem(list.ptr(), i));
    if (!item.is_valid()) throw nb::python_error();  // the list became shorter in the meantime
    return item;
  }
  [[noreturn]] static void overflow(const char* of) {
    PyErr_Format(PyExc_OverflowError, "tensor: an integer out of bounds for %s", of);
    throw nb::python_error();
  }

  [[noreturn]] static void refuse_float(DType dtype) {
    throw nb::type_error(fmt::format("tensor: a float with {0}: rounding must be explicit: use "
                                     "ints, or convert with .to(wick.{0})",
                                     python_name(dtype))
                             .c_str());
  }

  /// Determines the shape from the first item at each level.
  void measure(nb::handle data) {
    nb::object at_hand = nb::borrow(data);
    while (is_list(at_hand)) {
      if (sizes_.size() == Shape::kMaxRank) {
        throw Error("tensor", "lists nested too deep", "", "at most 8 dims");
      }
      sizes_.push_back(count(at_hand));
      if (sizes_.back() == 0) return;
      at_hand = at(at_hand, 0);
    }
  }

  void read(nb::handle data, size_t depth) {
    if (depth == sizes_.size()) return read_number(data);
    if (!is_list(data) || count(data) != sizes_[depth]) {
      throw Error("tensor", "ragged lists", fmt::format("dim {}", depth),
                  fmt::format("need {} items everywhere", sizes_[depth]));
    }
    for (Py_ssize_t i = 0; i < sizes_[depth]; ++i) read(at(data, i), depth + 1);
  }

  void read_number(nb::handle data) {
    nb::detail::make_caster<ScalarArg> caster;
    if (is_list(data)) {
      throw Error("tensor", "ragged lists", fmt::format("dim {}", sizes_.size()),
                  "need numbers everywhere");
    }
    if (!caster.from_python(data, 0, nullptr)) {
      const bool is_tensor = nb::isinstance<Tensor>(data);
      // NumPy's complex scalars also count as arrays.
      const bool has_items = PySequence_Check(data.ptr()) || nb::hasattr(data, "__dlpack__");
      if (!is_tensor && !(has_items && is_array(data))) {
        throw nb::type_error(fmt::format("tensor: not a number: '{}': need numbers, tensors or "
                                         "arrays, or lists of them",
                                         type_text(data))
                                 .c_str());
      }
      return add(is_tensor ? nb::cast<const Tensor&>(data).detach()
                           : from_array(data, "tensor").to(Device::cpu()));
    }
    // Numbers and zero-dim tensors are mixed, so all are treated as numbers.
    const std::vector<Tensor> tensors = std::exchange(tensors_, {});
    for (const Tensor& t : tensors) add(as_number(t));
    add(caster.value);
  }

  void add(const Tensor& tensor) {
    if (floats_.empty()) {
      tensors_.push_back(tensor);
    } else {
      add(as_number(tensor));
    }
  }

  /// Errors: the tensor has dims.
  static ScalarArg as_number(const Tensor& tensor) {
    if (tensor.rank() != 0) {
      throw Error("tensor", "ragged lists", tensor.str(), "need numbers everywhere");
    }
    nb::detail::make_caster<ScalarArg> caster;
    caster.from_python(nb::cast(tensor).attr("item")(), 0, nullptr);
    return caster.value;
  }

  void add(const ScalarArg& value) {
    // The requested dtype isn't known here, but a value too large for floats is also too large for
    // integers.
    floats_.push_back(value.to_double());
    all_integers_ = all_integers_ && value.is_integer;
    all_bools_ = all_bools_ && value.is_bool;
    any_large_ = any_large_ || value.is_large;
    if (all_integers_) integers_.push_back(value.i);
  }

  std::vector<int64_t> sizes_;
  std::vector<Tensor> tensors_;  // used until the first number
  std::vector<double> floats_;
  std::vector<int64_t> integers_;  // used while all numbers are integers
  bool all_integers_ = true, all_bools_ = true, any_large_ = false;
};

Tensor finished(Tensor x, bool requires_grad) { return requires_grad ? x.requires_grad() : x; }

Tensor tensor_of(nb::handle data, DTypeArg dtype, DeviceArg device, bool requires_grad) {
  if (nb::isinstance<Tensor>(data) || is_array(data)) {
    const Tensor source = nb::isinstance<Tensor>(data) ? nb::cast<const Tensor&>(data).detach()
                                                       : from_array(data, "tensor");
    const Device place = device.given()                 ? device.get()
                         : nb::isinstance<Tensor>(data) ? source.device()
                                                        : Device::cpu();
    const DType to = dtype.get_or(source.dtype());
    const bool copies = to == source.dtype() && place == source.device();
    return finished(
        unlocked([&] { return copies ? source.clone() : source.to(to).to(place); }, source),
        requires_grad);
  }
  return finished(Nested(data).make(dtype, device), requires_grad);
}

Tensor filled(const Shape& shape, Scalar value, DType dtype, DeviceArg device, bool requires_grad) {
  const Device place = device.get();
  return finished(unlocked([&] { return Tensor::full(shape, value, dtype, place); }, shape),
                  requires_grad);
}

/// Implements zeros(2, 3) and zeros((2, 3)).
template <int kValue>
Tensor constant(const nb::args& shape, DTypeArg dtype, DeviceArg device, bool requires_grad) {
  const char* const op = kValue == 0 ? "zeros" : "ones";
  return filled(Shape(to_ints(shape, op)), kValue, dtype.get_or(DType::f32), device, requires_grad);
}

template <int kValue>
Tensor constant_like(const Tensor& x, DTypeArg dtype) {
  const DType type = dtype.get_or(x.dtype());
  return unlocked([&] { return Tensor::full(x.shape(), kValue, type, x.device()); }, x);
}

Tensor full_like(const Tensor& x, ScalarArg value, DTypeArg dtype) {
  const DType type = dtype.get_or(x.dtype());
  const Scalar element = fitting(value, type, "full_like");
  return unlocked([&] { return Tensor::full(x.shape(), element, type, x.device()); }, x);
}

Tensor full(ShapeArg shape, ScalarArg value, DTypeArg dtype, DeviceArg device, bool requires_grad) {
  const DType type = dtype.get_or(value.is_bool      ? DType::boolean
                                  : value.is_integer ? DType::i64
                                                     : DType::f32);
  return filled(shape.get("full"), fitting(value, type, "full"), type, device, requires_grad);
}

/// Makes a tensor with uninitialised elements; bools are 0, because they must be 0 or 1.
Tensor unwritten(const Shape& shape, DType dtype, Device device) {
  return dtype == DType::boolean ? Tensor::zeros(shape, dtype, device)
                                 : Tensor::empty(shape, dtype, device);
}

Tensor empty(const nb::args& shape, DTypeArg dtype, DeviceArg device, bool requires_grad) {
  const Shape sizes(to_ints(shape, "empty"));
  return finished(unwritten(sizes, dtype.get_or(DType::f32), device.get()), requires_grad);
}

Tensor empty_like(const Tensor& x, DTypeArg dtype) {
  return unwritten(x.shape(), dtype.get_or(x.dtype()), x.device());
}

/// Truncates a float to an integer. Errors (OverflowError): it exceeds 64 bits.
int64_t whole_part(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<int64_t>(value);
  PyErr_SetString(PyExc_OverflowError, "arange: a number beyond 64 bits");
  throw nb::python_error();
}

/// Implements arange(stop), arange(start, stop) and arange(start, stop, step), like Python's range.
Tensor arange(ScalarArg first, const nb::object& second, ScalarArg step, DTypeArg dtype,
              DeviceArg device) {
  ScalarArg start, stop = first;
  start.is_integer = true;
  if (!second.is_none()) {
    start = first;
    nb::detail::make_caster<ScalarArg> caster;
    if (!caster.from_python(second, 0, nullptr)) throw nb::type_error("arange: need numbers");
    stop = caster.value;
  }
  const bool integers = start.is_integer && stop.is_integer && step.is_integer;
  const double from = start.to_double(), to = stop.to_double(), by = step.to_double();
  if (by == 0 || !std::isfinite(from) || !std::isfinite(to) || !std::isfinite(by)) {
    throw Error("arange", "no finite range", fmt::format("{}, {}, {}", from, to, by),
                "need finite numbers and step != 0");
  }
  const double count = std::ceil((to - from) / by);
  int64_t whole = count > 0 ? (count < 0x1p62 ? static_cast<int64_t>(count) : INT64_MAX) : 0;
  if (integers) {
    (void)start.get(), (void)stop.get(), (void)step.get();
    const __int128 span = static_cast<__int128>(stop.i) - start.i;
    const __int128 stride = step.i;
    const __int128 exact =
        (span > 0) == (stride > 0) ? (span + stride - (stride > 0 ? 1 : -1)) / stride : 0;
    whole = exact > INT64_MAX ? INT64_MAX : static_cast<int64_t>(span == 0 ? 0 : exact);
  }
  const DType type = dtype.get_or(integers ? DType::i64 : DType::f32);
  if (is_integer(type) && whole > 0) {
    // If the first and the last value fit in the dtype, all do.
    check_fits(integers ? start.i : whole_part(from), type);
    check_fits(integers ? static_cast<int64_t>(start.i + static_cast<__int128>(whole - 1) * step.i)
                        : whole_part(from + static_cast<double>(whole - 1) * by),
               type);
  }
  const Device place = device.get();
  return Tensor::arange(start.get(), whole, step.get(), type, place);
}

}  // namespace

void bind_construction(nb::module_& m) {
  m.def("tensor", named("tensor", "cast", &tensor_of), "data"_a.none(), "dtype"_a = nb::none(),
        "device"_a = nb::none(), "requires_grad"_a = false,
        nb::sig(
            "def tensor(data: typing.Any, dtype: DType | str | None = None, device: Device | str | "
            "None = None, requires_grad: bool = False) -> Tensor"),
        "A tensor made from a number, an array, another tensor, nested lists of numbers, or "
        "nested lists of arrays and tensors of one shape. The elements are copied.\nWithout "
        "dtype, floats become float32, ints int64 and bools bool; arrays and tensors keep their "
        "dtype and device.\nErrors: the lists are ragged; arrays or tensors have several dtypes;"
        " the dtype is an integer and the data has floats or is out of range.");
#define WICK_CONSTANT(name, value, doc)                                                       \
  m.def(#name, &constant<value>, "shape"_a, nb::kw_only(), "dtype"_a = nb::none(),            \
        "device"_a = "cpu", "requires_grad"_a = false,                                        \
        nb::sig("def " #name "(*shape: " WICK_INTS ", dtype: DType | str | None = None, "     \
                "device: Device | str = 'cpu', requires_grad: bool = False) -> Tensor"),      \
        doc " dtype: float32 by default.");                                                   \
  m.def(#name "_like", named(#name "_like", "full", &constant_like<value>), "x"_a, "dtype"_a = nb::none(),                  \
        nb::sig("def " #name "_like(x: Tensor, dtype: DType | str | None = None) -> Tensor"), \
        doc " It has the shape and device of x. dtype: x's by default.");
  WICK_CONSTANT(zeros, 0, "A tensor of zeros.")
  WICK_CONSTANT(ones, 1, "A tensor of ones.")
#undef WICK_CONSTANT
  m.def("empty", &empty, "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = "cpu",
        "requires_grad"_a = false,
        nb::sig("def empty(*shape: " WICK_INTS ", dtype: DType | str | None = None, "
                "device: Device | str = 'cpu', requires_grad: bool = False) -> Tensor"),
        "A tensor with uninitialised elements. dtype: float32 by default.");
  m.def("empty_like", &empty_like, "x"_a, "dtype"_a = nb::none(),
        nb::sig("def empty_like(x: Tensor, dtype: DType | str | None = None) -> Tensor"),
        "A tensor with uninitialised elements and the shape and device of x. dtype: x's by "
        "default.");
  m.def("full", &full, "shape"_a, "value"_a, "dtype"_a = nb::none(), "device"_a = "cpu",
        "requires_grad"_a = false,
        nb::sig("def full(shape: " WICK_INTS ", value: float, dtype: DType | str | None = "
                "None, device: Device | str = 'cpu', requires_grad: bool = False) -> Tensor"),
        "A tensor filled with one value. dtype: by default bool for a bool, int64 for an int, "
        "else float32.");
  m.def("full_like", named("full_like", "full", &full_like), "x"_a, "value"_a, "dtype"_a = nb::none(),
        "A tensor filled with one value, with the shape and device of x. dtype: x's by default.");
  m.def("arange", &arange, "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(),
        "device"_a = "cpu",
        nb::sig("def arange(start: float, stop: float | None = None, step: float = 1, dtype: DType "
                "| str | None = None, device: Device | str = 'cpu') -> Tensor"),
        "The numbers start, start + step, … before stop. With one argument: 0, 1, … before it. "
        "dtype: by default int64 if all arguments are ints, else float32.");
}

}  // namespace wick::python
