// Compares the sizes of the host's argument structs with the argument sizes in the compiled images,
// for every kernel of every architecture in the binary.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/backend/gpu_kernel_images.h"
#include "wick/backend/gpu/compile/images.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Maps file and kernel to the size of the host's argument struct.
using HostKernels = std::map<std::pair<std::string, std::string>, size_t>;

HostKernels host_kernels() {
  HostKernels all;
  for (const auto* family = KernelFamilyBase::all(); family != nullptr; family = family->next()) {
    for (unsigned i = 0; i < family->count; ++i) {
      const KernelName name = family->name(i);
      const auto [at, is_new] =
          all.emplace(std::pair(name.file, name.kernel), family->argument_bytes);
      EXPECT_EQ(at->second, family->argument_bytes)
          << name.kernel << " is in two families, with different structs";
    }
  }
  return all;
}

/// The mismatches in the image of a file, one line for each.
std::vector<std::string> disagreements(const HostKernels& host, const std::string& file,
                                       const KernelsOfImage& image) {
  std::vector<std::string> lines;
  for (const auto& [name, arguments] : image) {
    const auto at = host.find({file, name});
    if (at == host.end()) {
      lines.push_back(fmt::format("{}.gpu: no family has {}", file, name));
    } else if (arguments.count != 1) {
      lines.push_back(fmt::format("{}.gpu: {} takes {} arguments", file, name, arguments.count));
    } else if (arguments.bytes != at->second) {
      lines.push_back(fmt::format("{}.gpu: {} takes {} bytes, the host hands it {}", file, name,
                                  arguments.bytes, at->second));
    }
  }
  return lines;
}

/// The kernels of each image file for an architecture.
std::map<std::string, KernelsOfImage> images_for(const std::string& architecture) {
  std::map<std::string, KernelsOfImage> kernels;
  std::string chosen;
  const Files images = find_images(architecture, chosen).value();
  for (const auto& [file, image] : images) {
    kernels[file] = kernels_of_image(architecture, image);
  }
  return kernels;
}

class GpuAbi : public testing::Test {
 protected:
  void SetUp() override {
    // This reference to the backend makes the linker include the objects that define families.
    GpuBackend& (*volatile backend)(Device) = &backend_of;
    ASSERT_NE(backend, nullptr);
    if (image_architectures().empty()) GTEST_SKIP() << "this binary has no kernels";
  }
};

TEST_F(GpuAbi, KernelsTakeTheStructsOfTheHost) {
  const HostKernels host = host_kernels();
  for (const std::string& architecture : image_architectures()) {
    SCOPED_TRACE(architecture);
    size_t kernels = 0;
    for (const auto& [file, image] : images_for(architecture)) {
      for (const std::string& line : disagreements(host, file, image)) ADD_FAILURE() << line;
      kernels += image.size();
    }
    EXPECT_GT(kernels, 500u);
  }
}

TEST_F(GpuAbi, EveryFamilyHasKernels) {
  std::set<std::string> vendors;
  std::set<std::pair<std::string, std::string>> compiled;
  for (const std::string& architecture : image_architectures()) {
    vendors.insert(architecture.starts_with("gfx") ? "amd" : architecture);
    for (const auto& [file, image] : images_for(architecture)) {
      for (const auto& [name, arguments] : image) compiled.emplace(file, name);
    }
  }
  // Some families have kernels for one vendor's devices only.
  if (vendors.count("amd") == 0 || vendors.count("sm_90a") == 0)
    GTEST_SKIP() << "this binary has kernels for one vendor only";
  for (const auto* family = KernelFamilyBase::all(); family != nullptr; family = family->next()) {
    bool found = false;
    for (unsigned i = 0; i < family->count && !found; ++i) {
      const KernelName name = family->name(i);
      found = compiled.count({name.file, name.kernel}) != 0;
    }
    EXPECT_TRUE(found) << "no image has " << family->name(0).file
                       << ".gpu: " << family->name(0).kernel;
  }
}

TEST_F(GpuAbi, DifferentStructsAreFound) {
  HostKernels host = host_kernels();
  host.at({"copy", "fill_4"}) += 8;
  host.erase({"copy", "copy_16"});
  for (const std::string& architecture : image_architectures()) {
    SCOPED_TRACE(architecture);
    const KernelsOfImage image = images_for(architecture).at("copy");
    EXPECT_THAT(disagreements(host, "copy", image),
                ElementsAre("copy.gpu: no family has copy_16",
                            HasSubstr(fmt::format("fill_4 takes {} bytes, the host hands it {}",
                                                  image.at("fill_4").bytes,
                                                  image.at("fill_4").bytes + 8))));
  }
}

TEST_F(GpuAbi, KernelsOfManyArgumentsAreFound) {
  const HostKernels host = {{{"a", "f"}, 8}};
  const KernelsOfImage two = kernels_of_ptx(
      ".visible .entry f(\n\t.param .align 8 .b8 f_param_0[4],\n\t.param .align 8 .b8 "
      "f_param_1[4]\n)\n");
  EXPECT_THAT(disagreements(host, "a", two), ElementsAre("a.gpu: f takes 2 arguments"));
}

}  // namespace
}  // namespace wick::gpu
