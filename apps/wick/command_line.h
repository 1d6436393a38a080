#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The command line without the headers of CLI11, which parses it: they cost a compiler some six
// seconds in each source that has them.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace wick::cli {

/// An option of a command, to be described further.
class Option {
 public:
  explicit Option(CLI::Option* option = nullptr) : option_(option) {}
  Option& required();
  /// What stands for the value in the help.
  Option& type_name(const char* name);
  /// The help shows the value that the variable has now.
  Option& shows_default();
  /// One word may hold several values.
  Option& delimiter(char character);
  Option& excludes(const Option& other);
  Option& group(const char* name);
  /// Whether it was given; once the words are parsed.
  bool given() const;

 private:
  CLI::Option* option_;
};

/// A command: what its words say goes to variables, which live as long as it. Numbers have to be
/// written out in full and fit their type.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  std::string name() const;
  Option option(const char* names, std::string& value, const std::string& help);
  Option option(const char* names, int32_t& value, const std::string& help);
  Option option(const char* names, int64_t& value, const std::string& help);
  Option option(const char* names, uint64_t& value, const std::string& help);
  Option option(const char* names, float& value, const std::string& help);
  Option option(const char* names, std::optional<int32_t>& value, const std::string& help);
  Option option(const char* names, std::optional<int64_t>& value, const std::string& help);
  Option option(const char* names, std::vector<int32_t>& value, const std::string& help);
  Option option(const char* names, std::vector<int64_t>& value, const std::string& help);
  Option flag(const char* names, bool& value, const std::string& help);

 private:
  CLI::App* app_;
};

/// All commands of a program.
class CommandLine {
 public:
  CommandLine(const char* name, const char* summary, const char* teaching, std::string version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a command; `run` is called once its options are parsed and returns the exit code.
  Command add(const char* name, const char* summary, const char* teaching,
              std::function<int()> run);
  /// Runs the command that the words name, or prints the help or the version that they ask for.
  /// Returns the exit code. Errors: words that mean nothing.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace wick::cli
