#include "fixtures.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "wick/base/utf8.h"

namespace wick::text {
namespace {

nlohmann::json read_json(const std::string& name) {
  std::ifstream file(std::string(WICK_TEST_DATA "/") + name);
  return nlohmann::json::parse(file);
}

Fixture load() {
  Fixture f;
  const nlohmann::json data = read_json("tokenizer.json");
  data.at("texts").get_to(f.texts);
  data.at("tokens").get_to(f.tokens);
  data.at("merges").get_to(f.merges);
  data.at("types").get_to(f.types);
  f.ids.resize(std::size(kPreNames));
  f.words.resize(std::size(kPreNames));
  for (size_t i = 0; i < std::size(kPreNames); ++i) {
    data.at("ids").at(kPreNames[i]).get_to(f.ids[i]);
    data.at("words").at(kPreNames[i]).get_to(f.words[i]);
  }
  read_json("smollm2.json").at("ids").get_to(f.smollm2_ids);
  return f;
}

// A minimal GGUF reader for the vocabulary of a valid file.
class Metadata {
 public:
  explicit Metadata(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  T read() {
    T value;
    if (pos_ + sizeof(T) > bytes_.size()) throw std::runtime_error("metadata cut short");
    std::memcpy(&value, bytes_.data() + pos_, sizeof(T));
    pos_ += sizeof(T);
    return value;
  }
  std::string_view read_string() {
    const auto length = read<uint64_t>();
    if (length > bytes_.size() - pos_) throw std::runtime_error("metadata cut short");
    const std::string_view text(bytes_.data() + pos_, length);
    pos_ += length;
    return text;
  }
  void skip(uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      read_string();
    } else if (type == 9) {
      const auto element = read<uint32_t>();
      const auto count = read<uint64_t>();
      for (uint64_t i = 0; i < count; ++i) skip(element);
    } else {
      pos_ += kSizes[type];
    }
  }

 private:
  const std::string& bytes_;
  size_t pos_ = 0;
};

void read_vocabulary(const std::string& bytes, TokenizerSpec& spec) {
  Metadata in(bytes);
  in.read<uint32_t>();  // magic
  in.read<uint32_t>();  // version
  in.read<uint64_t>();  // tensors
  const auto count = in.read<uint64_t>();
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = in.read_string();
    const auto type = in.read<uint32_t>();
    const auto strings = [&](std::vector<std::string_view>& out) {
      in.read<uint32_t>();
      out.resize(in.read<uint64_t>());
      for (auto& s : out) s = in.read_string();
    };
    if (key == "tokenizer.ggml.model") {
      spec.model = in.read_string();
    } else if (key == "tokenizer.ggml.pre") {
      spec.pre = in.read_string();
    } else if (key == "tokenizer.ggml.tokens") {
      strings(spec.tokens);
    } else if (key == "tokenizer.ggml.merges") {
      strings(spec.merges);
    } else if (key == "tokenizer.ggml.token_type") {
      in.read<uint32_t>();
      spec.token_types.resize(in.read<uint64_t>());
      for (auto& t : spec.token_types) t = in.read<int32_t>();
    } else if (key == "tokenizer.ggml.bos_token_id") {
      spec.bos = in.read<int32_t>();
    } else if (key == "tokenizer.ggml.eos_token_id") {
      spec.eos = in.read<int32_t>();
    } else {
      in.skip(type);
    }
  }
}

}  // namespace

const Fixture& fixture() {
  static const Fixture f = load();
  return f;
}

const PieceFixture& piece_fixture() {
  static const PieceFixture loaded = [] {
    PieceFixture f;
    const nlohmann::json data = read_json("pieces.json");
    data.at("texts").get_to(f.texts);
    data.at("tokens").get_to(f.tokens);
    data.at("types").get_to(f.types);
    data.at("scores").get_to(f.scores);
    data.at("ids").get_to(f.ids);
    data.at("prefixed").get_to(f.prefixed);
    data.at("unknown").get_to(f.unknown);
    return f;
  }();
  return loaded;
}

TokenizerSpec small_spec(std::string_view pre) {
  const Fixture& f = fixture();
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = pre;
  spec.tokens.assign(f.tokens.begin(), f.tokens.end());
  spec.token_types = f.types;
  spec.merges.assign(f.merges.begin(), f.merges.end());
  spec.bos = 1;
  spec.eos = 2;
  return spec;
}

std::optional<ModelVocabulary> load_smollm2() {
  namespace fs = std::filesystem;
  fs::path path;
  if (const char* named = std::getenv("WICK_TEST_MODEL")) {
    path = named;
  } else {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    path = cache != nullptr ? fs::path(cache) : fs::path(home != nullptr ? home : "") / ".cache";
    path /= "wick/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  ModelVocabulary vocabulary;
  vocabulary.bytes.resize(8u << 20);  // the metadata is in the first 8 MiB
  file.read(vocabulary.bytes.data(), static_cast<std::streamsize>(vocabulary.bytes.size()));
  vocabulary.bytes.resize(static_cast<size_t>(file.gcount()));
  std::optional<ModelVocabulary> out(std::move(vocabulary));
  read_vocabulary(out->bytes, out->spec);
  return out;
}

std::string random_utf8(uint64_t seed, size_t count) {
  std::string out;
  const auto next = [&](uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((seed >> 33) % below);
  };
  while (count > 0) {
    constexpr uint32_t kEnds[] = {0x80, 0x80, 0x800, 0x10000, 0x110000};
    const uint32_t point = next(kEnds[next(5)]);
    if (!is_character(point)) continue;
    append_utf8(out, point);
    --count;
  }
  return out;
}

}  // namespace wick::text
