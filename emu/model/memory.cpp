#include "emu/model/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace emu::model {
namespace {

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

bool readable(uint64_t address) {
  char byte;
  return read_at(address, byte);
}

}  // namespace

bool copy_from(void* to, uint64_t from, size_t bytes) {
  const iovec local{to, bytes}, remote{pointer(from), bytes};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied >= 0 || errno == EFAULT) return copied == static_cast<ssize_t>(bytes);
  // Some sandboxes forbid the call.
  return accessible([&] { std::memcpy(to, pointer(from), bytes); });
}

void DeviceMemory::add(uint64_t address, uint64_t bytes, uint64_t seen_at) {
  std::lock_guard lock(mutex_);
  allocations_[address] = {bytes, seen_at};
  pending_.push_back(address);
}

void DeviceMemory::remove(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto at = allocations_.find(address);
  if (at == allocations_.end()) return;
  // The runtime keeps the addresses reserved until it has freed the memory.
  if (at->second.mapped_here) {
    mmap(pointer(address), at->second.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  allocations_.erase(at);
  std::erase(pending_, address);
}

bool DeviceMemory::reach(std::string& reason) {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> later;
  for (const uint64_t address : pending_) {
    Allocation& allocation = allocations_.at(address);
    if (readable(address)) continue;
    if (!readable(allocation.seen_at)) {
      later.push_back(address);  // the runtime hasn't mapped it for the GPU yet
      continue;
    }
    // With an old size of 0, mremap leaves the mapping in place and makes a second one.
    void* const mapped = mremap(pointer(allocation.seen_at), 0, allocation.bytes,
                                MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address));
    if (mapped == MAP_FAILED) {
      reason = "memory at " + hex(address) + " can't be mapped: " + std::strerror(errno);
      return false;
    }
    allocation.mapped_here = true;
  }
  pending_ = std::move(later);
  return true;
}

Range DeviceMemory::around(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return {};
  --at;
  const Range range{at->first, at->first + at->second.bytes};
  return range.contains(address, 1) ? range : Range{};
}

std::string DeviceMemory::describe(uint64_t address) {
  const Range range = around(address);
  if (range.empty()) return "in no allocation of a GPU";
  return "at byte " + std::to_string(address - range.begin) + " of an allocation of " +
         std::to_string(range.end - range.begin);
}

}  // namespace emu::model
