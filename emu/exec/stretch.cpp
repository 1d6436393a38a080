#include "emu/exec/stretch.h"

#include <string_view>

#include "emu/exec/track.h"

namespace emu {

void StretchBuilder::read(int16_t reg) {
  if (const auto flow = flowing_.find(reg); flow != flowing_.end()) {
    read_.insert(flow->second.begin(), flow->second.end());
    flowing_.erase(flow);  // it is known in that case
  } else if (!written_.contains(reg)) {
    read_.insert(reg);
  }
}

void StretchBuilder::write(int16_t reg) {
  written_.insert(reg);
  flowing_.erase(reg);
}

bool may_be_guest(const Inst& inst) {
  const std::string_view name = inst.name;
  for (std::string_view kind : {"s_load_", "global_load_", "global_store_", "ds_load_", "ds_store_",
                                "ds_read_", "ds_write_", "scratch_load_", "scratch_store_"}) {
    if (name.starts_with(kind)) return true;
  }
  return false;
}

void StretchBuilder::add_guest(const Inst& inst) {
  for (const Operand& operand : inst.operands) {
    for (uint32_t i = 0; i < operand.dwords; ++i) {
      if (operand.kind == Kind::sgpr) scalar_guests_.insert(static_cast<uint8_t>(operand.reg + i));
      const int first = operand.kind == Kind::agpr ? kFirstAgpr : 0;
      if (operand.kind == Kind::vgpr || operand.kind == Kind::agpr) {
        guests_.insert(static_cast<int16_t>(first + operand.reg + static_cast<int>(i)));
      }
    }
  }
  scalar_guests_.insert(kM0);  // LDS instructions of gfx9 read M0
}

bool StretchBuilder::meets_guest(const Access& access) const {
  for (uint32_t i = 0; i < access.registers; ++i) {
    const bool met =
        is_vgpr(access.offset)
            ? guests_.contains(static_cast<int16_t>(vgpr_of(access.offset) + static_cast<int>(i)))
            : is_sgpr(access.offset) &&
                  scalar_guests_.contains(static_cast<uint8_t>(access.offset / 4 + i));
    if (met) return true;
  }
  return false;
}

bool StretchBuilder::add(std::span<const std::vector<Access>> parts) {
  for (const std::vector<Access>& accesses : parts) {
    for (const Access& access : accesses) {
      if (meets_guest(access)) return false;
    }
  }
  for (const std::vector<Access>& accesses : parts) add(accesses);
  return true;
}

void StretchBuilder::add(std::span<const Access> accesses) {
  using Kind = Access::Kind;
  for (const Access& access : accesses) scc_ |= access.offset == kSccOffset;
  const auto each = [&](Kind kind, const auto& vector, const auto& scalar) {
    for (const Access& access : accesses) {
      if (access.kind != kind) continue;
      for (uint32_t i = 0; i < access.registers; ++i) {
        if (is_vgpr(access.offset)) {
          vector(static_cast<int16_t>(vgpr_of(access.offset) + static_cast<int>(i)));
        } else if (is_sgpr(access.offset)) {
          scalar(static_cast<uint8_t>(access.offset / 4 + i));
        }
      }
    }
  };
  const auto nothing = [](uint8_t) {};
  each(
      Kind::read, [&](int16_t reg) { read(reg); },
      [&](uint8_t reg) {
        if (!scalar_written_.contains(reg)) scalar_read_.insert(reg);
      });
  std::set<int16_t> from;  // registers whose initial lanes decide the result's upper dword
  each(
      Kind::read_upper,
      [&](int16_t reg) {
        if (const auto flow = flowing_.find(reg); flow != flowing_.end()) {
          from.insert(flow->second.begin(), flow->second.end());
        } else if (!written_.contains(reg)) {
          from.insert(reg);
        }
      },
      nothing);
  each(
      Kind::write, [&](int16_t reg) { write(reg); },
      [&](uint8_t reg) { scalar_written_.insert(reg); });
  each(
      Kind::write_upper,
      [&](int16_t reg) {
        write(reg);
        if (from.empty()) return;
        if (flowing_.size() < Stretch::kFlows) {
          flowing_[reg] = from;
        } else {
          read_.insert(from.begin(), from.end());
        }
      },
      nothing);
}

Stretch StretchBuilder::finish() const {
  Stretch stretch{
      {read_.begin(), read_.end()}, {written_.begin(), written_.end()}, {}, {}, {}, scc_};
  for (const uint8_t reg : scalar_read_) stretch.scalar_reads.add(reg);
  for (const uint8_t reg : scalar_written_) stretch.scalar_writes.add(reg);
  for (const auto& [to, from] : flowing_) {
    stretch.flows.push_back({to, {from.begin(), from.end()}});
  }
  return stretch;
}

namespace {

bool all_known(const Stretch& stretch, const LaneMask* known, LaneMask enabled) {
  LaneMask all = kAllLanes;
  for (const int16_t reg : stretch.reads) all &= known[reg];
  return (enabled & ~all) == 0;
}

bool settled(const Wave* w, const Stretch& stretch) {
  const Track& track = *w->track;
  if (!track.scalar_known.holds(stretch.scalar_reads)) return false;
  if (stretch.scc && !track.scc_known) return false;
  if (!all_known(stretch, track.known[0], w->s[kExec])) return false;
  if (w->lanes == 64 && !all_known(stretch, track.known[1], w->s[kExec + 1])) return false;
  if ((track.vmem.count | track.lds.count | track.samples.count) == 0) return true;
  uint8_t pending = 0;
  for (const int16_t reg : stretch.writes) pending |= track.pending[reg];
  return pending == 0;
}

[[gnu::noinline]] void mark_with_flows(const Stretch& stretch, LaneMask* known, LaneMask enabled) {
  LaneMask flowing[Stretch::kFlows];
  for (size_t i = 0; i < stretch.flows.size(); ++i) {
    LaneMask all = kAllLanes;
    for (const int16_t reg : stretch.flows[i].from) all &= known[reg];
    flowing[i] = (known[stretch.flows[i].to] & ~enabled) | (all & enabled);
  }
  for (const int16_t reg : stretch.writes) known[reg] |= enabled;
  for (size_t i = 0; i < stretch.flows.size(); ++i) known[stretch.flows[i].to] = flowing[i];
}

void mark(const Stretch& stretch, LaneMask* known, LaneMask enabled) {
  if (!stretch.flows.empty()) return mark_with_flows(stretch, known, enabled);
  for (const int16_t reg : stretch.writes) known[reg] |= enabled;
}

}  // namespace

Stop enter_stretch(Wave* w, const Op* op) {
  const auto& stretch = *static_cast<const Stretch*>(op->data);
  if (!settled(w, stretch)) [[unlikely]] {
    const Op* checked = op->target;
    [[clang::musttail]] return checked->fn(w, checked);
  }
  Track& track = *w->track;
  track.scalar_known.add(stretch.scalar_writes);
  mark(stretch, track.known[0], w->s[kExec]);
  if (w->lanes == 64) mark(stretch, track.known[1], w->s[kExec + 1]);
  EMU_NEXT;
}

Stop leave_stretch(Wave* w, const Op* op) {
  const Op* to = op->target;
  [[clang::musttail]] return to->fn(w, to);
}

}  // namespace emu
