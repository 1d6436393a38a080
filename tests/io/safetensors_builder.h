#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wick::io::test {

/// Builds safetensors files, valid or invalid, without the library.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& tensor(const std::string& name, const std::string& type,
                             const std::vector<int64_t>& shape, std::string_view data) {
    const size_t begin = data_.size();
    data_ += data;
    std::string dims;
    for (const int64_t size : shape) dims += (dims.empty() ? "" : ",") + std::to_string(size);
    return entry("\"" + name + R"(":{"dtype":")" + type + R"(","shape":[)" + dims +
                 R"(],"data_offsets":[)" + std::to_string(begin) + "," +
                 std::to_string(data_.size()) + "]}");
  }
  /// Adds a member of the header.
  SafetensorsBuilder& entry(const std::string& json) {
    header_ += (header_.empty() ? "" : ",") + json;
    return *this;
  }
  size_t bytes() const { return data_.size(); }

  std::string build() const {
    std::string header = "{" + header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return file(header, data_);
  }
  /// A file with any header.
  static std::string file(std::string_view header, std::string_view data) {
    const uint64_t length = header.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof(length));
    return out += std::string(header) + std::string(data);
  }

 private:
  std::string header_, data_;
};

}  // namespace wick::io::test
