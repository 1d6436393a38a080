// Unmapped addresses in kernels and copies give an error with a message, and the process continues.
// Runs with and without checks.

#include <random>

#include "emu/tests/hip_support.h"

namespace {

bool checked() { return std::getenv("WICK_EMU_CHECK") != nullptr; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%zx", reinterpret_cast<size_t>(address));
  return text;
}

/// Returns whether an error names the address that a wave wrote to. The checks name the first
/// lane's address. Without checks, the CPU reports the fault at any of the 32 words that the wave
/// writes.
bool names_access(const std::string& text, uintptr_t from) {
  const std::string before = checked() ? "writes 4 bytes at 0x" : "access to 0x";
  const size_t at = text.find(before);
  if (at == text.npos) return false;
  const uintptr_t address = std::strtoull(text.c_str() + at + before.size(), nullptr, 16);
  return checked() ? address == from : address >= from && address < from + 128;
}

template <class T = int>
T* at(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

/// Returns what `work` prints on standard error.
template <class Work>
std::string said_by(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

class HipFaults : public testing::Test {
 protected:
  /// Checks that a launch and copies give their results and that no earlier error is left.
  ~HipFaults() override {
    (void)hipGetLastError();
    Buffer<int> data(100);
    EXPECT_EQ(hipSuccess, launch(kernels["set_to"], 4, 25, 0, nullptr, data.data, 42));
    EXPECT_EQ(data.get(), std::vector<int>(100, 42));
    EXPECT_EQ(hipSuccess, hipGetLastError());
  }
  /// Runs a kernel that writes to the address and fails. Returns what it prints.
  std::string said_by_write(int* where) {
    return said_by([&] {
      EXPECT_EQ(hipSuccess, launch(kernels["set_to"], 1, 32, 0, nullptr, where, 1));
      EXPECT_EQ(hipErrorIllegalAddress, hipDeviceSynchronize());
    });
  }
  const Kernels kernels;
};

TEST_F(HipFaults, KernelsThatWriteWhereNothingIs) {
  for (const uintptr_t address : {uintptr_t{0}, uintptr_t{0x1000}, uintptr_t{1} << 45}) {
    const std::string said = said_by_write(at(address));
    EXPECT_TRUE(names_access(said, address)) << hex(at(address)) << " in " << said;
  }
}

TEST_F(HipFaults, KernelsThatWriteAfterFree) {
  int* data = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&data), size_t{64} << 20));
  HIP_OK(hipFree(data));
  const std::string said = said_by_write(data);
  EXPECT_TRUE(names_access(said, reinterpret_cast<uintptr_t>(data))) << hex(data) << " in " << said;
}

TEST_F(HipFaults, NonCanonicalAddresses) {
  int* const where = at(uintptr_t{1} << 63);
  const std::string text = said_by_write(where);
  EXPECT_TRUE(has(text, checked() ? hex(where) : "access to a non-canonical address")) << text;
}

TEST_F(HipFaults, JumpsNameTheirAddressAsTheProgramKnowsIt) {
  const Buffer<int> data(64);
  for (const void* where : {static_cast<const void*>(nullptr), static_cast<const void*>(data.data),
                            static_cast<const void*>(at(~uintptr_t{3}))}) {
    const std::string text = said_by([&] {
      EXPECT_EQ(hipSuccess, launch(kernels["calls"], 1, 32, 0, nullptr, data.data, where));
      EXPECT_EQ(hipErrorLaunchFailure, hipDeviceSynchronize());
    });
    EXPECT_TRUE(has(text, "a jump to " + hex(where) + ": there is no code")) << text;
  }
}

TEST_F(HipFaults, CopiesOfHostMemoryThatIsntThere) {
  const Buffer<int> data(64);
  void* const nowhere = at(0x10);
  const auto refused = [&](const auto& copy) {
    const std::string text = said_by([&] { EXPECT_EQ(hipErrorInvalidValue, copy()); });
    EXPECT_TRUE(has(text, "a copy can't access 0x10, no memory of a device")) << text;
    EXPECT_EQ(hipSuccess, hipDeviceSynchronize()) << "the error is told once";
  };
  refused([&] { return hipMemcpy(nowhere, data.data, 4, hipMemcpyDeviceToHost); });
  refused([&] { return hipMemcpy(data.data, nowhere, 4, hipMemcpyHostToDevice); });
  refused([&] { return hipMemcpy(data.data, nowhere, 4, hipMemcpyDefault); });
  refused([&] { return hipMemcpyAsync(nowhere, data.data, 4, hipMemcpyDeviceToHost, nullptr); });
  refused([&] { return hipMemcpy2D(nowhere, 16, data.data, 16, 8, 4, hipMemcpyDeviceToHost); });
}

TEST_F(HipFaults, CopiesToWhatIsOnlyRead) {
  static const char kText[] = "a constant, in memory that can't be written";
  const Buffer<int> data(64);
  const std::string text = said_by([&] {
    EXPECT_EQ(hipErrorInvalidValue,
              hipMemcpy(const_cast<char*>(kText), data.data, 4, hipMemcpyDeviceToHost));
  });
  EXPECT_TRUE(has(text, "a copy can't access " + hex(kText))) << text;
}

/// Errors of queued work are reported when the stream is waited for.
TEST_F(HipFaults, WorkOfStreamsOnRegisteredMemoryThatIsntThere) {
  const Buffer<int> data(64);
  void* const nowhere = at(0x10000);
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipHostRegister(nowhere, 4096, 0));
  const auto refused = [&](const std::string& what, const auto& work) {
    const std::string text = said_by([&] {
      EXPECT_EQ(hipSuccess, work()) << what;
      EXPECT_EQ(hipErrorInvalidValue, hipStreamSynchronize(stream)) << what;
    });
    EXPECT_TRUE(has(text, what + " can't access 0x10000, byte 0 of 4096 bytes")) << text;
    EXPECT_EQ(hipSuccess, hipStreamSynchronize(stream));
  };
  refused("a copy",
          [&] { return hipMemcpyAsync(nowhere, data.data, 64, hipMemcpyDeviceToHost, stream); });
  refused("a fill", [&] { return hipMemsetAsync(nowhere, 0, 64, stream); });
  refused("the write of a value", [&] { return hipStreamWriteValue32(stream, nowhere, 1, 0); });
  refused("the wait for a value",
          [&] { return hipStreamWaitValue32(stream, nowhere, 1, hipStreamWaitValueEq, ~0u); });
  HIP_OK(hipHostUnregister(nowhere));
  HIP_OK(hipStreamDestroy(stream));
}

TEST_F(HipFaults, TooMuchPinnedMemory) {
  void* memory = nullptr;
  const std::string text =
      said_by([&] { EXPECT_EQ(hipErrorOutOfMemory, hipHostMalloc(&memory, size_t{33} << 30, 0)); });
  EXPECT_TRUE(has(text, "of 34359738368 are taken of pinned memory")) << text;
}

}  // namespace
