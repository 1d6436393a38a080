// Virtual memory management: reserved address ranges, physical memory, mappings and their access
// rights, and handles that are shared by file descriptors within the process.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <list>

#include "emu/exec/fault.h"
#include "emu/hip/api.h"

namespace emu::hip {
namespace {

constexpr size_t kGranularity = AddressSpace::kGranularity;

Handles<Physical>& handles() {
  static auto* all = new Handles<Physical>;
  return *all;
}

std::mutex references;  // guards Physical::references

PhysicalPtr find_physical(hipMemGenericAllocationHandle_t handle) {
  require(handle != nullptr);
  PhysicalPtr physical = handles().find(handle);
  if (physical == nullptr) {
    throw Error{hipErrorInvalidValue, "the handle isn't one of physical memory, or is released"};
  }
  return physical;
}

int ordinal_of(const hipMemLocation& location) {
  require(location.type == hipMemLocationTypeDevice && location.id >= 0);
  require(static_cast<size_t>(location.id) < runtime().devices.size());
  return location.id;
}

void check_properties(const hipMemAllocationProp* prop) {
  require(prop != nullptr);
  require(prop->type == hipMemAllocationTypePinned || prop->type == hipMemAllocationTypeUncached);
  ordinal_of(prop->location);
}

/// Throws unless the size is a positive multiple of the granularity, and the range has no overflow.
void check_range(uintptr_t at, size_t bytes) {
  require(at != 0 && bytes != 0 && bytes <= ~at);
  if (at % kGranularity != 0 || bytes % kGranularity != 0) {
    throw Error{hipErrorInvalidValue,
                "addresses and sizes are multiples of what hipMemGetAllocationGranularity gives"};
  }
}

Right right_of(hipMemAccessFlags flags) {
  switch (flags) {
    case hipMemAccessFlagsProtNone:
      return Right::none;
    case hipMemAccessFlagsProtRead:
      return Right::read;
    case hipMemAccessFlagsProtReadWrite:
      return Right::write;
  }
  throw Error{hipErrorInvalidValue};
}

/// Waits for the work that the null streams of all devices wait for, as hipMemUnmap does.
void finish_null_streams() {
  for (const auto& d : runtime().devices) {
    if (const StreamPtr null = d->null_stream_if_used()) {
      submit(*null, EmptyOp{})->wait();
    } else {
      for (const StreamPtr& stream : d->streams()) {
        if (stream->blocking()) stream->wait();
      }
    }
  }
}

/// Returns a file descriptor that programs pass by value in a pointer, from HIP 7.1 on, or by its
/// address, before.
int descriptor_of(const void* shareable) {
  constexpr uintptr_t kPage = 4096;  // no address is as small as that
  if (address(shareable) < kPage) return static_cast<int>(address(shareable));
  int descriptor = -1;
  FaultGuard guard;
  const bool read =
      survives(guard, [&] { std::memcpy(&descriptor, shareable, sizeof descriptor); });
  return read ? descriptor : -1;
}

/// Physical memory that callers have exported. A file descriptor of it is one end of a pipe: the
/// memory lives until all copies of that end are closed, which the other end can tell.
class Exports {
 public:
  static Exports& get() {
    static auto* all = new Exports;
    return *all;
  }

  int add(PhysicalPtr physical) {
    std::lock_guard lock(mutex_);
    sweep();
    int ends[2];
    struct stat status;
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error{hipErrorOutOfMemory, "no file descriptor is left"};
    fstat(ends[0], &status);
    shared_.push_back({status.st_dev, status.st_ino, ends[1], std::move(physical)});
    return ends[0];
  }
  PhysicalPtr find(int descriptor) {
    std::lock_guard lock(mutex_);
    struct stat status;
    if (fstat(descriptor, &status) != 0) return nullptr;
    for (const Shared& one : shared_) {
      if (one.device == status.st_dev && one.inode == status.st_ino) return one.physical;
    }
    return nullptr;
  }
  /// Forgets memory whose file descriptors have been closed.
  void collect() {
    std::lock_guard lock(mutex_);
    sweep();
  }

