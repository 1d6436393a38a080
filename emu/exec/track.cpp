#include "emu/exec/track.h"

#include <string>

#include "emu/exec/launch.h"

namespace emu {
namespace {

std::string register_name(bool scalar, int32_t reg) {
  if (scalar && (reg == kVcc || reg == kVcc + 1)) return reg == kVcc ? "vcc_lo" : "vcc_hi";
  return (scalar ? "s" : "v") + std::to_string(reg);
}

int halves(const Wave* w) { return w->lanes == 64 ? 2 : 1; }

/// Marks the registers as filled by memory.
void arrive(Wave* w, const Pending& entry) {
  Track& track = *w->track;
  for (uint32_t reg = entry.first; reg < uint32_t{entry.first} + entry.count; ++reg) {
    if (--track.pending[reg] != 0) continue;
    track.known[0][reg] |= entry.known[0];
    if (w->lanes == 64) track.known[1][reg] |= entry.known[1];
  }
}

/// Forgets the oldest entries.
void drop(PendingRing& ring, uint32_t number) {
  ring.count -= number;
  // An empty ring starts again, so that it stays within few cache lines.
  ring.first = ring.count == 0 ? 0 : (ring.first + number) % PendingRing::kRoom;
}

void take_first(Wave* w, PendingRing& ring) {
  arrive(w, ring.at(0));
  drop(ring, 1);
}

/// Removes entries that don't need to be waited for any more.
void settle(Wave* w, PendingRing& ring) {
  uint32_t done = 0;
  for (; done < ring.count && ring.at(done).counters == 0; ++done) arrive(w, ring.at(done));
  drop(ring, done);
  uint32_t kept = 0;
  // These entries are behind a flat load that still waits for LDS.
  for (uint32_t i = 0; i < ring.count; ++i) {
    if (ring.at(i).counters == 0) {
      arrive(w, ring.at(i));
    } else {
      if (kept != i) ring.at(kept) = ring.at(i);
      ++kept;
    }
  }
  ring.count = kept;
}

}  // namespace

bool unknown_vector(Wave* w, const Op* op, int half, int32_t reg, uint32_t count, LaneMask enabled,
                    bool decides) {
  for (const int32_t end = reg + static_cast<int32_t>(count); reg < end; ++reg) {
    const LaneMask unknown = enabled & ~w->track->known[half][reg];
    if (unknown == 0) continue;
    const int lane = half * kLanes + __builtin_ctz(unknown);
    const Check check = w->track->pending[reg] != 0 ? Check::waits : Check::registers;
    if ((check == Check::registers && !decides) || was_reported(w, op, check)) continue;
    if (check == Check::waits) {
      report(w, op, Check::waits, lane,
             register_name(false, reg) + " is used before a wait for the load that fills it");
    } else {
      report(w, op, Check::registers, lane,
             register_name(false, reg) + " decides here and comes from what was never written");
    }
  }
  return true;
}

bool unknown_scalar(Wave* w, const Op* op, uint32_t reg) {
  const Check check = w->track->scalar_pending.has(reg) ? Check::waits : Check::registers;
  if (was_reported(w, op, check)) return true;
  const auto name = register_name(true, static_cast<int32_t>(reg));
  if (check == Check::waits) {
    report(w, op, Check::waits, -1, name + " is used before a wait for the load that fills it");
  } else {
    report(w, op, Check::registers, -1,
           name + (w->track->scalar_partial.has(reg)
                       ? " decides here and has bits of what was never written"
                       : " is read and was never written"));
  }
  return true;
}

void unknown_scc(Wave* w, const Op* op) {
  report(w, op, Check::registers, -1, "SCC decides here and comes from what was never written");
}

void written_while_pending(Wave* w, const Op* op, int32_t reg) {
  report(w, op, Check::waits, -1,
         register_name(false, reg) + " is written before a wait for the load that fills it");
}

void add_pending(Wave* w, uint8_t counters, uint32_t first, uint32_t count) {
  Track& track = *w->track;
  PendingRing& ring = counters & kVmem     ? track.vmem
                      : counters & kSample ? track.samples
                                           : track.lds;
  // The hardware counts fewer outstanding loads than this ring holds.
  if (ring.count == PendingRing::kRoom) take_first(w, ring);
  Pending& entry = ring.at(ring.count++);
  // The fields are assigned one by one: copying the whole struct would stall on store forwarding.
  entry.counters = counters;
  entry.first = static_cast<uint16_t>(first);
  entry.count = static_cast<uint16_t>(count);
  if (counters & kVmem) entry.vmem_number = ++track.vmem_issued;
  if (counters & kLds) entry.lgkm_number = ++track.lgkm_issued;
  if (counters & kSample) entry.sample_number = ++track.samples_issued;
  for (int half = 0; half < halves(w); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    LaneMask* const known = track.known[half] + first;
    LaneMask arriving = enabled & ~track.load_unknown[half];
    track.load_unknown[half] = 0;
    for (uint32_t i = 0; i < count; ++i) {
      // Registers that an earlier outstanding load fills are assumed to become known.
      arriving |= (track.pending[first + i] != 0 ? kAllLanes : known[i]) & ~enabled;
      known[i] = 0;
    }
    entry.known[half] = arriving;
  }
  for (uint32_t i = 0; i < count; ++i) ++track.pending[first + i];
}

void count_store(Wave* w, uint8_t counters) {
  Track& track = *w->track;
  if ((counters & kStore) != 0) ++(track.stores_counted ? track.stores_issued : track.vmem_issued);
  if ((counters & kLds) != 0) ++track.lgkm_issued;
}

void add_store(Wave* w, bool lds, uint64_t base, const uint32_t* offsets, LaneMask lanes,
               uint32_t bytes, bool atomic) {
  Track& track = *w->track;
  PendingStore& store = (lds ? track.lds_stores : track.global_stores).add();
  store.base = base;
  if (lanes == 1) {  // all of a range, as one lane's
    store.offsets[0] = offsets[0];
  } else {
    std::memcpy(store.offsets, offsets, sizeof store.offsets);
  }
  store.lanes = lanes;
  store.bytes = bytes;
  const uint32_t issued = lds                    ? track.lgkm_issued
                          : track.stores_counted ? track.stores_issued
                                                 : track.vmem_issued;
  store.number = issued + 1;
  store.atomic = atomic;
}

void arrive(Wave* w) {
  w->track->lds_stores.arrive();
  w->track->global_stores.arrive();
}

void check_barrier(Wave* w, const Op* op) {
  // A wave without active lanes arrives like any other: compilers leave EXEC at 0 behind a loop if
  // they restore the lanes of the statement around it anyway.
  const uint64_t missing = w->track->started & ~w->exec();
  if (missing == 0 || w->exec() == 0) return;
  report(w, op, Check::barriers, __builtin_ctzll(missing),
         "a barrier that " + std::to_string(__builtin_popcountll(missing)) +
             " lanes of the wave don't reach");
}

void wait_for_vmem(Wave* w, uint32_t left) {
  Track& track = *w->track;
  PendingRing& ring = track.vmem;
  uint32_t done = 0, behind = 0;  // behind: a flat load that still waits for LDS
  for (uint32_t i = 0; i < ring.count; ++i) {
    Pending& entry = ring.at(i);
    if (track.vmem_issued - entry.vmem_number < left) break;
    entry.counters &= static_cast<uint8_t>(~kVmem);
    if (entry.counters != 0 || behind != 0) {
      ++behind;
    } else {
      arrive(w, entry);
      ++done;
    }
  }
  drop(ring, done);
  if (behind != 0) settle(w, ring);
  if (!track.stores_counted) track.global_stores.wait(track.vmem_issued, left);
}

void wait_for_stores(Wave* w, uint32_t left) {
  Track& track = *w->track;
  if (track.stores_counted) track.global_stores.wait(track.stores_issued, left);
}

void wait_for_samples(Wave* w, uint32_t left) {
  Track& track = *w->track;
  PendingRing& ring = track.samples;
  while (ring.count > 0 && track.samples_issued - ring.at(0).sample_number >= left) {
    take_first(w, ring);
  }
}

void wait_for_smem(Wave* w, uint32_t left) {
  if (left != 0) return;
  Track& track = *w->track;
  track.scalar_known.add(track.scalar_pending);
  track.scalar_pending = {};
}

void wait_for_lds_and_smem(Wave* w, uint32_t left) {
  wait_for_smem(w, left);
  // The counter doesn't say whether it was LDS or a scalar load that returned.
  if (w->track->scalar_pending.empty()) wait_for_lds(w, left);
}

void wait_for_lds(Wave* w, uint32_t left) {
  Track& track = *w->track;
  bool flat = false;
  for (uint32_t i = 0; i < track.vmem.count; ++i) {
    Pending& entry = track.vmem.at(i);
    if ((entry.counters & kLds) == 0 || track.lgkm_issued - entry.lgkm_number < left) continue;
    entry.counters &= static_cast<uint8_t>(~kLds);
    flat = true;
  }
  if (flat) settle(w, track.vmem);
  while (track.lds.count > 0 && track.lgkm_issued - track.lds.at(0).lgkm_number >= left) {
    take_first(w, track.lds);
  }
  track.lds_stores.wait(track.lgkm_issued, left);
}

}  // namespace emu
