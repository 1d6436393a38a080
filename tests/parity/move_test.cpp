// fill, iota, copy, cast and index_select: every bit of a result is specified.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/backend/block_reference.h"
#include "tests/parity/grid.h"
#include "wick/backend/cpu/loops.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}

/// The cast of parity.md: floats truncate and saturate, NaN gives 0; integers wrap; conversions to
/// a float round once.
uint64_t cast_bits(DType to, DType from, uint64_t bits) {
  if (is_float(to)) return encode(to, decode(from, bits));
  if (!is_float(from)) return cut(to, static_cast<uint64_t>(decode_int(from, bits)));
  const long double x = std::trunc(decode(from, bits));
  if (std::isnan(x)) return 0;
  const bool is_signed = info(to).kind == DTypeKind::signed_integer;
  const int width = 8 * info(to).block_bytes;
  const long double end = std::ldexp(1.0L, is_signed ? width - 1 : width);
  const long double low = is_signed ? -end : 0.0L;
  if (x >= end) return cut(to, is_signed ? ~uint64_t{0} >> (65 - width) : ~uint64_t{0});
  return cut(to, static_cast<uint64_t>(static_cast<int64_t>(std::max(x, low))));
}

uint64_t scalar_bits(DType to, const Scalar& s) {
  return s.is_integer ? cast_bits(to, DType::i64, static_cast<uint64_t>(s.i))
                      : cast_bits(to, DType::f64, encode(DType::f64, s.f));
}

bool is_large(const Geometry& g) { return g.name.starts_with("large"); }

void check_fill(DType dtype) {
  const Scalar values[] = {0, 1, -1, 3.75, -1e10, int64_t{1} << 40, NAN, INFINITY, 65520.0, 1e-40};
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (const Scalar& value : values) {
      TestTensor out(dtype, g.place, g.shape, 0, true);
      const std::string what = fmt::format("fill.{}.{} with {}", name(dtype), g.name, value.f);
      run_everywhere(what, out, {}, [&](Backend& b, const View& o, auto) { b.fill(o, value); });
      const std::vector<uint64_t> expected(static_cast<size_t>(out.elems()),
                                           scalar_bits(dtype, value));
      expect_bits(what, out, expected);
      if (is_large(g) || failed()) break;
    }
  }
}

void check_iota(DType dtype) {
  const std::pair<Scalar, Scalar> sequences[] = {
      {0, 1}, {-5, 3}, {0.1, 0.7}, {int64_t{1} << 62, int64_t{1} << 61}, {100.0, -1e15}};
  const std::pair<Place, Shape> places[] = {
      {Place::contiguous, {1003}}, {Place::stepped, {517}},
      {Place::sliced, {0}},        {Place::transposed, {7, 90}},
      {Place::sliced, {}},         {Place::contiguous, {140000}},
      {Place::sliced, {3, 401}},   {Place::scattered, {2, 1, 3, 2, 1, 2, 3, 5}}};
  for (const auto& [kind, shape] : places) {
    if (!here(kind, shape)) continue;
    for (const auto& [start, step] : sequences) {
      TestTensor out(dtype, kind, shape, 0, true);
      const std::string what =
          fmt::format("iota.{}.{}{} from {}", name(dtype), name(kind), shape.str(), start.f);
      const Scalar a = start, d = step;
      run_everywhere(what, out, {}, [&](Backend& b, const View& o, auto) { b.iota(o, a, d); });
      std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
      for (size_t i = 0; i < expected.size(); ++i) {
        if (a.is_integer && d.is_integer) {
          const uint64_t value = static_cast<uint64_t>(a.i) + i * static_cast<uint64_t>(d.i);
          expected[i] = cast_bits(dtype, DType::i64, value);
        } else {
          const double step_by = static_cast<double>(i) * d.f;
          expected[i] = cast_bits(dtype, DType::f64, encode(DType::f64, a.f + step_by));
        }
      }
      expect_bits(what, out, expected);
      if (shape.elems() > 100000 || failed()) break;
    }
  }
}

