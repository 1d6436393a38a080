#include "wick/backend/gpu/attention/flash.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/base/environment.h"
#include "wick/base/precision.h"

namespace wick::gpu {
namespace {

/// Terms of the exponentials in flash_wgmma.gpu: as many as the bound needs, or one.
enum class Terms { exact, fast };
constexpr std::array<std::string_view, 2> kernel_labels(Terms) { return {"exact", "fast"}; }

const KernelFamily<FlashArgs, OneOf<64, 128, 256>, DType> kFlash("flash", "flash_{}_{}");
const KernelFamily<FlashArgs, OneOf<64, 128, 256>, DType> kFlashMma("flash_mma", "flash_mma_{}_{}");
const KernelFamily<WgmmaFlashArgs, Terms, OneOf<64, 128, 256>, DType, OneOf<0, 1>> kFlashWgmma(
    "flash_wgmma", "flash_wgmma_{}_{}_{}_{}");
const KernelFamily<CombineArgs> kFlashCombine("flash", "flash_combine");

// Kernels of calls with masks, slopes or sinks.
const KernelFamily<BiasedFlashArgs, OneOf<64, 128, 256>, DType> kBiasedFlash("flash",
                                                                             "flash_bias_{}_{}");
const KernelFamily<BiasedFlashArgs, OneOf<64, 128, 256>, DType> kBiasedFlashMma(
    "flash_mma", "flash_mma_bias_{}_{}");
const KernelFamily<BiasedWgmmaFlashArgs, Terms, OneOf<64, 128, 256>, DType, OneOf<0, 1>>
    kBiasedFlashWgmma("flash_wgmma", "flash_wgmma_bias_{}_{}_{}_{}");
const KernelFamily<BiasedCombineArgs> kBiasedFlashCombine("flash", "flash_combine_bias");

constexpr int64_t kLeastSplitKeys = 256;
constexpr int64_t kLeastWgmmaRows = 128;
/// Keys and values of so many bytes are read by thread blocks that run at the same time. They take
/// less than half of an H100's cache.
constexpr int64_t kSectionBytes = int64_t{16} << 20;

uint32_t section_of(const AttentionCall& c) {
  const int64_t head = int64_t{c.keys} * (c.d + c.e) * 2,
                heads = int64_t{c.batch} * (c.heads / c.group);
  return static_cast<uint32_t>(
      std::clamp<int64_t>(kSectionBytes / std::max<int64_t>(head, 1), 1, heads));
}

uint64_t bytes16(int64_t elements) { return static_cast<uint64_t>(elements) * 2; }

/// The map of keys or values: boxes of 64 neighbouring elements in memory by `lines`.
bool make_key_map(const Gpu& gpu, CopyMap& map, const AttentionCall& c, bool keys, uint32_t lines) {
  const bool paged = c.pages.tables != nullptr, turned = keys && c.k_key == 1;
  const uint64_t places = paged ? c.pages.keys : c.keys;
  const int64_t head = keys ? c.k_head : c.v_head, page = keys ? c.pages.k_page : c.pages.v_page;
  const int64_t outer = paged ? page : keys ? c.k_batch : c.v_batch;
  CopyBoxes boxes;
  boxes.data = keys ? c.k : c.v;
  boxes.rank = 4;
  if (turned) {
    boxes.dims[0] = {places, 2, 64};
    boxes.dims[1] = {c.d, bytes16(c.k_step), lines};
  } else {
    boxes.dims[0] = {keys ? c.d : c.e, 2, 64};
    boxes.dims[1] = {places, bytes16(keys ? c.k_key : c.v_key), lines};
  }
  boxes.dims[2] = {c.heads / c.group, bytes16(head), 1};
  boxes.dims[3] = {paged ? c.pages.count : c.batch, bytes16(outer), 1};
  return gpu.driver.make_copy_map(map, boxes);
}

/// The map of queries: boxes of 64 elements of the rows of a thread block.
bool make_query_map(const Gpu& gpu, CopyMap& map, const AttentionCall& c, uint32_t rows) {
  if (c.q_step != 1 || rows % c.group != 0) return false;
  CopyBoxes boxes;
  boxes.data = c.q;
  boxes.rank = 5;
  boxes.dims[0] = {c.d, 2, 64};
  boxes.dims[1] = {c.group, bytes16(c.q_head), c.group};
  boxes.dims[2] = {c.queries, bytes16(c.q_query), rows / c.group};
  boxes.dims[3] = {c.heads / c.group, bytes16(c.q_head * c.group), 1};
  boxes.dims[4] = {c.batch, bytes16(c.q_batch), 1};
  return gpu.driver.make_copy_map(map, boxes);
}

/// Launches flash_wgmma.gpu. False if keys or values can't be copied by TMA.
bool launch_wgmma(Gpu& gpu, const FlashPlan& plan, const FlashArgs& flash, const Grid& grid,
                  DType dtype, const ScoreBias* bias) {
  const AttentionCall& c = flash.call;
  const bool turned = c.k_key == 1;
  WgmmaFlashArgs args = {};
  args.flash = flash;
  const auto width = static_cast<uint32_t>(plan.width);
  const uint32_t keys = flash_wgmma_keys(width);
  if (!make_key_map(gpu, args.k, c, true, turned ? width : keys) ||
      !make_key_map(gpu, args.v, c, false, keys)) {
    return false;
  }
  args.copied =
      plan.whole && make_query_map(gpu, args.q, c, static_cast<uint32_t>(plan.rows)) ? 1 : 0;
  const Terms terms = plan.fast ? Terms::fast : Terms::exact;
  if (bias != nullptr) {
    kBiasedFlashWgmma(terms, plan.width, dtype, turned ? 1 : 0).launch(gpu, grid, {args, *bias});
  } else {
    kFlashWgmma(terms, plan.width, dtype, turned ? 1 : 0).launch(gpu, grid, args);
  }
  return true;
}

}  // namespace

FlashPlan::FlashPlan(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected,
                     bool biased, bool may_wgmma) {
  const bool cuda = gpu.device.kind == DeviceKind::cuda;
  const uint32_t largest = std::max(c.d, c.e);
  if (c.queries <= kMostOrderedQueries || cache == DType::f32 || largest > 256 ||
      !gpu.has(Feature::matrix_unit) || !holds_chunks(c.pages, kFlashKeys) ||
      !takes_flash_layout(c, cache)) {
    return;
  }
  const std::string_view wanted = environment_choice("WICK_GPU_ATTENTION");
  const bool on = wanted != "plain";
  if (!on || ordered_attention()) return;
  // Kernels without terms have neither a soft cap nor a scale that isn't positive.
  terms = biased || c.soft_cap > 0.0f || !(c.scale > 0.0f);
  width = largest <= 64 ? 64 : largest <= 128 ? 128 : 256;
  const auto wide = static_cast<uint32_t>(width);
  const uint32_t split = flash_terms(cache == DType::f16);
  whole = !projected && c.dtype == attention_dtype(cache);
  fast = c.soft_cap == 0.0f && precision() == Precision::fast && !(terms && width > 128);
  const uint32_t groups = flash_wgmma_groups(wide, fast, terms);
  const int64_t wgmma_bytes = flash_wgmma_bytes(wide, 64 * groups, whole || fast ? 1 : split);
  // With fewer rows than a thread block takes, the smaller blocks of flash.gpu are faster.
  const bool enough = int64_t{c.queries} * c.group >= kLeastWgmmaRows || wanted == "wgmma";
  wgmma = may_wgmma && gpu.has(Feature::wgmma) && wanted != "mma" && enough &&
          holds_chunks(c.pages, kFlashWgmmaKeys) && wgmma_bytes <= gpu.info.shared_bytes;
  const auto wave = static_cast<uint32_t>(gpu.info.wave);
  rows = wgmma ? 64 * groups : cuda ? kFlashRows : flash_mma_rows(wide, wave);
  threads = wgmma ? 128 * (groups + 1) : cuda ? kFlashThreads : flash_mma_threads(wide, wave);
  shared = wgmma  ? wgmma_bytes
           : cuda ? flash_bytes(wide, whole ? 1 : split)
                  : flash_mma_bytes(wide, whole ? 1 : split, wave, cache == DType::f16);
  takes = shared <= gpu.info.shared_bytes;
}

void launch_flash(Gpu& gpu, const FlashPlan& plan, const AttentionCall& c, const CacheCall& cache,
                  DType dtype, const ScoreBias* bias) {
  const ScoreBias none = {};
  if (plan.terms && bias == nullptr) bias = &none;
  const int64_t multiprocessors = gpu.info.multiprocessors,
                at_once = plan.wgmma ? 1 : gpu.info.shared_bytes / plan.shared;
  const int64_t blocks = divide_up(int64_t{c.queries} * c.group, plan.rows);
  const int64_t key_heads = int64_t{c.batch} * (c.heads / c.group);
  const int64_t thread_blocks = blocks * key_heads;
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
  const FlashArgs args{c,
                       cache,
                       where,
                       static_cast<uint32_t>(blocks),
                       static_cast<uint32_t>(splits),
                       paired ? static_cast<uint32_t>(key_heads) : section_of(c),
                       alone};
  const bool cuda = gpu.device.kind == DeviceKind::cuda;
  if (plan.wgmma) {
    if (!launch_wgmma(gpu, plan, args, grid, dtype, bias)) {
      const FlashPlan other(gpu, c, dtype, cache.qkv != nullptr, plan.terms, false);
      return launch_flash(gpu, other, c, cache, dtype, bias);
    }
  } else if (bias != nullptr) {
    (cuda ? kBiasedFlash : kBiasedFlashMma)(plan.width, dtype).launch(gpu, grid, {args, *bias});
  } else {
    (cuda ? kFlash : kFlashMma)(plan.width, dtype).launch(gpu, grid, args);
  }
  if (splits == 1) return;
  if (bias != nullptr) {
    kBiasedFlashCombine().launch(gpu, combine_grid(c, true), {{c, where}, *bias});
  } else {
    kFlashCombine().launch(gpu, combine_grid(c, true), {c, where});
  }
}

}  // namespace wick::gpu
