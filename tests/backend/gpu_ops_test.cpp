// Movement and elementwise ops on the GPUs that WICK_TEST_DEVICES names: compares with the CPU's
// bits in layouts for which there are special kernels, and tests error messages for invalid data.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/test_devices.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/error.h"
#include "wick/base/quant.h"
#include "wick/math/half.h"

namespace wick::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Bytes on the host and on a device, and views of them.
class Buffer {
 public:
  Buffer(GpuBackend& backend, DType dtype, int64_t elems)
      : host(static_cast<size_t>(bytes_of(dtype, elems)), std::byte{0xcd}),
        backend_(backend),
        dtype_(dtype),
        device_(backend.alloc(host.size())) {
    send();
  }
  ~Buffer() { backend_.free(device_, host.size()); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <class T>
  void set(const std::vector<T>& values) {
    std::memcpy(host.data(), values.data(), std::min(host.size(), values.size() * sizeof(T)));
    send();
  }
  /// Fills floats with ordinary numbers, and other types with random bits.
  void randomise(unsigned seed) {
    std::mt19937 bits(seed);
    for (std::byte& b : host) b = static_cast<std::byte>(bits());
    const auto step = static_cast<size_t>(info(dtype_).block_bytes);
    // Clears the top bits of the exponent for small magnitudes.
    if (is_float(dtype_) && step > 1) {
      for (size_t i = step - 1; i < host.size(); i += step) host[i] &= std::byte{0xbf};
    }
    send();
  }
  void send() { backend_.upload(device_, host.data(), host.size()); }
  std::vector<std::byte> fetch() const {
    std::vector<std::byte> bytes(host.size());
    backend_.download(bytes.data(), device_, bytes.size());
    return bytes;
  }
  template <class T>
  std::vector<T> get() const {
    const std::vector<std::byte> bytes = fetch();
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  DType dtype() const { return dtype_; }
  View there(const Layout& layout) const { return {device_, dtype_, layout}; }
  View here(const Layout& layout) { return {host.data(), dtype_, layout}; }

  std::vector<std::byte> host;

 private:
  GpuBackend& backend_;
  DType dtype_;
  void* device_;
};

bool is_nan(DType dtype, const std::byte* at) {
  const auto as = [&]<class T>(T x) {
    std::memcpy(&x, at, sizeof x);
    return x;
  };
  switch (dtype) {
    case DType::f64:
      return std::isnan(as(double()));
    case DType::f32:
      return std::isnan(as(float()));
    case DType::f16:
      return std::isnan(math::to_f32(as(math::f16())));
    case DType::bf16:
      return std::isnan(math::to_f32(as(math::bf16())));
    case DType::f8e4m3:
      return std::isnan(math::to_f32(as(math::f8e4m3())));
    default:
      return false;
  }
}

class GpuOps : public testing::Test {
 protected:
  void SetUp() override {
    if (test::devices().empty()) GTEST_SKIP() << "WICK_TEST_DEVICES names none";
  }
  template <class Body>
  void on_each(Body body) {
    for (const Device& device : test::devices()) {
      SCOPED_TRACE(device.str());
      body(backend_of(device));
    }
  }
  /// Makes the same call on the device and on the CPU, and expects all of the output's storage to
  /// be equal.
  static void expect_same(GpuBackend& gpu, Buffer& out, const std::string& what,
                          const std::function<void(Backend&, bool device)>& call) {
    call(gpu, true);
    const std::vector<std::byte> got = out.fetch();
    call(cpu_, false);
    const auto elem = static_cast<size_t>(info(out.dtype()).block_bytes);
    for (size_t i = 0; i < got.size(); i += elem) {
      if (std::memcmp(&got[i], &out.host[i], elem) == 0) continue;
      // The sign and payload of NaN are unspecified.
      ASSERT_TRUE(is_nan(out.dtype(), &got[i]) && is_nan(out.dtype(), &out.host[i]))
          << what << ": byte " << i;
    }
  }
  static inline cpu::CpuBackend cpu_{cpu::available_isas().back()};
};

/// Returns the message of the error that `body` throws.
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

// ---- Layouts ----

/// Operands of binary ops, given by the strides of their two dims.
TEST_F(GpuOps, RowsAndColumnsAndTransposedOperands) {
  struct Case {
    int64_t m, n;
    std::array<int64_t, 2> a, b;
    int64_t start;
  };
  const Case cases[] = {
      {40, 48, {48, 1}, {0, 1}, 0},      // a broadcast row
      {40, 48, {48, 1}, {1, 0}, 0},      // a broadcast column
      {40, 48, {0, 1}, {1, 0}, 0},       // a row and a column
      {33, 80, {80, 1}, {0, 0}, 0},      // a scalar
      {33, 80, {0, 0}, {160, 1}, 0},     // every other row
      {17, 96, {112, 1}, {128, 1}, 16},  // aligned slices
      {17, 96, {112, 1}, {128, 1}, 3},   // unaligned slices
      {64, 96, {1, 64}, {96, 1}, 0},     // transposed
      {37, 131, {131, 1}, {1, 37}, 0},   // transposed, not a multiple of a tile
      {3, 1400, {1, 3}, {1400, 1}, 0},   // three channels
      {5, 7, {-7, -1}, {7, 1}, 34},      // reversed
  };
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype :
         {DType::f32, DType::bf16, DType::f16, DType::f64, DType::f8e4m3, DType::u8, DType::i64}) {
      Buffer a(gpu, dtype, 40'000), b(gpu, dtype, 40'000), out(gpu, dtype, 40'000);
      a.randomise(1);
      b.randomise(2);
      for (const Case& c : cases) {
        const Shape shape{c.m, c.n};
        const Layout la(shape, {c.a[0], c.a[1]}, c.a[1] < 0 ? c.m * c.n - 1 : c.start);
        const Layout lb(shape, {c.b[0], c.b[1]}, c.start);
        const Layout lo(shape, {c.n + 16, 1}, c.start);
        const std::string what = fmt::format("{} [{}, {}] by [{}, {}] and [{}, {}]", name(dtype),
                                             c.m, c.n, c.a[0], c.a[1], c.b[0], c.b[1]);
        expect_same(gpu, out, "add " + what, [&](Backend& backend, bool there) {
          if (there) {
            backend.binary(Op::add, out.there(lo), a.there(la), b.there(lb));
          } else {
            backend.binary(Op::add, out.here(lo), a.here(la), b.here(lb));
          }
        });
        expect_same(gpu, out, "neg " + what, [&](Backend& backend, bool there) {
          there ? backend.unary(Op::neg, out.there(lo), b.there(lb))
                : backend.unary(Op::neg, out.here(lo), b.here(lb));
        });
        expect_same(gpu, out, "copy " + what, [&](Backend& backend, bool there) {
          there ? backend.copy(out.there(lo), a.there(la)) : backend.copy(out.here(lo), a.here(la));
        });
        if (HasFatalFailure()) return;
      }
    }
  });
}

