#include <cstdlib>
#include <span>
#include <string_view>
#include <unordered_map>

#include "emu/exec/launch.h"

namespace emu {

// What is built for a newer host than this file exports nothing but its tables: the map of names is
// made here, where any host can run.
#define EMU_VARIANTS(each) each(v3) each(v4) each(v3_checked) each(v4_checked)
#define EMU_DECLARE(variant)             \
  namespace variant {                    \
  std::span<const Row> table(int index); \
  }
EMU_VARIANTS(EMU_DECLARE)

namespace {

template <auto kTable>
const Row* find_row(std::string_view name) {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string_view, const Row*>;
    for (int i = 0; !kTable(i).empty(); ++i) {
      for (const Row& row : kTable(i)) all->emplace(row.name, &row);
    }
    return all;
  }();
  const auto it = rows->find(name);
  return it == rows->end() ? nullptr : it->second;
}

}  // namespace

RowChoice select_rows(bool checked) {
  const char* asked = std::getenv("WICK_EMU_ISA");
  const bool wide = asked == nullptr ? __builtin_cpu_supports("x86-64-v4")
                                     : std::string_view(asked) == "v4";
  const Rows unchecked = wide ? &find_row<&v4::table> : &find_row<&v3::table>;
  if (!checked) return {unchecked, nullptr};
  return {wide ? &find_row<&v4_checked::table> : &find_row<&v3_checked::table>, unchecked};
}

}  // namespace emu
