#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/log.h"
#include "wick/base/printable.h"
#include "wick/base/sampling/step_sampler.h"
#include "wick/io/output_file.h"
#include "wick/io/split_file.h"
#include "wick/models/tensor_logits.h"
#include "wick/serve/engine.h"
#include "wick/serve/model_digest.h"
#include "wick/serve/stop_text.h"
#include "wick/tensor/ops.h"

namespace wick::serve {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

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
  if (!model.makes_logits()) {
    throw Error(ErrorKind::not_implemented, "session", "this model makes embeddings, not text", {},
                "use `wick embed` or Model.embed");
  }
  cache_ = std::make_unique<nn::KvCache>(model.make_cache(options_.context, options_.cache_dtype));
  decoder_ = decoder_of(*cache_);
  if (logging()) {
    log_line(fmt::format("cache of {} positions in {}, at most {:.1f} MB", options_.context,
                         name(options_.cache_dtype),
                         static_cast<double>(cache_->full_bytes()) / 1e6));
  }
}

std::unique_ptr<models::Decoder> Session::decoder_of(nn::KvCache& cache) const {
  // Logits beyond the tokenizer's vocabulary belong to padding rows of the embedding.
  auto decoder =
      std::make_unique<models::Decoder>(engine_->model(), cache, engine_->tokenizer().vocab_size());
  decoder->set_scales(0, options_.adapter_scales);
  return decoder;
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
  const int64_t before = fed();
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  const auto start = Clock::now();
  const bool done = catch_up(cancelled, cache_->has_states() || runs_all_again() ? before : 0);
  if (count > 0 && logging()) {
    // This is the host's time: a GPU may still run.
    const double seconds = seconds_since(start);
    log_line(fmt::format("ran a prompt of {} tokens in {:.1f} ms, {:.1f} tokens/s", count,
                         seconds * 1e3, static_cast<double>(count) / seconds));
  }
  return done;
}

bool Session::is_long(int64_t length) const {
  const int64_t most = engine_->model().short_context();
  return most > 0 && length > most;
}

bool Session::runs_all_again() const {
  return cache_->length() > 0 && is_long(fed()) != is_long(cache_->length());
}

bool Session::catch_up(const std::function<bool()>& cancelled, int64_t kept) {
  const auto drop_rest = [&] {
    // The beginning of a long sequence isn't the cache of a short one.
    const bool clears = runs_all_again();
    history_.resize(static_cast<size_t>(std::max(cache_->length(), kept)));
    if (clears) clear_cache();
  };
  if (runs_all_again()) clear_cache();
  try {
    while (cache_->length() < fed()) {
      auto rest = std::span<const int32_t>(history_).subspan(static_cast<size_t>(cache_->length()));
      if (static_cast<int64_t>(rest.size()) > options_.batch) {
        rest = rest.first(static_cast<size_t>(options_.batch));
      }
      if (cancelled && cancelled()) {
        drop_rest();
        return false;
      }
      host_logits_ = {};
      const models::BatchInput input{0, rest, options_.adapter_scales, fed()};
      logits_ = engine_->model().forward({&input, 1}, *cache_, models::Logits::last);
    }
  } catch (...) {
    drop_rest();
    throw;
  }
  return true;
}

void Session::newest_logits() {
  const bool all_again = runs_all_again();
  const bool runs_anyway = all_again || (cache_->has_states() && cache_->length() < fed());
  if (!logits_.defined() && cache_->length() > 0 && !runs_anyway) {
    shorten_cache(cache_->length() - 1);
  }
  catch_up({}, cache_->has_states() || all_again ? fed() : 0);
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
  shorten_cache(length);
  logits_ = {};
  host_logits_ = {};
}

void Session::clear_cache() {
  cache_->truncate(0);
  logits_ = {};
  host_logits_ = {};
}

