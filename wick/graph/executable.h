#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// A graph ready to run: its calls are checked, and the temporaries lie in one block of memory. On
/// a GPU the second run captures the calls into a graph of the driver, which later runs replay.
class Executable {
 public:
  explicit Executable(Graph graph);

  /// The function's results for arguments of the traced shapes and dtypes. The results are tensors
  /// of their own. Threads take turns. Errors: arguments of another number, shape, dtype or device;
  /// those of the ops as they run.
  std::vector<Tensor> run(std::span<const Tensor> arguments);

  const Graph& graph() const { return graph_; }
  /// Bytes of the block that holds the temporaries.
  size_t temporary_bytes() const { return temporary_bytes_; }

 private:
  struct Step {
    const OpBody* body;
    OpCall call;
    std::vector<Tensor*> results;
  };
  /// A tensor of a step whose storage changes from run to run.
  struct Slot {
    Tensor* tensor;
    Value value;
  };

  void plan_memory();
  void make_steps();
  Tensor* tensor_for(const Value& value);
  /// Lets the slots be of these arguments and of new results.
  std::vector<Tensor> bind(std::span<const Tensor> arguments);
  void release_slots();
  void run_steps();
  bool capture(std::span<const Tensor> arguments);
  std::vector<Tensor> replay(std::span<const Tensor> arguments);

  Graph graph_;
  size_t temporary_bytes_ = 0;
  std::vector<size_t> offsets_;  ///< of temporaries in the block
  std::shared_ptr<Storage> block_;
  std::deque<Tensor> tensors_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  bool can_capture_;
  bool has_run_ = false;
  std::unique_ptr<Recording> captured_;
  std::vector<Tensor> captured_inputs_, captured_outputs_;
};

}  // namespace wick::graph
