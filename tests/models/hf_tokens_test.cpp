// Special tokens that the files of a Hugging Face directory name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/models/hf_directory.h"
#include "tests/models/tiny_model.h"

namespace wick::models {
namespace {

using test::TinyModel;
using testing::HasSubstr;

constexpr const char* kTokenizer = R"({"added_tokens": [
    {"id": 20, "content": "<a>"}, {"content": "</a>", "id": 21}, {"id": 30, "content": "both"}],
  "post_processor": {"special_tokens": {"<a>": {"id": 99, "content": "</a>"}}},
  "model": {"vocab": {"both": 5, "base": 6, "\u00e9": 7, "<a>": 8}, "merges": [["a", "b"]]},
  "content": "</a>", "id": 77})";

class HfTokens : public HfDirectory {
 protected:
  void SetUp() override {
    TinyModel::read("qwen3").write_directory(path(), 1);
    write("tokenizer.json", kTokenizer);
    edit_config([](json& config) {
      config["bos_token_id"] = 1;
      config["eos_token_id"] = 2;
    });
  }
  std::optional<uint32_t> id(const char* name) const {
    const auto file = open_model(path());
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    return file->contains(key) ? std::optional(file->get_u32(key)) : std::nullopt;
  }
  std::vector<uint32_t> ends() const {
    const auto file = open_model(path());
    constexpr const char* kAll = "tokenizer.ggml.eos_token_ids";
    return file->contains(kAll) ? file->get_u32s(kAll) : std::vector<uint32_t>{};
  }
};

TEST_F(HfTokens, AreThoseOfTheTokenizersConfiguration) {
  EXPECT_EQ(id("bos"), 1u);
  EXPECT_EQ(id("padding"), 0u);
  EXPECT_EQ(id("unknown"), std::nullopt);
  write("tokenizer_config.json", R"({"bos_token": "<a>", "eos_token": {"content": "</a>"},
      "pad_token": "base", "unk_token": "\u00e9"})");
  EXPECT_EQ(id("bos"), 20u);
  EXPECT_EQ(id("eos"), 21u);
  EXPECT_EQ(id("padding"), 6u);
  EXPECT_EQ(id("unknown"), 7u);
  EXPECT_EQ(ends(), (std::vector<uint32_t>{21, 2}));
  write("generation_config.json", R"({"eos_token_id": [3, 21, 4]})");
  EXPECT_EQ(id("eos"), 21u);
  EXPECT_EQ(ends(), (std::vector<uint32_t>{21, 3, 4}));
}

TEST_F(HfTokens, AddedTokensComeFirst) {
  write("tokenizer_config.json", R"({"bos_token": "both"})");
  EXPECT_EQ(id("bos"), 30u);
}

TEST_F(HfTokens, MayBeInTheMapOfSpecialTokens) {
  write("special_tokens_map.json", R"({"bos_token": {"content": "</a>"}, "pad_token": "<a>"})");
  write("tokenizer_config.json", R"({"bos_token": null, "pad_token": "base"})");
  EXPECT_EQ(id("bos"), 21u);
  EXPECT_EQ(id("padding"), 6u);  // the configuration comes first
  EXPECT_EQ(id("eos"), 2u);      // of config.json
  EXPECT_EQ(ends(), std::vector<uint32_t>{});
}

TEST_F(HfTokens, FallBackToIds) {
  write("tokenizer_config.json", R"({"bos_token": "absent", "eos_token": null})");
  EXPECT_EQ(id("bos"), 1u);
  EXPECT_EQ(id("eos"), 2u);
  write("tokenizer.json", "{\"added_tokens\": [");  // reported by the tokenizer
  EXPECT_EQ(id("bos"), 1u);
  write("tokenizer_config.json", R"({"bos_token": 3})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: value out of range: bos_token = 3: need "
                                 "a string"));
}

}  // namespace
}  // namespace wick::models
