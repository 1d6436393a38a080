// Features of chips: the feature word of an image, for architectures of this build and for others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/expect_error.h"
#include "wick/backend/gpu/compile/features.h"
#include "wick/backend/gpu/compile/images.h"

namespace wick::gpu {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kByteUnit = bit(Feature::byte_unit), kWideUnit = bit(Feature::wgmma),
                   kParts = bit(Feature::cluster), kBoth = bit(Feature::matrix_unit) | kByteUnit,
                   kAmpere = kBoth | bit(Feature::async_copies), kWave64 = bit(Feature::wave64);

struct Chip {
  const char* architecture;
  uint32_t features;
};

/// The features according to the vendors' instruction set documentation, independent of what
/// kernels use.
constexpr Chip kAmd[] = {
    {"gfx900", kWave64},
    {"gfx906", kWave64},
    {"gfx908", kBoth | kWave64},
    {"gfx90a", kBoth | kWave64},
    {"gfx942", kBoth | kWave64},
    {"gfx950", kBoth | kWave64},
    {"gfx1010", 0},
    {"gfx1030", 0},
    {"gfx1100", kBoth},
    {"gfx1103", kBoth},
    {"gfx1151", kBoth},
    {"gfx1152", kBoth},
    {"gfx1153", kBoth},
    {"gfx1200", kBoth},
    {"gfx1201", kBoth},
    {"gfx9-generic", kWave64},
    {"gfx10-3-generic", 0},
    {"gfx11-generic", kBoth},
    {"gfx12-generic", kBoth},
};
constexpr Chip kNvidia[] = {
    {"sm_75", 0},
    {"sm_80", kAmpere},
    {"sm_89", kAmpere},
    {"sm_90", kAmpere | kParts},
    {"sm_90a", kAmpere | kParts | kWideUnit},
    {"sm_100a", kAmpere | kParts},
    {"sm_120", kAmpere | kParts},
};

class FeatureFile {
 public:
  FeatureFile()
      : path_(fs::temp_directory_path() / ("wick_features_" + std::to_string(getpid()))) {}
  ~FeatureFile() { fs::remove(path_); }
  /// Compiles features.gpu. Returns an empty string if the compiler doesn't support the
  /// architecture.
  std::string made_by(const std::string& command) {
    const std::string all =
        command + " " WICK_TEST_FEATURES " -o " + path_.string() + " 2>/dev/null";
    if (std::system(all.c_str()) != 0) return "";
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  fs::path path_;
};

constexpr const char* kAmdCommand = WICK_TEST_CLANG
    " -x hip -std=c++20 -O3 --offload-device-only --no-gpu-bundle-output "
    "-nogpuinc -nogpulib -fuse-cuid=none -mcode-object-version=6 -c -I" WICK_TEST_ROOT
    " --offload-arch=";

/// The options under which this compiler lacks the macro of a wave's lanes, as LLVM 22 and later
/// do.
constexpr const char* kWithoutMacro =
    " -U__AMDGCN_WAVEFRONT_SIZE__ -U__AMDGCN_WAVEFRONT_SIZE -Wno-builtin-macro-redefined";

TEST(GpuFeatures, OfAmdsChips) {
  if (std::string(WICK_TEST_CLANG).empty()) GTEST_SKIP() << "no compiler for AMD";
  FeatureFile file;
  int known = 0;
  for (const Chip& chip : kAmd) {
    const std::string image = file.made_by(std::string(kAmdCommand) + chip.architecture);
    if (image.empty()) continue;  // newer than the compiler
    ++known;
    EXPECT_EQ(features_of(image), chip.features) << chip.architecture;
  }
  EXPECT_GE(known, 17);
}

TEST(GpuFeatures, OfCompilersWithoutTheMacroOfAWavesLanes) {
  if (std::string(WICK_TEST_CLANG).empty()) GTEST_SKIP() << "no compiler for AMD";
  FeatureFile file;
  for (const char* architecture : {"gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    const std::string command = std::string(kAmdCommand) + architecture;
    const std::string with = file.made_by(command), without = file.made_by(command + kWithoutMacro);
    ASSERT_FALSE(without.empty()) << architecture;
    EXPECT_EQ(features_of(without), features_of(with)) << architecture;
  }
  // Waves of 64 lanes where 32 are the default: known with the macro, and refused without it.
  const std::string wide = std::string(kAmdCommand) + "gfx1030 -mwavefrontsize64";
  EXPECT_EQ(features_of(file.made_by(wide)), kWave64);
  EXPECT_EQ(file.made_by(wide + kWithoutMacro), "");
}

TEST(GpuFeatures, KernelsForWavesOfAnotherSizeAreRefused) {
  check_waves(kWave64 | kBoth, 64);
  check_waves(kBoth, 32);
  EXPECT_THAT(test::error_of([] { check_waves(kBoth, 64); }),
              testing::HasSubstr("waves of another size: 32 lanes; the device has 64"));
  EXPECT_THAT(test::error_of([] { check_waves(kWave64, 32); }),
              testing::HasSubstr("64 lanes; the device has 32"));
}

TEST(GpuFeatures, OfNvidiasChips) {
  if (std::string(WICK_TEST_NVCC).empty()) GTEST_SKIP() << "no compiler for NVIDIA";
  FeatureFile file;
  const std::string command = WICK_TEST_NVCC " -x cu -std=c++20 -I" WICK_TEST_ROOT " ";
  for (const Chip& chip : kNvidia) {
    const std::string image = file.made_by(command + "-cubin -arch=" + chip.architecture);
    ASSERT_FALSE(image.empty()) << chip.architecture;
    EXPECT_EQ(features_of(image), chip.features) << chip.architecture;
  }
  EXPECT_EQ(features_of(file.made_by(command + "-ptx -arch=compute_80")), kAmpere);
}

/// A chip that is in no list has the features that its image declares.
TEST(GpuFeatures, OfAPlantedImage) {
  const auto planted = [](uint32_t word, uint32_t check) {
    const uint32_t words[] = {kFeatureMark[0], kFeatureMark[1], word, check};
    std::string image = "code ";
    image.append(reinterpret_cast<const char*>(words), sizeof words);
    return image + " more";
  };
  EXPECT_EQ(features_of(planted(0, ~0u)), 0u);
  EXPECT_EQ(features_of(planted(kByteUnit | 0x40000000u, ~(kByteUnit | 0x40000000u))),
            kByteUnit | 0x40000000u);
  // The mark may occur elsewhere without a valid word after it.
  EXPECT_EQ(features_of(planted(1, 2) + planted(kParts, ~uint32_t{kParts})), kParts);
  for (const std::string& damaged : {std::string(), planted(1, 1), planted(1, ~1u).substr(0, 15),
                                     std::string("wick_features[16] = {119, 105")}) {
    EXPECT_THAT(test::error_of([&] { features_of(damaged); }),
                testing::HasSubstr("doesn't say what its chip can do"));
  }
}

TEST(GpuFeatures, OfTheImagesInThisBinary) {
  for (const std::string& architecture : image_architectures()) {
    std::string chosen;
    const uint32_t word = features_of(find_images(architecture, chosen)->at("features"));
    for (const Chip& chip : kAmd) {
      if (architecture == chip.architecture) EXPECT_EQ(word, chip.features) << architecture;
    }
    for (const Chip& chip : kNvidia) {
      if (architecture == chip.architecture) EXPECT_EQ(word, chip.features) << architecture;
    }
  }
}

}  // namespace
}  // namespace wick::gpu
