// Measures elementwise and movement kernels against limits from the same run: copy bandwidth; for
// kernels that write more than they read, also fill bandwidth; and the kernel's own rate with data
// in the L1 cache. A row's share is the time that the slowest limit permits divided by the measured
// time; share_of_copy only considers copying. Prints JSON.
//
//   element_bench [--threads N] [--mib M] [--reps R] [--only SUBSTRING] [--isa NAME]

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace {

using namespace wick;

struct Options {
  int threads = 1, reps = 15;
  int64_t mib = 64;  // size of the output
  std::string only, isa;
};

/// Returns this thread's CPU time if it is the only one, so that a busy machine disturbs less, and
/// the wall time otherwise.
double seconds(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Memory that stays mapped and whose pages have been touched.
struct Arena {
  explicit Arena(int64_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(4096, static_cast<size_t>(bytes)))) {
    std::memset(data, 0x3c, static_cast<size_t>(bytes));  // an ordinary number in every dtype
  }
  char* data;
};

/// Copies with non-temporal stores. The limit is the faster of this and memcpy.
void stream_copy(char* to, const char* from, int64_t bytes) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

struct Row {
  std::string name;
  int64_t elems;  // of the large run
  double bytes;   // bytes that the large run moves
  std::function<void()> large;
  int64_t small_elems;  // 0: no rate limit
  std::function<void()> small;
  // Bytes written, given if they are more than half: then filling is a limit, too.
  double written = 0;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        bytes_(options.mib << 20),
        a_(bytes_ + (1 << 20)),
        b_(bytes_ + (1 << 20)),
        out_(bytes_ + (1 << 20)),
        backend_(pick(options.isa)) {}

  View out(DType d, Layout l) { return {out_.data, d, l}; }
  ConstView a(DType d, Layout l) { return {a_.data, d, l}; }
  ConstView b(DType d, Layout l) { return {b_.data, d, l}; }
  cpu::CpuBackend& backend() { return backend_; }
  int64_t bytes() const { return bytes_; }
  /// Fills use many times the last-level cache, so that the part of the output that remains in the
  /// cache, and is never written to memory, doesn't matter. Mapped when a row needs it.
  int64_t filled_bytes() const { return 8 * bytes_; }
  View filled(DType d, Layout l) {
    if (!wide_) wide_.emplace(filled_bytes());
    return {wide_->data, d, l};
  }

  void add(Row row) {
    if (row.name.find(options_.only) != std::string::npos) rows_.push_back(std::move(row));
  }

  void print() {
    std::string text = fmt::format("{{\"isa\": \"{}\", \"threads\": {}, \"rows\": [",
                                   cpu::name(backend_.isa()), options_.threads);
    const char* comma = "\n";
    for (const Row& row : rows_) {
      const Times t = measure(row);
      const double copy_gbs = 2 * static_cast<double>(bytes_) / t.copy * 1e-9;
      const double fill_s = row.written / static_cast<double>(filled_bytes()) * t.fill;
      const double copy_s = row.bytes / (2 * static_cast<double>(bytes_)) * t.copy;
      const double memory_s = row.written < row.bytes ? std::max(copy_s, fill_s) : fill_s;
      const double rate_s = row.small_elems == 0
                                ? 0
                                : t.small / static_cast<double>(row.small_elems) *
                                      static_cast<double>(row.elems) / options_.threads;
      const double limit = std::max(memory_s, rate_s);
      text += fmt::format(
          "{}  {{\"row\": \"{}\", \"gb_per_s\": {:.1f}, \"copy_gb_per_s\": {:.1f}, "
          "\"ns_per_elem\": {:.4f}, \"cached_ns_per_elem\": {:.4f}, \"limit\": \"{}\", "
          "\"share\": {:.3f}, \"share_of_copy\": {:.3f}}}",
          comma, row.name, row.bytes / t.large * 1e-9, copy_gbs,
          t.large * 1e9 / static_cast<double>(row.elems),
          row.small_elems == 0 ? 0 : t.small * 1e9 / static_cast<double>(row.small_elems),
          rate_s > memory_s    ? "rate"
          : memory_s == fill_s ? "fill"
                               : "memory",
          limit / t.large, copy_s / t.large);
      comma = ",\n";
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
      text.clear();
    }
    text += "\n], \"calls\": [";
    comma = "\n";
    for (int64_t n : {int64_t{1}, int64_t{64}, int64_t{600}, int64_t{4096}}) {
      for (Op op : {Op::add, Op::silu_mul}) {
        const Layout flat = Layout::contiguous({n}), rows = Layout::contiguous({1, 1, n});
        for (const auto& [shape, layout] : {std::pair{"rank1", flat}, std::pair{"rank3", rows}}) {
          const double t = best([&] {
            for (int i = 0; i < 1000; ++i) {
              backend_.binary(op, out(DType::f32, layout), a(DType::f32, layout),
                              b(DType::f32, layout));
            }
          });
          text += fmt::format("{}  {{\"call\": \"{}.f32.{}[{}]\", \"ns\": {:.1f}}}", comma,
                              name(op), shape, n, t * 1e6);
          comma = ",\n";
        }
      }
    }
    std::fputs((text + "\n]}\n").c_str(), stdout);
  }

 private:
  struct Times {
    double large = 1e30, small = 1e30, copy = 1e30, fill = 1e30;
  };

  static cpu::Isa pick(const std::string& name) {
    for (cpu::Isa isa : cpu::available_isas()) {
      if (cpu::name(isa) == name) return isa;
    }
    return cpu::selected_isa();
  }

  double time(const std::function<void()>& body) const {
    const double start = seconds(options_.threads);
    body();
    return seconds(options_.threads) - start;
  }
  double best(const std::function<void()>& body) const {
    double t = 1e30;
    for (int r = 0; r < options_.reps; ++r) t = std::min(t, time(body));
    return t;
  }

  /// Returns the minimum of interleaved repetitions: a disturbance affects all three measurements.
  Times measure(const Row& row) {
    constexpr int kSmallCalls = 200;
    Times t;
    if (row.written > 0) filled(DType::u8, {});  // maps the memory before the measurement
    for (int r = 0; r < options_.reps; ++r) {
      t.large = std::min(t.large, time(row.large));
      for (bool stream : {false, true}) {
        t.copy = std::min(t.copy, time([&] { copy(stream); }));
        if (row.written > 0) t.fill = std::min(t.fill, time([&] { fill(stream); }));
      }
      if (row.small_elems == 0) continue;
      t.small = std::min(t.small, time([&] {
                                    for (int i = 0; i < kSmallCalls; ++i) row.small();
                                  }) / kSmallCalls);
    }
    return t;
  }

  void fill(bool stream) {
    cpu::parallel_for(filled_bytes() >> 16, 1, [&](int64_t begin, int64_t end) {
      char* to = wide_->data + (begin << 16);
      const auto bytes = static_cast<size_t>((end - begin) << 16);
#if defined(__x86_64__)
      if (stream) {
        for (size_t i = 0; i < bytes; i += 16) {
          _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_set1_epi32(1));
        }
        _mm_sfence();
        return;
      }
#endif
      std::memset(to, 1, bytes);
    });
  }

  void copy(bool stream) {
    cpu::parallel_for(bytes_ >> 16, 1, [&](int64_t begin, int64_t end) {
      char* to = out_.data + (begin << 16);
      const char* from = a_.data + (begin << 16);
      if (stream) {
        stream_copy(to, from, (end - begin) << 16);
      } else {
        std::memcpy(to, from, static_cast<size_t>((end - begin) << 16));
      }
    });
  }

  Options options_;
  int64_t bytes_;
  Arena a_, b_, out_;
  std::optional<Arena> wide_;
  cpu::CpuBackend backend_;
  std::vector<Row> rows_;
};

