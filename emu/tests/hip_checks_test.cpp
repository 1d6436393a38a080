// Planted bugs and what the checks say of them on stderr; run with all checks on.

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

TEST(HipChecks, RacesInLds) {
  const Kernels kernels;
  const Buffer<int> data(128);
  const std::string text = said(kernels["reverse_without_barrier"], 1, 128, 512, data.data);
  EXPECT_TRUE(has(text, "races: kernel reverse_without_barrier") ||
              has(text, "lds: kernel reverse_without_barrier"))
      << text;
}

TEST(HipChecks, RacesBetweenWorkgroups) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const std::string text = said(kernels["all_write"], 4, 32, 0, data.data);
  EXPECT_TRUE(has(text, "races: kernel all_write")) << text;
}

}  // namespace
