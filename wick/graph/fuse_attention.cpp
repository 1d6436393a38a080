// Fuses rope, store_in_pages and attention_of_pages to cached_attention. The norms of queries and
// keys before rope become one call, which overwrites the projections.

#include <algorithm>
#include <array>
#include <optional>

#include "wick/base/block_pages.h"
#include "wick/graph/fuse.h"
#include "wick/graph/uses.h"
#include "wick/tensor/fused.h"

namespace wick::graph {
namespace {

// Operands of the matched calls.
enum RopeOperand : size_t { kX, kCos, kSin };
enum StoreOperand : size_t { kRows, kTables, kPositions };
enum PagedOperand : size_t { kQueries, kKeys, kValues, kPagedTables, kLengths, kSlopes, kSinks };

bool same_view(const Value& value, int storage, const std::optional<Layout>& layout) {
  return layout && same_elements(value, {storage, value.dtype, *layout});
}

/// A match that starts from an attention_of_pages call and searches backwards.
class Match {
 public:
  Match(Uses& uses, size_t at) : uses_(uses), at_(at), attention_(uses.node(at)) {}

  /// Whether the calls compute what cached_attention computes.
  bool found() {
    const Value& keys = attention_.inputs[kKeys];
    if (BlockPages::of(keys.dtype, keys.layout.shape())) return false;
    const auto& params = std::get<AttentionParams>(attention_.attributes);
    if (attention_.inputs[kSlopes].storage >= 0 || !params.causal ||
        attention_.outputs[0].dtype != DType::f32) {
      return false;
    }
    return find_stores() && find_rotations() && find_tables() && lengths_fit() && find_qkv();
  }

  void replace() {
    const Value &keys = attention_.inputs[kKeys], &values = attention_.inputs[kValues];
    const Value tables = attention_.inputs[kPagedTables], sinks = attention_.inputs[kSinks];
    Node& node = uses_.node(at_);
    node.inputs = {qkv_, tables_[0], tables_[1], positions_, keys, values, tables, sinks};
    node.part = Part::cached;
    node.called_as = "cached_attention";
    Value& out = node.outputs[0];
    const int64_t width = heads_ * out.layout.shape().back();
    out.layout = Layout::contiguous({rows_, width}, out.layout.offset());
    for (const size_t i : {stores_[0], stores_[1], rotations_[0], rotations_[1]})
      uses_.merge(i, at_);
    for (const std::optional<size_t>& norm : norms_) {
      if (!norm) continue;
      Node& in_place = uses_.node(*norm);
      in_place.outputs[0] = in_place.inputs[0];
      in_place.writes = true;
    }
    if (norms_[0] && norms_[1] && *norms_[0] != *norms_[1]) pair_norms();
  }

 private:
  /// Makes one call of both norms, at the place of the later one: until the attention, nothing else
  /// reads the projections.
  void pair_norms() {
    const Node& of_queries = uses_.node(*norms_[0]);
    const Node& of_keys = uses_.node(*norms_[1]);
    if (!(std::get<Epsilon>(of_queries.attributes).eps ==
          std::get<Epsilon>(of_keys.attributes).eps))
      return;
    const size_t last = std::max(*norms_[0], *norms_[1]);
    Node pair = uses_.node(last);
    pair.part = Part::pair;
    pair.called_as = "rms_norm_pair";
    pair.inputs = {of_queries.inputs[0], of_queries.inputs[1], of_keys.inputs[0],
                   of_keys.inputs[1]};
    pair.outputs = {of_queries.outputs[0], of_keys.outputs[0]};
    uses_.merge(std::min(*norms_[0], *norms_[1]), last);
    uses_.node(last) = std::move(pair);
  }

  /// Finds the store_in_pages calls that last wrote to the caches. No other node may read the
  /// caches between them and the attention.
  bool find_stores() {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Value& cache = attention_.inputs[i == 0 ? kKeys : kValues];
      const auto store = uses_.last_writer(cache, at_);
      if (!store || uses_.node(*store).op != Op::store_in_pages) return false;
      const Node& node = uses_.node(*store);
      if (!same_elements(node.outputs[0], cache) || node.inputs[kRows].dtype != DType::f32 ||
          !same_elements(node.inputs[kTables], attention_.inputs[kPagedTables]) ||
          uses_.is_read(cache, *store, at_) || is_written(node, *store)) {
        return false;
      }
      stores_[i] = *store;
    }
    positions_ = uses_.node(stores_[0]).inputs[kPositions];
    return same_elements(positions_, uses_.node(stores_[1]).inputs[kPositions]);
  }

  /// Finds the rope calls of queries and keys. No other node may read their results.
  bool find_rotations() {
    const Value& queries = attention_.inputs[kQueries];
    const Shape& q = queries.layout.shape();
    heads_ = q[1], rows_ = q[0] * q[2];
    const Value& keys = uses_.node(stores_[0]).inputs[kRows];
    const std::array<const Value*, 2> turned = {&queries, &keys};
    for (size_t i = 0; i < 2; ++i) {
      const auto rotation = uses_.producer(*turned[i], at_);
      if (!rotation || uses_.reads(*turned[i]) != 1) return false;
      const Node& node = uses_.node(*rotation);
      if (node.op != Op::rope_interleaved || node.inputs[kX].dtype != DType::f32 ||
          node.inputs[kX].layout.rank() != 3 || is_written(node, *rotation)) {
        return false;
      }
      rotations_[i] = *rotation;
    }
    const Value& q_out = uses_.node(rotations_[0]).outputs[0];
    const Value& k_out = uses_.node(rotations_[1]).outputs[0];
    const Layout tokens = q_out.layout.transpose(0, 1);  // [t, h, d]
    if (!(tokens.shape() == Shape{rows_, heads_, q[3]})) return false;
    const auto by_sequence = tokens.reshape({q[0], q[2], heads_, q[3]});
    return by_sequence && same_view(queries, q_out.storage, by_sequence->transpose(1, 2)) &&
           same_view(keys, k_out.storage, k_out.layout.transpose(0, 1));
  }

