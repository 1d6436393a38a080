// Operands with random layouts, and comparison of results.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/soak/soak.h"
#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/memory.h"

namespace wick::soak {
namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

/// Sizes at which kernels change (widths of vectors, warps, tiles and chunks), and their
/// neighbours.
constexpr int64_t kEdges[] = {2,    3,    4,    5,    7,    8,    9,     12,   15,   16,   17,
                              24,   31,   32,   33,   48,   63,   64,    65,   96,   100,  127,
                              128,  129,  192,  255,  256,  257,  300,   384,  511,  512,  513,
                              640,  768,  777,  1000, 1023, 1024, 1025,  1536, 2047, 2048, 2049,
                              4095, 4096, 4097, 8191, 8192, 8193, 16384, 20000};

bool is_whole(DType dtype) { return is_integer(dtype) || dtype == DType::boolean; }

int width_of(DType dtype) { return 8 * static_cast<int>(info(dtype).block_bytes); }

/// Returns the bits of a number that the dtype represents.
uint64_t bits_of(DType dtype, Real value) {
  if (!is_whole(dtype)) return parity::encode(dtype, value);
  const auto bits = static_cast<uint64_t>(static_cast<Int>(value));
  return width_of(dtype) == 64 ? bits : bits & ((uint64_t{1} << width_of(dtype)) - 1);
}

Real value_of(DType dtype, uint64_t bits) {
  return is_whole(dtype) ? static_cast<Real>(parity::decode_int(dtype, bits))
                         : parity::decode(dtype, bits);
}

uint64_t ordinary_bits(DType dtype, Random& random) {
  if (dtype == DType::boolean) return random.next() >> 63;
  if (!is_float(dtype)) {
    const auto low = info(dtype).kind == DTypeKind::unsigned_integer ? 0 : -9;
    return bits_of(dtype, static_cast<Real>(low + random.below(19)));
  }
  return parity::encode(dtype, static_cast<Real>(random.normal()) * (random.below(8) == 0 ? 8 : 1));
}

uint64_t special_bits(DType dtype, Random& random) {
  if (dtype == DType::boolean) return random.next() >> 63;
  if (!is_float(dtype)) {
    const uint64_t any = random.next();
    const uint64_t edges[] = {0,
                              1,
                              ~uint64_t{0},
                              uint64_t{1} << (width_of(dtype) - 1),
                              (uint64_t{1} << (width_of(dtype) - 1)) - 1,
                              any};
    return bits_of(dtype, value_of(dtype, edges[random.below(6)]));
  }
  const auto f = parity::format_of(dtype);
  switch (random.below(24)) {
    case 0:
      return parity::encode(dtype, f.has_infinity ? kInfinity : f.max);
    case 1:
      return parity::encode(dtype, f.has_infinity ? -kInfinity : -f.max);
    case 2:
      return parity::encode(dtype, std::numeric_limits<Real>::quiet_NaN());
    case 3:
      return parity::encode(dtype, 0.0L);
    case 4:
      return parity::encode(dtype, -0.0L);
    case 5:
      return parity::encode(dtype, std::ldexp(1.0L, f.min_exponent - 1));
    case 6:
      return parity::encode(dtype, f.max);
    case 7:
      return parity::encode(dtype, static_cast<Real>(random.normal()) * 100);
    default:
      return ordinary_bits(dtype, random);
  }
}

uint64_t positive_bits(DType dtype, Random& random) {
  if (!is_float(dtype))
    return bits_of(dtype, static_cast<Real>(1 + random.below(dtype == DType::boolean ? 1 : 4)));
  return parity::encode(dtype, std::exp2(static_cast<Real>(random.uniform()) * 4 - 2));
}

std::string layout_text(DType dtype, const Layout& layout) {
  std::vector<int64_t> strides;
  for (int d = 0; d < layout.rank(); ++d) strides.push_back(layout.stride(d));
  return fmt::format("{}{}/[{}]+{}", name(dtype), layout.shape().str(), fmt::join(strides, ","),
                     layout.offset());
}

}  // namespace

int64_t Array::at(std::initializer_list<int64_t> index) const {
  int64_t position = 0;
  int d = 0;
  for (const int64_t i : index) position = position * shape[d++] + i;
  return position;
}

DType Case::dtype(DTypeSet set) {
  std::vector<DType> list;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto one = static_cast<DType>(d);
    if (set.contains(one) && !is_block(one)) list.push_back(one);
  }
  return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
}

int64_t Case::size(int64_t most) {
  if (most <= 1) return 1;
  if (one_in(2)) return between(1, std::min<int64_t>(most, 12));
  const int64_t count = std::upper_bound(std::begin(kEdges), std::end(kEdges), most) - kEdges;
  return count == 0 ? most : kEdges[below(count)];
}

