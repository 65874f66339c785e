#include "text/grammar/tool_calls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/gbnf.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"

namespace hearth::grammar {
namespace {

using Json = nlohmann::ordered_json;

struct Tool {
  std::string name;
  Json parameters;
  bool strict = false;
};

struct CallRequest {
  std::vector<Tool> tools;
  bool parallel = false;
  bool opened = false;
  Json or_schema, or_gbnf;  // what the answer may be instead; both null: only calls
};

Result<CallRequest> read_request(std::string_view text) {
  HEARTH_ASSIGN(Json json, parse_json(text, "the tools"));
  if (!json.is_object() || !json.contains("tools") || !json["tools"].is_array()) {
    return fail(ErrorCode::kUsage, "read the tools: expected {{\"tools\": [...], \"name\": ..., \"parallel\": ...}}");
  }
  CallRequest out;
  out.parallel = json.value("parallel", Json(false)) == Json(true);
  out.opened = json.value("opened", Json(false)) == Json(true);
  out.or_schema = json.value("or_schema", Json());
  out.or_gbnf = json.value("or_gbnf", Json());
  const Json wanted = json.value("name", Json());
  for (const Json& entry : json["tools"]) {
    if (!entry.is_object()) return fail(ErrorCode::kUsage, "read the tools: a tool is not an object");
    if (entry.contains("type") && entry["type"] != Json("function")) continue;
    const Json& function = entry.contains("function") ? entry["function"] : entry;
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
      return fail(ErrorCode::kUsage, "read the tools: a tool has no name");
    }
    Tool tool{.name = function["name"].get<std::string>(),
              .parameters = function.value("parameters", Json()),
              .strict = function.value("strict", Json(false)) == Json(true)};
    if (wanted.is_string() && wanted != Json(tool.name)) continue;
    if (tool.parameters.is_null()) tool.parameters = Json{{"type", "object"}, {"properties", Json::object()}};
    out.tools.push_back(std::move(tool));
  }
  if (out.tools.empty()) {
    return wanted.is_string() ? fail(ErrorCode::kUsage, "read the tools: none of them is named {}", wanted.dump())
                              : fail(ErrorCode::kUsage, "read the tools: there is none to call");
  }
  return out;
}

class Writer {
 public:
  Writer(const CallRequest& request, const TokenTrie& tokens, std::function<bool()> wanted)
      : request_(request), schemas_(rules_) {
    rules_.wanted = std::move(wanted);
    for (int32_t token = 0; token < tokens.vocab_size(); ++token) {
      const std::string_view bytes = tokens.bytes(token);
      if (bytes.starts_with(kControlByte)) controls_.push_back(bytes.substr(1));
    }
  }

  Result<Rules> hermes() {
    std::vector<ExprId> calls;
    for (const Tool& tool : request_.tools) {
      HEARTH_ASSIGN(ExprId call, json_call(tool, "arguments"));
      calls.push_back(call);
    }
    const ExprId rest = rules_.sequence({line(), rules_.choice(std::move(calls)), line(), marker("</tool_call>")});
    return repeated(marker("<tool_call>"), rest, rules_.bytes("\n"));
  }

  Result<Rules> qwen_xml() {
    std::vector<ExprId> calls;
    for (const Tool& tool : request_.tools) {
      HEARTH_ASSIGN(ExprId fields, xml_parameters(tool));
      calls.push_back(rules_.sequence({rules_.bytes("<function=" + tool.name + ">\n"), fields}));
    }
    const ExprId rest = rules_.sequence(
        {rules_.bytes("\n"), rules_.choice(std::move(calls)), rules_.bytes("</function>\n"), marker("</tool_call>")});
    return repeated(marker("<tool_call>"), rest, rules_.bytes("\n"));
  }

  // The whole message is one call.
  Result<Rules> llama3() {
    std::vector<ExprId> calls;
    for (const Tool& tool : request_.tools) {
      HEARTH_ASSIGN(ExprId call, json_call(tool, "parameters"));
      calls.push_back(call);
    }
    return finished(rules_.choice(std::move(calls)));
  }

  // Three forms, told apart by the tokens that the vocabulary has for them.
  Result<Rules> mistral() {
    const ExprId open = marker("[TOOL_CALLS]");
    std::vector<ExprId> calls;
    if (is_control("[ARGS]")) {
      for (const Tool& tool : request_.tools) {
        HEARTH_ASSIGN(ExprId arguments, arguments_of(tool));
        std::vector<ExprId> parts{rules_.bytes(tool.name)};
        if (is_control("[CALL_ID]")) {
          parts.push_back(rules_.optional(rules_.sequence({marker("[CALL_ID]"), call_id()})));
        }
        parts.push_back(marker("[ARGS]"));
        parts.push_back(arguments);
        calls.push_back(rules_.sequence(std::move(parts)));
      }
      return repeated(open, rules_.choice(std::move(calls)), -1);
    }
    for (const Tool& tool : request_.tools) {
      HEARTH_ASSIGN(ExprId arguments, arguments_of(tool));
      const ExprId id = rules_.optional(rules_.sequence({rules_.bytes(", \"id\": \""), call_id(), rules_.bytes("\"")}));
      calls.push_back(rules_.sequence({head_of(tool, "arguments"), arguments, id, rules_.bytes("}")}));
    }
    const ExprId call = rules_.rule(rules_.add_rule("call", rules_.choice(std::move(calls))));
    const ExprId more = rules_.sequence({rules_.bytes(","), blank(), call});
    const ExprId list =
        rules_.sequence({blank(), rules_.bytes("["), call,
                         request_.parallel ? rules_.repeat(more, 0, kUnbounded) : rules_.bytes(""), rules_.bytes("]")});
    return finished(request_.opened ? list : rules_.sequence({open, list}));
  }

