// A driver whose functions do nothing. It is used to measure wick's own cost per call.
//
//   WICK_CUDA_LIBRARY=build/release/lib/libno_op_cuda.so gpu_overhead cuda:0 --host

#include <cstddef>
#include <cstdlib>
#include <cstring>

#define NO_OP extern "C" __attribute__((visibility("default"))) int

namespace {
char something[64];
int give(void** handle) {
  *handle = something;
  return 0;
}
}  // namespace

#define NOTHING(name) \
  NO_OP name() { return 0; }
NOTHING(cuInit)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxEnablePeerAccess)
NOTHING(cuMemcpyPeerAsync)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemsetD8Async)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuCtxSynchronize)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamWaitEvent)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchKernelEx)
NOTHING(cuStreamBeginCapture_v2)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphExecDestroy)
NOTHING(cuGraphDestroy)

NO_OP cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
NO_OP cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
NO_OP cuDeviceGetName(char* name, int, int) {
  std::strcpy(name, "no-op");
  return 0;
}
NO_OP cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{1} << 32;
  return 0;
}
NO_OP cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 16 ? 132 : attribute == 97 ? 227 << 10 : 0;
  return 0;
}
NO_OP cuFuncGetAttribute(int* value, int, void*) {
  *value = 0;
  return 0;
}
NO_OP cuDeviceCanAccessPeer(int* whether, int, int) {
  *whether = 0;
  return 0;
}
NO_OP cuDevicePrimaryCtxRetain(void** context, int) { return give(context); }
NO_OP cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR";
  return 0;
}
NO_OP cuGetErrorString(int, const char** text) {
  *text = "an error";
  return 0;
}
NO_OP cuMemAlloc_v2(void** data, size_t bytes) {
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *data == nullptr ? 2 : 0;
}
NO_OP cuMemFree_v2(void* data) {
  std::free(data);
  return 0;
}
NO_OP cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 32;
  return 0;
}
NO_OP cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *data == nullptr ? 2 : 0;
}
NO_OP cuMemFreeHost(void* data) {
  std::free(data);
  return 0;
}
NO_OP cuStreamCreate(void** stream, unsigned) { return give(stream); }
NO_OP cuEventCreate(void** event, unsigned) { return give(event); }
NO_OP cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0;
  return 0;
}
NO_OP cuModuleLoadData(void** module, const void*) { return give(module); }
NO_OP cuModuleGetFunction(void** function, void*, const char*) { return give(function); }
NO_OP cuStreamEndCapture(void*, void** graph) { return give(graph); }
NO_OP cuGraphInstantiateWithFlags(void** exec, void*, unsigned long long) { return give(exec); }
