#pragma once

// Declares the functions of the virtual memory API, and those that share memory between pools or
// processes.

#include "emu/hip/types_virtual.h"

extern "C" {

hipError_t hipMemGetAllocationGranularity(size_t* granularity, const hipMemAllocationProp* prop,
                                          hipMemAllocationGranularity_flags option);
hipError_t hipMemAddressReserve(void** pointer, size_t bytes, size_t alignment, void* wanted,
                                unsigned long long flags);
hipError_t hipMemAddressFree(void* pointer, size_t bytes);
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* handle, size_t bytes,
                        const hipMemAllocationProp* prop, unsigned long long flags);
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle);
hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle, void* pointer);
hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp* prop,
                                                   hipMemGenericAllocationHandle_t handle);
hipError_t hipMemMap(void* pointer, size_t bytes, size_t offset,
                     hipMemGenericAllocationHandle_t handle, unsigned long long flags);
hipError_t hipMemUnmap(void* pointer, size_t bytes);
hipError_t hipMemSetAccess(void* pointer, size_t bytes, const hipMemAccessDesc* list, size_t count);
hipError_t hipMemGetAccess(unsigned long long* flags, const hipMemLocation* location,
                           void* pointer);
hipError_t hipMemExportToShareableHandle(void* shareable, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags);
hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle, void* shareable,
                                           hipMemAllocationHandleType type);
hipError_t hipMemMapArrayAsync(hipArrayMapInfo* list, unsigned count, hipStream_t stream);
hipError_t hipMemGetHandleForAddressRange(void* handle, hipDeviceptr_t pointer, size_t bytes,
                                          hipMemRangeHandleType type, unsigned long long flags);

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* pointer);
hipError_t hipIpcOpenMemHandle(void** pointer, hipIpcMemHandle_t handle, unsigned flags);
hipError_t hipIpcCloseMemHandle(void* pointer);
hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t* handle, hipEvent_t event);
hipError_t hipIpcOpenEventHandle(hipEvent_t* event, hipIpcEventHandle_t handle);

hipError_t hipMemPoolExportToShareableHandle(void* shareable, hipMemPool_t pool,
                                             hipMemAllocationHandleType type, unsigned flags);
hipError_t hipMemPoolImportFromShareableHandle(hipMemPool_t* pool, void* shareable,
                                               hipMemAllocationHandleType type, unsigned flags);
hipError_t hipMemPoolExportPointer(hipMemPoolPtrExportData* data, void* pointer);
hipError_t hipMemPoolImportPointer(void** pointer, hipMemPool_t pool,
                                   hipMemPoolPtrExportData* data);

}  // extern "C"
