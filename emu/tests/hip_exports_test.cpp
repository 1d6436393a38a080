// All exported functions: each is there, and survives arguments of zero.

#include <dlfcn.h>

#include <fstream>
#include <set>

#include "emu/tests/hip_support.h"

namespace {

/// The names that the list of exports has, with their versions.
std::vector<std::pair<std::string, std::string>> exports() {
  std::ifstream file(EMU_HIP_MAP);
  std::vector<std::pair<std::string, std::string>> names;
  std::string line, version;
  while (std::getline(file, line)) {
    if (line.ends_with(" {")) version = line.substr(0, line.find(' '));
    if (!line.starts_with("  ") || !line.ends_with(";") || line.find('*') != line.npos) continue;
    names.emplace_back(line.substr(2, line.size() - 3), version);
  }
  return names;
}

TEST(HipExports, AreThereWithTheirVersions) {
  const auto names = exports();
  EXPECT_GT(names.size(), 400u);
  for (const auto& [name, version] : names) {
    EXPECT_NE(nullptr, dlvsym(RTLD_DEFAULT, name.c_str(), version.c_str())) << name << version;
  }
}

/// Zeros are null handles, null pointers, sizes of 0, device 0, and enumerators that may not exist.
TEST(HipExports, SurviveZeros) {
  // Functions that change what later tests use, one that returns a structure through a pointer, and
  // those of hiprtc, which has tests of its own.
  const std::set<std::string> left_out = {"hipDeviceReset", "hipDevicePrimaryCtxReset",
                                          "hipCreateChannelDesc"};
  using Function = size_t(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                          size_t, size_t, size_t, size_t, size_t);
  for (const auto& [name, version] : exports()) {
    if (left_out.contains(name) || name.starts_with("hiprtc")) continue;
    auto* function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name.c_str()));
    ASSERT_NE(nullptr, function) << name;
    SCOPED_TRACE(name);
    function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  }
  hipGraph_t graph = nullptr;  // hipStreamBeginCapture_spt has begun a capture
  (void)hipStreamEndCapture_spt(nullptr, &graph);
  if (graph != nullptr) HIP_OK(hipGraphDestroy(graph));
  dim3 grid, block;  // hipConfigureCall has left configurations of launches
  size_t lds = 0;
  hipStream_t stream = nullptr;
  while (__hipPopCallConfiguration(&grid, &block, &lds, &stream) == hipSuccess) {
  }
  (void)hipGetLastError();
  HIP_OK(hipSetDevice(0));
  HIP_OK(hipDeviceSynchronize());
}

}  // namespace
