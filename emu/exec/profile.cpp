#include "emu/exec/profile.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "emu/exec/launch.h"

namespace emu {
namespace {

/// Segments of memory, by their numbers.
struct Segments {
  std::array<uint64_t, 2 * kLanes> numbers;
  size_t count = 0;
};

/// Returns the distinct segments of `size` bytes that the lanes touch. Addresses mostly rise with
/// the lane.
Segments pieces(uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes,
                uint64_t size) {
  Segments result;
  auto& [touched, count] = result;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t first = base + offsets[std::countr_zero(lanes)];
    for (uint64_t piece = first / size; piece <= (first + bytes - 1) / size; ++piece) {
      if (count == 0 || touched[count - 1] != piece) touched[count++] = piece;
    }
  }
  const auto end = touched.begin() + static_cast<ptrdiff_t>(count);
  std::sort(touched.begin(), end);
  count = static_cast<size_t>(std::unique(touched.begin(), end) - touched.begin());
  return result;
}

/// Returns the cycles that the lanes' dwords take in 32 banks: the largest number of distinct
/// dwords in one bank.
uint32_t bank_cycles(const std::array<uint64_t, kLanes>& dwords, size_t count) {
  std::array<uint32_t, 32> load{};
  uint32_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool seen = std::find(dwords.begin(), dwords.begin() + static_cast<ptrdiff_t>(i),
                                dwords[i]) != dwords.begin() + static_cast<ptrdiff_t>(i);
    if (!seen) most = std::max(most, ++load[dwords[i] % 32]);
  }
  return most;
}

}  // namespace

Class class_of(std::string_view name) {
  if (name.starts_with("v_wmma") || name.starts_with("v_mfma")) return Class::matrix;
  if (name.starts_with("v_")) return Class::valu;
  if (name.starts_with("ds_")) return Class::lds;
  if (name.starts_with("scratch_")) return Class::scratch;
  for (std::string_view memory : {"global_", "flat_", "buffer_", "tbuffer_", "image_"}) {
    if (name.starts_with(memory)) return Class::vmem;
  }
  if (name.starts_with("s_load") || name.starts_with("s_buffer_load")) return Class::smem;
  for (std::string_view branch : {"s_cbranch", "s_branch", "s_setpc", "s_swappc", "s_call"}) {
    if (name.starts_with(branch)) return Class::branch;
  }
  for (std::string_view wait : {"s_wait", "s_nop", "s_delay", "s_clause", "s_barrier", "s_sleep"}) {
    if (name.starts_with(wait)) return Class::wait;
  }
  return Class::salu;
}

uint32_t matrix_cycles(std::string_view name) {
  if (name.starts_with("v_wmma")) return name.find("iu4") == name.npos ? 32 : 16;
  if (!name.starts_with("v_mfma")) return 0;
  if (name.find("32x32x") != name.npos) return 64;
  if (name.find("16x16x") != name.npos) return 32;
  return name.find("f64") == name.npos ? 8 : 16;  // 4x4
}

LineSet::LineSet()
    : id_([] {
        static std::atomic<uint64_t> made{0};
        return ++made;
      }()) {}

LineSet::Region& LineSet::region(uint64_t number) {
  {
    std::shared_lock lock(mutex_);
    if (const auto found = regions_.find(number); found != regions_.end()) return *found->second;
  }
  std::lock_guard lock(mutex_);
  std::unique_ptr<Region>& made = regions_[number];
  if (made == nullptr) made = std::make_unique<Region>();
  return *made;
}

void LineSet::add(uint64_t line) {
  struct Last {
    uint64_t set = 0, number = 0;
    Region* region = nullptr;
  };
  static thread_local Last last;
  const uint64_t number = line / 4096;
  if (last.set != id_ || last.number != number) last = {id_, number, &region(number)};
  std::atomic<uint64_t>& word = (*last.region)[line % 4096 / 64];
  const uint64_t bit = uint64_t{1} << line % 64;
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) {
    count_.fetch_add(1, std::memory_order_relaxed);
  }
}

Stop count_block(Wave* w, const Op* op) {
  auto* block = static_cast<Block*>(op->data);
  block->runs.fetch_add(1, std::memory_order_relaxed);
  block->lanes.fetch_add(static_cast<uint64_t>(std::popcount(w->exec())),
                         std::memory_order_relaxed);
  EMU_NEXT;
}

void count_global(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes,
                  bool store) {
  MemoryCounts& counts = *w->launch->memory_counts;
  const uint64_t asked = static_cast<uint64_t>(std::popcount(lanes)) * bytes;
  (store ? counts.store_bytes : counts.load_bytes).fetch_add(asked, std::memory_order_relaxed);
  const Segments lines = pieces(base, offsets, lanes, bytes, 64);
  for (size_t i = 0; i < lines.count; ++i) counts.lines.add(lines.numbers[i]);
  counts.pieces64.fetch_add(lines.count, std::memory_order_relaxed);
  counts.pieces128.fetch_add(pieces(base, offsets, lanes, bytes, 128).count,
                             std::memory_order_relaxed);
}

void count_lds(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes) {
  MemoryCounts& counts = *w->launch->memory_counts;
  // Wider elements take several passes of 32 dwords.
  const uint32_t dwords_each = std::max(1u, bytes / 4);
  std::array<uint64_t, kLanes> dwords;
  size_t count = 0;
  uint64_t conflicts = 0;
  const auto pass = [&] {
    if (count > 0) conflicts += bank_cycles(dwords, count) - 1;
    count = 0;
  };
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t first = (base + offsets[std::countr_zero(lanes)]) / 4;
    if (count + dwords_each > kLanes) pass();
    for (uint32_t i = 0; i < dwords_each; ++i) dwords[count++] = first + i;
  }
  pass();
  counts.lds_accesses.fetch_add(1, std::memory_order_relaxed);
  counts.lds_conflicts.fetch_add(conflicts, std::memory_order_relaxed);
}

}  // namespace emu
