#pragma once

#include <optional>

#include "wick/graph/graph.h"

namespace wick::graph {

class Uses;

/// Replaces compositions of calls by fused calls that compute the same bits, and removes calls
/// whose results aren't read. The patterns are:
/// - rope of queries and keys, store_in_pages and attention_of_pages: cached_attention; the
///   norms of queries and keys before it, of one epsilon: rms_norm_pair;
/// - silu(a) * b: silu_mul;
/// - rms_norm and an addition of a residual after it: rms_norm_add;
/// - rms_norm, silu_mul or gelu(a) * b of two halves, or cached_attention before a linear, and an
///   addition after it: linear with fused steps;
/// - the choice of experts from a router's logits: route_experts;
/// - silu_mul of two halves before a grouped_linear: grouped_linear with this step;
/// - the clamped SwiGLU of experts, with their biases: gate_experts;
/// - the weighted sum of experts' results, and an addition after it: combine_experts.
void fuse(Graph& graph);

/// The cached_attention pattern of fuse().
void fuse_cached_attention(Uses& uses);
/// The patterns of experts.
void fuse_experts(Uses& uses);
/// Returns the value whose last dim consists of the halves a and b, if they are neighbours.
std::optional<Value> joined(const Value& a, const Value& b);

}  // namespace wick::graph
