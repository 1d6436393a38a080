#pragma once

// Records which wave last used each piece of memory. Finds reads of LDS that nothing wrote, and
// accesses that nothing orders: between waves of a workgroup without a barrier, between workgroups
// of a launch, and between launches on different streams.

#include <array>
#include <atomic>
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
  // Whether some wave reached the last barrier without a wait for a store to LDS or global memory.
  bool lds_late = false, global_late = false;
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
/// within the half. Returns false, without a record or a report, if the access is a write of
/// several lanes that something is wrong with: the caller then asks for each lane, since lanes that
/// write what memory already holds don't race.
bool use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use);

/// Identifies who used global memory: launch << 56 | (workgroup + 1) << 32 | epoch << 6 | wave.
/// Launches are numbered from 1 to 255. Epochs count the barriers of the workgroup.
using Tag = uint64_t;

/// The launches that aren't ordered before one launch and may run with it at the same time.
struct ForeignLaunches {
  std::array<uint8_t, 256> numbers{};  // 1 if the launch of that number is one, or hasn't begun
  bool any = false;                    // whether one of those that had begun before is one
  const std::atomic<uint32_t>* begun = nullptr;  // counts launches: those that begin later are some
  uint32_t begun_before = 0;

  bool operator[](uint64_t number) const { return numbers[number] != 0; }
  /// False if there is none. Called after tags have been read.
  bool possible() const { return any || begun->load(std::memory_order_relaxed) != begun_before; }
};

/// Holds two tags for each dword of the arena: who last wrote it and who last read it. Most
/// launches access whole segments of 64 bytes (kLine), so a segment has a single pair of tags until
/// an access uses part of it. A segment in which an access uses part of a dword has tags for each
/// byte. Threads update tags without locks: a tag that one thread records while another divides the
/// segment may be lost, but a tag never belongs to a byte that nobody used.
struct RaceShadow {
  static constexpr uint32_t kSeveral = 0xffffff;  // the workgroup number of several workgroups
  static constexpr uint64_t kLine = 64;
  // kForeign: some tags in the segment belong to a launch that isn't ordered before this one.
  static constexpr uint32_t kNarrow = 1, kBusy = 2, kForeign = 4, kMarks = 7;

  struct Line {
    Tag writer, reader;  // for all dwords of the segment
    // The launch << 24 in which the dwords have their own tags. With kNarrow the bytes do, too.
    // kBusy means that a thread is changing the segment.
    uint32_t divided;
    uint32_t mark() const { return __atomic_load_n(&divided, __ATOMIC_ACQUIRE); }
  };

  uintptr_t base = 0;  // address of the arena
  size_t bytes = 0;
  Tag* writers = nullptr;
  Tag* readers = nullptr;
  Tag* byte_writers = nullptr;
  Tag* byte_readers = nullptr;
  Line* lines = nullptr;

  RaceShadow(uintptr_t base, size_t bytes);
  /// Clears the tags of all launches; called before a launch number is reused.
  void forget();
  /// Clears the tags of memory that is allocated again.
  void forget(uintptr_t address, size_t size);
  /// Returns the upper half of a workgroup's tags. `launch` is the launch << 24.
  static uint32_t tag_of(uint32_t launch, uint32_t group) {
    return launch | (group % (kSeveral - 1) + 1);
  }
  ~RaceShadow();
  template <class F>
  void for_all(const F& f) {
    f(writers, 2 * (bytes / 4 + 16) * sizeof(Tag));
    f(byte_writers, 2 * (bytes + 64) * sizeof(Tag));
    f(lines, (bytes / kLine + 2) * sizeof(Line));
  }
  RaceShadow(const RaceShadow&) = delete;
  RaceShadow& operator=(const RaceShadow&) = delete;
};

/// Makes the dwords of a segment have tags of their own in the wave's launch.
void divide_line(Wave* w, uint64_t line);

/// Records an access to global memory by one wave and reports races. `lane` and the result are as
/// for use_lds(). Doesn't report accesses of a workgroup that has used an atomic operation or
/// invalidated its caches, since that may have ordered them.
bool use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use);

/// Reports that another lane at the same place has replaced what the first of `lanes` wrote.
void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes);

/// All waves of the workgroup have arrived at a barrier.
void pass_barrier(Workgroup& group);

}  // namespace emu
