#include "wick/graph/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/process_wide.h"
#include "wick/graph/uses.h"

namespace wick::graph {
namespace {

constexpr size_t kAlignment = 256;
// Blocks above this size are allocated for each run, so that executables of long prompts don't hold
// memory between runs.
constexpr size_t kMostKeptBytes = size_t{4} << 20;

using Kind = StorageInfo::Kind;

/// The first and the last node that use a storage.
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

/// Returns the storage of a tensor that the function writes to. Errors: the tensor was destroyed.
std::shared_ptr<Storage> state_of(const StorageInfo& storage) {
  std::shared_ptr<Storage> state = storage.state.lock();
  if (state != nullptr) return state;
  throw Error(ErrorKind::runtime, "compile", "a tensor that the function writes to was freed", "",
              "keep it as long as the compiled function");
}

/// Errors: an argument that the function writes to shares its storage with another argument.
void require_apart(std::span<const Tensor> arguments, const std::vector<bool>& written) {
  std::vector<std::pair<const Storage*, bool>> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    all.emplace_back(arguments[i].storage().get(), written[i]);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].first == all[i - 1].first && all[i].second) {
      throw Error("compile", "an argument that is written to is given twice");
    }
  }
}

/// Returns a tensor as elements that Op::copy takes: block dtypes as bytes.
Tensor copyable(const Tensor& x) {
  if (!is_block(x.dtype())) return x;
  const Layout& l = x.layout();
  const int last = l.rank() - 1;
  Shape shape = l.shape();
  Layout::Strides strides{};
  const auto in_bytes = [&](int64_t elems) { return bytes_of(x.dtype(), elems); };
  for (int d = 0; d < last; ++d) strides[static_cast<size_t>(d)] = in_bytes(l.stride(d));
  strides[static_cast<size_t>(last)] = 1;
  return Tensor(x.storage(), DType::u8,
                Layout(shape.with(last, in_bytes(shape[last])), strides, in_bytes(l.offset())));
}

/// Returns a dense copy of a tensor of any dtype.
Tensor copy_of(const Tensor& x) {
  const Tensor copy = copyable(x).clone();
  return Tensor(copy.storage(), x.dtype(), Layout::contiguous(x.shape()));
}

}  // namespace

std::mutex& process_lock() { return ProcessWide<std::mutex>::get(); }

/// The calls of a graph with their tensors. Each concurrent run needs its own frame.
class Executable::Frame {
 public:
  Frame(const Graph& graph, std::span<const size_t> offsets, size_t temporary_bytes)
      : graph_(graph), offsets_(offsets), temporary_bytes_(temporary_bytes) {
    if (temporary_bytes <= kMostKeptBytes) {
      block_ = Storage::allocate(graph.device, temporary_bytes);
    }
    for (const Node& node : graph.nodes) add_step(node);
  }

  /// Runs the calls for these arguments.
  std::vector<Tensor> run(std::span<const Tensor> arguments) {
    std::vector<Tensor> results = bind(arguments);
    run_steps();
    release();
    return results;
  }

  /// Binds the steps' tensors to the arguments and to newly allocated results, which it returns.
  std::vector<Tensor> bind(std::span<const Tensor> arguments);
  void run_steps();
  /// Releases the tensors that bind() set.
  void release() {
    for (const Slot& slot : slots_) *slot.tensor = {};
  }

 private:
  struct Step {
    const OpBody* body;
    OpCall call;
    std::vector<Tensor*> results;
    std::vector<const Tensor*> operands;  ///< the operands that `call` refers to
  };
  /// A tensor of a step that each run binds to another storage.
  struct Slot {
    Tensor* tensor;
    const Value* value;
  };

  void add_step(const Node& node);
  Tensor* tensor_for(const Value& value);
  Tensor temporary(const std::shared_ptr<Storage>& block, const Value& value) const {
    const auto place = static_cast<size_t>(value.storage);
    // Uses within() and not map_on(), which would wait for the device at the end of each run.
    return Tensor(Storage::within(block, offsets_[place], graph_.storages[place].bytes),
                  value.dtype, value.layout);
  }

