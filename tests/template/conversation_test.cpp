// Traits of real templates, and conversations of clients brought into their form.
#include <gtest/gtest.h>

#include "test_files.h"
#include "text/template/conversation.h"

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

const TemplateOptions kOptions{.bos_token = "<s>", .eos_token = "</s>"};

struct Loaded {
  ChatTemplate chat_template;
  TemplateTraits traits;
};
Loaded load(const std::string& source) {
  auto parsed = ChatTemplate::parse(source);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return {*parsed, detect_traits(*parsed, kOptions)};
}
Loaded load_real(const std::string& name) {
  return load(read_file(HEARTH_SHARED_DATA "/templates/" + name + ".jinja"));
}

Json message(const char* role, Json content) { return Json{{"role", role}, {"content", std::move(content)}}; }

std::string render(const Loaded& loaded, ConversationRequest request) {
  auto rendered = render_conversation(loaded.chat_template, loaded.traits, request, kOptions);
  return rendered ? rendered->text() : "error: " + rendered.error().message;
}

#define REQUIRE_TEMPLATES() \
  if (real_templates().empty()) GTEST_SKIP() << "no chat templates in " HEARTH_SHARED_DATA "/templates"

TEST(Traits, OfRealTemplates) {
  REQUIRE_TEMPLATES();
  const TemplateTraits qwen3 = load_real("Qwen-Qwen3-0.6B").traits;
  EXPECT_TRUE(qwen3.system_role && qwen3.tools && qwen3.tool_calls && qwen3.string_content && qwen3.repeated_roles);
  EXPECT_EQ(qwen3.thinking_variable, "enable_thinking");
  EXPECT_TRUE(qwen3.thinks_by_default);
  EXPECT_EQ(qwen3.reasoning_field, "reasoning_content");
  EXPECT_FALSE(qwen3.string_arguments || qwen3.short_call_ids);
  const TemplateTraits gemma2 = load_real("google-gemma-2-2b-it").traits;
  EXPECT_FALSE(gemma2.system_role || gemma2.tools || gemma2.tool_calls || gemma2.repeated_roles);
  EXPECT_EQ(gemma2.thinking_variable, "");
  const TemplateTraits deepseek = load_real("deepseek-ai-DeepSeek-V3.1").traits;
  EXPECT_NE(deepseek.thinking_variable, "");
  EXPECT_FALSE(deepseek.thinks_by_default);
  const TemplateTraits strings = load(
                                     "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ "
                                     "c.function.name + c.function.arguments }}"
                                     "{% endfor %}{% endfor %}")
                                     .traits;
  EXPECT_TRUE(strings.tool_calls && strings.string_arguments && strings.system_anywhere);
  EXPECT_TRUE(load_real("mistralai-Mistral-Nemo-Instruct-2407").traits.short_call_ids);
  EXPECT_EQ(load_real("openai-gpt-oss-120b").traits.reasoning_field, "thinking");
  EXPECT_FALSE(load_real("Qwen3.5-4B").traits.system_anywhere);
}

// System messages anywhere, two at the start, developer, repeated roles: never a refusal, never lost text.
TEST(Conversation, SystemMessagesAnywhereRenderOnEveryTemplate) {
  REQUIRE_TEMPLATES();
  const Json system = message("system", "SYSTEM-ONE"), other = message("system", "SYSTEM-TWO");
  const Json user = message("user", "USER-ONE"), reply = message("assistant", "REPLY"),
             again = message("user", "USER-TWO");
  const Json conversations[] = {
      {system, user, other, again},
      {system, user, reply, other, again},
      {system, other, user},
      {user, reply, system},
      {system, user, again},
      {message("developer", "SYSTEM-ONE"), user},
      {user, system},
      {system, user, reply, again, other},
      {system, message("user", Json::array({Json{{"type", "text"}, {"text", "USER-ONE"}}}))},
  };
  for (const auto& path : real_templates()) {
    const Loaded loaded = load(read_file(path));
    for (const Json& messages : conversations) {
      const std::string text = render(loaded, {.messages = messages});
      EXPECT_NE(text.rfind("error: ", 0), 0u) << path << messages << text;
      for (const char* word : {"SYSTEM-ONE", "SYSTEM-TWO", "USER-ONE", "USER-TWO", "REPLY"}) {
        if (messages.dump().find(word) == std::string::npos) continue;
        EXPECT_NE(text.find(word), std::string::npos) << path << messages << text;
      }
    }
  }
}

