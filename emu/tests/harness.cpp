#include "emu/tests/harness.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "emu/exec/mode.h"
#include "emu/isa/disassembler.h"
#include "emu/tests/assembler.h"
#include "emu/tests/names.h"
#include "emu/tests/object.h"

extern char** environ;

namespace emu::test {
namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "emu-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (std::getenv("EMU_TEST_KEEP") == nullptr) std::filesystem::remove_all(path, ignored);
  }
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

const std::string& work_folder() {
  static const Folder folder;
  return folder.path;
}

int run_command(const std::vector<std::string>& words, std::string& errors) {
  static std::atomic<int> count{0};
  const std::string log = work_folder() + "/log" + std::to_string(++count);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot run " + words[0]);
  int status = 0;
  waitpid(child, &status, 0);
  errors = read_file(log);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Batch::Impl {
  Target target;
  std::vector<std::string> texts;
  std::map<int, Patch> patches;
  std::map<int, std::string> patched;  // lines of machine words
  std::set<int> unknown;               // cases that the assembler rejected
  std::unique_ptr<Object> object;
  std::unique_ptr<Disassembler> disassembler;
  struct Free {
    void operator()(Wave* w) const { std::free(w); }
  };
  std::unique_ptr<Wave, Free> wave;
  Launch launch;
  Workgroup group;
  std::vector<uint8_t> lds;

  bool write_and_assemble(const std::string& name);
  void patch_words();
  void make_wave();
  void put(State& state);
  void take(State& state) const;
};

Batch::Batch(Target target) : impl_(std::make_unique<Impl>()) {
  impl_->disassembler = std::make_unique<Disassembler>(assembled_as(target.arch), target.wave64);
  impl_->target = std::move(target);
}
Batch::~Batch() = default;

int Batch::add(const std::string& text, Patch patch) {
  impl_->texts.push_back(text);
  const int id = static_cast<int>(impl_->texts.size()) - 1;
  if (patch) impl_->patches[id] = std::move(patch);
  return id;
}

bool Batch::exists(int id) const { return impl_->unknown.count(id) == 0; }
const std::string& Batch::text(int id) const { return impl_->texts[static_cast<size_t>(id)]; }
const Target& Batch::target() const { return impl_->target; }

/// Returns false if the assembler rejected some cases. These are then in `unknown`, and the caller
/// tries again.
bool Batch::Impl::write_and_assemble(const std::string& name) {
  const std::string path = work_folder() + "/" + name;
  std::ofstream out(path + ".s");
  out << ".text\n";
  std::vector<int> case_at = {-1, -1};  // the case of each line; lines count from 1
  const auto line = [&](const std::string& text, int id) {
    out << text << '\n';
    case_at.push_back(id);
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    const int id = static_cast<int>(i);
    if (unknown.count(id) != 0) continue;
    const std::string label = "t" + std::to_string(id);
    line(".p2align 8", id);
    line(".type " + label + ",@function", id);
    line(label + ":", id);
    const auto at = patched.find(id);
    std::istringstream lines(at == patched.end() ? texts[i] : at->second);
    for (std::string each; std::getline(lines, each);) line(each, id);
    line("s_endpgm", id);
    line(".size " + label + ", .-" + label, id);
  }
  out.close();
  std::vector<std::string> words = {"clang-19",
                                    "--target=amdgcn-amd-amdhsa",
                                    "-mcpu=" + assembled_as(target.arch),
                                    "-c",
                                    "-x",
                                    "assembler",
                                    path + ".s",
                                    "-o",
                                    path + ".o"};
  if (target.wave64 && !target.arch.starts_with("gfx9")) words.push_back("-mwavefrontsize64");
  std::string errors;
  if (run_command(words, errors) == 0) {
    object = std::make_unique<Object>(path + ".o", target.arch);
    return true;
  }
  const size_t before = unknown.size();
  std::istringstream lines(errors);
  for (std::string each; std::getline(lines, each);) {
    const size_t colon = each.find(".s:");
    if (colon == each.npos || each.find("error:") == each.npos) continue;
    unknown.insert(case_at.at(std::stoul(each.substr(colon + 3))));
  }
  if (unknown.size() == before) throw std::runtime_error("assembler: " + errors);
  return false;
}

/// Replaces the text of cases with a patch by their patched words.
void Batch::Impl::patch_words() {
  for (const auto& [id, patch] : patches) {
    if (unknown.count(id) != 0) continue;
    const std::string label = "t" + std::to_string(id);
    std::vector<uint32_t> words(object->size(label) / 4);
    std::memcpy(words.data(), reinterpret_cast<const void*>(object->address(label)),
                words.size() * 4);
    words.pop_back();  // s_endpgm
    patch(words);
    std::string text;
    for (const uint32_t word : words) text += ".long " + std::to_string(word) + "\n";
    patched[id] = text;
  }
}

void Batch::assemble() {
  static int count = 0;
  const std::string name = "batch" + std::to_string(++count);
  while (!impl_->write_and_assemble(name)) {
  }
  if (!impl_->patches.empty()) {
    impl_->patch_words();
    if (!impl_->write_and_assemble(name)) throw std::runtime_error("patched words");
  }
  impl_->make_wave();
}

void Batch::Impl::make_wave() {
  const size_t bytes = sizeof(Wave) + size_t{kMostVgprs} * 256;
  wave.reset(static_cast<Wave*>(std::aligned_alloc(128, (bytes + 127) / 128 * 128)));
  std::memset(static_cast<void*>(wave.get()), 0, bytes);
  launch.code = &object->code(target.wave64);
  launch.base = object->base();
  launch.kernel = "a test";
  launch.descriptor.properties = target.wave64 ? 0 : 1 << 10;
  group.launch = &launch;
  group.waves = {wave.get()};
  lds.resize(65536 + 128);
}

void Batch::Impl::put(State& state) {
  Wave& w = *wave;
  w.launch = &launch;
  w.group = &group;
  w.index = 0;
  w.lanes = static_cast<uint32_t>(target.lanes());
  w.vgprs = static_cast<uint32_t>(state.v.size());
  w.half_bytes = w.vgprs * 128;
  launch.vgprs = static_cast<int>(w.vgprs);
  std::memcpy(w.s, state.s.data(), sizeof w.s);
  w.s[kExec] = static_cast<uint32_t>(state.exec);
  w.s[kExec + 1] = target.wave64 ? static_cast<uint32_t>(state.exec >> 32) : 0;
  w.scc = state.scc;
  w.mode = state.mode;
  w.budget = 1 << 20;
  for (int half = 0; half < target.lanes() / 32; ++half) {
    for (size_t reg = 0; reg < state.v.size(); ++reg) {
      std::memcpy(&w.vgpr(half, static_cast<int>(reg)), &state.v[reg][half * 32], 128);
    }
  }
  std::memcpy(lds.data(), state.lds.data(), state.lds.size());
  w.lds = lds.data();
  w.lds_bytes = static_cast<uint32_t>(state.lds.size());
  launch.lds_bytes = w.lds_bytes;
  launch.descriptor.scratch_bytes = state.scratch_bytes;
  state.scratch.resize(size_t{state.scratch_bytes} * w.lanes);
  w.scratch = state.scratch.data();
  w.scratch_bytes = state.scratch_bytes;
}

void Batch::Impl::take(State& state) const {
  Wave& w = *wave;
  std::memcpy(state.s.data(), w.s, sizeof w.s);
  state.exec = w.exec();
  if (!target.wave64) state.exec &= 0xffffffff;
  state.scc = w.scc;
  state.mode = w.mode;
  for (int half = 0; half < target.lanes() / 32; ++half) {
    for (size_t reg = 0; reg < state.v.size(); ++reg) {
      std::memcpy(&state.v[reg][half * 32], &w.vgpr(half, static_cast<int>(reg)), 128);
    }
  }
  std::memcpy(state.lds.data(), lds.data(), state.lds.size());
}

std::set<std::string> Batch::names(int id) const {
  const std::string label = "t" + std::to_string(id);
  std::span<const uint8_t> code(reinterpret_cast<const uint8_t*>(impl_->object->address(label)),
                                impl_->object->size(label));
  std::set<std::string> names;
  while (!code.empty()) {
    const auto read = impl_->disassembler->read(code, 0);
    if (read) {
      for (const std::string& name : mnemonics_of(read->text)) names.insert(name);
    }
    code = code.subspan(read ? read->size : 4);
  }
  return names;
}

Outcome Batch::run(int id, State& state) {
  Impl& impl = *impl_;
  if (!exists(id)) return {Ran::missing, "the assembler doesn't know it: " + text(id)};
  impl.launch.stop = false;
  impl.launch.error.clear();
  impl.put(state);
  try {
    enter(impl.wave.get(), impl.object->function("t" + std::to_string(id)));
    for (int turns = 0; turns < 1000; ++turns) {
      Wave* w = impl.wave.get();
      const Stop stop = under_mode(w, [w] { return w->next->fn(w, w->next); });
      if (stop == Stop::end) {
        impl.take(state);
        return {};
      }
      if (stop == Stop::fault) return {Ran::failed, impl.launch.error};
      w->budget = 1 << 20;
    }
    return {Ran::failed, "doesn't end"};
  } catch (const std::exception& error) {
    return {Ran::missing, error.what()};
  }
}

}  // namespace emu::test
