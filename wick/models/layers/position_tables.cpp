#include "wick/models/layers/position_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "wick/math/scalar.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/ops.h"

namespace wick::models {

namespace {

nn::Rotation rotation_of(nn::RopeTable& table, const Tensor& positions, int64_t reach) {
  table.reserve(reach);
  return {index_select(table.cos(0, reach), positions, 0),
          index_select(table.sin(0, reach), positions, 0)};
}

}  // namespace

PositionTables::PositionTables(const DecoderConfig& config, Device device)
    : device_(device), chunk_(config.chunk), temperature_(config.temperature) {
  for (const nn::RopeOptions& options : config.ropes) {
    ropes_.push_back({nn::RopeTable(options, device), {}});
    if (options.long_divisors.empty()) continue;
    nn::RopeOptions of_long = options;
    of_long.frequency_divisors = std::exchange(of_long.long_divisors, {});
    ropes_.back().of_long.emplace(of_long, device);
  }
}

std::vector<nn::Rotation> PositionTables::rotations(const Tensor& positions, const Tensor& is_long,
                                                    int64_t reach) const {
  std::vector<nn::Rotation> result;
  const std::lock_guard lock(mutex_);
  for (Rope& rope : ropes_) {
    nn::Rotation rotation = rotation_of(rope.table, positions, reach);
    if (rope.of_long && is_long.defined()) {
      const nn::Rotation of_long = rotation_of(*rope.of_long, positions, reach);
      rotation = {where(is_long, of_long.cos, rotation.cos),
                  where(is_long, of_long.sin, rotation.sin)};
    }
    result.push_back(rotation);
  }
  return result;
}

const PositionTables::Chunks& PositionTables::chunks_of(int64_t pages) const {
  Chunks& chunks = chunks_[pages];
  if (chunks.offsets.defined()) return chunks;
  constexpr int64_t kPage = nn::KvCache::kPage;
  const int64_t each = chunk_ / kPage, count = (pages + each - 1) / each;
  std::vector<uint32_t> offsets, numbers, columns;
  for (int64_t p = 0; p < pages * kPage; ++p) {
    offsets.push_back(static_cast<uint32_t>(p % chunk_));
    numbers.push_back(static_cast<uint32_t>(p / chunk_));
  }
  // Columns that the last chunk lacks aren't read, because its rows are before them.
  for (int64_t i = 0; i < count * each; ++i) {
    columns.push_back(static_cast<uint32_t>(std::min(i, pages - 1)));
  }
  chunks.offsets = Tensor::from(offsets, {pages * kPage}, device_);
  chunks.numbers = Tensor::from(numbers, {pages * kPage}, device_);
  chunks.pages = Tensor::from(columns, {count, each}, device_);
  return chunks;
}

std::optional<nn::SequenceRows> PositionTables::within_chunks(const Tensor& positions,
                                                              const Tensor& tables) const {
  if (chunk_ == 0) return std::nullopt;
  const int64_t sequences = tables.size(0), pages = tables.size(1);
  if (pages * nn::KvCache::kPage <= chunk_) return nn::SequenceRows(positions, tables);
  const std::lock_guard lock(mutex_);
  const Chunks& chunks = chunks_of(pages);
  const Tensor first = positions.reshape({sequences, positions.size(0) / sequences})
                           .narrow(1, 0, 1)
                           .squeeze(1)
                           .contiguous();
  const Tensor columns =
      index_select(chunks.pages, index_select(chunks.numbers, first, 0), 0);  // [sequences, each]
  return nn::SequenceRows(index_select(chunks.offsets, positions, 0), gather(tables, columns, 1));
}

Tensor PositionTables::temperatures(const Tensor& positions, int64_t reach) const {
  if (temperature_.scale == 0.0f) return {};
  const std::lock_guard lock(mutex_);
  if (const int64_t have = factors_.defined() ? factors_.size(0) : 0; have < reach) {
    std::vector<float> factors;
    for (int64_t p = 0; p < std::max<int64_t>({reach, 2 * have, 256}); ++p) {
      const double position = static_cast<double>(p) + static_cast<double>(temperature_.offset);
      const double steps = std::floor(position / static_cast<double>(temperature_.length));
      factors.push_back(static_cast<float>(1.0 + static_cast<double>(temperature_.scale) *
                                                     math::log(steps + 1.0)));
    }
    const auto count = static_cast<int64_t>(factors.size());
    factors_ = Tensor::from(factors, {count}, device_);
  }
  return index_select(factors_.narrow(0, 0, reach), positions, 0)
      .reshape({positions.size(0), 1, 1});
}

}  // namespace wick::models
