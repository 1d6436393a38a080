#pragma once

// Distribution of rows over threads, for norms and softmax.

#include <algorithm>
#include <cstdint>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/reduce/reduce_plan.h"

namespace wick::gpu {

/// Vectors of a row that a thread of a kernel holds in registers.
using HeldPacks = OneOf<1, 4, 8, 16, 32>;

/// How rows along a dim are distributed over threads.
class RowPlan {
 public:
  RowPlan(const Gpu& gpu, const Reduction& reduction, const View& out, const ConstView& in, int dim)
      : gpu_(gpu),
        in_(in),
        n_(reduction.n),
        in_access_(access_of(reduction.kept, 0, in.data, bytes_of(in.dtype, 1))),
        out_access_(access_of(reduction.kept, 1, out.data, bytes_of(in.dtype, 1))) {
    out_step_ = n_ == 1 ? 1 : out.layout.stride(dim);
    in_step_ = n_ == 1 ? 1 : in.layout.stride(dim);
    in_access_.run(n_, in_step_);
    out_access_.run(n_, out_step_);
    while (steps_ < 32 && steps_ * kAccumulators < n_) steps_ = steps_ == 1 ? 4 : 2 * steps_;
  }

  /// Vectors of a row that a thread holds: 1, 4, 8, 16 or 32.
  int64_t steps() const { return steps_; }
  /// Whether a kernel that holds rows takes these: dense, aligned, short enough, 16- or 32-bit
  /// floats.
  bool can_be_held(uint64_t most_threads = kHeldThreads) const {
    return is_dense() && n_ % each() == 0 && threads_of(each()) <= most_threads &&
           n_ <= kChunk << 3 && is_aligned();
  }
  /// Whether a norm that holds rows takes these.
  bool can_be_held_by_norm() const {
    return can_be_held(is_amd() ? kSharingThreads : kHeldThreads);
  }
  /// Whether softmax_anywhere takes these rows: dense 16- or 32-bit floats that begin at any
  /// address.
  bool can_be_anywhere() const {
    return is_dense() && n_ > kAccumulators && threads_of(each_anywhere()) <= kHeldThreads &&
           n_ <= kChunk << 3;
  }
  NormRows spread_anywhere(const StridedIndex<2>& kept, Grid& grid) const {
    return spread(kept, each_anywhere(), 64, 1, grid);
  }
  /// Thread blocks of a cluster that shares a row; 0 if no cluster size fits.
  int64_t cluster() const {
    const int64_t wanted = divide_up(n_, kBlockElems);
    const bool can = is_dense() && n_ % each() == 0 && is_aligned() && gpu_.has(Feature::cluster);
    return can && wanted > 1 && wanted <= kMostClusterBlocks ? wanted : 0;
  }
  /// Elements of a vector of a thread that holds a row.
  int64_t each() const { return held_each(uint32_t(steps_), elem_bytes()); }
  /// Whether a vector along the rows has the alignment that the rows' kernel needs.
  bool goes_with(const ConstView& vector) const { return access_of(vector).vectors_of(each()); }

  /// Whether f32 rows are done sooner by one thread block for each row, all of whose threads take
  /// part in it.
  bool is_alone(unsigned rows) const {
    const unsigned most = is_amd() ? 4 : 8;  // more rows fill thread blocks that share the weights
    return in_.dtype == DType::f32 && n_ % 4 == 0 && n_ > 256 &&
           n_ <= int64_t{kRowChunks} * kChunk &&
           rows <= most * static_cast<unsigned>(gpu_.info.multiprocessors);
  }
  bool is_amd() const { return gpu_.device.kind == DeviceKind::hip; }
  Spread in_spread() const { return {in_step_, in_access_.vectors_of(4)}; }
  Spread out_spread() const { return {out_step_, out_access_.vectors_of(4)}; }
  /// The Spread of a vector along the rows.
  Spread spread_of(const ConstView& vector) const {
    return {vector.layout.stride(0), access_of(vector).vectors_of(4)};
  }

