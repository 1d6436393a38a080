// NumPy's x[…]: ints, slices, None and ... give views; ids and masks, given as tensors, arrays or
// lists, copy. NumPy's rules determine the position of the ids' dims in the result, and negative
// ids count from the end.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/named.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

/// Whether an item is an int, or a zero-dim array or tensor of integers.
bool is_number(nb::handle item) {
  if (PyLong_Check(item.ptr())) return !PyBool_Check(item.ptr());
  if (nb::isinstance<Tensor>(item)) {
    const auto& x = nb::cast<const Tensor&>(item);
    return x.rank() == 0 && stored(x.dtype()) != DType::u8;
  }
  return is_int(item);
}

/// Whether an item is a mask: bool elements, or a uint8 tensor of wick.
bool is_mask(nb::handle item, const Tensor& x) {
  if (x.dtype() == DType::boolean) return true;
  if (x.dtype() != DType::u8) return false;
  if (nb::isinstance<Tensor>(item)) return true;
  const nb::str dtype(nb::getattr(item, "dtype", nb::none()));
  return std::string_view(dtype.c_str()).find("bool") != std::string_view::npos;
}

/// An item of an index; ids and masks are tensors on x's device.
struct Item {
  nb::handle object;
  Tensor tensor;
  bool mask = false;
  bool is_number = false;
  bool has_tensor() const { return tensor.defined(); }
  /// The number of dims that the item consumes.
  int taken() const {
    if (object.is_none() || object.ptr() == Py_Ellipsis) return 0;
    return mask ? tensor.rank() : 1;
  }
};

Item read_item(nb::handle object) {
  Item item{object, {}, false, is_number(object)};
  PyObject* const p = object.ptr();
  if (item.is_number || object.is_none() || p == Py_Ellipsis || PySlice_Check(p)) return item;
  if (PyBool_Check(p) || PyBytes_Check(p) ||
      !(nb::isinstance<Tensor>(object) || PyList_Check(p) || is_array(object))) {
    throw nb::type_error(fmt::format("an index is made of ints, slices, None, ... and tensors, "
                                     "arrays or lists of ids or bools: not '{}'",
                                     type_text(object))
                             .c_str());
  }
  if (nb::isinstance<Tensor>(object)) {
    item.tensor = nb::cast<const Tensor&>(object);
  } else {
    item.tensor = nb::cast<Tensor>(nb::module_::import_("wick").attr("tensor")(object));
    const bool is_empty_list = PyList_Check(p) && item.tensor.elems() == 0;
    if (is_empty_list) item.tensor = item.tensor.to(DType::i64);
  }
  item.mask = is_mask(object, item.tensor);
  if (item.mask && item.tensor.rank() == 0) {
    throw nb::type_error(("index: a mask without dims: " + item.tensor.str()).c_str());
  }
  if (!item.mask && !is_integer(item.tensor.dtype())) {
    throw Error(ErrorKind::type, "index", "ids have the wrong dtype", item.tensor.str(),
                "need integers or a mask");
  }
  // The largest unsigned id is index_select's padding, but here it is out of range.
  if (!item.mask) item.tensor = item.tensor.to(DType::i64);
  return item;
}

std::vector<Item> read_items(nb::handle index) {
  std::vector<Item> items;
  if (!PyTuple_Check(index.ptr())) {
    items.push_back(read_item(index));
    return items;
  }
  for (nb::handle object : nb::borrow<nb::tuple>(index)) items.push_back(read_item(object));
  return items;
}

[[noreturn]] void refuse_id(const std::string& id, int dim, const Tensor& x) {
  const int64_t size = x.shape()[dim];
  throw Error(ErrorKind::index, "index", "id out of range",
              fmt::format("id {}, dim {} of {}", id, dim, x.str()),
              fmt::format("need {} <= id < {}", -size, size));
}