void Session::shorten_cache(int64_t length) {
  const bool shortens = length < cache_->length();
  const bool clears =
      shortens && (cache_->has_states() || is_long(length) != is_long(cache_->length()));
  cache_->truncate(clears ? 0 : length);
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

void Session::save(const std::string& path, std::string_view text) const {
  const Use use(*this);
  SavedSession saved{
      .digest = engine_->digest(),
      .model = std::filesystem::path(engine_->path()).filename().string(),
      .cache_type = std::string(name(options_.cache_dtype)),
      .length = cache_->length(),
      .tokens = history_,
      .adapter_scales = models::scales_of(options_.adapter_scales, engine_->model().adapters()),
      .sampler = sampler_,
      .text = std::string(text)};
  io::require_not_input("save", path, io::paths_of_model(engine_->path()));
  const auto start = Clock::now();
  write_session(path, saved, *cache_, logits_);
  log_file("saved", path, start);
}

/// Logs that the session was saved to a file or loaded from it.
void Session::log_file(std::string_view what, const std::string& path,
                       std::chrono::steady_clock::time_point start) const {
  if (!logging()) return;
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  log_line(fmt::format("{} session {}: {} tokens, {:.1f} MB, {:.1f} ms", what, printable(path),
                       fed(), ignored ? 0 : static_cast<double>(bytes) / 1e6,
                       seconds_since(start) * 1e3));
}

std::string Session::load(const std::string& path) {
  const Use use(*this);
  const auto start = Clock::now();
  SavedSession saved = read_session(path);
  check_fits(saved, path);
  const models::CausalLm& model = engine_->model();
  auto cache =
      std::make_unique<nn::KvCache>(model.make_cache(options_.context, options_.cache_dtype));
  restore_cache(saved, *cache);
  Tensor logits = restored_logits(saved, model.vocab_size());
  if (logits.defined()) logits = logits.to(model.device());
  decoder_ = decoder_of(*cache);  // from here on nothing fails
  cache_ = std::move(cache);
  history_ = std::move(saved.tokens);
  logits_ = std::move(logits);
  host_logits_ = {};
  sampler_ = std::move(saved.sampler);
  log_file("loaded", path, start);
  return std::move(saved.text);
}

/// Errors: a saved session doesn't fit the model or the session's options.
void Session::check_fits(const SavedSession& saved, const std::string& path) const {
  const auto fail = [&](std::string_view what, const std::string& detail, const std::string& rule) {
    throw Error(printable(path), what, detail, rule);
  };
  if (saved.digest != engine_->digest()) {
    fail("session of another model or adapters",
         fmt::format("{} ({})", printable(saved.model), printable(saved.digest, 16)),
         fmt::format("this model is {} ({})", printable(engine_->path()), engine_->digest()));
  }
  const std::string type(name(options_.cache_dtype));
  if (saved.cache_type != type) {
    fail("session with another cache type", printable(saved.cache_type),
         fmt::format("this session's is {}", type));
  }
  if (saved.adapter_scales !=
      models::scales_of(options_.adapter_scales, engine_->model().adapters())) {
    fail("session with other scales of adapters",
         fmt::format("{}", fmt::join(saved.adapter_scales, " ")), "load it with the same");
  }
  if (static_cast<int64_t>(saved.tokens.size()) > context()) {
    fail("session longer than the context",
         fmt::format("{} tokens, {} positions", saved.tokens.size(), context()),
         "ask for a longer context");
  }
  for (const int32_t id : saved.tokens) {
    if (id >= 0 && id < engine_->model().vocab_size()) continue;
    fail("token id out of range", fmt::format("{}", id),
         fmt::format("the vocabulary has {}", engine_->model().vocab_size()));
  }
}

std::optional<text::SamplerOptions> Session::last_sampler() const {
  const Use use(*this, true);
  return sampler_ ? std::optional(sampler_->options) : std::nullopt;
}

/// Returns a function that returns one token per call; `more` says whether it will be called again.
/// Each call updates the draws in sampler_.
std::function<int32_t(bool more)> Session::source() {
  const text::SamplerOptions& options = sampler_->options;
  if (!options.is_basic()) return host_source();
  return [this, started = false](bool more) mutable {
    // The token after the last one of a short sequence makes it a long one, which runs again.
    const bool ends_short = is_long(fed() + 1) && !is_long(fed());
    if (!started) newest_logits();
    SamplerState& state = *sampler_;
    try {
      if (!started) {
        const models::Decoder::Sampling sampling{history_, state.options,
                                                 static_cast<uint32_t>(state.draws)};
        decoder_->start(std::exchange(logits_, {}), {&sampling, 1});
        host_logits_ = {};
        started = true;
      }
      const int32_t token = decoder_->next(more && fed() < context() && !ends_short).front();
      if (ends_short) started = false;
      if (state.options.temperature != 0) ++state.draws;
      return token;
    } catch (const Error& e) {
      const std::string path = printable(engine_->path());
      if (std::string_view(e.what()).find(path) != std::string_view::npos) throw;
      throw Error(e.kind(), path, e.what());
    }
  };
}

/// Like source(), for options that need the host's sampler, which reads the candidates of each step
/// from the device of the logits.
std::function<int32_t(bool more)> Session::host_source() {
  const auto sampler = std::make_shared<StepSampler>(sampler_->options);
  sampler->set_draws(sampler_->draws);
  sampler->set_surprise_limit(sampler_->surprise_limit);
  return [this, sampler](bool) {
    newest_logits();
    // Logits beyond the tokenizer's vocabulary belong to padding rows of the embedding.
    const int64_t vocabulary = engine_->tokenizer().vocab_size();
    const int64_t size = std::min(logits_.elems(), vocabulary);
    int32_t token = 0;
    if (logits_.device() == Device::cpu()) {
      SpanLogits logits(host_logits().first(static_cast<size_t>(size)));
      token = sampler->sample(logits, history_);
    } else {
      models::TensorLogits logits(logits_.reshape({logits_.elems()}).narrow(0, 0, size));
      token = sampler->sample(logits, history_);
    }
    sampler_->draws = sampler->draw_count();
    sampler_->surprise_limit = sampler->surprise_limit();
    return token;
  };
}

namespace {

/// A decoder of the text after some tokens. If they end inside a character, the next tokens
/// complete it.
text::StreamDecoder decoder_after(const text::Tokenizer& tokenizer,
                                  std::span<const int32_t> tokens) {
  // The last four bytes tell whether the text ends inside a character. Ids of padding rows and
  // control tokens have no text.
  constexpr size_t kMostBytes = 4;
  std::vector<int32_t> last;
  for (size_t bytes = 0; bytes < kMostBytes && !tokens.empty();
       tokens = tokens.first(tokens.size() - 1)) {
    const int32_t id = tokens.back();
    if (id < 0 || id >= tokenizer.vocab_size() || tokenizer.is_special(id)) continue;
    bytes += tokenizer.piece(id).size();
    last.push_back(id);
  }
  text::StreamDecoder decoder(tokenizer);
  for (auto id = last.rbegin(); id != last.rend(); ++id) decoder.push(*id);
  return decoder;
}

/// Errors: the options name a token outside the vocabulary.
void check_tokens(const text::SamplerOptions& options, int64_t vocabulary) {
  const auto check = [&](const char* option, int32_t id) {
    if (id >= 0 && id < vocabulary) return;
    throw Error("generate", fmt::format("{}: token id out of range", option), fmt::format("{}", id),
                fmt::format("the vocabulary has {} tokens", vocabulary));
  };
  for (const auto& [id, bias] : options.logit_bias) check("logit_bias", id);
  for (const int32_t id : options.dry_breakers) check("dry_breakers", id);
}

}  // namespace

Generated Session::generate(const GenerateOptions& options) {
  const Use use(*this);
  const text::Tokenizer& tokenizer = engine_->tokenizer();
  check_tokens(options.sampler, tokenizer.vocab_size());
  text::StreamDecoder decoder = decoder_after(tokenizer, history_);
  Generated result;
  StopText stop(options.stop);
  auto emit = [&](std::string_view piece) {
    const std::string shown = stop.push(piece);
    result.text += shown;
    if (options.on_text && !shown.empty()) options.on_text(shown);
  };
  const auto start = Clock::now();
  auto first = start;
  const text::Sampler fresh(options.sampler);  // throws if an option is out of range
  const bool resumes = options.resume && sampler_;
  const bool same_target = resumes && sampler_->options.mirostat == options.sampler.mirostat &&
                           sampler_->options.mirostat_tau == options.sampler.mirostat_tau;
  sampler_ = SamplerState{options.sampler, resumes ? sampler_->draws : 0,
                          same_target ? sampler_->surprise_limit : fresh.surprise_limit()};
  const auto next = source();
  // On return or exception, removes positions from the cache that the decoder computed ahead.
  const std::unique_ptr<nn::KvCache, std::function<void(nn::KvCache*)>> settled(
      cache_.get(), [this](nn::KvCache*) { shorten_cache(fed()); });
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
      if (logging()) log_line(fmt::format("first token after {:.1f} ms", result.first_token_ms));
    }
    if (!options.ignore_end && engine_->is_end_of_generation(token)) {
      result.finish = FinishReason::end_of_generation;
      break;
    }
    result.tokens.push_back(token);
    emit(decoder.push(token));
    if (stop.found()) {
      history_.push_back(token);
      result.finish = FinishReason::stop_string;
      break;
    }
    if (fed() == context()) {  // the cache has no room to run this token
      result.finish = FinishReason::context_full;
      break;
    }
    history_.push_back(token);  // the next step or the next call runs it
  }
  result.seconds = seconds_since(first);
  emit(decoder.finish());
  const std::string rest = stop.finish();
  result.text += rest;
  if (options.on_text && !rest.empty()) options.on_text(rest);
  if (logging()) {
    log_line(fmt::format("generated {} tokens in {:.1f} ms after the first", result.tokens.size(),
                         result.seconds * 1e3));
  }
  return result;
}

}  // namespace wick::serve
