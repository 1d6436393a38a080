#include <algorithm>
#include <cstdlib>
#include <memory>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

// A pass over a packed chunk pays for packing it from some two hundred rows on.
constexpr int64_t kRowsPerTask = 192;
// Multiply-adds below which one thread does all.
constexpr int64_t kWorkPerThread = 64 * 1024;

const AttentionKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, attention_kernels, v4);
}

int dtype_index(DType dtype) { return dtype == DType::bf16 ? 0 : dtype == DType::f16 ? 1 : 2; }

/// A thread's working memory, kept from call to call: a few hundred kilobytes at most.
float* thread_scratch(int64_t floats) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    const auto bytes = static_cast<size_t>((floats + 15) / 16 * 64);
    memory.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    size = memory == nullptr ? 0 : floats;
  }
  return memory.get();
}

}  // namespace

void CpuBackend::attention(const View& out, const ConstView& q, const ConstView& k,
                           const ConstView& v, const AttentionParams& params,
                           const AttentionBias& bias) {
  const Layout &ql = q.layout, &kl = k.layout, &vl = v.layout, &ol = out.layout;
  if (ol.elems() == 0) return;
  const auto attend = kernels(isa_).attend[dtype_index(k.dtype)];
  const int64_t batch = ql.shape()[0], heads = ql.shape()[1], queries = ql.shape()[2];
  const int64_t key_heads = kl.shape()[1], keys = kl.shape()[2];
  const int64_t group = heads / key_heads;
  const int64_t d = ql.shape()[3], e = vl.shape()[3];
  const int64_t shift = keys - queries;

  AttentionTask common{};
  common.dtype = dtype_index(q.dtype);
  common.q_head = ql.stride(1), common.q_query = ql.stride(2), common.q_step = ql.stride(3);
  common.k_key = keys == 1 ? 1 : kl.stride(2), common.k_step = kl.stride(3);
  common.v_key = vl.stride(2), common.v_step = e == 1 ? 1 : vl.stride(3);
  common.out_head = ol.stride(1), common.out_query = ol.stride(2);
  common.out_step = e == 1 ? 1 : ol.stride(3);
  common.keys = keys, common.d = d, common.e = e;
  // Far enough below or above every key where a side isn't limited.
  common.low =
      params.window > 0 ? shift - std::min(params.window, keys + queries) + 1 : -(keys + queries);
  common.high = params.causal ? shift + 1 : keys + queries;
  common.scale = params.scale, common.soft_cap = params.soft_cap;
  const Layout &ml = bias.mask.layout, &sl = bias.slopes.layout;
  if (bias.mask.data != nullptr) {
    common.mask_head = ml.stride(1), common.mask_query = ml.stride(2);
    common.mask_key = ml.stride(3);
    common.mask_hides = bias.mask.dtype == DType::u8;
  }
  if (bias.slopes.data != nullptr) common.slopes_step = sl.stride(0);
  common.shift = shift;

  // Queries [first, first + count) of query heads [head, head + task_heads) of one key head.
  const auto run = [&](int64_t b, int64_t head, int64_t task_heads, int64_t first, int64_t count) {
    AttentionTask task = common;
    const int64_t g = head / group;
    const auto elem = [](const ConstView& view, int64_t offset) {
      return static_cast<const char*>(view.data) + bytes_of(view.dtype, offset);
    };
    task.q = elem(q, ql.offset() + b * ql.stride(0) + head * ql.stride(1) + first * ql.stride(2));
    task.k = elem(k, kl.offset() + b * kl.stride(0) + g * kl.stride(1));
    task.v = elem(v, vl.offset() + b * vl.stride(0) + g * vl.stride(1));
    task.out = static_cast<char*>(out.data) +
               bytes_of(out.dtype, ol.offset() + b * ol.stride(0) + head * ol.stride(1) +
                                       first * ol.stride(2));
    if (bias.mask.data != nullptr) {
      task.mask = elem(bias.mask, ml.offset() + b * ml.stride(0) + head * ml.stride(1));
    }
    if (bias.slopes.data != nullptr) {
      task.slopes = static_cast<const float*>(bias.slopes.data) + sl.offset() + head * sl.stride(0);
    }
    task.first_query = first, task.queries = count, task.heads = task_heads;
    task.scratch = thread_scratch(attention_scratch_floats(count * task_heads, d, e));
    attend(task);
  };

  const int64_t work = batch * heads * queries * keys * (d + e);
  const int64_t threads =
      std::clamp<int64_t>(work / kWorkPerThread, 1, ThreadPool::global().threads());
  if (queries == 1 || queries * group <= 2 * kAttentionRows) {
    // Decode: all heads in equal shares, each cut where the key head changes.
    const int64_t all = batch * heads;
    const int64_t parts = std::min(threads, all);
    ThreadPool::global().run(static_cast<int>(parts), [&](int part) {
      const int64_t end = all * (part + 1) / parts;
      for (int64_t i = all * part / parts; i < end;) {
        const int64_t stop = std::min(end, (i / group + 1) * group);
        run(i / heads, i % heads, stop - i, 0, queries);
        i = stop;
      }
    });
    return;
  }
  // Prompts: blocks of queries of a key head, the last ones (which see most keys) first.
  const int64_t most = std::max<int64_t>(1, kRowsPerTask / group);
  const int64_t blocks = (queries + most - 1) / most;
  const int64_t tasks = batch * key_heads * blocks;
  parallel_for(tasks, threads > 1 ? 1 : tasks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = blocks - 1 - i / (batch * key_heads);
      const int64_t head = i % (batch * key_heads);
      const int64_t first = block * most;
      run(head / key_heads, head % key_heads * group, group, first,
          std::min(most, queries - first));
    }
  });
}

}  // namespace wick::cpu
