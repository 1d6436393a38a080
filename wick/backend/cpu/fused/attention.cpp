#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/block_pages.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

// Packing a chunk pays from some two hundred rows on.
constexpr int64_t kRowsPerTask = 192;
// Multiply-adds below which one thread does all.
constexpr int64_t kWorkPerThread = 64 * 1024;

const AttentionKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, attention_kernels, no_dots);
}

MaskKind mask_kind(DType dtype) {
  return dtype == DType::f32    ? MaskKind::f32
         : dtype == DType::f16  ? MaskKind::f16
         : dtype == DType::bf16 ? MaskKind::bf16
                                : MaskKind::hides;
}

int dtype_index(DType dtype) { return dtype == DType::bf16 ? 0 : dtype == DType::f16 ? 1 : 2; }

/// Working memory of this thread, which it keeps for later calls: at most a few hundred kilobytes.
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

namespace {

/// What all tasks of a call share.
struct Attention {
  Isa isa;
  View out;
  ConstView q, k, v;
  AttentionParams params;
  AttentionBias bias;
  int64_t batch, heads, queries, key_heads, group, d, e;
  std::optional<BlockPages> value_blocks;  // keys and values are pages of blocks

  Attention(Isa the_isa, const View& y, const ConstView& queries_of, const ConstView& keys_of,
            const ConstView& values_of, const AttentionParams& p, const AttentionBias& b)
      : isa(the_isa), out(y), q(queries_of), k(keys_of), v(values_of), params(p), bias(b) {
    const Shape &qs = q.layout.shape(), &ks = k.layout.shape();
    batch = qs[0], heads = qs[1], queries = qs[2], d = qs[3];
    value_blocks = BlockPages::of(v.dtype, v.layout.shape());
    key_heads = ks[1], e = value_blocks ? value_blocks->width : v.layout.shape()[3];
    group = heads / key_heads;
  }

  /// The task of batch element b, which has `keys` keys, without its rows.
  AttentionTask task_of(int64_t b, int64_t keys) const {
    const Layout &ql = q.layout, &kl = k.layout, &vl = v.layout, &ol = out.layout;
    AttentionTask task{};
    task.dtype = dtype_index(q.dtype);
    task.q_head = ql.stride(1), task.q_query = ql.stride(2), task.q_step = ql.stride(3);
    task.k_key = kl.shape()[2] == 1 ? 1 : kl.stride(2), task.k_step = kl.stride(3);
    task.v_key = vl.stride(2), task.v_step = e == 1 ? 1 : vl.stride(3);
    if (value_blocks) {
      task.k_key = task.k_step = task.v_step = 1;
      task.v_key = value_blocks->step();
      task.v_by_element = value_blocks->by_element;
    }
    task.out_head = ol.stride(1), task.out_query = ol.stride(2);
    task.out_step = e == 1 ? 1 : ol.stride(3);
    task.keys = keys, task.d = d, task.e = e;
    const int64_t shift = keys - queries;
    // Below or above every key if a side isn't limited.
    task.low =
        params.window > 0 ? shift - std::min(params.window, keys + queries) + 1 : -(keys + queries);
    task.high = params.causal ? shift + 1 : keys + queries;
    task.scale = params.scale, task.soft_cap = params.soft_cap;
    const Layout &ml = bias.mask.layout, &sl = bias.slopes.layout, &sinks = bias.sinks.layout;
    if (bias.mask.data != nullptr) {
      task.mask = elem(bias.mask, ml.offset() + b * ml.stride(0));
      task.mask_head = ml.stride(1), task.mask_query = ml.stride(2);
      task.mask_key = ml.stride(3);
      task.mask_kind = mask_kind(bias.mask.dtype);
    }
    if (bias.slopes.data != nullptr) {
      task.slopes = static_cast<const float*>(bias.slopes.data) + sl.offset();
      task.slopes_step = sl.stride(0);
    }
    if (bias.sinks.data != nullptr) {
      task.sinks = static_cast<const float*>(bias.sinks.data) + sinks.offset();
      task.sinks_step = sinks.stride(0);
    }
    task.shift = shift;
    task.q = elem(q, ql.offset() + b * ql.stride(0));
    task.out = static_cast<char*>(out.data) + bytes_of(out.dtype, ol.offset() + b * ol.stride(0));
    task.k = elem(k, kl.offset() + b * kl.stride(0));
    task.v = elem(v, vl.offset() + b * vl.stride(0));
    return task;
  }

  static const void* advance(const void* data, DType dtype, int64_t elems) {
    return static_cast<const char*>(data) + bytes_of(dtype, elems);
  }
  static const void* elem(const ConstView& view, int64_t offset) {
    return advance(view.data, view.dtype, offset);
  }

