// The gradients of attention: cuts a call into tasks.

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/attention_gradient_kernels.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::cpu {
namespace {

const AttentionGradientKernels& gradient_kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, attention_gradient_kernels, no_dots);
}

/// Working memory, aligned to 64 bytes.
class Floats {
 public:
  explicit Floats(int64_t count)
      : data_(static_cast<float*>(::operator new(static_cast<size_t>(count) * 4, kLine))) {}
  float* get() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kLine); }
  };
  std::unique_ptr<float, Free> data_;
};

// The rows of a task, if their scores fit in the memory below. Packing a chunk of keys pays from
// some ten rows on.
constexpr int64_t kRowsOfTask = 48, kFewestRows = 6;
constexpr int64_t kFloatsOfScores = 1 << 20;
// Limits of the working memory of a task that takes all keys, and of the sums of all parts of the
// rows of all key heads. A call has some kTasks tasks; a part has at least kRowsOfPart rows.
constexpr int64_t kFloatsOfWhole = 3 << 20, kFloatsOfParts = 16 << 20;
constexpr int64_t kTasks = 16, kRowsOfPart = 192;
// Multiply-adds below which one thread does all.
constexpr int64_t kGradientWork = 64 * 1024;

/// The rows of one batch element, from a head on. A view without data has no rows.
template <class Data, class V>
HeadRows<Data> rows_of(const V& view, int64_t batch, int64_t head) {
  if (view.data == nullptr) return {nullptr, 0, 0, 0};
  const Layout& l = view.layout;
  const int64_t at = l.offset() + batch * l.stride(0) + head * l.stride(1);
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Data>>, const char, char>;
  return {static_cast<Byte*>(view.data) + bytes_of(view.dtype, at), l.stride(1), l.stride(2),
          l.stride(3)};
}

}  // namespace

