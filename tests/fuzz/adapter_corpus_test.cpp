// Changes the bytes of adapters, as GGUF files and as folders of PEFT, and loads models with them:
// each is loaded or refused with an Error. Loading multiplies factors, which the libFuzzer targets
// have no backend for, so this test makes the changes itself. WICK_FUZZ_ROUNDS says how many each
// file gets, WICK_FUZZ_SEED gives others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/io/safetensors_builder.h"
#include "tests/io/temp_folder.h"
#include "tests/models/tiny_model.h"
#include "wick/base/error.h"
#include "wick/io/gguf_writer.h"
#include "wick/models/causal_lm.h"
#include "wick/models/open_model.h"

namespace wick::models {
namespace {

using test::TinyModel;

size_t number_of(const char* variable, size_t or_else) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? or_else : std::stoul(text);
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Whether a model with an adapter loads. Anything but an Error fails the test.
bool loads(const io::ModelFile& model, const std::string& adapter) {
  LoadOptions options;
  options.release_file_pages = false;
  options.adapters = {adapter};
  try {
    return CausalLm::load(model, options) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

class Changes {
 public:
  /// Replaces, removes or repeats some of the first `bytes` bytes of a file.
  std::string of(std::string file, size_t bytes) {
    for (size_t n = 1 + below(3); n > 0 && !file.empty(); --n) {
      const size_t at = below(std::min(bytes, file.size()));
      switch (below(5)) {
        case 0:
          file[at] = static_cast<char>(below(256));
          break;
        case 1:
          file[at] = kText[below(kText.size())];
          break;
        case 2:
          file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
          break;
        case 3:
          file.erase(at, 1 + below(8));
          break;
        default:
          file.insert(at, file.substr(at, 1 + below(16)));
      }
    }
    return file;
  }

 private:
  static constexpr std::string_view kText = "{}[]\",:0123456789-.eE\\ ()*+?|^$";
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  std::mt19937 random_{static_cast<uint32_t>(number_of("WICK_FUZZ_SEED", 1))};
};

/// A folder as PEFT writes it, of a description in data/peft.
void write_folder(const nlohmann::json& described, const std::string& folder) {
  std::filesystem::create_directories(folder);
  write(folder + "/adapter_config.json", described.at("config").dump());
  io::test::SafetensorsBuilder b;
  for (const auto& tensor : described.at("tensors")) {
    const auto dims = tensor.at("shape").get<std::vector<int64_t>>();
    const std::string name = tensor.at("name");
    const std::vector<float> values =
        test::random_values(name, Shape(std::span<const int64_t>(dims)), -0.35, 0.35);
    b.tensor(name, "F32", dims,
             {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  write(folder + "/adapter_model.safetensors", b.build());
}

TEST(AdapterCorpus, ChangedFoldersOfPeftAreLoadedOrRefused) {
  const size_t rounds = number_of("WICK_FUZZ_ROUNDS", 40);
  const io::test::TempFolder temporary;
  const std::string folder = temporary.path("adapter"), path = temporary.path("m.gguf");
  Changes changes;
  size_t folders = 0, loaded = 0, refused = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(WICK_MODELS_DATA) + "/peft")) {
    SCOPED_TRACE(entry.path().filename().string());
    const nlohmann::json described = nlohmann::json::parse(read(entry.path().string()));
    TinyModel::read(described.at("model")).write(path);
    const auto model = open_model(path);
    write_folder(described, folder);
    EXPECT_TRUE(loads(*model, folder));
    ++folders;
    for (const char* name : {"/adapter_config.json", "/adapter_model.safetensors"}) {
      const std::string whole = read(folder + name);
      uint64_t header = 0;  // the length of the description of tensors, before their values
      std::memcpy(&header, whole.data(), sizeof header);
      for (size_t i = 0; i < rounds; ++i) {
        const bool is_config = std::string_view(name).ends_with(".json");
        write(folder + name, changes.of(whole, is_config ? whole.size() : header + sizeof header));
        (loads(*model, folder) ? loaded : refused) += 1;
      }
      write(folder + name, whole);
    }
  }
  EXPECT_GE(folders, 10U);
  EXPECT_GT(refused, folders * rounds / 4);
  EXPECT_GT(loaded, 0U);
}

TEST(AdapterCorpus, ChangedGgufFilesAreLoadedOrRefused) {
  const size_t rounds = number_of("WICK_FUZZ_ROUNDS", 40) * 10;
  const io::test::TempFolder temporary;
  const std::string adapter = temporary.path("a.gguf"), path = temporary.path("m.gguf");
  TinyModel::read("qwen2moe").write(path);
  const auto model = open_model(path);
  size_t header = 0;
  {
    io::GgufWriter w(adapter);
    w.set_string("general.type", "adapter");
    w.set_string("general.architecture", "qwen2moe");
    w.set_string("adapter.type", "lora");
    w.set_f32("adapter.lora.alpha", 6);
    const TinyModel tiny = TinyModel::read("qwen2moe");
    std::vector<std::pair<std::string, Shape>> factors;
    for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight", "blk.1.attn_output.weight",
                             "blk.0.ffn_gate_exps.weight", "output.weight"}) {
      const Shape s = tiny.shape_of(name);
      const bool table = std::string_view(name) == "token_embd.weight";
      const Shape a = table           ? Shape{s[0], 3}
                      : s.rank() == 2 ? Shape{3, s[1]}
                                      : Shape{s[0], 3, s[2]};
      const Shape b = table           ? Shape{s[1], 3}
                      : s.rank() == 2 ? Shape{s[0], 3}
                                      : Shape{s[0], s[1], 3};
      factors.emplace_back(std::string(name) + ".lora_a", a);
      factors.emplace_back(std::string(name) + ".lora_b", b);
    }
    size_t values = 0;
    for (const auto& [name, shape] : factors) w.add_tensor(name, DType::f32, shape);
    for (const auto& [name, shape] : factors) {
      const std::vector<float> of = test::random_values(name, shape, -0.35, 0.35);
      w.write(name, std::as_bytes(std::span(of)));
      values += of.size() * sizeof(float);
    }
    w.finish();
    header = std::filesystem::file_size(adapter) - values;
  }
  const std::string whole = read(adapter);
  EXPECT_TRUE(loads(*model, adapter));
  Changes changes;
  size_t loaded = 0, refused = 0;
  for (size_t i = 0; i < rounds; ++i) {
    write(adapter, changes.of(whole, header));
    (loads(*model, adapter) ? loaded : refused) += 1;
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_GT(loaded, 0U);
}

}  // namespace
}  // namespace wick::models
