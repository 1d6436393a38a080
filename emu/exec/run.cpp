#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "emu/exec/launch.h"
#include "emu/exec/mode.h"
#include "emu/exec/track.h"
#include "emu/object/preload.h"

namespace emu {
namespace {

constexpr size_t kSpares = 2;        // vector registers before register 0
constexpr int64_t kBudget = 100000;  // backward branches before other waves get their turn

template <class T>
T* aligned(size_t bytes) {
  void* data = std::aligned_alloc(128, (bytes + 127) / 128 * 128);
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<T*>(data);
}

void put64(Wave& w, int reg, uint64_t value) {
  w.s[reg] = static_cast<uint32_t>(value);
  w.s[reg + 1] = static_cast<uint32_t>(value >> 32);
}

/// Sets the user SGPRs in the order of the descriptor's bits, then the workgroup ids. Returns how
/// many registers it set.
int set_sgprs(const Launch& launch, const std::array<uint32_t, 3>& id, Wave& w) {
  const Descriptor& d = launch.descriptor;
  int at = 0;
  const auto has = [&](int bit) { return (d.properties >> bit & 1) != 0; };
  if (has(0)) {  // scratch as a buffer descriptor: see rows/buffer.cpp
    w.s[at] = 0;
    w.s[at + 1] = static_cast<uint32_t>(kPrivateBase >> 32);
    w.s[at + 2] = ~0u;
    w.s[at + 3] = 0;
    at += 4;
  }
  const auto pair = [&](int bit, uint64_t value) {
    if (!has(bit)) return;
    put64(w, at, value);
    at += 2;
  };
  pair(1, launch.dispatch_packet);
  pair(2, 0);
  pair(3, launch.kernarg);
  pair(4, 0);
  pair(5, 0);
  if (has(6)) w.s[at++] = d.scratch_bytes;
  const Preload preload(d.preload);
  const auto* arguments = reinterpret_cast<const char*>(launch.kernarg) + 4 * preload.first;
  for (uint32_t i = 0; i < preload.count; ++i) std::memcpy(&w.s[at++], arguments + 4 * i, 4);
  at = std::max(at, d.user_sgprs());
  const int generation = launch.code->traits.generation;
  if (generation >= 12) return at;  // see set_ttmps()
  for (int axis = 0; axis < 3; ++axis) {
    if (d.rsrc2 >> (7 + axis) & 1) w.s[at++] = id[static_cast<size_t>(axis)];
  }
  // Workgroup info, and the wave's scratch offset, which is 0 for every wave here.
  if (d.rsrc2 >> 10 & 1) w.s[at++] = 0;
  // Compilers read the scratch offset even in kernels that don't request it.
  if (generation < 11) w.s[at++] = 0;
  return at;
}

/// Sets the workgroup ids of gfx12, and the wave's number in its workgroup.
void set_ttmps(const std::array<uint32_t, 3>& id, Wave& w) {
  w.s[kTtmp + 9] = id[0];
  w.s[kTtmp + 8] = (w.index & 31) << 25;
  w.s[kTtmp + 7] = id[1] | id[2] << 16;
}

/// Returns whether each axis of the work-item id has its own register.
bool ids_apart(const Launch& launch) { return launch.code->traits.generation == 10; }

/// Returns the highest axis whose id the kernel requests.
uint32_t last_axis(const Launch& launch) { return std::min(launch.descriptor.rsrc2 >> 11 & 3, 2u); }

/// The work-item ids of 32 lanes from work-item `first` of the workgroup on.
struct WorkItems {
  uint32_t axes[3][32];

