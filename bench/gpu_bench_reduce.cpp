// Reductions, softmax, norms and the prologues of quantised products on a GPU: at what share of its
// copy bandwidth, and with how many bits that differ from the CPU's, as JSON.
//
//   gpu_bench_reduce DEVICE [--small] [--only TEXT]
//
// --small takes shapes an emulator can do, and no times. --only: rows whose names hold the text.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/norm.h"
#include "wick/backend/gpu/prologue.h"
#include "wick/backend/gpu/reduce.h"
#include "wick/base/error.h"
#include "wick/math/half.h"

namespace {

using namespace wick;

/// Of either sign and of magnitudes from 2^-7 to 2^7, by a linear congruence.
std::vector<float> numbers(size_t count) {
  std::vector<float> v(count);
  uint32_t state = 1;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    const uint32_t bits = state ^ state >> 15;
    x = math::bits_f32((bits & 0x807fffffu) | (120 + bits % 14) << 23);
  }
  return v;
}

size_t bytes(DType dtype, int64_t elems) { return static_cast<size_t>(bytes_of(dtype, elems)); }

/// A tensor on the host and on the device.
struct Both {
  std::vector<std::byte> host;
  DType dtype;
  Layout layout;
  gpu::Scratch device;

  Both(gpu::Gpu& gpu, DType type, const Shape& shape)
      : host(bytes(type, shape.elems())),
        dtype(type),
        layout(Layout::contiguous(shape)),
        device(gpu, host.size()) {}
  View here() { return {host.data(), dtype, layout}; }
  View there() const { return {device.data(), dtype, layout}; }
};

class Bench {
 public:
  Bench(Device device, bool small, std::string only)
      : backend_(device),
        gpu_(backend_.gpu()),
        cpu_(cpu::available_isas().back()),
        small_(small),
        only_(std::move(only)),
        numbers_(numbers(size_t{1} << (small ? 17 : 26))) {
    for (void*& event : events_) gpu_.check(gpu_.driver.api.event_create(&event, 0), "an event");
    copy_rate_ = measure_copy();
    fmt::print("{{\"device\": \"{}\", \"name\": \"{}\", \"copy_gb_s\": {}, \"rows\": [",
               device.str(), gpu_.info.name,
               small_ ? "null" : fmt::format("{:.0f}", copy_rate_ / 1e9));
  }
  ~Bench() {
    for (void* event : events_) gpu_.driver.api.event_destroy(event);
  }

  int64_t run() {
    rows();
    columns();
    softmax_rows();
    norm_rows();
    prologues();
    fmt::print("\n], \"different\": {}}}\n", different_);
    return different_;
  }

 private:
  static constexpr DType kSome[] = {DType::f32, DType::bf16, DType::f16};

  /// As large as wanted, or of some thousand elements in a small run.
  Shape fit(const Shape& shape) const {
    Shape result = shape;
    for (int d = 0; small_ && result.elems() > 100'000; d = (d + 1) % shape.rank()) {
      if (result[d] > 40) result = result.with(d, result[d] / 2 + 1);
    }
    return result;
  }

