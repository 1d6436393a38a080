// Sharing memory with NumPy and other users of the buffer protocol.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// The format letter of a dtype in the buffer protocol; null if it has none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "?";
    case DType::u8:
      return "B";
    case DType::u32:
      return "I";
    case DType::i16:
      return "h";
    case DType::i32:
      return "i";
    case DType::i64:
      return "q";
    case DType::f16:
      return "e";
    case DType::f32:
      return "f";
    case DType::f64:
      return "d";
    default:
      return nullptr;
  }
}

std::optional<DType> dtype_of(const char* format, Py_ssize_t bytes) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  if (text.size() != 1) return std::nullopt;
  const char letter = text[0];
  const auto is = [&](std::string_view letters, Py_ssize_t size) {
    return letters.find(letter) != std::string_view::npos && bytes == size;
  };
  if (is("?", 1)) return DType::boolean;
  if (is("B", 1)) return DType::u8;
  if (is("hil", 2)) return DType::i16;
  if (is("hilqn", 4)) return DType::i32;
  if (is("hilqn", 8)) return DType::i64;
  if (is("ILHQN", 4)) return DType::u32;
  if (is("e", 2)) return DType::f16;
  if (is("f", 4)) return DType::f32;
  if (is("d", 8)) return DType::f64;
  return std::nullopt;
}

/// A buffer that is released by the destructor.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
    if (view_.strides != nullptr) {
      strides_.assign(view_.strides, view_.strides + view_.ndim);
      return;
    }
    // Exporters in C order, such as ctypes, may omit strides even if they are requested.
    strides_.resize(static_cast<size_t>(view_.ndim));
    if (view_.ndim > 0) {
      PyBuffer_FillContiguousStrides(view_.ndim, view_.shape, strides_.data(),
                                     static_cast<int>(view_.itemsize), 'C');
    }
  }
  ~Buffer() {
    with_gil_if_alive([this] { PyBuffer_Release(&view_); });
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const Py_buffer& view() const { return view_; }
  /// Bytes between adjacent indices of a dim.
  Py_ssize_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }

 private:
  Py_buffer view_{};
  std::vector<Py_ssize_t> strides_;
};

/// Whether all elements are aligned to their size, as kernels require.
bool is_aligned(const Buffer& buffer) {
  const Py_buffer& view = buffer.view();
  if (reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) != 0)
    return false;
  for (int d = 0; d < view.ndim; ++d) {
    if (view.shape[d] > 1 && buffer.stride(d) % view.itemsize != 0) return false;
  }
  return true;
}

[[noreturn]] void refuse_dtype(const char* op, const std::string& array) {
  throw Error(ErrorKind::type, op, "unsupported dtype", array,
              "convert it to one that wick has, e.g. float32 or int64");
}

}  // namespace

Tensor truths_of(const Tensor& bytes) {
  const auto valid = [&] { return bytes.elems() == 0 || max(bytes).item<uint8_t>() <= 1; };
  if (unlocked(valid, bytes)) return Tensor(bytes.storage(), DType::boolean, bytes.layout());
  return unlocked([&] { return bytes.to(DType::boolean); }, bytes);
}

