#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "wick/backend/cpu/spatial/conv_kernels.h"

namespace wick::cpu {

// The parts of a convolution's input on which outputs depend. A *tap* is a position in the kernel,
// a *term* a (channel, tap), a *pixel* an output position (batch, y, x). The value of a term at a
// pixel is
//
//     in[batch, channel, y · step + taps[0][ty], x · step + taps[1][tx]], 0 outside the input.
//
// Inputs are copied into a *slab*, in the compute type and with padding, so that the value lies at
// (start of the pixel) + (offset of the term), and neighbours along x are contiguous. So only the
// copy into the slab, which stays in L2, deals with strides, dilation, padding, layouts and dtypes;
// kernels read dense runs of numbers.

/// Input, outputs and taps of a convolution, or of a part of a transposed one. Strides in elements.
struct PatchShape {
  DType dtype = DType::f32;
  int64_t batch = 0, channels = 0;
  int64_t batch_stride = 0, channel_stride = 0;
  std::array<int64_t, 2> in_size{}, in_stride{};
  std::array<int64_t, 2> out_size{}, step{};
  std::array<std::vector<int64_t>, 2> taps;

  int64_t pixels() const { return batch * out_size[0] * out_size[1]; }
  int64_t tap_count() const {
    return static_cast<int64_t>(taps[0].size()) * static_cast<int64_t>(taps[1].size());
  }
  int64_t terms() const { return channels * tap_count(); }
};

/// One axis of a plot: the inputs of some neighbouring outputs, as runs of inputs `step` apart.
/// Taps whose inputs overlap share a run.
struct PatchAxis {
  struct Run {
    int64_t first;  ///< the input of its first slot, for output 0
    int64_t count;  ///< of slots
  };
  struct Place {
    int64_t run, slot;  ///< where a tap reads for output 0
  };
  std::vector<Run> runs;
  std::vector<Place> places;  ///< of each tap
  int64_t longest = 0;        ///< run

  PatchAxis(int64_t outputs, int64_t step, const std::vector<int64_t>& taps);
};

/// Neighbouring outputs of one image: rows [y, y + rows), columns [x, x + cols).
struct PatchPlot {
  int64_t batch, y, rows, x, cols;
};

class Patches {
 public:
  /// For at most so many pixels and terms at a time. A raw slab holds bf16 unconverted.
  Patches(const ConvKernels& kernels, const PatchShape& shape, int64_t most_pixels,
          int64_t most_terms, bool raw = false);

  /// Bytes of a slab, including what kernels read behind its end.
  size_t slab_bytes() const;
  /// Fills a slab with the values of some terms at some pixels. `in` is the input's element (0, 0,
  /// 0, 0).
  void fill(const char* in, int64_t pixel, int64_t pixels, int64_t term, int64_t terms,
            void* slab) const;
  /// The offsets of terms from the start of a pixel, in elements.
  void term_offsets(int64_t term, int64_t terms, int64_t* offsets) const;
  /// Elements between the starts of the rows of a plot.
  int64_t pitch() const { return x_axis_.longest; }
  /// The most plots, and the rows of the largest plot.
  int64_t plots() const { return plots_; }
  int64_t plot_rows() const { return rows_; }
  /// Elements of the slab from one plot to the next and from one channel to the next, and bytes of
  /// an element.
  int64_t plot_elems() const { return plot_elems_; }
  int64_t plane_elems() const { return plane_elems_; }
  int64_t bytes() const { return bytes_; }

  /// Calls visit(index, plot) for the plots of a range of pixels. Unless plots are rows, a plot has
  /// whole rows, even if the range starts or ends inside a row.
  template <class F>
  void for_each_plot(int64_t pixel, int64_t pixels, F&& visit) const {
    const int64_t nx = shape_.out_size[1], ny = shape_.out_size[0], image = ny * nx;
    const int64_t size = by_rows_ ? nx : image;
    for (int64_t done = 0, index = 0; done < pixels; ++index) {
      const int64_t at = pixel + done, batch = at / image, y = at % image / nx, x = at % nx;
      const int64_t count = std::min(size - at % size, pixels - done);
      if (by_rows_) {
        visit(index, PatchPlot{batch, y, 1, x, count});
      } else {
        visit(index, PatchPlot{batch, y, (x + count - 1) / nx + 1, 0, nx});
      }
      done += count;
    }
  }

  /// Calls visit(first, count, base, plot) for rows of pixels: pixels [first, first + count) of the
  /// range are contiguous in the slab from `base` on.
  template <class F>
  void for_each_row(int64_t pixel, int64_t pixels, F&& visit) const {
    const int64_t nx = shape_.out_size[1], ny = shape_.out_size[0];
    int64_t x = pixel % nx, y = pixel / nx % ny, plot = 0, top = y;
    for (int64_t done = 0; done < pixels;) {
      const int64_t count = std::min(nx - x, pixels - done);
      const int64_t base = plot * plot_elems_ + (by_rows_ ? 0 : (y - top) * pitch() + x);
      visit(done, count, base, plot);
      done += count;
      x = 0;
      if (++y == ny) y = 0;
      if (by_rows_ || y == 0) {
        ++plot;
        top = y;
      }
    }
  }

 private:
  void fill_plot(const char* in, const PatchPlot& plot, int64_t channels, char* to) const;

  const PatchShape& shape_;
  void (*fill_)(const FillArgs&);
  int64_t bytes_;        // of an element of the slab
  bool by_rows_;         // plots are rows or pieces of rows; else images or some of their rows
  int64_t rows_, cols_;  // of the largest plot
  PatchAxis y_axis_, x_axis_;
  int64_t row_slots_ = 0;  // of all runs of y
  int64_t plane_elems_, plot_elems_, plots_;
  std::vector<int64_t> row_start_;   // of each run of y, in slots
  std::vector<int64_t> tap_offset_;  // of each tap
};

}  // namespace wick::cpu
