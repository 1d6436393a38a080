#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "json_value.h"
#include "wick/base/error.h"
#include "wick/text/jinja/template.h"
#include "wick/text/jinja/values/limits.h"

namespace wick::text::jinja {
namespace {

using ::testing::HasSubstr;
using Variables = std::vector<std::pair<std::string, Value>>;

constexpr std::time_t kNow = 1753800000;  // compare_templates.py has the same

const nlohmann::ordered_json& fixture() {
  static const auto json = [] {
    std::ifstream file(WICK_TEST_DATA "/jinja.json");
    return nlohmann::ordered_json::parse(file);
  }();
  return json;
}

MarkedString render(std::string_view source, const Variables& variables = {}) {
  return Template(source).render(variables, kNow);
}

std::string error_of(std::string_view source, const Variables& variables = {}) {
  try {
    render(source, variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Compares a rendering with jinja2's text; null: an error that names a line.
void expect_text(const std::string& source, const Variables& variables,
                 const nlohmann::ordered_json& text) {
  if (text.is_null()) {
    EXPECT_THAT(error_of(source, variables), HasSubstr(": line ")) << source;
    return;
  }
  try {
    EXPECT_EQ(render(source, variables).bytes, text.get<std::string>()) << source;
  } catch (const Error& error) {
    ADD_FAILURE() << source << "\n" << error.what();
  }
}

TEST(Jinja, ConstructsRenderAsInJinja2) {
  const Variables variables = variables_of(fixture()["data"]);
  for (const auto& one : fixture()["cases"]) {
    expect_text(one[0].get<std::string>(), variables, one[1]);
  }
  EXPECT_GT(fixture()["cases"].size(), 200u);
}

TEST(Jinja, ChatTemplatesRenderAsInJinja2) {
  for (const auto& chat : fixture()["chats"]) {
    for (const auto& [name, text] : chat["texts"].items()) {
      SCOPED_TRACE(chat["name"].get<std::string>() + ", " + name);
      expect_text(chat["template"].get<std::string>(),
                  variables_of(fixture()["conversations"][name]), text);
    }
  }
}

// Every prefix of a template either renders or is refused.
TEST(Jinja, PrefixesOfTemplates) {
  const Variables variables = variables_of(fixture()["conversations"]["called, answered"]);
  int rendered = 0, refused = 0;
  for (const auto& chat : fixture()["chats"]) {
    const auto source = chat["template"].get<std::string>();
    for (size_t size = 0; size < source.size(); size += 7) {
      try {
        render(source.substr(0, size), variables);
        ++rendered;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(rendered, 0);
  EXPECT_GT(refused, 100);
}

TEST(Jinja, ErrorsNameTheLineAndTheTag) {
  EXPECT_EQ(error_of("a\n\n{{ 1 }}{% if x.y.z %}{% endif %}"),
            "chat template: 'x' is undefined: line 3, {% if x.y.z %}");
  EXPECT_EQ(
      error_of("{% for i in [1] %}\n  {{- i +\n  'a' }}{% endfor %}"),
      "chat template: unsupported operands of +: 'int' and 'str': line 2, {{- i +\\n  'a' }}");
  EXPECT_EQ(error_of("{{ raise_exception('roles must\nalternate') }}"),
            "chat template: roles must\\nalternate: line 1, {{ raise_exception('roles "
            "must\\nalternate') }}");
  EXPECT_EQ(error_of("x\n{% for a in b %}\ny"),
            "chat template: the block 'for' isn't closed: line 2, for a in b %}");
  EXPECT_EQ(
      error_of("x\n{% include 'a' %}"),
      "chat template: the tag 'include' isn't supported in chat templates: line 2, include 'a' %}");
  EXPECT_EQ(error_of("{{ 'a' | random }}"),
            "chat template: there is no filter 'random': line 1, random }}");
  EXPECT_THAT(error_of("\xff{{ 1 }}"), HasSubstr("invalid UTF-8"));
  EXPECT_THAT(error_of("{{ lipsum() }}"), HasSubstr("'lipsum' is undefined"));
  EXPECT_THAT(error_of("{{ [1] | map('string') }}"), HasSubstr("a generator can't be printed"));
  EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}"), HasSubstr("out of range"));
  EXPECT_THAT(error_of("{{ 9223372036854775808 }}"), HasSubstr("out of range"));
  for (const char* surrogate : {"55296", "57343", "1114112"}) {
    EXPECT_THAT(error_of("{{ '%c' % " + std::string(surrogate) + " }}"),
                HasSubstr("%c needs a character"));
  }
}

/// Checks that a template ends quickly with an error.
void expect_refused(const std::string& source, const std::string& part) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of(source), HasSubstr(part)) << source.substr(0, 100);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

std::string repeated(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(JinjaLimits, Time) {
  const std::string loop = "{% for i in range(99999) %}";
  expect_refused(loop + loop + "{% endfor %}{% endfor %}", "too many steps");
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply");
  expect_refused("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested too deeply");
  expect_refused(
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
      "{{ m(40) }}",
      "too many steps");
  const std::string text = "{% set s = 'é' * 30000000 %}";
  expect_refused(text + loop + "{{ s[i] }}{% endfor %}", "too many steps");
  expect_refused(text + loop + "{{ s.find('x') }}{{ 'y' in s }}{% endfor %}", "too many steps");
  // Containers that hold one object many times.
  const std::string shared =
      "{% set ns = namespace(x=[], y=[], t=()) %}{% for i in range(150) %}{% set ns.x = [ns.x, "
      "ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}";
  for (const char* use : {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == ns.y }}",
                          "{{ ns.x < ns.y }}", "{{ ns.x | string | length }}"}) {
    expect_refused(shared + use, "too many steps");
  }
  expect_refused(shared + "{{ {ns.t: 1} }}", "unhashable type: 'tuple'");
  expect_refused(
      loop + "{% set ns = namespace() %}" +
          [] {
            std::string sets;
            for (int i = 0; i < 500; ++i) sets += "{% set a" + std::to_string(i) + " = 1 %}";
            return sets;
          }() +
          "{% endfor %}",
      "too many steps");
}

TEST(JinjaLimits, Memory) {
  expect_refused(
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}",
      "a text is too long");
  expect_refused("{{ 'a' * 99999999999 }}", "too long");
  expect_refused("{{ [1] * 99999999999 }}", "too much memory");
  expect_refused("{% set s = 'a' * 60000000 %}{{ s }}{{ s }}", "a text is too long");
  expect_refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
      "{% set ns.l = ns.l + ['x' * 9999] %}{% endfor %}",
      "too");
  expect_refused("{{ range(100001) }}", "the limit is 100000 elements");
  expect_refused("{{ 'a'.ljust(99999999999) }}", "too long");
  expect_refused("{{ '%99999d' % 1 }}", "exceeds 1000");
  expect_refused("{{ 'a' | center(99999999999) }}", "too long");
  expect_refused("{{ ('a' * 60000000) | replace('a', 'bb') }}", "too");
}

TEST(JinjaLimits, Nesting) {
  expect_refused("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
                 "nested too deeply");
  expect_refused("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nested too deeply");
  expect_refused("{{ " + repeated("not ", 5000) + "1 }}", "nested too deeply");
  expect_refused("{{ " + repeated("-", 5000) + "1 }}", "nested too deeply");
  expect_refused("{{ 1" + repeated(" + 1", 5000) + " }}", "nested too deeply");
  expect_refused("{{ x" + repeated(".x", 5000) + " }}", "nested too deeply");
  expect_refused("{{ x" + repeated(" | trim", 5000) + " }}", "nested too deeply");
  expect_refused("{{ 1" + repeated(" if 1 else 1", 5000) + " }}", "nested too deeply");
  expect_refused(repeated("{% if 1 %}", 5000), "nested too deeply");
  expect_refused(
      "{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}"
      "{% endfor %}",
      "nested too deeply");
  expect_refused(std::string(kMaxSource + 1, 'a'), "the template is too long");
  EXPECT_EQ(render(repeated("{% if 1 %}", 90) + "x" + repeated("{% endif %}", 90)).bytes, "x");
  EXPECT_EQ(render("{{ 1" + repeated(" ~ 1", 5000) + " }}").bytes, std::string(5001, '1'));
  std::vector<Value> inner;
  for (int i = 0; i < kMaxDepth - 1; ++i) inner = {Value::list(std::move(inner))};
  EXPECT_THROW(Value::list({Value::list(inner)}), Error);
}

// Long chains of objects are released without recursion.
TEST(JinjaLimits, Chains) {
  const std::string start = "{% set ns = namespace(x=none) %}{% for i in range(60000) %}";
  EXPECT_EQ(
      render(start + "{% set before = ns.x %}{% for j in [1] recursive %}{% set ns.x = loop %}"
                     "{% endfor %}{% endfor %}ok")
          .bytes,
      "ok");
  EXPECT_EQ(render(start + "{% set before = ns.x %}{% macro m() %}{% endmacro %}{% set ns.x = m %}"
                           "{% endfor %}ok")
                .bytes,
            "ok");
  expect_refused(start + "{% set ns.x = cycler(ns.x) %}{% endfor %}", "nested too deeply");
  expect_refused(start + "{% set ns.x = joiner(ns.x) %}{% endfor %}", "nested too deeply");
  expect_refused(start + "{% set ns.x = [ns.x].copy %}{% endfor %}", "nested too deeply");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in [1] %}{{ loop.changed(loop) }}"
                   "{% set ns.l = loop %}{% endfor %}{{ ns.l.changed(ns) }}")
                .bytes,
            "TrueTrue");
}