constexpr int64_t kCached = 8192;  // bytes of one operand that stays in the L1 cache

void add_map_rows(Bench& bench, DType d) {
  const int64_t size = info(d).block_bytes, n = bench.bytes() / size, m = kCached / size;
  const Layout large = Layout::contiguous({n}), small = Layout::contiguous({m});
  cpu::CpuBackend& cpu = bench.backend();
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!info(op).dtypes.contains(d)) continue;
    const std::string title = fmt::format("{}.{}", name(op), name(d));
    if (info(op).kind == OpKind::unary) {
      bench.add({title, n, 2.0 * static_cast<double>(bench.bytes()),
                 [=, &cpu, &bench] { cpu.unary(op, bench.out(d, large), bench.a(d, large)); }, m,
                 [=, &cpu, &bench] { cpu.unary(op, bench.out(d, small), bench.a(d, small)); }});
    }
    if (info(op).kind == OpKind::binary) {
      bench.add({title, n, 3.0 * static_cast<double>(bench.bytes()),
                 [=, &cpu, &bench] {
                   cpu.binary(op, bench.out(d, large), bench.a(d, large), bench.b(d, large));
                 },
                 m,
                 [=, &cpu, &bench] {
                   cpu.binary(op, bench.out(d, small), bench.a(d, small), bench.b(d, small));
                 }});
    }
  }
  bench.add({fmt::format("affine.{}", name(d)), n, 2.0 * static_cast<double>(bench.bytes()),
             [=, &cpu, &bench] {
               cpu.unary_with(Op::affine, bench.out(d, large), bench.a(d, large), 0.5, 1.0);
             },
             m,
             [=, &cpu, &bench] {
               cpu.unary_with(Op::affine, bench.out(d, small), bench.a(d, small), 0.5, 1.0);
             }});
}

