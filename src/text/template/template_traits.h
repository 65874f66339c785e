// What a chat template can do and how it wants its conversation, found out by rendering small conversations.
#pragma once

#include <string>

#include "text/template/chat_template.h"

namespace hearth {

struct TemplateTraits {
  bool system_role = false;        // a first system message reaches the prompt
  bool system_anywhere = false;    // so does one in the middle
  bool developer_role = false;     // a first developer message reaches the prompt
  bool repeated_roles = false;     // two user messages in a row are accepted
  bool user_after_tool = true;     // so is one behind the result of a call
  bool tools = false;              // the list of tools reaches the prompt
  bool tool_calls = false;         // a past call and its result reach the prompt
  bool string_arguments = false;   // arguments of calls must be a string, not an object
  bool short_call_ids = false;     // ids of calls must be 9 characters (Mistral)
  bool null_content = false;       // a call without content may have null content
  bool string_content = false;     // content may be a string
  bool content_parts = false;      // content may be a list of {"type": "text", "text": ...}
  std::string thinking_variable;   // the boolean variable that switches reasoning; empty if there is none
  bool thinks_by_default = false;  // what the template does when that variable is not given
  std::string reasoning_field;  // where past reasoning goes: reasoning_content, thinking, reasoning; empty if dropped
};

// Renders about twenty conversations of a few words. Cannot fail: what does not render counts as not supported.
TemplateTraits detect_traits(const ChatTemplate& chat_template, const TemplateOptions& options);

}  // namespace hearth