void check_cast(DType to, DType from, bool copy) {
  Random random(static_cast<uint64_t>(to) * 16 + static_cast<uint64_t>(from));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (unsigned mask = 0; mask < 4; ++mask) {
      // Bit 0 places the output and bit 1 the input. Large shapes run once in each direction.
      if (g.place == Place::contiguous ? mask != 0 : mask == 0) continue;
      if ((g.place == Place::broadcast || g.place == Place::scalar) && (mask & 1u) != 0) continue;
      if (is_large(g) && mask == 3) continue;
      const Values values = is_large(g) ? Values::bits
                            : mask == 1 ? Values::normal
                                        : Values::special;
      TestTensor in(from, mask & 2 ? g.place : Place::contiguous, g.shape, 1);
      TestTensor out(to, mask & 1 ? g.place : Place::contiguous, g.shape, 0, true);
      in.fill(values, random);
      const std::string what = fmt::format("{}.{} from {}.{}.mask{}", copy ? "copy" : "cast",
                                           name(to), name(from), g.name, mask);
      const TestTensor* inputs[] = {&in};
      if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
            copy ? b.copy(o, views[0]) : b.cast(o, views[0]);
          })) {
        return;
      }
      std::vector<uint64_t> expected = in.bits();
      if (!copy) {
        for (uint64_t& bits : expected) bits = to == from ? bits : cast_bits(to, from, bits);
      }
      expect_bits(what, out, expected);
      if (copy && out.bits() != expected) ADD_FAILURE() << what << " changed a NaN's payload";
      if (failed()) return;
    }
  }
}

/// Returns the bits that a copy of a view must give, in row-major order.
std::vector<uint64_t> bits_of_view(const TestTensor& source, const Layout& view, DType dtype) {
  std::vector<uint64_t> bits;
  for_each_element(view, [&](int64_t, int64_t at) {
    bits.push_back(load_bits(dtype, source.storage().data() + at * info(dtype).block_bytes));
  });
  return bits;
}

/// Dense rows copied to or from strided elements, in forward or reverse order, at every alignment
/// of both sides.
void check_stepped_copies(DType dtype) {
  if (!here("stepped")) return;
  Random random(static_cast<uint64_t>(dtype) + 20);
  for (int64_t n : {4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 129, 1000}) {
    for (int64_t step : {-1, 1, 2, -3}) {
      for (int64_t skip = 0; skip < 3; ++skip) {
        const int64_t size = skip + (n - 1) * std::abs(step) + 1;
        TestTensor in(dtype, Place::contiguous, {3, size + 1}, 1);
        TestTensor out(dtype, n % 4 == 3 ? Place::sliced : Place::contiguous, {3, n}, 0, true);
        in.fill(Values::bits, random);
        const Layout rows = in.layout();
        const Layout view({3, n}, {rows.stride(0), step},
                          rows.offset() + (step < 0 ? size - 1 : skip));
        const TestTensor* const inputs[] = {&in};
        const std::string what = fmt::format("copy.{} of {} by {}", name(dtype), n, step);
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
              b.copy(o, {views[0].data, dtype, view});
            })) {
          return;
        }
        expect_bits(what, out, bits_of_view(in, view, dtype));
      }
    }
  }
}

/// Copies between separate planes and interleaved channels, in both directions.
void check_copies_of_planes(DType dtype) {
  if (!here("transposed")) return;
  Random random(static_cast<uint64_t>(dtype) + 40);
  for (int64_t count : {2, 3, 8, 21, 32}) {
    for (int64_t n : {64, 100, 1000, 2500}) {
      for (const bool join : {false, true}) {
        const Shape shape = join ? Shape{2, count, n} : Shape{2, n, count};
        TestTensor in(dtype, n == 100 ? Place::sliced : Place::contiguous, shape, 1);
        TestTensor out(dtype, n == 1000 ? Place::sliced : Place::contiguous,
                       {2, shape[2], shape[1]}, 0, true);
        in.fill(Values::bits, random);
        const Layout view = in.layout().transpose(1, 2);
        const std::string what = fmt::format("copy.{}.planes{}", name(dtype), view.shape().str());
        const TestTensor* const inputs[] = {&in};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
              b.copy(o, {views[0].data, dtype, view});
            })) {
          return;
        }
        expect_bits(what, out, bits_of_view(in, view, dtype));
        if (failed()) return;
      }
    }
  }
}

