#include "wick/backend/gpu/attention/flash.h"

#include <algorithm>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

const KernelFamily<FlashArgs, OneOf<64, 128>, DType> kFlash("flash", "flash_{}_{}");
const KernelFamily<FlashArgs, OneOf<64, 128>, DType> kFlashMma("flash_mma", "flash_mma_{}_{}");
const KernelFamily<FlashArgs, OneOf<64, 128>, DType, OneOf<0, 1>> kFlashWgmma(
    "flash_wgmma", "flash_wgmma_{}_{}_{}");
const KernelFamily<CombineArgs> kFlashCombine("flash", "flash_combine");

constexpr int64_t kLeastSplitKeys = 256;

/// How a kernel takes a call: the width to which heads are padded, its rows per thread block, and
/// its shared memory.
struct FlashPlan {
  bool cuda, wgmma;
  int64_t width, rows, shared, threads;

  FlashPlan(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected) {
    width = c.d <= 64 && c.e <= 64 ? 64 : 128;
    const auto wide = static_cast<uint32_t>(width);
    const uint32_t split = flash_terms(cache == DType::f16);
    const bool whole = !projected && c.dtype == attention_dtype(cache);
    const std::string_view wanted = environment_choice("WICK_GPU_ATTENTION");
    const int64_t wgmma_bytes = flash_wgmma_bytes(wide, whole ? 1 : split);
    // With fewer rows than a thread block takes, the smaller blocks of flash.gpu are faster.
    const bool enough = int64_t{c.queries} * c.group >= kFlashWgmmaRows || wanted == "wgmma";
    wgmma = gpu.has(Feature::wgmma) && wanted != "mma" && enough &&
            holds_chunks(c.pages, kFlashWgmmaKeys) && wgmma_bytes <= gpu.info.shared_bytes;
    cuda = gpu.device.kind == DeviceKind::cuda;
    rows = wgmma ? kFlashWgmmaRows : kFlashRows;
    threads = wgmma ? kFlashWgmmaThreads : kFlashThreads;
    shared = wgmma  ? wgmma_bytes
             : cuda ? flash_bytes(wide, split)
                    : flash_mma_bytes(wide, whole ? 1 : split);
  }
};

}  // namespace

bool takes_flash(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected) {
  const std::string_view wanted = environment_choice("WICK_GPU_ATTENTION");
  // flash_mma.gpu has never been timed on a card, so AMD's devices take it only on request.
  const bool on = gpu.device.kind == DeviceKind::cuda ? wanted != "plain" : wanted == "mma";
  return on && gpu.has(Feature::matrix_unit) && !ordered_attention() &&
         c.queries > kMostOrderedQueries && cache != DType::f32 && c.d <= 128 && c.e <= 128 &&
         holds_chunks(c.pages, kFlashKeys) && takes_flash_layout(c, cache) &&
         FlashPlan(gpu, c, cache, projected).shared <= gpu.info.shared_bytes;
}

void launch_flash(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype) {
  const FlashPlan plan(gpu, c, dtype, cache.qkv != nullptr);
  const int64_t multiprocessors = gpu.info.multiprocessors,
                at_once = plan.wgmma ? 1 : gpu.info.shared_bytes / plan.shared;
  const int64_t blocks = divide_up(int64_t{c.queries} * c.group, plan.rows);
  const int64_t thread_blocks = blocks * c.batch * (c.heads / c.group);
  const int64_t most_splits = std::max<int64_t>(1, c.keys / kLeastSplitKeys);
  const int64_t wanted = (plan.wgmma ? 1 : 2) * multiprocessors;
  const int64_t splits =
      Partials::fit(c) ? std::clamp<int64_t>(wanted / thread_blocks, 1, most_splits) : 1;
  const Partials partials(gpu, c, splits > 1);
  AttentionPartials where = partials.get();
  where.chunks = static_cast<uint32_t>(splits);
  const bool paired = splits == 1 && at_once >= 2 && thread_blocks > multiprocessors &&
                      thread_blocks <= 2 * multiprocessors;
  const auto alone = static_cast<uint32_t>(paired ? multiprocessors : thread_blocks);
  const Grid grid{.blocks = {count32(thread_blocks * splits), 1, 1},
                  .threads = static_cast<unsigned>(plan.threads),
                  .shared_bytes = static_cast<unsigned>(plan.shared),
                  .pdl = true};
  const FlashArgs args{
      c, cache, where, static_cast<uint32_t>(blocks), static_cast<uint32_t>(splits), alone};
  if (plan.wgmma) {
    kFlashWgmma(plan.width, dtype, c.k_key == 1 ? 1 : 0).launch(gpu, grid, args);
  } else if (!plan.cuda) {
    kFlashMma(plan.width, dtype).launch(gpu, grid, args);
  } else {
    kFlash(plan.width, dtype).launch(gpu, grid, args);
  }
  if (splits > 1) {
    kFlashCombine().launch(gpu,
                           Grid{.blocks = {count32(Partials::rows_of(c)), 1, 1},
                                .threads = kCombineThreads,
                                .pdl = true},
                           {c, where});
  }
}

}  // namespace wick::gpu
