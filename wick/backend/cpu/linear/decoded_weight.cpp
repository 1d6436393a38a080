// Weights of block dtypes without kernels of their own: rows keep their file layout and are decoded
// as they are multiplied.

#include <algorithm>
#include <atomic>
#include <cstring>

#include "wick/backend/cpu/linear/decoded_kernels.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/linear/rows.h"
#include "wick/backend/cpu/linear/stacked_rows.h"
#include "wick/backend/cpu/linear/weight.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/cpu/weight_memory.h"

namespace wick::cpu {
namespace {

struct DecodedWeight final : PreparedWeight {
  int64_t row_bytes = 0;
  WeightMemory memory;
};

/// Columns of one pass over a weight. Bounds the memory for activations in f32.
constexpr int64_t kPassColumns = 1024;

}  // namespace

std::unique_ptr<PreparedWeight> prepare_decoded(std::span<const ConstView> parts, bool release) {
  auto weight = std::make_unique<DecodedWeight>();
  const StackedRows rows(parts);
  weight->dtype = parts.front().dtype;
  weight->n = rows.count();
  weight->k = parts.front().layout.shape()[1];
  weight->row_bytes = bytes_of(weight->dtype, weight->k);
  weight->bytes = static_cast<size_t>(weight->n * weight->row_bytes);
  weight->memory = WeightMemory(weight->bytes);
  if (weight->bytes == 0) return weight;
  const int64_t panel_bytes = kDecodedRows * weight->row_bytes;
  pack_panels(rows, kDecodedRows, panel_bytes, release, [&](int64_t panel) {
    StackedRows::Row read[kDecodedRows];
    rows.read(panel * kDecodedRows, read);
    auto* to = static_cast<uint8_t*>(weight->memory.data()) + panel * panel_bytes;
    for (const StackedRows::Row& row : read) {
      if (row.data == nullptr) break;
      std::memcpy(to, row.data, static_cast<size_t>(weight->row_bytes));
      to += weight->row_bytes;
    }
  });
  return weight;
}

void linear_decoded(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight) {
  const auto& w = static_cast<const DecodedWeight&>(weight);
  if (out.layout.elems() == 0) return;
  const auto multiply =
      WICK_SELECT_KERNELS(isa, decoded_kernels, no_dots).multiply[quant_index(w.dtype)];
  const GemmKernels& gemm = gemm_kernels(isa);
  const auto load = gemm.load[static_cast<size_t>(x.dtype)];
  const auto store = gemm.store[static_cast<size_t>(out.dtype)];
  const int last = out.layout.rank() - 1;
  const int64_t all = out.layout.elems() / w.n, elem = info(x.dtype).block_bytes;
  const RowStarts x_rows(x.layout), out_rows(out.layout);
  const char* from = static_cast<const char*>(x.data) + x.layout.offset() * elem;
  char* to = static_cast<char*>(out.data) + out.layout.offset() * elem;
  const bool direct = x.dtype == DType::f32 && x_rows.table() == nullptr &&
                      (x.layout.stride(last) == 1 || w.k == 1);

  ThreadPool& pool = ThreadPool::global();
  const int64_t panels = (w.n + kDecodedRows - 1) / kDecodedRows;
  const int parts = static_cast<int>(std::min<int64_t>(pool.threads(), panels));
  const int64_t most = std::min(all, kPassColumns);
  const int64_t x_bytes = direct ? 0 : align64(most * w.k * 4);
  const int64_t y_bytes = align64(most * kDecodedRows * 4);
  const Workspace memory(static_cast<size_t>(x_bytes + parts * y_bytes));
  for (int64_t begin = 0; begin < all; begin += most) {
    const int64_t columns = std::min(most, all - begin);
    auto* dense = reinterpret_cast<float*>(memory.data());
    if (!direct) {
      parallel_for(columns, (64 << 10) / std::max<int64_t>(w.k, 1), [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          load(from + x_rows.at(begin + i) * elem, x.layout.stride(last), w.k, dense + i * w.k);
        }
      });
    }
    std::atomic<int64_t> next{0};
    pool.run(parts, [&](int part) {
      auto* y = reinterpret_cast<float*>(memory.data() + x_bytes + part * y_bytes);
      DecodedJob job{};
      job.row_bytes = w.row_bytes;
      job.k = w.k;
      job.x = direct ? reinterpret_cast<const float*>(from) + x_rows.at(begin) : dense;
      job.x_stride = direct ? x_rows.stride : w.k;
      job.columns = columns;
      job.y = y;
      for (int64_t p; (p = next.fetch_add(1, std::memory_order_relaxed)) < panels;) {
        const int64_t row = p * kDecodedRows;
        job.first = static_cast<const uint8_t*>(w.memory.data()) + row * w.row_bytes;
        job.rows = std::min<int64_t>(kDecodedRows, w.n - row);
        std::memset(y, 0, static_cast<size_t>(columns * kDecodedRows) * sizeof(float));
        multiply(job);
        for (int64_t c = 0; c < columns; ++c) {
          store(y + c * kDecodedRows,
                to + (out_rows.at(begin + c) + row * out.layout.stride(last)) * elem,
                out.layout.stride(last), job.rows);
        }
      }
    });
  }
}

}  // namespace wick::cpu
