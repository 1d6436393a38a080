#include "wick/backend/gpu/attention/cache_blocks.h"

#include "wick/backend/gpu/attention/attention_call.h"
#include "wick/backend/gpu/attention/partials.h"
#include "wick/backend/gpu/kernels/attention/cache_blocks_abi.h"

namespace wick::gpu {
namespace {

const KernelFamily<StoreBlocksArgs, DType> kStoreBlocks("cache_blocks", "store_blocks_{}");
const KernelFamily<ExpandBlocksArgs, DType> kExpandBlocks("cache_blocks", "expand_blocks_{}");

BlockCache make_cache(const ConstView& pages, const BlockPages& of) {
  const Layout& l = pages.layout;
  BlockCache cache{};
  cache.data = static_cast<uint8_t*>(const_cast<void*>(at_offset(pages)));
  cache.page = l.stride(0), cache.head = l.stride(1);
  cache.by_element = of.by_element ? 1 : 0;
  cache.step = count32(of.step());
  cache.heads = count32(of.heads);
  cache.blocks = count32(of.width / BlockPages::kValues);
  return cache;
}

static_assert(kBlockPageKeys == BlockPages::kPositions);

int64_t elements_of(const BlockPages& of) {
  return of.pages * of.heads * BlockPages::kPositions * of.width;
}

}  // namespace

ConstView block_view(const ConstView& pages, const BlockPages& of) {
  const Layout& l = pages.layout;
  const int64_t position = of.by_element ? 1 : of.step(), element = of.by_element ? of.step() : 1;
  return {pages.data, pages.dtype,
          Layout({of.pages, of.heads, BlockPages::kPositions, of.width},
                 {l.stride(0), l.stride(1), position, element}, l.offset())};
}

void store_blocks(Gpu& gpu, const View& pages, const BlockPages& of, const ConstView& rows,
                  const ConstView& tables, const ConstView& positions) {
  const Layout& rl = rows.layout;
  const ConstView view = block_view(pages, of);
  AttentionCall call{};
  set_pages(gpu, "store_in_pages", pages, call, view, view, tables, {}, positions,
            int64_t{1} << 30);
  StoreBlocksArgs args{};
  args.to = make_cache(pages, of);
  args.rows = static_cast<const float*>(at_offset(rows));
  args.row = rl.stride(0), args.head = rl.stride(1), args.element = rl.stride(2);
  args.positions = static_cast<const uint32_t*>(at_offset(positions));
  args.pages = call.pages;
  args.t = count32(rl.shape()[0]);
  args.each = count32(rl.shape()[0] / tables.layout.shape()[0]);
  args.limit = call.keys;
  const int64_t blocks = int64_t{args.t} * args.to.heads * args.to.blocks;
  kStoreBlocks(of.dtype).launch(
      gpu,
      Grid{.blocks = {count32(divide_up(blocks, kBlockCacheThreads)), 1, 1},
           .threads = kBlockCacheThreads},
      args);
}

ExpandedPages::ExpandedPages(Gpu& gpu, const ConstView& pages, const BlockPages& of,
                             const PagedSequences& sequences)
    : of_(of), memory_(gpu, static_cast<size_t>(bytes_of(DType::f16, elements_of(of)))) {
  const ConstView in = block_view(pages, of);
  AttentionCall call{};
  set_pages(gpu, "attention_of_pages", pages, call, in, in, sequences.tables, sequences.lengths,
            sequences.lengths, int64_t{1} << 30);
  ExpandBlocksArgs args{};
  args.from = make_cache(pages, of);
  args.to = memory_.data();
  args.pages = call.pages;
  args.entries = count32(sequences.tables.layout.shape()[1]);
  const int64_t blocks = sequences.tables.layout.shape()[0] * int64_t{args.entries} *
                         args.from.heads * args.from.blocks;
  if (blocks == 0) return;
  kExpandBlocks(of.dtype).launch(
      gpu, Grid{.blocks = {count32(blocks), 1, 1}, .threads = kBlockCacheThreads}, args);
}

ConstView ExpandedPages::view() const {
  constexpr int64_t kPositions = BlockPages::kPositions;
  const int64_t head = of_.width * kPositions;
  const int64_t position = of_.by_element ? 1 : of_.width,
                element = of_.by_element ? kPositions : 1;
  return {memory_.data(), DType::f16,
          Layout({of_.pages, of_.heads, kPositions, of_.width},
                 {of_.heads * head, head, position, element}, 0)};
}

std::optional<ConstView> ExpandedPages::part(const ConstView& pages, const ConstView& v,
                                             const BlockPages& of_v) const {
  const Layout &a = pages.layout, &b = v.layout;
  const int64_t bytes = b.offset() - a.offset();
  const bool fits = of_.by_element && of_v.by_element && v.data == pages.data &&
                    of_v.dtype == of_.dtype && of_v.pages == of_.pages && of_v.heads == of_.heads &&
                    bytes >= 0 && bytes % of_.step() == 0;
  if (!fits) return std::nullopt;
  for (int d = 0; d < 5; ++d) {
    if (a.shape()[d] > 1 && b.shape()[d] > 1 && a.stride(d) != b.stride(d)) return std::nullopt;
  }
  const int64_t first = bytes / of_.step() * BlockPages::kValues;
  if (first + of_v.width > of_.width) return std::nullopt;
  ConstView all = view();
  all.layout = all.layout.narrow(3, first, of_v.width);
  return all;
}

}  // namespace wick::gpu
