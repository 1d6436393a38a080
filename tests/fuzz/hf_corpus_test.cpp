// Replays the corpus of hf_fuzz, and changes of it, in every build. With WICK_WRITE_SEEDS=1 it
// writes the seeds instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/fuzz/hf_walk.h"
#include "tests/io/safetensors_builder.h"

namespace wick::models::hf::test {
namespace {

constexpr const char* kFolder = WICK_SOURCE_DIR "/tests/fuzz/hf_corpus";

void write_seed(const std::string& name, const std::string& bytes) {
  std::ofstream(std::string(kFolder) + "/" + name, std::ios::binary) << bytes;
}

void write_seeds() {
  std::filesystem::create_directories(kFolder);
  // The configurations of the tiny models.
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(WICK_SOURCE_DIR "/tests/models/data")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    write_seed("seed-config-" + entry.path().stem().string(),
               nlohmann::json::parse(in).at("config").dump());
  }
  write_seed("seed-index", R"({"metadata":{"total_size":8},"weight_map":{"a":"m-1","b":"m-2"}})");
  io::test::SafetensorsBuilder b;
  b.entry(R"("__metadata__":{"format":"pt"})");
  b.tensor("model.embed_tokens.weight", "BF16", {2, 2}, "12345678");
  b.tensor("model.layers.0.self_attn.q_proj.weight", "F8_E4M3", {4, 2}, "12345678");
  b.tensor("model.layers.0.self_attn.q_proj.weight_scale_inv", "F32", {1, 1}, "1234");
  b.tensor("model.layers.1.mlp.experts.0.up_proj.weight", "F32", {1, 1}, "1234");
  b.tensor("model.layers.1.mlp.experts.1.up_proj.weight", "F32", {1, 1}, "1234");
  b.tensor("model.layers.2.self_attn.kv_b_proj.weight", "F16", {8, 1}, std::string(16, '1'));
  b.tensor("lm_head.weight", "F64", {1}, "12345678");
  b.tensor("model.layers.3.self_attn.k_proj.qweight", "I32", {4, 8}, std::string(128, '1'));
  b.tensor("model.layers.3.self_attn.k_proj.qzeros", "I32", {1, 1}, "1234");
  b.tensor("model.layers.3.self_attn.k_proj.scales", "F16", {1, 8}, std::string(16, '1'));
  b.tensor("model.layers.3.self_attn.k_proj.g_idx", "I32", {32}, std::string(128, '\0'));
  b.tensor("model.layers.3.mlp.up_proj.weight", "F8_E5M2", {2, 2}, "1234");
  b.tensor("backbone.layers.0.mixer.A_log", "F32", {2}, "12345678");
  b.tensor("backbone.layers.0.mixer.conv1d.weight", "F32", {2, 1, 1}, "12345678");
  b.tensor("model.layers.0.linear_attn.in_proj_qkvz.weight", "F32", {16, 1}, std::string(64, '1'));
  write_seed("seed-safetensors", b.build());
}

std::vector<std::pair<std::string, std::string>> corpus() {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().filename().string(),
                       std::string{std::istreambuf_iterator<char>(in), {}});
  }
  return files;
}

Accepted walk(const std::string& bytes) { return walk_hf(std::as_bytes(std::span(bytes))); }

TEST(HfCorpus, EveryFileIsReadOrRefused) {
  if (std::getenv("WICK_WRITE_SEEDS") != nullptr) write_seeds();
  int configs = 0;
  for (const auto& [name, bytes] : corpus()) {
    const Accepted accepted = walk(bytes);
    configs += accepted.config ? 1 : 0;
    if (name.starts_with("seed-config")) {
      EXPECT_TRUE(accepted.config) << name;
    }
    if (name == "seed-index") {
      EXPECT_TRUE(accepted.index);
    }
    if (name == "seed-safetensors") {
      EXPECT_TRUE(accepted.safetensors);
    }
  }
  EXPECT_GE(configs, 30);
}

// A short substitute for the fuzzer: some bytes of each file are replaced, removed or repeated.
TEST(HfCorpus, ChangedFilesAreReadOrRefused) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.eE\\ \xff";
  int refused = 0;
  for (const auto& [name, bytes] : corpus()) {
    for (int i = 0; i < 60; ++i) {
      std::string changed = bytes;
      for (size_t change = 0; change <= below(3) && !changed.empty(); ++change) {
        const size_t at = below(changed.size());
        switch (below(3)) {
          case 0:
            changed[at] = kBytes[below(kBytes.size())];
            break;
          case 1:
            changed.erase(at, 1 + below(8));
            break;
          default:
            changed.insert(at, changed.substr(at, 1 + below(16)));
        }
      }
      const Accepted accepted = walk(changed);
      refused += accepted.config || accepted.index || accepted.safetensors ? 0 : 1;
    }
  }
  EXPECT_GE(refused, 100);
}

}  // namespace
}  // namespace wick::models::hf::test
