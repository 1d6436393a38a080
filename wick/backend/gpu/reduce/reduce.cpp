#include "wick/backend/gpu/reduce/reduce.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"
#include "wick/backend/gpu/reduce/sum_element.h"

namespace wick::gpu {
namespace {

/// The suffix of the kernels of combine.gpu: the type of partial results.
enum class PartialSum { f64, f32, u32, u64 };
constexpr std::array<std::string_view, 4> kernel_labels(PartialSum) {
  return {"f64", "f32", "u32", "u64"};
}

const KernelFamily<SumRowsArgs, Op, SumElement> kSumRows("reduce", "{}_rows_{}");
const KernelFamily<SumRowsArgs, Op, SumElement> kSumStrided("reduce", "{}_strided_{}");
const KernelFamily<SumColumnsArgs, Op, SumElement> kSumColumns("reduce_columns", "{}_columns_{}");
const KernelFamily<SumColumnsArgs, Op, SumElement> kSumWideColumns("reduce_columns",
                                                                   "{}_wide_columns_{}");
const KernelFamily<CombineSumsArgs, Op, PartialSum> kCombineSums("combine", "combine_{}_{}");

/// The kernels of a dtype's ordered reductions.
struct SumType {
  SumElement elements;
  PartialSum sum;
  StoredAs as;   // how combine.gpu stores results
  size_t bytes;  // bytes of a partial result
};

SumType sum_type(DType dtype) {
  const SumElement elements = sum_element(dtype);
  switch (elements) {
    case SumElement::f64:
      return {elements, PartialSum::f64, StoredAs::partial, 8};
    case SumElement::f16:
      return {elements, PartialSum::f32, StoredAs::f16, 4};
    case SumElement::bf16:
      return {elements, PartialSum::f32, StoredAs::bf16, 4};
    case SumElement::f8e4m3:
      return {elements, PartialSum::f32, StoredAs::f8e4m3, 4};
    case SumElement::int32:
      return {elements, PartialSum::u32, StoredAs::partial, 4};
    case SumElement::int16:
      return {elements, PartialSum::u32, StoredAs::u16, 4};
    case SumElement::int8:
      return {elements, PartialSum::u32, StoredAs::u8, 4};
    case SumElement::int64:
      return {elements, PartialSum::u64, StoredAs::partial, 8};
    default:
      return {elements, PartialSum::f32, StoredAs::partial, 4};
  }
}

/// The number of columns, or vectors of columns, from which each thread takes whole ones.
uint64_t enough_columns(const Gpu& gpu) {
  return uint64_t{512} * static_cast<unsigned>(gpu.info.multiprocessors);
}

/// Combines partial results [outer][blocks][columns] to results.
void combine_partials(Gpu& gpu, Op op, const SumType& type, double divisor, void* y,
                      const void* from, const StridedIndex<2>& kept, uint32_t columns,
                      uint32_t blocks) {
  Partials partials;
  partials.kept = kept;
  partials.columns = columns;
  partials.blocks = blocks;
  if (columns == 1)
    partials.width_log = std::min(ceil_log((blocks + kCombined - 1) / kCombined), 8u);
  const uint32_t a_time = kCombined << partials.width_log;
  partials.blocks_out = std::max((blocks + a_time - 1) / a_time, 1u);
  const bool last = partials.blocks_out == 1;
  const uint64_t threads = (uint64_t{kept.elems} * partials.blocks_out) << partials.width_log;
  Grid grid{{static_cast<unsigned>((threads + kRowThreads - 1) / kRowThreads), 1, 1}};
  grid.pdl = true;
  const Scratch next(gpu, last ? 1 : size_t{kept.elems} * partials.blocks_out * type.bytes);
  kCombineSums(op, type.sum)
      .launch(gpu, grid, {y, last ? nullptr : next.data(), from, partials, divisor, type.as});
  if (!last) {
    combine_partials(gpu, op, type, divisor, y, next.data(), kept, columns, partials.blocks_out);
  }
}

/// Launches a sum, or another reduction, over some dims of a tensor.
class SumLauncher {
 public:
  /// op: the prefix of the kernels' names.
  SumLauncher(Gpu& gpu, Op op, const View& out, const ConstView& in, const Reduction& reduction,
              double divisor)
      : gpu_(gpu),
        op_(op),
        out_(out),
        in_(in),
        reduction_(reduction),
        divisor_(divisor),
        type_(sum_type(in.dtype)),
        line_(reduction.line()) {}

