// Models whose logits change beyond some number of positions, compared with transformers: attention
// within chunks, dynamic scaling of rope, and LongRoPE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "tests/models/record.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/io/convert.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"
#include "wick/models/open_model.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

/// The logits of all tokens by steps of the given numbers of tokens; the last number repeats. Steps
/// of one token are those of generation.
std::vector<float> logits_by(const CausalLm& model, int64_t tokens, std::vector<int64_t> steps) {
  const std::vector<int32_t> all = some_tokens(tokens);
  nn::KvCache cache = model.make_cache(tokens, DType::f32);
  Decoder decoder(model, cache);
  std::vector<float> logits;
  for (size_t at = 0, step = 0; at < all.size(); ++step) {
    const auto wanted = static_cast<size_t>(steps[std::min(step, steps.size() - 1)]);
    const std::span<const int32_t> part =
        std::span(all).subspan(at, std::min(wanted, all.size() - at));
    const Tensor of_part =
        part.size() == 1 ? decoder.step(part[0]) : model.forward(part, cache, Logits::all);
    const std::vector<float> values = of_part.to_vector<float>();
    logits.insert(logits.end(), values.begin(), values.end());
    at += part.size();
  }
  return logits;
}

/// The largest difference of the stored positions' logits, relative to the largest logit.
double difference(const std::vector<float>& all, const TinyModel& tiny) {
  const size_t row = tiny.logits.size() / tiny.positions.size();
  if (all.size() != row * static_cast<size_t>(tiny.tokens)) return INFINITY;
  double worst = 0, most = 0;
  for (size_t i = 0; i < tiny.logits.size(); ++i) {
    const size_t at = static_cast<size_t>(tiny.positions[i / row]) * row + i % row;
    const auto wanted = static_cast<double>(tiny.logits[i]);
    const double apart = std::fabs(static_cast<double>(all[at]) - wanted);
    if (!(apart <= worst)) worst = apart;
    most = std::max(most, std::fabs(wanted));
  }
  return worst / most;
}

TinyModel chunked(uint32_t chunk = 256) {
  TinyModel tiny = TinyModel::read("long/llama4-chunks");
  tiny.edit = [chunk](io::GgufWriter& w) { w.set_u32("llama4.attention.chunk_size", chunk); };
  return tiny;
}

TinyModel dynamic() {
  TinyModel tiny = TinyModel::read("long/llama-dynamic");
  tiny.edit = [](io::GgufWriter& w) {
    w.set_string("llama.rope.scaling.type", "dynamic");
    w.set_f32("llama.rope.scaling.factor", 8);
    w.set_u32("llama.rope.scaling.original_context_length", 32);
    w.set_u32("llama.context_length", 256);
  };
  return tiny;
}

std::unique_ptr<CausalLm> load(const TinyModel& tiny, const TempFolder& folder,
                               Device device = {}) {
  tiny.write(folder.path("m.gguf"));
  return CausalLm::load(*io::Gguf::open(folder.path("m.gguf")), {.device = device, .progress = {}});
}

TEST(ModelOnDevice, ChunkedAttentionIsTransformers) {
  const TempFolder folder;
  const TinyModel tiny = chunked();
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    EXPECT_EQ(model->context_length(), 1024);
    const double d = difference(logits_by(*model, tiny.tokens, {600}), tiny);
    EXPECT_LT(d, 2e-4);
    test::record(tiny, device, "transformers", d);
    EXPECT_LT(difference(logits_by(*model, tiny.tokens, {200, 100, 256, 1}), tiny), 2e-4);
    EXPECT_LT(difference(logits_by(*model, tiny.tokens, {255, 1, 1, 50, 206}), tiny), 2e-4);
  }
  // Without chunks, the logits are others.
  const auto whole = load(chunked(8192), folder);
  EXPECT_GT(difference(logits_by(*whole, tiny.tokens, {600}), tiny), 1e-2);
}

