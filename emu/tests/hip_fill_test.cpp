// Fills of bytes, words, rows and boxes.

#include "emu/tests/hip_support.h"

namespace {

constexpr size_t kHuge = ~size_t{0};
const auto kNoStream = reinterpret_cast<hipStream_t>(0x1234);

class HipFill : public testing::Test {
 protected:
  HipFill() { EXPECT_EQ(hipSuccess, hipStreamCreate(&stream)); }
  ~HipFill() override {
    EXPECT_EQ(hipSuccess, hipStreamDestroy(stream));
    (void)hipGetLastError();
  }
  hipStream_t stream = nullptr;
};

/// Checks that the range is filled and that nothing else has changed.
template <class T>
void expect_filled(const Buffer<T>& data, size_t from, size_t count, T value) {
  const std::vector<T> got = data.get();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(i >= from && i < from + count ? value : T{0}, got[i]) << i;
  }
}

TEST_F(HipFill, OfEachWidth) {
  Buffer<unsigned char> bytes(300), more(300);
  Buffer<unsigned short> halves(300);
  Buffer<int> words(300);
  HIP_OK(hipMemset(bytes.data + 3, 0x1a5, 101));  // only the lowest byte of the value counts
  expect_filled<unsigned char>(bytes, 3, 101, 0xa5);
  HIP_OK(hipMemsetD8(more.data + 7, 0xfe, 99));
  expect_filled<unsigned char>(more, 7, 99, 0xfe);
  HIP_OK(hipMemsetD16(halves.data + 5, 0xbeef, 77));
  expect_filled<unsigned short>(halves, 5, 77, 0xbeef);
  HIP_OK(hipMemsetD32(words.data + 9, -7, 55));
  expect_filled<int>(words, 9, 55, -7);
}

TEST_F(HipFill, OfEachWidthInAStream) {
  const Kernels kernels;
  Buffer<unsigned char> bytes(300), more(300);
  Buffer<unsigned short> halves(300);
  Buffer<int> words(320);
  // The fill waits for the stream's earlier work.
  HIP_OK(launch(kernels["slow_set"], 5, 64, 0, stream, words.data, 0, 300000));
  HIP_OK(hipMemsetAsync(bytes.data + 3, 7, 101, stream));
  HIP_OK(hipMemsetD8Async(more.data + 7, 8, 99, stream));
  HIP_OK(hipMemsetD16Async(halves.data + 5, 9, 77, stream));
  HIP_OK(hipMemsetD32Async(words.data + 9, 10, 55, stream));
  HIP_OK(hipStreamSynchronize(stream));
  expect_filled<unsigned char>(bytes, 3, 101, 7);
  expect_filled<unsigned char>(more, 7, 99, 8);
  expect_filled<unsigned short>(halves, 5, 77, 9);
  expect_filled<int>(words, 9, 55, 10);
}

TEST_F(HipFill, OfNothing) {
  Buffer<int> data(4);
  HIP_OK(hipMemset(data.data, 1, 0));
  HIP_OK(hipMemset(nullptr, 1, 0));
  HIP_OK(hipMemsetD16Async(data.data, 1, 0, stream));
  HIP_OK(hipMemsetD32(nullptr, 1, 0));
  HIP_OK(hipMemset2D(data.data, 8, 1, 0, 2));
  HIP_OK(hipMemset3D({data.data, 8, 8, 2}, 1, {8, 2, 0}));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), std::vector<int>(4, 0));
}

TEST_F(HipFill, RefusesBadArguments) {
  Buffer<int> data(25);
  std::vector<int> own(25);
  EXPECT_EQ(hipErrorInvalidValue, hipMemset(nullptr, 1, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemset(own.data(), 1, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemset(data.data, 1, kHuge));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetAsync(nullptr, 1, 4, stream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetAsync(data.data, 1, 101, stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemsetAsync(data.data, 1, 4, kNoStream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD8(data.data, 1, 101));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD8Async(data.data + 1, 1, 97, stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemsetD8Async(data.data, 1, 4, kNoStream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD16(data.data, 1, 51));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD16Async(data.data, 1, kHuge / 2 + 2, stream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD16Async(reinterpret_cast<char*>(data.data) + 1, 1, 1,
                                                    stream));  // not aligned to two bytes
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemsetD16Async(data.data, 1, 4, kNoStream));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD32Async(data.data, 1, 26, stream));
  EXPECT_EQ(hipErrorInvalidValue,
            hipMemsetD32Async(reinterpret_cast<char*>(data.data) + 2, 1, 1, stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemsetD32Async(data.data, 1, 4, kNoStream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), std::vector<int>(25, 0));
}

TEST_F(HipFill, OfPinnedMemoryIsDoneAtOnce) {
  char* pinned = nullptr;
  HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&pinned), 1000, 0));
  HIP_OK(hipMemset(pinned, 5, 1000));
  EXPECT_EQ(std::vector<char>(1000, 5), std::vector<char>(pinned, pinned + 1000));
  HIP_OK(hipHostFree(pinned));
}

TEST_F(HipFill, OfRows) {
  for (const bool in_stream : {false, true}) {
    Buffer<char> data(20 * 6);
    HIP_OK(in_stream ? hipMemset2DAsync(data.data + 22, 20, 3, 10, 4, stream)
                     : hipMemset2D(data.data + 22, 20, 3, 10, 4));
    HIP_OK(hipStreamSynchronize(stream));
    const std::vector<char> got = data.get();
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t x = i % 20, y = i / 20;
      EXPECT_EQ(x >= 2 && x < 12 && y >= 1 && y < 5 ? 3 : 0, got[i]) << x << " " << y;
    }
  }
}

