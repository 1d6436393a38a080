#include "wick/backend/gpu/custom/custom_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::gpu {
namespace {

constexpr const char* kHeader = "wick/backend/gpu/kernels/device/custom.h";

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name.empty() || name.size() > 64 || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// The names that a kernel's text declares.
class Names {
 public:
  explicit Names(std::string_view op) : op_(op) {}
  void add(const std::string& name) {
    if (!is_identifier(name)) {
      throw Error(op_, "not a name for a kernel's source", printable(name),
                  "need letters, digits and underscores, a letter first");
    }
    add_derived(name);
  }
  void add_derived(const std::string& name) {
    if (!names_.insert(name).second) {
      throw Error(op_, "a name is given twice to a kernel's source", name,
                  "x also declares x_type, x_rank, x_elems, x_shape and x_strides");
    }
  }

 private:
  std::string_view op_;
  std::set<std::string> names_;
};

/// The C++ type of elements in memory. Blocks are bytes.
std::string type_of(DType dtype) {
  if (is_block(dtype)) return "u8";
  return fmt::format("Storage_{}", name(stored(dtype)));
}

/// Declares a constant with exactly this value, or a type.
template <class T>
std::string declaration(const std::string& name, const T& value) {
  using std::is_same_v;
  if constexpr (is_same_v<T, DType>) {
    return fmt::format("using {} = {};\n", name, type_of(value));
  } else if constexpr (is_same_v<T, bool>) {
    return fmt::format("constexpr bool {} = {};\n", name, value);
  } else if constexpr (is_same_v<T, float>) {
    return fmt::format("constexpr float {} = __builtin_bit_cast(float, 0x{:x}u);\n", name,
                       std::bit_cast<uint32_t>(value));
  } else if constexpr (is_same_v<T, double>) {
    return fmt::format("constexpr double {} = __builtin_bit_cast(double, u64{{0x{:x}}});\n", name,
                       std::bit_cast<uint64_t>(value));
  } else {
    const char* type = is_same_v<T, int32_t>    ? "i32"
                       : is_same_v<T, uint32_t> ? "u32"
                       : is_same_v<T, int64_t>  ? "i64"
                                                : "u64";
    return fmt::format("constexpr {0} {1} = static_cast<{0}>(u64{{0x{2:x}}});\n", type, name,
                       static_cast<uint64_t>(value));
  }
}

/// The type by which the body sees a number. All numbers are passed as 8 bytes.
const char* type_of(const KernelNumber& number) {
  constexpr const char* kTypes[] = {"bool", "i32", "u32", "i64", "u64", "float", "double"};
  return kTypes[number.index()];
}

bool is_floating(const KernelNumber& number) {
  return std::holds_alternative<float>(number) || std::holds_alternative<double>(number);
}

uint64_t word_of(const KernelNumber& number) {
  return std::visit(
      [](auto value) -> uint64_t {
        if constexpr (std::is_floating_point_v<decltype(value)>) {
          return std::bit_cast<uint64_t>(static_cast<double>(value));
        } else {
          return static_cast<uint64_t>(value);
        }
      },
      number);
}

int dims_of(const KernelArgument& argument) { return std::max(argument.view().layout.rank(), 1); }

/// Splits a header into its #include lines and the rest, in which empty lines replace them.
void split(std::string_view header, std::string& includes, std::string& rest) {
  while (!header.empty()) {
    const size_t end = std::min(header.find('\n'), header.size());
    const std::string_view line = header.substr(0, end);
    const size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line.substr(first).starts_with("#include")) {
      includes += fmt::format("{}\n", line.substr(first));
      rest += '\n';
    } else {
      rest += fmt::format("{}\n", line);
    }
    header.remove_prefix(std::min(end + 1, header.size()));
  }
}

}  // namespace

std::string kernel_name(std::string_view op) {
  std::string name = "custom_";
  for (const char c : op) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  return name;
}