// Sequences that are at different places of their chunks.
TEST(ModelOnDevice, ChunkedAttentionInBatches) {
  const TempFolder folder;
  const TinyModel tiny = chunked();
  const std::vector<int32_t> all = some_tokens(tiny.tokens);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    nn::KvCache cache = model->make_cache(tiny.tokens, DType::f32, 3);
    std::vector<std::vector<float>> logits(3);
    std::vector<size_t> at(3);
    const size_t row = static_cast<size_t>(model->vocab_size());
    // Two sequences cross a border in one step, then each takes single tokens.
    const std::vector<std::vector<size_t>> steps = {
        {250, 250, 3}, {10, 10, 253}, {1, 1, 1}, {1, 1, 1}, {339, 300, 340}, {0, 38, 0}, {0, 0, 2}};
    for (const std::vector<size_t>& step : steps) {
      std::vector<BatchInput> inputs;
      for (size_t s = 0; s < 3; ++s) {
        const auto tokens = std::span(all).subspan(at[s], std::min(step[s], all.size() - at[s]));
        if (!tokens.empty()) inputs.push_back({static_cast<int64_t>(s), tokens});
      }
      const std::vector<float> got = model->forward(inputs, cache, Logits::all).to_vector<float>();
      size_t first = 0;
      for (const BatchInput& input : inputs) {
        const auto s = static_cast<size_t>(input.sequence);
        const size_t count = input.tokens.size() * row;
        logits[s].insert(logits[s].end(), got.begin() + static_cast<ptrdiff_t>(first),
                         got.begin() + static_cast<ptrdiff_t>(first + count));
        first += count;
        at[s] += input.tokens.size();
      }
    }
    for (const std::vector<float>& of_sequence : logits) {
      EXPECT_LT(difference(of_sequence, tiny), 2e-4);
    }
  }
}

// A position beyond the trained context has the base of a sequence that it ends, however many
// tokens a step has. This is what transformers computes token by token.
TEST(ModelOnDevice, DynamicRopeIsTransformers) {
  const TempFolder folder;
  const TinyModel tiny = dynamic();
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    for (const std::vector<int64_t>& steps : {std::vector<int64_t>{150}, std::vector<int64_t>{1},
                                              std::vector<int64_t>{20, 50, 1, 30}}) {
      const double d = difference(logits_by(*model, tiny.tokens, steps), tiny);
      EXPECT_LT(d, 2e-4);
      if (steps.size() == 1 && steps[0] == 1) test::record(tiny, device, "transformers", d);
    }
  }
  TinyModel plain = dynamic();
  plain.edit = [](io::GgufWriter& w) { w.set_u32("llama.context_length", 256); };
  EXPECT_GT(difference(logits_by(*load(plain, folder), tiny.tokens, {150}), tiny), 1e-2);
}

/// The last logits of a prompt that runs in steps of `step` tokens, as one of several sequences.
std::vector<float> last_logits(const CausalLm& model, std::span<const int32_t> prompt, size_t step,
                               int64_t context, std::span<const BatchInput> others = {}) {
  nn::KvCache cache =
      model.make_cache(context, DType::f32, 1 + static_cast<int64_t>(others.size()));
  std::vector<float> logits;
  for (size_t at = 0; at < prompt.size(); at += step) {
    std::vector<BatchInput> inputs;
    if (at == 0) inputs.assign(others.begin(), others.end());
    inputs.push_back({.sequence = static_cast<int64_t>(others.size()),
                      .tokens = prompt.subspan(at, std::min(step, prompt.size() - at)),
                      .end = static_cast<int64_t>(prompt.size())});
    logits = model.forward(inputs, cache, Logits::last).to_vector<float>();
  }
  return {logits.end() - static_cast<ptrdiff_t>(model.vocab_size()), logits.end()};
}

// A prompt has the angles of its length, whatever the cache's size, the steps that it runs in, and
// the sequences that run in the same steps.
TEST(ModelOnDevice, LongRopeIsTransformers) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("long/phi3-longrope-generated");
  const std::vector<int32_t> all = some_tokens(tiny.tokens);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    ASSERT_EQ(model->short_context(), 16);
    const std::vector<int32_t> more = some_tokens(21);
    const BatchInput others[] = {{0, std::span(more).first(3)}, {1, more}};
    double worst = 0;
    const size_t row = static_cast<size_t>(model->vocab_size());
    for (size_t i = 0; i < tiny.positions.size(); ++i) {
      SCOPED_TRACE(tiny.positions[i]);
      const int64_t length = tiny.positions[i] + 1;
      const auto prompt = std::span(all).first(static_cast<size_t>(length));
      const std::vector<float> logits = last_logits(*model, prompt, 24, length);
      const auto wanted = std::span(tiny.logits).subspan(i * row, row);
      for (size_t j = 0; j < row; ++j) {
        worst = std::max(worst, std::fabs(static_cast<double>(logits[j] - wanted[j])));
      }
      EXPECT_EQ(last_logits(*model, prompt, 24, 96), logits);
      EXPECT_EQ(last_logits(*model, prompt, 24, 96, others), logits);
      EXPECT_EQ(last_logits(*model, prompt, 7, 96, others), logits);
      EXPECT_EQ(last_logits(*model, prompt, 1, 30), logits);
    }
    const float most = *std::max_element(tiny.logits.begin(), tiny.logits.end());
    EXPECT_LT(worst / static_cast<double>(most), 2e-4);
  }
}

