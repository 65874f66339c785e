#include "server/responses_request.h"

#include <algorithm>
#include <utility>

#include "server/openai.h"

namespace hearth::server {
namespace {

Json function_tool(std::string name, std::string description, Json parameters) {
  Json function = {{"name", std::move(name)}};
  if (!description.empty()) function["description"] = std::move(description);
  function["parameters"] = std::move(parameters);
  return {{"type", "function"}, {"function", std::move(function)}};
}

Json one_string(std::string_view name, std::string description) {
  return {{"type", "object"},
          {"properties", {{name, {{"type", "string"}, {"description", std::move(description)}}}}},
          {"required", Json::array({name})}};
}

// Names of two namespaces may be the same.
std::string full_name(const std::string& name_space, const std::string& name) {
  if (name_space.empty()) return name;
  return name_space.ends_with("__") ? name_space + name : name_space + "__" + name;
}

constexpr const char* kLocalShell = "local_shell";

// ---- tools ----

// Kinds that only some services have are left out.
Answer<void> add_tool(const Json& tool, const std::string& where, const std::string& name_space,
                      ResponsesRequest& request) {
  if (!tool.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(tool));
  Fields f(tool, where);
  const std::string type = f.text("type").value_or("");
  const std::string name = f.text("name").value_or("");
  const std::string description = f.text("description").value_or("");
  using Kind = OfferedTool::Kind;
  if (type == "function" || type == "custom") {
    if (name.empty()) f.expected("name", "the name of the tool");
    if (f.error()) return *f.error();
    OfferedTool offered{
        .kind = type == "custom" ? Kind::kCustom : Kind::kFunction, .name = name, .name_space = name_space};
    Json parameters;
    if (offered.kind == Kind::kCustom) {
      std::string about = "What the tool is given, as plain text.";
      if (const Json* format = f.object("format")) {
        Fields o(*format, where + ".format");
        const std::string definition = o.text("definition").value_or("");
        if (!definition.empty()) {
          about = fmt::format("What the tool is given, as plain text of this {} grammar:\n{}",
                              o.text("syntax").value_or(""), definition);
        }
        if (o.error()) return *o.error();
      }
      parameters = one_string("input", std::move(about));
    } else if (const Json* given = f.object("parameters")) {
      parameters = *given;
    } else {
      parameters = {{"type", "object"}, {"properties", Json::object()}};
    }
    const std::string full = full_name(name_space, name);
    request.chat.tools.push_back(function_tool(full, description, std::move(parameters)));
    if (f.boolean("strict").value_or(false)) request.chat.tools.back()["function"]["strict"] = true;
    request.tools.emplace(full, std::move(offered));
  } else if (type == "local_shell") {
    Json command = {
        {"type", "array"}, {"items", {{"type", "string"}}}, {"description", "The program and its arguments"}};
    request.chat.tools.push_back(function_tool(kLocalShell, "Runs a command on the user's machine",
                                               {{"type", "object"},
                                                {"properties",
                                                 {{"command", std::move(command)},
                                                  {"working_directory", {{"type", "string"}}},
                                                  {"timeout_ms", {{"type", "integer"}}}}},
                                                {"required", Json::array({"command"})}}));
    request.tools.emplace(kLocalShell, OfferedTool{.kind = Kind::kLocalShell, .name = kLocalShell});
  } else if (type == "namespace") {
    const Json* inner = f.array("tools");
    if (f.error()) return *f.error();
    for (size_t i = 0; inner != nullptr && name_space.empty() && i < inner->size(); ++i) {
      HEARTH_TRY(add_tool((*inner)[i], fmt::format("{}.tools[{}]", where, i), name, request));
    }
  }
  if (f.error()) return *f.error();
  return {};
}

// The function that a tool in tool_choice stands for; "": it is of a kind that only some services have. A name within
// one namespace does without the namespace.
std::string chosen_function(const Json& tool, const ResponsesRequest& request) {
  const Json type = tool.is_object() ? tool.value("type", Json()) : Json();
  if (type == "local_shell") return kLocalShell;
  if (type != "function" && type != "custom") return "";
  const std::string name = tool_name(tool);
  if (const Json space = tool.value("namespace", Json()); space.is_string()) {
    return full_name(space.get<std::string>(), name);
  }
  if (request.tools.contains(name)) return name;
  const auto named = [&](const auto& offered) { return offered.second.name == name; };
  const auto found = std::ranges::find_if(request.tools, named);
  return std::ranges::count_if(request.tools, named) == 1 ? found->first : name;
}

Answer<ToolChoice> read_choice(const Json& choice, const ResponsesRequest& request) {
  // With a tool that only some services have the model decides.
  const Json type = choice.is_object() ? choice.value("type", Json()) : Json();
  constexpr std::string_view kKnown[] = {"function", "custom", "local_shell", "allowed_tools", "auto", "none", "any",
                                         "required", ""};
  if (type.is_string() && std::ranges::find(kKnown, type.get_ref<const std::string&>()) == std::end(kKnown)) {
    return ToolChoice{};
  }
  return read_tool_choice(choice, [&](const Json& tool) { return chosen_function(tool, request); });
}

// ---- input ----

// Turns items into messages: text and calls of one turn are one message.
class Conversation {
 public:
  explicit Conversation(const ResponseStore& store) : store_(store) {}

