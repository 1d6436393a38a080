#pragma once

#include <cstdint>

namespace wick::cli {

/// Installs the handlers of SIGINT, SIGTERM and SIGHUP. They end the process at once with exit code
/// 130, unless a StopInOrder lives; a second signal always does. A SIGHUP that nohup ignores stays
/// ignored. Failures to write become errors of the call instead of SIGPIPE and SIGXFSZ.
void handle_interrupts();

/// Which signals a StopInOrder only notes, and for how long.
enum class Stop : uint8_t {
  soon,     ///< all; a second later the process ends anyway
  patient,  ///< all, for work whose files must be removed
  answer,   ///< SIGINT stops the answer only; the conversation continues
};

/// While one lives, the first signal makes interrupted() true and the work ends in order.
class StopInOrder {
 public:
  explicit StopInOrder(Stop how);
  ~StopInOrder();
  StopInOrder(const StopInOrder&) = delete;
  StopInOrder& operator=(const StopInOrder&) = delete;

 private:
  int before_;
};

bool interrupted();
/// Makes interrupted() false again: the next Ctrl-C counts anew.
void clear_interrupt();

/// Whether stderr shows a progress bar, which a signal that ends the process must clear.
void progress_shown(bool shown);

/// Signals that a reader of the terminal must handle; read_events() reports them.
struct TerminalEvents {
  bool resized = false, continued = false;
};

/// Reads standard input, a terminal, character by character and without echo while one lives. What
/// is typed ahead has no limit of length then, as it has in the kernel's line editing. The
/// terminal's settings come back with the destructor, with a signal that ends the process, and
/// while the process is stopped.
class CharacterTerminal {
 public:
  CharacterTerminal();
  ~CharacterTerminal();
  CharacterTerminal(const CharacterTerminal&) = delete;
  CharacterTerminal& operator=(const CharacterTerminal&) = delete;

  /// Waits for input or a signal. False: a signal came; interrupted() and events() say which.
  bool wait_for_input();
  /// What happened since the last call.
  TerminalEvents events();
};

}  // namespace wick::cli
