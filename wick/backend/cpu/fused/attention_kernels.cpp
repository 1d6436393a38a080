#include "wick/backend/cpu/fused/attention_steps.h"
#include "wick/backend/cpu/simd/transpose.h"

// Attention of some rows (one query of one head each) that share a key head. A task processes the
// keys in chunks of 256. In a pass, up to six rows compute scores, exponentials and sums of a
// chunk, and combine them with the results of earlier chunks. The order of operations of a row
// (attention.md) doesn't depend on the other rows of its pass: a score is one fma chain over d,
// lanes are keys; an output element is one fma chain over keys, lanes are elements.
//
// Bytes moved: k and v of a task once from memory. With many rows, a chunk is copied as f32 first
// (256 * (d + e) * 4 bytes), which stays in L2. Blocks of q8_0 and q4_0 are decoded in registers,
// or while they are copied.

namespace wick::cpu::WICK_ISA {
namespace {

/// The results of a task's rows so far, and the working memory of a pass.
struct Work {
  float *q, *o, *m, *l;  // of each row: d floats, e_padded floats, and a float each
  float *k, *v;          // a chunk as f32: k[d][256], v[256][e_padded]
  float *s, *chunk_o;    // kAttentionRows rows of 256 and of e_padded
  int64_t d, e_padded;
  int64_t chunk;  // the first key of the chunk
};

/// The bias of row `row` of a task.
WICK_FN RowBias bias_of(const AttentionTask& task, const Work& work, int64_t row) {
  const int64_t query = task.first_query + row / task.heads, head = row % task.heads;
  RowBias bias = {};
  if (task.mask != nullptr) {
    const int64_t at = head * task.mask_head + query * task.mask_query + work.chunk * task.mask_key;
    const int64_t bytes = task.mask_kind == MaskKind::hides ? 1
                          : task.mask_kind == MaskKind::f32 ? 4
                                                            : 2;
    bias.mask = static_cast<const char*>(task.mask) + at * bytes;
    bias.step = task.mask_key;
    bias.kind = task.mask_kind;
  }
  bias.slopes = task.slopes != nullptr;
  bias.slope = bias.slopes ? task.slopes[head * task.slopes_step] : 0.0f;
  bias.first = work.chunk - (query + task.shift);
  return bias;
}

/// One pass: R rows from `row` on and one chunk. `range[r]` are the keys that row r sees; first[r]
/// says that it saw none of earlier chunks and has no sink.
template <int R, class T>
WICK_NOINLINE void pass(const AttentionTask& task, const Work& work, int64_t row, const T* k,
                        int64_t k_key, int64_t k_step, const T* v, int64_t v_key, int64_t width,
                        const Range* range, const bool* first) {
  Range any = range[0], common = range[0];
  for (int r = 1; r < R; ++r) {
    if (!range[r].empty()) {
      any.begin = any.empty() ? range[r].begin : min(any.begin, range[r].begin);
      any.end = any.empty() ? range[r].end : max(any.end, range[r].end);
    }
    common.begin = max(common.begin, range[r].begin);
    common.end = min(common.end, range[r].end);
  }
  if (any.empty()) return;
  const Range seen = {any.begin / kWidth * kWidth, any.end};
  scores_of_keys<R>(work.q + row * work.d, work.d, k, k_key, k_step, seen, work.s);

  RowSoftmax soft[R] = {};
  const bool biased = task.mask != nullptr || task.slopes != nullptr || task.sinks != nullptr;
  RowBias bias[R];
  for (int r = 0; biased && r < R; ++r) bias[r] = bias_of(task, work, row + r);
  softmax_rows(work.s, range, R, task.scale, task.soft_cap, biased ? bias : nullptr, soft);
  for (int r = 0; r < R; ++r) {
    float* o = work.chunk_o + r * work.e_padded;
    for (int64_t x = 0; x < width; x += kWidth) store(o + x, Vec<float>{});
  }

  // Keys that all rows see are processed for all rows together. Before and after them, each row is
  // processed alone: a key that a row doesn't see must not affect it, even if its value is NaN.
  if (common.empty()) common = {any.end, any.end};
  for (int r = 0; r < R; ++r) {
    const Range before = {range[r].begin, min(range[r].end, common.begin)};
    add_values<1>(work.s + r * kAttentionChunk, v, v_key, before, work.chunk_o + r * work.e_padded,
                  work.e_padded, width);
  }
  add_values<R>(work.s, v, v_key, common, work.chunk_o, work.e_padded, width);
  for (int r = 0; r < R; ++r) {
    const Range after = {max(range[r].begin, common.end), range[r].end};
    add_values<1>(work.s + r * kAttentionChunk, v, v_key, after, work.chunk_o + r * work.e_padded,
                  work.e_padded, width);
  }

  for (int r = 0; r < R; ++r) {
    if (range[r].empty()) continue;
    const float* from = work.chunk_o + r * work.e_padded;
    float* o = work.o + (row + r) * work.e_padded;
    float &m = work.m[row + r], &l = work.l[row + r];
    if (soft[r].hidden) {  // no change, unless the chunk is the first
      if (!first[r]) continue;
      m = soft[r].max;
      l = 0.0f;
      for (int64_t x = 0; x < width; x += kWidth) store(o + x, Vec<float>{});
      continue;
    }
    if (first[r]) {
      m = soft[r].max;
      l = soft[r].sum;
      for (int64_t x = 0; x < width; x += kWidth) store(o + x, load(from + x));
      continue;
    }
    const float top = soft[r].max > m ? soft[r].max : m;
    const float a = math::exp(m - top), b = math::exp(soft[r].max - top);
    m = top;
    l = math::fma(l, a, soft[r].sum * b);
    const Vec<float> av = splat(a), bv = splat(b);
    for (int64_t x = 0; x < width; x += kWidth) {
      store(o + x, fma(load(o + x), av, load(from + x) * bv));
    }
  }
}

/// The sink of row `row` of a task; −inf if it has none.
WICK_FN float sink_of(const AttentionTask& task, int64_t row) {
  return task.sinks == nullptr ? -__builtin_huge_valf()
                               : task.sinks[row % task.heads * task.sinks_step];
}
WICK_FN bool has_sink(const AttentionTask& task, int64_t row) {
  return sink_of(task, row) != -__builtin_huge_valf();
}

/// Starts the results of the rows that have sinks.
WICK_NOINLINE void start_with_sinks(const AttentionTask& task, const Work& work) {
  for (int64_t row = 0; row < task.queries * task.heads; ++row) {
    if (!has_sink(task, row)) continue;
    work.m[row] = sink_of(task, row);
    work.l[row] = 1.0f;
    float* const o = work.o + row * work.e_padded;
    for (int64_t x = 0; x < work.e_padded; x += kWidth) store(o + x, Vec<float>{});
  }
}

/// Rows of the next pass, of `rest`: six, or all in as few passes as there are kernels for.
WICK_FN int pass_rows(int64_t rest) {
  return static_cast<int>(rest >= kAttentionRows ? kAttentionRows : rest == 5 ? 4 : rest);
}

template <class T>
WICK_FN void passes(const AttentionTask& task, const Work& work, int64_t row, int count, const T* k,
                    int64_t k_key, int64_t k_step, const T* v, int64_t v_key, int64_t width,
                    const Range* range, const bool* first) {
  switch (count) {
    case 1:
      return pass<1>(task, work, row, k, k_key, k_step, v, v_key, width, range, first);
    case 2:
      return pass<2>(task, work, row, k, k_key, k_step, v, v_key, width, range, first);
    case 3:
      return pass<3>(task, work, row, k, k_key, k_step, v, v_key, width, range, first);
    case 4:
      return pass<4>(task, work, row, k, k_key, k_step, v, v_key, width, range, first);
    default:
      return pass<6>(task, work, row, k, k_key, k_step, v, v_key, width, range, first);
  }
}

/// Packs keys that are dense along d, in whole vectors of keys and of d. Returns how many keys.
template <class T>
WICK_FN int64_t pack_transposed([[maybe_unused]] const AttentionTask& task,
                                [[maybe_unused]] const Work& work, [[maybe_unused]] const T* k,
                                [[maybe_unused]] int64_t keys) {
#if defined(__AVX512F__)
  if (task.k_step != 1 || task.k_key == 1) return 0;
  const int64_t whole = keys / kWidth * kWidth;
  for (int64_t j = 0; j < whole; j += kWidth) {
    for (int64_t i = 0; i + kWidth <= task.d; i += kWidth) {
      __m512i v[kWidth];
#pragma GCC unroll 16
      for (int r = 0; r < kWidth; ++r) {
        v[r] = reinterpret_cast<__m512i>(load(k + (j + r) * task.k_key + i));
      }
      transpose_16(v);
#pragma GCC unroll 16
      for (int c = 0; c < kWidth; ++c) {
        _mm512_storeu_si512(work.k + (i + c) * kAttentionChunk + j, v[c]);
      }
    }
  }
  return whole;
#else
  return 0;
#endif
}

/// Packs the keys and values of a chunk of blocks as f32 into working memory. Lanes beyond them
/// hold anything: no row sees them.
template <class T>
WICK_NOINLINE void pack_blocks(const AttentionTask& task, const Work& work, const T* k, const T* v,
                               int64_t keys) {
  float* to = work.k;
  for (int64_t i = 0; i < task.d; i += math::kBlock, k += kGroupBytes<T>) {
    for_each_element_of(
        k, [&](int x, auto&& quants) __attribute__((always_inline)) {
          for (int64_t j = 0; j < keys; j += kWidth) {
            store(to + (i + x) * kAttentionChunk + j, round_to_f16(quants(j) * scales_of(k, j)));
          }
        });
  }
  if (!task.v_by_element) {
    for (int64_t j = 0; j < keys; ++j) {
      const T* block = v + j * task.v_key;
      for (int64_t x = 0; x < task.e; x += math::kBlock, block += kBlockBytes<T>) {
        Vec<float> vv[kVecsOfBlock];
        load_block(vv, block);
        for (int n = 0; n < kVecsOfBlock; ++n) {
          store(work.v + j * work.e_padded + x + n * kWidth, vv[n]);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < task.e; i += math::kBlock, v += kGroupBytes<T>) {
    for_each_element_of(
        v, [&](int x, auto&& quants) __attribute__((always_inline)) {
          for (int64_t j = 0; j < keys; j += kWidth) {
            const Vec<float> lanes = round_to_f16(quants(j) * scales_of(v, j));
            for (int l = 0; l < kWidth; ++l) work.v[(j + l) * work.e_padded + i + x] = lanes[l];
          }
        });
  }
}

/// Packs keys and values of a chunk, from key `first` on, as f32 into working memory; lanes beyond
/// them are +0.
template <class T>
WICK_NOINLINE void pack(const AttentionTask& task, Work work, const T* k, const T* v, int64_t first,
                        int64_t keys) {
  work.k += first;
  work.v += first * work.e_padded;
  const int64_t padded = (first + keys + kWidth - 1) / kWidth * kWidth - first;
  const int64_t transposed = pack_transposed(task, work, k, keys);
  for (int64_t i = 0; i < task.d; ++i) {
    float* to = work.k + i * kAttentionChunk;
    const T* from = k + i * task.k_step;
    int64_t j = i < task.d / kWidth * kWidth ? transposed : 0;
    if (task.k_key == 1) {
      for (; j + kWidth <= keys; j += kWidth) store(to + j, load(from + j));
    }
    for (; j < keys; ++j) to[j] = widen(from[j * task.k_key]);
    for (; j < padded; ++j) to[j] = 0.0f;
  }
  for (int64_t j = 0; j < keys; ++j) {
    float* to = work.v + j * work.e_padded;
    const T* from = v + j * task.v_key;
    int64_t x = 0;
    if (task.v_step == 1) {
      for (; x + kWidth <= task.e; x += kWidth) store(to + x, load(from + x));
    }
    for (; x < task.e; ++x) to[x] = widen(from[x * task.v_step]);
    for (; x < work.e_padded; ++x) to[x] = 0.0f;
  }
}

/// Reads the queries of a task as rows of f32.
template <class Q>
void read_queries(const AttentionTask& task, const Work& work) {
  float* to = work.q;
  for (int64_t query = 0; query < task.queries; ++query) {
    for (int64_t head = 0; head < task.heads; ++head, to += work.d) {
      const Q* from = static_cast<const Q*>(task.q) + query * task.q_query + head * task.q_head;
      int64_t i = 0;
      if (task.q_step == 1) {
        for (; i + kWidth <= work.d; i += kWidth) store(to + i, load(from + i));
      }
      for (; i < work.d; ++i) to[i] = widen(from[i * task.q_step]);
    }
  }
}

/// Writes o / l, or 0 for a query that sees no key.
template <class Q>
void write_rows(const AttentionTask& task, const Work& work) {
  const int64_t width = (task.e + kWidth - 1) / kWidth * kWidth;
  for (int64_t r = 0; r < task.queries * task.heads; ++r) {
    const int64_t query = task.first_query + r / task.heads;
    Q* to = static_cast<Q*>(task.out) + r / task.heads * task.out_query +
            r % task.heads * task.out_head;
    float* o = work.o + r * work.e_padded;
    const bool blind = max(query + task.low, 0) >= min(query + task.high, task.keys);
    // Without a mask a sum is at least 1.
    const bool nothing = blind || (task.mask != nullptr && work.l[r] == 0.0f);
    const Vec<float> l = splat(work.l[r]);
    for (int64_t x = 0; x < width; x += kWidth)
      store(o + x, nothing ? Vec<float>{} : load(o + x) / l);
    int64_t x = 0;
    if (task.out_step == 1) {
      for (; x + kWidth <= task.e; x += kWidth) store(to + x, load(o + x));
    }
    for (; x < task.e; ++x) to[x * task.out_step] = narrow<Q>(o[x]);
  }
}

/// Contiguous keys of a task: the first of them, and at most how many follow.
template <class T>
struct Piece {
  const T *k, *v;
  int64_t keys;

  WICK_FN Piece(const AttentionTask& task, int64_t key) {
    k = static_cast<const T*>(task.k), v = static_cast<const T*>(task.v);
    keys = task.keys - key;
    if (task.table != nullptr) {
      const auto page = static_cast<int64_t>(task.table[key / task.page_keys * task.table_step]);
      k += page * task.k_page;
      v += page * task.v_page;
      key %= task.page_keys;
      keys = min(keys, task.page_keys - key);
    }
    k += key * task.k_key;
    v += key * task.v_key;
  }
};

/// The working memory of a task, in its scratch.
WICK_FN Work work_of(const AttentionTask& task) {
  const int64_t rows = task.queries * task.heads;
  Work work;
  work.d = task.d;
  work.e_padded = attention_padded(task.e);
  work.q = task.scratch;
  work.o = work.q + attention_padded(rows * task.d);
  work.m = work.o + rows * work.e_padded;
  work.l = work.m + attention_padded(rows);
  work.v = work.l + attention_padded(rows);
  work.s = work.v + kAttentionChunk * work.e_padded;
  work.chunk_o = work.s + kAttentionRows * kAttentionChunk;
  work.k = work.chunk_o + kAttentionRows * work.e_padded;
  work.chunk = 0;
  return work;
}

/// Whether passes read keys and values in place. Otherwise each chunk is packed first, which pays
/// off with more than two passes, and with more than one if elements are decoded from blocks.
template <class T>
WICK_FN bool reads_in_place(const AttentionTask& task) {
  const int64_t rows = task.queries * task.heads;
  if constexpr (kIsBlocks<T>) return rows <= kAttentionRows && !task.v_by_element;
  const bool whole_chunks =
      task.table == nullptr || task.page_keys % kAttentionChunk == 0 || task.keys <= task.page_keys;
  return rows <= 2 * kAttentionRows && whole_chunks &&
         (task.k_key == 1 || (kTransposesKeys && task.k_step == 1)) && task.v_step == 1 &&
         task.e % kWidth == 0;
}

template <class T>
void attend(const AttentionTask& task) {
  const int64_t rows = task.queries * task.heads;
  Work work = work_of(task);
  if (task.dtype == 0) read_queries<math::bf16>(task, work);
  if (task.dtype == 1) read_queries<math::f16>(task, work);
  if (task.dtype == 2) read_queries<float>(task, work);

  if (task.sinks != nullptr) start_with_sinks(task, work);

  const bool direct = reads_in_place<T>(task);
  const int64_t width = (task.e + kWidth - 1) / kWidth * kWidth;
  const int64_t last_query = task.first_query + task.queries - 1;
  const int64_t low = max(task.first_query + task.low, 0);
  const int64_t high = min(last_query + task.high, task.keys);
  for (int64_t chunk = low / kAttentionChunk * kAttentionChunk; chunk < high;
       chunk += kAttentionChunk) {
    const Piece<T> here(task, chunk);
    work.chunk = chunk;
    if (!direct) {
      const int64_t end = min(high, chunk + kAttentionChunk);
      for (int64_t key = chunk; key < end;) {
        const Piece<T> piece(task, key);
        const int64_t keys = min(end - key, piece.keys);
        if constexpr (kIsBlocks<T>) {
          pack_blocks(task, work, piece.k, piece.v, keys);  // a page is a chunk
        } else {
          pack(task, work, piece.k, piece.v, key - chunk, keys);
        }
        key += keys;
      }
    }
    for (int64_t row = 0; row < rows;) {
      const int count = pass_rows(rows - row);
      Range range[kAttentionRows];
      bool first[kAttentionRows];
      for (int r = 0; r < count; ++r) {
        const int64_t query = task.first_query + (row + r) / task.heads;
        const int64_t begin = max(query + task.low, 0);
        const int64_t end = min(query + task.high, task.keys);
        range[r] = {max(begin - chunk, 0), min(end - chunk, kAttentionChunk)};
        first[r] = begin >= chunk && !has_sink(task, row + r);
      }
      if (direct) {
        passes(task, work, row, count, here.k, task.k_key, task.k_step, here.v, task.v_key, width,
               range, first);
      } else {
        passes<float>(task, work, row, count, work.k, 1, kAttentionChunk, work.v, work.e_padded,
                      width, range, first);
      }
      row += count;
    }
  }
  if (task.dtype == 0) write_rows<math::bf16>(task, work);
  if (task.dtype == 1) write_rows<math::f16>(task, work);
  if (task.dtype == 2) write_rows<float>(task, work);
}

}  // namespace

constexpr AttentionKernels attention_kernels = {
    .attend = {attend<math::bf16>, attend<math::f16>, attend<float>},
    .attend_blocks = {attend<ByteQ8_0>, attend<ByteQ4_0>},
};
static_assert(complete(attention_kernels));

}  // namespace wick::cpu::WICK_ISA
