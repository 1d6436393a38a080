#include "emu/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace emu {
namespace {

constexpr size_t kChunk = size_t{2} << 20;  // memory is committed in units of this size
constexpr size_t kRoom = 256;               // minimum gap after each block
// Address space per byte of device memory, for gaps, freed blocks and fragmentation.
constexpr size_t kSpread = 4;
constexpr size_t kHostBytes = size_t{32} << 30;
// Addresses that callers can reserve. The shadow of races takes ten times as many.
constexpr size_t kLeastReserved = size_t{256} << 30, kMostReserved = size_t{4} << 40;
// Freed blocks of this size are returned to the system.
constexpr size_t kReturned = size_t{16} << 20;

size_t up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/// Returns the size of a shadow's plane, with room to read a word at any byte.
size_t plane_bytes(size_t bytes) { return bytes / 8 + 8; }

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

/// Returns eight bits of a plane, starting at any bit.
uint8_t eight_bits(const uint8_t* plane, size_t bit) {
  uint16_t pair;
  std::memcpy(&pair, plane + bit / 8, sizeof pair);
  return static_cast<uint8_t>(pair >> bit % 8);
}

/// Changes the bits of a byte that are set in `mask`. The other bits may belong to a block in use.
void put_bits(uint8_t* byte, uint8_t mask, unsigned bits) {
  __atomic_fetch_or(byte, static_cast<uint8_t>(bits & mask), __ATOMIC_RELAXED);
  __atomic_fetch_and(byte, static_cast<uint8_t>(bits | ~unsigned{mask}), __ATOMIC_RELAXED);
}

constexpr size_t kPiece = size_t{1} << 15;  // number of bits that are copied at once

/// Copies at most kPiece bits within a plane. The ranges may overlap: all bits are read before any
/// is written.
void copy_piece(uint8_t* plane, size_t to, size_t from, size_t count) {
  const size_t head = std::min(count, (8 - to % 8) % 8), whole = (count - head) / 8;
  const size_t tail = (count - head) % 8;
  const unsigned first = eight_bits(plane, from);
  uint8_t bytes[kPiece / 8];
  if ((from + head) % 8 == 0) {
    std::memcpy(bytes, plane + (from + head) / 8, whole);
  } else {
    for (size_t i = 0; i < whole; ++i) bytes[i] = eight_bits(plane, from + head + 8 * i);
  }
  const unsigned last = eight_bits(plane, from + head + 8 * whole);
  if (head != 0) put_bits(plane + to / 8, ((1u << head) - 1) << to % 8, first << to % 8);
  uint8_t* rest = plane + (to + head) / 8;
  std::memcpy(rest, bytes, whole);
  if (tail != 0) put_bits(rest + whole, (1u << tail) - 1, last);
}

void copy_bits(uint8_t* plane, size_t to, size_t from, size_t count) {
  const bool backwards = to > from;  // otherwise bits would be overwritten before they are read
  for (size_t done = 0; done < count;) {
    const size_t piece = std::min(kPiece, count - done);
    const size_t at = backwards ? count - done - piece : done;
    copy_piece(plane, to + at, from + at, piece);
    done += piece;
  }
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
  size_t devices = 0;
  for (const size_t limit : device_bytes) devices += up(limit, kChunk);
  const size_t reserved = std::clamp(kSpread * devices, kLeastReserved, kMostReserved);
  for (const Region& region : regions_) bytes_ += region.bytes;
  bytes_ += reserved;
  reserved_ = reserve(bytes_ + kChunk, PROT_NONE);
  if (reserved_ == nullptr) throw std::bad_alloc();
  base_ = up(reinterpret_cast<uintptr_t>(reserved_), kChunk);
  uintptr_t at = base_;
  for (Region& region : regions_) {
    region.base = at;
    at += region.bytes;
    region.committed.resize(region.bytes / kChunk);
    add_gap(region, region.base, region.bytes);
  }
  shadow_.base = base_;
  shadow_.bytes = bytes_;
  space_ = std::make_unique<AddressSpace>(shadow_, at, reserved, kSpread * devices);
  if (!checks) return;
  shadow_.addressable = static_cast<uint8_t*>(reserve(plane_bytes(bytes_), PROT_READ | PROT_WRITE));
  shadow_.initialised = static_cast<uint8_t*>(reserve(plane_bytes(bytes_), PROT_READ | PROT_WRITE));
  if (shadow_.addressable == nullptr || shadow_.initialised == nullptr) throw std::bad_alloc();
}

Memory::~Memory() {
  space_.reset();  // before the regions, to which it returns memory
  munmap(reserved_, bytes_ + kChunk);
  if (shadow_.addressable != nullptr) munmap(shadow_.addressable, plane_bytes(bytes_));
  if (shadow_.initialised != nullptr) munmap(shadow_.initialised, plane_bytes(bytes_));
}

size_t Memory::region_number(const Allocation& allocation) const {
  if (allocation.kind == MemoryKind::host) return regions_.size() - 1;
  return static_cast<size_t>(allocation.device);
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

/// Decommits the chunks that lie wholly within the range, and makes accesses to them faults again.
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

/// Turns a freed span into a gap and merges it with adjacent gaps.
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

/// Returns an aligned address with `span` bytes after it, in one of the smallest gaps that fit.
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
  // A gap of at least span + alignment always fits. Whether a smaller gap fits depends on its
  // alignment. The first search tries some gaps of at least `span`, the second finds a gap that
  // always fits, and only if both fail are all gaps tried.
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
  // The quarantine, which only serves the checks, is released first.
  while (!base && !region.quarantine.empty()) {
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
  if (when_allocated) when_allocated(*base, bytes);
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

/// Turns quarantined blocks into gaps, the oldest first, until `keep` bytes are left.
void Memory::release(Region& region, size_t keep) {
  while (region.quarantined > keep) {
    const Block& oldest = region.quarantine.front();
    give_gap(region, oldest.allocation.base, oldest.span);
    region.quarantined -= oldest.span;
    region.quarantine.pop_front();
  }
}

PhysicalPtr Memory::create_physical(int device, size_t bytes) {
  auto physical = std::make_shared<Physical>();
  physical->bytes = bytes;
  physical->device = device;
  std::lock_guard lock(mutex_);
  Region& region = regions_[static_cast<size_t>(device)];
  if (bytes > region.limit || bytes > region.limit - region.used) return nullptr;
  if (!space_->allocate(*physical)) return nullptr;
  physical->serial = ++serial_;
  region.used += bytes;
  // The destructor of the address space releases what is still mapped; space_ is null by then.
  physical->release = [this, space = space_.get(), &region](const Physical& gone) {
    space->release(gone);
    std::lock_guard relock(mutex_);
    region.used -= gone.bytes;
  };
  return physical;
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
  if (space_->contains(address)) return space_->find(address);
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
  if (space_->contains(address)) return space_->covers(address, bytes);
  const std::optional<Allocation> a = find(address);
  return a && bytes <= a->bytes - (address - a->base);
}

std::string Memory::describe(uintptr_t address) const {
  if (space_->contains(address)) return space_->describe(address);
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

void Memory::copied(uintptr_t to, uintptr_t from, size_t bytes) const {
  if (!checks_ || !shadow_.covers(to, bytes)) return;
  // The host can write its own memory at any time, and the emulator can't observe it.
  const Region& host = regions_.back();
  const bool to_host = to - host.base < host.bytes;
  if (to_host || !shadow_.covers(from, bytes)) return shadow_.written(to, bytes);
  copy_bits(shadow_.initialised, to - base_, from - base_, bytes);
}

size_t Memory::used(int device) const {
  std::lock_guard lock(mutex_);
  return regions_[static_cast<size_t>(device)].used;
}

Memory::Fill Memory::fill_of(const Allocation& wanted) const {
  std::lock_guard lock(mutex_);
  const Region& region = regions_[region_number(wanted)];
  return {region.used, region.limit};
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
