#include "wick/tensor/custom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <mutex>
#include <set>
#include <typeindex>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/base/printable.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/tape.h"

namespace wick {

// ---- What bodies see ----

void CustomInput::fail_type() const {
  throw Error(ErrorKind::type, op_, "a body accesses elements as another type",
              fmt::format("{}{}", wick::name(dtype()), shape().str()),
              "need the dtype's type; 16-bit floats are uint16_t, 8-bit floats and bool uint8_t");
}

void CustomInput::fail_dense() const {
  throw Error(op_, "a body takes elements as dense that aren't",
              fmt::format("{}{}", wick::name(dtype()), shape().str()),
              "use data() and the strides");
}

GpuContext::~GpuContext() {
  for (const auto& [data, bytes] : scratch_) backend_.free(data, bytes);
}

Device GpuContext::device() const { return backend_.device(); }
void* GpuContext::stream() const {
  require_thread();
  return backend_.work_stream();
}
LaunchLimits GpuContext::limits() const { return backend_.launch_limits(); }

void GpuContext::refuse_thread() const {
  throw Error(op_, "the GPU context was used by another thread than the body's", {},
              "the thread that called the body launches, and asks for memory and the stream");
}

void GpuContext::require_thread() const {
  if (std::this_thread::get_id() == thread_) return;
  strange_thread_ = true;
  refuse_thread();
}

void GpuContext::finish() const {
  if (strange_thread_) refuse_thread();
}

void* GpuContext::take(int64_t count, size_t bytes) {
  require_thread();
  int64_t all = 0;
  if (count < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(bytes), &all)) {
    throw Error(op_, "scratch memory of an impossible size",
                fmt::format("{} elements of {} bytes", count, bytes));
  }
  const auto size = static_cast<size_t>(std::max<int64_t>(all, 1));
  scratch_.reserve(scratch_.size() + 1);  // so that no memory is lost if it throws
  void* const data = backend_.alloc(size);
  scratch_.emplace_back(data, size);
  return data;
}

void GpuContext::launch(KernelLaunch& what, std::span<const GpuArgument> arguments) {
  require_thread();
  const std::vector<KernelArgument> plain(arguments.begin(), arguments.end());
  what.op = op_;
  what.arguments = plain;
  backend_.launch(what);
}

void GpuContext::launch(const KernelText& text, const KernelGrid& grid,
                        std::span<const GpuArgument> arguments) {
  KernelLaunch what{.text = &text, .grid = grid};
  launch(what, arguments);
}

void GpuContext::launch(const KernelCode& code, std::string_view function, const KernelGrid& grid,
                        std::span<const GpuArgument> arguments) {
  KernelLaunch what{.code = &code, .function = function, .grid = grid};
  launch(what, arguments);
}

// ---- Bodies that aren't overridden ----

CustomBody::CustomBody(std::string name) : name_(std::move(name)) {
  const bool valid = !name_.empty() && name_.size() <= 64 &&
                     std::all_of(name_.begin(), name_.end(), [](unsigned char c) {
                       return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '.');
                     });
  if (valid) return;
  throw Error("custom op", "not a name for an op", printable(name_),
              "need letters, digits, underscores and dots");
}
CustomBody::~CustomBody() = default;

void CustomBody::no_body() { throw NoBody(); }
void CustomBody::run_cpu(const CustomArguments&) const { no_body(); }
void CustomBody::run_gpu(GpuContext&, const CustomArguments&) const { no_body(); }
void CustomBody::run_cuda(GpuContext& gpu, const CustomArguments& a) const { run_gpu(gpu, a); }
void CustomBody::run_rocm(GpuContext& gpu, const CustomArguments& a) const { run_gpu(gpu, a); }
bool CustomBody::is_first_fallback() const {
  constexpr size_t kMost = 1024;  // names may be made at run time
  static std::mutex mutex;
  static auto* const warned = new std::set<std::pair<std::type_index, std::string>>;
  const std::lock_guard lock(mutex);
  if (warned->size() >= kMost) warned->clear();
  return warned->emplace(typeid(*this), name_).second;
}
void CustomBody::warn(const std::string& message) const {
  std::fprintf(stderr, "wick: %s\n", message.c_str());
}

namespace {

[[noreturn]] void no_backward(const CustomOp& op, const Tensor& x) {
  throw Error(ErrorKind::not_implemented, op.name(), "not differentiable", x.str(),
              "implement backward, or apply the op without gradients");
}

}  // namespace

std::vector<Tensor> CustomOp::vjp(std::span<const Tensor> operands, const Tensor&,
                                  const Tensor&) const {
  no_backward(*this, operands[0]);
}

using In = const CustomInput&;
using Out = const CustomOutput&;

