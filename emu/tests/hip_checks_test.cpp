// Planted bugs and what the checks say of them on stderr; run with all checks on.

#include <numeric>

#include "emu/tests/hip_support.h"

namespace {

/// What is said while a launch runs to its end.
template <class... Arguments>
std::string said(hipFunction_t function, unsigned groups, unsigned block, unsigned lds,
                 Arguments... arguments) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(function, groups, block, lds, nullptr, arguments...));
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

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

TEST(HipChecks, LdsThatNothingWrote) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const std::string text = said(kernels["reads_unwritten_lds"], 1, 32, 256, data.data);
  EXPECT_TRUE(has(text, "lds: kernel reads_unwritten_lds")) << text;
}

/// The planted kernels run under this check alone say so, and under another one nothing of it.
void expect_finding(const char* kernel, unsigned block, unsigned lds, const std::string& kind,
                    const std::string& what) {
  const Kernels kernels("planted.gfx1100.hsaco");
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
  const Kernels kernels("planted.gfx1100.hsaco");
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
  expect_finding("unwritten_register", 32, 0, "registers", "v60 decides here");
  expect_finding("unwritten_scalar", 32, 0, "registers", "s90 is read and was never written");
  expect_finding("unwritten_condition", 32, 0, "registers", "SCC decides here");
}

TEST(HipChecks, BarriersThatLanesDontReach) {
  expect_finding("divergent_barrier", 32, 0, "barriers", "16 lanes of the wave don't reach");
}

TEST(HipChecks, Misalignment) {
  expect_finding("misaligned", 32, 0, "alignment", "isn't a multiple of 4");
}

/// What is said while a launch ends with an error.
std::string said_by_failure(hipFunction_t function, unsigned block, int* data) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(function, 1, block, 0, nullptr, data));
  EXPECT_NE(hipSuccess, hipDeviceSynchronize());
  (void)hipGetLastError();
  return testing::internal::GetCapturedStderr();
}

TEST(HipChecks, MemoryBeyondItsEndAndAfterFree) {
  const Kernels kernels("planted.gfx1100.hsaco");
  int* data = nullptr;
  HIP_OK(hipMalloc(reinterpret_cast<void**>(&data), 63 * sizeof(int)));
  std::string text = said_by_failure(kernels["too_far"], 64, data);
  for (const char* part :
       {"kernel too_far (", "planted.hip:", "global_store_b32", "workgroup (0, 0, 0)", "wave 1",
        "lane 31 writes 4 bytes", "past the end of 252 bytes"}) {
    EXPECT_TRUE(has(text, part)) << part << " isn't in " << text;
  }
  EXPECT_EQ("", said(kernels["too_far"], 1, 63, 0, data)) << "the device works on";
  HIP_OK(hipFree(data));
  text = said_by_failure(kernels["too_far"], 32, data);
  EXPECT_TRUE(has(text, "kernel too_far") && has(text, "free")) << text;
}

TEST(HipChecks, NoRacesBetweenLaunches) {
  const Kernels kernels("planted.gfx1100.hsaco");
  const Buffer<int> data(64);
  // More launches than there are tags for them; groups change places now and then.
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
  const Kernels kernels("planted.gfx1100.hsaco");
  const Buffer<int> data(32);
  EXPECT_EQ("", said(kernels["halves"], 2, 32, 0, data.data));
  EXPECT_EQ(data.get(), std::vector<int>(32, 0x10001));
  EXPECT_EQ("", said(kernels["lds_halves"], 1, 64, 128, data.data));
  const std::string text = said(kernels["one_byte"], 2, 1, 0, data.data);
  EXPECT_TRUE(has(text, "races: kernel one_byte") && has(text, "lane 0: writes memory")) << text;
}

TEST(HipChecks, RacesBetweenWorkgroups) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const std::string text = said(kernels["all_write"], 4, 32, 0, data.data);
  EXPECT_TRUE(has(text, "races: kernel all_write")) << text;
}

}  // namespace
