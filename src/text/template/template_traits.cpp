#include "text/template/template_traits.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// Words that no template contains.
constexpr const char* kUser = "hearthprobeuser";
constexpr const char* kSystem = "hearthprobesystem";
constexpr const char* kLateSystem = "hearthprobelatesystem";
constexpr const char* kReply = "hearthprobereply";
constexpr const char* kThought = "hearthprobethought";
constexpr const char* kTool = "hearthprobetool";
constexpr const char* kKey = "hearthprobekey";
constexpr const char* kResult = "hearthproberesult";

Json message(const char* role, Json content) { return Json{{"role", role}, {"content", std::move(content)}}; }

Json call_message(Json arguments, const char* id) {
  Json out = message("assistant", "");
  out["tool_calls"] = Json::array({Json{
      {"id", id}, {"type", "function"}, {"function", Json{{"name", kTool}, {"arguments", std::move(arguments)}}}}});
  return out;
}

Json result_message(const char* id) {
  Json out = message("tool", kResult);
  out["tool_call_id"] = id;
  out["name"] = kTool;
  return out;
}

Json tool_list() {
  return Json::array(
      {Json{{"type", "function"},
            {"function", Json{{"name", kTool},
                              {"description", "A probe."},
                              {"parameters", Json{{"type", "object"}, {"properties", Json::object()}}}}}}});
}

class Prober {
 public:
  Prober(const ChatTemplate& chat_template, const TemplateOptions& options)
      : template_(chat_template), options_(options) {}

  // Nothing if the template refuses.
  std::optional<std::string> render(Json messages, Json variables = Json::object()) const {
    Json context{{"messages", std::move(messages)}, {"add_generation_prompt", true}};
    context.update(variables);
    auto rendered = template_.render(context, options_);
    if (!rendered) return std::nullopt;
    return rendered->text();
  }
  bool shows(const char* word, Json messages, Json variables = Json::object()) const {
    const auto text = render(std::move(messages), std::move(variables));
    return text && text->find(word) != std::string::npos;
  }

 private:
  const ChatTemplate& template_;
  const TemplateOptions& options_;
};

}  // namespace

TemplateTraits detect_traits(const ChatTemplate& chat_template, const TemplateOptions& options) {
  const Prober prober(chat_template, options);
  TemplateTraits traits;
  const Json parts = Json::array({Json{{"type", "text"}, {"text", kUser}}});
  traits.string_content = prober.shows(kUser, Json::array({message("user", kUser)}));
  // A template that prints the list itself shows the word too, next to Python's quotes.
  traits.content_parts = prober.shows(kUser, Json::array({message("user", parts)})) &&
                         !prober.shows("'text'", Json::array({message("user", parts)}));
  const Json content = traits.string_content || !traits.content_parts ? Json(kUser) : parts;
  const auto text = [&](const char* word) {
    return content.is_string() ? Json(word) : Json::array({Json{{"type", "text"}, {"text", word}}});
  };
  const Json user = message("user", content);
  const Json reply = message("assistant", text(kReply));
  const Json system = message("system", text(kSystem));

  traits.system_role = prober.shows(kSystem, Json::array({system, user}));
  // Some templates keep only the last system message, others put it at the front.
  const auto late = prober.render(Json::array({system, user, reply, message("system", text(kLateSystem)), user}));
  traits.system_anywhere =
      late && late->find(kSystem) != std::string::npos && late->find(kLateSystem) != std::string::npos &&
      late->find(kLateSystem) > late->find(kReply) &&
      prober.shows(kLateSystem, Json::array({user, reply, message("system", text(kLateSystem)), user}));
  traits.developer_role = prober.shows(kSystem, Json::array({message("developer", text(kSystem)), user}));
  traits.repeated_roles = prober.render(Json::array({user, user})).has_value();
  traits.tools = prober.shows(kTool, Json::array({user}), Json{{"tools", tool_list()}});

  // The id that every template takes is nine letters or digits.
  const auto shows_call = [&](Json arguments, const char* id) {
    return prober.shows(kTool, Json::array({user, call_message(std::move(arguments), id), result_message(id)}));
  };
  const Json object{{kKey, 1}};
  const char* short_id = "probe0001";
  const bool takes_object = shows_call(object, short_id);
  traits.tool_calls = takes_object || shows_call(object.dump(), short_id);
  if (traits.tool_calls) {
    const auto with = [&](Json arguments) {
      return prober.render(Json::array({user, call_message(std::move(arguments), short_id), result_message(short_id)}));
    };
    const auto from_object = with(object);
    // Python's way to print a dict, 'key': 1, is not what a model was trained on.
    traits.string_arguments = !from_object || from_object->find("'" + std::string(kKey) + "'") != std::string::npos ||
                              from_object->find(kKey) == std::string::npos;
    const Json arguments = traits.string_arguments ? Json(object.dump()) : object;
    traits.short_call_ids = !shows_call(arguments, "call_probe_0001");
    Json without_content = call_message(arguments, short_id);
    without_content["content"] = nullptr;
    const auto text_of_null = prober.render(Json::array({user, without_content, result_message(short_id)}));
    traits.null_content = text_of_null && text_of_null->find("None") == std::string::npos;
    traits.user_after_tool =
        prober.render(Json::array({user, call_message(arguments, short_id), result_message(short_id), user}))
            .has_value();
  }

  for (const char* variable : {"enable_thinking", "thinking", "think", "enable_reasoning", "reasoning"}) {
    if (!chat_template.reads_variable(variable)) continue;
    const auto on = prober.render(Json::array({user}), Json{{variable, true}});
    const auto off = prober.render(Json::array({user}), Json{{variable, false}});
    if (!on || !off || *on == *off) continue;
    traits.thinking_variable = variable;
    traits.thinks_by_default = prober.render(Json::array({user})) == on;
    break;
  }

  // Reasoning is often kept only between a call and its result, so that is where it is looked for.
  for (const char* field : {"reasoning_content", "thinking", "reasoning"}) {
    if (!chat_template.mentions(field)) continue;
    Json thoughtful = call_message(traits.string_arguments ? Json(object.dump()) : object, short_id);
    thoughtful[field] = kThought;
    Json answer = reply;
    answer[field] = kThought;
    const Json on = traits.thinking_variable.empty() ? Json::object() : Json{{traits.thinking_variable, true}};
    if (prober.shows(kThought, Json::array({user, thoughtful, result_message(short_id)}), on) ||
        prober.shows(kThought, Json::array({user, answer, user}), on)) {
      traits.reasoning_field = field;
      break;
    }
  }
  return traits;
}

}  // namespace hearth