  WorkItems(uint32_t first, uint32_t size_x, uint32_t size_y) {
    uint32_t x = first % size_x, y = first / size_x % size_y, z = first / size_x / size_y;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      axes[0][lane] = x;
      axes[1][lane] = y;
      axes[2][lane] = z;
      if (++x < size_x) continue;
      x = 0;
      if (++y < size_y) continue;
      y = 0;
      ++z;
    }
  }
};

/// Sets the work-item ids: packed in ten bits each in v0, or separately in v0, v1 and v2.
void set_vgprs(const Launch& launch, const Workgroup& group, Wave& w) {
  const bool flat = group.block[1] == 1 && group.block[2] == 1, apart = ids_apart(launch);
  for (int half = 0; half < static_cast<int>(w.lanes / 32); ++half) {
    const uint32_t first = w.index * w.lanes + static_cast<uint32_t>(half) * 32;
    uint32_t ids[32];
    if (flat && !(apart && last_axis(launch) != 0)) {
      for (uint32_t lane = 0; lane < 32; ++lane) ids[lane] = first + lane;
    } else {
      const WorkItems items(first, group.block[0], group.block[1]);
      std::memcpy(ids, items.axes[0], sizeof ids);
      for (uint32_t lane = 0; !apart && lane < 32; ++lane) {
        ids[lane] |= items.axes[1][lane] << 10 | items.axes[2][lane] << 20;
      }
      for (uint32_t axis = 1; apart && axis <= last_axis(launch) && axis < w.vgprs; ++axis) {
        std::memcpy(&w.vgpr(half, static_cast<int>(axis)), items.axes[axis], sizeof ids);
      }
    }
    std::memcpy(&w.vgpr(half, 0), ids, sizeof ids);
  }
}

/// Only the work-item ids and the scalars of the descriptor are known at the start. `scalars`: how
/// many scalar registers those are.
void start_tracking(const Launch& launch, Wave& w, char* room, int scalars) {
  Track& track = *reinterpret_cast<Track*>(room);
  w.track = &track;
  const size_t registers = w.vgprs + kSpares;
  auto* masks = reinterpret_cast<LaneMask*>(room + sizeof(Track));
  std::memset(masks, 0, registers * (2 * sizeof(LaneMask) + 1));
  for (uint32_t half = 0; half < 2; ++half) {
    track.known[half] = masks + half * registers + kSpares;
    track.known[half][0] = kAllLanes;
    const uint32_t apart = ids_apart(launch) ? last_axis(launch) : 0;
    for (uint32_t axis = 1; axis <= apart && axis < w.vgprs; ++axis)
      track.known[half][axis] = kAllLanes;
  }
  track.pending = reinterpret_cast<uint8_t*>(masks + 2 * registers) + kSpares;
  for (PendingRing* ring : {&track.vmem, &track.lds, &track.samples}) {
    ring->first = ring->count = 0;
  }
  track.vmem_issued = track.lgkm_issued = track.stores_issued = track.samples_issued = 0;
  track.stores_counted = launch.code->traits.generation >= 10;
  track.scalars_counted = launch.code->traits.generation < 12;
  track.watches_lds = w.group->watches_stores;
  track.watches_global = w.group->watches_stores && launch.races != nullptr && w.group->spreads();
  track.lds_stores.start();
  track.global_stores.start();
  track.load_unknown[0] = track.load_unknown[1] = 0;
  track.scc_known = false;
  track.started = w.exec();
  track.scalar_pending = track.scalar_partial = {};
  track.scalar_known = ScalarSet::below(static_cast<uint32_t>(scalars));
  constexpr ScalarSet kOwn = ScalarSet::below(kTtmp);  // the hardware sets the others, except M0
  track.scalar_known.add(ScalarSet{{~kOwn.words[0], ~kOwn.words[1]}});
  track.scalar_known.remove(kM0);
}

uint64_t lanes_from(uint32_t items, uint32_t first, uint32_t lanes) {
  const uint32_t count = items > first ? std::min(items - first, lanes) : 0;
  return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

}  // namespace

int Descriptor::vgprs(int generation) const {
  const int granules = static_cast<int>(rsrc1 & 63) + 1;
  if (generation >= 10) return granules * (wave32() ? 8 : 4);
  // Accumulation registers, which the hardware places directly after the others, start at
  // kFirstAgpr here.
  const int all = granules * 8, others = (static_cast<int>(rsrc3 & 63) + 1) * 4;
  return all > others ? kFirstAgpr + all - others : all;
}

std::array<uint32_t, 3> Launch::block_of(const std::array<uint32_t, 3>& id) const {
  std::array<uint32_t, 3> size = block;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] != 0) size[axis] = std::min(block[axis], grid[axis] - id[axis] * block[axis]);
  }
  return size;
}

bool Workgroup::spreads() const {
  const Descriptor& d = launch->descriptor;
  if (launch->code->traits.generation >= 10) return (d.rsrc1 >> 29 & 1) != 0;
  return (d.rsrc3 >> 16 & 1) != 0;
}

