"""Renders conversations as chat_template.jinja does, and marks which stretches the assistant said."""
import json

TOOLS_HEAD = "# Tools\n\nYou may call one of these functions to help the user:\n<tools>"
TOOLS_TAIL = (
    "\n</tools>\n\nCall a function like this:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


def call_text(call):
    return f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {json.dumps(call["arguments"])}}}\n</tool_call>'


def segments(messages, tools=None):
    """[(text, learn)]: learn marks what the assistant writes, its <|im_end|> included."""
    out, first = [], 0
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    if tools:
        text = (system + "\n\n" if system else "") + TOOLS_HEAD
        text += "".join("\n" + json.dumps(t) for t in tools) + TOOLS_TAIL
        out.append((f"<|im_start|>system\n{text}<|im_end|>\n", False))
    elif system is not None:
        out.append((f"<|im_start|>system\n{system}<|im_end|>\n", False))
    first = 1 if system is not None else 0
    users = [i for i, m in enumerate(messages) if m["role"] == "user"]
    last_user = users[-1] if users else -1
    for i, m in enumerate(messages[first:], first):
        if m["role"] == "assistant":
            out.append(("<|im_start|>assistant\n", False))
            if m.get("reasoning") and i > last_user:
                out.append(("<think>\n", False))
                out.append((f"{m['reasoning']}\n</think>\n\n", True))
            text = m.get("content") or ""
            if m.get("call"):
                text += ("\n" if text else "") + call_text(m["call"])
            out.append((text + "<|im_end|>", True))
            out.append(("\n", False))
        elif m["role"] == "tool":
            out.append((f"<|im_start|>user\n<tool_response>\n{m['content']}\n</tool_response><|im_end|>\n", False))
        else:
            out.append((f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n", False))
    return out


def prompt(messages, tools=None, thinking=False):
    text = "".join(t for t, _ in segments(messages, tools)) if messages else ""
    return text + "<|im_start|>assistant\n" + ("<think>\n" if thinking else "")
