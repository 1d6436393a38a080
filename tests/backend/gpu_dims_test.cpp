// How layouts become what kernels walk: each element is met once, at its place in every operand.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

using Places = std::map<int64_t, int64_t>;  // output → input

Places places_of(const Layout& out, const Layout& in) {
  Places all;
  std::vector<int64_t> index(static_cast<size_t>(out.rank()));
  for (int64_t i = 0; i < out.elems(); ++i) {
    int64_t y = out.offset(), x = in.offset(), rest = i;
    for (int d = out.rank() - 1; d >= 0; --d) {
      y += rest % out.shape()[d] * out.stride(d);
      x += rest % out.shape()[d] * in.stride(d);
      rest /= out.shape()[d];
    }
    all[y] = x;
  }
  return all;
}

/// Adds what a space walks, `unit` neighbours at each place.
void walk(const CollapsedDims<2>& collapsed, Places& all, int64_t unit = 1) {
  collapsed.for_each_piece(
      [&](const StridedIndex<2>& strided, const std::array<int64_t, 2>& start) {
        for (uint32_t i = 0; i < strided.elems; ++i) {
          int64_t at[2];
          strided.locate(i, at);
          for (int64_t j = 0; j < unit; ++j) {
            EXPECT_TRUE(all.emplace(start[0] + at[0] + j, start[1] + at[1] + j).second);
          }
        }
      });
}

/// Layouts of one shape, dims in any order, some turned round, some apart.
std::pair<Layout, Layout> random_layouts(std::mt19937& random) {
  const int rank = 1 + static_cast<int>(random() % 4);
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  int64_t elems = 1;
  for (int64_t& s : sizes) {
    s = 1 + random() % (random() % 4 == 0 && elems < 100 ? 70 : 6);
    elems *= s;
  }
  const Shape shape(sizes);
  const auto layout = [&](bool may_repeat) {
    std::vector<int> order(static_cast<size_t>(rank));
    for (int d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    Layout::Strides strides{};
    int64_t step = 1, offset = static_cast<int64_t>(random() % 20);
    for (const int d : order) {
      const auto i = static_cast<size_t>(d);
      strides[i] = step;
      step *= sizes[i] + (random() % 8 == 0 ? 1 : 0);
      if (random() % 5 == 0) {
        offset += (sizes[i] - 1) * strides[i];
        strides[i] = -strides[i];
      } else if (may_repeat && random() % 5 == 0) {
        strides[i] = 0;
      }
    }
    return Layout(shape, strides, offset);
  };
  const Layout out = layout(false);
  return {out, layout(true)};
}

TEST(MapDims, MeetsEachElementOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto [out, in] = random_layouts(random);
    const Places want = places_of(out, in);
    const CollapsedDims<2> collapsed = collapse_for_map<2>({&out, &in});
    EXPECT_EQ(collapsed.elems, out.elems());
    Places whole, tiled;
    walk(collapsed, whole);
    EXPECT_EQ(whole, want);
    int64_t elems = 0;
    for_each_tiled(collapsed, [&](const CollapsedDims<2>& part) {
      elems += part.elems;
      walk(part, tiled);
    });
    EXPECT_EQ(elems, out.elems());
    EXPECT_EQ(tiled, want);
    if (HasFailure()) return;
  }
}

TEST(MapDims, LongTransposedDimsAreTiled) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{64, 96}, {3, 1400}, {70, 131}}) {
    const Layout out = Layout::contiguous({m, n}), in({m, n}, {1, m}, 0);
    const Places want = places_of(out, in);
    int parts = 0;
    bool small_runs = false;
    Places tiled;
    for_each_tiled(collapse_for_map<2>({&out, &in}), [&](const CollapsedDims<2>& part) {
      ++parts;
      small_runs = small_runs || part.dims.size() > 2;
      walk(part, tiled);
    });
    EXPECT_EQ(tiled, want);
    EXPECT_TRUE(small_runs) << m << " " << n;
    EXPECT_LE(parts, 3);
  }
}

