// x[…] as NumPy has it: ints, slices, None, …, and one tensor of ids for each of several dims.
#include <fmt/format.h>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

[[noreturn]] void refuse_mask(const std::string& what) {
  throw nb::type_error(
      ("index: " + what +
       ": a mask's result has no size known beforehand, and elements aren't chosen by one: use "
       "wick.where, or wick.index_select with integer ids")
          .c_str());
}

/// An int, or an array or tensor of integers without dims.
bool is_number(nb::handle item) {
  if (PyLong_Check(item.ptr())) return true;
  return PyIndex_Check(item.ptr()) && nb::getattr(item, "ndim", nb::int_(0)).equal(nb::int_(0));
}

/// What the items take of the tensor's dims; the rest is the ellipsis's.
int dims_taken(const nb::tuple& items) {
  int taken = 0;
  for (nb::handle item : items) {
    if (!item.is_none() && item.ptr() != Py_Ellipsis) ++taken;
  }
  return taken;
}

Tensor at_position(const Tensor& x, int dim, nb::handle item) {
  const int64_t size = x.shape()[dim];
  int64_t i = to_int(item);
  if (i < -size || i >= size) {
    throw nb::index_error(
        fmt::format("index {} is out of bounds for dim {} of {}: size {}", i, dim, x.str(), size)
            .c_str());
  }
  if (i < 0) i += size;
  return x.narrow(dim, i, 1).squeeze(dim);
}

Tensor at_slice(const Tensor& x, int dim, nb::handle item) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  const int64_t size = x.shape()[dim];
  const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
  if (step == 1) return x.narrow(dim, std::min<int64_t>(start, size), count);
  if (count == 0) return x.narrow(dim, 0, 0);
  // An end before the first element has no name that doesn't count from the back.
  const int64_t last = start + (count - 1) * step;
  const int64_t before_all = -size - 1;
  const int64_t end = step > 0 ? last + 1 : last > 0 ? last - 1 : before_all;
  return x.slice(dim, start, end, step);
}

Tensor at_ids(const Tensor& x, int dim, const Tensor& ids) {
  if (ids.dtype() == DType::u8) refuse_mask("a uint8 tensor");
  // Negative ids count from the end in Python; ids that wick takes don't.
  return unlocked([&] { return index_select(x, ids, dim); }, x, ids);
}

/// Ids from a list, a NumPy array or a tensor.
Tensor to_ids(const Tensor& x, nb::handle item) {
  if (nb::isinstance<Tensor>(item)) return nb::cast<const Tensor&>(item);
  const nb::object made = nb::module_::import_("wick").attr("tensor")(item);
  const Tensor ids = nb::cast<const Tensor&>(made);
  if (ids.elems() == 0) return ids.to(DType::i64).to(x.device());
  if (ids.dtype() == DType::u8) refuse_mask("a list or array of bools");
  return ids.to(x.device());
}

Tensor index_with(const Tensor& x, const nb::tuple& items) {
  const int free_dims = x.rank() - dims_taken(items);
  if (free_dims < 0) {
    throw nb::index_error(
        fmt::format("too many indices for {}: {} given", x.str(), dims_taken(items)).c_str());
  }
  Tensor out = x;
  int dim = 0;
  bool has_ellipsis = false, has_ids = false;
  for (nb::handle item : items) {
    if (item.is_none()) {
      out = out.unsqueeze(dim++);
    } else if (item.ptr() == Py_Ellipsis) {
      if (has_ellipsis) throw nb::index_error("an index has one ellipsis at most");
      has_ellipsis = true;
      dim += free_dims;
    } else if (PySlice_Check(item.ptr())) {
      out = at_slice(out, dim++, item);
    } else if (PyBool_Check(item.ptr())) {
      refuse_mask("a bool");
    } else if (is_number(item)) {
      out = at_position(out, dim, item);
    } else if (nb::isinstance<Tensor>(item) || PyList_Check(item.ptr()) || is_array(item)) {
      if (has_ids) {
        throw Error("index", "ids for more than one dim", x.str(), "index one dim after the other");
      }
      has_ids = true;
      const Tensor ids = to_ids(x, item);
      out = at_ids(out, dim, ids);
      dim += ids.rank();
    } else {
      throw nb::type_error(fmt::format("an index is made of ints, slices, None, ... and tensors of "
                                       "ids: not '{}'",
                                       type_text(item))
                               .c_str());
    }
  }
  return out;
}

Tensor get_item(const Tensor& x, nb::handle index) {
  if (PyTuple_Check(index.ptr())) return index_with(x, nb::borrow<nb::tuple>(index));
  return index_with(x, nb::make_tuple(index));
}

int64_t length(const Tensor& x) {
  if (x.rank() == 0) throw nb::type_error("len() of a tensor without dims");
  return x.shape()[0];
}

/// Goes through the first dim.
struct TensorIterator {
  Tensor x;
  int64_t next = 0;
};

}  // namespace

void bind_indexing(nb::module_& m, TensorClass& tensor) {
  nb::class_<TensorIterator>(m, "_TensorIterator")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> _TensorIterator"))
      .def("__next__", [](TensorIterator& it) {
        if (it.next == it.x.shape()[0]) throw nb::stop_iteration();
        return it.x.narrow(0, it.next++, 1).squeeze(0);
      });
  tensor
      .def(
          "__getitem__", &get_item, nb::arg("index"),
          nb::sig("def __getitem__(self, index: typing.Any, /) -> Tensor"),
          "Elements by ints, slices, None and ..., which give views, or by integer ids in a tensor "
          "or list,\nwhich copy as index_select does.")
      .def(
          "__setitem__",
          [](const Tensor&, nb::handle, nb::handle) {
            throw nb::type_error(
                "tensors are immutable: make a new one with wick.where, wick.cat or wick.scatter");
          },
          nb::sig("def __setitem__(self, index: typing.Any, value: typing.Any, /) -> None"))
      .def("__len__", &length)
      .def("__iter__", [](const Tensor& x) {
        if (x.rank() == 0) throw nb::type_error("iteration over a tensor without dims");
        return TensorIterator{x};
      });
}

}  // namespace wick::python
