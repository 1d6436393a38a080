// Impossible launches and kernels that fail give an error with a message, and the device remains
// usable.

#include <cstring>
#include <random>

#include "emu/tests/hip_support.h"

namespace {

/// Checks that a launch gives its result and that no earlier error is left.
void expect_works(const Kernels& kernels) {
  Buffer<int> data(100);
  (void)hipGetLastError();
  HIP_OK(launch(kernels["set_to"], 4, 25, 0, nullptr, data.data, 42));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(data.get(), std::vector<int>(100, 42));
  EXPECT_EQ(hipSuccess, hipGetLastError());
}

/// Returns what `work` prints on standard error.
template <class Work>
std::string said_by(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

#define EXPECT_SAYS(text, word) \
  EXPECT_NE((text).find(word), std::string::npos) << "said: " << (text)

TEST(HipBadInput, KernargsOfTheWrongSize) {
  const Kernels kernels;
  Buffer<int> data(64);
  char arguments[8192] = {};
  std::memcpy(arguments, &data.data, sizeof data.data);
  for (const size_t wrong : {size_t{0}, size_t{1}, size_t{4}, size_t{11}}) {
    size_t bytes = wrong;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, HIP_LAUNCH_PARAM_END};
    const std::string said = said_by([&] {
      EXPECT_EQ(hipErrorInvalidValue, hipModuleLaunchKernel(kernels["set_to"], 1, 1, 1, 64, 1, 1, 0,
                                                            nullptr, nullptr, extra));
    });
    EXPECT_SAYS(said, "set_to");
    expect_works(kernels);
  }
  size_t bytes = 12;
  void* no_end[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments, arguments, &bytes,
                    HIP_LAUNCH_PARAM_END};
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLaunchKernel(kernels["set_to"], 1, 1, 1, 64, 1, 1, 0,
                                                        nullptr, nullptr, no_end));
  expect_works(kernels);
}

TEST(HipBadInput, TooMuchLds) {
  const Kernels kernels;
  Buffer<int> data(64);
  for (const unsigned lds : {65537u, 1u << 20, ~0u}) {
    const std::string said = said_by([&] {
      EXPECT_EQ(hipErrorInvalidValue, launch(kernels["reverse"], 1, 64, lds, nullptr, data.data));
    });
    EXPECT_SAYS(said, "LDS");
    EXPECT_SAYS(said, "reverse");
    expect_works(kernels);
  }
  HIP_OK(launch(kernels["reverse"], 1, 64, 65536, nullptr, data.data));  // all of the LDS
  HIP_OK(hipDeviceSynchronize());
}

TEST(HipBadInput, GridsAndBlocksOfZero) {
  const Kernels kernels;
  Buffer<int> data(64);
  int value = 1;
  void* list[] = {const_cast<int**>(&data.data), &value};
  for (int axis = 0; axis < 6; ++axis) {
    unsigned n[6] = {1, 1, 1, 64, 1, 1};
    n[axis] = 0;
    const std::string said = said_by([&] {
      EXPECT_EQ(hipErrorInvalidConfiguration,
                hipModuleLaunchKernel(kernels["set_to"], n[0], n[1], n[2], n[3], n[4], n[5], 0,
                                      nullptr, list, nullptr));
      EXPECT_EQ(hipErrorInvalidConfiguration,
                hipExtModuleLaunchKernel(kernels["set_to"], n[0], n[1], n[2], n[3], n[4], n[5], 0,
                                         nullptr, list, nullptr, nullptr, nullptr, 0));
    });
    EXPECT_SAYS(said, "set_to");
    expect_works(kernels);
  }
}

TEST(HipBadInput, OutOfMemory) {
  const Kernels kernels;
  std::vector<void*> held;
  void* one = nullptr;
  for (size_t bytes = size_t{1} << 40; bytes >= size_t{1} << 20;) {
    if (hipMalloc(&one, bytes) == hipSuccess) {
      held.push_back(one);
    } else {
      EXPECT_EQ(hipErrorOutOfMemory, hipGetLastError());
      bytes /= 2;
    }
  }
  EXPECT_FALSE(held.empty());
  // With almost no memory left, a launch and loading a module either work or report why not.
  Buffer<int> data(64);
  const hipError_t launched = launch(kernels["set_to"], 1, 64, 0, nullptr, data.data, 1);
  EXPECT_TRUE(launched == hipSuccess || launched == hipErrorOutOfMemory) << launched;
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  hipModule_t module = nullptr;
  const hipError_t loaded = hipModuleLoadData(&module, kernel_file(basic_kernels()).data());
  EXPECT_TRUE(loaded == hipSuccess || loaded == hipErrorOutOfMemory) << loaded;
  if (loaded == hipSuccess) EXPECT_EQ(hipSuccess, hipModuleUnload(module));
  for (void* each : held) EXPECT_EQ(hipSuccess, hipFree(each));
  expect_works(kernels);
}

TEST(HipBadInput, KernelsThatTrap) {
  const Kernels kernels;
  Buffer<int> data(64);
  const std::string said = said_by([&] {
    EXPECT_EQ(hipSuccess, launch(kernels["traps"], 1, 64, 0, nullptr, data.data));
    EXPECT_NE(hipSuccess, hipDeviceSynchronize());
  });
  EXPECT_SAYS(said, "traps");
  expect_works(kernels);
}