void add_move_rows(Bench& bench) {
  cpu::CpuBackend& cpu = bench.backend();
  const auto all = static_cast<double>(bench.bytes());
  for (DType d : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    const int64_t n = bench.bytes() / info(d).block_bytes, cols = 4096, rows = n / cols;
    const Layout flat = Layout::contiguous({n}), wide = Layout::contiguous({rows, cols}),
                 turned = Layout::contiguous({cols, rows}).transpose(0, 1);
    bench.add({fmt::format("copy.{}", name(d)),
               n,
               2 * all,
               [=, &cpu, &bench] { cpu.copy(bench.out(d, flat), bench.a(d, flat)); },
               0,
               {}});
    bench.add({fmt::format("fill.{}", name(d)),
               8 * n,
               8 * all,
               [=, &cpu, &bench] { cpu.fill(bench.filled(d, Layout::contiguous({8 * n})), 1.0); },
               0,
               {},
               8 * all});
    bench.add({fmt::format("transpose.{}", name(d)),
               n,
               2 * all,
               [=, &cpu, &bench] { cpu.copy(bench.out(d, wide), bench.a(d, turned)); },
               0,
               {}});
    // A KV cache: copies [positions, heads, 64] to [heads, positions, 64].
    const int64_t positions = n / 64 / 8;
    const Layout from = Layout::contiguous({positions, 8, 64}).transpose(0, 1),
                 to = Layout::contiguous({8, positions, 64});
    bench.add({fmt::format("copy_heads.{}", name(d)),
               n,
               2 * all,
               [=, &cpu, &bench] { cpu.copy(bench.out(d, to), bench.a(d, from)); },
               0,
               {}});
    const Layout third = Layout::contiguous({n / 3, 3}).slice(1, 0, 3, 2);
    bench.add({fmt::format("copy_columns.{}", name(d)),
               n / 3 * 2,
               2 * all * 2 / 3,
               [=, &cpu, &bench] {
                 cpu.copy(bench.out(d, Layout::contiguous(third.shape())), bench.a(d, third));
               },
               0,
               {}});
  }
  const DType f32 = DType::f32;
  const int64_t n = bench.bytes() / 4, cols = 4096, rows = n / cols;
  const Layout wide = Layout::contiguous({rows, cols}),
               row = Layout::contiguous({1, cols}).broadcast_to(wide.shape()),
               column = Layout::contiguous({rows, 1}).broadcast_to(wide.shape()),
               turned = Layout::contiguous({cols, rows}).transpose(0, 1);
  for (const auto& [title, layout, bytes] :
       {std::tuple{"add_row.f32", row, 2 * all}, std::tuple{"add_column.f32", column, 2 * all},
        std::tuple{"add_transposed.f32", turned, 3 * all}}) {
    const Layout b = layout;
    bench.add({title,
               n,
               bytes,
               [=, &cpu, &bench] {
                 cpu.binary(Op::add, bench.out(f32, wide), bench.a(f32, wide), bench.b(f32, b));
               },
               0,
               {}});
  }
  const DType types[] = {DType::f32,    DType::f16, DType::bf16,
                         DType::f8e4m3, DType::i32, DType::f64};
  for (DType from : types) {
    for (DType to : types) {
      if (from == to) continue;
      const int64_t wider = std::max(info(from).block_bytes, info(to).block_bytes);
      const int64_t count = bench.bytes() / wider, m = kCached / wider;
      const Layout large = Layout::contiguous({count}), small = Layout::contiguous({m});
      bench.add({fmt::format("cast.{}.{}", name(from), name(to)), count,
                 static_cast<double>(count * (info(from).block_bytes + info(to).block_bytes)),
                 [=, &cpu, &bench] { cpu.cast(bench.out(to, large), bench.a(from, large)); }, m,
                 [=, &cpu, &bench] { cpu.cast(bench.out(to, small), bench.a(from, small)); },
                 info(to).block_bytes > info(from).block_bytes
                     ? static_cast<double>(count * info(to).block_bytes)
                     : 0});
    }
  }
  // Selects 4096 rows of 512 elements out of 32000. The ids are in the other input and are spread
  // over the table.
  for (DType d : {DType::f32, DType::f16}) {
    const Layout table = Layout::contiguous({32000, 512}), ids = Layout::contiguous({4096}),
                 result = Layout::contiguous({4096, 512});
    bench.add(
        {fmt::format("index_select.{}", name(d)),
         4096 * 512,
         2.0 * 4096 * 512 * info(d).block_bytes,
         [=, &cpu, &bench] {
           cpu.iota({const_cast<void*>(bench.b(DType::u32, ids).data), DType::u32, ids}, 3, 7);
           cpu.index_select(bench.out(d, result), bench.a(d, table), bench.b(DType::u32, ids), 0);
         },
         0,
         {}});
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") options.threads = std::stoi(value);
    if (flag == "--mib") options.mib = std::stoll(value);
    if (flag == "--reps") options.reps = std::stoi(value);
    if (flag == "--only") options.only = value;
    if (flag == "--isa") options.isa = value;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cpu::ThreadPool::global().set_threads(options.threads);
  Bench bench(options);
  for (DType d : {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f64, DType::i32}) {
    add_map_rows(bench, d);
  }
  add_move_rows(bench);
  bench.print();
  return 0;
}
