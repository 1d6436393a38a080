// Recurrences over sequences: the checks of slots, and the columns that kernels get.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/recurrent/recurrent_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

constexpr int64_t kColumns = 64;                        // columns of a task
constexpr int64_t kConvColumns = 1024, kConvRows = 64;  // of a task of causal_conv
constexpr int64_t kGathered = 4096;  // elements of an operand that are gathered at once
// Below so many multiplications a second thread costs more than it saves.
constexpr int64_t kWorkPerThread = 32768;

const RecurrentKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, recurrent_kernels, no_dots);
}

/// The states of a call's sequences. Errors: those of Backend::causal_conv.
class States {
 public:
  States(const char* op, const Recurrence& where, int64_t rows)
      : data_(static_cast<float*>(where.state.data) + where.state.layout.offset()),
        row_(where.state.layout.stride(0)) {
    const Layout& slots = where.slots.layout;
    const int64_t held = where.state.layout.shape()[0], count = slots.shape()[0];
    each_ = rows / count;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t slot = 0;
      std::memcpy(
          &slot,
          static_cast<const uint32_t*>(where.slots.data) + slots.offset() + i * slots.stride(0),
          sizeof slot);
      if (slot >= held) {
        throw Error(ErrorKind::index, op, "slot out of range", std::to_string(slot),
                    "there are " + std::to_string(held));
      }
      slots_.push_back(int64_t{slot});
    }
    std::vector<int64_t> sorted = slots_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) return;
    throw Error(ErrorKind::index, op, "two sequences have one slot", std::to_string(*twice));
  }

  int64_t sequences() const { return static_cast<int64_t>(slots_.size()); }
  /// Rows of a sequence.
  int64_t each() const { return each_; }
  float* of(int64_t sequence) const { return data_ + slots_[static_cast<size_t>(sequence)] * row_; }

 private:
  float* data_;
  int64_t row_, each_ = 0;
  std::vector<int64_t> slots_;
};

/// Rows of some columns of an f32 operand [t, .., n]: in place if the columns lie side by side,
/// else gathered.
class Columns {
 public:
  explicit Columns(const ConstView& x)
      : layout_(x.layout), data_(static_cast<const float*>(x.data)) {
    const int last = layout_.rank() - 1;
    column_step_ = layout_.stride(last);
    dense_ = column_step_ == 1 || layout_.shape()[last] == 1;
  }
  bool dense() const { return dense_; }

  struct Rows {
    const float* first;
    int64_t step;
  };
  /// Rows from `row` on. `head` is an index of the second of three dims.
  Rows rows(int64_t row, int64_t count, int64_t head, int64_t column, int64_t columns,
            std::vector<float>& gathered) const {
    const float* from = data_ + layout_.offset() + row * layout_.stride(0) + column * column_step_;
    if (layout_.rank() > 2) from += head * layout_.stride(1);
    if (dense_) return {from, layout_.stride(0)};
    gathered.resize(static_cast<size_t>(count * columns));
    float* to = gathered.data();
    for (int64_t i = 0; i < count; ++i, from += layout_.stride(0)) {
      for (int64_t j = 0; j < columns; ++j) *to++ = from[j * column_step_];
    }
    return {gathered.data(), columns};
  }

 private:
  Layout layout_;
  const float* data_;
  int64_t column_step_;
  bool dense_;
};

/// How many rows of a sequence a kernel gets at once: all, or some that are gathered.
int64_t rows_at_once(int64_t each, bool dense, int64_t widest) {
  return dense ? each : std::min(each, std::max<int64_t>(1, kGathered / widest));
}

/// A number of an f32 vector or matrix.
const float* number(const ConstView& x, int64_t i, int64_t j = 0) {
  const int64_t second = x.layout.rank() > 1 ? j * x.layout.stride(1) : 0;
  return static_cast<const float*>(x.data) + x.layout.offset() + i * x.layout.stride(0) + second;
}

/// Calls body(sequence, head, first column, columns) for all columns, on all threads.
template <class Body>
void for_each_task(const States& states, int64_t heads, int64_t columns, int64_t work_per_column,
                   const Body& body) {
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const int64_t work =
      std::max<int64_t>(1, states.each() * work_per_column * std::min(columns, kColumns));
  parallel_for(states.sequences() * heads * blocks, kWorkPerThread / work,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % blocks * kColumns, head = i / blocks % heads;
                   body(i / blocks / heads, head, first, std::min(kColumns, columns - first));
                 }
               });
}

/// What the scans have in common: x or v [t, h, p], b or k and c or q [t, g, m].
struct Scan {
  const char* op;
  ConstView x, b, c, decay, factor;
};

