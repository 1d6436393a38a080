// Planted bugs, and what the checks report about them on stderr. Runs with all checks enabled.

#include <numeric>

#include "emu/tests/hip_support.h"

namespace {

/// Returns what is printed while a launch runs to its end.
template <class... Arguments>
std::string said(hipFunction_t function, unsigned groups, unsigned block, unsigned lds,
                 Arguments... arguments) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(function, groups, block, lds, nullptr, arguments...));
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
std::string planted_kernels() { return "planted." + first_device() + ".hsaco"; }
/// Chips before gfx11 have dwords where later ones have 32 bits.
bool has_dwords() { return first_device().size() == 6 || first_device().starts_with("gfx10"); }
bool has_waves_of_32() { return first_device().size() == 7; }

TEST(HipChecks, AreSilentWhereNothingIsWrong) {
  const Kernels kernels;
  constexpr int kCount = 1000;
  const Buffer<float> a(kCount), b(kCount), c(kCount);
  EXPECT_EQ("", said(kernels["add"], 4, 256, 0, c.data, a.data, b.data, kCount));
  const Buffer<int> data(128);
  EXPECT_EQ("", said(kernels["reverse"], 1, 128, 512, data.data));
  EXPECT_EQ("", said(kernels["chain"], 8, 32, 0, data.data, 8));
}

TEST(HipChecks, MemoryThatNothingWrote) {
  const Kernels kernels;
  constexpr int kCount = 64;
  const Buffer<float> a(kCount), c(kCount);
  float* b = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&b), kCount * sizeof(float)));
  const std::string text = said(kernels["add"], 1, 64, 0, c.data, a.data, b, kCount);
  EXPECT_TRUE(has(text, "memory: kernel add") && has(text, "which nothing has written")) << text;
  HIP_OK(hipFree(b));
}

/// A copy of uninitialized memory is uninitialized, wherever it is within its bytes of the shadow.
TEST(HipChecks, CopiesOfMemoryThatNothingWrote) {
  const Kernels kernels;
  constexpr size_t kCount = 48;
  const Buffer<float> result(1), one(1);
  float* from = nullptr;
  char* between = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&from), kCount * sizeof(float)));
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&between), kCount * sizeof(float) + 64));
  for (size_t i = 0; i < kCount; i += 3) HIP_OK(hipMemset(from + i, 0, sizeof(float)));
  for (const size_t shift : {0u, 3u, 8u, 13u}) {
    float* to = nullptr;
    HIP_OK(hipMalloc(reinterpret_cast<void**>(&to), kCount * sizeof(float)));
    const size_t bytes = kCount * sizeof(float);
    HIP_OK(hipMemcpy(between + shift, from, bytes, hipMemcpyDeviceToDevice));
    HIP_OK(hipMemcpy(between + shift + 5, between + shift, bytes, hipMemcpyDeviceToDevice));
    HIP_OK(hipMemcpy(between + 1, between + shift + 5, bytes, hipMemcpyDeviceToDevice));
    HIP_OK(hipMemcpy(to, between + 1, bytes, hipMemcpyDeviceToDevice));
    for (size_t i = 0; i < kCount; ++i) {
      const std::string text = said(kernels["add"], 1, 1, 0, result.data, one.data, to + i, 1);
      EXPECT_EQ(i % 3 != 0, has(text, "which nothing has written")) << shift << " " << i << text;
    }
    HIP_OK(hipFree(to));
  }
  HIP_OK(hipFree(from));
  HIP_OK(hipFree(between));
}

/// Checks copies of uninitialized memory that exceed the size of one piece of a copy.
TEST(HipChecks, LargeCopiesOfMemoryThatNothingWrote) {
  const Kernels kernels;
  constexpr size_t kBytes = 300000;
  const Buffer<float> result(1), one(1);
  char *from = nullptr, *to = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&from), kBytes));
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&to), kBytes));
  HIP_OK(hipMemset(from, 0, 100004));
  HIP_OK(hipMemset(from + 200000, 0, kBytes - 200000));
  HIP_OK(hipMemcpy(to + 4, from, kBytes - 4, hipMemcpyDeviceToDevice));
  HIP_OK(hipMemcpy(to, to + 4, kBytes - 4, hipMemcpyDeviceToDevice));
  for (const size_t at : {0u, 100000u, 100004u, 199996u, 200000u, 299992u}) {
    const std::string text = said(kernels["add"], 1, 1, 0, result.data, one.data, to + at, 1);
    EXPECT_EQ(at > 100000 && at < 200000, has(text, "which nothing has written")) << at << text;
  }
  HIP_OK(hipFree(from));
  HIP_OK(hipFree(to));
}