  const Graph& graph_;
  std::span<const size_t> offsets_;
  size_t temporary_bytes_;
  std::shared_ptr<Storage> block_;  ///< memory of the temporaries; null: each run allocates its own
  std::deque<Tensor> tensors_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
};

/// Makes the tensor of a value: a range of the block, a constant, or a slot that each run binds.
Tensor* Executable::Frame::tensor_for(const Value& value) {
  tensors_.emplace_back();
  Tensor* const tensor = &tensors_.back();
  if (value.storage < 0) return tensor;
  const StorageInfo& storage = graph_.storages[static_cast<size_t>(value.storage)];
  if (storage.kind == Kind::constant) {
    *tensor = Tensor(storage.constant, value.dtype, value.layout);
  } else if (storage.kind == Kind::temporary && block_ != nullptr) {
    *tensor = temporary(block_, value);
  } else {
    slots_.push_back({tensor, &value});
  }
  return tensor;
}

void Executable::Frame::add_step(const Node& node) {
  Step step{&body_of(node.op, node.part), {.op = node.op}, {}, {}};
  step.call.attributes = node.attributes;
  step.call.called_as = node.called_as;
  step.call.part = node.part;
  step.call.weight = node.weight.get();
  if (node.custom != nullptr) step.call.custom = &node.custom;
  if (node.experts != nullptr) step.call.experts = *node.experts;
  for (const Value& value : node.inputs) step.operands.push_back(tensor_for(value));
  step.call.inputs = Operands(step.operands);
  for (const Value& value : node.outputs) step.results.push_back(tensor_for(value));
  steps_.push_back(std::move(step));
}

std::vector<Tensor> Executable::Frame::bind(std::span<const Tensor> arguments) {
  // The storages of this run by index, and the offsets of their first elements.
  std::vector<std::pair<std::shared_ptr<Storage>, int64_t>> bound(graph_.storages.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    bound[static_cast<size_t>(graph_.inputs[i].storage)] = {arguments[i].storage(),
                                                            arguments[i].layout().offset()};
  }
  const auto block =
      block_ != nullptr ? nullptr : Storage::allocate(graph_.device, temporary_bytes_);
  for (size_t i = 0; i < bound.size(); ++i) {
    const StorageInfo& storage = graph_.storages[i];
    if (storage.kind == Kind::output) {
      bound[i] = {Storage::allocate(graph_.device, storage.bytes), 0};
    }
    if (storage.kind == Kind::constant) bound[i] = {storage.constant, 0};
    if (storage.kind == Kind::state) bound[i] = {state_of(storage), 0};
  }
  const auto tensor = [&](const Value& value) {
    const auto place = static_cast<size_t>(value.storage);
    if (graph_.storages[place].kind == Kind::temporary) return temporary(block, value);
    const auto& [storage, offset] = bound[place];
    const Layout& l = value.layout;
    return Tensor(storage, value.dtype, Layout(l.shape(), l.strides(), l.offset() + offset));
  };
  for (const Slot& slot : slots_) *slot.tensor = tensor(*slot.value);
  std::vector<Tensor> results;
  for (const Value& value : graph_.outputs) results.push_back(tensor(value));
  return results;
}

void Executable::Frame::run_steps() {
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

Executable::Executable(Graph graph, bool captures)
    : graph_(std::move(graph)),
      can_capture_(captures && graph_.device.kind != DeviceKind::cpu &&
                   environment_choice("WICK_GPU_RECORD") != "off") {
  plan_memory();
  find_written();
  give_frame(take_frame());  // reports errors in the graph now
}

Executable::~Executable() = default;

/// Places the temporaries in one block, the largest first, each at the lowest offset where it
/// overlaps no temporary that is alive at the same time.
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
  std::vector<size_t> placed;  // sorted by offset
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
  temporary_bytes_ = std::max(temporary_bytes_, kAlignment);
}

/// Finds the arguments that the function writes to. They can't be copied, so these graphs aren't
/// captured.
void Executable::find_written() {
  std::vector<bool> written(graph_.storages.size(), false);
  const auto note = [&](const Value& value) {
    if (value.storage >= 0) written[static_cast<size_t>(value.storage)] = true;
  };
  for (const Node& node : graph_.nodes) {
    for (const Value& v : node.outputs) note(v);
    for (const size_t operand : written_operands(node)) note(node.inputs[operand]);
  }
  for (const Value& input : graph_.inputs) {
    written_.push_back(written[static_cast<size_t>(input.storage)]);
    writes_arguments_ = writes_arguments_ || written_.back();
  }
  if (writes_arguments_) can_capture_ = false;
}

