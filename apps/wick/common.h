#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "interrupt.h"
#include "output.h"
#include "wick/base/dtype.h"
#include "wick/serve/engine.h"

namespace wick::cli {

/// Exit codes: everything went well, bad input or a failure, stopped by Ctrl-C.
inline constexpr int kOk = 0, kFailed = 2, kInterrupted = 130;

inline constexpr const char* kThreadsHelp =
    "CPU threads (default: one a usable core; more than there are cores are started as asked)";

/// Adds a subcommand; `run` is called once its options are parsed and the environment is checked,
/// and returns the exit code.
using Run = std::function<int()>;
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary,
                      const std::string& teaching, Run run);

// One function a subcommand, each in a file of its own.
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_bench(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_inspect(CLI::App& app);
void add_quantize(CLI::App& app);
void add_devices(CLI::App& app);
void add_help(CLI::App& app);

/// The names of all commands, with a blank in front of each.
std::string command_names(const CLI::App& app);
/// What to say of a word that names no command; empty where it does.
std::string unknown_command(const CLI::App& app, const std::string& word);

/// The kind of number that an option's variable holds.
template <class Value>
struct NumberIn {
  using type = Value;
};
template <class Value>
requires requires { typename Value::value_type; }
struct NumberIn<Value> {
  using type = typename Value::value_type;
};

/// Adds an option of a number, or of several: of a variable that is one, a std::optional or a
/// std::vector. They have to be written out in full and fit: CLI11 itself reads an empty word as 0
/// and cuts integers off at 64 bits.
template <class Value>
CLI::Option* add_number(CLI::App& command, const std::string& names, Value& value,
                        const std::string& help) {
  const auto check = [](const std::string& text) -> std::string {
    typename NumberIn<Value>::type number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) return "number out of range: '" + text + "'";
    if (error == std::errc{} && stop == end) return {};
    const char* kind = std::is_floating_point_v<decltype(number)> ? "number"
                       : std::is_signed_v<decltype(number)>       ? "whole number"
                                                                  : "whole number from 0 on";
    return "not a " + std::string(kind) + ": '" + text + "'";
  };
  return command.add_option(names, value, help)->check(CLI::Validator(check, ""));
}

/// Options of every command that runs a model.
struct ModelOptions {
  std::string file;
  std::string device = "auto";
  std::optional<int> threads;      ///< not given: one a usable core
  std::optional<int64_t> context;  ///< not given: what the model was trained for
  std::string cache = "f16";
  int64_t batch = 512;

  void add_to(CLI::App& command, bool with_context = true);
  /// Checks the options, applies threads and device, and loads the model under a progress bar.
  std::shared_ptr<const serve::Engine> load() const;
  /// The same for a model whose tokenizer isn't wanted.
  std::unique_ptr<models::CausalLm> load_model() const;
  serve::SessionOptions session() const;
  /// Warns where --ctx asks for more than the model was trained for.
  void check_context(const models::CausalLm& model) const;

 private:
  template <class Load>
  auto load_with(const Load& load) const;
};

/// The text a command works on: given with -p, or in a file with -f.
struct TextOptions {
  void add_to(CLI::App& command, const std::string& help);
  /// Errors: neither was given, the file can't be read.
  std::string read() const;
  /// The tokens of what read() gave. Errors, named after where the text came from: it isn't UTF-8.
  std::vector<int32_t> encode(const text::Tokenizer& tokenizer, const std::string& text,
                              const text::EncodeOptions& options = {}) const;

 private:
  std::string prompt_, file_;
  const CLI::Option *prompt_option_ = nullptr, *file_option_ = nullptr;
};

/// Options of every command that samples.
struct SamplingOptions {
  text::SamplerOptions sampler;
  void add_to(CLI::App& command);
  /// Errors: a value out of range.
  void check() const { text::Sampler{sampler}; }
};

/// Warns that WICK_TRACE has no effect where no GPU is used.
void warn_untraced();

/// A bar on stderr while something long runs; silent unless stderr is a terminal and the work takes
/// more than a moment.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void update(int64_t done, int64_t total);

 private:
  std::string label_;
  bool shown_ = false, terminal_ = false;
  double started_ = 0, drawn_ = 0;
};

/// Opens standard streams that the process was started without: reading stdin finds its end,
/// writing to stdout fails.
void require_streams();

double now_seconds();
/// Largest resident memory of the process so far.
int64_t peak_resident_bytes();
std::string human_bytes(int64_t bytes);
/// The whole of a file, "-" for standard input. Errors: it can't be read.
std::string read_text(const std::string& path);
/// The tokens of a text that came from `source`: a path, "-" or an option's name. Errors,
/// named after it: it isn't UTF-8.
std::vector<int32_t> encode_text(const text::Tokenizer& tokenizer, const std::string& text,
                                 const std::string& source,
                                 const text::EncodeOptions& options = {});
/// Errors: a number of tokens to generate that is neither -1 (no limit) nor 0 and more.
void check_token_limit(int64_t count);

}  // namespace wick::cli
