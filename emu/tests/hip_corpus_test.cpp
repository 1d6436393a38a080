// The checks must not report anything in the corpus, whose kernels are correct. Runs with
// WICK_EMU_CHECK=all.

#include <algorithm>
#include <filesystem>
#include <set>

#include "emu/tests/hip_support.h"

namespace {

constexpr unsigned kGroups = 4, kBlock = 128, kItems = kGroups * kBlock;
constexpr size_t kInputBytes = 160, kOutputBytes = 128;  // per work-item: see corpus/corpus.h

/// Returns the kernels in a file, found by the names of their descriptors, which end with .kd.
std::set<std::string> kernels_of(const std::vector<char>& file) {
  std::set<std::string> names;
  const std::string suffix(".kd\0", 4);
  for (auto at = file.begin();;) {
    const auto end = std::search(at, file.end(), suffix.begin(), suffix.end());
    if (end == file.end()) return names;
    auto begin = end;
    while (begin != file.begin() && begin[-1] != '\0') --begin;
    names.insert(std::string(begin, end));
    at = end + 1;
  }
}

/// Returns inputs that are valid for every kernel of the corpus.
std::vector<uint32_t> inputs() {
  std::vector<uint32_t> words((kItems + 64) * kInputBytes / 4);
  uint32_t state = 1;
  for (size_t i = 0; i < words.size(); ++i) {
    state = state * 1664525 + 1013904223;
    // The last words of a record are numbers below 1024.
    words[i] = i % (kInputBytes / 4) >= kInputBytes / 4 - 4 ? state >> 22 : state;
  }
  return words;
}

TEST(HipCorpus, IsSilent) {
  const std::string arch = basic_kernels().substr(6);  // gfx1100.hsaco
  Buffer<uint32_t> in((kItems + 64) * kInputBytes / 4);
  in.set(inputs());
  int count = 0;
  testing::internal::CaptureStderr();
  for (const auto& entry : std::filesystem::directory_iterator(EMU_TEST_KERNELS "/corpus")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(arch)) continue;
    const Kernels kernels("corpus/" + name);
    for (const std::string& kernel : kernels_of(kernel_file("corpus/" + name))) {
      Buffer<uint32_t> out(kItems * kOutputBytes / 4);
      EXPECT_EQ(hipSuccess, launch(kernels[kernel.c_str()], kGroups, kBlock, kBlock * 16, nullptr,
                                   in.data, out.data, kItems))
          << name << " " << kernel;
      EXPECT_EQ(hipSuccess, hipDeviceSynchronize()) << name << " " << kernel;
      ++count;
    }
  }
  EXPECT_GT(count, 100);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
