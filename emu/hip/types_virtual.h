#pragma once

// Types of the virtual memory API.

#include "emu/hip/types.h"

extern "C" {

typedef struct ihipMemGenericAllocationHandle* hipMemGenericAllocationHandle_t;

enum hipMemAllocationGranularity_flags : unsigned {
  hipMemAllocationGranularityMinimum = 0,
  hipMemAllocationGranularityRecommended = 1
};

struct hipMemAllocationProp {
  hipMemAllocationType type;
  hipMemAllocationHandleType requestedHandleTypes;
  hipMemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
  } allocFlags;
};
static_assert(sizeof(hipMemAllocationProp) == 32);

/// What is to be mapped into a sparse array, which no device supports.
struct hipArrayMapInfo;

enum hipMemRangeHandleType : unsigned { hipMemRangeHandleTypeDmaBufFd = 1 };

enum { hipIpcMemLazyEnablePeerAccess = 1 };

struct hipMemPoolPtrExportData {
  unsigned char reserved[64];
};

}  // extern "C"
