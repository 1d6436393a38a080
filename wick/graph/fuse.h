#pragma once

#include "wick/graph/graph.h"

namespace wick::graph {

class Uses;

/// Replaces compositions of calls by fused calls that compute the same bits, and removes calls
/// whose results aren't read. The patterns are:
/// - rope of queries and keys, store_in_pages and attention_of_pages: cached_attention;
/// - silu(a) * b: silu_mul;
/// - rms_norm, silu_mul of two halves or cached_attention before a linear, and an addition after
///   it: linear with fused steps.
void fuse(Graph& graph);

/// The cached_attention pattern of fuse().
void fuse_cached_attention(Uses& uses);

}  // namespace wick::graph
