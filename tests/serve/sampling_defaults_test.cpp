// The sampling options that files recommend, and values that are ignored with a warning.
#include "wick/serve/sampling_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/io/temp_folder.h"
#include "tests/models/tiny_model.h"
#include "wick/io/gguf.h"
#include "wick/io/gguf_writer.h"
#include "wick/models/open_model.h"

namespace wick::serve {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class SamplingDefaultsOfFiles : public testing::Test {
 protected:
  SamplingDefaults of_gguf(const std::function<void(io::GgufWriter&)>& set) const {
    const std::string path = folder_.path("m.gguf");
    io::GgufWriter w(path);
    set(w);
    w.finish();
    return sampling_defaults(*io::Gguf::open(path));
  }
  SamplingDefaults of_folder(const std::string& generation) const {
    const std::string path = folder_.path("model");
    test::TinyModel::read("qwen3").write_directory(path, 1);
    folder_.write("model/generation_config.json", generation);
    return sampling_defaults(*models::open_model(path));
  }
  io::test::TempFolder folder_;
};

TEST_F(SamplingDefaultsOfFiles, AreRead) {
  const SamplingDefaults defaults = of_gguf([](io::GgufWriter& w) {
    w.set_i64("general.sampling.top_k", 7);
    w.set_f32("general.sampling.temp", 0.25f);
    w.set_f64("general.sampling.penalty_last_n", -1);
  });
  EXPECT_THAT(defaults.names, ElementsAre("temperature", "top_k", "penalty_window"));
  EXPECT_THAT(defaults.warnings, ElementsAre());
  EXPECT_EQ(defaults.options.top_k, 7);
  EXPECT_EQ(defaults.options.temperature, 0.25f);
  EXPECT_EQ(defaults.options.penalty_window, -1);
}

TEST_F(SamplingDefaultsOfFiles, TellWhyValuesAreIgnored) {
  const auto expect = [&](const std::function<void(io::GgufWriter&)>& set, const char* reason) {
    const SamplingDefaults defaults = of_gguf(set);
    EXPECT_THAT(defaults.names, ElementsAre());
    EXPECT_THAT(defaults.warnings, ElementsAre(EndsWith(std::string("is ignored: ") + reason)));
    EXPECT_EQ(defaults.options, text::SamplerOptions());
  };
  using Writer = io::GgufWriter;
  expect([](Writer& w) { w.set_f64("general.sampling.top_k", 1.5); }, "not an integer");
  expect([](Writer& w) { w.set_f64("general.sampling.top_k", 1e12); }, "out of range");
  expect([](Writer& w) { w.set_i64("general.sampling.top_k", int64_t{1} << 40); }, "out of range");
  expect([](Writer& w) { w.set_u64("general.sampling.penalty_last_n", UINT64_MAX); },
         "out of range");
  expect([](Writer& w) { w.set_f64("general.sampling.temp", 1e300); }, "out of range");
  expect([](Writer& w) { w.set_f64("general.sampling.temp", -1e300); }, "out of range");
  expect([](Writer& w) { w.set_f32("general.sampling.temp", INFINITY); }, "out of range");
  expect([](Writer& w) { w.set_f32("general.sampling.mirostat", NAN); }, "out of range");
  expect([](Writer& w) { w.set_string("general.sampling.top_k", "many"); },
         "wrong type string: need a number");
  expect([](Writer& w) { w.set_i64("general.sampling.sequence", 3); },
         "wrong type i64: need a string");
}

TEST_F(SamplingDefaultsOfFiles, OfFoldersKeepTheirRange) {
  const auto warning = [&](const std::string& generation) {
    const SamplingDefaults defaults = of_folder(generation);
    EXPECT_THAT(defaults.names, ElementsAre());
    return defaults.warnings.size() == 1 ? defaults.warnings.front() : "";
  };
  EXPECT_THAT(warning(R"({"temperature": 1e300})"),
              HasSubstr("/generation_config.json: temperature = 1e+300 is ignored: out of range"));
  EXPECT_THAT(
      warning(R"({"repetition_penalty": [1]})"),
      HasSubstr("/generation_config.json: repetition_penalty = [\"1\"] is ignored: wrong type "
                "array of string: need a number"));
  EXPECT_THAT(warning(R"({"top_k": true})"), HasSubstr("top_k = true is ignored: wrong type bool"));
  EXPECT_THAT(warning(R"({"penalty_last_n": 18446744073709551615})"),
              HasSubstr("penalty_last_n = 18446744073709551615 is ignored: out of range"));
  EXPECT_THAT(of_folder(R"({"penalty_last_n": -1, "top_p": 0.5})").names,
              ElementsAre("top_p", "penalty_window"));
}

}  // namespace
}  // namespace wick::serve