/// The digits of an int, unless there are so many that Python refuses to convert them.
std::string id_text(nb::handle number) {
  const nb::object text = nb::steal(PyObject_Str(number.ptr()));
  if (text.is_valid()) return nb::cast<std::string>(text);
  PyErr_Clear();
  return "of thousands of digits";
}

Tensor at_position(const Tensor& x, int dim, nb::handle item) {
  const int64_t size = x.shape()[dim];
  const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  int64_t i = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || i < -size || i >= size) refuse_id(id_text(number), dim, x);
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
  // A negative stop counts from the end, so a stop before the first element needs a special value.
  const int64_t last = start + (count - 1) * step;
  const int64_t before_all = -size - 1;
  const int64_t end = step > 0 ? last + 1 : last > 0 ? last - 1 : before_all;
  return x.slice(dim, start, end, step);
}

/// Converts ids (int64) of a dim to positions from the start. `checked`: ids out of range are
/// rejected here, which waits for a GPU; otherwise index_select rejects them.
Tensor from_start(const Tensor& x, int dim, const Tensor& ids, bool checked) {
  if (ids.elems() == 0) return ids;
  const int64_t size = x.shape()[dim];
  if (checked || ids.device().kind == DeviceKind::cpu) {
    const auto low = min(ids).item<int64_t>(), high = max(ids).item<int64_t>();
    if (low < -size) refuse_id(fmt::format("{}", low), dim, x);
    if (high >= size) refuse_id(fmt::format("{}", high), dim, x);
    if (low >= 0) return ids;
  }
  const Tensor zero = Tensor::full({}, 0, DType::i64, ids.device());
  return where(lt(ids, zero), add(ids, Tensor::full({}, size, DType::i64, ids.device())), ids);
}

/// The positions of a mask's non-zero elements, in row-major order.
Tensor positions(const Tensor& mask, Device device) {
  const std::vector<uint8_t> elements = mask.to_vector<uint8_t>();
  std::vector<int64_t> found;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != 0) found.push_back(static_cast<int64_t>(i));
  }
  return Tensor::from(found, {static_cast<int64_t>(found.size())}, device);
}

/// Merges the dims of x that a mask covers.
Tensor under_mask(const Tensor& x, int dim, const Tensor& mask) {
  for (int d = 0; d < mask.rank(); ++d) {
    if (mask.shape()[d] == x.shape()[dim + d]) continue;
    throw Error(ErrorKind::index, "index", "mask has the wrong shape",
                fmt::format("mask {}, dim {} of {}", mask.str(), dim, x.str()));
  }
  return mask.rank() == 1 ? x : x.flatten(dim, dim + mask.rank() - 1);
}

/// Ids for a dim of the intermediate result.
struct Chosen {
  int dim;
  Tensor ids;
};

/// Selects elements by ids of one or several dims, whose shapes broadcast; the ids' dims are
/// inserted at `place`.
Tensor choose(Tensor x, const std::vector<Chosen>& chosen, int place) {
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d) {
    const bool is_chosen =
        std::ranges::any_of(chosen, [d](const Chosen& one) { return one.dim == d; });
    if (!is_chosen) order.push_back(d);
  }
  Tensor ids;
  for (const Chosen& one : chosen) {
    const Tensor own = from_start(x, one.dim, one.ids, chosen.size() > 1);
    if (!ids.defined()) {
      ids = own;
      continue;
    }
    const int64_t size = x.shape()[one.dim];
    ids = add(mul(ids, Tensor::full({}, size, DType::i64, x.device())), own);
  }
  auto at = order.begin() + place;
  for (const Chosen& one : chosen) at = order.insert(at, one.dim) + 1;
  if (!std::ranges::is_sorted(order)) x = x.permute(order);
  if (chosen.size() > 1) x = x.flatten(place, place + static_cast<int>(chosen.size()) - 1);
  return index_select(x, ids, place);
}

