#include "wick/io/json.h"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

#include "wick/base/error.h"
#include "wick/base/keyed_hash.h"
#include "wick/base/printable.h"
#include "wick/io/mapped_file.h"

namespace wick::io {
namespace {

constexpr int kDeepest = 64;

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::unordered_set<std::string, KeyedHash>> keys;  // of the objects around a value
  const auto fail = [&](std::string_view what, std::string_view where, std::string_view rule = {}) {
    throw Error(printable(name), what, where, rule);
  };
  const auto check = [&](int depth, Event event, nlohmann::json& value) {
    switch (event) {
      case Event::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Event::array_start:
        if (depth >= kDeepest) fail("nested too deeply", {}, fmt::format("at most {}", kDeepest));
        break;
      case Event::object_end:
        keys.pop_back();
        break;
      case Event::key: {
        const auto& key = value.get_ref<const std::string&>();
        if (!keys.back().insert(key).second) fail("key appears twice", printable(key));
        break;
      }
      case Event::array_end:
      case Event::value:
        break;
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::parse_error& e) {
    fail("not JSON", fmt::format("at byte {}", e.byte));
  } catch (const nlohmann::json::exception&) {
    fail("not JSON", "a number is out of range");
  }
  return {};
}

std::string read_small_file(const std::string& path, size_t most) {
  const auto file = MappedFile::open("model", path);
  if (file->size() > most) {
    throw Error("model", "file is too large",
                fmt::format("{}, {} bytes", printable(path), file->size()),
                fmt::format("at most {}", most));
  }
  std::string text(reinterpret_cast<const char*>(file->data()), file->size());
  file->require_unchanged("model");
  return text;
}

nlohmann::json read_json(const std::string& path, size_t most) {
  return parse_json(read_small_file(path, most), path);
}

}  // namespace wick::io
