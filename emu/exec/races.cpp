#include "emu/exec/races.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>
#include <thread>

#include "emu/exec/launch.h"

namespace emu {
namespace {

std::string lds_text(const char* what, uint64_t offset, uint32_t wave, const char* other) {
  char text[160];
  std::snprintf(text, sizeof text, "%s LDS at %llu, which wave %u %s without a barrier between",
                what, static_cast<unsigned long long>(offset), wave, other);
  return text;
}

/// Describes an address and the memory that it belongs to.
std::string place_of(Wave* w, uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  const auto& describe = w->launch->describe;
  return text + (describe ? " (" + describe(address) + ")" : "");
}

}  // namespace

void LdsTrack::start(uint32_t bytes) {
  const size_t dwords = (bytes + 3) / 4;
  written.assign(bytes, 0);
  if (writer.size() < dwords || epoch > (1u << 25)) {
    writer.assign(dwords, 0);
    reader.assign(dwords, 0);
    byte_writer.resize(dwords * 4);  // read only for segments that `narrow` marks
    byte_reader.resize(dwords * 4);
    narrow.assign(dwords * 4 / kLine + 1, 0);
    epoch = 0;
  }
  ++epoch;  // accesses of an earlier workgroup belong to an earlier epoch
  atomics_in = 0;
}

namespace {

/// The tag arrays of one kind of memory, by dword and by byte.
struct TagArrays {
  uint32_t *writers, *readers, *byte_writers, *byte_readers;

  /// Copies the tags of a segment's dwords to its bytes.
  void give_to_bytes(uint64_t line, uint64_t size) const {
    const uint64_t end = std::min(size, (line + 1) * RaceShadow::kLine);
    for (uint64_t byte = line * RaceShadow::kLine; byte < end; ++byte) {
      byte_writers[byte] = writers[byte / 4];
      byte_readers[byte] = readers[byte / 4];
    }
  }
};

/// Calls note(offset, writer, reader) for each dword of a range of memory, or for each byte in
/// segments that an access to less than a dword has used. is_narrow(line) tests for such a segment,
/// and make_narrow(line) makes it one. An access to part of a dword never changes the dword's tags,
/// whatever other threads do to the segment meanwhile: those tags would claim that the neighbouring
/// bytes were used, too.
template <class IsNarrow, class MakeNarrow, class Note>
void note_each(const TagArrays& tags, uint64_t first, uint64_t end, const IsNarrow& is_narrow,
               const MakeNarrow& make_narrow, const Note& note) {
  for (uint64_t from = first; from < end;) {
    const uint64_t line = from / RaceShadow::kLine;
    const uint64_t to = std::min(end, (line + 1) * RaceShadow::kLine);
    const bool part = from % 4 != 0 || to % 4 != 0;
    if (part) make_narrow(line);
    const bool narrow = part || is_narrow(line);
    for (; from < to; from += narrow ? 1 : 4) {
      if (narrow) {
        note(from, tags.byte_writers[from], tags.byte_readers[from]);
      } else {
        note(from, tags.writers[from / 4], tags.readers[from / 4]);
      }
    }
  }
}

void check_written(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane) {
  const std::vector<uint8_t>& written = w->group->lds_track->written;
  const auto any_in = [&](uint64_t from, uint64_t to) {
    const auto begin = written.begin();
    return std::find(begin + static_cast<ptrdiff_t>(from), begin + static_cast<ptrdiff_t>(to), 1) !=
           begin + static_cast<ptrdiff_t>(to);
  };
  // Dwords of which a part has been written count as written, as in global memory.
  uint64_t from = offset;
  const uint64_t end = offset + bytes;
  while (from < end && any_in(from, std::min(end, (from / 4 + 1) * 4))) from = (from / 4 + 1) * 4;
  if (from >= end) return;
  const uint64_t distance = from - offset;
  report(w, op, Check::lds, lane_at(lane, distance),
         "reads LDS at " + std::to_string(offset + distance) + ", which nothing has written");
}

}  // namespace

void use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use) {
  LdsTrack& track = *w->group->lds_track;
  if (offset + bytes > track.written.size()) return;
  if (use == Use::read) {
    check_written(w, op, offset, bytes, lane);
  } else {
    std::fill_n(track.written.begin() + static_cast<ptrdiff_t>(offset), bytes, 1);
  }
  // Atomic operations are ordered with each other and may have ordered plain accesses, until the
  // next barrier. Those plain accesses may be atomic loads and stores: they have no instructions of
  // their own.
  if (use == Use::atomic) track.atomics_in = track.epoch;
  if (w->group->waves_begun < 2 || !w->launch->check_races || track.atomics_in == track.epoch)
    return;
  const uint32_t mine = track.epoch * 64 + w->index % LdsTrack::kSeveral;
  const auto others = [&](uint32_t tag) { return tag / 64 == track.epoch && tag != mine; };
  const TagArrays tags{track.writer.data(), track.reader.data(), track.byte_writer.data(),
                       track.byte_reader.data()};
  const auto is_narrow = [&](uint64_t line) { return track.narrow[line] == track.epoch; };
  const auto make_narrow = [&](uint64_t line) {
    if (is_narrow(line)) return;
    tags.give_to_bytes(line, track.writer.size() * 4);
    track.narrow[line] = track.epoch;
  };
  const auto tell = [&](uint64_t at, uint32_t tag, const char* other) {
    at = std::max(at, offset);
    report(w, op, Check::races, lane_at(lane, at - offset),
           lds_text(use == Use::read ? "reads" : "writes", at, tag % 64, other));
  };
  note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
            [&](uint64_t at, uint32_t& writer, uint32_t& reader) {
              if (others(writer)) tell(at, writer, "wrote");
              if (use == Use::read) {
                reader = others(reader) ? track.epoch * 64 + LdsTrack::kSeveral : mine;
              } else {
                if (others(reader)) tell(at, reader, "read");
                writer = mine;
              }
            });
}

