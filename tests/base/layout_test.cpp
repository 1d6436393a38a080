// Compares layouts with a model: a list of the storage positions in row-major order. Every view
// must reorder it the way plain loops over indices do.
#include "wick/base/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "tests/expect_error.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;
using Index = std::vector<int64_t>;

/// The meaning of a layout: its sizes and the position of each element.
struct Model {
  Index dims;
  std::vector<int64_t> at;
  bool operator==(const Model&) const = default;
};

int64_t product(const Index& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Calls f with every index in row-major order.
void for_each_index(const Index& dims, const std::function<void(const Index&)>& f) {
  if (product(dims) == 0) return;
  Index index(dims.size(), 0);
  for (;;) {
    f(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

int64_t row_major(const Index& dims, const Index& index) {
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + index[d];
  return at;
}

/// Returns the model with other sizes, whose element `index` is the old `old_index(index)`.
Model remap(const Model& old, const Index& dims, const std::function<Index(Index)>& old_index) {
  Model model{dims, {}};
  for_each_index(dims, [&](const Index& index) {
    const Index from = old_index(index);
    model.at.push_back(old.at[static_cast<size_t>(row_major(old.dims, from))]);
  });
  return model;
}

Model model_of(const Layout& layout) {
  Model model{{layout.shape().dims().begin(), layout.shape().dims().end()}, {}};
  for_each_index(model.dims, [&](const Index& index) {
    int64_t at = layout.offset();
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * layout.stride(static_cast<int>(d));
    model.at.push_back(at);
  });
  return model;
}

Shape shape_of(const Index& dims) { return Shape(dims); }

/// Returns whether strides exist that give `at` in row-major order. Tries the only candidates.
bool expressible(const Index& dims, const std::vector<int64_t>& at) {
  if (at.empty()) return true;
  Index strides(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 2) continue;
    Index unit(dims.size(), 0);
    unit[d] = 1;
    strides[d] = at[static_cast<size_t>(row_major(dims, unit))] - at[0];
  }
  bool same = true;
  size_t i = 0;
  for_each_index(dims, [&](const Index& index) {
    int64_t position = at[0];
    for (size_t d = 0; d < dims.size(); ++d) position += index[d] * strides[d];
    same = same && position == at[i++];
  });
  return same;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937 engine_;
};

/// Lists all factorizations of n into up to `rank` sizes, including sizes of 1.
void factorise(int64_t n, int rank, Index& prefix, std::vector<Index>& out) {
  if (n == 1) out.push_back(prefix);
  if (rank == 0) return;
  for (int64_t f = 1; f <= n; ++f) {
    if (n % f != 0 || (f == 1 && prefix.size() > 2)) continue;
    prefix.push_back(f);
    factorise(n / f, rank - 1, prefix, out);
    prefix.pop_back();
  }
}

struct Pair {
  Layout layout;
  Model model;
};

/// A random choice for the views below: a dim, named from either end.
struct Choice {
  const Pair& p;
  const Index& dims;
  int rank, d, named;
  size_t u;
};

Pair random_narrow(const Choice& c, Random& random) {
  const int64_t start = random(0, c.dims[c.u]), length = random(0, c.dims[c.u] - start);
  Index to = c.dims;
  to[c.u] = length;
  return {c.p.layout.narrow(c.named, start, length), remap(c.p.model, to, [&](Index i) {
            i[c.u] += start;
            return i;
          })};
}

/// Returns the positions start:stop:by of a dim by Python's rule, computed one element at a time.
std::vector<int64_t> slice_places(int64_t size, int64_t start, int64_t stop, int64_t by) {
  std::vector<int64_t> picked;
  const auto place = [&](int64_t i) { return i < 0 ? i + size : i; };
  const int64_t end = place(stop);
  int64_t at = place(start);
  if (by > 0) {
    for (at = std::max<int64_t>(at, 0); at < std::min(end, size); at += by) picked.push_back(at);
  } else {
    for (at = std::min(at, size - 1); at >= 0 && at > end; at += by) picked.push_back(at);
  }
  return picked;
}

Pair random_slice(const Choice& c, Random& random) {
  const int64_t size = c.dims[c.u], start = random(-size - 2, size + 2);
  const int64_t stop = random(-size - 2, size + 2);
  int64_t by = random(-3, 3);
  if (by == 0) by = 1;
  const std::vector<int64_t> picked = slice_places(size, start, stop, by);
  Index to = c.dims;
  to[c.u] = static_cast<int64_t>(picked.size());
  return {c.p.layout.slice(c.named, start, stop, by), remap(c.p.model, to, [&](Index i) {
            i[c.u] = picked[static_cast<size_t>(i[c.u])];
            return i;
          })};
}

Pair random_transpose(const Choice& c, Random& random) {
  const int e = static_cast<int>(random(0, c.rank - 1));
  Index to = c.dims;
  std::swap(to[c.u], to[static_cast<size_t>(e)]);
  return {c.p.layout.transpose(c.named, e), remap(c.p.model, to, [&](Index i) {
            std::swap(i[c.u], i[static_cast<size_t>(e)]);
            return i;
          })};
}

Pair random_permute(const Choice& c, Random& random) {
  std::vector<int> order(static_cast<size_t>(c.rank));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random(0, static_cast<int64_t>(i) - 1))]);
  }
  Index to;
  for (int o : order) to.push_back(c.dims[static_cast<size_t>(o)]);
  return {c.p.layout.permute(order), remap(c.p.model, to, [&](const Index& i) {
            Index from(i.size());
            for (size_t k = 0; k < i.size(); ++k) from[static_cast<size_t>(order[k])] = i[k];
            return from;
          })};
}

