#pragma once

// Declares the functions that HIP gained from 6.0 on, and those that few programs use.

#include "emu/hip/types_extended.h"

extern "C" {

// --- device
hipError_t hipExtGetLinkTypeAndHopCount(int from, int to, uint32_t* type, uint32_t* hops);
hipError_t hipSetValidDevices(int* list, int count);

// --- memory
hipError_t hipPointerSetAttribute(const void* value, hipPointer_attribute attribute,
                                  hipDeviceptr_t pointer);

// --- managed
hipError_t hipMemAdvise_v2(const void* pointer, size_t bytes, hipMemoryAdvise advice,
                           hipMemLocation location);
hipError_t hipMemPrefetchAsync_v2(const void* pointer, size_t bytes, hipMemLocation location,
                                  unsigned flags, hipStream_t stream);

// --- lookup
hipError_t hipGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                  hipDriverEntryPointQueryResult* result);
hipError_t hipGetDriverEntryPoint_spt(const char* name, void** function, unsigned long long flags,
                                      hipDriverEntryPointQueryResult* result);

// --- copy extended
hipError_t hipMemcpy3DPeer(hipMemcpy3DPeerParms* parms);
hipError_t hipMemcpy3DPeerAsync(hipMemcpy3DPeerParms* parms, hipStream_t stream);
hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D* parms);
hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* parms, hipStream_t stream);
hipError_t hipMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count,
                               hipMemcpyAttributes*, size_t*, size_t attributes, size_t* failed,
                               hipStream_t stream);
hipError_t hipMemcpy3DBatchAsync(size_t count, hipMemcpy3DBatchOp* list, size_t* failed,
                                 unsigned long long flags, hipStream_t stream);
hipError_t hipMemsetD2D8(hipDeviceptr_t to, size_t pitch, unsigned char value, size_t width,
                         size_t height);
hipError_t hipMemsetD2D8Async(hipDeviceptr_t to, size_t pitch, unsigned char value, size_t width,
                              size_t height, hipStream_t stream);
hipError_t hipMemsetD2D16(hipDeviceptr_t to, size_t pitch, unsigned short value, size_t width,
                          size_t height);
hipError_t hipMemsetD2D16Async(hipDeviceptr_t to, size_t pitch, unsigned short value, size_t width,
                               size_t height, hipStream_t stream);
hipError_t hipMemsetD2D32(hipDeviceptr_t to, size_t pitch, unsigned value, size_t width,
                          size_t height);
hipError_t hipMemsetD2D32Async(hipDeviceptr_t to, size_t pitch, unsigned value, size_t width,
                               size_t height, hipStream_t stream);

// --- stream extended
hipError_t hipStreamGetAttribute(hipStream_t handle, hipLaunchAttributeID attribute,
                                 hipLaunchAttributeValue* value);
hipError_t hipStreamSetAttribute(hipStream_t handle, hipLaunchAttributeID attribute,
                                 const hipLaunchAttributeValue* value);
hipError_t hipStreamCopyAttributes(hipStream_t to, hipStream_t from);
hipError_t hipStreamGetId(hipStream_t handle, unsigned long long* id);
hipError_t hipExtStreamGetCUMask(hipStream_t handle, uint32_t words, uint32_t* mask);
hipError_t hipStreamBatchMemOp(hipStream_t handle, unsigned count, hipStreamBatchMemOpParams* list,
                               unsigned flags);

// --- library
hipError_t hipLibraryLoadData(hipLibrary_t* library, const void* code, hipJitOption**, void**,
                              unsigned, hipLibraryOption** options, void**, unsigned count);
hipError_t hipLibraryLoadFromFile(hipLibrary_t* library, const char* name, hipJitOption**, void**,
                                  unsigned, hipLibraryOption** options, void**, unsigned count);
hipError_t hipLibraryUnload(hipLibrary_t library);
hipError_t hipLibraryGetKernel(hipKernel_t* kernel, hipLibrary_t library, const char* name);
hipError_t hipLibraryGetKernelCount(unsigned* count, hipLibrary_t library);
hipError_t hipLibraryEnumerateKernels(hipKernel_t* kernels, unsigned count, hipLibrary_t library);
hipError_t hipKernelGetLibrary(hipLibrary_t* library, hipKernel_t handle);
hipError_t hipKernelGetName(const char** name, hipKernel_t handle);
hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t handle);
hipError_t hipModuleLoadFatBinary(hipModule_t* module, const void* bundle);
hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int groups,
                                                    int items);
