// Models split into several GGUF files: each has split.no (counted from 0), split.count and the
// number of tensors in all parts; the first has the metadata.
#include "wick/io/split_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/gguf.h"

namespace wick::io {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-", kSuffix = ".gguf";

std::string name_of(std::string_view prefix, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}{}{:05}{}", prefix, number, kOf, count, kSuffix);
}

/// A part's place in the model; its number is counted from 1.
struct Place {
  std::string prefix;  // the path before the number
  uint64_t number = 0, count = 0;
};

std::optional<uint64_t> number_of(std::string_view digits) {
  uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// Parses PREFIX-00001-of-00003.gguf.
std::optional<Place> place_of(std::string_view path) {
  constexpr size_t kEnding = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (path.size() < kEnding) return std::nullopt;
  const std::string_view prefix = path.substr(0, path.size() - kEnding);
  const std::string_view ending = path.substr(prefix.size());
  const std::optional<uint64_t> number = number_of(ending.substr(1, kDigits));
  const std::optional<uint64_t> count = number_of(ending.substr(1 + kDigits + kOf.size(), kDigits));
  if (!number || !count || path != name_of(prefix, *number, *count)) return std::nullopt;
  return Place{std::string(prefix), *number, *count};
}

std::string part_text(const ModelFile& file) {
  const uint64_t count = file.get_u64("split.count", 1), part = file.get_u64("split.no", 0);
  return part < count ? fmt::format("part {} of {}", part + 1, count)
                      : fmt::format("split.no = {} of {} parts", part, count);
}

[[noreturn]] void foreign(const Gguf& part, std::string_view what) {
  throw Error(printable(part.path()), "part belongs to another model", what);
}

class SplitFile final : public ModelFile {
 public:
  SplitFile(std::string path, std::vector<std::shared_ptr<const Gguf>> parts)
      : ModelFile("gguf"), parts_(std::move(parts)) {
    path_ = std::move(path);
    for (const GgufEntry& entry : parts_.front()->metadata()) {
      if (!entry.key.starts_with("split.")) add(entry);
    }
    for (size_t i = 0; i < parts_.size(); ++i) add_tensors(i);
    for (const auto& part : parts_) check_part(*part);
  }

  std::string format() const override {
    return fmt::format("{} in {} files", parts_.front()->format(), parts_.size());
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> paths;
    for (const auto& part : parts_) paths.push_back(part->path());
    return paths;
  }
  uint64_t file_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& part : parts_) bytes += part->file_bytes();
    return bytes;
  }
  void require_unchanged(std::string_view op) const override {
    for (const auto& part : parts_) part->require_unchanged(op);
  }
  Tensor tensor(const GgufTensor& tensor) const override { return part_of(tensor).tensor(tensor); }
  std::shared_ptr<const Bytes> mapped(const GgufTensor& tensor, int64_t) const override {
    return part_of(tensor).bytes();
  }

 private:
  void add_tensors(size_t number) {
    for (const GgufTensor& tensor : parts_[number]->tensors()) {
      if (!add(tensor)) {
        throw Error(printable(path_), "tensor appears twice", printable(tensor.name),
                    fmt::format("in {} and {}", printable(part_of(tensor).path()),
                                printable(parts_[number]->path())));
      }
      part_of_.push_back(number);
    }
  }

  void check_part(const Gguf& part) const {
    constexpr const char* kTensors = "split.tensors.count";
    if (!part.contains(kTensors)) return;
    const uint64_t count = part.get_u64(kTensors);
    if (count != tensors().size()) {
      foreign(part, fmt::format("{} = {}, but the parts have {} tensors", kTensors, count,
                                tensors().size()));
    }
  }

  /// The part of a tensor, which is found by its name, so `tensor` may be a copy.
  const Gguf& part_of(const GgufTensor& tensor) const {
    const auto at = static_cast<size_t>(&require_tensor(tensor.name) - tensors().data());
    return *parts_[part_of_[at]];
  }

  std::vector<std::shared_ptr<const Gguf>> parts_;
  std::vector<size_t> part_of_;  // of each tensor
};

/// Opens the parts of a split model. `named` is the one that the caller named.
std::shared_ptr<const ModelFile> open_parts(const std::shared_ptr<const Gguf>& named,
                                            const Place& place) {
  std::string missing;
  for (uint64_t number = 1; number <= place.count; ++number) {
    const std::filesystem::path path = name_of(place.prefix, number, place.count);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    constexpr size_t kMostListed = 200;
    if (missing.size() > kMostListed) {
      missing += ", …";
      break;
    }
    missing += (missing.empty() ? "" : ", ") + printable(path.filename().string());
  }
  if (!missing.empty()) {
    throw Error(ErrorKind::file, printable(named->path()), "parts of the split model are missing",
                missing, "all parts must lie in one folder");
  }
  const std::string architecture = "general.architecture";
  std::vector<std::shared_ptr<const Gguf>> parts;
  for (uint64_t number = 1; number <= place.count; ++number) {
    const std::string path = name_of(place.prefix, number, place.count);
    parts.push_back(number == place.number ? named : Gguf::open(path));
    const Gguf& part = *parts.back();
    if (part.get_u64("split.count", 1) != place.count ||
        part.get_u64("split.no", 0) != number - 1) {
      throw Error(printable(path), "part has another number than its name", part_text(part));
    }
    if (part.contains(architecture) && parts.front()->contains(architecture) &&
        part.get_string(architecture) != parts.front()->get_string(architecture)) {
      foreign(part, fmt::format("{} is '{}' instead of '{}'", architecture,
                                printable(part.get_string(architecture), 60),
                                printable(parts.front()->get_string(architecture), 60)));
    }
  }
  return std::make_shared<SplitFile>(named->path(), std::move(parts));
}

}  // namespace

bool is_part_name(const std::string& path) { return place_of(path).has_value(); }

std::shared_ptr<const ModelFile> open_gguf(const std::string& path) {
  std::shared_ptr<const Gguf> file = Gguf::open(path);
  const std::optional<Place> place = place_of(path);
  if (file->get_u64("split.count", 1) <= 1) return file;
  if (!place || place->number < 1 || place->number > place->count) require_whole(*file);
  return open_parts(file, *place);
}

std::vector<std::string> paths_of_model(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      const std::string ending = at->path().extension().string();
      for (const char* of_model : {".json", ".jinja", ".txt", ".model", ".safetensors"}) {
        if (ending == of_model) paths.push_back(at->path().string());
      }
    }
    return paths;
  }
  const std::optional<Place> place = place_of(path);
  if (!place || place->number < 1 || place->number > place->count) return {path};
  for (uint64_t i = 1; i <= place->count; ++i) {
    paths.push_back(name_of(place->prefix, i, place->count));
  }
  return paths;
}

void require_whole(const ModelFile& file) {
  if (file.get_u64("split.count", 1) <= 1) return;
  throw Error(printable(file.path()), "file is one part of a split model", part_text(file),
              "the parts' names must end in -00001-of-00002.gguf and so on");
}

}  // namespace wick::io
