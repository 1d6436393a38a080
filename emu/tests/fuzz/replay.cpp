// Runs the fuzzer's target on files, on the files in folders, and on hostile objects, to replay its
// finds as a test. `--write FOLDER` writes the hostile objects there, as seeds of the fuzzer.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emu/tests/fuzz/forge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

int run(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  // An exactly sized copy on the heap, so that sanitizers detect accesses beyond it.
  const std::vector<uint8_t> data(bytes.begin(), bytes.end());
  std::printf("%s, %zu bytes\n", path.c_str(), data.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(data.data(), data.size());
  return 1;
}

/// Small enough for the fuzzer, whose inputs have at most 64 KiB; longer ones would be cut.
constexpr uint32_t kScale = 1;

void hostile(const std::function<void(const emu::test::Shape&)>& use) {
  emu::test::hostile_shapes(kScale, use);
  emu::test::hostile_lines(kScale, [&](const auto& shape, const auto&) { use(shape); });
}

int write_hostile(const std::filesystem::path& folder) {
  bool written = true;
  hostile([&](const emu::test::Shape& shape) {
    std::ofstream file(folder / ("hostile-" + shape.name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(shape.object.data()),
               static_cast<std::streamsize>(shape.object.size()));
    written = written && file.flush();
  });
  return written ? 0 : 1;
}

int run_hostile() {
  int count = 0;
  hostile([&](const emu::test::Shape& shape) {
    std::printf("%s, %zu bytes\n", shape.name.c_str(), shape.object.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(shape.object.data(), shape.object.size());
    ++count;
  });
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--write") return write_hostile(argv[2]);
  int count = run_hostile();
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      count += run(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) count += run(entry.path());
    }
  }
  std::printf("%d inputs\n", count);
  return count == 0 ? 1 : 0;
}