namespace {

template <class T>
T* reserve(size_t count) {
  void* room = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(room);
}

}  // namespace

// The fast paths of race_checks.h may access tags slightly beyond the end of the arena.
RaceShadow::RaceShadow(uintptr_t arena, size_t arena_bytes) : base(arena), bytes(arena_bytes) {
  const size_t dwords = bytes / 4 + 16, each = bytes + 64;
  writers = reserve<uint32_t>(2 * dwords);
  readers = writers + dwords;
  byte_writers = reserve<uint32_t>(2 * each);
  byte_readers = byte_writers + each;
  lines = reserve<Line>(bytes / kLine + 2);
}

RaceShadow::~RaceShadow() {
  for_all([](void* room, size_t room_bytes) { munmap(room, room_bytes); });
}

void RaceShadow::forget() {
  for_all([](void* room, size_t room_bytes) { madvise(room, room_bytes, MADV_DONTNEED); });
}

namespace {

/// Changes a segment by give() until is_there(its mark) holds. One of the threads that need the
/// change performs it and the others wait.
template <class IsThere, class Give>
void change_line(RaceShadow::Line& line, uint32_t to, const IsThere& is_there, const Give& give) {
  for (;;) {
    uint32_t now = line.mark();
    if (is_there(now)) return;
    if ((now & RaceShadow::kBusy) != 0) {
      std::this_thread::yield();
    } else if (__atomic_compare_exchange_n(&line.divided, &now, to | RaceShadow::kBusy, false,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      break;
    }
  }
  give();
  __atomic_store_n(&line.divided, to, __ATOMIC_RELEASE);
}

}  // namespace

void divide_line(RaceShadow& shadow, uint64_t line, uint32_t launch) {
  RaceShadow::Line& entry = shadow.lines[line];
  const uint64_t first = line * (RaceShadow::kLine / 4);
  const auto give = [&](uint32_t tag, uint32_t* to) {
    if (tag >> 24 == launch >> 24) std::fill_n(to + first, RaceShadow::kLine / 4, tag);
  };
  const auto is_there = [&](uint32_t mark) { return (mark & ~RaceShadow::kNarrow) == launch; };
  change_line(entry, launch, is_there, [&] {
    give(entry.writer, shadow.writers);
    give(entry.reader, shadow.readers);
  });
}

void use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use) {
  RaceShadow& shadow = *w->launch->races;
  if (use == Use::atomic) {
    w->group->synchronised = true;
    return;
  }
  if (address - shadow.base >= shadow.bytes || w->group->synchronised) return;
  const uint64_t offset = address - shadow.base;
  const uint32_t launch = w->launch->race_tag, mine = RaceShadow::tag_of(launch, w->group->number);
  const auto others = [&](uint32_t tag) { return tag >> 24 == launch >> 24 && tag != mine; };
  const TagArrays tags{shadow.writers, shadow.readers, shadow.byte_writers, shadow.byte_readers};
  const uint32_t narrow_mark = launch | RaceShadow::kNarrow;
  const auto is_there = [&](uint32_t mark) { return mark == narrow_mark; };
  const auto is_narrow = [&](uint64_t line) { return is_there(shadow.lines[line].mark()); };
  const auto make_narrow = [&](uint64_t line) {
    change_line(shadow.lines[line], narrow_mark, is_there,
                [&] { tags.give_to_bytes(line, shadow.bytes); });
  };
  const auto tell = [&](uint64_t at, uint32_t tag, const char* what) {
    at = std::max(at, offset);
    const uint32_t other = tag & 0xffffff;
    const std::string whose = other == RaceShadow::kSeveral
                                  ? "other workgroups"
                                  : "workgroup number " + std::to_string(other - 1);
    report(w, op, Check::races, lane_at(lane, at - offset),
           std::string(use == Use::read ? "reads" : "writes") + " memory at " +
               place_of(w, shadow.base + at) + " that " + whose + " " + what + " in this launch");
  };
  note_each(tags, offset, offset + bytes, is_narrow, make_narrow,
            [&](uint64_t at, uint32_t& writer, uint32_t& reader) {
              if (others(writer)) {
                tell(at, writer, "wrote");
              } else if (use == Use::write && others(reader)) {
                tell(at, reader, "read");
              }
              if (use == Use::read) {
                reader = others(reader) ? launch | RaceShadow::kSeveral : mine;
              } else {
                writer = mine;
              }
            });
}

void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes) {
  const int first = std::countr_zero(lanes);
  for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint32_t distance =
        std::max(offsets[lane], offsets[first]) - std::min(offsets[lane], offsets[first]);
    if (distance >= bytes) continue;
    const uint64_t address = base + offsets[first];
    const auto lds = reinterpret_cast<uint64_t>(w->lds);
    const std::string where = address - lds < w->lds_bytes
                                  ? "LDS at " + std::to_string(address - lds)
                                  : "memory at " + place_of(w, address);
    report(w, op, Check::races, first,
           "writes " + where + ", to which lane " + std::to_string(lane) +
               " writes another value at once");
    return;
  }
}

}  // namespace emu