namespace {

/// Converts bytes from another library to elements of a dtype.
Tensor received(const Tensor& x, DType dtype) {
  return dtype == DType::boolean ? truths_of(x) : x;
}

Tensor from_buffer(nb::handle array, const char* op) {
  const auto buffer = std::make_shared<const Buffer>(array);
  const Py_buffer& view = buffer->view();
  // NumPy's dates without dims export their bytes as one dim, because buffers have no letter for
  // their dtype.
  const nb::object rank = nb::getattr(array, "ndim", nb::none());
  if (nb::isinstance<nb::int_>(rank) && nb::cast<int>(rank) != view.ndim) {
    refuse_dtype(op, fmt::format("a '{}'", type_text(array)));
  }
  const std::optional<DType> dtype = dtype_of(view.format, view.itemsize);
  if (!dtype) {
    refuse_dtype(op, fmt::format("an array of '{}', {} bytes each",
                                 view.format == nullptr ? "B" : view.format, view.itemsize));
  }
  if (view.ndim > Shape::kMaxRank) throw Error(op, "too many dims", fmt::format("{}", view.ndim));
  const std::vector<int64_t> sizes(view.shape, view.shape + view.ndim);
  const Shape shape(sizes);
  if (shape.elems() == 0) return Tensor::empty(shape, *dtype);
  if (!is_aligned(*buffer)) {
    const Tensor copy = Tensor::empty(shape, stored(*dtype));
    if (PyBuffer_ToContiguous(copy.storage()->data(), &view, view.len, 'C') != 0) {
      throw nb::python_error();
    }
    return received(copy, *dtype);
  }
  Layout::Strides strides{};
  int64_t first = 0, last = 0;  // range of elements relative to the first element
  for (int d = 0; d < view.ndim; ++d) {
    const int64_t stride = view.shape[d] > 1 ? buffer->stride(d) / view.itemsize : 0;
    strides[static_cast<size_t>(d)] = view.shape[d] > 1 ? stride : 1;
    (stride < 0 ? first : last) += stride * (view.shape[d] - 1);
  }
  const char* const lowest = static_cast<const char*>(view.buf) + first * view.itemsize;
  const auto bytes = static_cast<size_t>((last - first + 1) * view.itemsize);
  const Layout layout(shape, strides, -first);
  return received(Tensor(Storage::map(lowest, bytes, buffer), stored(*dtype), layout), *dtype);
}

/// The dtype of arrays for which the buffer protocol has no letter, by ml_dtypes' name.
std::optional<DType> special_dtype(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  if (!nb::isinstance<nb::str>(name)) return std::nullopt;
  const auto text = nb::cast<std::string>(name);
  if (text == "bfloat16") return DType::bf16;
  if (text == "float8_e4m3fn") return DType::f8e4m3;
  return std::nullopt;
}

/// Reinterprets x's bytes as elements of another dtype of the same size.
Tensor reinterpreted(const Tensor& x, DType dtype) {
  return Tensor(x.storage(), dtype, x.layout());
}

DType carrier_of(DType dtype) { return dtype == DType::bf16 ? DType::i16 : DType::u8; }

/// The data that a consumer of an exported tensor keeps alive.
struct Exported {
  Tensor tensor;
  Py_ssize_t shape[Shape::kMaxRank];
  Py_ssize_t strides[Shape::kMaxRank];
};

int refuse_buffer(Py_buffer* view, const std::string& why) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, why.c_str());
  return -1;
}

/// Computes dense strides in bytes, in C order (last dim fastest) or Fortran order (first dim
/// fastest).
void dense_strides(const Tensor& x, char order, Py_ssize_t* strides) {
  // If one size is 0, the others may be so large that the product wraps.
  auto next = static_cast<size_t>(info(x.dtype()).block_bytes);
  for (int i = 0; i < x.rank(); ++i) {
    const int d = order == 'C' ? x.rank() - 1 - i : i;
    strides[d] = static_cast<Py_ssize_t>(next);
    next *= static_cast<size_t>(x.shape()[d]);
  }
}

/// Whether x has these strides, given in bytes. The stride of a size-1 dim is meaningless.
bool is_dense(const Tensor& x, const Py_ssize_t* strides) {
  if (x.elems() == 0) return true;
  const Py_ssize_t bytes = info(x.dtype()).block_bytes;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] > 1 && x.layout().stride(d) * bytes != strides[d]) return false;
  }
  return true;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "no place for the buffer");
    return -1;
  }
  if (!nb::inst_ready(self)) return refuse_buffer(view, "a tensor that wasn't initialized");
  const Tensor& x = *nb::inst_ptr<Tensor>(self);
  if (x.device().kind != DeviceKind::cpu) {
    return refuse_buffer(view, x.str() + ": not on the CPU: use .cpu()");
  }
  if (x.storage()->is_traced()) {
    return refuse_buffer(view, x.str() + ": values are read while a function is traced");
  }
  const char* format = format_of(x.dtype());
  if (format == nullptr) return refuse_buffer(view, x.str() + ": buffers have no such dtype");
  const auto asks = [flags](int flag) { return (flags & flag) == flag; };
  if (asks(PyBUF_WRITABLE)) return refuse_buffer(view, "tensors are immutable");
  if (!asks(PyBUF_ND) && asks(PyBUF_FORMAT)) {
    return refuse_buffer(view, x.str() + ": a format without a shape: ask for PyBUF_ND, too");
  }
  auto exported = std::unique_ptr<Exported>(new (std::nothrow) Exported{x, {}, {}});
  if (exported == nullptr) return refuse_buffer(view, "out of memory");
  const Py_ssize_t bytes = info(x.dtype()).block_bytes;
  Py_ssize_t fortran[Shape::kMaxRank];
  dense_strides(x, 'C', exported->strides);
  dense_strides(x, 'F', fortran);
  const bool is_c = is_dense(x, exported->strides), is_f = is_dense(x, fortran);
  const bool needs_c = !asks(PyBUF_STRIDES) || asks(PyBUF_C_CONTIGUOUS);
  const bool needs_f = asks(PyBUF_F_CONTIGUOUS);
  if (needs_c && !is_c) {
    return refuse_buffer(view, x.str() + ": not contiguous: use .contiguous()");
  }
  if (needs_f && !is_f) return refuse_buffer(view, x.str() + ": not in Fortran's order");
  if (asks(PyBUF_ANY_CONTIGUOUS) && !is_c && !is_f) {
    return refuse_buffer(view, x.str() + ": not contiguous: use .contiguous()");
  }
  for (int d = 0; d < x.rank(); ++d) {
    exported->shape[d] = x.shape()[d];
    if (is_c && !needs_f) continue;
    exported->strides[d] = is_f ? fortran[d] : x.layout().stride(d) * bytes;
  }
  view->obj = Py_NewRef(self);
  view->buf = static_cast<char*>(x.storage()->data()) + x.layout().offset() * bytes;
  view->len = x.elems() * bytes;
  view->readonly = 1;
  view->itemsize = bytes;
  view->format = asks(PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  // Consumers that don't request a shape get one dim of bytes, as from memoryview.
  view->ndim = asks(PyBUF_ND) ? x.rank() : 1;
  view->shape = asks(PyBUF_ND) ? exported->shape : nullptr;
  view->strides = asks(PyBUF_STRIDES) ? exported->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

/// Returns a read-only array that shares a tensor's memory.
nb::object to_numpy(nb::handle self) {
  const auto& x = nb::cast<const Tensor&>(self);
  if (x.device().kind != DeviceKind::cpu) {
    throw nb::type_error((x.str() + ": not on the CPU: use .cpu()").c_str());
  }
  x.require_values("numpy");  // throws for a traced tensor; NumPy would ignore get_buffer's error
  if (is_block(x.dtype())) {
    throw nb::type_error((x.str() + ": NumPy has no blocks: use wick.dequantize").c_str());
  }
  const nb::object as_array = nb::module_::import_("numpy").attr("asarray");
  if (format_of(x.dtype()) != nullptr) return as_array(self);
  nb::object types;
  try {
    types = nb::module_::import_("ml_dtypes");
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError)) throw;
    throw nb::type_error((x.str() + ": NumPy has no such dtype: install ml_dtypes, or use "
                                    ".to(wick.float32)")
                             .c_str());
  }
  const nb::object plain = as_array(nb::cast(reinterpreted(x.detach(), carrier_of(x.dtype()))));
  return plain.attr("view")(types.attr(x.dtype() == DType::bf16 ? "bfloat16" : "float8_e4m3fn"));
}

