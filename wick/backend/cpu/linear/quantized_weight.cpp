// Weights of block dtypes: packing, and multiplication with int8 activations.

#include <algorithm>
#include <atomic>
#include <vector>

#include "wick/backend/cpu/linear/amx_kernels.h"
#include "wick/backend/cpu/linear/prefetch.h"
#include "wick/backend/cpu/linear/quantized_kernels.h"
#include "wick/backend/cpu/linear/quantized_pack.h"
#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/backend/cpu/linear/rows.h"
#include "wick/backend/cpu/linear/stacked_rows.h"
#include "wick/backend/cpu/linear/weight.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/cpu/weight_memory.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

struct QuantizedWeight final : PreparedWeight {
  QuantizedPacking packing{};
  WeightMemory memory;
};

ActivationType activation_type(DType dtype) {
  return dtype == DType::f32   ? ActivationType::f32
         : dtype == DType::f16 ? ActivationType::f16
                               : ActivationType::bf16;
}

/// The activations of a call, and their quantisation to tiles.
struct Activations {
  const QuantizedKernels& kernels;
  const QuantizedTypeKernels& type;
  const ConstView& view;
  int64_t k, blocks;
  const RowStarts& rows;
  bool direct;  // rows are dense f32, which is read in place

  int64_t tile_bytes(int64_t columns) const { return columns * blocks * type.tile_block_bytes; }
  /// Scratch bytes of `quantize` for a tile of `width` columns.
  int64_t row_bytes(int64_t width) const { return direct ? 0 : align64(width * k * 4); }

  /// Quantises rows [begin, begin + width) into one tile; width is at most 16.
  void quantize(int64_t begin, int64_t width, uint8_t* tile, uint8_t* row_scratch) const {
    const float* columns[16];
    for (int64_t c = 0; c < width; ++c) {
      const int64_t at = view.layout.offset() + rows.at(begin + c);
      if (direct) {
        columns[c] = static_cast<const float*>(view.data) + at;
        continue;
      }
      auto* row = reinterpret_cast<float*>(row_scratch) + c * k;
      kernels.load_row(activation_type(view.dtype),
                       static_cast<const uint8_t*>(view.data) + at * info(view.dtype).block_bytes,
                       view.layout.stride(view.layout.rank() - 1), k, row);
      columns[c] = row;
    }
    type.quantize_tile(columns, width, blocks, tile);
  }

  void quantize_tile(const ColumnSplit& split, int64_t first, int64_t tile, uint8_t* tiles,
                     uint8_t* row_scratch) const {
    const int64_t wide = std::min(tile, split.wide);
    const int64_t begin = wide * split.width + (tile - wide) * (split.width - 1);
    const int64_t width = tile < split.wide ? split.width : split.width - 1;
    quantize(first + begin, width, tiles + tile_bytes(begin), row_scratch);
  }
};

#if defined(__x86_64__) && !defined(WICK_ONLY_ISA)
/// The kernels of v4_vnni with the prompts of amx.
QuantizedKernels with_amx_prompts() {
  QuantizedKernels table = v4_vnni::quantized_kernels;
  for (int i = 0; i < kBlockDTypeCount; ++i) {
    const AmxKernels::Type& tiles = amx::amx_kernels.types[i];
    if (tiles.prompt == nullptr) continue;
    table.types[i].prompt = tiles.prompt;
    table.types[i].prompt_width = kAmxColumns;
    table.types[i].prompt_columns = kAmxColumns;
    table.types[i].scratch_block_bytes = tiles.scratch_block_bytes;
  }
  return table;
}
#endif

const QuantizedKernels& kernels_of([[maybe_unused]] Isa isa) {
#if defined(__x86_64__) && !defined(WICK_ONLY_ISA)
  if (isa == Isa::amx) {
    static const QuantizedKernels amx = with_amx_prompts();
    return amx;
  }
#endif
  return WICK_SELECT_KERNELS(isa, quantized_kernels, dots);
}

/// Values that a thread quantises in less time than synchronising all threads takes.
constexpr int64_t kPrivateElems = 8192;
/// Columns of one pass over a weight. Bounds the memory for tiles.
constexpr int64_t kPassColumns = 1024;
/// A prompt is cut along its columns only if a weight has too few panels for all threads.
constexpr int64_t kSegmentColumns = 64;

