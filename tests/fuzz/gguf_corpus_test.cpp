// Replays the fuzzer's corpus, which consists of seeds and finds, in every build. With
// WICK_WRITE_SEEDS=1 it writes the seeds instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/gguf_walk.h"
#include "tests/io/gguf_builder.h"

namespace wick::io::test {
namespace {

using B = GgufBuilder;
constexpr const char* kFolder = WICK_SOURCE_DIR "/tests/fuzz/corpus";

/// Returns the keys and shapes of a small language model, without its weights.
GgufBuilder tiny_model() {
  B b;
  b.string("general.architecture", "llama").string("general.name", "tiny");
  b.u32("llama.block_count", 1).u32("llama.context_length", 64).u32("llama.embedding_length", 32);
  b.u32("llama.attention.head_count", 2).u32("llama.attention.head_count_kv", 1);
  b.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).f32("llama.rope.freq_base", 10000.0f);
  b.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "smollm");
  b.key("tokenizer.ggml.tokens", 9, B::array(8, 3, B::text("<s>") + B::text("a") + B::text("b")));
  b.key("tokenizer.ggml.token_type", 9, B::array(5, 3, B::bytes_of<int32_t>({3, 1, 1})));
  b.key("tokenizer.ggml.merges", 9, B::array(8, 1, B::text("a b")));
  b.key("tokenizer.ggml.add_bos_token", 7, B::raw<uint8_t>(0));
  b.tensor("token_embd.weight", {32, 3}, 8, std::string(3 * 34, '\1'));
  b.tensor("blk.0.attn_q.weight", {32, 2}, 3, std::string(2 * 20, '\2'));
  b.tensor("blk.0.attn_norm.weight", {32}, 0, std::string(128, '\0'));
  return b;
}

void write_seed(const std::string& name, const std::string& bytes) {
  std::ofstream(std::string(kFolder) + "/" + name, std::ios::binary) << bytes;
}

void write_seeds() {
  std::filesystem::create_directories(kFolder);
  write_seed("seed-everything", everything().build());
  write_seed("seed-model", tiny_model().build());
  B two = tiny_model();
  two.version = 2;
  write_seed("seed-version-2", two.build());
  write_seed("seed-empty", B().build());
  write_seed("seed-no-tensors", B().u32("a", 1).build());
  B aligned;
  aligned.alignment = 64;
  aligned.u32("general.alignment", 64)
      .tensor("a", {1}, 0, "1234")
      .tensor("b", {2, 2, 1, 1}, 1, "12345678");
  write_seed("seed-alignment", aligned.build());
  B types;  // one empty tensor of each type
  for (uint32_t type = 0; type < 41; ++type) {
    types.tensor(std::string(1, static_cast<char>('A' + type)), {0}, type, "");
  }
  write_seed("seed-tensor-types", types.build());
  std::string nested = B::array(0, 1, "x");
  for (int depth = 1; depth < 4; ++depth) nested = B::array(9, 2, nested + nested);
  write_seed("seed-nested", B().key("n", 9, nested).build());
}

TEST(GgufCorpus, EveryFileIsReadOrRefused) {
  if (std::getenv("WICK_WRITE_SEEDS") != nullptr) write_seeds();
  int files = 0, valid = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const bool parsed = walk_if_valid(std::as_bytes(std::span(bytes)));
    ++files;
    valid += parsed;
    if (entry.path().filename().string().starts_with("seed-")) {
      EXPECT_TRUE(parsed) << entry.path();
    }
  }
  EXPECT_GE(files, 8);
  EXPECT_GE(valid, 8);
}

}  // namespace
}  // namespace wick::io::test
