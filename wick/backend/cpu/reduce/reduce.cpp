#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/reduce/reduce_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"
#include "wick/math/combine.h"

namespace wick::cpu {
namespace {

// Below so many elements a second thread costs more than it saves.
constexpr int64_t kElemsPerThread = 65536;

const ReduceKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, reduce_kernels, no_dots);
}

bool is_reduced(uint32_t dims, int d) { return ((dims >> d) & 1u) != 0; }

/// What all pieces of one reduction share.
struct Plan {
  ReduceKernels::Chunk chunk;
  ReduceKernels::Columns columns;
  ReduceKernels::Combine combine;
  ReduceKernels::Finish finish;
  size_t elem_bytes, partial_bytes;
  const char* x;
  char* y;
  CollapsedDims<1> reduced;  // offsets within a row
  CollapsedDims<2> kept;     // where each output and its row (or first column) lie
  int64_t n = 1, chunks = 1;
  int64_t width = 1, y_step = 0;  // columns: how many there are, and their stride in the output
  int64_t tile_width = 1;         // columns of one kernel call
  double divisor = 1;

  int64_t length(int64_t chunk_index) const {
    return std::min(kSumChunk, n - chunk_index * kSumChunk);
  }
};

/// The partial result of one chunk of a row, for any strides of the reduced dims.
void row_chunk(const Plan& plan, int64_t x_offset, int64_t chunk, void* result) {
  const int64_t start = chunk * kSumChunk, length = plan.length(chunk);
  const auto elem = static_cast<int64_t>(plan.elem_bytes);
  if (plan.reduced.rank() <= 1) {
    const int64_t step = plan.reduced.rank() == 0 ? 1 : plan.reduced.inner(0).stride[0];
    plan.chunk(plan.x + (x_offset + start * step) * elem, step, length, result);
    return;
  }
  alignas(64) char gathered[kSumChunk * sizeof(double)];
  char* to = gathered;
  plan.reduced.runs(start, start + length, [&](const auto& at, const auto& stride, int64_t count) {
    gather(to, plan.x + (x_offset + at[0]) * elem, stride[0] * elem, count, elem);
    to += count * elem;
  });
  plan.chunk(gathered, 1, length, result);
}

/// The partial results of `width` neighbouring columns over one chunk.
void column_chunk(const Plan& plan, int64_t x_offset, int64_t chunk, int64_t width, void* results) {
  const int64_t start = chunk * kSumChunk, length = plan.length(chunk);
  std::array<int64_t, kSumChunk> rows;
  size_t row = 0;
  plan.reduced.runs(start, start + length, [&](const auto& at, const auto& stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) rows[row++] = at[0] + i * stride[0];
  });
  plan.columns(plan.x + x_offset * static_cast<int64_t>(plan.elem_bytes), rows.data(), length,
               width, results);
}

using Partials = std::array<double, static_cast<size_t>(kMinMaxColumns)>;  // of any type

/// Combines the partial results of a row's chunks, `bytes` apart, into the first.
void combine_chunks(const Plan& plan, char* first, int64_t bytes, int64_t width) {
  math::combine_by_twos(plan.chunks, [&](int64_t i, int64_t j) {
    plan.combine(first + i * bytes, first + j * bytes, width);
  });
}

/// Computes and combines a row's chunks one after another, so that few partial results are kept.
/// piece(chunk, result) computes a chunk's. The row's result is stack[0].
template <class Partial, class Piece>
void combine_in_turn(const Plan& plan, std::vector<Partial>& stack, int64_t width,
                     const Piece& piece) {
  size_t depth = 0;
  const auto combine_top = [&] {
    --depth;
    plan.combine(&stack[depth - 1], &stack[depth], width);
  };
  math::CombineStack order;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    if (stack.size() == depth) stack.emplace_back();
    piece(chunk, &stack[depth++]);
    order.pushed(combine_top);
  }
  while (depth > 1) combine_top();
}