/// A matrix with so many rows that a thread takes several of them, and a row of as many columns.
TEST_F(GpuOps, ARowWithEveryRowOfAMatrix) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::u8, DType::i64}) {
      const int64_t bytes = info(dtype).block_bytes, rows = 601, columns = 404 * 16 / bytes;
      const int64_t step = columns + 16 / bytes;
      Buffer matrix(gpu, dtype, rows * columns), row(gpu, dtype, columns);
      Buffer out(gpu, dtype, rows * step);
      matrix.randomise(31), row.randomise(32);
      const Shape shape{rows, columns};
      const Layout of_matrix = Layout::contiguous(shape), of_row(shape, {0, 1}, 0);
      const Layout to(shape, {step, 1}, 0);
      for (const Op op : {Op::add, Op::sub, Op::mul}) {
        for (const bool row_first : {false, true}) {
          const auto what =
              fmt::format("{} {}{}", name(op), name(dtype), row_first ? ", the row first" : "");
          expect_same(gpu, out, what, [&](Backend& backend, bool there) {
            const View a = there ? matrix.there(of_matrix) : matrix.here(of_matrix);
            const View b = there ? row.there(of_row) : row.here(of_row);
            backend.binary(op, there ? out.there(to) : out.here(to), row_first ? b : a,
                           row_first ? a : b);
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

/// Slices whose ids a whole wave shares, and slices that are shorter or end in a wave.
TEST_F(GpuOps, SlicesByIdsOfEveryType) {
  on_each([&](GpuBackend& gpu) {
    const int64_t slices = 29, most = 2100;
    Buffer in(gpu, DType::f32, slices * most), out(gpu, DType::f32, 40 * most);
    in.randomise(33);
    for (const DType dtype : {DType::u8, DType::u32, DType::i32, DType::i64}) {
      Buffer ids(gpu, dtype, 40);
      std::vector<std::byte> bytes(ids.host.size());
      const auto step = static_cast<size_t>(info(dtype).block_bytes);
      for (size_t i = 0; i < 40; ++i) bytes[i * step] = static_cast<std::byte>(i * 17 % 29);
      ids.set(bytes);
      for (const int64_t n : {3, 40, 300, 1024, 2100}) {
        const Layout from = Layout::contiguous({slices, n}), to = Layout::contiguous({40, n});
        const Layout which = Layout::contiguous({40});
        expect_same(gpu, out, fmt::format("rows of {} by {}", n, name(dtype)),
                    [&](Backend& backend, bool there) {
                      backend.index_select(there ? out.there(to) : out.here(to),
                                           there ? in.there(from) : in.here(from),
                                           there ? ids.there(which) : ids.here(which), 0);
                    });
        if (HasFatalFailure()) return;
      }
    }
  });
}

/// Elements by ids of a wave's vectors, in a reversed input.
TEST_F(GpuOps, ElementsByIds) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
      const int64_t rows = 7, from = 90, to = 412;
      Buffer in(gpu, dtype, rows * from), out(gpu, dtype, rows * to),
          ids(gpu, DType::u32, rows * to);
      in.randomise(34);
      std::vector<uint32_t> which(static_cast<size_t>(rows * to));
      for (size_t i = 0; i < which.size(); ++i) {
        which[i] = i % 13 == 5 ? UINT32_MAX : static_cast<uint32_t>(i * 2654435761u >> 7) % 90;
      }
      ids.set(which);
      const Layout y = Layout::contiguous({rows, to});
      const Layout reversed({rows, from}, {-from, -1}, rows * from - 1);
      for (const Layout& x : {Layout::contiguous({rows, from}), reversed}) {
        expect_same(
            gpu, out, fmt::format("gather {}", name(dtype)), [&](Backend& backend, bool there) {
              backend.gather(there ? out.there(y) : out.here(y), there ? in.there(x) : in.here(x),
                             there ? ids.there(y) : ids.here(y), 1);
            });
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_F(GpuOps, CopiesOfEveryUnit) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
      Buffer in(gpu, dtype, 60'000), out(gpu, dtype, 60'000);
      in.randomise(3);
      for (const int64_t inner : {1, 2, 3, 4, 8, 16, 20}) {
        for (const int64_t start : {0, 1, 2, 4, 8, 16}) {
          for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 9}, {64, 40}, {30, 70}}) {
            // [m, n, inner] with swapped outer dims: runs of `inner` elements are contiguous.
            const Shape shape{m, n, inner};
            const Layout from(shape, {inner, m * inner, 1}, start);
            const Layout to(shape, {n * inner, inner, 1}, start);
            const auto what =
                fmt::format("{} [{}, {}, {}] from {}", name(dtype), m, n, inner, start);
            expect_same(gpu, out, what, [&](Backend& backend, bool there) {
              there ? backend.copy(out.there(to), in.there(from))
                    : backend.copy(out.here(to), in.here(from));
            });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TEST_F(GpuOps, FillsFromAnywhere) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
      Buffer out(gpu, dtype, 3000);
      for (const int64_t start : {0, 1, 3, 8}) {
        for (const int64_t n : {1, 15, 64, 257, 2900}) {
          const Layout layout({n}, {1}, start);
          expect_same(gpu, out, fmt::format("{} {} from {}", name(dtype), n, start),
                      [&](Backend& backend, bool there) {
                        backend.fill(there ? out.there(layout) : out.here(layout), start + n);
                      });
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_F(GpuOps, RotatesInPacks) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::f8e4m3}) {
      const int64_t h = 3, t = 5, d = 80;
      Buffer in(gpu, dtype, h * t * d + 64), out(gpu, dtype, h * t * d + 64);
      Buffer cos(gpu, DType::f32, t * d), sin(gpu, DType::f32, t * d);
      in.randomise(4), cos.randomise(5), sin.randomise(6);
      for (const int64_t half : {16, 32, 40}) {
        for (const int64_t start : {0, 16, 1}) {
          // The heads of a position are adjacent, as projections produce them.
          const Layout x({h, t, d}, {d, h * d, 1}, start);
          const Layout table = Layout::contiguous({t, half});
          for (const bool interleaved : {false, true}) {
            expect_same(gpu, out, fmt::format("{} half {} from {}", name(dtype), half, start),
                        [&](Backend& backend, bool there) {
                          if (there) {
                            backend.rope(out.there(x), in.there(x), cos.there(table),
                                         sin.there(table), interleaved);
                          } else {
                            backend.rope(out.here(x), in.here(x), cos.here(table), sin.here(table),
                                         interleaved);
                          }
                        });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// ---- Blocks ----

TEST_F(GpuOps, BlocksToFloatsAndBack) {
  const int64_t rows = 6, k = 512;
  const Layout dense = Layout::contiguous({rows, k});
  const Layout apart({rows, k}, {k + 256, 1}, 256);
  const Layout strided({rows, k}, {-1, rows}, rows - 1);
  on_each([&](GpuBackend& gpu) {
    for (const QuantInfo& quant : kQuants) {
      const DType type = quant.dtype;
      const bool writable = dtypes::kWrittenBlocks.contains(type);
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        Buffer floats(gpu, dtype, 10'000), blocks(gpu, type, 10'240);
        for (const Layout& f : {dense, apart, strided}) {
          for (const Layout& b : {dense, apart}) {
            const auto what = fmt::format("{} {}", name(type), name(dtype));
            if (writable) {
              floats.randomise(7);
              expect_same(gpu, blocks, "quantize " + what, [&](Backend& backend, bool there) {
                there ? backend.quantize(blocks.there(b), floats.there(f))
                      : backend.quantize(blocks.here(b), floats.here(f));
              });
            } else {
              // Scales are finite; other bits are random.
              blocks.randomise(8);
              for (size_t i = 1; i < blocks.host.size(); i += 2) blocks.host[i] &= std::byte{0xbb};
              blocks.send();
            }
            expect_same(gpu, floats, "dequantize " + what, [&](Backend& backend, bool there) {
              there ? backend.dequantize(floats.there(f), blocks.there(b))
                    : backend.dequantize(floats.here(f), blocks.here(b));
            });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// ---- Reductions ----

TEST_F(GpuOps, RowsOfEveryShortLength) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const int64_t rows = 37;
      Buffer in(gpu, dtype, 140 * rows), out(gpu, dtype, 140 * rows), weight(gpu, dtype, 140);
      Buffer index(gpu, DType::u32, rows);
      in.randomise(11), weight.randomise(12);
      for (const int64_t n : {1, 3, 4, 5, 8, 12, 16, 20, 32, 36, 60, 64, 100, 120, 128, 132}) {
        const Layout x = Layout::contiguous({rows, n}), one = Layout::contiguous({rows, 1});
        const Layout w = Layout::contiguous({n});
        const auto same = [&](const char* what, Buffer& y, const Layout& layout, const auto& call) {
          expect_same(gpu, y, fmt::format("{} {} of {}", what, name(dtype), n),
                      [&](Backend& backend, bool there) {
                        if (there) {
                          call(backend, y.there(layout), in.there(x), weight.there(w));
                        } else {
                          call(backend, y.here(layout), in.here(x), weight.here(w));
                        }
                      });
        };
        same("sum", out, one, [](Backend& b, const View& y, const ConstView& v, const ConstView&) {
          b.reduce(Op::sum, y, v, 2);
        });
        same("max", out, one, [](Backend& b, const View& y, const ConstView& v, const ConstView&) {
          b.reduce(Op::max, y, v, 2);
        });
        same("argmax", index, one,
             [](Backend& b, const View& y, const ConstView& v, const ConstView&) {
               b.arg_reduce(Op::argmax, y, v, 1);
             });
        same("softmax", out, x,
             [](Backend& b, const View& y, const ConstView& v, const ConstView&) {
               b.softmax(y, v, 1, false);
             });
        same("rms_norm", out, x,
             [](Backend& b, const View& y, const ConstView& v, const ConstView& by) {
               b.rms_norm(y, v, by, 1e-5f);
             });
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_F(GpuOps, LongRowsThatBeginAnywhere) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::u8, DType::f8e4m3, DType::i16, DType::bf16, DType::f16,
                              DType::i32, DType::f32, DType::i64}) {
      Buffer in(gpu, dtype, 20'000), out(gpu, dtype, 20'000), index(gpu, DType::u32, 8);
      in.randomise(15);
      const bool has_softmax = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
      for (const int64_t n : {129, 131, 257, 515, 1001, 4095, 4097, 9001}) {
        for (const int64_t start : {0, 1, 3, 6}) {
          const int64_t rows = n > 4097 ? 2 : 4;
          const Layout x = Layout::contiguous({rows, n + 7}).narrow(1, start, n);
          const Layout one = Layout::contiguous({rows, 1});
          const auto what = fmt::format("{} [{}, {}] from {}", name(dtype), rows, n, start);
          for (const Op op : {Op::sum, Op::max, Op::min}) {
            expect_same(gpu, out, fmt::format("{} {}", name(op), what),
                        [&](Backend& backend, bool there) {
                          backend.reduce(op, there ? out.there(one) : out.here(one),
                                         there ? in.there(x) : in.here(x), 2);
                        });
          }
          for (const Op op : {Op::argmax, Op::argmin}) {
            expect_same(gpu, index, fmt::format("{} {}", name(op), what),
                        [&](Backend& backend, bool there) {
                          backend.arg_reduce(op, there ? index.there(one) : index.here(one),
                                             there ? in.there(x) : in.here(x), 1);
                        });
          }
          // Writes to rows with the input's alignment, and to others.
          for (const Layout& to : {x, Layout::contiguous({rows, n})}) {
            if (!has_softmax) continue;
            for (const bool log : {false, true}) {
              expect_same(gpu, out, "softmax " + what, [&](Backend& backend, bool there) {
                backend.softmax(there ? out.there(to) : out.here(to),
                                there ? in.there(x) : in.here(x), 1, log);
              });
            }
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_F(GpuOps, ColumnsOfManyRows) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
      Buffer in(gpu, dtype, 700 * 256), out(gpu, dtype, 256), index(gpu, DType::u32, 256);
      in.randomise(13);
      for (const int64_t rows : {1, 7, 130, 700, 3000}) {
        for (const int64_t columns : {5, 24, 256}) {
          if (rows * columns > 700 * 256) continue;
          const Layout x = Layout::contiguous({rows, columns});
          const Layout one = Layout::contiguous({1, columns});
          const auto what = fmt::format("{} [{}, {}]", name(dtype), rows, columns);
          expect_same(gpu, out, "min " + what, [&](Backend& backend, bool there) {
            backend.reduce(Op::min, there ? out.there(one) : out.here(one),
                           there ? in.there(x) : in.here(x), 1);
          });
          expect_same(gpu, index, "argmin " + what, [&](Backend& backend, bool there) {
            backend.arg_reduce(Op::argmin, there ? index.there(one) : index.here(one),
                               there ? in.there(x) : in.here(x), 0);
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

/// Columns that end in a strip, in 256 rows, and in a chunk.
TEST_F(GpuOps, ScansOfColumns) {
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype :
         {DType::f32, DType::f16, DType::f8e4m3, DType::u8, DType::f64, DType::i32, DType::i64}) {
      Buffer in(gpu, dtype, 4500 * 33), out(gpu, dtype, 4500 * 33);
      in.randomise(16);
      for (const auto& [rows, columns] :
           {std::pair{17, 64}, {256, 33}, {300, 31}, {700, 80}, {4500, 33}}) {
        const Layout all = Layout::contiguous({rows, columns});
        for (const Op op : {Op::cumsum, Op::cumprod}) {
          expect_same(gpu, out, fmt::format("{} {} [{}, {}]", name(op), name(dtype), rows, columns),
                      [&](Backend& backend, bool there) {
                        backend.scan(op, there ? out.there(all) : out.here(all),
                                     there ? in.there(all) : in.here(all), 0);
                      });
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

/// So many rows that a thread block takes several sets of them.
TEST_F(GpuOps, NormsOfManyRows) {
  on_each([&](GpuBackend& gpu) {
    const auto norms = [&](DType dtype, int64_t rows, int64_t n, bool layers) {
      Buffer in(gpu, dtype, rows * n), out(gpu, dtype, rows * n);
      Buffer weight(gpu, DType::f32, n), bias(gpu, DType::f32, n);
      in.randomise(17), weight.randomise(18), bias.randomise(19);
      const Layout all = Layout::contiguous({rows, n}), one = Layout::contiguous({n});
      expect_same(gpu, out, fmt::format("{} [{}, {}]", name(dtype), rows, n),
                  [&](Backend& backend, bool there) {
                    const View y = there ? out.there(all) : out.here(all),
                               x = there ? in.there(all) : in.here(all),
                               w = there ? weight.there(one) : weight.here(one),
                               b = there ? bias.there(one) : bias.here(one);
                    if (layers) return backend.layer_norm(y, x, w, b, 1e-5f);
                    backend.rms_norm(y, x, w, 1e-5f);
                  });
    };
    norms(DType::f32, 1361, 2048, true);
    norms(DType::f32, 685, 4096, false);
    norms(DType::bf16, 1361, 4096, false);
    norms(DType::f32, 5, 20000, true);
    norms(DType::f32, 5, 32768, false);
  });
}

TEST_F(GpuOps, FewRowsOfManyColumns) {
  // The number of columns gives one thread each, or one thread per eight columns, or less than a
  // block has threads. The addresses are aligned for vectors or not.
  const std::pair<int64_t, int64_t> cases[] = {{6, 1 << 20}, {33, 1 << 17}, {100, 1 << 15},
                                               {3, 1 << 15}, {5, 40},       {100, 40}};
  on_each([&](GpuBackend& gpu) {
    for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
      Buffer in(gpu, dtype, int64_t{6} << 20), out(gpu, dtype, 1 << 20);
      Buffer index(gpu, DType::u32, 1 << 20);
      in.randomise(14);
      for (const auto& [rows, columns] : cases) {
        for (const int64_t start : {0, 1}) {
          const Layout from = Layout::contiguous({rows, columns}).narrow(1, start, columns - start);
          const Layout one = Layout::contiguous({1, columns}).narrow(1, start, columns - start);
          const auto what = fmt::format("{} [{}, {}]", name(dtype), rows, columns);
          for (const Op op : {Op::sum, Op::max}) {
            expect_same(gpu, out, fmt::format("{} {}", name(op), what),
                        [&](Backend& backend, bool there) {
                          backend.reduce(op, there ? out.there(one) : out.here(one),
                                         there ? in.there(from) : in.here(from), 1);
                        });
          }
          expect_same(gpu, index, "argmin " + what, [&](Backend& backend, bool there) {
            backend.arg_reduce(Op::argmin, there ? index.there(one) : index.here(one),
                               there ? in.there(from) : in.here(from), 0);
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

// ---- Mistakes in data ----

TEST_F(GpuOps, IdsOutOfRangeAreNamed) {
  on_each([&](GpuBackend& gpu) {
    Buffer x(gpu, DType::f32, 50 * 8), out(gpu, DType::f32, 3 * 8);
    x.randomise(9);
    const Layout from = Layout::contiguous({50, 8}), to = Layout::contiguous({3, 8});
    const auto message = [&](DType type, int64_t bad) {
      Buffer ids(gpu, type, 3);
      const auto size = static_cast<size_t>(info(type).block_bytes);
      for (size_t i = 0; i < 3; ++i) {
        const int64_t id = i == 1 ? bad : static_cast<int64_t>(i);
        std::memcpy(ids.host.data() + i * size, &id, size);
      }
      ids.send();
      out.set(std::vector<float>(24, 5.0f));
      gpu.index_select(out.there(to), x.there(from), ids.there(Layout::contiguous({3})), 0);
      const std::string said = message_of([&] { gpu.synchronize(); });
      // The row is filled with zeros, its neighbours are correct, and the device remains usable.
      const std::vector<float> got = out.get<float>(), rows = x.get<float>();
      for (size_t i = 0; i < 24; ++i) {
        EXPECT_EQ(got[i], i / 8 == 1 ? 0.0f : rows[i / 8 * 8 + i % 8]) << i;
      }
      return said;
    };
    const std::string device = gpu.device().str();
    EXPECT_EQ(message(DType::i32, 50),
              fmt::format("index_select: id out of range: id 50, x f32[50,8]@{0}, ids i32[3]@{0}: "
                          "need 0 <= id < 50",
                          device));
    EXPECT_THAT(message(DType::i64, -1), HasSubstr("id -1, x f32[50,8]"));
    EXPECT_THAT(message(DType::i64, INT64_MIN), HasSubstr("id -9223372036854775808"));
    EXPECT_THAT(message(DType::u32, 51), HasSubstr("id 51"));
    EXPECT_THAT(message(DType::u8, 254), AllOf(HasSubstr("id 254"), HasSubstr("u8[3]")));
    EXPECT_EQ(message(DType::u8, 255), "nothing was wrong");
    EXPECT_EQ(message(DType::u32, 0xffffffff), "nothing was wrong");
  });
}

TEST_F(GpuOps, IdsOutOfRangeWithoutElements) {
  on_each([&](GpuBackend& gpu) {
    Buffer ids(gpu, DType::i32, 8), none(gpu, DType::f32, 1);
    ids.set<int32_t>({9, 0, 9, 2, 9, 5, 9, 1});
    const Layout every_second({3}, {2}, 1);  // 0, 2, 5
    const auto select = [&](int64_t size) {
      return message_of([&] {
        gpu.index_select(none.there(Layout::contiguous({3, 0})),
                         none.there(Layout::contiguous({size, 0})), ids.there(every_second), 0);
        gpu.synchronize();
      });
    };
    const auto add = [&](int64_t size) {
      return message_of([&] {
        gpu.index_add(none.there(Layout::contiguous({0, size})),
                      none.there(Layout::contiguous({0, 3})), ids.there(every_second), 1);
        gpu.synchronize();
      });
    };
    EXPECT_EQ(select(6), "nothing was wrong");
    EXPECT_THAT(select(5), HasSubstr("index_select: id out of range: id 5"));
    EXPECT_EQ(add(6), "nothing was wrong");
    EXPECT_THAT(add(5), HasSubstr("index_add: id out of range: id 5"));
  });
}

TEST_F(GpuOps, IdsOutOfRangeInRowsOfBlocks) {
  on_each([&](GpuBackend& gpu) {
    Buffer x(gpu, DType::q4_0, 5 * 64), ids(gpu, DType::i32, 4), out(gpu, DType::f16, 4 * 64);
    x.randomise(10);
    ids.set<int32_t>({4, 5, -3, 0});
    gpu.index_select(out.there(Layout::contiguous({4, 64})), x.there(Layout::contiguous({5, 64})),
                     ids.there(Layout::contiguous({4})), 0);
    EXPECT_THAT(message_of([&] { gpu.synchronize(); }),
                AllOf(HasSubstr("x q4_0[5,64]"), HasSubstr("need 0 <= id < 5")));
    const std::vector<uint16_t> got = out.get<uint16_t>();
    for (size_t i = 64; i < 192; ++i) EXPECT_EQ(got[i], 0) << i;
    EXPECT_NO_THROW(gpu.synchronize());
  });
}

template <class T>
void expect_zero_divisors_are_named(GpuBackend& gpu, DType dtype) {
  for (const int64_t step : {1, 3}) {
    const int64_t n = 300;
    Buffer a(gpu, dtype, step * n), b(gpu, dtype, step * n), out(gpu, dtype, n);
    std::vector<T> u(static_cast<size_t>(step * n), 0), v(static_cast<size_t>(step * n), 0);
    for (size_t i = 0; i < u.size(); ++i) {
      u[i] = static_cast<T>(i % 100);
      v[i] = static_cast<T>(i / static_cast<size_t>(step) == 250 ? 0 : 3);
    }
    a.set(u);
    b.set(v);
    const Layout dense = Layout::contiguous({n}), apart({n}, {step}, 0);
    gpu.binary(Op::div, out.there(dense), a.there(apart), b.there(apart));
    EXPECT_EQ(message_of([&] { gpu.synchronize(); }),
              fmt::format("div: integer division by zero: {0}[300]@{1} / {0}[300]@{1}", name(dtype),
                          gpu.device().str()));
    const std::vector<T> got = out.get<T>();
    for (size_t i = 0; i < got.size(); ++i) {
      const auto x = u[i * static_cast<size_t>(step)];
      EXPECT_EQ(got[i], i == 250 ? 0 : static_cast<T>(x / 3)) << i;
    }
  }
}

TEST_F(GpuOps, ZeroDivisorsAreNamedAndGiveZero) {
  on_each([&](GpuBackend& gpu) {
    expect_zero_divisors_are_named<uint8_t>(gpu, DType::u8);
    expect_zero_divisors_are_named<uint32_t>(gpu, DType::u32);
    expect_zero_divisors_are_named<int16_t>(gpu, DType::i16);
    expect_zero_divisors_are_named<int32_t>(gpu, DType::i32);
    expect_zero_divisors_are_named<int64_t>(gpu, DType::i64);
  });
}

TEST_F(GpuOps, MistakesInRecordingsAreNamedAtEachReplay) {
  on_each([&](GpuBackend& gpu) {
    Buffer x(gpu, DType::f32, 10), ids(gpu, DType::u32, 2), out(gpu, DType::f32, 2);
    ids.set<uint32_t>({1, 2});
    const std::unique_ptr<wick::DeviceGraph> recording = gpu.record([&] {
      gpu.index_select(out.there(Layout::contiguous({2})), x.there(Layout::contiguous({10})),
                       ids.there(Layout::contiguous({2})), 0);
    });
    for (const uint32_t id : {2u, 10u, 3u, 77u}) {
      ids.set<uint32_t>({1, id});
      recording->replay();
      const std::string said = message_of([&] { gpu.synchronize(); });
      EXPECT_EQ(said == "nothing was wrong", id < 10) << said;
      if (id >= 10) {
        EXPECT_THAT(said, HasSubstr(fmt::format("id {}, x f32[10]", id)));
      }
    }
  });
}

}  // namespace
}  // namespace wick::gpu
