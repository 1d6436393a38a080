// layer_norm and group_norm: kernels/norm/mean_norm.gpu, mean_norm_strided.gpu.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/norm/norm.h"
#include "wick/backend/gpu/norm/reshaped.h"
#include "wick/backend/gpu/norm/row_plan.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {
namespace {

const KernelFamily<MeanNormArgs, DType, HeldPacks> kLayerNorm("mean_norm", "layer_norm_{}_{}");
const KernelFamily<MeanNormArgs, DType, HeldPacks> kLayerNormByF32("mean_norm",
                                                                   "layer_norm_{}_by_f32_{}");
const KernelFamily<MeanNormArgs, DType, HeldPacks> kGroupNorm("mean_norm", "group_norm_{}_{}");
const KernelFamily<MeanNormArgs, DType> kMeanNormStrided("mean_norm_strided",
                                                         "mean_norm_strided_{}");
const KernelFamily<MeanNormSplitArgs, DType> kMeanNormSums("mean_norm_strided",
                                                           "mean_norm_sums_{}");
const KernelFamily<MeanNormSplitArgs, DType> kMeanNormSquares("mean_norm_strided",
                                                              "mean_norm_squares_{}");
const KernelFamily<MeanNormSplitArgs, DType> kMeanNormSplit("mean_norm_strided",
                                                            "mean_norm_split_{}");

/// A call of layer_norm or group_norm.
class MeanNorm {
 public:
  /// out, in: [.., n]; the last dim is a row.
  MeanNorm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight,
           const ConstView& bias, float eps)
      : gpu_(gpu),
        out_(out),
        in_(in),
        weight_(weight),
        bias_(bias),
        eps_(eps),
        dim_(in.layout.rank() - 1),
        reduction_(in.layout, out.layout, 1u << dim_),
        plan_(gpu, reduction_, out, in, dim_) {
    affine_.weight = weights_of(weight);
    affine_.bias = weights_of(bias);
  }

  void layers() {
    affine_.groups = Divider(1);
    const auto room = [&](const ConstView& v) {
      return v.data == nullptr ? 0 : divide_up(bytes_of(v.dtype, reduction_.n), 16) * 16;
    };
    shared_bytes_ = room(weight_) + room(bias_);
    run(plan_.can_be_held_by_norm() && has_vectors(),
        [&](const Grid& grid, const MeanNormArgs& args) {
          (is_by_f32() ? kLayerNormByF32 : kLayerNorm)(in_.dtype, plan_.steps())
              .launch(gpu_, grid, args);
        });
  }
  /// Rows are groups of `channels` channels. The `each` elements of a channel share a weight and a
  /// bias.
  void groups(int64_t groups, int64_t channels, int64_t each) {
    // The number of a row, in the order of the shape, tells its group.
    reduction_.kept =
        collapse<2>({&in_.layout, &out_.layout}, ~(1u << static_cast<unsigned>(dim_)));
    affine_.groups = Divider(static_cast<uint32_t>(groups));
    affine_.channels = static_cast<uint32_t>(channels);
    affine_.each = ChannelDivider(static_cast<uint64_t>(each));
    run(plan_.can_be_held_by_norm() && each % plan_.each() == 0,
        [&](const Grid& grid, const MeanNormArgs& args) {
          kGroupNorm(in_.dtype, plan_.steps()).launch(gpu_, grid, args);
        });
  }

 private:
  /// Whether the weight and the bias are vectors of one dtype.
  bool has_vectors() const {
    const auto fits = [&](const ConstView& v) { return v.data == nullptr || plan_.goes_with(v); };
    const bool alike =
        weight_.data == nullptr || bias_.data == nullptr || weight_.dtype == bias_.dtype;
    return alike && fits(weight_) && fits(bias_);
  }
  /// Whether the weight and the bias are f32, and the rows aren't.
  bool is_by_f32() const {
    const DType dtype = weight_.data != nullptr ? weight_.dtype
                        : bias_.data != nullptr ? bias_.dtype
                                                : in_.dtype;
    return dtype != in_.dtype;
  }

