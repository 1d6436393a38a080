#pragma once

// Calls recorded for gradients. Only functions over tensors see this; users have
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
/// Gives gradients of a call's inputs from that of its result: a vector-Jacobian product.
using Rule = void (*)(const Vjp&);

/// A recorded call, or a leaf: a tensor whose gradient was asked for.
struct Node {
  std::string_view name;
  Rule rule = nullptr;  ///< null: a leaf
  std::vector<Tensor> inputs;
  /// The call's results, where the rule reads them; else undefined. Without their nodes: a tensor
  /// that holds this node would keep it alive.
  std::array<Tensor, OpBody::kMostResults> results;
  Attributes attributes;
  std::shared_ptr<const Weight> weight;  ///< of linear
  uint64_t number = 0;  ///< calls are counted: a result's number is larger than its inputs'

  std::mutex mutex;  ///< of what follows, in leaves
  Tensor gradient;

  Node() = default;
  ~Node();  // a long chain of nodes isn't taken down by recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

/// Whether calls are recorded on this thread.
bool& enabled();

/// What a rule reads and gives.
class Vjp {
 public:
  Vjp(const std::shared_ptr<Node>& node, Tensor gradient)
      : node_(node), gradient_(std::move(gradient)), to_(node->inputs.size()) {}

  const Tensor& x(size_t i = 0) const { return node_->inputs[i]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// A result of the call, which its rule keeps.
  Tensor y(size_t i = 0) const;
  /// The gradient of the result, of its shape and dtype.
  const Tensor& grad() const { return gradient_; }
  template <class T>
  const T& get() const {
    return *std::get_if<T>(&node_->attributes);
  }
  const Weight& weight() const { return *node_->weight; }
  /// Whether anybody asks for the gradient of input i.
  bool wants(size_t i) const;
  /// Gives it. Dims that were broadcast are summed.
  void to(size_t i, const Tensor& gradient) const;
  void to_x(const Tensor& gradient) const { to(0, gradient); }
  /// The same, made only where it is asked for.
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

/// Whether a call with this input is to be recorded.
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

/// Records a call that gave `results`, by its op's rule. Does nothing where the results are
/// integers or truth values. Errors: the op has no gradient.
void record(std::span<Tensor> results, const OpCall& call);
/// Records what made `result`, for functions that aren't one call: views, and copies part by part.
void record(Tensor& result, std::string_view name, Rule rule, std::vector<Tensor> inputs,
            const Attributes& attributes = {});
/// Fails, because a call isn't differentiable. Errors: this one.
[[noreturn]] void refuse(std::string_view name, const Tensor& x, std::string_view why);

/// Which results a rule reads.
enum class Keeps : uint8_t { nothing, result, second };
/// The gradient rule of a call.
struct OpRule {
  Rule rule = nullptr;
  Keeps keeps = Keeps::nothing;
};
const OpRule& rule_of(Op op, Part part);

/// x summed over what was broadcast to make it of `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace wick::tape
