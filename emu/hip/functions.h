#pragma once

// Declares the functions of the HIP runtime that the library exports. Definitions and tests are
// checked against this list. Programs use the public headers instead.

#include "emu/hip/functions_extended.h"
#include "emu/hip/functions_thread_stream.h"
#include "emu/hip/functions_virtual.h"
#include "emu/hip/types.h"

extern "C" {

// --- errors
const char* hipGetErrorName(hipError_t code);
const char* hipGetErrorString(hipError_t code);
hipError_t hipDrvGetErrorName(hipError_t code, const char** name);
hipError_t hipDrvGetErrorString(hipError_t code, const char** string);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
hipError_t hipExtGetLastError();

// --- device
hipError_t hipInit(unsigned flags);
hipError_t hipDriverGetVersion(int* version);
hipError_t hipRuntimeGetVersion(int* version);
hipError_t hipGetDeviceCount(int* count);
hipError_t hipSetDevice(int ordinal);
hipError_t hipGetDevice(int* ordinal);
hipError_t hipDeviceGet(hipDevice_t* device, int ordinal);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int ordinal);
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int ordinal);
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int ordinal);
hipError_t hipChooseDeviceR0600(int* ordinal, const hipDeviceProp_tR0600* wanted);
hipError_t hipChooseDevice(int* ordinal, const hipDeviceProp_tR0000* wanted);
hipError_t hipDeviceGetName(char* name, int length, hipDevice_t ordinal);
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t ordinal);
hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t ordinal);
hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t ordinal);
hipError_t hipDeviceGetPCIBusId(char* id, int length, int ordinal);
hipError_t hipDeviceGetByPCIBusId(int* ordinal, const char* id);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();
hipError_t hipSetDeviceFlags(unsigned flags);
hipError_t hipGetDeviceFlags(unsigned* flags);
hipError_t hipDeviceGetLimit(size_t* value, hipLimit_t limit);
hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value);
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config);
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config);
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config);
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config);
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest);
hipError_t hipDeviceCanAccessPeer(int* can, int ordinal, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr attribute, int from, int to);
hipError_t hipProfilerStart();
hipError_t hipProfilerStop();

// --- context
hipError_t hipCtxCreate(hipCtx_t* context, unsigned flags, hipDevice_t ordinal);
hipError_t hipCtxDestroy(hipCtx_t context);
hipError_t hipCtxGetCurrent(hipCtx_t* context);
hipError_t hipCtxSetCurrent(hipCtx_t context);
hipError_t hipCtxPushCurrent(hipCtx_t context);
hipError_t hipCtxPopCurrent(hipCtx_t* context);
hipError_t hipCtxGetDevice(hipDevice_t* ordinal);
hipError_t hipCtxSynchronize();
hipError_t hipCtxGetApiVersion(hipCtx_t context, int* version);
hipError_t hipCtxGetFlags(unsigned* flags);
hipError_t hipCtxGetCacheConfig(hipFuncCache_t* config);
hipError_t hipCtxSetCacheConfig(hipFuncCache_t config);
hipError_t hipCtxGetSharedMemConfig(hipSharedMemConfig* config);
hipError_t hipCtxSetSharedMemConfig(hipSharedMemConfig config);
hipError_t hipCtxEnablePeerAccess(hipCtx_t peer, unsigned flags);
hipError_t hipCtxDisablePeerAccess(hipCtx_t peer);
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t* context, hipDevice_t ordinal);
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t ordinal);
hipError_t hipDevicePrimaryCtxReset(hipDevice_t ordinal);
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t ordinal, unsigned* flags, int* active);
hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t ordinal, unsigned);

// --- memory
hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned flags);
hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned flags);
hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
hipError_t hipMemAllocPitch(hipDeviceptr_t* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned element_bytes);
hipError_t hipMalloc3D(hipPitchedPtr* pitched, hipExtent extent);
hipError_t hipFree(void* pointer);
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags);
hipError_t hipHostAlloc(void** pointer, size_t bytes, unsigned flags);
hipError_t hipMallocHost(void** pointer, size_t bytes);
hipError_t hipMemAllocHost(void** pointer, size_t bytes);
hipError_t hipHostFree(void* pointer);
hipError_t hipFreeHost(void* pointer);
hipError_t hipHostRegister(void* pointer, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void* pointer);
hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned flags);
hipError_t hipHostGetFlags(unsigned* flags, void* host);
hipError_t hipMemGetInfo(size_t* free, size_t* total);
hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes);
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer);
hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute,
                                  hipDeviceptr_t pointer);
hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute* attributes, void** data,
                                      hipDeviceptr_t pointer);
hipError_t hipMemAdvise(const void* pointer, size_t bytes, hipMemoryAdvise, int ordinal);
hipError_t hipMemPrefetchAsync(const void* pointer, size_t bytes, int ordinal, hipStream_t stream);
hipError_t hipMemRangeGetAttribute(void* data, size_t bytes, hipMemRangeAttribute attribute,
                                   const void* pointer, size_t count);
hipError_t hipMemRangeGetAttributes(void** data, size_t* bytes, hipMemRangeAttribute* attributes,
                                    size_t number, const void* pointer, size_t count);
hipError_t hipStreamAttachMemAsync(hipStream_t stream, void* pointer, size_t, unsigned flags);

// --- copy
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream);
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t bytes);
hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                              hipStream_t stream);
hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes);
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              size_t bytes, hipStream_t stream);
hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, hipMemcpyKind kind);
hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                            size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyParam2D(const hip_Memcpy2D* parms);
hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* parms, hipStream_t stream);
hipError_t hipDrvMemcpy2DUnaligned(const hip_Memcpy2D* parms);
hipError_t hipMemcpy3D(const hipMemcpy3DParms* parms);
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* parms, hipStream_t stream);
hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                             hipMemcpyKind kind);
hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                  hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                               hipMemcpyKind kind);
hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemset(void* to, int value, size_t bytes);
hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream);
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count);
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count,
                            hipStream_t stream);
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count);
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count,
                             hipStream_t stream);
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count);
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream);
hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height);
hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                            hipStream_t stream);
hipError_t hipMemset3D(hipPitchedPtr to, int value, hipExtent extent);
hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream);

// --- pool
hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream);
hipError_t hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool,
                                  hipStream_t stream);
hipError_t hipFreeAsync(void* pointer, hipStream_t handle);
hipError_t hipMemPoolCreate(hipMemPool_t* pool, const hipMemPoolProps* props);
hipError_t hipMemPoolDestroy(hipMemPool_t handle);
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int ordinal);
hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int ordinal);
hipError_t hipDeviceSetMemPool(int ordinal, hipMemPool_t handle);
hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t);
hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void* value);
hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void* value);
hipError_t hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc* list, size_t count);
hipError_t hipMemPoolGetAccess(hipMemAccessFlags* flags, hipMemPool_t handle,
                               hipMemLocation* location);

// --- module
hipError_t hipModuleLoad(hipModule_t* module, const char* name);
hipError_t hipModuleLoadData(hipModule_t* module, const void* image);
hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned, hipJitOption*,
                               void**);
hipError_t hipModuleUnload(hipModule_t handle);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t handle, const char* name);
hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t handle,
                              const char* name);
hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute, hipFunction_t function);
hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function);
hipError_t hipFuncSetAttribute(const void* function, hipFuncAttribute attribute, int value);
hipError_t hipFuncSetCacheConfig(const void* function, hipFuncCache_t config);
hipError_t hipFuncSetSharedMemConfig(const void* function, hipSharedMemConfig config);
hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol);
hipError_t hipGetProcAddress(const char* name, void** function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult* result);
const char* hipKernelNameRef(hipFunction_t function);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, hipFunction_t function,
                                                              int items, size_t lds);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* groups,
                                                                       hipFunction_t function,
                                                                       int items, size_t lds,
                                                                       unsigned flags);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, const void* function,
                                                        int items, size_t lds);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* groups, const void* function,
                                                                 int items, size_t lds,
                                                                 unsigned flags);
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, hipFunction_t function,
                                                   size_t lds, int limit);
hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                            hipFunction_t function, size_t lds,
                                                            int limit, unsigned flags);
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* function,
                                             size_t lds, int limit);

