// JSON Schema as rules: a text that matches is JSON and valid under the schema.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "text/grammar/rules.h"

namespace hearth::grammar {

// Parses untrusted JSON: kUsage when it is broken, nested too deep or has an object with too many members.
Result<nlohmann::ordered_json> parse_json(std::string_view text, std::string_view what);

struct SchemaOptions {
  // Keywords that no grammar can say are left out; else they are errors.
  bool lenient = false;
};

// What is narrower here than the schema: objects have their properties in the order of the schema, those that it does
// not name only if it says so (additionalProperties) or names none; white space is short; numbers have at most
// kMaxDigits digits; \u escapes of surrogates do not occur.
//
// kUsage for keywords that no grammar can say; the message has the place as a JSON pointer.
class SchemaCompiler {
 public:
  explicit SchemaCompiler(Rules& rules);
  ~SchemaCompiler();

  // `where` names the document in errors. References are within the document.
  Result<ExprId> compile(const nlohmann::ordered_json& document, std::string_view where, const SchemaOptions& options);
  // The properties of an object schema that calls take one by one, with "$ref" and "allOf" resolved.
  struct Property {
    std::string name;
    bool required = false;
    bool text = false;                 // may be a string, and so is written as it is
    std::vector<std::string> choices;  // the strings of an enum that has nothing else
    ExprId json = -1;                  // else
  };
  Result<std::vector<Property>> properties(const nlohmann::ordered_json& document, std::string_view where,
                                           const SchemaOptions& options);

  ExprId white_space();  // short, or none

 private:
  class Document;
  struct Library;
  std::unique_ptr<Library> library_;
};

// Rules whose root is the schema.
Result<Rules> json_schema_rules(std::string_view schema, std::function<bool()> wanted = {});

}  // namespace hearth::grammar
