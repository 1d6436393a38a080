#include "wick/nn/attention.h"

#include "wick/base/block_pages.h"

namespace wick::nn {
namespace {

/// The position of each sequence's last row, plus one.
Tensor lengths_of(const Tensor& positions, int64_t sequences) {
  const int64_t each = positions.size(0) / sequences;
  const Tensor last = positions.reshape({sequences, each}).narrow(1, each - 1, 1).squeeze(1);
  return affine(last, 1, 1);
}

Tensor rotated(const Tensor& x, const Rotation& rotation) {
  return rotation.cos.defined() ? rope_of_tokens(x, rotation.cos, rotation.sin, true) : x;
}

/// [t, h, d] → [b, h, t/b, d] as a view.
Tensor by_sequence(const Tensor& rows, int64_t sequences) {
  return rows.reshape({sequences, rows.size(0) / sequences, rows.size(1), rows.size(2)})
      .transpose(1, 2);
}

}  // namespace

SequenceRows::SequenceRows(const Tensor& of_rows, const Tensor& of_tables)
    : positions(of_rows), tables(of_tables), lengths(lengths_of(of_rows, of_tables.size(0))) {}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const SequenceRows& rows,
              const Rotation& rotation, const Tensor& key_pages, const Tensor& value_pages,
              const AttentionOptions& options, const Tensor& sinks) {
  // Pages of blocks are stored in the layout that the ops read (block_pages.h), so nothing is
  // transposed.
  const bool of_blocks = BlockPages::of(key_pages.dtype(), key_pages.shape()).has_value();
  const Tensor keys = of_blocks ? key_pages : key_pages.transpose(2, 3);
  if (k.defined()) store_in_pages(keys, rotated(k, rotation), rows.tables, rows.positions);
  if (v.defined()) store_in_pages(value_pages, v, rows.tables, rows.positions);
  const Tensor y = attention_of_pages(by_sequence(rotated(q, rotation), rows.tables.size(0)), keys,
                                      value_pages, rows.tables, rows.lengths, options, {}, sinks);
  return y.transpose(1, 2).reshape({q.size(0), q.size(1) * y.size(3)});
}

Tensor attend_within(const Tensor& q, const Tensor& k, const Tensor& v, const Rotation& rotation,
                     const AttentionOptions& options, const Tensor& mask) {
  const Tensor y =
      attention(by_sequence(rotated(q, rotation), 1), by_sequence(rotated(k, rotation), 1),
                by_sequence(v, 1), options, mask);
  return y.transpose(1, 2).reshape({q.size(0), q.size(1) * v.size(2)});
}

}  // namespace wick::nn
