#pragma once

// Limits that all architectures have in common, and those of code objects. The work and the memory
// for reading a code object grow with the size of its file: nothing in a file is read more often
// than a fixed number of times, and what is kept of an entry isn't much larger than the entry. The
// limits below exclude the shapes for which that doesn't hold.

#include <cstdint>

namespace emu {

inline constexpr uint32_t kMostItems = 1024;       // work-items of a workgroup
inline constexpr uint32_t kMostScratch = 1 << 24;  // bytes of a lane: an emulator's limit

/// Bytes of a loaded code object, with the zeros of its variables. Those take memory only when they
/// are accessed; the checks of WICK_EMU_CHECK take a quarter of their size.
inline constexpr uint64_t kMostImage = uint64_t{1} << 32;

/// Bytes of a code object's file, of a bundle, and of a bundle that was unpacked. AMD's largest
/// code objects have some 100 MB.
inline constexpr uint64_t kMostFile = uint64_t{1} << 30;

/// Entries of a bundle, one for each target; AMD's libraries have a dozen.
inline constexpr uint64_t kMostEntries = 256;

/// How many times the size of a packed bundle it may have unpacked: rocBLAS has bundles of 40 times
/// theirs, while zstd packs a gigabyte of zeros into some kilobytes.
inline constexpr uint64_t kMostUnpacking = 128;

/// Program headers. Linkers write some ten; each loaded segment may touch a huge page of its own.
inline constexpr uint64_t kMostSegments = 64;

/// How many times the file's size all symbols' names may have together. Linkers let names share
/// bytes if one ends another, so that one long name may be the name of every symbol. In AMD's
/// libraries, the names have at most 0.4 times the file's size.
inline constexpr uint64_t kMostNames = 2;

/// Formats of printf. One of a few bytes takes some hundred in memory.
inline constexpr uint64_t kMostPrintFormats = 1 << 16;

// Of debug information, which is read when a line of code is first asked for. What exceeds these
// limits gives no lines.

/// Attributes of an entry. Some have no bytes in the entry; compilers write some twenty.
inline constexpr uint64_t kMostAttributes = 64;

/// Entries within each other, for which LLVM's reader recurses.
inline constexpr uint64_t kMostNesting = 1024;

/// How often the sections of ranges may be read, on average. Compilers write a list for each use.
inline constexpr uint64_t kMostRangeReads = 2;

/// Folders, or files, of a line table. One of a byte takes some hundred in memory.
inline constexpr uint64_t kMostSourceFiles = 1 << 16;

}  // namespace emu
