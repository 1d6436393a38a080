// Functions that HIP gained from 6.0 on, and those that few programs use: launches with attributes,
// libraries, batches, copies in space, and attributes of streams.

#include <cstring>

#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipExtended, LibrariesHaveKernels) {
  const std::vector<char> image = kernel_file(basic_kernels());
  hipLibrary_t library = nullptr, owner = nullptr;
  HIP_OK(hipLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  HIP_OK(hipLibraryGetKernelCount(&count, library));
  EXPECT_GT(count, 5u);
  std::vector<hipKernel_t> all(count);
  HIP_OK(hipLibraryEnumerateKernels(all.data(), count, library));
  hipKernel_t kernel = nullptr;
  HIP_OK(hipLibraryGetKernel(&kernel, library, "set_to"));
  EXPECT_NE(all.end(), std::find(all.begin(), all.end(), kernel));
  const char* name = nullptr;
  HIP_OK(hipKernelGetName(&name, kernel));
  EXPECT_STREQ("set_to", name);
  HIP_OK(hipKernelGetLibrary(&owner, kernel));
  EXPECT_EQ(library, owner);
  unsigned functions = 0;
  HIP_OK(hipModuleGetFunctionCount(&functions, reinterpret_cast<hipModule_t>(library)));
  EXPECT_EQ(count, functions);
  const Buffer<int> data(32);
  HIP_OK(launch(reinterpret_cast<hipFunction_t>(kernel), 1, 32, 0, nullptr, data.data, 8));
  EXPECT_EQ(8, data.get()[31]);
  HIP_REFUSES(hipErrorNotFound, hipLibraryGetKernel(&kernel, library, "no_kernel"));
  HIP_OK(hipLibraryUnload(library));
  HIP_REFUSES(hipErrorInvalidHandle, hipLibraryUnload(library));
  HIP_REFUSES(hipErrorInvalidValue, hipLibraryGetKernelCount(&count, library));
  HIP_REFUSES(hipErrorInvalidValue, hipKernelGetName(&name, kernel));
}

TEST(HipExtended, LaunchesTakeAttributes) {
  Program program;
  const Kernels kernels;
  const void* set_to = program.kernel("set_to");
  const Buffer<int> data(64);
  int value = 3;
  void* arguments[] = {const_cast<int**>(&data.data), &value};
  hipLaunchAttribute attributes[2]{};
  attributes[0].id = hipLaunchAttributeCooperative;
  attributes[0].value.cooperative = 1;
  attributes[1].id = hipLaunchAttributePriority;
  hipLaunchConfig_t config{{2, 1, 1}, {32, 1, 1}, 0, nullptr, attributes, 2};
  HIP_OK(hipLaunchKernelExC(&config, set_to, arguments));
  EXPECT_EQ(data.get(), std::vector<int>(64, 3));
  value = 4;
  HIP_LAUNCH_CONFIG driver{2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
  HIP_OK(hipDrvLaunchKernelEx(&driver, kernels["set_to"], arguments, nullptr));
  EXPECT_EQ(data.get(), std::vector<int>(64, 4));
  config.gridDim.x = 100'000'000;  // more than run at once, as a cooperative launch needs
  HIP_REFUSES(hipErrorCooperativeLaunchTooLarge, hipLaunchKernelExC(&config, set_to, arguments));
  attributes[1].id = static_cast<hipLaunchAttributeID>(77);
  HIP_REFUSES(hipErrorInvalidValue, hipLaunchKernelExC(&config, set_to, arguments));
  config.attrs = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipLaunchKernelExC(&config, set_to, arguments));
  HIP_REFUSES(hipErrorInvalidValue, hipLaunchKernelExC(nullptr, set_to, arguments));
  HIP_REFUSES(hipErrorInvalidDeviceFunction, hipLaunchKernelExC(&config, nullptr, arguments));
  hipFunctionLaunchParams each{kernels["add_one"], 1,      1, 1, 32, 1, 1, 0,
                               hipStreamPerThread, nullptr};
  int count = 64;
  void* more[] = {const_cast<int**>(&data.data), &count};
  each.kernelParams = more;
  HIP_OK(hipModuleLaunchCooperativeKernelMultiDevice(&each, 1, 0));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(5, data.get()[31]);
  HIP_REFUSES(hipErrorInvalidValue, hipModuleLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipModuleLaunchCooperativeKernelMultiDevice(&each, 99, 0));
}

