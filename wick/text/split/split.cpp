#include "wick/text/split/split.h"

#include <algorithm>
#include <utility>

namespace wick::text {
namespace {

bool is_trail_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

size_t end_of_character(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && is_trail_byte(text[at])) ++at;
  return at;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_trail_byte(c); }));
}

}  // namespace

bool Splitter::rewrites() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const SplitStage& stage) {
    return !stage.mark.empty() || !stage.prefix.empty();
  });
}

bool Splitter::keeps_all_bytes() const {
  return std::none_of(stages_.begin(), stages_.end(), [](const SplitStage& stage) {
    return stage.behavior == SplitBehavior::removed;
  });
}

Splitter::Splitter(std::vector<SplitStage> stages) : stages_(std::move(stages)) {
  for (const SplitStage& stage : stages_) {
    if (stage.pattern.empty()) {
      regexes_.push_back(nullptr);
    } else {
      regexes_.push_back(std::make_unique<const Regex>(stage.literal ? Regex::literal(stage.pattern)
                                                                     : Regex(stage.pattern)));
    }
  }
}

Splitter::Cursor::Level::Level(const Regex* regex_of_stage, const SplitStage& stage_of_level)
    : regex(regex_of_stage), stage(&stage_of_level) {
  if (regex != nullptr) scratch.emplace(*regex);
}

Splitter::Cursor::Cursor(const Splitter& splitter, std::string_view text, bool at_beginning)
    : text_{text, at_beginning} {
  levels_.reserve(splitter.stages_.size());
  for (size_t i = 0; i < splitter.stages_.size(); ++i) {
    levels_.emplace_back(splitter.regexes_[i].get(), splitter.stages_[i]);
  }
  if (levels_.size() == 1) {
    const SplitStage& stage = *levels_[0].stage;
    isolates_ = levels_[0].regex != nullptr && stage.behavior == SplitBehavior::isolated &&
                stage.group == 0 && stage.mark.empty() && stage.prefix.empty();
  }
}

void Splitter::Cursor::restart(std::string_view text, bool at_beginning) {
  for (Level& level : levels_) {
    level.piece = {};
    level.pos = 0;
    level.found = false;
    level.has_held = false;
    level.ungrouped = 0;
  }
  text_ = {text, at_beginning};
  done_ = false;
}

std::string_view Splitter::Cursor::next() {
  return isolates_ ? next_isolated() : next_of(levels_.size()).text;
}

/// As next_of(1), without the cases of other stages.
std::string_view Splitter::Cursor::next_isolated() {
  Level& level = levels_[0];
  const std::string_view text = text_.text;
  const size_t begin = level.pos;
  if (begin >= text.size()) return {};
  if (!level.found) {
    for (size_t from = begin;;) {
      if (!level.regex->find(text, from, *level.scratch, level.match)) {
        level.match = {text.size(), text.size()};
        break;
      }
      if (level.match.end > begin) break;
      // An empty match at the end of the last match.
      from = end_of_character(text, from);
    }
  }
  level.found = level.match.begin > begin && level.match.end > level.match.begin;
  level.pos = level.match.begin > begin ? level.match.begin : level.match.end;
  return text.substr(begin, level.pos - begin);
}

/// The next word after `count` stages; an empty word at the end.
Splitter::Cursor::Word Splitter::Cursor::next_of(size_t count) {
  if (count == 0) {
    if (std::exchange(done_, true)) return {};
    return text_;
  }
  Level& level = levels_[count - 1];
  for (;;) {
    if (level.pos < level.piece.text.size() || level.has_held) {
      const Part part = part_of(level);
      if (part.end > part.begin) {
        return {level.piece.text.substr(part.begin, part.end - part.begin),
                level.piece.first && part.begin == 0};
      }
    }
    const Word word = next_of(count - 1);
    if (word.text.empty()) return {};
    rewrite(level, word);
    level.pos = 0;
    level.found = false;
    level.has_held = false;
    level.ungrouped = 0;
    if (level.regex == nullptr) {
      level.pos = level.piece.text.size();
      return level.piece;
    }
  }
}

void Splitter::Cursor::rewrite(Level& level, Word word) {
  const SplitStage& stage = *level.stage;
  level.piece = word;
  if (stage.mark.empty() && stage.prefix.empty()) return;
  std::string& out = level.rewritten;
  out.clear();
  if (stage.mark.empty()) {
    out = word.text;
  } else {
    for (const char c : word.text) {
      if (c == ' ') {
        out += stage.mark;
      } else {
        out += c;
      }
    }
  }
  if (!stage.prefix.empty() && (word.first || !stage.only_first) &&
      !(stage.spares_lines && out.starts_with('\n')) && !out.starts_with(stage.prefix)) {
    out.insert(0, stage.prefix);
  }
  level.piece.text = out;
}

/// The next match or the text before it.
Splitter::Cursor::Part Splitter::Cursor::raw_part_of(Level& level) {
  const std::string_view text = level.piece.text;
  if (level.pos >= text.size()) return {};
  if (!level.found) {
    size_t from = level.pos;
    for (;;) {
      if (from > text.size() || !level.regex->find(text, from, *level.scratch, level.match)) {
        level.match = {text.size(), text.size()};
        break;
      }
      // An empty match is a cut; one at the end of the last match isn't.
      if (level.match.end > level.match.begin || level.match.begin > level.pos) break;
      from = from < text.size() ? end_of_character(text, from) : from + 1;
    }
    level.found = true;
  }
  const Regex::Range match = level.match;
  if (match.begin > level.pos) {
    const Part gap{level.pos, match.begin, false};
    level.pos = match.begin;
    if (match.end == match.begin) level.found = false;
    return gap;
  }
  size_t end = match.end;
  if (const size_t size = level.stage->group; size > 0) {
    if (level.ungrouped == 0) {
      level.ungrouped = count_characters(text.substr(match.begin, match.end - match.begin));
    }
    const size_t rest = level.ungrouped % size;
    const size_t count = rest == 0 ? size : rest;
    end = match.begin;
    for (size_t i = 0; i < count && end < match.end; ++i) end = end_of_character(text, end);
    level.ungrouped -= std::min(count, level.ungrouped);
  }
  const Part part{match.begin, end, true};
  level.pos = end;
  level.match.begin = end;
  level.found = end < match.end;
  return part;
}

/// The next word of a level, by its stage's behavior; empty at the end.
Splitter::Cursor::Part Splitter::Cursor::part_of(Level& level) {
  const SplitStage& stage = *level.stage;
  const auto raw = [&] {
    if (std::exchange(level.has_held, false)) return level.held;
    Part part = raw_part_of(level);
    part.match = part.match != stage.invert;
    return part;
  };
  const auto is_part = [](const Part& part) { return part.end > part.begin; };
  Part part = raw();
  if (stage.behavior == SplitBehavior::isolated) return part;
  if (stage.behavior == SplitBehavior::removed) {
    while (is_part(part) && part.match) part = raw();
    return part;
  }
  for (bool more = is_part(part); more;) {
    const Part next = raw();
    if (!is_part(next)) break;
    const bool joins = stage.behavior == SplitBehavior::contiguous ? part.match == next.match
                       : stage.behavior == SplitBehavior::merged_with_previous
                           ? !part.match && next.match
                           : part.match && !next.match;
    if (joins) {
      part.end = next.end;
    } else {
      level.held = next;
      level.has_held = true;
    }
    more = joins && stage.behavior == SplitBehavior::contiguous;
  }
  return part;
}

}  // namespace wick::text
