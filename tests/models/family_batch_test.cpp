// Every family: sequences of different lengths that share steps have the bits that each has alone.
// Windows, chunks, sinks, latent attention, recurrent states, experts and LongRoPE's angles are
// among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "tests/test_devices.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"

namespace wick::models {
namespace {

using test::some_tokens;
using test::TinyModel;

using Tokens = std::vector<int32_t>;
using Floats = std::vector<float>;

// Tokens of each sequence in each step; 0: the sequence isn't in the step. Sequences cross windows
// of five to seven positions and LongRoPE's 16 together and alone.
constexpr size_t kSequences = 5, kSteps = 4;
constexpr int64_t kCounts[kSequences][kSteps] = {
    {7, 1, 9, 1}, {7, 1, 1, 3}, {1, 0, 21, 1}, {3, 20, 1, 1}, {18, 1, 1, 0}};
constexpr int64_t kContext = 30;

class FamilyBatches : public testing::Test {
 protected:
  // Attention of many queries then has the CPU's bits on a GPU.
  void SetUp() override { setenv("WICK_REPRODUCIBLE", "1", 1); }
  void TearDown() override { unsetenv("WICK_REPRODUCIBLE"); }

  std::unique_ptr<CausalLm> load(const TinyModel& tiny, Device device) {
    tiny.write(folder_.path("m.gguf"));
    return CausalLm::load(*io::Gguf::open(folder_.path("m.gguf")),
                          {.device = device, .progress = {}});
  }

 private:
  io::test::TempFolder folder_;
};

Tokens tokens_of(size_t sequence) {
  Tokens tokens = some_tokens(kContext);
  for (int32_t& token : tokens) token = (token + 7 * static_cast<int32_t>(sequence)) % 40;
  return tokens;
}

/// The logits of a sequence that takes its steps alone.
std::vector<Floats> alone(const CausalLm& model, size_t sequence, DType dtype, Logits logits) {
  nn::KvCache cache = model.make_cache(kContext, dtype);
  const Tokens tokens = tokens_of(sequence);
  std::vector<Floats> steps;
  size_t at = 0;
  for (const int64_t count : kCounts[sequence]) {
    const auto part = std::span(tokens).subspan(at, static_cast<size_t>(count));
    at += part.size();
    steps.push_back(part.empty() ? Floats()
                                 : model.forward(part, cache, logits).to_vector<float>());
  }
  return steps;
}

/// Runs the steps of all sequences together and compares each part with `expected`.
void compare(const CausalLm& model, DType dtype, Logits logits) {
  std::vector<std::vector<Floats>> expected;
  std::vector<Tokens> tokens;
  for (size_t s = 0; s < kSequences; ++s) {
    expected.push_back(alone(model, s, dtype, logits));
    tokens.push_back(tokens_of(s));
  }
  nn::KvCache cache = model.make_cache(kContext, dtype, kSequences);
  for (size_t step = 0; step < kSteps; ++step) {
    std::vector<BatchInput> inputs;
    for (const size_t s : {3, 0, 4, 1, 2}) {
      if (kCounts[s][step] == 0) continue;
      const auto sequence = static_cast<int64_t>(s);
      inputs.push_back(
          {.sequence = sequence,
           .tokens = std::span(tokens[s]).subspan(static_cast<size_t>(cache.length(sequence)),
                                                  static_cast<size_t>(kCounts[s][step]))});
    }
    const Floats got = model.forward(inputs, cache, logits).to_vector<float>();
    auto at = got.begin();
    for (const BatchInput& input : inputs) {
      const Floats& wanted = expected[static_cast<size_t>(input.sequence)][step];
      ASSERT_LE(static_cast<ptrdiff_t>(wanted.size()), got.end() - at);
      const auto end = at + static_cast<ptrdiff_t>(wanted.size());
      EXPECT_EQ(Floats(at, end), wanted) << "step " << step << ", sequence " << input.sequence;
      at = end;
    }
    EXPECT_EQ(at, got.end());
  }
}

TEST_F(FamilyBatches, SequencesHaveTheBitsTheyHaveAlone) {
  size_t families = 0;
  for (TinyModel tiny : TinyModel::all()) {
    if (tiny.logits.empty()) continue;
    ++families;
    for (const Device device : test::cpu_and_devices()) {
      const bool cpu = device.kind == DeviceKind::cpu;
      for (const DType dtype : {DType::q8_0, DType::f32, DType::bf16}) {
        // batch_test.cpp has the other dtypes, but no experts.
        const bool again = dtype == DType::bf16 && tiny.has_experts();
        if (!cpu && dtype != DType::q8_0 && !again) continue;
        SCOPED_TRACE(tiny.name + " " + std::string(name(dtype)) + " on " + device.str());
        tiny.dtype = dtype;
        const auto model = load(tiny, device);
        compare(*model, DType::f16, Logits::all);
        compare(*model, DType::f32, Logits::last);
      }
    }
  }
  EXPECT_GE(families, 40U);
}

// ---- Caches of blocks ----

/// Gives a description heads of 32 elements, which caches of q8_0 and q4_0 need.
TinyModel with_heads_of_32(const char* name) {
  TinyModel tiny = TinyModel::read(name);
  const auto rows = [&](const std::string& tensor, int64_t factor, int dim) {
    Shape shape = tiny.shape_of(tensor);
    std::vector<int64_t> sizes;
    for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i] * (i == dim ? factor : 1));
    tiny.shapes[tensor] = Shape(std::span<const int64_t>(sizes));
  };
  for (int layer = 0; layer < 3; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    for (const char* part : {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_q.bias",
                             "attn_k.bias", "attn_v.bias"}) {
      try {
        rows(blk + part, 2, 0);
      } catch (const std::runtime_error&) {  // no such layer, or no bias
      }
    }
    try {
      rows(blk + "attn_output.weight", 2, 1);
    } catch (const std::runtime_error&) {
    }
  }
  tiny.edit = [architecture = tiny.architecture](io::GgufWriter& w) {
    for (const char* key :
         {".attention.key_length", ".attention.value_length", ".rope.dimension_count"}) {
      w.set_u32(architecture + key, 32);
    }
  };
  return tiny;
}

