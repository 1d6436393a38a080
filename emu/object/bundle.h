#pragma once

// Reads the module images that callers pass: a code object, or a bundle of several, compressed or
// not.

#include <cstdint>
#include <string>
#include <vector>

#include "emu/object/bytes.h"
#include "emu/object/target.h"

namespace emu {

struct BundleEntry {
  std::string kind;    // host, hip, hipv4 …
  std::string target;  // as written, without the target triple
  Bytes bytes;
};

inline constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
inline constexpr char kPackedMagic[] = "CCOB";

/// Returns the entries of an uncompressed bundle. Throws ObjectError.
std::vector<BundleEntry> read_bundle(Bytes bytes);

/// Returns the code object for a device: the whole file, or the bundle entry that fits the device
/// best. Throws ObjectError, with kind no_binary if nothing fits.
std::vector<uint8_t> select_image(Bytes bytes, const Target& device);

/// Copies an image of unknown size, which is computed from its headers. Doesn't read unmapped
/// memory.
std::vector<uint8_t> copy_image(const void* image);

}  // namespace emu
