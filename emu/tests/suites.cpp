#include "emu/tests/suites.h"

#include <gtest/gtest.h>

#include "emu/tests/covered.h"
#include "emu/tests/names.h"

namespace emu::test {

const std::vector<Target>& all_chips() {
  static const std::vector<Target> chips = {
      {"gfx1100", false}, {"gfx1101", false}, {"gfx1151", false},
      {"gfx1030", false}, {"gfx1200", false}, {"gfx1201", false},
      {"gfx90a", true},   {"gfx942", true},   {"gfx950", true}};
  return chips;
}

const std::vector<Target>& all_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all = all_chips();
    for (const Target& chip : all_chips()) {
      if (!chip.wave64) all.push_back({chip.arch, true});
    }
    return all;
  }();
  return targets;
}

Hand::Hand(std::string suite, Target target)
    : suite_(suite), shared_(std::make_shared<Shared>(target)) {}

bool Hand::Run::operator()(State& state) const {
  const Outcome outcome = batch.run(id, state);
  if (outcome.ran == Ran::well) return true;
  ADD_FAILURE() << (outcome.ran == Ran::missing ? "missing: " : "") << outcome.message;
  return false;
}

void Hand::add(const std::string& name, const std::string& text, std::vector<std::string> covers,
               std::function<void(const Run&)> check, Batch::Patch patch) {
  const std::string here = text_on(target(), text);
  if (!note_case(suite_, name, target(), mnemonics_of(here), covers)) return;
  for (std::string& mnemonic : covers) mnemonic = name_on(target(), mnemonic);
  const bool as_written = patch == nullptr && here.find(".long") == here.npos;
  const int id = shared_->batch.add(here, std::move(patch));
  class HandTest : public testing::Test {
   public:
    explicit HandTest(std::function<void()> body) : body_(std::move(body)) {}
    void TestBody() override { body_(); }

   private:
    std::function<void()> body_;
  };
  const auto body = [shared = shared_, id, as_written, covers, check = std::move(check)] {
    if (!shared->assembled) shared->batch.assemble();
    shared->assembled = true;
    if (as_written) expect_covered(shared->batch, id, covers);
    check(Run{shared->batch, id});
  };
  testing::RegisterTest(suite_on(suite_, target()).c_str(), name.c_str(), nullptr, nullptr,
                        __FILE__, __LINE__,
                        [body]() -> testing::Test* { return new HandTest(body); });
}

State random_state(const Target& target, uint64_t seed) {
  return random_state_of(target, seed, kTestVgprs);
}

State random_state_of(const Target& target, uint64_t seed, size_t registers) {
  Random random(seed);
  State state;
  state.v.resize(registers);
  for (auto& reg : state.v) {
    for (uint32_t& lane : reg) lane = static_cast<uint32_t>(random.next());
  }
  for (uint32_t& s : state.s) s = static_cast<uint32_t>(random.next());
  for (uint8_t& byte : state.lds) byte = static_cast<uint8_t>(random.next());
  // Lanes that don't exist in a wave of 32 are never written back.
  for (auto& reg : state.v) {
    for (int lane = target.lanes(); lane < 64; ++lane) reg[static_cast<size_t>(lane)] = 0;
  }
  state.exec = target.wave64 ? ~uint64_t{0} : 0xffffffff;
  state.mode = default_mode(target);
  return state;
}

}  // namespace emu::test
