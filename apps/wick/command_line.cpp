#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "common.h"

namespace wick::cli {
namespace {

/// Accepts a number that is written out in full and fits T: CLI11 itself reads an empty word as 0
/// and cuts integers off at 64 bits.
template <class T>
CLI::Validator number_check() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        T value{};
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::result_out_of_range) return "number out of range: '" + text + "'";
        if (error == std::errc{} && stop == end) return {};
        const char* kind = std::is_floating_point_v<T> ? "number"
                           : std::is_signed_v<T>       ? "whole number"
                                                       : "whole number from 0 on";
        return "not a " + std::string(kind) + ": '" + text + "'";
      },
      "");
}

template <class T, class Value>
Option number(CLI::App& app, const char* names, Value& value, const std::string& help) {
  return Option(app.add_option(names, value, help)->check(number_check<T>()));
}

/// Throws where the first word is no command.
void check_first_word(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return;
    names += " " + command->get_name();
  }
  throw std::invalid_argument(fmt::format("unknown command: '{}': use one of{}", argv[1], names));
}

/// The help to look at: that of the command whose words were wrong, where it's known.
std::string help_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? "wick --help" : "wick " + parsed.front()->get_name() + " --help";
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type_name(const char* name) {
  option_->type_name(name);
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::delimiter(char character) {
  option_->delimiter(character);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::group(const char* name) {
  option_->group(name);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

std::string Command::name() const { return app_->get_name(); }

Option Command::option(const char* names, std::string& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, int32_t& value, const std::string& help) {
  return number<int32_t>(*app_, names, value, help);
}

Option Command::option(const char* names, int64_t& value, const std::string& help) {
  return number<int64_t>(*app_, names, value, help);
}

Option Command::option(const char* names, uint64_t& value, const std::string& help) {
  return number<uint64_t>(*app_, names, value, help);
}

Option Command::option(const char* names, float& value, const std::string& help) {
  return number<float>(*app_, names, value, help);
}

Option Command::option(const char* names, std::optional<int32_t>& value, const std::string& help) {
  return number<int32_t>(*app_, names, value, help);
}

Option Command::option(const char* names, std::optional<int64_t>& value, const std::string& help) {
  return number<int64_t>(*app_, names, value, help);
}

Option Command::option(const char* names, std::vector<int32_t>& value, const std::string& help) {
  return number<int32_t>(*app_, names, value, help);
}

Option Command::option(const char* names, std::vector<int64_t>& value, const std::string& help) {
  return number<int64_t>(*app_, names, value, help);
}

Option Command::flag(const char* names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

CommandLine::CommandLine(const char* name, const char* summary, const char* teaching,
                         std::string version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->footer(teaching);
  app_->set_version_flag("--version", std::move(version));
  app_->require_subcommand(1);
  app_->get_formatter()->column_width(34);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const char* name, const char* summary, const char* teaching,
                         std::function<int()> run) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->footer(teaching);
  // Called when everything has been parsed, so that an unknown option is an error before any work.
  command->callback([run = std::move(run)] {
    const int code = run();
    if (code != kOk) throw CLI::RuntimeError(code);
  });
  return Command(command);
}

int CommandLine::run(int argc, char** argv) {
  check_first_word(*app_, argc, argv);
  try {
    app_->parse(argc, argv);
    return kOk;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::Success& e) {  // --help and --version
    std::ostringstream text;
    app_->exit(e, text);
    print(text.str());
    return kOk;
  } catch (const CLI::ParseError& e) {
    throw std::invalid_argument(fmt::format("{} (see {})", e.what(), help_command(*app_)));
  }
}

}  // namespace wick::cli
