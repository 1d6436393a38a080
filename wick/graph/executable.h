#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// Guards the lists of executables and of their frames. fork() waits for it. Hold it only for short
/// sections that take no other lock.
std::mutex& process_lock();

/// A graph that is ready to run: its calls are checked, and its temporaries are placed in one block
/// of memory. On a GPU the second run captures the calls into a graph of the driver, which later
/// runs replay.
class Executable {
 public:
  /// `captures`: whether runs on a GPU are captured. Captured runs copy arguments and results. That
  /// doesn't pay if the caller captures the calls itself, or if each executable runs only a few
  /// times.
  explicit Executable(Graph graph, bool captures = true);
  ~Executable();

  /// Runs the graph for arguments of the traced shapes and dtypes. The results have their own
  /// storage. Threads run concurrently, except that captured runs take turns. Errors: the number,
  /// shape, dtype or device of an argument differs from the trace; an argument that the function
  /// writes to isn't dense or is passed twice; errors of the ops at run time.
  std::vector<Tensor> run(std::span<const Tensor> arguments);

  const Graph& graph() const { return graph_; }
  /// The size of the block that holds the temporaries.
  size_t temporary_bytes() const { return temporary_bytes_; }

 private:
  class Frame;

  void plan_memory();
  void find_written();
  std::vector<Tensor> checked(std::span<const Tensor> arguments) const;
  std::unique_ptr<Frame> take_frame();
  void give_frame(std::unique_ptr<Frame> frame);
  bool capture(std::span<const Tensor> arguments);
  std::vector<Tensor> replay(std::span<const Tensor> arguments);

  Graph graph_;
  size_t temporary_bytes_ = 0;
  std::vector<size_t> offsets_;  ///< offsets of the temporaries in the block
  std::vector<bool> written_;    ///< for each argument, whether the function writes to it
  bool writes_arguments_ = false;

  std::vector<std::unique_ptr<Frame>> frames_;  ///< frames that no run uses at present

  std::mutex capture_mutex_;
  std::atomic<bool> can_capture_;
  std::atomic<bool> has_run_ = false;
  std::unique_ptr<Frame> captured_frame_;
  std::unique_ptr<DeviceGraph> captured_;
  std::vector<Tensor> captured_inputs_, captured_outputs_;
};

}  // namespace wick::graph
