#include "emu/exec/stretch.h"

#include <algorithm>

#include "emu/exec/track.h"

namespace emu {

void Stretch::add(std::span<const Access> accesses) {
  const auto each = [&](bool write, const auto& visit) {
    for (const Access& access : accesses) {
      if (access.write != write) continue;
      for (uint32_t i = 0; i < access.registers; ++i) {
        if (is_vgpr(access.offset)) {
          visit(writes, reads, written_, static_cast<int16_t>(vgpr_of(access.offset) + static_cast<int>(i)));
        } else if (is_sgpr(access.offset)) {
          visit(scalar_writes, scalar_reads, scalar_written_, static_cast<uint8_t>(access.offset / 4 + i));
        }
      }
    }
  };
  each(false, [](auto&, auto& reads, auto& written, auto reg) {
    if (!written.contains(reg) && std::find(reads.begin(), reads.end(), reg) == reads.end()) {
      reads.push_back(reg);
    }
  });
  each(true, [](auto& writes, auto&, auto& written, auto reg) {
    if (written.insert(reg).second) writes.push_back(reg);
  });
}

Stop enter_stretch(Wave* w, const Op* op) {
  const auto& stretch = *static_cast<const Stretch*>(op->data);
  Track& track = *w->track;
  uint8_t scalars = 1, pending = 0;
  for (const uint8_t reg : stretch.scalar_reads) scalars &= track.scalar_known[reg];
  for (const int16_t reg : stretch.writes) pending |= track.pending[reg];
  bool settled = scalars != 0 && pending == 0;
  const int halves = w->lanes == 64 ? 2 : 1;
  for (int half = 0; half < halves; ++half) {
    LaneMask known = kAllLanes;
    for (const int16_t reg : stretch.reads) known &= track.known[half][reg];
    settled &= (w->s[kExec + half] & ~known) == 0;
  }
  if (!settled) [[unlikely]] {
    const Op* checked = op->target;
    [[clang::musttail]] return checked->fn(w, checked);
  }
  for (const uint8_t reg : stretch.scalar_writes) track.scalar_known[reg] = 1;
  for (int half = 0; half < halves; ++half) {
    const LaneMask enabled = w->s[kExec + half];
    for (const int16_t reg : stretch.writes) track.known[half][reg] |= enabled;
  }
  EMU_NEXT;
}

Stop leave_stretch(Wave* w, const Op* op) {
  const Op* to = op->target;
  [[clang::musttail]] return to->fn(w, to);
}

}  // namespace emu
