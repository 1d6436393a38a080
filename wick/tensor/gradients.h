#pragma once

// The parts of the table of gradient rules.

#include <span>

#include "wick/tensor/tape.h"

namespace wick::tape {

struct OpRow {
  Op op;
  OpRule rule;
};

/// Why an op has no rule of its own.
inline constexpr const char* kWhole = "its result is whole numbers or truth values";
inline constexpr const char* kByTwo = "it is remembered as its form of two dimensions";
inline constexpr const char* kNoTensor = "it is a function of no tensor";

std::span<const OpRow> linear_rules();
std::span<const OpRow> map_rules();
std::span<const OpRow> spatial_rules();

/// Of conv2d_weight(x, grad), which is no op of its own.
void conv2d_weight_rule(const Vjp& v);

}  // namespace wick::tape
