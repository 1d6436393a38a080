#include "wick/backend/cpu/spatial/patches.h"

#include <cstring>
#include <numeric>

namespace wick::cpu {
namespace {

// Kernels read whole cache lines, and two for panels of f64, so they read at most so many bytes
// behind the last element.
constexpr int64_t kMarginBytes = 128;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// The slots [low, high) of [0, count) whose input first + slot · step exists.
struct Inside {
  int64_t low, high;
  Inside(int64_t first, int64_t step, int64_t count, int64_t size) {
    low = std::clamp<int64_t>(-floor_div(first, step), 0, count);
    high = std::clamp<int64_t>(floor_div(size - 1 - first, step) + 1, low, count);
  }
};

}  // namespace

PatchAxis::PatchAxis(int64_t outputs, int64_t step, const std::vector<int64_t>& taps) {
  // Taps whose inputs are a multiple of the step apart may share a run, so taps are sorted by that
  // phase.
  std::vector<size_t> order(taps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto phase = [&](size_t tap) { return taps[tap] - floor_div(taps[tap], step) * step; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return phase(a) != phase(b) ? phase(a) < phase(b) : taps[a] < taps[b];
  });
  places.resize(taps.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t tap = order[i];
    const bool same = i > 0 && phase(tap) == phase(order[i - 1]) &&
                      taps[tap] - runs.back().first <= runs.back().count * step;
    if (!same) runs.push_back({taps[tap], 0});
    Run& run = runs.back();
    const int64_t slot = (taps[tap] - run.first) / step;
    run.count = slot + outputs;
    places[tap] = {static_cast<int64_t>(runs.size()) - 1, slot};
  }
  for (const Run& run : runs) longest = std::max(longest, run.count);
}

Patches::Patches(const ConvKernels& kernels, const PatchShape& shape, int64_t most_pixels,
                 int64_t most_terms, bool raw)
    : shape_(shape),
      fill_(raw ? kernels.fill_raw : kernels.fill[static_cast<size_t>(shape.dtype)]),
      bytes_(raw ? 2 : elem_bytes(compute_of(shape.dtype))),
      by_rows_(shape.out_size[1] >= most_pixels),
      rows_(by_rows_ ? 1 : std::min(shape.out_size[0], (most_pixels - 2) / shape.out_size[1] + 2)),
      cols_(std::min(shape.out_size[1], most_pixels)),
      y_axis_(rows_, shape.step[0], shape.taps[0]),
      x_axis_(cols_, shape.step[1], shape.taps[1]) {
  for (const PatchAxis::Run& run : y_axis_.runs) {
    row_start_.push_back(row_slots_);
    row_slots_ += run.count;
  }
  const int64_t run_elems = row_slots_ * pitch();
  plane_elems_ = static_cast<int64_t>(x_axis_.runs.size()) * run_elems;
  const int64_t channels = std::min(shape.channels, (most_terms - 2) / shape.tap_count() + 2);
  plot_elems_ = channels * plane_elems_;
  const int64_t per_plot = shape.out_size[1] * (by_rows_ ? 1 : shape.out_size[0]);
  plots_ = std::min(shape.pixels() / per_plot, (most_pixels - 2) / per_plot + 2);
  for (const PatchAxis::Place& y : y_axis_.places) {
    for (const PatchAxis::Place& x : x_axis_.places) {
      const int64_t row = row_start_[static_cast<size_t>(y.run)] + y.slot;
      tap_offset_.push_back(x.run * run_elems + row * pitch() + x.slot);
    }
  }
}

size_t Patches::slab_bytes() const {
  return static_cast<size_t>((plots_ * plot_elems_ * bytes_ + kMarginBytes + 63) / 64 * 64);
}

void Patches::term_offsets(int64_t term, int64_t terms, int64_t* offsets) const {
  const int64_t taps = shape_.tap_count();
  int64_t plane = 0, tap = term % taps;
  for (int64_t i = 0; i < terms; ++i) {
    offsets[i] = plane + tap_offset_[static_cast<size_t>(tap)];
    if (++tap == taps) {
      tap = 0;
      plane += plane_elems_;
    }
  }
}

void Patches::fill_plot(const char* in, const PatchPlot& plot, int64_t channels, char* to) const {
  const int64_t in_bytes = info(shape_.dtype).block_bytes;
  const int64_t pitch_bytes = pitch() * bytes_;
  const char* const image = in + plot.batch * shape_.batch_stride * in_bytes;
  for (size_t yr = 0; yr < y_axis_.runs.size(); ++yr) {
    const PatchAxis::Run& ys = y_axis_.runs[yr];
    const int64_t top = ys.first + plot.y * shape_.step[0];
    const int64_t slots = ys.count - rows_ + plot.rows;
    const Inside rows(top, shape_.step[0], slots, shape_.in_size[0]);
    for (size_t xr = 0; xr < x_axis_.runs.size(); ++xr) {
      const PatchAxis::Run& xs = x_axis_.runs[xr];
      const int64_t left = xs.first + plot.x * shape_.step[1];
      const int64_t count = xs.count - cols_ + plot.cols;
      const Inside cols(left, shape_.step[1], count, shape_.in_size[1]);
      FillArgs args{};
      args.row_stride = shape_.step[0] * shape_.in_stride[0];
      args.stride = shape_.step[1] * shape_.in_stride[1];
      args.rows = cols.low == cols.high ? 0 : rows.high - rows.low;
      args.left = cols.low;
      args.count = cols.high - cols.low;
      args.right = count - cols.high;
      args.pitch = pitch();
      const int64_t above = args.rows == 0 ? slots : rows.low;
      const int64_t below = slots - above - args.rows;
      const auto zero = [&](char* from, int64_t lines) {
        for (int64_t i = 0; i < lines; ++i) {
          std::memset(from + i * pitch_bytes, 0, static_cast<size_t>(count * bytes_));
        }
      };
      char* at = to + (static_cast<int64_t>(xr) * row_slots_ + row_start_[yr]) * pitch_bytes;
      for (int64_t c = 0; c < channels; ++c, at += plane_elems_ * bytes_) {
        zero(at, above);
        if (args.rows > 0) {
          const int64_t y = top + rows.low * shape_.step[0], x = left + cols.low * shape_.step[1];
          args.from = image + (c * shape_.channel_stride + y * shape_.in_stride[0] +
                               x * shape_.in_stride[1]) *
                                  in_bytes;
          args.to = at + above * pitch_bytes;
          fill_(args);
        }
        zero(at + (above + args.rows) * pitch_bytes, below);
      }
    }
  }
}

void Patches::fill(const char* in, int64_t pixel, int64_t pixels, int64_t term, int64_t terms,
                   void* slab) const {
  const int64_t taps = shape_.tap_count();
  const int64_t channel = term / taps, channels = (term + terms - 1) / taps + 1 - channel;
  in += channel * shape_.channel_stride * info(shape_.dtype).block_bytes;
  for_each_plot(pixel, pixels, [&](int64_t index, const PatchPlot& plot) {
    fill_plot(in, plot, channels, static_cast<char*>(slab) + index * plot_elems_ * bytes_);
  });
}

}  // namespace wick::cpu
