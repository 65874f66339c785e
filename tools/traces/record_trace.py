#!/usr/bin/env python3
"""Stands between an agent and its server, and writes what the agent asks as a trace for `hearth bench agent`:

    record_trace.py --url http://127.0.0.1:8080 --port 8090 -o trace.jsonl

Point the agent at http://127.0.0.1:8090 and stop the recorder with Ctrl-C. The trace has all that the agent sent but
keys: look at it before you give it away. Takes OpenAI's chat completions and Anthropic's messages; passes everything
else on."""
import argparse
import contextlib
import dataclasses
import http.client
import json
import re
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@contextlib.contextmanager
def proxy(url, port, exchanged):
    """Passes requests on to the server at `url`, and calls exchanged(Exchange) after each. Gives its own port."""
    target = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            started = time.monotonic()
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=600)
            try:
                connection.request(self.command, self.path, data or None, {k: v for k, v in self.headers.items() if k.lower() != "host"})
                response = connection.getresponse()
            except OSError as problem:
                return self.send_error(502, f"cannot reach {url}: {problem}")
            self.send_response(response.status)
            for name, value in response.headers.items():
                if name.lower() not in ("connection", "content-length", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            answer, ended = b"", started
            with contextlib.suppress(OSError):  # the client left
                while piece := response.read1(65536):
                    answer, ended = answer + piece, time.monotonic()
                    self.wfile.write(piece)
                    self.wfile.flush()
            connection.close()
            self.close_connection = True
            body = None
            with contextlib.suppress(ValueError):
                body = json.loads(data)
            exchanged(Exchange(self.command, self.path, dict(self.headers.items()), body, response.status, answer, started, ended))

        do_GET = do_POST = do_DELETE = do_HEAD = forward

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@dataclasses.dataclass
class Exchange:
    method: str
    target: str  # path and query
    headers: dict
    body: object  # parsed; None when it is no JSON
    status: int
    answer: bytes
    started: float
    ended: float


# ---- what was asked, in the form of OpenAI's chat ----


def text_of(content):
    """The text of a list of text parts; other content as it is."""
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        return "\n".join(part["text"] for part in content)
    return content


def from_openai(body):
    messages = []
    for m in body["messages"]:
        reasoning = m.get("reasoning_content") or m.get("reasoning")
        kept = {"role": m["role"], "content": text_of(m.get("content") or ""), "reasoning_content": reasoning,
                "tool_calls": m.get("tool_calls"), "tool_call_id": m.get("tool_call_id")}
        messages.append({k: v for k, v in kept.items() if v is not None})
    system = ""
    if messages and messages[0]["role"] in ("system", "developer"):
        system = messages.pop(0)["content"]
    return system, messages, body.get("tools", [])


def from_anthropic(body):
    messages = []
    for m in body["messages"]:
        blocks = m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}]
        texts = [b["text"] for b in blocks if b["type"] == "text"]
        if m["role"] == "assistant":
            thoughts = [b["thinking"] for b in blocks if b["type"] == "thinking"]
            calls = [{"id": b["id"], "type": "function", "function": {"name": b["name"], "arguments": json.dumps(b["input"])}}
                     for b in blocks if b["type"] == "tool_use"]
            message = {"role": "assistant", "content": "\n".join(texts)}
            if thoughts:
                message["reasoning_content"] = "\n".join(thoughts)
            if calls:
                message["tool_calls"] = calls
            messages.append(message)
            continue
        messages += [{"role": "tool", "tool_call_id": b["tool_use_id"], "content": text_of(b.get("content", ""))}
                     for b in blocks if b["type"] == "tool_result"]
        if texts:
            messages.append({"role": m["role"], "content": "\n".join(texts)})
    tools = [{"type": "function", "function": {"name": t["name"], "description": t.get("description", ""), "parameters": t["input_schema"]}}
             for t in body.get("tools", []) if "input_schema" in t]
    return text_of(body.get("system", "")), messages, tools


PROTOCOLS = {"/v1/chat/completions": from_openai, "/v1/messages": from_anthropic}


# ---- sessions ----


class Session:
    def __init__(self, name):
        self.name, self.system, self.tools, self.history = name, "", [], []
        self.last = None  # the line of its latest request
        self.ended = None


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class Trace:
    """A request goes on with the session that shares most messages with it, at least the first: agents do not say which
    it is."""

    def __init__(self, path):
        self.path, self.begin = path, time.monotonic()
        open(path, "x").close()
        self.sessions, self.lines = [], []
        self.lock = threading.Lock()

    def add(self, exchange):
        read = PROTOCOLS.get(exchange.target.split("?")[0])
        if read is None or exchange.method != "POST" or exchange.status != 200:
            return
        system, messages, tools = read(exchange.body)
        with self.lock:
            session = self.session_of(messages, exchange.started)
            sent = len(session.history)
            if session.last and len(messages) > sent and messages[sent]["role"] == "assistant":
                session.last["answer"] = messages[sent]  # as the client keeps it
                session.history.append(messages[sent])
            line = {"session": session.name}
            if session.ended is None:
                line["at"] = round(exchange.started - self.begin, 3)
            else:
                line["think"] = round(exchange.started - session.ended, 3)
            line["edits"] = self.edits(session, system, messages)
            if tools != session.tools:
                line["tools"] = tools
            generated = re.findall(rb'"(?:completion_tokens|output_tokens)" ?: ?(\d+)', exchange.answer)
            # A client that left heard so many pieces.
            line["max_tokens"] = max(1, int(generated[-1]) if generated else exchange.answer.count(b"\ndata: {"))
            self.lines.append(line)
            session.system, session.tools, session.history = system, tools, messages
            session.last, session.ended = line, exchange.ended
            self.write()

    def session_of(self, messages, started):
        best, most = None, 0
        for session in self.sessions:
            shared = common(session.history, messages)
            if session.ended <= started and shared > most:
                best, most = session, shared
        if best is None:
            best = Session(f"s{len(self.sessions) + 1}")
            self.sessions.append(best)
        return best

    @staticmethod
    def edits(session, system, messages):
        edits, history = [], session.history
        if system != session.system:
            edits.append({"op": "system", "text": system})
        edits += [{"op": "replace", "index": i, "message": new} for i, (old, new) in enumerate(zip(history, messages)) if old != new]
        if len(history) > len(messages):
            edits.append({"op": "drop", "index": len(messages), "count": len(history) - len(messages)})
        return edits + [{"op": "append", "message": message} for message in messages[len(history):]]

    def write(self):
        """All of it: the next request tells the answer of the last one."""
        with open(self.path, "w", encoding="utf-8") as file:
            for line in self.lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the server, without /v1")
    parser.add_argument("--port", type=int, default=8090, help="port to listen on; 0: any that is free")
    parser.add_argument("-o", "--output", required=True, help="the trace")
    options = parser.parse_args()
    if not urlsplit(options.url).hostname:
        parser.error(f"--url: expected http://HOST:PORT, found {options.url}")
    try:
        trace = Trace(options.output)
    except OSError as problem:
        parser.error(f"-o: cannot begin a new file: {problem}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        with proxy(options.url, options.port, trace.add) as port:
            print(f"Listening on http://127.0.0.1:{port}", flush=True)
            stop.wait()
    except OSError as problem:
        parser.error(f"--port {options.port}: {problem}")
    print(f"{options.output}: {len(trace.lines)} requests of {len(trace.sessions)} sessions")


if __name__ == "__main__":
    main()
