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

/// The largest number up to `most` that fits; 0 if 1 doesn't.
template <class Fits>
int64_t largest(int64_t most, const Fits& fits) {
  int64_t low = 0, high = most + 1;  // low fits, high doesn't
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// The planes, and the shared memory that some of their rows take.
struct Planes {
  const View& out;
  const ConstView& in;
  const TileNeeds& needs;

  int64_t count() const { return out.layout.shape()[0] * out.layout.shape()[1]; }
  int64_t in_rows() const { return in.layout.shape()[2]; }
  int64_t out_rows() const { return out.layout.shape()[2]; }
  int64_t outputs() const { return out_rows() * out.layout.shape()[3]; }

  int64_t in_bytes(int64_t rows) const {
    return staged_bytes(rows * in.layout.shape()[3], info(in.dtype).block_bytes);
  }
  int64_t out_bytes(int64_t rows) const {
    return staged_bytes(rows * out.layout.shape()[3], info(out.dtype).block_bytes);
  }
  int64_t extra_bytes(int64_t rows) const { return divide_up(needs.extra(rows), 16) * 16; }
  /// The input rows of some output rows of one plane.
  int64_t needed(int64_t rows) const { return std::min(needs.in_rows(rows), in_rows()); }

  bool rows_fit(int64_t rows) const {
    return in_bytes(needed(rows)) + out_bytes(rows) + extra_bytes(rows) <= kMostTileBytes;
  }
  bool planes_fit(int64_t planes) const {
    return in_bytes(planes * in_rows()) + out_bytes(planes * out_rows()) +
               extra_bytes(out_rows()) <=
           kMostTileBytes;
  }
};

/// Planes of a tile, and the tiles of a plane; one of them is 1.
struct Cut {
  int64_t planes, parts;
};

/// Cuts planes into enough tiles to fill the device. Nothing if a row doesn't fit shared memory.
std::optional<Cut> cut(const Gpu& gpu, const Planes& p) {
  const int64_t wanted = 2 * int64_t{gpu.info.multiprocessors};  // thread blocks
  const int64_t all = p.count(), out_rows = p.out_rows(), outputs = p.outputs();
  const int64_t rows = largest(out_rows, [&](int64_t n) { return p.rows_fit(n); });
  const int64_t planes = largest(all, [&](int64_t n) { return p.planes_fit(n); });
  if (rows == 0) return std::nullopt;
  const bool small = planes > 1 && all > wanted && outputs < kLeastOutputs;
  if (small || (planes > 0 && all >= wanted)) {
    return Cut{std::clamp(all / wanted, int64_t{1}, planes), 1};
  }
  const int64_t most_parts = std::clamp(outputs / kLeastOutputs, int64_t{1}, out_rows);
  const int64_t parts =
      std::max(divide_up(out_rows, rows), std::min(divide_up(wanted, all), most_parts));
  const Cut result = {1, divide_up(out_rows, divide_up(out_rows, parts))};
  // A tile of one part is a whole plane, with all of its input rows.
  if (result.parts == 1 && planes == 0) return std::nullopt;
  return result;
}

}  // namespace

std::optional<TilePlan> plan_tiles(const Gpu& gpu, const View& out, const ConstView& in,
                                   const TileNeeds& needs) {
  if (gpu.device.kind != DeviceKind::hip || out.layout.elems() == 0 || in.layout.elems() == 0 ||
      !takes(out) || !takes(in)) {
    return std::nullopt;
  }
  const Planes p = {out, in, needs};
  const std::optional<Cut> of = cut(gpu, p);
  if (!of) return std::nullopt;
  const int64_t rows = divide_up(p.out_rows(), of->parts);  // of a tile, in each of its planes
  const int64_t columns = out.layout.shape()[3];
  TilePlan plan{};
  PlaneTiles& t = plan.tiles;
  t.all_planes = static_cast<uint32_t>(p.count());
  t.planes = static_cast<uint32_t>(of->planes);
  t.per_plane = Divider(static_cast<uint32_t>(of->parts));
  t.rows = static_cast<uint32_t>(rows);
  t.out_rows = Divider(static_cast<uint32_t>(p.out_rows()));
  t.in_rows = static_cast<uint32_t>(p.in_rows());
  t.in_columns = static_cast<uint32_t>(in.layout.shape()[3]);
  t.out_columns = static_cast<uint32_t>(columns);
  // Warps compute outputs of one row, unless rows are so short that most lanes would be idle.
  t.pitch = Divider(static_cast<uint32_t>(columns > 16 ? divide_up(columns, 32) * 32 : columns));
  const int64_t input = p.in_bytes(of->parts == 1 ? of->planes * p.in_rows() : p.needed(rows));
  const int64_t extra = p.extra_bytes(rows);
  plan.extra_at = static_cast<uint32_t>(input / 16);
  t.results_at = static_cast<uint32_t>((input + extra) / 16);
  plan.shared_bytes = static_cast<unsigned>(input + extra + p.out_bytes(of->planes * rows));
  plan.blocks = static_cast<unsigned>(divide_up(p.count(), of->planes) * of->parts);
  return plan;
}

}  // namespace wick::gpu
