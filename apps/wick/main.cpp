#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/version.h"

namespace {

constexpr const char* kTeaching = R"(Examples:
  wick generate -m model.gguf -p "The capital of France is" -n 32
  wick chat -m model.gguf
  wick bench -m model.gguf -p 512 -n 128 -t 1 -t 2
  wick quantize model-f16.gguf model-q4_0.gguf q4_0
`wick help COMMAND` or `wick COMMAND --help` explains a command. Commands that print a report accept
--json. An error prints one line and exits with code 2; Ctrl-C exits with code 130, and another
signal n with 128 + n. If the reader of the output goes away (`| head`), SIGPIPE ends the command.)";

int fail(const std::string& message) {
  wick::cli::flush_output_before_error();
  // Prints one line, even if the message quotes file names or texts with newlines.
  std::fprintf(stderr, "wick: %s\n", wick::cli::one_line(message).c_str());
  return wick::cli::kFailed;
}

/// Returns an error message if the first word isn't a command, else an empty string.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  return wick::cli::unknown_command(app, argv[1]);
}

/// The help command to suggest: that of the parsed command, if any.
std::string help_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? "wick --help" : "wick " + parsed.front()->get_name() + " --help";
}

/// The command that the first word names; null if there is none.
const CLI::App* named_command(const CLI::App& app, int argc, char** argv) {
  const auto found = app.get_subcommands(
      [&](const CLI::App* of) { return argc > 1 && of->get_name() == argv[1]; });
  return found.empty() ? nullptr : found.front();
}

/// The words of the command line. The word "--option=" becomes two, because CLI11 would take the
/// next word as its value.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words;
  const CLI::App* const command = named_command(app, argc, argv);
  const auto takes_value = [&](const std::string& name) {
    const CLI::Option* const option =
        command != nullptr && name.starts_with('-') ? command->get_option_no_throw(name) : nullptr;
    return option != nullptr && option->get_items_expected_min() > 0;
  };
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") options = false;
    const bool is_value = takes_value(argv[i - 1]);
    const bool is_empty = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (options && !is_value && is_empty && takes_value(word.substr(0, word.size() - 1))) {
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
  }
  return words;
}

/// The message about arguments that weren't expected, in their order.
std::string unexpected(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  std::vector<std::string> words = (parsed.empty() ? &app : parsed.front())->remaining();
  // Words behind "--" are left to the app.
  const bool behind = words.empty();
  if (behind) words = app.remaining();
  std::string list;
  for (const std::string& word : words) list += " " + wick::printable(word);
  const bool one = words.size() == 1;
  return fmt::format("The following argument{}{} {} not expected:{}", one ? "" : "s",
                     behind ? " behind --" : "", one ? "was" : "were", list);
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    std::vector<std::string> words = words_of(app, argc, argv);
    if (const CLI::App* const command = named_command(app, argc, argv)) {
      const std::string foreign =
          wick::cli::foreign_option(*command, {words.begin() + 1, words.end()});
      if (!foreign.empty()) {
        return fail(fmt::format("{} (see wick {} --help)", foreign, command->get_name()));
      }
    }
    std::reverse(words.begin(), words.end());  // the order that parse() wants
    app.parse(words);
    wick::cli::flush_output();
    return wick::cli::kOk;
  } catch (const CLI::RuntimeError& e) {
    wick::cli::flush_output();
    return e.get_exit_code();
  } catch (const CLI::Success& e) {  // --help and --version
    std::ostringstream text;
    app.exit(e, text);
    wick::cli::print_now(text.str());
    return wick::cli::kOk;
  } catch (const CLI::ParseError& e) {
    if (app.get_subcommands().empty()) {
      return fail(fmt::format("no command: '{}': start with one of{}", wick::printable(argv[1]),
                              wick::cli::command_names(app)));
    }
    const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr;
    return fail(
        fmt::format("{} (see {})", is_extra ? unexpected(app) : e.what(), help_command(app)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wick::cli;
  CLI::App app("Runs language models from GGUF files.", "wick");
  app.footer(kTeaching);
  app.set_version_flag("--version", fmt::format("wick {}", wick::version()));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  for (auto add : {add_generate, add_chat, add_bench, add_perplexity, add_embed, add_tokenize,
                   add_inspect, add_quantize, add_imatrix, add_devices, add_help, add_completion}) {
    add(app);
  }
  require_streams();
  handle_interrupts();
  buffer_output();
  if (argc == 1) {  // a missing command is an error, so nothing goes to stdout
    std::fputs(app.help().c_str(), stderr);
    return kFailed;
  }
  if (const std::string unknown = unknown_command(app, argc, argv); !unknown.empty()) {
    return fail(unknown);
  }
  try {
    return parse_and_run(app, argc, argv);
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}