template <class Numbers>
void run_scan(const View& out, const Scan& of, const Recurrence& where,
              void (*kernel)(const ScanColumns&), const Numbers& numbers) {
  const Shape &shape = of.x.layout.shape(), &shared = of.b.layout.shape();
  const int64_t heads = shape[1], columns = shape[2], m = shared[2], each_group = heads / shared[1];
  const States states(of.op, where, shape[0]);
  const Columns xs(of.x), bs(of.b), cs(of.c);
  const Layout &y = out.layout, &state = where.state.layout;
  const int64_t at_once = rows_at_once(states.each(), xs.dense() && bs.dense() && cs.dense(),
                                       std::max({kColumns, m, int64_t{1}}));
  const auto task = [&](int64_t sequence, int64_t head, int64_t first, int64_t count) {
    const int64_t begin = sequence * states.each(), end = begin + states.each();
    std::vector<float> gathered[3];
    for (int64_t row = begin; row < end; row += at_once) {
      const int64_t rows = std::min(at_once, end - row), group = head / each_group;
      const Columns::Rows x = xs.rows(row, rows, head, first, count, gathered[0]),
                          b = bs.rows(row, rows, group, 0, m, gathered[1]),
                          c = cs.rows(row, rows, group, 0, m, gathered[2]);
      ScanColumns part{.x = x.first,
                       .y = static_cast<float*>(out.data) + y.offset() + row * y.stride(0) +
                            head * y.stride(1) + first,
                       .x_step = x.step,
                       .y_step = y.stride(0),
                       .rows = rows,
                       .columns = count,
                       .b = b.first,
                       .c = c.first,
                       .b_step = b.step,
                       .c_step = c.step,
                       .m = m,
                       .decay = number(of.decay, row, head),
                       .factor = number(of.factor, row, head),
                       .decay_step = of.decay.layout.stride(0),
                       .factor_step = of.factor.layout.stride(0),
                       .a = 0,
                       .d = nullptr,
                       .state = states.of(sequence) + head * state.stride(1) + first,
                       .state_step = state.stride(2)};
      numbers(part, head);
      kernel(part);
    }
  };
  for_each_task(states, heads, columns, m, task);
}

}  // namespace

void CpuBackend::causal_conv(const View& out, const ConstView& x, const ConstView& weight,
                             const ConstView& bias, const Recurrence& where) {
  if (out.layout.elems() == 0) return;
  const int64_t channels = weight.layout.shape()[0], taps = weight.layout.shape()[1];
  const States states("causal_conv", where, x.layout.shape()[0]);
  const Columns xs(x);
  const Columns weights({weight.data, weight.dtype, weight.layout.transpose(0, 1)});
  const Layout &y = out.layout, &state = where.state.layout;
  const int64_t each = states.each(), before = taps - 1;
  // Long pieces of rows, because hardware prefetchers follow them.
  const int64_t wide = xs.dense() ? kConvColumns : kColumns;
  const int64_t tiles = (channels + wide - 1) / wide, parts = (each + kConvRows - 1) / kConvRows;
  const int64_t work = std::min(channels, wide) * std::min(each, kConvRows) * taps;
  const auto piece = [&](int64_t sequence, int64_t part, int64_t first) {
    const int64_t begin = sequence * each, row = part * kConvRows;
    const int64_t rows = std::min(kConvRows, each - row), count = std::min(wide, channels - first);
    std::vector<float> gathered[3];
    const Columns::Rows of_taps = weights.rows(0, taps, 0, first, count, gathered[0]);
    if (bias.data != nullptr) {
      for (int64_t i = 0; i < count; ++i) gathered[1].push_back(*number(bias, first + i));
    }
    const int64_t from = std::max<int64_t>(0, row - before);
    const Columns::Rows in = xs.rows(begin + from, row + rows - from, 0, first, count, gathered[2]);
    kernels(isa_).conv(
        {.x = in.first,
         .y = static_cast<float*>(out.data) + y.offset() + (begin + row) * y.stride(0) + first,
         .x_step = in.step,
         .y_step = y.stride(0),
         .x_first = from,
         .first = row,
         .rows = rows,
         .channels = count,
         .weight = of_taps.first,
         .weight_step = of_taps.step,
         .bias = bias.data != nullptr ? gathered[1].data() : nullptr,
         .state = states.of(sequence) + first,
         .state_step = state.stride(1),
         .taps = taps});
  };
  parallel_for(states.sequences() * parts * tiles, kWorkPerThread / std::max<int64_t>(1, work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   piece(i / tiles / parts, i / tiles % parts, i % tiles * wide);
                 }
               });
  // Ascending: a row of the state comes from a later one, or from x.
  for (int64_t s = 0; s < states.sequences(); ++s) {
    for (int64_t j = 0; j < before; ++j) {
      const int64_t row = each - before + j;
      float* to = states.of(s) + j * state.stride(1);
      if (row < 0) {
        std::copy_n(states.of(s) + (row + before) * state.stride(1), channels, to);
      } else {
        std::vector<float> gathered;
        const Columns::Rows in = xs.rows(s * each + row, 1, 0, 0, channels, gathered);
        std::copy_n(in.first, channels, to);
      }
    }
  }
}

void CpuBackend::ssm_scan(const View& out, const SsmScan& of, const Recurrence& where) {
  if (out.layout.elems() == 0) return;
  run_scan(out, {"ssm_scan", of.x, of.b, of.c, of.dt, of.dt}, where, kernels(isa_).ssm,
           [&](ScanColumns& part, int64_t head) {
             part.a = *number(of.a, head);
             if (of.d.data != nullptr) part.d = number(of.d, head);
           });
}

void CpuBackend::gated_delta_scan(const View& out, const GatedDeltaScan& of,
                                  const Recurrence& where) {
  if (out.layout.elems() == 0) return;
  run_scan(out, {"gated_delta_scan", of.v, of.k, of.q, of.g, of.beta}, where, kernels(isa_).delta,
           [](ScanColumns&, int64_t) {});
}

}  // namespace wick::cpu
