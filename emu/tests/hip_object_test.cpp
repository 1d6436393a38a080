#include <chrono>
#include <cstring>
#include <fstream>
#include <random>

#include "emu/tests/hip_support.h"

namespace {

hipError_t load(const std::vector<char>& image) {
  hipModule_t module = nullptr;
  const hipError_t error = hipModuleLoadData(&module, image.data());
  if (error == hipSuccess) EXPECT_EQ(hipSuccess, hipModuleUnload(module));
  return error;
}

TEST(HipObject, LoadsBundlesPackedAndNot) {
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.bundle")));
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.ccob")));
  hipModule_t module = nullptr;
  const std::string file = std::string(EMU_TEST_KERNELS) + "/basic.bundle";
  HIP_OK(hipModuleLoad(&module, file.c_str()));
  hipFunction_t function = nullptr;
  EXPECT_EQ(hipErrorNotFound, hipModuleGetFunction(&function, module, "no_such_kernel"));
  HIP_OK(hipModuleUnload(module));
  EXPECT_EQ(hipErrorInvalidHandle, hipModuleUnload(module));
}

TEST(HipObject, LoadsEveryVersionAndGenericCode) {
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.v4.hsaco")));
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.v6.hsaco")));
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.gfx11-generic.hsaco")));
}

TEST(HipObject, LoadsKernelsOfEveryMetadataNote) {
  const Kernels kernels("linked.gfx1100.hsaco");
  Buffer<int> data(64);
  HIP_OK(launch(kernels["set_to"], 2, 32, 0, nullptr, data.data, 5));  // of the first object
  HIP_OK(launch(kernels["by_itself"], 1, 32, 0, nullptr, data.data));  // of the second one
  std::vector<int> want(64, 5);
  std::fill(want.begin(), want.begin() + 32, 2);
  EXPECT_EQ(data.get(), want);
}

TEST(HipObject, KernelsInCodeWithoutFunctions) {
  const Kernels kernels("entries.gfx1100.hsaco");
  Buffer<int> data(32);
  HIP_OK(launch(kernels["sets_four"], 1, 32, 0, nullptr, data.data));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(data.get(), std::vector<int>(32, 4));
}

/// 60000 segments that all contain the same notes are refused at once.
TEST(HipObject, RefusesSegmentsOfTheSameNotes) {
  std::vector<char> image = kernel_file("basic.gfx1100.hsaco");
  const auto get = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, image.data() + at, bytes);
    return value;
  };
  const uint64_t headers = get(32, 8), count = get(56, 2), more = 60000;
  std::vector<char> all(image.begin() + static_cast<long>(headers),
                        image.begin() + static_cast<long>(headers + count * 56));
  for (uint64_t i = 0; i < count; ++i) {
    constexpr uint32_t kNote = 4;
    if (get(headers + i * 56, 4) != kNote) continue;
    const std::vector<char> note(all.begin() + static_cast<long>(i * 56),
                                 all.begin() + static_cast<long>(i * 56 + 56));
    for (uint64_t k = 0; k < more; ++k) all.insert(all.end(), note.begin(), note.end());
    break;
  }
  ASSERT_EQ(all.size(), (count + more) * 56);
  image.resize((image.size() + 7) / 8 * 8);
  const uint64_t at = image.size();
  const auto total = static_cast<uint16_t>(count + more);
  image.insert(image.end(), all.begin(), all.end());
  std::memcpy(image.data() + 32, &at, sizeof at);
  std::memcpy(image.data() + 56, &total, sizeof total);
  const std::string path = testing::TempDir() + "notes.hsaco";
  std::ofstream(path, std::ios::binary).write(image.data(), static_cast<long>(image.size()));
  const auto start = std::chrono::steady_clock::now();
  hipModule_t module = nullptr;
  EXPECT_EQ(hipErrorInvalidImage, hipModuleLoad(&module, path.c_str()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(HipObject, RefusesOtherArchitectures) {
  EXPECT_EQ(hipErrorNoBinaryForGpu, load(kernel_file("basic.gfx90a.hsaco")));
}

TEST(HipObject, RefusesWhatIsNoCode) {
  EXPECT_EQ(hipErrorInvalidImage, load(std::vector<char>(4096, 'x')));
  EXPECT_EQ(hipErrorInvalidImage, load(std::vector<char>(4096, 0)));
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const std::vector<char> program{std::istreambuf_iterator<char>(self), {}};
  EXPECT_EQ(hipErrorInvalidImage, load(program));
  hipModule_t module = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLoadData(&module, nullptr));
  EXPECT_EQ(hipErrorFileNotFound, hipModuleLoad(&module, "/nowhere/kernels.hsaco"));
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLoad(&module, nullptr));
}

TEST(HipObject, RefusesTruncatedCode) {
  // The code is loaded from a file, so that nothing follows the truncated end.
  for (const char* name : {"basic.gfx1100.hsaco", "basic.bundle", "basic.ccob"}) {
    const std::vector<char> whole = kernel_file(name);
    for (size_t part = 0; part < 16; ++part) {
      const std::string path = testing::TempDir() + "truncated.hsaco";
      std::ofstream(path, std::ios::binary).write(whole.data(), whole.size() * part / 16);
      hipModule_t module = nullptr;
      EXPECT_NE(hipSuccess, hipModuleLoad(&module, path.c_str())) << name << " " << part;
    }
  }
}

TEST(HipObject, SurvivesMutatedCode) {
  std::mt19937 random(1);
  for (const char* name : {"basic.gfx1100.hsaco", "basic.bundle", "basic.ccob"}) {
    const std::vector<char> whole = kernel_file(name);
    int loaded = 0;
    for (int round = 0; round < 1500; ++round) {
      std::vector<char> image = whole;
      image.resize(image.size() + 4096);  // hipModuleLoadData isn't told the size
      const int changes = 1 + static_cast<int>(random() % 8);
      // The important structures are near the ends: headers, notes, symbols, section headers.
      for (int i = 0; i < changes; ++i) {
        const size_t at = random() % 3 == 0 ? random() % 512
                          : random() % 2
                              ? whole.size() - 1 - random() % std::min<size_t>(2048, whole.size())
                              : random() % whole.size();
        image[at] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
      }
      hipModule_t module = nullptr;
      if (hipModuleLoadData(&module, image.data()) == hipSuccess) {
        ++loaded;
        EXPECT_EQ(hipSuccess, hipModuleUnload(module));
      }
    }
    printf("%s: %d of 1500 mutants were loaded\n", name, loaded);
  }
  EXPECT_EQ(hipSuccess, load(kernel_file("basic.gfx1100.hsaco")));
  (void)hipGetLastError();
}

TEST(HipObject, AttributesOfFunctions) {
  const Kernels kernels;
  int value = 0;
  HIP_OK(
      hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernels["small_only"]));
  EXPECT_EQ(value, 64);
  HIP_OK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, kernels["add"]));
  EXPECT_GT(value, 0);
  hipFuncAttributes attributes;
  HIP_OK(hipFuncGetAttributes(&attributes, kernels["add"]));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  int grid = 0, block = 0;
  HIP_OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, kernels["add"], 0, 0));
  EXPECT_GT(block, 0);
  EXPECT_GT(grid, 0);
}

}  // namespace
