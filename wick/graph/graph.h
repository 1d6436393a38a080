#pragma once

// A traced function as a list of calls. A value is a storage, a dtype and a layout, so views need
// no node.

#include <cstddef>
#include <memory>
#include <vector>

#include "wick/tensor/call.h"

namespace wick::graph {

/// Elements that a node reads or writes.
struct Value {
  int storage = -1;  ///< its place in Graph::storages; -1: an operand that was left out
  DType dtype = DType::f32;
  Layout layout;

  bool operator==(const Value& other) const {
    return storage == other.storage && dtype == other.dtype &&
           layout.offset() == other.layout.offset() && layout.shape() == other.layout.shape() &&
           layout.strides() == other.layout.strides();
  }
};

/// A call.
struct Node {
  Op op;
  Part part = Part::result;
  Attributes attributes;
  const char* called_as = nullptr;
  std::shared_ptr<const Weight> weight;                ///< of linear
  std::shared_ptr<const std::vector<Weight>> experts;  ///< of grouped_linear
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  /// It writes to elements of a storage that other nodes or the caller made.
  bool writes = false;
};

/// Where the elements of values are.
struct StorageInfo {
  enum class Kind : uint8_t {
    input,      ///< of an argument of the function
    constant,   ///< of a tensor that the function refers to, which the graph keeps alive
    state,      ///< of a tensor that the function writes to, which its owner keeps alive
    temporary,  ///< of results that only nodes read
    output,     ///< of results that the function returns
  };
  Kind kind = Kind::temporary;
  size_t bytes = 0;
  std::shared_ptr<Storage> constant;
  std::weak_ptr<Storage> state;
};

/// Nodes in an order in which they can run.
struct Graph {
  Device device;
  std::vector<StorageInfo> storages;
  std::vector<Node> nodes;
  std::vector<Value> inputs;   ///< the arguments: dense, at offset 0 of a storage each
  std::vector<Value> outputs;  ///< the results
};

}  // namespace wick::graph