/// Rows whose elements are reduced one output at a time.
void reduce_rows(const Plan& plan) {
  const int64_t rows = plan.kept.elems;
  const auto partial = static_cast<int64_t>(plan.partial_bytes);
  const auto elem = static_cast<int64_t>(plan.elem_bytes);
  if (plan.chunks > 1 && rows < 4 * ThreadPool::global().threads()) {
    // Few long rows: threads share their chunks, whose results are combined afterwards.
    std::vector<double> results(static_cast<size_t>(rows * plan.chunks));
    char* all = reinterpret_cast<char*>(results.data());
    parallel_for(rows * plan.chunks, kElemsPerThread / kSumChunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        row_chunk(plan, plan.kept.at(i / plan.chunks)[1], i % plan.chunks, all + i * partial);
      }
    });
    for (int64_t row = 0; row < rows; ++row) {
      char* first = all + row * plan.chunks * partial;
      combine_chunks(plan, first, partial, 1);
      plan.finish(first, 1, plan.divisor, plan.y + plan.kept.at(row)[0] * elem, 1);
    }
    return;
  }
  parallel_for(rows, kElemsPerThread / std::max<int64_t>(plan.n, 1),
               [&](int64_t begin, int64_t end) {
                 plan.kept.runs(begin, end, [&](const auto& at, const auto& stride, int64_t count) {
                   Partials results;
                   std::vector<double> stack;
                   char* out = reinterpret_cast<char*>(results.data());
                   for (int64_t done = 0; done < count; done += kReduceColumns) {
                     const int64_t block = std::min(kReduceColumns, count - done);
                     for (int64_t i = 0; i < block; ++i) {
                       const int64_t offset = at[1] + (done + i) * stride[1];
                       if (plan.chunks == 1) {
                         row_chunk(plan, offset, 0, out + i * partial);
                         continue;
                       }
                       combine_in_turn(plan, stack, 1, [&](int64_t chunk, void* result) {
                         row_chunk(plan, offset, chunk, result);
                       });
                       std::memcpy(out + i * partial, stack.data(), plan.partial_bytes);
                     }
                     plan.finish(out, block, plan.divisor,
                                 plan.y + (at[0] + done * stride[0]) * elem, stride[0]);
                   }
                 });
               });
}

/// Reduces columns: neighbours in memory belong to different outputs.
void reduce_columns(const Plan& plan) {
  const auto elem = static_cast<int64_t>(plan.elem_bytes);
  const int64_t tiles_across = (plan.width + plan.tile_width - 1) / plan.tile_width;
  const int64_t tiles = plan.kept.elems * tiles_across;
  const auto tile = [&](int64_t index, int64_t* x_offset, int64_t* y_offset) {
    const auto at = plan.kept.at(index / tiles_across);
    const int64_t column = index % tiles_across * plan.tile_width;
    *x_offset = at[1] + column;
    *y_offset = at[0] + column * plan.y_step;
    return std::min(plan.tile_width, plan.width - column);
  };
  const int64_t tile_elems = plan.n * std::min(plan.width, plan.tile_width);
  if (plan.chunks > 1 && tiles < 4 * ThreadPool::global().threads()) {
    std::vector<Partials> results(static_cast<size_t>(tiles * plan.chunks));
    parallel_for(tiles * plan.chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t x_offset, y_offset;
        const int64_t width = tile(i / plan.chunks, &x_offset, &y_offset);
        column_chunk(plan, x_offset, i % plan.chunks, width,
                     results[static_cast<size_t>(i)].data());
      }
    });
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t x_offset, y_offset;
      const int64_t width = tile(t, &x_offset, &y_offset);
      Partials* first = &results[static_cast<size_t>(t * plan.chunks)];
      combine_chunks(plan, reinterpret_cast<char*>(first), sizeof *first, width);
      plan.finish(first->data(), width, plan.divisor, plan.y + y_offset * elem, plan.y_step);
    }
    return;
  }
  parallel_for(tiles, kElemsPerThread / std::max<int64_t>(tile_elems, 1),
               [&](int64_t begin, int64_t end) {
                 std::vector<Partials> stack;
                 for (int64_t i = begin; i < end; ++i) {
                   int64_t x_offset, y_offset;
                   const int64_t width = tile(i, &x_offset, &y_offset);
                   combine_in_turn(plan, stack, width, [&](int64_t chunk, void* result) {
                     column_chunk(plan, x_offset, chunk, width, result);
                   });
                   plan.finish(stack.front().data(), width, plan.divisor, plan.y + y_offset * elem,
                               plan.y_step);
                 }
               });
}

/// The kept dim along which x is dense, if x isn't dense along a reduced dim and the dim is long
/// enough for vectors; else -1.
int column_dim(const Layout& x, uint32_t dims) {
  int found = -1;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] == 1 || x.stride(d) != 1) continue;
    if (is_reduced(dims, d)) return -1;
    if (x.shape()[d] >= 8) found = d;
  }
  return found;
}

