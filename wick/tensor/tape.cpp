#include "wick/tensor/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>

#include "wick/base/error.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/custom.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace tape {
namespace {

std::atomic<uint64_t> calls{0};

Tensor without_node(const Tensor& x) {
  Tensor plain = x;
  plain.set_node(nullptr);
  return plain;
}

/// Sets whether calls are recorded, for the length of a scope.
class Enabled {
 public:
  explicit Enabled(bool now) : before_(std::exchange(enabled(), now)) {}
  ~Enabled() { enabled() = before_; }
  Enabled(const Enabled&) = delete;
  Enabled& operator=(const Enabled&) = delete;

 private:
  bool before_;
};

}  // namespace

bool& enabled() {
  thread_local bool value = true;
  return value;
}

Node::~Node() {
  // Destroys the nodes that only this node owns in a loop, because recursion could overflow the
  // stack.
  std::vector<std::shared_ptr<Node>> going;
  const auto take = [&](std::vector<Tensor>& tensors) {
    for (Tensor& x : tensors) {
      if (x.node() == nullptr) continue;
      std::shared_ptr<Node> node = x.node();
      x.set_node(nullptr);
      if (node.use_count() == 1) going.push_back(std::move(node));
    }
  };
  take(inputs);
  while (!going.empty()) {
    const std::shared_ptr<Node> node = std::move(going.back());
    going.pop_back();
    take(node->inputs);
  }
}

std::vector<const CustomBody*> owned_custom_ops(const Tensor& x) {
  std::vector<const CustomBody*> ops;
  std::vector<const Node*> owned;
  std::unordered_map<const Node*, long> found;  // owners of a shared node that x owns
  const auto visit = [&](const std::shared_ptr<Node>& node) {
    if (node == nullptr) return;
    const long owners = node.use_count();
    if (owners == 1 || ++found[node.get()] == owners) owned.push_back(node.get());
  };
  visit(x.node());
  while (!owned.empty()) {
    const Node& node = *owned.back();
    owned.pop_back();
    if (node.custom.use_count() == 1) ops.push_back(node.custom.get());
    for (const Tensor& input : node.inputs) visit(input.node());
  }
  return ops;
}

uint64_t Node::writes_now() const {
  uint64_t sum = 0;
  const auto add = [&sum](const Tensor& x) {
    if (x.defined()) sum += x.storage()->writes();
  };
  std::ranges::for_each(inputs, add);
  std::ranges::for_each(results, add);
  return sum;
}

namespace {

std::shared_ptr<Node> make_node(std::string_view name, Rule rule, const Attributes& attributes) {
  auto node = std::make_shared<Node>();
  node->name = name;
  node->rule = rule;
  node->attributes = attributes;
  node->number = ++calls;
  return node;
}

}  // namespace

void record(std::span<Tensor> results, const OpCall& call) {
  if (!is_float(results[0].dtype())) return;
  const OpRule& rule = rule_of(call.op, call.part);
  if (rule.rule == nullptr) refuse(call.name(), call.x(), "its row in ops.def has no rule");
  auto node = make_node(name(call.op), rule.rule, call.attributes);
  if (call.custom != nullptr) {
    node->custom = *call.custom;
    node->name = node->custom->name();
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) node->inputs.push_back(call.x(i));
  if (call.weight != nullptr) {
    node->weight = std::make_shared<const Weight>(*call.weight);
    // If the weight needs a gradient, its matrices are inputs after the operands.
    if (call.weight->needs_grad()) {
      const std::vector<Tensor>& sources = call.weight->sources();
      node->inputs.insert(node->inputs.end(), sources.begin(), sources.end());
    }
  }
  if (rule.keeps != Keeps::nothing) {
    const size_t i = rule.keeps == Keeps::second ? 1 : 0;
    node->results[i] = without_node(results[i]);
  }
  node->writes = node->writes_now();
  results[0].set_node(std::move(node));
}

void record(Tensor& result, std::string_view name, Rule rule, std::vector<Tensor> inputs,
            const Attributes& attributes) {
  if (!is_float(result.dtype())) return;
  auto node = make_node(name, rule, attributes);
  node->inputs = std::move(inputs);
  node->writes = node->writes_now();
  result.set_node(std::move(node));
}

void refuse(std::string_view name, const Tensor& x, std::string_view why) {
  throw Error(ErrorKind::not_implemented, name, "not differentiable", x.str(), std::string(why));
}

Tensor Vjp::y(size_t i) const {
  Tensor y = node_->results[i];
  if (i == 0) y.set_node(node_);
  return y;
}

bool Vjp::wants(size_t i) const { return node_->inputs[i].node() != nullptr; }

void Vjp::to(size_t i, const Tensor& gradient) const {
  if (!wants(i)) return;
  const Tensor fitting = sum_to(gradient, node_->inputs[i].shape());
  to_[i] = to_[i].defined() ? to_[i] + fitting : fitting;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<int> dims;
  const int more = x.rank() - shape.rank();
  for (int d = 0; d < x.rank(); ++d) {
    if (d < more || (shape[d - more] == 1 && x.shape()[d] != 1)) dims.push_back(d);
  }
  return dims.empty() ? x.reshape(shape) : sum(x, dims, true).reshape(shape);
}

