// gather, scatter, scatter_add, index_add and one_hot: every bit of a result is specified. Sums are
// computed in source order, one element after another.

#include <fmt/format.h>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

constexpr DType kIdTypes[] = {DType::u8, DType::u32, DType::i32, DType::i64};

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}
bool is_padding(DType id_type, uint64_t id) {
  return (id_type == DType::u8 && id == 0xff) || (id_type == DType::u32 && id == 0xffffffff);
}

/// The order of the ids along the dim. skewed: most of them are equal.
enum class Order { random, equal, ascending, descending, skewed };

/// The tensor that ids index has `size` elements along `dim`; the ids have `shape`.
struct Case {
  Place place;
  Shape shape;
  int dim;
  int64_t size;
  int64_t more = 0;  ///< how much larger the other dims of that tensor are
  Order order = Order::random;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    for (int dim = 0; dim < g.shape.rank(); ++dim) {
      const bool large = g.name.starts_with("large");
      if (g.shape.rank() == 8 && dim % 3 != 1) continue;
      list.push_back({g.place, g.shape, dim, large ? 101 : 9});
      if (!large && g.shape.rank() < 4) list.push_back({g.place, g.shape, dim, 90, 2});
    }
  }
  // One row for several threads, few rows, rows with many columns, and few ids for many
  // positions.
  list.push_back({Place::contiguous, {70000}, 0, 230});
  list.push_back({Place::stepped, {60000}, 0, 230});
  list.push_back({Place::contiguous, {3, 30000}, 1, 200});
  list.push_back({Place::contiguous, {500, 130}, 0, 200});
  list.push_back({Place::contiguous, {40, 3000}, 0, 30});
  list.push_back({Place::contiguous, {5, 3}, 1, 250});
  list.push_back({Place::sliced, {3, 70}, 0, 250});
  // Cases of GPU kernels that hold lines in shared memory and of those that sort ids, along either
  // dim, with few or many sources for a place.
  for (const Order order : {Order::equal, Order::ascending, Order::descending, Order::skewed}) {
    list.push_back({Place::contiguous, {5, 300}, 1, 220, 0, order});
    list.push_back({Place::contiguous, {300, 9}, 0, 220, 0, order});
    list.push_back({Place::stepped, {33, 3, 8}, 0, 40, 0, order});
    list.push_back({Place::contiguous, {3, 70}, 1, 2000, 0, order});
  }
  list.push_back({Place::contiguous, {17000}, 0, 300, 0, Order::equal});
  list.push_back({Place::contiguous, {17000}, 0, 300, 0, Order::skewed});
  // Numbers of ids, or of lines, around the sizes of a warp and of a thread block.
  for (const int64_t n : {31, 32, 33, 255, 256, 257}) {
    list.push_back({Place::contiguous, {3, n}, 1, 97});
    list.push_back({Place::contiguous, {n, 17}, 0, 97});
  }
  // Lines that are longer than shared memory, for which ids are sorted in 2 and in 3 passes; more
  // ids than one thread block sorts.
  list.push_back({Place::contiguous, {1, 4096}, 1, 60000});
  list.push_back({Place::contiguous, {4096, 2}, 0, 17000});
  list.push_back({Place::contiguous, {2, 2500}, 1, 10000});
  list.push_back({Place::contiguous, {2, 9000}, 1, 66000});
  return list;
}

Shape chosen_shape(const Case& c) {
  Shape shape = c.shape;
  for (int d = 0; d < shape.rank(); ++d) {
    shape = shape.with(d, d == c.dim ? c.size : shape[d] == 0 ? 0 : shape[d] + c.more);
  }
  return shape;
}

/// Fills ids below `size` along a dim, with some padding ids.
void fill_ids(TestTensor& ids, int64_t size, Random& random, int dim = 0,
              Order order = Order::random) {
  const DType type = ids.dtype();
  if (ids.elems() == 0) return;
  const int64_t n = ids.shape().rank() == 0 ? 1 : ids.shape()[dim];
  const int64_t inner = ids.shape().rank() == 0 ? 1 : Around(ids.shape(), dim).inner;
  ids.fill_bits([&](int64_t index) {
    const int64_t i = index / inner % n;
    const bool padding = random.below(9) == 0 && (type == DType::u8 || type == DType::u32);
    if (padding) return cut(type, ~uint64_t{0});
    switch (order) {
      case Order::equal:
        return static_cast<uint64_t>(size / 2);
      case Order::ascending:
        return static_cast<uint64_t>(i * size / n);
      case Order::descending:
        return static_cast<uint64_t>((n - 1 - i) * size / n);
      case Order::skewed:
        if (random.below(8) != 0) return static_cast<uint64_t>(size - 1);
        break;
      default:
        break;
    }
    return static_cast<uint64_t>(random.below(size));
  });
}

