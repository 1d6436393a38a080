#pragma once

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
#include "wick/text/chat.h"
#include "wick/text/sampler.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"

namespace wick::serve {

/// The tokenizer a GGUF file describes. Errors: no or a malformed vocabulary.
WICK_API text::Tokenizer load_tokenizer(const io::Gguf& file);

/// A model with its tokenizer. Immutable once loaded; any number of sessions may share it.
class WICK_API Engine {
 public:
  /// Errors: everything wrong with the file, by name.
  static std::shared_ptr<const Engine> load(const std::string& path,
                                            const models::LoadOptions& options = {});

  const models::CausalLm& model() const { return *model_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  /// The file's chat template, empty if it has none.
  const std::string& chat_template() const { return chat_template_; }
  /// The turns that the file's chat template is written for, or its vocabulary has markers of.
  /// Errors: none that is known.
  text::ChatFormat chat_format() const;
  /// A conversation as token ids, ending with the opening of an answer: in those turns, with the
  /// system message that the template puts in front where the conversation brings none. Errors:
  /// those of chat_format() and text::encode_chat.
  std::vector<int32_t> encode_chat(std::span<const text::ChatMessage> messages) const;
  /// The tokens to start with for a prompt: a model continues an empty one from its own start
  /// token. Errors: an empty one, and the vocabulary has no such token.
  std::vector<int32_t> prompt_or_start(std::vector<int32_t> tokens) const;
  /// The path given to load().
  const std::string& path() const { return path_; }

 private:
  Engine(std::unique_ptr<models::CausalLm> model, text::Tokenizer tokenizer,
         std::string chat_template, std::string path);

  std::unique_ptr<models::CausalLm> model_;
  text::Tokenizer tokenizer_;
  std::string chat_template_;
  std::string path_;
};

/// The size of a session's cache, and how prompts are run.
struct SessionOptions {
  int64_t context = 0;             ///< positions in the cache; 0: what the model was trained for
  DType cache_dtype = DType::f16;  ///< f16, bf16 or f32
  int64_t batch = 512;             ///< prompt tokens per forward pass
};

/// How a text is continued, and when it ends.
struct GenerateOptions {
  int64_t max_tokens = -1;  ///< < 0: until the model ends its answer or the context is full
  text::SamplerOptions sampler = {};
  bool ignore_end = false;  ///< go on past end-of-generation tokens
  /// Called with each new piece of text (whole UTF-8 characters). Must not run or change the
  /// session.
  std::function<void(std::string_view)> on_text = {};
  /// Called before each token; true ends the generation.
  std::function<bool()> cancelled = {};
};

enum class FinishReason : uint8_t { end_of_generation, max_tokens, context_full, cancelled };

/// Result of Session::generate.
struct Generated {
  std::vector<int32_t> tokens;  ///< without the end-of-generation token
  std::string text;
  FinishReason finish = FinishReason::max_tokens;
  double first_token_ms = 0;  ///< from the call to the first sampled token
  double seconds = 0;         ///< from the first sampled token to the last
};

/// One conversation with a model: its KV cache and the logits of the newest position. While a call
/// runs, every other call throws, whether made by another thread or by a callback. Only length(),
/// tokens() and context() may be called by a callback.
class WICK_API Session {
 public:
  /// Errors: no engine, a context longer than memory allows, batch below 1.
  Session(std::shared_ptr<const Engine> engine, const SessionOptions& options = {});
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  int64_t context() const;
  /// Tokens fed and generated so far.
  int64_t length() const;
  /// Valid until the session runs again.
  const std::vector<int32_t>& tokens() const;

  /// Runs tokens through the model in batches. Errors: more than the context has left, before
  /// anything is run. `cancelled`, asked between batches, ends it early (returns false).
  bool feed(std::span<const int32_t> tokens, const std::function<bool()>& cancelled = {});
  /// Continues from what was fed. Errors: nothing fed yet.
  Generated generate(const GenerateOptions& options);
  /// The logits after the newest token, f32 [vocabulary] on the host, valid until the session runs
  /// again. Runs what hasn't been run yet. Errors: nothing fed yet.
  std::span<const float> logits();
  /// Forgets all tokens from `length` on.
  void truncate(int64_t length);
  /// Replaces all tokens by `tokens`; runs only those behind the prefix that both have.
  bool feed_whole(std::span<const int32_t> tokens, const std::function<bool()>& cancelled = {});

 private:
  class Use;    // held during a call
  struct Busy;  // which thread is in a call

  int64_t fed() const { return static_cast<int64_t>(history_.size()); }
  bool add(std::span<const int32_t> tokens, const std::function<bool()>& cancelled);
  void forget(int64_t length);
  std::span<const float> host_logits();
  /// Runs the tokens of the history that the cache doesn't hold yet.
  bool catch_up(const std::function<bool()>& cancelled);
  void newest_logits();
  std::function<int32_t(bool more)> source(const text::SamplerOptions& options);

  std::unique_ptr<Busy> busy_;  // null: moved from
  std::shared_ptr<const Engine> engine_;
  SessionOptions options_;
  // On the heap: the decoder refers to it, and sessions are movable.
  std::unique_ptr<nn::KvCache> cache_;
  std::unique_ptr<models::Decoder> decoder_;
  std::vector<int32_t> history_;
  Tensor logits_;       // after the last token of the cache; undefined if they aren't known
  Tensor host_logits_;  // the same on the host; undefined until asked for
};

/// Scores of a text, in nats.
struct Perplexity {
  std::vector<double> nll;  ///< negative log-likelihood of each scored token
  int64_t tokens = 0;       ///< in the text
  double mean_nll = 0;
};

/// Negative log-likelihood of every token but the first of each chunk of `context` tokens. Chunks
/// are run independently. Errors: fewer than two tokens, a context below 2, a token outside the
/// vocabulary, a score that isn't finite.
WICK_API Perplexity perplexity(const Engine& engine, std::span<const int32_t> tokens,
                               const SessionOptions& options,
                               const std::function<bool(int64_t done)>& progress = {});

}  // namespace wick::serve
