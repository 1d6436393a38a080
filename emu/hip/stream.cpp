// Streams: creation, queries and synchronization, host functions, and memory operations on values.

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

void create(hipStream_t* handle, unsigned flags, int priority) {
  require(handle != nullptr);
  require(flags == hipStreamDefault || flags == hipStreamNonBlocking);
  const int clamped = std::min(std::max(priority, -1), 1);
  *handle = runtime().streams.add<hipStream_t>(current_device().create_stream(flags, clamped));
}

void wait_value(hipStream_t handle, void* pointer, uint64_t value, unsigned condition,
                uint64_t mask, bool wide) {
  require(condition <= hipStreamWaitValueNor);
  check_range(pointer, wide ? 8 : 4, "what is to be waited for");
  require(address(pointer) % (wide ? 8 : 4) == 0);
  submit(*find_stream(handle), ValueOp{pointer, value, mask, condition, false, wide});
}

void write_value(hipStream_t handle, void* pointer, uint64_t value, unsigned flags, bool wide) {
  require(flags == 0);
  check_range(pointer, wide ? 8 : 4, "what is to be written");
  require(address(pointer) % (wide ? 8 : 4) == 0);
  submit(*find_stream(handle), ValueOp{pointer, value, 0, 0, true, wide});
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipStreamCreate(hipStream_t* stream) {
  EMU_CALL({ create(stream, hipStreamDefault, 0); });
}

EMU_API hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  EMU_CALL({ create(stream, flags, 0); });
}

EMU_API hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  EMU_CALL({ create(stream, flags, priority); });
}

EMU_API hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t count,
                                                const uint32_t* mask) {
  EMU_CALL({
    require(count != 0 && mask != nullptr);
    create(stream, hipStreamDefault, 0);
    find_stream(*stream)->mask.assign(mask, mask + count);
  });
}

EMU_API hipError_t hipStreamDestroy(hipStream_t handle) {
  EMU_CALL({
    require(handle != nullptr && handle != hipStreamPerThread && handle != hipStreamLegacy,
            hipErrorInvalidHandle);
    const StreamPtr stream = find_stream(handle);
    refuse_in_capture(*stream);
    runtime().streams.remove(handle);
    stream->device->drop_stream(stream.get());
  });
}

EMU_API hipError_t hipStreamSynchronize(hipStream_t handle) {
  EMU_CALL({
    const StreamPtr stream = find_stream(handle);
    refuse_wait_in_capture(*stream);
    if (stream->null_stream) {
      // Synchronizing the null stream also waits for all streams that it synchronizes with.
      submit(*stream, EmptyOp{})->wait();
    }
    finish(*stream);
  });
}

EMU_API hipError_t hipStreamQuery(hipStream_t handle) {
  EMU_CALL({
    const StreamPtr stream = find_stream(handle);
    refuse_wait_in_capture(*stream);
    bool idle = stream->idle();
    if (stream->null_stream) {
      for (const StreamPtr& other : stream->device->streams()) {
        if (other->blocking() && !other->idle()) idle = false;
      }
    }
    if (!idle) return not_ready();
    return stream->take_error();
  });
}

EMU_API hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  EMU_CALL({
    require(flags != nullptr);
    *flags = find_stream(handle)->flags;
  });
}

EMU_API hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  EMU_CALL({
    require(priority != nullptr);
    *priority = find_stream(handle)->priority;
  });
}

EMU_API hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* ordinal) {
  EMU_CALL({
    require(ordinal != nullptr);
    *ordinal = find_stream(handle)->device->ordinal;
  });
}

EMU_API int hipGetStreamDeviceId(hipStream_t handle) {
  hipDevice_t ordinal = -1;
  return hipStreamGetDevice(handle, &ordinal) == hipSuccess ? ordinal : -1;
}

EMU_API hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t function,
                                        void* data, unsigned flags) {
  EMU_CALL({
    require(function != nullptr && flags == 0);
    submit(*find_stream(handle), CallbackOp{function, handle, data});
  });
}

EMU_API hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data) {
  EMU_CALL({
    require(function != nullptr);
    submit(*find_stream(handle), HostOp{function, data});
  });
}

EMU_API hipError_t hipStreamWaitValue32(hipStream_t stream, void* pointer, uint32_t value,
                                        unsigned condition, uint32_t mask) {
  EMU_CALL({ wait_value(stream, pointer, value, condition, mask, false); });
}

EMU_API hipError_t hipStreamWaitValue64(hipStream_t stream, void* pointer, uint64_t value,
                                        unsigned condition, uint64_t mask) {
  EMU_CALL({ wait_value(stream, pointer, value, condition, mask, true); });
}

EMU_API hipError_t hipStreamWriteValue32(hipStream_t stream, void* pointer, uint32_t value,
                                         unsigned flags) {
  EMU_CALL({ write_value(stream, pointer, value, flags, false); });
}

EMU_API hipError_t hipStreamWriteValue64(hipStream_t stream, void* pointer, uint64_t value,
                                         unsigned flags) {
  EMU_CALL({ write_value(stream, pointer, value, flags, true); });
}
