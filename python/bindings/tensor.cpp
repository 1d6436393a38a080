// wick.Tensor: properties, views, and conversion of elements to Python numbers.
#include "wick/tensor/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "python/bindings/arguments.h"
#include "python/bindings/axis.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/op_reference.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick::python {
namespace {

using namespace nb::literals;

nb::tuple shape_tuple(const Tensor& x) {
  const Shape& shape = x.shape();
  nb::object tuple = nb::steal(PyTuple_New(shape.rank()));
  if (!tuple.is_valid()) throw nb::python_error();
  for (int d = 0; d < shape.rank(); ++d) {
    // Steals the reference; it can only fail for an index out of range.
    PyTuple_SetItem(tuple.ptr(), d, PyLong_FromLongLong(shape[d]));
  }
  return nb::borrow<nb::tuple>(tuple);
}

nb::tuple strides_tuple(const Tensor& x) {
  nb::list strides;
  for (int d = 0; d < x.rank(); ++d) strides.append(x.layout().stride(d));
  return nb::tuple(strides);
}

/// Converts one element of host memory to a Python number.
nb::object number(const void* data, DType dtype) {
  const auto read = [&](auto value) {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::boolean:
      return nb::bool_(read(uint8_t{}) != 0);
    case DType::u8:
      return nb::int_(read(uint8_t{}));
    case DType::u32:
      return nb::int_(read(uint32_t{}));
    case DType::i16:
      return nb::int_(read(int16_t{}));
    case DType::i32:
      return nb::int_(read(int32_t{}));
    case DType::i64:
      return nb::int_(read(int64_t{}));
    case DType::f32:
      return nb::float_(static_cast<double>(read(float{})));
    case DType::f64:
      return nb::float_(read(double{}));
    default:
      throw Error(ErrorKind::type, "item", "unsupported dtype", name(dtype));
  }
}

/// Copies x to the host, dense, in a dtype that number() reads.
Tensor readable(const Tensor& x) {
  const Tensor plain = x.detach();
  const bool narrow =
      x.dtype() == DType::bf16 || x.dtype() == DType::f16 || x.dtype() == DType::f8e4m3;
  return unlocked([&] { return on_host(narrow ? plain.to(DType::f32) : plain); }, x);
}

const char* elements(const Tensor& x) {
  return static_cast<const char*>(x.storage()->data()) + bytes_of(x.dtype(), x.layout().offset());
}

/// The only element as a number. `as`: the name of the calling function, for the error of a traced
/// tensor.
nb::object item(const Tensor& x, const char* as) {
  x.require_values(as);
  if (x.elems() != 1) throw Error("item", "not one element", x.str());
  const Tensor host = readable(x);
  return number(elements(host), host.dtype());
}

nb::object nested(const Tensor& x, int dim, const char*& at) {
  if (dim == x.rank()) {
    nb::object value = number(at, x.dtype());
    at += info(x.dtype()).block_bytes;
    return value;
  }
  nb::list list;
  for (int64_t i = 0; i < x.shape()[dim]; ++i) list.append(nested(x, dim + 1, at));
  return list;
}

nb::object to_list(const Tensor& x) {
  x.require_values("tolist");
  const Tensor host = readable(x);
  const char* at = elements(host);
  return nested(host, 0, at);
}

/// Computes the size that is given as -1.
Shape resolve_shape(const Tensor& x, std::vector<int64_t> sizes) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size >= 0 && __builtin_mul_overflow(known, size, &known)) {
      throw Error("reshape", "too many elements", x.str());
    }
  }
  if (open != nullptr) {
    if (known == 0 || x.elems() % known != 0) {
      throw Error("reshape", "-1 doesn't give an integer size", x.str(),
                  fmt::format("{} elements, the other sizes make {}", x.elems(), known));
    }
    *open = x.elems() / known;
  }
  return Shape(sizes);
}

Tensor view_as(const Tensor& x, const nb::args& sizes) {
  const Shape shape = resolve_shape(x, to_ints(sizes, "view"));
  if (shape.elems() == x.elems() && !x.layout().reshape(shape)) {
    throw Error("view", "needs a copy", fmt::format("{} as {}", x.str(), shape.str()),
                "use reshape");
  }
  return x.reshape(shape);
}

/// Implements expand; -1 keeps a size.
Tensor expand(const Tensor& x, const nb::args& args) {
  std::vector<int64_t> sizes = to_ints(args, "expand");
  const int more = static_cast<int>(sizes.size()) - x.rank();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int from = static_cast<int>(d) - more;
    if (sizes[d] == -1 && from >= 0) sizes[d] = x.shape()[from];
  }
  return x.broadcast_to(Shape(sizes));
}

