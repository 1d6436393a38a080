#pragma once

// How results remember the calls that made them. Only functions over tensors see this; users have
// wick/tensor/autograd.h.

#include <any>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick::tape {

class Vjp;
/// Gives gradients of a call's inputs from that of its result: a vector-Jacobian product.
using Rule = void (*)(const Vjp&);

/// A call, or a leaf: a tensor whose gradient was asked for.
struct Node {
  std::string_view name;
  Rule rule = nullptr;  ///< null: a leaf
  std::vector<Tensor> inputs;
  Tensor result;        ///< without its node, which would keep itself alive; undefined: not kept
  std::any arguments;   ///< what else the function got
  uint64_t number = 0;  ///< calls count up: a result's is larger than its inputs'

  std::mutex mutex;  ///< of what follows, in leaves
  Tensor gradient;

  Node() = default;
  ~Node();  // a long chain of nodes isn't taken down by recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

/// Whether calls are remembered on this thread.
bool& enabled();

/// What a rule reads and gives.
class Vjp {
 public:
  Vjp(const std::shared_ptr<Node>& node, Tensor gradient)
      : node_(node), gradient_(std::move(gradient)), to_(node->inputs.size()) {}

  const Tensor& x(size_t i = 0) const { return node_->inputs[i]; }
  size_t inputs() const { return node_->inputs.size(); }
  /// The call's result.
  Tensor y() const;
  /// The gradient of the result, of its shape and dtype.
  const Tensor& grad() const { return gradient_; }
  template <class T>
  const T& arguments() const {
    return *std::any_cast<T>(&node_->arguments);
  }
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

/// Whether a call with these inputs is to be remembered.
inline bool is_wanted(std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs) {
    if (x.node() != nullptr) return enabled();
  }
  return false;
}
inline bool is_wanted(const Tensor& x) { return x.node() != nullptr && enabled(); }
inline bool is_wanted(const Tensor& a, const Tensor& b) {
  return (a.node() != nullptr || b.node() != nullptr) && enabled();
}

/// Lets `result` remember the call that made it. keep: the rule asks for y().
void remember(Tensor& result, std::string_view name, Rule rule, std::vector<Tensor> inputs,
              std::any arguments = {}, bool keep = false);
/// The same by the op's row in the table of gradient rules, which has one for every row of ops.def
/// that says so.
void remember(Tensor& result, Op op, std::vector<Tensor> inputs, std::any arguments = {});
/// Fails, because a call isn't differentiable. Errors: this one.
[[noreturn]] void refuse(std::string_view name, const Tensor& x, std::string_view why);

/// A row of that table.
struct OpRule {
  Rule rule = nullptr;
  bool keeps_result = false;  ///< the rule asks for y()
};
const OpRule& rule_of(Op op);

/// x summed over what was broadcast to make it of `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace wick::tape
