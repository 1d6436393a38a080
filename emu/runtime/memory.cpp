#include "emu/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <new>

namespace emu {
namespace {

constexpr size_t kChunk = size_t{2} << 20;  // committed at once
constexpr size_t kRoom = 256;               // after every block, at the least
constexpr size_t kSpread = 4;  // addresses for each byte: for room, freed blocks, and holes
constexpr size_t kHostBytes = size_t{32} << 30;
constexpr size_t kReturned = size_t{16} << 20;  // freed blocks of this size go back to the system

size_t up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

void* reserve(size_t bytes, int protection) {
  void* at = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

std::string kind_name(const Allocation& a) {
  switch (a.kind) {
    case MemoryKind::device:
      return "device " + std::to_string(a.device);
    case MemoryKind::managed:
      return "managed, device " + std::to_string(a.device);
    case MemoryKind::host:
      return "pinned host memory";
    case MemoryKind::registered:
      return "registered host memory";
    case MemoryKind::internal:
      return a.label;
  }
  return "";
}

}  // namespace

std::string describe(const Allocation& a) {
  return std::to_string(a.bytes) + " bytes (#" + std::to_string(a.serial) + ", " + kind_name(a) +
         ")";
}

Memory::Memory(std::vector<size_t> device_bytes, bool checks) : checks_(checks) {
  for (const size_t limit : device_bytes) {
    Region region;
    region.limit = limit;
    region.bytes = up(limit, kChunk) * kSpread;
    regions_.push_back(std::move(region));
  }
  Region host;
  host.bytes = host.limit = kHostBytes;
  regions_.push_back(std::move(host));
  for (const Region& region : regions_) bytes_ += region.bytes;
  void* arena = reserve(bytes_ + kChunk, PROT_NONE);
  if (arena == nullptr) throw std::bad_alloc();
  base_ = up(reinterpret_cast<uintptr_t>(arena), kChunk);
  uintptr_t at = base_;
  for (Region& region : regions_) {
    region.base = at;
    at += region.bytes;
    region.committed.resize(region.bytes / kChunk);
    add_gap(region, region.base, region.bytes);
  }
  shadow_.base = base_;
  shadow_.bytes = bytes_;
  if (!checks) return;
  shadow_.addressable = static_cast<uint8_t*>(reserve(bytes_ / 8 + 8, PROT_READ | PROT_WRITE));
  shadow_.initialised = static_cast<uint8_t*>(reserve(bytes_ / 8 + 8, PROT_READ | PROT_WRITE));
  if (shadow_.addressable == nullptr || shadow_.initialised == nullptr) throw std::bad_alloc();
}

Memory::~Memory() {
  munmap(reinterpret_cast<void*>(base_), bytes_);
  if (shadow_.addressable != nullptr) munmap(shadow_.addressable, bytes_ / 8);
  if (shadow_.initialised != nullptr) munmap(shadow_.initialised, bytes_ / 8);
}

Memory::Region& Memory::region_of(const Allocation& allocation) {
  if (allocation.kind == MemoryKind::host) return regions_.back();
  return regions_[static_cast<size_t>(allocation.device)];
}

bool Memory::commit(Region& region, uintptr_t from, uintptr_t to) {
  const size_t first = (from - region.base) / kChunk, last = (to - 1 - region.base) / kChunk;
  for (size_t i = first; i <= last; ++i) {
    if (region.committed[i]) continue;
    size_t end = i + 1;
    while (end <= last && !region.committed[end]) ++end;
    void* at = reinterpret_cast<void*>(region.base + i * kChunk);
    const size_t bytes = (end - i) * kChunk;
    if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    madvise(at, bytes, MADV_HUGEPAGE);
    std::fill(region.committed.begin() + static_cast<ptrdiff_t>(i),
              region.committed.begin() + static_cast<ptrdiff_t>(end), true);
    i = end - 1;
  }
  return true;
}

/// Gives back the chunks that lie wholly within, and makes touching them an error again.
void Memory::decommit(Region& region, uintptr_t from, uintptr_t to) {
  const size_t first = up(from - region.base, kChunk) / kChunk, last = (to - region.base) / kChunk;
  if (first >= last) return;
  void* at = reinterpret_cast<void*>(region.base + first * kChunk);
  mmap(at, (last - first) * kChunk, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  std::fill(region.committed.begin() + static_cast<ptrdiff_t>(first),
            region.committed.begin() + static_cast<ptrdiff_t>(last), false);
}

void Memory::add_gap(Region& region, uintptr_t base, size_t span) {
  region.gaps.emplace(base, span);
  region.gaps_by_size.emplace(span, base);
}

void Memory::remove_gap(Region& region, uintptr_t base) {
  const auto at = region.gaps.find(base);
  region.gaps_by_size.erase({at->second, base});
  region.gaps.erase(at);
}

/// Makes a freed span a gap, one with the gaps beside it.
void Memory::give_gap(Region& region, uintptr_t base, size_t span) {
  const auto after = region.gaps.lower_bound(base);
  uintptr_t from = base, to = base + span;
  if (after != region.gaps.begin()) {
    const auto [start, room] = *std::prev(after);
    if (start + room == base) from = start;
  }
  if (after != region.gaps.end() && after->first == to) {
    to += after->second;
    remove_gap(region, after->first);
  }
  if (from != base) remove_gap(region, from);
  add_gap(region, from, to - from);
}

/// An aligned address with that much room after it, in one of the smallest gaps that have it.
std::optional<uintptr_t> Memory::take_gap(Region& region, size_t span, size_t alignment) {
  const auto search = [&](size_t least, int tries) -> std::optional<uintptr_t> {
    auto gap = region.gaps_by_size.lower_bound({least, 0});
    for (; gap != region.gaps_by_size.end() && tries > 0; ++gap, --tries) {
      const auto [room, start] = *gap;
      const uintptr_t base = up(start, alignment), end = base + span;
      if (end > start + room) continue;
      remove_gap(region, start);
      if (base > start) add_gap(region, start, base - start);
      if (start + room > end) add_gap(region, end, start + room - end);
      return base;
    }
    return std::nullopt;
  };
  // Whether a gap that is hardly larger will do depends on where it starts: some of them are tried
  // before the first that is sure to, all of them only when there is none such.
  if (const auto base = search(span, 16)) return base;
  if (const auto base = search(span + alignment, 1)) return base;
  return search(span, std::numeric_limits<int>::max());
}

void Memory::mark(const Allocation& a) {
  if (!checks_) return;
  Shadow::set(shadow_.addressable, a.base - base_, a.bytes);
  Shadow::clear(shadow_.initialised, a.base - base_, a.bytes);
}

uintptr_t Memory::allocate(const Allocation& wanted, size_t alignment) {
  std::lock_guard lock(mutex_);
  Region& region = region_of(wanted);
  const size_t bytes = std::max<size_t>(wanted.bytes, 1);
  if (bytes > region.limit || up(bytes, 256) > region.limit - region.used) return 0;
  alignment = std::max<size_t>(alignment, bytes >= kChunk ? kChunk : bytes >= 4096 ? 4096 : 256);
  const size_t span = up(bytes, 256) + kRoom;
  std::optional<uintptr_t> base = take_gap(region, span, alignment);
  while (!base && !region.quarantine.empty()) {  // what is apart for the checks' sake goes first
    release(region, region.quarantined / 2);
    base = take_gap(region, span, alignment);
  }
  if (!base) return 0;
  if (!commit(region, *base, *base + span)) {
    give_gap(region, *base, span);
    return 0;
  }
  Block block{wanted, span};
  block.allocation.base = *base;
  block.allocation.bytes = bytes;
  block.allocation.serial = ++serial_;
  mark(block.allocation);
  region.used += up(bytes, 256);
  blocks_[*base] = std::move(block);
  return *base;
}

bool Memory::free(uintptr_t address) {
  std::lock_guard lock(mutex_);
  const auto at = blocks_.find(address);
  if (at == blocks_.end()) return false;
  Block block = std::move(at->second);
  blocks_.erase(at);
  Region& region = region_of(block.allocation);
  const size_t bytes = block.allocation.bytes;
  region.used -= up(bytes, 256);
  if (checks_) {
    Shadow::clear(shadow_.addressable, address - base_, bytes);
    Shadow::clear(shadow_.initialised, address - base_, bytes);
  }
  if (checks_ || bytes >= kReturned) decommit(region, address, address + up(bytes, 256));
  const size_t keep = checks_ ? region.limit / 2 : 0;
  region.quarantined += block.span;
  region.quarantine.push_back(std::move(block));
  release(region, keep);
  return true;
}

/// Makes freed blocks that are kept apart gaps, the oldest first, until so many bytes are left.
void Memory::release(Region& region, size_t keep) {
  while (region.quarantined > keep) {
    const Block& oldest = region.quarantine.front();
    give_gap(region, oldest.allocation.base, oldest.span);
    region.quarantined -= oldest.span;
    region.quarantine.pop_front();
  }
}

bool Memory::add_registered(uintptr_t address, size_t bytes, unsigned flags, int device) {
  std::lock_guard lock(mutex_);
  const auto after = registered_.lower_bound(address);
  if (after != registered_.end() && after->first < address + bytes) return false;
  if (after != registered_.begin() && std::prev(after)->second.holds(address)) return false;
  Allocation a{address, bytes, MemoryKind::registered, device, flags, ++serial_, nullptr, ""};
  registered_[address] = std::move(a);
  return true;
}

bool Memory::remove_registered(uintptr_t address) {
  std::lock_guard lock(mutex_);
  return registered_.erase(address) != 0;
}

std::optional<Allocation> Memory::find(uintptr_t address) const {
  std::lock_guard lock(mutex_);
  if (in_arena(address)) {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return std::nullopt;
    const Allocation& a = std::prev(after)->second.allocation;
    return a.holds(address) ? std::optional(a) : std::nullopt;
  }
  const auto after = registered_.upper_bound(address);
  if (after == registered_.begin() || !std::prev(after)->second.holds(address)) return std::nullopt;
  return std::prev(after)->second;
}

bool Memory::covers(uintptr_t address, size_t bytes) const {
  const std::optional<Allocation> a = find(address);
  return a && bytes <= a->bytes - (address - a->base);
}

std::string Memory::describe(uintptr_t address) const {
  if (const std::optional<Allocation> a = find(address)) {
    return "byte " + std::to_string(address - a->base) + " of " + emu::describe(*a);
  }
  std::lock_guard lock(mutex_);
  for (const Region& region : regions_) {
    for (auto block = region.quarantine.rbegin(); block != region.quarantine.rend(); ++block) {
      const Allocation& a = block->allocation;
      if (a.holds(address)) {
        return "byte " + std::to_string(address - a.base) + " of " + emu::describe(a) + ", freed";
      }
    }
  }
  if (!in_arena(address)) return "no memory of a device, nor pinned or registered";
  const auto after = blocks_.upper_bound(address);
  std::string text;
  if (after != blocks_.begin()) {
    const Allocation& a = std::prev(after)->second.allocation;
    text =
        std::to_string(address - a.base - a.bytes) + " bytes past the end of " + emu::describe(a);
    if (after == blocks_.end() || address - a.base - a.bytes < after->first - address) return text;
  }
  if (after == blocks_.end()) return "no allocation";
  const Allocation& a = after->second.allocation;
  return std::to_string(a.base - address) + " bytes before " + emu::describe(a);
}

size_t Memory::used(int device) const {
  std::lock_guard lock(mutex_);
  return regions_[static_cast<size_t>(device)].used;
}

std::vector<Allocation> Memory::live() const {
  std::lock_guard lock(mutex_);
  std::vector<Allocation> result;
  for (const auto& [base, block] : blocks_) {
    if (block.allocation.kind != MemoryKind::internal) result.push_back(block.allocation);
  }
  return result;
}

}  // namespace emu
