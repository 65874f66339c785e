"""A running scripted server, and what the streams of each protocol must look like."""
import http.client
import json
import re
import subprocess
import tempfile
import threading


def call(name, **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


PATCH = '*** Begin Patch\n*** Add File: a.txt\n+say "hi"\n*** End Patch'
RULES = [
    {"has": ["WEATHER", "<tool_response>"], "say": "It rains in Rome."},
    {"has": ["WEATHER"], "say": "Let me look.\n" + call("get_weather", city="Rome") + "\n" + call("get_weather", city="Oslo")},
    {"has": ["PONDER", "<think>\n"], "say": "I wonder.\n</think>\n\nThe answer is 42."},
    {"has": ["PONDER"], "say": "The answer is 42."},
    {"has": ["MUSE", "<think>\n"], "say": "I must look.\n" + call("get_weather", city="Rome") + "\n</think>\n"},
    {"has": ["PATCH"], "say": call("apply_patch", input=PATCH)},
    {"has": ["SHELL"], "say": call("local_shell", command=["ls", "-l"])},
    {"has": ["SPACED"], "say": call("mcp__files__read", path="x")},
    {"has": ["SLOW"], "say": "one two three four five six seven eight nine ten " * 20, "token_ms": 20},
    {"has": ["BREAK"], "say": "One", "fail": "the device is gone"},
    {"say": "One, two, three."},
]


class Scripted:
    def __init__(self, program, model, rules, *arguments):
        self.script = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(rules, self.script)
        self.script.flush()
        self.process = subprocess.Popen([program, model, self.script.name, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.port = None
        while self.port is None:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError("it did not start: " + "".join(self.lines))
            self.lines.append(line)
            if found := re.match(r"Listening on http://.*:(\d+)$", line):
                self.port = int(found[1])
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.reader.join()
        self.process.stderr.close()
        self.script.close()
        return code

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text

    def json(self, method, path, body=None, status=200):
        found, headers, text = self.ask(method, path, body)
        assert found == status, (found, text)
        return json.loads(text)

    def stream(self, path, body):
        """The text of a stream."""
        status, headers, text = self.ask("POST", path, body)
        assert status == 200, (status, text)
        return headers, text


def check(condition, *found):
    if not condition:
        raise AssertionError(found)


def events_of(text):
    """Server-sent events whose name is their type."""
    events = []
    check(text.endswith("\n\n"), text[-200:])
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        check(name == "event: " + event["type"], name, event)
        events.append(event)
    return events


def anthropic_message(text):
    """The message that a stream of /v1/messages makes; every rule of its order is checked."""
    events = events_of(text)
    check(events[0]["type"] == "message_start", events[0])
    message = events[0]["message"]
    check(message["content"] == [] and message["stop_reason"] is None and message["usage"]["input_tokens"] > 0, message)
    opened, pieces, ended = None, None, False
    for event in events[1:]:
        kind = event["type"]
        check(kind == "ping" or not ended or kind == "message_stop", event)
        if kind == "content_block_start":
            check(opened is None and event["index"] == len(message["content"]), event)
            opened, pieces = event["content_block"], ""
            message["content"].append(opened)
        elif kind == "content_block_delta":
            check(opened is not None and event["index"] == len(message["content"]) - 1, event)
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                check(opened["type"] == "tool_use", event)
                pieces += delta["partial_json"]
            elif delta["type"] == "signature_delta":
                check(opened["type"] == "thinking", event)
                opened["signature"] += delta["signature"]
            else:
                field = delta["type"].removesuffix("_delta")
                check(opened["type"] == field and field in ("text", "thinking"), event)
                opened[field] += delta[field]
        elif kind == "content_block_stop":
            check(opened is not None and event["index"] == len(message["content"]) - 1, event)
            if opened["type"] == "tool_use":
                opened["input"] = json.loads(pieces or "{}")
            opened = None
        elif kind == "message_delta":
            check(opened is None, event)
            message |= event["delta"]
            message["usage"] = event["usage"]
            ended = True
        elif kind != "message_stop":
            check(kind == "ping", event)
    check(events[-1]["type"] == "message_stop" and ended, events[-1])
    return message


def openai_response(text):
    """The response at the end of a stream of /v1/responses; items and parts are put together and compared with it."""
    events = events_of(text)
    check([e["sequence_number"] for e in events] == list(range(len(events))), "sequence numbers")
    check([e["type"] for e in events[:2]] == ["response.created", "response.in_progress"], events[:2])
    check(events[0]["response"]["status"] == "in_progress" and events[0]["response"]["output"] == [], events[0])
    items, texts, opened = [], {}, None
    for event in events[2:-1]:
        kind = event["type"].removeprefix("response.")
        if kind == "in_progress":
            continue
        if kind == "output_item.added":
            check(opened is None and event["output_index"] == len(items), event)
            opened, texts = event["item"], {}
            continue
        check(opened is not None and event["output_index"] == len(items), event)
        if kind == "output_item.done":
            check(event["item"]["id"] == opened["id"] and event["item"]["type"] == opened["type"], event)
            items.append(event["item"])
            opened = None
            continue
        check(event["item_id"] == opened["id"], event)
        of, what = kind.rsplit(".", 1)
        if what == "delta":
            texts[of] = texts.get(of, "") + event["delta"]
        elif what == "done" and "part" not in event:
            check(texts.get(of, "") == event.get("text", event.get("arguments", event.get("input"))), event)
    check(opened is None, opened)
    last = events[-1]
    check(last["type"] == "response." + last["response"]["status"], last["type"])
    check(last["response"]["output"] == items, last["response"]["output"], items)
    return last["response"]


def chat_message(text):
    """Text and calls of a stream of /v1/chat/completions."""
    check(text.endswith("data: [DONE]\n\n"), text[-100:])
    message = {"content": "", "reasoning_content": "", "tool_calls": []}
    for block in text.split("\n\n")[:-2]:
        chunk = json.loads(block.removeprefix("data: "))
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning_content"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                if "id" in call:
                    check(call["index"] == len(message["tool_calls"]) and call["function"]["name"], call)
                    message["tool_calls"].append({"name": call["function"]["name"], "arguments": ""})
                message["tool_calls"][call["index"]]["arguments"] += call["function"]["arguments"]
            if choice["finish_reason"]:
                message["finish_reason"] = choice["finish_reason"]
        if chunk.get("usage"):
            message["usage"] = chunk["usage"]
    check("finish_reason" in message, text[-400:])
    return message


def ollama_objects(text):
    objects = [json.loads(line) for line in text.splitlines()]
    check(all(not o["done"] for o in objects[:-1]) and objects[-1]["done"], objects)
    return objects