TEST(MapDims, PacksCoverWhatUnitsAndPacksSay) {
  std::mt19937 random(2);
  alignas(16) static char memory[1];
  int packed_dims = 0, larger_units = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto [out, in] = random_layouts(random);
    const CollapsedDims<2> collapsed = collapse_for_map<2>({&out, &in});
    const Places want = places_of(out, in);
    Operand operand;
    operand.data = memory;
    operand.bytes = int64_t{1} << random() % 4;
    const std::array operands{operand, operand};
    const int64_t elems = 16 / operand.bytes;
    const auto packed = pack<2>(collapsed, operands, elems, false);
    if (packed.fits) {
      ++packed_dims;
      Places got;
      walk(packed.collapsed, got, elems);
      // The rest lies behind.
      for (int64_t j = 0; j < packed.rest; ++j) {
        const int64_t behind = packed.collapsed.elems * elems + j;
        got.emplace(collapsed.start[0] + behind, collapsed.start[1] + behind);
      }
      EXPECT_EQ(got, want);
    }
    const auto [units, by] = in_units<2>(collapsed, operands);
    const int64_t factor = by[0].bytes / operand.bytes;
    larger_units += factor > 1;
    Places got;
    units.for_each_piece([&, &by = by](const StridedIndex<2>& strided, const auto& start) {
      for (uint32_t u = 0; u < strided.elems; ++u) {
        int64_t at[2];
        strided.locate(u, at);
        for (int64_t j = 0; j < factor; ++j) {
          const auto elem = [&](size_t k) {
            return (static_cast<char*>(by[k].at(start[k] + at[k])) - memory) / operand.bytes + j;
          };
          EXPECT_TRUE(got.emplace(elem(0), elem(1)).second);
        }
      }
    });
    EXPECT_EQ(got, want);
    if (HasFailure()) return;
  }
  EXPECT_GT(packed_dims, 20);
  EXPECT_GT(larger_units, 50);
}

TEST(MapDims, PiecesHaveNoMoreWorkItemsThanAreLaunchedAtOnce) {
  const Layout layout({int64_t{1} << 24, 2, 3}, {64, 7, 1}, 0);
  const CollapsedDims<2> collapsed = collapse<2>({&layout, &layout});
  for (const int64_t threads : {1, 256, 1024, 1 << 20}) {
    int64_t elems = 0;
    collapsed.for_each_piece(threads, [&](const StridedIndex<2>& strided, const auto& start) {
      EXPECT_LE(strided.elems * threads, int64_t{1} << 31);
      if (threads < 1 << 20) {
        EXPECT_EQ(start[0], elems / 6 * 64);
      }
      elems += strided.elems;
    });
    EXPECT_EQ(elems, int64_t{6} << 24);
  }
}

TEST(MapDims, PiecesOfLargeSpacesCanBeCounted) {
  const int64_t rows = (int64_t{1} << 22) + 5, cols = 3000;
  const Layout out = Layout::contiguous({rows, cols}), in({rows, cols}, {1, rows}, 0);
  for (const bool tiled : {false, true}) {
    int64_t elems = 0;
    const auto count = [&](const CollapsedDims<2>& collapsed) {
      collapsed.for_each_piece(
          [&](const StridedIndex<2>& strided, const std::array<int64_t, 2>& start) {
            elems += strided.elems;
            EXPECT_LT(strided.elems, 1u << 31);
            int64_t at[2];
            strided.locate(strided.elems - 1, at);
            EXPECT_LT(start[0] + at[0], rows * cols);
            EXPECT_LT(start[1] + at[1], rows * cols);
          });
    };
    const CollapsedDims<2> collapsed = collapse_for_map<2>({&out, &in});
    tiled ? for_each_tiled(collapsed, count) : count(collapsed);
    EXPECT_EQ(elems, rows * cols);
  }
}

}  // namespace
}  // namespace wick::gpu
