#include "tests/soak/replayed_case.h"

#include <fmt/format.h>

#include <cstring>

#include "wick/backend/gpu/trace/counts.h"
#include "wick/base/error.h"
#include "wick/graph/compile.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/random.h"

namespace wick::soak {
namespace {

constexpr int64_t kElems = 300;  // limit of the elements of one operand

std::string_view name(ValueSet values) { return values == ValueSet::first ? "first" : "second"; }

int64_t bytes_of_one(DType dtype) { return info(dtype).block_bytes; }

}  // namespace

Elements Elements::of(const Tensor& x) {
  const Tensor host = x.detach().to(Device::cpu()).contiguous();
  const bool blocks = is_block(x.dtype());
  Elements e{fmt::format("{}{}", wick::name(x.dtype()), x.shape().str()),
             blocks ? DType::u8 : x.dtype(),
             {}};
  const int64_t bytes = bytes_of(x.dtype(), x.elems()), each = bytes_of_one(e.dtype);
  if (bytes == 0) return e;
  const auto* const data = static_cast<const std::byte*>(host.storage()->data()) +
                           bytes_of(x.dtype(), host.layout().offset());
  for (int64_t at = 0; at < bytes; at += each) {
    e.bits.push_back(parity::load_bits(e.dtype, data + at));
  }
  return e;
}

std::string difference(const Elements& a, const Elements& b) {
  if (a.what != b.what) return fmt::format("{} instead of {}", a.what, b.what);
  for (size_t i = 0; i < a.bits.size(); ++i) {
    if (parity::same_bits(a.dtype, a.bits[i], b.bits[i])) continue;
    return fmt::format("element {} of {} is {:#x}, not {:#x}", i, a.what, a.bits[i], b.bits[i]);
  }
  return "";
}

std::string forbidden_work(Device device, const std::function<void()>& work) {
  const auto held = [&] {
    const MemoryInfo memory = backend(device).memory_info();
    return memory.in_use_bytes + memory.cached_bytes;
  };
  const gpu::WorkCounts before = gpu::work_counts(device);
  const size_t held_before = held();
  work();
  const gpu::WorkCounts did = gpu::work_counts(device) - before;
  const size_t pool = held() - held_before;
  std::string text;
  const auto add = [&](bool found, const std::string& what) {
    if (found) text += (text.empty() ? "" : ", ") + what;
  };
  add(did.bytes_to_host > 0, fmt::format("it copies {} bytes to the host", did.bytes_to_host));
  add(did.bytes_to_device > 0,
      fmt::format("it copies {} bytes from the host", did.bytes_to_device));
  add(did.waits > 0, fmt::format("it waits {} times", did.waits));
  add(did.host_allocations > 0, "it allocates memory of the host");
  add(did.allocated_bytes != pool, fmt::format("the driver allocates {} bytes, of which {} are in "
                                               "the pool",
                                               did.allocated_bytes, pool));
  return text;
}

ReplayedCase::ReplayedCase(const Row& row, Device device, uint64_t seed, bool gradients)
    : row_(row), device_(device), seed_(seed), with_gradients_(gradients) {}

// ---- The parts of Stage ----

Tensor ReplayedCase::operand(DType dtype, const Layout& layout,
                             const std::vector<std::byte>& storage) {
  const auto elems = static_cast<int64_t>(storage.size()) / bytes_of_one(dtype);
  const auto slot = [&] {
    const auto memory = Storage::allocate(device_, storage.size());
    backend(device_).upload(memory->data(), storage.data(), storage.size());
    return Tensor(memory, dtype, Layout::contiguous({elems}));
  };
  if (makes_once_) return Tensor(slot().storage(), dtype, layout);
  const size_t i = operand_++;
  if (mode_ == Mode::eager) {
    of(set_).operands.push_back(storage);
    if (i == slots_.size()) {
      slots_.push_back(slot());
    } else {
      backend(device_).upload(slots_[i].storage()->data(), storage.data(), storage.size());
    }
  }
  const Tensor& from = mode_ == Mode::traced ? given_.at(i) : slots_.at(i);
  if (from.dtype() != dtype || from.elems() != elems) {
    throw Error("ReplayedCase", "the runs of a case differ", from.str());
  }
  const Tensor x(from.storage(), dtype, layout);
  if (!with_gradients_ || !is_float(dtype)) return x;
  return leaves_.emplace_back(x.requires_grad());
}

void ReplayedCase::add_result(const Tensor& t) {
  if (mode_ == Mode::eager) {
    of(set_).results.push_back(Elements::of(t));
  } else {
    got_.push_back(t);
  }
}

void ReplayedCase::result(const Tensor& got) {
  add_result(got.detach());
  if (!got.needs_grad()) return;
  for (const Tensor& gradient : wick::gradients(got, leaves_, got.detach())) {
    if (!gradient.defined()) continue;  // the result doesn't depend on that operand
    ++gradient_count_;
    add_result(gradient);
  }
}

std::any ReplayedCase::once(Random& random, const std::function<std::any()>& make) {
  if (makes_once_) return make();
  const size_t at = made_at_++;
  if (at == made_.size()) {
    makes_once_ = true;
    std::any value = make();
    makes_once_ = false;
    made_.push_back({std::move(value), random});
  }
  random = made_.at(at).after;
  return made_.at(at).value;
}

// ---- Runs ----

void ReplayedCase::run(Mode mode, ValueSet values) {
  mode_ = mode;
  set_ = values;
  values_ = Random(seed_ * 2 + static_cast<uint64_t>(values) + 1'000'003);
  operand_ = made_at_ = 0;
  leaves_.clear();
  got_.clear();
  set_seed(seed_, device_);
  Case c(device_, seed_, kElems);
  c.what = row_.name;
  c.stage = this;
  gradient_count_ = 0;
  try {
    row_.run(c);
  } catch (...) {
    what_ = c.what;
    throw;
  }
  what_ = c.what;
  is_bound_ = c.is_bound;
}

void ReplayedCase::run_eagerly(ValueSet values) {
  of(values) = {};
  run(Mode::eager, values);
}

int64_t ReplayedCase::elems() const {
  size_t elems = 0;
  for (const Elements& e : of(ValueSet::first).results) elems += e.bits.size();
  return static_cast<int64_t>(elems);
}

graph::Function ReplayedCase::traced_function() {
  return [this](std::span<const Tensor> arguments) {
    given_.assign(arguments.begin(), arguments.end());
    run(Mode::traced, ValueSet::first);
    given_.clear();
    leaves_.clear();
    return std::exchange(got_, {});
  };
}

std::vector<Tensor> ReplayedCase::arguments() const {
  std::vector<Tensor> all = slots_;
  // A function has one argument at least.
  if (all.empty()) all.push_back(Tensor::zeros({1}, DType::f32, device_));
  return all;
}

bool ReplayedCase::has_equal_bits() {
  const graph::Trace trace = graph::trace(traced_function(), arguments());
  for (const graph::Node& node : trace.graph.nodes) {
    const bool gradient_of_attention =
        node.op == Op::attention && node.part == Part::input_gradient;
    if (info(node.op).numeric_class != NumericClass::bound && !gradient_of_attention) continue;
    for (const graph::Value& output : node.outputs) {
      if (is_float(output.dtype)) return false;
    }
  }
  return !is_bound_;
}

void ReplayedCase::upload(ValueSet values) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const std::vector<std::byte>& bytes = of(values).operands[i];
    backend(device_).upload(slots_[i].storage()->data(), bytes.data(), bytes.size());
  }
}