  void run() const {
    reduction_.kept.for_each_piece(reduction_.most_threads(),
                                   [&](const StridedIndex<2>& kept, const auto& start) {
                                     const void* x = advance(in_.data, in_.dtype, start[0]);
                                     void* y = advance(out_.data, out_.dtype, start[1]);
                                     if (reduction_.n == 0) {
                                       combine(y, nullptr, kept, 1, 0);
                                     } else if (reduction_.is_across()) {
                                       columns(y, x, kept);
                                     } else {
                                       rows(y, x, kept);
                                     }
                                   });
  }

 private:
  void rows(void* y, const void* x, const StridedIndex<2>& kept) const {
    const int64_t n = reduction_.n;
    const bool dense = reduction_.is_dense(in_.data, in_.dtype, kSumEach);
    Rows rows;
    rows.kept = kept;
    rows.n = static_cast<uint64_t>(n);
    rows.packs = reduction_.has_dense_runs(in_.data, in_.dtype, kSumEach) ? 1 : 0;
    rows.width_log =
        ceil_log(static_cast<uint64_t>(divide_up(std::min(n, int64_t{kAccumulators}), kSumEach)));
    rows.chunks_log = std::min(ceil_log(static_cast<uint64_t>(divide_up(n, kChunk))), 3u);
    rows.block = static_cast<uint64_t>(kChunk << rows.chunks_log);
    rows.blocks = static_cast<uint32_t>(divide_up(n, kChunk << rows.chunks_log));
    const bool is_short = n <= kAccumulators && (dense || line_.rank == 1);
    const uint32_t row_log =
        is_short ? short_width_log(rows.width_log) : rows.width_log + rows.chunks_log;
    // Small grids take smaller thread blocks.
    const uint64_t threads = divide_up(rows.total(), is_short ? kShortSums : 1) << row_log;
    Grid grid;
    const auto enough = 2 * static_cast<uint64_t>(gpu_.info.multiprocessors);
    const unsigned least = std::max(1u << row_log, 64u);
    while (grid.threads > least && threads < enough * grid.threads) grid.threads /= 2;
    grid.blocks[0] = static_cast<unsigned>((threads + grid.threads - 1) / grid.threads);
    with_partials(y, kept, 1, rows.blocks, [&](void* partials) {
      (dense ? kSumRows : kSumStrided)(op_, type_.elements)
          .launch(gpu_, grid, {y, partials, x, rows, line_, divisor_});
    });
  }

  void columns(void* y, const void* x, const StridedIndex<2>& kept) const {
    const int64_t most = wide_columns(static_cast<uint32_t>(bytes_of(in_.dtype, 1)));
    const bool wide = reduction_.has_dense_columns(in_.data, in_.dtype, most);
    Columns c = columns_of(kept, reduction_.n);
    c.block = kChunk;
    c.blocks = static_cast<uint32_t>(divide_up(reduction_.n, kChunk));
    c.lanes_log = ceil_log(
        static_cast<uint64_t>(divide_up(std::min(reduction_.n, int64_t{kAccumulators}), kSumEach)));
    const auto pieces = static_cast<uint32_t>(divide_up(c.columns, wide ? most : 1));
    // With enough columns a thread takes all lanes of the reduction order.
    if (reduction_.n <= kAccumulators && line_.rank == 1 &&
        uint64_t{c.outer.elems} * pieces >= enough_columns(gpu_)) {
      c.lanes_log = 0;
    }
    // A thread that takes all lanes needs many registers; with small thread blocks fewer registers
    // of a multiprocessor stay unused.
    const unsigned threads = c.lanes_log == 5   ? kColumnThreads
                             : c.lanes_log == 0 ? 128
                                                : kRowThreads;
    c.across_log = std::min(ceil_log(pieces), ceil_log(threads >> c.lanes_log));
    c.across_log = std::max(c.across_log, 5 - c.lanes_log);
    c.strips = (pieces + (1u << c.across_log) - 1) >> c.across_log;
    Grid grid;
    grid.threads = 1u << (c.lanes_log + c.across_log);
    grid.blocks[0] = c.outer.elems * c.blocks * c.strips;
    with_partials(y, kept, c.columns, c.blocks, [&](void* partials) {
      (wide ? kSumWideColumns : kSumColumns)(op_, type_.elements)
          .launch(gpu_, grid, {y, partials, x, c, line_, divisor_});
    });
  }

