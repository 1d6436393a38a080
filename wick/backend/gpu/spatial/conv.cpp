// Convolutions and their gradients: kernels/spatial/conv.gpu, conv_f32.gpu, conv_mma.gpu,
// conv_wgmma.gpu, conv_depthwise.gpu.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/spatial/conv_gemm.h"
#include "wick/backend/gpu/spatial/conv_pack.h"
#include "wick/backend/gpu/spatial/conv_planes.h"
#include "wick/backend/gpu/spatial/library_conv.h"

namespace wick::gpu {
namespace {

const KernelFamily<ConvArgs, DType> kPlainConv("conv", "conv_{}");
const KernelFamily<ConvArgs, OneOf<kSmallTile, kLargeTile>> kLargeF32("conv_f32", "conv_f32_{}");
const KernelFamily<ConvArgs, OneOf<kSmallTile, kLargeTile>> kLargeF32Weight("conv_f32",
                                                                            "conv_f32_weight_{}");
const KernelFamily<ConvArgs, DType, OneOf<kSmallTile, kLargeTile>> kMatrixConv("conv_mma",
                                                                               "conv_{}_{}");
const KernelFamily<ConvArgs, DType, OneOf<kSmallTile, kLargeTile>> kPackedConv("conv_mma",
                                                                               "conv_packed_{}_{}");
const KernelFamily<ConvArgs, DType, OneOf<kSmallTile, kLargeTile>> kWgmmaConv("conv_wgmma",
                                                                              "conv_{}_{}");
const KernelFamily<ConvArgs, DType> kWgmmaPair("conv_wgmma", "conv_pair_{}");
const KernelFamily<ConvArgs, DType, OneOf<1, kDepthwiseMost>> kDepthwise("conv_depthwise",
                                                                         "conv_depthwise_{}_{}");
const KernelFamily<ConvArgs, DType> kDepthwiseWeight("conv_depthwise", "conv_depthwise_weight_{}");
const KernelFamily<ConvCombineArgs, DType> kCombine("conv", "conv_combine_{}");

/// Rows of a and of b that a thread block takes.
struct Tile {
  int64_t a, b;
  int64_t count(const ConvGemm& g) const { return divide_up(g.m, a) * divide_up(g.most_rows, b); }
};

/// Launches the gemms of a job by a kernel. each: phases that a thread block takes.
void launch(Gpu& gpu, const ConvJob& job, const Kernel<ConvArgs>& kernel, const Tile& tile,
            unsigned threads = kLoopThreads, unsigned shared_bytes = 0, int64_t each = 1) {
  static_assert(kDepthwiseThreads == kLoopThreads);
  ConvGemm g = job.gemm;
  const DType dtype = job.a.dtype;
  void* const out = advance(job.out.data, job.out.dtype, job.out.layout.offset());
  const void* const a = advance(job.a.data, dtype, job.a.layout.offset());
  const void* const b = advance(job.b.data, dtype, job.b.layout.offset());
  const int64_t phases = job.phases() / each, matrices = job.gemms() / job.phases();
  const int64_t tiles = tile.count(g);
  const int64_t phases_at_once = std::clamp<int64_t>(kMostBlocks / tiles, 1, phases);
  const int64_t at_once = std::max<int64_t>(kMostBlocks / (tiles * phases_at_once), 1);
  for (int64_t first = 0; first < matrices; first += at_once) {
    for (int64_t phase = 0; phase < phases; phase += phases_at_once) {
      const int64_t of_first = std::min(at_once, matrices - first);
      g.first = static_cast<uint32_t>(first);
      g.first_phase = static_cast<uint32_t>(phase);
      g.phases_at_once = static_cast<uint32_t>(std::min(phases_at_once, phases - phase));
      const int64_t blocks = tiles * of_first * g.phases_at_once;
      kernel.launch(gpu,
                    Grid{.blocks = {static_cast<unsigned>(blocks), 1, 1},
                         .threads = threads,
                         .shared_bytes = shared_bytes,
                         .pdl = true},
                    {out, a, b, g});
    }
  }
}

/// The dtype in which a dtype's slabs are summed.
DType sum_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// Makes a job store the sums of its slabs, densely, to memory for elements of `shape`.
void store_sums(ConvJob& job, void* sums, const Shape& shape, bool is_weight) {
  ConvGemm& g = job.gemm;
  const int64_t w = shape[3], plane = shape[2] * w, of_each = shape[1] * plane;
  g.partial = 1;
  g.out_slab = shape[0] * of_each;
  g.out_m = is_weight ? of_each : plane;
  g.out_outer = is_weight ? plane : of_each;
  g.out_group = g.m * g.out_m;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t step = i == 0 ? w : 1;
    g.axis[i].out_step = (g.phases[i].count != 0 ? g.phases[i].stride : 1) * step;
    g.phases[i].out_tap = step;
  }
  job.out = {sums, sum_dtype(job.out.dtype), Layout::contiguous(shape)};
}

/// out = Σ of the sums of all slabs, in their order.
void combine(Gpu& gpu, const View& out, const void* sums, int64_t slabs) {
  int64_t first = 0;
  collapse<1>({&out.layout})
      .for_each_piece([&](const StridedIndex<1>& elements, const std::array<int64_t, 1>& start) {
        const auto blocks = static_cast<unsigned>(divide_up(elements.elems, kCombineThreads));
        kCombine(out.dtype).launch(
            gpu, Grid{.blocks = {blocks, 1, 1}, .threads = kCombineThreads, .pdl = true},
            {advance(out.data, out.dtype, start[0]), sums, elements,
             static_cast<uint64_t>(out.layout.elems()), static_cast<uint64_t>(first),
             static_cast<uint32_t>(slabs)});
        first += elements.elems;
      });
}

/// Calls multiply(job) for a job of conv2d or conv2d_input. If it has few tiles, its terms are
/// divided into slabs first.
template <class Multiply>
void in_slabs(Gpu& gpu, const ConvJob& job, const Multiply& multiply) {
  const ConvSlabs slabs = slabs_of_few_tiles(job);
  if (slabs.count == 1) return multiply(job);
  const Shape& shape = job.out.layout.shape();
  const int64_t bytes = info(sum_dtype(job.out.dtype)).block_bytes;
  const Scratch sums(gpu, static_cast<size_t>(slabs.count * shape.elems() * bytes));
  ConvJob sum = job;
  sum.gemm.slabs = static_cast<uint32_t>(slabs.count);
  sum.gemm.slab_terms = static_cast<uint32_t>(slabs.terms);
  store_sums(sum, sums.data(), shape, false);
  multiply(sum);
  combine(gpu, job.out, sums.data(), slabs.count);
}

/// Whether a matrix unit multiplies a job.
bool takes_matrix_unit(const Gpu& gpu, const ConvJob& job) {
  const DType dtype = job.a.dtype;
  return (dtype == DType::f16 || dtype == DType::bf16) && has_matrix_unit(gpu) && job.is_near();
}

/// The side of a square tile. Large tiles are faster if there are enough to keep the device busy.
int64_t square_side(const Gpu& gpu, const ConvJob& job) {
  const Tile large = {kLargeTile, kLargeTile};
  const int64_t count = large.count(job.gemm) * job.gemms();
  return job.gemm.m > kSmallTile && count >= gpu.info.multiprocessors ? kLargeTile : kSmallTile;
}

/// The number of times that a device with `each` thread blocks on a multiprocessor is filled.
int64_t rounds(const Gpu& gpu, const ConvJob& job, const Tile& tile, int64_t each) {
  const int64_t count = tile.count(job.gemm) * job.gemms();
  return divide_up(count, each * gpu.info.multiprocessors);
}

/// Launches the gemms of packed operands.
void multiply_packed(Gpu& gpu, const ConvJob& job) {
  const ConvGemm& g = job.gemm;
  const DType dtype = job.a.dtype;
  if (!gpu.has(Feature::wgmma) || forced_main_loop() == MainLoop::mma) {
    const int64_t side = square_side(gpu, job);
    return launch(gpu, job, kPackedConv(dtype, side), {side, side});
  }
  const ConvPhases& along_w = g.phases[1];
  if (along_w.count == 2 && along_w.stride == 2 && along_w.outputs % 2 == 0 && g.slabs == 1 &&
      g.m > kSmallTile) {
    return launch(gpu, job, kWgmmaPair(dtype), {kLargeTile, kLargeTile},
                  conv_wgmma_threads(kLargeTile), conv_wgmma_bytes(kLargeTile, kLargeTile), 2);
  }
  // Two small tiles, which a multiprocessor holds at once, take about as long as a large one.
  const auto tile_of = [](uint32_t rows) { return Tile{rows, conv_wgmma_columns(rows)}; };
  const bool large = g.m > kSmallTile && rounds(gpu, job, tile_of(kLargeTile), 1) <=
                                             rounds(gpu, job, tile_of(kSmallTile), 2);
  const uint32_t rows = large ? kLargeTile : kSmallTile;
  launch(gpu, job, kWgmmaConv(dtype, rows), tile_of(rows), conv_wgmma_threads(rows),
         conv_wgmma_bytes(rows, conv_wgmma_columns(rows)));
}

/// Whether kernels with large tiles of f32 multiply a job.
bool takes_large_f32(const ConvJob& job) {
  return job.a.dtype == DType::f32 && job.gemm.m > 16 && job.rows() >= kConvF32Columns / 2 &&
         job.is_near();
}

/// Launches the gemms of an f32 job with large tiles, by a kernel of `family`.
void launch_large_f32(Gpu& gpu, const ConvJob& job,
                      const KernelFamily<ConvArgs, OneOf<kSmallTile, kLargeTile>>& family) {
  // Two small tiles, which a multiprocessor holds at once, take as long as a large one.
  const bool large =
      job.gemm.m > kSmallTile && rounds(gpu, job, {kLargeTile, kConvF32Columns}, 1) <=
                                     rounds(gpu, job, {kSmallTile, kConvF32Columns}, 2);
  const uint32_t rows = large ? kLargeTile : kSmallTile;
  launch(gpu, job, family(rows), {rows, kConvF32Columns}, conv_f32_threads(rows));
}

/// Whether packing the operands costs little beside the multiplications.
bool worth_packing(const ConvJob& job) {
  const Shape& filters = job.a.layout.shape();
  return job.gemm.outer_terms >= kConvPiece && job.gemm.m >= 16 && filters[2] * filters[3] > 1;
}

/// Launches the gemms of conv2d or conv2d_input.
void multiply_conv(GpuBackend& backend, const ConvJob& job) {
  Gpu& gpu = backend.gpu();
  const ConvGemm& g = job.gemm;
  const DType dtype = job.a.dtype;
  const bool matrix = takes_matrix_unit(gpu, job);
  // With so few channels, tiles of gemms would be mostly empty.
  const int64_t most = matrix && job.terms() > 64 ? 2 : 8;
  if (g.m <= most && job.is_near()) {
    const uint32_t channels = g.m == 1 ? 1 : kDepthwiseMost;
    return launch(gpu, job, kDepthwise(dtype, channels),
                  {channels, int64_t{kDepthwiseThreads} * depthwise_each(channels)});
  }
  if (!matrix) {
    if (takes_large_f32(job)) {
      const TurnedFilters turned(backend, job);
      if (turned.job().is_near()) {
        return in_slabs(gpu, turned.job(),
                        [&](const ConvJob& slabs) { launch_large_f32(gpu, slabs, kLargeF32); });
      }
    }
    return in_slabs(gpu, job, [&](const ConvJob& slabs) {
      launch(gpu, slabs, kPlainConv(dtype), {kSmallTile, kSmallTile});
    });
  }
  if (worth_packing(job)) {
    const PackedConv packed(backend, job);
    if (packed.job().is_near()) {
      return in_slabs(gpu, packed.job(),
                      [&](const ConvJob& slabs) { multiply_packed(gpu, slabs); });
    }
  }
  in_slabs(gpu, job, [&](const ConvJob& slabs) {
    const int64_t side = square_side(gpu, slabs);
    launch(gpu, slabs, kMatrixConv(dtype, side), {side, side});
  });
}

/// Launches the gemms of conv2d_weight.
void multiply_weight(Gpu& gpu, const ConvJob& job) {
  const DType dtype = job.a.dtype;
  if (takes_depthwise_weight(job)) {
    return launch(gpu, job, kDepthwiseWeight(dtype), {1, kDepthwiseTaps});
  }
  const Tile tile = {kSmallTile, kSmallTile};
  if (takes_matrix_unit(gpu, job)) return launch(gpu, job, kMatrixConv(dtype, kSmallTile), tile);
  if (takes_large_f32(job) && job.has_near_rows()) {
    return launch_large_f32(gpu, job, kLargeF32Weight);
  }
  launch(gpu, job, kPlainConv(dtype), tile);
}

/// A range of an image's batch, rows and columns.
struct Part {
  std::array<int64_t, 3> first, size;

