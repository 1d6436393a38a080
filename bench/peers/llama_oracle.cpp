// The numeric oracle of wick's model tests: a program that uses llama.cpp's public C interface.
//
//   llama_oracle nll    -m MODEL -f FILE... [--ctx N]   per-token NLL of each text
//   llama_oracle greedy -m MODEL -f FILE... [-n N]      greedy continuation of each prompt
//   llama_oracle tokenize -m MODEL -f FILE...           token ids of each text
//
// Its settings are those on which independent implementations agree: no flash attention, and an F32
// KV cache. Each text is processed alone with an empty cache and must fit into the context. Every
// score is therefore that of a token given all tokens before it, without sliding chunks or unscored
// halves. The results are written to stdout as one JSON document.
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string mode;
  std::string model;
  std::vector<std::string> files;
  std::vector<llama_token> ids;
  int ctx = 2048;
  int threads = 1;
  int count = 64;
  bool kv_f16 = false;
  bool flash = false;
  bool repack = true;
  bool parse_special = false;
};

constexpr int kBatch = 512;

constexpr char kUsage[] =
    "usage: llama_oracle nll|greedy|tokenize -m MODEL [-f FILE]... [--ids 1,2,3] [options]\n"
    "  -f FILE       a text or prompt; may be given several times; each is evaluated alone\n"
    "  --ids LIST    comma-separated token ids instead of a text\n"
    "  --ctx N       context size, at least the length of each text (2048)\n"
    "  -n N          greedy: tokens to generate (64)\n"
    "  -t N          threads (1)\n"
    "  --kv f32|f16  type of the KV cache (f32)\n"
    "  --flash       flash attention on (off)\n"
    "  --no-repack   do not repack quantised weights for the CPU\n"
    "  --special     parse special tokens such as <|im_start|> in the text\n";

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::vector<llama_token> parse_ids(const std::string& list) {
  std::vector<llama_token> ids;
  for (const char* p = list.c_str(); *p != '\0';) {
    char* end = nullptr;
    ids.push_back(static_cast<llama_token>(std::strtol(p, &end, 10)));
    if (end == p) fail("--ids: not a list of numbers: " + list);
    p = *end == ',' ? end + 1 : end;
  }
  return ids;
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc < 2) fail("a mode is needed: nll, greedy or tokenize");
  options.mode = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(name + ": a value is needed");
      return argv[++i];
    };
    if (name == "-m")
      options.model = value();
    else if (name == "-f")
      options.files.push_back(value());
    else if (name == "--ids")
      options.ids = parse_ids(value());
    else if (name == "--ctx")
      options.ctx = std::atoi(value().c_str());
    else if (name == "-n")
      options.count = std::atoi(value().c_str());
    else if (name == "-t")
      options.threads = std::atoi(value().c_str());
    else if (name == "--kv")
      options.kv_f16 = value() == "f16";
    else if (name == "--flash")
      options.flash = true;
    else if (name == "--no-repack")
      options.repack = false;
    else if (name == "--special")
      options.parse_special = true;
    else
      fail("unknown option " + name);
  }
  if (options.model.empty() || (options.files.empty() && options.ids.empty())) {
    fail("-m and one of -f, --ids are needed");
  }
  return options;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Oracle {
 public:
  explicit Oracle(const Options& options) : options_(options) {
    llama_log_set(
        [](ggml_log_level level, const char* text, void*) {
          if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
        },
        nullptr);
    llama_backend_init();
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    model_params.use_extra_bufts = options.repack;
    model_params.vocab_only = options.mode == "tokenize";
    model_ = llama_model_load_from_file(options.model.c_str(), model_params);
    if (model_ == nullptr) fail("cannot load " + options.model);
    vocab_ = llama_model_get_vocab(model_);
    vocab_size_ = llama_vocab_n_tokens(vocab_);
    if (model_params.vocab_only) return;

    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(options.ctx);
    params.n_batch = kBatch;
    params.n_ubatch = kBatch;
    params.n_threads = options.threads;
    params.n_threads_batch = options.threads;
    params.flash_attn_type =
        options.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = options.kv_f16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
    params.type_v = params.type_k;
    context_ = llama_init_from_model(model_, params);
    if (context_ == nullptr) fail("cannot make a context of " + std::to_string(options.ctx));
  }
  ~Oracle() {
    if (context_ != nullptr) llama_free(context_);
    if (model_ != nullptr) llama_model_free(model_);
    llama_backend_free();
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  std::vector<llama_token> tokenize(const std::string& text) const {
    std::vector<llama_token> ids(text.size() + 8);
    const int count =
        llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), ids.data(),
                       static_cast<int32_t>(ids.size()), true, options_.parse_special);
    if (count < 0) fail("the text cannot be tokenized");
    ids.resize(static_cast<size_t>(count));
    return ids;
  }

  /// Returns -log p(ids[i] | ids[0..i)) for i ≥ 1, with natural logarithms.
  std::vector<double> nll(const std::vector<llama_token>& ids) {
    clear();
    std::vector<double> result;
    for (size_t first = 0; first < ids.size(); first += kBatch) {
      const size_t count = std::min<size_t>(kBatch, ids.size() - first);
      decode(&ids[first], count, first, true);
      for (size_t i = 0; i < count && first + i + 1 < ids.size(); ++i) {
        const float* logits = llama_get_logits_ith(context_, static_cast<int32_t>(i));
        result.push_back(log_sum_exp(logits) - static_cast<double>(logits[ids[first + i + 1]]));
      }
    }
    return result;
  }

  struct Step {
    llama_token id;
    llama_token second;
    float gap;
  };

  /// Returns the greedy continuation, which ends with the end-of-generation token or after
  /// options.count steps.
  std::vector<Step> greedy(const std::vector<llama_token>& prompt) {
    clear();
    for (size_t first = 0; first < prompt.size(); first += kBatch) {
      decode(&prompt[first], std::min<size_t>(kBatch, prompt.size() - first), first, false);
    }
    std::vector<Step> steps;
    size_t position = prompt.size();
    while (static_cast<int>(steps.size()) < options_.count) {
      steps.push_back(top_two(llama_get_logits_ith(context_, -1)));
      if (llama_vocab_is_eog(vocab_, steps.back().id)) break;
      if (position >= static_cast<size_t>(options_.ctx)) break;
      decode(&steps.back().id, 1, position++, false);
    }
    return steps;
  }

  std::string piece(llama_token id) const {
    std::string text(256, '\0');
    const int count = llama_token_to_piece(vocab_, id, text.data(), 256, 0, true);
    text.resize(static_cast<size_t>(std::max(count, 0)));
    return text;
  }

  bool is_end(llama_token id) const { return llama_vocab_is_eog(vocab_, id); }

 private:
  void clear() { llama_memory_clear(llama_get_memory(context_), true); }

  void decode(const llama_token* ids, size_t count, size_t position, bool all_logits) {
    if (position + count > static_cast<size_t>(options_.ctx)) {
      fail("the text does not fit in the context of " + std::to_string(options_.ctx));
    }
    llama_batch batch = llama_batch_init(static_cast<int32_t>(count), 0, 1);
    batch.n_tokens = static_cast<int32_t>(count);
    for (size_t i = 0; i < count; ++i) {
      batch.token[i] = ids[i];
      batch.pos[i] = static_cast<llama_pos>(position + i);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = all_logits || i + 1 == count ? 1 : 0;
    }
    const int status = llama_decode(context_, batch);
    llama_batch_free(batch);
    if (status != 0) fail("llama_decode returned " + std::to_string(status));
  }

  double log_sum_exp(const float* logits) const {
    const double top = *std::max_element(logits, logits + vocab_size_);
    double sum = 0;
    for (int i = 0; i < vocab_size_; ++i) sum += std::exp(static_cast<double>(logits[i]) - top);
    return top + std::log(sum);
  }

  Step top_two(const float* logits) const {
    int best = 0;
    int second = -1;
    for (int i = 1; i < vocab_size_; ++i) {
      if (logits[i] > logits[best]) {
        second = best;
        best = i;
      } else if (second < 0 || logits[i] > logits[second]) {
        second = i;
      }
    }
    return {best, second, logits[best] - logits[second]};
  }

  Options options_;
  llama_model* model_ = nullptr;
  const llama_vocab* vocab_ = nullptr;
  llama_context* context_ = nullptr;
  int vocab_size_ = 0;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;  // bytes of incomplete characters stay unchanged: readers decode with "replace"
    }
  }
  return out + "\"";
}