Tensor squeeze(const Tensor& x, DimsArg dims) {
  std::vector<int64_t> kept;
  if (dims.object.ptr() == nullptr || dims.object.is_none()) {
    for (int64_t size : x.shape().dims()) {
      if (size != 1) kept.push_back(size);
    }
    return x.reshape(Shape(kept));
  }
  uint32_t gone = 0;
  for (int dim : dims.get("squeeze")) {
    const int d = resolve_dim("squeeze", dim, x.rank());
    if (x.shape()[d] != 1) return x.squeeze(d);  // throws the error for this size
    gone |= 1u << d;
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (((gone >> d) & 1u) == 0) kept.push_back(x.shape()[d]);
  }
  return x.reshape(Shape(kept));
}

std::vector<Tensor> split(const Tensor& x, IntsArg sizes, int dim) {
  if (!is_int(sizes.object)) return x.split(sizes.get("split"), dim);
  const int64_t size = to_int(sizes.object, "split");
  const int64_t total = x.size(dim);
  if (size < 1) throw Error("split", "size below 1", fmt::format("{}", size));
  std::vector<int64_t> each;
  for (int64_t start = 0; start < total; start += size) {
    each.push_back(std::min(size, total - start));
  }
  return x.split(each, dim);
}

/// Implements to(dtype), to(device), to(device, dtype), by position or name, and to(tensor).
Tensor to(const Tensor& x, const nb::args& args, DTypeArg dtype, DeviceArg device) {
  for (nb::handle arg : args) {
    if (nb::isinstance<Tensor>(arg)) {  // takes dtype and device of another tensor
      const auto& like = nb::cast<const Tensor&>(arg);
      return unlocked([&] { return x.to(like.dtype()).to(like.device()); }, x);
    }
    const bool is_place = nb::isinstance<Device>(arg) || (nb::isinstance<nb::str>(arg) && [&] {
                            const std::string text = utf8_of(arg, "to");
                            return text == "auto" || text.rfind("cpu", 0) == 0 ||
                                   text.rfind("cuda", 0) == 0 || text.rfind("hip", 0) == 0;
                          }());
    (is_place ? device.object : dtype.object) = arg;
  }
  const DType type = dtype.get_or(x.dtype());
  const Device place = device.given() ? device.get() : x.device();
  return unlocked([&] { return x.to(type).to(place); }, x);
}

nb::object reduce(const Tensor& x) {
  const Tensor host = on_host(x.detach());
  const nb::bytes data(elements(host), static_cast<size_t>(bytes_of(host.dtype(), host.elems())));
  const bool is_leaf = x.node() != nullptr;
  return nb::make_tuple(
      nb::module_::import_("wick").attr("_restore"),
      nb::make_tuple(data, dtype_object(x.dtype()), shape_tuple(x), x.device().str(), is_leaf));
}

Tensor restore(const nb::bytes& data, DTypeArg dtype_arg, ShapeArg shape_arg, DeviceArg device,
               bool requires_grad) {
  const DType dtype = dtype_arg.get();
  Tensor x = Tensor::empty(shape_arg.get("restore"), stored(dtype));
  if (data.size() != static_cast<size_t>(bytes_of(dtype, x.elems()))) {
    throw Error("restore", "wrong number of bytes", x.str(), fmt::format("{}", data.size()));
  }
  if (data.size() > 0) std::memcpy(x.storage()->data(), data.data(), data.size());
  x = (dtype == DType::boolean ? truths_of(x) : x).to(device.get());
  return requires_grad ? x.requires_grad() : x;
}

void bind_properties(TensorClass& tensor) {
  tensor
      .def_prop_ro("shape", &shape_tuple, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "The sizes of the dims, outermost first.")
      .def_prop_ro("ndim", &Tensor::rank, "The number of dims, 0 to 8.")
      .def_prop_ro(
          "dtype", [](const Tensor& x) { return dtype_object(x.dtype()); },
          nb::sig("def dtype(self) -> DType"), "The dtype of the elements.")
      .def_prop_ro("device", &Tensor::device, "The device of the elements.")
      .def_prop_ro("strides", &strides_tuple, nb::sig("def strides(self) -> tuple[int, ...]"),
                   "The strides of the dims, in elements.")
      .def_prop_ro(
          "T",
          [](const Tensor& x) {
            std::vector<int> order;
            for (int d = x.rank() - 1; d >= 0; --d) order.push_back(d);
            return x.permute(order);
          },
          "A view with all dims in reverse order.")
      .def_prop_ro("mT", &Tensor::t, "A view with the last two dims swapped.")
      .def("t", &Tensor::t, "A view with the last two dims swapped.")
      .def_prop_ro(
          "nbytes", [](const Tensor& x) { return bytes_of(x.dtype(), x.elems()); },
          "Bytes of all elements.")
      .def(
          "size",
          [](const Tensor& x, nb::object dim) -> nb::object {
            if (dim.is_none()) return shape_tuple(x);
            const int64_t d[] = {to_int(dim, "size")};
            return nb::int_(x.size(to_dims(d, "size")[0]));
          },
          "dim"_a = nb::none(), nb::sig("def size(self, dim: int | None = None) -> typing.Any"),
          "The size of a dim, or a tuple of all sizes.")
      .def("numel", &Tensor::elems, "The number of elements.")
      .def(
          "is_contiguous", [](const Tensor& x) { return x.layout().is_contiguous(); },
          "Whether the elements are row-major without gaps.");
}