  void rows() {
    for (const Shape& shape : {Shape{8192, 8192}, Shape{16384, 4096}, Shape{16380, 4097},
                               Shape{116508, 576}, Shape{1 << 20, 64}, Shape{13421772, 5},
                               Shape{3, 22369600}, Shape{1, 1 << 26}, Shape{1, 1 << 20}}) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
        reduce(Op::sum, dtype, shape, 2);
        reduce(Op::max, dtype, shape, 2);
        arg(Op::argmax, dtype, shape, 1);
      }
    }
    reduce(Op::mean, DType::f16, {8192, 8192}, 3);
    reduce(Op::sum, DType::f64, {4096, 8192}, 2);
    reduce(Op::sum, DType::i64, {4096, 8192}, 2);
    reduce(Op::min, DType::f64, {4096, 8192}, 2);
    reduce(Op::sum, DType::f32, {256, 64, 4096}, 5);
  }

  void columns() {
    for (const Shape& shape : {Shape{8192, 8192}, Shape{1 << 20, 64}, Shape{100, 655360},
                               Shape{4, 1 << 24}, Shape{70000, 957}}) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
        reduce(Op::sum, dtype, shape, 1);
        reduce(Op::max, dtype, shape, 1);
        arg(Op::argmax, dtype, shape, 0);
      }
    }
    reduce(Op::sum, DType::f32, {64, 1024, 1024}, 2);
    reduce(Op::sum, DType::bf16, {64, 1024, 1024}, 2);
  }

  void softmax_rows() {
    for (const Shape& shape :
         {Shape{8192, 8192}, Shape{16384, 4096}, Shape{32768, 2048}, Shape{65536, 1024},
          Shape{1 << 20, 64}, Shape{512, 128256}, Shape{1, 128256}}) {
      for (const DType dtype : kSome) softmax(dtype, shape, 1, false);
      softmax(DType::bf16, shape, 1, true);
    }
    softmax(DType::f32, {8192, 8192}, 0, false);
    softmax(DType::bf16, {8192, 8192}, 0, false);
    softmax(DType::f32, {48, 21, 65536}, 1, false);
  }

  void norm_rows() {
    for (const Shape& shape :
         {Shape{8192, 8192}, Shape{16384, 4096}, Shape{32768, 2048}, Shape{65536, 1024},
          Shape{116508, 576}, Shape{1 << 20, 64}, Shape{4681, 14336}, Shape{1, 4096}}) {
      for (const DType dtype : kSome) rms_norm(dtype, dtype, shape);
      rms_norm(DType::bf16, DType::f32, shape);
    }
    rms_norm(DType::f64, DType::f64, {4096, 4096});
  }

  void prologues() {
    using Input = LinearFusion::Input;
    for (const int64_t rows : {1, 4, 512}) {
      for (const int64_t k : {576, 2048, 4096, 8192, 14336}) {
        prologue("quantize_rows", Input::plain, rows, k);
        prologue("rms_norm_quantize", Input::rms_norm, rows, k);
        prologue("silu_mul_quantize", Input::silu_mul, rows, k);
      }
    }
  }

  void reduce(Op op, DType dtype, const Shape& wanted, uint32_t dims) {
    const Shape shape = fit(wanted);
    Shape out = shape;
    for (int d = 0; d < shape.rank(); ++d) {
      if ((dims >> d & 1) != 0) out = out.with(d, 1);
    }
    measure(fmt::format("{}.{}{} dims {:#b}", name(op), name(dtype), shape.str(), dims), dtype,
            shape, dtype, out,
            [&](Backend& b, const View& y, const ConstView& x) { b.reduce(op, y, x, dims); });
  }
  void arg(Op op, DType dtype, const Shape& wanted, int dim) {
    const Shape shape = fit(wanted);
    measure(fmt::format("{}.{}{} dim {}", name(op), name(dtype), shape.str(), dim), dtype, shape,
            DType::u32, shape.with(dim, 1),
            [&](Backend& b, const View& y, const ConstView& x) { b.arg_reduce(op, y, x, dim); });
  }
  void softmax(DType dtype, const Shape& wanted, int dim, bool log) {
    const Shape shape = fit(wanted);
    measure(fmt::format("{}softmax.{}{} dim {}", log ? "log_" : "", name(dtype), shape.str(), dim),
            dtype, shape, dtype, shape,
            [&](Backend& b, const View& y, const ConstView& x) { b.softmax(y, x, dim, log); });
  }
  void rms_norm(DType dtype, DType weight_dtype, const Shape& wanted) {
    const Shape shape = fit(wanted);
    Both weight(gpu_, weight_dtype, {shape[1]});
    fill(weight);
    measure(fmt::format("rms_norm.{}.{}{}", name(dtype), name(weight_dtype), shape.str()), dtype,
            shape, dtype, shape, [&](Backend& b, const View& y, const ConstView& x) {
              const bool here = b.device().kind == DeviceKind::cpu;
              b.rms_norm(y, x, here ? weight.here() : weight.there(), 1e-5f);
            });
  }

  void prologue(const char* what, LinearFusion::Input input, int64_t rows, int64_t k) {
    const std::string name = fmt::format("{}[{},{}]", what, rows, k);
    if (skips(name) || (small_ && rows > 4)) return;
    const int64_t columns = input == LinearFusion::Input::silu_mul ? 2 * k : k;
    Both x(gpu_, DType::f32, {rows, columns}), weight(gpu_, DType::f32, {k});
    fill(x);
    fill(weight);
    const int64_t padded = gpu::RowBlocks::padded_blocks(k);
    const gpu::Scratch q(gpu_, static_cast<size_t>(rows * padded * 32));
    const gpu::Scratch scales(gpu_, static_cast<size_t>(rows * padded * 8));
    LinearFusion fusion;
    fusion.input = input;
    fusion.norm = weight.there();
    fusion.eps = 1e-5f;
    const double time = seconds(rows == 1 ? 200 : 20, [&] {
      gpu::quantize_rows(gpu_, fusion, x.there(), k,
                         {q.data<int8_t>(), scales.data<math::ActivationScale>(), padded});
    });
    report(name, 0, time, static_cast<double>(rows * (columns * 4 + padded * 40)));
  }

  using Call = std::function<void(Backend& backend, const View& y, const ConstView& x)>;
  void measure(const std::string& what, DType in, const Shape& in_shape, DType out,
               const Shape& out_shape, const Call& call) {
    if (skips(what)) return;
    Both x(gpu_, in, in_shape), y(gpu_, out, out_shape);
    fill(x);
    const double time = seconds(x.host.size() < (1 << 22) ? 100 : 20,
                                [&] { call(backend_, y.there(), x.there()); });
    call(cpu_, y.here(), x.here());
    std::vector<std::byte> got(y.host.size());
    backend_.download(got.data(), y.device.data(), got.size());
    int64_t differ = 0;
    const size_t elem = bytes(out, 1);
    for (size_t i = 0; i < got.size(); i += elem) {
      differ += std::memcmp(&got[i], &y.host[i], elem) != 0;
    }
    different_ += differ;
    report(what, differ, time, static_cast<double>(x.host.size() + y.host.size()));
  }

  bool skips(const std::string& what) const { return what.find(only_) == std::string::npos; }

  void fill(Both& to) {
    const Layout layout = Layout::contiguous({static_cast<int64_t>(numbers_.size())});
    for (int64_t done = 0; done < to.layout.elems(); done += layout.elems()) {
      const int64_t count = std::min(to.layout.elems() - done, layout.elems());
      const Layout part = Layout::contiguous({count});
      cpu_.cast({to.host.data() + bytes(to.dtype, done), to.dtype, part},
                {numbers_.data(), DType::f32, part});
    }
    backend_.upload(to.device.data(), to.host.data(), to.host.size());
  }

  /// Seconds of one of `times` calls in a row, as a graph, the best of five.
  template <class F>
  double seconds(int times, const F& call) {
    call();  // loads what is to be loaded
    gpu_.synchronize();
    if (small_) return NAN;
    const auto graph = backend_.record([&] {
      for (int i = 0; i < times; ++i) call();
    });
    double best = INFINITY;
    const auto& api = gpu_.driver.api;
    for (int round = 0; round < 5; ++round) {
      gpu_.check(api.event_record(events_[0], gpu_.stream()), "an event");
      graph->replay();
      gpu_.check(api.event_record(events_[1], gpu_.stream()), "an event");
      gpu_.synchronize();
      float ms = 0;
      gpu_.check(api.event_elapsed(&ms, events_[0], events_[1]), "an event");
      best = std::min(best, static_cast<double>(ms) * 1e-3 / times);
    }
    return best;
  }

  double measure_copy() {
    if (small_) return NAN;
    const size_t size = size_t{1} << 30;
    const gpu::Scratch a(gpu_, size), b(gpu_, size);
    return 2.0 * static_cast<double>(size) / seconds(5, [&] {
             gpu_.check(gpu_.driver.api.copy_on_device(b.data(), a.data(), size, gpu_.stream()),
                        "copying");
           });
  }

  void report(const std::string& what, int64_t differ, double time, double moved) {
    fmt::print("{}\n  {{\"op\": \"{}\", \"differ\": {}", first_ ? "" : ",", what, differ);
    if (!small_) {
      fmt::print(", \"us\": {:.2f}, \"gb_s\": {:.0f}, \"share_of_copy\": {:.3f}", time * 1e6,
                 moved / time / 1e9, moved / time / copy_rate_);
    }
    fmt::print("}}");
    std::fflush(stdout);
    first_ = false;
  }

  gpu::GpuBackend backend_;
  gpu::Gpu& gpu_;
  cpu::CpuBackend cpu_;
  const bool small_;
  const std::string only_;
  const std::vector<float> numbers_;
  double copy_rate_ = NAN;
  void* events_[2] = {};
  bool first_ = true;
  int64_t different_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device, only;
  bool small = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small") {
      small = true;
    } else if (word == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      device = word;
    }
  }
  if (device.empty()) {
    fmt::print(stderr, "gpu_bench_reduce DEVICE [--small] [--only TEXT]\n");
    return 2;
  }
  try {
    return Bench(Device::parse(device), small, only).run() == 0 ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_bench_reduce: {}\n", error.what());
    return 2;
  }
}