  /// held(grid, args) launches the kernel that holds rows in registers, if `can_be_held`.
  template <class Held>
  void run(bool can_be_held, Held&& held) {
    int64_t done = 0;
    const int64_t groups = affine_.groups.by;
    reduction_.kept.for_each_piece(
        reduction_.most_threads(), [&](const StridedIndex<2>& kept, const auto& start) {
          const void* x = advance(in_.data, in_.dtype, start[0]);
          void* y = advance(out_.data, out_.dtype, start[1]);
          affine_.first_group = static_cast<uint32_t>(done % groups);
          done += kept.elems;
          Grid grid;
          grid.pdl = true;
          if (can_be_held) {
            const NormRows rows = affine_.channels > 0
                                      ? plan_.spread_channels(kept, affine_.channels, grid)
                                  : shared_bytes_ > 0 && plan_.is_amd()
                                      ? plan_.spread_sharing(kept, shared_bytes_, grid)
                                      : plan_.spread_held(kept, grid);
            held(grid, {y, x, affine_, rows, eps_});
          } else if (reduction_.n <= (few_rows(kept) ? kFewRowsElems : kBlockElems)) {
            const NormRows rows = plan_.spread_strided(kept, grid);
            kMeanNormStrided(in_.dtype).launch(gpu_, grid, {y, x, affine_, rows, eps_});
          } else {
            split(y, x, kept);
          }
        });
  }

  /// The most elements of a row that one thread block takes: 8 chunks, or 4 if there are few rows.
  static constexpr int64_t kBlockElems = 8 * kChunk, kFewRowsElems = 4 * kChunk;
  bool few_rows(const StridedIndex<2>& kept) const {
    return 2 * int64_t{kept.elems} < gpu_.info.multiprocessors;
  }

  /// Rows that several thread blocks share.
  void split(void* y, const void* x, const StridedIndex<2>& kept) {
    Grid grid;
    grid.pdl = true;
    const NormRows rows = plan_.spread_split(kept, grid);
    const int64_t bytes =
        bytes_of(in_.dtype == DType::f64 ? DType::f64 : DType::f32, grid.blocks[0]);
    const Scratch scratch(gpu_, static_cast<size_t>(2 * bytes));
    const MeanNormSplitArgs args{y,
                                 x,
                                 scratch.data(),
                                 scratch.data<char>() + bytes,
                                 grid.blocks[0] / kept.elems,
                                 affine_,
                                 rows,
                                 eps_};
    for (const auto* family : {&kMeanNormSums, &kMeanNormSquares, &kMeanNormSplit}) {
      (*family)(in_.dtype).launch(gpu_, grid, args);
    }
  }

  Gpu& gpu_;
  const View& out_;
  const ConstView &in_, &weight_, &bias_;
  const float eps_;
  const int dim_;
  Reduction reduction_;
  RowPlan plan_;
  Affine affine_;
  int64_t shared_bytes_ = 0;  // of the weights and biases of layer_norm
};

}  // namespace

void GpuBackend::layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                            const ConstView& bias, float eps) {
  if (out.layout.elems() == 0) return;
  MeanNorm(gpu_, out, in, weight, bias, eps).layers();
}

void GpuBackend::group_norm(const View& out, const ConstView& in, int64_t groups,
                            const ConstView& weight, const ConstView& bias, float eps) {
  const Shape& shape = in.layout.shape();
  if (shape.elems() == 0) return;
  const Shape rows{shape[0], groups, shape.elems() / (shape[0] * groups)};
  // A copy is made if the elements of a row have no common stride.
  const Reshaped x(*this, gpu_, in, rows, true), y(*this, gpu_, out, rows, false);
  MeanNorm(gpu_, y.view(), x.view(), weight, bias, eps)
      .groups(groups, shape[1] / groups, shape.elems() / (shape[0] * shape[1]));
  y.finish(*this, out);
}

}  // namespace wick::gpu
