#pragma once

// Runs single instructions and short sequences on one wave with given registers. One process
// assembles the text of a whole batch, so that thousands of cases take about a second.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace emu::test {

inline constexpr int kTestVgprs = 128;
/// gfx9's accumulation registers start at kTestAgprs if a state's `v` is long enough.
inline constexpr int kTestAgprs = 256, kMostVgprs = 384;

/// The initial mode of amdhsa kernels: denormals preserved, round to nearest, IEEE and clamp bits
/// set.
inline constexpr uint32_t kDefaultMode = 0x3f0;
inline constexpr uint32_t kModeIeee = 0x200, kModeClamp = 0x100;

struct Target {
  std::string arch = "gfx1100";
  bool wave64 = false;
  int lanes() const { return wave64 ? 64 : 32; }
};

/// The registers before a case, and after it.
struct State {
  std::vector<std::array<uint32_t, 64>> v =
      std::vector<std::array<uint32_t, 64>>(kTestVgprs);  // register, lane
  std::array<uint32_t, 128> s{};                          // indexed by encoding
  uint64_t exec = ~uint64_t{0};
  uint32_t scc = 0, mode = kDefaultMode;
  std::vector<uint8_t> lds = std::vector<uint8_t>(4096);
  std::vector<uint8_t> scratch;  // dword d of lane l is at (d * lanes + l) * 4; allocated if empty
  uint32_t scratch_bytes = 256;  // per lane

  uint64_t s64(int reg) const { return uint64_t{s[reg + 1]} << 32 | s[reg]; }
  void set_s64(int reg, uint64_t value) {
    s[reg] = static_cast<uint32_t>(value);
    s[reg + 1] = static_cast<uint32_t>(value >> 32);
  }
  uint64_t v64(int reg, int lane) const { return uint64_t{v[reg + 1][lane]} << 32 | v[reg][lane]; }
  void set_v64(int reg, int lane, uint64_t value) {
    v[reg][lane] = static_cast<uint32_t>(value);
    v[reg + 1][lane] = static_cast<uint32_t>(value >> 32);
  }
};

/// Returns v[first:last], or another file's registers, as the assembler writes them.
inline std::string range(int first, int count, const char* file = "v") {
  const std::string n = std::to_string(first);
  if (count == 1) return file + n;
  return file + ("[" + n + ":" + std::to_string(first + count - 1) + "]");
}

enum class Ran { well, missing, failed };

struct Outcome {
  Ran ran = Ran::well;
  std::string message;
};

/// Test cases of one target. Add all of them, assemble once, then run each as often as needed.
class Batch {
 public:
  explicit Batch(Target target);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Changes the machine words of a case.
  using Patch = std::function<void(std::vector<uint32_t>& words)>;

  /// Appends a case, given as lines of assembly without s_endpgm. Returns its number. With `patch`,
  /// the words that run are those that it makes of the assembled ones; it is for instructions that
  /// the assembler can't write.
  int add(const std::string& text, Patch patch = nullptr);
  /// Throws std::runtime_error if the assembler can't be run.
  void assemble();
  /// Returns whether the assembler accepts all of the case's instructions.
  bool exists(int id) const;
  const std::string& text(int id) const;
  const Target& target() const;
  /// The mnemonics of a case's machine code, as LLVM's disassembler gives them.
  std::set<std::string> names(int id) const;

  Outcome run(int id, State& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns a folder for this process's files, which is removed when the process ends.
const std::string& work_folder();

/// Runs a command without a shell and stores its standard error in `errors`.
int run_command(const std::vector<std::string>& words, std::string& errors);

/// A small generator that gives the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  bool chance(uint32_t in) { return below(in) == 0; }

 private:
  uint64_t state_;
};

}  // namespace emu::test
