// Sharing memory with other array libraries through DLPack. When wick imports GPU memory, its
// stream waits for the producer's work. When wick exports GPU memory, the host waits for wick's
// work first, and waits for the device again before the memory is reused.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/dlpack_format.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/memory.h"

namespace wick::python {
namespace {

using namespace nb::literals;

std::optional<dlpack::DataType> data_type(DType dtype) {
  if (is_block(dtype)) return std::nullopt;
  const auto code = dtype == DType::bf16      ? dlpack::Code::bfloat
                    : dtype == DType::boolean ? dlpack::Code::boolean
                    : dtype == DType::f8e4m3  ? dlpack::Code::float8_e4m3fn
                    : is_float(dtype)         ? dlpack::Code::floating
                    : info(dtype).kind == DTypeKind::unsigned_integer
                        ? dlpack::Code::unsigned_integer
                        : dlpack::Code::integer;
  return dlpack::DataType{static_cast<uint8_t>(code),
                          static_cast<uint8_t>(info(dtype).block_bytes * 8), 1};
}

std::optional<DType> dtype_of(const dlpack::DataType& type) {
  if (type.lanes != 1) return std::nullopt;
  if (type.code == static_cast<uint8_t>(dlpack::Code::boolean) && type.bits == 8) {
    return DType::boolean;
  }
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const std::optional<dlpack::DataType> own = data_type(static_cast<DType>(d));
    if (own->code == type.code && own->bits == type.bits) return static_cast<DType>(d);
  }
  return std::nullopt;
}

dlpack::DeviceOf device_of(Device device) {
  switch (device.kind) {
    case DeviceKind::cuda:
      return {dlpack::kCuda, device.index};
    case DeviceKind::hip:
      return {dlpack::kRocm, device.index};
    case DeviceKind::cpu:
      break;
  }
  return {dlpack::kCpu, 0};
}

/// Converts a DLPack device to wick's.
Device device_at(const dlpack::DeviceOf& at) {
  switch (at.type) {
    case dlpack::kCpu:
    case dlpack::kCudaHost:
    case dlpack::kRocmHost:
      return Device::cpu();
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      return {DeviceKind::cuda, at.id};
    case dlpack::kRocm:
      return {DeviceKind::hip, at.id};
    default:
      throw Error("from_dlpack", "unsupported kind of device",
                  fmt::format("device {}:{}", at.type, at.id), "copy it to the CPU first");
  }
}

/// The data that a consumer keeps alive: the tensor, and the arrays that the structure points to.
template <class Form>
struct Export {
  Form form{};
  Tensor tensor;
  int64_t shape[Shape::kMaxRank];
  int64_t strides[Shape::kMaxRank];
};

template <class Form>
constexpr const char* kName =
    std::is_same_v<Form, dlpack::Managed> ? "dltensor" : "dltensor_versioned";
template <class Form>
constexpr const char* kUsedName =
    std::is_same_v<Form, dlpack::Managed> ? "used_dltensor" : "used_dltensor_versioned";

template <class Form>
nb::object capsule_of(const Tensor& x, bool is_copy) {
  auto owner = std::make_unique<Export<Form>>();
  owner->tensor = x;
  for (int d = 0; d < x.rank(); ++d) {
    owner->shape[d] = x.shape()[d];
    owner->strides[d] = x.layout().stride(d);
  }
  owner->form.array = {x.storage()->data(),
                       device_of(x.device()),
                       x.rank(),
                       *data_type(x.dtype()),
                       owner->shape,
                       owner->strides,
                       static_cast<uint64_t>(bytes_of(x.dtype(), x.layout().offset()))};
  if constexpr (std::is_same_v<Form, dlpack::Versioned>) {
    owner->form.major = dlpack::kMajor;
    owner->form.minor = dlpack::kMinor;
    owner->form.flags = is_copy ? 0 : dlpack::kReadOnly;
  }
  owner->form.context = owner.get();
  owner->form.deleter = [](Form* form) {
    auto* const held = static_cast<Export<Form>*>(form->context);
    // The consumer's work that reads the memory must end before the memory is reused.
    quiesce(held->tensor.device());
    delete held;
  };
  PyObject* capsule = PyCapsule_New(&owner->form, kName<Form>, [](PyObject* unused) {
    if (!PyCapsule_IsValid(unused, kName<Form>)) return;  // a consumer has taken it
    auto* form = static_cast<Form*>(PyCapsule_GetPointer(unused, kName<Form>));
    form->deleter(form);
  });
  if (capsule == nullptr) throw nb::python_error();
  (void)owner.release();
  return nb::steal(capsule);
}

/// Parses two integers, as in DLPack's devices and versions.
std::pair<int32_t, int32_t> two_integers(nb::handle of, const char* what) {
  if (!PyTuple_Check(of.ptr()) || PyTuple_Size(of.ptr()) < 2) {
    throw nb::type_error(what);
  }
  const auto pair = nb::borrow<nb::tuple>(of);
  int32_t first = 0, second = 0;
  if (!nb::try_cast(nb::int_(pair[0]), first) || !nb::try_cast(nb::int_(pair[1]), second)) {
    throw nb::type_error(what);
  }
  return {first, second};
}

/// Implements x.__dlpack__(); see the array API standard.
nb::object to_dlpack(const Tensor& x, nb::object stream, nb::object max_version,
                     nb::object dl_device, nb::object copy) {
  (void)stream;
  if (!data_type(x.dtype())) {
    PyErr_SetString(PyExc_BufferError, (x.str() + ": DLPack has no blocks").c_str());
    throw nb::python_error();
  }
  x.require_values("__dlpack__");
  Tensor given = x.detach();
  if (!dl_device.is_none()) {
    const auto [type, number] = two_integers(dl_device, "__dlpack__: dl_device: need two integers");
    if (type == dlpack::kCpu) {
      given = unlocked([&] { return given.to(Device::cpu()); }, given);
    } else if (type != device_of(x.device()).type || number != x.device().index) {
      PyErr_SetString(PyExc_BufferError, (x.str() + ": convert it with .to() first").c_str());
      throw nb::python_error();
    }
  }
  bool is_copy = given.storage() != x.storage();
  if (!copy.is_none() && PyObject_IsTrue(copy.ptr()) == 1 && !is_copy) {
    given = unlocked([&] { return given.clone(); }, given);
    is_copy = true;
  } else if (is_copy && copy.ptr() == Py_False) {
    PyErr_SetString(PyExc_BufferError, (x.str() + ": another device needs a copy").c_str());
    throw nb::python_error();
  }
  if (given.device().kind != DeviceKind::cpu) {
    const ReleasedGil released;
    synchronize(given.device());
  }
  const bool is_versioned =
      !max_version.is_none() &&
      two_integers(max_version, "__dlpack__: max_version: need two integers").first >= 1;
  return is_versioned ? capsule_of<dlpack::Versioned>(given, is_copy)
                      : capsule_of<dlpack::Managed>(given, is_copy);
}

/// Owns the producer's memory until the last tensor over it is destroyed.
template <class Form>
std::shared_ptr<const void> owner_of(Form* form) {
  return std::shared_ptr<const void>(form, [](const void* held) {
    with_gil_if_alive([held] {
      auto* const of = const_cast<Form*>(static_cast<const Form*>(held));
      if (of->deleter != nullptr) of->deleter(of);
    });
  });
}

Tensor copied(const char* data, DType dtype, const Shape& shape, const Layout::Strides& strides) {
  const Tensor out = Tensor::empty(shape, dtype);
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  auto* to = static_cast<char*>(out.storage()->data());
  for (int64_t i = 0; i < shape.elems(); ++i, to += bytes) {
    int64_t rest = i, at = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at += rest % shape[d] * strides[static_cast<size_t>(d)];
      rest /= shape[d];
    }
    std::memcpy(to, data + at * static_cast<int64_t>(bytes), bytes);
  }
  return out;
}

