// The possible steps of a chain: calls with random operands and numbers. Only shapes and dtypes
// determine the choice.

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tests/parity/chain.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

/// Returns a random name of a dim, from -rank to rank - 1.
int random_dim(const Choice& c, const Tensor& x) {
  return static_cast<int>(c.random.below(2 * x.rank())) - x.rank();
}
int64_t size_at(const Tensor& x, int dim) { return x.size(dim); }

/// Returns the number of elements of the broadcast shape, or nothing if the shapes don't broadcast
/// or the result is large.
std::optional<int64_t> broadcast_elems(const Shape& a, const Shape& b) {
  int64_t elems = 1;
  for (int d = 1; d <= std::max(a.rank(), b.rank()); ++d) {
    const int64_t x = d <= a.rank() ? a[a.rank() - d] : 1, y = d <= b.rank() ? b[b.rank() - d] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    elems *= x == 1 ? y : x;
  }
  if (elems > 2 * kMostElems) return std::nullopt;
  return elems;
}

/// A second operand with a's dtype (after a cast if necessary) and a shape that broadcasts.
struct Partner {
  int place = -1;
  DType dtype = DType::f32;
  Tensor of(std::span<const Tensor> values) const { return values[z(place)].to(dtype); }
};
Partner partner_of(const Choice& c, int a) {
  std::vector<int> list = {a};
  for (int i = 0; i < static_cast<int>(c.values.size()); ++i) {
    if (broadcast_elems(c.at(a).shape(), c.at(i).shape())) list.push_back(i);
  }
  return {c.of(list), c.at(a).dtype()};
}

/// Returns ids in [0, size) with x's shape and an id dtype.
Tensor ids_below(const Tensor& x, int64_t size, DType dtype) {
  const Tensor whole =
      bitwise_and(x.to(DType::i64), Tensor::full({}, 0x7fffffff, DType::i64, x.device()));
  return rem(whole, Tensor::full({}, size, DType::i64, x.device())).to(dtype);
}

}  // namespace

// ---- Views ----

Made random_view(const Choice& c) {
  const int a = c.value();
  const Tensor& x = c.at(a);
  const int rank = x.rank();
  const int64_t kind = c.random.below(8);
  if (kind == 0 && rank < 8) {
    const int dim = static_cast<int>(c.random.below(rank + 1));
    return made("", fmt::format("unsqueeze(%{}, {})", a, dim),
                [=](auto v) { return v[z(a)].unsqueeze(dim); });
  }
  if (rank == 0) return {};
  const int dim = random_dim(c, x);
  const int64_t size = size_at(x, dim);
  if (kind == 1 || kind == 2) {
    const int other = random_dim(c, x);
    return made("", fmt::format("transpose(%{}, {}, {})", a, dim, other),
                [=](auto v) { return v[z(a)].transpose(dim, other); });
  }
  if (kind == 3) {
    const int64_t start = c.random.below(size + 1), length = c.random.below(size - start + 1);
    if (length == 0 && !c.one_in(10)) return {};
    return made("", fmt::format("narrow(%{}, {}, {}, {})", a, dim, start, length),
                [=](auto v) { return v[z(a)].narrow(dim, start, length); });
  }
  if (kind == 4 && size > 0) {
    const int64_t step = c.of(std::vector<int64_t>{2, 3, -1, -2});
    const int64_t start = step < 0 ? size - 1 : c.random.below(size);
    const int64_t stop = step < 0 ? INT64_MIN : size;
    return made("", fmt::format("slice(%{}, {}, {}, end, {})", a, dim, start, step),
                [=](auto v) { return v[z(a)].slice(dim, start, stop, step); });
  }
  if (kind == 5 && size == 1) {
    return made("", fmt::format("squeeze(%{}, {})", a, dim),
                [=](auto v) { return v[z(a)].squeeze(dim); });
  }
  if (kind == 6 && rank < 8 && x.elems() * 3 <= kMostElems) {
    std::vector<int64_t> sizes(x.shape().dims().begin(), x.shape().dims().end());
    sizes.insert(sizes.begin(), 3);
    const Shape shape{std::span<const int64_t>(sizes)};
    return made("", fmt::format("broadcast_to(%{}, {})", a, shape.str()),
                [=](auto v) { return v[z(a)].broadcast_to(shape); });
  }
  if (kind == 7 && rank > 1) {
    return made("", fmt::format("flatten(%{})", a), [=](auto v) { return v[z(a)].flatten(); });
  }
  return {};
}

// ---- Rows that a macro declares ----

