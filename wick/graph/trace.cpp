#include "wick/graph/trace.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "wick/base/error.h"
#include "wick/graph/uses.h"
#include "wick/tensor/autograd.h"

namespace wick::graph {
namespace {

class Recorder final : public CallRecorder {
 public:
  explicit Recorder(Device device) { trace_.graph.device = device; }

  /// Makes the traced tensor of an argument.
  Tensor argument(const Tensor& like) {
    const Layout dense = Layout::contiguous(like.shape());
    const auto bytes = static_cast<size_t>(bytes_of(like.dtype(), like.elems()));
    Tensor x(Storage::traced(like.device(), bytes), like.dtype(), dense);
    trace_.graph.inputs.push_back(value_of(x, StorageInfo::Kind::input));
    return x;
  }

  void add(const OpCall& call, std::span<const Tensor> results, bool writes) override {
    const bool weights_need = (call.weight != nullptr && call.weight->needs_grad()) ||
                              std::any_of(call.experts.begin(), call.experts.end(),
                                          [](const Weight& w) { return w.needs_grad(); });
    if (call.inputs.need_grad() || weights_need) {
      trace_.needs_grad = trace_.needs_grad || grad_enabled();
    }
    Node node{.op = call.op,
              .part = call.part,
              .attributes = call.attributes,
              .called_as = call.called_as,
              .weight = weight_of(call.weight),
              .experts = call.experts.empty() ? nullptr
                                              : std::make_shared<const std::vector<Weight>>(
                                                    call.experts.begin(), call.experts.end()),
              .custom = call.custom != nullptr ? *call.custom : nullptr,
              .inputs = {},
              .outputs = {},
              .writes = writes};
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      node.inputs.push_back(value_of(call.x(i), StorageInfo::Kind::temporary));
    }
    for (const size_t i : written_operands(node)) make_state(node.inputs[i]);
    for (const Tensor& t : results) {
      node.outputs.push_back(value_of(t, StorageInfo::Kind::temporary));
      make_state(node.outputs.back());
    }
    trace_.graph.nodes.push_back(std::move(node));
  }

  void result(const Tensor& t) {
    if (!t.defined()) throw Error("trace", "an undefined result");
    Graph& graph = trace_.graph;
    graph.outputs.push_back(value_of(t, StorageInfo::Kind::output));
    StorageInfo& storage = graph.storages[static_cast<size_t>(graph.outputs.back().storage)];
    if (storage.kind == StorageInfo::Kind::temporary) storage.kind = StorageInfo::Kind::output;
  }

  Trace finish() { return std::move(trace_); }

 private:
  /// Returns the value of a tensor. A storage that is new to the trace is a constant if it has
  /// memory, else it is of `kind`.
  Value value_of(const Tensor& t, StorageInfo::Kind kind) {
    if (!t.defined()) return {};
    if (t.device() != trace_.graph.device) {
      throw Error("trace", "tensors on several devices", t.str(),
                  "need tensors of " + trace_.graph.device.str());
    }
    const std::shared_ptr<Storage>& storage = t.storage();
    const auto next = static_cast<int>(trace_.graph.storages.size());
    const auto [at, is_new] = places_.try_emplace(storage.get(), next);
    if (is_new) {
      // A weak reference keeps the address from being reused, and doesn't count as an owner for
      // functions that require a storage to have a single owner.
      seen_.emplace_back(storage);
      const bool traced = storage->is_traced();
      trace_.graph.storages.push_back({traced ? kind : StorageInfo::Kind::constant,
                                       storage->bytes(),
                                       traced ? nullptr : storage,
                                       {}});
    }
    return {at->second, t.dtype(), t.layout()};
  }

  /// Turns a constant that is written to into state, which only its owner keeps alive, because
  /// functions such as slice_set require a storage with a single owner.
  void make_state(const Value& value) {
    StorageInfo& storage = trace_.graph.storages[static_cast<size_t>(value.storage)];
    if (storage.kind != StorageInfo::Kind::constant) return;
    storage.kind = StorageInfo::Kind::state;
    storage.state = std::exchange(storage.constant, nullptr);
  }

  std::shared_ptr<const Weight> weight_of(const Weight* weight) {
    if (weight == nullptr) return nullptr;
    std::shared_ptr<const Weight>& kept = weights_[&weight->prepared()];
    if (kept == nullptr) kept = std::make_shared<const Weight>(*weight);
    return kept;
  }

  Trace trace_;
  std::unordered_map<const Storage*, int> places_;
  std::vector<std::weak_ptr<Storage>> seen_;
  std::unordered_map<const PreparedWeight*, std::shared_ptr<const Weight>> weights_;
};

}  // namespace

Trace trace(const Function& function, std::span<const Tensor> arguments) {
  if (arguments.empty()) throw Error("trace", "no arguments", "", "need one tensor or more");
  for (const Tensor& x : arguments) {
    if (!x.defined()) throw Error("trace", "an undefined argument");
  }
  Recorder recorder(arguments.front().device());
  std::vector<Tensor> inputs;
  for (const Tensor& x : arguments) inputs.push_back(recorder.argument(x));
  std::vector<Tensor> results;
  {
    const WithRecorder recording(&recorder);
    results = function(inputs);
  }
  for (const Tensor& t : results) recorder.result(t);
  return recorder.finish();
}

}  // namespace wick::graph
