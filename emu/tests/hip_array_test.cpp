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

}  // namespace