void CustomOp1::cpu(Out, In) const { no_body(); }
void CustomOp1::gpu(GpuContext&, Out, In) const { no_body(); }
void CustomOp1::cuda(GpuContext& g, Out y, In x) const { gpu(g, y, x); }
void CustomOp1::rocm(GpuContext& g, Out y, In x) const { gpu(g, y, x); }
Tensor CustomOp1::backward(const Tensor& x, const Tensor&, const Tensor&) const {
  no_backward(*this, x);
}

void CustomOp2::cpu(Out, In, In) const { no_body(); }
void CustomOp2::gpu(GpuContext&, Out, In, In) const { no_body(); }
void CustomOp2::cuda(GpuContext& g, Out y, In a, In b) const { gpu(g, y, a, b); }
void CustomOp2::rocm(GpuContext& g, Out y, In a, In b) const { gpu(g, y, a, b); }
std::vector<Tensor> CustomOp2::backward(const Tensor& a, const Tensor&, const Tensor&,
                                        const Tensor&) const {
  no_backward(*this, a);
}

void CustomOp3::cpu(Out, In, In, In) const { no_body(); }
void CustomOp3::gpu(GpuContext&, Out, In, In, In) const { no_body(); }
void CustomOp3::cuda(GpuContext& g, Out y, In a, In b, In c) const { gpu(g, y, a, b, c); }
void CustomOp3::rocm(GpuContext& g, Out y, In a, In b, In c) const { gpu(g, y, a, b, c); }
std::vector<Tensor> CustomOp3::backward(const Tensor& a, const Tensor&, const Tensor&,
                                        const Tensor&, const Tensor&) const {
  no_backward(*this, a);
}

void InplaceOp1::cpu(Out) const { no_body(); }
void InplaceOp1::gpu(GpuContext&, Out) const { no_body(); }
void InplaceOp1::cuda(GpuContext& g, Out x) const { gpu(g, x); }
void InplaceOp1::rocm(GpuContext& g, Out x) const { gpu(g, x); }

void InplaceOp2::cpu(Out, In) const { no_body(); }
void InplaceOp2::gpu(GpuContext&, Out, In) const { no_body(); }
void InplaceOp2::cuda(GpuContext& g, Out x, In a) const { gpu(g, x, a); }
void InplaceOp2::rocm(GpuContext& g, Out x, In a) const { gpu(g, x, a); }

void InplaceOp3::cpu(Out, In, In) const { no_body(); }
void InplaceOp3::gpu(GpuContext&, Out, In, In) const { no_body(); }
void InplaceOp3::cuda(GpuContext& g, Out x, In a, In b) const { gpu(g, x, a, b); }
void InplaceOp3::rocm(GpuContext& g, Out x, In a, In b) const { gpu(g, x, a, b); }

// ---- Running a call ----

/// Runs the body of a call for a device.
struct CustomRun {
  const CustomBody& op;
  Backend& backend;
  Tensor out;              ///< the result, or the target of an in-place op
  std::vector<Tensor> in;  ///< the other operands
  bool writes_target;

  void run() {
    if (out.elems() == 0) return;
    if (!op.takes_strides()) {
      for (Tensor& x : in) x = x.contiguous();
    }
    const DeviceKind kind = backend.device().kind;
    try {
      if (kind == DeviceKind::cpu) return op.run_cpu(arguments(out, in));
      backend.work_stream();  // makes the device the thread's current one
      GpuContext gpu(backend, op.name());
      if (kind == DeviceKind::cuda) {
        op.run_cuda(gpu, arguments(out, in));
      } else {
        op.run_rocm(gpu, arguments(out, in));
      }
      return gpu.finish();
    } catch (const CustomBody::NoBody&) {
      if (kind == DeviceKind::cpu || !op.falls_back_to_cpu()) fail_no_body(kind);
    }
    run_on_host();
  }

 private:
  CustomArguments arguments(const Tensor& to, const std::vector<Tensor>& from) const {
    CustomArguments all{CustomOutput(op.name(), to), {}};
    for (const Tensor& x : from) all.in.emplace_back(op.name(), x);
    return all;
  }

  [[noreturn]] void fail_no_body(DeviceKind kind) const {
    const char* const missing = kind == DeviceKind::cpu    ? "the CPU"
                                : kind == DeviceKind::cuda ? "CUDA"
                                                           : "ROCm";
    const char* const rule =
        kind == DeviceKind::cpu ? "implement cpu"
        : kind == DeviceKind::cuda
            ? "implement gpu or cuda, or let the op fall back to the CPU's body"
            : "implement gpu or rocm, or let the op fall back to the CPU's body";
    throw Error(ErrorKind::not_implemented, op.name(), fmt::format("no body for {}", missing),
                out.str(), rule);
  }

