#pragma once

#include <functional>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// A function from a list of tensors to a list of tensors.
using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// The result of trace().
struct Trace {
  Graph graph;
  /// The function refers to a tensor that needs a gradient, which a graph can't compute.
  bool needs_grad = false;
};

/// Runs `function` on tensors without memory that have the arguments' shapes, dtypes and device,
/// and records its calls. Errors: those of the function; the function reads values, draws random
/// numbers or uses several devices; there are no arguments; an argument or result is undefined.
Trace trace(const Function& function, std::span<const Tensor> arguments);

}  // namespace wick::graph
