#include "emu/tests/covered.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "emu/tests/assembler.h"
#include "emu/tests/names.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

struct Records {
  std::map<std::string, bool> cases;                    // whether a chip runs it
  std::set<std::string> opcodes;                        // as the cases name them
  std::map<std::string, std::set<std::string>> tested;  // names on each chip
};

Records& records() {
  static Records all;
  return all;
}

/// The opcodes that have another name on some chip, by these names.
const std::multimap<std::string, std::string>& renamed() {
  static const std::multimap<std::string, std::string> all = [] {
    std::multimap<std::string, std::string> names;
    for (const Target& chip : all_chips()) {
      for (const std::string& opcode : records().opcodes) {
        if (name_on(chip, opcode) != opcode) names.emplace(name_on(chip, opcode), opcode);
      }
    }
    return names;
  }();
  return all;
}

void every_case_runs() {
  for (const auto& [name, runs] : records().cases) EXPECT_TRUE(runs) << "no chip runs " << name;
}

void chip_lacks_none(const Target& chip) {
  const std::set<std::string>& tested = records().tested[chip.arch];
  for (const std::string& opcode : records().opcodes) {
    const std::string name = name_on(chip, opcode);
    // LLVM knows some instructions for images on gfx90a; the emulator has none on gfx9.
    if (is_gfx9(chip) && opcode.starts_with("image_")) continue;
    const bool own = !renamed().contains(opcode);
    if (!own || tested.contains(name) || !has_instruction(chip.arch, name)) continue;
    ADD_FAILURE() << chip.arch << " has " << name << ", which only other chips test";
  }
}

void add(const std::string& name, std::function<void()> body) {
  class Covered : public testing::Test {
   public:
    explicit Covered(std::function<void()> body) : body_(std::move(body)) {}
    void TestBody() override { body_(); }

   private:
    std::function<void()> body_;
  };
  testing::RegisterTest("Covered", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [body]() -> testing::Test* { return new Covered(body); });
}

}  // namespace

std::string suite_on(const std::string& suite, const Target& target) {
  return suite + "_" + target.arch + (target.wave64 ? "_wave64" : "");
}

bool note_case(const std::string& suite, const std::string& name, const Target& target,
               const std::vector<std::string>& mnemonics, const std::vector<std::string>& opcodes) {
  bool& runs = records().cases[suite + "." + name];
  if (!std::all_of(mnemonics.begin(), mnemonics.end(),
                   [&](const std::string& each) { return has_instruction(target.arch, each); })) {
    return false;
  }
  runs = true;
  for (const std::string& opcode : opcodes) {
    records().opcodes.insert(opcode);
    records().tested[target.arch].insert(name_on(target, opcode));
  }
  return true;
}

void expect_covered(const Batch& batch, int id, const std::vector<std::string>& mnemonics) {
  if (!batch.exists(id)) return;  // running it fails
  const std::set<std::string> names = batch.names(id);
  for (const std::string& mnemonic : mnemonics) {
    EXPECT_TRUE(names.contains(mnemonic))
        << mnemonic << " isn't in the machine code of " << batch.text(id);
  }
}

void register_covered() {
  add("every_case_runs_on_some_chip", &every_case_runs);
  for (const Target& chip : all_chips()) {
    add(chip.arch + "_lacks_no_test_of_other_chips", [&chip] { chip_lacks_none(chip); });
  }
}

bool has_under_name(const std::string& arch, const std::string& name) {
  const Target chip{arch, false};
  if (!has_instruction(arch, name) || name_on(chip, name) != name) return false;
  const auto [begin, end] = renamed().equal_range(name);
  return begin == end || std::any_of(begin, end, [&](const auto& each) {
           return name_on(chip, each.second) == name;
         });
}

void print_tested() {
  for (const auto& [arch, names] : records().tested) {
    for (const std::string& name : names) std::printf("%s %s\n", arch.c_str(), name.c_str());
  }
}

}  // namespace emu::test
