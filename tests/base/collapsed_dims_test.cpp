// Collapsed dims of random layouts against a naive walk over all indices.

#include "wick/base/collapsed_dims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace wick {
namespace {

template <int N>
using Offsets = typename CollapsedDims<N>::Offsets;

/// N random layouts of one shape: dims in any order, with gaps, with negative strides, and, except
/// in the first layout, with stride 0.
template <int N>
std::array<Layout, N> random_layouts(std::mt19937& random) {
  const int rank = static_cast<int>(random() % 6);
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  for (int64_t& size : sizes)
    size = random() % 16 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 5);
  const Shape shape(sizes);
  std::vector<int> order(static_cast<size_t>(rank));
  for (int d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  std::array<Layout, N> layouts;
  for (Layout& layout : layouts) {
    if (random() % 4 == 0) std::shuffle(order.begin(), order.end(), random);
    Layout::Strides strides{};
    int64_t step = 1;
    for (const int d : order) {
      const auto i = static_cast<size_t>(d);
      strides[i] = random() % 4 == 0 ? -step : step;
      if (&layout != layouts.data() && random() % 4 == 0) strides[i] = 0;
      step *= std::max<int64_t>(shape[d], 1) + (random() % 4 == 0 ? 3 : 0);
    }
    layout = Layout(shape, strides, static_cast<int64_t>(random() % 1000));
  }
  return layouts;
}

/// The offsets of all elements of the dims in `which`, in row-major order.
template <int N>
std::vector<Offsets<N>> naive_offsets(const std::array<Layout, N>& layouts, uint32_t which = ~0u) {
  std::vector<Offsets<N>> all;
  Offsets<N> offsets;
  for (size_t k = 0; k < N; ++k) offsets[k] = layouts[k].offset();
  const auto visit = [&](const auto& self, int d, const Offsets<N>& at) -> void {
    if (d == layouts[0].rank()) return all.push_back(at);
    if ((which >> d & 1) == 0) return self(self, d + 1, at);
    for (int64_t i = 0; i < layouts[0].shape()[d]; ++i) {
      Offsets<N> next = at;
      for (size_t k = 0; k < N; ++k) next[k] += i * layouts[k].stride(d);
      self(self, d + 1, next);
    }
  };
  visit(visit, 0, offsets);
  return all;
}

template <int N>
std::array<const Layout*, N> pointers(const std::array<Layout, N>& layouts) {
  std::array<const Layout*, N> all;
  for (size_t k = 0; k < N; ++k) all[k] = &layouts[k];
  return all;
}

template <int N>
std::vector<Offsets<N>> offsets_of(const CollapsedDims<N>& dims) {
  std::vector<Offsets<N>> all;
  for (int64_t i = 0; i < dims.elems; ++i) all.push_back(dims.at(i));
  return all;
}

/// Expects that no dim has size 1 and that no two neighbouring dims could be merged.
template <int N>
void expect_collapsed(const CollapsedDims<N>& dims) {
  for (size_t d = 0; d < dims.dims.size(); ++d) {
    const auto& inner = dims.dims[d];
    EXPECT_NE(inner.size, 1);
    if (d == 0) continue;
    bool mergeable = true;
    for (size_t k = 0; k < N; ++k) {
      mergeable = mergeable && dims.dims[d - 1].stride[k] == inner.size * inner.stride[k];
    }
    EXPECT_FALSE(mergeable);
  }
}

template <int N>
void expect_order_is_kept(std::mt19937& random) {
  const auto layouts = random_layouts<N>(random);
  const uint32_t which = random() % 2 == 0 ? ~0u : static_cast<uint32_t>(random());
  const CollapsedDims<N> dims(pointers<N>(layouts), which);
  const auto expected = naive_offsets<N>(layouts, which);
  expect_collapsed(dims);
  EXPECT_EQ(offsets_of(dims), expected);

  const auto total = static_cast<int64_t>(expected.size());
  const int64_t begin = total == 0 ? 0 : static_cast<int64_t>(random()) % total;
  const int64_t end = begin + static_cast<int64_t>(random()) % (total - begin + 1);
  std::vector<Offsets<N>> seen;
  dims.runs(begin, end, [&](const Offsets<N>& at, const Offsets<N>& stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      Offsets<N> element = at;
      for (size_t k = 0; k < N; ++k) element[k] += i * stride[k];
      seen.push_back(element);
    }
  });
  EXPECT_EQ(seen, std::vector<Offsets<N>>(expected.begin() + begin, expected.begin() + end));
}

TEST(CollapsedDims, KeepsTheOrderOfElements) {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    expect_order_is_kept<1>(random);
    expect_order_is_kept<2>(random);
    expect_order_is_kept<3>(random);
    expect_order_is_kept<4>(random);
  }
}

template <int N>
void expect_arranged(std::mt19937& random) {
  const auto layouts = random_layouts<N>(random);
  CollapsedDims<N> dims(pointers<N>(layouts));
  dims.arrange();
  expect_collapsed(dims);
  for (size_t d = 0; d < dims.dims.size(); ++d) {
    EXPECT_GE(dims.dims[d].stride[0], 0);
    if (d > 0) {
      EXPECT_GE(dims.dims[d - 1].stride[0], dims.dims[d].stride[0]);
    }
  }
  auto seen = offsets_of(dims), expected = naive_offsets<N>(layouts);
  std::sort(seen.begin(), seen.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
}

TEST(CollapsedDims, ArrangesForTheOutput) {
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    expect_arranged<1>(random);
    expect_arranged<2>(random);
    expect_arranged<3>(random);
    expect_arranged<4>(random);
  }
}

TEST(CollapsedDims, ArrangingMakesAnyDenseOutputOneDim) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    auto layouts = random_layouts<2>(random);
    if (layouts[0].elems() == 0) continue;
    Layout dense = Layout::contiguous(layouts[0].shape());
    std::vector<int> order(static_cast<size_t>(dense.rank()));
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
    std::shuffle(order.begin(), order.end(), random);
    dense = dense.permute(order);
    CollapsedDims<2> dims({&dense, &dense});
    dims.arrange();
    EXPECT_LE(dims.rank(), 1);
  }
}

TEST(CollapsedDims, EqualStridesAreSortedByTheNextOperand) {
  CollapsedDims<2> dims;
  dims.add(3, {0, 7});
  dims.add(5, {0, 70});
  dims.sort();
  EXPECT_EQ(dims.inner(0).size, 3);
  EXPECT_EQ(dims.inner(1).size, 5);
}

TEST(CollapsedDims, PutsRepeatsWhereTheyAreWanted) {
  CollapsedDims<2> inside;
  inside.add(3, {0, 1});
  inside.add(5, {9, 20});
  inside.add(2, {-2, 200});
  CollapsedDims<2> outside = inside;
  inside.sort();
  EXPECT_EQ(inside.dims[0].size, 5);
  EXPECT_EQ(inside.dims[1].size, 2);
  EXPECT_EQ(inside.dims[2].size, 3);
  outside.sort(RepeatedDims::outermost);
  EXPECT_EQ(outside.dims[0].size, 3);
  EXPECT_EQ(outside.dims[1].size, 5);
  EXPECT_EQ(outside.dims[2].size, 2);
}

TEST(CollapsedDims, HasOneElementWithoutDims) {
  const CollapsedDims<2> dims({4, 6});
  EXPECT_EQ(dims.elems, 1);
  EXPECT_EQ(dims.rank(), 0);
  EXPECT_EQ(dims.at(0), (Offsets<2>{4, 6}));
}

}  // namespace
}  // namespace wick
