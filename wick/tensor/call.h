#pragma once

// Calls of ops as values. Each function over tensors makes an OpCall and gives it to apply(), the
// only path to a backend. apply() checks the call, determines shape and dtype of the results,
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

class CustomBody;

/// The operand tensors of a call, by reference. An undefined tensor stands for an omitted optional
/// operand.
class Operands {
 public:
  static constexpr size_t kMost = 10;

  Operands() = default;
  Operands(std::initializer_list<const Tensor*> tensors) : count_(tensors.size()) {
    assert(count_ <= kMost);
    size_t i = 0;
    for (const Tensor* t : tensors) tensors_[i++] = t;
  }

  /// Refers to any number of operands in an array that the caller keeps alive.
  explicit Operands(std::span<const Tensor* const> tensors)
      : many_(tensors.data()), count_(tensors.size()) {}

  void add(const Tensor* tensor) {
    assert(count_ < kMost && many_ == nullptr);
    tensors_[count_++] = tensor;
  }
  size_t size() const { return count_; }
  const Tensor& operator[](size_t i) const { return many_ != nullptr ? *many_[i] : *tensors_[i]; }
  /// Whether any operand needs a gradient.
  bool need_grad() const {
    for (size_t i = 0; i < count_; ++i) {
      if ((*this)[i].needs_grad()) return true;
    }
    return false;
  }

 private:
  std::array<const Tensor*, kMost> tensors_;
  const Tensor* const* many_ = nullptr;  ///< used instead of tensors_ for more than kMost operands
  size_t count_ = 0;
};

/// Selects the computation of a call among those that share an op's row.
enum class Part : uint8_t {
  result,
  /// The gradient of a pool's or upsampling's input. Operands: x and the gradient of the result.
  /// The gradients of attention's operands: attention_gradient.
  input_gradient,
  /// The gradient of conv2d's weight. Operands: x and the gradient of the result.
  weight_gradient,
  /// Attention with a cache that the call extends: cached_attention.
  cached,
  /// Attention over keys in pages: attention_of_pages.
  paged,
  /// linear with a weight chosen for each row: grouped_linear. Operands: x and ids. LinearSteps may
  /// ask for silu_mul and have the fields of ExpertRows.
  grouped,
  /// Two rms_norms of one width and epsilon: rms_norm_pair. Operands: x, its weight, another x and
  /// its weight. Results: both norms.
  pair,
  /// rms_norm plus a residual of its shape: rms_norm_add. Operands: x, its weight, the residual.
  summed,
  /// The choice of experts: route_experts. Operands: logits, and a bias or none. Results: ids and
  /// weights.
  routed,
  /// The clamped SwiGLU of experts: gate_experts. Operands: y, and a bias of experts and ids or
  /// none. Numbers: alpha and the limit.
  gated,
  /// The weighted sum of the results of experts: combine_experts. Operands: y, weights, and a
  /// residual, a bias of experts and ids or none.
  combined,
  /// The result of a custom op, OpCall::custom. OpCall::op is `copy` and isn't used: custom ops
  /// have no row.
  custom,
  /// A custom op that writes to its first operand.
  custom_in_place,
};

/// A call of an op. It refers to its operands, which must outlive it; a recorded call (tape::Node)
/// holds copies of them instead.
struct OpCall {
  Op op;
  Operands inputs = {};
  Attributes attributes = {};
  const char* called_as = nullptr;  ///< name in error messages, if it differs from the row's name
  Part part = Part::result;
  const Weight* weight = nullptr;                             ///< the weight of linear
  std::span<const Weight> experts = {};                       ///< the weights of grouped_linear
  const std::shared_ptr<const CustomBody>* custom = nullptr;  ///< the custom op

  const Tensor& x(size_t i = 0) const { return inputs[i]; }
  template <class T>
  const T& get() const {
    return *std::get_if<T>(&attributes);
  }
  const char* name() const { return called_as != nullptr ? called_as : wick::name(op).data(); }
};

/// Runs a call and returns its result. Errors: those of the op's function.
Tensor apply(const OpCall& call);
/// Runs a call of an op with two results.
std::array<Tensor, 2> apply_pair(const OpCall& call);
/// Runs a call that writes to the existing tensor `out`, which has the result's shape and dtype:
/// fill, iota, copy, cast, store_in_pages, the random ops and custom ops in place. The caller has
/// checked the call. The call isn't recorded for gradients.
void apply_into(const OpCall& call, const Tensor& out);

/// Receives the calls of a thread instead of the backends while a function is traced.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  /// Records a call. Its results have storages without memory, or already exist if `writes`.
  virtual void add(const OpCall& call, std::span<const Tensor> results, bool writes) = 0;
};
/// The recorder of this thread, or null if calls run on the backends.
CallRecorder* recorder();
/// Installs a recorder on this thread for the length of a scope.
class WithRecorder {
 public:
  explicit WithRecorder(CallRecorder* recorder);
  ~WithRecorder();
  WithRecorder(const WithRecorder&) = delete;
  WithRecorder& operator=(const WithRecorder&) = delete;

 private:
  CallRecorder* before_;
};
/// Allocates storage for a result. While calls are recorded, the storage has no memory.
std::shared_ptr<Storage> result_storage(Device device, size_t bytes);

/// Dtype and layout of a result.
struct ResultSpec {
  DType dtype = DType::f32;
  Layout layout;
};

/// The implementation of an op for apply().
struct OpBody {
  static constexpr int kMostResults = 2;

  /// Checks a call and describes its result. Null if the op only writes to existing tensors.
  ResultSpec (*infer)(const OpCall& call) = nullptr;
  /// Computes results[0] and, if there are two, results[1]. apply() has allocated them.
  void (*run)(Backend& backend, const OpCall& call, const Tensor* results) = nullptr;
  /// The dtype of the second result, if there is one and infer_second is null; it has the layout of
  /// the first.
  DType second = DType::u32;
  /// Describes the second result.
  ResultSpec (*infer_second)(const OpCall& call) = nullptr;
};

/// Returns the body of a call. Composed ops (composed_ops.cpp) have no body and are never called.
const OpBody& body_of(Op op, Part part);

/// Converts a number to the dtype that backends store: a bool is 0 or 1, and NaN as a bool is 1.
inline Scalar stored_number(DType dtype, Scalar number) {
  if (dtype != DType::boolean) return number;
  return number.is_integer ? number.i != 0 : number.f != 0.0;
}

/// Describes a dense result.
inline ResultSpec dense(DType dtype, const Shape& shape) {
  return {dtype, Layout::contiguous(shape)};
}
/// Describes a dense result with x's dtype and shape.
inline ResultSpec like(const Tensor& x) { return dense(x.dtype(), x.shape()); }

}  // namespace wick
