#pragma once

// Conversions from Python arguments to wick's types. The casters only store a reference; get()
// converts during the call, where exceptions are allowed.

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "python/bindings/binding.h"
#include "wick/backend/view.h"
#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/shape.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::python {

/// The Python object of a dtype; each dtype has exactly one.
struct PyDType {
  DType value;
};
nb::object dtype_object(DType dtype);
/// The Python name of a dtype, for example "float32" for f32.
std::string python_name(DType dtype);
bool is_dtype(nb::handle object);

/// A dtype argument: wick.float32, "float32", "f32", or a dtype of NumPy.
struct DTypeArg {
  nb::handle object;
  DType get() const;
  DType get_or(DType otherwise) const { return given() ? get() : otherwise; }
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// A device argument: wick.Device or "cuda:0".
struct DeviceArg {
  nb::handle object;
  Device get() const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// Warns about unusable libraries of the devices' vendors that the environment names.
void warn_of_libraries(std::span<const Device> devices);

/// A Python or NumPy number; not a tensor.
struct ScalarArg {
  double f = 0;
  int64_t i = 0;
  bool is_integer = false;
  bool is_large = false;       ///< whether it is an integer beyond 64 bits
  bool is_bool = false;        ///< whether it is True or False, which also count as integers
  std::exception_ptr failure;  ///< exception raised by the object's own conversion
  /// Errors: an integer beyond 64 bits; an exception of the object.
  Scalar get() const;
  /// Errors: an integer beyond double's range; an exception of the object.
  double to_double() const;
};

// The type of one or several ints in stubs. NumPy's integers have __index__, but aren't ints.
#define WICK_INTS "typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex]"

// Error messages of the types below begin with `op`: the function's name, optionally with the
// argument's name.

/// One int or a sequence of ints.
struct IntsArg {
  nb::handle object;
  std::vector<int64_t> get(std::string_view op) const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// Padding of a convolution: ints, "valid" (none) or "same".
struct PaddingArg {
  nb::handle object;
};

/// The size of an output: one number for all dims or one per dim; None keeps the input's size.
struct OutputSizeArg {
  nb::handle object;
  /// Returns one size for each of the last `dims` dims of x; a single size applies to all.
  std::vector<int64_t> get(const Tensor& x, int dims, std::string_view op) const;
};

/// Token ids: a sequence of ints.
struct IdsArg {
  nb::handle object;
  /// Errors: an item isn't an int; an id exceeds 32 bits.
  std::vector<int32_t> get(std::string_view op) const;
};

/// One number or a sequence of numbers.
struct NumbersArg {
  nb::handle object;
  std::vector<double> get(std::string_view op) const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// A number beside a tensor in an operator. Arrays are also accepted, only to raise a helpful
/// error.
struct OperandArg {
  ScalarArg number;
  nb::handle array;
  /// Errors: the operand is an array.
  const ScalarArg& get(std::string_view op) const;
};

/// Operands of one of two types.
struct WeightArg {
  nb::handle object;
};
struct TensorOrNumber {
  nb::handle object;
};

/// A shape: one size or a sequence of sizes.
struct ShapeArg {
  nb::handle object;
  Shape get(std::string_view op) const;
};

/// Dims: None, one dim or a sequence of dims.
struct DimsArg {
  nb::handle object;
  std::vector<int> get(std::string_view op) const;
};

/// A sequence of tensors.
struct TensorsArg {
  nb::handle object;
  std::vector<Tensor> get(std::string_view op) const;
};

/// A sequence of weights.
struct WeightsArg {
  nb::handle object;
  std::vector<Weight> get(std::string_view op) const;
};

/// A tensor, or None for an undefined tensor.
struct MaybeTensor {
  nb::handle object;
  Tensor get() const;
};

/// Returns the items of an iterable. Its length isn't used, because it may be wrong. All items are
/// collected first, because inspecting one may run code that changes the others.
std::vector<nb::object> items_of(nb::handle sequence);
/// As above, for a sequence other than text. Error messages begin with `op` and `what`.
std::vector<nb::object> items_of(nb::handle sequence, std::string_view op, const char* what);

/// The name of an object's type, for error messages.
std::string type_text(nb::handle object);

/// The UTF-8 of a str. Errors, whose messages begin with `what`: it isn't a str (TypeError); it has
/// surrogates, which UTF-8 can't encode (ValueError).
std::string utf8_of(nb::handle object, std::string_view what);

/// The path given by text, bytes or an os.PathLike. Error messages begin with `op`.
std::string path_text(nb::handle path, std::string_view op);

/// Whether an object is one integer: a Python int, or a zero-dim integer of another type.
bool is_int(nb::handle object);
/// Converts an object to an integer. Errors (TypeError, OverflowError): it isn't an int; it doesn't
/// fit.
int64_t to_int(nb::handle object, std::string_view op);
/// Accepts both `f(1, 2)` and `f((1, 2))`.
std::vector<int64_t> to_ints(const nb::args& args, std::string_view op);
/// Converts integers to dims. Errors: one exceeds the dims of any tensor.
std::vector<int> to_dims(std::span<const int64_t> values, std::string_view op);

/// The number of elements from which releasing the GIL during a call pays.
inline constexpr double kLongElems = 16384;

inline double work_of(const Tensor& x) {
  if (!x.defined()) return 1;
  if (x.device().kind != DeviceKind::cpu) return kLongElems;
  return static_cast<double>(x.elems());
}
inline double work_of(const std::vector<Tensor>& tensors) {
  double work = 1;
  for (const Tensor& x : tensors) work += work_of(x);
  return work;
}
inline double work_of(const Shape& shape) { return static_cast<double>(shape.elems()); }
template <class T>
double work_of(const T&) {
  return 1;
}

/// Calls f(), without the GIL if the operands are large. Operands may broadcast, so the work is
/// estimated by the product of their sizes.
template <class F, class... Operands>
auto unlocked(const F& f, const Operands&... operands) {
  if ((work_of(operands) * ... * 1.0) < kLongElems) return f();
  const ReleasedGil released;
  return f();
}

}  // namespace wick::python

namespace nanobind::detail {

#define WICK_CASTER(Type, text, accepts)                                            \
  template <>                                                                       \
  struct type_caster<wick::python::Type> {                                          \
    NB_TYPE_CASTER(wick::python::Type, const_name(text))                            \
    bool from_python(handle source, uint32_t, cleanup_list*) noexcept {             \
      value.object = source;                                                        \
      return accepts;                                                               \
    }                                                                               \
    static handle from_cpp(wick::python::Type, rv_policy, cleanup_list*) noexcept { \
      return none().release();                                                      \
    }                                                                               \
  };

WICK_CASTER(DTypeArg, "DType | str", true)
WICK_CASTER(DeviceArg, "Device | str", true)
WICK_CASTER(IntsArg, WICK_INTS, true)
WICK_CASTER(PaddingArg, WICK_INTS " | str", true)
WICK_CASTER(OutputSizeArg,
            "typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex | None]", true)
WICK_CASTER(IdsArg, "collections.abc.Sequence[int]", true)
WICK_CASTER(NumbersArg, "float | collections.abc.Sequence[float]", true)
WICK_CASTER(WeightArg, "Weight | Tensor", true)
WICK_CASTER(TensorOrNumber, "Tensor | float", true)
WICK_CASTER(ShapeArg, WICK_INTS, true)
WICK_CASTER(DimsArg, WICK_INTS, true)
WICK_CASTER(TensorsArg, "collections.abc.Sequence[Tensor]", true)
WICK_CASTER(WeightsArg, "collections.abc.Sequence[Weight]", true)
// The stub omits None, because it is the default value there.
WICK_CASTER(MaybeTensor, "Tensor", source.is_none() || isinstance<wick::Tensor>(source))
#undef WICK_CASTER

template <>
struct type_caster<wick::python::ScalarArg> {
  NB_TYPE_CASTER(wick::python::ScalarArg, const_name("float"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(wick::python::ScalarArg s, rv_policy, cleanup_list*) noexcept {
    return s.is_integer ? PyLong_FromLongLong(s.i) : PyFloat_FromDouble(s.f);
  }
};

template <>
struct type_caster<wick::python::OperandArg> {
  NB_TYPE_CASTER(wick::python::OperandArg, const_name("float"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(wick::python::OperandArg, rv_policy, cleanup_list*) noexcept {
    return none().release();
  }
};

}  // namespace nanobind::detail