std::string ReplayedCase::compare(std::span<const Tensor> got, ValueSet values) const {
  const std::vector<Elements>& expected = results(values);
  if (got.size() != expected.size()) {
    return fmt::format("{} results instead of {}", got.size(), expected.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string text = difference(Elements::of(got[i]), expected[i]);
    if (!text.empty()) {
      return fmt::format("result {} for the {} values: {}", i, name(values), text);
    }
  }
  return "";
}

std::string ReplayedCase::changed_operand(ValueSet values) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    std::vector<std::byte> now(of(values).operands[i].size());
    backend(device_).download(now.data(), slots_[i].storage()->data(), now.size());
    if (now != of(values).operands[i]) return fmt::format("operand {} has changed", i);
  }
  return "";
}

std::string ReplayedCase::check_captured() {
  upload(ValueSet::first);
  std::string wrong;
  std::unique_ptr<DeviceGraph> graph;
  const uint64_t before = gpu::work_counts(device_).on_device();
  try {
    graph = backend(device_).record(
        [&] { wrong = forbidden_work(device_, [&] { run(Mode::captured, ValueSet::first); }); });
  } catch (const std::exception& error) {
    got_.clear();
    return fmt::format("it can't be captured: {}", error.what());
  }
  if (!wrong.empty()) return "while it is captured, " + wrong;
  if (elems() > 0 && gpu::work_counts(device_).on_device() == before) {
    return "the device has nothing to do";
  }
  // The leaves and the recorded calls hold tensors that the graph doesn't need.
  leaves_.clear();
  const std::vector<Tensor> got = std::exchange(got_, {});
  for (const ValueSet values : {ValueSet::second, ValueSet::first, ValueSet::second}) {
    upload(values);
    graph->replay();
    synchronize(device_);
    wrong = compare(got, values);
    if (wrong.empty()) wrong = changed_operand(values);
    if (!wrong.empty()) return "replayed: " + wrong;
  }
  return "";
}

std::string ReplayedCase::check_compiled() {
  const Compiled function = compile(traced_function());
  // The second call captures, and the third only replays.
  for (const ValueSet values : {ValueSet::first, ValueSet::second, ValueSet::first}) {
    upload(values);
    std::string wrong;
    try {
      wrong = compare(function(arguments()), values);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) return "compiled: " + wrong;
  }
  return "";
}

}  // namespace wick::soak
