#include "wick/backend/gpu/attention/decode_warps.h"

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/attention/flash.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/kernels/attention/decode_warps_abi.h"

namespace wick::gpu {
namespace {

const KernelFamily<DecodeWarpsArgs, OneOf<1, 2, 4>, DType, OneOf<2, 4>> kDecodeWarpsKernels(
    "decode_warps", "decode_warps_{}_{}_{}");

}  // namespace

bool launch_decode_warps(Gpu& gpu, const AttentionCall& c, DType dtype) {
  if (!stages_attention(gpu) || c.queries > kMostOrderedQueries || c.d == 0 ||
      c.d > kChunkWarpWidth || c.e > kChunkWarpWidth || !holds_chunks(c.pages, kAttentionChunk) ||
      !takes_rows_layout(c, dtype) || !Partials::fit(c)) {
    return false;
  }
  const int64_t all_rows = int64_t{c.group} * c.queries, rows = all_rows <= 2 ? all_rows : 4;
  const int64_t shared = decode_warps_bytes(static_cast<uint32_t>(rows), c.d);
  const int64_t tiles = divide_up(all_rows, rows), chunks = Partials::chunks_of(c);
  const int64_t sets = int64_t{c.batch} * (c.heads / c.group) * tiles;
  if (shared > gpu.info.shared_bytes) return false;
  const int64_t splits = divide_up(chunks, kChunkWarps);
  // Measured on an H200: with several rows, the tail of the last warps takes longer than a kernel.
  const bool combines = rows == 1 && chunks <= kMostOwnChunks && sets <= Gpu::kZeros;
  const Partials partials(gpu, c, true);
  kDecodeWarpsKernels(rows, dtype, c.e <= 64 ? 2 : 4)
      .launch(gpu,
              Grid{.blocks = {count32(sets * splits), 1, 1},
                   .threads = kChunkWarpThreads,
                   .shared_bytes = static_cast<unsigned>(shared),
                   .pdl = true},
              {c, partials.get(), combines ? gpu.zeros() : nullptr, static_cast<uint32_t>(tiles),
               static_cast<uint32_t>(splits)});
  if (!combines) combine(gpu, c, partials);
  return true;
}

}  // namespace wick::gpu
