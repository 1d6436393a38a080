// Handles of memory and events that are opened in the process that made them.

#include <cstring>

#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipSharing, OpensMemoryInItsProcess) {
  const Buffer<int> data(64);
  hipIpcMemHandle_t handle;
  void* opened = nullptr;
  HIP_OK(hipIpcGetMemHandle(&handle, data.data + 4));
  HIP_OK(hipIpcOpenMemHandle(&opened, handle, hipIpcMemLazyEnablePeerAccess));
  HIP_OK(hipMemsetD32(opened, 5, 4));
  const std::vector<int> got = data.get();
  EXPECT_EQ(0, got[3]);
  EXPECT_EQ(5, got[4]);
  HIP_OK(hipIpcCloseMemHandle(opened));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcCloseMemHandle(opened));
}

TEST(HipSharing, RefusesWhatIsNoHandle) {
  hipIpcMemHandle_t handle{};
  void* opened = nullptr;
  int on_host = 0;
  HIP_REFUSES(hipErrorInvalidValue, hipIpcOpenMemHandle(&opened, handle, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, &on_host));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcGetMemHandle(nullptr, &on_host));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcCloseMemHandle(&on_host));
  std::memset(&handle, 0x5a, sizeof handle);
  HIP_REFUSES(hipErrorInvalidValue, hipIpcOpenMemHandle(&opened, handle, 1));
  {
    const Buffer<int> freed(64);
    HIP_OK(hipIpcGetMemHandle(&handle, freed.data));
    HIP_REFUSES(hipErrorInvalidValue, hipIpcOpenMemHandle(nullptr, handle, 1));
    HIP_REFUSES(hipErrorInvalidValue, hipIpcOpenMemHandle(&opened, handle, 7));
  }
  HIP_REFUSES(hipErrorInvalidDevicePointer, hipIpcOpenMemHandle(&opened, handle, 1));
}

TEST(HipSharing, OtherProcessesGetAnError) {
  const Buffer<int> data(64);
  hipIpcMemHandle_t handle;
  HIP_OK(hipIpcGetMemHandle(&handle, data.data));
  ++handle.reserved[8];  // the number of the process
  void* opened = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipErrorNotSupported, hipIpcOpenMemHandle(&opened, handle, 1));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.npos, text.find("processes can't share memory")) << text;
  (void)hipGetLastError();
}

TEST(HipSharing, OpensEventsInTheirProcess) {
  hipEvent_t plain = nullptr, event = nullptr, opened = nullptr;
  hipIpcEventHandle_t handle{};
  HIP_OK(hipEventCreateWithFlags(&plain, hipEventDisableTiming));
  HIP_REFUSES(hipErrorInvalidConfiguration, hipIpcGetEventHandle(&handle, plain));
  HIP_OK(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
  HIP_OK(hipIpcGetEventHandle(&handle, event));
  HIP_OK(hipIpcOpenEventHandle(&opened, handle));
  EXPECT_NE(event, opened);
  Gate gate;
  const Stream stream;
  HIP_OK(hipLaunchHostFunc(stream, Gate::wait, &gate));
  HIP_OK(hipEventRecord(event, stream));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(opened));
  gate.open = true;
  HIP_OK(hipEventSynchronize(opened));
  HIP_OK(hipEventQuery(event));
  HIP_OK(hipEventDestroy(opened));
  HIP_OK(hipEventQuery(event));
  HIP_OK(hipEventDestroy(event));
  HIP_REFUSES(hipErrorInvalidValue, hipIpcOpenEventHandle(&opened, handle));
  HIP_OK(hipEventDestroy(plain));
}

TEST(HipSharing, PoolsArentShared) {
  hipMemPool_t pool = nullptr, imported = nullptr;
  HIP_OK(hipDeviceGetDefaultMemPool(&pool, 0));
  int file = -1;
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(
                                        &file, pool, hipMemHandleTypePosixFileDescriptor, 0));
  HIP_REFUSES(hipErrorNotSupported, hipMemPoolImportFromShareableHandle(
                                        &imported, &file, hipMemHandleTypePosixFileDescriptor, 0));
  hipMemPoolPtrExportData data{};
  void* pointer = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, &file));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolImportPointer(&pointer, pool, &data));
  const Buffer<int> block(64);
  HIP_REFUSES(hipErrorNotSupported, hipMemGetHandleForAddressRange(
                                        &file, block.data, 256, hipMemRangeHandleTypeDmaBufFd, 0));
}

}  // namespace