  void add_instructions(const std::string& text) { push("system", text); }

  Answer<void> add(const Json& item, const std::string& where) {
    if (!item.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(item));
    Fields f(item, where);
    const std::string type = f.text("type").value_or("message");
    if (f.error()) return *f.error();
    if (type == "item_reference") {
      const std::string id = f.text("id").value_or("");
      const Json stored = store_.item(id);
      if (stored.is_null()) {
        return invalid(where, "{}: there is no item with the id {}; responses are kept in memory for a while only",
                       where, excerpt(Json(id)));
      }
      return add(stored, where);
    }
    if (type == "message") return add_message(item, f, where);
    if (type == "reasoning") return add_reasoning(item, where);
    if (type == "function_call" || type == "custom_tool_call") {
      const std::string name = full_name(f.text("namespace").value_or(""), f.text("name").value_or(""));
      std::string arguments = f.text("arguments").value_or("{}");
      if (type == "custom_tool_call") arguments = dump({{"input", f.text("input").value_or("")}});
      if (f.error()) return *f.error();
      add_call(call_id(item), name, std::move(arguments));
    } else if (type == "local_shell_call") {
      const Json action = item.value("action", Json());
      add_call(call_id(item), kLocalShell, action.is_object() ? dump(action) : std::string("{}"));
    } else if (type.ends_with("_call_output")) {
      push("tool", output_text(item.value("output", Json())));
      messages.back()["tool_call_id"] = call_id(item);
    }  // others are traces of what only some services do
    return {};
  }

  // Reasoning at the end has no answer yet, and no template shows such.
  Json messages = Json::array();

 private:
  Json& push(std::string_view role, Json content) {
    turn_open_ = false;
    messages.push_back({{"role", role}, {"content", std::move(content)}});
    return messages.back();
  }

  static std::string call_id(const Json& item) {
    for (const char* name : {"call_id", "id"}) {
      if (const Json id = item.value(name, Json()); id.is_string()) return id.get<std::string>();
    }
    return "";
  }

  // What a tool gave back: a string, a list of parts, or whatever a client made of it.
  static std::string output_text(const Json& output) {
    if (output.is_null()) return "";
    if (output.is_string()) return output.get<std::string>();
    if (!output.is_array()) return dump(output);
    std::string text;
    for (const Json& part : output) {
      if (!text.empty()) text += '\n';
      const Json inner = part.is_object() ? part.value("text", Json()) : Json();
      if (inner.is_string()) {
        text += inner.get<std::string>();
      } else if (const Json type = part.is_object() ? part.value("type", Json()) : Json(); type.is_string()) {
        text += named_part(type.get_ref<const std::string&>());
      } else {
        text += dump(part);
      }
    }
    return text;
  }

