#include "tests/models/tiny_llama.h"

#include <cmath>
#include <cstring>
#include <random>
#include <span>

#include "tests/backend/block_reference.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::test {
namespace {

using Vector = std::vector<double>;

/// Returns y = W x (+ b).
Vector multiply(const std::vector<float>& w, const std::vector<float>* bias, const Vector& x,
                size_t n) {
  Vector y(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = bias != nullptr ? static_cast<double>((*bias)[i]) : 0.0;
    for (size_t j = 0; j < x.size(); ++j) sum += static_cast<double>(w[i * x.size() + j]) * x[j];
    y[i] = sum;
  }
  return y;
}

Vector rms_norm(const Vector& x, const std::vector<float>& weight) {
  double squares = 0;
  for (double v : x) squares += v * v;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * static_cast<double>(weight[i]);
  return y;
}

}  // namespace

Tensor random_blocks(DType type, const Shape& shape, std::mt19937& random) {
  Tensor t = Tensor::empty(shape, type);
  auto* const bytes = static_cast<uint8_t*>(t.mutable_view().data);
  const auto count = static_cast<size_t>(bytes_of(type, shape.elems()));
  const auto block = static_cast<size_t>(info(type).block_bytes);
  const QuantInfo& row = quant(type);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random());
  for (size_t at = 0; at < count; at += block) {
    const auto d = static_cast<uint16_t>(0x2000 + random() % 256);  // about 2^-7
    const auto m = static_cast<uint16_t>(0x2C00 + random() % 256);  // eight times as much
    reference::write_scales(type, bytes + at, d, m);
  }
  double squares = 0;
  for (const float v : reference::row_values(type, bytes, shape.elems())) {
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const auto rows = static_cast<double>(shape.elems()) / static_cast<double>(shape.back());
  const auto shift = static_cast<int>(std::lround(std::log2(std::sqrt(rows / squares))));
  // Adds `shift` to an exponent whose lowest bit is `bit` of a field of `size` bytes.
  const auto add = [shift](uint8_t* field, size_t size, int bit) {
    uint32_t value = 0;
    std::memcpy(&value, field, size);
    value += static_cast<uint32_t>(shift) << bit;
    std::memcpy(field, &value, size);
  };
  for (size_t at = 0; at < count; at += block) {
    uint8_t* const scale = bytes + at + row.at;
    switch (row.scale) {
      case QuantScale::f16:
        add(scale, 2, 10);
        break;
      case QuantScale::f32:
        add(scale, 4, 23);
        break;
      case QuantScale::e8m0:
        add(scale, 1, 0);
        break;
      case QuantScale::e4m3:
        for (int part = 0; part < info(type).block_elems / row.part; ++part)
          add(scale + part, 1, 3);
        break;
      case QuantScale::nibbles:
        reference::write_nibbles(
            scale, static_cast<uint16_t>(reference::read_nibbles(scale) + (shift << 10)));
    }
    if (row.has_minimum()) add(bytes + at + row.minimum_at, 2, 10);
  }
  return t;
}

const std::vector<std::string>& TinyLlama::tokens() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> t;
    for (char c = 'a'; c <= 'z'; ++c) t.emplace_back(1, c);
    for (const char* s : {"Ġ", "Ċ", ".", ",", "th", "he", "an", "Ġa", "Ġt", "Ã", "©",
                          "<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      t.emplace_back(s);
    }
    return t;
  }();
  return list;
}

void TinyLlama::write_metadata(io::GgufWriter& w) const {
  const auto key = [&](const char* name) { return std::string("llama.") + name; };
  const auto set = [&](const char* name, int64_t value) {
    w.set_u32(key(name), static_cast<uint32_t>(value));
  };
  w.set_string("general.architecture", "llama");
  set("block_count", layers);
  set("embedding_length", hidden);
  set("feed_forward_length", intermediate);
  set("attention.head_count", heads);
  set("attention.head_count_kv", kv_heads);
  set("attention.key_length", key_size);
  set("attention.value_length", value_size);
  set("context_length", context);
  w.set_f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  set("rope.dimension_count", rope_dims);
  w.set_f32(key("rope.freq_base"), static_cast<float>(rope_base));
  if (window > 0) set("attention.sliding_window", window);
  if (!rope_scaling.empty()) {
    w.set_string(key("rope.scaling.type"), rope_scaling);
    w.set_f32(key("rope.scaling.factor"), static_cast<float>(rope_factor));
  }
  if (original_context > 0) set("rope.scaling.original_context_length", original_context);
}