/// Returns the row-major index in `to` of the element with row-major index i in `from`, at `place`
/// along dim.
int64_t index_at(const Shape& from, int64_t i, const Shape& to, int dim, int64_t place) {
  int64_t at = 0, stride = 1;
  for (int d = from.rank() - 1; d >= 0; --d) {
    at += (d == dim ? place : i % from[d]) * stride;
    stride *= to[d];
    i /= from[d];
  }
  return at;
}

std::string describe(std::string_view op, DType dtype, DType id_type, const Case& c) {
  return fmt::format("{}.{} ids {} {}{} dim {} of {}+{} order {}", op, name(dtype), name(id_type),
                     name(c.place), c.shape.str(), c.dim, c.size, c.more,
                     static_cast<int>(c.order));
}

/// Calls body(case, id type), with all id types for small cases.
template <class F>
void for_each_case(const F& body) {
  size_t turn = 0;
  for (const Case& c : cases()) {
    ++turn;
    if (!here(c.place, c.shape)) continue;
    for (size_t k = 0; k < std::size(kIdTypes); ++k) {
      if (c.shape.elems() > 500 && k != turn % 4) continue;
      const bool wide = c.size > 255 && kIdTypes[k] == DType::u8;
      body(c, wide ? DType::i64 : kIdTypes[k]);
      if (failed()) return;
    }
  }
}

void check_gather(DType dtype) {
  Random random(71);
  for_each_case([&](const Case& c, DType id_type) {
    const Shape from = chosen_shape(c);
    TestTensor x(dtype, c.place, from, 1), ids(id_type, c.place, c.shape, 2);
    TestTensor out(dtype, c.place, c.shape, 0, true);
    x.fill(Values::bits, random);
    fill_ids(ids, c.size, random, c.dim, c.order);
    const std::string what = describe("gather", dtype, id_type, c);
    const TestTensor* const inputs[] = {&x, &ids};
    if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
          b.gather(o, in[0], in[1], c.dim);
        })) {
      return;
    }
    const std::vector<uint64_t> values = x.bits(), chosen = ids.bits();
    std::vector<uint64_t> expected(chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (is_padding(id_type, chosen[i])) continue;
      const auto place = static_cast<int64_t>(chosen[i]);
      expected[i] = values[static_cast<size_t>(
          index_at(c.shape, static_cast<int64_t>(i), from, c.dim, place))];
    }
    expect_bits(what, out, expected);
    if (out.bits() != expected) ADD_FAILURE() << what << " changed a NaN's payload";
  });
}

/// Returns x after the sources were stored or added one after another. Sums are computed in the
/// compute type and rounded at the end.
std::vector<uint64_t> scattered(bool add, DType dtype, const std::vector<uint64_t>& x,
                                const std::vector<uint64_t>& source,
                                const std::vector<int64_t>& to) {
  std::vector<uint64_t> result = x;
  std::vector<bool> touched(x.size());
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    std::vector<A> sums(x.size());
    for (size_t i = 0; i < source.size(); ++i) {
      if (to[i] < 0) continue;
      const auto at = static_cast<size_t>(to[i]);
      if (!add) {
        result[at] = source[i];
      } else if (!is_float(dtype)) {
        result[at] = cut(dtype, result[at] + source[i]);
      } else {
        if (!touched[at]) sums[at] = static_cast<A>(decode(dtype, x[at]));
        touched[at] = true;
        sums[at] = sums[at] + static_cast<A>(decode(dtype, source[i]));
      }
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (touched[i]) result[i] = encode(dtype, sums[i]);
    }
  });
  return result;
}

