// wick.DType and its members.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

std::array<PyObject*, static_cast<size_t>(kDTypeCount)> objects{};

std::optional<DType> named(std::string_view text) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (text == python_name(dtype)) return dtype;
  }
  if (text == "bool_") return DType::boolean;  // NumPy's type
  return parse_dtype(text);
}

const char* kind_name(DType dtype) {
  switch (info(dtype).kind) {
    case DTypeKind::unsigned_integer:
      return "unsigned integer";
    case DTypeKind::signed_integer:
      return "signed integer";
    case DTypeKind::floating:
      return "float";
    case DTypeKind::block:
      return "block";
    case DTypeKind::boolean:
      return "bool";
  }
  return "";
}

/// The member's name in wick._core. It isn't `bool` there, because that would hide Python's bool in
/// the stubs; wick/__init__.py defines wick.bool.
std::string member_name(DType dtype) {
  return dtype == DType::boolean ? "bool_" : python_name(dtype);
}

/// The name of a dtype that an object gives: text, or a dtype or type of NumPy.
std::string text_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return utf8_of(object, "dtype");
  const char* attribute = PyType_Check(object.ptr()) ? "__name__" : "name";
  const nb::object text = nb::getattr(object, attribute, nb::none());
  const bool is_builtin = object.is(reinterpret_cast<PyObject*>(&PyFloat_Type)) ||
                          object.is(reinterpret_cast<PyObject*>(&PyLong_Type));
  if (!nb::isinstance<nb::str>(text) || is_builtin) {
    throw nb::type_error(
        fmt::format("dtype: need a wick.DType such as wick.float32, or its name: not {}",
                    nb::cast<std::string>(nb::repr(object)))
            .c_str());
  }
  return utf8_of(text, "dtype");
}

/// The dtype that an object names (text, or a dtype of NumPy or PyTorch), or nothing.
std::optional<DType> known(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) {
    std::string text = utf8_of(object, "dtype");
    if (text.starts_with("torch.") || text.starts_with("wick."))
      text = text.substr(text.find('.') + 1);
    return named(text);
  }
  const char* attribute = PyType_Check(object.ptr()) ? "__name__" : "name";
  const nb::object text = nb::getattr(object, attribute, nb::none());
  if (nb::isinstance<nb::str>(text)) return named(utf8_of(text, "dtype"));
  // PyTorch's dtypes have no name attribute, but their repr contains it.
  const std::string type = nb::type_name(object.type()).c_str();
  if (type.find("dtype") == std::string::npos) return std::nullopt;
  const auto shown = nb::cast<std::string>(nb::repr(object));
  return shown.starts_with("torch.") ? named(shown.substr(6)) : std::nullopt;
}

}  // namespace

std::string python_name(DType dtype) {
  if (is_block(dtype) || dtype == DType::boolean) return std::string(name(dtype));
  if (dtype == DType::bf16) return "bfloat16";
  if (dtype == DType::f8e4m3) return "float8_e4m3";
  const std::string_view digits = name(dtype).substr(1);
  const char* kind = is_float(dtype)                                   ? "float"
                     : info(dtype).kind == DTypeKind::unsigned_integer ? "uint"
                                                                       : "int";
  return fmt::format("{}{}", kind, digits);
}

nb::object dtype_object(DType dtype) { return nb::borrow(objects[static_cast<size_t>(dtype)]); }

bool is_dtype(nb::handle object) { return nb::isinstance<PyDType>(object); }

DType DTypeArg::get() const {
  if (is_dtype(object)) return nb::cast<const PyDType&>(object).value;
  const std::string text = text_of(object);
  if (const std::optional<DType> dtype = named(text)) return *dtype;
  throw Error(ErrorKind::type, "dtype", "no such dtype", fmt::format("'{}'", text),
              "e.g. float32, bfloat16, int64");
}

void bind_dtypes(nb::module_& m) {
  nb::class_<PyDType>(m, "DType", "The dtype of a tensor's elements: wick.float32, wick.int64, …")
      .def_prop_ro(
          "name", [](const PyDType& d) { return python_name(d.value); }, "\"float32\"")
      .def_prop_ro(
          "short_name", [](const PyDType& d) { return name(d.value); },
          "\"f32\", as in error messages")
      .def_prop_ro(
          "itemsize", [](const PyDType& d) { return info(d.value).block_bytes; },
          "Bytes per element; in block dtypes, bytes per block.")
      .def_prop_ro(
          "block_size", [](const PyDType& d) { return info(d.value).block_elems; },
          "Elements per block; 1 in other dtypes.")
      .def_prop_ro(
          "kind", [](const PyDType& d) { return kind_name(d.value); },
          "\"bool\", \"unsigned integer\", \"signed integer\", \"float\" or \"block\"")
      .def_prop_ro(
          "is_float", [](const PyDType& d) { return is_float(d.value); },
          "Whether it is a float dtype. Only float tensors can have gradients.")
      .def_prop_ro(
          "is_block", [](const PyDType& d) { return is_block(d.value); },
          "Whether it is a block dtype, a format of quantised weights.")
      .def(
          "__eq__",
          [](const PyDType& d, nb::handle other) {
            if (is_dtype(other)) return nb::cast<const PyDType&>(other).value == d.value;
            const std::optional<DType> same = known(other);
            return same && *same == d.value;
          },
          nb::arg().none(), nb::sig("def __eq__(self, other: object, /) -> bool"),
          "Compares with a dtype, its name, or a dtype of NumPy or PyTorch: x.dtype == "
          "\"float32\".")
      .def("__hash__", [](const PyDType& d) { return static_cast<int64_t>(d.value) + 1; })
      .def("__repr__", [](const PyDType& d) { return "wick." + python_name(d.value); })
      // Each dtype has a single object, also after pickling, so equal dtypes are identical.
      .def("__reduce__", [](const PyDType& d) { return member_name(d.value); });
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    nb::object object = nb::cast(PyDType{dtype});
    m.attr(member_name(dtype).c_str()) = object;
    objects[static_cast<size_t>(d)] = object.release().ptr();
  }
  // Releases the objects together with the module.
  m.attr("_dtypes") = nb::capsule(objects.data(), [](void*) noexcept {
    for (PyObject*& object : objects) Py_CLEAR(object);
  });
}

}  // namespace wick::python
