#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "common.h"

namespace wick::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  TextOptions text;
  int64_t count = 256;
  bool ignore_end = false, json = false;
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
  }
  return "";
}

int run(const Options& o) {
  const double start = now_seconds();
  o.sampling.check();
  check_token_limit(o.count);
  const std::string text = o.text.read();
  if (interrupted()) return kInterrupted;
  const auto engine = o.model.load();
  const double loaded = now_seconds();
  std::vector<int32_t> prompt = o.text.encode(engine->tokenizer(), text);
  if (prompt.empty()) {  // a model continues nothing from its own start token
    const auto first =
        engine->tokenizer().bos() ? engine->tokenizer().bos() : engine->tokenizer().eos();
    if (!first) throw Error("generate", "empty prompt", "", "this model has no start token");
    prompt.push_back(*first);
  }
  serve::Session session(engine, o.model.session());
  // A prompt that doesn't fit is an error of feed(), and nothing is printed.
  const bool streams = !o.json && static_cast<int64_t>(prompt.size()) <= session.context();
  if (streams) print(text);
  serve::GenerateOptions options;
  options.max_tokens = o.count;
  options.sampler = o.sampling.sampler;
  options.ignore_end = o.ignore_end;
  options.cancelled = interrupted;
  if (!o.json) options.on_text = print;
  serve::Generated result;
  const double fed = now_seconds();
  double prompt_seconds = 0;
  int64_t prompt_run = 0;  // less than the prompt has when interrupted
  try {
    session.feed(prompt, interrupted);
    prompt_seconds = now_seconds() - fed;
    prompt_run = session.length();
    if (!interrupted()) result = session.generate(options);
  } catch (const Error&) {
    if (streams) print("\n");  // the error gets a line of its own
    throw;
  }

  const double prompt_tps = static_cast<double>(prompt_run) / prompt_seconds;
  const auto made = static_cast<double>(result.tokens.size());
  const double generate_tps = made > 1 && result.seconds > 0 ? (made - 1) / result.seconds : 0;
  const double first_ms = (fed - start + prompt_seconds) * 1e3 + result.first_token_ms;
  if (o.json) {
    print_json({{"prompt_tokens", prompt.size()},
                {"tokens", result.tokens},
                {"text", result.text},
                {"prompt_tps", prompt_tps},
                {"generate_tps", generate_tps},
                {"load_ms", (loaded - start) * 1e3},
                {"first_token_ms", first_ms},
                {"peak_bytes", peak_resident_bytes()},
                {"finish", finish_name(result.finish)}});
  } else {
    print("\n");
    std::fprintf(stderr,
                 "\nprompt %lld tokens, %.1f tokens/s | generated %zu tokens, %.1f tokens/s | "
                 "first token after %.0f ms | memory %s\n",
                 static_cast<long long>(prompt_run), prompt_tps, result.tokens.size(), generate_tps,
                 first_ms, human_bytes(peak_resident_bytes()).c_str());
  }
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace

void add_generate(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "generate", "Continue a text",
                  "The text streams to stdout; a line of speed and memory goes to stderr.\n"
                  "Example: wick generate -m model.gguf -p \"Once upon a time\" -n 64 --temp 0",
                  [o] { return run(*o); });
  o->model.add_to(*command);
  o->text.add_to(*command, "Text to continue");
  command->add_option("-n,--tokens", o->count, "Most tokens to generate; -1: until the end")
      ->type_name("N")
      ->check(number_check<int64_t>())
      ->capture_default_str();
  command->add_flag("--ignore-eos", o->ignore_end, "Go on past the end of the answer");
  o->sampling.add_to(*command);
  command->add_flag("--json", o->json, "Print one JSON object instead of text");
}

}  // namespace wick::cli
