// Copies of arrays, in the forms of the runtime, of the driver API and of graphs.

#include <cstring>

#include "emu/tests/hip_array_support.h"
#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipArray, Copies) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  const Array other(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  std::vector<float> got(6);
  HIP_OK(hipMemcpy2DFromArray(got.data(), 12, array, 8, 3, 12, 2, hipMemcpyDeviceToHost));
  EXPECT_EQ(got, (std::vector<float>{texel(2, 3), texel(3, 3), texel(4, 3), texel(2, 4),
                                     texel(3, 4), texel(4, 4)}));
  HIP_OK(hipMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, kWidth * 4, kHeight,
                                 hipMemcpyDeviceToDevice));
  std::vector<float> row(kWidth + 2);
  HIP_OK(hipMemcpyFromArray(row.data(), other, 4 * (kWidth - 1), 1, row.size() * 4,
                            hipMemcpyDeviceToHost));
  EXPECT_EQ(row[0], texel(kWidth - 1, 1));
  EXPECT_EQ(row[1], texel(0, 2));
  EXPECT_EQ(row.back(), texel(0, 3));
  const float two[] = {-1, -2};
  HIP_OK(hipMemcpyToArray(other, 4 * (kWidth - 1), 0, two, 8, hipMemcpyHostToDevice));
  HIP_OK(hipMemcpyAtoH(got.data(), other, 4 * (kWidth - 1), 8));
  EXPECT_EQ(got[0], -1);
  EXPECT_EQ(got[1], -2);
  HIP_OK(hipMemcpyHtoA(other, 0, two, 8));
  hipMemcpy3DParms box{};
  box.srcArray = other;
  box.dstPtr = {got.data(), 8, 8, 1};
  box.extent = {2, 1, 1};
  box.kind = hipMemcpyDeviceToHost;
  HIP_OK(hipMemcpy3D(&box));
  EXPECT_EQ(got[0], -1);
  hip_Memcpy2D flat{};
  flat.srcMemoryType = hipMemoryTypeArray;
  flat.srcArray = array;
  flat.srcXInBytes = 4;
  flat.srcY = 6;
  flat.dstMemoryType = hipMemoryTypeHost;
  flat.dstHost = got.data();
  flat.WidthInBytes = 8;
  flat.Height = 1;
  HIP_OK(hipMemcpyParam2D(&flat));
  EXPECT_EQ(got[1], texel(2, 6));
  hipChannelFormatDesc desc{};
  hipExtent extent{};
  unsigned flags = 9;
  HIP_OK(hipArrayGetInfo(&desc, &extent, &flags, array));
  EXPECT_EQ(desc.x, 32);
  EXPECT_EQ(extent.width, static_cast<size_t>(kWidth));
  EXPECT_EQ(flags, 0u);
}

/// A copy of host memory that fills all of an array, in the driver API's form.
HIP_MEMCPY3D fill_of(const Array& array, const std::vector<float>& values) {
  HIP_MEMCPY3D p{};
  p.srcMemoryType = hipMemoryTypeHost;
  p.srcHost = values.data();
  p.srcPitch = kWidth * 4;
  p.dstMemoryType = hipMemoryTypeArray;
  p.dstArray = array;
  p.WidthInBytes = kWidth * 4;
  p.Height = kHeight;
  p.Depth = 1;
  return p;
}

/// A copy of two rows of three texels, from column 2 and row 3 on.
HIP_MEMCPY3D box_of(const Array& array, float* to) {
  HIP_MEMCPY3D p{};
  p.srcMemoryType = hipMemoryTypeArray;
  p.srcArray = array;
  p.srcXInBytes = 8;
  p.srcY = 3;
  p.dstMemoryType = hipMemoryTypeHost;
  p.dstHost = to;
  p.WidthInBytes = 12;
  p.Height = 2;
  p.Depth = 1;
  return p;
}

const std::vector<float> kBox = {texel(2, 3), texel(3, 3), texel(4, 3),
                                 texel(2, 4), texel(3, 4), texel(4, 4)};