// --- launch
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned lds,
                                 hipStream_t stream, void** params, void** extra);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                            unsigned lds, hipStream_t stream, void** params);
hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** params, size_t lds,
                           hipStream_t stream);
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** params,
                              size_t lds, hipStream_t stream, hipEvent_t start, hipEvent_t stop,
                              int flags);
hipError_t hipLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** params,
                                      unsigned lds, hipStream_t stream);
hipError_t hipLaunchCooperativeKernelMultiDevice(hipLaunchParams* list, int count, unsigned flags);
hipError_t hipExtLaunchMultiKernelMultiDevice(hipLaunchParams* list, int count, unsigned flags);

// --- program
void** __hipRegisterFatBinary(const void* data);
void __hipUnregisterFatBinary(void** handle);
void __hipRegisterFunction(void** handle, const void* function, char*, const char* name, unsigned,
                           uint3*, uint3*, dim3*, dim3*, int*);
void __hipRegisterVar(void** handle, void* variable, char*, char* name, int, size_t bytes, int,
                      int);
void __hipRegisterManagedVar(void* handle, void** pointer, void* initial, const char* name,
                             size_t bytes, unsigned);
void __hipRegisterTexture(void**, void*, char*, char*, int, int, int);
void __hipRegisterSurface(void**, void*, char*, char*, int, int);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, hipStream_t* stream);
hipError_t hipGetSymbolAddress(void** pointer, const void* symbol);
hipError_t hipGetSymbolSize(size_t* bytes, const void* symbol);

// --- stream
hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags);
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority);
hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t count, const uint32_t* mask);
hipError_t hipStreamDestroy(hipStream_t handle);
hipError_t hipStreamSynchronize(hipStream_t handle);
hipError_t hipStreamQuery(hipStream_t handle);
hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags);
hipError_t hipStreamGetPriority(hipStream_t handle, int* priority);
hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* ordinal);
int hipGetStreamDeviceId(hipStream_t handle);
hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t function, void* data,
                                unsigned flags);
hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data);
hipError_t hipStreamWaitValue32(hipStream_t stream, void* pointer, uint32_t value,
                                unsigned condition, uint32_t mask);
hipError_t hipStreamWaitValue64(hipStream_t stream, void* pointer, uint64_t value,
                                unsigned condition, uint64_t mask);
hipError_t hipStreamWriteValue32(hipStream_t stream, void* pointer, uint32_t value, unsigned flags);
hipError_t hipStreamWriteValue64(hipStream_t stream, void* pointer, uint64_t value, unsigned flags);

// --- event
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t handle);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags);
hipError_t hipEventQuery(hipEvent_t handle);
hipError_t hipEventSynchronize(hipEvent_t handle);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);
hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle, unsigned flags);

// --- capture
hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t* graph);
hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status);
hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus* status,
                                   unsigned long long* id);
hipError_t hipStreamGetCaptureInfo_v2(hipStream_t handle, hipStreamCaptureStatus* status,
                                      unsigned long long* id, hipGraph_t* graph,
                                      const hipGraphNode_t** nodes, size_t* count);
hipError_t hipStreamUpdateCaptureDependencies(hipStream_t handle, hipGraphNode_t* nodes,
                                              size_t count, unsigned flags);
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode);

// --- graph
hipError_t hipGraphCreate(hipGraph_t* graph, unsigned flags);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphClone(hipGraph_t* copy, hipGraph_t original);
hipError_t hipGraphNodeFindInClone(hipGraphNode_t* node, hipGraphNode_t original, hipGraph_t clone);
hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to,
                            size_t* count);
hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type);
hipError_t hipGraphDestroyNode(hipGraphNode_t node);
hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t* from,
                                   const hipGraphNode_t* to, size_t count);
hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t* from,
                                      const hipGraphNode_t* to, size_t count);
hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t* culprit,
                               char* log, size_t log_bytes);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph,
                                        unsigned long long flags);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec);
hipError_t hipGraphLaunch(hipGraphExec_t handle, hipStream_t stream_handle);
hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphExecGetFlags(hipGraphExec_t exec, unsigned long long* flags);
hipError_t hipGraphExecUpdate(hipGraphExec_t handle, hipGraph_t graph, hipGraphNode_t* culprit_out,
                              hipGraphExecUpdateResult* result_out);
