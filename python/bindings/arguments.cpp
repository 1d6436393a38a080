#include "python/bindings/arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "wick/base/error.h"

namespace wick::python {
namespace {

/// Whether an object is a sequence other than text; its items aren't checked.
bool is_sequence(nb::handle object) {
  return PySequence_Check(object.ptr()) && !PyUnicode_Check(object.ptr()) &&
         !PyBytes_Check(object.ptr());
}

template <class F>
void for_each_item(nb::handle sequence, std::string_view op, const char* what, const F& f) {
  for (const nb::object& item : items_of(sequence, op, what)) f(item);
}

}  // namespace

std::vector<nb::object> items_of(nb::handle sequence) {
  const nb::object iterator = nb::steal(PyObject_GetIter(sequence.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  std::vector<nb::object> items;
  while (PyObject* const item = PyIter_Next(iterator.ptr())) {
    items.push_back(nb::steal(item));
    // Ctrl-C must stop an endless iterator.
    constexpr size_t kBetweenChecks = size_t{1} << 16;
    if (items.size() % kBetweenChecks == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return items;
}

std::vector<nb::object> items_of(nb::handle sequence, std::string_view op, const char* what) {
  if (!is_sequence(sequence)) {
    throw nb::type_error(fmt::format("{}: {}: not '{}'", op, what, type_text(sequence)).c_str());
  }
  return items_of(sequence);
}

std::string type_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::getattr(object.type(), "__name__")));
}

std::string utf8_of(nb::handle object, std::string_view what) {
  if (!PyUnicode_Check(object.ptr())) {
    throw nb::type_error(fmt::format("{}: need text: not '{}'", what, type_text(object)).c_str());
  }
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<size_t>(size)};
  const nb::python_error failure;
  if (!failure.matches(PyExc_UnicodeEncodeError)) throw nb::python_error(failure);
  throw Error(what, "text with a surrogate",
              fmt::format("index {}", nb::cast<int64_t>(failure.value().attr("start"))),
              "need text that UTF-8 can encode");
}

std::string path_text(nb::handle path, std::string_view op) {
  if (!PyUnicode_Check(path.ptr()) && !PyBytes_Check(path.ptr()) &&
      !nb::hasattr(path.type(), "__fspath__")) {
    throw nb::type_error(
        fmt::format("{}: path: need text or a path: not '{}'", op, type_text(path)).c_str());
  }
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw nb::python_error();
  const nb::object bytes = nb::steal(encoded);
  return {PyBytes_AsString(encoded), static_cast<size_t>(PyBytes_Size(encoded))};
}

bool is_int(nb::handle object) {
  if (PyLong_Check(object.ptr())) return true;
  // Arrays with dims have __index__, too.
  return PyIndex_Check(object.ptr()) != 0 &&
         nb::getattr(object, "ndim", nb::int_(0)).equal(nb::int_(0));
}

int64_t to_int(nb::handle object, std::string_view op) {
  if (!is_int(object)) {
    throw nb::type_error(fmt::format("{}: need ints: not '{}'", op, type_text(object)).c_str());
  }
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    PyErr_SetString(PyExc_OverflowError, fmt::format("{}: an integer beyond 64 bits", op).c_str());
  }
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

std::vector<int64_t> IntsArg::get(std::string_view op) const {
  if (is_int(object)) return {to_int(object, op)};
  std::vector<int64_t> values;
  for_each_item(object, op, "need an int or a sequence of ints",
                [&](nb::handle item) { values.push_back(to_int(item, op)); });
  return values;
}

std::vector<int64_t> OutputSizeArg::get(const Tensor& x, int dims, std::string_view op) const {
  std::vector<std::optional<int64_t>> given;
  const auto add = [&](nb::handle item) {
    given.push_back(item.is_none() ? std::nullopt : std::optional(to_int(item, op)));
  };
  if (object.is_none() || is_int(object)) {
    add(object);
  } else {
    for_each_item(object, op, "need an int, None or a sequence of them", add);
  }
  if (given.size() == 1) given.resize(static_cast<size_t>(dims), given[0]);
  if (given.size() != static_cast<size_t>(dims)) {
    throw nb::type_error(fmt::format("{}: need one size or {}", op, dims).c_str());
  }
  std::vector<int64_t> sizes;
  for (int d = 0; d < dims; ++d) {
    const std::optional<int64_t> size = given[static_cast<size_t>(d)];
    sizes.push_back(size || x.rank() < dims ? size.value_or(1) : x.size(d - dims));
  }
  return sizes;
}

std::vector<int32_t> IdsArg::get(std::string_view op) const {
  std::vector<int32_t> ids;
  for_each_item(object, op, "need a sequence of token ids", [&](nb::handle item) {
    const int64_t id = to_int(item, op);
    if (id != static_cast<int32_t>(id)) {
      throw Error(ErrorKind::index, op, "token id out of range", fmt::format("{}", id));
    }
    ids.push_back(static_cast<int32_t>(id));
  });
  return ids;
}

std::vector<double> NumbersArg::get(std::string_view op) const {
  std::vector<double> values;
  const auto read = [&](nb::handle item) {
    nb::detail::make_caster<ScalarArg> number;
    if (!number.from_python(item, 0, nullptr)) {
      throw nb::type_error(fmt::format("{}: need a number: not '{}'", op, type_text(item)).c_str());
    }
    values.push_back(number.value.to_double());
  };
  if (is_sequence(object)) {
    for_each_item(object, op, "need numbers", read);
  } else {
    read(object);
  }
  return values;
}

Shape ShapeArg::get(std::string_view op) const { return Shape(IntsArg{object}.get(op)); }

std::vector<int> to_dims(std::span<const int64_t> values, std::string_view op) {
  std::vector<int> dims;
  for (int64_t value : values) {
    if (value != static_cast<int>(value)) {
      throw Error(ErrorKind::index, op, "dimension out of range", fmt::format("dim {}", value),
                  fmt::format("tensors have up to {}", Shape::kMaxRank));
    }
    dims.push_back(static_cast<int>(value));
  }
  return dims;
}

std::vector<int> DimsArg::get(std::string_view op) const {
  if (object.ptr() == nullptr || object.is_none()) return {};
  return to_dims(IntsArg{object}.get(op), op);
}

namespace {

template <class T>
std::vector<T> all_of(nb::handle sequence, std::string_view op, const char* what) {
  std::vector<T> values;
  for_each_item(sequence, op, what, [&](nb::handle item) {
    T* value = nullptr;
    if (!nb::try_cast(item, value) || value == nullptr) {
      throw nb::type_error(fmt::format("{}: {}: not '{}'", op, what, type_text(item)).c_str());
    }
    values.push_back(*value);
  });
  return values;
}

}  // namespace

std::vector<Tensor> TensorsArg::get(std::string_view op) const {
  return all_of<Tensor>(object, op, "need a sequence of tensors");
}

std::vector<Weight> WeightsArg::get(std::string_view op) const {
  return all_of<Weight>(object, op, "need a sequence of wick.Weight");
}

Tensor MaybeTensor::get() const {
  return object.ptr() == nullptr || object.is_none() ? Tensor() : nb::cast<const Tensor&>(object);
}

std::vector<int64_t> to_ints(const nb::args& args, std::string_view op) {
  if (args.size() == 1) return IntsArg{args[0]}.get(op);
  return IntsArg{args}.get(op);
}

Scalar ScalarArg::get() const {
  if (failure) std::rethrow_exception(failure);
  if (is_large) {
    PyErr_SetString(PyExc_OverflowError, "an integer beyond 64 bits");
    throw nb::python_error();
  }
  return is_integer ? Scalar(i) : Scalar(f);
}

double ScalarArg::to_double() const {
  if (failure) std::rethrow_exception(failure);
  if (is_large && std::isinf(f)) {
    PyErr_SetString(PyExc_OverflowError, "an integer beyond the range of floats");
    throw nb::python_error();
  }
  return f;
}

const ScalarArg& OperandArg::get(std::string_view op) const {
  if (!array.is_valid()) return number;
  throw nb::type_error(
      fmt::format("{}: neither a wick.Tensor nor a number: '{}': share an array by "
                  "wick.from_numpy or wick.from_dlpack",
                  op, type_text(array))
          .c_str());
}

}  // namespace wick::python