void decode(const Activations& x, const GemmJob& whole, int64_t panels, int64_t panel_bytes) {
  const ColumnSplit split = split_columns(whole.columns, kDecodeWidth);
  // Pieces of at least 64 KiB: long enough for prefetchers, short enough to balance threads.
  const int64_t grain = std::max<int64_t>(1, (64 << 10) / std::max<int64_t>(panel_bytes, 1));
  ThreadPool& pool = ThreadPool::global();
  const int parts =
      static_cast<int>(std::min<int64_t>(pool.threads(), (panels + grain - 1) / grain));
  const int64_t piece = std::max(grain, (panels + parts * 4 - 1) / (parts * 4));
  const bool shared = parts > 1 && whole.columns * x.k > kPrivateElems;
  const int64_t tile_bytes = align64(x.tile_bytes(whole.columns));
  const int64_t part_bytes = (shared ? 0 : tile_bytes) + x.row_bytes(split.width);
  const Workspace memory(static_cast<size_t>((shared ? tile_bytes : 0) + parts * part_bytes));
  uint8_t* shared_tiles = memory.bytes();
  uint8_t* part_memory = shared_tiles + (shared ? tile_bytes : 0);

  std::atomic<int64_t> next_tile{0};
  const auto quantize_shared = [&](int part) {
    uint8_t* rows = part_memory + part * part_bytes;
    for (int64_t t; (t = next_tile.fetch_add(1, std::memory_order_relaxed)) < split.tiles;) {
      x.quantize_tile(split, 0, t, shared_tiles, rows);
    }
  };
  if (shared) pool.run(parts, quantize_shared);

  std::atomic<int64_t> next_panel{0};
  const auto multiply = [&](int part) {
    GemmJob job = whole;
    job.tiles = shared_tiles;
    bool ready = shared;
    for (;;) {
      job.begin = next_panel.fetch_add(piece, std::memory_order_relaxed);
      if (job.begin >= panels) return;
      job.end = std::min(panels, job.begin + piece);
      if (!ready) {
        uint8_t* tiles = part_memory + part * part_bytes;
        for (int64_t t = 0; t < split.tiles; ++t) {
          x.quantize_tile(split, 0, t, tiles, tiles + tile_bytes);
        }
        job.tiles = tiles;
        ready = true;
      }
      x.type.decode(job);
    }
  };
  if (parts == 1) {
    multiply(0);
  } else {
    pool.run(parts, multiply);
  }
}

void prompt(const Activations& x, const GemmJob& whole, int64_t panels) {
  ThreadPool& pool = ThreadPool::global();
  const int parts = pool.threads();
  constexpr int64_t kGroup = 2;  // panels of one kernel call
  const int64_t groups = (panels + kGroup - 1) / kGroup;
  const int64_t pass_columns = std::min(whole.columns, kPassColumns + x.type.prompt_columns);
  const int64_t tile_bytes = align64(x.tile_bytes(pass_columns));
  const int64_t unpacked_bytes = align64(x.type.scratch_block_bytes * x.blocks);
  const int64_t part_bytes = unpacked_bytes + x.row_bytes(x.type.prompt_width);
  const Workspace memory(static_cast<size_t>(tile_bytes + parts * part_bytes));
  uint8_t* tiles = memory.bytes();
  uint8_t* part_memory = tiles + tile_bytes;

  for (int64_t begin = 0; begin < whole.columns;) {
    // The last pass includes columns that would be too few for one more pass.
    const int64_t left = whole.columns - begin;
    const int64_t columns = left <= pass_columns ? left : std::min(left, kPassColumns);
    const int64_t segments =
        parts == 1 ? 1
                   : std::clamp<int64_t>(4 * parts / groups, 1,
                                         std::max<int64_t>(1, columns / kSegmentColumns));
    const auto segment_begin = [&](int64_t s) { return columns * s / segments; };

    std::atomic<int64_t> next_segment{0};
    std::atomic<int64_t> next{0};
    const int64_t tiles_each = (columns / segments + 1) / (x.type.prompt_width - 1) + 1;
    pool.run(parts, [&](int part) {
      uint8_t* rows = part_memory + part * part_bytes + unpacked_bytes;
      for (int64_t i;
           (i = next_segment.fetch_add(1, std::memory_order_relaxed)) < segments * tiles_each;) {
        const int64_t first = segment_begin(i / tiles_each);
        const ColumnSplit split =
            split_columns(segment_begin(i / tiles_each + 1) - first, x.type.prompt_width);
        if (i % tiles_each >= split.tiles) continue;
        x.quantize_tile(split, begin + first, i % tiles_each, tiles + x.tile_bytes(first), rows);
      }
    });
    pool.run(parts, [&](int part) {
      GemmJob job = whole;
      job.scratch = part_memory + part * part_bytes;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < segments * groups;) {
        const int64_t first = segment_begin(i / groups);
        job.begin = i % groups * kGroup;
        job.end = std::min(panels, job.begin + kGroup);
        job.columns = segment_begin(i / groups + 1) - first;
        job.tiles = tiles + x.tile_bytes(first);
        job.out.first_column = begin + first;
        x.type.prompt(job);
      }
    });
    begin += columns;
  }
}

}  // namespace

