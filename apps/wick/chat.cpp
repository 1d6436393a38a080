#include "wick/text/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "chat_commands.h"
#include "common.h"
#include "line_editor.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  int64_t count = -1;
};

constexpr const char* kHelp =
    "/reset         start a new conversation (also /clear)\n"
    "/system TEXT   set the system message; \"\" removes it, without text it is shown\n"
    "/save FILE     write the conversation as JSON; to FILE.session with the model's cache\n"
    "/load FILE     continue a conversation that was saved\n"
    "/params        show the parameters of answers; /params top_k=20 sets some\n"
    "/exit          end (also /quit, Ctrl-D)\n"
    "/help          this list\n"
    "//text         send \"/text\" to the model\n"
    "Ctrl-C stops an answer, or drops the line being typed.\n";
constexpr const char* kCommands = "/help lists the commands; // sends a message with one /";

class Chat {
 public:
  explicit Chat(ChatOptions o)
      : inputs_(o.model.input_paths()),
        engine_(o.model.load()),
        session_(engine_, o.model.session()),
        template_(engine_->chat()) {
    o.sampling.take_defaults(engine_->sampling());
    parameters_.sampler = o.sampling.for_vocabulary(engine_->tokenizer());
    parameters_.max_tokens = o.count;
    parameters_.recommended = o.sampling.recommended;
    note("sampling: " + parameters_.str());
    o.model.check_context(engine_->model());
    if (!template_.built_in().empty()) {
      warn(
          fmt::format("chat: the file has no chat template: {} turns are assumed from its "
                      "vocabulary",
                      template_.built_in()));
    }
    check_text(o.system, "--system");
    set_system(o.system);
  }

  /// Starts a new conversation with the same system message.
  void reset() { messages_.resize(has_system() ? 1 : 0); }

  std::string system() const { return has_system() ? messages_[0].content : std::string(); }
  /// Sets the system message of the conversation; an empty text removes it.
  void set_system(const std::string& text) {
    check_text(text, "/system");
    if (has_system()) messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", text});
  }

  AnswerParameters& parameters() { return parameters_; }

  /// Saves the messages, or the session with them if the name ends like a session's.
  size_t save(const std::string& path) const {
    require_no_input("/save", path, inputs_);
    if (path.ends_with(".session")) {
      session_.save(path, conversation_text(messages_));
    } else {
      save_conversation(path, messages_);
    }
    return messages_.size();
  }
  size_t load(const std::string& path) {
    const bool is_session = path.ends_with(".session");
    const std::string text = is_session ? serve::read_session(path).text : read_text(path);
    if (is_session && text.empty()) throw Error(printable(path), "session without a conversation");
    std::vector<text::ChatMessage> loaded = parse_conversation(path, text);
    for (const text::ChatMessage& message : loaded) check_text(message.content, path);
    if (is_session) session_.load(path);
    messages_ = std::move(loaded);
    // The next answer has the seed that it would have had in the saved conversation.
    turns_ = static_cast<uint64_t>(std::count_if(
        messages_.begin(), messages_.end(), [](const auto& m) { return m.role == "assistant"; }));
    return messages_.size();
  }

  /// Runs one turn: feeds the user's message and streams the answer. Only the part of the
  /// conversation that isn't in the cache yet runs. Returns false if interrupted.
  bool turn(const std::string& message) {
    check_text(message, "-");
    const size_t before = messages_.size();
    messages_.push_back({"user", message});
    serve::Generated answer;
    try {
      const std::vector<int32_t> tokens =
          template_.encode(messages_, {.most_tokens = session_.context()});
      check_room(static_cast<int64_t>(tokens.size()), before);
      session_.feed_whole(tokens, interrupted);
      serve::GenerateOptions generate;
      generate.max_tokens = parameters_.max_tokens;
      generate.sampler = parameters_.sampler;
      generate.sampler.seed += turns_++;
      generate.cancelled = interrupted;
      generate.on_text = print_now;
      if (!interrupted()) answer = session_.generate(generate);
    } catch (const Error&) {
      messages_.pop_back();  // the conversation continues without the failed turn
      throw;
    }
    print_now("\n");
    note_memory(engine_->model().device());
    if (answer.finish == serve::FinishReason::context_full) {
      std::fprintf(stderr, "(the context of %lld tokens is full: /reset starts a new one)\n",
                   static_cast<long long>(session_.context()));
    }
    messages_.push_back({"assistant", answer.text});
    return !interrupted();
  }

