#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "wick/base/dtype.h"
#include "wick/serve/engine.h"

namespace wick::cli {

using Json = nlohmann::ordered_json;

/// Exit codes: everything went well, bad input or a failure, stopped by Ctrl-C.
inline constexpr int kOk = 0, kFailed = 2, kInterrupted = 130;

/// Adds a subcommand; `run` is called once its options are parsed and returns the exit code.
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

/// Options of every command that runs a model.
struct ModelOptions {
  std::string file;
  std::string device = "auto";
  std::optional<int> threads;  ///< not given: one a usable core
  int64_t context = 0;         ///< 0: what the model was trained for
  std::string cache = "f16";
  int64_t batch = 512;

  void add_to(CLI::App& command, bool with_context = true);
  /// Checks the options, applies threads and device, and loads the model under a progress bar.
  std::shared_ptr<const serve::Engine> load() const;
  serve::SessionOptions session() const;
};

/// Options of every command that samples.
struct SamplingOptions {
  text::SamplerOptions sampler;
  void add_to(CLI::App& command);
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
/// Sets the flag that interrupted() reads on Ctrl-C or SIGTERM; a second signal ends the process.
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
/// The whole of a file, "-" for standard input. Errors: it can't be read.
std::string read_text(const std::string& path);

}  // namespace wick::cli
