// Renders templates for compare_templates.py. Reads lines of JSON from stdin, {"template": …,
// "variables": {…}, "now": …}, and writes a line for each: {"text": …} or {"error": …}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "json_value.h"
#include "wick/base/error.h"
#include "wick/text/jinja/template.h"

int main() {
  using wick::text::jinja::Template;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::ordered_json::parse(line);
    nlohmann::ordered_json answer;
    try {
      const Template parsed(request.at("template").get<std::string>());
      answer["text"] = parsed
                           .render(wick::text::variables_of(request.at("variables")),
                                   request.at("now").get<std::time_t>())
                           .bytes;
    } catch (const wick::Error& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << std::endl;
  }
}
