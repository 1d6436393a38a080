#pragma once

// Formats what kernels print. The text and its arguments come from a kernel, so nothing about them
// is trusted.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace emu {

/// Formats a message of HIP's printf: a format string, padded with zeros to whole words, and its
/// arguments. An argument is one word, or a string that is padded to whole words. Conversions
/// without an argument end the text, %n prints nothing.
std::string format_message(std::span<const uint64_t> words);

/// A format string of a code object's metadata (`amdhsa.printf`).
struct PrintFormat {
  uint64_t id = 0;  // HIP: a hash of the text; OpenCL: a number
  bool of_hip = false;
  std::vector<uint32_t> sizes;  // OpenCL: the bytes of each argument
  std::string text;
};

/// Reads "0:0:hash,text" of HIP or "id:count:size...:text" of OpenCL. Returns false if it is
/// neither.
bool read_print_format(std::string_view entry, PrintFormat& format);

/// What a kernel has printed into a printf buffer, by stream.
struct Printed {
  std::string out, err;
  bool whole = true;  // false: the buffer holds a record that can't be read
};

/// Formats the records of a printf buffer, which follow its two leading dwords.
Printed format_records(std::span<const uint8_t> records, std::span<const PrintFormat> formats);

}  // namespace emu
