#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "chat_commands.h"
#include "common.h"

namespace wick::cli {
namespace {

struct GenerateOptions {
  ModelOptions model;
  SamplingOptions sampling;
  TextOptions text;
  int64_t count = 256;
  bool ignore_end = false, json = false, hide_prompt = false, chat = false;
  std::vector<std::string> stop;
  std::string system, saved, loaded;  // saved, loaded: files of sessions

  bool continues() const { return !loaded.empty(); }
};

const char* finish_name(serve::FinishReason reason) {
  switch (reason) {
    case serve::FinishReason::end_of_generation:
      return "end";
    case serve::FinishReason::max_tokens:
      return "length";
    case serve::FinishReason::context_full:
      return "context";
    case serve::FinishReason::cancelled:
      return "interrupted";
    case serve::FinishReason::stop_string:
      return "stop";
  }
  return "";
}

/// Measurements of a run for the report.
struct Measured {
  double load_seconds = 0, first_seconds = 0, prompt_seconds = 0;
  size_t prompt_tokens = 0;
  int64_t prompt_run = 0;            // less than prompt_tokens if the run was interrupted
  int64_t context = 0, trained = 0;  // of the session and of the model
  serve::Generated result;

  double prompt_tps() const {
    return prompt_run == 0 ? 0 : static_cast<double>(prompt_run) / prompt_seconds;
  }
  double generate_tps() const {
    const auto made = static_cast<double>(result.tokens.size());
    return made > 1 && result.seconds > 0 ? (made - 1) / result.seconds : 0;
  }
};

/// The options of the generation, with those of the sampler that `session` was loaded with. Errors:
/// an option names a token outside the vocabulary.
serve::GenerateOptions generation_of(const GenerateOptions& o, const serve::Session& session) {
  serve::GenerateOptions options;
  options.max_tokens = o.count;
  const text::Tokenizer& tokenizer = session.engine().tokenizer();
  const std::optional<text::SamplerOptions> saved = session.last_sampler();
  if (saved) {
    options.sampler = o.sampling.for_vocabulary(tokenizer, *saved);
    options.resume = !o.sampling.restarts_draws();
  } else {
    options.sampler = o.sampling.for_vocabulary(tokenizer);
  }
  const std::string recommended = saved ? std::string() : o.sampling.recommended;
  note("sampling: " + AnswerParameters{options.sampler, o.count, recommended}.str());
  options.stop = o.stop;
  options.ignore_end = o.ignore_end;
  options.cancelled = interrupted;
  if (!o.json) options.on_text = print_now;
  return options;
}

/// Runs the prompt and generates text. `streams`: text is printed to stdout during the run.
void continue_text(const serve::GenerateOptions& options, const std::vector<int32_t>& prompt,
                   bool streams, serve::Session& session, Measured& measured) {
  const double fed = now_seconds();
  const int64_t before = session.length();
  try {
    session.feed(prompt, interrupted);
    measured.prompt_seconds = now_seconds() - fed;
    measured.prompt_run = session.length() - before;
    measured.result.finish = serve::FinishReason::cancelled;
    if (!interrupted()) measured.result = session.generate(options);
  } catch (const Error&) {
    if (streams) print("\n");  // puts the error on its own line
    throw;
  }
}

void report(const GenerateOptions& o, const Measured& m) {
  const double first_ms = m.first_seconds * 1e3 + m.result.first_token_ms;
  if (o.json) {
    print_json({{"prompt_tokens", m.prompt_tokens},
                {"tokens", m.result.tokens},
                {"text", m.result.text},
                {"prompt_tps", m.prompt_tps()},
                {"generate_tps", m.generate_tps()},
                {"load_ms", m.load_seconds * 1e3},
                {"first_token_ms", first_ms},
                {"peak_bytes", peak_resident_bytes()},
                {"finish", finish_name(m.result.finish)}});
    return;
  }
  print_now("\n");
  if (m.result.finish == serve::FinishReason::context_full) {
    std::fprintf(stderr, "\n(the context of %lld tokens is full%s)\n",
                 static_cast<long long>(m.context),
                 m.context < m.trained ? ": --ctx asks for a longer one" : "");
  }
  const bool any = !m.result.tokens.empty();
  const std::string first = any ? fmt::format(" | first token after {:.0f} ms", first_ms) : "";
  std::fprintf(stderr,
               "\nprompt %lld tokens, %.1f tokens/s | generated %zu tokens, %.1f tokens/s%s | "
               "memory %s\n",
               static_cast<long long>(m.prompt_run), m.prompt_tps(), m.result.tokens.size(),
               m.generate_tps(), first.c_str(), human_bytes(peak_resident_bytes()).c_str());
}

/// The tokens to run before the first one is generated. Errors: they don't fit in the context.
std::vector<int32_t> prompt_tokens(const GenerateOptions& o, const serve::Engine& engine,
                                   const std::string& text) {
  const int64_t most = o.model.context.value_or(engine.model().context_length());
  if (o.chat) {
    std::vector<text::ChatMessage> messages;
    if (!o.system.empty()) messages.push_back({"system", o.system});
    messages.push_back({"user", text});
    return engine.prompt_or_start(engine.encode_chat(messages, {.most_tokens = most}));
  }
  if (o.continues()) {
    // Encoding an empty text would append the vocabulary's end token.
    if (text.empty()) return {};
    return o.text.encode(engine.tokenizer(), text, {.add_bos = false, .most_tokens = most});
  }
  return engine.prompt_or_start(o.text.encode(engine.tokenizer(), text, {.most_tokens = most}));
}

int run_generate(GenerateOptions o) {
  const double start = now_seconds();
  o.sampling.check();
  check_token_limit(o.count);
  if (!o.system.empty() && !o.chat) {
    const bool is_number = o.system.find_first_not_of("0123456789") == std::string::npos;
    throw Error("--system", "works only with a chat template", {},
                is_number ? "add --chat; the random seed is --seed" : "add --chat");
  }
  if (o.chat && o.continues()) {
    throw Error("--chat", "doesn't go on with a session", {},
                "use `wick chat`, whose /load continues a conversation");
  }
  if (!o.saved.empty()) {
    std::vector<std::string> inputs = o.model.input_paths();
    inputs.push_back(o.text.file());
    check_output("--save-session", o.saved, inputs);
  }
  const std::string text = o.continues() && !o.text.given() ? std::string() : o.text.read();
  const auto engine = o.model.load();
  o.sampling.take_defaults(engine->sampling());
  Measured measured;
  measured.load_seconds = now_seconds() - start;
  std::vector<int32_t> prompt = prompt_tokens(o, *engine, text);
  measured.prompt_tokens = prompt.size();
  measured.trained = engine->model().context_length();
  serve::Session session(engine, o.model.session());
  measured.context = session.context();
  if (o.continues()) session.load(o.loaded);
  o.model.check_context(engine->model());
  const serve::GenerateOptions options = generation_of(o, session);
  // A prompt that doesn't fit is an error of feed(), so nothing is printed before it.
  const bool streams = !o.json && !o.hide_prompt &&
                       session.length() + static_cast<int64_t>(prompt.size()) <= session.context();
  if (streams && !o.chat) print_now(text);
  const double fed = now_seconds();
  const StopInOrder in_order(Stop::soon);
  continue_text(options, prompt, streams, session, measured);
  measured.first_seconds = fed - start + measured.prompt_seconds;
  note_memory(engine->model().device());
  report(o, measured);
  if (!o.saved.empty()) session.save(o.saved);
  return interrupted() ? interrupted_code() : kOk;
}

}  // namespace

void add_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* command = add_command(
      app, "generate", "Continue a text",
      "The text streams to stdout; speed and memory use are reported on stderr.\n"
      "Sampling options that aren't given are those that the model file recommends; -v shows "
      "them.\nExample: wick generate -m model.gguf -p \"Once upon a time\" -n 64 --temp 0",
      [o] { return run_generate(*o); });
  o->model.add_to(*command);
  o->text.add_to(*command, "Text to continue");
  add_number(*command, "-n,--tokens", o->count, "Maximum of generated tokens; -1: no limit")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--chat", o->chat, "Answer the text as a user's message, by the chat template");
  command->add_option("-s,--system", o->system, "System message; needs --chat")->type_name("TEXT");
  command->add_flag("--ignore-eos", o->ignore_end, "Continue after the end of the answer");
  o->sampling.add_to(*command);
  require_value(
      command->add_option("--stop", o->stop, "End before this text; may be given several times"))
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command->add_flag("--no-display-prompt", o->hide_prompt, "Print only the generated text");
  require_value(command->add_option("--save-session", o->saved,
                                    "Save the tokens, the cache and the sampler to a file at the "
                                    "end"))
      ->type_name("FILE");
  require_value(command->add_option("--load-session", o->loaded,
                                    "Go on with a saved session: after its tokens, then those of "
                                    "-p or -f if given; with its sampler, except for the sampling "
                                    "options that are given"))
      ->type_name("FILE");
  command->add_flag("--json", o->json, "Print one JSON object instead of text");
}

}  // namespace wick::cli
