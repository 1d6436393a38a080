// Measures the cost of a tiny op on a GPU: eager, in a replayed graph, and as a copy of one element
// to the device and back. Prints JSON.
//
//   gpu_overhead DEVICE [--small | --host]
//
// The op adds one element through the tensor API, including the allocation of its result.
// "submit_us" is the time until the call returns, and "us" the time until the device is done, in a
// long sequence of calls. Targets: 4 µs eager, 2 µs replayed. --small uses sizes that an emulator
// can handle. --host: the driver does nothing (tests/backend/stand_in_no_op.cpp). Exits with 1 if a
// target is missed.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/recording.h"

namespace {

using namespace wick;

const gpu::KernelFamily<gpu::FillArgs> kFill4("copy", "fill_4");

constexpr double kEagerTarget = 4, kReplayedTarget = 2;

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

struct Cost {
  double submit_us = 0, us = 0;  ///< per op
};

/// Returns the median of some rounds of `ops` ops.
Cost cost(Device device, int rounds, int ops, const std::function<void()>& work) {
  std::vector<double> submitted, done;
  work();
  synchronize(device);
  for (int i = 0; i < rounds; ++i) {
    const double start = now_us();
    work();
    submitted.push_back((now_us() - start) / ops);
    synchronize(device);
    done.push_back((now_us() - start) / ops);
  }
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  return {median(submitted), median(done)};
}

void print(const char* name, const Cost& c, double target, bool last = false) {
  fmt::print("  \"{}\": {{\"submit_us\": {:.3f}, \"us\": {:.3f}", name, c.submit_us, c.us);
  if (target > 0) fmt::print(", \"target_us\": {}, \"met\": {}", target, c.us <= target);
  fmt::print("}}{}\n", last ? "" : ",");
}

int run(Device device, bool small, bool host) {
  const int rounds = small ? 3 : 31, ops = small ? 20 : 1000;
  const double before = now_us();
  const Tensor one = Tensor::ones({1}, DType::f32, device);
  synchronize(device);
  const double start_us = now_us() - before;

  const Cost eager = cost(device, rounds, ops, [&] {
    for (int i = 0; i < ops; ++i) add(one, one);
  });
  const Cost chained = cost(device, rounds, ops, [&] {
    Tensor x = one;
    for (int i = 0; i < ops; ++i) x = add(x, one);
  });
  Tensor sum;
  const auto recording = record(device, [&] {
    sum = one;
    for (int i = 0; i < ops; ++i) sum = add(sum, one);
  });
  const Cost replayed = cost(device, rounds, ops, [&] { recording->replay(); });
  const bool right = sum.item<float>() == static_cast<float>(ops + 1);
  const Cost item = cost(device, rounds, 10, [&] {
    for (int i = 0; i < 10; ++i) one.item<float>();
  });
  const Cost upload = cost(device, rounds, 10, [&] {
    for (int i = 0; i < 10; ++i) Tensor::from(std::vector<float>{1}, {1}, device);
  });

  // The cost of the driver's calls, and of launches without a tensor.
  gpu::Gpu& gpu = gpu::backend_of(device).gpu();
  gpu.enter();
  const auto part = [&](const std::function<void()>& call) {
    return cost(device, rounds, ops, [&] {
      for (int i = 0; i < ops; ++i) call();
    });
  };
  void* const data = one.storage()->data();
  const auto launch = [&](bool pdl) {
    gpu::CollapsedDims<1> collapsed;
    collapsed.add(1, {1});
    gpu::Grid grid;
    grid.threads = 32;
    grid.pdl = pdl;
    collapsed.for_each_piece([&](const gpu::StridedIndex<1>& strided, const auto&) {
      kFill4().launch(gpu, grid, {data, {0x3f800000}, strided});
    });
  };
  void* const fill = gpu.function("copy", "fill_4");
  gpu::FillArgs args{data, {0x3f800000}, {}};
  void* arguments[] = {&args};
  const unsigned blocks[3] = {1, 1, 1};
  const Cost enter = part([&] { gpu.enter(); });
  const Cost memory = part([&] { gpu.pool.give(gpu.pool.take(4)); });
  const Cost launch_own = part([&] { launch(false); });
  const Cost launch_pdl = part([&] { launch(true); });
  const Cost driver_launch = part(
      [&] { gpu.driver.api.launch(fill, 1, 1, 1, 32, 1, 1, 0, gpu.stream(), arguments, nullptr); });
  const gpu::LaunchWishes pdl{.pdl = true};
  const Cost driver_pdl =
      part([&] { gpu.driver.launch_with(pdl, fill, blocks, 32, 0, gpu.stream(), arguments); });

  fmt::print("{{\n  \"device\": \"{}\", \"ops\": {}, \"first_use_ms\": {:.1f}, \"right\": {},\n",
             device.str(), ops, start_us / 1000, right);
  print("eager", eager, kEagerTarget);
  print("eager_chained", chained, kEagerTarget);
  print("replayed", replayed, kReplayedTarget);
  print("upload", upload, 0);
  print("enter", enter, 0);
  print("memory", memory, 0);
  print("launch", launch_own, 0);
  print("launch_pdl", launch_pdl, 0);
  print("driver_launch", driver_launch, 0);
  print("driver_launch_pdl", driver_pdl, 0);
  print("item", item, 0, true);
  fmt::print("}}\n");
  if (host) return eager.us <= kEagerTarget && replayed.us <= kReplayedTarget ? 0 : 1;
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "gpu_overhead DEVICE [--small | --host]\n");
    return 2;
  }
  try {
    const std::string option = argc > 2 ? argv[2] : "";
    return run(Device::parse(argv[1]), option == "--small", option == "--host");
  } catch (const std::exception& e) {
    fmt::print(stderr, "gpu_overhead: {}\n", e.what());
    return 2;
  }
}
