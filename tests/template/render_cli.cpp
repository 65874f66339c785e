// Renders many cases for the comparison with Jinja: reads {"template", "context", ...} objects, one a line, and writes
// {"ok", "text"} or {"ok": false, "error"} for each.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/template/chat_template.h"

int main() {
  std::ios::sync_with_stdio(false);
  std::tm now{};
  now.tm_year = 2025 - 1900;
  now.tm_mon = 6;
  now.tm_mday = 4;
  now.tm_hour = 15;
  now.tm_min = 9;
  now.tm_sec = 26;
  now.tm_wday = 5;
  now.tm_yday = 184;
  for (std::string line; std::getline(std::cin, line);) {
    const auto input = nlohmann::ordered_json::parse(line);
    hearth::TemplateOptions options{.bos_token = input.value("bos_token", "<s>"),
                                    .eos_token = input.value("eos_token", "</s>"),
                                    .now = now,
                                    .strict_sandbox = input.value("strict", true)};
    nlohmann::ordered_json output;
    const auto fail = [&](const hearth::Error& error) { output = {{"ok", false}, {"error", error.message}}; };
    auto parsed = hearth::ChatTemplate::parse(input["template"].get<std::string>());
    if (!parsed) {
      fail(parsed.error());
    } else if (auto rendered = parsed->render(input["context"], options); !rendered) {
      fail(rendered.error());
    } else {
      output = {{"ok", true}, {"text", rendered->text()}};
    }
    std::cout << output.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n" << std::flush;
  }
}
