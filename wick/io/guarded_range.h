#pragma once

#include <cstddef>

namespace wick::io {

/// A mapped range of a file that stays readable when the file loses its pages. The kernel answers a
/// read past the file's end, or of a page that can't be read from the disk, with SIGBUS. A handler
/// of that signal then puts zeros in place of the range from that page on, marks the range as
/// damaged, and lets the thread go on: whoever reads the range asks is_damaged() before it uses
/// what it made of it. Signals for other addresses go to the handler that was there before, or end
/// the process as they would have.
class GuardedRange {
 public:
  /// [begin, begin + bytes) is mapped and begins at a page. Installs the handler.
  GuardedRange(const void* begin, size_t bytes);
  /// The range is still mapped: unmap it afterwards.
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  bool is_damaged() const noexcept;

  /// Installs the handler where somebody has put another one in its place since; that one is called
  /// for addresses outside all ranges.
  static void claim_signal();

  struct Entry;

 private:
  Entry* entry_;
};

}  // namespace wick::io
