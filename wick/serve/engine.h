#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/models/causal_lm.h"
#include "wick/models/decoder.h"
#include "wick/serve/sampling_defaults.h"
#include "wick/serve/session_file.h"
#include "wick/text/chat.h"
#include "wick/text/sampler.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"

namespace wick::serve {

/// Loads the tokenizer of a model. Errors: the vocabulary is missing or malformed.
WICK_API text::Tokenizer load_tokenizer(const io::ModelFile& file);
/// Loads the tokenizer of a model (models::open_model) or of a tokenizer.json, whose first bytes
/// tell them apart. A model may be named as in models::find_model. Errors: the file can't be read;
/// those of load_tokenizer() and text::Tokenizer::from_json().
WICK_API text::Tokenizer open_tokenizer(const std::string& name);

/// A model with its tokenizer. Immutable after loading; any number of sessions may share it.
class WICK_API Engine {
 public:
  /// Loads a file or a folder (models::open_model). Errors: any error in it, by name.
  static std::shared_ptr<const Engine> load(const std::string& name,
                                            const models::LoadOptions& options = {});

  const models::CausalLm& model() const { return *model_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  /// The file's chat template; empty if it has none.
  const std::string& chat_template() const { return chat_template_; }
  /// The sampling options that the file recommends. generate() doesn't use them by itself.
  const SamplingDefaults& sampling() const { return sampling_; }
  /// Whether `id` ends a text: one of the file's end tokens, or an end of the tokenizer.
  bool is_end_of_generation(int32_t id) const;
  /// The template that renders conversations: the file's, or one by its vocabulary. Errors: the
  /// template is malformed; the file has none, and its vocabulary no known markers.
  text::ChatTemplate chat() const;
  /// Encodes a conversation to token ids, which end with the opening of an answer unless `options`
  /// say otherwise. Errors: those of chat() and text::ChatTemplate::encode.
  std::vector<int32_t> encode_chat(std::span<const text::ChatMessage> messages,
                                   const text::ChatOptions& options = {}) const;
  /// Returns the tokens of a prompt, or the start token if there are none, because a model needs at
  /// least one token. Errors: the prompt is empty and the vocabulary has no start token.
  std::vector<int32_t> prompt_or_start(std::vector<int32_t> tokens) const;
  /// The path of the model.
  const std::string& path() const { return path_; }
  /// model_digest() of the model with its adapters.
  const std::string& digest() const { return digest_; }

 private:
  Engine(std::unique_ptr<models::CausalLm> model, text::Tokenizer tokenizer,
         const io::ModelFile& file, std::string path, std::string digest);

  std::unique_ptr<models::CausalLm> model_;
  text::Tokenizer tokenizer_;
  std::string chat_template_;
  std::vector<int32_t> ends_;
  SamplingDefaults sampling_;
  std::string path_, digest_;
};

/// The size of a session's cache, and the batch size of prompts.
struct SessionOptions {
  int64_t context = 0;             ///< positions in the cache; 0: the model's trained context
  DType cache_dtype = DType::f16;  ///< one of dtypes::kCaches
  int64_t batch = 512;             ///< prompt tokens per forward pass
  std::vector<float> adapter_scales = {};  ///< of the model's adapters; missing ones are 1
};

/// Sampling and stopping options of generate().
struct GenerateOptions {
  int64_t max_tokens = -1;  ///< limit of generated tokens; negative: no limit
  text::SamplerOptions sampler = {};
  bool ignore_end = false;  ///< continue after end-of-generation tokens
  /// Generation ends when the text contains one of these. The text ends before it; the tokens
  /// include those of the stop string.
  std::vector<std::string> stop = {};
  /// Goes on with the draws of the last call, or of the loaded session, so that two calls with the
  /// same sampling options generate what one would. With another mirostat version or target,
  /// mirostat's bound starts anew.
  bool resume = false;
  /// Called with each new piece of text, in whole UTF-8 characters. It must not run or change the
  /// session.
  std::function<void(std::string_view)> on_text = {};
  /// Called before each token; generation ends if it returns true.
  std::function<bool()> cancelled = {};
};

enum class FinishReason : uint8_t {
  end_of_generation,
  max_tokens,
  context_full,
  cancelled,
  stop_string,
};

/// The result of Session::generate.
struct Generated {
  std::vector<int32_t> tokens;  ///< without the end-of-generation token
  std::string text;
  FinishReason finish = FinishReason::max_tokens;
  double first_token_ms = 0;  ///< time from the call to the first sampled token
  double seconds = 0;         ///< time from the first sampled token to the last
};

/// One conversation with a model: its KV cache and the newest logits. During a call, any other call
/// throws, whether made by another thread or by a callback. Callbacks may only call length(),
/// tokens() and context().
class WICK_API Session {
 public:
  /// Errors: no engine; the context doesn't fit in memory; batch is below 1.
  Session(std::shared_ptr<const Engine> engine, const SessionOptions& options = {});
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  int64_t context() const;
  const Engine& engine() const { return *engine_; }
  /// The number of tokens fed and generated so far.
  int64_t length() const;
  /// All tokens fed and generated so far. Valid until the session runs again.
  const std::vector<int32_t>& tokens() const;

