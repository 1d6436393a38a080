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

/// A value handle to elements in a storage: {storage, layout, dtype}. Copies share the storage;
/// views never copy. Immutable, but for slice_set, const_set and store_in_pages: a function's
/// result is all that it does, so ignoring one is a warning.
class WICK_API_VALUE Tensor {
 public:
  /// Undefined: all but defined(), str(), storage() and assignment is an error.
  Tensor() = default;
  /// Errors: no storage, a layout that reaches outside it or cuts through blocks.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Layout& layout);

  // Making tensors. Shapes are row-major and dense.
  static Tensor empty(const Shape& shape, DType dtype, Device device = {});
  static Tensor full(const Shape& shape, Scalar value, DType dtype, Device device = {});
  static Tensor zeros(const Shape& shape, DType dtype, Device device = {});
  static Tensor ones(const Shape& shape, DType dtype, Device device = {});
  /// [start, start + step, …], `count` elements.
  static Tensor arange(Scalar start, int64_t count, Scalar step = 1, DType dtype = DType::f32,
                       Device device = {});
  /// Copies host elements. Errors: the count isn't the shape's.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = {}) {
    return from_bytes(values.data(), values.size(), DTypeOf<T>::value, shape, device);
  }
  /// The same as another dtype, converted as by cast: from<float>({…}, shape, DType::f16).
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, DType dtype,
                     Device device = {}) {
    return from(values, shape, device).to(dtype);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {}) {
    if constexpr (std::is_same_v<T, bool>) {  // no span of std::vector<bool>
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
  /// The size of a dimension, counted from either end.
  int64_t size(int dim) const { return shape()[resolve_dim("size", dim, rank())]; }
  int64_t elems() const { return layout().elems(); }
  Device device() const {
    require_defined();
    return storage_->device();
  }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// "f16[2,8,64]@cpu", as in error messages.
  [[nodiscard]] std::string str() const;

  // Views: no element moves. Dims count from either end. Of a block dtype, the last dimension stays
  // whole.

  /// x[i], without the first dim. A negative position counts from the end. Errors: out of range.
  Tensor operator[](int64_t position) const;
  Tensor operator[](int position) const { return (*this)[static_cast<int64_t>(position)]; }
  /// x[{0, Slice{1, 3}, ellipsis, new_axis}]: a position takes its dim away, a slice keeps it, dims
  /// behind the last item stay. Errors: a position out of range, more items than dims, a step of 0.
  Tensor operator[](std::initializer_list<Index> items) const;
  Tensor narrow(int dim, int64_t start, int64_t length) const;
  Tensor slice(int dim, int64_t start, int64_t stop, int64_t step = 1) const;
  Tensor transpose(int dim_a, int dim_b) const;
  /// The last two dimensions swapped.
  Tensor t() const { return transpose(-2, -1); }
  Tensor permute(std::span<const int> order) const;
  Tensor permute(std::initializer_list<int> order) const {
    return permute(std::span(order.begin(), order.size()));
  }
  Tensor broadcast_to(const Shape& shape) const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  [[nodiscard]] std::vector<Tensor> split(std::span<const int64_t> sizes, int dim) const;
  /// `count` pieces of equal size, the last one smaller if need be.
  [[nodiscard]] std::vector<Tensor> chunk(int64_t count, int dim) const;

  // Views where strides allow, else a copy.
  Tensor reshape(const Shape& shape) const;
  Tensor flatten(int first_dim = 0, int last_dim = -1) const;
  Tensor contiguous() const;

  /// A dense copy of its own storage.
  Tensor clone() const;
  /// Converted to another dtype (see the op `cast`); itself if it has it already.
  Tensor to(DType dtype) const;
  /// On another device, dense; itself if it lies there already. Of any dtype. Behind the work of
  /// both devices so far; the host waits for it where it copies to the CPU, or by way of it.
  Tensor to(Device device) const;

  /// The elements on the host in row-major order; those of bool as bool or uint8_t, those of floats
  /// of 16 and 8 bits as float. Errors: another T than the dtype's type; out of memory.
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
  /// The one element of a tensor of one element.
  template <class T>
  [[nodiscard]] T item() const {
    require_one_element();
    return to_vector<T>()[0];
  }

  /// For backends: what to read, and where to write into a tensor just made. bool is u8 there.
  ConstView view() const { return mutable_view(); }
  View mutable_view() const {
    require_defined();
    return {storage_->data(), stored(dtype_), layout_};
  }

  /// Errors, which begin with `op`, the function that reads: the tensor is undefined, or it is the
  /// result of a call that is traced, so that it has no values.
  void require_values(std::string_view op) const;

  // Gradients: see wick/tensor/autograd.h.

  /// This tensor as a leaf, whose gradient backward() computes; or not. Errors: not a float.
  Tensor requires_grad(bool wanted = true) const;
  /// Whether it is a leaf or depends on one.
  [[nodiscard]] bool needs_grad() const { return node_ != nullptr; }
  /// What backward() has added up for a leaf; undefined: nothing yet. Errors: not a leaf.
  Tensor grad() const;
  void zero_grad() const;
  /// The same elements, without a memory of how they were made.
  Tensor detach() const;

  /// How it was made, for functions over tensors.
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
  /// A view of the same storage, without a memory; views of a layout inside it stay inside.
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

/// The elements in nested brackets and Tensor::str(): of more than 1000 elements each dim's ends.
[[nodiscard]] WICK_API std::string to_string(const Tensor& x);
WICK_API std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// Rows of activations of a layer that the device's caches hold at once; 0: slices gain nothing.
WICK_API int64_t rows_in_cache(Device device);

}  // namespace wick
