// Generates random kernels from seeds, compiles them for device and host, and compares the results.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "emu/tests/kernels.h"
#include "emu/tests/writer.h"

namespace {

using namespace emu::test;

struct Options {
  uint64_t count = 300, seed = 1, batch = 50;
  std::string arch = "gfx1100", keep;
};

constexpr char kUsage[] =
    "emu_random_kernels [--count 300] [--seed 1] [--batch 50] [--arch gfx1100] [--keep FOLDER]\n"
    "Compiles random kernels for a device and for the host, runs both, and compares.\n";

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    char* end = nullptr;
    const uint64_t number = std::strtoull(value, &end, 10);
    const bool counts = name == "--count" || name == "--seed" || name == "--batch";
    const bool known = counts || name == "--arch" || name == "--keep";
    if (!known || *value == 0 || (counts && *end != 0) || (name == "--batch" && number == 0)) {
      std::fprintf(stderr, "emu_random_kernels: %s %s\n%s", name.c_str(), value, kUsage);
      std::exit(2);
    }
    if (name == "--count") options.count = number;
    if (name == "--seed") options.seed = number;
    if (name == "--batch") options.batch = number;
    if (name == "--arch") options.arch = value;
    if (name == "--keep") options.keep = value;
  }
  return options;
}

/// A file of kernels and the outputs of both compilers.
struct File {
  uint64_t first = 0, count = 0;  // seeds of its kernels
  std::string source, device, host;
  uint32_t lanes = 32;
  std::vector<std::string> flags;
};

/// Adapts the kernel to the architecture: gfx9 lacks row_xmask, so the kernel rotates instead.
std::string kernel_for(const std::string& arch, uint64_t seed) {
  std::string text = random_kernel(seed);
  static const std::string kMask = ", 0x165,", kRotate = ", 0x125,";
  if (!arch.starts_with("gfx9")) return text;
  for (size_t at = 0; (at = text.find(kMask, at)) != text.npos;)
    text.replace(at, kMask.size(), kRotate);
  return text;
}

File write_file(uint64_t first, uint64_t count, int number, const std::string& arch) {
  static const std::vector<std::string> kLevels = {"-O1", "-O2", "-O3", "-Os", "-O0"};
  File file;
  file.first = first;
  file.count = count;
  const std::string path = work_folder() + "/random" + std::to_string(number);
  file.source = path + ".hip";
  file.device = path + ".hsaco";
  file.host = path + ".so";
  file.flags = {kLevels[static_cast<size_t>(number) % kLevels.size()]};
  if (arch.starts_with("gfx9")) {
    file.lanes = 64;
  } else if (number % 4 == 3) {
    file.flags.push_back("-mwavefrontsize64");
    file.lanes = 64;
  }
  std::ofstream out(file.source);
  out << "#include \"corpus.h\"\n";
  for (uint64_t i = 0; i < count; ++i) out << kernel_for(arch, first + i);
  return file;
}

/// Returns the number of the file's kernels whose results differ.
int compare_file(const File& file, const Options& options) {
  Object object(file.device, options.arch);
  HostLibrary host(file.host);
  int wrong = 0;
  for (uint64_t i = 0; i < file.count; ++i) {
    const std::string kernel = "random_" + std::to_string(file.first + i);
    Problem problem;
    problem.groups = 2;
    problem.block = 64;
    problem.seed = file.first + i;
    const auto inputs = make_inputs(problem);
    std::string error;
    const auto got = run_on_device(object, kernel, problem, inputs, error);
    if (error.empty()) error = difference(got, host.run(kernel, problem, inputs, file.lanes), 0);
    if (error.empty()) continue;
    ++wrong;
    std::string flags;
    for (const std::string& flag : file.flags) flags += " " + flag;
    std::printf("%s%s: %s\n", kernel.c_str(), flags.c_str(), error.c_str());
    if (!options.keep.empty()) {
      std::ofstream(options.keep + "/" + kernel + ".hip")
          << "#include \"corpus.h\"\n"
          << kernel_for(options.arch, file.first + i);
    }
  }
  return wrong;
}

/// Compiles and compares some files. Returns the number of kernels whose results differ.
int run_files(const std::vector<File>& files, const Options& options) {
  std::vector<std::vector<std::string>> commands;
  for (const File& file : files) {
    commands.push_back(device_command(file.source, options.arch, file.flags, file.device));
    commands.push_back(host_command(file.source, file.host));
  }
  const auto errors = run_commands(commands);
  int wrong = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const std::string& error : {errors[2 * i], errors[2 * i + 1]}) {
      if (error.empty()) continue;
      std::printf("%s doesn't compile: %s\n", files[i].source.c_str(), error.c_str());
      std::exit(2);
    }
    wrong += compare_file(files[i], options);
    for (const std::string& path : {files[i].device, files[i].host}) {
      std::filesystem::remove(path);
    }
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  int wrong = 0, number = 0;
  for (uint64_t done = 0; done < options.count;) {
    std::vector<File> files;
    for (int i = 0; i < 4 && done < options.count; ++i) {
      const uint64_t count = std::min(options.batch, options.count - done);
      files.push_back(write_file(options.seed + done, count, number++, options.arch));
      done += count;
    }
    wrong += run_files(files, options);
    std::fflush(stdout);
  }
  std::printf("%llu random kernels, %d differ\n", static_cast<unsigned long long>(options.count),
              wrong);
  return wrong == 0 ? 0 : 1;
}