  /// Calls body with memory for partial results, and combines them; with null if each result has
  /// one block.
  template <class F>
  void with_partials(void* y, const StridedIndex<2>& kept, uint32_t columns, uint32_t blocks,
                     const F& body) const {
    if (blocks == 1) return body(static_cast<void*>(nullptr));
    const Scratch partials(gpu_, size_t{kept.elems} * blocks * type_.bytes);
    body(partials.data());
    combine(y, partials.data(), kept, columns, blocks);
  }

  void combine(void* y, const void* from, const StridedIndex<2>& kept, uint32_t columns,
               uint32_t blocks) const {
    combine_partials(gpu_, op_, type_, divisor_, y, from, kept, columns, blocks);
  }

  Gpu& gpu_;
  const Op op_;
  const View& out_;
  const ConstView& in_;
  const Reduction& reduction_;
  const double divisor_;
  const SumType type_;
  const Line line_;
};

/// Widths in bits of the elements whose keys have type K.
template <class K>
using ElementBits = std::conditional_t<sizeof(K) == 8, OneOf<64>, OneOf<8, 16, 32>>;
/// The width of K in bits.
template <class K>
using KeyBits = OneOf<8 * sizeof(K)>;

/// Kernels with keys of type K.
template <class K>
struct MinMaxKernels {
  using Bits = ElementBits<K>;
  const KernelFamily<MinMaxRowsArgs<K>, Bits> rows{"min_max", "min_max_rows_u{}"};
  const KernelFamily<MinMaxRowsArgs<K>, Bits> lines{"min_max", "min_max_strided_u{}"};
  const KernelFamily<MinMaxShortRowsArgs<K>, Bits> short_rows{"min_max", "min_max_short_rows_u{}"};
  const KernelFamily<MinMaxColumnsArgs<K>, Bits> columns{"min_max_columns", "min_max_columns_u{}"};
  const KernelFamily<MinMaxColumnsArgs<K>, Bits> wide_columns{"min_max_columns",
                                                              "min_max_wide_columns_u{}"};
  const KernelFamily<MinMaxFewColumnsArgs<K>, Bits> few_columns{"min_max_columns",
                                                                "min_max_few_columns_u{}"};
  const KernelFamily<CombineMinMaxArgs<K>, KeyBits<K>> combine{"min_max", "combine_min_max_u{}"};
};
const MinMaxKernels<uint32_t> kMinMax32;
const MinMaxKernels<uint64_t> kMinMax64;
template <class K>
const MinMaxKernels<K>& min_max_kernels() {
  if constexpr (sizeof(K) == 8) {
    return kMinMax64;
  } else {
    return kMinMax32;
  }
}

/// Launches max, min, argmax or argmin.
class MinMaxLauncher {
 public:
  MinMaxLauncher(Gpu& gpu, const View& out, const ConstView& in, const Reduction& reduction,
                 bool largest, bool index)
      : gpu_(gpu),
        out_(out),
        in_(in),
        reduction_(reduction),
        largest_(largest),
        index_(index),
        elem_(bytes_of(in.dtype, 1)),
        line_(reduction.line()) {}

  void run() const {
    reduction_.kept.for_each_piece(reduction_.most_threads(),
                                   [&](const StridedIndex<2>& kept, const auto& start) {
                                     const void* x = advance(in_.data, in_.dtype, start[0]);
                                     void* y = advance(out_.data, out_.dtype, start[1]);
                                     if (elem_ == 8) {
                                       piece<uint64_t>(y, x, kept);
                                     } else {
                                       piece<uint32_t>(y, x, kept);
                                     }
                                   });
  }

 private:
  template <class K>
  KeyRule<K> rule() const {
    constexpr K kTop = K{1} << (8 * sizeof(K) - 1);
    // For floats, infinity has the highest rank below the NaNs.
    const int shift = 8 * (static_cast<int>(sizeof(K)) - static_cast<int>(elem_));
    const auto floating = [&](uint64_t infinity, TwoOf two = TwoOf::none) {
      const auto last = static_cast<K>(static_cast<K>(infinity) << shift);
      const K one = K{1} << shift;
      const K fold = static_cast<K>((kTop - 1) >> shift << shift);
      return KeyRule<K>{fold,
                        largest_ ? K{1} : ~K{0},
                        largest_ ? last + one : last,
                        static_cast<K>(2 * last + 2 * one),
                        two,
                        largest_ ? 0u : 0x80008000u};
    };
    switch (in_.dtype) {
      case DType::f64:
        return floating(0x7ff0000000000000u);
      case DType::f32:
        return floating(0x7f800000u);
      case DType::f16:
        return floating(0x7c00u, TwoOf::f16);
      case DType::bf16:
        return floating(0x7f80u, TwoOf::bf16);
      case DType::f8e4m3:
        return floating(0x7eu);
      default: {
        const bool is_signed = info(in_.dtype).kind == DTypeKind::signed_integer;
        const K add = is_signed ? kTop : K{0};
        return KeyRule<K>{0, largest_ ? K{1} : ~K{0}, largest_ ? add : ~add, ~K{0}, TwoOf::none, 0};
      }
    }
  }

