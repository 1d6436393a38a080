#include <cstdlib>
#include <span>
#include <string_view>
#include <unordered_map>

#include "emu/arch/architecture.h"
#include "emu/exec/launch.h"

namespace emu {

// Files that are compiled for a newer host export nothing but their tables. The map of names is
// built here, in code that runs on any host.
#define EMU_VARIANTS(each) each(v3) each(v4) each(v3_checked) each(v4_checked)
#define EMU_DECLARE(variant)       \
  namespace variant {              \
  std::span<const Table> tables(); \
  }
EMU_VARIANTS(EMU_DECLARE)

namespace {

template <auto kTables, int kGeneration>
const Row* find_row(std::string_view name) {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string_view, const Row*>;
    for (const int generation : {kGeneration, 0}) {
      for (const Table& table : kTables()) {
        if (table.generation != generation) continue;
        for (const Row& row : table.rows) all->emplace(row.name, &row);
      }
    }
    return all;
  }();
  auto it = rows->find(name);
  if (it == rows->end()) it = rows->find(row_name(kGeneration, name));
  return it == rows->end() ? nullptr : it->second;
}

template <auto kTables>
Rows rows_of(int generation) {
  switch (generation) {
    case 9:
      return &find_row<kTables, 9>;
    case 10:
      return &find_row<kTables, 10>;
    case 11:
      return &find_row<kTables, 11>;
    default:
      return &find_row<kTables, 12>;
  }
}

}  // namespace

RowChoice select_rows(bool checked, int generation) {
  const char* asked = std::getenv("WICK_EMU_ISA");
  const bool wide =
      __builtin_cpu_supports("x86-64-v4") && (asked == nullptr || std::string_view(asked) != "v3");
  const Rows unchecked = wide ? rows_of<&v4::tables>(generation) : rows_of<&v3::tables>(generation);
  if (!checked) return {unchecked, nullptr};
  return {
      wide ? rows_of<&v4_checked::tables>(generation) : rows_of<&v3_checked::tables>(generation),
      unchecked};
}

}  // namespace emu
