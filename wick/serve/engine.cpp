#include "wick/serve/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/split_file.h"
#include "wick/models/open_model.h"
#include "wick/tensor/ops.h"

namespace wick::serve {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::optional<int32_t> token_key(const io::ModelFile& file, const char* key) {
  if (!file.contains(key)) return std::nullopt;
  return file.get_i32(key);
}

/// The text of Hugging Face's tokenizer.json.
constexpr const char* kTokenizerJson = "tokenizer.huggingface.json";

text::Tokenizer tokenizer_of_json(const io::ModelFile& file) {
  throw Error(ErrorKind::not_implemented, printable(file.path()), "tokenizer.json isn't read", {},
              "need a GGUF file with a vocabulary");
}

/// The tokens that end a text, besides those of the tokenizer.
std::vector<int32_t> end_tokens(const io::ModelFile& file) {
  constexpr const char* kAll = "tokenizer.ggml.eos_token_ids";
  if (file.contains(kAll)) return file.get_i32s(kAll);
  const std::optional<int32_t> one = token_key(file, "tokenizer.ggml.eos_token_id");
  return one ? std::vector{*one} : std::vector<int32_t>{};
}

}  // namespace

text::Tokenizer load_tokenizer(const io::ModelFile& file) {
  if (!file.contains("tokenizer.ggml.model")) {
    if (file.contains(kTokenizerJson)) return tokenizer_of_json(file);
    io::require_whole(file);  // only the first part of a split model has the vocabulary
  }
  text::TokenizerSpec spec;
  spec.model = file.get_string("tokenizer.ggml.model");
  spec.pre = file.get_string("tokenizer.ggml.pre", "default");
  spec.tokens = file.get_strings("tokenizer.ggml.tokens");
  if (file.contains("tokenizer.ggml.token_type")) {
    spec.token_types = file.get_i32s("tokenizer.ggml.token_type");
  }
  if (file.contains("tokenizer.ggml.merges")) {
    spec.merges = file.get_strings("tokenizer.ggml.merges");
  }
  if (file.contains("tokenizer.ggml.scores")) {
    spec.scores = file.get_f32s("tokenizer.ggml.scores");
  }
  spec.bos = token_key(file, "tokenizer.ggml.bos_token_id");
  spec.eos = token_key(file, "tokenizer.ggml.eos_token_id");
  spec.eot = token_key(file, "tokenizer.ggml.eot_token_id");
  spec.unk = token_key(file, "tokenizer.ggml.unknown_token_id");
  spec.pad = token_key(file, "tokenizer.ggml.padding_token_id");
  // Llama files may lack the key. SentencePiece models and Llama 3's pre-tokenizer add a bos token
  // by default.
  const bool pieces = spec.model == "llama";
  spec.add_bos = file.get_bool("tokenizer.ggml.add_bos_token",
                               (pieces || spec.pre == "llama-bpe") && spec.bos);
  spec.add_eos = file.get_bool("tokenizer.ggml.add_eos_token", false);
  spec.add_space_prefix = file.get_bool("tokenizer.ggml.add_space_prefix", pieces);
  try {
    return text::Tokenizer(spec);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());
  }
}

Engine::Engine(std::unique_ptr<models::CausalLm> model, text::Tokenizer tokenizer,
               std::string chat_template, std::vector<int32_t> ends, std::string path)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      chat_template_(std::move(chat_template)),
      ends_(std::move(ends)),
      path_(std::move(path)) {}

std::shared_ptr<const Engine> Engine::load(const std::string& path,
                                           const models::LoadOptions& options) {
  const std::shared_ptr<const io::ModelFile> file = models::open_model(path);
  // Cheap checks come first. The architecture is checked before the tokenizer, because unsupported
  // models may have unsupported vocabularies.
  models::CausalLm::require_supported(*file);
  text::Tokenizer tokenizer = load_tokenizer(*file);
  std::unique_ptr<models::CausalLm> model = models::CausalLm::load(*file, options);
  if (tokenizer.vocab_size() > model->vocab_size()) {
    throw Error(path, "vocabulary larger than the embedding",
                fmt::format("{} tokens, {} rows", tokenizer.vocab_size(), model->vocab_size()));
  }
  std::string chat(file->get_string("tokenizer.chat_template", ""));
  return std::shared_ptr<const Engine>(
      new Engine(std::move(model), std::move(tokenizer), std::move(chat), end_tokens(*file), path));
}

