#include "wick/backend/gpu/compile/compiler.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "wick/backend/gpu/compile/kernel_cache.h"
#include "wick/base/error.h"
#include "wick/base/sha256.h"

namespace wick::gpu {
namespace {

/// Never destroyed, like drivers.
struct Found {
  std::unique_ptr<Compiler> compiler;
  std::string trace;
};

const Found& found(DeviceKind kind) {
  const auto open = [](auto* function) {
    auto* result = new Found;
    result->compiler = function(result->trace);
    return result;
  };
  static const Found none;
  if (kind == DeviceKind::cuda) {
    static const Found* const cuda = open(&open_cuda_compiler);
    return *cuda;
  }
  if (kind == DeviceKind::hip) {
    static const Found* const hip = open(&open_hip_compiler);
    return *hip;
  }
  return none;
}

/// The name in a line `#include "name"`; empty for other lines.
std::string_view included_name(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return {};
  line.remove_prefix(kInclude.size());
  return line.substr(0, line.find('"'));
}

/// A compiler program that is destroyed with the object.
struct Program {
  const CompilerApi& api;
  void* handle = nullptr;
  ~Program() {
    if (handle != nullptr) api.destroy(&handle);
  }
};

/// The compiler's log on one line: bars separate its lines, and long logs are cut.
std::string one_line(std::string_view log) {
  constexpr size_t kMost = 4000;
  std::string line;
  while (!log.empty() && line.size() < kMost) {
    const size_t end = std::min(log.find_first_of(std::string_view("\n\0", 2)), log.size());
    const size_t first = log.find_first_not_of(" \t");
    if (first < end) {
      if (!line.empty()) line += " | ";
      line += log.substr(first, end - first);
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return line;
}

/// Distinguishes builds of one release: the path, size and time of the file that has a function.
std::string identity_of(const void* function) {
  Dl_info where;
  struct stat status;
  if (dladdr(function, &where) == 0 || where.dli_fname == nullptr) return "";
  if (stat(where.dli_fname, &status) != 0) return where.dli_fname;
  return fmt::format("{} {} {}.{}", where.dli_fname, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

}  // namespace

const Compiler* Compiler::of(DeviceKind kind) { return found(kind).compiler.get(); }

std::string Compiler::missing(DeviceKind kind) { return found(kind).trace; }

void Compiler::check(int code, std::string_view attempted, const KernelSource& source) const {
  if (code == 0) return;
  const char* words = api_.error_text(code);
  throw Error(ErrorKind::runtime, "compile", fmt::format("{} failed", attempted), source.name,
              fmt::format("{}: {}", name, words == nullptr ? "unknown error" : words));
}

std::string Compiler::code(void* program, const KernelSource& source, const CompilerTarget&) const {
  return read(program, api_.code_size, api_.code, source);
}

// The run-time compiler of ROCm 6.4 fails with this for some large kernels. It compiles them if it
// may assume only half the reach of a branch, because it then chooses the long form for more of
// them.
constexpr std::string_view kLongBranch = "branch size exceeds simm16";
constexpr std::array<std::string_view, 2> kShortBranches = {"-mllvm", "-amdgpu-s-branch-bits=15"};

std::string Compiler::compile(const KernelSource& source, const CompilerTarget& target) const {
  const Files headers =
      source.headers == nullptr ? Files() : included(source.text, *source.headers);
  std::vector<const char*> names, texts, options;
  for (const auto& [header, text] : headers) {
    names.push_back(header.c_str());
    texts.push_back(text.c_str());
  }
  for (const std::string& option : target.options) options.push_back(option.c_str());

  Program program{api_};
  check(api_.create(&program.handle, source.text.c_str(), source.name.c_str(),
                    static_cast<int>(names.size()), texts.data(), names.data()),
        "making a program", source);
  const int result = api_.compile(program.handle, static_cast<int>(options.size()), options.data());
  if (result == 0) return code(program.handle, source, target);

  const char* words = api_.error_text(result);
  const std::string log = one_line(read(program.handle, api_.log_size, api_.log, source));
  const bool shortened = std::find(target.options.begin(), target.options.end(),
                                   kShortBranches.back()) != target.options.end();
  if (log.find(kLongBranch) != std::string::npos && !shortened) {
    CompilerTarget other = target;
    other.options.insert(other.options.end(), kShortBranches.begin(), kShortBranches.end());
    return compile(source, other);
  }
  throw Error(ErrorKind::runtime, "compile", fmt::format("no code for {}", target.architecture),
              source.name,
              fmt::format("{}: {}{}{}", name, words == nullptr ? "unknown error" : words,
                          log.empty() ? "" : ": ", log));
}

std::string Compiler::key(const KernelSource& source, const CompilerTarget& target) const {
  Sha256 sum;
  // The length in front of each text keeps different lists from giving the same bytes.
  const auto add = [&](std::string_view text) {
    sum.add(fmt::format("{}:", text.size()));
    sum.add(text);
  };
  add(name);
  add(identity_of(reinterpret_cast<const void*>(api_.compile)));
  add(target.architecture);
  for (const std::string& option : target.options) add(option);
  add(source.name);
  add(source.text);
  if (source.headers != nullptr) {
    for (const auto& [header, text] : included(source.text, *source.headers)) {
      add(header);
      add(text);
    }
  }
  return hex(sum.finish());
}

std::string Compiler::compile_cached(const KernelSource& source, const CompilerTarget& target,
                                     bool& compiled) const {
  const KernelCache& cache = KernelCache::standard();
  const std::string entry = key(source, target);
  std::optional<std::string> image = cache.load(entry);
  compiled = !image;
  if (image) return std::move(*image);
  image = compile(source, target);
  cache.store(entry, *image);
  return std::move(*image);
}

Files included(std::string_view text, const Files& headers) {
  Files all;
  std::vector<std::string_view> unread{text};
  while (!unread.empty()) {
    std::string_view lines = unread.back();
    unread.pop_back();
    while (!lines.empty()) {
      const size_t end = std::min(lines.find('\n'), lines.size() - 1);
      const auto header = headers.find(included_name(lines.substr(0, end + 1)));
      if (header != headers.end() && all.insert(*header).second) unread.push_back(header->second);
      lines.remove_prefix(end + 1);
    }
  }
  return all;
}

bool find_functions(const Library& library, const CompilerApiNames& names, CompilerApi& api,
                    std::string& trace) {
#define WICK_RTC_FN(role, arguments) \
  if (!find_function(library, names.role, api.role, trace)) return false;
#include "wick/backend/gpu/compile/compiler.def"
  return find_function(library, names.error_text, api.error_text, trace);
}

std::string release_of(const CompilerApi& api) {
  int major = 0, minor = 0;
  api.version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

}  // namespace wick::gpu