TEST(HipChecks, LdsThatNothingWrote) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const std::string text = said(kernels["reads_unwritten_lds"], 1, 32, 256, data.data);
  EXPECT_TRUE(has(text, "lds: kernel reads_unwritten_lds")) << text;
}

/// Checks that a planted kernel is reported by this check alone, and isn't reported by another
/// check.
void expect_finding(const char* kernel, unsigned block, unsigned lds, const std::string& kind,
                    const std::string& what) {
  const Kernels kernels(planted_kernels());
  Buffer<int> data(1024);
  std::vector<int> values(1024);
  std::iota(values.begin(), values.end(), 0);
  data.set(values);
  const std::string text = said(kernels[kernel], 1, block, lds, data.data);
  EXPECT_TRUE(has(text, kind + ": kernel " + kernel + " (")) << text;
  EXPECT_TRUE(has(text, "planted.hip:")) << text;
  EXPECT_TRUE(has(text, what)) << text;
  EXPECT_TRUE(has(text, "workgroup (0, 0, 0), wave ")) << text;
}

TEST(HipChecks, RacesInLds) {
  expect_finding("lds_race", 128, 512, "races", "without a barrier between");
  expect_finding("lds_race", 128, 512, "races", "lane ");
}

TEST(HipChecks, RacesOfLanes) {
  expect_finding("lanes_collide", 32, 0, "races", "lane 0: writes memory at");
  expect_finding("lanes_collide", 32, 0, "races", "to which lane 1 writes another value at once");
  expect_finding("lds_lanes_collide", 32, 64, "races",
                 "lane 0: writes LDS at 0, to which lane 1 writes another value at once");
  const Kernels kernels(planted_kernels());
  const Buffer<int> data(32);
  EXPECT_EQ("", said(kernels["lanes_agree"], 1, 32, 64, data.data));
}

TEST(HipChecks, LdsBeyondItsEnd) {
  expect_finding("lds_too_far", 32, 256, "lds", "beyond its end");
}

TEST(HipChecks, MissingWaits) {
  expect_finding("no_wait", 32, 0, "waits", "before a wait for the load that fills it");
}

TEST(HipChecks, RegistersThatNothingWrote) {
  expect_finding("unwritten_register", 32, 0, "registers",
                 "vcc_lo decides here and has bits of what was never written");
  expect_finding("unwritten_address", 32, 0, "registers", "v61 decides here");
  expect_finding("unwritten_scalar", 32, 0, "registers", "s90 is read and was never written");
  expect_finding("unwritten_condition", 32, 0, "registers", "SCC decides here");
}

TEST(HipChecks, BarriersThatLanesDontReach) {
  expect_finding("divergent_barrier", 32, 0, "barriers", "16 lanes of the wave don't reach");
}

TEST(HipChecks, BarriersOfWavesWithoutActiveLanes) {
  const Kernels kernels(planted_kernels());
  const Buffer<int> data(64);
  EXPECT_EQ("", said(kernels["barrier_without_lanes"], 1, 64, 0, data.data));
}

TEST(HipChecks, Misalignment) {
  expect_finding("misaligned", 32, 0, "alignment", "isn't a multiple of 4");
}

/// Returns what is printed while a launch ends with an error.
std::string said_by_failure(hipFunction_t function, unsigned block, int* data) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(function, 1, block, 0, nullptr, data));
  EXPECT_NE(hipSuccess, hipDeviceSynchronize());
  (void)hipGetLastError();
  return testing::internal::GetCapturedStderr();
}

TEST(HipChecks, MemoryBeyondItsEndAndAfterFree) {
  const Kernels kernels(planted_kernels());
  int* data = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&data), 63 * sizeof(int)));
  std::string text = said_by_failure(kernels["too_far"], 64, data);
  for (const char* part : {"kernel too_far (",
                           "planted.hip:", has_dwords() ? "global_store_dword" : "global_store_b32",
                           "workgroup (0, 0, 0)", has_waves_of_32() ? "wave 1" : "wave 0",
                           has_waves_of_32() ? "lane 31 writes 4 bytes" : "lane 63 writes 4 bytes",
                           "past the end of 252 bytes"}) {
    EXPECT_TRUE(has(text, part)) << part << " isn't in " << text;
  }
  EXPECT_EQ("", said(kernels["too_far"], 1, 63, 0, data)) << "the device works on";
  HIP_OK(hipFree(data));
  text = said_by_failure(kernels["too_far"], 32, data);
  EXPECT_TRUE(has(text, "kernel too_far") && has(text, "free")) << text;
}