void CpuBackend::attention_gradient(const View& dq, const View& dk, const View& dv,
                                    const View& d_sinks, const ConstView& grad, const ConstView& q,
                                    const ConstView& k, const ConstView& v,
                                    const AttentionParams& params, const AttentionBias& bias) {
  const Shape &qs = q.layout.shape(), &ks = k.layout.shape();
  const int64_t batch = qs[0], heads = qs[1], queries = qs[2], d = qs[3];
  const int64_t key_heads = ks[1], keys = ks[2], e = v.layout.shape()[3];
  if (batch == 0 || key_heads == 0) return;
  const int64_t group = heads / key_heads, rows = queries * group;
  const int dtype = q.dtype == DType::bf16 ? 0 : q.dtype == DType::f16 ? 1 : 2;
  const AttentionGradientKernels& kernels = gradient_kernels(isa_);
  std::vector<GradientSums> sums(static_cast<size_t>(batch * key_heads * rows));
  const auto task_of = [&](int64_t which) {
    const int64_t b = which / key_heads, g = which % key_heads, head = g * group;
    AttentionGradientTask task{};
    task.q = rows_of<const void*>(q, b, head), task.g = rows_of<const void*>(grad, b, head);
    task.k = rows_of<const void*>(k, b, g), task.v = rows_of<const void*>(v, b, g);
    task.dq = rows_of<void*>(dq, b, head);
    task.dk = rows_of<void*>(dk, b, g), task.dv = rows_of<void*>(dv, b, g);
    task.heads = group, task.queries = queries, task.keys = keys, task.d = d, task.e = e;
    task.shift = keys - queries;
    // Below or above every key if a side isn't limited.
    task.low = params.window > 0 ? task.shift - std::min(params.window, keys + queries) + 1
                                 : -(keys + queries);
    task.high = params.causal ? task.shift + 1 : keys + queries;
    task.scale = params.scale, task.soft_cap = params.soft_cap;
    if (bias.mask.data != nullptr) {
      const Layout& ml = bias.mask.layout;
      const int64_t at = ml.offset() + b * ml.stride(0) + head * ml.stride(1);
      task.mask = static_cast<const char*>(bias.mask.data) + bytes_of(bias.mask.dtype, at);
      task.mask_head = ml.stride(1), task.mask_query = ml.stride(2), task.mask_key = ml.stride(3);
      task.mask_kind = bias.mask.dtype == DType::f32    ? MaskKind::f32
                       : bias.mask.dtype == DType::f16  ? MaskKind::f16
                       : bias.mask.dtype == DType::bf16 ? MaskKind::bf16
                                                        : MaskKind::hides;
    }
    if (bias.slopes.data != nullptr) {
      const Layout& sl = bias.slopes.layout;
      task.slopes_step = sl.stride(0);
      task.slopes = static_cast<const float*>(bias.slopes.data) + sl.offset() + head * sl.stride(0);
    }
    if (bias.sinks.data != nullptr) {
      const Layout& sl = bias.sinks.layout;
      task.sinks_step = sl.stride(0);
      task.sinks = static_cast<const float*>(bias.sinks.data) + sl.offset() + head * sl.stride(0);
    }
    if (d_sinks.data != nullptr) {
      const Layout& dl = d_sinks.layout;
      task.d_sinks =
          static_cast<float*>(d_sinks.data) + dl.offset() + b * dl.stride(0) + head * dl.stride(1);
      task.d_sinks_head = dl.stride(1), task.d_sinks_query = dl.stride(2);
    }
    task.sums = sums.data() + which * rows;
    return task;
  };
  const int64_t heads_of_keys = batch * key_heads;
  const int64_t work = batch * heads * queries * keys * (d + e);
  /// Runs a kernel on blocks of at most `each` of `count` rows or keys of all key heads. set(task,
  /// head, block): adds to a task.
  const auto run = [&](int64_t count, int64_t each, int64_t floats, bool last_first,
                       AttentionGradientKernels::Run kernel, const auto& set) {
    const int64_t blocks = (count + each - 1) / each, tasks = blocks * heads_of_keys;
    parallel_for(tasks, work < kGradientWork ? tasks : 1, [&](int64_t begin, int64_t end) {
      const Floats scratch(floats);
      for (int64_t i = begin; i < end; ++i) {
        // The blocks with most work come first.
        const int64_t head = i % heads_of_keys, place = i / heads_of_keys,
                      block = last_first ? blocks - 1 - place : place;
        AttentionGradientTask task = task_of(head);
        task.first = block * each;
        task.count = std::min(each, count - task.first);
        task.scratch = scratch.get();
        set(task, head, block);
        kernel(task);
      }
    });
  };
  const auto nothing = [](AttentionGradientTask&, int64_t, int64_t) {};
  // The sums of a part of the rows, for one key head.
  const int64_t dk_floats = keys * gradient_padded(d), dv_floats = keys * gradient_padded(e);
  const int64_t part_floats = dk_floats + dv_floats;
  const int64_t most_parts = kFloatsOfParts / std::max<int64_t>(1, part_floats * heads_of_keys);
  if (most_parts >= 1 && gradient_whole_floats(keys, d, e) <= kFloatsOfWhole && rows > 0) {
    const int64_t wanted = std::min(kTasks / heads_of_keys + 1, rows / kRowsOfPart + 1);
    const int64_t of_part =
        (rows + std::min(wanted, most_parts) - 1) / std::min(wanted, most_parts);
    const int64_t parts = (rows + of_part - 1) / of_part;
    const bool of_keys = dk.data != nullptr;
    const Floats all(of_keys ? heads_of_keys * parts * part_floats : 1);
    const auto set = [&](AttentionGradientTask& task, int64_t head, int64_t part) {
      if (!of_keys) return;
      float* const of_head = all.get() + head * parts * part_floats;
      task.dk_sums = of_head + part * dk_floats;
      task.dv_sums = of_head + parts * dk_floats + part * dv_floats;
      task.parts = parts;
    };
    run(rows, of_part, gradient_whole_floats(keys, d, e), true, kernels.whole[dtype], set);
    if (!of_keys) return;
    run(keys, kGradientKeys, 16, false, kernels.store[dtype],
        [&](AttentionGradientTask& task, int64_t head, int64_t) { set(task, head, 0); });
    return;
  }
  const int64_t each =
      std::clamp(kFloatsOfScores / std::max<int64_t>(1, 2 * keys), kFewestRows, kRowsOfTask);
  run(rows, each, gradient_rows_floats(each, keys, d, e), true, kernels.rows[dtype], nothing);
  if (dk.data == nullptr) return;
  run(keys, kGradientKeys, gradient_keys_floats(d, e), false, kernels.keys[dtype], nothing);
}

}  // namespace wick::cpu