 private:
  bool is_control(std::string_view name) const { return std::ranges::find(controls_, name) != controls_.end(); }
  // Markup that is one control token in some vocabularies, and text in the others.
  ExprId marker(std::string_view name) {
    return rules_.bytes(is_control(name) ? kControlByte + std::string(name) : std::string(name));
  }
  ExprId blank() { return rules_.optional(rules_.bytes(" ")); }
  ExprId line() { return rules_.optional(rules_.bytes("\n")); }
  ExprId call_id() { return rules_.repeat(rules_.chars({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}), 9, 9); }

  ExprId head_of(const Tool& tool, std::string_view key) {
    return rules_.sequence({rules_.bytes("{\"name\":"), blank(), rules_.bytes(Json(tool.name).dump() + ","), blank(),
                            rules_.bytes("\"" + std::string(key) + "\":"), blank()});
  }
  Result<ExprId> arguments_of(const Tool& tool) {
    return schemas_.compile(tool.parameters, "the parameters of tool " + tool.name, {.lenient = !tool.strict});
  }
  Result<ExprId> json_call(const Tool& tool, std::string_view key) {
    HEARTH_ASSIGN(ExprId arguments, arguments_of(tool));
    return rules_.sequence({head_of(tool, key), arguments, rules_.bytes("}")});
  }

  // Text stands as it is, everything else as JSON.
  Result<ExprId> xml_parameters(const Tool& tool) {
    HEARTH_ASSIGN(auto properties, schemas_.properties(tool.parameters, "the parameters of tool " + tool.name,
                                                       {.lenient = !tool.strict}));
    std::vector<ExprId> fields;
    std::vector<bool> required;
    static constexpr std::string_view kClose = "\n</parameter>\n";
    for (const SchemaCompiler::Property& property : properties) {
      ExprId value = -1;
      if (!property.text) {
        value = rules_.sequence({property.json, rules_.bytes(kClose)});
      } else if (!property.choices.empty()) {
        std::vector<ExprId> choices;
        for (const std::string& choice : property.choices) choices.push_back(rules_.bytes(choice));
        value = rules_.sequence({rules_.choice(std::move(choices)), rules_.bytes(kClose)});
      } else {
        if (text_rule_ < 0) text_rule_ = rules_.add_rule("text", rules_.until(kClose));
        value = rules_.rule(text_rule_);
      }
      fields.push_back(rules_.sequence({rules_.bytes("<parameter=" + property.name + ">\n"), value}));
      required.push_back(property.required);
    }
    if (fields.empty()) return rules_.bytes("");
    return rules_.fields(rules_.bytes(""), fields, required, -1);
  }

  // The call: `open` and `rest`, the first one without `open` if that is there already; more calls behind `separator`.
  Result<Rules> repeated(ExprId open, ExprId rest, ExprId separator) {
    const ExprId call = rules_.rule(rules_.add_rule("call", rest));
    std::vector<ExprId> parts;
    if (!request_.opened) parts.push_back(open);
    parts.push_back(call);
    if (request_.parallel) {
      std::vector<ExprId> more{open, call};
      if (separator >= 0) more.insert(more.begin(), separator);
      parts.push_back(rules_.repeat(rules_.sequence(std::move(more)), 0, kUnbounded));
    }
    return finished(rules_.sequence(std::move(parts)));
  }

  Result<Rules> finished(ExprId root) {
    if (!request_.or_schema.is_null()) {
      HEARTH_ASSIGN(const ExprId answer, schemas_.compile(request_.or_schema, "the JSON schema", {}));
      root = rules_.choice({root, answer});
    }
    if (request_.or_gbnf.is_string()) {
      HEARTH_ASSIGN(const ExprId answer, add_gbnf(rules_, request_.or_gbnf.get_ref<const std::string&>()));
      root = rules_.choice({root, answer});
    }
    rules_.root = rules_.add_rule("calls", root);
    return std::move(rules_);
  }

  const CallRequest& request_;
  Rules rules_;
  SchemaCompiler schemas_;
  std::vector<std::string_view> controls_;
  int32_t text_rule_ = -1;
};

}  // namespace

Result<Rules> tool_call_rules(std::string_view request, std::string_view dialect, const TokenTrie& tokens,
                              std::function<bool()> wanted) {
  HEARTH_ASSIGN(CallRequest calls, read_request(request));
  Writer writer(calls, tokens, std::move(wanted));
  if (dialect == "hermes" || dialect == "generic") return writer.hermes();
  if (dialect == "qwen_xml") return writer.qwen_xml();
  if (dialect == "llama3") return writer.llama3();
  if (dialect == "mistral") return writer.mistral();
  return fail(ErrorCode::kUnsupported,
              "constrain calls of tools in the form '{}': only hermes, qwen_xml, llama3, mistral and generic have a "
              "grammar; calls that the model makes by itself work",
              dialect);
}

}  // namespace hearth::grammar

namespace hearth {

std::string_view tool_call_opener(std::string_view dialect) {
  if (dialect == "hermes" || dialect == "qwen_xml" || dialect == "generic") return "<tool_call>";
  if (dialect == "mistral") return "[TOOL_CALLS]";
  return {};
}

}  // namespace hearth
