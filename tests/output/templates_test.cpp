// The real templates: each is recognised, and what it makes of a message comes back from the parser as that message.
#include <algorithm>
#include <map>

#include "../support/real_templates.h"
#include "answers.h"
#include "text/template/conversation.h"

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, std::pair<std::string, std::string>>& expected() {
  static const std::map<std::string, std::pair<std::string, std::string>> table = {
      {"GLM-4.6", {"glm", "<think>"}},
      {"HuggingFaceTB-SmolLM3-3B", {"generic", "<think>"}},
      {"Kimi-K2-Thinking", {"kimi", "<think>"}},
      {"MiniMax-M2", {"minimax", "<think>"}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {"mistral", ""}},
      {"NVIDIA-Nemotron-Nano-v2", {"nemotron", "<think>"}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {"hermes", ""}},
      {"Qwen-Qwen2.5-7B-Instruct", {"hermes", ""}},
      {"Qwen-Qwen3-0.6B", {"hermes", "<think>"}},
      {"Qwen3-Coder", {"qwen_xml", ""}},
      {"Qwen3.5-4B", {"qwen_xml", "<think>"}},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", {"deepseek", "<think>"}},
      {"deepseek-ai-DeepSeek-V3.1", {"deepseek", "<think>"}},
      {"deepseek-ai-DeepSeek-V4-Flash-0731", {"dsml", "<think>"}},
      {"google-gemma-2-2b-it", {"generic", ""}},
      {"google-gemma-4-31B-it", {"gemma4", "<|channel>thought"}},
      {"ibm-granite-granite-3.3-2B-Instruct", {"granite", "<think>"}},
      {"meta-llama-Llama-3.1-8B-Instruct", {"llama3", ""}},
      {"meta-llama-Llama-3.2-3B-Instruct", {"llama3", ""}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", ""}},
      {"openai-gpt-oss-120b", {"harmony", "<|channel|>analysis<|message|>"}},
  };
  return table;
}

const Json kTools = Json::parse(R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {
    "type": "object", "properties": {
      "city": {"type": "string", "description": "The city."},
      "days": {"type": "integer", "description": "How many."},
      "ratio": {"type": "number", "description": "A number."},
      "fine": {"type": "boolean", "description": "Whether."},
      "none": {"type": ["integer", "null"], "description": "Perhaps."},
      "maybe": {"type": ["string", "null"], "description": "Perhaps."},
      "tags": {"type": "array", "items": {"type": "string"}, "description": "Some."},
      "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "description": "A place."}},
    "required": ["city"]}}},
  {"type": "function", "function": {"name": "get_time", "description": "Now.", "parameters": {
    "type": "object", "properties": {}}}}])");

Json call(const char* name, Json arguments, const char* id) {
  return Json{
      {"id", id}, {"type", "function"}, {"function", Json{{"name", name}, {"arguments", std::move(arguments)}}}};
}

// Conversations end with one of these messages.
std::map<std::string, Json> messages() {
  std::map<std::string, Json> out;
  const auto add = [&](const char* name, const char* content, Json calls, const char* reasoning = "") {
    Json message{{"role", "assistant"}, {"content", content}, {"tool_calls", std::move(calls)}};
    if (message["tool_calls"].empty()) message.erase("tool_calls");
    if (*reasoning != 0) message["reasoning_content"] = reasoning;
    out[name] = std::move(message);
  };
  const Json hard = Json::parse(R"({
    "city": "  Zürich \"quoted\" 'single' back\\slash\ttab\n\n</html> <b> & {{ 7*7 }} [1] {\"a\": 1} \n",
    "days": -2, "ratio": 0.25, "fine": true, "tags": ["a", "b\n"], "where": {"lat": 47.5, "list": [1, {"x": "y"}, []]}})");
  add("text", "Paris.\n\nIt is <b>nice</b>, {\"a\": 1}.", Json::array());
  add("one", "", Json::array({call("get_weather", Json{{"city", "Oslo"}}, "call00001")}));
  add("empty", "", Json::array({call("get_time", Json::object(), "call00001")}));
  add("content", "Let me look.", Json::array({call("get_weather", Json{{"city", "Oslo"}, {"days", 3}}, "call00001")}));
  add("hard", "", Json::array({call("get_weather", hard, "call00001")}));
  add("numbers", "",
      Json::array({call("get_weather", Json{{"city", "5"}, {"days", 12345678901}, {"ratio", 1e-7}, {"fine", false}},
                        "call00001")}));
  add("strings", "", Json::array({call("get_weather", Json{{"city", ""}, {"maybe", "null and void"}}, "call00001")}));
  add("newlines", "", Json::array({call("get_weather", Json{{"city", "\n\na\n\n"}}, "call00001")}));
  add("code", "",
      Json::array({call("get_weather", Json{{"city", "def f(x):\n    return \"</parameter>\" + x['</arg_value>']\n"}},
                        "call00001")}));
  add("nulls", "", Json::array({call("get_weather", Json{{"none", nullptr}, {"maybe", nullptr}}, "call00001")}));
  add("parallel", "Let me look.",
      Json::array({call("get_weather", Json{{"city", "Oslo"}}, "call00001"),
                   call("get_time", Json::object(), "call00002"),
                   call("get_weather", Json{{"days", 1}, {"city", "Bergen"}}, "call00003")}));
  add("reasoning", "", Json::array({call("get_weather", Json{{"city", "Oslo"}}, "call00001")}),
      "I need\n\nthe <tool_call> weather.");
  add("reasoning_text", "Let me look.", Json::array({call("get_time", Json::object(), "call00001")}), "Hm.");
  return out;
}

