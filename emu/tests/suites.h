#pragma once

// Groups of tests beside the vector opcodes' tables.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emu/tests/harness.h"

namespace emu::test {

void register_scalar();
void register_execution();
void register_lanes();
void register_memory();
void register_atomics();
void register_buffers();
void register_matrix();
void register_dual();
void register_mistakes();
void register_gfx9();
void register_gfx9_registers();
void register_gfx9_matrix();

/// A suite of hand-made cases: each adds its texts first, all are assembled at once, then run.
class Hand {
 public:
  Hand(std::string suite, Target target);
  /// A case: its assembler text, the mnemonics that it covers, and what to do with it. `check` runs
  /// it as often as it wants by `run`, which fails the test when it doesn't run well.
  struct Run {
    Batch& batch;
    int id;
    bool operator()(State& state) const;
  };
  void add(const std::string& name, const std::string& text, std::vector<std::string> covers,
           std::function<void(const Run&)> check);
  const Target& target() const { return shared_->target; }

 private:
  struct Shared {
    explicit Shared(const Target& t) : target(t), batch(t) {}
    Target target;
    Batch batch;
    bool assembled = false;
  };
  std::string suite_;
  std::shared_ptr<Shared> shared_;
};

/// Registers with random contents and all lanes on.
State random_state(const Target& target, uint64_t seed);
/// And with more vector registers than most tests need.
State random_state_of(const Target& target, uint64_t seed, size_t registers);

}  // namespace emu::test