void check_scatter(Op op, DType dtype) {
  Random random(72);
  for_each_case([&](const Case& c, DType id_type) {
    const Shape to = chosen_shape(c);
    for (Values values : {Values::normal, Values::special}) {
      TestTensor x(dtype, c.place, to, 1), source(dtype, c.place, c.shape, 2),
          ids(id_type, c.place, c.shape, 3), out(dtype, c.place, to, 0, true);
      x.fill(values, random);
      source.fill(values, random);
      fill_ids(ids, c.size, random, c.dim, c.order);
      const std::string what = describe(name(op), dtype, id_type, c);
      const TestTensor* const inputs[] = {&x, &source, &ids};
      if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
            b.copy(o, in[0]);
            b.scatter(op, o, in[1], in[2], c.dim);
          })) {
        return;
      }
      const std::vector<uint64_t> chosen = ids.bits();
      std::vector<int64_t> places(chosen.size(), -1);
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (is_padding(id_type, chosen[i])) continue;
        places[i] =
            index_at(c.shape, static_cast<int64_t>(i), to, c.dim, static_cast<int64_t>(chosen[i]));
      }
      expect_bits(what, out,
                  scattered(op == Op::scatter_add, dtype, x.bits(), source.bits(), places));
      if (c.shape.elems() > 3000) return;
    }
  });
}

void check_index_add(DType dtype) {
  Random random(73);
  for_each_case([&](const Case& c, DType id_type) {
    if (c.more != 0) return;
    const Shape to = chosen_shape(c);
    const int64_t n = c.shape[c.dim];
    TestTensor x(dtype, c.place, to, 1), source(dtype, c.place, c.shape, 2),
        ids(id_type, Place::stepped, {n}, 3), out(dtype, c.place, to, 0, true);
    x.fill(Values::special, random);
    source.fill(Values::normal, random);
    fill_ids(ids, c.size, random, 0, c.order);
    const std::string what = describe("index_add", dtype, id_type, c);
    const TestTensor* const inputs[] = {&x, &source, &ids};
    if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
          b.copy(o, in[0]);
          b.index_add(o, in[1], in[2], c.dim);
        })) {
      return;
    }
    const std::vector<uint64_t> chosen = ids.bits();
    const Around around(c.shape, c.dim);
    std::vector<int64_t> places(static_cast<size_t>(c.shape.elems()), -1);
    for (size_t i = 0; i < places.size(); ++i) {
      const auto row = static_cast<size_t>(static_cast<int64_t>(i) / around.inner % n);
      if (is_padding(id_type, chosen[row])) continue;
      places[i] =
          index_at(c.shape, static_cast<int64_t>(i), to, c.dim, static_cast<int64_t>(chosen[row]));
    }
    expect_bits(what, out, scattered(true, dtype, x.bits(), source.bits(), places));
  });
}

/// Tests the backend call of the tensor layer: ones at ids, in a tensor of zeros.
void check_one_hot(DType dtype) {
  const std::pair<Place, Shape> places[] = {
      {Place::contiguous, {11, 7}},
      {Place::stepped, {11, 7}},
      {Place::transposed, {11, 7}},
      {Place::sliced, {11, 7}},
      {Place::broadcast, {5, 4, 6}},
      {Place::scattered, {5, 4, 6}},
      {Place::sliced, {3, 0}},
      {Place::sliced, {}},
      {Place::scattered, {2, 1, 3, 2, 1, 2, 3}},  // plus a dim for the classes
  };
  Random random(74);
  for (DType id_type : kIdTypes) {
    for (const auto& [where, shape] : places) {
      if (!here(shape.rank() == 7 ? "rank8" : layout_of(where, shape))) continue;
      std::vector<int64_t> column(shape.dims().begin(), shape.dims().end()), row = column;
      column.push_back(1), row.push_back(13);
      const Shape ids_shape{std::span<const int64_t>(column)};
      TestTensor ids(id_type, where, ids_shape, 1), one(dtype, Place::scalar, ids_shape, 2),
          out(dtype, where, Shape{std::span<const int64_t>(row)}, 0, true);
      fill_ids(ids, 13, random);
      one.fill_with([](int64_t) { return 1.0L; });
      const std::string what = fmt::format("one_hot.{} {}", name(dtype), name(id_type));
      const TestTensor* const inputs[] = {&one, &ids};
      if (!run_everywhere(what, out, inputs,
                          [&, shape = shape](Backend& b, const View& o, auto in) {
                            b.fill(o, 0);
                            b.scatter(Op::one_hot, o, in[0], in[1], shape.rank());
                          })) {
        return;
      }
      const std::vector<uint64_t> chosen = ids.bits();
      std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
      const uint64_t bits = is_float(dtype) ? encode(dtype, 1) : 1;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (!is_padding(id_type, chosen[i])) expected[i * 13 + chosen[i]] = bits;
      }
      expect_bits(what, out, expected);
    }
  }
}