// A decoder's tokens have the angles of a sequence that they end, after those that are cached.
TEST(ModelOnDevice, DecodersChooseLongRopesAnglesByPosition) {
  const TempFolder folder;
  const TinyModel tiny = TinyModel::read("phi3-longrope");
  const std::vector<int32_t> tokens = some_tokens(24);
  for (const Device device : test::cpu_and_devices()) {
    SCOPED_TRACE(device.str());
    const auto model = load(tiny, folder, device);
    const std::vector<float> expected = logits_by(*model, 24, {10, 6, 8});
    nn::KvCache cache = model->make_cache(24, DType::f32, 2);
    const int64_t both[] = {0, 1};
    Decoder decoder(*model, cache, both);
    const BatchInput first[] = {{0, std::span(tokens).first(10)}, {1, std::span(tokens).first(2)}};
    model->forward(first, cache, Logits::last);
    const auto row = static_cast<ptrdiff_t>(model->vocab_size());
    for (size_t i = 10; i < 24; ++i) {
      const int32_t next[] = {tokens[i], tokens[i - 8]};
      const std::vector<float> logits = decoder.step(next).to_vector<float>();
      const auto wanted = expected.begin() + static_cast<ptrdiff_t>(i) * row;
      EXPECT_EQ(std::vector<float>(logits.begin(), logits.begin() + row),
                std::vector<float>(wanted, wanted + row))
          << i;
      const auto other = expected.begin() + static_cast<ptrdiff_t>(i - 8) * row;
      EXPECT_EQ(std::vector<float>(logits.begin() + row, logits.end()),
                std::vector<float>(other, other + row))
          << i;
    }
  }
}

TEST(LongContexts, EmbeddingsOfLongRopeAreThoseOfEachText) {
  const TempFolder folder;
  const auto model = load(TinyModel::read("phi3-longrope"), folder);
  const std::vector<std::vector<int32_t>> texts = {some_tokens(5), some_tokens(30), some_tokens(1),
                                                   some_tokens(16), some_tokens(17)};
  const auto size = static_cast<ptrdiff_t>(model->embedding_size());
  const std::vector<float> all = model->embed(texts).to_vector<float>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto at = all.begin() + static_cast<ptrdiff_t>(i) * size;
    EXPECT_EQ(std::vector<float>(at, at + size), model->embed({&texts[i], 1}).to_vector<float>());
  }
}

// Folders, and the files that they are converted to.
TEST(LongContexts, DirectoriesAndConvertedFiles) {
  const TempFolder folder;
  for (const char* name : {"long/llama4-chunks", "long/llama-dynamic"}) {
    SCOPED_TRACE(name);
    const TinyModel tiny = TinyModel::read(name);
    const auto file = open_model(tiny.write_directory(folder.path(tiny.architecture)));
    const auto model = CausalLm::load(*file, {});
    EXPECT_GE(model->context_length(), tiny.tokens);
    const std::vector<float> logits = logits_by(*model, tiny.tokens, {tiny.tokens});
    EXPECT_LT(difference(logits, tiny), 2e-4);
    test::record(tiny, {}, "directory", difference(logits, tiny));
    io::quantize_gguf(*file, folder.path("f32.gguf"), DType::f32);
    const auto converted = CausalLm::load(*io::Gguf::open(folder.path("f32.gguf")), {});
    EXPECT_EQ(logits_by(*converted, tiny.tokens, {tiny.tokens}), logits);
  }
}

TEST(LongContexts, RefusesOtherSizes) {
  const TempFolder folder;
  EXPECT_THAT(test::error_of([&] { load(chunked(100), folder); }),
              HasSubstr("llama4.attention.chunk_size = 100: need a multiple of 256"));
  EXPECT_THAT(test::error_of([&] { load(chunked(0), folder); }), HasSubstr("chunk_size"));
  TinyModel tiny = dynamic();
  const auto edit = tiny.edit;
  tiny.edit = [&](io::GgufWriter& w) {
    edit(w);
    w.set_u32("llama.rope.dimension_count", 2);
  };
  EXPECT_THAT(test::error_of([&] { load(tiny, folder); }), HasSubstr("rope"));
  tiny.edit = [&](io::GgufWriter& w) {
    edit(w);
    w.set_u32("llama.rope.scaling.original_context_length", 0);
  };
  EXPECT_THAT(test::error_of([&] { load(tiny, folder); }), HasSubstr("original_context_length"));
}

}  // namespace
}  // namespace wick::models