std::string source_of(const KernelLaunch& launch) {
  const KernelText& text = *launch.text;
  for (const std::string* part : {&text.body, &text.header}) {
    if (part->find('\0') == std::string::npos) continue;
    throw Error(launch.op, "a kernel's source has a zero byte");
  }
  if (launch.grid.threads[1] != 1 || launch.grid.threads[2] != 1) {
    throw Error(launch.op, "a kernel given as text takes threads along one axis",
                fmt::format("{}x{}x{}", launch.grid.threads[0], launch.grid.threads[1],
                            launch.grid.threads[2]),
                "need threads = {n, 1, 1}");
  }
  Names names(launch.op);
  std::string constants, fields, locals;
  for (const KernelConstant& constant : text.constants) {
    names.add(constant.name);
    constants += std::visit([&](const auto& value) { return declaration(constant.name, value); },
                            constant.value);
  }
  for (const KernelArgument& argument : launch.arguments) {
    const std::string& name = argument.name();
    names.add(name);
    if (!argument.is_view()) {
      const char* type = type_of(argument.number());
      fields += fmt::format("  {} {};\n", is_floating(argument.number()) ? "double" : "i64", name);
      locals +=
          fmt::format("  const {0} {1} = static_cast<{0}>(wick_arguments.{1});\n", type, name);
      continue;
    }
    for (const char* derived : {"_type", "_rank", "_elems", "_shape", "_strides"}) {
      names.add_derived(name + derived);
    }
    const int rank = argument.view().layout.rank();
    constants += fmt::format("using {0}_type = {1};\nconstexpr int {0}_rank = {2};\n", name,
                             type_of(argument.view().dtype), rank);
    fields +=
        fmt::format("  {0}{1}_type* {1};\n  i64 {1}_elems, {1}_shape[{2}], {1}_strides[{2}];\n",
                    argument.writes() ? "" : "const ", name, dims_of(argument));
    locals += fmt::format(
        "  {0}{1}_type* const {1} = wick_arguments.{1};\n"
        "  const i64 {1}_elems = wick_arguments.{1}_elems;\n"
        "  const auto& {1}_shape = wick_arguments.{1}_shape;\n"
        "  const auto& {1}_strides = wick_arguments.{1}_strides;\n"
        "  (void){1}, (void){1}_elems, (void){1}_shape, (void){1}_strides;\n",
        argument.writes() ? "" : "const ", name);
  }
  if (launch.arguments.empty()) fields = "  i64 unused;\n";
  std::string includes, header;
  split(text.header, includes, header);
  // The kernel is in a namespace of wick::gpu, so that names such as exp are those of wick/math and
  // not those of the compiler's library. Functions without an annotation are device code: NVRTC has
  // an option for that, clang a pragma.
  return fmt::format(
      "#include \"{0}\"\n{1}namespace wick::gpu::custom {{\n{2}struct Arguments {{\n{3}}};\n"
      "#if WICK_AMD\n#pragma clang force_cuda_host_device begin\n#endif\n"
      "#line 1 \"{4}.header\"\n{5}"
      "#line 1 \"{4}.kernel\"\n"
      "#if WICK_AMD\n#pragma clang force_cuda_host_device end\n#endif\n"
      "extern \"C\" WICK_GLOBAL void WICK_BOUNDS({6})\n"
      "{7}(WICK_ARGUMENTS const Arguments wick_arguments) {{\n{8}  {{\n"
      "#line 1 \"{4}.body\"\n{9}\n  }}\n}}\n}}  // namespace wick::gpu::custom\n",
      kHeader, includes, constants, fields, kernel_name(launch.op), header, launch.grid.threads[0],
      kernel_name(launch.op), locals, text.body);
}

std::string key_of(const KernelLaunch& launch) {
  std::string key = "text ";
  constexpr size_t kRest = 512;  // for names, dtypes, ranks and constants of most launches
  key.reserve(launch.text->body.size() + launch.text->header.size() + kRest);
  const auto add_bytes = [&key](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  // The length in front of each text keeps different lists from giving the same bytes.
  const auto add = [&](std::string_view text) {
    add_bytes(text.size());
    key += text;
  };
  add(launch.op);
  add(launch.text->body);
  add(launch.text->header);
  add_bytes(launch.grid.threads);
  add_bytes(launch.text->constants.size());
  for (const KernelConstant& constant : launch.text->constants) {
    add(constant.name);
    add_bytes(constant.value.index());
    std::visit(add_bytes, constant.value);
  }
  for (const KernelArgument& argument : launch.arguments) {
    add(argument.name());
    add_bytes(argument.is_view());
    if (argument.is_view()) {
      add_bytes(argument.writes());
      add_bytes(argument.view().dtype);
      add_bytes(argument.view().layout.rank());
    } else {
      add_bytes(argument.number().index());
    }
  }
  return key;
}

std::vector<uint64_t> argument_words(const KernelLaunch& launch) {
  std::vector<uint64_t> words;
  for (const KernelArgument& argument : launch.arguments) {
    if (!argument.is_view()) {
      words.push_back(word_of(argument.number()));
      continue;
    }
    const Layout& layout = argument.view().layout;
    words.push_back(reinterpret_cast<uintptr_t>(argument.address()));
    words.push_back(static_cast<uint64_t>(layout.elems()));
    const int rank = layout.rank(), dims = dims_of(argument);
    for (int d = 0; d < dims; ++d) {
      words.push_back(static_cast<uint64_t>(d < rank ? layout.shape()[d] : 1));
    }
    for (int d = 0; d < dims; ++d) {
      words.push_back(static_cast<uint64_t>(d < rank ? layout.stride(d) : 0));
    }
  }
  if (words.empty()) words.push_back(0);
  return words;
}

std::vector<std::byte> packed_arguments(std::span<const KernelArgument> arguments) {
  std::vector<std::byte> bytes;
  const auto add = [&](const void* data, size_t size) {
    bytes.resize((bytes.size() + size - 1) / size * size);
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  };
  for (const KernelArgument& argument : arguments) {
    if (argument.is_view()) {
      const void* const address = argument.address();
      add(&address, sizeof address);
    } else {
      std::visit([&](const auto& value) { add(&value, sizeof value); }, argument.number());
    }
  }
  return bytes;
}

}  // namespace wick::gpu
