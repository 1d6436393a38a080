#include "emu/runtime/address_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace emu {
namespace {

size_t up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/// Creates a file in memory. Its pages exist once they are written.
int memory_file(const char* name, size_t bytes) {
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

/// Makes a range of a file read as zeros and returns its pages to the system.
void punch(int file, size_t offset, size_t bytes) {
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

bool map_file(void* at, size_t bytes, int protection, int file, size_t offset) {
  return mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

void map_nothing(void* at, size_t bytes, int protection) {
  mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/// Returns a free part of at least `bytes` at an aligned position.
std::optional<uintptr_t> find_gap(const std::map<uintptr_t, size_t>& taken, uintptr_t base,
                                  size_t limit, size_t bytes, size_t alignment) {
  uintptr_t from = up(base, alignment);
  for (const auto& [start, size] : taken) {
    if (from < start && bytes <= start - from) break;
    from = std::max(from, up(start + size, alignment));
  }
  if (from - base > limit || bytes > limit - (from - base)) return std::nullopt;
  return from;
}

}  // namespace

AddressSpace::AddressSpace(const Shadow& shadow, uintptr_t base, size_t bytes, size_t file_bytes)
    : shadow_(shadow), base_(base), bytes_(bytes), file_bytes_(up(file_bytes, kGranularity)) {}

AddressSpace::~AddressSpace() {
  mappings_.clear();
  if (file_ >= 0) close(file_);
  if (shadow_file_ >= 0) close(shadow_file_);
}

bool AddressSpace::allocate(Physical& physical) {
  std::lock_guard lock(mutex_);
  if (file_ < 0) {  // most programs never need the files
    file_ = memory_file("wick-emu memory", file_bytes_);
    if (file_ < 0) return false;
    room_.emplace(0, file_bytes_);
  }
  if (shadow_.initialised != nullptr && shadow_file_ < 0) {
    shadow_file_ = memory_file("wick-emu shadow", file_bytes_ / 8);
    if (shadow_file_ < 0) return false;
  }
  const auto part = std::ranges::find_if(
      room_, [&](const auto& candidate) { return candidate.second >= physical.bytes; });
  if (part == room_.end()) return false;
  const auto [offset, bytes] = *part;
  room_.erase(part);
  if (bytes > physical.bytes) room_.emplace(offset + physical.bytes, bytes - physical.bytes);
  physical.offset = offset;
  return true;
}

void AddressSpace::release(const Physical& physical) {
  std::lock_guard lock(mutex_);
  punch(file_, physical.offset, physical.bytes);
  if (shadow_file_ >= 0) punch(shadow_file_, physical.offset / 8, physical.bytes / 8);
  size_t from = physical.offset, to = physical.offset + physical.bytes;
  const auto after = room_.lower_bound(from);
  if (after != room_.end() && after->first == to) to += after->second;
  if (after != room_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == from) from = before->first;
  }
  room_.erase(room_.lower_bound(from), room_.lower_bound(to));
  room_.emplace(from, to - from);
}

uintptr_t AddressSpace::reserve(size_t bytes, size_t alignment, uintptr_t wanted) {
  std::lock_guard lock(mutex_);
  if (bytes > bytes_ || alignment > bytes_) return 0;
  const bool fits = contains(wanted) && wanted % kGranularity == 0 &&
                    bytes <= bytes_ - (wanted - base_) && wanted % alignment == 0;
  if (fits) {
    const auto after = reservations_.lower_bound(wanted);
    const bool before = after == reservations_.begin() ||
                        std::prev(after)->first + std::prev(after)->second <= wanted;
    if (before && (after == reservations_.end() || wanted + bytes <= after->first)) {
      reservations_.emplace(wanted, bytes);
      return wanted;
    }
  }
  const auto at = find_gap(reservations_, base_, bytes_, bytes, std::max(alignment, kGranularity));
  if (!at) return 0;
  reservations_.emplace(*at, bytes);
  return *at;
}

bool AddressSpace::unreserve(uintptr_t at, size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto reservation = reservations_.find(at);
  if (reservation == reservations_.end() || reservation->second != bytes) return false;
  const auto mapping = mappings_.lower_bound(at);
  if (mapping != mappings_.end() && mapping->first - at < bytes) return false;
  reservations_.erase(reservation);
  return true;
}

bool AddressSpace::map(uintptr_t at, size_t bytes, PhysicalPtr physical) {
  std::lock_guard lock(mutex_);
  const auto after = reservations_.upper_bound(at);
  if (at % kGranularity != 0 || after == reservations_.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  if (at - start > size || bytes > size - (at - start)) return false;
  const auto next = mappings_.lower_bound(at);
  if (next != mappings_.end() && next->first - at < bytes) return false;
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > at) return false;
  }
  mappings_.emplace(at, Mapping{std::move(physical), bytes, {}});
  return true;
}

Right AddressSpace::Mapping::most() const {
  Right result = Right::none;
  for (const auto& [device, one] : access) result = std::max(result, one);
  return result;
}

Allocation AddressSpace::Mapping::allocation(uintptr_t at) const {
  Allocation a;
  a.base = at;
  a.bytes = bytes;
  a.device = physical->device;
  a.serial = physical->serial;
  a.mapped = true;
  return a;
}

/// Makes a range inaccessible, and its bytes unknown to the checks.
void AddressSpace::clear(uintptr_t at, size_t bytes) {
  map_nothing(reinterpret_cast<void*>(at), bytes, PROT_NONE);
  if (shadow_.initialised == nullptr) return;
  const size_t bit = at - shadow_.base;
  Shadow::clear(shadow_.addressable, bit, bytes);
  map_nothing(shadow_.initialised + bit / 8, bytes / 8, PROT_READ | PROT_WRITE);
}

/// Makes a mapping accessible as the rights of all devices together say.
bool AddressSpace::protect(uintptr_t at, const Mapping& mapping) {
  const Right most = mapping.most();
  const size_t bytes = mapping.bytes;
  if (most == Right::none) {
    clear(at, bytes);
    return true;
  }
  const int protection = most == Right::write ? PROT_READ | PROT_WRITE : PROT_READ;
  const size_t offset = mapping.physical->offset;
  if (!map_file(reinterpret_cast<void*>(at), bytes, protection, file_, offset)) return false;
  if (shadow_.initialised == nullptr) return true;
  const size_t bit = at - shadow_.base;
  if (most == Right::write) {
    Shadow::set(shadow_.addressable, bit, bytes);
  } else {
    Shadow::clear(shadow_.addressable, bit, bytes);
  }
  return map_file(shadow_.initialised + bit / 8, bytes / 8, PROT_READ | PROT_WRITE, shadow_file_,
                  offset / 8);
}

std::optional<AddressSpace::Mappings::iterator> AddressSpace::whole(uintptr_t at, size_t bytes) {
  const auto first = mappings_.find(at);
  size_t seen = 0;
  for (auto mapping = first; mapping != mappings_.end() && seen < bytes; ++mapping) {
    if (mapping->first != at + seen || mapping->second.bytes > bytes - seen) return std::nullopt;
    seen += mapping->second.bytes;
  }
  if (seen != bytes || bytes == 0) return std::nullopt;
  return first;
}

bool AddressSpace::unmap(uintptr_t at, size_t bytes) {
  std::vector<PhysicalPtr> gone;  // released without the mutex, because release() takes it
  std::lock_guard lock(mutex_);
  const auto first = whole(at, bytes);
  if (!first) return false;
  clear(at, bytes);
  for (auto mapping = *first; mapping != mappings_.end() && mapping->first - at < bytes;) {
    gone.push_back(std::move(mapping->second.physical));
    mapping = mappings_.erase(mapping);
  }
  return true;
}

bool AddressSpace::allow(uintptr_t at, size_t bytes, int device, Right right) {
  std::lock_guard lock(mutex_);
  const auto first = whole(at, bytes);
  if (!first) return false;
  bool done = true;
  for (auto mapping = *first; mapping != mappings_.end() && mapping->first - at < bytes;
       ++mapping) {
    mapping->second.access[device] = right;
    done = protect(mapping->first, mapping->second) && done;
  }
  return done;
}

AddressSpace::Mappings::const_iterator AddressSpace::mapping_at(uintptr_t at) const {
  const auto after = mappings_.upper_bound(at);
  if (after == mappings_.begin()) return mappings_.end();
  const auto mapping = std::prev(after);
  return at - mapping->first < mapping->second.bytes ? mapping : mappings_.end();
}

std::optional<Right> AddressSpace::access(uintptr_t at, int device) const {
  std::lock_guard lock(mutex_);
  const auto mapping = mapping_at(at);
  if (mapping == mappings_.end()) return std::nullopt;
  const auto found = mapping->second.access.find(device);
  return found == mapping->second.access.end() ? Right::none : found->second;
}

PhysicalPtr AddressSpace::physical_at(uintptr_t at) const {
  std::lock_guard lock(mutex_);
  const auto mapping = mapping_at(at);
  return mapping == mappings_.end() ? nullptr : mapping->second.physical;
}

std::optional<Allocation> AddressSpace::find(uintptr_t at) const {
  std::lock_guard lock(mutex_);
  const auto mapping = mapping_at(at);
  if (mapping == mappings_.end()) return std::nullopt;
  return mapping->second.allocation(mapping->first);
}

bool AddressSpace::covers(uintptr_t at, size_t bytes) const {
  std::lock_guard lock(mutex_);
  auto mapping = mapping_at(at);
  uintptr_t reached = at;
  while (mapping != mappings_.end() && mapping->first <= reached) {
    reached = mapping->first + mapping->second.bytes;
    if (bytes <= reached - at) return true;
    ++mapping;
  }
  return false;
}

std::string AddressSpace::describe(uintptr_t at) const {
  std::lock_guard lock(mutex_);
  if (const auto mapping = mapping_at(at); mapping != mappings_.end()) {
    const std::string place = "byte " + std::to_string(at - mapping->first) + " of a mapping of " +
                              emu::describe(mapping->second.allocation(mapping->first));
    const Right most = mapping->second.most();
    if (most == Right::none) return place + ", to which hipMemSetAccess has given no access";
    return most == Right::read ? place + ", which hipMemSetAccess has made read-only" : place;
  }
  const auto after = reservations_.upper_bound(at);
  if (after != reservations_.begin()) {
    const auto& [start, size] = *std::prev(after);
    if (at - start < size) {
      return "byte " + std::to_string(at - start) + " of " + std::to_string(size) +
             " reserved bytes, where nothing is mapped";
    }
  }
  return "no reserved address";
}

}  // namespace emu
