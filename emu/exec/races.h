#pragma once

// Records which wave or workgroup last used each piece of memory. Finds reads of LDS that nothing
// wrote, and accesses that aren't ordered by a barrier (within a workgroup) or not ordered at all
// (between workgroups).

#include <cstdint>
#include <cstring>
#include <vector>

#include "emu/exec/wave.h"

namespace emu {

/// The state of a workgroup's LDS, by dword.
struct LdsTrack {
  std::vector<uint8_t> written;  // whether each byte has been written
  std::vector<uint32_t> writer;  // last write: epoch * 64 + wave; 0: none
  std::vector<uint32_t> reader;  // last read, in the same format; wave kSeveral: several waves
  // Segments of kLine bytes in which an access has used part of a dword have tags for each byte
  // during the epoch in `narrow`.
  std::vector<uint32_t> byte_writer, byte_reader, narrow;
  uint32_t epoch = 1;       // counts barriers
  uint32_t atomics_in = 0;  // the epoch in which a wave last used an atomic operation
  static constexpr uint32_t kSeveral = 63, kLine = 64;

  bool is_written(size_t offset, uint32_t bytes) const {
    return offset + bytes <= written.size() && std::memchr(&written[offset], 0, bytes) == nullptr;
  }
  bool is_narrow(uint64_t offset) const { return narrow[offset / kLine] == epoch; }
  /// Starts a workgroup: nothing has been written.
  void start(uint32_t bytes);
};

enum class Use : uint8_t { read, write, atomic };

/// Encodes, as a negative number, consecutive lanes from `first` on, each of which accesses `bytes`
/// bytes of a range.
constexpr int lanes_from(int first, uint32_t bytes) {
  return -1 - first - kLanes * static_cast<int>(bytes);
}
/// Returns the lane, or for lanes_from() the one that accesses the byte at `distance` within the
/// range.
constexpr int lane_at(int lane, uint64_t distance) {
  if (lane >= 0) return lane;
  const int code = -1 - lane;
  return code % kLanes + static_cast<int>(distance) / (code / kLanes);
}

/// Records an access to LDS by one wave and reports what is wrong with it. `lane` is the index
/// within the half.
void use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use);

/// Holds two tags for each dword of the arena: the workgroups that last wrote and read it in a
/// launch. Most launches access whole segments of 64 bytes (kLine), so a segment has a single pair
/// of tags until an access uses part of it. A segment in which an access uses part of a dword has
/// tags for each byte. Threads update tags without locks: a tag that one thread records while
/// another divides the segment may be lost, but a tag never belongs to a byte that nobody used.
struct RaceShadow {
  static constexpr uint32_t kSeveral = 0xffffff;
  static constexpr uint64_t kLine = 64;
  static constexpr uint32_t kNarrow = 1, kBusy = 2;

  struct Line {
    uint32_t writer, reader;  // in the format below, for all dwords of the segment
    // The launch << 24 in which the dwords have their own tags. With kNarrow the bytes do, too.
    // kBusy means that a thread is changing the segment.
    uint32_t divided;
    uint32_t mark() const { return __atomic_load_n(&divided, __ATOMIC_ACQUIRE); }
  };

  uintptr_t base = 0;  // address of the arena
  size_t bytes = 0;
  uint32_t* writers = nullptr;  // launch << 24 | group + 1; group kSeveral: several workgroups
  uint32_t* readers = nullptr;
  uint32_t* byte_writers = nullptr;
  uint32_t* byte_readers = nullptr;
  Line* lines = nullptr;

  RaceShadow(uintptr_t base, size_t bytes);
  /// Clears the tags of all launches; called before a launch number is reused.
  void forget();
  /// Returns a workgroup's tag within a launch.
  static uint32_t tag_of(uint32_t launch_tag, uint32_t group) {
    return launch_tag | (group % (kSeveral - 1) + 1);
  }
  ~RaceShadow();
  template <class F>
  void for_all(const F& f) {
    f(writers, 2 * (bytes / 4 + 16) * sizeof(uint32_t));
    f(byte_writers, 2 * (bytes + 64) * sizeof(uint32_t));
    f(lines, (bytes / kLine + 2) * sizeof(Line));
  }
  RaceShadow(const RaceShadow&) = delete;
  RaceShadow& operator=(const RaceShadow&) = delete;
};

/// Copies a segment's tags to its dwords. `launch` is in the upper bits.
void divide_line(RaceShadow& shadow, uint64_t line, uint32_t launch);

/// Records an access to global memory by one workgroup. Doesn't report accesses of a workgroup that
/// has used an atomic operation or invalidated its caches, since that may have ordered them.
void use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use);

/// Reports that another lane at the same place has replaced what the first of `lanes` wrote.
void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes);

}  // namespace emu
