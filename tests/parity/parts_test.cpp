// Ops that copy parts: cat, pad, roll, repeat, tril and triu. Every element of a result is an
// element of an operand or a number, and the reference says which.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/tensors.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Bits = std::vector<uint64_t>;
using Index = std::vector<int64_t>;

/// Returns the bits of the element at an index.
uint64_t at(const Shape& shape, const Bits& bits, const Index& index) {
  int64_t i = 0;
  for (int d = 0; d < shape.rank(); ++d) i = i * shape[d] + index[static_cast<size_t>(d)];
  return bits[static_cast<size_t>(i)];
}

/// Returns one bit pattern for each index of a shape.
template <class Of>
Bits made(const Shape& shape, const Of& of) {
  Bits bits;
  Index index(static_cast<size_t>(shape.rank()));
  for (int64_t i = 0; i < shape.elems(); ++i) {
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    bits.push_back(of(index));
  }
  return bits;
}

/// One way to call a row on an x of some shape.
struct Way {
  std::string what;
  Shape shape;  ///< shape of the result
  std::function<Tensor(std::span<const Tensor>)> call;
  std::function<Bits(const Bits& x, const Bits& other)> expected;
};

Way cat_way(const Shape& shape, int dim) {
  const auto ud = static_cast<size_t>(dim);
  const int64_t n = shape[dim];
  const Shape joined = shape.with(dim, 3 * n);
  return {fmt::format("dim {}", dim), joined,
          [=](std::span<const Tensor> in) {
            const std::array<Tensor, 3> parts = {in[0], in[1], in[0]};
            return cat(parts, dim - shape.rank());
          },
          [=](const Bits& x, const Bits& other) {
            return made(joined, [&](Index index) {
              const int64_t part = index[ud] / n;
              index[ud] %= n;
              return at(shape, part == 1 ? other : x, index);
            });
          }};
}

Way pad_way(const Shape& shape, DType dtype, PadMode mode) {
  std::vector<Padding> padding;
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  const int first = std::max(shape.rank() - 3, 0);
  for (int d = first; d < shape.rank(); ++d) {
    const int64_t n = shape[d];
    Padding p{d % 3, (d + 2) % 3};
    if (mode == PadMode::reflect) {
      const int64_t most = std::max<int64_t>(n - 1, 0);
      p = {std::min(p.before, most), std::min(p.after, most)};
    }
    if (mode == PadMode::replicate && n == 0) p = {};
    padding.push_back(p);
    sizes[static_cast<size_t>(d)] += p.before + p.after;
  }
  const Shape padded(sizes);
  return {fmt::format("mode {}", static_cast<int>(mode)), padded,
          [=](std::span<const Tensor> in) { return pad(in[0], padding, mode, 3); },
          [=](const Bits& x, const Bits&) {
            return made(padded, [&](Index index) {
              for (int d = first; d < shape.rank(); ++d) {
                int64_t& i = index[static_cast<size_t>(d)];
                const int64_t n = shape[d];
                i -= padding[static_cast<size_t>(d - first)].before;
                if (i >= 0 && i < n) continue;
                if (mode == PadMode::constant)
                  return is_float(dtype) ? encode(dtype, 3) : uint64_t{3};
                const int64_t mirrored = i < 0 ? -i : 2 * n - 2 - i;
                const int64_t nearest = i < 0 ? 0 : n - 1;
                i = mode == PadMode::reflect ? mirrored : nearest;
              }
              return at(shape, x, index);
            });
          }};
}

Way roll_way(const Shape& shape, int64_t by) {
  std::vector<int64_t> shifts;
  std::vector<int> dims;
  for (int d = 0; d < shape.rank(); d += 2) {
    shifts.push_back(by + d);
    dims.push_back(d == 0 ? 0 : d - shape.rank());
  }
  return {fmt::format("by {}", by), shape,
          [=](std::span<const Tensor> in) { return roll(in[0], shifts, dims); },
          [=](const Bits& x, const Bits&) {
            return made(shape, [&](Index index) {
              for (int d = 0; d < shape.rank(); d += 2) {
                int64_t& i = index[static_cast<size_t>(d)];
                const int64_t n = shape[d];
                i = ((i - shifts[static_cast<size_t>(d / 2)]) % n + n) % n;
              }
              return at(shape, x, index);
            });
          }};
}

