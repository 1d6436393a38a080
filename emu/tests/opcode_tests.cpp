// The directed opcode tests' program. --list-tested prints the mnemonics they cover.

#include <gtest/gtest.h>

#include <string_view>

#include "emu/tests/ops.h"

int main(int argc, char** argv) {
  using emu::test::Target;
  emu::test::register_ops({"gfx1100", false});
  emu::test::register_ops({"gfx1100", true});
  if (argc > 1 && std::string_view(argv[1]) == "--list-tested") {
    emu::test::print_tested();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