/// Transposes of every size around the block size, and of more than two dims.
void check_permuted_copies(DType dtype) {
  if (!here("transposed")) return;
  Random random(static_cast<uint64_t>(dtype));
  for (const Shape& shape : {Shape{1, 70}, Shape{3, 5}, Shape{16, 16}, Shape{15, 17}, Shape{33, 64},
                             Shape{64, 31}, Shape{65, 129}, Shape{200, 300}}) {
    for (int swap = 0; swap < 3; ++swap) {
      const Shape cube{2, shape[0], shape[1]};
      TestTensor source(dtype, swap == 2 ? Place::sliced : Place::contiguous, cube);
      source.fill(Values::bits, random);
      const Layout turned = source.layout().transpose(swap == 0 ? 0 : 1, swap == 1 ? 1 : 2);
      const Layout layout = swap == 1 ? source.layout().transpose(0, 2) : turned;
      TestTensor out(dtype, swap == 0 ? Place::sliced : Place::contiguous, layout.shape(), 0, true);
      const std::vector<uint64_t> expected = bits_of_view(source, layout, dtype);
      const std::string what = fmt::format("copy.{}.permuted{}", name(dtype), layout.shape().str());
      const TestTensor* inputs[] = {&source};
      run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
        b.copy(o, {views[0].data, dtype, layout});
      });
      expect_bits(what, out, expected);
      if (failed()) return;
    }
  }
}

// ---- index_select ----

uint64_t padding_id(DType ids) {
  return ids == DType::u8 ? 0xff : ids == DType::u32 ? 0xffffffff : 0;
}

void check_index_select(DType dtype) {
  Random random(static_cast<uint64_t>(dtype));
  const Shape shapes[] = {
      {50, 24}, {7, 6, 130}, {200}, {9, 3, 2, 4}, {31, 1}, {4, 0, 3}, {2, 1, 3, 2, 1, 2, 3, 5}};
  const Place kinds[] = {Place::contiguous, Place::transposed, Place::broadcast,
                         Place::sliced,     Place::stepped,    Place::scattered};
  for (DType id_type : {DType::u8, DType::u32, DType::i32, DType::i64}) {
    for (const Shape& shape : shapes) {
      for (int dim = 0; dim < shape.rank(); ++dim) {
        for (Place kind : kinds) {
          // One id type tests every layout; other id types differ only in how ids are read.
          if (id_type != DType::u32 && kind != Place::stepped) continue;
          if (shape.rank() == 8 && kind != Place::scattered) continue;
          if (!here(kind, shape)) continue;
          for (int64_t count : {int64_t{0}, int64_t{3}, int64_t{37}}) {
            TestTensor in(dtype, kind, shape, 1);
            TestTensor ids(id_type, kind, {count}, 2);
            TestTensor out(dtype, kind, shape.with(dim, count), 0, true);
            in.fill(Values::bits, random);
            const int64_t size = shape[dim];
            if (size == 0 && padding_id(id_type) == 0) continue;
            ids.fill_bits([&](int64_t i) {
              const bool pad = padding_id(id_type) != 0 && (i % 5 == 4 || size == 0);
              return pad ? padding_id(id_type) : static_cast<uint64_t>(random.below(size));
            });
            const std::string what =
                fmt::format("index_select.{}.{} ids {} x {} dim {} count {}", name(dtype),
                            name(kind), name(id_type), shape.str(), dim, count);
            const TestTensor* inputs[] = {&in, &ids};
            if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
                  b.index_select(o, views[0], views[1], dim);
                })) {
              return;
            }
            const std::vector<uint64_t> x = in.bits(), chosen = ids.bits();
            std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
            int64_t inner = 1;
            for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
            for (int64_t i = 0; i < out.elems(); ++i) {
              const uint64_t id = chosen[static_cast<size_t>(i / inner % count)];
              if (padding_id(id_type) != 0 && id == padding_id(id_type)) continue;
              const int64_t outer = i / inner / count;
              expected[static_cast<size_t>(i)] = x[static_cast<size_t>(
                  (outer * size + static_cast<int64_t>(id)) * inner + i % inner)];
            }
            expect_bits(what, out, expected);
            if (out.bits() != expected) ADD_FAILURE() << what << " changed a NaN's payload";
            if (failed()) return;
          }
        }
      }
    }
  }
}

