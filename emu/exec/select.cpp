#include <cstdlib>
#include <string_view>

#include "emu/exec/launch.h"

namespace emu {

#define EMU_VARIANTS(each) each(v3) each(v4) each(v3_checked) each(v4_checked)
#define EMU_DECLARE(variant) \
  namespace variant {        \
  const Row* find_row(std::string_view name); \
  }
EMU_VARIANTS(EMU_DECLARE)

Rows select_rows(bool checked) {
  const char* asked = std::getenv("WICK_EMU_ISA");
  const bool wide = asked == nullptr ? __builtin_cpu_supports("x86-64-v4")
                                     : std::string_view(asked) == "v4";
  if (wide) return checked ? &v4_checked::find_row : &v4::find_row;
  return checked ? &v3_checked::find_row : &v3::find_row;
}

}  // namespace emu