bool Engine::is_end_of_generation(int32_t id) const {
  return tokenizer_.is_end_of_generation(id) ||
         std::find(ends_.begin(), ends_.end(), id) != ends_.end();
}

text::ChatFormat Engine::chat_format() const {
  const auto format = text::detect_chat_format(chat_template_, tokenizer_);
  if (format) return *format;
  throw Error("chat", "unknown chat template", path_,
              "this version supports ChatML and Llama 3 turns; a text prompt works with any model");
}

std::vector<int32_t> Engine::encode_chat(std::span<const text::ChatMessage> messages) const {
  const text::ChatOptions options{.default_system = text::default_system_message(chat_template_)};
  return text::encode_chat(tokenizer_, chat_format(), messages, options);
}

std::vector<int32_t> Engine::prompt_or_start(std::vector<int32_t> tokens) const {
  if (!tokens.empty()) return tokens;
  const std::optional<int32_t> first = tokenizer_.bos() ? tokenizer_.bos() : tokenizer_.eos();
  if (!first) throw Error("generate", "empty prompt", path_, "this model has no start token");
  return {*first};
}

struct Session::Busy {
  // The thread that is in a call; a default-constructed id between calls.
  std::atomic<std::thread::id> caller{};
};

class Session::Use {
 public:
  /// `reads`: the call changes nothing, so a callback may make it during a call on the same thread.
  explicit Use(const Session& session, bool reads = false) : busy_(session.busy_.get()) {
    if (busy_ == nullptr) throw Error(ErrorKind::runtime, "session", "was moved from");
    std::thread::id caller{};
    const std::thread::id own = std::this_thread::get_id();
    if (busy_->caller.compare_exchange_strong(caller, own, std::memory_order_acquire)) return;
    busy_ = nullptr;
    if (reads && caller == own) return;
    throw Error(ErrorKind::runtime, "session", "busy",
                caller == own ? "called from its own callback" : "another thread runs it",
                "one call at a time");
  }
  ~Use() {
    if (busy_ != nullptr) busy_->caller.store({}, std::memory_order_release);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Busy* busy_;
};

Session::Session(std::shared_ptr<const Engine> engine, const SessionOptions& options)
    : busy_(std::make_unique<Busy>()), engine_(std::move(engine)), options_(options) {
  if (engine_ == nullptr) throw Error("session", "no engine", {}, "need a loaded one");
  if (options_.context == 0) options_.context = engine_->model().context_length();
  if (options_.context < 1 || options_.batch < 1) {
    throw Error("session", "options out of range",
                fmt::format("context {}, batch {}", options_.context, options_.batch),
                "need at least 1");
  }
  const models::CausalLm& model = engine_->model();
  cache_ = std::make_unique<nn::KvCache>(model.make_cache(options_.context, options_.cache_dtype));
  // Logits beyond the tokenizer's vocabulary belong to padding rows of the embedding.
  decoder_ = std::make_unique<models::Decoder>(model, *cache_, engine_->tokenizer().vocab_size());
}

Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept = default;
Session::~Session() = default;

int64_t Session::context() const {
  if (busy_ == nullptr) throw Error(ErrorKind::runtime, "session", "was moved from");
  return options_.context;
}

int64_t Session::length() const {
  const Use use(*this, true);
  return fed();
}

const std::vector<int32_t>& Session::tokens() const {
  const Use use(*this, true);
  return history_;
}

bool Session::feed(std::span<const int32_t> tokens, const std::function<bool()>& cancelled) {
  const Use use(*this);
  return add(tokens, cancelled);
}

bool Session::add(std::span<const int32_t> tokens, const std::function<bool()>& cancelled) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t left = context() - fed();
  if (count > left) {
    throw Error("session", "prompt longer than the context",
                fmt::format("{} tokens, {} of {} positions left", count, left, context()),
                "shorten it or ask for a longer context");
  }
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  return catch_up(cancelled);
}

bool Session::catch_up(const std::function<bool()>& cancelled) {
  try {
    while (cache_->length() < fed()) {
      auto rest = std::span<const int32_t>(history_).subspan(static_cast<size_t>(cache_->length()));
      if (static_cast<int64_t>(rest.size()) > options_.batch) {
        rest = rest.first(static_cast<size_t>(options_.batch));
      }
      if (cancelled && cancelled()) {
        history_.resize(static_cast<size_t>(cache_->length()));
        return false;
      }
      host_logits_ = {};
      logits_ = engine_->model().forward(rest, *cache_, models::Logits::last);
    }
  } catch (...) {
    history_.resize(static_cast<size_t>(cache_->length()));  // drops tokens that haven't been run
    throw;
  }
  return true;
}

