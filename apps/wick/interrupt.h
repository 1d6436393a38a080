#pragma once

#include <cstdint>

namespace wick::cli {

/// Installs handlers of SIGINT, SIGTERM and SIGHUP. They end the process at once with exit code 128
/// + the signal's number, unless a StopInOrder exists; a second signal always does. A signal that
/// is ignored when the process starts stays ignored. SIGPIPE and SIGXFSZ are disabled, so failed
/// writes return errors.
void handle_interrupts();

/// How a StopInOrder handles signals.
enum class Stop : uint8_t {
  soon,     ///< records all signals; the process ends one second later anyway
  patient,  ///< records all signals without a time limit, for work whose files must be removed
  answer,   ///< records SIGINT, which stops only the current answer; other signals end the process
};

/// While an object exists, the first signal makes interrupted() true, so that the work can stop
/// cleanly.
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
/// The exit code after the last signal that was recorded: 128 + its number, as shells have it.
int interrupted_code();
/// Resets interrupted(), so that the next Ctrl-C is recorded again.
void clear_interrupt();

/// Tells whether stderr shows a progress bar, which a handler that ends the process must clear.
void progress_shown(bool shown);
bool is_progress_shown();

/// Terminal events since the last call of CharacterTerminal::events().
struct TerminalEvents {
  bool resized = false, continued = false;
};

/// Switches standard input, a terminal, to character-by-character input without echo during its
/// lifetime. Input typed ahead then has no length limit, unlike in the kernel's line editing. The
/// terminal's settings are restored by the destructor, by a signal that ends the process, and while
/// the process is stopped.
class CharacterTerminal {
 public:
  CharacterTerminal();
  ~CharacterTerminal();
  CharacterTerminal(const CharacterTerminal&) = delete;
  CharacterTerminal& operator=(const CharacterTerminal&) = delete;

  /// Waits for input or a signal. Returns false for a signal, which interrupted() or events()
  /// reports.
  bool wait_for_input();
  /// Returns the events since the last call.
  TerminalEvents events();
};

}  // namespace wick::cli
