#include "tests/fuzz/hf_walk.h"

#include <string>
#include <string_view>
#include <utility>

#include "wick/base/error.h"
#include "wick/io/gguf.h"
#include "wick/io/json.h"
#include "wick/io/safetensors.h"
#include "wick/models/hf/description.h"
#include "wick/models/hf/naming.h"
#include "wick/models/hf/shards.h"

namespace wick::models::hf::test {
namespace {

template <class F>
bool accepts(F&& read) {
  try {
    read();
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// A small model of a type, for the names of tensors.
Description some_model(const char* type) {
  nlohmann::json config = nlohmann::json::object();
  config["model_type"] = type;
  config["num_hidden_layers"] = 4;
  for (const char* size : {"num_attention_heads", "qk_nope_head_dim", "v_head_dim", "hidden_size",
                           "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                           "linear_value_head_dim"}) {
    config[size] = 2;
  }
  if (type == std::string_view("llama")) {
    config["quantization_config"] = {{"quant_method", "gptq"}, {"group_size", 32}, {"sym", true}};
  }
  return describe(Config(std::move(config), "config.json"));
}

}  // namespace

Accepted walk_hf(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Accepted accepted;
  accepted.config = accepts([&] {
    const Description description =
        describe(Config(io::parse_json(text, "config.json"), "config.json"));
    io::GgufMetadata metadata;
    set_keys(description, metadata);
    rope_tensors(description.config);
    for (const char* tensor : {"ssm_in.weight", "ffn_gate.weight", "attn_k.bias"}) {
      if (description.family->factors != nullptr) {
        description.family->factors(description.config, tensor);
      }
    }
    const std::string file = metadata.file();
    io::Gguf::parse(io::Bytes::copy_of(std::as_bytes(std::span(file))), "config.json");
  });
  accepted.index = accepts([&] { parse_index(text, "index.json"); });
  accepted.safetensors = accepts([&] {
    const auto file = io::Safetensors::parse(io::Bytes::copy_of(bytes), "m.safetensors");
    std::vector<Stored> stored;
    uint64_t sum = 0;
    for (const io::SafeTensor& tensor : file->tensors()) {
      stored.push_back({file.get(), &tensor});
      if (!tensor.dtype) continue;
      const Tensor t = file->tensor(tensor);
      const auto* data = static_cast<const unsigned char*>(t.storage()->data());
      for (size_t i = 0; i < t.storage()->bytes(); ++i) sum += data[i];
    }
    [[maybe_unused]] const volatile uint64_t kept = sum;
    for (const char* type : {"llama", "deepseek_v3", "gpt_oss", "bert", "gemma4_text", "mamba2",
                             "falcon_h1", "lfm2", "qwen3_next"}) {
      const Description description = some_model(type);
      accepts([&] {
        for (const Named& named : name_tensors(description, stored)) {
          for (const Source& source : named.sources) {
            view_of(named.form, source.stored.tensor->shape, description.sizes);
            if (source.int4.codes.tensor == nullptr) continue;
            const Shape shape = int4_shape(description.int4, source.int4);
            int4_dtype(description.int4, source.int4, shape, named.form);
          }
        }
      });
    }
  });
  return accepted;
}

}  // namespace wick::models::hf::test
