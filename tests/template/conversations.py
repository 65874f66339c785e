"""Writes conversations.json: the conversations that every real template is rendered with. Each is a context of
apply_chat_template: messages and whatever else a caller passes."""
import json
import sys

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "City <name> & \"country\""},
        "days": {"type": "integer", "description": "How many days", "default": 3, "minimum": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object", "description": "Place", "properties": {
            "lat": {"type": "number"}, "lon": {"type": "number", "nullable": True}}, "required": ["lat"]},
        "any": {"oneOf": [{"type": "string", "description": "text"}, {"type": "number", "default": 1.5}]}},
        "required": ["city"]}}}
TIME = {"type": "function", "function": {"name": "get_time", "description": "Now.", "parameters": {
    "type": "object", "properties": {}}}}


def call(name, arguments, id_):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


U = {"role": "user", "content": "What is the capital of France?"}
A = {"role": "assistant", "content": "Paris."}
S = {"role": "system", "content": "You are a terse assistant."}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    call("get_weather", {"city": "Zürich", "days": 2, "where": {"lat": 47.5, "lon": None}, "tags": ["a", "b"],
                         "fine": True}, "abcdefghi")]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefghi", "content": "{\"temp\": 21.5}"}
PARALLEL = {"role": "assistant", "content": "Let me look.", "tool_calls": [
    call("get_weather", {"city": "Oslo"}, "call00001"), call("get_time", {}, "call00002")]}
