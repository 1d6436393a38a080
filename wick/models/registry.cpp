// The supported architectures: one row each.
#include "wick/models/registry.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/split_file.h"
#include "wick/models/families/families.h"

namespace wick::models {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", "Llama 1 to 3, Mistral, Mixtral, SmolLM", llama},
    {"llama4", "Llama 4", llama4},
    {"mistral3", "Ministral 3", mistral3},
    {"qwen2", "Qwen 2 and 2.5", qwen2},
    {"qwen2moe", "Qwen 2 MoE", qwen2_experts},
    {"qwen3", "Qwen 3", qwen3},
    {"qwen3moe", "Qwen 3 MoE", qwen3_experts},
    {"gemma", "Gemma", gemma},
    {"gemma2", "Gemma 2", gemma2},
    {"gemma3", "Gemma 3", gemma3},
    {"gemma4", "Gemma 4", gemma4},
    {"phi2", "Phi 1 and 2", phi2},
    {"phi3", "Phi 3 and 4", phi3},
    {"gpt2", "GPT-2", gpt2},
    {"gptneox", "GPT-NeoX, Pythia", gpt_neox},
    {"starcoder2", "StarCoder 2", starcoder2},
    {"stablelm", "Stable LM", stablelm},
    {"nemotron", "Nemotron", nemotron},
    {"olmo2", "OLMo 2", olmo2},
    {"olmoe", "OLMoE", olmo_experts},
    {"granite", "Granite", granite},
    {"granitemoe", "Granite MoE", granite_experts},
    {"command-r", "Command-R", command_r},
    {"cohere2", "Command-R7B, Command A", cohere2},
    {"deepseek2", "DeepSeek V2, V3 and R1", deepseek2},
    {"gpt-oss", "gpt-oss", gpt_oss},
    {"glm4", "GLM 4", glm4},
    {"bert", "BERT, MiniLM, BGE", bert},
    {"nomic-bert", "Nomic Embed", nomic_bert},
    {"modern-bert", "ModernBERT", modern_bert},
    {"gemma-embedding", "EmbeddingGemma", gemma_embedding},
    {"smollm3", "SmolLM 3", smollm3},
    {"exaone4", "EXAONE 4", exaone4},
    {"ernie4_5", "ERNIE 4.5", ernie4_5},
    {"ernie4_5-moe", "ERNIE 4.5 MoE", ernie4_5_experts},
    {"hunyuan-dense", "Hunyuan", hunyuan},
    {"hunyuan-moe", "Hunyuan MoE", hunyuan_experts},
    {"mamba2", "Mamba 2", mamba2},
    {"falcon-h1", "Falcon H1", falcon_h1},
    {"lfm2", "LFM 2", lfm2},
    {"qwen3next", "Qwen 3 Next", qwen3_next},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& find_architecture(const io::ModelFile& file) {
  io::require_model(file);
  io::require_whole(file);  // only the first part of a split model names the architecture
  const std::string_view wanted = file.get_string("general.architecture");
  std::string known;
  for (const Architecture& a : kArchitectures) {
    if (a.name == wanted) return a;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  }
  throw Error(ErrorKind::not_implemented, file.path(), "unsupported architecture",
              fmt::format("'{}'", printable(wanted, 60)),
              fmt::format("this version supports {}", known));
}

}  // namespace wick::models