 private:
  struct Shared {
    dev_t device;
    ino_t inode;
    int end;
    PhysicalPtr physical;
  };
  void sweep() {
    std::erase_if(shared_, [](const Shared& one) {
      pollfd end{one.end, 0, 0};
      if (poll(&end, 1, 0) != 1 || (end.revents & POLLERR) == 0) return false;
      close(one.end);
      return true;
    });
  }

  std::mutex mutex_;
  std::list<Shared> shared_;
};

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMemGetAllocationGranularity(size_t* granularity,
                                                  const hipMemAllocationProp* prop,
                                                  hipMemAllocationGranularity_flags option) {
  EMU_CALL({
    require(granularity != nullptr);
    check_properties(prop);
    require(option <= hipMemAllocationGranularityRecommended);
    *granularity = kGranularity;
  });
}

EMU_API hipError_t hipMemAddressReserve(void** pointer, size_t bytes, size_t alignment,
                                        void* wanted, unsigned long long flags) {
  EMU_CALL({
    require(pointer != nullptr && flags == 0);
    require(bytes != 0 && bytes % kGranularity == 0 && (alignment & (alignment - 1)) == 0);
    const uintptr_t at =
        memory().space().reserve(bytes, std::max<size_t>(alignment, 1), address(wanted));
    if (at == 0) {
      throw Error{hipErrorOutOfMemory, "no " + std::to_string(bytes) + " addresses are left"};
    }
    *pointer = reinterpret_cast<void*>(at);
  });
}

EMU_API hipError_t hipMemAddressFree(void* pointer, size_t bytes) {
  EMU_CALL({
    check_range(address(pointer), bytes);
    if (!memory().space().unreserve(address(pointer), bytes)) {
      throw Error{hipErrorInvalidValue, "it isn't a whole reservation, or has mappings: " +
                                            memory().describe(address(pointer))};
    }
  });
}

EMU_API hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* handle, size_t bytes,
                                const hipMemAllocationProp* prop, unsigned long long flags) {
  EMU_CALL({
    require(handle != nullptr && bytes != 0 && flags == 0);
    if (of_hip_7() && prop != nullptr && prop->location.type == hipMemLocationTypeDevice) {
      hip::device(prop->location.id);
    }
    check_properties(prop);
    const unsigned shareable = prop->requestedHandleTypes;
    require(shareable == hipMemHandleTypeNone || shareable == hipMemHandleTypePosixFileDescriptor,
            hipErrorNotSupported);
    require(bytes % kGranularity == 0);
    Exports::get().collect();
    PhysicalPtr physical = memory().create_physical(prop->location.id, bytes);
    if (physical == nullptr) {
      throw Error{hipErrorOutOfMemory, std::to_string(bytes) + " bytes are asked for"};
    }
    physical->shareable = shareable;
    physical->type = prop->type;
    *handle = handles().add<hipMemGenericAllocationHandle_t>(std::move(physical));
  });
}

EMU_API hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle) {
  EMU_CALL({
    const PhysicalPtr physical = find_physical(handle);
    std::lock_guard lock(references);
    require(physical->references > 0);
    if (--physical->references == 0) handles().remove(handle);
  });
}

EMU_API hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle,
                                                void* pointer) {
  EMU_CALL({
    require(handle != nullptr && pointer != nullptr);
    PhysicalPtr physical = memory().space().physical_at(address(pointer));
    require(physical != nullptr);
    std::lock_guard lock(references);
    ++physical->references;
    // The handle may have been released while the mapping kept the memory.
    *handle = handles().add<hipMemGenericAllocationHandle_t>(std::move(physical));
  });
}

EMU_API hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp* prop,
                                                           hipMemGenericAllocationHandle_t handle) {
  EMU_CALL({
    require(prop != nullptr);
    const PhysicalPtr physical = find_physical(handle);
    *prop = {};
    prop->type = static_cast<hipMemAllocationType>(physical->type);
    prop->requestedHandleTypes = static_cast<hipMemAllocationHandleType>(physical->shareable);
    prop->location = {hipMemLocationTypeDevice, physical->device};
  });
}

