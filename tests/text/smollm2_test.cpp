#include <gtest/gtest.h>

#include "fixtures.h"

namespace wick::text {
namespace {

// Compares the real vocabulary with ids from the `tokenizers` package.
class SmolLm2 : public ::testing::Test {
 protected:
  void SetUp() override {
    vocabulary_ = load_smollm2();
    if (!vocabulary_) {
      GTEST_SKIP() << "no SmolLM2 model: name a GGUF file in WICK_TEST_MODEL or run `make run`";
    }
  }
  std::optional<ModelVocabulary> vocabulary_;
};

TEST_F(SmolLm2, IdsAgreeWithTheTokenizersPackage) {
  const Tokenizer tokenizer(vocabulary_->spec);
  const Fixture& f = fixture();
  ASSERT_EQ(f.smollm2_ids.size(), f.texts.size());
  for (size_t t = 0; t < f.texts.size(); ++t) {
    EXPECT_EQ(tokenizer.encode(f.texts[t]), f.smollm2_ids[t]) << t << " '" << f.texts[t] << "'";
  }
}

TEST_F(SmolLm2, Vocabulary) {
  const Tokenizer tokenizer(vocabulary_->spec);
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_EQ(tokenizer.token_id("<|im_end|>"), 2);
  EXPECT_TRUE(tokenizer.is_end_of_generation(2));
  EXPECT_TRUE(tokenizer.is_end_of_generation(0));
  EXPECT_FALSE(tokenizer.is_end_of_generation(1));
  EXPECT_TRUE(tokenizer.is_special(16));
  EXPECT_FALSE(tokenizer.is_special(17));
}

}  // namespace
}  // namespace wick::text
