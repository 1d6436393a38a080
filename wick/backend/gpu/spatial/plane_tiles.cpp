#include "wick/backend/gpu/spatial/plane_tiles.h"

#include <algorithm>

#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

/// Shared memory of a thread block: of 64 KiB that a compute unit has, three blocks have this much.
constexpr int64_t kMostTileBytes = 20 << 10;
/// Outputs that are worth a thread block, as far as there are as many.
constexpr int64_t kLeastOutputs = 512;

bool takes(const ConstView& v) {
  const Access access(v.data, v.dtype, v.layout.offset());
  return v.layout.is_contiguous() && access.begins_at(16) && v.layout.elems() < (int64_t{1} << 30);
}

/// The bytes of shared memory that neighbouring elements take, wherever they begin.
int64_t staged_bytes(int64_t elems, int64_t bytes) {
  return divide_up(elems * bytes, 16) * 16 + 32;
}

}  // namespace

std::optional<TilePlan> plan_tiles(const Gpu& gpu, const View& out, const ConstView& in,
                                   const TileNeeds& needs) {
  if (gpu.device.kind != DeviceKind::hip || out.layout.elems() == 0 || in.layout.elems() == 0 ||
      !takes(out) || !takes(in)) {
    return std::nullopt;
  }
  const Shape &from = in.layout.shape(), &to = out.layout.shape();
  const int64_t all = to[0] * to[1], out_rows = to[2];
  const auto in_bytes = [&](int64_t rows) {
    return staged_bytes(rows * from[3], info(in.dtype).block_bytes);
  };
  const auto out_bytes = [&](int64_t rows) {
    return staged_bytes(rows * to[3], info(out.dtype).block_bytes);
  };
  const auto extra = [&](int64_t rows) { return divide_up(needs.extra(rows), 16) * 16; };
  const auto rows_fit = [&](int64_t rows) {
    return in_bytes(std::min(needs.in_rows(rows), from[2])) + out_bytes(rows) + extra(rows) <=
           kMostTileBytes;
  };
  const auto planes_fit = [&](int64_t planes) {
    return in_bytes(planes * from[2]) + out_bytes(planes * out_rows) + extra(out_rows) <=
           kMostTileBytes;
  };
  // The largest number up to `most` that fits; 0 if 1 doesn't.
  const auto largest = [](int64_t most, const auto& fits) {
    int64_t low = 0, high = most + 1;  // low fits, high doesn't
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  };
  const int64_t wanted = 2 * int64_t{gpu.info.multiprocessors};  // thread blocks
  const int64_t rows = largest(out_rows, rows_fit), planes = largest(all, planes_fit);
  if (rows == 0) return std::nullopt;
  const int64_t outputs = out_rows * to[3];  // of a plane
  TilePlan plan{};
  PlaneTiles& t = plan.tiles;
  const bool whole = planes > 1 && all > wanted && outputs < kLeastOutputs;
  int64_t taken = 1, parts = 1;
  if (whole || (planes > 0 && all >= wanted)) {
    taken = std::clamp(all / wanted, int64_t{1}, planes);
  } else {
    const int64_t most_parts = std::clamp(outputs / kLeastOutputs, int64_t{1}, out_rows);
    parts = std::max(divide_up(out_rows, rows), std::min(divide_up(wanted, all), most_parts));
  }
  const int64_t each = divide_up(out_rows, parts);
  parts = divide_up(out_rows, each);
  // A tile of one part is a whole plane, with all of its input rows.
  if (parts == 1 && planes == 0) return std::nullopt;
  t.all_planes = static_cast<uint32_t>(all);
  t.planes = static_cast<uint32_t>(taken);
  t.per_plane = Divider(static_cast<uint32_t>(parts));
  t.rows = static_cast<uint32_t>(each);
  t.out_rows = Divider(static_cast<uint32_t>(out_rows));
  t.in_rows = static_cast<uint32_t>(from[2]);
  t.in_columns = static_cast<uint32_t>(from[3]);
  t.out_columns = static_cast<uint32_t>(to[3]);
  // Warps compute outputs of one row, unless rows are so short that most lanes would be idle.
  t.pitch = Divider(static_cast<uint32_t>(to[3] > 16 ? divide_up(to[3], 32) * 32 : to[3]));
  const int64_t input =
      in_bytes(parts == 1 ? taken * from[2] : std::min(needs.in_rows(each), from[2]));
  plan.extra_at = static_cast<uint32_t>(input / 16);
  t.results_at = plan.extra_at + static_cast<uint32_t>(extra(each) / 16);
  plan.shared_bytes = static_cast<unsigned>(input + extra(each) + out_bytes(taken * each));
  plan.blocks = static_cast<unsigned>(divide_up(all, taken) * parts);
  return plan;
}

}  // namespace wick::gpu