namespace {

/// Visits the nodes on which a result depends, latest calls first.
class Walk {
 public:
  Walk(const Tensor& y, const Tensor& gradient) {
    if (!y.defined() || y.node() == nullptr) {
      throw Error(ErrorKind::runtime, "backward", "depends on nothing that needs a gradient",
                  y.str(), "make a leaf by requires_grad");
    }
    if (gradient.defined()) {
      if (!(gradient.shape() == y.shape()) || gradient.dtype() != y.dtype() ||
          gradient.device() != y.device()) {
        throw Error("backward", "the gradient doesn't fit",
                    fmt::format("y {}, gradient {}", y.str(), gradient.str()));
      }
      add(y.node(), gradient);
    } else {
      if (y.elems() != 1) {
        throw Error("backward", "more than one element", y.str(), "pass its gradient");
      }
      add(y.node(), Tensor::ones(y.shape(), y.dtype(), y.device()));
    }
  }

  /// Calls visit(node, gradient) for every node once its gradient is complete.
  template <class F>
  void run(const F& visit) {
    while (!pending_.empty()) {
      auto last = std::prev(pending_.end());
      const auto [node, gradient] = std::move(last->second);
      pending_.erase(last);
      visit(node, gradient);
      if (node->rule == nullptr) continue;
      if (node->writes != node->writes_now()) {
        throw Error(ErrorKind::runtime, "backward", "an operand was written to since the call",
                    std::string(node->name), "write in place after backward(), or to a clone");
      }
      Vjp vjp(node, gradient);
      node->rule(vjp);
      for (size_t i = 0; i < vjp.given().size(); ++i) {
        const Tensor& given = vjp.given()[i];
        if (given.defined()) add(node->inputs[i].node(), given);
      }
    }
  }

 private:
  struct Pending {
    std::shared_ptr<Node> node;
    Tensor gradient;
  };

  void add(const std::shared_ptr<Node>& node, const Tensor& gradient) {
    auto [at, is_new] = pending_.try_emplace({node->number, node.get()}, Pending{node, gradient});
    if (!is_new) at->second.gradient = at->second.gradient + gradient;
  }

  // Leaves have number 0, so they come last.
  std::map<std::pair<uint64_t, Node*>, Pending> pending_;
};

}  // namespace
}  // namespace tape

NoGrad::NoGrad() : before_(std::exchange(tape::enabled(), false)) {}
NoGrad::~NoGrad() { tape::enabled() = before_; }

bool grad_enabled() { return tape::enabled(); }
void set_grad_enabled(bool on) { tape::enabled() = on; }

void backward(const Tensor& y, const Tensor& gradient, bool create_graph) {
  const tape::Enabled mode(create_graph);
  tape::Walk(y, gradient).run([](const std::shared_ptr<tape::Node>& node, const Tensor& given) {
    if (node->rule != nullptr) return;
    const std::lock_guard lock(node->mutex);
    node->gradient = node->gradient.defined() ? node->gradient + given : given;
  });
}

std::vector<Tensor> gradients(const Tensor& y, std::span<const Tensor> inputs,
                              const Tensor& gradient, bool create_graph) {
  for (const Tensor& x : inputs) {
    if (!x.defined() || x.node() == nullptr) {
      throw Error(ErrorKind::runtime, "gradients", "an input needs no gradient", x.str(),
                  "make a leaf by requires_grad");
    }
  }
  const tape::Enabled mode(create_graph);
  std::vector<Tensor> result(inputs.size());
  tape::Walk(y, gradient).run([&](const std::shared_ptr<tape::Node>& node, const Tensor& given) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].node() == node) result[i] = given;
    }
  });
  return result;
}

Tensor Tensor::requires_grad(bool wanted) const {
  if (!wanted) return detach();
  if (!defined() || !is_float(dtype_)) {
    throw Error(ErrorKind::type, "requires_grad", "not a float", str(),
                "only floats have gradients");
  }
  Tensor leaf = *this;
  leaf.node_ = std::make_shared<tape::Node>();
  leaf.node_->name = "leaf";
  return leaf;
}

Tensor Tensor::detach() const {
  Tensor plain = *this;
  plain.node_ = nullptr;
  return plain;
}

Tensor Tensor::grad() const {
  if (node_ == nullptr || node_->rule != nullptr) {
    throw Error(ErrorKind::runtime, "grad", "not a leaf", str(),
                "leaves are made by requires_grad");
  }
  const std::lock_guard lock(node_->mutex);
  return node_->gradient;
}

void set_gradient(const Tensor& leaf, const Tensor& gradient) {
  if (leaf.node() == nullptr || leaf.node()->rule != nullptr) {
    throw Error(ErrorKind::runtime, "grad", "not a leaf", leaf.str(),
                "leaves are made by requires_grad");
  }
  if (!gradient.defined() || !(gradient.shape() == leaf.shape()) ||
      gradient.dtype() != leaf.dtype() || gradient.device() != leaf.device()) {
    throw Error("grad", "a gradient that doesn't fit",
                "leaf " + leaf.str() + ", gradient " + gradient.str(),
                "need the leaf's shape, dtype and device");
  }
  const std::lock_guard lock(leaf.node()->mutex);
  leaf.node()->gradient = gradient;
}

void Tensor::zero_grad() const {
  if (node_ == nullptr) return;
  const std::lock_guard lock(node_->mutex);
  node_->gradient = {};
}

}  // namespace wick
