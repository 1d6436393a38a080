#include "tests/parity/grid.h"

#include <fmt/format.h>
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace wick::parity {
namespace {

using testing::TestPartResult;

// ---- What runs ----

/// Collects the layouts that a body asks about, during registration.
std::vector<std::string>* asked = nullptr;
/// The layout of the running test; empty: all layouts.
std::string_view current_layout;
int64_t cases_met = 0;

/// Captures failures of the running test, with the device that each is attributed to.
class Catcher : public testing::ScopedFakeTestPartResultReporter {
 public:
  struct Part {
    std::string target;
    TestPartResult result;
  };
  Catcher() : ScopedFakeTestPartResultReporter(INTERCEPT_ONLY_CURRENT_THREAD, &unused_) {
    running = this;
  }
  ~Catcher() override { running = nullptr; }
  void ReportTestPartResult(const TestPartResult& result) override {
    parts.push_back({std::string(Blame::target()), result});
  }
  bool failed() const {
    return std::any_of(parts.begin(), parts.end(), [](const Part& p) { return p.result.failed(); });
  }

  static Catcher* running;
  std::vector<Part> parts;

 private:
  testing::TestPartResultArray unused_;
};
Catcher* Catcher::running = nullptr;

// ---- Tests of one row, dtype and layout ----

struct Group {
  std::string layout;
  std::function<void()> body;
  std::vector<testing::TestInfo*> tests;  // one for each of all_targets()
  /// Results of targets whose tests haven't run yet.
  std::map<std::string, std::vector<TestPartResult>> verdicts;
  /// What each GPU did in the last run: kernels, library calls and copies within its memory.
  std::map<std::string, uint64_t> device_work;

  void run();

 private:
  std::vector<Catcher::Part> run_on(std::vector<Target> these);
};

std::vector<Catcher::Part> Group::run_on(std::vector<Target> these) {
  limit_targets(std::move(these));
  current_layout = layout;
  cases_met = 0;
  Catcher catcher;
  std::vector<std::pair<Target, test::DeviceWork>> work;
  for (const Target& target : targets()) {
    if (target.backend->device().kind == DeviceKind::cpu) continue;
    work.emplace_back(target, test::DeviceWork(target.backend->device()));
  }
  try {
    body();
    if (cases_met == 0) ADD_FAILURE() << "no case was run";
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the test threw: " << error.what();
  }
  for (const auto& [target, did] : work) {
    const Blame blame(target, layout);
    const std::string fault = did.fault(layout != "empty");
    device_work[target.name] = did.count();
    if (!catcher.failed() && !fault.empty()) ADD_FAILURE() << fault;
  }
  limit_targets({});
  current_layout = {};
  return std::move(catcher.parts);
}

/// Runs the body for all targets whose tests run and that have no verdict yet. A body ends at its
/// first failure, so targets that didn't fail run again without those that did.
void Group::run() {
  std::vector<Target> left;
  for (size_t i = 0; i < tests.size(); ++i) {
    const Target& target = all_targets()[i];
    if (target.backend == nullptr || !tests[i]->should_run()) continue;
    if (verdicts.find(target.name) == verdicts.end()) left.push_back(target);
  }
  while (!left.empty()) {
    const std::vector<Catcher::Part> parts = run_on(left);
    std::map<std::string, std::vector<TestPartResult>> of;
    for (const Catcher::Part& part : parts) {
      if (part.target.empty()) {
        // A failure of the reference counts for all targets, whose bits were equal.
        for (const Target& target : left) of[target.name].push_back(part.result);
      } else {
        of[part.target].push_back(part.result);
      }
    }
    const bool any = std::any_of(parts.begin(), parts.end(),
                                 [](const Catcher::Part& p) { return p.result.failed(); });
    std::erase_if(left, [&](const Target& target) {
      const auto found = of.find(target.name);
      if (any && found == of.end()) return false;
      verdicts[target.name] =
          found == of.end() ? std::vector<TestPartResult>{} : std::move(found->second);
      return true;
    });
  }
}

class RowTest : public testing::Test {
 public:
  RowTest(Group& group, const Target& target) : group_(group), target_(target) {}
  void TestBody() override {
    if (target_.backend == nullptr) GTEST_SKIP() << "absent: " << target_.missing;
    if (group_.verdicts.find(target_.name) == group_.verdicts.end()) group_.run();
    const std::vector<TestPartResult> parts = std::move(group_.verdicts.at(target_.name));
    group_.verdicts.erase(target_.name);
    if (const auto work = group_.device_work.find(target_.name); work != group_.device_work.end()) {
      RecordProperty("device_work", std::to_string(work->second));
    }
    for (const TestPartResult& part : parts) {
      if (part.skipped()) GTEST_SKIP() << part.message();
      if (part.failed()) ADD_FAILURE_AT(part.file_name(), part.line_number()) << part.message();
    }
  }

 private:
  Group& group_;
  const Target& target_;
};

class FunctionTest : public testing::Test {
 public:
  explicit FunctionTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

// ---- Registration ----

struct Row {
  std::string name, dtype;  // an empty dtype: a single test
  std::function<void()> body;
};
std::vector<Row>& rows() {
  static std::vector<Row> list;
  return list;
}

std::vector<std::string> layouts_of(const std::function<void()>& body) {
  std::vector<std::string> list;
  asked = &list;
  body();
  asked = nullptr;
  return list;
}

void register_row(const Row& row) {
  static std::deque<Group> groups;
  const std::string suite = "Parity/" + row.name;
  for (const std::string& layout : layouts_of(row.body)) {
    Group& group = groups.emplace_back();
    group.layout = layout;
    group.body = row.body;
    for (const Target& target : all_targets()) {
      const std::string test = fmt::format("{}.{}.{}", row.dtype, layout, target.name);
      group.tests.push_back(testing::RegisterTest(
          suite.c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&group, &target]() -> testing::Test* { return new RowTest(group, target); }));
    }
  }
}

}  // namespace

std::string_view layout_of(Place place, const Shape& shape) {
  if (shape.rank() == 0) return "rank0";
  if (shape.elems() == 0) return "empty";
  if (shape.rank() == Shape::kMaxRank) return "rank8";
  return place == Place::scalar ? "broadcast" : name(place);
}

bool here(std::string_view layout) {
  if (asked != nullptr) {
    if (std::find(asked->begin(), asked->end(), layout) == asked->end()) {
      asked->emplace_back(layout);
    }
    return false;
  }
  const bool yes = current_layout.empty() || layout == current_layout;
  cases_met += yes ? 1 : 0;
  return yes;
}

bool here(Place place, const Shape& shape) { return here(layout_of(place, shape)); }

bool failed() {
  return Catcher::running != nullptr ? Catcher::running->failed() : testing::Test::HasFailure();
}

void add_row(std::string_view row, std::string_view dtype, std::function<void()> body) {
  rows().push_back({std::string(row), std::string(dtype), std::move(body)});
}

void add(const std::string& name, std::function<void()> body) {
  rows().push_back({name, "", std::move(body)});
}

void register_tests() {
  // Registration is sorted by row, independent of the order of the sources.
  std::stable_sort(rows().begin(), rows().end(),
                   [](const Row& a, const Row& b) { return a.name < b.name; });
  for (const Row& row : rows()) {
    if (!row.dtype.empty()) {
      register_row(row);
      continue;
    }
    testing::RegisterTest("Parity", row.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body = row.body]() -> testing::Test* { return new FunctionTest(body); });
  }
}

}  // namespace wick::parity