TEST(HipExtended, OldLaunchesSetArgumentsOneByOne) {
  Program program;
  const void* set_to = program.kernel("set_to");
  const Buffer<int> data(32);
  const int value = 12;
  HIP_REFUSES(hipErrorMissingConfiguration, hipLaunchByPtr(set_to));
  HIP_OK(hipConfigureCall({1, 1, 1}, {32, 1, 1}, 0, nullptr));
  HIP_OK(hipSetupArgument(&data.data, 8, 0));
  HIP_OK(hipSetupArgument(&value, 4, 8));
  HIP_REFUSES(hipErrorInvalidValue, hipSetupArgument(&value, ~size_t{0}, 8));
  HIP_REFUSES(hipErrorInvalidValue, hipSetupArgument(&value, 4, ~size_t{0}));
  HIP_OK(hipLaunchByPtr(set_to));
  EXPECT_EQ(12, data.get()[31]);
  EXPECT_STREQ("set_to", hipKernelNameRefByPtr(set_to, nullptr));
  EXPECT_EQ(nullptr, hipKernelNameRefByPtr(&value, nullptr));
}

TEST(HipExtended, LdsThatIsLeft) {
  const Kernels kernels;
  size_t one = 0, more = 0;
  HIP_OK(hipOccupancyAvailableDynamicSMemPerBlock(&one, kernels["reverse"], 1, 128));
  HIP_OK(hipOccupancyAvailableDynamicSMemPerBlock(&more, kernels["reverse"], 4, 128));
  EXPECT_GT(one, more);
  EXPECT_GT(more, 0u);
  int groups = 0;
  HIP_OK(
      hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kernels["reverse"], 128, more));
  EXPECT_GE(groups, 4);
  HIP_REFUSES(hipErrorInvalidValue,
              hipOccupancyAvailableDynamicSMemPerBlock(&one, kernels["reverse"], 0, 128));
}