nb::object to_array(nb::handle self, nb::object dtype, nb::object copy) {
  const nb::object array = to_numpy(self);
  const nb::object numpy = nb::module_::import_("numpy");
  if (copy.is_none()) return numpy.attr("asarray")(array, "dtype"_a = dtype);
  return numpy.attr("array")(array, "dtype"_a = dtype, "copy"_a = copy);
}

}  // namespace

PyType_Slot* buffer_slots() {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
      {0, nullptr},
  };
  return slots;
}

bool is_array(nb::handle object) {
  return PyObject_CheckBuffer(object.ptr()) != 0 || nb::hasattr(object, "__dlpack__") ||
         nb::hasattr(object, "__array__");
}

Tensor from_array(nb::handle array, const char* op) {
  if (const std::optional<DType> special = special_dtype(array);
      special && nb::hasattr(array, "view") && PyObject_CheckBuffer(array.ptr())) {
    const nb::object plain =
        array.attr("view")(carrier_of(*special) == DType::i16 ? "int16" : "uint8");
    return reinterpreted(from_buffer(plain, op), *special);
  }
  if (PyObject_CheckBuffer(array.ptr())) return from_buffer(array, op);
  if (nb::hasattr(array, "__dlpack__")) return from_dlpack(array);
  if (nb::hasattr(array, "__array__")) return from_buffer(array.attr("__array__")(), op);
  throw nb::type_error(
      fmt::format("{}: not an array: '{}': need a NumPy array or similar; wick.tensor "
                  "takes numbers and lists",
                  op, type_text(array))
          .c_str());
}

void bind_arrays(nb::module_& m, TensorClass& tensor) {
  m.def(
      "from_numpy", [](nb::handle array) { return from_array(array, "from_numpy"); },
      "array"_a.none(), nb::sig("def from_numpy(array: typing.Any) -> Tensor"),
      "A tensor that shares an array's memory and keeps it alive. Nothing is copied, so changes "
      "of the array change the tensor. Accepts any object with the buffer protocol. If the "
      "elements aren't aligned, they are copied.\nErrors: wick doesn't have the dtype.");
  tensor
      .def("numpy", &to_numpy, nb::sig("def numpy(self) -> typing.Any"),
           "A read-only NumPy array that shares the tensor's memory. bfloat16 and float8_e4m3 "
           "need the package ml_dtypes.")
      .def("__array__", &to_array, "dtype"_a = nb::none(), "copy"_a = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "typing.Any"));
}

}  // namespace wick::python
