#include "wick/models/hf/shards.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/json.h"

namespace wick::models::hf {
namespace {

constexpr size_t kMostIndexBytes = size_t{32} << 20;
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

[[noreturn]] void no_weights(const std::string& folder) {
  const bool pickled =
      exists(folder + "/pytorch_model.bin") || exists(folder + "/pytorch_model.bin.index.json");
  throw Error(ErrorKind::file, printable(folder), "folder has no weights",
              fmt::format("need {} or {}", kSingle, kIndex),
              pickled ? "pytorch_model.bin isn't read" : "");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> parse_index(std::string_view text,
                                                             const std::string& path) {
  const nlohmann::json index = io::parse_json(text, path);
  const auto fail = [&](std::string_view what, std::string_view where) {
    throw Error(printable(path), what, where);
  };
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    fail("index lacks the object 'weight_map'", {});
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) fail("name of a file isn't a string", printable(tensor));
    const auto& name = file.get_ref<const std::string&>();
    // A path could lead out of the folder.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      fail("not the name of a file in the folder",
           fmt::format("'{}' of {}", printable(name), printable(tensor)));
    }
    names.emplace_back(tensor, name);
  }
  return names;
}

Shards Shards::open(const std::string& folder) {
  Shards shards;
  if (const std::string path = folder + "/" + kSingle; exists(path)) {
    shards.files.push_back(io::Safetensors::open(path));
    const io::Safetensors& file = *shards.files.back();
    for (const io::SafeTensor& tensor : file.tensors()) shards.tensors.push_back({&file, &tensor});
    return shards;
  }
  const std::string path = folder + "/" + kIndex;
  if (!exists(path)) no_weights(folder);
  const auto names = parse_index(io::read_small_file(path, kMostIndexBytes), path);
  std::map<std::string, const io::Safetensors*> files;
  for (const auto& [tensor, name] : names) files.emplace(name, nullptr);
  std::string missing;
  for (const auto& [name, file] : files) {
    constexpr size_t kMostListed = 200;
    if (exists(folder + "/" + name)) continue;
    if (missing.size() > kMostListed) {
      missing += ", …";
      break;
    }
    missing += (missing.empty() ? "" : ", ") + printable(name);
  }
  if (!missing.empty()) {
    throw Error(ErrorKind::file, printable(path), "files of the index are missing", missing);
  }
  for (auto& [name, file] : files) {
    shards.files.push_back(io::Safetensors::open(folder + "/" + name));
    file = shards.files.back().get();
  }
  for (const auto& [tensor, name] : names) {
    const io::Safetensors& file = *files.at(name);
    const io::SafeTensor* found = file.find(tensor);
    if (found == nullptr) {
      throw Error(printable(file.path()), "file lacks a tensor of the index", printable(tensor),
                  "the files may belong to different models");
    }
    shards.tensors.push_back({&file, found});
  }
  return shards;
}

}  // namespace wick::models::hf