std::unique_ptr<PreparedWeight> prepare_quantized(Isa, std::span<const ConstView> parts,
                                                  bool release) {
  auto weight = std::make_unique<QuantizedWeight>();
  const DType dtype = parts.front().dtype;
  const StackedRows rows(parts);
  weight->packing = quantized_packing(dtype);
  weight->dtype = dtype;
  weight->n = rows.count();
  weight->k = parts.front().layout.shape()[1];
  const int64_t blocks = weight->k / kBlockElems;
  const int64_t panels = (weight->n + kPanelRows - 1) / kPanelRows;
  const int64_t panel_bytes = weight->packing.panel_bytes(blocks);
  weight->bytes = static_cast<size_t>(panels * panel_bytes);
  weight->memory = WeightMemory(weight->bytes);

  const std::vector<uint8_t> zeros(static_cast<size_t>(bytes_of(dtype, weight->k)));
  pack_panels(rows, kPanelRows, panel_bytes, release, [&](int64_t panel) {
    StackedRows::Row read[kPanelRows];
    rows.read(panel * kPanelRows, read);
    const uint8_t* pointers[kPanelRows];
    for (int r = 0; r < kPanelRows; ++r) {
      pointers[r] = read[r].data != nullptr ? read[r].data : zeros.data();
    }
    weight->packing.pack_panel(pointers, blocks,
                               static_cast<uint8_t*>(weight->memory.data()) + panel * panel_bytes);
  });
  return weight;
}

void linear_quantized(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight) {
  const auto& packed = static_cast<const QuantizedWeight&>(weight);
  if (out.layout.elems() == 0) return;
  const QuantizedKernels& kernels = kernels_of(isa);
  const QuantizedTypeKernels& type = kernels.types[quant_index(weight.dtype)];
  const int64_t columns = out.layout.elems() / weight.n;
  const int64_t blocks = weight.k / kBlockElems;
  const int64_t panels = (weight.n + kPanelRows - 1) / kPanelRows;
  const int64_t panel_bytes = packed.packing.panel_bytes(blocks);
  const int last = out.layout.rank() - 1;

  const RowStarts x_rows(x.layout), out_rows(out.layout);
  const Activations activations{
      kernels,
      type,
      x,
      weight.k,
      blocks,
      x_rows,
      x.dtype == DType::f32 && (x.layout.stride(last) == 1 || weight.k == 1)};
  GemmJob job{};
  job.panels = static_cast<const uint8_t*>(packed.memory.data());
  job.rows = weight.n;
  job.blocks = blocks;
  job.columns = columns;
  job.prefetch_bytes = prefetch_bytes(kPrefetchBlocks);
  job.out = {static_cast<uint8_t*>(out.data) + bytes_of(out.dtype, out.layout.offset()),
             activation_type(out.dtype),
             out.layout.stride(last),
             out_rows.stride,
             out_rows.table(),
             0};
  if (columns >= type.prompt_columns) {
    prompt(activations, job, panels);
  } else {
    decode(activations, job, panels, panel_bytes);
  }
}

}  // namespace wick::cpu
