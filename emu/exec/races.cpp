#include "emu/exec/races.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>

#include "emu/exec/launch.h"

namespace emu {
namespace {

std::string lds_text(const char* what, uint64_t offset, uint32_t wave, const char* other) {
  char text[160];
  std::snprintf(text, sizeof text, "%s LDS at %llu, which wave %u %s without a barrier between",
                what, static_cast<unsigned long long>(offset), wave, other);
  return text;
}

/// An address and what memory it is in.
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
    epoch = 0;
  }
  ++epoch;  // what an earlier group did is long ago
}

void use_lds(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane, Use use) {
  LdsTrack& track = *w->group->lds_track;
  if (offset + bytes > track.written.size()) return;
  const uint32_t wave = w->index % LdsTrack::kSeveral;
  const uint32_t mine = track.epoch * 64 + wave;
  const auto others = [&](uint32_t tag) { return tag / 64 == track.epoch && tag != mine; };
  if (use == Use::read) {
    const auto* first = &track.written[offset];
    const auto* unwritten = std::find(first, first + bytes, 0);
    if (unwritten != first + bytes) {
      report(w, op, Check::lds, lane_at(lane, static_cast<uint64_t>(unwritten - first)),
             "reads LDS at " + std::to_string(offset + static_cast<uint64_t>(unwritten - first)) +
                 ", which nothing has written");
    }
  } else {
    std::fill_n(track.written.begin() + static_cast<ptrdiff_t>(offset), bytes, 1);
  }
  if (w->group->waves_begun < 2 || !w->launch->check_races) return;
  for (uint64_t dword = offset / 4; dword < (offset + bytes + 3) / 4; ++dword) {
    uint32_t &writer = track.writer[dword], &reader = track.reader[dword];
    // In order with each other; with plain accesses, too: those may be atomic loads and stores,
    // which have no instructions of their own.
    if (use == Use::atomic) continue;
    const auto which = [&] { return lane_at(lane, std::max(dword * 4, offset) - offset); };
    if (others(writer)) {
      report(w, op, Check::races, which(),
             lds_text(use == Use::read ? "reads" : "writes", dword * 4, writer % 64, "wrote"));
    }
    if (use == Use::read) {
      reader = others(reader) ? track.epoch * 64 + LdsTrack::kSeveral : mine;
    } else {
      if (others(reader)) {
        report(w, op, Check::races, which(), lds_text("writes", dword * 4, reader % 64, "read"));
      }
      writer = mine;
    }
  }
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

// Quick looks may go a little beyond the arena's end.
RaceShadow::RaceShadow(uintptr_t arena, size_t arena_bytes) : base(arena), bytes(arena_bytes) {
  writers = reserve<uint32_t>(2 * (bytes / 4 + 16));
  readers = writers + bytes / 4 + 16;
  lines = reserve<Line>(bytes / kLine + 2);
}

RaceShadow::~RaceShadow() {
  munmap(writers, 2 * (bytes / 4 + 16) * sizeof(uint32_t));
  munmap(lines, (bytes / kLine + 2) * sizeof(Line));
}

void RaceShadow::forget() {
  madvise(writers, 2 * (bytes / 4 + 16) * sizeof(uint32_t), MADV_DONTNEED);
  madvise(lines, (bytes / kLine + 2) * sizeof(Line), MADV_DONTNEED);
}

void divide_line(RaceShadow& shadow, uint64_t line, uint32_t launch) {
  RaceShadow::Line& entry = shadow.lines[line];
  const uint64_t first = line * (RaceShadow::kLine / 4);
  const auto give = [&](uint32_t tag, uint32_t* to) {
    if (tag >> 24 == launch >> 24) std::fill_n(to + first, RaceShadow::kLine / 4, tag);
  };
  give(entry.writer, shadow.writers);
  give(entry.reader, shadow.readers);
  entry.divided = launch;
}

void use_global(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane, Use use) {
  RaceShadow& shadow = *w->launch->races;
  if (use == Use::atomic) {
    w->group->synchronised = true;
    return;
  }
  if (address - shadow.base >= shadow.bytes || w->group->synchronised) return;
  const uint32_t mine = RaceShadow::tag_of(w->launch->race_tag, w->group->number);
  const auto others = [&](uint32_t tag) {
    return tag >> 24 == w->launch->race_tag >> 24 && tag != mine;
  };
  const size_t end = (address - shadow.base + bytes + 3) / 4;
  for (size_t dword = (address - shadow.base) / 4; dword < end; ++dword) {
    uint32_t &writer = shadow.writers[dword], &reader = shadow.readers[dword];
    const bool after_write = others(writer);
    const bool after_read = use == Use::write && others(reader);
    if (after_write || after_read) [[unlikely]] {
      const uint32_t other = (after_write ? writer : reader) & 0xffffff;
      const std::string whose = other == RaceShadow::kSeveral
                                    ? "other workgroups"
                                    : "workgroup number " + std::to_string(other - 1);
      const uint64_t at = std::max(shadow.base + dword * 4, address);
      report(w, op, Check::races, lane_at(lane, at - address),
             std::string(use == Use::read ? "reads" : "writes") + " memory at " +
                 place_of(w, shadow.base + dword * 4) + " that " + whose + " " +
                 (after_write ? "wrote" : "read") + " in this launch");
    }
    if (use == Use::read) {
      reader = others(reader) ? w->launch->race_tag | RaceShadow::kSeveral : mine;
    } else {
      writer = mine;
    }
  }
}

void report_overwritten(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets,
                        uint32_t lanes, uint32_t bytes) {
  const int first = std::countr_zero(lanes);
  for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint32_t distance = std::max(offsets[lane], offsets[first]) -
                              std::min(offsets[lane], offsets[first]);
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