  /// Rows for a kernel whose threads have `each` neighbouring accumulators and take `rows` rows.
  NormRows spread(const StridedIndex<2>& kept, int64_t each, unsigned least_threads, unsigned rows,
                  Grid& grid) const {
    NormRows result;
    result.kept = kept;
    result.n = static_cast<uint64_t>(n_);
    result.in_step = in_step_;
    result.out_step = out_step_;
    result.width_log = width_log(each);
    result.chunks_log = chunks_log();
    const unsigned row_threads = 1u << (result.width_log + result.chunks_log);
    grid.threads = std::max(least_threads, row_threads);
    const unsigned a_thread_block = grid.threads / row_threads * rows;
    grid.blocks[0] = (kept.elems + a_thread_block - 1) / a_thread_block;
    return result;
  }
  /// Rows for kernels that hold them in registers.
  NormRows spread_held(const StridedIndex<2>& kept, Grid& grid) const {
    if (steps_ > 1) return spread(kept, each(), 64, 1, grid);
    NormRows rows = spread(kept, each(), 128, 1, grid);
    rows.width_log = short_width_log(rows.width_log);
    const unsigned a_thread_block = (grid.threads >> rows.width_log) * held_rows(1);
    grid.blocks[0] = (kept.elems + a_thread_block - 1) / a_thread_block;
    return rows;
  }
  /// Rows that a cluster of thread blocks shares.
  NormRows spread_cluster(const StridedIndex<2>& kept, int64_t cluster, Grid& grid) const {
    NormRows rows = spread(kept, each(), kHeldThreads, 1, grid);
    rows.chunks_log = ceil_log(kBlockElems / kChunk);
    grid.threads = 1u << (rows.width_log + rows.chunks_log);
    grid.cluster = static_cast<unsigned>(cluster);
    grid.blocks[0] = kept.elems * grid.cluster;
    return rows;
  }
  /// Held rows for rms_norm and layer_norm on AMD: the largest thread blocks of which at least two
  /// fifths of the multiprocessors have one, which suffices for the memory's full bandwidth. The
  /// rows of a block share the weights, `bytes` in all, in shared memory.
  NormRows spread_sharing(const StridedIndex<2>& kept, int64_t bytes, Grid& grid) const {
    NormRows rows = spread_held(kept, grid);
    if (bytes > int64_t{kMostSharedBytes}) return rows;  // kernels take them from the cache
    const unsigned row_threads = 1u << (rows.width_log + rows.chunks_log);
    const auto rows_of = [&](unsigned threads) {
      return int64_t{threads / row_threads} * held_rows(uint32_t(steps_));
    };
    const auto thread_blocks = [&](unsigned threads) {
      return divide_up(kept.elems, rows_of(threads));
    };
    unsigned threads = kSharingThreads;
    while (threads > grid.threads && are_few(thread_blocks(threads))) threads -= grid.threads;
    grid.threads = threads;
    grid.blocks[0] = static_cast<unsigned>(
        blocks_in_turns(thread_blocks(threads), bytes, rows_of(threads) * n_ * elem_bytes()));
    if (threads > row_threads) grid.shared_bytes = static_cast<unsigned>(divide_up(bytes, 16) * 16);
    return rows;
  }
  /// Held rows for group_norm. On AMD the rows of a thread block keep the numbers of their
  /// `channels` channels in shared memory.
  NormRows spread_channels(const StridedIndex<2>& kept, uint32_t channels, Grid& grid) const {
    const NormRows rows = spread_held(kept, grid);
    const unsigned row_threads = 1u << (rows.width_log + rows.chunks_log);
    const uint64_t bytes = channel_numbers_bytes(
        uint64_t{grid.threads / row_threads} * held_rows(uint32_t(steps_)), channels);
    if (is_amd() && bytes <= kMostSharedBytes) grid.shared_bytes = static_cast<unsigned>(bytes);
    return rows;
  }
  /// Rows for scalar kernels. Small grids take smaller thread blocks.
  NormRows spread_strided(const StridedIndex<2>& kept, Grid& grid) const {
    const bool fours = n_ % 4 == 0;
    const bool few = uint64_t{kept.elems} * threads_of(4) <
                     uint64_t{512} * static_cast<unsigned>(gpu_.info.multiprocessors);
    NormRows rows = spread(kept, 4, few ? 64 : kNormLineThreads, 1, grid);
    rows.in_packs = fours && in_access_.vectors_of(4) ? 1 : 0;
    rows.out_packs = fours && out_access_.vectors_of(4) ? 1 : 0;
    return rows;
  }
  /// Rows that several thread blocks share: 2 to 8 chunks each, fewer if the rows are few.
  NormRows spread_split(const StridedIndex<2>& kept, Grid& grid) const {
    NormRows rows = spread_strided(kept, grid);
    rows.width_log = ceil_log(kAccumulators / kSumEach);
    rows.chunks_log = 3;
    const auto blocks = [&] { return kept.elems * divide_up(n_, kChunk << rows.chunks_log); };
    while (rows.chunks_log > 1 && blocks() < 2 * gpu_.info.multiprocessors) --rows.chunks_log;
    grid.threads = 1u << (rows.width_log + rows.chunks_log);
    grid.blocks[0] = static_cast<unsigned>(blocks());
    return rows;
  }

