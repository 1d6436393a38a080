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
#include <vector>

#include "interrupt.h"
#include "output.h"
#include "wick/base/block_pages.h"
#include "wick/base/dtype.h"
#include "wick/base/error.h"
#include "wick/serve/engine.h"

namespace wick::cli {

/// Exit codes: success; bad input or a failure. That of an interrupted command is
/// interrupted_code().
inline constexpr int kOk = 0, kFailed = 2;

inline constexpr const char* kModelHelp =
    "Model: a file (GGUF), a folder (Hugging Face), or a name in wick/models of the user's cache";
inline constexpr const char* kTokenizerHelp =
    "Model: a file (GGUF or tokenizer.json), a folder (Hugging Face), or a name in wick/models of "
    "the user's cache";
/// The help of --cache-type.
std::string cache_types_help();
inline constexpr const char* kThreadsHelp =
    "Number of CPU threads (default: one per usable core); it may exceed the number of cores";

/// Adds a subcommand. `run` is called after all options are parsed and the environment is checked;
/// it returns the exit code.
using Run = std::function<int()>;
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary,
                      const std::string& teaching, Run run);

// One function per subcommand, each in its own file.
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_bench(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_embed(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_inspect(CLI::App& app);
void add_quantize(CLI::App& app);
void add_imatrix(CLI::App& app);
void add_devices(CLI::App& app);
void add_help(CLI::App& app);
void add_completion(CLI::App& app);

/// The names of all commands, each preceded by a blank.
std::string command_names(const CLI::App& app);
/// The error message for a word that isn't a command; empty if it is one.
std::string unknown_command(const CLI::App& app, const std::string& word);

/// The error message for the first word that is an option of llama.cpp's programs, which `command`
/// spells differently; empty if there is none. `words` follow the command's name.
std::string foreign_option(const CLI::App& command, const std::vector<std::string>& words);

/// The number type of an option's variable.
template <class Value>
struct NumberIn {
  using type = Value;
};
template <class Value>
requires requires { typename Value::value_type; }
struct NumberIn<Value> {
  using type = typename Value::value_type;
};

/// Adds an option with one or several numbers; the variable is a number, a std::optional or a
/// std::vector. Numbers must be complete and in range. The check is needed because CLI11 reads an
/// empty word as 0 and truncates integers to 64 bits.
template <class Value>
CLI::Option* add_number(CLI::App& command, const std::string& names, Value& value,
                        const std::string& help) {
  const auto check = [](const std::string& text) -> std::string {
    typename NumberIn<Value>::type number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) return "number out of range: '" + text + "'";
    if (error == std::errc{} && stop == end) return {};
    const char* kind = std::is_floating_point_v<decltype(number)> ? "a number"
                       : std::is_signed_v<decltype(number)>       ? "an integer"
                                                                  : "a non-negative integer";
    return "not " + std::string(kind) + ": '" + text + "'";
  };
  return command.add_option(names, value, help)->check(CLI::Validator(check, ""));
}

/// Makes an empty value of an option an error.
CLI::Option* require_value(CLI::Option* option);

/// Options of all commands that run a model.
struct ModelOptions {
  std::string file;
  std::string device = "auto";
  std::optional<int> threads;      ///< not given: one thread per usable core
  std::optional<int64_t> context;  ///< not given: the model's trained context
  std::string cache = "f16";
  int64_t batch = 512;
  std::vector<std::string> adapters;  ///< FILE or FILE=SCALE
  bool verbose = false;
  std::string gpu_layers = "auto", cpu_experts = "auto";
  int64_t sequences = 1;  ///< of the cache, for which `auto` leaves memory

  void add_to(CLI::App& command, bool with_context = true);
  /// Checks the options, applies threads and device, and loads the model with a progress bar.
  std::shared_ptr<const serve::Engine> load() const;
  /// Like load(), but without the tokenizer.
  std::unique_ptr<models::CausalLm> load_model() const;
  serve::SessionOptions session() const;
  /// The paths of the model and of the adapters, which needn't exist.
  std::vector<std::string> input_paths() const;
  /// Warns if --ctx exceeds the model's trained context.
  void check_context(const models::CausalLm& model) const;

 private:
  /// Whether an option that places layers or experts was given.
  bool places_layers() const {
    return gpu_layers_option_->count() + cpu_experts_option_->count() > 0;
  }
  models::LoadOptions load_options() const;
  /// Prints where the layers are if the model isn't whole on `asked` or `places_layers()`. Warns if
  /// there are no experts to place.
  void report_placement(const models::CausalLm& model, Device asked) const;
  /// The path of an adapter and its scale: the number behind the last "=", unless a file has the
  /// whole name. Errors: what follows the path of a file isn't a number.
  static std::pair<std::string, float> parse_adapter(const std::string& given);
  /// What `load` returns for the options, and the first device.
  template <class Load>
  auto load_with(const Load& load) const;

  const CLI::Option *gpu_layers_option_ = nullptr, *cpu_experts_option_ = nullptr;
};

/// The text that a command works on, given with -p or in a file with -f.
struct TextOptions {
  void add_to(CLI::App& command, const std::string& help);
  /// Whether one of the options was given.
  bool given() const { return prompt_option_->count() + file_option_->count() > 0; }
  /// The path that -f gave; empty if it wasn't given.
  const std::string& file() const { return file_; }
  /// Errors: neither option was given; the file can't be read.
  std::string read() const;
  /// Encodes the text that read() returned. Errors: the text isn't UTF-8; the message names its
  /// source.
  std::vector<int32_t> encode(const text::Tokenizer& tokenizer, const std::string& text,
                              const text::EncodeOptions& options = {}) const;

 private:
  std::string prompt_, file_;
  const CLI::Option *prompt_option_ = nullptr, *file_option_ = nullptr;
};

/// Options of all commands that sample.
struct SamplingOptions {
  text::SamplerOptions sampler;
  std::vector<std::string> breakers = {"\n", ":", "\"", "*"}, biases;
  std::string steps;

  /// The members that take_defaults() set, separated by blanks.
  std::string recommended;

  void add_to(CLI::App& command);
  /// Errors: a value is out of range.
  void check() const { check_sampler_options(with_steps()); }
  /// Whether the options that count the draws of a saved sampler anew were given: --seed.
  bool restarts_draws() const { return was_given("seed"); }
  /// Sets the options that weren't given and that the model's file recommends. Prints its warnings.
  void take_defaults(const serve::SamplingDefaults& defaults);
  /// The options for a model's vocabulary. Errors: a biased token is outside it.
  text::SamplerOptions for_vocabulary(const text::Tokenizer& tokenizer) const;
  /// `saved`, with the options that were given in place of the saved ones. Errors: a biased token
  /// is outside the vocabulary.
  text::SamplerOptions for_vocabulary(const text::Tokenizer& tokenizer,
                                      text::SamplerOptions saved) const;

 private:
  text::SamplerOptions with_steps() const;
  /// Adds the tokens at which repetitions end, unless there are some.
  text::SamplerOptions complete(text::SamplerOptions options,
                                const text::Tokenizer& tokenizer) const;
  /// Whether the option of a member of SamplerOptions was given.
  bool was_given(std::string_view name) const;

  const CLI::App* command_ = nullptr;
};

/// Warns that WICK_TRACE has no effect because no GPU is used.
void warn_untraced();

/// Makes note() and the library's log lines (wick/base/log.h) print to stderr, each after the
/// seconds since the process started.
void show_notes();
void note(const std::string& line);
/// Notes the memory of the process and of a device.
void note_memory(Device device);

/// A progress bar on stderr. It is only drawn if stderr is a terminal and the work takes longer
/// than a moment.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void update(int64_t done, int64_t total);
  /// Erases the bar until the next update, for text on the same terminal.
  void erase();

 private:
  std::string label_;
  bool shown_ = false, terminal_ = false;
  double started_ = 0, drawn_ = 0;
};