  void warn_once() const {
    if (!op.is_first_fallback()) return;
    op.warn(fmt::format("{}: no body for {}: the CPU computes it, and copies wait for the device",
                        op.name(), backend.device().str()));
  }

  /// Computes on the host for a GPU.
  void run_on_host() const {
    warn_once();
    std::vector<Tensor> from;
    for (const Tensor& x : in) from.push_back(x.to(Device::cpu()));
    const Tensor host =
        writes_target ? out.to(Device::cpu()) : Tensor::empty(out.shape(), out.dtype());
    try {
      op.run_cpu(arguments(host, from));
    } catch (const CustomBody::NoBody&) {
      fail_no_body(DeviceKind::cpu);
    }
    const Tensor back = host.to(backend.device());
    apply_into({Op::copy, {&back}}, out);
  }
};

namespace {

const CustomOp& op_of(const OpCall& call) { return static_cast<const CustomOp&>(**call.custom); }

/// Errors: an operand is undefined; the operands are on several devices.
void check_operands(const std::string& op, const Operands& operands) {
  if (operands.size() == 0) throw Error(op, "no operands", {}, "need one tensor or more");
  for (size_t i = 0; i < operands.size(); ++i) {
    check_device(op.c_str(), operands[0], operands[i]);
  }
}

ResultSpec infer_custom(const OpCall& call) {
  const CustomOp& op = op_of(call);
  const ResultSpec spec = op.infer(call.inputs);
  if (is_block(spec.dtype)) {
    throw Error(ErrorKind::type, op.name(), "a result with a block dtype", name(spec.dtype),
                "quantize the result of the op");
  }
  return dense(spec.dtype, spec.layout.shape());
}

void run_custom(Backend& backend, const OpCall& call, const Tensor* results) {
  const CustomBody& op = **call.custom;
  const bool in_place = call.part == Part::custom_in_place;
  std::vector<Tensor> in;
  for (size_t i = in_place ? 1 : 0; i < call.inputs.size(); ++i) in.push_back(call.x(i).detach());
  CustomRun{op, backend, results[0].detach(), std::move(in), in_place}.run();
}

}  // namespace

namespace bodies {
const OpBody custom{infer_custom, run_custom};
}

namespace tape {

void custom_rule(const Vjp& v) {
  const auto& op = static_cast<const CustomOp&>(v.custom());
  std::vector<Tensor> operands;
  for (size_t i = 0; i < v.inputs(); ++i) operands.push_back(v.x(i));
  const std::vector<Tensor> given = op.vjp(operands, v.y(), v.grad());
  if (given.size() != operands.size()) {
    throw Error(op.name(), "a wrong number of gradients", fmt::format("{}", given.size()),
                fmt::format("need {}, one for each operand", operands.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor &gradient = given[i], &x = operands[i];
    if (!gradient.defined() || !v.wants(i)) continue;
    if (!(gradient.shape() == x.shape()) || gradient.dtype() != x.dtype() ||
        gradient.device() != x.device()) {
      throw Error(op.name(), "a gradient doesn't fit its operand",
                  fmt::format("operand {} {}, gradient {}", i, x.str(), gradient.str()),
                  "need the operand's shape, dtype and device");
    }
    v.to(i, gradient);
  }
}

}  // namespace tape

Tensor apply_op(const std::shared_ptr<const CustomOp>& op, const Operands& operands) {
  if (op == nullptr) throw Error("custom op", "no op");
  check_operands(op->name(), operands);
  const std::shared_ptr<const CustomBody> body = op;
  return apply({.op = Op::copy, .inputs = operands, .part = Part::custom, .custom = &body});
}

Tensor apply_op_no_grad(const std::shared_ptr<const CustomOp>& op, const Operands& operands) {
  const NoGrad off;
  return apply_op(op, operands);
}

void inplace_op(const std::shared_ptr<const InplaceOp>& op, const Operands& operands) {
  if (op == nullptr) throw Error("custom op", "no op");
  const char* const name = op->name().c_str();
  check_operands(op->name(), operands);
  const Tensor& target = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].storage() == target.storage()) {
      throw Error(ErrorKind::runtime, name, "an operand shares the target's storage",
                  operands[i].str(), "clone it first");
    }
    check_no_gradient(name, operands[i]);
  }
  if (target.layout().overlaps_itself()) {
    throw Error(name, "target's elements overlap", target.str());
  }
  op->check_operands(operands);
  check_writable(name, target);
  const std::shared_ptr<const CustomBody> body = op;
  apply_into({.op = Op::copy, .inputs = operands, .part = Part::custom_in_place, .custom = &body},
             target);
}

}  // namespace wick
