// Ids of the tokens that a folder's files name by their text.
#include "wick/models/hf/named_tokens.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace wick::models::hf {
namespace {

using Json = nlohmann::json;

/// Finds ids while the text is parsed. No document is built, because that of a large vocabulary
/// takes long, and the tokenizer builds one later. The search ends where all tokens are found among
/// the added ones, which are at the beginning of usual files.
class TokenSearch final : public nlohmann::json_sax<Json> {
 public:
  explicit TokenSearch(std::span<const std::string> tokens) : found_(tokens.size()) {
    for (size_t i = 0; i < tokens.size(); ++i) found_[i].token = tokens[i];
  }

  std::vector<std::optional<int64_t>> ids() const {
    std::vector<std::optional<int64_t>> all;
    for (const Found& one : found_) all.push_back(one.added ? one.added : one.base);
    return all;
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool number_integer(int64_t) override { return true; }  // negative, so it isn't an id
  bool number_unsigned(uint64_t value) override {
    if (depth_ != kEntry || value > std::numeric_limits<int32_t>::max()) return true;
    const auto id = static_cast<int64_t>(value);
    if (in_added_tokens() && keys_[2] == "id") added_id_ = id;
    if (in_vocabulary()) set(keys_[2], id, &Found::base);
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == kEntry && in_added_tokens() && keys_[2] == "content") added_text_ = value;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ <= kEntry) keys_[depth_ - 1] = name;
    return true;
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool end_object() override {
    if (depth_ == kEntry && in_added_tokens() && added_id_) {
      set(added_text_, *added_id_, &Found::added);
      if (all_added()) return false;
    }
    return close();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Found {
    std::string token;
    std::optional<int64_t> added, base;
  };
  static constexpr size_t kEntry = 3;  // depth of an added token's members, and of model.vocab's

  bool in_added_tokens() const { return keys_[0] == "added_tokens"; }
  bool in_vocabulary() const { return keys_[0] == "model" && keys_[1] == "vocab"; }
  void set(const std::string& token, int64_t id, std::optional<int64_t> Found::*where) {
    for (Found& one : found_) {
      if (one.token == token && !(one.*where)) one.*where = id;
    }
  }
  bool all_added() const {
    return std::all_of(found_.begin(), found_.end(),
                       [](const Found& one) { return one.added.has_value(); });
  }
  bool open() {
    ++depth_;
    if (depth_ <= kEntry) keys_[depth_ - 1].clear();
    if (depth_ == kEntry) added_id_.reset();
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::vector<Found> found_;
  size_t depth_ = 0;
  std::string keys_[kEntry];  // of the members that the parser is in
  std::string added_text_;
  std::optional<int64_t> added_id_;
};

}  // namespace

std::optional<std::string> token_text(const Config& config, const char* name) {
  if (!config.has({name})) return std::nullopt;
  const Json& value = config.json().at(name);
  if (!value.is_object()) return config.text({name});
  return config.object(name).text({"content"});
}

std::vector<std::optional<int64_t>> token_ids(std::string_view tokenizer_json,
                                              std::span<const std::string> tokens) {
  TokenSearch search(tokens);
  if (!tokens.empty()) Json::sax_parse(tokenizer_json, &search);
  return search.ids();
}

}  // namespace wick::models::hf