  template <class K>
  void piece(void* y, const void* x, const StridedIndex<2>& kept) const {
    if (reduction_.is_across()) {
      columns<K>(y, x, kept);
    } else {
      rows<K>(y, x, kept);
    }
  }

  template <class K>
  void rows(void* y, const void* x, const StridedIndex<2>& kept) const {
    const int64_t n = reduction_.n, pack = 16 / elem_;
    const bool dense = reduction_.is_dense(in_.data, in_.dtype, pack);
    const bool beside = !dense && line_.rank == 1 && line_.stride[0] == 1 && n >= 16 * pack;
    const int64_t packs = dense || beside ? divide_up(n, pack) : n;
    // A thread takes about eight vectors, or one vector of several rows.
    const int64_t multiprocessors = gpu_.info.multiprocessors;
    Rows rows;
    rows.kept = kept;
    rows.n = static_cast<uint64_t>(n);
    const bool is_short = dense && packs <= int64_t{kShortMinMaxPacks};
    rows.width_log = ceil_log(static_cast<uint64_t>(is_short ? packs : divide_up(packs, 8)));
    rows.width_log = std::min(rows.width_log, 8u);
    if (beside) {
      rows.packs = 1;
      rows.width_log = std::max(rows.width_log, ceil_log(static_cast<uint64_t>(2 * pack)));
    }
    int64_t blocks =
        std::min(divide_up(packs, 8 * kRowThreads), divide_up(8 * multiprocessors, kept.elems));
    const int64_t a_block = divide_up(packs, blocks);
    blocks = divide_up(packs, a_block);
    rows.block = static_cast<uint64_t>(dense || beside ? a_block * pack : a_block);
    rows.blocks = static_cast<uint32_t>(blocks);
    const uint64_t threads = rows.total() << rows.width_log;
    const unsigned a_thread_block = kRowThreads * (is_short ? kShortMinMaxes : 1);
    const Grid grid{{static_cast<unsigned>((threads + a_thread_block - 1) / a_thread_block), 1, 1}};
    if (is_short) {
      min_max_kernels<K>().short_rows(8 * elem_).launch(gpu_, grid,
                                                        {target(y), x, rows, rule<K>()});
      return;
    }
    with_partials<K>(y, kept, 1, rows.blocks,
                     [&](const MinMaxTarget& target, const MinMaxPartials<K>& partials) {
                       const MinMaxKernels<K>& kernels = min_max_kernels<K>();
                       (dense ? kernels.rows : kernels.lines)(8 * elem_).launch(
                           gpu_, grid, {target, partials, x, rows, line_, rule<K>()});
                     });
  }

  template <class K>
  void columns(void* y, const void* x, const StridedIndex<2>& kept) const {
    const int64_t most = wide_columns(static_cast<uint32_t>(elem_)), n = reduction_.n;
    const bool wide = reduction_.has_dense_columns(in_.data, in_.dtype, most);
    Columns c = columns_of(kept, n);
    const auto pieces = static_cast<uint32_t>(divide_up(c.columns, wide ? most : 1));
    // With few rows and enough columns a thread takes whole columns.
    const bool alone =
        n <= kAccumulators && uint64_t{c.outer.elems} * pieces >= enough_columns(gpu_);
    c.across_log = std::min(ceil_log(pieces), alone ? 8u : 5u);
    if (!alone) c.lanes_log = std::min(8 - c.across_log, ceil_log(static_cast<uint64_t>(n)));
    c.across_log = std::max(c.across_log, 5 - std::min(c.lanes_log, 5u));
    c.strips = (pieces + (1u << c.across_log) - 1) >> c.across_log;
    // A thread takes at least 8 rows, unless there are enough thread blocks. On AMD at most a
    // twenty-fifth of the bytes moved are partial results.
    const int64_t thread_blocks = int64_t{c.outer.elems} * c.strips;
    const int64_t partial_bytes = 2 * static_cast<int64_t>(sizeof(K) + sizeof(uint32_t));
    const int64_t most_blocks =
        is_amd() ? std::max<int64_t>(n * elem_ / (25 * partial_bytes), 1) : n;
    const int64_t blocks =
        alone ? 1
              : std::min({divide_up(n, int64_t{8} << c.lanes_log),
                          divide_up(8 * int64_t{gpu_.info.multiprocessors}, thread_blocks),
                          most_blocks});
    c.block = static_cast<uint64_t>(divide_up(n, blocks));
    c.blocks = static_cast<uint32_t>(divide_up(n, static_cast<int64_t>(c.block)));
    Grid grid;
    grid.threads = 1u << (c.lanes_log + c.across_log);
    grid.blocks[0] = c.outer.elems * c.blocks * c.strips;
    if (alone && wide && n <= int64_t{kFewMinMaxes} && line_.rank == 1) {
      min_max_kernels<K>().few_columns(8 * elem_).launch(
          gpu_, grid, {target(y), x, c, line_.stride[0], rule<K>()});
      return;
    }
    with_partials<K>(y, kept, c.columns, c.blocks,
                     [&](const MinMaxTarget& target, const MinMaxPartials<K>& partials) {
                       const MinMaxKernels<K>& kernels = min_max_kernels<K>();
                       (wide ? kernels.wide_columns : kernels.columns)(8 * elem_).launch(
                           gpu_, grid, {target, partials, x, c, line_, rule<K>()});
                     });
  }

