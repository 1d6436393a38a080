// apply(), and the table of op bodies.

#include "wick/tensor/call.h"

#include <array>
#include <atomic>
#include <span>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

struct Row {
  Op op;
  const OpBody* body;
};

constexpr Row kRows[] = {
    {Op::fill, &bodies::fill},
    {Op::iota, &bodies::iota},
    {Op::copy, &bodies::copy},
    {Op::cast, &bodies::cast},
    {Op::cat, &bodies::cat},
    {Op::pad, &bodies::pad},
    {Op::roll, &bodies::roll},
    {Op::repeat, &bodies::repeat},
    {Op::tril, &bodies::triangle},
    {Op::triu, &bodies::triangle},
    {Op::index_select, &bodies::index_select},
    {Op::where, &bodies::where},
    {Op::gather, &bodies::gather},
    {Op::scatter, &bodies::scatter},
    {Op::scatter_add, &bodies::scatter},
    {Op::index_add, &bodies::index_add},
    {Op::one_hot, &bodies::one_hot},
    {Op::sort, &bodies::sort},
    {Op::argsort, &bodies::argsort},
    {Op::topk, &bodies::sort},
    {Op::cumsum, &bodies::cumsum},
    {Op::cumprod, &bodies::cumprod},
    {Op::uniform, &bodies::random},
    {Op::normal, &bodies::random},
    {Op::matmul, &bodies::matmul},
    {Op::quantize, &bodies::quantize},
    {Op::dequantize, &bodies::dequantize},
    {Op::linear, &bodies::linear},
    {Op::conv2d, &bodies::conv2d},
    {Op::conv_transpose2d, &bodies::conv_transpose2d},
    {Op::max_pool2d, &bodies::pool2d},
    {Op::avg_pool2d, &bodies::pool2d},
    {Op::upsample_nearest2d, &bodies::upsample2d},
    {Op::upsample_bilinear2d, &bodies::upsample2d},
    {Op::softmax, &bodies::softmax},
    {Op::log_softmax, &bodies::softmax},
    {Op::rms_norm, &bodies::rms_norm},
    {Op::layer_norm, &bodies::layer_norm},
    {Op::group_norm, &bodies::group_norm},
    {Op::batch_norm, &bodies::batch_norm},
    {Op::softmax_grad, &bodies::softmax_grad},
    {Op::log_softmax_grad, &bodies::softmax_grad},
    {Op::norm_grad, &bodies::norm_grad},
    {Op::norm_sums, &bodies::norm_sums},
    {Op::rope, &bodies::rope},
    {Op::rope_interleaved, &bodies::rope},
    {Op::attention, &bodies::attention},
    {Op::store_in_pages, &bodies::store_in_pages},
    {Op::causal_conv, &bodies::causal_conv},
    {Op::ssm_scan, &bodies::ssm_scan},
    {Op::gated_delta_scan, &bodies::gated_delta_scan},
};

/// Ops composed of other ops.
constexpr Op kComposed[] = {
    Op::var,    Op::logsumexp,        Op::any,        Op::all,        Op::einsum,
    Op::conv1d, Op::conv_transpose1d, Op::max_pool1d, Op::avg_pool1d, Op::upsample_nearest1d,
};

constexpr const OpBody* body_of_kind(OpKind kind) {
  switch (kind) {
    case OpKind::unary:
      return &bodies::unary;
    case OpKind::unary_with:
      return &bodies::unary_with;
    case OpKind::test:
      return &bodies::test;
    case OpKind::binary:
      return &bodies::binary;
    case OpKind::compare:
      return &bodies::compare;
    case OpKind::reduce:
      return &bodies::reduce;
    case OpKind::arg:
      return &bodies::arg_reduce;
    case OpKind::other:
      return nullptr;
  }
  return nullptr;
}

constexpr auto kBodies = [] {
  std::array<const OpBody*, kOpCount> all{};
  for (int op = 0; op < kOpCount; ++op) {
    all[static_cast<size_t>(op)] = body_of_kind(info(static_cast<Op>(op)).kind);
  }
  for (const Row& row : kRows) all[static_cast<size_t>(row.op)] = row.body;
  return all;
}();

