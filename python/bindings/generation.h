#pragma once

// What Model and Session share: prompts, options of generate and stream, and generation itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/binding.h"
#include "python/bindings/text_stream.h"
#include "wick/serve/engine.h"

// The options of generate and stream; those of Model also have `context`.
#define WICK_SAMPLING                                                                              \
  "max_tokens: int = 256, temperature: float = 0.8, top_k: int = 40, top_p: float = 0.95, min_p: " \
  "float = 0.05, repetition_penalty: float = 1.0, presence_penalty: float = 0.0, "                 \
  "frequency_penalty: float = 0.0, penalty_window: int = 64, seed: int = 0, ignore_end: bool = "   \
  "False, stop: "                                                                                  \
  "collections.abc.Sequence[str] = (), typical_p: float = 1.0, top_n_sigma: float = 0.0, "         \
  "xtc_probability: float = 0.0, xtc_threshold: float = 0.1, dynamic_range: float = 0.0, "         \
  "dynamic_exponent: float = 1.0, dry_multiplier: float = 0.0, dry_base: float = 1.75, "           \
  "dry_allowed_length: int = 2, dry_window: int = -1, dry_breakers: "                              \
  "collections.abc.Sequence[int] = (), mirostat: int = 0, mirostat_tau: float = 5.0, "             \
  "mirostat_eta: float = 0.1, logit_bias: collections.abc.Mapping[int, float] = {}, samplers: "    \
  "collections.abc.Sequence[str] | None = None, resume: bool = False"
#define WICK_CONVERSATION "collections.abc.Sequence[collections.abc.Mapping[str, object]]"
#define WICK_PROMPT "str | collections.abc.Sequence[int] | " WICK_CONVERSATION

namespace wick::python {

/// Whether a Python signal handler raised an exception, as Ctrl-C does. Takes the GIL.
bool interrupted();

/// Reads the options in WICK_SAMPLING, and `context` and `scales` if they aren't null.
serve::GenerateOptions read_options(const char* function, const nb::kwargs& named, int64_t* context,
                                    std::vector<float>* scales = nullptr);

/// Converts text, token ids or a conversation to token ids. Errors: a text has certainly more than
/// `most` tokens.
std::vector<int32_t> prompt_tokens(const serve::Engine& engine, nb::handle prompt,
                                   std::optional<int64_t> most = std::nullopt);

/// Runs feed and generate on this thread without the GIL; Ctrl-C ends it.
std::string generate_now(PySession& session, const std::vector<int32_t>& tokens,
                         serve::GenerateOptions options);

}  // namespace wick::python