  /// Finds the cosine and sine tables from which both rope calls select the rows of the positions.
  bool find_tables() {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const auto table = table_of(rotations_[0], kCos + i),
                 other = table_of(rotations_[1], kCos + i);
      if (!table || !other || !same_elements(*table, *other)) return false;
      tables_[i] = *table;
    }
    return true;
  }

  /// Returns the table from which an operand of a rope call selects the rows of the positions.
  std::optional<Value> table_of(size_t rotation, size_t operand) const {
    const Value& angles = uses_.node(rotation).inputs[operand];
    const auto producer = uses_.producer(angles, rotation);
    if (!producer) return {};
    const Node& node = uses_.node(*producer);
    if (node.op != Op::index_select || std::get<Selection>(node.attributes).dim != 0 ||
        node.inputs[0].layout.rank() != 2 || node.inputs[0].dtype != DType::f32 ||
        !same_elements(node.outputs[0], angles) || !same_elements(node.inputs[1], positions_) ||
        is_written(node, *producer)) {
      return {};
    }
    return node.inputs[0];
  }

  /// Whether each sequence's length is the position of its last row plus 1.
  bool lengths_fit() const {
    const Value& lengths = attention_.inputs[kLengths];
    const auto producer = uses_.producer(lengths, at_);
    if (!producer) return false;
    const Node& node = uses_.node(*producer);
    if (node.op != Op::affine || !same_elements(node.outputs[0], lengths)) return false;
    const auto& [mul, add] = std::get<Numbers>(node.attributes);
    if (mul.f != 1 || add.f != 1 || is_written(node, *producer)) return false;
    const int64_t sequences = attention_.inputs[kQueries].layout.shape()[0];
    const int64_t each = rows_ / sequences;
    const auto by_sequence = positions_.layout.reshape({sequences, each});
    return by_sequence && same_view(node.inputs[0], positions_.storage,
                                    by_sequence->narrow(1, each - 1, 1).squeeze(1));
  }

  /// Returns the operand [h, t, d] of rotation i, or, if that is the result of an rms_norm, the
  /// rms_norm's operand, and sets norms_[i].
  Value in_front_of_norm(size_t i) {
    const Value& x = uses_.node(rotations_[i]).inputs[kX];
    const auto norm = uses_.producer(x, rotations_[i]);
    if (!norm || uses_.reads(x) != 1) return x;
    const Node& node = uses_.node(*norm);
    const Value& in = node.inputs[0];
    if (node.op != Op::rms_norm || in.dtype != DType::f32 || in.layout.rank() != 3 ||
        !same_view(x, node.outputs[0].storage, node.outputs[0].layout.transpose(0, 1)) ||
        is_written(node, *norm)) {
      return x;
    }
    norms_[i] = norm;
    return {in.storage, in.dtype, in.layout.transpose(0, 1)};
  }

  /// Whether the norms may overwrite the projections, because nothing else reads these.
  bool norms_fit() const {
    if (!norms_[0] && !norms_[1]) return true;
    constexpr size_t kReaders = 3;  // those of queries, of keys and of values
    return uses_.producer(qkv_, at_).has_value() && uses_.reads(qkv_) == kReaders;
  }

  /// Finds the tensor whose rows hold queries, keys and values side by side. Queries and keys may
  /// go through a norm first.
  bool find_qkv() {
    const Value q = in_front_of_norm(0), k = in_front_of_norm(1);  // [h, t, d]
    const Value& v = uses_.node(stores_[1]).inputs[kRows];         // [t, g, e]
    const int64_t d = q.layout.shape()[2], g = k.layout.shape()[0], e = v.layout.shape()[2];
    const int64_t width = heads_ * d + g * (d + e);
    const Layout rows({rows_, width}, {q.layout.stride(1), q.layout.stride(2)}, q.layout.offset());
    const auto columns = [&](int64_t from, int64_t count, int64_t size) {
      return rows.narrow(1, from, count * size).reshape({rows_, count, size});
    };
    const auto own_q = columns(0, heads_, d), own_k = columns(heads_ * d, g, d);
    qkv_ = {q.storage, q.dtype, rows};
    return own_q && own_k && same_view(q, q.storage, own_q->transpose(0, 1)) &&
           same_view(k, q.storage, own_k->transpose(0, 1)) &&
           same_view(v, q.storage, columns((heads_ + g) * d, g, e)) && norms_fit();
  }

  /// Whether an operand of a node before the attention is overwritten between that node and the
  /// attention.
  bool is_written(const Node& node, size_t node_at) const {
    for (const Value& v : node.inputs) {
      if (uses_.is_written(v, node_at, at_)) return true;
    }
    return false;
  }

  Uses& uses_;
  size_t at_;
  const Node& attention_;
  std::array<size_t, 2> stores_{}, rotations_{};
  std::array<std::optional<size_t>, 2> norms_{};  // of queries and keys, before the rotations
  Value qkv_, positions_;
  std::array<Value, 2> tables_;
  int64_t heads_ = 0, rows_ = 0;
};

}  // namespace

void fuse_cached_attention(Uses& uses) {
  for (size_t i = 0; i < uses.count(); ++i) {
    if (uses.node(i).op != Op::attention || uses.node(i).part != Part::paged) continue;
    Match match(uses, i);
    if (match.found()) match.replace();
  }
}

}  // namespace wick::graph
