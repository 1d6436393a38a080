#include "emu/object/functions.h"

#include <algorithm>
#include <tuple>

namespace emu {

std::vector<FunctionSymbol> cover_text(std::vector<FunctionSymbol> found, uint64_t begin,
                                       uint64_t end) {
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.address, a.name) < std::tie(b.address, b.name);
  });
  std::vector<FunctionSymbol> functions;
  uint64_t at = begin;
  const auto fill = [&](uint64_t to) {
    if (to > at) functions.push_back({"text+" + std::to_string(at - begin), at, to - at});
  };
  for (size_t i = 0; i < found.size(); ++i) {
    const uint64_t next = i + 1 < found.size() ? found[i + 1].address : end;
    FunctionSymbol& function = found[i];
    if (next == function.address) continue;  // another name of the same function
    if (function.size == 0 || function.size > next - function.address) {
      function.size = next - function.address;
    }
    fill(function.address);
    at = function.address + function.size;
    function.entries = {function.address};
    functions.push_back(std::move(function));
  }
  fill(end);
  return functions;
}

void add_entry(std::vector<FunctionSymbol>& functions, uint64_t entry) {
  const auto after = std::upper_bound(
      functions.begin(), functions.end(), entry,
      [](uint64_t at, const FunctionSymbol& function) { return at < function.address; });
  if (after == functions.begin()) return;
  FunctionSymbol& function = *std::prev(after);
  if (entry - function.address < function.size) function.entries.push_back(entry);
}

}  // namespace emu