// One message for each letter: s system, d developer, u user, a answer, c call, t its result. Each says a word of its
// own, but calls: to some templates what stands beside one is a thought, and goes.
Json conversation_of(const std::string& letters) {
  const char* id = "call00001";
  Json messages = Json::array();
  for (const char letter : letters) {
    const std::string word = "word" + std::to_string(messages.size()) + "end";
    if (letter == 'c') {
      messages.push_back(message("assistant", ""));
      messages.back()["tool_calls"] =
          Json::array({Json{{"id", id}, {"type", "function"}, {"function", Json{{"name", "f"}, {"arguments", "{}"}}}}});
    } else if (letter == 't') {
      messages.push_back(message("tool", word));
      messages.back()["tool_call_id"] = id;
      messages.back()["name"] = "f";
    } else {
      const char* role = letter == 's' ? "system" : letter == 'd' ? "developer" : letter == 'u' ? "user" : "assistant";
      messages.push_back(message(role, word));
    }
  }
  return messages;
}

// The prompts of the requests of that conversation: one in front of each answer or call, and one at the end. "": each
// is the beginning of the next up to the last word that was said in it, and shows all words; else what is wrong.
std::string moved(const Loaded& loaded, const std::string& letters) {
  std::string before;
  for (size_t i = 1; i <= letters.size(); ++i) {
    if (i < letters.size() && letters[i] != 'a' && letters[i] != 'c') continue;
    const Json messages = conversation_of(letters.substr(0, i));
    const std::string prompt = render(loaded, {.messages = messages, .continue_final_message = false});
    size_t end = 0;
    for (const Json& one : messages) {
      const std::string word = one["content"];
      const size_t at = prompt.find(word);
      if (at == std::string::npos) return word + " is lost in\n" + prompt;
      end = std::max(end, at + word.size());
    }
    if (!prompt.starts_with(before)) return before + "\nbecame\n" + prompt;
    before = prompt.substr(0, end);
  }
  return "";
}

// What moves is read again, with everything behind it.
TEST(Conversation, LateSystemMessagesKeepTheirPlaceFromTurnToTurn) {
  REQUIRE_TEMPLATES();
  for (const auto& path : real_templates()) {
    const Loaded loaded = load(read_file(path));
    // Mistral's older templates show the leading one in front of the last question.
    const bool leading_stays = moved(loaded, "suau").empty();
    for (const std::string letters : {"susauau", "usausau", "suassausuau", "sua", "udadu", "dudau", "suctsaua",
                                      "suctscta", "sucstau", "ducttsau", "suctsuau", "suctuau"}) {
      if (letters.find('c') != std::string::npos && !loaded.traits.tool_calls) continue;
      EXPECT_EQ(moved(loaded, letters.substr(leading_stays || letters[0] == 'u' ? 0 : 1)), "")
          << path << " " << letters;
    }
  }
}

TEST(Conversation, ToolCallsAsOpenAiSendsThemRenderOnEveryTemplate) {
  REQUIRE_TEMPLATES();
  Json call = message("assistant", nullptr);
  call["tool_calls"] =
      Json::array({Json{{"id", "call_AbC123456789"},
                        {"type", "function"},
                        {"function", Json{{"name", "get_weather"}, {"arguments", "{\"city\": \"Oslo\"}"}}}}});
  Json result = message("tool", "RAINY");
  result["tool_call_id"] = "call_AbC123456789";
  const Json messages = {message("user", "Weather?"), call, result};
  int with_tools = 0;
  for (const auto& path : real_templates()) {
    const Loaded loaded = load(read_file(path));
    if (!loaded.traits.tool_calls) continue;
    ++with_tools;
    const std::string text = render(loaded, {.messages = messages});
    EXPECT_NE(text.rfind("error: ", 0), 0u) << path << text;
    EXPECT_NE(text.find("get_weather"), std::string::npos) << path << text;
    EXPECT_NE(text.find("Oslo"), std::string::npos) << path << text;
    EXPECT_EQ(text.find("\\\"city"), std::string::npos) << path << text;
    EXPECT_EQ(text.find("None"), std::string::npos) << path << text;
  }
  EXPECT_GE(with_tools, 14);
}

