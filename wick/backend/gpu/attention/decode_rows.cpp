#include "wick/backend/gpu/attention/decode_rows.h"

#include <algorithm>

#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/attention/flash.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/kernels/attention/decode_rows_abi.h"

namespace wick::gpu {
namespace {

const KernelFamily<DecodeRowsArgs, OneOf<1, 2, 4>, DType> kDecodeRowsKernels("decode_rows",
                                                                             "decode_rows_{}_{}");

}  // namespace

bool launch_decode_rows(Gpu& gpu, const AttentionCall& c, DType dtype) {
  if (c.queries > kMostOrderedQueries || c.d == 0 || c.d > kDecodeRowsWidth ||
      c.e > kDecodeRowsWidth || !holds_chunks(c.pages, kAttentionChunk) ||
      !takes_rows_layout(c, dtype)) {
    return false;
  }
  const int64_t all_rows = int64_t{c.group} * c.queries, rows = all_rows <= 2 ? all_rows : 4;
  const int64_t shared = decode_rows_bytes(static_cast<uint32_t>(rows), c.d, c.e,
                                           static_cast<uint32_t>(info(dtype).block_bytes),
                                           gpu.device.kind == DeviceKind::hip);
  if (shared > gpu.info.shared_bytes) return false;
  const int64_t tiles = divide_up(all_rows, rows);
  const int64_t sets = int64_t{c.batch} * (c.heads / c.group) * tiles;
  // Eight times as many thread blocks as run at once balance the load. The partial results of a
  // chunk are small compared with its keys.
  const int64_t wanted =
      8 * int64_t{decode_rows_at_once(static_cast<uint32_t>(rows))} * gpu.info.multiprocessors;
  const int64_t splits =
      Partials::fit(c) ? std::clamp<int64_t>(divide_up(wanted, sets), 1, Partials::chunks_of(c))
                       : 1;
  const Partials partials(gpu, c, splits > 1);
  kDecodeRowsKernels(rows, dtype)
      .launch(gpu,
              Grid{.blocks = {count32(sets * splits), 1, 1},
                   .threads = kDecodeRowsThreads,
                   .shared_bytes = static_cast<unsigned>(shared),
                   .pdl = true},
              {c, partials.get(), static_cast<uint32_t>(tiles), static_cast<uint32_t>(splits)});
  if (splits > 1) combine(gpu, c, partials);
  return true;
}

}  // namespace wick::gpu
