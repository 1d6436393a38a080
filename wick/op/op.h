#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "wick/base/dtype.h"

namespace wick {

/// All ops; each row of ops.def defines one enumerator.
enum class Op : uint8_t {
#define WICK_UNARY(name, ...) name,
#define WICK_UNARY_WITH(name, ...) name,
#define WICK_TEST(name, ...) name,
#define WICK_BINARY(name, ...) name,
#define WICK_COMPARE(name, ...) name,
#define WICK_REDUCE(name, ...) name,
#define WICK_ARG(name, ...) name,
#define WICK_OP(name, ...) name,
#include "wick/op/ops.def"
};

enum class OpKind : uint8_t { unary, unary_with, test, binary, compare, reduce, arg, other };

/// How far results of an op may differ across backends and instruction sets.
/// docs/design/numerics.md defines the classes.
enum class NumericClass : uint8_t { exact, tree, blocked, bound };

/// Where the gradient of an op comes from. tensor/gradients.cpp has a rule for each row that says
/// `rule`, and none for the others.
enum class Gradient : uint8_t {
  rule,       ///< the op has a gradient rule
  composed,   ///< the gradient follows from the ops that compute the op where one is needed
  whole,      ///< none: the result holds integers or bools
  no_tensor,  ///< none: the op has no tensor operand
  blocks,     ///< none: block dtypes hold rounded numbers
  writes,     ///< none: the op writes to an operand in place
};

/// A row of ops.def.
struct OpInfo {
  std::string_view name;
  OpKind kind;
  DTypeSet dtypes;
  NumericClass numeric_class;
  Gradient gradient;
  std::string_view arguments;  ///< "(x, dim = -1)"
  std::string_view doc;
};

inline constexpr std::array kOps = {
#define WICK_OP_ROW(name, kind, set, cls, grad, args, doc) \
  OpInfo{#name, OpKind::kind, dtypes::k##set, NumericClass::cls, Gradient::grad, #args, doc},
#define WICK_UNARY(name, set, cls, grad, doc) WICK_OP_ROW(name, unary, set, cls, grad, (x), doc)
#define WICK_UNARY_WITH(name, set, numbers, ...) WICK_OP_ROW(name, unary_with, set, __VA_ARGS__)
#define WICK_TEST(name, set, cls, grad, doc) WICK_OP_ROW(name, test, set, cls, grad, (x), doc)
#define WICK_BINARY(name, set, cls, grad, doc) \
  WICK_OP_ROW(name, binary, set, cls, grad, (a, b), doc)
#define WICK_COMPARE(name, set, cls, grad, doc) \
  WICK_OP_ROW(name, compare, set, cls, grad, (a, b), doc)
#define WICK_REDUCE(name, set, cls, grad, doc) \
  WICK_OP_ROW(name, reduce, set, cls, grad, (x, dim = None, keepdim = False), doc)
#define WICK_ARG(name, set, cls, grad, doc) \
  WICK_OP_ROW(name, arg, set, cls, grad, (x, dim = None, keepdim = False), doc)
#define WICK_OP(name, set, ...) WICK_OP_ROW(name, other, set, __VA_ARGS__)
#include "wick/op/ops.def"
#undef WICK_OP_ROW
};

inline constexpr int kOpCount = static_cast<int>(kOps.size());

constexpr const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }

}  // namespace wick
