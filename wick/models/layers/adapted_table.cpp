#include "wick/models/layers/adapted_table.h"

namespace wick::models {

AdaptedTable::AdaptedTable(const std::string& name, const Tensor& table,
                           std::span<const Adapter> adapters, Device device)
    : base_(table, device) {
  for (size_t i = 0; i < adapters.size(); ++i) {
    const MatrixChange* const change = adapters[i].find_table(name, table.size(0), table.size(1));
    if (change == nullptr) continue;
    const bool factors = change->a.defined();
    updates_.push_back(
        {.adapter = static_cast<int64_t>(i),
         .rows = nn::Embedding(factors ? change->a : change->whole, device),
         .b = factors ? std::optional(nn::Linear(change->b, {}, device, false)) : std::nullopt});
  }
}

Tensor AdaptedTable::operator()(const Tensor& ids, Runs runs) const {
  const Tensor base = base_(ids);
  if (!runs.scales.defined()) return base;
  Tensor y = base;
  for (const Update& update : updates_) {
    const Tensor read = update.rows(ids);
    const Tensor difference = update.b ? (*update.b)(read, runs.sequences) : read - base;
    y = y + difference * runs.scales.narrow(1, update.adapter, 1);
  }
  return y;
}

}  // namespace wick::models
