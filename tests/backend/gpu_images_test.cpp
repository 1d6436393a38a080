// Archives of kernel images, made by tools/pack_kernels.py, in a binary with its own table. Texts
// replace the images, and gfx1101 is stored as differences from gfx1100.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "wick/backend/gpu/compile/images.h"

namespace wick::gpu {
namespace {

std::string text(const std::string& file) {
  std::ifstream in(WICK_TEST_KERNELS "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GpuArchives, WhatIsStoredAsDifferencesComesBackWhole) {
  std::string chosen;
  const std::optional<Files> base = find_images("gfx1100", chosen);
  ASSERT_TRUE(base);
  EXPECT_EQ(chosen, "gfx1100");
  EXPECT_EQ(base->at("a"), text("decode_rows.gpu"));
  EXPECT_EQ(base->at("b"), text("attention.gpu"));
  const std::optional<Files> other = find_images("gfx1101", chosen);
  ASSERT_TRUE(other);
  EXPECT_EQ(chosen, "gfx1101");
  EXPECT_EQ(other->size(), 3u);
  EXPECT_EQ(other->at("a"), text("decode_rows.gpu"));
  EXPECT_EQ(other->at("c"), text("flash.gpu"));
  EXPECT_EQ(other->at("b"), "");
}

TEST(GpuArchives, TheyAreDifferencesIndeed) {
  const auto bytes = [](const char* name) {
    return std::ifstream(std::string(WICK_TEST_ARCHIVES "/") + name,
                         std::ios::binary | std::ios::ate)
        .tellg();
  };
  EXPECT_GT(bytes("gfx1100.zst"), 4000);
  EXPECT_LT(bytes("same.zst"), 500);
  EXPECT_GT(bytes("same.zst"), 0);
}

TEST(GpuArchives, OnlyImagesAreArchitectures) {
  EXPECT_EQ(image_architectures(), (std::vector<std::string>{"gfx1100", "gfx1101", "same"}));
  EXPECT_EQ(kernel_sources().at("d"), text("rope.gpu"));
  std::string chosen;
  EXPECT_EQ(find_images("same", chosen)->at("b"), text("attention.gpu"));
  EXPECT_FALSE(find_images("gfx1102", chosen));
}

}  // namespace
}  // namespace wick::gpu
