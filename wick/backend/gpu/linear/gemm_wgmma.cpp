// Gemms of f16 and bf16 by Hopper's wgmma. Its tensor copies need operands aligned to 16 bytes.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/linear/pack_rows.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// Which operands are transposed. The labels in kernel names have a letter for a, then one for b.
enum class Turned { none, b, a, both };
constexpr std::array<std::string_view, 4> kernel_labels(Turned) { return {"nn", "nt", "tn", "tt"}; }

const KernelFamily<WgmmaGemmArgs, DType, OneOf<128, 256>, Turned> kWgmmaGemm("gemm_wgmma",
                                                                             "gemm_{}_{}_{}");

constexpr int64_t kTileRows = kWgmmaRows;
/// With fewer rows or columns a tile would leave the unit mostly idle.
constexpr int64_t kLeastSide = 65;
/// The size of the other operand from which copying an operand costs little compared with the gemm.
constexpr int64_t kLeastToPack = 512;

/// Operand 1 or 2 of the batch.
struct Operand {
  int64_t rows, k, row_stride, k_stride, matrices, matrix_stride;
  const void* data;
};

Operand operand_of(const GemmJob& job, size_t which) {
  const Gemm& p = job.shape;
  const bool is_a = which == 1;
  Operand o = {};
  o.rows = is_a ? p.m : p.n;
  o.k = is_a ? int64_t{p.k} * job.terms : p.k;
  o.row_stride = is_a ? p.a_row : p.b_row;
  o.k_stride = is_a ? p.a_k : p.b_k;
  o.matrices = 1;
  if (!job.batch.dims.empty() && job.batch.dims[0].stride[which] != 0) {
    o.matrices = job.batch.dims[0].size;
    o.matrix_stride = job.batch.dims[0].stride[which];
  }
  o.data = advance(is_a ? job.a : job.b, job.a_dtype, job.batch.start[which]);
  return o;
}

/// Copies an operand to lines that are aligned to 16 bytes.
Lines pack(Gpu& gpu, const Operand& o, DType dtype, std::optional<Scratch>& memory) {
  Lines lines;
  lines.turned = o.row_stride == 1;
  lines.columns = lines.turned ? o.rows : o.k;
  lines.lines = lines.turned ? o.k : o.rows;
  lines.line_stride = (lines.columns + 7) / 8 * 8;
  lines.matrices = o.matrices;
  lines.matrix_stride = lines.lines * lines.line_stride;
  memory.emplace(gpu, static_cast<size_t>(lines.matrices * lines.matrix_stride) * 2);
  lines.data = memory->data();
  const int64_t line = lines.turned ? o.k_stride : o.row_stride;
  const int64_t column = lines.turned ? o.row_stride : o.k_stride;
  const Layout layout(Shape{o.matrices, lines.lines, lines.columns},
                      {o.matrix_stride, line, column}, 0);
  pack_rows(gpu, memory->data(), dtype, lines.line_stride, {o.data, dtype, layout});
  return lines;
}

