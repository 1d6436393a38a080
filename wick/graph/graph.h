#pragma once

// A traced function as a list of calls. A value consists of a storage, a dtype and a layout, so
// views need no nodes.

#include <cstddef>
#include <memory>
#include <vector>

#include "wick/tensor/call.h"

namespace wick::graph {

/// A tensor that a node reads or writes.
struct Value {
  int storage = -1;  ///< index in Graph::storages; -1: an omitted optional operand
  DType dtype = DType::f32;
  Layout layout;

  bool operator==(const Value& other) const {
    return storage == other.storage && dtype == other.dtype &&
           layout.offset() == other.layout.offset() && layout.shape() == other.layout.shape() &&
           layout.strides() == other.layout.strides();
  }
};

/// A call of an op.
struct Node {
  Op op;
  Part part = Part::result;
  Attributes attributes;
  const char* called_as = nullptr;
  std::shared_ptr<const Weight> weight;                ///< the weight of linear
  std::shared_ptr<const std::vector<Weight>> experts;  ///< the weights of grouped_linear
  std::shared_ptr<const CustomBody> custom;            ///< the op of a custom call
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  /// The node writes to a storage that another node or the caller made.
  bool writes = false;
};

/// Describes a storage of the graph.
struct StorageInfo {
  enum class Kind : uint8_t {
    input,      ///< the storage of an argument
    constant,   ///< a tensor that the function refers to; the graph keeps it alive
    state,      ///< a tensor that the function writes to; its owner keeps it alive
    temporary,  ///< a result that only nodes read
    output,     ///< a result that the function returns
  };
  Kind kind = Kind::temporary;
  size_t bytes = 0;
  std::shared_ptr<Storage> constant;
  std::weak_ptr<Storage> state;
};

/// A traced function; the nodes are in an order in which they can run.
struct Graph {
  Device device;
  std::vector<StorageInfo> storages;
  std::vector<Node> nodes;
  std::vector<Value> inputs;   ///< the arguments: each dense, at offset 0 of its storage
  std::vector<Value> outputs;  ///< the results
};

}  // namespace wick::graph
