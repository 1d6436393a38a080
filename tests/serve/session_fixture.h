#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/io/temp_folder.h"
#include "tests/models/tiny_llama.h"
#include "wick/serve/engine.h"

namespace wick::serve {

/// Writes a tiny model into the test's own folder and loads it.
class SessionFixture : public testing::Test {
 protected:
  std::shared_ptr<const Engine> engine(test::TinyLlama tiny = {.dtype = DType::q8_0}) {
    tiny.write(path());
    return Engine::load(path());
  }
  std::string path() const { return folder_.path("m.gguf"); }
  io::test::TempFolder folder_;
};

/// Options for generating the `count` most likely tokens, ignoring end tokens.
inline GenerateOptions greedy(int64_t count) {
  GenerateOptions o;
  o.max_tokens = count;
  o.sampler.temperature = 0;
  o.ignore_end = true;
  return o;
}

}  // namespace wick::serve
