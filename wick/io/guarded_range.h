#pragma once

#include <cstddef>

namespace wick::io {

/// A mapped range of a file that stays readable when the file loses its pages. The kernel answers a
/// read past the file's end, or of a page that can't be read from the disk, with SIGBUS. A handler
/// of that signal then maps zeros over the range from that page on, marks the range as damaged, and
/// lets the thread continue. Readers of the range check is_damaged() before they use what they
/// computed from it. Signals for other addresses go to the previously installed handler, or end the
/// process if there is none.
class GuardedRange {
 public:
  /// [begin, begin + bytes) must be mapped and start at a page boundary. Installs the signal
  /// handler.
  GuardedRange(const void* begin, size_t bytes);
  /// Must run before the range is unmapped.
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  bool is_damaged() const noexcept;

  /// Reinstalls the handler if another one has replaced it. That one is then called for addresses
  /// outside all ranges.
  static void claim_signal();

  struct Entry;

 private:
  Entry* entry_;
};

}  // namespace wick::io
