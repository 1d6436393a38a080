#pragma once

// Arguments as Python callers write them: what nanobind hands over, turned into what wick takes.
// Casters only keep a reference; get() converts inside the call, where errors may be thrown.

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

/// A dtype as an object of Python: one for each.
struct PyDType {
  DType value;
};
nb::object dtype_object(DType dtype);
/// "float32", where wick says f32.
std::string python_name(DType dtype);
bool is_dtype(nb::handle object);

/// wick.float32, "float32", "f32", or what NumPy calls so.
struct DTypeArg {
  nb::handle object;
  DType get() const;
  DType get_or(DType otherwise) const { return given() ? get() : otherwise; }
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// wick.Device or "cuda:0".
struct DeviceArg {
  nb::handle object;
  Device get() const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// Warns of libraries of the device's vendor that the environment names and that can't be used.
void warn_of_libraries(Device device);

/// A Python number; of NumPy's, too. Not a tensor.
struct ScalarArg {
  double f = 0;
  int64_t i = 0;
  bool is_integer = false;
  bool is_large = false;       ///< an integer beyond 64 bits
  bool is_bool = false;        ///< True or False, which are integers, too
  std::exception_ptr failure;  ///< what the object's own conversion raised
  /// Errors: an integer beyond 64 bits; what the object raised.
  Scalar get() const;
  /// Errors: an integer beyond double's range; what the object raised.
  double to_double() const;
};

// How stubs name whole numbers, one or several; NumPy's have __index__, but aren't ints.
#define WICK_INTS "typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex]"

// Errors of what follows begin with `op`: the function that the argument is for, or its name, too.

/// Whole numbers: one, or a sequence.
struct IntsArg {
  nb::handle object;
  std::vector<int64_t> get(std::string_view op) const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// Padding of a convolution: whole numbers, "valid" for none, or "same".
struct PaddingArg {
  nb::handle object;
};

/// The size of an output: one number for all dims or one for each; None: the input's size.
struct OutputSizeArg {
  nb::handle object;
  /// One size a dim of x's last dims; one may stand for all.
  std::vector<int64_t> get(const Tensor& x, int dims, std::string_view op) const;
};

/// Token ids: a sequence of whole numbers.
struct IdsArg {
  nb::handle object;
  /// Errors: what isn't one, an id beyond 32 bits.
  std::vector<int32_t> get(std::string_view op) const;
};

/// Numbers: one, or a sequence.
struct NumbersArg {
  nb::handle object;
  std::vector<double> get(std::string_view op) const;
  bool given() const { return object.ptr() != nullptr && !object.is_none(); }
};

/// What stands beside a tensor in an operator: a number. Arrays are taken only to be refused in
/// words that help.
struct OperandArg {
  ScalarArg number;
  nb::handle array;
  /// Errors: an array.
  const ScalarArg& get(std::string_view op) const;
};

/// Operands that may be of two kinds.
struct WeightArg {
  nb::handle object;
};
struct TensorOrNumber {
  nb::handle object;
};

/// A shape: a size, or a sequence of them.
struct ShapeArg {
  nb::handle object;
  Shape get(std::string_view op) const;
};

/// Dims: none, one, or a sequence of them.
struct DimsArg {
  nb::handle object;
  std::vector<int> get(std::string_view op) const;
};

/// Tensors in a sequence.
struct TensorsArg {
  nb::handle object;
  std::vector<Tensor> get(std::string_view op) const;
};

/// Weights in a sequence.
struct WeightsArg {
  nb::handle object;
  std::vector<Weight> get(std::string_view op) const;
};

/// A tensor or None: undefined.
struct MaybeTensor {
  nb::handle object;
  Tensor get() const;
};

/// What iterating over an object gives. Its length isn't asked for: it may be a lie. All items are
/// there before any is looked at, so that what looking at one runs can't change the others.
std::vector<nb::object> items_of(nb::handle sequence);

/// The name of an object's type, for errors.
std::string type_text(nb::handle object);

/// The path that text, bytes or an os.PathLike names. Errors begin with `op`.
std::string path_text(nb::handle path, std::string_view op);

/// Whether it is one integer: Python's, or another's without dims.
bool is_int(nb::handle object);
/// One whole number. Errors (TypeError, OverflowError): none that fits.
int64_t to_int(nb::handle object, std::string_view op);
/// `f(1, 2)` and `f((1, 2))` alike.
std::vector<int64_t> to_ints(const nb::args& args, std::string_view op);
/// Whole numbers as dims. Errors: those beyond any tensor's.
std::vector<int> to_dims(std::span<const int64_t> values, std::string_view op);

/// Bytes that make a call worth other threads' time: the GIL is let go around it.
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

/// f(), without the GIL where operands are large enough for that to pay. Operands may broadcast:
/// what they come to is the product of their sizes at most.
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
// None is named where it is the default.
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
