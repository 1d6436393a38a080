#include "wick/text/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "common.h"
#include "line_editor.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/text/chat_template.h"

namespace wick::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  int64_t count = -1;
};

constexpr const char* kHelp =
    "/clear   start a new conversation\n"
    "/exit    end (also /quit, Ctrl-D)\n"
    "/help    this list\n"
    "//text   send \"/text\" to the model\n"
    "Ctrl-C stops an answer, or drops the line being typed.\n";
constexpr const char* kCommands =
    "use /clear, /exit, /quit or /help; // sends a message with one /";

/// Warns if the file's template may render other turns than those that chat uses. Errors: the
/// template is unknown.
void check_format(const serve::Engine& engine) {
  const std::string& chat_template = engine.chat_template();
  const text::ChatFormat format = engine.chat_format();
  if (chat_template.empty()) {
    warn(
        fmt::format("chat: the file has no chat template: {} turns are assumed from its "
                    "vocabulary",
                    text::name(format)));
  } else if (!text::gives_turns(chat_template, format)) {
    warn(
        fmt::format("chat: the file's chat template may render other turns: plain {} turns are "
                    "assumed",
                    text::name(format)));
  }
}

class Chat {
 public:
  explicit Chat(const ChatOptions& o)
      : options_(o), engine_(o.model.load()), session_(engine_, o.model.session()) {
    o.model.check_context(engine_->model());
    check_format(*engine_);
    check_text(options_.system, "--system");
    clear();
  }

  void clear() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({text::ChatRole::system, options_.system});
  }

  /// Runs one turn: feeds the user's message and streams the answer. Returns false if interrupted.
  bool turn(const std::string& message) {
    check_text(message, "-");
    const size_t before = messages_.size();
    messages_.push_back({text::ChatRole::user, message});
    serve::Generated answer;
    try {
      const std::vector<int32_t> tokens = engine_->encode_chat(messages_);
      check_room(static_cast<int64_t>(tokens.size()), before);
      session_.feed_whole(tokens, interrupted);
      serve::GenerateOptions generate;
      generate.max_tokens = options_.count;
      generate.sampler = options_.sampling.sampler;
      generate.sampler.seed += turns_++;
      generate.cancelled = interrupted;
      generate.on_text = print_now;
      if (!interrupted()) answer = session_.generate(generate);
    } catch (const Error&) {
      messages_.pop_back();  // the conversation continues without the failed turn
      throw;
    }
    print_now("\n");
    if (answer.finish == serve::FinishReason::context_full) {
      std::fprintf(stderr, "(the context of %lld tokens is full: /clear starts a new one)\n",
                   static_cast<long long>(session_.context()));
    }
    messages_.push_back({text::ChatRole::assistant, answer.text});
    return !interrupted();
  }

 private:
  /// Errors: the conversation doesn't fit in the context. `earlier`: the number of messages before
  /// the newest.
  void check_room(int64_t tokens, size_t earlier) const {
    if (tokens <= session_.context()) return;
    const bool alone = earlier == (options_.system.empty() ? 0u : 1u);
    throw Error("chat", "prompt longer than the context",
                fmt::format("{} tokens, {} positions", tokens, session_.context()),
                alone ? "shorten the message or ask for a longer context with --ctx"
                      : "start a new conversation with /clear, or a longer context with --ctx");
  }

  /// Checks a text separately, so that an error's offset counts from the start of the text.
  void check_text(const std::string& text, const std::string& source) const {
    encode_text(engine_->tokenizer(), text, source);
  }

  const ChatOptions& options_;
  std::shared_ptr<const serve::Engine> engine_;
  serve::Session session_;
  std::vector<text::ChatMessage> messages_;
  uint64_t turns_ = 0;
};

enum class Next : uint8_t { go_on, end, interrupted };

/// Handles one line: a command, or a message to the model. Errors: the command is unknown.
Next handle(Chat& chat, std::string line) {
  if (line.empty()) return Next::go_on;
  if (line[0] == '/' && !line.starts_with("//")) {
    const std::string word = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (word == "/exit" || word == "/quit") return Next::end;
    if (word == "/clear") {
      chat.clear();
    } else if (word == "/help") {
      std::fputs(kHelp, stderr);
    } else {
      const std::string first = word.substr(0, word.find_first_of(" \t"));
      throw Error("chat", "unknown command", fmt::format("'{}'", printable(first, 60)), kCommands);
    }
    return Next::go_on;
  }
  if (line.starts_with("//")) line.erase(0, 1);
  return chat.turn(line) ? Next::go_on : Next::interrupted;
}

/// Runs a conversation on a terminal. Errors are printed, and the conversation continues.
int talk(Chat& chat) {
  const StopInOrder in_order(Stop::answer);
  std::fputs(
      "Type a message; /help lists commands, /exit or Ctrl-D ends, Ctrl-C stops an answer.\n",
      stderr);
  LineEditor editor("> ");
  for (std::string line;;) {
    const LineEditor::Outcome outcome = editor.read(line);
    if (outcome == LineEditor::Outcome::cancelled) continue;
    if (outcome == LineEditor::Outcome::end) return kOk;
    try {
      const Next next = handle(chat, line);
      if (next == Next::end) return kOk;
    } catch (const Error& e) {
      flush_output();
      std::fprintf(stderr, "wick: %s\n", one_line(e.what()).c_str());
    }
    clear_interrupt();
  }
}

/// Runs a conversation from a pipe or a file, one message per line.
int answer_lines(Chat& chat) {
  for (std::string line; std::getline(std::cin, line);) {
    const StopInOrder in_order(Stop::soon);
    const Next next = handle(chat, line);
    if (next == Next::end) break;
    if (next == Next::interrupted || interrupted()) return kInterrupted;
  }
  return kOk;
}

int run_chat(const ChatOptions& o) {
  o.sampling.check();
  check_token_limit(o.count);
  Chat chat(o);
  return isatty(STDIN_FILENO) != 0 ? talk(chat) : answer_lines(chat);
}

}  // namespace

void add_chat(CLI::App& app) {
  auto o = std::make_shared<ChatOptions>();
  CLI::App* command = add_command(
      app, "chat", "Talk with a model",
      "Messages are read line by line from the terminal or a pipe; answers stream to stdout.\n"
      "A line that begins with / is a command: /clear starts a new conversation, /exit and /quit\n"
      "end, /help lists the commands; //text sends \"/text\". On a terminal, Ctrl-C stops an\n"
      "answer or drops the line, and Ctrl-D ends. The format of turns, ChatML or Llama 3, is\n"
      "chosen by the file's chat template; a warning is printed if the template may render\n"
      "other turns.\n"
      "Example: echo \"Name three rivers.\" | wick chat -m model.gguf",
      [o] { return run_chat(*o); });
  o->model.add_to(*command);
  command->add_option("-s,--system", o->system, "System message (default: the model's own)")
      ->type_name("TEXT");
  add_number(*command, "-n,--tokens", o->count, "Maximum number of tokens per answer; -1: no limit")
      ->type_name("N")
      ->capture_default_str();
  o->sampling.add_to(*command);
}

}  // namespace wick::cli
