// Models that lie in several files.
#include "wick/models/open_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/io/split_writer.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/models/causal_lm.h"

namespace wick::models {
namespace {

using io::test::TempFolder;
using test::error_of;
using test::some_tokens;
using test::TinyModel;
using testing::HasSubstr;

std::vector<float> logits_of(const io::ModelFile& file) {
  const auto model = CausalLm::load(file, {});
  const std::vector<int32_t> tokens = some_tokens(24);
  nn::KvCache cache = model->make_cache(24, DType::f32);
  return model->forward(tokens, cache, Logits::all).to_vector<float>();
}

TEST(OpenModel, PartsGiveTheLogitsOfTheWhole) {
  const TempFolder folder;
  for (const char* name : {"qwen2", "mixtral"}) {
    TinyModel::read(name).write(folder.path("m.gguf"));
    const auto whole = io::Gguf::open(folder.path("m.gguf"));
    const std::vector<float> expected = logits_of(*whole);
    for (const std::string& part : io::test::split(*whole, folder.path(name), 3)) {
      EXPECT_EQ(logits_of(*open_model(part)), expected) << part;
      EXPECT_THAT(error_of([&] { CausalLm::load(*io::Gguf::open(part), {}); }),
                  HasSubstr("file is one part of a split model"));
    }
  }
}

}  // namespace
}  // namespace wick::models