const char* hipKernelNameRefByPtr(const void* function, hipStream_t);

// --- launch extended
hipError_t hipLaunchKernelExC(const hipLaunchConfig_t* config, const void* function, void** params);
hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG* config, hipFunction_t function,
                                void** params, void** extra);
hipError_t hipModuleLaunchCooperativeKernelMultiDevice(hipFunctionLaunchParams* list,
                                                       unsigned count, unsigned flags);
hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t lds, hipStream_t stream);
hipError_t hipSetupArgument(const void* argument, size_t bytes, size_t offset);
hipError_t hipLaunchByPtr(const void* function);

// --- capture
hipError_t hipStreamBeginCaptureToGraph(hipStream_t handle, hipGraph_t graph_handle,
                                        const hipGraphNode_t* nodes, const hipGraphEdgeData*,
                                        size_t count, hipStreamCaptureMode mode);

// --- graph
hipError_t hipGraphInstantiateWithParams(hipGraphExec_t* exec, hipGraph_t graph,
                                         hipGraphInstantiateParams* params);

// --- graph extended
hipError_t hipGraphAddNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after,
                           size_t count, hipGraphNodeParams* p);
hipError_t hipGraphNodeSetParams(hipGraphNode_t node, hipGraphNodeParams* p);
hipError_t hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                     hipGraphNodeParams* p);
hipError_t hipGraphKernelNodeGetAttribute(hipGraphNode_t node, hipLaunchAttributeID attribute,
                                          hipLaunchAttributeValue* value);
hipError_t hipGraphKernelNodeSetAttribute(hipGraphNode_t node, hipLaunchAttributeID attribute,
                                          const hipLaunchAttributeValue* value);
hipError_t hipGraphKernelNodeCopyAttributes(hipGraphNode_t from, hipGraphNode_t to);
hipError_t hipGraphAddBatchMemOpNode(hipGraphNode_t* node, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count,
                                     const hipBatchMemOpNodeParams* params);
hipError_t hipGraphBatchMemOpNodeGetParams(hipGraphNode_t node, hipBatchMemOpNodeParams* params);
hipError_t hipGraphBatchMemOpNodeSetParams(hipGraphNode_t node, hipBatchMemOpNodeParams* params);
hipError_t hipGraphExecBatchMemOpNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const hipBatchMemOpNodeParams* params);
hipError_t hipGraphMemcpyNodeSetParamsToSymbol(hipGraphNode_t node, const void* symbol,
                                               const void* from, size_t bytes, size_t offset,
                                               hipMemcpyKind kind);
hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(hipGraphNode_t node, void* to, const void* symbol,
                                                 size_t bytes, size_t offset, hipMemcpyKind kind);
hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const void* symbol, const void* from,
                                                   size_t bytes, size_t offset, hipMemcpyKind kind);
hipError_t hipGraphExecMemcpyNodeSetParamsFromSymbol(hipGraphExec_t exec, hipGraphNode_t node,
                                                     void* to, const void* symbol, size_t bytes,
                                                     size_t offset, hipMemcpyKind kind);
hipError_t hipDrvGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                    const hipGraphNode_t* after, size_t count,
                                    const HIP_MEMCPY3D* params, hipCtx_t);
hipError_t hipDrvGraphMemcpyNodeGetParams(hipGraphNode_t node, HIP_MEMCPY3D* params);
hipError_t hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D* params);
hipError_t hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                              const HIP_MEMCPY3D* params, hipCtx_t);
hipError_t hipDrvGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph,
                                    const hipGraphNode_t* after, size_t count,
                                    const hipMemsetParams* params, hipCtx_t);
hipError_t hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                              const hipMemsetParams* params, hipCtx_t);
hipError_t hipDrvGraphAddMemFreeNode(hipGraphNode_t* node, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count,
                                     hipDeviceptr_t pointer);
hipError_t hipDeviceGetGraphMemAttribute(int ordinal, hipGraphMemAttributeType attribute,
                                         void* value);