  Answer<void> add_message(const Json& item, Fields& f, const std::string& where) {
    const std::string role = f.text("role").value_or("");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      f.expected("role", "user, assistant, system or developer");
    }
    if (f.error()) return *f.error();
    const Json content = item.value("content", Json());
    Json parts = Json::array();
    if (content.is_string()) {
      parts.push_back({{"type", "text"}, {"text", content}});
    } else if (!content.is_array()) {
      return invalid(where, "{}.content: it must be a string or a list of parts", where);
    }
    for (size_t i = 0; content.is_array() && i < content.size(); ++i) {
      Json text = content[i].is_object() ? content[i].value("text", content[i].value("refusal", Json())) : Json();
      if (const Json type = content[i].is_object() ? content[i].value("type", Json()) : Json();
          !text.is_string() && role != "user" && type.is_string()) {
        text = named_part(type.get_ref<const std::string&>());
      }
      if (!text.is_string()) {
        return invalid(where, "{}.content[{}]: a part of the type {} cannot be taken; this server takes text only",
                       where, i,
                       content[i].is_object() ? excerpt(content[i].value("type", Json())) : excerpt(content[i]));
      }
      parts.push_back({{"type", "text"}, {"text", std::move(text)}});
    }
    if (role != "assistant") {
      if (!parts.empty()) push(role, std::move(parts));
      return {};
    }
    std::string text;
    for (const Json& part : parts) text += part["text"].get_ref<const std::string&>();
    push("assistant", std::move(text));
    take_reasoning();
    turn_open_ = true;
    return {};
  }

  Answer<void> add_reasoning(const Json& item, const std::string& where) {
    std::string text;
    for (const char* field : {"content", "summary"}) {
      const Json list = item.value(field, Json());
      if (!text.empty() || !list.is_array()) continue;
      for (const Json& part : list) {
        Fields p(part, where);
        text += part.is_object() ? p.text("text").value_or("") : "";
      }
    }
    if (const Json sealed = item.value("encrypted_content", Json()); text.empty() && sealed.is_string()) {
      const auto& kept = sealed.get_ref<const std::string&>();
      if (kept.starts_with(kReasoningMark)) text = kept.substr(kReasoningMark.size());
    }
    turn_open_ = false;
    reasoning_ += text;
    return {};
  }

  void take_reasoning() {
    if (!reasoning_.empty()) messages.back()["reasoning_content"] = std::exchange(reasoning_, "");
  }

