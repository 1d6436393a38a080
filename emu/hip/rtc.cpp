// hiprtc: runs clang as a process, in a temporary folder.

#include "emu/hip/rtc.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "emu/hip/api.h"
#include "emu/hip/rtc_headers.h"
#include "emu/object/object.h"

extern char** environ;

namespace emu::hip {
namespace {

namespace fs = std::filesystem;

struct RtcProgram {
  std::string source, name, log;
  std::vector<std::pair<std::string, std::string>> headers;  // name and text
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  std::vector<uint8_t> code;
  bool compiled = false;
};

Handles<RtcProgram>& programs() {
  static auto* all = new Handles<RtcProgram>;
  return *all;
}

/// A temporary folder that the destructor deletes.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "wick-emu-rtc-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no room for temporary files");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs a program without a shell and writes its output to a file. Returns its exit status, or -1
/// if it can't be run.
int run(std::vector<std::string> words, const fs::path& output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Generates a variable for each name expression, so that the name of its kernel can be read back.
std::string expression_uses(const RtcProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.expressions.size(); ++i) {
    text += "\nextern \"C\" __attribute__((device, used)) const auto __wick_name_" +
            std::to_string(i) + " = " + program.expressions[i] + ";\n";
  }
  return text;
}

/// Finds the kernel of each name expression: a relocation stores the kernel's address in the
/// expression's variable.
void read_names(RtcProgram& program, const CodeObject& object) {
  for (size_t i = 0; i < program.expressions.size(); ++i) {
    const std::string name = "__wick_name_" + std::to_string(i);
    for (const Variable& variable : object.variables) {
      if (variable.name != name) continue;
      for (const ObjectRelocation& relocation : object.relocations) {
        if (relocation.address != variable.address) continue;
        for (const KernelInfo& kernel : object.kernels) {
          if (kernel.entry == relocation.value || kernel.descriptor == relocation.value) {
            program.lowered[program.expressions[i]] = kernel.name;
          }
        }
        for (const Variable& other : object.variables) {
          if (other.address == relocation.value) {
            program.lowered[program.expressions[i]] = other.name;
          }
        }
      }
    }
  }
}

/// Writes the headers of the device language, and those of the names that programs include.
void write_headers(const fs::path& folder) {
  fs::create_directories(folder / "hip");
  fs::create_directories(folder / "wick");
  for (const RtcHeader& header : rtc_headers()) {
    std::ofstream(folder / "wick" / header.name, std::ios::binary) << header.text;
  }
  constexpr const char* kNames[][2] = {{"hip_runtime.h", "hip_runtime.h"},
                                       {"hip_runtime_api.h", "hip_runtime.h"},
                                       {"hip_vector_types.h", "hip_runtime.h"},
                                       {"device_functions.h", "hip_runtime.h"},
                                       {"math_functions.h", "hip_runtime.h"},
                                       {"hip_common.h", "hip_runtime.h"},
                                       {"hip_fp16.h", "hip_fp16.h"},
                                       {"hip_bf16.h", "hip_bf16.h"},
                                       {"hip_bfloat16.h", "hip_bf16.h"},
                                       {"hip_cooperative_groups.h", "hip_cooperative_groups.h"}};
  for (const auto& [name, header] : kNames) {
    std::ofstream(folder / "hip" / name) << "#include \"../wick/" << header << "\"\n";
  }
}

std::string architecture_of(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    for (const char* prefix : {"--gpu-architecture=", "--offload-arch="}) {
      if (option.starts_with(prefix)) return option.substr(std::strlen(prefix));
    }
  }
  return current_device().architecture.full_name;
}

hiprtcResult compile(RtcProgram& program, const std::vector<std::string>& options) {
  program.compiled = false;
  program.lowered.clear();
  const Folder folder;
  for (const auto& [name, text] : program.headers) {
    const fs::path path = (folder.path / name).lexically_normal();
    if (!path.string().starts_with(folder.path.string() + "/")) return HIPRTC_ERROR_INVALID_INPUT;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  const fs::path language = folder.path / "wick_language";
  write_headers(language);
  std::ofstream(folder.path / "wick_source.hip", std::ios::binary)
      << "#line 1 \"" << program.name << "\"\n"
      << program.source << expression_uses(program);
  const char* compiler = std::getenv("WICK_EMU_CLANG");
  std::vector<std::string> words{compiler == nullptr ? "clang++-19" : compiler,
                                 "-x",
                                 "hip",
                                 "-O3",
                                 "--offload-device-only",
                                 "--no-gpu-bundle-output",
                                 "-nogpuinc",
                                 "-nogpulib",
                                 "-fuse-cuid=none",
                                 "--offload-arch=" + architecture_of(options),
                                 "-I",
                                 folder.path.string(),
                                 "-isystem",
                                 language.string(),
                                 "-include",
                                 (language / "wick" / "hip_runtime.h").string()};
  for (const std::string& option : options) {
    const bool arch =
        option.starts_with("--gpu-architecture=") || option.starts_with("--offload-arch=");
    if (!arch) words.push_back(option);
  }
  const fs::path out = folder.path / "wick_code.o", log = folder.path / "wick_log";
  words.insert(words.end(), {"-c", (folder.path / "wick_source.hip").string(), "-o", out.string()});
  const int status = run(words, log);
  program.log = read_text(log);
  if (status == -1 || status == 127) {
    program.log += words[0] + " can't be started";
    return HIPRTC_ERROR_INTERNAL_ERROR;
  }
  if (status != 0) return HIPRTC_ERROR_COMPILATION;
  const std::string code = read_text(out);
  program.code.assign(code.begin(), code.end());
  read_names(program, read_object(program.code));
  program.compiled = true;
  return HIPRTC_SUCCESS;
}

struct RtcError {
  hiprtcResult code;
};

std::shared_ptr<RtcProgram> find_program(const void* handle) {
  std::shared_ptr<RtcProgram> program = programs().find(handle);
  if (program == nullptr) throw RtcError{HIPRTC_ERROR_INVALID_PROGRAM};
  return program;
}

void need(bool fulfilled, hiprtcResult otherwise = HIPRTC_ERROR_INVALID_INPUT) {
  if (!fulfilled) throw RtcError{otherwise};
}

template <class Body>
hiprtcResult rtc_call(const Body& body) {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return HIPRTC_SUCCESS;
    } else {
      return body();
    }
  } catch (const RtcError& error) {
    return error.code;
  } catch (const std::bad_alloc&) {
    return HIPRTC_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    complain(std::string("hiprtc: ") + error.what());
  } catch (...) {
  }
  return HIPRTC_ERROR_INTERNAL_ERROR;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API const char* hiprtcGetErrorString(hiprtcResult result) {
  switch (result) {
    case HIPRTC_SUCCESS:
      return "HIPRTC_SUCCESS";
    case HIPRTC_ERROR_OUT_OF_MEMORY:
      return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case HIPRTC_ERROR_PROGRAM_CREATION_FAILURE:
      return "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case HIPRTC_ERROR_INVALID_INPUT:
      return "HIPRTC_ERROR_INVALID_INPUT";
    case HIPRTC_ERROR_INVALID_PROGRAM:
      return "HIPRTC_ERROR_INVALID_PROGRAM";
    case HIPRTC_ERROR_INVALID_OPTION:
      return "HIPRTC_ERROR_INVALID_OPTION";
    case HIPRTC_ERROR_COMPILATION:
      return "HIPRTC_ERROR_COMPILATION";
    case HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE:
      return "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
      return "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
      return "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
      return "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    case HIPRTC_ERROR_INTERNAL_ERROR:
      return "HIPRTC_ERROR_INTERNAL_ERROR";
    case HIPRTC_ERROR_LINKING:
      return "HIPRTC_ERROR_LINKING";
  }
  return "Invalid HIPRTC error code";
}

EMU_API hiprtcResult hiprtcVersion(int* major, int* minor) {
  return rtc_call([&] {
    need(major != nullptr && minor != nullptr);
    *major = 9;
    *minor = 0;
  });
}

EMU_API hiprtcResult hiprtcCreateProgram(hiprtcProgram* handle, const char* source,
                                         const char* name, int count, const char* const* texts,
                                         const char* const* names) {
  return rtc_call([&] {
    need(handle != nullptr && source != nullptr && count >= 0);
    need(count == 0 || (texts != nullptr && names != nullptr));
    auto program = std::make_shared<RtcProgram>();
    program->source = source;
    program->name = name == nullptr ? "CompileSource" : name;
    for (int i = 0; i < count; ++i) {
      need(names[i] != nullptr && texts[i] != nullptr);
      program->headers.emplace_back(names[i], texts[i]);
    }
    *handle = programs().add<hiprtcProgram>(std::move(program));
  });
}

EMU_API hiprtcResult hiprtcDestroyProgram(hiprtcProgram* handle) {
  return rtc_call([&] {
    need(handle != nullptr);
    need(programs().remove(*handle) != nullptr, HIPRTC_ERROR_INVALID_PROGRAM);
    *handle = nullptr;
  });
}

EMU_API hiprtcResult hiprtcAddNameExpression(hiprtcProgram handle, const char* expression) {
  return rtc_call([&] {
    const std::shared_ptr<RtcProgram> program = find_program(handle);
    need(expression != nullptr);
    need(!program->compiled, HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    program->expressions.emplace_back(expression);
  });
}

EMU_API hiprtcResult hiprtcCompileProgram(hiprtcProgram handle, int count,
                                          const char* const* options) {
  return rtc_call([&] {
    const std::shared_ptr<RtcProgram> program = find_program(handle);
    need(count >= 0 && (count == 0 || options != nullptr));
    std::vector<std::string> words;
    for (int i = 0; i < count; ++i) {
      need(options[i] != nullptr);
      words.emplace_back(options[i]);
    }
    return compile(*program, words);
  });
}

EMU_API hiprtcResult hiprtcGetLoweredName(hiprtcProgram handle, const char* expression,
                                          const char** lowered) {
  return rtc_call([&] {
    const std::shared_ptr<RtcProgram> program = find_program(handle);
    need(expression != nullptr && lowered != nullptr);
    need(program->compiled, HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    const auto at = program->lowered.find(expression);
    need(at != program->lowered.end(), HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    *lowered = at->second.c_str();
  });
}

EMU_API hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram handle, size_t* bytes) {
  return rtc_call([&] {
    need(bytes != nullptr);
    *bytes = find_program(handle)->log.size() + 1;
  });
}

EMU_API hiprtcResult hiprtcGetProgramLog(hiprtcProgram handle, char* log) {
  return rtc_call([&] {
    need(log != nullptr);
    std::strcpy(log, find_program(handle)->log.c_str());
  });
}

EMU_API hiprtcResult hiprtcGetCodeSize(hiprtcProgram handle, size_t* bytes) {
  return rtc_call([&] {
    need(bytes != nullptr);
    const std::shared_ptr<RtcProgram> program = find_program(handle);
    need(program->compiled, HIPRTC_ERROR_INVALID_PROGRAM);
    *bytes = program->code.size();
  });
}

EMU_API hiprtcResult hiprtcGetCode(hiprtcProgram handle, char* code) {
  return rtc_call([&] {
    need(code != nullptr);
    const std::shared_ptr<RtcProgram> program = find_program(handle);
    need(program->compiled, HIPRTC_ERROR_INVALID_PROGRAM);
    std::memcpy(code, program->code.data(), program->code.size());
  });
}