namespace {

struct Unary {
  const char* name;
  Tensor (*call)(const Tensor&);
};
struct Binary {
  const char* name;
  Tensor (*call)(const Tensor&, const Tensor&);
};
struct Reduce {
  const char* name;
  Tensor (*call)(const Tensor&, std::span<const int>, bool);
};
const std::vector<Unary> kUnaries = {
#define WICK_UNARY(name, ...) {#name, &wick::name},
#define WICK_TEST(name, ...) {#name, &wick::name},
#include "wick/op/ops.def"
};
const std::vector<Binary> kBinaries = {
#define WICK_BINARY(name, ...) {#name, &wick::name},
#define WICK_COMPARE(name, ...) {#name, &wick::name},
#include "wick/op/ops.def"
};
const std::vector<Reduce> kReduces = {
#define WICK_REDUCE(name, ...) {#name, &wick::name},
#define WICK_ARG(name, ...) {#name, &wick::name},
#include "wick/op/ops.def"
};

DTypeSet dtypes_of(std::string_view op) {
  for (const OpInfo& row : kOps) {
    if (row.name == op) return row.dtypes;
  }
  return dtypes::kReal;
}

Made random_unary(const Choice& c) {
  const Unary& f = c.of(kUnaries);
  const int a = c.value(dtypes_of(f.name));
  if (a < 0) return {};
  return made(f.name, fmt::format("{}(%{})", f.name, a),
              [=, call = f.call](auto v) { return call(v[z(a)]); });
}

Made random_binary(const Choice& c) {
  const Binary& f = c.of(kBinaries);
  const int a = c.value(dtypes_of(f.name));
  if (a < 0) return {};
  const Partner b = partner_of(c, a);
  // Division of an integer by zero is an error.
  const std::string_view op = f.name;
  const bool divides = (op == "div" || op == "rem") && is_integer(c.at(a).dtype());
  const std::string text = fmt::format("{}(%{}, {}(%{}){})", f.name, a, name(b.dtype), b.place,
                                       divides ? " but for zeros" : "");
  return made(f.name, text, [=, call = f.call](auto v) {
    Tensor y = b.of(v);
    if (divides) y = where(logical_not(y), Tensor::ones({}, y.dtype(), y.device()), y);
    return call(v[z(a)], y);
  });
}

Made random_reduce(const Choice& c) {
  const bool keepdim = c.one_in(2);
  const Reduce& f = c.of(kReduces);
  const std::string op = f.name;
  const int a = c.value(dtypes_of(op), 1);
  if (a < 0) return {};
  std::vector<int> dims = {random_dim(c, c.at(a))};
  const bool needs_some = op == "max" || op == "min" || op == "argmax" || op == "argmin";
  if (needs_some && c.at(a).elems() == 0) return {};
  if (c.one_in(3)) dims.clear();
  const std::string text =
      fmt::format("{}(%{}, dims {}{})", op, a, dims.empty() ? "all" : std::to_string(dims[0]),
                  keepdim ? ", kept" : "");
  return made(op, text, [=, call = f.call](auto v) { return call(v[z(a)], dims, keepdim); });
}

Made random_with_numbers(const Choice& c) {
  const int64_t kind = c.random.below(4);
  const int a = c.value(kind < 2 ? dtypes::kReal : dtypes::kFloats);
  if (a < 0) return {};
  const double p = std::round(c.random.normal() * 4) / 2, q = std::round(c.random.normal() * 4) / 2;
  switch (kind) {
    case 0:
      return made("affine", fmt::format("affine(%{}, {}, {})", a, p, q),
                  [=](auto v) { return affine(v[z(a)], p, q); });
    case 1:
      return made("clamp", fmt::format("clamp(%{}, {}, {})", a, p - 2, p + 2),
                  [=](auto v) { return clamp(v[z(a)], p - 2, p + 2); });
    case 2:
      return made("powf", fmt::format("powf(%{}, {})", a, q),
                  [=](auto v) { return powf(v[z(a)], q); });
    default:
      return made("elu", fmt::format("elu(%{}, {})", a, p),
                  [=](auto v) { return elu(v[z(a)], p); });
  }
}

}  // namespace

Made random_regular(const Choice& c) {
  const int64_t kind = c.random.below(10);
  if (kind < 4) return random_unary(c);
  if (kind < 7) return random_binary(c);
  return kind < 9 ? random_reduce(c) : random_with_numbers(c);
}

// ---- The other rows ----