void Worker::prepare(Launch& launch) {
  const uint32_t lanes = launch.descriptor.wave32() ? 32 : 64;
  const size_t wave_count = (launch.items() + lanes - 1) / lanes;
  const size_t registers = static_cast<size_t>(launch.vgprs) * (lanes / 32);
  const size_t wave_bytes = (sizeof(Wave) + registers * 128 + 127) / 128 * 128;
  if (wave_bytes * wave_count > waves_bytes_) {
    waves_.reset(aligned<char>(wave_bytes * wave_count));
    waves_bytes_ = wave_bytes * wave_count;
    wave_bytes_ = 0;
  }
  if (constants_of_ != launch.code->serial || entry_ != launch.entry || entry_op_ == nullptr) {
    entry_op_ = nullptr;  // if at() throws, the next launch looks again
    entry_ = launch.entry;
    entry_program_ = &launch.code->at(entry_);
    entry_op_ = entry_program_->find(entry_);
    if (entry_op_ == nullptr) {
      throw std::runtime_error("a kernel that starts within an instruction");
    }
  }
  if (wave_bytes != wave_bytes_ || constants_of_ != launch.code->serial ||
      group_.waves.size() < wave_count) {
    wave_bytes_ = wave_bytes;
    constants_of_ = launch.code->serial;
    group_.waves.clear();
    for (size_t i = 0; i < waves_bytes_ / wave_bytes; ++i) {
      auto* wave = reinterpret_cast<Wave*>(waves_.get() + i * wave_bytes);
      wave->constants_loaded = 0;
      group_.waves.push_back(wave);
    }
  }
  if (launch.checked) {
    const size_t room =
        sizeof(Track) + (size_t(launch.vgprs) + kSpares) * (2 * sizeof(LaneMask) + 1);
    if (room > track_bytes_) {
      track_bytes_ = room;
      tracks_.clear();
    }
    while (tracks_.size() < wave_count) tracks_.emplace_back(aligned<char>(track_bytes_));
    if (scratch_tracks_.size() < wave_count) scratch_tracks_.resize(wave_count);
  }
  if (launch.lds_bytes + 128 > lds_bytes_) {
    lds_bytes_ = launch.lds_bytes + 128;
    lds_.reset(aligned<uint8_t>(lds_bytes_));
  }
  const size_t scratch = (size_t{launch.descriptor.scratch_bytes} + 3) / 4 * 4 * lanes;
  if (scratch * wave_count > scratch_bytes_) {
    scratch_bytes_ = scratch * wave_count;
    scratch_.reset(aligned<uint8_t>(scratch_bytes_));
  }
}

void Worker::start(Launch& launch, Wave& w, uint32_t index) {
  const Descriptor& d = launch.descriptor;
  w.launch = &launch;
  w.group = &group_;
  w.index = index;
  w.lanes = d.wave32() ? 32 : 64;
  w.vgprs = static_cast<uint32_t>(launch.vgprs);
  w.half_bytes = w.vgprs * 128;
  w.lds = lds_.get();
  w.lds_bytes = launch.lds_bytes;
  w.scratch_bytes = (d.scratch_bytes + 3) / 4 * 4;
  w.scratch = scratch_.get() + size_t{w.scratch_bytes} * w.lanes * index;
  // gfx12 has no IEEE mode, and a clamp always makes NaN zero.
  w.mode = launch.code->traits.generation >= 12 ? (d.mode() & ~kIeeeMode) | 0x100 : d.mode();
  w.scc = 0;
  w.budget = 0;
  const uint64_t exec = lanes_from(group_.items(), index * w.lanes, w.lanes);
  w.s[kExec] = static_cast<uint32_t>(exec);
  w.s[kExec + 1] = static_cast<uint32_t>(exec >> 32);
  if (index == 0) {
    scalars_ = set_sgprs(launch, group_.id, w);
  } else {  // the waves of a workgroup get the same values
    std::memcpy(w.s, group_.waves[0]->s, sizeof w.s / 2);
  }
  if (launch.code->traits.generation >= 12) set_ttmps(group_.id, w);
  set_vgprs(launch, group_, w);
  if (launch.checked) {
    start_tracking(launch, w, tracks_[index].get(), scalars_);
    scratch_tracks_[index].start(w.scratch_bytes);
    w.track->scratch = &scratch_tracks_[index];
  }
  enter(&w, *entry_program_, entry_op_);
}

void enter(Wave* w, const Program& program, const Op* op) {
  // This check precedes every change, so that a report still finds the operation in its own
  // program.
  if (static_cast<uint32_t>(program.vgprs) > w->vgprs) {
    throw std::runtime_error(program.name + " names more registers than the kernel has");
  }
  w->program = &program;
  w->next = op;
  if (program.constants > w->constants_loaded) {
    std::memcpy(w->constants, w->launch->code->constants(), program.constants * sizeof(uint64_t));
    w->constants_loaded = program.constants;
  }
}