/// The position of the ids' dims in the result: that of the first id or number if they are
/// adjacent, else the front.
class Place {
 public:
  void add(size_t item, int dim) {
    if (count_++ == 0) {
      first_ = item;
      dim_ = dim;
    }
    last_ = item;
  }
  int get() const { return last_ - first_ + 1 == count_ ? dim_ : 0; }

 private:
  size_t first_ = 0, last_ = 0, count_ = 0;
  int dim_ = 0;
};

Tensor index_with(const Tensor& x, const std::vector<Item>& items) {
  int taken = 0;
  for (const Item& item : items) taken += item.taken();
  if (taken > x.rank()) {
    throw Error(ErrorKind::index, "index", "too many indices",
                fmt::format("{} for {}", taken, x.str()));
  }
  Tensor out = x;
  int dim = 0;
  bool has_ellipsis = false;
  std::vector<Chosen> chosen;
  Place place;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.has_tensor()) {
      place.add(i, dim);
      if (item.mask) out = under_mask(out, dim, item.tensor);
      chosen.push_back(
          {dim++, item.mask
                      ? unlocked([&] { return positions(item.tensor, x.device()); }, item.tensor)
                      : item.tensor.to(x.device())});
    } else if (item.is_number) {
      place.add(i, dim);
      out = at_position(out, dim, item.object);
    } else if (item.object.is_none()) {
      out = out.unsqueeze(dim++);
    } else if (item.object.ptr() == Py_Ellipsis) {
      if (has_ellipsis) throw Error(ErrorKind::index, "index", "more than one ellipsis");
      has_ellipsis = true;
      dim += x.rank() - taken;
    } else {
      out = at_slice(out, dim++, item.object);
    }
  }
  if (chosen.empty()) return out;
  return unlocked([&] { return choose(out, chosen, place.get()); }, out);
}

/// Like index_with, but errors name indexing instead of the views that it uses.
Tensor indexed(const Tensor& x, const std::vector<Item>& items) {
  return named("index", "narrow", &index_with)(x, items);
}

Tensor get_item(const Tensor& x, nb::handle index) { return indexed(x, read_items(index)); }

int64_t length(const Tensor& x) {
  if (x.rank() == 0) throw nb::type_error("len() of a tensor without dims");
  return x.shape()[0];
}

/// Iterates over the first dim.
struct TensorIterator {
  Tensor x;
  int64_t next = 0;
};

}  // namespace

bool gives_view(nb::handle index) {
  return std::ranges::none_of(read_items(index), &Item::has_tensor);
}

Tensor view_at(const Tensor& x, nb::handle index) {
  const std::vector<Item> items = read_items(index);
  if (std::ranges::any_of(items, &Item::has_tensor)) {
    throw nb::type_error("need ints, slices, None and ...: ids and masks don't make a view");
  }
  return indexed(x, items);
}

void bind_indexing(nb::module_& m, TensorClass& tensor) {
  nb::class_<TensorIterator>(m, "_TensorIterator")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> _TensorIterator"))
      .def("__next__", named("index", "squeeze", [](TensorIterator& it) {
             if (it.next == it.x.shape()[0]) throw nb::stop_iteration();
             return it.x.narrow(0, it.next++, 1).squeeze(0);
           }));
  tensor
      .def("__getitem__", &get_item, nb::arg("index").none(),
           nb::sig("def __getitem__(self, index: typing.Any, /) -> Tensor"),
           "Selects elements as NumPy does: ints, slices, None and ... give views; tensors, "
           "arrays or lists of integer ids or masks (bool, or uint8 tensors) copy. Negative "
           "indices count from the end.\nErrors: IndexError if an index is out of range, "
           "TypeError if it isn't an index.")
      .def("__len__", &length)
      .def("__iter__", [](const Tensor& x) {
        if (x.rank() == 0) throw nb::type_error("iteration over a tensor without dims");
        return TensorIterator{x};
      });
}

}  // namespace wick::python
