// Main program of the directed opcode tests. --list-tested prints the mnemonics that they cover.

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <string_view>

#include "emu/arch/architecture.h"
#include "emu/exec/launch.h"
#include "emu/tests/covered.h"
#include "emu/tests/ops.h"
#include "emu/tests/suites.h"

namespace {

/// Reads names from standard input and prints those that the architecture's tables contain.
int print_implemented(const char* name) {
  const emu::Architecture* architecture = emu::find_architecture(name);
  if (architecture == nullptr) return 1;
  const emu::Rows rows = emu::select_rows(false, architecture->generation).rows;
  for (std::string name; std::getline(std::cin, name);) {
    if (rows(name) != nullptr) std::cout << name << '\n';
  }
  return 0;
}

/// Reads names from standard input and prints those under which the chip has an instruction.
int print_known(const char* arch) {
  for (std::string name; std::getline(std::cin, name);) {
    if (emu::test::has_under_name(arch, name)) std::cout << name << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const emu::test::Target& chip : emu::test::all_chips()) emu::test::register_ops(chip);
  // One chip of each generation that has waves of 64, too.
  for (const char* arch : {"gfx1030", "gfx1100", "gfx1200"}) emu::test::register_ops({arch, true});
  emu::test::register_scalar();
  emu::test::register_execution();
  emu::test::register_lanes();
  emu::test::register_memory();
  emu::test::register_atomics();
  emu::test::register_buffers();
  emu::test::register_typed_buffers();
  emu::test::register_images();
  emu::test::register_matrix();
  emu::test::register_dual();
  emu::test::register_mistakes();
  emu::test::register_decode();
  emu::test::register_decode_scalar();
  emu::test::register_decode_memory();
  emu::test::register_decode_known();
  emu::test::register_gfx9();
  emu::test::register_gfx9_registers();
  emu::test::register_gfx9_matrix();
  emu::test::register_gfx9_sparse();
  emu::test::register_gfx12();
  emu::test::register_float8();
  emu::test::register_gfx950();
  emu::test::register_lds_more();
  emu::test::register_covered();
  if (argc > 2 && std::string_view(argv[1]) == "--implemented") return print_implemented(argv[2]);
  if (argc > 2 && std::string_view(argv[1]) == "--known") return print_known(argv[2]);
  if (argc > 1 && std::string_view(argv[1]) == "--list-tested") {
    emu::test::print_tested();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
