// Contexts, as far as programs of the driver's kind use them: a device each.

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

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipCtxCreate(hipCtx_t* context, unsigned flags, hipDevice_t ordinal) {
  EMU_CALL({
    require(context != nullptr && (flags & ~0x1fu) == 0);
    *context = context_of(hip::device(ordinal));
    thread().device = ordinal;
  });
}

EMU_API hipError_t hipCtxDestroy(hipCtx_t context) {
  EMU_CALL({ device_of(context); });
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
  EMU_CALL({ thread().device = device_of(context).ordinal; });
}

EMU_API hipError_t hipCtxPopCurrent(hipCtx_t* context) {
  EMU_CALL({
    if (context != nullptr) *context = context_of(current_device());
  });
}

EMU_API hipError_t hipCtxGetDevice(hipDevice_t* ordinal) {
  EMU_CALL({
    require(ordinal != nullptr);
    *ordinal = thread().device;
  });
}

EMU_API hipError_t hipCtxSynchronize() {
  EMU_CALL({ return current_device().synchronize(); });
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
  EMU_CALL({ hip::device(ordinal).synchronize(); });
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