namespace {

Made along_a_dim(const Choice& c) {
  const int64_t kind = c.random.below(8);
  const bool floats = kind < 4;
  const int a = c.value(floats ? dtypes::kFloats : dtypes::kReal, 1);
  if (a < 0) return {};
  const int dim = random_dim(c, c.at(a));
  const int64_t size = size_at(c.at(a), dim);
  const bool down = c.one_in(2);
  const auto text = [&](std::string_view op) { return fmt::format("{}(%{}, dim {})", op, a, dim); };
  switch (kind) {
    case 0:
      return made("softmax", text("softmax"), [=](auto v) { return softmax(v[z(a)], dim); });
    case 1:
      return made("log_softmax", text("log_softmax"),
                  [=](auto v) { return log_softmax(v[z(a)], dim); });
    case 2:
      if (c.at(a).elems() == 0) return {};
      return made("logsumexp", text("logsumexp"), [=](auto v) {
        const int dims[] = {dim};
        return logsumexp(v[z(a)], dims);
      });
    case 3:
      return made("var", text("var"), [=](auto v) {
        const int dims[] = {dim};
        return var(v[z(a)], dims, down);
      });
    case 4:
      return made("cumsum", text("cumsum"), [=](auto v) { return cumsum(v[z(a)], dim); });
    case 5:
      return made("sort", text(down ? "sort downwards" : "sort"),
                  [=](auto v) { return sort(v[z(a)], dim, down).values; });
    case 6:
      return made("argsort", text(down ? "argsort downwards" : "argsort"),
                  [=](auto v) { return argsort(v[z(a)], dim, down); });
    default:
      const int64_t k = c.random.below(size + 1);
      return made("topk", text(fmt::format("topk {}", k)),
                  [=](auto v) { return topk(v[z(a)], k, dim).values; });
  }
}

Made by_ids(const Choice& c) {
  const int64_t kind = c.random.below(6);
  const int a = c.value(dtypes::kReal, 1), from = c.value();
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  const int dim = random_dim(c, x);
  const int64_t size = size_at(x, dim);
  if (x.elems() == 0 || size > 250) return {};
  const DType id_type = c.of(std::vector<DType>{DType::u8, DType::u32, DType::i32, DType::i64});
  const std::string ids = fmt::format("{} ids by %{}", name(id_type), from);
  if (kind < 2) {  // ids with the shape of x, computed from its values
    const std::string own = fmt::format("{} ids by itself", name(id_type));
    if (kind == 0) {
      return made("gather", fmt::format("gather(%{}, {}, dim {})", a, own, dim),
                  [=](auto v) { return gather(v[z(a)], ids_below(v[z(a)], size, id_type), dim); });
    }
    const bool add = c.one_in(2);
    const std::string op = add ? "scatter_add" : "scatter";
    return made(op, fmt::format("{}(%{}, {}, cos of it, dim {})", op, a, own, dim), [=](auto v) {
      const Tensor& t = v[z(a)];
      const Tensor source = cos(t.to(DType::f32)).to(t.dtype()), i = ids_below(t, size, id_type);
      return add ? scatter_add(t, i, source, dim) : scatter(t, i, source, dim);
    });
  }
  const Tensor& chooser = c.at(from);
  const int64_t count = chooser.elems();
  if (count > 40 || x.elems() / size * count > kMostElems) return {};
  if (kind == 2 || kind == 3) {
    return made("index_select", fmt::format("index_select(%{}, {}, dim {})", a, ids, dim),
                [=](auto v) {
                  return index_select(v[z(a)], ids_below(v[z(from)].flatten(), size, id_type), dim);
                });
  }
  if (kind == 4) {
    return made("index_add", fmt::format("index_add(%{}, {}, its slices, dim {})", a, ids, dim),
                [=](auto v) {
                  const Tensor i = ids_below(v[z(from)].flatten(), size, id_type);
                  return index_add(v[z(a)], i, index_select(v[z(a)], i, dim), dim);
                });
  }
  if (chooser.rank() >= 8) return {};
  const DType dtype = x.dtype();
  return made("one_hot", fmt::format("one_hot({} below 7, {})", ids, name(dtype)),
              [=](auto v) { return one_hot(ids_below(v[z(from)], 7, id_type), 7, dtype); });
}

Made moved(const Choice& c) {
  const int a = c.value();
  const Tensor& x = c.at(a);
  const auto to = static_cast<DType>(c.random.below(kRealDTypeCount));
  switch (c.random.below(7)) {
    case 0:
    case 1:
      return made("cast", fmt::format("cast(%{}, {})", a, name(to)),
                  [=](auto v) { return cast(v[z(a)], to); });
    case 2: {
      if (x.rank() == 0 || 2 * x.elems() > kMostElems) return {};
      const int dim = random_dim(c, x);
      return made("copy", fmt::format("cat(%{} twice, the second backwards, dim {})", a, dim),
                  [=](auto v) {
                    const Tensor both[] = {v[z(a)], flip(v[z(a)], dim)};
                    return cat(both, dim);
                  });
    }
    case 3: {  // overwrites part of a copy
      if (x.rank() == 0 || x.size(0) < 2) return {};
      return made("copy", fmt::format("slice_set(%{}, its first slice, 0, 1)", a), [=](auto v) {
        Tensor y = v[z(a)].clone();
        slice_set(y, v[z(a)].narrow(0, 0, 1), 0, 1);
        return y;
      });
    }
    case 4: {
      const Partner b = partner_of(c, a);
      const std::string text = fmt::format("where(%{} > 0, it, %{})", a, b.place);
      return made("where", text, [=](auto v) {
        const Tensor& t = v[z(a)];
        return where(gt(t, Tensor::zeros({}, t.dtype(), t.device())), t, b.of(v));
      });
    }
    case 5: {
      const Shape shape = x.shape();
      const DType dtype = is_float(x.dtype()) ? x.dtype() : DType::f32;
      const bool bell = c.one_in(2);
      return made(bell ? "normal" : "uniform",
                  fmt::format("{}({}, {})", bell ? "normal" : "uniform", shape.str(), name(dtype)),
                  [=](auto v) {
                    const Device device = v[0].device();
                    return bell ? normal(shape, 0.5, 2, dtype, device)
                                : uniform(shape, -1, 3, dtype, device);
                  });
    }
    default: {
      const int64_t count = x.elems();
      const DType dtype = x.dtype();
      return made("iota", fmt::format("arange(3, {}, 2, {})", count, name(dtype)),
                  [=](auto v) { return Tensor::arange(3, count, 2, dtype, v[0].device()); });
    }
  }
}

Made norms(const Choice& c) {
  const int a = c.value(dtypes::kFloats, 1);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  const int64_t n = x.size(-1);
  const Shape weights{n};
  const auto ramp = [=](const Tensor& t) {
    return affine(Tensor::arange(0, n, 1, t.dtype(), t.device()), 1.0 / 64, 0.5);
  };
  switch (c.random.below(5)) {
    case 0:
      return made("rms_norm", fmt::format("rms_norm(%{}, a ramp)", a),
                  [=](auto v) { return rms_norm(v[z(a)], ramp(v[z(a)]), 1e-5f); });
    case 1:
      return made("layer_norm", fmt::format("layer_norm(%{}, a ramp, a ramp)", a),
                  [=](auto v) { return layer_norm(v[z(a)], ramp(v[z(a)]), ramp(v[z(a)]), 1e-5f); });
    case 2: {
      if (x.rank() < 2 || x.size(1) == 0 || x.elems() == 0) return {};
      const int64_t groups = x.size(1) % 2 == 0 ? 2 : 1;
      return made("group_norm", fmt::format("group_norm(%{}, {})", a, groups),
                  [=](auto v) { return group_norm(v[z(a)], groups); });
    }
    case 3: {
      if (x.rank() < 2) return {};
      const int64_t t = x.size(-2), half = n / 2;
      const bool interleaved = c.one_in(2);
      const std::string op = interleaved ? "rope_interleaved" : "rope";
      return made(op, fmt::format("{}(%{}, ramps)", op, a), [=](auto v) {
        const Device device = v[z(a)].device();
        const Tensor angles =
            affine(Tensor::arange(0, t * half, 1, DType::f32, device), 0.1, 0).reshape({t, half});
        return interleaved ? rope_interleaved(v[z(a)], cos(angles), sin(angles))
                           : rope(v[z(a)], cos(angles), sin(angles));
      });
    }
    default: {
      if (n == 0) return {};
      return made("quantize", fmt::format("q8_0 of f32 %{} and back", a), [=](auto v) {
        const Tensor whole = v[z(a)].to(DType::f32).flatten();
        const int64_t blocks = whole.elems() / 32;
        // Blocks can't represent infinities and NaN.
        const Tensor rows = whole.narrow(0, 0, blocks * 32).reshape({blocks, 32});
        const Tensor finite = where(logical_or(isnan(rows), isinf(rows)),
                                    Tensor::zeros({}, DType::f32, rows.device()), rows);
        return dequantize(quantize(clamp(finite, -1e4, 1e4), DType::q8_0), DType::f32);
      });
    }
  }
}

}  // namespace

Made random_other(const Choice& c) {
  switch (c.random.below(7)) {
    case 0:
      return along_a_dim(c);
    case 1:
      return by_ids(c);
    case 2:
    case 3:
      return moved(c);
    case 4:
      return norms(c);
    default:
      return random_product(c);
  }
}

}  // namespace wick::parity