  /// Runs queries [first, first + count) of query heads [head, head + task_heads), which share a
  /// key head.
  void run(AttentionTask task, int64_t head, int64_t task_heads, int64_t first,
           int64_t count) const {
    const int64_t g = head / group;
    task.q = advance(task.q, q.dtype, head * task.q_head + first * task.q_query);
    task.k = advance(task.k, k.dtype, g * k.layout.stride(1));
    task.v = advance(task.v, v.dtype, g * v.layout.stride(1));
    task.out = static_cast<char*>(task.out) +
               bytes_of(out.dtype, head * task.out_head + first * task.out_query);
    if (task.mask != nullptr)
      task.mask = advance(task.mask, bias.mask.dtype, head * task.mask_head);
    if (task.slopes != nullptr) task.slopes += head * task.slopes_step;
    if (task.sinks != nullptr) task.sinks += head * task.sinks_step;
    task.first_query = first, task.queries = count, task.heads = task_heads;
    task.scratch = thread_scratch(attention_scratch_floats(count * task_heads, d, e));
    if (value_blocks) {
      kernels(isa).attend_blocks[value_blocks->dtype == DType::q8_0 ? 0 : 1](task);
    } else {
      kernels(isa).attend[dtype_index(k.dtype)](task);
    }
  }

  /// Runs the whole call. tasks(b) is the task of batch element b; `keys` is the number of keys of
  /// all.
  template <class Tasks>
  void run_all(const Tasks& tasks, int64_t keys) const {
    const int64_t work = heads * queries * keys * (d + e);
    const int64_t threads =
        std::clamp<int64_t>(work / kWorkPerThread, 1, ThreadPool::global().threads());
    if (queries == 1 || queries * group <= 2 * kAttentionRows) {
      // Decoding: threads take equal shares of all heads, cut where the key head changes.
      const int64_t all = batch * heads;
      const int64_t parts = std::min(threads, all);
      ThreadPool::global().run(static_cast<int>(parts), [&](int part) {
        const int64_t end = all * (part + 1) / parts;
        for (int64_t i = all * part / parts; i < end;) {
          const int64_t stop = std::min(end, (i / group + 1) * group);
          run(tasks(i / heads), i % heads, stop - i, 0, queries);
          i = stop;
        }
      });
      return;
    }
    // Prompts: blocks of queries of a key head, the last ones first, since they see most keys.
    const int64_t most = std::max<int64_t>(1, kRowsPerTask / group);
    const int64_t blocks = (queries + most - 1) / most;
    const int64_t count = batch * key_heads * blocks;
    parallel_for(count, threads > 1 ? 1 : count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = blocks - 1 - i / (batch * key_heads);
        const int64_t head = i % (batch * key_heads);
        const int64_t first = block * most;
        run(tasks(head / key_heads), head % key_heads * group, group, first,
            std::min(most, queries - first));
      }
    });
  }
};

}  // namespace

void CpuBackend::attention(const View& out, const ConstView& q, const ConstView& k,
                           const ConstView& v, const AttentionParams& params,
                           const AttentionBias& bias) {
  if (out.layout.elems() == 0) return;
  const Attention all(isa_, out, q, k, v, params, bias);
  const int64_t keys = k.layout.shape()[2];
  all.run_all([&](int64_t b) { return all.task_of(b, keys); }, all.batch * keys);
}

void CpuBackend::attention_of_pages(const View& out, const ConstView& q, const ConstView& k,
                                    const ConstView& v, const PagedSequences& sequences,
                                    const AttentionParams& params, const AttentionBias& bias) {
  if (out.layout.elems() == 0) return;
  const int64_t batch = q.layout.shape()[0];
  const bool of_blocks = BlockPages::of(k.dtype, k.layout.shape()).has_value();
  const int64_t size = of_blocks ? BlockPages::kPositions : k.layout.shape()[2];
  const Layout &tables = sequences.tables.layout, &lengths = sequences.lengths.layout;
  const auto entry = [](const ConstView& view, int64_t at) {
    return static_cast<const uint32_t*>(view.data) + at;
  };
  const auto table_of = [&](int64_t b) {
    return entry(sequences.tables, tables.offset() + b * tables.stride(0));
  };
  const auto length_of = [&](int64_t b) {
    return int64_t{*entry(sequences.lengths, lengths.offset() + b * lengths.stride(0))};
  };
  int64_t keys = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = length_of(b);
    keys += length;
    if (length > tables.shape()[1] * size) {
      throw Error(ErrorKind::index, "attention_of_pages", "a length beyond the table",
                  std::to_string(length), "need <= " + std::to_string(tables.shape()[1] * size));
    }
    for (int64_t i = 0; i * size < length; ++i) {
      const int64_t page = table_of(b)[i * tables.stride(1)];
      if (page < k.layout.shape()[0]) continue;
      throw Error(ErrorKind::index, "attention_of_pages", "page out of range", std::to_string(page),
                  "there are " + std::to_string(k.layout.shape()[0]));
    }
  }
  const Attention all(isa_, out, q, k, v, params, bias);
  const auto task_of = [&](int64_t b) {
    AttentionTask task = all.task_of(b, length_of(b));
    task.k = Attention::elem(k, k.layout.offset());
    task.v = Attention::elem(v, v.layout.offset());
    task.table = table_of(b);
    task.table_step = tables.stride(1);
    task.page_keys = std::max<int64_t>(1, size);
    task.k_page = k.layout.stride(0), task.v_page = v.layout.stride(0);
    return task;
  };
  all.run_all(task_of, keys);
}

}  // namespace wick::cpu