void TinyLlama::write_vocabulary(io::GgufWriter& w) {
  w.set_string("tokenizer.ggml.model", "gpt2");
  w.set_string("tokenizer.ggml.pre", "gpt-2");
  const std::vector<std::string_view> names(tokens().begin(), tokens().end());
  w.set_strings("tokenizer.ggml.tokens", names);
  const auto count = static_cast<int32_t>(names.size());
  std::vector<int32_t> types_of_tokens(names.size(), 1);
  for (size_t i = names.size() - 3; i < names.size(); ++i) types_of_tokens[i] = 3;
  w.set_i32s("tokenizer.ggml.token_type", types_of_tokens);
  w.set_strings("tokenizer.ggml.merges",
                std::vector<std::string_view>{"t h", "h e", "a n", "Ġ a", "Ġ t"});
  w.set_u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(count - 3));
  w.set_u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(count - 3));
  w.set_string(
      "tokenizer.chat_template",
      "{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant', 'tool'] %}"
      "{{ raise_exception('unknown role: ' + m.role) }}{% endif %}"
      "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

std::vector<TinyLlama::Entry> TinyLlama::entries() const {
  std::vector<Entry> all;
  auto add = [&](const std::string& name, const Shape& shape, DType type) {
    if (without.contains(name)) return;
    if (auto it = types.find(name); it != types.end()) type = it->second;
    auto it = shapes.find(name);
    all.push_back({name, it != shapes.end() ? it->second : shape, type});
  };
  add("token_embd.weight", {rows(), hidden}, dtype);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    auto matrix = [&](const char* name, int64_t n, int64_t k, bool bias) {
      add(b + name + ".weight", {n, k}, dtype);
      if (bias) add(b + name + ".bias", {n}, DType::f32);
      if (!scales) return;
      add(b + name + ".scale", {1}, DType::f32);
      add(b + name + ".input_scale", {1}, DType::f32);
    };
    auto norm = [&](const char* name, int64_t n) { add(b + name + ".weight", {n}, DType::f32); };
    norm("attn_norm", hidden);
    norm("ffn_norm", hidden);
    matrix("attn_q", heads * key_size, hidden, biases);
    matrix("attn_k", kv_heads * key_size, hidden, biases);
    matrix("attn_v", kv_heads * value_size, hidden, biases);
    matrix("attn_output", hidden, heads * value_size, biases);
    matrix("ffn_gate", intermediate, hidden, biases);
    matrix("ffn_up", intermediate, hidden, biases);
    matrix("ffn_down", hidden, intermediate, biases);
  }
  if (!added.empty()) add(added, {16}, DType::f32);
  add("output_norm.weight", {hidden}, DType::f32);
  if (!tied) add("output.weight", {rows(), hidden}, dtype);
  if (!rope_divisors.empty()) {
    add("rope_freqs.weight", {static_cast<int64_t>(rope_divisors.size())}, DType::f32);
  }
  return all;
}

std::vector<float> TinyLlama::random_values(const Entry& e, std::mt19937& random) const {
  if (e.name == "rope_freqs.weight" && !shapes.contains(e.name)) {
    random.discard(12 * static_cast<size_t>(e.shape.elems()));
    return rope_divisors;
  }
  auto normal = [&] {  // approximately normal, and equal on all platforms
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 0x1p32;
    return static_cast<float>(sum);
  };
  std::vector<float> values(static_cast<size_t>(e.shape.elems()));
  const bool norm = e.name.find("_norm") != std::string::npos;
  const float scale =
      e.shape.rank() == 2 ? 1.0f / std::sqrt(static_cast<float>(e.shape.back())) : 0.1f;
  for (float& v : values) v = norm ? 1.0f + 0.1f * normal() : normal() * scale;
  if (e.name == "token_embd.weight") {
    for (float& v : values) v *= 8.0f;
  }
  if (e.name.ends_with(".scale")) {
    for (float& v : values) v = 1.0f + 5 * v;
  }
  return values;
}

void TinyLlama::write(const std::string& path) {
  io::GgufWriter w(path);
  write_metadata(w);
  write_vocabulary(w);
  if (edit) edit(w);
  const std::vector<Entry> all = entries();
  for (const Entry& e : all) w.add_tensor(e.name, e.type, e.shape);

  weights.clear();
  std::mt19937 random(seed);
  for (const Entry& e : all) {
    Tensor t = Tensor::from(random_values(e, random), e.shape);
    if (is_block(e.type)) {
      t = dtypes::kWrittenBlocks.contains(e.type) ? quantize(t, e.type)
                                                  : random_blocks(e.type, e.shape, random);
    } else {
      t = t.to(e.type);
    }
    w.write(e.name, {static_cast<const std::byte*>(t.storage()->data()), t.storage()->bytes()});
    if (is_block(e.type)) t = dequantize(t);
    weights[e.name] = t.to(DType::f32).to_vector<float>();
  }
  w.finish();
  for (const Entry& e : all) {
    if (!e.name.ends_with(".scale")) continue;
    const float scale = weights[e.name].front();
    for (float& v : weights[e.name.substr(0, e.name.size() - 5) + "weight"]) v *= scale;
  }
}