 private:
  /// Elements of a row that one block of a cluster has.
  static constexpr int64_t kBlockElems = int64_t{kClusterChunks} * kChunk;

  /// Whether vectors of held rows can be loaded and stored at once.
  bool is_aligned() const {
    return in_access_.vectors_of(each()) && out_access_.vectors_of(each());
  }
  bool is_dense() const {
    return (bytes_of(in_.dtype, 1) == 2 || in_.dtype == DType::f32) && in_access_.is_dense() &&
           out_access_.is_dense();
  }

  /// Whether fewer than two fifths of the multiprocessors have one of the thread blocks.
  bool are_few(int64_t thread_blocks) const {
    return 5 * thread_blocks < 2 * int64_t{gpu_.info.multiprocessors};
  }
  /// The thread blocks that take `sets` sets of rows, `bytes` each, in turn: so few that the
  /// weights are at most a twentieth of what they load and store, but at least two fifths of the
  /// multiprocessors have one. Up to half as many, if the last multiprocessor is done sooner then.
  int64_t blocks_in_turns(int64_t sets, int64_t weight_bytes, int64_t bytes) const {
    // Each of AMD's multiprocessors has two compute units if waves have 32 lanes.
    const int64_t units = int64_t{gpu_.info.multiprocessors} * (gpu_.info.wave == 64 ? 1 : 2);
    const int64_t enough = divide_up(2 * int64_t{gpu_.info.multiprocessors}, 5);
    const int64_t most = std::max(2 * sets * bytes / (20 * weight_bytes), enough);
    const int64_t least_turns = divide_up(sets, most);
    const auto rounds = [&](int64_t turns) {
      return divide_up(divide_up(sets, turns), units) * turns;
    };
    int64_t best = least_turns;
    for (int64_t turns = least_turns + 1; turns <= 2 * least_turns; ++turns) {
      if (divide_up(sets, turns) >= enough && rounds(turns) < rounds(best)) best = turns;
    }
    return std::max(divide_up(sets, best), std::min(enough, sets));
  }

  int64_t each_anywhere() const { return held_each_anywhere(uint32_t(steps_), elem_bytes()); }
  uint32_t elem_bytes() const { return static_cast<uint32_t>(bytes_of(in_.dtype, 1)); }
  uint32_t width_log(int64_t each) const {
    return ceil_log(static_cast<uint64_t>(divide_up(std::min(n_, int64_t{kAccumulators}), each)));
  }
  uint32_t chunks_log() const {
    return std::min(ceil_log(static_cast<uint64_t>(divide_up(n_, kChunk))), 3u);
  }
  uint64_t threads_of(int64_t each) const {
    return uint64_t{1} << (width_log(each) + chunks_log());
  }

  const Gpu& gpu_;
  const ConstView& in_;
  const int64_t n_;
  int64_t in_step_, out_step_, steps_ = 1;
  Access in_access_, out_access_;  // rows are the runs
};

}  // namespace wick::gpu
