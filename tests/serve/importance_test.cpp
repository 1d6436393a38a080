// The sums of squares of weights' inputs: those of the first layer computed here from the
// equations, and relations that hold in every family. imatrix_transformers.py compares all sums of
// two models with transformers'.
#include "wick/serve/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/base/error.h"
#include "wick/io/gguf.h"

namespace wick::serve {
namespace {

using io::Importance;
using io::test::TempFolder;
using test::some_tokens;
using test::TinyLlama;
using test::TinyModel;
using testing::HasSubstr;

std::unique_ptr<models::CausalLm> load(const std::string& path) {
  return models::CausalLm::load(*io::Gguf::open(path), {.device = {}, .progress = {}});
}

double total(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Importance, SumsOfTheFirstLayer) {
  const TempFolder folder;
  TinyLlama tiny;
  tiny.write(folder.path("m.gguf"));
  const auto model = load(folder.path("m.gguf"));
  const std::vector<int32_t> tokens = some_tokens(40);
  const Importance found = importance(*model, tokens, {.chunk_size = 16, .first_token = 5});
  EXPECT_EQ(found.chunk_count, 2u);  // the rest of 8 tokens is left out
  EXPECT_EQ(found.chunk_size, 16u);

  const auto& table = tiny.weights.at("token_embd.weight");
  const auto& norm = tiny.weights.at("blk.0.attn_norm.weight");
  const auto k = static_cast<size_t>(tiny.hidden);
  std::vector<double> sums(k);
  for (size_t t = 0; t < 32; ++t) {
    const auto row = static_cast<size_t>(t % 16 == 0 ? 5 : tokens[t]) * k;
    double squares = 0;
    for (size_t i = 0; i < k; ++i) squares += double{table[row + i]} * double{table[row + i]};
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(k) + 1e-5);
    for (size_t i = 0; i < k; ++i) {
      sums[i] += std::pow(double{table[row + i]} * scale * double{norm[i]}, 2);
    }
  }
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    const Importance::Entry& entry = found.entries.at(std::string("blk.0.") + name + ".weight");
    ASSERT_EQ(entry.sums.size(), k);
    EXPECT_THAT(entry.counts, testing::ElementsAre(32.0f));
    for (size_t i = 0; i < k; ++i) EXPECT_NEAR(entry.sums[i], sums[i], 1e-4 * (1 + sums[i])) << i;
  }
  EXPECT_EQ(found.entries.at("blk.1.ffn_gate.weight").sums,
            found.entries.at("blk.1.ffn_up.weight").sums);
}

TEST(Importance, ChunksAreIndependent) {
  const TempFolder folder;
  TinyLlama tiny;
  tiny.write(folder.path("m.gguf"));
  const auto model = load(folder.path("m.gguf"));
  const std::vector<int32_t> tokens = some_tokens(48);
  const auto sums = [&](const ImportanceOptions& options) {
    return importance(*model, tokens, options).entries.at("blk.1.ffn_down.weight").sums;
  };
  const auto all = sums({.chunk_size = 16});
  const auto first = sums({.chunk_size = 16, .chunks = 1});
  const auto rest = sums({.chunk_size = 16, .first_chunk = 1});
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], first[i] + rest[i], 1e-5 * all[i]);
  // A text that is shorter than a chunk is one.
  EXPECT_EQ(sums({.chunk_size = 64}), sums({.chunk_size = 48}));
  int64_t calls = 0;
  const Importance stopped = importance(*model, tokens, {.chunk_size = 16},
                                        [&](int64_t done) { return (calls = done) < 2; });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(stopped.chunk_count, 2u);
}