  void add_call(std::string id, const std::string& name, std::string arguments) {
    if (!turn_open_) {
      push("assistant", "");
      take_reasoning();
      turn_open_ = true;
    }
    messages.back()["tool_calls"].push_back({{"id", std::move(id)},
                                             {"type", "function"},
                                             {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
  }

  const ResponseStore& store_;
  std::string reasoning_;   // of the turn that follows
  bool turn_open_ = false;  // the last message is the assistant's, and calls belong to it
};

// The items that are asked about, those of the previous response included.
Answer<Json> read_input(Json& body, const ResponseStore& store) {
  Fields f(body);
  Json items = Json::array();
  if (auto previous = f.text("previous_response_id")) {
    const auto stored = store.get(*previous);
    if (!stored) {
      return invalid("previous_response_id",
                     "previous_response_id: there is no response {}; they are kept in memory for a while, and only "
                     "those that were not asked for with store: false",
                     excerpt(Json(*previous)));
    }
    items = stored->input;
    for (const Json& item : stored->response["output"]) items.push_back(item);
  }
  if (f.error()) return *f.error();
  Json input = std::move(body["input"]);
  if (input.is_string()) {
    items.push_back({{"type", "message"},
                     {"role", "user"},
                     {"content", Json::array({Json{{"type", "input_text"}, {"text", std::move(input)}}})}});
  } else if (input.is_array()) {
    for (Json& item : input) items.push_back(std::move(item));
  } else {
    return invalid("input", "input: it must be a string or a list of items, found {}", excerpt(input));
  }
  return items;
}

Answer<void> read_format(Fields& f, ChatRequest& chat) {
  const Json* text = f.object("text");
  if (text == nullptr) return {};
  Fields t(*text, "text");
  const Json* format = t.object("format");
  if (t.error()) return *t.error();
  if (format == nullptr) return {};
  Fields o(*format, "text.format");
  const std::string type = o.text("type").value_or("text");
  if (type == "json_object") {
    chat.limits.format = GrammarSource{GrammarSource::Kind::kJsonObject, ""};
  } else if (type == "json_schema") {
    const Json* schema = o.object("schema");
    if (schema == nullptr) o.expected("schema", "a JSON Schema");
    if (schema != nullptr) chat.limits.format = GrammarSource{GrammarSource::Kind::kJsonSchema, dump(*schema)};
  } else if (type != "text") {
    o.expected("type", "text, json_object or json_schema");
  }
  if (o.error()) return *o.error();
  return {};
}

Answer<void> read_reasoning(Fields& f, ResponsesRequest& request) {
  const Json* reasoning = f.object("reasoning");
  if (reasoning == nullptr) return {};
  Fields r(*reasoning, "reasoning");
  if (auto effort = r.text("effort")) {
    request.chat.thinking = *effort != "none" && *effort != "minimal";
    if (*request.chat.thinking) {
      // Templates know three.
      request.chat.template_variables["reasoning_effort"] =
          *effort == "low" || *effort == "medium" ? *effort : std::string("high");
    }
  }
  request.summary = r.text("summary").value_or("none") != "none";
  if (r.error()) return *r.error();
  return {};
}

// What a response repeats of its request, with the defaults of what was not there.
Json repeated(const Json& body) {
  Json echo = {{"instructions", nullptr},
               {"max_output_tokens", nullptr},
               {"max_tool_calls", nullptr},
               {"metadata", Json::object()},
               {"parallel_tool_calls", true},
               {"previous_response_id", nullptr},
               {"prompt_cache_key", nullptr},
               {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
               {"safety_identifier", nullptr},
               {"store", true},
               {"temperature", nullptr},
               {"text", {{"format", {{"type", "text"}}}}},
               {"tool_choice", "auto"},
               {"tools", Json::array()},
               {"top_logprobs", nullptr},
               {"top_p", nullptr},
               {"user", nullptr}};
  for (auto& [name, value] : echo.items()) {
    const auto it = body.find(name);
    if (it != body.end() && !it->is_null()) value = *it;
  }
  echo["background"] = false;
  echo["service_tier"] = "default";
  echo["truncation"] = "disabled";
  return echo;
}

}  // namespace

Answer<ResponsesRequest> read_responses_request(Json body, const ResponseStore& store) {
  HEARTH_TRY(refuse_unsupported(body));
  ResponsesRequest request;
  ChatRequest& chat = request.chat;
  chat.template_variables = Json::object();
  Fields f(body);
  if (f.boolean("background").value_or(false))
    f.reject("background", "this server answers at once; leave the field out");
  for (const char* name : {"conversation", "prompt"}) {
    if (f.has(name)) f.reject(name, "this server keeps nothing under such an id; send the items as input");
  }
  request.stream = f.boolean("stream").value_or(false);
  request.store = f.boolean("store").value_or(true);
  chat.parallel_tool_calls = f.boolean("parallel_tool_calls").value_or(true);
  const auto best = f.integer("top_logprobs", 0, kMaxTopLogprobs);
  const std::optional<std::string> instructions = f.text("instructions");
  if (const Json* include = f.array("include")) {
    for (const Json& name : *include) {
      request.encrypted |= name == "reasoning.encrypted_content";
      request.logprobs |= name == "message.output_text.logprobs";
    }
  }
  const Json* tools = f.array("tools");
  if (f.error()) return *f.error();
  HEARTH_TRY(read_limits(body, chat.limits));
  chat.limits.n = 1;
  if (auto most = f.integer("max_output_tokens", 1, int64_t{1} << 31)) chat.limits.max_tokens = most;
  if (request.logprobs || best) chat.limits.top_logprobs = best.value_or(0);
  request.logprobs = chat.limits.top_logprobs.has_value();
  HEARTH_TRY(read_format(f, chat));
  HEARTH_TRY(read_reasoning(f, request));
  if (f.error()) return *f.error();
  if (tools != nullptr) {
    chat.tools = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      HEARTH_TRY(add_tool((*tools)[i], fmt::format("tools[{}]", i), "", request));
    }
  }
  if (const Json* choice = f.get("tool_choice")) {
    HEARTH_ASSIGN(chat.tool_choice, read_choice(*choice, request));
  }
  request.echo = repeated(body);
  HEARTH_ASSIGN(request.input, read_input(body, store));
  Conversation conversation(store);
  if (instructions && !instructions->empty()) conversation.add_instructions(*instructions);
  for (size_t i = 0; i < request.input.size(); ++i) {
    HEARTH_TRY(conversation.add(request.input[i], fmt::format("input[{}]", i)));
  }
  chat.messages = std::move(conversation.messages);
  return request;
}

}  // namespace hearth::server