constexpr uintptr_t kGpuAlignment = 64;

Tensor tensor_over(const dlpack::Array& array, const std::shared_ptr<const void>& owner) {
  const Device device = device_at(array.device);
  const std::optional<DType> dtype = dtype_of(array.dtype);
  if (!dtype) {
    throw Error(ErrorKind::type, "from_dlpack", "unsupported dtype",
                fmt::format("code {}, {} bits, {} lanes", array.dtype.code, array.dtype.bits,
                            array.dtype.lanes),
                "convert it to one that wick has, e.g. float32 or int64");
  }
  if (array.rank < 0 || array.rank > Shape::kMaxRank) {
    throw Error("from_dlpack", "too many dims", fmt::format("{}", array.rank));
  }
  const auto rank = static_cast<size_t>(array.rank);
  const Shape shape(std::span<const int64_t>(array.shape, rank));
  if (shape.elems() == 0) return Tensor::empty(shape, *dtype, device);
  Layout::Strides strides = Layout::contiguous(shape).strides();
  if (array.strides != nullptr) std::copy_n(array.strides, rank, strides.begin());
  int64_t first = 0, last = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (array.shape[d] == 1) strides[d] = 1;
    (strides[d] < 0 ? first : last) += strides[d] * (array.shape[d] - 1);
  }
  const int64_t bytes = info(*dtype).block_bytes;
  const char* const data = static_cast<const char*>(array.data) + array.byte_offset;
  const auto past = [&](uintptr_t boundary) {
    return reinterpret_cast<uintptr_t>(data + first * bytes) % boundary;
  };
  if (past(static_cast<uintptr_t>(bytes)) != 0) {
    if (device.kind == DeviceKind::cpu) return copied(data, *dtype, shape, strides);
    throw Error("from_dlpack", "elements that aren't aligned", fmt::format("{}", shape.str()),
                "copy it first");
  }
  // GPU allocations begin at a boundary; the bytes between it and the array belong to the array's
  // owner.
  const auto before =
      device.kind == DeviceKind::cpu ? 0 : static_cast<int64_t>(past(kGpuAlignment)) / bytes;
  first -= before;
  return Tensor(Storage::map_on(device, data + first * bytes,
                                static_cast<size_t>((last - first + 1) * bytes), owner),
                *dtype, Layout(shape, strides, -first));
}