Pair random_unsqueeze(const Choice& c, Random& random) {
  const int at = static_cast<int>(random(0, c.rank));
  Index to = c.dims;
  to.insert(to.begin() + at, 1);
  return {c.p.layout.unsqueeze(random(0, 1) == 1 ? at : at - c.rank - 1),
          remap(c.p.model, to, [&](Index i) {
            i.erase(i.begin() + at);
            return i;
          })};
}

Pair squeezed(const Choice& c) {
  Index to = c.dims;
  to.erase(to.begin() + c.d);
  return {c.p.layout.squeeze(c.named), remap(c.p.model, to, [&](Index i) {
            i.insert(i.begin() + c.d, 0);
            return i;
          })};
}

Pair random_broadcast(const Choice& c, Random& random) {
  Index to = c.dims;
  for (int64_t& size : to) {
    if (size == 1) size = random(0, 3);
  }
  if (c.rank < 5 && random(0, 1) == 1) to.insert(to.begin(), random(0, 2));
  const size_t extra = to.size() - c.dims.size();
  return {c.p.layout.broadcast_to(shape_of(to)), remap(c.p.model, to, [&](Index i) {
            i.erase(i.begin(), i.begin() + static_cast<int64_t>(extra));
            for (size_t k = 0; k < c.dims.size(); ++k) {
              if (c.dims[k] == 1) i[k] = 0;
            }
            return i;
          })};
}

/// Returns one random view of the layout and of the model.
Pair step(const Pair& p, Random& random) {
  const int rank = p.layout.rank();
  const Index& dims = p.model.dims;
  const int d = rank > 0 ? static_cast<int>(random(0, rank - 1)) : 0;
  const int named = random(0, 1) == 1 ? d : d - rank;
  const Choice c{p, dims, rank, d, named, static_cast<size_t>(d)};
  const int64_t kind = random(0, 6);
  if (kind == 4) return rank == Shape::kMaxRank ? p : random_unsqueeze(c, random);
  if (kind == 3) return random_permute(c, random);
  if (rank == 0) return p;
  if (kind == 0) return random_narrow(c, random);
  if (kind == 1) return random_slice(c, random);
  if (kind == 2) return random_transpose(c, random);
  if (kind == 5) return dims[c.u] == 1 ? squeezed(c) : p;
  return product(dims) > 200 ? p : random_broadcast(c, random);
}

Pair random_base(Random& random) {
  Index dims;
  for (int64_t rank = random(0, 4); rank > 0; --rank) dims.push_back(random(1, 5));
  const Layout layout = Layout::contiguous(shape_of(dims), random(0, 7));
  Model model{dims, {}};
  for (int64_t i = 0; i < product(dims); ++i) model.at.push_back(layout.offset() + i);
  return {layout, model};
}