void bind_views(TensorClass& tensor) {
  tensor
      .def(
          "reshape",
          [](const Tensor& x, const nb::args& shape) {
            const Shape to = resolve_shape(x, to_ints(shape, "reshape"));
            return unlocked([&] { return x.reshape(to); }, x);
          },
          nb::sig("def reshape(self, *shape: " WICK_INTS ") -> Tensor"),
          "Changes the shape; one size may be -1 and is then computed. Returns a view if the "
          "strides allow it, else a copy.")
      .def("view", &view_as, nb::sig("def view(self, *shape: " WICK_INTS ") -> Tensor"),
           "Like reshape, but raises an error if elements would have to be copied.")
      .def("transpose", &Tensor::transpose, "dim0"_a, "dim1"_a, "A view with two dims swapped.")
      .def(
          "permute",
          [](const Tensor& x, const nb::args& dims) {
            return x.permute(to_dims(to_ints(dims, "permute"), "permute"));
          },
          nb::sig("def permute(self, *dims: " WICK_INTS ") -> Tensor"),
          "A view with the dims in another order.")
      .def("expand", &expand, nb::sig("def expand(self, *shape: " WICK_INTS ") -> Tensor"),
           "A view in which dims of size 1 are repeated to a shape; -1 keeps a size.")
      .def(
          "broadcast_to",
          [](const Tensor& x, ShapeArg shape) { return x.broadcast_to(shape.get("broadcast_to")); },
          "shape"_a, "A view broadcast to a shape by NumPy's rules.")
      .def("flatten",
           named("flatten", "reshape",
                 [](const Tensor& x, int start_dim, int end_dim) {
                   return unlocked([&] { return x.flatten(start_dim, end_dim); }, x);
                 }),
           "start_dim"_a = 0, "end_dim"_a = -1, "Merges the dims from start_dim to end_dim.");
  define(tensor, "squeeze", &squeeze, "dim"_a = nb::none(),
         "Removes dims of size 1: all of them, or those given.");
  define(tensor, "unsqueeze", &Tensor::unsqueeze, "dim"_a, "Inserts a dim of size 1 before `dim`.");
  define(tensor, "narrow", &Tensor::narrow, "dim"_a, "start"_a, "length"_a,
         "A view of `length` elements of a dim from `start` on.");
  define(tensor, "chunk", &Tensor::chunk, "chunks"_a, "dim"_a = 0,
         "Splits a dim into `chunks` views of equal size; the last may be smaller.");
  define(tensor, "split", named("split", "narrow", &split), "sizes"_a, "dim"_a = 0,
         "Splits a dim into views of one size, or of the given sizes.");
}

template <DeviceKind kKind>
Tensor on_gpu(const Tensor& x, int index) {
  const Device place{kKind, index};
  return unlocked([&] { return x.to(place); }, x);
}

/// Conversions with PyTorch's names: x.float(), x.half() and so on.
void bind_conversions(TensorClass& tensor) {
  constexpr std::pair<const char*, DType> kNames[] = {
      {"float", DType::f32},     {"double", DType::f64}, {"half", DType::f16},
      {"bfloat16", DType::bf16}, {"long", DType::i64},   {"int", DType::i32},
      {"short", DType::i16},     {"byte", DType::u8},    {"bool", DType::boolean}};
  for (const auto& [name, dtype] : kNames) {
    const std::string doc = fmt::format(
        "Converts to {}; returns the tensor if it already has the dtype.", python_name(dtype));
    tensor.def(
        name, [dtype](const Tensor& x) { return unlocked([&] { return x.to(dtype); }, x); },
        doc.c_str());
  }
}

