#pragma once

// Types of functions that HIP gained from 6.0 on, and of those that few programs use: attributes of
// launches and streams, batches, libraries, external memory, and nodes of any type.

#include "emu/hip/types.h"

extern "C" {

// --- attributes of launches and streams
enum hipLaunchAttributeID : unsigned {
  hipLaunchAttributeAccessPolicyWindow = 1,
  hipLaunchAttributeCooperative = 2,
  hipLaunchAttributeSynchronizationPolicy = 3,
  hipLaunchAttributePriority = 8,
  hipLaunchAttributeMemSyncDomainMap = 9,
  hipLaunchAttributeMemSyncDomain = 10
};
enum hipSynchronizationPolicy : unsigned {
  hipSyncPolicyAuto = 1,
  hipSyncPolicySpin = 2,
  hipSyncPolicyYield = 3,
  hipSyncPolicyBlockingSync = 4
};
struct hipAccessPolicyWindow {
  void* base_ptr;
  unsigned hitProp;
  float hitRatio;
  unsigned missProp;
  size_t num_bytes;
};
union hipLaunchAttributeValue {
  char pad[64];
  hipAccessPolicyWindow accessPolicyWindow;
  int cooperative, priority;
  hipSynchronizationPolicy syncPolicy;
};
struct hipLaunchAttribute {
  hipLaunchAttributeID id;
  char pad[4];
  hipLaunchAttributeValue value;
};
static_assert(sizeof(hipLaunchAttribute) == 72);
struct hipLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  hipStream_t stream;
  hipLaunchAttribute* attrs;
  unsigned numAttrs;
};
struct HIP_LAUNCH_CONFIG {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  hipStream_t hStream;
  hipLaunchAttribute* attrs;
  unsigned numAttrs;
};

// --- batches
enum hipStreamBatchMemOpType : unsigned {
  hipStreamMemOpWaitValue32 = 1,
  hipStreamMemOpWriteValue32 = 2,
  hipStreamMemOpFlushRemoteWrites = 3,
  hipStreamMemOpWaitValue64 = 4,
  hipStreamMemOpWriteValue64 = 5,
  hipStreamMemOpBarrier = 6
};
/// Waits and writes have the same layout.
struct hipStreamMemOpValueParams {
  hipStreamBatchMemOpType operation;
  hipDeviceptr_t address;
  uint64_t value;
  unsigned flags;
  hipDeviceptr_t alias;
};
union hipStreamBatchMemOpParams {
  hipStreamBatchMemOpType operation;
  hipStreamMemOpValueParams value;
  uint64_t pad[6];
};
static_assert(sizeof(hipStreamBatchMemOpParams) == 48);
struct hipBatchMemOpNodeParams {
  hipCtx_t ctx;
  unsigned count;
  hipStreamBatchMemOpParams* paramArray;
  unsigned flags;
};
struct hipMemcpyAttributes {
  unsigned srcAccessOrder;
  hipMemLocation srcLocHint, dstLocHint;
  unsigned flags;
};
enum hipMemcpy3DOperandType : unsigned {
  hipMemcpyOperandTypePointer = 1,
  hipMemcpyOperandTypeArray = 2
};
struct hipMemcpy3DOperand {
  hipMemcpy3DOperandType type;
  union {
    struct {
      void* ptr;
      size_t rowLength, layerHeight;
      hipMemLocation locHint;
    } ptr;
    struct {
      hipArray_t array;
      size_t x, y, z;
    } array;
  } op;
};
struct hipMemcpy3DBatchOp {
  hipMemcpy3DOperand src, dst;
  hipExtent extent;
  unsigned srcAccessOrder, flags;
};

// --- copies
struct hipMemcpy3DPeerParms {
  hipArray_t srcArray;
  hipPos srcPos;
  hipPitchedPtr srcPtr;
  int srcDevice;
  hipArray_t dstArray;
  hipPos dstPos;
  hipPitchedPtr dstPtr;
  int dstDevice;
  hipExtent extent;
};
struct HIP_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  hipMemoryType srcMemoryType;
  const void* srcHost;
  hipDeviceptr_t srcDevice;
  hipArray_t srcArray;
  size_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
  hipMemoryType dstMemoryType;
  void* dstHost;
  hipDeviceptr_t dstDevice;
  hipArray_t dstArray;
  size_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
};

// --- libraries
typedef struct ihipLibrary_t* hipLibrary_t;
typedef struct ihipKernel_t* hipKernel_t;
enum hipLibraryOption : unsigned {
  hipLibraryHostUniversalFunctionAndDataTable = 0,
  hipLibraryBinaryIsPreserved = 1
};
enum hipDriverEntryPointQueryResult : unsigned {
  hipDriverEntryPointSuccess = 0,
  hipDriverEntryPointSymbolNotFound = 1,
  hipDriverEntryPointVersionNotSufficent = 2
};

// --- graphs
struct hipMemcpyNodeParams {
  int flags, reserved[3];
  hipMemcpy3DParms copyParams;
};
struct hipExternalSemaphoreNodeParams {
  void *extSemArray, *paramsArray;
  unsigned numExtSems;
};
struct hipGraphNodeParams {
  hipGraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    hipKernelNodeParams kernel;
    hipMemcpyNodeParams memcpy;
    hipMemsetParams memset;
    hipHostNodeParams host;
    hipGraph_t graph;
    hipEvent_t event;
    hipExternalSemaphoreNodeParams semaphores;
    hipMemAllocNodeParams alloc;
    void* free;
  };
  long long reserved2;
};
static_assert(sizeof(hipGraphNodeParams) == 256);
struct hipGraphEdgeData {
  unsigned char from_port, reserved[5], to_port, type;
};
enum hipGraphInstantiateResult : unsigned {
  hipGraphInstantiateSuccess = 0,
  hipGraphInstantiateError = 1
};
struct hipGraphInstantiateParams {
  hipGraphNode_t errNode_out;
  unsigned long long flags;
  hipGraphInstantiateResult result_out;
  hipStream_t uploadStream;
};

// --- memory, semaphores and resources of other interfaces, none of which the emulator has
typedef void* hipExternalMemory_t;
typedef void* hipExternalSemaphore_t;
typedef struct _hipGraphicsResource* hipGraphicsResource_t;
struct hipExternalMemoryHandleDesc;
struct hipExternalMemoryBufferDesc;
struct hipExternalSemaphoreHandleDesc;
struct hipExternalSemaphoreSignalParams;
struct hipExternalSemaphoreWaitParams;
typedef hipExternalSemaphoreNodeParams hipExternalSemaphoreSignalNodeParams;
typedef hipExternalSemaphoreNodeParams hipExternalSemaphoreWaitNodeParams;
enum hipGLDeviceList : unsigned {
  hipGLDeviceListAll = 1,
  hipGLDeviceListCurrentFrame = 2,
  hipGLDeviceListNextFrame = 3
};

}  // extern "C"