Shape Case::shape(int least_rank, int most_rank, bool may_be_empty) {
  const int rank = static_cast<int>(
      one_in(3) ? between(least_rank, most_rank)
                : between(least_rank, std::min(most_rank, std::max(least_rank, 3))));
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  int64_t left = most_elems;
  for (int i = 0; i < rank; ++i) {
    // Any dim may be the long one.
    auto& s = sizes[static_cast<size_t>(below(rank))];
    const int64_t grown = size(left);
    if (s == 1) s = grown, left /= grown;
  }
  if (may_be_empty && rank > 0 && one_in(20)) sizes[static_cast<size_t>(below(rank))] = 0;
  return Shape(sizes);
}

Shape Case::broadcasting(const Shape& shape) {
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  if (one_in(2)) return shape;
  for (int64_t& s : sizes) {
    if (one_in(3)) s = 1;
  }
  const auto drop = sizes.empty() ? 0 : below(static_cast<int64_t>(sizes.size()) + 1);
  if (one_in(2)) sizes.erase(sizes.begin(), sizes.begin() + drop);
  return Shape(sizes);
}

Case::Placed Case::place(const Shape& shape) {
  const int rank = shape.rank();
  Layout::Strides strides{};
  std::vector<int> order;
  for (int d = rank - 1; d >= 0; --d) order.push_back(d);
  const int64_t kind = below(8);  // half of the layouts are dense in some order
  if (kind >= 2) {
    for (int i = rank - 1; i > 0; --i) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(below(i + 1))]);
    }
  }
  int64_t reach = 1;
  for (const int d : order) {
    int64_t& stride = strides[static_cast<size_t>(d)];
    stride = reach;
    if (kind >= 4 && one_in(3)) stride *= between(2, 3);         // stepped
    if (kind >= 5 && one_in(3)) stride = 0;                      // broadcast
    if (kind == 6) stride = between(-3, 3);                      // overlapping
    if (kind == 7 && one_in(2)) stride = reach + between(0, 9);  // padded rows
    if (kind >= 3 && one_in(2)) stride = -stride;                // reversed
    if (shape[d] > 1) reach = std::max(reach, std::abs(stride) * shape[d]);
    if (shape[d] <= 1 && one_in(2)) stride = between(-1000, 1000);  // meaningless
  }
  int64_t first = 0, last = 0;
  for (int d = 0; d < rank && shape.elems() > 0; ++d) {
    const int64_t end = strides[static_cast<size_t>(d)] * (shape[d] - 1);
    (end < 0 ? first : last) += end;
  }
  const int64_t offset = -first + pick<int64_t>({0, 0, 1, 2, 3, 4, 8, 16});
  return {Layout(shape, strides, offset), offset + last + 1 + pick<int64_t>({0, 0, 1, 5})};
}

Operand Case::placed(DType dtype, const Shape& shape,
                     const std::function<uint64_t(int64_t)>& bits) {
  const Placed where = place(shape);
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  // Bytes that aren't elements hold NaN or -1, which reveals kernels that read them.
  std::vector<std::byte> storage(static_cast<size_t>(where.storage_elems) * bytes, std::byte{0xff});
  Array a(dtype, shape);
  parity::for_each_element(where.layout, [&](int64_t i, int64_t at) {
    std::byte* const element = storage.data() + static_cast<size_t>(at) * bytes;
    const uint64_t b = bits(i);
    std::memcpy(element, &b, bytes);
  });
  // Elements that share memory hold the value that was written last.
  parity::for_each_element(where.layout, [&](int64_t i, int64_t at) {
    a[i] =
        value_of(dtype, parity::load_bits(dtype, storage.data() + static_cast<size_t>(at) * bytes));
  });
  note(layout_text(dtype, where.layout));
  if (stage != nullptr) return {stage->operand(dtype, where.layout, storage), a};
  const auto memory = Storage::allocate(device, storage.size());
  backend(device).upload(memory->data(), storage.data(), storage.size());
  const Tensor x(memory, dtype, where.layout);
  kept_.push_back({x, std::move(storage)});
  return {x, a};
}

Operand Case::operand(DType dtype, const Shape& shape, Values values) {
  return placed(dtype, shape, [&](int64_t) {
    return values == Values::ordinary  ? ordinary_bits(dtype, this->values())
           : values == Values::special ? special_bits(dtype, this->values())
                                       : positive_bits(dtype, this->values());
  });
}

Operand Case::operand(const Array& elements) {
  // These elements are distinct, so the layout must not overlap.
  for (;;) {
    const std::string before = what;
    Operand made = placed(elements.dtype, elements.shape,
                          [&](int64_t i) { return bits_of(elements.dtype, elements[i]); });
    bool same = true;
    for (int64_t i = 0; i < elements.elems() && same; ++i) {
      same = made.a[i] == elements[i] || (std::isnan(made.a[i]) && std::isnan(elements[i]));
    }
    if (same) return made;
    what = before;
    kept_.pop_back();
  }
}

