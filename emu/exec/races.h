#pragma once

// Who used which memory since when: finds reads of LDS that nothing wrote, and accesses that no
// barrier, or between workgroups nothing at all, has put in order.

#include <cstdint>
#include <cstring>
#include <vector>

#include "emu/exec/wave.h"

namespace emu {

/// What is known of a workgroup's LDS, by dword.
struct LdsTrack {
  std::vector<uint8_t> written;  // of each byte: something was
  std::vector<uint32_t> writer;  // epoch * 64 + wave of the last write; 0: none
  std::vector<uint32_t> reader;  // the same of the last read; kSeveral for the wave: several
  // Lines of which a part of a dword is used have tags for each byte, in the epoch of `narrow`.
  std::vector<uint32_t> byte_writer, byte_reader, narrow;
  uint32_t epoch = 1;       // counts barriers
  uint32_t atomics_in = 0;  // the epoch in which a wave has last used an atomic operation
  static constexpr uint32_t kSeveral = 63, kLine = 64;

  bool is_written(size_t offset, uint32_t bytes) const {
    return offset + bytes <= written.size() && std::memchr(&written[offset], 0, bytes) == nullptr;
  }
  bool is_narrow(uint64_t offset) const { return narrow[offset / kLine] == epoch; }
  /// A workgroup starts: nothing is written.
  void start(uint32_t bytes);
};

enum class Use : uint8_t { read, write, atomic };

/// Instead of a lane, several: from `first` on, each with `bytes` bytes of a range. Negative.
constexpr int lanes_from(int first, uint32_t bytes) {
  return -1 - first - kLanes * static_cast<int>(bytes);
}
/// The lane, or the one of several that has the byte `distance` of a range.
constexpr int lane_at(int lane, uint64_t distance) {
  if (lane >= 0) return lane;
  const int code = -1 - lane;
  return code % kLanes + static_cast<int>(distance) / (code / kLanes);
}

/// Notes an access to LDS by one wave, and reports what is wrong with it. `lane` of the half.
void use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use);

/// Two tags for each dword of the arena: the workgroups that wrote and read it last in a launch.
/// Most launches use whole lines of 64 bytes: those have one pair of tags, as long as nobody uses a
/// part. Lines of which somebody uses a part of a dword have tags for each byte. Threads change
/// tags without asking each other: what one notes while another divides the line may be forgotten,
/// but never belongs to a byte that nobody used.
struct RaceShadow {
  static constexpr uint32_t kSeveral = 0xffffff;
  static constexpr uint64_t kLine = 64;
  static constexpr uint32_t kNarrow = 1, kBusy = 2;

  struct Line {
    uint32_t writer, reader;  // as below, of all its dwords
    // The launch << 24 in which its dwords have tags of their own; with kNarrow, its bytes, too;
    // with kBusy, in a moment: a thread is at it.
    uint32_t divided;
    uint32_t mark() const { return __atomic_load_n(&divided, __ATOMIC_ACQUIRE); }
  };

  uintptr_t base = 0;  // of the arena
  size_t bytes = 0;
  uint32_t* writers = nullptr;  // launch << 24 | group + 1; kSeveral for the group: several
  uint32_t* readers = nullptr;
  uint32_t* byte_writers = nullptr;
  uint32_t* byte_readers = nullptr;
  Line* lines = nullptr;

  RaceShadow(uintptr_t base, size_t bytes);
  /// Forgets all launches; before a launch's number comes again.
  void forget();
  /// A workgroup's tag within a launch.
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

/// Gives a line's tags to its dwords; `launch` is in the upper bits.
void divide_line(RaceShadow& shadow, uint64_t line, uint32_t launch);

/// Notes an access to global memory by one workgroup. Not reported: accesses of a workgroup that
/// has used an atomic operation or invalidated its caches, since that may have put them in order.
void use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use);

/// Reports that the first of `lanes` wrote what another of them, at the same place, has replaced.
void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes);

}  // namespace emu
