#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/text/jinja/values/limits.h"
#include "wick/text/jinja/values/value.h"

namespace wick::text::jinja {

/// The place of a tag in a template.
struct Tag {
  size_t begin = 0, size = 0;  // bytes of the source, with the brackets
};

/// The state of one rendering: where it is, for errors, and what it has used of the limits.
class Run {
 public:
  Run(std::string_view source, std::time_t now) : source_(source), now_(now) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Notes the line and the tag that errors name.
  void at(size_t line) { line_ = line; }
  void at(size_t line, Tag tag) {
    line_ = line;
    tag_ = tag;
  }
  Tag tag() const { return tag_; }
  std::time_t now() const { return now_; }

  /// Throws an error at the current place: `what` is wrong with `operands`.
  [[noreturn]] void fail(std::string_view what, std::string_view operands = {}) const;
  /// Throws that a value has the wrong type.
  [[noreturn]] void fail_type(std::string_view expected, const Value& value) const;
  /// Throws the reason of an undefined value.
  void require_defined(const Value& value) const {
    if (value.is_undefined()) fail(*value.undefined()->reason);
  }

  void step(size_t count = 1) {
    steps_ += count;
    if (steps_ > kMaxSteps) fail_limit("too many steps", kMaxSteps, "evaluated nodes");
  }
  /// Counts the reading of strings.
  void read(size_t bytes) { step(1 + bytes / 256); }
  /// Counts the hashing of a dict's key.
  void read_key(const Value& key) {
    if (const String* text = key.string()) read(text->text.bytes.size());
  }
  /// Counts a search among `count` names.
  void search(size_t count) { step(count / 16); }
  /// Counts the creation of a string, list or dict.
  void make(size_t bytes) {
    read(bytes);
    memory_ += bytes;
    if (memory_ > kMaxMemory) fail_limit("too much memory", kMaxMemory, "bytes");
  }
  /// Checks the size of a string before it is made.
  void check_size(size_t bytes) const {
    if (bytes > kMaxString) fail_limit("a text is too long", kMaxString, "bytes");
  }

  Value string(MarkedString text, bool html = false);
  Value text(std::string_view text) { return string(MarkedString::plain(text)); }
  Value sequence(Sequence::Kind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(Sequence::Kind::list, std::move(items)); }
  Value dict(Dict dict);
  Value names(Namespace names);

  /// Keeps an object until the end of the rendering, when clear() is called. Objects that templates
  /// change may refer to themselves, so they are released one by one.
  void keep(std::shared_ptr<Namespace> names) { kept_.push_back(std::move(names)); }
  void release();

  /// Held while a node is evaluated; bounds how many are within each other.
  class Nested {
   public:
    explicit Nested(Run& run) : run_(run) {
      if (++run_.nested_ > kMaxCalls) {
        --run_.nested_;
        run_.fail_limit("nested too deeply", kMaxCalls, "levels");
      }
    }
    ~Nested() { --run_.nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Run& run_;
  };

 private:
  [[noreturn]] void fail_limit(std::string_view what, size_t limit, std::string_view unit) const;

  std::string_view source_;
  std::time_t now_;
  size_t line_ = 1;
  Tag tag_;
  size_t steps_ = 0, memory_ = 0;
  int nested_ = 0;
  std::vector<std::shared_ptr<Namespace>> kept_;
};

}  // namespace wick::text::jinja
