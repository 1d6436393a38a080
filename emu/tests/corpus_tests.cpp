// Runs the corpus at every optimization level and compares the emulator's results with the host's.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "emu/tests/kernels.h"

namespace emu::test {
namespace {

struct Level {
  const char* arch;
  const char* name;
  std::vector<std::string> flags;
  uint32_t lanes;
  bool has(const std::string& file) const {
    // Each family has its own matrix instructions, and the corpus has those of two of them.
    const std::string_view chip = arch;
    return (file != "matrix" || chip.starts_with("gfx11")) && (file != "mfma" || chip == "gfx90a");
  }
};

const std::vector<Level>& levels() {
  static const std::vector<Level> all = {
      {"gfx1100", "O0", {"-O0"}, 32},
      {"gfx1100", "O1", {"-O1"}, 32},
      {"gfx1100", "O2", {"-O2"}, 32},
      {"gfx1100", "O3", {"-O3"}, 32},
      {"gfx1100", "Os", {"-Os"}, 32},
      {"gfx1100", "O2_wave64", {"-O2", "-mwavefrontsize64"}, 64},
      {"gfx1100", "O0_wave64", {"-O0", "-mwavefrontsize64"}, 64},
      {"gfx90a", "O0", {"-O0"}, 64},
      {"gfx90a", "O2", {"-O2"}, 64},
      {"gfx942", "O2", {"-O2"}, 64},
      {"gfx1030", "O2", {"-O2"}, 32},
      {"gfx1151", "O2", {"-O2"}, 32},
      {"gfx1200", "O2", {"-O2"}, 32},
      {"gfx1101", "O2", {"-O2"}, 32},
      {"gfx1201", "O2", {"-O2"}, 32},
      {"gfx950", "O2", {"-O2"}, 64},
  };
  return all;
}

/// Returns whether the filter selects any test of a level's chip.
bool is_selected(const Level& level) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    if (suite.name() == std::string("Corpus_") + level.arch) return suite.test_to_run_count() > 0;
  }
  return false;
}

/// Compiles everything at once when the first test needs it.
class Compiled {
 public:
  static Compiled& get() {
    static Compiled all;
    return all;
  }
  std::string error(const std::string& file) const { return errors_.at(file); }
  Object& object(const std::string& path, const Level& level) {
    auto& object = objects_[path];
    if (object == nullptr) object = std::make_unique<Object>(path, level.arch);
    return *object;
  }
  HostLibrary& host(const std::string& path) {
    auto& library = hosts_[path];
    if (library == nullptr) library = std::make_unique<HostLibrary>(path);
    return *library;
  }
  static std::string device_path(const std::string& name, const Level& level) {
    return work_folder() + "/" + name + "_" + level.arch + "_" + level.name + ".hsaco";
  }
  static std::string host_path(const std::string& name) {
    return work_folder() + "/" + name + ".so";
  }
  static std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(EMU_CORPUS_DIR)) {
      if (entry.path().extension() == ".hip") found.push_back(entry.path().stem().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  Compiled() {
    std::vector<std::vector<std::string>> commands;
    std::vector<std::string> files;
    for (const std::string& name : names()) {
      const std::string source = std::string(EMU_CORPUS_DIR) + "/" + name + ".hip";
      files.push_back(host_path(name));
      commands.push_back(host_command(source, files.back()));
      for (const Level& level : levels()) {
        if (!level.has(name) || !is_selected(level)) continue;
        files.push_back(device_path(name, level));
        commands.push_back(device_command(source, level.arch, level.flags, files.back()));
      }
    }
    const auto errors = run_commands(commands);
    for (size_t i = 0; i < files.size(); ++i) errors_[files[i]] = errors[i];
  }
  std::map<std::string, std::string> errors_;
  std::map<std::string, std::unique_ptr<Object>> objects_;
  std::map<std::string, std::unique_ptr<HostLibrary>> hosts_;
};

class CorpusTest : public testing::Test {
 public:
  CorpusTest(std::string file, const Level& level) : file_(std::move(file)), level_(level) {}

  void TestBody() override {
    Compiled& compiled = Compiled::get();
    const std::string device = Compiled::device_path(file_, level_),
                      host = Compiled::host_path(file_);
    ASSERT_EQ(compiled.error(host), "");
    ASSERT_EQ(compiled.error(device), "");
    Object& object = compiled.object(device, level_);
    ASSERT_FALSE(object.kernels().empty());
    const Problem problem;
    const auto inputs = make_inputs(problem);
    for (const auto& [kernel, descriptor] : object.kernels()) {
      std::string error;
      const auto got = run_on_device(object, kernel, problem, inputs, error);
      if (!error.empty()) {
        ADD_FAILURE() << kernel << ": " << error;
        continue;
      }
      const auto want = compiled.host(host).run(kernel, problem, inputs, level_.lanes);
      const double tolerance = kernel.starts_with("approx") ? 1e-5 : 0;
      EXPECT_EQ(difference(got, want, tolerance), "") << kernel;
    }
  }

 private:
  std::string file_;
  const Level& level_;
};

}  // namespace
}  // namespace emu::test

int main(int argc, char** argv) {
  using namespace emu::test;
  for (const std::string& file : Compiled::names()) {
    for (const Level& level : levels()) {
      if (!level.has(file)) continue;
      const std::string suite = std::string("Corpus_") + level.arch;
      testing::RegisterTest(
          suite.c_str(), (file + "_" + level.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [file, &level]() -> testing::Test* { return new CorpusTest(file, level); });
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
