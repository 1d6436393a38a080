#include "wick/text/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "common.h"
#include "wick/base/error.h"

namespace wick::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  int64_t count = -1;
};

class Chat {
 public:
  explicit Chat(const Options& o)
      : options_(o), engine_(o.model.load()), session_(engine_, o.model.session()) {
    const auto format = text::detect_chat_format(engine_->chat_template(), engine_->tokenizer());
    if (!format) {
      throw Error("chat", "unknown chat template", o.model.file,
                  "this version speaks ChatML and Llama 3 turns; wick generate takes any text");
    }
    format_ = *format;
    check_text(options_.system, "--system");
    clear();
  }

  void clear() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({text::ChatRole::system, options_.system});
  }

  /// One turn: the user's message in, the streamed answer out. False: interrupted.
  bool turn(const std::string& message) {
    check_text(message, "-");
    messages_.push_back({text::ChatRole::user, message});
    text::ChatOptions chat;
    chat.default_system = text::default_system_message(engine_->chat_template());
    serve::Generated answer;
    try {
      session_.feed_whole(text::encode_chat(engine_->tokenizer(), format_, messages_, chat),
                          interrupted);
      serve::GenerateOptions generate;
      generate.max_tokens = options_.count;
      generate.sampler = options_.sampling.sampler;
      generate.sampler.seed += turns_++;
      generate.cancelled = interrupted;
      generate.on_text = print;
      if (!interrupted()) answer = session_.generate(generate);
    } catch (const Error&) {
      messages_.pop_back();  // the conversation goes on without the turn that failed
      throw;
    }
    print("\n");
    if (answer.finish == serve::FinishReason::context_full) {
      std::fprintf(stderr, "(the context of %lld tokens is full: /clear starts anew)\n",
                   static_cast<long long>(session_.context()));
    }
    messages_.push_back({text::ChatRole::assistant, answer.text});
    return !interrupted();
  }

 private:
  /// On its own, so that an error counts bytes from the text's start, not the conversation's.
  void check_text(const std::string& text, const std::string& source) const {
    encode_text(engine_->tokenizer(), text, source);
  }

  const Options& options_;
  std::shared_ptr<const serve::Engine> engine_;
  serve::Session session_;
  text::ChatFormat format_{};
  std::vector<text::ChatMessage> messages_;
  uint64_t turns_ = 0;
};

int run(const Options& o) {
  o.sampling.check();
  check_token_limit(o.count);
  Chat chat(o);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    std::fprintf(stderr,
                 "Type a message; /clear forgets, /exit or Ctrl-D ends, Ctrl-C stops an answer.\n");
  for (;;) {
    if (terminal) print("> ");
    std::string line;
    if (interrupted() || !std::getline(std::cin, line) || interrupted()) break;
    if (line == "/exit" || line == "/quit") break;
    if (line == "/clear") {
      chat.clear();
      continue;
    }
    if (line.empty()) continue;
    try {
      if (!chat.turn(line)) {
        if (!terminal) return kInterrupted;
        clear_interrupt();
      }
    } catch (const Error& e) {
      if (!terminal) throw;
      std::fprintf(stderr, "wick: %s\n", e.what());
    }
  }
  if (terminal) print("\n");
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace

void add_chat(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "chat", "Talk with a model",
      "Messages are read line by line from the terminal or a pipe; answers stream to stdout.\n"
      "Example: echo \"Name three rivers.\" | wick chat -m model.gguf",
      [o] { return run(*o); });
  o->model.add_to(*command);
  command->add_option("-s,--system", o->system, "System message (default: the model's own)")
      ->type_name("TEXT");
  add_number(*command, "-n,--tokens", o->count, "Most tokens an answer may have; -1: until its end")
      ->type_name("N")
      ->capture_default_str();
  o->sampling.add_to(*command);
}

}  // namespace wick::cli
