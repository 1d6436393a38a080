// Cumulative sums and products: kernels/reduce/scan.gpu.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/reduce/scan_abi.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"
#include "wick/backend/gpu/reduce/sum_element.h"

namespace wick::gpu {
namespace {

/// The suffix of the kernels of carries: the type in which totals are accumulated.
enum class ScanTotal { f32, f64, u32, u64, scaled };
constexpr std::array<std::string_view, 5> kernel_labels(ScanTotal) {
  return {"f32", "f64", "u32", "u64", "scaled"};
}

const KernelFamily<ScanRowsArgs, Op, SumElement> kScanRows("scan", "{}_rows_{}");
const KernelFamily<ScanColumnsArgs, Op, SumElement> kScanColumns("scan", "{}_columns_{}");
const KernelFamily<ScanCarriesArgs, Op, ScanTotal> kScanCarries("scan", "{}_carries_{}");

ScanTotal total_of(Op op, DType dtype) {
  if (is_float(dtype) && op == Op::cumprod) return ScanTotal::scaled;
  if (dtype == DType::f64) return ScanTotal::f64;
  if (is_float(dtype)) return ScanTotal::f32;
  return dtype == DType::i64 ? ScanTotal::u64 : ScanTotal::u32;
}

/// Launches one scan.
class ScanLauncher {
 public:
  ScanLauncher(Gpu& gpu, Op op, const View& out, const ConstView& in, int dim)
      : gpu_(gpu),
        op_(op),
        out_(out),
        in_(in),
        n_(in.layout.shape()[dim]),
        in_step_(in.layout.stride(dim)),
        out_step_(out.layout.stride(dim)),
        chunks_(divide_up(n_, math::kScanChunk)),
        rows_(collapse<2>({&in.layout, &out.layout}, ~(1u << dim))) {
    // Rows that are neighbours in the input's memory become neighbours.
    rows_.sort(RepeatedDims::outermost);
  }

  void run() const {
    const bool across = is_across();
    const int64_t threads =
        across ? kScanThreads * chunks_ : static_cast<int64_t>(1u << width_log()) * chunks_;
    rows_.for_each_piece(threads, [&](const StridedIndex<2>& kept, const auto& start) {
      const void* x = advance(in_.data, in_.dtype, start[0]);
      void* y = advance(out_.data, out_.dtype, start[1]);
      across ? columns(y, x, kept) : rows(y, x, kept);
    });
  }

 private:
  /// Columns that are worth a thread block for 16 or 32.
  static constexpr int64_t kFewColumns = 8;
  /// Whether neighbours in memory belong to different rows, of which there are enough.
  bool is_across() const {
    if (rows_.dims.empty() || n_ <= 1 || std::abs(in_step_) == 1) return false;
    const auto& next = rows_.dims.back();
    return next.size >= kFewColumns && next.stride[0] != 0 &&
           std::abs(next.stride[0]) < std::abs(in_step_);
  }
  /// log2 of the threads of a chunk.
  uint32_t width_log() const {
    const int64_t groups = divide_up(std::min<int64_t>(n_, math::kScanChunk), math::kScanGroup);
    return ceil_log(static_cast<uint64_t>(groups));
  }

  void rows(void* y, const void* x, const StridedIndex<2>& kept) const {
    ScanRowsArgs args{y,        x,          nullptr,   nullptr,
                      kept,     in_step_,   out_step_, static_cast<u64>(n_),
                      chunks(), width_log()};
    const int64_t rows_of_block = kScanThreads >> args.width_log;
    const Grid grid = grid_of(divide_up(kept.elems, rows_of_block) * chunks_);
    in_chunks(args, grid, kScanRows(op_, sum_element(in_.dtype)), kept.elems);
  }

  void columns(void* y, const void* x, const StridedIndex<2>& kept) const {
    const Columns c = columns_of(kept, n_);
    const uint32_t across = scan_across(gpu_.device.kind == DeviceKind::hip, op_ == Op::cumsum,
                                        static_cast<uint32_t>(bytes_of(in_.dtype, 1)));
    const uint32_t strips = (c.columns + across - 1) / across;
    ScanColumnsArgs args{y,         x,          nullptr,  nullptr,   c.outer, c.columns, strips,
                         c.in_step, c.out_step, in_step_, out_step_, c.n,     chunks()};
    Grid grid = grid_of(int64_t{c.outer.elems} * strips * chunks_);
    grid.threads = across * static_cast<unsigned>(math::kScanGroup);
    in_chunks(args, grid, kScanColumns(op_, sum_element(in_.dtype)), kept.elems);
  }

  /// Launches a kernel of rows or columns; with several chunks, first for their totals.
  template <class Args>
  void in_chunks(Args& args, Grid grid, const Kernel<Args>& kernel, uint32_t rows) const {
    if (chunks_ == 1) return kernel.launch(gpu_, grid, args);
    const Scratch totals(gpu_, size_t{rows} * static_cast<size_t>(chunks_) * kScanTotalBytes);
    args.totals = totals.data();
    kernel.launch(gpu_, grid, args);
    Grid carries = grid_of(divide_up(rows, kScanThreads / kWarp));
    carries.pdl = grid.pdl = true;
    kScanCarries(op_, total_of(op_, in_.dtype))
        .launch(gpu_, carries, {totals.data(), rows, chunks()});
    args.totals = nullptr;
    args.before = totals.data();
    kernel.launch(gpu_, grid, args);
  }

  static Grid grid_of(int64_t blocks) {
    Grid grid{{static_cast<unsigned>(blocks), 1, 1}};
    grid.threads = kScanThreads;
    return grid;
  }
  uint32_t chunks() const { return static_cast<uint32_t>(chunks_); }

  Gpu& gpu_;
  const Op op_;
  const View& out_;
  const ConstView& in_;
  const int64_t n_, in_step_, out_step_, chunks_;
  CollapsedDims<2> rows_;
};

}  // namespace

void GpuBackend::scan(Op op, const View& out, const ConstView& in, int dim) {
  if (out.layout.elems() != 0) ScanLauncher(gpu_, op, out, in, dim).run();
}

}  // namespace wick::gpu