void Session::newest_logits() {
  if (!logits_.defined() && cache_->length() > 0) cache_->truncate(cache_->length() - 1);
  catch_up({});
  if (!logits_.defined()) throw Error(ErrorKind::runtime, "session", "nothing was fed yet");
}

std::span<const float> Session::logits() {
  const Use use(*this);
  return host_logits();
}

std::span<const float> Session::host_logits() {
  newest_logits();
  if (!host_logits_.defined()) host_logits_ = logits_.to(Device::cpu());
  const auto* data = static_cast<const float*>(host_logits_.storage()->data());
  return {data + host_logits_.layout().offset(), static_cast<size_t>(host_logits_.elems())};
}

void Session::truncate(int64_t length) {
  const Use use(*this);
  forget(length);
}

void Session::forget(int64_t length) {
  length = std::clamp<int64_t>(length, 0, fed());
  history_.resize(static_cast<size_t>(length));
  if (cache_->length() <= length) return;
  cache_->truncate(length);
  logits_ = {};
  host_logits_ = {};
}

bool Session::feed_whole(std::span<const int32_t> tokens, const std::function<bool()>& cancelled) {
  const Use use(*this);
  if (static_cast<int64_t>(tokens.size()) > context()) {
    throw Error("session", "prompt longer than the context",
                fmt::format("{} tokens, {} positions", tokens.size(), context()),
                "shorten it or ask for a longer context");
  }
  const size_t most =
      std::min({history_.size(), static_cast<size_t>(cache_->length()), tokens.size()});
  size_t same = 0;
  while (same < most && history_[same] == tokens[same]) ++same;
  // The last token always runs again, because generation starts from its logits.
  if (same == tokens.size() && same > 0) --same;
  forget(static_cast<int64_t>(same));
  return add(tokens.subspan(same), cancelled);
}

/// Returns a function that returns one token per call; `more` says whether it will be called again.
std::function<int32_t(bool more)> Session::source(const text::SamplerOptions& options) {
  const text::Sampler checked(options);  // throws if an option is out of range
  return [this, options, started = false](bool more) mutable {
    if (!started) newest_logits();
    try {
      if (!started) {
        const models::Decoder::Sampling sampling{history_, options};
        decoder_->start(std::exchange(logits_, {}), {&sampling, 1});
        host_logits_ = {};
        started = true;
      }
      return decoder_->next(more && fed() < context()).front();
    } catch (const Error& e) {
      const std::string path = printable(engine_->path());
      if (std::string_view(e.what()).find(path) != std::string_view::npos) throw;
      throw Error(e.kind(), path, e.what());
    }
  };
}

Generated Session::generate(const GenerateOptions& options) {
  const Use use(*this);
  const text::Tokenizer& tokenizer = engine_->tokenizer();
  text::StreamDecoder decoder(tokenizer);
  Generated result;
  auto emit = [&](std::string_view piece) {
    result.text += piece;
    if (options.on_text && !piece.empty()) options.on_text(piece);
  };
  const auto start = Clock::now();
  auto first = start;
  const auto next = source(options.sampler);
  // On return or exception, removes positions from the cache that the decoder computed ahead.
  const std::unique_ptr<nn::KvCache, std::function<void(nn::KvCache*)>> settled(
      cache_.get(), [this](nn::KvCache* cache) { cache->truncate(fed()); });
  for (int64_t n = 0;; ++n) {
    if (options.max_tokens >= 0 && n >= options.max_tokens) break;
    if (options.cancelled && options.cancelled()) {
      result.finish = FinishReason::cancelled;
      break;
    }
    const int32_t token = next(options.max_tokens < 0 || n + 1 < options.max_tokens);
    if (n == 0) {
      first = Clock::now();
      result.first_token_ms = std::chrono::duration<double, std::milli>(first - start).count();
    }
    if (!options.ignore_end && engine_->is_end_of_generation(token)) {
      result.finish = FinishReason::end_of_generation;
      break;
    }
    result.tokens.push_back(token);
    emit(decoder.push(token));
    if (fed() == context()) {  // the cache has no room to run this token
      result.finish = FinishReason::context_full;
      break;
    }
    history_.push_back(token);  // the next step or the next call runs it
  }
  result.seconds = seconds_since(first);
  emit(decoder.finish());
  return result;
}

}  // namespace wick::serve