hipError_t hipGraphNodeSetEnabled(hipGraphExec_t handle, hipGraphNode_t node, unsigned enabled);
hipError_t hipGraphNodeGetEnabled(hipGraphExec_t handle, hipGraphNode_t node, unsigned* enabled);
hipError_t hipGraphDebugDotPrint(hipGraph_t graph, const char* path, unsigned);

// --- graph nodes
hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after,
                                size_t count);
hipError_t hipGraphAddKernelNode(hipGraphNode_t* node, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipKernelNodeParams* params);
hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams* params);
hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams* params);
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams* params);
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemcpy3DParms* params);
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count, void* to,
                                   const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, size_t count,
                                         const void* symbol, const void* from, size_t bytes,
                                         size_t offset, hipMemcpyKind kind);
hipError_t hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                           const hipGraphNode_t* after, size_t count, void* to,
                                           const void* symbol, size_t bytes, size_t offset,
                                           hipMemcpyKind kind);
hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms* params);
hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms* params);
hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from,
                                         size_t bytes, hipMemcpyKind kind);
hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           hipMemcpy3DParms* params);
hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node, void* to,
                                             const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemsetParams* params);
hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams* params);
hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams* params);
hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipMemsetParams* params);
hipError_t hipGraphAddHostNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after,
                               size_t count, const hipHostNodeParams* params);
hipError_t hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams* params);
hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams* params);
hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         const hipHostNodeParams* params);
hipError_t hipGraphAddEventRecordNode(hipGraphNode_t* node, hipGraph_t graph,
                                      const hipGraphNode_t* after, size_t count, hipEvent_t event);
hipError_t hipGraphAddEventWaitNode(hipGraphNode_t* node, hipGraph_t graph,
                                    const hipGraphNode_t* after, size_t count, hipEvent_t event);
hipError_t hipGraphEventRecordNodeGetEvent(hipGraphNode_t node, hipEvent_t* event);
hipError_t hipGraphEventWaitNodeGetEvent(hipGraphNode_t node, hipEvent_t* event);
hipError_t hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event);
hipError_t hipGraphEventWaitNodeSetEvent(hipGraphNode_t node, hipEvent_t event);
hipError_t hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                               hipEvent_t event);
hipError_t hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                             hipEvent_t event);
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count, hipGraph_t child);
hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t* child);
hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               hipGraph_t child);
hipError_t hipGraphAddMemAllocNode(hipGraphNode_t* node, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count,
                                   hipMemAllocNodeParams* params);
hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t node, hipMemAllocNodeParams* params);
hipError_t hipGraphAddMemFreeNode(hipGraphNode_t* node, hipGraph_t graph,
                                  const hipGraphNode_t* after, size_t count, void* pointer);
hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void* pointer);
hipError_t hipDeviceGraphMemTrim(int ordinal);
hipError_t hipUserObjectCreate(hipUserObject_t* object, void* data, hipHostFn_t destroy,
                               unsigned references, unsigned flags);
hipError_t hipUserObjectRelease(hipUserObject_t object, unsigned count);
hipError_t hipUserObjectRetain(hipUserObject_t object, unsigned count);
hipError_t hipGraphRetainUserObject(hipGraph_t graph, hipUserObject_t object, unsigned count,
                                    unsigned flags);
hipError_t hipGraphReleaseUserObject(hipGraph_t graph, hipUserObject_t object, unsigned count);

}  // extern "C"

// The public headers declare these two functions with C++ linkage.
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t nx, uint32_t ny, uint32_t nz,
                                    uint32_t bx, uint32_t by, uint32_t bz, size_t lds,
                                    hipStream_t stream, void** params, void** extra,
                                    hipEvent_t start, hipEvent_t stop, uint32_t flags);
hipError_t hipHccModuleLaunchKernel(hipFunction_t function, uint32_t nx, uint32_t ny, uint32_t nz,
                                    uint32_t bx, uint32_t by, uint32_t bz, size_t lds,
                                    hipStream_t stream, void** params, void** extra,
                                    hipEvent_t start, hipEvent_t stop);
