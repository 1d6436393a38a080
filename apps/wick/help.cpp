#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::cli {

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += " " + command->get_name();
  }
  return names;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  const auto named = [&](const CLI::App* command) { return command->get_name() == word; };
  if (!app.get_subcommands(named).empty()) return {};
  return fmt::format("unknown command: '{}': use one of{}", printable(word), command_names(app));
}

void add_help(CLI::App& app) {
  auto word = std::make_shared<std::string>();
  CLI::App* help = app.add_subcommand("help", "List the commands, or explain one");
  help->footer("Example: wick help generate");
  require_value(help->add_option("COMMAND", *word, "Command to explain"));
  help->callback([&app, word] {
    if (word->empty()) {
      // app.help() would explain the command that was parsed, which is `help` itself.
      print(app.get_formatter()->make_help(&app, "wick", CLI::AppFormatMode::Normal));
      return;
    }
    const std::string unknown = unknown_command(app, *word);
    if (!unknown.empty()) throw Error("help", unknown);
    print(app.get_subcommand(*word)->help("wick"));
  });
}

}  // namespace wick::cli