std::unique_ptr<Executable::Frame> Executable::take_frame() {
  {
    const std::lock_guard lock(process_lock());
    if (!frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(frames_.back());
      frames_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(graph_, offsets_, temporary_bytes_);
}

void Executable::give_frame(std::unique_ptr<Frame> frame) {
  const std::lock_guard lock(process_lock());
  frames_.push_back(std::move(frame));
}

/// Captures the calls into a graph of the driver. Returns false if a call can't be captured, for
/// example a custom op whose body waits for the device, or whose CPU body computes for the GPU.
bool Executable::capture(std::span<const Tensor> arguments) {
  std::vector<Tensor> inputs;
  for (const Tensor& x : arguments) inputs.push_back(copy_of(x));
  std::unique_ptr<Frame> frame = take_frame();
  std::vector<Tensor> outputs = frame->bind(inputs);
  try {
    captured_ = backend(graph_.device).record([&] { frame->run_steps(); });
  } catch (const Error&) {
    can_capture_ = false;  // if the calls themselves are wrong, the uncaptured run throws again
    return false;
  }
  frame->release();  // releases the references to state, whose owner must be the only one
  captured_inputs_ = std::move(inputs);
  captured_outputs_ = std::move(outputs);
  captured_frame_ = std::move(frame);
  return true;
}

/// Copies the arguments to the tensors that the captured calls read, replays the graph, and copies
/// the results out.
std::vector<Tensor> Executable::replay(std::span<const Tensor> arguments) {
  std::vector<std::shared_ptr<Storage>> states;  // kept alive during the replay
  for (const StorageInfo& storage : graph_.storages) {
    if (storage.kind == Kind::state) states.push_back(state_of(storage));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor from = copyable(arguments[i]);
    apply_into({Op::copy, {&from}}, copyable(captured_inputs_[i]));
  }
  captured_->replay();
  std::vector<Tensor> results;
  for (const Tensor& t : captured_outputs_) results.push_back(copy_of(t));
  return results;
}

/// Checks the arguments and returns them as dense tensors.
std::vector<Tensor> Executable::checked(std::span<const Tensor> arguments) const {
  if (arguments.size() != graph_.inputs.size()) {
    throw Error("compile", "wrong number of arguments", fmt::format("{}", arguments.size()),
                fmt::format("need {}", graph_.inputs.size()));
  }
  std::vector<Tensor> dense;
  dense.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = graph_.inputs[i];
    const Tensor& x = arguments[i];
    if (!x.defined() || !(x.shape() == value.layout.shape()) || x.dtype() != value.dtype ||
        x.device() != graph_.device) {
      throw Error("compile", "an argument differs from the trace", x.str(),
                  fmt::format("argument {} was traced as {}{}@{}", i, name(value.dtype),
                              value.layout.shape().str(), graph_.device.str()));
    }
    if (written_[i] && !x.layout().is_contiguous()) {
      throw Error("compile", "an argument that is written to isn't dense", x.str(),
                  fmt::format("give argument {} as contiguous()", i));
    }
    dense.push_back(x.detach().contiguous());
  }
  if (writes_arguments_) require_apart(dense, written_);
  return dense;
}

std::vector<Tensor> Executable::run(std::span<const Tensor> arguments) {
  const std::vector<Tensor> dense = checked(arguments);
  // The first run isn't captured: it also does one-time work, such as loading kernels, that can't
  // be captured.
  if (has_run_ && can_capture_) {
    const std::lock_guard lock(capture_mutex_);
    if (can_capture_ && (captured_ != nullptr || capture(dense))) return replay(dense);
  }
  std::unique_ptr<Frame> frame = take_frame();
  std::vector<Tensor> results = frame->run(dense);
  give_frame(std::move(frame));
  has_run_ = true;
  return results;
}

}  // namespace wick::graph