void bind_copies(TensorClass& tensor) {
  bind_conversions(tensor);
  tensor
      .def(
          "contiguous", [](const Tensor& x) { return unlocked([&] { return x.contiguous(); }, x); },
          "Returns the tensor if its elements are row-major without gaps, else a copy.")
      .def(
          "clone", [](const Tensor& x) { return unlocked([&] { return x.clone(); }, x); },
          "A dense copy with its own storage.")
      .def("to", &to, nb::arg("args"), nb::kw_only(), "dtype"_a = nb::none(),
           "device"_a = nb::none(),
           nb::sig("def to(self, *args: DType | Device | Tensor | str, dtype: DType | str | None = "
                   "None, "
                   "device: Device | str | None = None) -> Tensor"),
           "Converts to another dtype, copies to another device, or both, or to the dtype and "
           "device of a tensor; returns the tensor if it already has them.")
      .def(
          "cpu", [](const Tensor& x) { return unlocked([&] { return x.to(Device::cpu()); }, x); },
          "Copies to the CPU.")
      .def("cuda", &on_gpu<DeviceKind::cuda>, "index"_a = 0, "Copies to an NVIDIA GPU.")
      .def("hip", &on_gpu<DeviceKind::hip>, "index"_a = 0, "Copies to an AMD GPU.")
      .def(
          "item", [](const Tensor& x) { return item(x, "item"); },
          nb::sig("def item(self) -> typing.Any"),
          "The element of a one-element tensor as a number.")
      .def("tolist", &to_list, nb::sig("def tolist(self) -> typing.Any"),
           "The elements as nested lists of numbers.");
}

void bind_protocols(TensorClass& tensor) {
  tensor
      .def(
          "__repr__",
          [](nb::handle self) {
            return nb::module_::import_("wick._format").attr("tensor_repr")(self);
          },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "__format__",
          [](nb::handle self, const std::string& spec) -> nb::object {
            if (spec.empty()) return nb::str(self);
            const nb::object value = item(nb::cast<const Tensor&>(self), "format");
            return nb::steal(PyObject_Format(value.ptr(), nb::str(spec.c_str()).ptr()));
          },
          nb::sig("def __format__(self, spec: str, /) -> str"))
      .def("__bool__", [](const Tensor& x) { return PyObject_IsTrue(item(x, "bool").ptr()) != 0; })
      .def(
          "__float__", [](const Tensor& x) { return nb::float_(item(x, "float")); },
          nb::sig("def __float__(self) -> float"))
      .def(
          "__int__", [](const Tensor& x) { return nb::int_(item(x, "int")); },
          nb::sig("def __int__(self) -> int"))
      .def(
          "__index__",
          [](const Tensor& x) {
            if (!is_integer(x.dtype())) {
              throw nb::type_error(fmt::format("index: not an integer: {}", x.str()).c_str());
            }
            return item(x, "index");
          },
          nb::sig("def __index__(self) -> int"))
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<uintptr_t>(self.ptr()) >> 4; })
      .def("__copy__", [](const Tensor& x) { return x; })
      .def(
          "__deepcopy__",
          [](const Tensor& x, nb::handle) {
            const Tensor copy = is_block(x.dtype()) ? x : x.detach().clone();
            return x.node() != nullptr ? copy.requires_grad() : copy;
          },
          nb::sig("def __deepcopy__(self, memo: object, /) -> Tensor"))
      .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> typing.Any"));
}

/// The garbage collector can traverse the record of custom ops for gradients, because an op may
/// refer to its result.
int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  if (!nb::inst_ready(self)) return 0;
  const Tensor& x = *nb::inst_ptr<Tensor>(self);
  if (x.node() == nullptr || !can_traverse_ops()) return 0;
  return traverse_ops(tape::owned_custom_ops(x), visit, arg);
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Tensor>(self)->set_node(nullptr);
  return 0;
}

PyType_Slot* tensor_slots() {
  static const std::vector<PyType_Slot> slots = [] {
    std::vector<PyType_Slot> all = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(&clear)}};
    for (const PyType_Slot* slot = buffer_slots(); slot->slot != 0; ++slot) all.push_back(*slot);
    all.push_back({0, nullptr});
    return all;
  }();
  return const_cast<PyType_Slot*>(slots.data());
}

}  // namespace

Tensor on_host(const Tensor& x) {
  if (x.device().kind != DeviceKind::cpu) return x.to(Device::cpu());
  if (is_block(x.dtype())) {
    if (x.layout().is_contiguous()) return x;
    throw Error("to", "the block tensor isn't contiguous", x.str(), "copy the whole tensor");
  }
  return x.contiguous();
}

TensorClass bind_tensor(nb::module_& m) {
  TensorClass tensor(m, "Tensor", nb::type_slots(tensor_slots()), nb::is_weak_referenceable(),
                     "A tensor: elements of one dtype on a device, in up to eight dims. "
                     "Functions and operators return new tensors, methods whose names end in _ "
                     "write in place, and views share the elements. Tensors are made by "
                     "wick.tensor, wick.zeros, wick.from_numpy, ….");
  bind_properties(tensor);
  bind_views(tensor);
  bind_copies(tensor);
  bind_protocols(tensor);
  // NumPy arrays then leave `array + tensor` to the tensor, which raises an error.
  tensor.attr("__array_ufunc__") = nb::none();
  m.def("_restore", &restore, "data"_a, "dtype"_a, "shape"_a, "device"_a, "requires_grad"_a);
  return tensor;
}

}  // namespace wick::python
