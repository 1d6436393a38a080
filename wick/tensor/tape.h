#pragma once

// The record of calls for gradients. Internal to the functions over tensors; users include
// wick/tensor/autograd.h.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/op/op.h"
#include "wick/tensor/call.h"
#include "wick/tensor/tensor.h"

namespace wick::tape {

class Vjp;
/// Computes the gradients of a call's inputs from the gradient of its result: a vector-Jacobian
/// product.
using Rule = void (*)(const Vjp&);

/// A recorded call, or a leaf: a tensor made by requires_grad().
struct Node {
  std::string_view name;
  Rule rule = nullptr;  ///< null for a leaf
  std::vector<Tensor> inputs;
  /// The call's results that the rule reads; the others are undefined. They are stored without
  /// their nodes, because a tensor that holds this node would keep it alive.
  std::array<Tensor, OpBody::kMostResults> results;
  Attributes attributes;
  std::shared_ptr<const Weight> weight;      ///< the weight of linear
  std::shared_ptr<const CustomBody> custom;  ///< the op of a custom call
  uint64_t number = 0;  ///< larger than the numbers of the inputs' nodes; 0 for leaves
  uint64_t writes = 0;  ///< writes to the inputs' and results' storages when recorded

  std::mutex mutex;  ///< guards a leaf's gradient
  Tensor gradient;

  Node() = default;
  ~Node();  // destroys a chain of nodes without recursion
  /// The current count of writes to the storages of inputs and results.
  uint64_t writes_now() const;

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

/// The ops of the custom calls that only x keeps recorded: no other tensor depends on these calls.
/// No other thread may use the record at the same time.
std::vector<const CustomBody*> owned_custom_ops(const Tensor& x);

/// Whether calls are recorded on this thread.
bool& enabled();

/// The interface of a rule: the call's inputs, results and attributes, and the gradients.
class Vjp {
 public:
  Vjp(const std::shared_ptr<Node>& node, Tensor gradient)
      : node_(node), gradient_(std::move(gradient)), to_(node->inputs.size()) {}

  const Tensor& x(size_t i = 0) const { return node_->inputs[i]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// A result of the call. OpRule::keeps must name it.
  Tensor y(size_t i = 0) const;
  /// The gradient of the result, with the result's shape and dtype.
  const Tensor& grad() const { return gradient_; }
  template <class T>
  const T& get() const {
    return *std::get_if<T>(&node_->attributes);
  }
  const Weight& weight() const { return *node_->weight; }
  const CustomBody& custom() const { return *node_->custom; }
  /// Whether the gradient of input i is needed.
  bool wants(size_t i) const;
  /// Sets the gradient of input i; sums it over the dims that the call broadcast.
  void to(size_t i, const Tensor& gradient) const;
  void to_x(const Tensor& gradient) const { to(0, gradient); }
  /// Sets the gradient of input i to make() if it is needed.
  template <class F>
  void to_if_wanted(size_t i, const F& make) const {
    if (wants(i)) to(i, make());
  }

  std::vector<Tensor>& given() { return to_; }

 private:
  std::shared_ptr<Node> node_;
  Tensor gradient_;
  mutable std::vector<Tensor> to_;
};

/// Whether a call with these inputs must be recorded.
inline bool is_wanted(const Tensor& x) { return x.needs_grad() && enabled(); }
inline bool is_wanted(const Tensor& a, const Tensor& b) {
  return (a.needs_grad() || b.needs_grad()) && enabled();
}
inline bool is_wanted(std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs) {
    if (x.needs_grad()) return enabled();
  }
  return false;
}

/// Records a call with its results and its op's rule. Does nothing for integer and bool results.
/// Errors: the op has no gradient.
void record(std::span<Tensor> results, const OpCall& call);
/// Records a function that isn't a single op call: views, and copies of parts.
void record(Tensor& result, std::string_view name, Rule rule, std::vector<Tensor> inputs,
            const Attributes& attributes = {});
/// Throws the error of a call that isn't differentiable.
[[noreturn]] void refuse(std::string_view name, const Tensor& x, std::string_view why);

/// The result of a call that its rule reads.
enum class Keeps : uint8_t { nothing, result, second };
/// The gradient rule of a call.
struct OpRule {
  Rule rule = nullptr;
  Keeps keeps = Keeps::nothing;
};
const OpRule& rule_of(Op op, Part part);

/// Sums x over broadcast dims, so that the result has `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace wick::tape
