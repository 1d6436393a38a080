// norm_sums: kernels/norm/norm_sums.gpu.

#include <algorithm>
#include <array>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_grad_abi.h"
#include "wick/backend/gpu/reduce/reduce.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {
namespace {

const KernelFamily<NormSumsArgs, DType> kNormColumns("norm_sums", "norm_columns_{}");
const KernelFamily<NormSumsArgs, DType> kNormWideColumns("norm_sums", "norm_wide_columns_{}");
const KernelFamily<NormSumsArgs, DType> kNormRows("norm_sums", "norm_rows_{}");

/// A call of norm_sums.
class NormSums {
 public:
  NormSums(Gpu& gpu, const View& out, const ConstView& x, const ConstView& grad,
           const ConstView& mean, const ConstView& scale, uint32_t dims)
      : gpu_(gpu), out_(out), x_(x), grad_(grad), mean_(mean), scale_(scale) {
    const Layout &in = x.layout, &g = grad.layout;
    const Layout none(in.shape(), {}, 0);
    const Layout &m = mean.data == nullptr ? none : mean.layout,
                 &r = scale.data == nullptr ? none : scale.layout;
    kept_ =
        CollapsedDims<5>({in.offset(), g.offset(), m.offset(), r.offset(), out.layout.offset()});
    int to = 1;  // a dim of out
    for (int d = 0; d < in.rank(); ++d) {
      if ((dims >> d & 1) != 0) {
        reduced_.add(in.shape()[d], {in.stride(d), g.stride(d), m.stride(d), r.stride(d)});
      } else {
        kept_.add(in.shape()[d],
                  {in.stride(d), g.stride(d), m.stride(d), r.stride(d), out.layout.stride(to++)});
      }
    }
    kept_.sort(RepeatedDims::outermost);
    n_ = reduced_.elems;
  }

  void run() {
    NormSumsArgs args{};
    args.n = static_cast<uint64_t>(n_);
    args.line.rank = 1;  // for no element or a single one
    if (n_ > 0 && !reduced_.dims.empty()) {
      args.line.rank = 0;
      for (const auto& d : reduced_.dims) {
        NormLine& line = args.line;
        line.divider[line.rank] =
            Divider(static_cast<uint32_t>(std::min(d.size, int64_t{1} << 31)));
        line.size[line.rank] = d.size;
        for (size_t k = 0; k < 4; ++k) line.stride[k][line.rank] = d.stride[k];
        ++line.rank;
      }
    }
    kept_.for_each_piece(kMostThreads, [&](const StridedIndex<5>& kept, const auto& start) {
      const auto at = [&](const ConstView& v, size_t k) {
        return v.data == nullptr ? nullptr : advance(v.data, v.dtype, start[k]);
      };
      args.in = at(x_, 0);
      args.grad = at(grad_, 1);
      args.mean = at(mean_, 2);
      args.scale = at(scale_, 3);
      args.kept = kept;
      void* const out = advance(out_.data, out_.dtype, start[4]);
      is_across() ? columns(args, out) : rows(args, out);
    });
  }

 private:
  static constexpr int64_t kMostThreads = 1024;
  /// log2 of the fewest threads along the columns, whose vectors fill cache lines.
  static constexpr uint32_t kLeastAcrossLog = 3;

  /// Whether neighbours in memory belong to different results.
  bool is_across() const {
    if (kept_.dims.empty() || n_ <= 1) return false;
    const int64_t across = std::abs(kept_.dims.back().stride[0]);
    return across != 0 && across < std::abs(reduced_.dims.back().stride[0]);
  }
  /// Whether neighbours along the innermost kept dim are vectors of `each` elements of operand k,
  /// and the mean and the scale don't change along it.
  bool has_wide_columns(int64_t each) const {
    const auto& last = kept_.dims.back();
    if (last.size % each != 0) return false;
    if ((mean_.data != nullptr && last.stride[2] != 0) ||
        (scale_.data != nullptr && last.stride[3] != 0)) {
      return false;
    }
    const auto fits = [&](size_t k, const ConstView& v) {
      Access access = access_of(kept_, k, v.data, info(v.dtype).block_bytes, kept_.dims.size() - 1);
      for (const auto& d : reduced_.dims) access.dim(d.size, d.stride[k]);
      return access.vectors_of(each);
    };
    return fits(0, x_) && fits(1, grad_);
  }
  /// Whether four neighbours of a result's elements may be loaded at once, and have one mean and
  /// one scale.
  bool has_packs() const {
    if (reduced_.dims.empty() || reduced_.dims.back().size % 4 != 0) return false;
    const auto& last = reduced_.dims.back();
    if ((mean_.data != nullptr && last.stride[2] != 0) ||
        (scale_.data != nullptr && last.stride[3] != 0)) {
      return false;
    }
    const auto fits = [&](size_t k, const ConstView& v) {
      Access access = access_of(kept_, k, v.data, info(v.dtype).block_bytes);
      for (size_t d = 0; d + 1 < reduced_.dims.size(); ++d) {
        access.dim(reduced_.dims[d].size, reduced_.dims[d].stride[k]);
      }
      return access.run(last.size, last.stride[k]).vectors_of(4);
    };
    return fits(0, x_) && fits(1, grad_);
  }