Operand Case::ids(DType dtype, const Shape& shape, int64_t limit, bool padding) {
  const bool pads = padding && info(dtype).kind == DTypeKind::unsigned_integer;
  const int64_t most = dtype == DType::u8 ? std::min<int64_t>(limit, 255) : limit;
  return placed(dtype, shape, [&](int64_t) {
    if (pads && values().below(8) == 0) return ~uint64_t{0};
    return static_cast<uint64_t>(values().below(std::max<int64_t>(most, 1)));
  });
}

void Case::check_operands() const {
  for (const Kept& k : kept_) {
    std::vector<std::byte> now(k.bytes.size());
    backend(device).download(now.data(), k.x.storage()->data(), now.size());
    if (now != k.bytes) fail("an operand has changed: " + k.x.str());
  }
}

void Case::expect(const Tensor& got, const Array& exact, const Bound& bound) {
  if (got.dtype() != exact.dtype || !(got.shape() == exact.shape)) {
    fail(fmt::format("the result is {}, expected {}{}", got.str(), name(exact.dtype),
                     exact.shape.str()));
  }
  if (!result(got)) return;
  Array mine = read(got.detach());
  const DType dtype = exact.dtype;
  if (plant == 1 && mine.elems() > 0) {
    const int64_t at = below(mine.elems());
    const Real most = is_float(dtype) ? Real{parity::format_of(dtype).max} : INFINITY;
    const Real e = std::isnan(exact[at]) ? 0 : std::clamp(exact[at], -most, most);
    Real step = bound.slack.empty() ? 0 : bound.slack[static_cast<size_t>(at)];
    if (is_float(dtype)) step += bound.ulps * parity::ulp(dtype, e);
    // Beyond the bound, and towards 0, because the comparison limits floats to their range.
    mine[at] = e - std::copysign(std::max(1000 + 2 * step, std::fabs(e)), e);
    plant = 2;
  }
  for (int64_t i = 0; i < exact.elems(); ++i) {
    const Real a = mine[i], e = exact[i];
    const Real slack = bound.slack.empty() ? 0 : bound.slack[static_cast<size_t>(i)];
    bool right = a == e || (std::isnan(a) && std::isnan(e));
    if (bound.ulps == 0 && slack == 0 && e == 0)
      right = right && std::signbit(a) == std::signbit(e);
    if (!right && is_float(dtype) && !std::isnan(a) && !std::isnan(e) && bound.ulps + slack > 0) {
      // Beyond the largest number, infinity and the largest number are adjacent.
      const auto f = parity::format_of(dtype);
      const Real beyond = f.has_infinity ? f.max + parity::ulp(dtype, f.max) : f.max;
      const Real near_a = std::clamp(a, -beyond, beyond), near_e = std::clamp(e, -beyond, beyond);
      right = std::fabs(near_a - near_e) <= bound.ulps * parity::ulp(dtype, near_e) + slack;
    }
    if (right) continue;
    fail(fmt::format("element {} of {} is {}, expected {}{}", i, got.str(), static_cast<double>(a),
                     static_cast<double>(e),
                     bound.ulps + slack == 0
                         ? ""
                         : fmt::format(" within {} ulp and {}", static_cast<double>(bound.ulps),
                                       static_cast<double>(slack))));
  }
}

Array Case::elements(const Tensor& x) {
  return stage == nullptr || stage->computes() ? read(x.detach()) : Array(x.dtype(), x.shape());
}

void Case::expect_error(std::string_view op, const std::function<void()>& call) {
  try {
    call();
    synchronize(device);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (!text.starts_with(std::string(op) + ":")) {
      fail(fmt::format("the error is '{}', expected one of {}", text, op));
    }
    return;
  }
  fail(fmt::format("no error, expected one of {}", op));
}

Real wrap(DType dtype, Int value) {
  if (dtype == DType::boolean) return value != 0 ? 1 : 0;
  const auto bits = static_cast<uint64_t>(static_cast<unsigned __int128>(value));
  return static_cast<Real>(parity::decode_int(dtype, bits));
}

Real rounded(DType dtype, Real value) {
  return is_float(dtype) ? parity::round_to(dtype, value) : value;
}

Array read(const Tensor& x) {
  Array a(x.dtype(), x.shape());
  const Tensor host = x.to(Device::cpu());
  const ConstView view = host.view();
  const auto* const data = static_cast<const std::byte*>(view.data);
  parity::for_each_element(view.layout, [&](int64_t i, int64_t at) {
    const uint64_t bits = parity::load_bits(x.dtype(), data + at * info(x.dtype()).block_bytes);
    a[i] = value_of(x.dtype(), bits);
  });
  return a;
}

void for_each_index(const Shape& shape,
                    const std::function<void(std::span<const int64_t>)>& visit) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int64_t i = 0; i < shape.elems(); ++i) {
    visit(index);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}

int64_t broadcast_at(const Shape& shape, std::span<const int64_t> index) {
  int64_t position = 0;
  const int more = static_cast<int>(index.size()) - shape.rank();
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t i = shape[d] == 1 ? 0 : index[static_cast<size_t>(d + more)];
    position = position * shape[d] + i;
  }
  return position;
}

}  // namespace wick::soak
