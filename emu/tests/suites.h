#pragma once

// Test suites besides the tables of vector opcodes.

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
void register_typed_buffers();
void register_images();
void register_matrix();
void register_dual();
void register_mistakes();
void register_decode();
void register_decode_scalar();
void register_decode_memory();
void register_decode_known();
void register_gfx9();
void register_gfx9_registers();
void register_gfx9_matrix();
void register_gfx9_sparse();
void register_gfx12();
void add_gfx12_floats(const Target& target);  // called by register_gfx12()
void register_float8();
void register_gfx950();
void register_lds_more();

/// All chips, each with the width of its waves that compilers use by default.
const std::vector<Target>& all_chips();
/// All chips with all widths that their waves may have.
const std::vector<Target>& all_targets();

/// A suite of hand-written cases. All cases add their text first, then the batch is assembled once,
/// then the cases run.
class Hand {
 public:
  Hand(std::string suite, Target target);
  /// A case: its assembly text, the mnemonics that it covers, and its check. `check` calls `run` as
  /// often as needed; `run` fails the test if the code doesn't run to its end. Names, waits and
  /// `glc` may be gfx11's; the suite writes the target's. Nothing is added if LLVM says that the
  /// target lacks one of the instructions.
  struct Run {
    Batch& batch;
    int id;
    bool operator()(State& state) const;
  };
  /// `patch` may change the machine words, as in Batch::add(). Without one, the test fails if the
  /// assembled code lacks a mnemonic that it covers.
  void add(const std::string& name, const std::string& text, std::vector<std::string> covers,
           std::function<void(const Run&)> check, Batch::Patch patch = nullptr);
  const Target& target() const { return shared_->target; }
  int lanes() const { return target().lanes(); }

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

/// Returns registers with random contents and all lanes enabled.
State random_state(const Target& target, uint64_t seed);
/// Returns such a state with a given number of vector registers.
State random_state_of(const Target& target, uint64_t seed, size_t registers);

}  // namespace emu::test