TEST(HipArray, CopiesOfTheDriver) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  const Array other(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  const std::vector<float> all = texels();
  HIP_MEMCPY3D p = fill_of(array, all);
  HIP_OK(hipDrvMemcpy3D(&p));
  std::vector<float> got(6);
  p = box_of(array, got.data());
  HIP_OK(hipDrvMemcpy3D(&p));
  EXPECT_EQ(kBox, got);
  // From array to array, one column to the left and two rows up.
  p.dstMemoryType = hipMemoryTypeArray;
  p.dstArray = other;
  p.dstXInBytes = 4;
  p.dstY = 1;
  HIP_OK(hipDrvMemcpy3DAsync(&p, nullptr));
  HIP_OK(hipMemcpy2DFromArray(got.data(), 12, other, 4, 1, 12, 2, hipMemcpyDeviceToHost));
  EXPECT_EQ(kBox, got);
}

TEST(HipArray, WhatTheDriverRefuses) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  const Array bytes(desc_of(8, 1, hipChannelFormatKindUnsigned), kWidth, kHeight);
  std::vector<float> got(6);
  const HIP_MEMCPY3D good = box_of(array, got.data());
  HIP_OK(hipDrvMemcpy3D(&good));
  const auto refused = [&](hipError_t error, const auto& change) {
    HIP_MEMCPY3D p = good;
    change(p);
    HIP_REFUSES(error, hipDrvMemcpy3D(&p));
  };
  refused(hipErrorInvalidValue, [](auto& p) { p.srcArray = nullptr; });
  refused(hipErrorInvalidHandle, [&](auto& p) { p.srcArray = reinterpret_cast<hipArray_t>(&p); });
  refused(hipErrorInvalidValue, [](auto& p) { p.srcXInBytes = 2; });  // half an element
  refused(hipErrorInvalidValue, [](auto& p) { p.WidthInBytes = 10; });
  refused(hipErrorInvalidValue, [](auto& p) { p.srcXInBytes = 4 * (kWidth - 2); });
  refused(hipErrorInvalidValue, [](auto& p) { p.srcXInBytes = ~size_t{3}; });
  refused(hipErrorInvalidValue, [](auto& p) { p.srcY = kHeight - 1; });
  refused(hipErrorInvalidValue, [](auto& p) { p.srcZ = 1; });
  refused(hipErrorInvalidValue, [](auto& p) { p.Depth = 2; });
  refused(hipErrorInvalidValue, [&](auto& p) {  // elements of another size
    p.dstMemoryType = hipMemoryTypeArray;
    p.dstArray = bytes;
  });
}

TEST(HipArray, CopiesInGraphs) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  std::vector<float> got(6);
  const HIP_MEMCPY3D asked = box_of(array, got.data());
  hipGraph_t graph = nullptr;
  hipGraphNode_t node = nullptr;
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipGraphCreate(&graph, 0));
  HIP_OK(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &asked, nullptr));
  HIP_MEMCPY3D told{};
  HIP_OK(hipDrvGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(hipMemoryTypeArray, told.srcMemoryType);
  EXPECT_EQ(array.handle, told.srcArray);
  EXPECT_EQ(asked.srcXInBytes, told.srcXInBytes);
  EXPECT_EQ(asked.srcY, told.srcY);
  EXPECT_EQ(asked.WidthInBytes, told.WidthInBytes);
  EXPECT_EQ(got.data(), told.dstDevice);
  HIP_OK(hipDrvGraphMemcpyNodeSetParams(node, &told));
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  HIP_OK(hipGraphLaunch(exec, nullptr));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(kBox, got);
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
}

TEST(HipArray, BatchesOfCopies) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  const Stream stream;
  Buffer<float> rows(16);
  hipMemcpy3DBatchOp op{};
  op.src.type = hipMemcpyOperandTypeArray;
  op.src.op.array = {array, 2, 3, 0};
  op.dst.type = hipMemcpyOperandTypePointer;
  op.dst.op.ptr.ptr = rows.data;
  op.dst.op.ptr.rowLength = 8;
  op.extent = {3, 2, 1};
  op.srcAccessOrder = 1;
  size_t failed = 0;
  HIP_OK(hipMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
  HIP_OK(hipStreamSynchronize(stream));
  std::vector<float> wanted(16);
  std::copy_n(kBox.begin(), 3, wanted.begin());
  std::copy_n(kBox.begin() + 3, 3, wanted.begin() + 8);
  EXPECT_EQ(wanted, rows.get());
  op.src.op.array.array = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
  EXPECT_EQ(0u, failed);
  op.src.type = static_cast<hipMemcpy3DOperandType>(7);
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
}

}  // namespace