template <class Form>
Tensor consume(nb::handle capsule) {
  auto* const form = static_cast<Form*>(PyCapsule_GetPointer(capsule.ptr(), kName<Form>));
  if (form == nullptr) throw nb::python_error();
  if constexpr (std::is_same_v<Form, dlpack::Versioned>) {
    if (form->major > dlpack::kMajor) {
      throw Error(ErrorKind::not_implemented, "from_dlpack", "unsupported version",
                  fmt::format("{}.{}", form->major, form->minor));
    }
  }
  // From here on the tensor owns the memory, even if the checks below fail.
  const std::shared_ptr<const void> owner = owner_of(form);
  if (PyCapsule_SetName(capsule.ptr(), kUsedName<Form>) != 0) throw nb::python_error();
  return tensor_over(form->array, owner);
}

/// Requests a capsule from an object with __dlpack__. On a GPU, wick's stream waits for the
/// producer's work.
nb::object ask_for_capsule(nb::handle object) {
  nb::dict options;
  if (nb::hasattr(object, "__dlpack_device__")) {
    const auto [type, number] = two_integers(object.attr("__dlpack_device__")(),
                                             "from_dlpack: __dlpack_device__: need two integers");
    const Device device = device_at({type, number});
    if (device.kind != DeviceKind::cpu) {
      options["stream"] = reinterpret_cast<uintptr_t>(native_stream(device));
    }
  }
  const nb::object method = object.attr("__dlpack__");
  try {
    return method("max_version"_a = nb::make_tuple(dlpack::kMajor, dlpack::kMinor), **options);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
    return method(**options);  // the producer predates DLPack versions
  }
}

}  // namespace

Tensor from_dlpack(nb::handle object) {
  nb::object capsule = nb::borrow(object);
  if (!PyCapsule_CheckExact(object.ptr())) {
    if (nb::isinstance<Tensor>(object)) return nb::cast<const Tensor&>(object).detach();
    if (!nb::hasattr(object, "__dlpack__")) {
      throw nb::type_error(fmt::format("from_dlpack: not an array: '{}': need an object with "
                                       "__dlpack__",
                                       type_text(object))
                               .c_str());
    }
    capsule = ask_for_capsule(object);
  }
  const bool versioned = PyCapsule_IsValid(capsule.ptr(), kName<dlpack::Versioned>) != 0;
  if (!versioned && PyCapsule_IsValid(capsule.ptr(), kName<dlpack::Managed>) == 0) {
    throw nb::type_error("from_dlpack: need a capsule that hasn't been consumed yet");
  }
  const Tensor x =
      versioned ? consume<dlpack::Versioned>(capsule) : consume<dlpack::Managed>(capsule);
  // A capsule alone doesn't tell which stream its work is on.
  if (capsule.is(object) && x.device().kind != DeviceKind::cpu) {
    const ReleasedGil released;
    quiesce(x.device());
  }
  if (x.dtype() != DType::boolean) return x;
  return truths_of(Tensor(x.storage(), stored(x.dtype()), x.layout()));
}

void bind_dlpack(nb::module_& m, TensorClass& tensor) {
  m.def("from_dlpack", &from_dlpack, "array"_a.none(),
        nb::sig("def from_dlpack(array: typing.Any) -> Tensor"),
        "A tensor that shares the memory of another library's array and keeps it alive. Nothing is"
        " copied, so changes of the array change the tensor. The array may be on the CPU or on a "
        "GPU; on a GPU, wick's stream waits for the array's work. On the CPU, elements that aren't"
        " aligned are copied.\nErrors: wick doesn't have the dtype or the device; elements on a "
        "GPU aren't aligned.");
  tensor
      .def("__dlpack__", &to_dlpack, nb::kw_only(), "stream"_a = nb::none(),
           "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, "
                   "int] | None "
                   "= None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> "
                   "typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Tensor& x) {
            const dlpack::DeviceOf device = device_of(x.device());
            return nb::make_tuple(device.type, device.id);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

}  // namespace wick::python
