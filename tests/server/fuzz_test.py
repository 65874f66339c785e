#!/usr/bin/env python3
"""Requests with faults in them, of all protocols: fuzz_test.py PATH/TO/hearth [COUNT [SEED]].

What clients sent once (tests/clients/requests) and requests with every field that the server reads are changed at
random: in their values, in their bytes, in how they are sent. Each gets an answer or that protocol's error, never a 5xx;
the server lives, answers right afterwards, and holds nothing."""
import http.client
import json
import random
import socket
import sys
import threading
import time
from pathlib import Path

COUNT = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 900
SEED = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 1
from serve_test import HI, TOOL, Serve, receive_all, wait_until

CLIENTS = 6
REQUESTS = Path(__file__).resolve().parent.parent / "clients" / "requests"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$", "maxLength": 5}, "b": {"type": "integer", "minimum": 1, "maximum": 9},
          "c": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"enum": ["x", 1]}, {"$ref": "#/$defs/d"}]}, "minItems": 1, "maxItems": 3}},
          "required": ["a"], "additionalProperties": False, "$defs": {"d": {"type": "boolean"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "min_p": 0.1, "typical_p": 0.9, "top_k": 5, "repeat_penalty": 1.1, "repeat_last_n": 64, "presence_penalty": 0.1,
            "frequency_penalty": 0.1, "dry_multiplier": 0.5, "dry_base": 1.5, "dry_allowed_length": 2, "dry_penalty_last_n": 100, "dry_sequence_breakers": ["\n"],
            "xtc_probability": 0.1, "xtc_threshold": 0.1, "seed": 1, "stop": ["zzz"], "ignore_eos": False, "logit_bias": {"5": 1}}
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
CHAT = {"model": "m", "messages": HI, "max_tokens": 3}
# Path and body; together they have every field that some handler reads.
MADE = [
    ("/v1/chat/completions", CHAT | SAMPLING | {"stream": True, "stream_options": {"include_usage": True}, "n": 2, "logprobs": True, "top_logprobs": 2, "return_progress": True}),
    ("/v1/chat/completions", CHAT | {"tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False, "max_completion_tokens": 3, "n_probs": 1, "lora": [], "modalities": ["text"],
                                     "audio": None, "chat_template_kwargs": {"enable_thinking": True, "x": [1]}, "user": "u"}),
    ("/v1/chat/completions", CHAT | {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    ("/v1/chat/completions", CHAT | {"messages": [{"role": "system", "content": "s"}, *HI, {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [CALL]},
                                     {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "warm"}]}]}),
    ("/v1/chat/completions", CHAT | {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}, "reasoning_effort": "low"}),
    ("/v1/chat/completions", CHAT | {"response_format": {"type": "json_object"}, "tools": [TOOL], "tool_choice": "auto"}),
    ("/v1/chat/completions", CHAT | {"grammar": "root ::= \"a\" [b-d]+ (\"x\" | y){1,3}\ny ::= \"z\"?", "thinking": {"type": "enabled", "budget_tokens": 2}, "thinking_budget": 2}),
    ("/v1/chat/completions", CHAT | {"json_schema": SCHEMA, "reasoning": {"effort": "high", "max_tokens": 2, "enabled": True}, "enable_thinking": True}),
    ("/v1/completions", {"model": "m", "prompt": "Once upon", "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}} | SAMPLING),
    ("/v1/completions", {"prompt": ["Once", "upon"], "max_tokens": 3, "echo": True, "logprobs": 2, "best_of": 1, "n": 1, "suffix": None, "n_predict": 3}),
    ("/v1/completions", {"prompt": [[5, 6, 7], [8]], "max_tokens": 3, "echo": True, "logprobs": 1, "suffix": ""}),
    ("/v1/responses", {"model": "m", "input": "Hi", "instructions": "i", "max_output_tokens": 3, "stream": True, "store": True, "include": ["reasoning.encrypted_content"],
                       "parallel_tool_calls": False, "previous_response_id": None, "reasoning": {"effort": "low", "summary": "auto"}, "tools": [FUNCTION, {"type": "web_search"}],
                       "tool_choice": "auto", "top_logprobs": 1, "background": False, "text": {"format": {"type": "text"}, "verbosity": "low"}, "temperature": 0.5}),
    ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}],
                       "encrypted_content": "x"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c",
                       "output": [{"type": "input_text", "text": "o"}]}, {"type": "custom_tool_call", "call_id": "d", "name": "p", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "d", "output": "y"},
                       {"type": "local_shell_call", "call_id": "e", "action": {"type": "exec", "command": ["ls"]}}, {"type": "local_shell_call_output", "call_id": "e", "output": "z"},
                       {"type": "item_reference", "id": "rs_1"}], "max_output_tokens": 3, "tools": [{"type": "custom", "name": "p", "description": "d", "format": {"type": "grammar", "syntax": "lark",
                       "definition": "x"}}, {"type": "local_shell"}, {"type": "namespace", "name": "ns", "description": "d", "tools": [FUNCTION]}], "tool_choice": {"type": "function", "name": "f"},
                       "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}}),
    ("/v1/responses/input_tokens", {"input": "Hi", "instructions": "i"}),
    ("/v1/messages", {"model": "claude-x", "max_tokens": 3, "messages": HI, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}], "stream": True, "stop_sequences": ["zzz"],
                      "temperature": 1, "top_k": 5, "top_p": 0.9, "metadata": {"user_id": "u"}, "thinking": {"type": "enabled", "budget_tokens": 2, "display": "omitted"},
                      "output_config": {"effort": "low"}, "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ("/v1/messages", {"max_tokens": 3, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "document", "source": {"type": "text", "data": "x"}}, {"type": "search_result",
                      "content": [{"type": "text", "text": "r"}]}]}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"},
                      {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "x"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True,
                      "content": [{"type": "text", "text": "c"}, {"type": "tool_reference", "tool_name": "g"}]}]}], "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ("/v1/messages/count_tokens", {"messages": HI, "system": "s"}),
    ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "a", "images": []}, {"role": "assistant", "content": "b", "thinking": "t", "tool_calls": [{"id": "1", "function": {"name": "get_weather",
                   "arguments": {"city": "Rome"}}}]}, {"role": "tool", "content": "c", "tool_name": "get_weather", "tool_call_id": "1"}], "stream": True, "think": True, "format": SCHEMA, "keep_alive": "5m",
                   "logprobs": True, "top_logprobs": 2, "options": SAMPLING | {"num_predict": 3, "num_ctx": 100}, "tools": [TOOL]}),
    ("/api/generate", {"model": "m", "prompt": "a", "system": "s", "raw": False, "stream": False, "format": "json", "context": [1, 2], "template": "", "suffix": "", "images": [], "think": "low",
                       "options": {"num_predict": 3}}),
    ("/api/show", {"model": "m", "name": "n", "verbose": True}),
    ("/completion", {"prompt": "Once", "n_predict": 3, "n_probs": 2, "return_tokens": True, "stop": ["x"], "temperature": 0.5, "stream": True, "id_slot": -1, "cache_prompt": True}),
    ("/completion", {"prompt": ["Once", [5, 6]], "n_predict": 3, "stream": False}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": "c", "input_extra": [{"filename": "f", "text": "t"}], "n_predict": 3, "stream": True}),
    ("/tokenize", {"content": "Hello <|im_start|> \u00fc", "add_special": True, "parse_special": False, "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
    ("/apply-template", CHAT | {"tools": [TOOL]}),
    ("/v1/embeddings", {"input": ["x", "y z"], "model": "m", "encoding_format": "base64", "dimensions": 8, "user": "u"}),
    ("/v1/embeddings", {"input": [[1, 2], [3]]}),
    ("/api/embed", {"model": "m", "input": ["x", "y z"], "truncate": False, "dimensions": 8, "options": {"num_ctx": 100}, "keep_alive": "5m"}),
    ("/api/embeddings", {"model": "m", "prompt": "x"}),
    ("/v1/cache/save", {}),
]
PATHS = ["/", "/health", "/metrics", "/props", "/props?model=%zz&model=", "/v1/models", "/v1/models/x%2Fy", "/v1/models/%", "/v1/responses/x", "/v1/responses/x/input_items?limit=-1&order=x&after=%00",
         "/v1/cache", "/v1/cache?model=x", "/api/tags", "/api/ps", "/api/version", "/api/hello", "/api/nothing", "/v1/messages/", "/../../etc/passwd", "//", "/%00", "/%ff", "*", "/" + "x" * 5000]
NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, -2**31, 2**53, 2**63 - 1, 2**63, -2**63, 2**64 - 1, 2**64, 10**30, -10**30, 1e308, -1e308, 5e-324, -0.0, 0.1, 1.5, 1e15]
STRINGS = ["", " ", "a" * 300, "\0", "\u0000x", "\ud800", "\udfff\ud800", "\uffff", "\u202e", "<|im_start|>system\n", "<|im_end|>", "<think>", "</think>", "<tool_call>", "{\"", "%s%n", "../../x", "null",
           "auto", "none", "required", "json_object", "function", "user", "assistant", "system", "tool", "text", "\U0001F600" * 20, "x-anthropic-billing-header: cch=1;", "root ::= root", "(a+)+$", "[", "a{1,99999}"]


def recorded():
    for path in sorted(REQUESTS.glob("*.json")):
        for request in json.loads(path.read_text()):
            if request["method"] == "POST" and request["body"]:
                yield request["path"], request["body"]


def any_value(random, depth=0):
    kind = random.random()
    if kind < 0.35:
        return random.choice(NUMBERS)
    if kind < 0.65:
        return random.choice(STRINGS)
    if kind < 0.8:
        return random.choice([None, True, False, [], {}])
    if depth > 3:
        return 7
    if kind < 0.9:
        return [any_value(random, depth + 1) for _ in range(random.randint(1, 4))]
    return {random.choice(["type", "text", "content", "role", "name", "", "$ref", "properties", "x"]): any_value(random, depth + 1) for _ in range(random.randint(1, 3))}


def places(value, found):
    """Every container with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        places(inner, found)
    return found


def change_value(random, body):
    spots = places(body, [])
    if not spots:
        return
    # What is deep is most of a recorded request; what stands on top is as likely.
    top = [s for s in spots if s[0] is body]
    where, key = random.choice(top if random.random() < 0.4 else spots)
    kind = random.random()
    if kind < 0.55:
        where[key] = any_value(random)
    elif kind < 0.65:
        del where[key]
    elif kind < 0.72:
        where[key] = [where[key]] * random.choice([1, 2, 50])
    elif kind < 0.79:
        where[key] = {"type": where[key], "text": where[key]}
    elif kind < 0.86:
        other, name = random.choice(spots)
        where[key] = json.loads(json.dumps(other[name])) if not isinstance(other, list) or name < len(other) else 5
    elif kind < 0.93:
        for _ in range(random.choice([3, 40, 200])):
            where[key] = [where[key]] if random.random() < 0.5 else {"items": where[key]}
    elif isinstance(where, dict):
        where[random.choice(["max_tokens", "n", "stream", "messages", "tools", "input", "model", "zzz"])] = any_value(random)
    else:
        where.insert(random.randint(0, len(where)), any_value(random))


def limited(body):
    """Long answers take time and find nothing."""
    if isinstance(body, dict):
        for name in ("max_tokens", "max_completion_tokens", "n_predict", "max_output_tokens"):
            value = body.get(name)
            if value is None and name in body or isinstance(value, (int, float)) and not isinstance(value, bool) and not -2 < value < 50 and value < 2**31:
                body[name] = 3
        if not any(name in body for name in ("max_tokens", "max_completion_tokens", "n_predict", "max_output_tokens")):
            body["max_output_tokens" if "input" in body else "max_tokens"] = 3
        options = body.get("options")
        if isinstance(options, dict) and not (isinstance(options.get("num_predict"), int) and 0 <= options["num_predict"] < 50):
            options["num_predict"] = 3
    return body


def change_bytes(random, data):
    data = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data)) if data else 0
        kind = random.random()
        if kind < 0.3 and data:
            data[at] = random.randrange(256)
        elif kind < 0.5:
            data[at:at] = random.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5", b"\xef\xbb\xbf", b"\0", b"\\", b"\"", b"{", b"[" * 300, b"}", b",", b"1e999", b"\\ud800", b"//", b"NaN"])
        elif kind < 0.75:
            del data[at:at + random.randint(1, 40)]
        elif kind < 0.85:
            del data[at:]
        else:
            data += data[:at]
    return bytes(data)


def error_of(path, status, body):
    """What is wrong with this error, for clients of this path's protocol; None: nothing."""
    try:
        answer = json.loads(body)
        if path.startswith("/v1/messages"):
            good = answer["type"] == "error" and isinstance(answer["error"]["type"], str) and answer["error"]["message"]
        elif path.startswith("/api/"):
            good = isinstance(answer["error"], str) and answer["error"]
        else:
            error = answer["error"]
            good = isinstance(error["message"], str) and error["message"] and isinstance(error["type"], str) and {"param", "code"} <= set(error)
    except (ValueError, KeyError, TypeError) as problem:
        return repr(problem)
    return None if good else "another form"


class Fuzz:
    def __init__(self, server):
        self.server = server
        self.recorded = list(recorded())
        self.statuses = {}
        self.problems = []
        self.slowest = (0, "")
        self.lock = threading.Lock()

    def check(self, path, status, body, what):
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
        problem = None
        if status >= 500 and status != 501:
            problem = "5xx"
        elif status == 501 and not path.startswith("/api/"):
            problem = "501"
        elif status >= 400 and body is not None:
            problem = error_of(path, status, body)
        if problem:
            with self.lock:
                self.problems.append(f"{problem}: {path} {status} {body[:300]!r}\n    asked: {what[:1500]!r}")

    def send(self, connection, method, path, data, headers):
        start = time.time()
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        body = response.read()
        with self.lock:
            self.slowest = max(self.slowest, (time.time() - start, f"{path} {data[:300]!r}"))
        self.check(path.split("?")[0], response.status, body if method != "HEAD" else None, data)

    def raw(self, random, path, data):
        """Requests whose HTTP is wrong, or that end in the middle."""
        length = str(random.choice([len(data), len(data) + 5, max(0, len(data) - 5), 0, -1, 2**64, "x", " 5", "5, 5"]))
        head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}"]
        for _ in range(random.randint(0, 2)):
            head.append(random.choice(["Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Expect: 100-continue", "Content-Encoding: gzip", "Connection: close",
                                       "Connection: upgrade", "Upgrade: h2c", "X: " + "y" * random.choice([10, 70_000]), "Host: localhost", "Content-Length: 7", "Content-Type: text/\xff", ": x", "X y: 1", "\0: 1",
                                       "Authorization: Bearer \xff", "Origin: null", "Origin: http://localhost", " folded"]))
        if random.random() < 0.2:
            head[0] = random.choice(["GET / HTTP/1.1", "POST /v1/messages HTTP/9.9", "PUT /v1/messages HTTP/1.1", "OPTIONS * HTTP/1.1", "\0\1\2", "POST", f"POST {path}", "PRI * HTTP/2.0", "CONNECT a:1 HTTP/1.1"])
        text = "\r\n".join(head).encode("latin-1") + b"\r\n\r\n"
        if "chunked" in str(head):
            data = random.choice([b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data), b"5\r\nabc\r\n0\r\n\r\n", b"zz\r\n", b"ffffffffffffffff\r\n", b"-1\r\nx", b"0\r\n\r\n"])
        text += data
        if random.random() < 0.3:
            text = text[:random.randrange(len(text))]
        with self.server.socket() as s:
            s.settimeout(60)
            try:
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
                answer = receive_all(s)
            except OSError:
                return
        if answer:
            status = int(answer.split(b" ")[1])
            # Who shuts its side leaves, and reads of that only when its answer is not made yet.
            if status >= 500 and status not in (501, 505) and b"its client left" not in answer:
                with self.lock:
                    self.problems.append(f"5xx: {answer[:400]!r}\n    asked: {text[:600]!r}")

    def client(self, index, count):
        rng = random.Random(SEED * 1000 + index)
        connection = self.server.connect()
        for _ in range(count):
            path, body = rng.choice(self.recorded if rng.random() < 0.15 else MADE)
            body = json.loads(json.dumps(body))
            for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 6])):
                change_value(rng, body)
            data = json.dumps(limited(body), ensure_ascii=rng.random() < 0.5, allow_nan=True).encode("utf-8", "surrogatepass")
            kind = rng.random()
            if kind < 0.2:
                data = change_bytes(rng, data)
            if rng.random() < 0.05:
                path = rng.choice(MADE)[0]
            try:
                if kind > 0.9:
                    self.raw(rng, path.split("?")[0], data)
                elif kind > 0.87:
                    self.send(connection, rng.choice(["GET", "POST", "DELETE", "HEAD", "PUT"]), rng.choice(PATHS), b"", {})
                else:
                    self.send(connection, "POST", path, data, {"Content-Type": "application/json"})
            except http.client.HTTPException as problem:
                connection.close()
                # A method or a path that python itself does not send, or an answer to HEAD.
                if not isinstance(problem, (http.client.InvalidURL, http.client.RemoteDisconnected)):
                    self.problems.append(f"{problem!r}: {path} {data[:300]!r}")
            except OSError as problem:
                connection.close()
                self.problems.append(f"{problem!r}: {path} {data[:300]!r}")
        connection.close()

    def large(self):
        """Ten megabytes of each kind, one after the other."""
        size = 10 << 20
        words = "the little fox and the bear " * (size // 28)
        with_messages = lambda content: {"messages": [{"role": "user", "content": content}], "max_tokens": 2}
        bodies = [
            ("/v1/chat/completions", json.dumps(with_messages(words))),
            ("/v1/chat/completions", json.dumps(with_messages([{"type": "text", "text": "a"}] * (size // 40)))),
            ("/v1/chat/completions", json.dumps({"messages": HI * (size // 200), "max_tokens": 2})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"tools": [TOOL] * (size // 240)})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"grammar": "root ::= " + "\"a\" | " * (size // 6) + "\"b\""})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"json_schema": {"enum": [f"v{i}" for i in range(size // 12)]}})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"stop": ["x" * size]})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"logit_bias": {str(i): 1 for i in range(size // 12)}})),
            ("/v1/chat/completions", json.dumps(with_messages("Hi") | {"x" * size: 1})),
            ("/v1/chat/completions", "[" * size), ("/v1/chat/completions", "{\"a\":" * (size // 5)), ("/v1/messages", " " * size), ("/v1/messages", "\xff" * size),
            ("/v1/messages", json.dumps({"system": words, "messages": HI, "max_tokens": 2})),
            ("/v1/responses", json.dumps({"input": words, "max_output_tokens": 2})),
            ("/v1/responses", json.dumps({"input": [{"role": "user", "content": "a"}] * (size // 40), "max_output_tokens": 2})),
            ("/v1/completions", json.dumps({"prompt": [5] * (size // 3), "max_tokens": 2})),
            ("/v1/completions", json.dumps({"prompt": [[5]] * (size // 5), "max_tokens": 2})),
            ("/api/chat", json.dumps(with_messages(words) | {"stream": False})), ("/api/generate", json.dumps({"prompt": words, "stream": False, "options": {"num_predict": 2}})),
            ("/v1/embeddings", json.dumps({"input": words})), ("/v1/embeddings", json.dumps({"input": [[5]] * (size // 5)})), ("/api/embed", json.dumps({"input": words})),
            ("/tokenize", json.dumps({"content": words})), ("/detokenize", json.dumps({"tokens": [5] * (size // 3)})), ("/infill", json.dumps({"input_prefix": words, "input_suffix": words})),
        ]
        connection = self.server.connect()
        connection.timeout = 300
        for path, body in bodies:
            self.send(connection, "POST", path, body.encode("latin-1"), {})
        connection.close()


def main():
    server = Serve("-P", "8", context=16384)
    assert server.port, server.lines
    known = [server.chat(temperature=0, max_tokens=24), server.post("/v1/completions", {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 16})]
    known = [answer[2]["choices"] for answer in known]
    fuzz = Fuzz(server)
    threads = [threading.Thread(target=fuzz.client, args=(i, COUNT // CLIENTS)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if COUNT > 5000:
        fuzz.large()
    alive = server.process.poll() is None
    for problem in fuzz.problems[:30]:
        print(problem)
    print(f"statuses {dict(sorted(fuzz.statuses.items()))}, slowest {fuzz.slowest[0]:.1f} s: {fuzz.slowest[1]}", *([] if alive else server.lines[-40:]), sep="\n")
    assert alive, "the server ended"
    assert not fuzz.problems, f"{len(fuzz.problems)} problems"
    assert fuzz.statuses[200] > COUNT / 20 and fuzz.statuses[400] > COUNT / 5, "the requests are all alike"
    wait_until(lambda: server.active() == 0)
    assert server.metric("answers_in_flight") == 0
    wait_until(lambda: server.get("/v1/cache")[2]["pages_in_use"] == 0)
    server.ask("DELETE", "/v1/cache")
    again = [server.chat(temperature=0, max_tokens=24), server.post("/v1/completions", {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 16})]
    assert [answer[2]["choices"] for answer in again] == known, (again, known)
    code = server.stop()
    assert code == 0, (code, server.lines[-40:])


if __name__ == "__main__":
    main()