// What ends a turn; these are tokens that end the generation, so that no parser sees them.
constexpr std::string_view kEnds[] = {"<|im_end|>",
                                      "<|eot_id|>",
                                      "<|eom_id|>",
                                      "</s>",
                                      "[e~[",
                                      "<turn|>",
                                      "<|tool_response>",
                                      "<|call|>",
                                      "<|return|>",
                                      "\n<SPECIAL_12>",
                                      "<SPECIAL_12>",
                                      "<|end_of_text|>",
                                      "<｜end▁of▁sentence｜>",
                                      "<end_of_turn>",
                                      "<|observation|>"};

struct Turn {
  std::string prompt;
  std::string answer;
};

Turn split(const std::string& prompt, const std::string& whole) {
  size_t common = static_cast<size_t>(std::mismatch(prompt.begin(), prompt.end(), whole.begin(), whole.end()).first -
                                      prompt.begin());
  // Where the two differ in their markup, the answer begins with it.
  if (common < prompt.size()) common = prompt.find_last_of(">\n", common == 0 ? 0 : common - 1) + 1;
  std::string answer = whole.substr(common);
  size_t end = answer.size();
  for (std::string_view marker : kEnds) end = std::min(end, answer.find(marker));
  answer.resize(end);
  return {.prompt = whole.substr(0, common), .answer = std::move(answer)};
}

TEST(Templates, AreRecognised) {
  if (real_templates().empty()) GTEST_SKIP() << "no chat templates in " HEARTH_SHARED_DATA "/templates";
  for (const auto& path : real_templates()) {
    const std::string name = path.stem();
    ASSERT_TRUE(expected().contains(name)) << name;
    const OutputMarkers markers = detect_output_markers(read_file(path));
    EXPECT_EQ(markers.dialect, expected().at(name).first) << name;
    EXPECT_EQ(markers.reasoning_open, expected().at(name).second) << name;
    EXPECT_EQ(markers.reasoning_open.empty(), markers.reasoning_close.empty()) << name;
  }
}

TEST(Templates, MessagesComeBack) {
  if (real_templates().empty()) GTEST_SKIP() << "no chat templates in " HEARTH_SHARED_DATA "/templates";
  const TemplateOptions options{.bos_token = "<s>", .eos_token = "</s>"};
  std::map<std::string, int> calls_seen;
  for (const auto& path : real_templates()) {
    const std::string source = read_file(path);
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template) << path;
    const TemplateTraits traits = detect_traits(*chat_template, options);
    const OutputMarkers markers = detect_output_markers(source);
    for (const auto& [name, message] : messages()) {
      SCOPED_TRACE(path.stem().string() + ", " + name);
      const Json user{{"role", "user"}, {"content", "What is the weather?"}};
      ConversationRequest request{.messages = Json::array({user}), .tools = kTools};
      if (message.contains("reasoning_content") && !traits.thinking_variable.empty()) request.think = true;
      auto prompt = render_conversation(*chat_template, traits, request, options);
      if (!prompt) {
        // Hermes' template cannot show parameters of several types.
        for (const char* parameter : {"none", "maybe"}) {
          request.tools[0]["function"]["parameters"]["properties"].erase(parameter);
        }
        prompt = render_conversation(*chat_template, traits, request, options);
      }
      EXPECT_TRUE(prompt) << prompt.error().message;
      if (!prompt) continue;
      request.messages.push_back(message);
      request.add_generation_prompt = false;
      // Nemotron's template tears the last message in two.
      if (markers.dialect == "nemotron") request.messages.push_back(user);
      const auto whole = render_conversation(*chat_template, traits, request, options);
      if (!whole) continue;  // Llama 3 takes one call only

      const Turn turn = split(prompt->text(), whole->text());
      const Answer answer = parse(markers, {.tools_json = kTools.dump(), .prompt_text = turn.prompt}, turn.answer);
      const std::string trace = turn.answer + "\n--- parsed:" + answer.log;

      // What the template does not show cannot come back.
      const std::string content = message["content"];
      const std::string reasoning = message.value("reasoning_content", "");
      const bool shows_content = turn.answer.find(content) != std::string::npos;
      const bool shows_reasoning = turn.answer.find(reasoning) != std::string::npos;
      // Harmony's template makes reasoning of what stands beside a call.
      const bool moved = markers.dialect == "harmony" && message.contains("tool_calls");
      EXPECT_EQ(answer.text, shows_content && !moved ? content : "") << trace;
      EXPECT_EQ(answer.reasoning, moved && !content.empty() ? content : shows_reasoning ? reasoning : "") << trace;
      if (!message.contains("tool_calls") || !traits.tool_calls) {
        EXPECT_TRUE(answer.calls.empty()) << trace;
        continue;
      }
      // Harmony's shows only the first.
      const size_t count = markers.dialect == "harmony" ? 1 : message["tool_calls"].size();
      EXPECT_EQ(answer.calls.size(), count) << trace;
      if (answer.calls.size() != count) continue;
      for (size_t i = 0; i < count; ++i) {
        const Json& function = message["tool_calls"][i]["function"];
        EXPECT_EQ(answer.calls[i].name, function["name"].get<std::string>()) << trace;
        EXPECT_EQ(nlohmann::json::parse(answer.calls[i].arguments, nullptr, false),
                  nlohmann::json(function["arguments"]))
            << trace;
        EXPECT_TRUE(answer.calls[i].complete) << trace;
        ++calls_seen[markers.dialect];
      }
    }
  }
  // Templates of these show calls.
  for (const char* name : {"deepseek", "dsml", "gemma4", "glm", "harmony", "hermes", "kimi", "llama3", "minimax",
                           "mistral", "nemotron", "qwen_xml"}) {
    EXPECT_GT(calls_seen[name], 7) << name;
  }
}

}  // namespace
}  // namespace hearth
