#pragma once

// What callers hand over as a module: a code object, or a bundle of several, packed or not.

#include <cstdint>
#include <string>
#include <vector>

#include "emu/object/bytes.h"
#include "emu/object/target.h"

namespace emu {

struct BundleEntry {
  std::string kind;    // host, hip, hipv4 …
  std::string target;  // as written, without the triple
  Bytes bytes;
};

inline constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
inline constexpr char kPackedMagic[] = "CCOB";

/// The entries of an unpacked bundle. Throws ObjectError.
std::vector<BundleEntry> read_bundle(Bytes bytes);

/// The code object for a device out of a file's bytes: the file itself, or the best fitting entry
/// of a bundle. Throws ObjectError: no_binary where nothing fits.
std::vector<uint8_t> select_image(Bytes bytes, const Target& device);

/// The bytes of an image whose size isn't told, by its own headers. Reads no memory that isn't
/// there.
std::vector<uint8_t> copy_image(const void* image);

}  // namespace emu
