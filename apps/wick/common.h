#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "command_line.h"
#include "wick/base/dtype.h"
#include "wick/serve/engine.h"

namespace wick::cli {

using Json = nlohmann::ordered_json;

/// Exit codes: everything went well, bad input or a failure, stopped by Ctrl-C.
inline constexpr int kOk = 0, kFailed = 2, kInterrupted = 130;

inline constexpr const char* kThreadsHelp =
    "CPU threads (default: one a usable core; more than there are cores are started as asked)";

// One function a subcommand, each in a file of its own.
void add_generate(CommandLine& line);
void add_chat(CommandLine& line);
void add_bench(CommandLine& line);
void add_perplexity(CommandLine& line);
void add_tokenize(CommandLine& line);
void add_inspect(CommandLine& line);
void add_quantize(CommandLine& line);
void add_devices(CommandLine& line);

/// Options of every command that runs a model.
struct ModelOptions {
  std::string file;
  std::string device = "auto";
  std::optional<int> threads;      ///< not given: one a usable core
  std::optional<int64_t> context;  ///< not given: what the model was trained for
  std::string cache = "f16";
  int64_t batch = 512;

  void add_to(Command command, bool with_context = true);
  /// Checks the options, applies threads and device, and loads the model under a progress bar.
  std::shared_ptr<const serve::Engine> load() const;
  /// The same for a model whose tokenizer isn't wanted.
  std::unique_ptr<models::CausalLm> load_model() const;
  serve::SessionOptions session() const;

 private:
  template <class Load>
  auto load_with(const Load& load) const;
};

/// The text a command works on: given with -p, or in a file with -f.
struct TextOptions {
  void add_to(Command command, const std::string& help);
  /// Errors: neither was given, the file can't be read.
  std::string read() const;
  /// The tokens of what read() gave. Errors, named after where the text came from: it isn't UTF-8.
  std::vector<int32_t> encode(const text::Tokenizer& tokenizer, const std::string& text,
                              const text::EncodeOptions& options = {}) const;

 private:
  std::string prompt_, file_;
  Option prompt_option_, file_option_;
};

/// Options of every command that samples.
struct SamplingOptions {
  text::SamplerOptions sampler;
  void add_to(Command command);
  /// Errors: a value out of range.
  void check() const { text::Sampler{sampler}; }
};

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
/// Sets the flag that interrupted() reads on Ctrl-C, SIGTERM or the terminal's end; a second signal
/// ends the process. Makes failures of writing errors, not signals.
void handle_interrupts();
bool interrupted();
/// Makes interrupted() false again: the next Ctrl-C counts anew.
void clear_interrupt();

double now_seconds();
/// Largest resident memory of the process so far.
int64_t peak_resident_bytes();
std::string human_bytes(int64_t bytes);
/// Prints a JSON document; bytes that aren't UTF-8 become U+FFFD.
void print_json(const Json& json);
/// Writes to stdout at once. Errors: stdout is closed.
void print(std::string_view text);
/// The whole of a file, "-" for standard input; what there is by then when interrupted. Errors: it
/// can't be read.
std::string read_text(const std::string& path);
/// The tokens of a text that came from `source`: a path, "-" or an option's name. Errors,
/// named after it: it isn't UTF-8.
std::vector<int32_t> encode_text(const text::Tokenizer& tokenizer, const std::string& text,
                                 const std::string& source,
                                 const text::EncodeOptions& options = {});
/// Errors: a number of tokens to generate that is neither -1 (no limit) nor 0 and more.
void check_token_limit(int64_t count);

}  // namespace wick::cli
