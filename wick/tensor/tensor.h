#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wick/backend/view.h"
#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/error.h"
#include "wick/base/export.h"
#include "wick/base/layout.h"
#include "wick/tensor/index.h"
#include "wick/tensor/storage.h"

namespace wick {

namespace tape {
struct Node;
}

/// The dtype whose elements have the C++ type T.
template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::u32; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
// clang-format on

/// A handle {storage, layout, dtype} to elements in a storage. Copies of the handle share the
/// storage, and views never copy elements. Elements are immutable, except by slice_set, const_set
/// and store_in_pages. Ignoring a Tensor that a function returns is a warning.
class WICK_API_VALUE Tensor {
 public:
  /// An undefined tensor. Everything but defined(), str(), storage() and assignment throws.
  Tensor() = default;
  /// Errors: no storage; the layout reaches outside the storage or splits blocks.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Layout& layout);

  // Tensors made here are dense and row-major.
  static Tensor empty(const Shape& shape, DType dtype, Device device = {});
  static Tensor full(const Shape& shape, Scalar value, DType dtype, Device device = {});
  static Tensor zeros(const Shape& shape, DType dtype, Device device = {});
  static Tensor ones(const Shape& shape, DType dtype, Device device = {});
  /// `count` elements start, start + step, ….
  static Tensor arange(Scalar start, int64_t count, Scalar step = 1, DType dtype = DType::f32,
                       Device device = {});
  /// Copies elements from the host. Errors: the number of values isn't that of the shape.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = {}) {
    return from_bytes(values.data(), values.size(), DTypeOf<T>::value, shape, device);
  }
  /// Copies elements from the host and converts them to `dtype`, as by cast.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, DType dtype,
                     Device device = {}) {
    return from(values, shape, device).to(dtype);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {}) {
    if constexpr (std::is_same_v<T, bool>) {  // a std::vector<bool> can't convert to a span
      const std::vector<uint8_t> bytes(values.begin(), values.end());
      return from_bytes(bytes.data(), bytes.size(), DType::boolean, shape, device);
    } else {
      return from(std::span<const T>(values), shape, device);
    }
  }

  [[nodiscard]] bool defined() const { return storage_ != nullptr; }
  DType dtype() const {
    require_defined();
    return dtype_;
  }
  const Layout& layout() const {
    require_defined();
    return layout_;
  }
  const Shape& shape() const { return layout().shape(); }
  int rank() const { return layout().rank(); }
  /// The size of a dim; negative dims count from the end.
  int64_t size(int dim) const { return shape()[resolve_dim("size", dim, rank())]; }
  int64_t elems() const { return layout().elems(); }
  Device device() const {
    require_defined();
    return storage_->device();
  }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// Dtype, shape and device as in error messages: "f16[2,8,64]@cpu".
  [[nodiscard]] std::string str() const;

  // Views, which never copy. Negative dims count from the end. The last dim of a block dtype can't
  // be split.

  /// x[i], without the first dim. A negative position counts from the end. Errors: it is out of
  /// range.
  Tensor operator[](int64_t position) const;
  Tensor operator[](int position) const { return (*this)[static_cast<int64_t>(position)]; }
  /// x[{0, Slice{1, 3}, ellipsis, new_axis}]: a position removes its dim, a slice keeps it, and
  /// dims after the last entry are kept whole. Errors: a position is out of range; there are more
  /// entries than dims; a step is 0.
  Tensor operator[](std::initializer_list<Index> items) const;
  Tensor narrow(int dim, int64_t start, int64_t length) const;
  Tensor slice(int dim, int64_t start, int64_t stop, int64_t step = 1) const;
  Tensor transpose(int dim_a, int dim_b) const;
  /// Swaps the last two dims.
  Tensor t() const { return transpose(-2, -1); }
  Tensor permute(std::span<const int> order) const;
  Tensor permute(std::initializer_list<int> order) const {
    return permute(std::span(order.begin(), order.size()));
  }
  Tensor broadcast_to(const Shape& shape) const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  [[nodiscard]] std::vector<Tensor> split(std::span<const int64_t> sizes, int dim) const;
  /// Splits x into `count` views of equal size; the last may be smaller.
  [[nodiscard]] std::vector<Tensor> chunk(int64_t count, int dim) const;

  // These return views if the strides allow it, else copies.
  Tensor reshape(const Shape& shape) const;
  Tensor flatten(int first_dim = 0, int last_dim = -1) const;
  Tensor contiguous() const;

  /// A dense copy with its own storage.
  Tensor clone() const;
  /// Converts to another dtype (see cast). Returns this tensor if it already has the dtype.
  Tensor to(DType dtype) const;
  /// Copies to another device, dense. Returns this tensor if it is already on the device. Any
  /// dtype. The copy is ordered after all work queued on both devices; the host waits for it if it
  /// ends on the CPU or passes through host memory.
  Tensor to(Device device) const;

  /// Copies the elements to the host in row-major order. T is the dtype's type; also uint8_t for
  /// bool, and float for 16-bit and 8-bit floats. Errors: T doesn't fit the dtype; out of memory.
  template <class T>
  [[nodiscard]] std::vector<T> to_vector() const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_narrow_float()) return to(DType::f32).to_vector<float>();
    }
    require_copyable(DTypeOf<T>::value);
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<uint8_t> bytes = to_vector<uint8_t>();
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> values(static_cast<size_t>(elems()));
      copy_to_host(values.data());
      return values;
    }
  }
  /// Returns the element of a one-element tensor. Errors: the tensor doesn't have exactly one
  /// element.
  template <class T>
  [[nodiscard]] T item() const {
    require_one_element();
    return to_vector<T>()[0];
  }

  /// Views for backends. mutable_view is for tensors that have just been made. bool becomes u8.
  ConstView view() const { return mutable_view(); }
  View mutable_view() const {
    require_defined();
    return {storage_->data(), stored(dtype_), layout_};
  }

  /// Throws if the tensor has no values: it is undefined, or it is the result of a traced call.
  /// `op` is the name of the function that reads values; the message begins with it.
  void require_values(std::string_view op) const;

  // Gradients: see wick/tensor/autograd.h.

  /// Returns this tensor as a leaf, for which backward() computes a gradient, or without gradient
  /// if not `wanted`. Errors: the dtype isn't a float.
  Tensor requires_grad(bool wanted = true) const;
  /// Whether this tensor is a leaf or depends on one.
  [[nodiscard]] bool needs_grad() const { return node_ != nullptr; }
  /// The gradient that backward() has accumulated for a leaf; undefined before the first. Errors:
  /// this isn't a leaf.
  Tensor grad() const;
  void zero_grad() const;
  /// A tensor with the same elements that isn't connected to the gradient graph.
  Tensor detach() const;

  /// The gradient node: the recorded call that made this tensor, or the leaf.
  const std::shared_ptr<tape::Node>& node() const { return node_; }
  void set_node(std::shared_ptr<tape::Node> node) { node_ = std::move(node); }

 private:
  static Tensor from_bytes(const void* data, size_t count, DType dtype, const Shape& shape,
                           Device device);
  void copy_to_host(void* to) const;
  void require_copyable(DType dtype) const;
  void require_one_element() const;
  void require_defined() const {
    if (storage_ == nullptr) fail_undefined();
  }
  [[noreturn]] static void fail_undefined();
  /// A view of the storage without a gradient node. `layout` must be a view of this tensor's
  /// layout.
  Tensor with(const Layout& layout) const;
  void require_real(const char* op) const;
  bool is_narrow_float() const {
    return defined() && is_float(dtype_) && dtype_ != DType::f32 && dtype_ != DType::f64;
  }

  std::shared_ptr<Storage> storage_;
  DType dtype_ = DType::f32;
  Layout layout_;
  std::shared_ptr<tape::Node> node_;
};

/// The elements in nested brackets, followed by Tensor::str(). Above 1000 elements, only the ends
/// of each dim are printed.
[[nodiscard]] WICK_API std::string to_string(const Tensor& x);
WICK_API std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// The number of activation rows of a layer that fit in the device's caches; 0 if processing rows
/// in slices has no benefit.
WICK_API int64_t rows_in_cache(Device device);

}  // namespace wick