std::vector<double> TinyLlama::rope_frequencies() const {
  const double dims = static_cast<double>(rope_dims);
  Vector frequencies;
  for (int64_t i = 0; i < rope_dims / 2; ++i) {
    double f = std::pow(rope_base, -2.0 * static_cast<double>(i) / dims);
    if (!rope_divisors.empty()) f /= static_cast<double>(rope_divisors[static_cast<size_t>(i)]);
    if (rope_scaling == "linear") f /= rope_factor;
    if (rope_scaling == "yarn") {
      // YaRN (Peng et al.): pairs that rotate often within the trained context are unchanged, slow
      // ones are interpolated.
      auto pair_that_turns = [&](double turns) {
        return dims * std::log(static_cast<double>(original_context) / (turns * 2 * M_PI)) /
               (2 * std::log(rope_base));
      };
      const double low = std::max(0.0, std::floor(pair_that_turns(32)));
      const double high = std::min(dims - 1, std::ceil(pair_that_turns(1)));
      const double ramp = std::min(
          1.0, std::max(0.0, (static_cast<double>(i) - low) / std::max(0.001, high - low)));
      f = f / rope_factor * ramp + f * (1 - ramp);
    }
    frequencies.push_back(f);
  }
  return frequencies;
}

double TinyLlama::rope_magnitude() const {
  return rope_scaling == "yarn" ? 1.0 + 0.1 * std::log(rope_factor) : 1.0;
}

std::vector<std::vector<double>> TinyLlama::reference(const std::vector<int32_t>& ids) const {
  const auto H = static_cast<size_t>(heads), G = static_cast<size_t>(kv_heads);
  const auto D = static_cast<size_t>(key_size), E = static_cast<size_t>(value_size);
  const auto N = static_cast<size_t>(hidden), F = static_cast<size_t>(intermediate);
  const Vector frequencies = rope_frequencies();
  auto bias = [&](const std::string& name) {
    const auto it = weights.find(name + ".bias");
    return it != weights.end() ? &it->second : nullptr;
  };
  auto rotate = [&](Vector& x, size_t position) {
    for (size_t head = 0; head < x.size() / D; ++head) {
      for (size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = static_cast<double>(position) * frequencies[i];
        const double c = std::cos(angle) * rope_magnitude(), s = std::sin(angle) * rope_magnitude();
        double &a = x[head * D + 2 * i], &b = x[head * D + 2 * i + 1];
        const double a0 = a, b0 = b;
        a = a0 * c - b0 * s;
        b = a0 * s + b0 * c;
      }
    }
  };
  std::vector<Vector> xs;
  for (int32_t id : ids) {
    const float* row = weights.at("token_embd.weight").data() + static_cast<size_t>(id) * N;
    xs.emplace_back(row, row + N);
  }
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string b = "blk." + std::to_string(layer) + ".";
    auto product = [&](const char* name, const Vector& x, size_t n) {
      return multiply(weights.at(b + name + ".weight"), bias(b + name), x, n);
    };
    std::vector<Vector> ks, vs;
    for (size_t t = 0; t < xs.size(); ++t) {
      const Vector x = rms_norm(xs[t], weights.at(b + "attn_norm.weight"));
      Vector q = product("attn_q", x, H * D);
      ks.push_back(product("attn_k", x, G * D));
      vs.push_back(product("attn_v", x, G * E));
      rotate(q, t);
      rotate(ks.back(), t);
      Vector y(H * E, 0.0);
      for (size_t h = 0; h < H; ++h) {
        const size_t g = h / (H / G);
        const size_t first = window > 0 && t + 1 > static_cast<size_t>(window)
                                 ? t + 1 - static_cast<size_t>(window)
                                 : 0;
        Vector p;
        double most = -INFINITY, sum = 0;
        for (size_t j = first; j <= t; ++j) {
          double score = 0;
          for (size_t d = 0; d < D; ++d) score += q[h * D + d] * ks[j][g * D + d];
          p.push_back(score / std::sqrt(static_cast<double>(D)));
          most = std::max(most, p.back());
        }
        for (double& v : p) sum += v = std::exp(v - most);
        for (size_t j = first; j <= t; ++j) {
          for (size_t e = 0; e < E; ++e) y[h * E + e] += p[j - first] / sum * vs[j][g * E + e];
        }
      }
      const Vector out = product("attn_output", y, N);
      for (size_t i = 0; i < N; ++i) xs[t][i] += out[i];
    }
    for (Vector& xt : xs) {
      const Vector x = rms_norm(xt, weights.at(b + "ffn_norm.weight"));
      Vector gate = product("ffn_gate", x, F);
      const Vector up = product("ffn_up", x, F);
      for (size_t i = 0; i < F; ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
      const Vector out = product("ffn_down", gate, N);
      for (size_t i = 0; i < N; ++i) xt[i] += out[i];
    }
  }
  std::vector<Vector> logits;
  const auto& head = weights.at(tied ? "token_embd.weight" : "output.weight");
  for (const Vector& x : xs) {
    logits.push_back(multiply(head, nullptr, rms_norm(x, weights.at("output_norm.weight")),
                              static_cast<size_t>(rows())));
  }
  return logits;
}

std::vector<int32_t> some_tokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>((i * 17 + 5) % 39));
  return tokens;
}

}  // namespace wick::test
