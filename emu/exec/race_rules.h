#pragma once

// Decides by the tags of a piece of memory whether accesses to it are ordered. The functions take
// one tag or a vector of tags.

#include <concepts>

#include "emu/exec/launch.h"
#include "emu/exec/races.h"

namespace emu {
namespace {

/// The tags of one piece of memory, or of sixteen.
template <class V>
struct Tags {
  using Truth = decltype(V() == V());

  EMU_INLINE bool any(Truth truth) { return __builtin_reduce_or(truth) != 0; }
  EMU_INLINE V choose(Truth truth, V a, V b) { return truth ? a : b; }
};
template <std::unsigned_integral T>
struct Tags<T> {
  EMU_INLINE bool any(bool truth) { return truth; }
  EMU_INLINE T choose(bool truth, T a, T b) { return truth ? a : b; }
};

/// The rule for LDS, whose tags are epoch << 6 | wave.
struct LdsRule {
  uint32_t mine, epoch;

  explicit LdsRule(const Wave* w)
      : mine(w->group->lds_track->epoch << 6 | w->index), epoch(w->group->lds_track->epoch) {}

  template <class V>
  [[gnu::always_inline]] auto wrote_unordered(V tags) const {
    return (tags >> 6 == epoch) & (tags != mine);
  }
  template <class V>
  [[gnu::always_inline]] auto read_unordered(V tags) const {
    return wrote_unordered(tags);
  }
  /// Returns the tags of the readers after this wave has read.
  template <class V>
  [[gnu::always_inline]] V with_reader(V tags) const {
    return Tags<V>::choose(read_unordered(tags), V(epoch << 6 | LdsTrack::kSeveral), V(mine));
  }
};

/// The rule for global memory within a launch.
struct GlobalRule {
  static constexpr Tag kEpochs = (Tag{1} << 26) - 1;
  Tag mine;
  // Mask of the epoch in writers' tags: only writes in this epoch count. Zero if waves have stores
  // that they didn't wait for before the last barrier: writes in earlier epochs then count, too.
  Tag writer_epochs;

  explicit GlobalRule(const Wave* w) {
    const LdsTrack& track = *w->group->lds_track;
    mine = w->group->tag | (Tag{track.epoch} << 6 | w->index);
    writer_epochs = track.global_late ? 0 : kEpochs << 6;
  }

  [[gnu::always_inline]] bool is_of_another_launch(Tag tag) const {
    return (tag ^ mine) >> 56 != 0;
  }
  template <class V>
  [[gnu::always_inline]] auto wrote_unordered(V tags) const {
    return unordered(tags ^ mine, writer_epochs);
  }
  template <class V>
  [[gnu::always_inline]] auto read_unordered(V tags) const {
    return unordered(tags ^ mine, kEpochs << 6);
  }
  template <class V>
  [[gnu::always_inline]] V with_reader(V tags) const {
    const V differ = tags ^ mine;
    constexpr Tag kGroup = RaceShadow::kSeveral;
    const Tag waves = mine | LdsTrack::kSeveral, groups = (mine >> 56 << 24 | kGroup) << 32;
    const V others = Tags<V>::choose((differ >> 32) != 0, V(groups), V(waves));
    return Tags<V>::choose(unordered(differ, kEpochs << 6), others, V(mine));
  }

 private:
  template <class V>
  [[gnu::always_inline]] static auto unordered(V differ, Tag epochs) {
    const auto wave = ((differ & epochs) == 0) & ((differ & 63) != 0);
    return ((differ >> 56) == 0) & (((differ >> 32) != 0) | wave);
  }
};

}  // namespace
}  // namespace emu