TEST(Layout, RandomViewsFollowTheModel) {
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    Pair p = random_base(random);
    ASSERT_EQ(model_of(p.layout), p.model);
    for (int i = 0; i < 5; ++i) {
      p = step(p, random);
      ASSERT_EQ(model_of(p.layout), p.model) << "round " << round << ", step " << i;
    }
  }
}

TEST(Layout, ContiguousAndOverlapAreTrueToTheModel) {
  Random random(2);
  int contiguous = 0, overlapping = 0, rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    Pair p = random_base(random);
    for (int i = 0; i < 3; ++i) p = step(p, random);
    bool dense = true;
    for (size_t i = 0; i < p.model.at.size(); ++i) {
      dense = dense && p.model.at[i] == p.model.at[0] + static_cast<int64_t>(i);
    }
    ASSERT_EQ(p.layout.is_contiguous(), dense) << p.layout.shape().str();
    const std::set<int64_t> distinct(p.model.at.begin(), p.model.at.end());
    ASSERT_EQ(p.layout.overlaps_itself(), distinct.size() < p.model.at.size())
        << p.layout.shape().str();
    contiguous += dense;
    overlapping += distinct.size() < p.model.at.size();
  }
  // Both answers occurred.
  EXPECT_GT(contiguous, rounds / 10);
  EXPECT_LT(contiguous, rounds * 9 / 10);
  EXPECT_GT(overlapping, rounds / 50);
}

TEST(Layout, OverlapOfStridesThatInterleaveIsNeverMissed) {
  // Layouts that no chain of views produces. "May overlap" may be reported too often, but never too
  // seldom.
  for (int64_t a = -4; a <= 4; ++a) {
    for (int64_t b = -4; b <= 4; ++b) {
      for (int64_t n = 1; n <= 3; ++n) {
        const Layout layout(Shape{n, 3}, {a, b}, 20);
        const Model model = model_of(layout);
        const std::set<int64_t> distinct(model.at.begin(), model.at.end());
        if (distinct.size() < model.at.size()) {
          EXPECT_TRUE(layout.overlaps_itself()) << a << " " << b << " " << n;
        }
      }
    }
  }
  EXPECT_FALSE(Layout(Shape{2, 3}, {-3, 1}, 3).overlaps_itself());
  EXPECT_FALSE(Layout(Shape{0, 3}, {0, 0}, 0).overlaps_itself());
}

TEST(Layout, ReshapeIsAViewExactlyWhenStridesCanSayIt) {
  Random random(3);
  int views = 0, copies = 0;
  for (int round = 0; round < 1500; ++round) {
    Pair p = random_base(random);
    for (int i = 0; i < 3; ++i) p = step(p, random);
    if (p.model.at.empty() || p.model.at.size() > 64) continue;
    std::vector<Index> shapes;
    Index prefix;
    factorise(static_cast<int64_t>(p.model.at.size()), 4, prefix, shapes);
    for (const Index& dims : shapes) {
      const auto view = p.layout.reshape(shape_of(dims));
      ASSERT_EQ(view.has_value(), expressible(dims, p.model.at))
          << p.layout.shape().str() << " to " << shape_of(dims).str() << " in round " << round;
      if (!view) {
        ++copies;
        continue;
      }
      ++views;
      ASSERT_EQ(model_of(*view), (Model{dims, p.model.at})) << shape_of(dims).str();
    }
  }
  EXPECT_GT(views, 1000);
  EXPECT_GT(copies, 1000);
}

TEST(Layout, ReshapeOfEmptyAndScalar) {
  const auto empty = Layout::contiguous({0, 3}).reshape({5, 0, 2});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->shape(), (Shape{5, 0, 2}));
  const auto one = Layout::contiguous({}, 4).reshape({1, 1});
  ASSERT_TRUE(one);
  EXPECT_EQ(model_of(*one).at, std::vector<int64_t>{4});
  EXPECT_TRUE(Layout::contiguous({1, 1}).reshape({}));
}