TEST_F(HipFill, OfRowsRefusesBadArguments) {
  Buffer<char> data(20 * 6);
  const auto fill = [&](void* to, size_t pitch, size_t width, size_t height) {
    const hipError_t error = hipMemset2D(to, pitch, 1, width, height);
    EXPECT_EQ(error, hipMemset2DAsync(to, pitch, 1, width, height, stream));
    return error;
  };
  EXPECT_EQ(hipSuccess, fill(data.data, 20, 20, 6));
  EXPECT_EQ(hipErrorInvalidPitchValue, fill(data.data, 9, 10, 2));
  EXPECT_EQ(hipErrorInvalidValue, fill(data.data, 20, 20, 7));
  EXPECT_EQ(hipErrorInvalidValue, fill(data.data + 1, 20, 20, 6));
  EXPECT_EQ(hipErrorInvalidValue, fill(nullptr, 20, 20, 6));
  EXPECT_EQ(hipErrorInvalidValue, fill(data.data, size_t{1} << 63, 20, 3));
  EXPECT_EQ(hipErrorInvalidValue, fill(data.data, 20, 20, kHuge));
  EXPECT_EQ(hipErrorInvalidValue, fill(data.data, kHuge, kHuge, 1));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemset2DAsync(data.data, 20, 1, 20, 6, kNoStream));
}

TEST_F(HipFill, OfBoxes) {
  for (const bool in_stream : {false, true}) {
    Buffer<char> data(10 * 5 * 4);
    const hipPitchedPtr box = {data.data + 1, 10, 10, 5};
    HIP_OK(in_stream ? hipMemset3DAsync(box, 6, {7, 3, 2}, stream)
                     : hipMemset3D(box, 6, {7, 3, 2}));
    HIP_OK(hipStreamSynchronize(stream));
    const std::vector<char> got = data.get();
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t x = i % 10, y = i / 10 % 5, z = i / 50;
      EXPECT_EQ(x >= 1 && x < 8 && y < 3 && z < 2 ? 6 : 0, got[i]) << x << " " << y << " " << z;
    }
  }
}

TEST_F(HipFill, OfBoxesRefusesBadArguments) {
  Buffer<char> data(10 * 5 * 4);
  const auto fill = [&](const hipPitchedPtr& to, const hipExtent& extent) {
    const hipError_t error = hipMemset3D(to, 1, extent);
    EXPECT_EQ(error, hipMemset3DAsync(to, 1, extent, stream));
    return error;
  };
  const hipPitchedPtr box = {data.data, 10, 10, 5};
  EXPECT_EQ(hipSuccess, fill(box, {10, 5, 4}));
  EXPECT_EQ(hipErrorInvalidValue, fill(box, {11, 5, 1}));
  EXPECT_EQ(hipErrorInvalidValue, fill(box, {10, 6, 2}));
  EXPECT_EQ(hipErrorInvalidValue, fill(box, {10, 5, 5}));
  EXPECT_EQ(hipErrorInvalidValue, fill(box, {10, 5, kHuge}));
  EXPECT_EQ(hipErrorInvalidValue, fill(box, {10, kHuge, 2}));
  EXPECT_EQ(hipErrorInvalidValue, fill({nullptr, 10, 10, 5}, {10, 5, 4}));
  // A layer whose size overflows to zero.
  EXPECT_EQ(hipErrorInvalidValue,
            fill({data.data, size_t{1} << 40, 10, size_t{1} << 24}, {10, 1, 3}));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemset3DAsync(box, 1, {10, 5, 4}, kNoStream));
}

}  // namespace
