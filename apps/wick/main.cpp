#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>

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
--json. An error prints one line and exits with code 2; Ctrl-C exits with code 130. If the reader of
the output goes away (`| head`), SIGPIPE ends the command.)";

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

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
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
    return fail(fmt::format("{} (see {})", e.what(), help_command(app)));
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
  for (auto add : {add_generate, add_chat, add_bench, add_perplexity, add_embed, add_tokenize, add_inspect,
                   add_quantize, add_imatrix, add_devices, add_help, add_completion}) {
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
