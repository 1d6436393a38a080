#pragma once

#include "wick/graph/graph.h"

namespace wick::graph {

class Uses;

/// Replaces compositions of calls by calls that compute the same bits in one kernel, and drops
/// calls whose results nobody reads. The compositions are
///  - rotation of queries and keys, their way into pages, and attention to these: cached_attention;
///  - silu(a) * b: silu_mul;
///  - rms_norm, silu_mul of two halves, or cached_attention in front of a linear, and an addition
///    behind it: linear with steps.
void fuse(Graph& graph);

/// The first of these, for fuse().
void fuse_cached_attention(Uses& uses);

}  // namespace wick::graph
