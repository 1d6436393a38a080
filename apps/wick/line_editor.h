#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace wick::cli {

/// Reads lines from standard input, which must be a terminal, with libedit. Supports lines of any
/// length in UTF-8, arrow keys and a history of previous lines (also Ctrl-P, Ctrl-N and Ctrl-R).
class LineEditor {
 public:
  enum class Outcome : uint8_t {
    line,       ///< Enter
    cancelled,  ///< Ctrl-C: the typed text is dropped
    end,        ///< Ctrl-D on an empty line, or the terminal was closed
  };

  explicit LineEditor(std::string prompt);
  ~LineEditor();

  /// Reads the next line, without its newline. Characters that aren't UTF-8 become U+FFFD.
  Outcome read(std::string& line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wick::cli
