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

// Kernels of calls with masks or slopes.
const KernelFamily<BiasedFlashArgs, OneOf<64, 128>, DType> kBiasedFlash("flash",
                                                                        "flash_bias_{}_{}");
const KernelFamily<BiasedFlashArgs, OneOf<64, 128>, DType> kBiasedFlashMma("flash_mma",
                                                                           "flash_mma_bias_{}_{}");
const KernelFamily<BiasedFlashArgs, OneOf<64, 128>, DType, OneOf<0, 1>> kBiasedFlashWgmma(
    "flash_wgmma", "flash_wgmma_bias_{}_{}_{}");
const KernelFamily<BiasedCombineArgs> kBiasedFlashCombine("flash", "flash_combine_bias");

constexpr int64_t kLeastSplitKeys = 256;

}  // namespace

FlashPlan::FlashPlan(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected) {
  if (c.queries <= kMostOrderedQueries || cache == DType::f32 || c.d > 128 || c.e > 128 ||
      !gpu.has(Feature::matrix_unit) || !holds_chunks(c.pages, kFlashKeys) ||
      !takes_flash_layout(c, cache)) {
    return;
  }
  const bool cuda = gpu.device.kind == DeviceKind::cuda;
  const std::string_view wanted = environment_choice("WICK_GPU_ATTENTION");
  // flash_mma.gpu has never been timed on a card, so AMD's devices take it only on request.
  const bool on = cuda ? wanted != "plain" : wanted == "mma";
  if (!on || ordered_attention()) return;
  width = c.d <= 64 && c.e <= 64 ? 64 : 128;
  const auto wide = static_cast<uint32_t>(width);
  const uint32_t split = flash_terms(cache == DType::f16);
  const bool whole = !projected && c.dtype == attention_dtype(cache);
  const int64_t wgmma_bytes = flash_wgmma_bytes(wide, whole ? 1 : split);
  // With fewer rows than a thread block takes, the smaller blocks of flash.gpu are faster.
  const bool enough = int64_t{c.queries} * c.group >= kFlashWgmmaRows || wanted == "wgmma";
  wgmma = gpu.has(Feature::wgmma) && wanted != "mma" && enough &&
          holds_chunks(c.pages, kFlashWgmmaKeys) && wgmma_bytes <= gpu.info.shared_bytes;
  rows = wgmma ? kFlashWgmmaRows : kFlashRows;
  threads = wgmma ? kFlashWgmmaThreads : kFlashThreads;
  shared = wgmma  ? wgmma_bytes
           : cuda ? flash_bytes(wide, split)
                  : flash_mma_bytes(wide, whole ? 1 : split);
  takes = shared <= gpu.info.shared_bytes;
}

void launch_flash(Gpu& gpu, const FlashPlan& plan, const AttentionCall& c, const CacheCall& cache,
                  DType dtype, const ScoreBias* bias) {
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
  const bool cuda = gpu.device.kind == DeviceKind::cuda;
  const int64_t turned = c.k_key == 1 ? 1 : 0;
  if (bias != nullptr) {
    const BiasedFlashArgs biased{args, *bias};
    if (plan.wgmma) {
      kBiasedFlashWgmma(plan.width, dtype, turned).launch(gpu, grid, biased);
    } else {
      (cuda ? kBiasedFlash : kBiasedFlashMma)(plan.width, dtype).launch(gpu, grid, biased);
    }
    if (splits > 1) {
      kBiasedFlashCombine().launch(gpu, combine_grid(c, true), {{c, where}, *bias});
    }
    return;
  }
  if (plan.wgmma) {
    kFlashWgmma(plan.width, dtype, turned).launch(gpu, grid, args);
  } else {
    (cuda ? kFlash : kFlashMma)(plan.width, dtype).launch(gpu, grid, args);
  }
  if (splits > 1) kFlashCombine().launch(gpu, combine_grid(c, true), {c, where});
}

}  // namespace wick::gpu