template <class List, class Print>
void print_list(const char* key, const List& list, Print print) {
  std::printf("\"%s\": [", key);
  const char* separator = "";
  for (const auto& item : list) {
    std::fputs(separator, stdout);
    print(item);
    separator = ", ";
  }
  std::printf("]");
}

void print_result(Oracle& oracle, const Options& options, const std::vector<llama_token>& ids) {
  const auto print_id = [](llama_token id) { std::printf("%d", id); };
  std::printf("{");
  if (options.mode == "greedy") {
    const auto steps = oracle.greedy(ids);
    std::string text;
    for (const auto& step : steps) text += oracle.piece(step.id);
    print_list("tokens", steps, [](const Oracle::Step& s) { std::printf("%d", s.id); });
    std::printf(", ");
    print_list("second", steps, [](const Oracle::Step& s) { std::printf("%d", s.second); });
    std::printf(", ");
    print_list("gap", steps, [](const Oracle::Step& s) { std::printf("%.6g", double{s.gap}); });
    const bool ended = !steps.empty() && oracle.is_end(steps.back().id);
    std::printf(", \"ended\": %s, \"text\": %s, ", ended ? "true" : "false", quoted(text).c_str());
  } else if (options.mode == "nll") {
    const auto nll = oracle.nll(ids);
    double sum = 0;
    for (const double value : nll) sum += value;
    print_list("nll", nll, [](double value) { std::printf("%.9g", value); });
    const double mean = nll.empty() ? 0.0 : sum / static_cast<double>(nll.size());
    std::printf(", \"mean_nll\": %.9g, ", mean);
  }
  print_list(options.mode == "greedy" ? "prompt" : "tokens", ids, print_id);
  std::printf("}");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && (!std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h"))) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const Options options = parse(argc, argv);
  if (options.mode != "nll" && options.mode != "greedy" && options.mode != "tokenize") {
    fail("unknown mode " + options.mode);
  }
  Oracle oracle(options);
  std::vector<std::vector<llama_token>> inputs;
  if (!options.ids.empty()) inputs.push_back(options.ids);
  for (const auto& file : options.files) inputs.push_back(oracle.tokenize(read_file(file)));

  std::printf("{\"results\": [");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) std::printf(",\n");
    if (inputs[i].empty()) fail("an empty text");
    print_result(oracle, options, inputs[i]);
  }
  std::printf("]}\n");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "llama_oracle: %s\n", error.what());
  return 2;
}