TEST(HipExtended, BatchesOfCopies) {
  const Buffer<int> a(16), b(16);
  const Stream stream;
  void* to[] = {b.data, b.data + 8};
  void* from[] = {a.data, a.data + 4};
  size_t sizes[] = {16, 16}, failed = 0;
  HIP_OK(hipMemsetD32(a.data, 1, 4));
  HIP_OK(hipMemsetD32(a.data + 4, 2, 4));
  HIP_OK(hipDeviceSynchronize());
  HIP_OK(hipMemcpyBatchAsync(to, from, sizes, 2, nullptr, nullptr, 0, &failed, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(b.get(), (std::vector<int>{1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0}));
  sizes[1] = 4096;
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemcpyBatchAsync(to, from, sizes, 2, nullptr, nullptr, 0, &failed, stream));
  EXPECT_EQ(1u, failed);
  hipMemcpy3DBatchOp op{};
  op.src.type = op.dst.type = hipMemcpyOperandTypePointer;
  op.src.op.ptr.ptr = a.data;
  op.dst.op.ptr.ptr = b.data;
  op.src.op.ptr.rowLength = op.dst.op.ptr.rowLength = 16;
  op.extent = {8, 2, 1};
  op.srcAccessOrder = 1;
  HIP_OK(hipMemset(b.data, 0, 64));
  HIP_OK(hipDeviceSynchronize());
  HIP_OK(hipMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(b.get(), (std::vector<int>{1, 1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  op.dst.op.ptr.ptr = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
  EXPECT_EQ(0u, failed);
}

TEST(HipExtended, CopiesInSpace) {
  const Buffer<char> a(256), b(256);
  HIP_OK(hipMemset(a.data, 1, 256));
  HIP_MEMCPY3D p{};
  p.srcMemoryType = p.dstMemoryType = hipMemoryTypeDevice;
  p.srcDevice = a.data;
  p.dstDevice = b.data;
  p.srcPitch = p.dstPitch = 16;
  p.srcHeight = p.dstHeight = 4;
  p.WidthInBytes = 8;
  p.Height = 2;
  p.Depth = 2;
  p.dstXInBytes = 4;
  p.dstY = 1;
  HIP_OK(hipDrvMemcpy3D(&p));
  std::vector<char> wanted(256);
  for (const size_t at : {16u, 32u, 80u, 96u})
    std::fill_n(wanted.begin() + static_cast<long>(at) + 4, 8, 1);
  EXPECT_EQ(wanted, b.get());
  HIP_OK(hipDrvMemcpy3DAsync(&p, nullptr));
  p.dstMemoryType = static_cast<hipMemoryType>(55);
  HIP_REFUSES(hipErrorInvalidValue, hipDrvMemcpy3D(&p));
  HIP_REFUSES(hipErrorInvalidValue, hipDrvMemcpy3D(nullptr));
  p.dstMemoryType = hipMemoryTypeDevice;
  p.Depth = ~size_t{0};
  HIP_REFUSES(hipErrorInvalidValue, hipDrvMemcpy3D(&p));
  HIP_OK(hipMemsetD2D16(b.data, 32, 0x0202, 4, 3));
  HIP_OK(hipMemsetD2D8(b.data + 128, 32, 3, 4, 2));
  HIP_OK(hipMemsetD2D32(b.data + 192, 32, 0x04040404, 2, 2));
  HIP_OK(hipMemsetD2D16Async(b.data, 32, 0x0202, 4, 3, nullptr));
  HIP_OK(hipMemsetD2D8Async(b.data + 128, 32, 3, 4, 2, nullptr));
  HIP_OK(hipMemsetD2D32Async(b.data + 192, 32, 0x04040404, 2, 2, nullptr));
  const std::vector<char> got = b.get();
  EXPECT_EQ(2, got[64 + 7]);
  EXPECT_EQ(3, got[160 + 3]);
  EXPECT_EQ(4, got[224 + 7]);
  HIP_REFUSES(hipErrorInvalidValue, hipMemsetD2D32(b.data, 4, 0, 2, 2));
  HIP_REFUSES(hipErrorInvalidValue, hipMemsetD2D32(b.data, 64, 0, 2, ~size_t{0}));
}

TEST(HipExtended, StreamsHaveAttributes) {
  const Stream one, other;
  hipLaunchAttributeValue value{};
  value.syncPolicy = hipSyncPolicySpin;
  HIP_OK(hipStreamSetAttribute(one, hipLaunchAttributeSynchronizationPolicy, &value));
  HIP_OK(hipStreamCopyAttributes(other, one));
  value = {};
  HIP_OK(hipStreamGetAttribute(other, hipLaunchAttributeSynchronizationPolicy, &value));
  EXPECT_EQ(hipSyncPolicySpin, value.syncPolicy);
  unsigned long long first = 0, second = 0;
  HIP_OK(hipStreamGetId(one, &first));
  HIP_OK(hipStreamGetId(other, &second));
  EXPECT_NE(first, second);
  const uint32_t wanted = 5;
  uint32_t mask[8] = {};
  hipStream_t masked = nullptr;
  HIP_OK(hipExtStreamCreateWithCUMask(&masked, 1, &wanted));
  HIP_OK(hipExtStreamGetCUMask(masked, 8, mask));
  EXPECT_EQ(5u, mask[0]);
  EXPECT_EQ(0u, mask[1]);
  HIP_OK(hipStreamDestroy(masked));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamGetId(masked, &first));
}

TEST(HipExtended, StreamsRunBatchesOfWritesAndWaits) {
  const Buffer<uint64_t> data(2);
  const Stream stream;
  hipStreamBatchMemOpParams list[3]{};
  list[0].value = {hipStreamMemOpWriteValue32, data.data, 7, 0, nullptr};
  list[1].value = {hipStreamMemOpWriteValue64, data.data + 1, uint64_t{1} << 40, 0, nullptr};
  list[2].value = {hipStreamMemOpWaitValue64, data.data + 1, 5, hipStreamWaitValueGte, nullptr};
  HIP_OK(hipStreamBatchMemOp(stream, 3, list, 0));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), (std::vector<uint64_t>{7, uint64_t{1} << 40}));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBatchMemOp(stream, 0, list, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBatchMemOp(stream, 3, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBatchMemOp(stream, 300, list, 0));
  list[0].value.address = reinterpret_cast<char*>(data.data) + 1;
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBatchMemOp(stream, 1, list, 0));
  list[0].operation = static_cast<hipStreamBatchMemOpType>(42);
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBatchMemOp(stream, 1, list, 0));
}

TEST(HipExtended, WhatToolsAsk) {
  EXPECT_STREQ("unknown", hipApiName(99999));
  EXPECT_STREQ("Unknown command kind", hipGetCmdName(3));
  const char* header = "x";
  unsigned bytes = 9;
  __hipGetPCH(&header, &bytes);
  EXPECT_EQ(0u, bytes);
  for (const float value : {0.0f, 1.5f, -2.0f, 65504.0f}) {
    EXPECT_EQ(value, __gnu_h2f_ieee(__gnu_f2h_ieee(value)));
  }
  hipDeviceProp_tR0000 old{};
  HIP_OK(hipGetDevicePropertiesR0000(&old, 0));
  EXPECT_STRNE("", old.gcnArchName);
  int device = 9;
  HIP_OK(hipChooseDeviceR0000(&device, &old));
  EXPECT_EQ(0, device);
}

}  // namespace
