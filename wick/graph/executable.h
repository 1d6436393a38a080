#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// Guards lists of executables and of their frames. A fork waits for it. For short sections that
/// take no other lock.
std::mutex& process_lock();

/// A graph ready to run: its calls are checked, and the temporaries lie in one block of memory. On
/// a GPU the second run captures the calls into a graph of the driver, which later runs replay.
class Executable {
 public:
  /// `captures`: whether runs on a GPU are captured. Where the caller records them itself, or each
  /// has few runs, that isn't worth the copies of arguments and results.
  explicit Executable(Graph graph, bool captures = true);
  ~Executable();

  /// The function's results for arguments of the traced shapes and dtypes. The results are tensors
  /// of their own. Threads run at once, but for captured calls, where they take turns. Errors:
  /// arguments of another number, shape, dtype or device; one that the function writes to and that
  /// isn't dense or is there twice; those of the ops as they run.
  std::vector<Tensor> run(std::span<const Tensor> arguments);

  const Graph& graph() const { return graph_; }
  /// Bytes of the block that holds the temporaries.
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
  std::vector<size_t> offsets_;  ///< of temporaries in the block
  std::vector<bool> written_;    ///< of the arguments
  bool writes_arguments_ = false;

  std::vector<std::unique_ptr<Frame>> frames_;  ///< that no run uses

  std::mutex capture_mutex_;
  std::atomic<bool> can_capture_;
  std::atomic<bool> has_run_ = false;
  std::unique_ptr<Frame> captured_frame_;
  std::unique_ptr<DeviceGraph> captured_;
  std::vector<Tensor> captured_inputs_, captured_outputs_;
};

}  // namespace wick::graph
