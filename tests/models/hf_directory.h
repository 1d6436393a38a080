#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/expect_error.h"
#include "tests/io/safetensors_builder.h"
#include "tests/io/temp_folder.h"
#include "wick/models/causal_lm.h"
#include "wick/models/open_model.h"

namespace wick::models {

using nlohmann::json;

/// A Hugging Face directory that a test writes and changes.
class HfDirectory : public testing::Test {
 protected:
  std::string path() const { return folder_.path("model"); }
  void edit_config(const std::function<void(json&)>& edit) const {
    json config;
    std::ifstream(path() + "/config.json") >> config;
    edit(config);
    std::ofstream(path() + "/config.json") << config;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path() + "/" + name, std::ios::binary) << text;
  }
  std::string error() const {
    return wick::test::error_of([&] { CausalLm::load(*open_model(path()), {}); });
  }

  io::test::TempFolder folder_;
};

/// Renames the tensors of model.safetensors, whose header has spaces to spare, and adds others.
inline void rename_tensors(const std::string& path, const std::string& prefix,
                           const std::string& more) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  json header = json::parse(bytes.substr(8, length)), renamed = json::object();
  for (const auto& [name, entry] : header.items()) renamed[prefix + name] = entry;
  if (!more.empty()) renamed[more] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  const std::string text = renamed.dump();
  std::ofstream(path, std::ios::binary)
      << io::test::SafetensorsBuilder::file(text, bytes.substr(8 + length));
}

}  // namespace wick::models
