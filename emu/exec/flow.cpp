#include "emu/exec/flow.h"

#include <algorithm>
#include <map>

namespace emu {
namespace {

/// Returns whether control never passes from the instruction to the next one.
bool ends_path(const Inst& inst) {
  return inst.name.starts_with("s_endpgm") || inst.name == "s_branch" ||
         inst.name == "s_setpc_b64" || !inst.error.empty();
}

/// Returns whether control may never come back to the next instruction.
bool may_not_return(const Inst& inst) {
  return inst.name == "s_swappc_b64" || inst.name == "s_call_b64" || inst.name == "s_trap" ||
         inst.name == "s_sethalt";
}

class Lister {
 public:
  Lister(const Symbol& function, const DecodeAt& decode)
      : begin_(function.address), end_(function.address + function.size), decode_(decode) {
    for (const uint64_t entry : function.entries) follow(entry, true);
  }

  Listing run() {
    for (uint64_t at = begin_; at < end_;) {
      if (const auto known = found_.find(at); known != found_.end()) {
        at += known->second.inst[0].size;
      } else {
        follow(at, false);
      }
    }
    Listing listing;
    for (auto& [address, one] : found_) {
      listing.insts.push_back(std::move(one.inst));
      listing.reached.push_back(one.reached);
    }
    return listing;
  }

 private:
  struct Found {
    std::vector<Inst> inst;
    bool reached;
  };

  /// Decodes the instructions that `start` leads to and that weren't decoded before.
  void follow(uint64_t start, bool reached) {
    std::vector<uint64_t> todo = {start};
    while (!todo.empty()) {
      uint64_t at = todo.back();
      todo.pop_back();
      bool sure = reached;
      while (is_new(at)) {
        const auto next = found_.lower_bound(at);
        const uint64_t end = next == found_.end() ? end_ : next->first;
        Found& found = found_.emplace(at, Found{decode_(at, end), reached}).first->second;
        const Inst& inst = found.inst[0];
        if (!inst.error.empty()) found.reached = sure;
        sure = reached && !may_not_return(inst);
        if (is_branch(inst)) todo.push_back(branch_target(inst));
        if (ends_path(inst)) break;
        at += inst.size;
      }
    }
  }

  /// Returns whether an address is in the function, and in no instruction that was decoded before.
  bool is_new(uint64_t at) const {
    if (at < begin_ || at >= end_ || (at - begin_) % 4 != 0) return false;
    const auto after = found_.upper_bound(at);
    if (after == found_.begin()) return true;
    const auto& [address, before] = *std::prev(after);
    return at >= address + before.inst[0].size;
  }

  const uint64_t begin_, end_;
  const DecodeAt& decode_;
  std::map<uint64_t, Found> found_;  // by address
};

}  // namespace

Listing list_instructions(const Symbol& function, const DecodeAt& decode) {
  return Lister(function, decode).run();
}

bool is_branch(const Inst& inst) {
  return inst.name.starts_with("s_cbranch") || inst.name == "s_branch" || inst.name == "s_call_b64";
}

uint64_t branch_target(const Inst& inst) {
  const auto words = static_cast<int16_t>(inst.immediate);
  return inst.address + inst.size + static_cast<uint64_t>(int64_t{words} * 4);
}

}  // namespace emu
