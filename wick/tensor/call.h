#pragma once

// Calls of ops as values. Each function over tensors that computes makes an OpCall; apply() is the
// only way from there to a backend. It checks the call, finds the shape and dtype of its results,
// allocates them, runs the op and records it for gradients.

#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

#include "wick/op/op.h"
#include "wick/tensor/attributes.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// The tensors that a call reads, by reference. An undefined tensor is an operand that was left
/// out.
class Operands {
 public:
  static constexpr size_t kMost = 9;

  Operands() = default;
  Operands(std::initializer_list<const Tensor*> tensors) : count_(tensors.size()) {
    assert(count_ <= kMost);
    size_t i = 0;
    for (const Tensor* t : tensors) tensors_[i++] = t;
  }

  /// Any number of them, in an array that the caller keeps.
  explicit Operands(std::span<const Tensor* const> tensors)
      : many_(tensors.data()), count_(tensors.size()) {}

  void add(const Tensor* tensor) {
    assert(count_ < kMost && many_ == nullptr);
    tensors_[count_++] = tensor;
  }
  size_t size() const { return count_; }
  const Tensor& operator[](size_t i) const {
    return many_ != nullptr ? *many_[i] : *tensors_[i];
  }
  /// Whether a gradient may flow to one of them.
  bool need_grad() const {
    for (size_t i = 0; i < count_; ++i) {
      if ((*this)[i].needs_grad()) return true;
    }
    return false;
  }

 private:
  std::array<const Tensor*, kMost> tensors_;
  const Tensor* const* many_ = nullptr;  ///< in place of tensors_
  size_t count_ = 0;
};

/// What a call computes of its op.
enum class Part : uint8_t {
  result,
  /// The gradient of the first operand by that of the result, for pools and resampling: operands x
  /// and the result's gradient.
  input_gradient,
  /// The gradient of conv2d's weight: operands x and the result's gradient.
  weight_gradient,
  /// attention to a cache that the call extends: cached_attention.
  cached,
  /// attention to keys in pages: attention_of_pages.
  paged,
  /// linear with a weight of its own for each row: grouped_linear. Operands x and ids.
  grouped,
};

/// A call of an op. It refers to its operands, which outlive it; a recorded call (tape::Node) holds
/// them.
struct OpCall {
  Op op;
  Operands inputs = {};
  Attributes attributes = {};
  const char* called_as = nullptr;  ///< the name in errors, where it isn't the row's name
  Part part = Part::result;
  const Weight* weight = nullptr;        ///< of linear
  std::span<const Weight> experts = {};  ///< of grouped_linear

  const Tensor& x(size_t i = 0) const { return inputs[i]; }
  template <class T>
  const T& get() const {
    return *std::get_if<T>(&attributes);
  }
  const char* name() const { return called_as != nullptr ? called_as : wick::name(op).data(); }
};

/// The result of a call. Errors: those of the op; see its function.
Tensor apply(const OpCall& call);
/// The results of an op that has two.
std::array<Tensor, 2> apply_pair(const OpCall& call);
/// Runs a call that writes to the elements of `out`, of the result's shape and dtype: fill, iota,
/// copy, cast, and the random ops. The caller has checked the call. Not recorded for gradients.
void apply_into(const OpCall& call, const Tensor& out);

/// Takes the calls of a thread in place of backends, to record them.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  /// A call whose results have storages without memory, or (`writes`) exist already.
  virtual void add(const OpCall& call, std::span<const Tensor> results, bool writes) = 0;
};
/// The recorder of this thread; null: calls are run.
CallRecorder* recorder();
/// Makes a recorder this thread's for the length of a scope.
class WithRecorder {
 public:
  explicit WithRecorder(CallRecorder* recorder);
  ~WithRecorder();
  WithRecorder(const WithRecorder&) = delete;
  WithRecorder& operator=(const WithRecorder&) = delete;

 private:
  CallRecorder* before_;
};
/// Memory for a result on a device; while calls are recorded, a storage without memory.
std::shared_ptr<Storage> result_storage(Device device, size_t bytes);

/// Shape, dtype and strides of a result.
struct ResultSpec {
  DType dtype = DType::f32;
  Layout layout;
};

/// What apply() knows of an op.
struct OpBody {
  static constexpr int kMostResults = 2;

  /// Checks a call and describes its result. Null: the op only writes to what exists already.
  ResultSpec (*infer)(const OpCall& call) = nullptr;
  /// Computes results[0], results[1], …, which infer described.
  void (*run)(Backend& backend, const OpCall& call, const Tensor* results) = nullptr;
  /// The dtype of the second result, where there is one; its shape is the first one's.
  DType second = DType::u32;
};

/// The body of a call. Composed ops (composed_ops.cpp) have none and are never called as such.
const OpBody& body_of(Op op, Part part);

/// A number as an element of a dtype that backends see as another one: of bool, 0 or 1, of a NaN 1.
inline Scalar stored_number(DType dtype, Scalar number) {
  if (dtype != DType::boolean) return number;
  return number.is_integer ? number.i != 0 : number.f != 0.0;
}

/// A dense result.
inline ResultSpec dense(DType dtype, const Shape& shape) {
  return {dtype, Layout::contiguous(shape)};
}
/// A dense result like a tensor.
inline ResultSpec like(const Tensor& x) { return dense(x.dtype(), x.shape()); }

}  // namespace wick