const Op* enter(Wave* w, uint64_t address) {
  const Program& program = w->launch->code->at(address);
  const Op* op = program.find(address);
  if (op == nullptr) throw std::runtime_error("the middle of an instruction");
  enter(w, program, op);
  return op;
}

void Worker::begin(Launch& launch, uint64_t group) {
  prepare(launch);
  group_.launch = &launch;
  group_.id = {static_cast<uint32_t>(group % launch.groups[0]),
               static_cast<uint32_t>(group / launch.groups[0] % launch.groups[1]),
               static_cast<uint32_t>(group / launch.groups[0] / launch.groups[1])};
  group_.number = static_cast<uint32_t>(group);
  group_.tag = Tag{RaceShadow::tag_of(launch.race_tag, group_.number)} << 32;
  group_.synchronised = false;
  group_.block = launch.block_of(group_.id);
  const uint32_t lanes = launch.descriptor.wave32() ? 32 : 64;
  count_ = (group_.items() + lanes - 1) / lanes;
  done_ = 0;
  group_.waves_begun = count_;
  if (launch.checked) {
    lds_track_.start(launch.lds_bytes);
    group_.lds_track = &lds_track_;
    group_.watches_stores = launch.check_races && count_ > 1;
  }
  random_ = launch.seed == 0 ? 0 : launch.seed * 0x9e3779b97f4a7c15 + group * 2 + 1;
  state_.fill(State::ready);
  for (uint32_t i = 0; i < count_; ++i) start(launch, *group_.waves[i], i);
}

/// Returns the wave that runs first in this turn: a random one if the order is random.
uint32_t Worker::turn_start() {
  if (random_ == 0) return 0;
  random_ = random_ * 6364136223846793005 + 1442695040888963407;
  return static_cast<uint32_t>(random_ >> 33) % count_;
}

/// Called when all remaining waves wait. Reports it unless they wait at the same barrier.
void Worker::check_meeting() {
  pass_barrier(group_);
  Wave* first = nullptr;
  for (uint32_t i = 0; i < count_; ++i) {
    Wave* w = group_.waves[i];
    if (state_[i] != State::waiting) continue;
    if (first == nullptr) first = w;
    if (w->next != first->next) {
      report(w, w->next - 1, Check::barriers, -1,
             "waves of a workgroup wait at different barriers: wave " +
                 std::to_string(first->index) + " at another one");
    }
  }
}

Worker::Progress Worker::step(int64_t budget) {
  constexpr int kMeetings = 1000;  // barriers that a workgroup passes before others get a turn
  bool yielded = false;
  int meetings = 0;
  while (done_ < count_ && !yielded) {
    uint32_t waiting = 0;
    const uint32_t first = turn_start();
    const bool backwards = (random_ >> 32 & 1) != 0;
    for (uint32_t turn = 0; turn < count_; ++turn) {
      const uint32_t i = (backwards ? first + count_ - turn : first + turn) % count_;
      if (state_[i] == State::waiting) ++waiting;
      if (state_[i] != State::ready) continue;
      Wave* w = group_.waves[i];
      w->budget = budget;
      switch (under_mode(w, [w] { return w->next->fn(w, w->next); })) {
        case Stop::barrier:
          state_[i] = State::waiting;
          ++waiting;
          break;
        case Stop::end:
          state_[i] = State::done;
          ++done_;
          break;
        case Stop::yield:
          yielded = true;
          break;
        case Stop::fault:
          return Progress::failed;
      }
    }
    if (waiting > 0 && waiting + done_ == count_) {
      if (group_.launch->checked) check_meeting();
      for (uint32_t i = 0; i < count_; ++i) {
        if (state_[i] == State::waiting) state_[i] = State::ready;
      }
      yielded |= ++meetings >= kMeetings;
    }
  }
  return done_ == count_ ? Progress::done : Progress::paused;
}

bool Worker::run(Launch& launch, uint64_t group) {
  begin(launch, group);
  for (;;) {
    const Progress progress = step(kBudget);
    if (progress != Progress::paused) return progress == Progress::done;
    if (launch.stop.load(std::memory_order_relaxed)) return false;
  }
}

}  // namespace emu
