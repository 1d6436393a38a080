// Copies by direction and stream, and copies of rows and boxes.

#include <numeric>

#include "emu/tests/hip_support.h"

namespace {

constexpr size_t kHuge = ~size_t{0};
const auto kNoStream = reinterpret_cast<hipStream_t>(0x1234);
const auto kNoKind = static_cast<hipMemcpyKind>(9);

std::vector<char> counted(size_t bytes, int from = 0) {
  std::vector<char> text(bytes);
  std::iota(text.begin(), text.end(), static_cast<char>(from));
  return text;
}

class HipCopy : public testing::Test {
 protected:
  HipCopy() { EXPECT_EQ(hipSuccess, hipStreamCreate(&stream)); }
  ~HipCopy() override {
    EXPECT_EQ(hipSuccess, hipStreamDestroy(stream));
    (void)hipGetLastError();
  }
  hipStream_t stream = nullptr;
};

TEST_F(HipCopy, ByDirection) {
  Buffer<char> a(1000), b(1000);
  std::vector<char> text = counted(1000), back(1000);
  HIP_OK(hipMemcpyHtoD(a.data, text.data(), 1000));
  HIP_OK(hipMemcpyDtoD(b.data + 1, a.data, 999));
  HIP_OK(hipMemcpyDtoH(back.data(), b.data, 1000));
  EXPECT_EQ(0, back[0]);
  EXPECT_TRUE(std::equal(back.begin() + 1, back.end(), text.begin()));
  HIP_OK(hipMemcpyHtoD(a.data, nullptr, 0));  // an empty copy accepts any pointer
}

TEST_F(HipCopy, ByDirectionInAStream) {
  Buffer<char> a(1000), b(1000);
  std::vector<char> text = counted(1000, 5), back(1000);
  HIP_OK(hipMemcpyHtoDAsync(a.data, text.data(), 1000, stream));
  HIP_OK(hipMemcpyDtoDAsync(b.data, a.data, 1000, stream));
  HIP_OK(hipMemcpyDtoHAsync(back.data(), b.data, 1000, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(text, back);
}

TEST_F(HipCopy, DirectionsRefuseBadArguments) {
  Buffer<char> a(100), b(100);
  std::vector<char> own(200);
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyHtoD(own.data(), own.data(), 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyHtoD(a.data, own.data(), 101));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyHtoD(nullptr, own.data(), 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyHtoD(a.data, nullptr, 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoH(own.data(), own.data(), 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoH(own.data(), a.data, 101));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoH(nullptr, a.data, 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoD(a.data, own.data(), 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoD(own.data(), a.data, 8));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoD(b.data + 1, a.data, 100));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoD(b.data, a.data, kHuge));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpyHtoDAsync(a.data, own.data(), 8, kNoStream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpyDtoHAsync(own.data(), a.data, 8, kNoStream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpyDtoDAsync(b.data, a.data, 8, kNoStream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyHtoDAsync(a.data, own.data(), 101, stream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoHAsync(own.data(), a.data + 100, 1, stream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyDtoDAsync(b.data, nullptr, 8, stream));
}

TEST_F(HipCopy, WithAStreamWaitsForIt) {
  const Kernels kernels;
  Buffer<int> data(64);
  std::vector<int> out(64);
  HIP_OK(launch(kernels["slow_set"], 1, 64, 0, stream, data.data, 8, 300000));
  HIP_OK(hipMemcpyWithStream(out.data(), data.data, 256, hipMemcpyDeviceToHost, stream));
  EXPECT_EQ(std::vector<int>(64, 8), out);
  EXPECT_EQ(hipErrorContextIsDestroyed,
            hipMemcpyWithStream(out.data(), data.data, 256, hipMemcpyDeviceToHost, kNoStream));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection,
            hipMemcpyWithStream(out.data(), data.data, 256, kNoKind, stream));
  EXPECT_EQ(hipErrorInvalidValue,
            hipMemcpyWithStream(out.data(), data.data, 257, hipMemcpyDeviceToHost, stream));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection,
            hipMemcpyAsync(out.data(), data.data, 256, kNoKind, stream));
}

TEST_F(HipCopy, RowsInAStream) {
  char* rows = nullptr;
  size_t pitch = 0;
  HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&rows), &pitch, 100, 7));
  const std::vector<char> text = counted(700);
  std::vector<char> back(7 * 110, 'x');
  HIP_OK(hipMemcpy2DAsync(rows, pitch, text.data(), 100, 100, 7, hipMemcpyHostToDevice, stream));
  HIP_OK(hipMemcpy2DAsync(back.data(), 110, rows, pitch, 100, 7, hipMemcpyDeviceToHost, stream));
  HIP_OK(hipStreamSynchronize(stream));
  for (size_t y = 0; y < 7; ++y) {
    for (size_t x = 0; x < 110; ++x) {
      EXPECT_EQ(x < 100 ? text[y * 100 + x] : 'x', back[y * 110 + x]) << x << " " << y;
    }
  }
  HIP_OK(hipFree(rows));
}

TEST_F(HipCopy, RowsRefuseBadArguments) {
  Buffer<char> a(1000);
  std::vector<char> own(2000);
  const auto copy = [&](void* to, size_t to_pitch, size_t from_pitch, size_t width, size_t height,
                        hipMemcpyKind kind = hipMemcpyHostToDevice) {
    const hipError_t error = hipMemcpy2D(to, to_pitch, own.data(), from_pitch, width, height, kind);
    EXPECT_EQ(error,
              hipMemcpy2DAsync(to, to_pitch, own.data(), from_pitch, width, height, kind, stream));
    return error;
  };
  EXPECT_EQ(hipSuccess, copy(a.data, 100, 100, 100, 10));
  EXPECT_EQ(hipSuccess, copy(a.data, 110, 100, 10, 10));  // the last row ends with the buffer
  EXPECT_EQ(hipSuccess, copy(nullptr, 100, 100, 0, 10));
  EXPECT_EQ(hipSuccess, copy(a.data, 100, 100, 100, 0));
  EXPECT_EQ(hipErrorInvalidPitchValue, copy(a.data, 99, 100, 100, 5));
  EXPECT_EQ(hipErrorInvalidPitchValue, copy(a.data, 100, 99, 100, 5));
  EXPECT_EQ(hipErrorInvalidValue, copy(a.data, 100, 100, 100, 11));
  EXPECT_EQ(hipErrorInvalidValue, copy(a.data, 111, 100, 10, 10));
  EXPECT_EQ(hipErrorInvalidValue, copy(nullptr, 100, 100, 100, 5));
  EXPECT_EQ(hipErrorInvalidValue, copy(own.data(), 100, 100, 100, 5));
  EXPECT_EQ(hipErrorInvalidValue, copy(a.data, kHuge, 100, 100, 2));
  EXPECT_EQ(hipErrorInvalidValue, copy(a.data, size_t{1} << 63, 100, 100, 3));
  EXPECT_EQ(hipErrorInvalidValue, copy(a.data, 100, 100, 100, kHuge));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, copy(a.data, 100, 100, 100, 5, kNoKind));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpy2DAsync(a.data, 100, own.data(), 100, 100, 5,
                                                         hipMemcpyHostToDevice, kNoStream));
}

/// Copies rows of host memory into the middle of a device buffer.
hip_Memcpy2D param_2d(const char* from, void* to) {
  hip_Memcpy2D p = {};
  p.srcMemoryType = hipMemoryTypeHost;
  p.srcHost = from;
  p.srcPitch = 20;
  p.srcXInBytes = 3;
  p.srcY = 1;
  p.dstMemoryType = hipMemoryTypeDevice;
  p.dstDevice = to;
  p.dstPitch = 32;
  p.dstXInBytes = 5;
  p.dstY = 2;
  p.WidthInBytes = 10;
  p.Height = 4;
  return p;
}

TEST_F(HipCopy, RowsByDescription) {
  const std::vector<char> text = counted(20 * 5);
  const auto through = [&](auto copy) {
    Buffer<char> a(32 * 6);
    const hip_Memcpy2D p = param_2d(text.data(), a.data);
    EXPECT_EQ(hipSuccess, copy(&p));
    EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
    const std::vector<char> got = a.get();
    for (size_t y = 0; y < 6; ++y) {
      for (size_t x = 0; x < 32; ++x) {
        const bool in = y >= 2 && x >= 5 && x < 15;
        EXPECT_EQ(in ? text[(y - 1) * 20 + x - 2] : 0, got[y * 32 + x]) << x << " " << y;
      }
    }
  };
  through(hipMemcpyParam2D);
  through(hipDrvMemcpy2DUnaligned);
  through([&](const hip_Memcpy2D* p) { return hipMemcpyParam2DAsync(p, stream); });
}

TEST_F(HipCopy, DescriptionsOfRowsRefuseBadArguments) {
  const std::vector<char> text(100);
  Buffer<char> a(32 * 6);
  const hip_Memcpy2D good = param_2d(text.data(), a.data);
  const auto with = [&](auto change) {
    hip_Memcpy2D p = good;
    change(p);
    const hipError_t error = hipMemcpyParam2D(&p);
    EXPECT_EQ(error, hipMemcpyParam2DAsync(&p, stream));
    EXPECT_EQ(error, hipDrvMemcpy2DUnaligned(&p));
    return error;
  };
  EXPECT_EQ(hipSuccess, with([](hip_Memcpy2D&) {}));
  EXPECT_EQ(hipSuccess, with([](hip_Memcpy2D& p) { p.Height = 0; }));
  EXPECT_EQ(hipErrorInvalidPitchValue, with([](hip_Memcpy2D& p) { p.dstPitch = 9; }));
  EXPECT_EQ(hipErrorInvalidPitchValue, with([](hip_Memcpy2D& p) { p.srcPitch = 9; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.srcXInBytes = 11; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.dstXInBytes = 23; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.dstXInBytes = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.dstY = 3; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.dstY = size_t{1} << 59; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.Height = 5; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.WidthInBytes = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.srcHost = nullptr; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](hip_Memcpy2D& p) { p.dstDevice = nullptr; }));
  EXPECT_EQ(hipErrorInvalidValue,
            with([](hip_Memcpy2D& p) { p.srcMemoryType = hipMemoryTypeArray; }));
  EXPECT_EQ(hipErrorInvalidValue, with([&](hip_Memcpy2D& p) {
              p.srcMemoryType = hipMemoryTypeDevice;  // a pointer that isn't device memory
              p.srcDevice = const_cast<char*>(text.data());
            }));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyParam2D(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyParam2DAsync(nullptr, stream));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvMemcpy2DUnaligned(nullptr));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpyParam2DAsync(&good, kNoStream));
}