  /// Runs tokens through the model in batches. Errors: the tokens exceed the rest of the context
  /// (checked before anything runs). `cancelled` is called between batches; if it returns true,
  /// feed stops and returns false.
  bool feed(std::span<const int32_t> tokens, const std::function<bool()>& cancelled = {});
  /// Continues after the tokens fed so far. If they end inside a UTF-8 character, the text begins
  /// with this character. Errors: nothing has been fed yet; an option of the sampler is out of
  /// range or names a token outside the vocabulary.
  Generated generate(const GenerateOptions& options);
  /// The logits of the newest token, f32 [vocabulary] on the host, valid until the session runs
  /// again. Runs tokens that haven't been run yet. Errors: nothing has been fed yet.
  std::span<const float> logits();
  /// Drops all tokens from `length` on.
  void truncate(int64_t length);
  /// Replaces all tokens by `tokens`; runs only those after the common prefix.
  bool feed_whole(std::span<const int32_t> tokens, const std::function<bool()>& cancelled = {});

  /// Writes the session to a file: its tokens, cache, newest logits and sampler, and a text of the
  /// caller. The file appears complete or not at all. Errors: it can't be written; it is a file of
  /// the model.
  void save(const std::string& path, std::string_view text = {}) const;
  /// Replaces the session by one that was saved, on any device, and returns the text that was saved
  /// with it. Errors: the file isn't a session, is damaged, or is of another model, cache type or
  /// adapters; the context is too short. The session is unchanged then.
  std::string load(const std::string& path);
  /// The options of the last generate(), or of the loaded session's; nothing before the first.
  std::optional<text::SamplerOptions> last_sampler() const;

 private:
  class Use;    // held during a call
  struct Busy;  // the thread that is in a call

  int64_t fed() const { return static_cast<int64_t>(history_.size()); }
  bool add(std::span<const int32_t> tokens, const std::function<bool()>& cancelled);
  void forget(int64_t length);
  std::span<const float> host_logits();
  /// Runs the tokens of history_ that the cache doesn't hold yet. If it is cancelled or fails, it
  /// drops those that haven't been run, except the first `kept`.
  bool catch_up(const std::function<bool()>& cancelled, int64_t kept);
  /// Shortens the cache to `length` positions. Recurrent states can't be shortened, and LongRoPE's
  /// short sequences have other angles than long ones; then the cache is cleared, and catch_up runs
  /// all tokens again.
  void shorten_cache(int64_t length);
  void clear_cache();
  /// LongRoPE: whether a sequence of `length` tokens has the angles of long ones.
  bool is_long(int64_t length) const;
  /// Whether the cached positions can't be continued to fed() tokens.
  bool runs_all_again() const;
  void newest_logits();
  std::function<int32_t(bool more)> source();
  std::function<int32_t(bool more)> host_source();
  std::unique_ptr<models::Decoder> decoder_of(nn::KvCache& cache) const;
  void check_fits(const SavedSession& saved, const std::string& path) const;
  void log_file(std::string_view what, const std::string& path,
                std::chrono::steady_clock::time_point start) const;

  std::unique_ptr<Busy> busy_;  // null after a move
  std::shared_ptr<const Engine> engine_;
  SessionOptions options_;
  // Allocated separately, because the decoder refers to the cache and sessions are movable.
  std::unique_ptr<nn::KvCache> cache_;
  std::unique_ptr<models::Decoder> decoder_;
  std::vector<int32_t> history_;
  Tensor logits_;                        // logits of the last cached token; undefined if not known
  Tensor host_logits_;                   // logits_ on the host; undefined until requested
  std::optional<SamplerState> sampler_;  // after the newest token; nothing before the first
};

/// Perplexity scores of a text, in nats.
struct Perplexity {
  std::vector<double> nll;  ///< negative log-likelihood of each scored token
  int64_t tokens = 0;       ///< number of tokens in the text
  double mean_nll = 0;
};

/// Computes the negative log-likelihood of every token except the first of each chunk of `context`
/// tokens. Chunks are independent; if texts of the vocabulary begin with a bos token, it replaces
/// the first token of each chunk but the first. Adapters have the scales of the options. Errors:
/// there are fewer than two tokens; the context is below 2; a token is outside the vocabulary; a
/// score isn't finite. Stops if `progress` returns false.
WICK_API Perplexity perplexity(const Engine& engine, std::span<const int32_t> tokens,
                               const SessionOptions& options,
                               const std::function<bool(int64_t done)>& progress = {});

}  // namespace wick::serve