/// Whether each op is either composed or has a body.
constexpr bool complete() {
  std::array<bool, kOpCount> known{};
  for (const Op op : kComposed) known[static_cast<size_t>(op)] = true;
  for (int op = 0; op < kOpCount; ++op) {
    const auto at = static_cast<size_t>(op);
    if (known[at] == (kBodies[at] != nullptr)) return false;
  }
  return true;
}
static_assert(complete());

// The number of threads that record calls. While it is 0, apply() doesn't read the thread-local
// recorder.
std::atomic<int> recording_threads{0};
thread_local CallRecorder* thread_recorder = nullptr;

bool needs_grad(const OpCall& call) {
  // Outside of traces, grouped_linear() makes no such call if a gradient is needed. A trace with
  // gradients isn't replayed.
  if (call.part == Part::grouped) return false;
  const bool any = call.inputs.need_grad() || (call.weight != nullptr && call.weight->needs_grad());
  return any && tape::enabled();
}

Tensor allocate(const ResultSpec& spec, DType dtype, Device device) {
  return Tensor(result_storage(device, storage_bytes(spec.layout.shape(), dtype)), dtype,
                spec.layout);
}

/// Runs a call, or gives it to the thread's recorder.
void run_or_record(const OpBody& body, const OpCall& call, std::span<const Tensor> results,
                   Device device, bool writes) {
  if (CallRecorder* const to = recorder()) {
    to->add(call, results, writes);
  } else {
    body.run(backend(device), call, results.data());
  }
}

}  // namespace

CallRecorder* recorder() {
  return recording_threads.load(std::memory_order_relaxed) == 0 ? nullptr : thread_recorder;
}

WithRecorder::WithRecorder(CallRecorder* recorder)
    : before_(std::exchange(thread_recorder, recorder)) {
  ++recording_threads;
}

WithRecorder::~WithRecorder() {
  --recording_threads;
  thread_recorder = before_;
}

std::shared_ptr<Storage> result_storage(Device device, size_t bytes) {
  return recorder() != nullptr ? Storage::traced(device, bytes) : Storage::allocate(device, bytes);
}

const OpBody& body_of(Op op, Part part) {
  if (part == Part::result) return *kBodies[static_cast<size_t>(op)];
  if (part == Part::weight_gradient) return bodies::conv2d_weight;
  if (part == Part::cached) return bodies::cached_attention;
  if (part == Part::paged) return bodies::attention_of_pages;
  if (part == Part::grouped) return bodies::grouped_linear;
  if (part == Part::pair) return bodies::rms_norm_pair;
  if (part == Part::summed) return bodies::rms_norm_add;
  if (part == Part::routed) return bodies::route_experts;
  if (part == Part::gated) return bodies::gate_experts;
  if (part == Part::combined) return bodies::combine_experts;
  if (part == Part::custom || part == Part::custom_in_place) return bodies::custom;
  if (op == Op::attention) return bodies::attention_gradient;
  const bool pool = op == Op::max_pool2d || op == Op::avg_pool2d;  // Part::input_gradient
  return pool ? bodies::pool2d_grad : bodies::upsample2d_grad;
}

// apply() constructs its single result in place: a small op takes some hundred nanoseconds, and
// moving tensors would cost a tenth of that.
Tensor apply(const OpCall& call) {
  const OpBody& body = body_of(call.op, call.part);
  const ResultSpec spec = body.infer(call);
  const Device device = call.x().device();
  Tensor result = allocate(spec, spec.dtype, device);
  run_or_record(body, call, std::span(&result, 1), device, false);
  if (needs_grad(call)) tape::record(std::span(&result, 1), call);
  return result;
}

std::array<Tensor, 2> apply_pair(const OpCall& call) {
  const OpBody& body = body_of(call.op, call.part);
  const ResultSpec spec = body.infer(call);
  const Device device = call.x().device();
  const ResultSpec second =
      body.infer_second != nullptr ? body.infer_second(call) : ResultSpec{body.second, spec.layout};
  std::array<Tensor, 2> results = {allocate(spec, spec.dtype, device),
                                   allocate(second, second.dtype, device)};
  run_or_record(body, call, results, device, false);
  if (needs_grad(call)) tape::record(results, call);
  return results;
}

void apply_into(const OpCall& call, const Tensor& out) {
  run_or_record(body_of(call.op, call.part), call, std::span(&out, 1), out.device(), true);
}

}  // namespace wick
