#include "emu/tests/ops.h"

#include <gtest/gtest.h>

#include <memory>

#include "emu/tests/covered.h"
#include "emu/tests/forms.h"
#include "emu/tests/names.h"

namespace emu::test {
namespace {

bool g_ieee = true;

/// One target's batch and the cases of every spec in it.
struct Suite {
  explicit Suite(const Target& target) : batch(target) {}
  void prepare() {
    for (const Spec& spec : table.specs) {
      cases.emplace_back();
      for (Form& form : forms_of(spec, batch.target())) {
        const int id = batch.add(form.text, form.patch);
        cases.back().emplace_back(id, std::move(form));
      }
    }
    batch.assemble();
  }

  Batch batch;
  Table table;
  std::vector<std::vector<std::pair<int, Form>>> cases;  // indexed by spec
};

class OpTest : public testing::Test {
 public:
  OpTest(std::shared_ptr<Suite> suite, size_t spec) : suite_(std::move(suite)), spec_(spec) {}

  void TestBody() override {
    Suite& suite = *suite_;
    if (suite.cases.empty()) suite.prepare();
    const Spec& spec = suite.table.specs[spec_];
    const auto& cases = suite.cases[spec_];
    ASSERT_TRUE(suite.batch.exists(cases[0].first))
        << "no such instruction: " << suite.batch.text(cases[0].first);
    expect_covered(suite.batch, cases[0].first, {spec.name});
    int reports = 0;
    for (const auto& [id, form] : cases) {
      if (!suite.batch.exists(id)) continue;
      for (int round = 0; round < form.rounds && reports < 4; ++round) {
        reports += run_once(suite.batch, id, spec, form, round) ? 0 : 1;
        if (missing_) return;
      }
    }
  }

 private:
  bool run_once(Batch& batch, int id, const Spec& spec, const Form& form, int round) {
    Random random(std::hash<std::string>()(batch.text(id)) + static_cast<uint64_t>(round));
    State before;
    fill(spec, form, batch.target(), random, before);
    State after = before;
    g_ieee = (before.mode & kModeIeee) != 0;
    const Outcome outcome = batch.run(id, after);
    if (outcome.ran == Ran::missing) {
      missing_ = true;
      ADD_FAILURE() << "missing: " << outcome.message;
      return false;
    }
    if (outcome.ran == Ran::failed) {
      ADD_FAILURE() << outcome.message;
      return false;
    }
    const std::string wrong = compare(spec, form, batch.target(), before, after);
    if (wrong.empty()) return true;
    ADD_FAILURE() << batch.text(id) << "\n  " << wrong;
    return false;
  }

  std::shared_ptr<Suite> suite_;
  size_t spec_;
  bool missing_ = false;
};

}  // namespace

bool ieee_mode() { return g_ieee; }

void register_ops(const Target& target) {
  auto suite = std::make_shared<Suite>(target);
  add_float32(suite->table);
  add_float64(suite->table);
  add_float16(suite->table);
  add_integer(suite->table);
  add_bits(suite->table);
  add_convert(suite->table);
  add_packed(suite->table);
  add_compare(suite->table);
  std::erase_if(suite->table.specs, [&](Spec& spec) {
    const std::string anywhere = spec.name;
    spec.name = name_on(target, spec.name);
    return !note_case("Opcode", anywhere, target, {spec.name}, {anywhere});
  });
  const std::string name = suite_on("Opcode", target);
  for (size_t i = 0; i < suite->table.specs.size(); ++i) {
    const Spec& spec = suite->table.specs[i];
    testing::RegisterTest(name.c_str(), spec.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [suite, i]() -> testing::Test* { return new OpTest(suite, i); });
  }
}

}  // namespace emu::test