EMU_API hipError_t hipMemMap(void* pointer, size_t bytes, size_t offset,
                             hipMemGenericAllocationHandle_t handle, unsigned long long flags) {
  EMU_CALL({
    require(flags == 0 && offset == 0);
    check_range(address(pointer), bytes);
    PhysicalPtr physical = find_physical(handle);
    require(bytes <= physical->bytes);
    if (!memory().space().map(address(pointer), bytes, std::move(physical))) {
      throw Error{hipErrorInvalidValue, "the range isn't within one reservation, or isn't free: " +
                                            memory().describe(address(pointer))};
    }
  });
}

EMU_API hipError_t hipMemUnmap(void* pointer, size_t bytes) {
  EMU_CALL({
    check_range(address(pointer), bytes);
    refuse_unsafe_in_capture();
    finish_null_streams();
    if (!memory().space().unmap(address(pointer), bytes)) {
      throw Error{hipErrorInvalidValue,
                  "the range isn't made of whole mappings: " + memory().describe(address(pointer))};
    }
  });
}

EMU_API hipError_t hipMemSetAccess(void* pointer, size_t bytes, const hipMemAccessDesc* list,
                                   size_t count) {
  EMU_CALL({
    require(list != nullptr && count != 0);
    check_range(address(pointer), bytes);
    require(count <= runtime().devices.size());
    for (size_t i = 0; i < count; ++i) {
      ordinal_of(list[i].location);
      right_of(list[i].flags);
    }
    for (size_t i = 0; i < count; ++i) {
      const bool done = memory().space().allow(address(pointer), bytes, list[i].location.id,
                                               right_of(list[i].flags));
      if (!done) {
        throw Error{hipErrorInvalidValue, "the range isn't made of whole mappings: " +
                                              memory().describe(address(pointer))};
      }
    }
  });
}

EMU_API hipError_t hipMemGetAccess(unsigned long long* flags, const hipMemLocation* location,
                                   void* pointer) {
  EMU_CALL({
    require(flags != nullptr && location != nullptr && pointer != nullptr);
    const auto access = memory().space().access(address(pointer), ordinal_of(*location));
    require(access.has_value());
    *flags = *access == Right::write  ? hipMemAccessFlagsProtReadWrite
             : *access == Right::read ? hipMemAccessFlagsProtRead
                                      : hipMemAccessFlagsProtNone;
  });
}

EMU_API hipError_t hipMemExportToShareableHandle(void* shareable,
                                                 hipMemGenericAllocationHandle_t handle,
                                                 hipMemAllocationHandleType type,
                                                 unsigned long long flags) {
  EMU_CALL({
    require(shareable != nullptr && flags == 0);
    require(type == hipMemHandleTypePosixFileDescriptor);
    PhysicalPtr physical = find_physical(handle);
    require(physical->shareable == type);
    *static_cast<int*>(shareable) = Exports::get().add(std::move(physical));
  });
}

EMU_API hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle,
                                                   void* shareable,
                                                   hipMemAllocationHandleType type) {
  EMU_CALL({
    require(handle != nullptr && type == hipMemHandleTypePosixFileDescriptor);
    PhysicalPtr physical = Exports::get().find(descriptor_of(shareable));
    if (physical == nullptr) {
      throw Error{hipErrorInvalidValue,
                  "the file descriptor isn't one that this process has exported; processes can't "
                  "share memory"};
    }
    std::lock_guard lock(references);
    ++physical->references;
    *handle = handles().add<hipMemGenericAllocationHandle_t>(std::move(physical));
  });
}

// Devices have no sparse arrays.
EMU_API hipError_t hipMemMapArrayAsync(hipArrayMapInfo* list, unsigned count, hipStream_t) {
  EMU_CALL({
    require(list != nullptr && count != 0);
    throw Error{hipErrorNotSupported};
  });
}