/// Multiplies a batch of at most one dim. False if an operand can't be copied by TMA.
bool multiply_batch(Gpu& gpu, const GemmJob& job) {
  const Gemm& p = job.shape;
  const bool pack_any = forced_main_loop() == MainLoop::wgmma;
  std::optional<Scratch> memory[2];
  Lines lines[2];
  for (size_t i = 0; i < 2; ++i) {
    const Operand o = operand_of(job, i + 1);
    if (const auto as_is = lines_of(job, i + 1)) {
      lines[i] = *as_is;
    } else if (pack_any || (i == 0 ? p.n : p.m) >= kLeastToPack) {
      lines[i] = pack(gpu, o, job.a_dtype, memory[i]);
    } else {
      return false;
    }
  }
  const int64_t row_tiles = (p.m + kTileRows - 1) / kTileRows * job.batch.elems;
  const int64_t columns = wgmma_columns(gpu, row_tiles, p.n, false);
  CopyMap map_a, map_b;
  if (!make_map(gpu, map_a, lines[0], kTileRows) || !make_map(gpu, map_b, lines[1], columns)) {
    return false;
  }
  const int64_t tiles = row_tiles * ((p.n + columns - 1) / columns);
  const auto turned = static_cast<Turned>((lines[0].turned ? 2 : 0) + (lines[1].turned ? 1 : 0));
  job.batch.for_each_piece(
      [&](const StridedIndex<4>& strided, const std::array<int64_t, 4>& start) {
        Gemm now = p;
        now.k *= job.terms;
        now.batch = strided;
        if (now.residual != nullptr) now.residual += start[3];
        void* const out = advance(job.out, job.out_dtype, start[0]);
        kWgmmaGemm(job.a_dtype, columns, turned)
            .launch(gpu,
                    Grid{.blocks = {static_cast<unsigned>(
                                        std::min<int64_t>(tiles, gpu.info.multiprocessors)),
                                    1, 1},
                         .threads = kWgmmaThreads,
                         .shared_bytes = kWgmmaStageBytes + kWgmmaBesides,
                         .pdl = true},
                    {map_a, map_b, out, now, p.k, uint32_t{lines[0].matrices > 1},
                     uint32_t{lines[1].matrices > 1}, static_cast<uint32_t>(tiles)});
      });
  return true;
}

}  // namespace

bool make_map(const Gpu& gpu, CopyMap& map, const Lines& lines, int64_t tile_rows) {
  CopyBoxes boxes;
  boxes.data = lines.data;
  boxes.rank = 3;
  boxes.dims[0] = {static_cast<uint64_t>(lines.columns), 2, 64};
  boxes.dims[1] = {static_cast<uint64_t>(lines.lines), static_cast<uint64_t>(lines.line_stride) * 2,
                   lines.turned ? 64 : static_cast<uint32_t>(tile_rows)};
  boxes.dims[2] = {static_cast<uint64_t>(lines.matrices),
                   static_cast<uint64_t>(lines.matrix_stride) * 2, 1};
  return gpu.driver.make_copy_map(map, boxes);
}

bool takes_wgmma(const Gpu& gpu, int64_t rows, int64_t columns, int64_t k) {
  if (!gpu.has(Feature::wgmma) || k == 0) return false;
  const MainLoop forced = forced_main_loop();
  return forced == MainLoop::wgmma ||
         (forced == MainLoop::best && rows >= kLeastSide && columns >= kLeastSide && k >= 64);
}

int64_t wgmma_columns(const Gpu& gpu, int64_t row_tiles, int64_t columns, bool few_rows) {
  const auto rounds = [&](int64_t width) {
    const int64_t tiles = row_tiles * ((columns + width - 1) / width);
    return (tiles + gpu.info.multiprocessors - 1) / gpu.info.multiprocessors;
  };
  // A round of the larger tiles takes 20 / 11 of the time. If most rows of a tile don't exist, the
  // time is that of loads of b, of which larger tiles keep more in flight.
  return rounds(256) * 20 <= rounds(128) * (few_rows ? 13 : 11) ? 256 : 128;
}

bool multiply_wgmma(Gpu& gpu, const GemmJob& job) {
  const Gemm& p = job.shape;
  const int64_t rows = job.few_rows_by_wgmma ? kLeastSide : job.rows_of_order();
  if (!takes_wgmma(gpu, rows, p.n, p.k)) return false;
  if (job.batch.dims.size() <= 1) return multiply_batch(gpu, job);
  // One gemm for each index of the outermost dim.
  GemmJob inner = job;
  const auto [size, stride] = job.batch.dims[0];
  inner.batch.dims.erase(inner.batch.dims.begin());
  inner.batch.elems /= size;
  for (int64_t i = 0; i < size; ++i) {
    if (!multiply_wgmma(gpu, inner)) return false;
    for (size_t o = 0; o < 4; ++o) inner.batch.start[o] += stride[o];
    if (inner.shape.scale != nullptr) inner.shape.scale += inner.batch.elems * p.m;
  }
  return true;
}

}  // namespace wick::gpu
