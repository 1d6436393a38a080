#pragma once

#include <functional>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// A function from tensors to tensors.
using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// A traced function.
struct Trace {
  Graph graph;
  /// A gradient may flow to a tensor that the function refers to: graphs record none.
  bool needs_grad = false;
};

/// Runs `function` over tensors of the arguments' shapes, dtypes and device that have no memory,
/// and lists the calls that it makes. Errors: those of the function; it reads values, draws random
/// numbers, or uses several devices; no arguments; an undefined argument or result.
Trace trace(const Function& function, std::span<const Tensor> arguments);

}  // namespace wick::graph