 private:
  /// Errors: the conversation doesn't fit in the context. `earlier`: the number of messages before
  /// the newest.
  void check_room(int64_t tokens, size_t earlier) const {
    if (tokens <= session_.context()) return;
    const bool alone = earlier == (has_system() ? 1u : 0u);
    throw Error("chat", "prompt longer than the context",
                fmt::format("{} tokens, {} positions", tokens, session_.context()),
                alone ? "shorten the message or ask for a longer context with --ctx"
                      : "start a new conversation with /reset, or a longer context with --ctx");
  }

  /// Checks a text separately, so that an error's offset counts from the start of the text.
  void check_text(const std::string& text, const std::string& source) const {
    with_source(source, [&] { engine_->tokenizer().check_text(text); });
  }

  bool has_system() const { return !messages_.empty() && messages_[0].role == "system"; }

  std::vector<std::string> inputs_;  // the files of the model and its adapters
  std::shared_ptr<const serve::Engine> engine_;
  serve::Session session_;
  text::ChatTemplate template_;
  AnswerParameters parameters_;
  std::vector<text::ChatMessage> messages_;
  uint64_t turns_ = 0;
};

enum class Next : uint8_t { go_on, end, interrupted };

/// Runs a command with its argument, which may be empty. Returns false if there is no such command.
bool run_command(Chat& chat, const std::string& name, const std::string& argument) {
  const auto need_file = [&] {
    if (argument.empty()) throw Error("chat", "no file was given", {}, "use " + name + " FILE");
  };
  if (name == "/system") {
    if (argument.empty()) {
      std::fprintf(stderr, "%s\n", one_line(chat.system()).c_str());
    } else {
      chat.set_system(argument == "\"\"" ? std::string() : argument);
    }
  } else if (name == "/save") {
    need_file();
    std::fprintf(stderr, "(%zu messages saved)\n", chat.save(argument));
  } else if (name == "/load") {
    need_file();
    std::fprintf(stderr, "(%zu messages loaded)\n", chat.load(argument));
  } else if (name == "/params") {
    chat.parameters().set(argument);
    if (argument.empty()) std::fprintf(stderr, "%s\n", chat.parameters().str().c_str());
  } else if (!argument.empty()) {
    return false;
  } else if (name == "/clear" || name == "/reset") {
    chat.reset();
  } else if (name == "/help") {
    std::fputs(kHelp, stderr);
  } else {
    return false;
  }
  return true;
}

/// Handles one line: a command, or a message to the model. Errors: the command is unknown.
Next handle(Chat& chat, std::string line) {
  if (line.empty()) return Next::go_on;
  if (line[0] == '/' && !line.starts_with("//")) {
    const std::string words = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (words == "/exit" || words == "/quit") return Next::end;
    const size_t end = std::min(words.find_first_of(" \t"), words.size());
    const size_t begin = std::min(words.find_first_not_of(" \t", end), words.size());
    const std::string name = words.substr(0, end);
    if (!run_command(chat, name, words.substr(begin))) {
      throw Error("chat", "unknown command", fmt::format("'{}'", printable(name, 60)), kCommands);
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

/// Reads a line of stdin, without its end. Returns false at the end of stdin. std::getline would
/// read single characters, because std::cin is synchronised with stdin.
bool read_line(std::string& line) {
  char* data = nullptr;
  size_t capacity = 0;
  const ssize_t count = ::getline(&data, &capacity, stdin);
  if (count > 0) line.assign(data, static_cast<size_t>(count - (data[count - 1] == '\n' ? 1 : 0)));
  std::free(data);
  if (count < 0 && std::feof(stdin) == 0) cannot_read_stdin(errno);
  return count > 0;
}

/// Runs a conversation from a pipe or a file, one message per line.
int answer_lines(Chat& chat) {
  for (std::string line; read_line(line);) {
    const StopInOrder in_order(Stop::soon);
    if (line.ends_with('\r')) line.pop_back();
    const Next next = handle(chat, line);
    if (next == Next::end) break;
    if (next == Next::interrupted || interrupted()) return interrupted_code();
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
      "A line that begins with / is a command: /reset starts a new conversation, /system TEXT\n"
      "sets the system message, /save FILE and /load FILE write and read the conversation (with\n"
      "the model's cache, so that nothing runs again, if the name ends in .session),\n"
      "/params shows and sets sampling parameters, /exit and /quit end, /help lists the\n"
      "commands; //text sends \"/text\". On a terminal, Ctrl-C stops an answer or drops the line,\n"
      "and Ctrl-D ends. Turns are rendered by the file's chat template. A conversation that\n"
      "exceeds the context is an error; no message is dropped. Sampling options that aren't given\n"
      "are those that the model file recommends; /params shows them.\n"
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
