// Contexts of the driver API. Each device has one context; pushing a context saves the thread's
// current device. Also implements hipDeviceReset.

#include <algorithm>
#include <iterator>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

hipCtx_t context_of(Device& device) { return reinterpret_cast<hipCtx_t>(&device); }

Device& device_of(hipCtx_t context) {
  for (const auto& d : runtime().devices) {
    if (context_of(*d) == context) return *d;
  }
  throw Error{hipErrorInvalidContext};
}

/// The thread's device before each push that hasn't been popped.
std::vector<int>& beneath() {
  thread_local std::vector<int> ordinals;
  return ordinals;
}

void push(Device& device) {
  beneath().push_back(thread().device);
  thread().device = device.ordinal;
}

Device& pop() {
  require(!beneath().empty(), hipErrorInvalidContext);
  Device& popped = current_device();
  thread().device = beneath().back();
  beneath().pop_back();
  return popped;
}

/// Finishes the device's work, destroys its streams, frees what callers have allocated on it, and
/// restores its settings. Memory of pools stays allocated.
void make_fresh(Device& device) {
  device.synchronize();
  for (const StreamPtr& stream : device.streams()) {
    if (runtime().streams.remove(stream.get()) != nullptr) device.drop_stream(stream.get());
  }
  for (const Allocation& a : memory().live()) {
    const bool own = a.kind == MemoryKind::device || a.kind == MemoryKind::managed;
    if (own && a.device == device.ordinal && a.pool == nullptr) memory().free(a.base);
  }
  std::lock_guard lock(device.settings);
  const Device fresh(device.ordinal, device.architecture, device.bytes);
  device.flags = fresh.flags;
  std::copy(std::begin(fresh.limits), std::end(fresh.limits), device.limits);
  device.peers.assign(device.peers.size(), false);
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipCtxCreate(hipCtx_t* context, unsigned flags, hipDevice_t ordinal) {
  EMU_CALL({
    require(context != nullptr && (flags & ~0x1fu) == 0);
    Device& d = hip::device(ordinal);
    push(d);
    *context = context_of(d);
  });
}

EMU_API hipError_t hipCtxDestroy(hipCtx_t context) {
  EMU_CALL({
    require(context != nullptr);
    if (&device_of(context) == &current_device() && !beneath().empty()) pop();
  });
}

EMU_API hipError_t hipCtxGetCurrent(hipCtx_t* context) {
  EMU_CALL({
    require(context != nullptr);
    *context = context_of(current_device());
  });
}

EMU_API hipError_t hipCtxSetCurrent(hipCtx_t context) {
  EMU_CALL({
    if (context != nullptr) thread().device = device_of(context).ordinal;
  });
}

EMU_API hipError_t hipCtxPushCurrent(hipCtx_t context) {
  EMU_CALL({ push(device_of(context)); });
}

EMU_API hipError_t hipCtxPopCurrent(hipCtx_t* context) {
  EMU_CALL({
    Device& popped = pop();
    if (context != nullptr) *context = context_of(popped);
  });
}

EMU_API hipError_t hipCtxGetDevice(hipDevice_t* ordinal) {
  EMU_CALL({
    require(ordinal != nullptr);
    *ordinal = thread().device;
  });
}

// AMD's runtime has the following functions for CUDA's sake and doesn't implement them.

EMU_API hipError_t hipCtxSynchronize() {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxGetApiVersion(hipCtx_t, int*) {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxGetFlags(unsigned*) {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxGetCacheConfig(hipFuncCache_t*) {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxSetCacheConfig(hipFuncCache_t) {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxSetSharedMemConfig(hipSharedMemConfig) {
  EMU_CALL({ throw Error{hipErrorNotSupported}; });
}

EMU_API hipError_t hipCtxGetSharedMemConfig(hipSharedMemConfig* config) {
  return hipDeviceGetSharedMemConfig(config);
}

EMU_API hipError_t hipCtxEnablePeerAccess(hipCtx_t peer, unsigned flags) {
  EMU_CALL({ return hipDeviceEnablePeerAccess(device_of(peer).ordinal, flags); });
}

EMU_API hipError_t hipCtxDisablePeerAccess(hipCtx_t peer) {
  EMU_CALL({ return hipDeviceDisablePeerAccess(device_of(peer).ordinal); });
}

EMU_API hipError_t hipDevicePrimaryCtxRetain(hipCtx_t* context, hipDevice_t ordinal) {
  EMU_CALL({
    require(context != nullptr);
    *context = context_of(hip::device(ordinal));
  });
}

EMU_API hipError_t hipDevicePrimaryCtxRelease(hipDevice_t ordinal) {
  EMU_CALL({ hip::device(ordinal); });
}

EMU_API hipError_t hipDevicePrimaryCtxReset(hipDevice_t ordinal) {
  EMU_CALL({ make_fresh(hip::device(ordinal)); });
}

EMU_API hipError_t hipDevicePrimaryCtxGetState(hipDevice_t ordinal, unsigned* flags, int* active) {
  EMU_CALL({
    require(flags != nullptr && active != nullptr);
    Device& d = hip::device(ordinal);
    std::lock_guard lock(d.settings);
    *flags = d.flags;
    *active = 1;
  });
}

EMU_API hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t ordinal, unsigned) {
  EMU_CALL({
    hip::device(ordinal);
    throw Error{hipErrorContextAlreadyInUse};
  });
}

EMU_API hipError_t hipDeviceReset() {
  EMU_CALL({
    refuse_in_any_capture();
    make_fresh(current_device());
  });
}
