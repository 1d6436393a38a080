#include "wick/graph/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::graph {
namespace {

constexpr size_t kAlignment = 256;

using Kind = StorageInfo::Kind;

/// The first and the last node that touches a storage.
struct Lifetime {
  int first = -1, last = -1;
};

std::vector<Lifetime> lifetimes(const Graph& graph) {
  std::vector<Lifetime> all(graph.storages.size());
  const auto touch = [&](const Value& value, int node) {
    if (value.storage < 0) return;
    Lifetime& l = all[static_cast<size_t>(value.storage)];
    if (l.first < 0) l.first = node;
    l.last = node;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Value& v : graph.nodes[i].inputs) touch(v, static_cast<int>(i));
    for (const Value& v : graph.nodes[i].outputs) touch(v, static_cast<int>(i));
  }
  return all;
}

/// Errors: the tensor that the function writes to is gone.
std::shared_ptr<Storage> state_of(const StorageInfo& storage) {
  std::shared_ptr<Storage> state = storage.state.lock();
  if (state != nullptr) return state;
  throw Error(ErrorKind::runtime, "compile", "a tensor that the function writes to is gone", "",
              "keep it as long as the compiled function");
}

}  // namespace

Executable::Executable(Graph graph)
    : graph_(std::move(graph)),
      can_capture_(graph_.device.kind != DeviceKind::cpu &&
                   environment_choice("WICK_GPU_RECORD") != "off") {
  plan_memory();
  make_steps();
}

/// Places temporaries in one block, the largest first, each at the lowest offset where no other
/// lies that lives at the same time.
void Executable::plan_memory() {
  const std::vector<Lifetime> life = lifetimes(graph_);
  offsets_.assign(graph_.storages.size(), 0);
  std::vector<size_t> order;
  for (size_t i = 0; i < graph_.storages.size(); ++i) {
    if (graph_.storages[i].kind == Kind::temporary && life[i].first >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return graph_.storages[a].bytes > graph_.storages[b].bytes;
  });
  const auto size_of = [&](size_t i) {
    return (std::max<size_t>(graph_.storages[i].bytes, 1) + kAlignment - 1) / kAlignment *
           kAlignment;
  };
  std::vector<size_t> placed;  // by offset
  for (const size_t i : order) {
    size_t at = 0;
    for (const size_t other : placed) {
      const bool apart = life[other].last < life[i].first || life[i].last < life[other].first;
      if (apart) continue;
      if (at + size_of(i) <= offsets_[other]) break;
      at = std::max(at, offsets_[other] + size_of(other));
    }
    offsets_[i] = at;
    temporary_bytes_ = std::max(temporary_bytes_, at + size_of(i));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return offsets_[a] < offsets_[b]; }),
                  i);
  }
  block_ = Storage::allocate(graph_.device, std::max(temporary_bytes_, kAlignment));
}

/// A tensor of a value: of the block, of a constant, or one that each run binds.
Tensor* Executable::tensor_for(const Value& value) {
  tensors_.emplace_back();
  Tensor* const tensor = &tensors_.back();
  if (value.storage < 0) return tensor;
  const auto place = static_cast<size_t>(value.storage);
  const StorageInfo& storage = graph_.storages[place];
  if (storage.kind == Kind::constant) {
    *tensor = Tensor(storage.constant, value.dtype, value.layout);
  } else if (storage.kind == Kind::temporary) {
    char* const data = static_cast<char*>(block_->data()) + offsets_[place];
    *tensor = Tensor(Storage::map_on(graph_.device, data, storage.bytes, block_), value.dtype,
                     value.layout);
  } else {
    slots_.push_back({tensor, value});
  }
  return tensor;
}

void Executable::make_steps() {
  for (const Node& node : graph_.nodes) {
    Step step{&body_of(node.op, node.part), {.op = node.op}, {}};
    step.call.attributes = node.attributes;
    step.call.called_as = node.called_as;
    step.call.part = node.part;
    step.call.weight = node.weight.get();
    for (const Value& value : node.inputs) step.call.inputs.add(tensor_for(value));
    for (const Value& value : node.outputs) step.results.push_back(tensor_for(value));
    steps_.push_back(std::move(step));
  }
}

