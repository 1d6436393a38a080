#include "wick/io/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/gguf.h"
#include "wick/io/gguf_writer.h"
#include "wick/io/mapped_file.h"

namespace wick::io {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

[[noreturn]] void invalid(const std::string& path, std::string_view what,
                          const std::string& where = {}, std::string_view rule = {}) {
  throw Error(path.empty() ? "importance" : printable(path), what, where, rule);
}

/// Errors: the counts don't divide the sums into matrices; a value is negative or not finite.
/// `path`: the file, or empty.
void check(const std::string& path, const std::string& name, const Importance::Entry& entry) {
  if (entry.sums.empty() || entry.counts.empty() || entry.sums.size() % entry.counts.size() != 0) {
    invalid(path, "sums and counts don't fit together",
            fmt::format("{}: {} sums, {} counts", printable(name), entry.sums.size(),
                        entry.counts.size()));
  }
  for (const std::vector<float>* values : {&entry.sums, &entry.counts}) {
    for (const float v : *values) {
      if (std::isfinite(v) && v >= 0.0f) continue;
      invalid(path, "sum or count isn't a number of at least 0",
              fmt::format("{}: {}", printable(name), v));
    }
  }
}

std::vector<float> floats_of(const Gguf& file, const GgufTensor& tensor) {
  if (tensor.dtype != DType::f32) {
    invalid(file.path(), "sums and counts must be f32",
            fmt::format("{} {}", printable(tensor.name), tensor.str()));
  }
  const std::span<const std::byte> bytes = file.data(tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Importance read_gguf(const std::string& path) {
  const auto file = Gguf::open(path);
  Importance result;
  for (const GgufTensor& tensor : file->tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    const GgufTensor* const counts = file->find_tensor(name + std::string(kCounts));
    if (counts == nullptr) invalid(path, "sums without counts", printable(name));
    Importance::Entry entry{floats_of(*file, tensor), floats_of(*file, *counts)};
    check(path, name, entry);
    result.entries.emplace(name, std::move(entry));
  }
  if (result.entries.empty()) {
    invalid(path, "not an importance matrix", "", "need tensors NAME.in_sum2 and NAME.counts");
  }
  if (file->contains("imatrix.datasets")) {
    for (const std::string_view text : file->get_strings("imatrix.datasets")) {
      result.datasets.emplace_back(text);
    }
  }
  result.chunk_count = file->get_u32("imatrix.chunk_count", 0);
  result.chunk_size = file->get_u32("imatrix.chunk_size", 0);
  file->require_unchanged("imatrix");
  return result;
}

/// Reads llama.cpp's older format: a count of entries; for each the name, the number of calls and
/// the means of the squares times that number; then the number of chunks and the dataset, which may
/// be missing. All numbers are little-endian i32 or f32; texts follow their length.
class LegacyReader {
 public:
  LegacyReader(const std::string& path, std::span<const std::byte> bytes)
      : path_(path), bytes_(bytes) {}

  Importance read() {
    Importance result;
    const size_t weights = count("entries");
    for (size_t i = 0; i < weights; ++i) {
      const std::string name = text();
      const auto calls = static_cast<float>(number());
      Importance::Entry entry;
      entry.sums.resize(count("values"));
      const std::span<const std::byte> values = take(entry.sums.size() * sizeof(float));
      std::memcpy(entry.sums.data(), values.data(), values.size());
      entry.counts = {calls};
      check(path_, name, entry);
      result.entries.insert_or_assign(name, std::move(entry));
    }
    if (!bytes_.empty()) {
      result.chunk_count = static_cast<uint32_t>(std::max(number(), 0));
      if (!bytes_.empty()) result.datasets.push_back(text());
    }
    return result;
  }

 private:
  std::span<const std::byte> take(size_t size) {
    if (size > bytes_.size()) cut();
    const auto part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  int32_t number() {
    int32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  /// A positive count of things of at least 4 bytes each.
  size_t count(const char* of) {
    const int32_t value = number();
    if (value < 1 || static_cast<size_t>(value) > bytes_.size() / 4) {
      invalid(path_, "not an importance matrix",
              fmt::format("it is neither a GGUF file nor in llama.cpp's older format, in which it "
                          "has {} {}",
                          value, of));
    }
    return static_cast<size_t>(value);
  }
  std::string text() {
    const int32_t size = number();
    if (size < 0) cut();
    const auto part = take(static_cast<size_t>(size));
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  [[noreturn]] void cut() const { invalid(path_, "not an importance matrix", "the file is cut"); }

  const std::string& path_;
  std::span<const std::byte> bytes_;
};

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

}  // namespace

Importance Importance::load(const std::string& path) {
  const auto bytes = MappedFile::open("imatrix", path);
  Importance result =
      is_gguf(bytes->span()) ? read_gguf(path) : LegacyReader(path, bytes->span()).read();
  bytes->require_unchanged("imatrix");
  result.path = path;
  return result;
}

void Importance::save(const std::string& to) const {
  for (const auto& [name, entry] : entries) check(to, name, entry);
  GgufWriter writer(to);
  writer.set_string("general.type", "imatrix");
  const std::vector<std::string_view> texts(datasets.begin(), datasets.end());
  writer.set_strings("imatrix.datasets", texts);
  writer.set_u32("imatrix.chunk_count", chunk_count);
  writer.set_u32("imatrix.chunk_size", chunk_size);
  for (const auto& [name, entry] : entries) {
    const auto matrices = static_cast<int64_t>(entry.counts.size());
    const int64_t k = static_cast<int64_t>(entry.sums.size()) / matrices;
    writer.add_tensor(name + std::string(kSums), DType::f32, {matrices, k});
    writer.add_tensor(name + std::string(kCounts), DType::f32, {matrices, 1});
  }
  for (const auto& [name, entry] : entries) {
    writer.write(name + std::string(kSums), std::as_bytes(std::span(entry.sums)));
    writer.write(name + std::string(kCounts), std::as_bytes(std::span(entry.counts)));
  }
  writer.finish();
}

std::vector<float> Importance::mean_squares(const GgufTensor& weight) const {
  const auto found = entries.find(weight.name);
  if (found == entries.end()) return {};
  const Entry& entry = found->second;
  check(path, found->first, entry);
  const auto k = static_cast<size_t>(weight.shape.back());
  const size_t matrices = k > 0 ? entry.sums.size() / k : 0;
  if (matrices == 0 || matrices % entry.counts.size() != 0) return {};
  std::vector<float> means(entry.sums.size());
  for (size_t i = 0; i < means.size(); ++i) {
    const float count = entry.counts[i / k * entry.counts.size() / matrices];
    means[i] = count > 0.0f ? entry.sums[i] / count : 0.0f;
  }
  return means;
}

void Importance::require_fits(const ModelFile& model) const {
  size_t found = 0;
  for (const auto& [name, entry] : entries) {
    check(path, name, entry);
    const GgufTensor* const weight = model.find_tensor(name);
    if (weight == nullptr) continue;
    ++found;
    const auto k = weight->shape.rank() > 0 ? static_cast<size_t>(weight->shape.back()) : 0;
    const size_t matrices =
        weight->shape.rank() > 2 ? static_cast<size_t>(weight->shape[0]) : size_t{1};
    const size_t sums = entry.sums.size(), counts = entry.counts.size();
    const bool fits = k > 0 && (sums == k || sums == k * matrices) && sums / k % counts == 0;
    if (fits) continue;
    invalid(path, "importance matrix of another model",
            fmt::format("{}: {} sums of {} matrices for {}", printable(name), sums, counts,
                        weight->str()));
  }
  if (found == 0) {
    invalid(path, "importance matrix of another model", fmt::format("{} entries", entries.size()),
            "none has the name of a weight in " + printable(model.path()));
  }
}

}  // namespace wick::io