// Objects that refer to themselves are released, which a leak checker observes.
TEST(JinjaLimits, Cycles) {
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"),
              HasSubstr("nested too deeply"));
  EXPECT_EQ(render("{% set ns = namespace() %}{% macro m() %}x{% endmacro %}{% set ns.m = m %}"
                   "{% set ns.list = [ns, m] %}{{ ns.m() }}")
                .bytes,
            "x");
  EXPECT_EQ(render("{% set ns = namespace(last=none) %}{% for i in range(90000) %}"
                   "{% set n = namespace(before=ns.last) %}{% set ns.last = n %}{% endfor %}ok")
                .bytes,
            "ok");
}

/// The content of a rendering, with each range in brackets.
std::string shown(const MarkedString& text) {
  std::string out;
  size_t at = 0;
  for (const TextRange& range : text.content) {
    out += text.bytes.substr(at, range.begin - at) + "[" +
           text.bytes.substr(range.begin, range.end - range.begin) + "]";
    at = range.end;
  }
  return out + text.bytes.substr(at);
}

TEST(Jinja, MarksFollowContent) {
  const Variables variables = {{"c", Value::content(" <a> ")},
                               {"d", Value::dict({{Value::content("k"), Value::content("v\n")},
                                                  {Value::content("n"), Value(1)}})},
                               {"l", Value::list({Value::content("x"), Value::content("y")})}};
  const auto marks = [&](std::string_view source) { return shown(render(source, variables)); };
  EXPECT_EQ(marks("a{{ c }}b"), "a[ <a> ]b");
  EXPECT_EQ(marks("{{ 'x' + c | trim + 'y' }}"), "x[<a>]y");
  EXPECT_EQ(marks("{{ c.strip()[1:] ~ '.' }}{{ c[::-1] }}"), "[a>].[ >a< ]");
  EXPECT_EQ(marks("{{ c | upper }}{{ c.replace('a', 'b') }}"), "[ <A>  <]b[> ]");
  EXPECT_EQ(marks("{{ 'a-b'.replace('-', c) }}"), "a[ <a> ]b");
  EXPECT_EQ(marks("{{ d | tojson }}"), R"({"[k]": "[v\n]", "[n]": 1})");
  EXPECT_EQ(marks("{{ d }}"), "{'[k]': '[v\\n]', '[n]': 1}");
  EXPECT_EQ(marks("{{ l | join(',') }}{{ '-'.join(l) }}"), "[x],[yx]-[y]");
  EXPECT_EQ(marks("{{ '%s=%5s' % (c, l[0]) }}{{ '{}:{:>3}'.format(c, l[1]) }}"),
            "[ <a> ]=    [x <a> ]:  [y]");
  EXPECT_EQ(
      marks("{% set s %}({{ c }}){% endset %}{{ s }}{% filter trim %} {{ l[0] }} {% endfilter %}"),
      "([ <a> ])[x]");
  EXPECT_EQ(marks("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(l[0]) }}"), "<[x]>");
  EXPECT_EQ(marks("{{ c | e }}{{ c.split('a') | join('+') }}"), "[ &lt;a&gt;  <]+[> ]");
  EXPECT_EQ(marks("{{ 'a' if c == ' <a> ' }}{{ c | length }}{{ c | indent('>', first=true) }}"),
            "a5>[ <a> ]");
  EXPECT_EQ(
      marks("{% for x in l %}{{ x * 2 }}{% endfor %}{% for x in c.strip() %}{{ x }}.{% endfor %}"),
      "[xxyy<].[a].[>].");
}

}  // namespace
}  // namespace wick::text::jinja