TEST(HipChecks, NoRacesBetweenLaunches) {
  const Kernels kernels(planted_kernels());
  const Buffer<int> data(64);
  // There are more launches than race tags, and the workgroups change places from time to time.
  testing::internal::CaptureStderr();
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(hipSuccess, launch(kernels["adds_one"], 2, 32, 0, nullptr, data.data,
                                 i % 255 == 0 ? i / 255 % 2 : 0));
  }
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ("", testing::internal::GetCapturedStderr());
  EXPECT_EQ(data.get(), std::vector<int>(64, 600));
}

TEST(HipChecks, LeaksAtExit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        void* data = nullptr;
        const bool made = hipMalloc(&data, 12345) == hipSuccess;
        std::exit(made ? 0 : 1);
      },
      testing::ExitedWithCode(0), "never freed: 12345 bytes");
}

TEST(HipChecks, NoRacesBetweenNeighboursInADword) {
  const Kernels kernels(planted_kernels());
  const Buffer<int> data(32);
  EXPECT_EQ("", said(kernels["halves"], 2, 32, 0, data.data));
  EXPECT_EQ(data.get(), std::vector<int>(32, 0x10001));
  EXPECT_EQ("", said(kernels["lds_halves"], 1, 64, 128, data.data));
  const std::string text = said(kernels["one_byte"], 2, 1, 0, data.data);
  EXPECT_TRUE(has(text, "races: kernel one_byte") && has(text, "lane 0: writes memory")) << text;
}

/// Several threads use a shadow segment for the first time at the same moment, repeatedly.
template <class T>
void expect_no_races_of_neighbours(const char* kernel) {
  constexpr unsigned kGroups = 128, kBlock = 128, kLine = 64 / sizeof(T);
  const Kernels kernels(planted_kernels());
  const Buffer<T> data(kGroups / 4 * kBlock * kLine);
  for (int i = 0; i < 500; ++i) {
    HIP_OK(hipMemset(data.data, 0, data.count * sizeof(T)));
    ASSERT_EQ("", said(kernels[kernel], kGroups, kBlock, 0, data.data)) << i;
  }
  const std::vector<T> values = data.get();
  for (unsigned i = 0; i < values.size(); ++i) {
    const auto written = static_cast<T>(i / kLine % kBlock + 1);
    ASSERT_EQ(values[i], i % kLine < 4 ? written : T{}) << i;
  }
}
TEST(HipChecks, NoRacesBetweenGroupsThatShareDwords) {
  expect_no_races_of_neighbours<int16_t>("neighbouring_shorts");
  expect_no_races_of_neighbours<int8_t>("neighbouring_bytes");
}

TEST(HipChecks, AreSilentWhereRightProgramsLookWrong) {
  for (const char* name : {"clean.", "clean_O0."}) {
    const std::string file = name + first_device() + ".hsaco";
    const Kernels kernels(file);
    Buffer<int> data(64);
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 0);
    data.set(values);
    EXPECT_EQ("", said(kernels["reversed"], 1, 64, 0, data.data)) << file;
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(data.get()[static_cast<size_t>(i)], i + i / 2 * 1000) << file;
    }
    const Buffer<float> from(40);
    EXPECT_EQ("", said(kernels["largest"], 2, 32, 0, from.data, data.data, 40)) << file;
    for (const char* kernel : {"padding", "exchanged"}) {
      int* fresh = nullptr;
      HIP_OK(hipMalloc(reinterpret_cast<void**>(&fresh), 128 * 12));
      EXPECT_EQ("", said(kernels[kernel], 1, 64, 0, fresh)) << file << " " << kernel;
      HIP_OK(hipFree(fresh));
    }
    EXPECT_EQ("", said(kernels["handed_over"], 1, 128, 0, data.data)) << file;
    EXPECT_EQ(data.get()[0], 42) << file;
  }
}

TEST(HipChecks, RacesBetweenWorkgroups) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const std::string text = said(kernels["all_write"], 4, 32, 0, data.data);
  EXPECT_TRUE(has(text, "races: kernel all_write")) << text;
}

}  // namespace