std::vector<Tensor> Executable::bind(std::span<const Tensor> arguments) {
  // Storages of this run by place: those of arguments and of results.
  std::vector<std::pair<std::shared_ptr<Storage>, int64_t>> bound(graph_.storages.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    bound[static_cast<size_t>(graph_.inputs[i].storage)] = {arguments[i].storage(),
                                                            arguments[i].layout().offset()};
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    const StorageInfo& storage = graph_.storages[i];
    if (storage.kind == Kind::output) {
      bound[i] = {Storage::allocate(graph_.device, storage.bytes), 0};
    }
    if (storage.kind == Kind::constant) bound[i] = {storage.constant, 0};
    if (storage.kind == Kind::state) bound[i] = {state_of(storage), 0};
  }
  const auto tensor = [&](const Value& value) {
    const auto& [storage, offset] = bound[static_cast<size_t>(value.storage)];
    const Layout& l = value.layout;
    return Tensor(storage, value.dtype, Layout(l.shape(), l.strides(), l.offset() + offset));
  };
  for (const Slot& slot : slots_) *slot.tensor = tensor(slot.value);
  std::vector<Tensor> results;
  for (const Value& value : graph_.outputs) results.push_back(tensor(value));
  return results;
}

void Executable::release_slots() {
  for (const Slot& slot : slots_) *slot.tensor = {};
}

void Executable::run_steps() {
  Backend& b = backend(graph_.device);
  Tensor results[OpBody::kMostResults];
  for (const Step& step : steps_) {
    if (step.results.size() == 1) {
      step.body->run(b, step.call, step.results[0]);
      continue;
    }
    for (size_t i = 0; i < step.results.size(); ++i) results[i] = *step.results[i];
    step.body->run(b, step.call, results);
  }
}

/// Captures the calls into a graph of the driver. False: one of them can't be captured, such as an
/// op that the host computes on behalf of the GPU.
bool Executable::capture(std::span<const Tensor> arguments) {
  for (const Tensor& x : arguments) captured_inputs_.push_back(x.clone());
  captured_outputs_ = bind(captured_inputs_);
  try {
    captured_ = backend(graph_.device).record([&] { run_steps(); });
  } catch (const Error&) {
    can_capture_ = false;  // an error of the calls themselves comes again when they run
    captured_inputs_.clear();
    captured_outputs_.clear();
  }
  release_slots();
  return can_capture_;
}

/// Copies arguments to where the captured calls read them, replays these, and copies the results
/// out.
std::vector<Tensor> Executable::replay(std::span<const Tensor> arguments) {
  std::vector<std::shared_ptr<Storage>> states;  // alive until the end
  for (const StorageInfo& storage : graph_.storages) {
    if (storage.kind == Kind::state) states.push_back(state_of(storage));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    apply_into({Op::copy, {&arguments[i]}}, captured_inputs_[i]);
  }
  captured_->replay();
  std::vector<Tensor> results;
  for (const Tensor& t : captured_outputs_) results.push_back(t.clone());
  return results;
}

std::vector<Tensor> Executable::run(std::span<const Tensor> arguments) {
  if (arguments.size() != graph_.inputs.size()) {
    throw Error("compile", "another number of arguments", fmt::format("{}", arguments.size()),
                fmt::format("need {}", graph_.inputs.size()));
  }
  std::vector<Tensor> dense;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = graph_.inputs[i];
    const Tensor& x = arguments[i];
    if (!x.defined() || !(x.shape() == value.layout.shape()) || x.dtype() != value.dtype ||
        x.device() != graph_.device) {
      throw Error("compile", "an argument of another kind", x.str(),
                  fmt::format("argument {} was traced as {}{}@{}", i, name(value.dtype),
                              value.layout.shape().str(), graph_.device.str()));
    }
    dense.push_back(x.detach().contiguous());
  }
  const std::lock_guard lock(mutex_);
  // The first run also does what is needed once, such as loading kernels, which can't be captured.
  if (has_run_ && can_capture_ && (captured_ != nullptr || capture(dense))) return replay(dense);
  std::vector<Tensor> results = bind(dense);
  run_steps();
  has_run_ = true;
  release_slots();
  return results;
}

}  // namespace wick::graph
