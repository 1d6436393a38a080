#include "wick/tensor/storage.h"

#include <utility>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/memory.h"

namespace wick {

Storage::Storage(Device device, void* data, size_t bytes, std::shared_ptr<const void> owner,
                 bool file_backed)
    : device_(device),
      data_(data),
      bytes_(bytes),
      owner_(std::move(owner)),
      file_backed_(file_backed) {}

std::shared_ptr<Storage> Storage::allocate(Device device, size_t bytes) {
  // make_shared needs a public constructor. One allocation holds the storage and its reference
  // counts.
  struct Allocated : Storage {
    Allocated(Device device, void* data, size_t bytes)
        : Storage(device, data, bytes, nullptr, false) {}
  };
  Backend& b = backend(device);
  void* data = b.alloc(bytes);
  try {
    return std::make_shared<Allocated>(device, data, bytes);
  } catch (...) {
    b.free(data, bytes);
    throw;
  }
}

std::shared_ptr<Storage> Storage::map(const void* data, size_t bytes,
                                      std::shared_ptr<const void> owner, bool file_backed) {
  if (owner == nullptr) owner = std::make_shared<int>(0);
  // The const_cast is safe: every writer checks writable() first.
  return std::shared_ptr<Storage>(
      new Storage(Device::cpu(), const_cast<void*>(data), bytes, std::move(owner), file_backed));
}

std::shared_ptr<Storage> Storage::map_on(Device device, const void* data, size_t bytes,
                                         std::shared_ptr<const void> owner) {
  if (device.kind == DeviceKind::cpu) return map(data, bytes, std::move(owner));
  (void)backend(device);
  if (owner == nullptr) owner = std::make_shared<int>(0);
  return std::shared_ptr<Storage>(
      new Storage(device, const_cast<void*>(data), bytes, std::move(owner), false));
}

std::shared_ptr<Storage> Storage::within(std::shared_ptr<Storage> whole, size_t offset,
                                         size_t bytes) {
  struct Part : Storage {
    Part(void* data, size_t bytes, std::shared_ptr<Storage> whole)
        : Storage(whole->device(), data, bytes, whole, false) {}
  };
  void* const data = static_cast<char*>(whole->data()) + offset;
  auto part = std::make_shared<Part>(data, bytes, std::move(whole));
  part->within_ = true;
  return part;
}

std::shared_ptr<Storage> Storage::traced(Device device, size_t bytes) {
  // One allocation holds the storage and its reference counts, so a weak reference keeps the
  // address from being reused. A trace identifies storages by address.
  struct Traced : Storage {
    Traced(Device device, size_t bytes) : Storage(device, nullptr, bytes, nullptr, false) {}
  };
  auto storage = std::make_shared<Traced>(device, bytes);
  storage->traced_ = true;
  return storage;
}

void Storage::fail_traced() {
  throw Error(ErrorKind::runtime, "trace", "values are read while a function is traced", "",
              "a traced function can't depend on values: read them outside of it");
}

Storage::~Storage() {
  if (traced_ || within_) return;
  if (owner_ == nullptr) {
    backend(device_).free(data_, bytes_);
  } else {
    quiesce(device_);
  }
}

}  // namespace wick