TEST(Conversation, ThinkingIsSwitchedByTheTemplatesOwnVariable) {
  REQUIRE_TEMPLATES();
  const Json messages = {message("user", "Hi")};
  const Loaded qwen3 = load_real("Qwen-Qwen3-0.6B");
  EXPECT_TRUE(render(qwen3, {.messages = messages, .think = false}).ends_with("<think>\n\n</think>\n\n"));
  EXPECT_TRUE(render(qwen3, {.messages = messages, .think = true}).ends_with("<|im_start|>assistant\n"));
  const Loaded deepseek = load_real("deepseek-ai-DeepSeek-V3.1");
  EXPECT_TRUE(render(deepseek, {.messages = messages, .think = true}).ends_with("<think>"));
  EXPECT_TRUE(render(deepseek, {.messages = messages, .think = false}).ends_with("</think>"));
  EXPECT_EQ(render(load_real("google-gemma-2-2b-it"), {.messages = messages, .think = true}).rfind("error: ", 0), 0u);
}

TEST(Conversation, AFinalAssistantMessageIsContinued) {
  REQUIRE_TEMPLATES();
  const Json messages = {message("user", "Give JSON"), message("assistant", "{\"a\": ")};
  for (const auto& path : real_templates()) {
    const Loaded loaded = load(read_file(path));
    for (const std::optional<bool> think : {std::optional<bool>{}, std::optional<bool>{true}}) {
      if (think && loaded.traits.thinking_variable.empty()) continue;
      const std::string text = render(loaded, {.messages = messages, .think = think});
      EXPECT_TRUE(text.ends_with("{\"a\": ")) << path << text;
      EXPECT_EQ(text.find("hearthprefill"), std::string::npos) << path;
      const size_t open = text.rfind("<think>");
      EXPECT_TRUE(open == std::string::npos || text.find("</think>", open) != std::string::npos) << path << text;
    }
  }
}

TEST(Conversation, ChatmlForModelsWithoutATemplate) {
  const Loaded chatml = load(std::string(kChatmlTemplate));
  EXPECT_EQ(render(chatml, {.messages = {message("system", "S"), message("user", "U")}}),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(chatml.traits.system_role && chatml.traits.system_anywhere && !chatml.traits.tools);
}

TEST(Conversation, BadMessagesAreRefusedWithTheirNumber) {
  const TemplateTraits traits = load(std::string(kChatmlTemplate)).traits;
  EXPECT_EQ(normalise_messages("hi", traits).error().message, "messages: found string; a list would work");
  EXPECT_EQ(normalise_messages({message("user", "a"), 5}, traits).error().message,
            "messages: message 1 is not an object with a role");
  EXPECT_EQ(normalise_messages(Json::array({message("user", 5)}), traits).error().message,
            "messages: the content of message 0 is number; a string or a list of parts would work");
  const Json image = Json::array({Json{{"type", "image_url"}, {"image_url", "x"}}});
  EXPECT_NE(normalise_messages(Json::array({message("user", image)}), traits).error().message.find("takes only text"),
            std::string::npos);
}

TEST(Conversation, ReasoningMovesToTheFieldOfTheTemplate) {
  TemplateTraits traits = load(std::string(kChatmlTemplate)).traits;
  traits.reasoning_field = "thinking";
  Json thoughtful = message("assistant", "a");
  thoughtful["reasoning_content"] = "because";
  const auto messages = normalise_messages(Json::array({message("user", "q"), thoughtful}), traits);
  ASSERT_TRUE(messages);
  EXPECT_EQ((*messages)[1], (Json{{"role", "assistant"}, {"content", "a"}, {"thinking", "because"}}));
}

}  // namespace
}  // namespace hearth
