// Runs a parser over an answer and joins its events.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "text/output/output_parser.h"

namespace hearth {

struct Call {
  std::string name;
  std::string id;
  std::string arguments;
  bool complete = false;
};

struct Answer {
  std::string reasoning;
  std::string text;
  std::vector<Call> calls;
  std::string log;  // the events in their order, neighbours of one kind joined
};

// Checks what holds for every stream of events: calls are numbered, one at a time, and end; complete ones are objects.
inline Answer join(const std::vector<OutputEvent>& events) {
  Answer answer;
  char last = 0;
  bool open = false;
  const auto log = [&](char kind, const std::string& text) {
    if (kind != last || kind == 'C' || kind == 'E') answer.log += std::string("\n") + kind + ":";
    answer.log += text;
    last = kind;
  };
  for (const OutputEvent& event : events) {
    if (const auto* reasoning = std::get_if<ReasoningDelta>(&event)) {
      EXPECT_FALSE(open || reasoning->text.empty());
      answer.reasoning += reasoning->text;
      log('R', reasoning->text);
    } else if (const auto* text = std::get_if<TextDelta>(&event)) {
      EXPECT_FALSE(open || text->text.empty());
      answer.text += text->text;
      log('T', text->text);
    } else if (const auto* start = std::get_if<ToolCallStart>(&event)) {
      EXPECT_FALSE(open || start->name.empty());
      EXPECT_EQ(start->index, static_cast<int32_t>(answer.calls.size()));
      answer.calls.push_back({.name = start->name, .id = start->id});
      open = true;
      log('C', start->name + " " + start->id);
    } else if (const auto* arguments = std::get_if<ToolArgumentsDelta>(&event)) {
      EXPECT_TRUE(open && !arguments->json.empty());
      EXPECT_EQ(arguments->index, static_cast<int32_t>(answer.calls.size()) - 1);
      answer.calls.back().arguments += arguments->json;
      log('A', arguments->json);
    } else if (const auto* end = std::get_if<ToolCallEnd>(&event)) {
      EXPECT_TRUE(open);
      EXPECT_EQ(end->index, static_cast<int32_t>(answer.calls.size()) - 1);
      answer.calls.back().complete = end->complete;
      open = false;
      log('E', end->complete ? "complete" : "cut off");
    }
  }
  EXPECT_FALSE(open);
  return answer;
}

inline std::string tools(std::string_view properties = "{}") {
  std::string out = R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":)";
  out += properties;
  return out + R"(}}},{"type":"function","function":{"name":"get_time"}}])";
}

// `sizes`: of the pieces, round and round; empty: all at once.
inline std::vector<OutputEvent> events_of(const OutputMarkers& markers, const OutputOptions& options,
                                          std::string_view text, const std::vector<size_t>& sizes) {
  auto parser = make_output_parser(markers, options);
  std::vector<OutputEvent> events;
  for (size_t i = 0; !text.empty(); ++i) {
    const size_t size = sizes.empty() ? text.size() : std::min(text.size(), sizes[i % sizes.size()]);
    std::vector<OutputEvent> some;
    parser->push(text.substr(0, size), some);
    events.insert(events.end(), some.begin(), some.end());
    text.remove_prefix(size);
  }
  parser->finish(events);
  EXPECT_FALSE(parser->in_tool_call());
  return events;
}

inline OutputMarkers dialect(const std::string& name) {
  OutputMarkers markers{.dialect = name};
  if (name == "mistral") markers.reasoning_open = "[THINK]", markers.reasoning_close = "[/THINK]";
  if (name == "gemma4") markers.reasoning_open = "<|channel>thought", markers.reasoning_close = "<channel|>";
  return markers;
}

// The same whatever the cuts are: all at once, byte by byte, at random places.
inline Answer parse(const OutputMarkers& markers, const OutputOptions& options, const std::string& text) {
  const Answer whole = join(events_of(markers, options, text, {}));
  EXPECT_EQ(join(events_of(markers, options, text, {1})).log, whole.log) << markers.dialect << ", by bytes: " << text;
  std::mt19937 random(static_cast<uint32_t>(text.size()));
  for (int round = 0; round < 8; ++round) {
    std::vector<size_t> sizes;
    for (int i = 0; i < 50; ++i) sizes.push_back(1 + random() % (round < 4 ? 6 : 40));
    EXPECT_EQ(join(events_of(markers, options, text, sizes)).log, whole.log)
        << markers.dialect << ", cut at random: " << text;
  }
  for (const Call& call : whole.calls) {
    if (!call.complete) continue;
    const auto json = nlohmann::json::parse(call.arguments, nullptr, false);
    EXPECT_TRUE(json.is_object()) << markers.dialect << ": " << call.arguments << "\nfrom " << text;
  }
  return whole;
}

inline Answer parse(const std::string& name, const std::string& text, const std::string& tools_json = tools(),
                    const std::string& prompt = {}) {
  return parse(dialect(name), {.tools_json = tools_json, .prompt_text = prompt}, text);
}

// The calls of an answer, one a line: name, arguments, and "..." if it is cut off.
inline std::string calls_of(const Answer& answer) {
  std::string out;
  for (const Call& call : answer.calls) {
    if (!out.empty()) out += "\n";
    out += call.name + " " + call.arguments + (call.complete ? "" : "...");
  }
  return out;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace hearth
