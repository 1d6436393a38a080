// Memory and semaphores of other interfaces (Vulkan, Direct3D), and resources of OpenGL. The
// emulator has none of them: importing one isn't supported, and no handle is valid.

#include "emu/hip/api.h"

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipImportExternalMemory(hipExternalMemory_t* memory,
                                           const hipExternalMemoryHandleDesc* description) {
  EMU_CALL({
    require(memory != nullptr && description != nullptr);
    throw Error{hipErrorNotSupported, "the emulator can't import external memory"};
  });
}

EMU_API hipError_t hipDestroyExternalMemory(hipExternalMemory_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipExternalMemoryGetMappedBuffer(void**, hipExternalMemory_t,
                                                    const hipExternalMemoryBufferDesc*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipImportExternalSemaphore(hipExternalSemaphore_t* semaphore,
                                              const hipExternalSemaphoreHandleDesc* description) {
  EMU_CALL({
    require(semaphore != nullptr && description != nullptr);
    throw Error{hipErrorNotSupported, "the emulator can't import external semaphores"};
  });
}

EMU_API hipError_t hipDestroyExternalSemaphore(hipExternalSemaphore_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipSignalExternalSemaphoresAsync(const hipExternalSemaphore_t*,
                                                    const hipExternalSemaphoreSignalParams*,
                                                    unsigned, hipStream_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipWaitExternalSemaphoresAsync(const hipExternalSemaphore_t*,
                                                  const hipExternalSemaphoreWaitParams*, unsigned,
                                                  hipStream_t) {
  EMU_CALL({ require(false); });
}

// --- nodes of graphs

EMU_API hipError_t
hipGraphAddExternalSemaphoresSignalNode(hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, size_t,
                                        const hipExternalSemaphoreSignalNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    throw Error{hipErrorNotSupported};
  });
}

EMU_API hipError_t
hipGraphAddExternalSemaphoresWaitNode(hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, size_t,
                                      const hipExternalSemaphoreWaitNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    throw Error{hipErrorNotSupported};
  });
}

EMU_API hipError_t hipGraphExternalSemaphoresSignalNodeGetParams(
    hipGraphNode_t, hipExternalSemaphoreSignalNodeParams*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphExternalSemaphoresSignalNodeSetParams(
    hipGraphNode_t, const hipExternalSemaphoreSignalNodeParams*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t
hipGraphExternalSemaphoresWaitNodeGetParams(hipGraphNode_t, hipExternalSemaphoreWaitNodeParams*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphExternalSemaphoresWaitNodeSetParams(
    hipGraphNode_t, const hipExternalSemaphoreWaitNodeParams*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphExecExternalSemaphoresSignalNodeSetParams(
    hipGraphExec_t, hipGraphNode_t, const hipExternalSemaphoreSignalNodeParams*) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphExecExternalSemaphoresWaitNodeSetParams(
    hipGraphExec_t, hipGraphNode_t, const hipExternalSemaphoreWaitNodeParams*) {
  EMU_CALL({ require(false); });
}

// --- OpenGL. No device draws.

EMU_API hipError_t hipGLGetDevices(unsigned* count, int* ordinals, unsigned, hipGLDeviceList list) {
  EMU_CALL({
    require(count != nullptr && ordinals != nullptr);
    require(list >= hipGLDeviceListAll && list <= hipGLDeviceListNextFrame);
    *count = 0;
    throw Error{hipErrorNoDevice};
  });
}

EMU_API hipError_t hipGraphicsGLRegisterBuffer(hipGraphicsResource_t*, unsigned, unsigned) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsGLRegisterImage(hipGraphicsResource_t*, unsigned, unsigned,
                                              unsigned) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsMapResources(int, hipGraphicsResource_t*, hipStream_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsUnmapResources(int, hipGraphicsResource_t*, hipStream_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsResourceGetMappedPointer(void**, size_t*, hipGraphicsResource_t) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsSubResourceGetMappedArray(hipArray_t*, hipGraphicsResource_t,
                                                        unsigned, unsigned) {
  EMU_CALL({ require(false); });
}

EMU_API hipError_t hipGraphicsUnregisterResource(hipGraphicsResource_t) {
  EMU_CALL({ require(false); });
}