hipError_t hipDeviceSetGraphMemAttribute(int ordinal, hipGraphMemAttributeType attribute,
                                         void* value);

// --- external
hipError_t hipImportExternalMemory(hipExternalMemory_t* memory,
                                   const hipExternalMemoryHandleDesc* description);
hipError_t hipDestroyExternalMemory(hipExternalMemory_t);
hipError_t hipExternalMemoryGetMappedBuffer(void**, hipExternalMemory_t,
                                            const hipExternalMemoryBufferDesc*);
hipError_t hipImportExternalSemaphore(hipExternalSemaphore_t* semaphore,
                                      const hipExternalSemaphoreHandleDesc* description);
hipError_t hipDestroyExternalSemaphore(hipExternalSemaphore_t);
hipError_t hipSignalExternalSemaphoresAsync(const hipExternalSemaphore_t*,
                                            const hipExternalSemaphoreSignalParams*, unsigned,
                                            hipStream_t);
hipError_t hipWaitExternalSemaphoresAsync(const hipExternalSemaphore_t*,
                                          const hipExternalSemaphoreWaitParams*, unsigned,
                                          hipStream_t);
hipError_t hipGraphAddExternalSemaphoresSignalNode(
    hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*, size_t,
    const hipExternalSemaphoreSignalNodeParams* params);
hipError_t hipGraphAddExternalSemaphoresWaitNode(hipGraphNode_t*, hipGraph_t, const hipGraphNode_t*,
                                                 size_t,
                                                 const hipExternalSemaphoreWaitNodeParams* params);
hipError_t hipGraphExternalSemaphoresSignalNodeGetParams(hipGraphNode_t,
                                                         hipExternalSemaphoreSignalNodeParams*);
hipError_t hipGraphExternalSemaphoresSignalNodeSetParams(
    hipGraphNode_t, const hipExternalSemaphoreSignalNodeParams*);
hipError_t hipGraphExternalSemaphoresWaitNodeGetParams(hipGraphNode_t,
                                                       hipExternalSemaphoreWaitNodeParams*);
hipError_t hipGraphExternalSemaphoresWaitNodeSetParams(hipGraphNode_t,
                                                       const hipExternalSemaphoreWaitNodeParams*);
hipError_t hipGraphExecExternalSemaphoresSignalNodeSetParams(
    hipGraphExec_t, hipGraphNode_t, const hipExternalSemaphoreSignalNodeParams*);
hipError_t hipGraphExecExternalSemaphoresWaitNodeSetParams(
    hipGraphExec_t, hipGraphNode_t, const hipExternalSemaphoreWaitNodeParams*);
hipError_t hipGLGetDevices(unsigned* count, int* ordinals, unsigned, hipGLDeviceList list);
hipError_t hipGraphicsGLRegisterBuffer(hipGraphicsResource_t*, unsigned, unsigned);
hipError_t hipGraphicsGLRegisterImage(hipGraphicsResource_t*, unsigned, unsigned, unsigned);
hipError_t hipGraphicsMapResources(int, hipGraphicsResource_t*, hipStream_t);
hipError_t hipGraphicsUnmapResources(int, hipGraphicsResource_t*, hipStream_t);
hipError_t hipGraphicsResourceGetMappedPointer(void**, size_t*, hipGraphicsResource_t);
hipError_t hipGraphicsSubResourceGetMappedArray(hipArray_t*, hipGraphicsResource_t, unsigned,
                                                unsigned);
hipError_t hipGraphicsUnregisterResource(hipGraphicsResource_t);

// --- tools
void hipRegisterTracerCallback(void* callback);
const char* hipApiName(uint32_t);
const char* hipGetCmdName(unsigned kind);
void __hipGetPCH(const char** header, unsigned* bytes);
const char* amd_dbgapi_get_build_name();
const char* amd_dbgapi_get_git_hash();
size_t amd_dbgapi_get_build_id();
unsigned short __gnu_f2h_ieee(float value);
float __gnu_h2f_ieee(unsigned short bits);
hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* properties, int ordinal);
hipError_t hipChooseDeviceR0000(int* ordinal, const hipDeviceProp_tR0000* wanted);

}  // extern "C"