  void columns(NormSumsArgs args, void* out) {
    const int64_t most = out_.dtype == DType::f64 ? 2 : 4;
    const bool wide = has_wide_columns(most);
    const StridedIndex<5> kept = args.kept;
    const uint32_t last = --args.kept.rank;
    args.columns = kept.size[last].by;
    args.kept.elems = kept.elems / args.columns;
    for (size_t k = 0; k < 5; ++k) args.step[k] = kept.stride[k][last];
    args.block = static_cast<uint64_t>(kChunk);
    args.blocks = static_cast<uint32_t>(divide_up(n_, kChunk));
    args.lanes_log =
        ceil_log(static_cast<uint64_t>(divide_up(std::min(n_, int64_t{kAccumulators}), kSumEach)));
    const auto pieces = static_cast<uint32_t>(divide_up(args.columns, wide ? most : 1));
    args.across_log = std::min(ceil_log(pieces), ceil_log(kNormColumnThreads >> args.lanes_log));
    args.across_log = std::max(args.across_log, 5 - args.lanes_log);
    const auto strips = [&] { return (pieces + (1u << args.across_log) - 1) >> args.across_log; };
    // Smaller thread blocks spread few columns over more multiprocessors.
    const int64_t enough = 2 * int64_t{gpu_.info.multiprocessors};
    while (args.across_log > std::max(kLeastAcrossLog, 5 - args.lanes_log) &&
           int64_t{args.kept.elems} * args.blocks * strips() < enough) {
      --args.across_log;
    }
    args.strips = strips();
    Grid grid;
    grid.pdl = true;
    grid.threads = 1u << (args.lanes_log + args.across_log);
    grid.blocks[0] = args.kept.elems * args.blocks * args.strips;
    launch(wide ? kNormWideColumns : kNormColumns, grid, args, kept, args.columns, out);
  }

  void rows(NormSumsArgs args, void* out) {
    args.packs = has_packs() ? 1 : 0;
    args.width_log =
        ceil_log(static_cast<uint64_t>(divide_up(std::min(n_, int64_t{kAccumulators}), kSumEach)));
    // A block of several chunks needs no partial results; a block of one chunk spreads few results
    // over more multiprocessors.
    const auto chunks = static_cast<uint64_t>(divide_up(n_, kChunk));
    const bool few = int64_t{args.kept.elems} < 8 * int64_t{gpu_.info.multiprocessors};
    args.chunks_log = few && chunks > 8 ? 0 : std::min(ceil_log(chunks), 3u);
    args.block = uint64_t{kChunk} << args.chunks_log;
    args.blocks = static_cast<uint32_t>(
        std::max<int64_t>(divide_up(n_, static_cast<int64_t>(args.block)), 1));
    const uint32_t row_log = args.width_log + args.chunks_log;
    const uint64_t threads = (uint64_t{args.kept.elems} * args.blocks) << row_log;
    Grid grid;
    grid.pdl = true;
    const auto enough = 2 * static_cast<uint64_t>(gpu_.info.multiprocessors);
    const unsigned least = std::max(1u << row_log, 64u);
    grid.threads = kRowThreads;
    while (grid.threads > least && threads < enough * grid.threads) grid.threads /= 2;
    grid.blocks[0] = static_cast<unsigned>((threads + grid.threads - 1) / grid.threads);
    launch(kNormRows, grid, args, args.kept, 1, out);
  }

  /// Launches a kernel, and combines its partial results if results have several blocks. `kept`
  /// indexes all results of the piece.
  void launch(const KernelFamily<NormSumsArgs, DType>& family, const Grid& grid, NormSumsArgs& args,
              const StridedIndex<5>& kept, uint32_t columns, void* out) {
    const int64_t second = out_.layout.stride(0);
    if (args.blocks == 1) {
      args.out = out;
      args.second = second;
      family(x_.dtype).launch(gpu_, grid, args);
      return;
    }
    const int64_t count = int64_t{kept.elems} * args.blocks;
    const Scratch partials(gpu_, static_cast<size_t>(bytes_of(out_.dtype, 2 * count)));
    args.out = partials.data();
    args.partial = 1;
    args.second = count;
    family(x_.dtype).launch(gpu_, grid, args);
    StridedIndex<2> pairs;  // both sums of every result
    pairs.rank = kept.rank + 1;
    pairs.elems = 2 * kept.elems;
    pairs.size[0] = Divider(2);
    pairs.stride[1][0] = second;
    for (uint32_t d = 0; d < kept.rank; ++d) {
      pairs.size[d + 1] = kept.size[d];
      pairs.stride[1][d + 1] = kept.stride[4][d];
    }
    combine_sums(gpu_, out_.dtype, out, partials.data(), pairs, columns, args.blocks);
  }

  Gpu& gpu_;
  const View& out_;
  const ConstView &x_, &grad_, &mean_, &scale_;
  CollapsedDims<4> reduced_;  // of x, grad, mean and scale, in their order
  CollapsedDims<5> kept_;     // of those and out, those with x's smallest strides innermost
  int64_t n_ = 1;
};

}  // namespace

void GpuBackend::norm_sums(const View& out, const ConstView& x, const ConstView& grad,
                           const ConstView& mean, const ConstView& scale, uint32_t dims) {
  if (out.layout.elems() == 0) return;
  NormSums(gpu_, out, x, grad, mean, scale, dims).run();
}

}  // namespace wick::gpu
