#include "wick/graph/compile.h"

#include <algorithm>
#include <list>
#include <utility>

#include "wick/base/error.h"
#include "wick/graph/executable.h"
#include "wick/graph/fuse.h"
#include "wick/tensor/autograd.h"

namespace wick {
namespace {

/// The key of an executable.
struct Key {
  struct Argument {
    Shape shape;
    DType dtype;
    bool operator==(const Argument&) const = default;
  };
  Device device;
  std::vector<Argument> arguments;
  bool grad = false;  ///< whether gradients are recorded
  bool operator==(const Key& other) const {
    return device == other.device && arguments == other.arguments && grad == other.grad;
  }
};

Key key_of(std::span<const Tensor> arguments) {
  Key key;
  key.grad = grad_enabled();
  for (const Tensor& x : arguments) {
    if (!x.defined()) throw Error("compile", "an undefined argument");
    if (key.arguments.empty()) key.device = x.device();
    if (x.device() != key.device) {
      throw Error("compile", "arguments on several devices",
                  arguments.front().str() + ", " + x.str(), "move them to one");
    }
    key.arguments.push_back({x.shape(), x.dtype()});
  }
  if (key.arguments.empty()) throw Error("compile", "no arguments", "", "need one or more");
  return key;
}

}  // namespace

struct Compiled::State {
  struct Entry {
    Key key;
    std::shared_ptr<graph::Executable> executable;  ///< null: the function itself is called
  };

  graph::Function function;
  CompileOptions options;
  std::list<Entry> entries;  ///< most recently used first

  const std::shared_ptr<graph::Executable>* kept(const Key& key) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const Entry& entry) { return entry.key == key; });
    if (at == entries.end()) return nullptr;
    entries.splice(entries.begin(), entries, at);
    return &entries.front().executable;
  }

  std::shared_ptr<graph::Executable> trace(std::span<const Tensor> arguments) const {
    graph::Trace trace = graph::trace(function, arguments);
    if (trace.needs_grad) return nullptr;
    if (options.fuse) graph::fuse(trace.graph);
    return std::make_shared<graph::Executable>(std::move(trace.graph), options.capture);
  }

  /// Returns the executable for these arguments; traces the function if there is none. Several
  /// threads may trace for the same key at once; the first result is kept.
  std::shared_ptr<graph::Executable> find(std::span<const Tensor> arguments) {
    const Key key = key_of(arguments);
    {
      const std::lock_guard lock(graph::process_lock());
      if (const auto* found = kept(key)) return *found;
    }
    std::shared_ptr<graph::Executable> executable = trace(arguments);
    std::list<Entry> dropped;  // destroyed after the lock is released
    const std::lock_guard lock(graph::process_lock());
    if (const auto* found = kept(key)) return *found;
    entries.push_front({key, executable});
    if (entries.size() > std::max<size_t>(options.most_executables, 1)) {
      dropped.splice(dropped.begin(), entries, std::prev(entries.end()));
    }
    return executable;
  }
};

Compiled::Compiled(graph::Function function, const CompileOptions& options)
    : state_(std::make_unique<State>()) {
  if (!function) throw Error("compile", "no function");
  state_->function = std::move(function);
  state_->options = options;
}
Compiled::~Compiled() = default;
Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;

std::vector<Tensor> Compiled::operator()(std::span<const Tensor> arguments) const {
  const bool wants_grad =
      grad_enabled() && std::any_of(arguments.begin(), arguments.end(),
                                    [](const Tensor& x) { return x.needs_grad(); });
  // Calls inside another trace are recorded by that trace.
  if (wants_grad || recorder() != nullptr) return state_->function(arguments);
  const std::shared_ptr<graph::Executable> executable = state_->find(arguments);
  return executable != nullptr ? executable->run(arguments) : state_->function(arguments);
}

std::vector<const CustomBody*> Compiled::owned_custom_ops() const {
  std::vector<const CustomBody*> ops;
  const std::lock_guard lock(graph::process_lock());
  for (const State::Entry& entry : state_->entries) {
    if (entry.executable.use_count() != 1) continue;
    for (const graph::Node& node : entry.executable->graph().nodes) {
      if (node.custom.use_count() == 1) ops.push_back(node.custom.get());
    }
  }
  return ops;
}

size_t Compiled::executables() const {
  const std::lock_guard lock(graph::process_lock());
  return state_->entries.size();
}

}  // namespace wick