/// The dims of y and x that are neither reduced nor `columns` (-1: none).
CollapsedDims<2> kept_dims(const Layout& x, const Layout& y, uint32_t dims, int columns) {
  CollapsedDims<2> kept({y.offset(), x.offset()});
  for (int d = 0; d < x.rank(); ++d) {
    if (!is_reduced(dims, d) && d != columns) kept.add(x.shape()[d], {y.stride(d), x.stride(d)});
  }
  return kept;
}

}  // namespace

void CpuBackend::reduce(Op op, const View& out, const ConstView& in, uint32_t dims) {
  const Layout &x = in.layout, &y = out.layout;
  if (y.elems() == 0) return;
  const ReduceKernels& table = kernels(isa_);
  const auto dtype = static_cast<size_t>(in.dtype);
  const auto kind = static_cast<size_t>(reduction_of(op));
  const bool is_min_max = op == Op::max || op == Op::min;
  Plan plan;
  plan.chunk = table.chunk[kind][dtype];
  plan.columns = table.columns[kind][dtype];
  plan.combine = table.combine[kind][dtype];
  plan.finish = table.finish[kind][dtype];
  plan.elem_bytes = static_cast<size_t>(bytes_of(in.dtype, 1));
  plan.partial_bytes =
      is_float(in.dtype) || !is_min_max ? std::max<size_t>(plan.elem_bytes, 4) : plan.elem_bytes;
  plan.tile_width = is_min_max ? kMinMaxColumns : kReduceColumns;
  plan.x = static_cast<const char*>(in.data);
  plan.y = static_cast<char*>(out.data);

  const int columns = column_dim(x, dims);
  for (int d = 0; d < x.rank(); ++d) {
    if (is_reduced(dims, d)) plan.reduced.add(x.shape()[d], {x.stride(d)});
  }
  plan.kept = kept_dims(x, y, dims, columns);
  plan.n = plan.reduced.elems;
  plan.chunks = (plan.n + kSumChunk - 1) / kSumChunk;
  if (op == Op::mean) plan.divisor = static_cast<double>(plan.n);
  if (plan.n == 0) {
    // The identity; of a mean 0 / 0. Callers reject max and min of no elements.
    double nothing = 0;
    table.identity[kind][dtype](&nothing);
    plan.kept = CollapsedDims<2>({y.offset(), 0});
    for (int d = 0; d < y.rank(); ++d) plan.kept.add(y.shape()[d], {y.stride(d), 0});
    for (int64_t i = 0; i < plan.kept.elems; ++i) {
      plan.finish(&nothing, 1, plan.divisor, plan.y + bytes_of(out.dtype, plan.kept.at(i)[0]), 1);
    }
    return;
  }
  if (columns < 0) {
    reduce_rows(plan);
  } else {
    plan.width = x.shape()[columns];
    plan.y_step = y.stride(columns);
    reduce_columns(plan);
  }
}

void CpuBackend::arg_reduce(Op op, const View& out, const ConstView& in, int dim) {
  const Layout &x = in.layout, &y = out.layout;
  if (y.elems() == 0) return;
  const ReduceKernels& table = kernels(isa_);
  const auto dtype = static_cast<size_t>(in.dtype);
  const bool largest = op == Op::argmax;
  const int64_t n = x.shape()[dim], step = x.stride(dim);
  const int64_t elem = bytes_of(in.dtype, 1);
  auto* indices = static_cast<uint32_t*>(out.data);
  const auto* data = static_cast<const char*>(in.data);

  const int columns = column_dim(x, 1u << dim);
  const CollapsedDims<2> kept = kept_dims(x, y, 1u << dim, columns);
  if (columns < 0) {
    const auto arg = table.arg[dtype];
    parallel_for(kept.elems, kElemsPerThread / n, [&](int64_t begin, int64_t end) {
      kept.runs(begin, end, [&](const auto& at, const auto& stride, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t index = arg(data + (at[1] + i * stride[1]) * elem, step, n, largest);
          indices[at[0] + i * stride[0]] = static_cast<uint32_t>(index);
        }
      });
    });
    return;
  }
  const auto arg = table.arg_columns[dtype];
  const int64_t width = x.shape()[columns], y_step = y.stride(columns);
  const int64_t across = (width + kMinMaxColumns - 1) / kMinMaxColumns;
  const int64_t grain = kElemsPerThread / (n * std::min(width, kMinMaxColumns));
  parallel_for(kept.elems * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = kept.at(i / across);
      const int64_t column = i % across * kMinMaxColumns;
      arg(data + (at[1] + column) * elem, step, n, std::min(kMinMaxColumns, width - column),
          largest, indices + at[0] + column * y_step, y_step);
    }
  });
}

}  // namespace wick::cpu