/// Copies a box of 4 x 3 x 2 at (2, 1, 1) of host memory of 10 x 5 x 4 to (6, 2, 0) of device
/// memory.
class HipCopyBox : public HipCopy {
 protected:
  HipCopyBox() : text(counted(10 * 5 * 4)) {
    EXPECT_EQ(hipSuccess, hipMalloc3D(&box, {20, 6, 3}));
    EXPECT_EQ(hipSuccess, hipMemset3D(box, 0, {20, 6, 3}));
    good.srcPtr = {text.data(), 10, 10, 5};
    good.srcPos = {2, 1, 1};
    good.dstPtr = box;
    good.dstPos = {6, 2, 0};
    good.extent = {4, 3, 2};
    good.kind = hipMemcpyHostToDevice;
  }
  ~HipCopyBox() override { EXPECT_EQ(hipSuccess, hipFree(box.ptr)); }

  void expect_copied() {
    std::vector<char> got(20 * 6 * 3);
    hipMemcpy3DParms back = {};
    back.srcPtr = box;
    back.dstPtr = {got.data(), 20, 20, 6};
    back.extent = {20, 6, 3};
    back.kind = hipMemcpyDeviceToHost;
    HIP_OK(hipMemcpy3D(&back));
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t x = i % 20, y = i / 20 % 6, z = i / 120;
      const bool in = x >= 6 && x < 10 && y >= 2 && y < 5 && z < 2;
      const size_t from = in ? (z + 1) * 50 + (y - 1) * 10 + x - 4 : 0;
      EXPECT_EQ(in ? text[from] : 0, got[i]) << x << " " << y << " " << z;
    }
  }
  template <class Change>
  hipError_t with(Change change) {
    hipMemcpy3DParms p = good;
    change(p);
    const hipError_t error = hipMemcpy3D(&p);
    EXPECT_EQ(error, hipMemcpy3DAsync(&p, stream));
    return error;
  }

  std::vector<char> text;
  hipPitchedPtr box = {};
  hipMemcpy3DParms good = {};
};