  Layout of(const Layout& layout) const {
    return layout.narrow(0, first[0], size[0])
        .narrow(2, first[1], size[1])
        .narrow(3, first[2], size[2]);
  }
  Layout batch_of(const Layout& layout) const { return layout.narrow(0, first[0], size[0]); }
};

/// Calls visit(part) for parts of an image [b, c, h, w] of at most `most` pixels.
template <class Visit>
void for_each_part(const Shape& image, int64_t most, const Visit& visit) {
  const std::array<int64_t, 3> size = {image[0], image[2], image[3]};
  std::array<int64_t, 3> step = size;
  for (size_t d = 0; d < 3; ++d) {
    int64_t inner = 1;
    for (size_t i = d + 1; i < 3; ++i) inner *= std::max<int64_t>(size[i], 1);
    step[d] = std::clamp<int64_t>(most / inner, 1, std::max<int64_t>(size[d], 1));
  }
  for (int64_t b = 0; b < size[0]; b += step[0]) {
    for (int64_t y = 0; y < size[1]; y += step[1]) {
      for (int64_t x = 0; x < size[2]; x += step[2]) {
        visit(Part{{b, y, x},
                   {std::min(step[0], size[0] - b), std::min(step[1], size[1] - y),
                    std::min(step[2], size[2] - x)}});
      }
    }
  }
}

/// The most pixels that the tiles of a launch take.
int64_t most_pixels(int64_t m) {
  return std::max<int64_t>(kMostBlocks / divide_up(m, kSmallTile), 1) * kSmallTile;
}

/// The distance of adjacent pixels in an image whose rows are `h_step` and whose columns are
/// `w_step` apart; nothing if it isn't constant.
std::optional<int64_t> pixel_step(const ConvGemm& g, int64_t h_step, int64_t w_step) {
  const int64_t h = g.axis[0].rows, w = g.axis[1].rows;
  if (w == 1) return h_step;
  if (h == 1 || h_step == w * w_step) return w_step;
  return std::nullopt;
}

/// Multiplies a 1×1 convolution of all pixels as a batch of gemms. False if the pixels of an image
/// don't have one distance, or if the convolution isn't 1×1.
bool multiply_pointwise(Gpu& gpu, const ConvJob& job, const ConvParams& params) {
  const ConvGemm& g = job.gemm;
  for (size_t i = 0; i < 2; ++i) {
    const ConvAxis& axis = g.axis[i];
    if (axis.terms != 1 || axis.rows != axis.size || params.stride[i] != 1 ||
        params.padding[i] != 0) {
      return false;
    }
  }
  if (g.phases[0].taps > 1 || g.phases[1].taps > 1) return false;
  const auto b_pixel = pixel_step(g, g.axis[0].b_step, g.axis[1].b_step),
             out_pixel = pixel_step(g, g.axis[0].out_step, g.axis[1].out_step);
  if (!b_pixel || !out_pixel) return false;
  // Gemms of f32 have no large tiles of so few rows.
  if (g.m <= kSmallTile && takes_large_f32(job)) return false;
  GemmJob gemm;
  gemm.out = job.out.data;
  gemm.a_dtype = gemm.b_dtype = job.a.dtype;
  Gemm& p = gemm.shape;
  const auto pixels = static_cast<uint32_t>(int64_t{g.axis[0].rows} * g.axis[1].rows);
  p.k = g.outer_terms;
  gemm.batch.start = {job.out.layout.offset(), job.a.layout.offset(), job.b.layout.offset(), 0};
  gemm.batch.add(g.outer_rows, {g.out_outer, 0, g.b_row, 0});
  gemm.batch.add(job.groups, {g.out_group, g.a_group, g.b_group, 0});
  gemm.a = job.a.data, gemm.b = job.b.data;
  p.m = g.m, p.n = pixels;
  p.a_row = g.a_row, p.a_k = g.a_outer;
  p.b_row = *b_pixel, p.b_k = g.b_outer;
  p.out_row = g.out_m, p.out_col = *out_pixel;
  // Neighbouring threads store neighbouring columns.
  if (g.out_m == 1 && *out_pixel != 1) gemm.transpose();
  gemm.store_to(job.out.dtype);
  const bool halves = job.a.dtype == DType::f16 || job.a.dtype == DType::bf16;
  gemm.few_rows_by_wgmma = halves && p.m >= 16 && p.m <= kSmallTile;
  if (!gemm.few_rows_by_wgmma || !multiply_wgmma(gpu, gemm)) multiply(gpu, gemm);
  return true;
}

void multiply_forward(GpuBackend& backend, const View& out, const ConstView& x, const ConstView& w,
                      const ConvParams& params) {
  const Shape& shape = out.layout.shape();
  if (convolve_planes(backend.gpu(), out, x, w, params)) return;
  for_each_part(shape, most_pixels(shape[1] / params.groups), [&](const Part& part) {
    ConvParams here = params;
    for (size_t i = 0; i < 2; ++i) here.padding[i] -= part.first[1 + i] * params.stride[i];
    const ConvJob job = forward_job({out.data, out.dtype, part.of(out.layout)},
                                    {x.data, x.dtype, part.batch_of(x.layout)}, w, here);
    if (!multiply_pointwise(backend.gpu(), job, here)) multiply_conv(backend, job);
  });
}

void multiply_for_input(GpuBackend& backend, const View& grad_x, const ConstView& grad_out,
                        const ConstView& w, const ConvParams& params) {
  const Shape& shape = grad_x.layout.shape();
  for_each_part(shape, most_pixels(shape[1] / params.groups), [&](const Part& part) {
    ConvParams here = params;
    for (size_t i = 0; i < 2; ++i) here.padding[i] += part.first[1 + i];
    const ConvJob job =
        input_job({grad_x.data, grad_x.dtype, part.of(grad_x.layout)},
                  {grad_out.data, grad_out.dtype, part.batch_of(grad_out.layout)}, w, here);
    if (!multiply_pointwise(backend.gpu(), job, here)) multiply_conv(backend, job);
  });
}

void multiply_for_weight(GpuBackend& backend, const View& grad_w, const ConstView& x,
                         const ConstView& grad_out, const ConvParams& params) {
  Gpu& gpu = backend.gpu();
  const Shape& shape = grad_w.layout.shape();
  const int64_t elems = shape.elems();
  // Terms are counted below 2^31.
  constexpr int64_t kMostTerms = int64_t{1} << 30;
  std::vector<std::pair<ConvJob, ConvSlabs>> jobs;
  int64_t slabs = 0;
  for_each_part(grad_out.layout.shape(), kMostTerms, [&](const Part& part) {
    ConvParams here = params;
    for (size_t i = 0; i < 2; ++i) here.padding[i] -= part.first[1 + i] * params.stride[i];
    const ConvJob job = weight_job(grad_w, {x.data, x.dtype, part.batch_of(x.layout)},
                                   {grad_out.data, grad_out.dtype, part.of(grad_out.layout)}, here);
    jobs.emplace_back(job, slabs_of(job));
    slabs += jobs.back().second.count;
  });
  if (slabs == 0) return backend.fill(grad_w, Scalar(0));
  if (slabs == 1) return multiply_weight(gpu, jobs[0].first);
  const DType dtype = sum_dtype(grad_w.dtype);
  const Scratch sums(gpu, static_cast<size_t>(slabs * elems * info(dtype).block_bytes));
  int64_t done = 0;
  for (auto& [job, parts] : jobs) {
    job.gemm.slabs = static_cast<uint32_t>(parts.count);
    job.gemm.slab_terms = static_cast<uint32_t>(parts.terms);
    store_sums(job, advance(sums.data(), dtype, done * elems), shape, true);
    multiply_weight(gpu, job);
    done += parts.count;
  }
  combine(gpu, grad_w, sums.data(), slabs);
}

/// Runs a convolution by the vendor's library, or else by `own`.
template <class Own>
void convolve(GpuBackend& backend, ConvForm form, const View& result, const ConstView& first,
              const ConstView& second, const ConvParams& params, const Own& own) {
  if (result.layout.elems() == 0) return;
  if (may_use_conv_library(backend.gpu(), result.dtype) &&
      convolve_by_library(backend, form, result, first, second, params, own)) {
    return;
  }
  own();
}

}  // namespace

void GpuBackend::conv2d(const View& out, const ConstView& x, const ConstView& w,
                        const ConvParams& params) {
  convolve(*this, ConvForm::forward, out, x, w, params,
           [&] { multiply_forward(*this, out, x, w, params); });
}

void GpuBackend::conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                              const ConvParams& params) {
  convolve(*this, ConvForm::input, grad_x, grad_out, w, params,
           [&] { multiply_for_input(*this, grad_x, grad_out, w, params); });
}

void GpuBackend::conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                               const ConvParams& params) {
  convolve(*this, ConvForm::weight, grad_w, x, grad_out, params,
           [&] { multiply_for_weight(*this, grad_w, x, grad_out, params); });
}

}  // namespace wick::gpu
