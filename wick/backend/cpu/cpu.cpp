#include "wick/backend/cpu/cpu.h"

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::cpu {

int threads() { return ThreadPool::global().threads(); }

void set_threads(int count) { ThreadPool::global().set_threads(count); }

std::string isa() { return std::string(name(selected_isa())); }

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (Isa isa : available_isas()) names.emplace_back(name(isa));
  return names;
}

}  // namespace wick::cpu
