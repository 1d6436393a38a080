#include "wick/models/find_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".gguf";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// What a message says of the models in a folder.
std::string list_of(const fs::path& folder) {
  constexpr size_t kMostShown = 10, kMostRead = 10000, kMostBytes = 80;
  std::error_code error;
  std::vector<std::string> names;
  size_t read = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && read < kMostRead;
       at.increment(error), ++read) {
    const fs::path& path = at->path();
    if (path.extension() == kEnding || is_there(path / "config.json")) {
      names.push_back(path.filename().string());
    }
  }
  if (names.empty()) return "which has no models";
  std::sort(names.begin(), names.end());
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", printable(names[i], kMostBytes));
  }
  if (names.size() > kMostShown) list += fmt::format(" and {} more", names.size() - kMostShown);
  return fmt::format("which has {}", list);
}

}  // namespace

std::string find_model(const std::string& name) {
  if (name.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error("model", "the name is empty", fmt::format("'{}'", printable(name)));
  }
  const bool bare = !name.empty() && name.find('/') == std::string::npos;
  if (!bare || is_there(name)) return name;
  const std::string cache = user_cache_folder();
  const fs::path folder = fs::path(cache) / "wick" / "models";
  std::string place =
      "the user's cache, which isn't known: neither XDG_CACHE_HOME nor HOME is an absolute path";
  if (!cache.empty()) {
    for (const fs::path& path : {folder / name, folder / (name + std::string(kEnding))}) {
      if (is_there(path)) return path.string();
    }
    place = fmt::format("{}, {}", printable(folder.string()), list_of(folder));
  }
  throw Error(ErrorKind::file, "model", "No such file or folder",
              fmt::format("'{}'", printable(name)),
              fmt::format("looked in the working directory and in {}", place));
}

}  // namespace wick::models