// Sliding windows (gemma2), windows and sinks (gpt-oss). The limits are about twice the errors of
// gpt-oss, some of whose rows go through other experts.
TEST_F(FamilyBatches, CachesOfBlocksWithWindowsAndSinks) {
  const Tokens tokens = some_tokens(kContext);
  for (const char* family : {"gemma2", "gpt-oss"}) {
    TinyModel tiny = with_heads_of_32(family);
    tiny.dtype = DType::q8_0;
    for (const Device device : test::cpu_and_devices()) {
      const auto model = load(tiny, device);
      nn::KvCache exact = model->make_cache(kContext, DType::f32);
      const Floats wanted = model->forward(tokens, exact, Logits::all).to_vector<float>();
      for (const DType dtype : {DType::q8_0, DType::q4_0}) {
        SCOPED_TRACE(std::string(family) + " " + std::string(name(dtype)) + " on " + device.str());
        compare(*model, dtype, Logits::all);
        nn::KvCache whole = model->make_cache(kContext, dtype);
        const Floats got = model->forward(tokens, whole, Logits::all).to_vector<float>();
        nn::KvCache cache = model->make_cache(kContext, dtype);
        Decoder decoder(*model, cache);
        Floats decoded;
        for (const int32_t token : tokens) {
          const Floats row = decoder.step(token).to_vector<float>();
          decoded.insert(decoded.end(), row.begin(), row.end());
        }
        EXPECT_EQ(decoded, got);
        double difference = 0, size = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(wanted[i]), 2);
          size += std::pow(static_cast<double>(wanted[i]), 2);
        }
        EXPECT_GT(difference, 0);
        EXPECT_LT(std::sqrt(difference / size), dtype == DType::q8_0 ? 0.12 : 0.4);
      }
    }
  }
}

}  // namespace
}  // namespace wick::models