/// `more`: adds a dim in front of the existing ones.
Way repeat_way(const Shape& shape, bool more) {
  std::vector<int64_t> counts, sizes;
  if (more) counts.push_back(2), sizes.push_back(2);
  for (int d = 0; d < shape.rank(); ++d) {
    counts.push_back(shape.elems() > 20000 ? 1 + d % 2 : 1 + (d + 1) % 3);
    sizes.push_back(counts.back() * shape[d]);
  }
  const Shape repeated(sizes);
  return {fmt::format("to {}", repeated.str()), repeated,
          [=](std::span<const Tensor> in) { return repeat(in[0], counts); },
          [=](const Bits& x, const Bits&) {
            return made(repeated, [&](const Index& index) {
              Index from(index.end() - shape.rank(), index.end());
              for (int d = 0; d < shape.rank(); ++d) from[static_cast<size_t>(d)] %= shape[d];
              return at(shape, x, from);
            });
          }};
}

Way triangle_way(const Shape& shape, bool lower, int64_t diagonal) {
  return {fmt::format("diagonal {}", diagonal), shape,
          [=](std::span<const Tensor> in) {
            return lower ? tril(in[0], diagonal) : triu(in[0], diagonal);
          },
          [=](const Bits& x, const Bits&) {
            return made(shape, [&](const Index& index) {
              const int64_t above = index[index.size() - 1] - index[index.size() - 2];
              const bool kept = lower ? above <= diagonal : above >= diagonal;
              return kept ? at(shape, x, index) : uint64_t{0};
            });
          }};
}

std::vector<Way> ways(Op op, const Shape& shape, DType dtype) {
  std::vector<Way> list;
  const int rank = shape.rank();
  switch (op) {
    case Op::cat:
      for (int d = 0; d < rank; ++d) list.push_back(cat_way(shape, d));
      break;
    case Op::pad:
      for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate}) {
        list.push_back(pad_way(shape, dtype, mode));
      }
      break;
    case Op::roll:
      for (const int64_t by : {0, 1, -3, 1000003}) list.push_back(roll_way(shape, by));
      break;
    case Op::repeat:
      list.push_back(repeat_way(shape, false));
      if (rank < Shape::kMaxRank) list.push_back(repeat_way(shape, true));
      break;
    default:
      if (rank < 2) break;
      for (const int64_t diagonal : {int64_t{0}, int64_t{2}, int64_t{-3}, INT64_MAX, INT64_MIN}) {
        list.push_back(triangle_way(shape, op == Op::tril, diagonal));
      }
  }
  return list;
}

void check(Op op, DType dtype) {
  Random random(static_cast<uint64_t>(dtype) + 71);
  for (const Geometry& g : geometries()) {
    for (const Way& way : ways(op, g.shape, dtype)) {
      if (!here(g)) continue;
      TestTensor x(dtype, g.place, g.shape, 1), other(dtype, g.place, g.shape, 2);
      x.fill(Values::bits, random);
      other.fill(Values::bits, random);
      const TestTensor* const inputs[] = {&x, &other};
      const std::string what = fmt::format("{}.{}.{} {}", name(op), name(dtype), g.name, way.what);
      const Bits expected = way.expected(x.bits(), other.bits());
      run_tensors(what, inputs, dtype, way.shape, way.call, [&](const Bits& got) {
        expect_same(what, dtype, got, expected);
        if (got != expected) ADD_FAILURE() << what << " changed a NaN's payload";
      });
      if (failed()) return;
    }
  }
}

const bool added = [] {
  for (const Op op : {Op::cat, Op::pad, Op::roll, Op::repeat, Op::tril, Op::triu}) {
    add_rows(op, [op](DType dtype) { check(op, dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
