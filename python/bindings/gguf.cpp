// wick.Gguf: a model file's metadata and tensors.
#include "wick/io/gguf.h"

#include <fmt/format.h>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/python.h"

namespace wick::python {
namespace {

using namespace nb::literals;

using File = std::shared_ptr<const io::Gguf>;

/// An open file.
struct PyGguf {
  File file;
};

nb::object value_object(const io::GgufValue& value) {
  if (value.is_array()) {
    nb::list list;
    for (const io::GgufValue& element : value.elements()) list.append(value_object(element));
    return list;
  }
  switch (value.type()) {
    case io::GgufType::boolean:
      return nb::bool_(value.as_bool().value_or(false));
    case io::GgufType::string:
      return to_text(value.as_string().value_or(""));
    case io::GgufType::f32:
    case io::GgufType::f64:
      return nb::float_(value.as_f64().value_or(0));
    case io::GgufType::u64:
      return nb::int_(value.as_u64().value_or(0));
    default:
      return nb::int_(value.as_i64().value_or(0));
  }
}

PyGguf open_file(nb::handle path, std::string_view op) {
  const std::string name = path_text(path, op);
  const ReleasedGil released;
  return {io::Gguf::open(name)};
}

nb::dict metadata(const PyGguf& self) {
  nb::dict values;
  for (const io::GgufEntry& entry : self.file->metadata()) {
    values[to_text(entry.key)] = value_object(entry.value);
  }
  return values;
}

nb::list names(const PyGguf& self) {
  nb::list list;
  for (const io::GgufTensor& tensor : self.file->tensors()) list.append(to_text(tensor.name));
  return list;
}

Tensor tensor_named(const PyGguf& self, std::string_view name) {
  if (self.file->find_tensor(name) == nullptr) {
    throw nb::key_error(std::string(name).c_str());
  }
  self.file->require_unchanged("gguf");
  return self.file->tensor(name);
}

/// All tensors whose dtype wick supports.
nb::dict tensors(const PyGguf& self) {
  self.file->require_unchanged("gguf");
  nb::dict all;
  for (const io::GgufTensor& tensor : self.file->tensors()) {
    if (tensor.dtype) all[to_text(tensor.name)] = self.file->tensor(tensor);
  }
  return all;
}

}  // namespace

void bind_gguf(nb::module_& m) {
  nb::class_<PyGguf>(
      m, "Gguf",
      "A mapped GGUF file: names, metadata and tensors. Tensors share the file's memory and keep"
      " it mapped. They change if the file changes, and read as zeros if it is "
      "truncated.\nErrors: any error in the file when it is opened; when a tensor is accessed, a"
      " change of the file since then.")
      .def(
          "__init__",
          [](PyGguf* self, nb::handle path) { new (self) PyGguf(open_file(path, "Gguf")); },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def_prop_ro("path", [](const PyGguf& self) { return self.file->path(); })
      .def_prop_ro("version", [](const PyGguf& self) { return self.file->version(); })
      .def_prop_ro("metadata", &metadata, nb::sig("def metadata(self) -> dict[str, typing.Any]"),
                   "Keys and values, in the file's order.")
      .def("keys", &names, nb::sig("def keys(self) -> list[str]"), "The names of the tensors.")
      .def("tensors", &tensors, nb::sig("def tensors(self) -> dict[str, Tensor]"),
           "All tensors whose dtype wick supports, by name.")
      .def("__getitem__", &tensor_named, "name"_a, "The tensor with a name. Nothing is copied.")
      .def("__contains__",
           [](const PyGguf& self, std::string_view name) {
             return self.file->find_tensor(name) != nullptr;
           })
      .def("__len__", [](const PyGguf& self) { return self.file->tensors().size(); })
      .def(
          "__iter__", [](const PyGguf& self) { return nb::iter(names(self)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("__repr__", [](const PyGguf& self) {
        return fmt::format("<wick.Gguf {}: {} tensors>", self.file->path(),
                           self.file->tensors().size());
      });
  m.def(
      "load_gguf", [](nb::handle path) { return tensors(open_file(path, "load_gguf")); }, "path"_a,
      nb::sig("def load_gguf(path: str | os.PathLike[str]) -> dict[str, Tensor]"),
      "The tensors of a GGUF file by name. Nothing is copied. wick.Gguf also gives the metadata.");
}

}  // namespace wick::python