/// Opens standard streams that were closed when the process started. Reads from stdin and writes to
/// stdout then fail.
void require_streams();
/// Throws the error of a read from stdin.
[[noreturn]] void cannot_read_stdin(int error);

double now_seconds();
/// The largest resident memory of the process so far.
int64_t peak_resident_bytes();
std::string human_bytes(int64_t bytes);
/// Checks a file to write before the work. Errors: it can't be written; it is one of the files of
/// `inputs`: paths of models, adapters and texts ("-" is stdin; empty ones are left out).
void check_output(const std::string& option, const std::string& path,
                  const std::vector<std::string>& inputs);
/// The second check alone.
void require_no_input(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs);
/// The path of a model that a user named; the name itself if there is no such model.
std::string path_of_model(const std::string& name);
/// The parts of a text between the characters `at`, of which there may be none.
std::vector<std::string_view> split(std::string_view text, char at);
/// Returns the contents of a file, or of standard input for "-". Errors: it can't be read.
std::string read_text(const std::string& path);
/// Calls f() and adds the source of a text to its errors: a path, "-" or an option's name.
template <class F>
auto with_source(const std::string& source, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw Error(e.kind(), source == "-" ? "stdin" : source, e.what());
  }
}
/// Encodes a text from `source`: a path, "-" or an option's name. Errors: the text isn't UTF-8; the
/// message names the source.
std::vector<int32_t> encode_text(const text::Tokenizer& tokenizer, const std::string& text,
                                 const std::string& source,
                                 const text::EncodeOptions& options = {});
/// Checks a maximum number of generated tokens. Errors: it is below -1 (-1 means no limit).
void check_token_limit(int64_t count);

}  // namespace wick::cli
