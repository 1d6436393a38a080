#include "emu/exec/rows/rows.h"

#include <unordered_map>

namespace emu::EMU_VARIANT {

const Row* find_row(std::string_view name) {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string_view, const Row*>;
    for (const auto table : {float_rows(), integer_rows(), compare_rows(), scalar_rows(),
                             control_rows(), global_rows(), flat_rows(), buffer_rows(),
                             smem_rows(), atomic_rows(), lds_rows()}) {
      for (const Row& row : table) all->emplace(row.name, &row);
    }
    return all;
  }();
  const auto it = rows->find(name);
  return it == rows->end() ? nullptr : it->second;
}

}  // namespace emu::EMU_VARIANT