void check_bad_ids() {
  TestTensor x(DType::f32, Place::contiguous, {50, 8}),
      source(DType::f32, Place::contiguous, {2, 8});
  TestTensor out(DType::f32, Place::contiguous, {50, 8}, 0, true);
  TestTensor picked(DType::f32, Place::contiguous, {2, 8}, 0, true);
  Backend& b = *targets()[0].backend;
  const auto message = [&](Op op, DType id_type, uint64_t bad) -> std::string {
    const Shape shape = op == Op::index_add ? Shape{2} : Shape{2, 8};
    TestTensor ids(id_type, Place::contiguous, shape);
    ids.fill_bits([&](int64_t i) { return i == 1 ? cut(id_type, bad) : 0; });
    const ConstView ids_view = std::as_const(ids).view();
    out.wipe();
    try {
      if (op == Op::gather) {
        b.gather(picked.view(), x.view(), ids_view, 0);
      } else if (op == Op::index_add) {
        b.index_add(out.view(), source.view(), ids_view, 0);
      } else {
        b.scatter(op, out.view(), source.view(), ids_view, 0);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.op(), name(op));
      for (std::byte byte : out.storage()) EXPECT_EQ(byte, std::byte{0xa5}) << "written";
      return error.what();
    }
    return "";
  };
  for (Op op : {Op::gather, Op::scatter, Op::scatter_add, Op::index_add, Op::one_hot}) {
    EXPECT_NE(message(op, DType::i32, 50).find("id 50 at position 1 of i32"), std::string::npos);
    EXPECT_NE(message(op, DType::i64, ~uint64_t{0}).find("id -1"), std::string::npos);
    EXPECT_NE(message(op, DType::u32, 51).find("need 0 <= id < 50"), std::string::npos);
    EXPECT_NE(message(op, DType::u8, 254).find("254"), std::string::npos);
    EXPECT_NE(message(op, DType::i64, uint64_t{1} << 63).find("out of range"), std::string::npos);
    EXPECT_EQ(message(op, DType::u8, 255), "");
    EXPECT_EQ(message(op, DType::u32, 0xffffffff), "");
  }
}

/// The results must be the same for any number of threads, which divide positions or rows.
void check_threads(DType dtype) {
  cpu::ThreadPool& pool = cpu::ThreadPool::global();
  const int usual = pool.threads();
  Random random(75);
  for (const auto& [shape, dim] : {std::pair{Shape{90000}, 0},
                                   {Shape{2, 50000}, 1},
                                   {Shape{900, 200}, 0},
                                   {Shape{300, 300}, 1}}) {
    TestTensor source(dtype, Place::contiguous, shape, 1),
        ids(DType::i32, Place::contiguous, shape),
        row_ids(DType::i32, Place::contiguous, {shape[dim]}),
        out(dtype, Place::contiguous, shape, 0, true);
    source.fill(Values::normal, random);
    fill_ids(ids, shape[dim] / 3, random);
    fill_ids(row_ids, shape[dim] / 3, random);
    std::vector<uint64_t> first[3];
    for (int threads : {1, 2, 3, 7}) {
      pool.set_threads(threads);
      for (size_t k = 0; k < 3; ++k) {
        Backend& b = *targets()[0].backend;
        b.fill(out.view(), 1);
        if (k == 2) {
          b.index_add(out.view(), source.view(), row_ids.view(), dim);
        } else {
          b.scatter(k == 0 ? Op::scatter : Op::scatter_add, out.view(), source.view(), ids.view(),
                    dim);
        }
        if (threads == 1) first[k] = out.bits();
        EXPECT_EQ(out.bits(), first[k]) << shape.str() << " with " << threads << " threads";
      }
    }
  }
  pool.set_threads(usual);
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    add_row("gather", name(dtype), [=] { check_gather(dtype); });
    add_row("scatter", name(dtype), [=] { check_scatter(Op::scatter, dtype); });
    add_row("scatter_add", name(dtype), [=] { check_scatter(Op::scatter_add, dtype); });
    add_row("index_add", name(dtype), [=] { check_index_add(dtype); });
    add_row("one_hot", name(dtype), [=] { check_one_hot(dtype); });
  }
  add("scatter.bad_ids", check_bad_ids);
  for (DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    add(fmt::format("scatter_add.threads.{}", name(dtype)), [=] { check_threads(dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