TEST_F(HipCopyBox, Lands) {
  HIP_OK(hipMemcpy3D(&good));
  expect_copied();
}

TEST_F(HipCopyBox, LandsInAStream) {
  HIP_OK(hipMemcpy3DAsync(&good, stream));
  HIP_OK(hipStreamSynchronize(stream));
  expect_copied();
}

TEST_F(HipCopyBox, OfNothing) {
  EXPECT_EQ(hipSuccess, with([](hipMemcpy3DParms& p) { p.extent.width = 0; }));
  EXPECT_EQ(hipSuccess, with([](hipMemcpy3DParms& p) { p.extent.height = 0; }));
  EXPECT_EQ(hipSuccess, with([](hipMemcpy3DParms& p) { p.extent.depth = 0; }));
}

TEST_F(HipCopyBox, RefusesBadPlaces) {
  using P = hipMemcpy3DParms;
  EXPECT_EQ(hipErrorInvalidPitchValue, with([](P& p) { p.srcPtr.pitch = 3; }));
  EXPECT_EQ(hipErrorInvalidPitchValue, with([](P& p) { p.dstPtr.pitch = 3; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.srcPos.x = 7; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.srcPos.y = 3; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPos.x = p.dstPtr.pitch - 3; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPos.y = 4; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPos.z = 2; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPos.z = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPos.y = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.srcPos.x = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.extent.depth = 4; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.extent.depth = kHuge; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPtr.ysize = size_t{1} << 60; }));
  // A layer whose size overflows to zero.
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) {
              p.dstPtr.pitch = size_t{1} << 40;
              p.dstPtr.ysize = size_t{1} << 24;
              p.extent.height = 1;
            }));
}

TEST_F(HipCopyBox, RefusesBadArguments) {
  using P = hipMemcpy3DParms;
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.srcPtr.ptr = nullptr; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.dstPtr.ptr = nullptr; }));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, with([](P& p) { p.kind = kNoKind; }));
  EXPECT_EQ(hipErrorInvalidValue, with([](P& p) { p.kind = hipMemcpyDeviceToDevice; }));
  // An array and memory as one side, and an array that is none.
  EXPECT_EQ(hipErrorInvalidValue,
            with([](P& p) { p.srcArray = reinterpret_cast<hipArray_t>(p.dstPtr.ptr); }));
  EXPECT_EQ(hipErrorInvalidHandle, with([](P& p) {
              p.srcArray = reinterpret_cast<hipArray_t>(p.dstPtr.ptr);
              p.srcPtr.ptr = nullptr;
            }));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy3D(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy3DAsync(nullptr, stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemcpy3DAsync(&good, kNoStream));
}

}  // namespace