TEST(Layout, Errors) {
  const Layout l = Layout::contiguous({4, 5});
  EXPECT_EQ(error_of([&] { l.narrow(1, 3, 3); }),
            "narrow: range outside the dimension: [4,5], dim 1, start 3, length 3: need 0 <= start "
            "and start + length <= 5");
  for (auto [start, length] : {std::pair<int64_t, int64_t>{-1, 1},
                               {0, -1},
                               {6, 0},
                               {5, 1},
                               {INT64_MAX, 1},
                               {1, INT64_MAX},
                               {INT64_MIN, INT64_MIN}}) {
    EXPECT_THAT(error_of([&] { l.narrow(1, start, length); }), HasSubstr("range outside"));
  }
  EXPECT_EQ(error_of([&] { l.slice(0, 0, 4, 0); }),
            "slice: step is 0 or too large: [4,5]: need step != 0");
  EXPECT_THAT(error_of([&] { l.slice(0, 0, 4, INT64_MIN); }), HasSubstr("slice: step"));
  EXPECT_EQ(error_of([&] { l.transpose(0, 2); }),
            "transpose: dimension out of range: dim 2 of rank 2: need -2 <= dim < 2");
  EXPECT_EQ(error_of([&] {
              l.permute(std::vector<int>{0, 0});
            }),
            "permute: not a permutation of the dimensions: [4,5], order (0,0): name each dimension "
            "once");
  EXPECT_THAT(error_of([&] { l.permute(std::vector<int>{0}); }), HasSubstr("order (0)"));
  EXPECT_THAT(error_of([&] { l.permute(std::vector<int>(40, 0)); }), HasSubstr("permutation"));
  EXPECT_THAT(error_of([&] { l.permute(std::vector<int>{0, 2}); }), HasSubstr("dim 2 of rank 2"));
  EXPECT_EQ(error_of([&] {
              l.broadcast_to({4, 6});
            }),
            "broadcast_to: shapes don't fit: [4,5] to [4,6]: each size must be equal or 1, counted "
            "from the last dimension");
  EXPECT_THAT(error_of([&] { l.broadcast_to({5}); }), HasSubstr("[4,5] to [5]"));
  EXPECT_EQ(error_of([&] { l.squeeze(-1); }), "squeeze: dimension isn't 1: [4,5], dim 1");
  EXPECT_THAT(error_of([&] { l.unsqueeze(3); }), HasSubstr("unsqueeze: dimension out of range"));
  EXPECT_THAT(error_of([&] { l.unsqueeze(-4); }), HasSubstr("unsqueeze: dimension out of range"));
  EXPECT_THAT(error_of([&] {
                Layout::contiguous({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0);
              }),
              HasSubstr("too many dimensions"));
  EXPECT_EQ(error_of([&] {
              l.reshape({3, 7});
            }),
            "reshape: element counts differ: [4,5] to [3,7]: 20 != 21");
}

TEST(Layout, SliceTakesAnyNumbers) {
  const Layout l = Layout::contiguous({5});
  const int64_t low = INT64_MIN, high = INT64_MAX;
  EXPECT_EQ(model_of(l.slice(0, low, high, 1)).at, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(model_of(l.slice(0, high, low, -1)).at, (std::vector<int64_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(model_of(l.slice(0, 1, high, high)).at, (std::vector<int64_t>{1}));
  EXPECT_EQ(model_of(l.slice(0, high, low, low + 1)).at, (std::vector<int64_t>{4}));
  EXPECT_EQ(l.slice(0, high, low, 1).elems(), 0);
  EXPECT_EQ(Layout::contiguous({0}).slice(0, high, low, -1).elems(), 0);
}

TEST(Layout, BroadcastShapes) {
  EXPECT_EQ(broadcast_shapes("op", {2, 1, 5}, {4, 1}), (Shape{2, 4, 5}));
  EXPECT_EQ(broadcast_shapes("op", {}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast_shapes("op", {0}, {1}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes("op", {1, 0}, {3, 1}), (Shape{3, 0}));
  EXPECT_EQ(error_of([] {
              broadcast_shapes("add", {2, 3}, {2, 4});
            }),
            "add: shapes don't broadcast: lhs [2,3], rhs [2,4]: each size must be equal or 1, "
            "counted from the last dimension");
  EXPECT_THAT(error_of([] { broadcast_shapes("add", {0}, {2}); }), HasSubstr("lhs [0], rhs [2]"));
  EXPECT_THAT(error_of([] {
                broadcast_shapes("add", {int64_t{1} << 40, 1}, {1, int64_t{1} << 40});
              }),
              HasSubstr("2^62"));
}

}  // namespace
}  // namespace wick