void check_bad_ids() {
  TestTensor in(DType::f32, Place::contiguous, {50, 8}), out(DType::f32, Place::contiguous, {2, 8});
  auto message = [&](DType id_type, uint64_t bad) -> std::string {
    TestTensor ids(id_type, Place::contiguous, {2});
    ids.fill_bits([&](int64_t i) { return i == 1 ? cut(id_type, bad) : 0; });
    out.wipe();
    try {
      targets()[0].backend->index_select(out.view(), in.view(), ids.view(), 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.op(), "index_select");
      for (std::byte b : out.storage()) EXPECT_EQ(b, std::byte{0xa5}) << "written before checked";
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(DType::i32, 50).find("50"), std::string::npos);
  EXPECT_NE(message(DType::i64, ~uint64_t{0}).find("-1"), std::string::npos);
  EXPECT_NE(message(DType::u32, 51).find("51"), std::string::npos);
  EXPECT_NE(message(DType::u8, 254).find("254"), std::string::npos);
  EXPECT_NE(message(DType::i64, uint64_t{1} << 63).find("out of range"), std::string::npos);
  EXPECT_EQ(message(DType::u8, 255), "");
  EXPECT_EQ(message(DType::u32, 0xffffffff), "");
}

void check_block_rows(DType block_type, DType dtype) {
  Random random(static_cast<uint64_t>(block_type));
  for (Place kind : {Place::contiguous, Place::sliced, Place::stepped, Place::broadcast}) {
    if (!here(name(kind))) continue;
    const int64_t size = info(block_type).block_elems;
    for (int64_t k : {size, 3 * size, size == 32 ? 33 * size : 5 * size}) {
      for (Place out_kind : {Place::contiguous, Place::stepped, Place::transposed}) {
        TestTensor in(block_type, kind, {20, k}, 1);
        TestTensor ids(DType::u32, Place::stepped, {9}, 2);
        TestTensor out(dtype, out_kind, {9, k}, 0, true);
        in.fill(Values::normal, random);
        ids.fill_bits([&](int64_t i) {
          return i == 5 ? 0xffffffffu : static_cast<uint64_t>(random.below(20));
        });
        const std::string what = fmt::format("index_select.{} to {}.{}.{}", name(block_type),
                                             name(dtype), name(kind), k);
        const TestTensor* inputs[] = {&in, &ids};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
              b.index_select(o, views[0], views[1], 0);
            })) {
          return;
        }
        const std::vector<int64_t> chosen = ids.ints();
        std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
        for (int64_t i = 0; i < out.elems(); ++i) {
          const int64_t id = chosen[static_cast<size_t>(i / k)], j = i % k;
          if (id == 0xffffffff) continue;
          const int64_t at = in.layout().offset() + id * in.layout().stride(0) + j;
          const std::byte* block = in.storage().data() + at / size * info(block_type).block_bytes;
          // The block is dequantized to f32 first, as the format defines.
          const long double value = reference::block_value(
              block_type, reinterpret_cast<const uint8_t*>(block), static_cast<int>(j % size));
          expected[static_cast<size_t>(i)] = encode(dtype, value);
        }
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

/// Results larger than the caches use non-temporal stores.
void check_long_iota() {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    const int64_t bytes = info(dtype).block_bytes;
    const int64_t n = cpu::stream_threshold_bytes() / bytes + 1234;
    std::vector<char> memory(static_cast<size_t>((n + 3) * bytes));
    for (const Target& target : targets()) {
      if (target.backend->device().kind != DeviceKind::cpu) continue;
      std::fill(memory.begin(), memory.end(), char{0});
      const Layout at(Shape{n}, {1}, 3);  // starts inside a cache line
      const int64_t start = dtype == DType::i64 ? 5 : 0;
      target.backend->iota({memory.data(), dtype, at}, start, int64_t{1});
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; i += i < 5000 || i >= n - 5000 ? 1 : 97) {
        uint64_t bits = 0;
        std::memcpy(&bits, &memory[static_cast<size_t>((i + 3) * bytes)],
                    static_cast<size_t>(bytes));
        wrong += bits != cast_bits(dtype, DType::i64, static_cast<uint64_t>(start + i));
      }
      EXPECT_EQ(wrong, 0) << name(dtype) << " on " << target.name;
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    add_row("fill", name(dtype), [=] { check_fill(dtype); });
    add_row("iota", name(dtype), [=] { check_iota(dtype); });
    add_row("copy", name(dtype), [=] {
      check_cast(dtype, dtype, true);
      check_permuted_copies(dtype);
      check_stepped_copies(dtype);
      check_copies_of_planes(dtype);
    });
    add_row("cast", name(dtype), [=] {
      for (int to = 0; to < kRealDTypeCount; ++to) {
        check_cast(static_cast<DType>(to), dtype, false);
      }
    });
    add_row("index_select", name(dtype), [=] { check_index_select(dtype); });
  }
  for (const QuantInfo& quant : kQuants) {
    const DType block = quant.dtype;
    add_row("index_select", name(block), [=] {
      for (DType to : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
        check_block_rows(block, to);
      }
    });
  }
  add("index_select.bad_ids", check_bad_ids);
  add("iota.around_caches", check_long_iota);
  return true;
}();

}  // namespace
}  // namespace wick::parity