/// Tensors that importance() gives no sums for: they aren't matrices of layers, or the model
/// multiplies by them in another form.
bool has_no_sums(std::string_view name) {
  for (const char* part : {"norm", "attn_kv_b", "conv1d", "shortconv.conv", "ssm_a", "ssm_d",
                           "sinks", "inp_shexp", "rel_b", "scale", "exp_probs", "layer_output"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return !name.starts_with("blk.") || !name.ends_with(".weight");
}

TEST(Importance, EveryFamily) {
  const TempFolder folder;
  const std::vector<int32_t> tokens = some_tokens(24);
  for (const TinyModel& tiny : TinyModel::all()) {
    SCOPED_TRACE(tiny.name);
    tiny.write(folder.path("m.gguf"));
    const auto file = io::Gguf::open(folder.path("m.gguf"));
    const Importance found = importance(*load(folder.path("m.gguf")), tokens, {.chunk_size = 12});
    found.require_fits(*file);
    for (const auto& [name, entry] : found.entries) {
      SCOPED_TRACE(name);
      EXPECT_NE(file->find_tensor(name), nullptr);
      EXPECT_GT(total(entry.sums), 0);
      const bool one_matrix = entry.counts.size() == 1;
      EXPECT_TRUE(!one_matrix || entry.counts.front() == 24.0f);
    }
    for (const io::GgufTensor& t : file->tensors()) {
      if (t.shape.rank() < 2 || has_no_sums(t.name)) continue;
      EXPECT_TRUE(found.entries.contains(t.name)) << t.name;
    }
    // The experts' rows together are the router's, once for each expert that a row uses.
    for (const auto& [name, entry] : found.entries) {
      const size_t at = name.find("ffn_up_exps");
      if (at == std::string::npos) continue;
      const Importance::Entry& router =
          found.entries.at(name.substr(0, at) + "ffn_gate_inp.weight");
      const double used = total(entry.counts) / 24;
      EXPECT_EQ(used, std::floor(used));
      const Importance::Entry& down = found.entries.at(name.substr(0, at) + "ffn_down_exps.weight");
      EXPECT_EQ(down.counts, entry.counts);
      if (tiny.architecture == "llama4" || tiny.architecture == "gemma4") continue;  // other inputs
      EXPECT_NEAR(total(entry.sums), used * total(router.sums), 1e-4 * total(entry.sums));
    }
  }
}

TEST(Importance, Errors) {
  const TempFolder folder;
  TinyLlama tiny;
  tiny.write(folder.path("m.gguf"));
  const auto model = load(folder.path("m.gguf"));
  const auto error = [&](const models::CausalLm& of, int64_t count,
                         const ImportanceOptions& options) -> std::string {
    try {
      importance(of, some_tokens(count), options);
    } catch (const Error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_EQ(error(*model, 0, {}), "imatrix: the text has no tokens");
  EXPECT_THAT(error(*model, 40, {.chunk_size = 0}), HasSubstr("imatrix: option out of range"));
  EXPECT_THAT(error(*model, 40, {.chunk_size = 16, .chunks = -1}), HasSubstr("out of range"));
  EXPECT_EQ(
      error(*model, 40, {.chunk_size = 16, .first_chunk = 2}),
      "imatrix: no text after the first chunks: 40 tokens, 2 chunks of 16: first chunk below 2");
  // The first token replaces the only one of a chunk.
  for (const int64_t count : {1, 40}) {
    const int64_t chunk = count == 1 ? 16 : 1;
    EXPECT_EQ(error(*model, count, {.chunk_size = chunk, .first_token = 3}),
              "imatrix: chunks of one token have no text: the vocabulary's first token 3 replaces "
              "it: need at least 2 tokens");
    EXPECT_EQ(error(*model, count, {.chunk_size = chunk}), "");
  }
  EXPECT_THAT(error(*model, 97, {.chunk_size = 97}), HasSubstr("too many tokens"));
  TinyModel broken = TinyModel::read("llama");
  const auto elems = static_cast<size_t>(broken.shape_of("blk.0.ffn_up.weight").elems());
  broken.deltas["blk.0.ffn_up.weight"] = std::vector<float>(elems, 1e25f);
  broken.write(folder.path("b.gguf"));
  EXPECT_EQ(error(*load(folder.path("b.gguf")), 20, {.chunk_size = 16}),
            "imatrix: input of a weight isn't finite: blk.0.ffn_down.weight");
}

}  // namespace
}  // namespace wick::serve