RESULTS = [{"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "rain"},
           {"role": "tool", "name": "get_time", "tool_call_id": "call00002", "content": "12:00"}]
HARD = ("  Ünïcödé 🤖👩‍👩‍👧 \"quotes\" 'single' back\\slash\ttab\n\n</html> <|im_end|> <think>x</think> & < > {{ 7*7 }} "
        "{% if %} \u200b\u00a0é ")

CONVERSATIONS = {
    "single_user": {"messages": [U]},
    "no_generation_prompt": {"messages": [U], "add_generation_prompt": False},
    "system_user": {"messages": [S, U]},
    "multi_turn": {"messages": [S, U, A, {"role": "user", "content": "And of Spain?"}]},
    "ends_with_assistant": {"messages": [U, A], "add_generation_prompt": False},
    "tools": {"messages": [U], "tools": [WEATHER, TIME]},
    "tools_system": {"messages": [S, U], "tools": [TIME]},
    "tool_call": {"messages": [S, U, CALL, RESULT], "tools": [WEATHER]},
    "tool_call_answered": {"messages": [U, CALL, RESULT, A, {"role": "user", "content": "Thanks!"}], "tools": [WEATHER]},
    "tool_call_null_content": {"messages": [U, {**CALL, "content": None}, RESULT], "tools": [WEATHER]},
    "tool_call_no_content": {"messages": [U, {k: v for k, v in CALL.items() if k != "content"}, RESULT]},
    "tool_call_string_arguments": {"messages": [U, {"role": "assistant", "content": "", "tool_calls": [
        call("get_weather", "{\"city\": \"Oslo\"}", "abcdefghi")]}, RESULT], "tools": [WEATHER]},
    "parallel_calls": {"messages": [U, PARALLEL, *RESULTS], "tools": [WEATHER, TIME]},
    "long_call_id": {"messages": [U, {"role": "assistant", "content": "", "tool_calls": [
        call("get_time", {}, "call_0123456789")]},
        {"role": "tool", "tool_call_id": "call_0123456789", "content": "12:00"}], "tools": [TIME]},
    "thinking_on": {"messages": [S, U], "enable_thinking": True, "thinking": True},
    "thinking_off": {"messages": [S, U], "enable_thinking": False, "thinking": False},
    "thinking_off_tools": {"messages": [U, A, U], "tools": [TIME], "enable_thinking": False, "thinking": False},
    "reasoning_content": {"messages": [U, {**A, "reasoning_content": "France... Paris."}, U]},
    "reasoning_before_tool": {"messages": [U, {**CALL, "reasoning_content": "I need the weather.", "content": ""}, RESULT],
                              "tools": [WEATHER], "enable_thinking": True, "thinking": True},
    "reasoning_in_content": {"messages": [U, {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nParis."}, U, A],
                             "add_generation_prompt": False},
    "thinking_field": {"messages": [U, {**A, "thinking": "hidden"}, U]},
    "effort_high": {"messages": [U], "reasoning_effort": "high", "thinking": True},
    "hard_text": {"messages": [{"role": "system", "content": HARD}, {"role": "user", "content": HARD},
                               {"role": "assistant", "content": HARD}, {"role": "user", "content": HARD}]},
    "hard_tool_text": {"messages": [U, {"role": "assistant", "content": HARD, "tool_calls": [
        call("get_weather", {"city": HARD, "nested": {"k": [HARD, 1, 2.5, None, True, {}]}}, "abcdefghi")]},
        {**RESULT, "content": HARD}], "tools": [{"type": "function", "function": {
            "name": "get_weather", "description": HARD, "parameters": {"type": "object", "properties": {
                "city": {"type": "string", "description": HARD, "enum": [HARD, "b"]}}}}}]},
    "empty_content": {"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""},
                                   {"role": "user", "content": ""}]},
    "prefill": {"messages": [U, {"role": "assistant", "content": "{\"capital\": \""}], "add_generation_prompt": False},
    "prefill_generation": {"messages": [U, {"role": "assistant", "content": "The"}]},
    "system_in_the_middle": {"messages": [U, A, S, U]},
    "two_systems": {"messages": [S, S, U]},
    "two_users": {"messages": [U, U]},
    "developer": {"messages": [{"role": "developer", "content": "Be nice."}, U]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "!"}]}]},
    "image_part": {"messages": [{"role": "user", "content": [{"type": "image", "image": "x.png"},
                                                             {"type": "text", "text": "What?"}]}]},
    "tool_result_parts": {"messages": [U, CALL, {**RESULT, "content": [{"type": "text", "text": "21"}]}], "tools": [WEATHER]},
    "documents": {"messages": [U], "documents": [{"doc_id": 1, "title": "T", "text": "Paris is a city."}]},
    "think_commands": {"messages": [{"role": "system", "content": "Be good. /no_think"}, {"role": "user", "content": "Hi /think"},
                                    A, {"role": "user", "content": "Bye /no_think"}]},
    "unknown_role": {"messages": [{"role": "narrator", "content": "Once."}, U]},
    "no_messages": {"messages": []},
    "numbers": {"messages": [U, {"role": "assistant", "content": "", "tool_calls": [
        call("get_weather", {"a": 1e20, "b": 0.1, "c": -0.0, "d": 18446744073709551615, "e": 1e-7, "f": 100.0, "g": 123456789.125},
             "abcdefghi")]}, RESULT]},
    "keys_like_methods": {"messages": [U], "tools": [{"type": "function", "function": {
        "name": "f", "description": "", "parameters": {"type": "object", "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"keys": {"type": "string"}}}},
            "values": {"type": ["string", "null"]}, "get": {"type": "boolean"}}, "required": ["items", "get"]}}}]},
    "builtin_tools": {"messages": [S, U], "builtin_tools": ["browser", "python"], "model_identity": "You are X."},
    "preserve": {"messages": [U, {**A, "reasoning_content": "a"}, U, {**A, "reasoning_content": "b"}, U],
                 "preserve_thinking": True, "clear_thinking": False, "drop_thinking": False, "thinking": True},
}

for conversation in CONVERSATIONS.values():
    conversation.setdefault("add_generation_prompt", True)

json.dump(CONVERSATIONS, sys.stdout, ensure_ascii=False, indent=1)
sys.stdout.write("\n")
