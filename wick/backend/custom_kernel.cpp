#include "wick/backend/custom_kernel.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/sha256.h"

namespace wick {

KernelCode::KernelCode(std::string bytes) {
  Sha256 sum;
  sum.add(bytes);
  digest_ = std::make_shared<const std::string>(hex(sum.finish()));
  bytes_ = std::make_shared<const std::string>(std::move(bytes));
}

const void* KernelArgument::address() const {
  return static_cast<const char*>(view_.data) + bytes_of(view_.dtype, view_.layout.offset());
}

namespace {

constexpr char kAxes[] = {'x', 'y', 'z'};

[[noreturn]] void refuse(std::string_view op, std::string_view what, const KernelGrid& grid,
                         const std::string& limit) {
  const auto& [bx, by, bz] = grid.blocks;
  const auto& [tx, ty, tz] = grid.threads;
  throw Error(op, what,
              fmt::format("{}x{}x{} blocks of {}x{}x{} threads, {} bytes of shared memory", bx, by,
                          bz, tx, ty, tz, grid.shared_bytes),
              limit);
}

}  // namespace

void check_grid(std::string_view op, const KernelGrid& grid, const LaunchLimits& limits,
                int64_t kernel_threads, int64_t kernel_shared_bytes) {
  int64_t block_threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t blocks = grid.blocks[axis], threads = grid.threads[axis];
    const char name = kAxes[axis];
    if (blocks < 1 || threads < 1) {
      refuse(op, "a grid without threads", grid, "need at least one block of one thread");
    }
    if (threads > limits.threads[axis]) {
      refuse(op, "too many threads in a block", grid,
             fmt::format("the limit along {} is {}", name, limits.threads[axis]));
    }
    if (blocks > limits.blocks[axis]) {
      refuse(op, "too many blocks", grid,
             fmt::format("the limit along {} is {}", name, limits.blocks[axis]));
    }
    if (blocks > limits.in_grid[axis] / threads) {
      refuse(op, "too many threads in the grid", grid,
             fmt::format("the limit along {} is {} threads", name, limits.in_grid[axis]));
    }
    block_threads *= threads;  // at most 2^30: each axis is limited
  }
  if (block_threads > limits.block_threads) {
    refuse(op, "too many threads in a block", grid,
           fmt::format("the device's limit is {}", limits.block_threads));
  }
  if (kernel_threads > 0 && block_threads > kernel_threads) {
    refuse(
        op, "too many threads in a block", grid,
        fmt::format("the kernel's limit is {}, by its registers or launch bounds", kernel_threads));
  }
  if (grid.shared_bytes < 0) {
    refuse(op, "a negative size of shared memory", grid, "need 0 or more bytes");
  }
  if (grid.shared_bytes > limits.shared_bytes - kernel_shared_bytes) {
    refuse(
        op, "too much shared memory", grid,
        fmt::format("the device's limit is {} bytes of a block, of which the kernel itself uses {}",
                    limits.shared_bytes, kernel_shared_bytes));
  }
}

}  // namespace wick