TEST(HipBadInput, KernelsThatLeaveTheirCode) {
  const Kernels kernels;
  Buffer<int> data(64);
  for (const uint64_t where : {uint64_t{0}, reinterpret_cast<uint64_t>(data.data), ~uint64_t{0}}) {
    const std::string said = said_by([&] {
      EXPECT_EQ(hipSuccess, launch(kernels["calls"], 1, 32, 0, nullptr, data.data, where));
      EXPECT_NE(hipSuccess, hipDeviceSynchronize());
    });
    EXPECT_SAYS(said, "calls");
    expect_works(kernels);
  }
}

TEST(HipBadInput, RecursionWithoutEnd) {
  const Kernels kernels;
  Buffer<int> data(64);
  const std::string said = said_by([&] {
    EXPECT_EQ(hipSuccess, launch(kernels["recurses"], 1, 32, 0, nullptr, data.data));
    EXPECT_NE(hipSuccess, hipDeviceSynchronize());
  });
  EXPECT_SAYS(said, "recurses");
  EXPECT_SAYS(said, "scratch");
  expect_works(kernels);
}

/// The error is the same however often the kernel is launched, and whatever ran before on the same
/// threads.
TEST(HipBadInput, UnknownInstruction) {
  const Kernels kernels, planted("planted.gfx1100.hsaco");
  Buffer<int> data(64);
  HIP_OK(launch(planted["too_far"], 1, 64, 0, nullptr, data.data));
  HIP_OK(hipDeviceSynchronize());
  data.set(std::vector<int>(64, 5));
  for (int i = 0; i < 3; ++i) {
    const std::string said = said_by([&] {
      EXPECT_EQ(hipSuccess, launch(planted["unknown_instruction"], 1, 64, 0, nullptr, data.data));
      EXPECT_NE(hipSuccess, hipDeviceSynchronize());
    });
    EXPECT_SAYS(said, "unknown_instruction");
    EXPECT_EQ(data.get(), std::vector<int>(64, 5));
  }
  expect_works(kernels);
}

// The following tests run with WICK_EMU_TIMEOUT=1.

TEST(HipTimeout, SaysWhichKernelAndGoesOn) {
  const Kernels kernels;
  Buffer<int> data(64);
  hipStream_t stuck = nullptr, other = nullptr;
  HIP_OK(hipStreamCreateWithFlags(&stuck, hipStreamNonBlocking));
  HIP_OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  const std::string said = said_by([&] {
    EXPECT_EQ(hipSuccess, launch(kernels["never_ends"], 2, 64, 0, stuck, data.data));
    EXPECT_EQ(hipErrorLaunchTimeOut, hipStreamSynchronize(stuck));
  });
  EXPECT_SAYS(said, "never_ends");
  EXPECT_EQ(hipSuccess, hipStreamSynchronize(other));
  HIP_OK(launch(kernels["set_to"], 1, 64, 0, stuck, data.data, 9));
  HIP_OK(hipStreamSynchronize(stuck));
  EXPECT_EQ(data.get(), std::vector<int>(64, 9));
  HIP_OK(hipStreamDestroy(stuck));
  HIP_OK(hipStreamDestroy(other));
  expect_works(kernels);
}

TEST(HipTimeout, BarriersWithoutEnd) {
  const Kernels kernels, planted("planted.gfx1100.hsaco");
  Buffer<int> data(64);
  const std::string said = said_by([&] {
    EXPECT_EQ(hipSuccess, launch(planted["barriers_forever"], 1, 64, 0, nullptr, data.data));
    EXPECT_EQ(hipErrorLaunchTimeOut, hipDeviceSynchronize());
  });
  EXPECT_SAYS(said, "barriers_forever");
  expect_works(kernels);
}

/// Workgroups wait for one that has ended. No wave makes progress, but each gets its turns.
TEST(HipTimeout, GroupsThatWaitForEachOther) {
  const Kernels kernels;
  Buffer<int> flags(64);
  EXPECT_EQ(hipSuccess, launch(kernels["chain"], 8, 32, 0, nullptr, flags.data, 9));
  EXPECT_EQ(hipErrorLaunchTimeOut, hipDeviceSynchronize());
  expect_works(kernels);
}

// The following tests run with a short WICK_EMU_TIMEOUT and with all checks, since without checks a
// wild address may hit the process's own memory.

/// Launches machine code, descriptors and metadata with some changed bytes. Any outcome is allowed
/// except that the process ends or the device becomes unusable.
TEST(HipHostile, MutatedKernelsRun) {
  const Kernels kernels;
  const std::vector<char> whole = kernel_file("basic.gfx1100.hsaco");
  Buffer<int> data(4096);
  std::mt19937 random(7);
  int launched = 0;
  const std::string said = said_by([&] {
    for (int round = 0; round < 400; ++round) {
      std::vector<char> image = whole;
      image.resize(image.size() + 4096);
      for (int i = 0; i < 4; ++i) image[random() % whole.size()] = static_cast<char>(random());
      hipModule_t module = nullptr;
      if (hipModuleLoadData(&module, image.data()) != hipSuccess) continue;
      for (const char* name :
           {"add", "reverse", "set_to", "chain", "picks_register", "all_write"}) {
        hipFunction_t function = nullptr;
        if (hipModuleGetFunction(&function, module, name) != hipSuccess) continue;
        launched += launch(function, 2, 64, 512, nullptr, data.data, data.data, data.data, 64) ==
                    hipSuccess;
        (void)hipDeviceSynchronize();
      }
      EXPECT_EQ(hipSuccess, hipModuleUnload(module));
    }
  });
  EXPECT_GT(launched, 500);
  expect_works(kernels);
}

}  // namespace