namespace nanobind::detail {
namespace {

/// NumPy's complex numbers have __float__, which drops the imaginary part.
bool has_imaginary_part(handle object) {
  const nanobind::object kind = getattr(getattr(object, "dtype", none()), "kind", none());
  return PyUnicode_Check(kind.ptr()) && PyUnicode_CompareWithASCIIString(kind.ptr(), "c") == 0;
}

/// Whether an object is a scalar of NumPy's bool, which has no __index__.
bool is_numpy_bool(handle object) {
  const nanobind::object rank = getattr(object, "ndim", none());
  const nanobind::object kind = getattr(getattr(object, "dtype", none()), "kind", none());
  return PyLong_Check(rank.ptr()) && PyLong_AsLong(rank.ptr()) == 0 &&
         PyUnicode_Check(kind.ptr()) && PyUnicode_CompareWithASCIIString(kind.ptr(), "b") == 0;
}

}  // namespace

bool type_caster<wick::python::ScalarArg>::from_python(handle source, uint32_t,
                                                       cleanup_list*) noexcept {
  PyObject* const object = source.ptr();
  if (PyFloat_CheckExact(object)) {
    value.f = PyFloat_AsDouble(object);
    return true;
  }
  if (isinstance<wick::Tensor>(source) || PyUnicode_Check(object)) return false;
  if (PyBool_Check(object) || (!PyLong_Check(object) && is_numpy_bool(source))) {
    value.i = PyObject_IsTrue(object) == 1;
    value.f = static_cast<double>(value.i);
    value.is_integer = value.is_bool = true;
    return true;
  }
  if (PyIndex_Check(object)) {
    PyObject* const number = PyNumber_Index(object);
    if (number == nullptr) {
      PyErr_Clear();
      return false;
    }
    int overflow = 0;
    value.i = PyLong_AsLongLongAndOverflow(number, &overflow);
    value.is_integer = true;
    value.is_large = overflow != 0;
    value.f = value.is_large ? PyLong_AsDouble(number) : static_cast<double>(value.i);
    Py_DECREF(number);
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      value.f = std::numeric_limits<double>::infinity();  // to_double() rejects it
    }
    return true;
  }
  // Arrays have __float__, too, but aren't numbers.
  if (PySequence_Check(object) || PyObject_HasAttrString(object, "__len__") == 1 ||
      PyObject_HasAttrString(object, "__float__") != 1 || has_imaginary_part(source)) {
    return false;
  }
  value.f = PyFloat_AsDouble(object);
  // The object is a number, so its own exception must not become "incompatible arguments".
  if (PyErr_Occurred() != nullptr) {
    value.failure = std::make_exception_ptr(wick::python::nb::python_error());
  }
  return true;
}

bool type_caster<wick::python::OperandArg>::from_python(handle source, uint32_t flags,
                                                        cleanup_list* cleanup) noexcept {
  make_caster<wick::python::ScalarArg> number;
  if (number.from_python(source, flags, cleanup)) {
    value.number = number.value;
    return true;
  }
  if (isinstance<wick::Tensor>(source)) return false;
  // Other types may implement the operator themselves; returning false lets Python try them.
  if (!hasattr(source, "__array__") && !hasattr(source, "__dlpack__")) return false;
  value.array = source;
  return true;
}

}  // namespace nanobind::detail
