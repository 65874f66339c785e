// What an answer must look like.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hearth {

// A compiled grammar of one model's tokens: immutable, shared by all requests that want the same.
class Grammar;

struct GrammarSource {
  enum class Kind : uint8_t {
    kJson,        // any JSON value; `text` is empty
    kJsonObject,  // any JSON object; `text` is empty
    kJsonSchema,  // `text` is a JSON Schema
    kToolCalls,  // calls in the model's own form; `text` is JSON: {"tools": [...], "name": null or the one that must be
                 // called, "parallel": more calls may follow, "opened": OutputMarkers::tool_call_open stands already,
                 // "or_schema": null or a JSON Schema that the answer may follow instead of calling, "or_gbnf": null or
                 // a grammar in GBNF, likewise}. Of a tool that is not "strict", keywords that no grammar can say are
                 // left out
    kGbnf,       // `text` is a grammar in llama.cpp's GBNF; starts at the rule root
  };
  Kind kind = Kind::kJson;
  std::string text;
  // Asked while it is compiled, which may take a second. False: nobody waits any longer, and compiling ends with
  // kCancelled.
  std::function<bool()> wanted;
};

// A grammar at work on one answer.
struct Constraint {
  std::shared_ptr<const Grammar> grammar;  // nullptr: the answer is free
  // It applies from the end of the first of these texts in the answer on; empty: from the first token. They are looked
  // for in the text with the names of control tokens.
  std::string after;
  // Once the grammar is complete the answer is free again, until `after` comes again. Otherwise it must end there.
  bool repeats = false;
};

}  // namespace hearth
