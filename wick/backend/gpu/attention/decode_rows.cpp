#include "wick/backend/gpu/attention/decode_rows.h"

#include <algorithm>

#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/kernels/attention/decode_rows_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<DecodeRowsArgs, OneOf<1, 2, 4>, DType> kKernels("decode_rows",
                                                                   "decode_rows_{}_{}");

constexpr int64_t kMostQueries = 8;
constexpr int64_t kBlocksAtOnce = 3;  // thread blocks that a multiprocessor holds

}  // namespace

DecodeRowsPlan::DecodeRowsPlan(const Gpu& gpu, const AttentionCall& c, DType dtype,
                               bool may_split) {
  const bool whole_chunks = c.pages.tables == nullptr || c.pages.keys % kAttentionChunk == 0;
  if (c.queries > kMostQueries || c.d == 0 || c.e == 0 || c.d > kDecodeRowsWidth ||
      c.e > kDecodeRowsWidth || !whole_chunks || !takes_rows_layout(c, dtype)) {
    return;
  }
  const int64_t all_rows = int64_t{c.group} * c.queries;
  rows = all_rows <= 2 ? all_rows : 4;
  tiles = divide_up(all_rows, rows);
  const auto element = static_cast<uint32_t>(info(dtype).block_bytes);
  shared = decode_rows_bytes(static_cast<uint32_t>(rows), c.d, c.e, element,
                             gpu.device.kind == DeviceKind::hip);
  const int64_t sets = int64_t{c.batch} * (c.heads / c.group) * tiles;
  // Eight times as many thread blocks as run at once balance the load; partial results of a chunk
  // are small beside its keys.
  const int64_t wanted = 8 * kBlocksAtOnce * gpu.info.multiprocessors;
  const int64_t chunks = std::max<int64_t>(1, divide_up(c.keys, kAttentionChunk));
  if (may_split) splits = std::clamp<int64_t>(divide_up(wanted, sets), 1, chunks);
  blocks = sets * splits;
  takes = shared <= gpu.info.shared_bytes && blocks < int64_t{1} << 30;
}

void launch_decode_rows(Gpu& gpu, const DecodeRowsPlan& plan, const AttentionCall& c, DType dtype,
                        const AttentionPartials& partials) {
  kKernels(plan.rows, dtype)
      .launch(gpu,
              Grid{.blocks = {static_cast<unsigned>(plan.blocks), 1, 1},
                   .threads = kDecodeRowsThreads,
                   .shared_bytes = static_cast<unsigned>(plan.shared),
                   .pdl = true},
              {c, partials, static_cast<uint32_t>(plan.tiles), static_cast<uint32_t>(plan.splits)});
}

}  // namespace wick::gpu