  bool is_amd() const { return gpu_.device.kind == DeviceKind::hip; }
  MinMaxTarget target(void* y) const { return {y, index_ ? 1u : 0u, static_cast<uint32_t>(elem_)}; }

  template <class K, class F>
  void with_partials(void* y, const StridedIndex<2>& kept, uint32_t columns, uint32_t blocks,
                     const F& body) const {
    if (blocks == 1) return body(target(y), MinMaxPartials<K>{nullptr, nullptr});
    const size_t count = size_t{kept.elems} * blocks;
    const Scratch memory(gpu_, count * (sizeof(K) + 4));
    K* const keys = memory.data<K>();
    const MinMaxPartials<K> partial{keys, reinterpret_cast<uint32_t*>(keys + count)};
    body(target(y), partial);
    Partials partials;
    partials.kept = kept;
    partials.columns = columns;
    partials.blocks = blocks;
    partials.width_log = std::min(ceil_log((blocks + 3) / 4), 8u);
    // On AMD neighbouring threads take neighbouring columns of a few blocks, which share cache
    // lines.
    if (is_amd() && columns >= 32 && blocks <= 16) partials.width_log = 0;
    const uint64_t threads = uint64_t{kept.elems} << partials.width_log;
    Grid grid{{static_cast<unsigned>((threads + kRowThreads - 1) / kRowThreads), 1, 1}};
    grid.pdl = true;
    min_max_kernels<K>()
        .combine(8 * sizeof(K))
        .launch(gpu_, grid, {target(y), partial, partials, rule<K>()});
  }

  Gpu& gpu_;
  const View& out_;
  const ConstView& in_;
  const Reduction& reduction_;
  const bool largest_, index_;
  const int64_t elem_;
  const Line line_;
};

}  // namespace

void reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, uint32_t dims) {
  if (out.layout.elems() == 0) return;
  const Reduction reduction(in.layout, out.layout, dims);
  if (op == Op::max || op == Op::min) {
    MinMaxLauncher(gpu, out, in, reduction, op == Op::max, false).run();
  } else if (op == Op::mean) {
    SumLauncher(gpu, Op::sum, out, in, reduction, static_cast<double>(reduction.n)).run();
  } else {
    SumLauncher(gpu, op, out, in, reduction, 1.0).run();
  }
}

void combine_sums(Gpu& gpu, DType dtype, void* out, const void* partials,
                  const StridedIndex<2>& kept, uint32_t columns, uint32_t blocks) {
  combine_partials(gpu, Op::sum, sum_type(dtype), 1.0, out, partials, kept, columns, blocks);
}

void arg_reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, int dim) {
  if (out.layout.elems() == 0) return;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  MinMaxLauncher(gpu, out, in, reduction, op == Op::argmax, true).run();
}

void GpuBackend::reduce(Op op, const View& out, const ConstView& in, uint32_t dims) {
  gpu::reduce(gpu_, op, out, in, dims);
}

void GpuBackend::arg_reduce(Op op, const View& out, const ConstView& in, int dim) {
  gpu::arg_reduce(gpu_, op, out, in, dim);
}

}  // namespace wick::gpu
