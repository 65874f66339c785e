#!/usr/bin/env python3
"""Serves the model in the box and talks to it as clients do: serve_test.py PATH/TO/hearth [unittest arguments]."""
import atexit
import base64
import concurrent.futures
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

HEARTH = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
MODEL = str(Path(__file__).resolve().parent.parent.parent / "models" / "pocket-dense.gguf")
HI = [{"role": "user", "content": "Tell me a story about a fox who looks for a friend in the deep dark wood and finds a bear."}]
ENDLESS = {"ignore_eos": True, "max_tokens": 20000}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def wait_until(condition, seconds=20):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("it did not happen")
        time.sleep(0.02)


class Serve:
    """A running server, on the CPU or on HEARTH_TEST_DEVICE."""

    def __init__(self, *args, model=MODEL, context=32768, env=None, wait=True):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEARTH_", "XDG_"))}
        environment = clean | {"XDG_CONFIG_HOME": "/nonexistent", "HEARTH_DEVICE": os.environ.get("HEARTH_TEST_DEVICE", "cpu")} | (env or {})
        port = () if "--port" in args else ("--port", "0")
        unignore = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.process = subprocess.Popen([HEARTH, "serve", model, "-c", str(context), *port, *args], env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=unignore)
        atexit.register(self.process.kill)  # when a test failed before it stopped the server
        self.lines = []
        self.port = None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if wait:
            wait_until(lambda: self.port or self.process.poll() is not None, 60)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.match(r"Listening on http://.*:(\d+)$", line):
                self.port = int(found[1])

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        self.reader.join()
        self.process.stderr.close()
        return code

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body (parsed if it is JSON)."""
        connection = self.connect(timeout)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if response.headers.get("Content-Type", "").startswith("application/json") and data:
            data = json.loads(data)
        return response.status, response.headers, data

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body, **options):
        return self.ask("POST", path, body, **options)

    def chat(self, **fields):
        return self.post("/v1/chat/completions", {"model": "any", "messages": HI, "temperature": 0, "max_tokens": 16} | fields)

    def stream(self, path, body):
        """The data of the events, parsed but for [DONE]."""
        status, headers, data = self.post(path, body | {"stream": True})
        assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), data
        events = data.decode().split("\n\n")
        assert events[-1] == "" and all(e.startswith("data: ") and "\n" not in e for e in events[:-1]), data
        return [e[6:] if e == "data: [DONE]" else json.loads(e[6:]) for e in events[:-1]]

    def raw(self, data, shut=False):
        """Everything that the server says to these bytes, until it closes."""
        with self.socket() as s:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
            return receive_all(s)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def active(self):
        state = self.get("/v1/cache")[2]
        return state["active_sequences"] + state["queued_requests"]

    def metric(self, name):
        return float(re.search(rf"^hearth_{name} (\S+)$", self.get("/metrics")[2].decode(), re.M)[1])


def receive_all(s):
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def request_bytes(path, body, headers=""):
    text = json.dumps(body)
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(text)}\r\n\r\n{text}".encode()


class Served(unittest.TestCase):
    ARGS = ()
    CONTEXT = 32768

    @classmethod
    def setUpClass(cls):
        cls.server = Serve(*cls.ARGS, context=cls.CONTEXT)
        if not cls.server.port:
            raise AssertionError("".join(cls.server.lines))

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        if code != 0:
            raise AssertionError(f"exit code {code}: " + "".join(cls.server.lines[-20:]))


class Endpoints(Served):
    def test_what_clients_look_for_first(self):
        self.assertEqual(self.server.get("/health")[::2], (200, {"status": "ok"}))
        for path in ("/", "/api/hello"):
            status, _, body = self.server.ask("HEAD", path)
            self.assertEqual((status, body), (200, b""), path)
        status, headers, page = self.server.get("/")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/html"))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertIn(b"Hearth", page)

    def test_models_tell_their_context(self):
        for path in ("/v1/models", "/models"):
            model = self.server.get(path)[2]["data"][0]
            self.assertEqual((model["id"], model["object"], model["status"]), ("pocket-dense", "model", "ready"))
            self.assertEqual((model["context_length"], model["max_model_len"]), (32768, 32768))
        self.assertEqual(self.server.get("/v1/models/some/other%20name")[2]["id"], "pocket-dense")
        props = self.server.get("/props")[2]
        self.assertEqual((props["context_tokens"], props["supports_tools"], props["supports_thinking"]), (32768, True, True))
        self.assertIn("im_start", props["chat_template"])

    def test_tokens_go_there_and_back(self):
        text = "Once upon a time <|im_start|> ü 漢字"
        tokens = self.server.post("/tokenize", {"content": text})[2]["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})[2]["content"], text)
        plain = self.server.post("/tokenize", {"content": text, "parse_special": False, "with_pieces": True})[2]["tokens"]
        self.assertGreater(len(plain), len(tokens))
        self.assertEqual(plain[0]["id"], tokens[0])
        prompt = self.server.post("/apply-template", {"messages": HI})[2]["prompt"]
        self.assertIn("<|im_start|>user\n" + HI[0]["content"] + "<|im_end|>", prompt)

    def test_metrics_and_cache(self):
        self.server.chat()
        text = self.server.get("/metrics")[2].decode()
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) hearth_\w+ .+|hearth_\w+(\{of="\w+"\})? [-+.e0-9]+)$')
        self.assertGreaterEqual(self.server.metric("generated_tokens_total"), 16)
        # The engine publishes its numbers a moment after the end of the answer.
        wait_until(lambda: self.server.get("/v1/cache")[2]["pages_cached"] > 0)
        self.assertEqual(self.server.ask("DELETE", "/v1/cache")[2]["pages_cached"], 0)
        self.assertEqual(self.server.post("/v1/cache/clear", {})[0], 200)
        self.assertEqual(self.server.ask("DELETE", "/v1/cache?model=nobody")[0], 404)

    def test_what_is_held_in_memory_is_told_in_bytes(self):
        held = lambda: self.server.get("/v1/cache")[2]["bytes"]
        before = held()
        self.assertEqual(set(before), {"kv", "host_kv", "prefix_tree", "known_texts", "grammars", "stored_responses", "request_bodies", "sum"})
        for field in ("held", "limit"):
            self.assertEqual(before["sum"][field], sum(entry[field] for name, entry in before.items() if name != "sum"))
        for name, entry in before.items():
            self.assertLessEqual(entry["held"], entry["limit"], name)
            self.assertEqual(name in ("kv", "prefix_tree", "sum"), entry["held"] > (1 << 16), name)
        self.assertEqual((before["request_bodies"]["held"], before["request_bodies"]["limit"]), (0, 256 << 20))
        text = "A thing that nobody said before. " * 20
        self.server.chat(messages=[{"role": "user", "content": text}], json_schema={"type": "object", "properties": {"x" * 200: {}}}, max_tokens=2)
        self.server.post("/v1/responses", {"input": text, "max_output_tokens": 2})
        after = held()
        for name, least in (("known_texts", len(text)), ("grammars", 200), ("stored_responses", len(text))):
            self.assertGreater(after[name]["held"], before[name]["held"] + least, name)
        with self.server.socket() as s:
            s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" + b"x" * 4000)
            wait_until(lambda: held()["request_bodies"]["held"] == 4000)
        wait_until(lambda: held()["request_bodies"]["held"] == 0)
        text = self.server.get("/metrics")[2].decode()
        for name, entry in after.items():
            if name not in ("sum", "request_bodies"):
                self.assertIn(f'hearth_memory_bytes{{of="{name}"}} {entry["held"]}\n', text)
                self.assertIn(f'hearth_memory_limit_bytes{{of="{name}"}} {entry["limit"]}\n', text)


class HostMemory(unittest.TestCase):
    def test_conversations_that_the_device_has_no_room_for_come_back(self):
        chats = [[{"role": "user", "content": f"Story {i}: " + "there was a very big garden and " * 60}] for i in range(3)]
        for ram, comes_back in (("64MiB", True), ("0", False)):
            server = Serve("--cache-ram", ram, context=1024)
            cache = lambda: server.get("/v1/cache")[2]
            usages = [server.chat(messages=chat, max_tokens=4)[2]["usage"] for chat in chats * 2]
            for usage in usages[3:]:
                cached, prompt = usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]
                self.assertGreater(3 * prompt, 1024)
                if comes_back:
                    self.assertEqual(cached, prompt // 16 * 16)
                else:
                    self.assertLess(cached, prompt // 2)
            wait_until(lambda: cache()["active_sequences"] == 0)
            state = cache()
            self.assertEqual(state["returned_tokens"] > 512, comes_back, state)
            self.assertEqual(state["host_pages_total"] > 0, comes_back)
            self.assertEqual(state["host_pages_cached"] > 0, comes_back)
            held = state["bytes"]["host_kv"]["held"]
            self.assertEqual(held > 16 * state["host_pages_cached"], comes_back)
            self.assertEqual(server.metric("host_pages_cached"), state["host_pages_cached"])
            self.assertIn(f'hearth_memory_bytes{{of="host_kv"}} {held}\n', server.get("/metrics")[2].decode())
            self.assertEqual(server.metric("returned_tokens_total"), state["returned_tokens"])
            wait_until(lambda: sum("path=/v1/chat" in line for line in server.lines) == 6)
            logged = [int(found[1]) for line in server.lines if (found := re.search(r" cached=\d+ returned=(\d+) ", line))]
            self.assertEqual(sum(logged), state["returned_tokens"])
            cleared = server.ask("DELETE", "/v1/cache")[2]
            self.assertEqual((cleared["host_pages_cached"], cleared["pages_cached"]), (0, 0))
            self.assertEqual(server.stop(), 0, server.lines)




class CacheFile(unittest.TestCase):
    def test_what_is_cached_outlives_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cache"
            prompt = [{"role": "user", "content": "Tell me a story about " + "a very big garden and " * 20}]
            for start in range(3):
                server = Serve("--prompt-cache", path)
                usage = server.chat(messages=prompt, max_tokens=4)[2]["usage"]
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                self.assertEqual(cached, usage["prompt_tokens"] // 16 * 16 if start else 0)
                if start == 0:
                    saved = server.post("/v1/cache/save", {})
                    self.assertGreaterEqual(saved[2]["tokens"], usage["prompt_tokens"] // 16 * 16)
                    server.ask("DELETE", "/v1/cache")
                    self.assertEqual(server.post("/v1/cache/restore", {})[::2], saved[::2])
                self.assertEqual(server.stop(), 0, server.lines)
            Path(path).write_text("something else")
            server = Serve("--prompt-cache", path)
            self.assertTrue(any("no cache file" in line for line in server.lines), server.lines)
            self.assertEqual(server.chat()[0], 200)
            server.stop()
        server = Serve()
        self.assertEqual(server.post("/v1/cache/save", {})[0], 400)
        server.stop()

    def test_a_file_that_cannot_be_written_is_known_at_the_start(self):
        for path in ("/nonexistent/folder/cache", "/proc/cache"):
            server = Serve("--prompt-cache", path)
            self.assertNotEqual(server.stop(), 0)
            self.assertIn("--prompt-cache", server.lines[-1])
            self.assertIn(path, server.lines[-1])


class Deterministic(unittest.TestCase):
    """With --deterministic an answer has the same bits whatever else runs, whatever is cached and wherever that is from."""

    STORY = "Once upon a time a fox and a bear went into the deep dark wood to look for a friend. "
    SYSTEM = {"role": "system", "content": "You are a friendly teller of stories. " + STORY * 24}

    def requests(self):
        chat, ask = "/v1/chat/completions", lambda text: [self.SYSTEM, {"role": "user", "content": text}]
        scores = {"logprobs": True, "top_logprobs": 3, "temperature": 0, "max_tokens": 40}
        yield chat, {"messages": HI} | scores
        yield chat, {"messages": ask("Tell me of the fox.")} | scores
        yield chat, {"messages": ask("Tell me of the bear. " + self.STORY * 20)} | scores | {"ignore_eos": True, "max_tokens": 90}
        yield chat, {"messages": ask("Tell me of the bear. " + self.STORY * 40)} | scores | {"stop": [" the"]}
        yield chat, {"messages": ask("Tell me of the wood.")} | scores | {"temperature": 1.3, "seed": 7, "n": 3, "ignore_eos": True}
        yield chat, {"messages": ask("What is 7 + 5?"), "reasoning_effort": "high", "thinking_budget": 6} | scores
        yield chat, {"messages": HI, "response_format": {"type": "json_object"}, "temperature": 1, "seed": 3, "max_tokens": 60}
        yield chat, {"messages": ask("What is the weather in Hamburg?"), "tools": [TOOL], "tool_choice": "required", "temperature": 0, "max_tokens": 60}
        yield "/v1/completions", {"prompt": self.STORY * 60, "logprobs": 3, "temperature": 0, "max_tokens": 40}
        yield "/v1/completions", {"prompt": self.STORY * 60 + "The end", "logprobs": 3, "temperature": 0.7, "seed": 1, "max_tokens": 40}
        yield "/v1/completions", {"prompt": self.STORY * 8, "echo": True, "logprobs": 1, "temperature": 0, "max_tokens": 8}

    def serve(self, *args, context=4096):
        server = Serve("--deterministic", *args, context=context)
        self.addCleanup(server.stop)
        self.assertTrue(server.port, server.lines)
        return server

    def ask(self, server, path, body):
        """What was answered, and how much of its prompt was cached."""
        status, _, answer = server.post(path, body)
        self.assertEqual(status, 200, answer)
        for choice in answer["choices"]:
            for call in choice.get("message", {}).get("tool_calls", []):
                del call["id"]
        return answer["choices"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def cold(self, server):
        answers = []
        for path, body in self.requests():
            server.ask("DELETE", "/v1/cache")
            choices, cached = self.ask(server, path, body)
            self.assertEqual(cached, 0)
            answers.append(choices)
        return answers

    def test_cached_batched_and_resumed_answers_have_the_bits_of_cold_ones(self):
        requests = list(self.requests())
        with tempfile.TemporaryDirectory() as folder:
            # Few pages: answers give way to each other and begin again.
            server = self.serve("--prompt-cache", f"{folder}/cache")
            cold = self.cold(server)
            self.assertGreater(len({json.dumps(c) for c in cold}), 9)

            def check(index, cached=0):
                choices, found = self.ask(server, *requests[index])
                self.assertEqual(choices, cold[index], requests[index])
                self.assertGreaterEqual(found, cached)

            for index in (1, 2, 3, 8, 9):  # from another's prefix, then from its own
                check(index)
                check(index, cached=256)
            for seed in range(3):
                server.ask("DELETE", "/v1/cache")
                order = list(range(len(requests))) * 2
                random.Random(seed).shuffle(order)
                with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
                    list(pool.map(check, order))
            with server.socket() as s:  # one who leaves in the middle
                s.sendall(request_bytes(requests[3][0], requests[3][1] | {"stream": True}))
                s.recv(100)
            check(3)
            check(1)
            self.assertEqual(server.stop(), 0, server.lines)

            server = self.serve("--prompt-cache", f"{folder}/cache")
            check(1, cached=256)
            check(3, cached=256)
            for index in range(len(requests)):
                check(index)


class ChatCompletions(Served):
    def test_whole_answers(self):
        self.server.ask("DELETE", "/v1/cache")
        status, _, first = self.server.chat()
        self.assertEqual(status, 200)
        self.assertEqual((first["object"], first["model"]), ("chat.completion", "pocket-dense"))
        choice = first["choices"][0]
        self.assertEqual((choice["message"]["role"], choice["finish_reason"], choice["logprobs"]), ("assistant", "length", None))
        usage = first["usage"]
        self.assertEqual(usage["completion_tokens"], 16)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 16)
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
        second = self.server.chat()[2]
        self.assertEqual(second["choices"][0]["message"], choice["message"])
        self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], (usage["prompt_tokens"] - 1) // 16 * 16)
        self.assertGreaterEqual(usage["prompt_tokens"], 17)
        self.assertGreater(first["timings"]["predicted_per_second"], 0)

    def test_streams_have_the_same_text_in_the_right_frames(self):
        whole = self.server.chat()[2]["choices"][0]["message"]["content"]
        body = {"messages": HI, "temperature": 0, "max_tokens": 16, "stream_options": {"include_usage": True}, "return_progress": True}
        events = self.server.stream("/v1/chat/completions", body)
        self.assertEqual(events[-1], "[DONE]")
        chunks = events[:-1]
        self.assertEqual(len({(c["id"], c["object"], c["model"]) for c in chunks}), 1)
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]), ([], 16))
        self.assertEqual([c["usage"] for c in chunks[:-1]], [None] * (len(chunks) - 1))
        self.assertEqual(chunks[-2]["choices"][0], {"index": 0, "delta": {}, "finish_reason": "length"})
        self.assertEqual([c["choices"][0]["finish_reason"] for c in chunks[:-2]], [None] * (len(chunks) - 2))
        self.assertEqual("".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]), whole)
        self.assertTrue(any(c.get("prompt_progress", {}).get("total") for c in chunks))
        self.assertGreater(len(chunks), 10)  # piece by piece
        without = self.server.stream("/v1/chat/completions", {"messages": HI, "temperature": 0, "max_tokens": 2})
        self.assertTrue(all(c["choices"] and "usage" not in c for c in without[:-1]))

    def test_several_answers(self):
        wild = {"n": 3, "temperature": 2, "min_p": 0, "top_p": 1, "top_k": 0, "seed": 1}  # the model is nearly sure of what it says
        choices = self.server.chat(**wild)[2]["choices"]
        self.assertEqual([c["index"] for c in choices], [0, 1, 2])
        self.assertEqual(len({c["message"]["content"] for c in choices}), 3)
        again = self.server.chat(**wild)[2]["choices"]
        self.assertEqual([c["message"] for c in again], [c["message"] for c in choices])
        events = self.server.stream("/v1/chat/completions", {"messages": HI, "n": 2, "max_tokens": 8, "seed": 3})
        for index in (0, 1):
            mine = [c["choices"][0] for c in events[:-1] if c["choices"][0]["index"] == index]
            self.assertEqual(mine[0]["delta"]["role"], "assistant")
            self.assertIsNotNone(mine[-1]["finish_reason"])

    def test_stop_strings(self):
        text = self.server.chat()[2]["choices"][0]["message"]["content"]
        stop = text[5:9]
        for given in (stop, ["never seen", stop]):
            choice = self.server.chat(stop=given)[2]["choices"][0]
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (text[:text.index(stop)], "stop"))

    def test_logprobs_also_with_tools_and_streams(self):
        whole = self.server.chat(logprobs=True, top_logprobs=3, tools=[TOOL], tool_choice="none")[2]["choices"][0]
        content = whole["logprobs"]["content"]
        self.assertEqual("".join(c["token"] for c in content), whole["message"]["content"])
        for entry in content:
            self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])
            self.assertEqual(len(entry["top_logprobs"]), 3)
            self.assertEqual(entry["top_logprobs"][0]["logprob"], entry["logprob"])
        events = self.server.stream("/v1/chat/completions", {"messages": HI, "temperature": 0, "max_tokens": 16, "logprobs": True,
                                    "top_logprobs": 3, "tools": [TOOL], "tool_choice": "none"})
        streamed = [e for c in events[:-1] for e in (c["choices"][0].get("logprobs") or {}).get("content", [])]
        self.assertEqual([e["token"] for e in streamed], [e["token"] for e in content])

    def test_calls_and_reasoning_in_streams(self):
        body = {"messages": [{"role": "user", "content": "What is the weather in Hamburg?"}], "tools": [TOOL], "temperature": 0, "max_tokens": 100}
        whole = self.server.post("/v1/chat/completions", body)[2]["choices"][0]
        self.assertEqual((whole["finish_reason"], whole["message"]["content"]), ("tool_calls", None))
        call = whole["message"]["tool_calls"][0]
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "Hamburg"})
        choices = [c["choices"][0] for c in self.server.stream("/v1/chat/completions", body)[:-1]]
        deltas = [d for c in choices for d in c["delta"].get("tool_calls", [])]
        self.assertEqual((deltas[0]["index"], deltas[0]["type"], deltas[0]["function"]["name"]), (0, "function", "get_weather"))
        self.assertTrue(deltas[0]["id"].startswith("call_"))
        self.assertTrue(all(set(d) == {"index", "function"} and set(d["function"]) == {"arguments"} for d in deltas[1:]))
        self.assertEqual("".join(d["function"]["arguments"] for d in deltas), call["function"]["arguments"])
        self.assertEqual(choices[-1]["finish_reason"], "tool_calls")

        thinking = {"messages": [{"role": "user", "content": "What is 7 + 5?"}], "temperature": 0, "max_tokens": 100, "reasoning_effort": "high"}
        answer = self.server.post("/v1/chat/completions", thinking)[2]
        message = answer["choices"][0]["message"]
        self.assertIn("12", message["content"])
        self.assertGreater(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 2)
        deltas = [c["choices"][0]["delta"] for c in self.server.stream("/v1/chat/completions", thinking)[:-1]]
        for field in ("content", "reasoning_content"):
            self.assertEqual("".join(d.get(field, "") for d in deltas), message[field])

    def test_the_budget_of_reasoning_is_told(self):
        share = self.server.get("/props")[2]["thinking_share"]
        for fields, budget in (({}, 100 * share), ({"thinking_budget": 7}, 7)):
            body = {"messages": HI, "max_tokens": 100, "reasoning_effort": "high", "temperature": 0} | fields
            answer = self.server.post("/v1/chat/completions", body)[2]
            self.assertEqual(answer["timings"]["thinking_budget"], budget)
            self.assertLessEqual(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], budget)
            self.assertEqual(self.server.stream("/v1/chat/completions", body)[-2]["timings"]["thinking_budget"], budget)
        self.assertNotIn("thinking_budget", self.server.post("/v1/completions", {"prompt": "a", "max_tokens": 2})[2].get("timings", {}))

    def test_billing_headers_do_not_make_a_new_prompt(self):
        def cached(count, place):
            header = f"x-anthropic-billing-header: cc_version=2.1; cch={count:05x};"
            system = [{"type": "text", "text": header}, {"type": "text", "text": f"You are helper {place}. " + "Be brief and friendly. " * 80}]
            if place == "string":
                system = "\n".join(part["text"] for part in system)
            usage = self.server.post("/v1/messages", {"max_tokens": 2, "system": system, "messages": HI})[2]["usage"]
            return usage["cache_read_input_tokens"] / (usage["cache_read_input_tokens"] + usage["input_tokens"])
        for place in ("list", "string"):
            self.assertLess(cached(1, place), 0.5)
            self.assertGreaterEqual(cached(0xabcde, place), 0.95)

    def test_a_form_and_a_free_choice_of_tools(self):
        schema = {"type": "object", "properties": {"answer": {"type": "string", "maxLength": 40}}, "required": ["answer"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
        seen = set()
        opener = self.server.post("/tokenize", {"content": "<tool_call>"})[2]["tokens"][0]
        for text in ("What is the weather in Hamburg?", "Tell me a story.", "What is 7 + 5?"):
            for options in ({"temperature": 0}, {"temperature": 0, "logit_bias": {str(opener): -1000}}, {"temperature": 2, "seed": 1}, {"temperature": 2, "seed": 2, "stream": True}):
                body = {"messages": [{"role": "user", "content": text}], "tools": [TOOL], "tool_choice": "auto", "response_format": form, "max_tokens": 400} | options
                if body.get("stream"):
                    deltas = [c["choices"][0] for c in self.server.stream("/v1/chat/completions", body)[:-1]]
                    content = "".join(d["delta"].get("content") or "" for d in deltas)
                    calls = [t["function"].get("arguments", "") for d in deltas for t in d["delta"].get("tool_calls", [])]
                    call, end = "".join(calls), deltas[-1]["finish_reason"]
                else:
                    choice = self.server.post("/v1/chat/completions", body)[2]["choices"][0]
                    content, end = choice["message"]["content"], choice["finish_reason"]
                    call = choice["message"].get("tool_calls", [{}])[0].get("function", {}).get("arguments")
                if end == "length":
                    continue
                seen.add(end)
                if end == "tool_calls":
                    self.assertIn("city", json.loads(call))
                    self.assertFalse(content)
                else:
                    self.assertEqual(list(json.loads(content)), ["answer"])
        self.assertEqual(seen, {"tool_calls", "stop"})
        free = {"messages": [{"role": "user", "content": "What is the weather in Hamburg?"}], "tools": [TOOL], "tool_choice": "auto",
                "response_format": {"type": "json_object"}, "temperature": 0, "max_tokens": 400}
        for options, end in ({}, "tool_calls"), ({"logit_bias": {str(opener): -1000}}, "stop"):
            choice = self.server.post("/v1/chat/completions", free | options)[2]["choices"][0]
            if end == "tool_calls":
                self.assertEqual(choice["finish_reason"], end)
            else:
                self.assertTrue(choice["message"]["content"].startswith("{"))
        gbnf = {"grammar": "root ::= answer\nanswer ::= \"It is \" [0-9]+"} | {k: v for k, v in free.items() if k != "response_format"}
        call = self.server.post("/v1/chat/completions", gbnf)[2]["choices"][0]
        self.assertEqual((call["finish_reason"], list(json.loads(call["message"]["tool_calls"][0]["function"]["arguments"]))), ("tool_calls", ["city"]))
        text = self.server.post("/v1/chat/completions", gbnf | {"logit_bias": {str(opener): -1000}})[2]["choices"][0]["message"]["content"]
        self.assertRegex(text, r"^It is [0-9]+$")
        self.assertEqual(self.server.chat(tools=[TOOL], grammar="root ::= other")[0], 400)
        self.assertEqual(self.server.chat(tools=[TOOL], tool_choice="none", grammar="root ::= \"a\"")[2]["choices"][0]["message"]["content"], "a")

    def test_ids_of_tokens(self):
        body = {"messages": HI, "temperature": 0, "max_tokens": 8, "return_token_ids": True}
        whole = self.server.post("/v1/chat/completions", body)[2]
        self.assertEqual(len(whole["prompt_token_ids"]), whole["usage"]["prompt_tokens"])
        tokens = whole["choices"][0]["token_ids"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})[2]["content"], whole["choices"][0]["message"]["content"])
        chunks = self.server.stream("/v1/chat/completions", body)[:-1]
        self.assertEqual([c["prompt_token_ids"] for c in chunks if "prompt_token_ids" in c], [whole["prompt_token_ids"]])
        self.assertEqual([t for c in chunks for t in c["choices"][0].get("token_ids", [])], tokens)
        self.assertNotIn("token_ids", json.dumps(self.server.chat()[2]))

    def test_an_answer_that_the_client_began(self):
        answer = self.server.chat(messages=[*HI, {"role": "assistant", "content": "Once upon a time, there was a fox named"}])[2]
        self.assertNotIn("Once upon a time, there was a fox named", answer["choices"][0]["message"]["content"])
        self.assertGreater(answer["usage"]["completion_tokens"], 0)

    def test_forms_of_messages(self):
        for messages in (
            [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}, {"role": "system", "content": "c"}, {"role": "user", "content": "d"}],
            [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "d"}],
            [{"role": "developer", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}],
            [*HI, {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}]},
             {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "warm"}]}],
            [*HI, {"role": "assistant", "content": "x", "reasoning_content": "y"}, {"role": "user", "content": "z"}],
        ):
            status, _, body = self.server.chat(messages=messages, max_tokens=2, tools=[TOOL])
            self.assertEqual(status, 200, (messages, body))

    def test_fields_that_other_services_have_are_no_fault(self):
        status, _, body = self.server.chat(store=False, metadata={"a": 1}, user="me", service_tier="auto", prediction=None, seed=None,
                                           stop=None, tools=[], parallel_tool_calls=False, reasoning_effort="none",
                                           response_format={"type": "text"}, stream_options=None, frob={"x": [1]})
        self.assertEqual(status, 200, body)
        for effort in ("minimal", "low", "medium", "high"):
            self.assertEqual(self.server.chat(reasoning_effort=effort, max_tokens=2)[0], 200)
        self.assertEqual(self.server.chat(chat_template_kwargs={"enable_thinking": True}, max_tokens=2)[0], 200)
        self.assertEqual(self.server.chat(tools=[{"type": "web_search"}, {"type": "local_shell"}], max_tokens=2)[0], 200)


class Completions(Served):
    def complete(self, **fields):
        return self.server.post("/v1/completions", {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 8} | fields)

    def test_forms_of_prompts(self):
        text = self.complete()[2]["choices"][0]["text"]
        tokens = self.server.post("/tokenize", {"content": "Once upon a time"})[2]["tokens"]
        self.assertEqual(self.complete(prompt=tokens)[2]["choices"][0]["text"], text)
        many = self.complete(prompt=["Once upon a time", "The dog"])[2]
        self.assertEqual([c["index"] for c in many["choices"]], [0, 1])
        self.assertEqual(many["choices"][0]["text"], text)
        self.assertEqual(self.complete(prompt=[tokens, tokens], n=2)[2]["choices"][3]["text"], text)
        self.assertEqual(self.complete(max_tokens=None)[2]["usage"]["completion_tokens"], 16)
        self.assertEqual(self.complete(prompt=tokens, echo=True)[2]["choices"][0]["text"], "Once upon a time" + text)

    PROMPTS = ["Once upon a time", "The dog", "A bear and", "Two birds", "In the wood there"]

    def test_prompts_run_side_by_side(self):
        one_by_one = [self.complete(prompt=prompt)[2] for prompt in self.PROMPTS]
        many = self.complete(prompt=self.PROMPTS)[2]
        self.assertEqual([c["text"] for c in many["choices"]], [one["choices"][0]["text"] for one in one_by_one])
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(many["usage"][name], sum(one["usage"][name] for one in one_by_one), name)
        usage = many["usage"]
        sums = f" prompt={usage['prompt_tokens']} cached=(\\d+) computed=(\\d+) .*generated={usage['completion_tokens']} "
        logged = lambda: [found for line in self.server.lines if "path=/v1/completions" in line and (found := re.search(sums, line))]
        wait_until(logged)
        self.assertEqual(sum(map(int, logged()[0].groups())), usage["prompt_tokens"])
        with self.server.socket() as s:
            s.sendall(request_bytes("/v1/completions", {"prompt": self.PROMPTS, "stream": True} | ENDLESS))
            wait_until(lambda: self.server.get("/v1/cache")[2]["active_sequences"] == 5)
        wait_until(lambda: self.server.active() == 0, 5)
        wait_until(lambda: self.server.metric("answers_in_flight") == 0)

    def test_prompts_in_a_stream(self):
        for fields in ({}, {"echo": True}, {"echo": True, "logprobs": 1}, {"n": 2}, {"prompt": self.PROMPTS * 8, "max_tokens": 2}):
            whole = self.complete(**{"prompt": self.PROMPTS} | fields)[2]
            events = self.server.stream("/v1/completions", {"prompt": self.PROMPTS, "temperature": 0, "max_tokens": 8, "stream_options": {"include_usage": True}} | fields)
            texts = [""] * len(whole["choices"])
            for event in events[:-2]:
                choice = event["choices"][0]
                texts[choice["index"]] += choice["text"]
            self.assertEqual(texts, [choice["text"] for choice in whole["choices"]], fields)
            self.assertEqual(sum(bool(e["choices"][0]["finish_reason"]) for e in events[:-2]), len(texts))
            self.assertEqual(events[-2]["usage"]["total_tokens"], whole["usage"]["total_tokens"])

    def test_streams(self):
        text = self.complete()[2]["choices"][0]["text"]
        events = self.server.stream("/v1/completions", {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 8, "echo": True,
                                    "stream_options": {"include_usage": True}})
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 8)
        self.assertEqual("".join(c["choices"][0]["text"] for c in events[:-2]), "Once upon a time" + text)
        self.assertEqual(events[-3]["choices"][0]["finish_reason"], "length")

    def test_logprobs_of_prompt_and_answer(self):
        choice = self.complete(echo=True, logprobs=2)[2]["choices"][0]
        scores = choice["logprobs"]
        self.assertEqual("".join(scores["tokens"]), choice["text"])
        self.assertIsNone(scores["token_logprobs"][0])
        self.assertTrue(all(p <= 0 for p in scores["token_logprobs"][1:]))
        for token, offset in zip(scores["tokens"], scores["text_offset"]):
            self.assertEqual(choice["text"][offset:offset + len(token)], token)
        only = self.complete(prompt=choice["text"], echo=True, logprobs=2, max_tokens=0)[2]["choices"][0]
        self.assertEqual(only["text"], choice["text"])
        self.assertEqual(len(only["logprobs"]["tokens"]), len(scores["tokens"]))
        chat = self.server.chat(logprobs=True, max_tokens=4)[2]["choices"][0]["logprobs"]["content"]
        prompt = self.server.post("/apply-template", {"messages": HI})[2]["prompt"]
        completion = self.complete(prompt=prompt, logprobs=0, max_tokens=4)[2]["choices"][0]["logprobs"]
        self.assertEqual(completion["tokens"], [c["token"] for c in chat])
        for a, b in zip(completion["token_logprobs"], chat):
            self.assertAlmostEqual(a, b["logprob"], delta=0.02)

    def test_what_it_cannot_do(self):
        for fields, word in (({"best_of": 2}, "best_of"), ({"suffix": "the end"}, "filling in the middle"), ({"prompt": []}, "prompt"),
                             ({"prompt": [1, "a"]}, "prompt"), ({"prompt": [-1]}, "prompt"), ({"prompt": [99999999]}, "prompt"),
                             ({"prompt": {}}, "prompt"), ({"prompt": None}, "prompt"), ({"prompt": ""}, "prompt"), ({"logprobs": -1}, "logprobs")):
            status, _, body = self.complete(**fields)
            self.assertEqual(status, 400, (fields, body))
            self.assertIn(word, body["error"]["message"])
        status, _, body = self.server.post("/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.assertEqual(status, 400)


class Embeddings(Served):
    TEXTS = ["A fox.", "A bear in the wood.", "The sea is deep and blue.", "", "Rain."]

    def embed(self, input, **fields):
        status, _, body = self.server.post("/v1/embeddings", {"model": "any", "input": input} | fields)
        self.assertEqual(status, 200, body)
        self.assertEqual((body["object"], body["model"]), ("list", "pocket-dense"))
        self.assertEqual([(d["object"], d["index"]) for d in body["data"]], [("embedding", i) for i in range(len(body["data"]))])
        self.assertEqual(body["usage"]["prompt_tokens"], body["usage"]["total_tokens"])
        return [d["embedding"] for d in body["data"]], body["usage"]["prompt_tokens"]

    def near(self, got, expected):
        self.assertEqual(len(got), len(expected))
        self.assertLess(max(abs(a - b) for a, b in zip(got, expected)), 2e-3)

    def test_forms_of_inputs(self):
        texts = [text for text in self.TEXTS if text] * 6
        vectors, count = self.embed(texts)
        ids = [self.server.post("/tokenize", {"content": text, "add_special": True, "parse_special": True})[2]["tokens"] for text in texts]
        self.assertEqual(count, sum(map(len, ids)))
        for text, tokens, vector in list(zip(texts, ids, vectors))[:4]:
            self.assertAlmostEqual(sum(x * x for x in vector), 1, places=5)
            self.near(self.embed(text)[0][0], vector)
            self.near(self.embed(tokens)[0][0], vector)
        for one, other in zip(self.embed(ids)[0], vectors):  # each is that of its own text, in its place
            self.near(one, other)
        self.assertGreater(max(abs(a - b) for a, b in zip(vectors[0], vectors[1])), 0.02)

    def test_forms_of_answers(self):
        floats, text = self.embed("A fox.")[0][0], self.embed("A fox.", encoding_format="base64")[0][0]
        self.near(struct.unpack(f"<{len(floats)}f", base64.b64decode(text, validate=True)), floats)
        for dimensions in (1, 5, len(floats)):
            short = self.embed("A fox.", dimensions=dimensions)[0][0]
            length = sum(x * x for x in floats[:dimensions]) ** 0.5
            self.near(short, [x / length for x in floats[:dimensions]])
            text = self.embed("A fox.", dimensions=dimensions, encoding_format="base64", user="u")[0][0]
            self.near(struct.unpack(f"<{dimensions}f", base64.b64decode(text, validate=True)), short)

    def test_what_it_cannot_do(self):
        width = len(self.embed("x")[0][0])
        for fields, param in (({"input": ""}, "input"), ({"input": []}, "input"), ({"input": ["a", ""]}, "input"), ({"input": [[]]}, "input"), ({"input": [1, "a"]}, "input"),
                              ({"input": [2**31]}, "input"), ({"input": [-1]}, "input"), ({"input": {"a": 1}}, "input"), ({}, "input"), ({"input": ["a"] * 2049}, "input"), ({"input": "a", "dimensions": 0}, "dimensions"),
                              ({"input": "a", "dimensions": width + 1}, "dimensions"), ({"input": "a", "encoding_format": "int8"}, "encoding_format")):
            status, _, body = self.server.post("/v1/embeddings", fields)
            self.assertEqual((status, body["error"]["type"], body["error"]["param"]), (400, "invalid_request_error", param), (fields, body))
        status, _, body = self.server.post("/v1/embeddings", {"input": ["a", [7] * 32769]})
        self.assertEqual((status, body["error"]["code"], body["error"]["param"]), (400, "context_length_exceeded", "input"))
        self.assertIn("maximum context length is 32768 tokens", body["error"]["message"])

    def test_beside_answers(self):
        alone = self.server.chat(max_tokens=60)[2]["choices"][0]["message"]["content"]
        vectors = self.embed([f"{i} foxes" for i in range(12)])[0]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [pool.submit(self.server.chat, max_tokens=60) for _ in range(3)]
            others = [pool.submit(self.embed, [f"{i} foxes" for i in range(12)]) for _ in range(3)]
            for answer in answers:
                self.assertEqual(answer.result()[2]["choices"][0]["message"]["content"], alone)
            for other in others:
                for one, vector in zip(other.result()[0], vectors):
                    self.near(one, vector)

    def test_the_log_and_the_cache(self):
        text = "A text that begins like no other, and goes on for as long as some pages are. " * 3
        for cached in (False, True):
            before = len(self.server.lines)
            tokens = self.embed([text, "x"])[1]
            line = lambda: [l for l in self.server.lines[before:] if "path=/v1/embeddings" in l]
            wait_until(line)
            notes = dict(re.findall(r" (\w+)=(\d+)", line()[0]))
            self.assertEqual((int(notes["inputs"]), int(notes["prompt"])), (2, tokens), line())
            self.assertEqual(int(notes["cached"]) + int(notes["computed"]), tokens)
            self.assertEqual(int(notes["cached"]) > 0, cached)
        self.assertEqual(self.server.metric("answers_in_flight"), 0)

    def test_it_ends_when_its_client_leaves(self):
        before, cancelled = len(self.server.lines), self.server.metric("answers_cancelled_total")
        with self.server.socket() as s:
            rng = random.Random(1)
            s.sendall(request_bytes("/v1/embeddings", {"input": [[rng.randrange(300) for _ in range(20000)] for _ in range(9)]}))
            wait_until(lambda: self.server.metric("answers_in_flight") == 4)
        wait_until(lambda: any("gone=yes" in line for line in self.server.lines[before:]), 10)
        wait_until(lambda: self.server.active() == 0, 10)
        self.assertEqual(self.server.metric("answers_in_flight"), 0)
        self.assertEqual(self.server.metric("answers_cancelled_total") - cancelled, 4)


class SmallContext(Served):
    CONTEXT = 256

    def test_texts_that_are_too_long_for_an_embedding(self):
        long = "the fox and the bear and " * 200
        status, _, body = self.server.post("/v1/embeddings", {"input": long})
        self.assertEqual((status, body["error"]["code"], body["error"]["n_ctx"]), (400, "context_length_exceeded", 256))
        status, _, body = self.server.post("/api/embed", {"input": long, "truncate": False})
        self.assertEqual(status, 400)
        self.assertIn("the context takes 256", body["error"])
        # All that fits, and not the whole.
        tokens = self.server.post("/tokenize", {"content": long, "add_special": True})[2]["tokens"][:256]
        beginning = self.server.post("/v1/embeddings", {"input": tokens})[2]["data"][0]["embedding"]
        for path, body in (("/api/embed", {"input": ["x", long]}), ("/api/embed", {"input": ["x", long], "truncate": True}), ("/api/embeddings", {"prompt": long})):
            status, _, answer = self.server.post(path, body)
            self.assertEqual(status, 200, answer)
            vector = answer["embeddings"][1] if "embeddings" in answer else answer["embedding"]
            self.assertLess(max(abs(a - b) for a, b in zip(vector, beginning, strict=True)), 2e-3)


def with_metadata(path, *more):
    """Writes the model with keys more: (key, number of the GGUF type, bytes of the value)."""
    data = Path(MODEL).read_bytes()
    field = lambda key, kind, value: struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value
    added = b"".join(field(*one) for one in more)
    text = b"x" * (-(len(added) + len(field("pad", 8, bytes(8)))) % 32)  # what follows stays where it was aligned to
    added += field("pad", 8, struct.pack("<Q", len(text)) + text)
    count = struct.unpack_from("<Q", data, 16)[0] + len(more) + 1
    path.write_bytes(data[:16] + struct.pack("<Q", count) + added + data[24:])
    return str(path)


class EmbeddingModel(unittest.TestCase):
    """A model whose file says that it is for embeddings, and that texts end with a token."""

    def test_the_end_token_and_what_clients_are_told(self):
        end = 4089  # of MODEL
        with tempfile.TemporaryDirectory() as folder:
            path = with_metadata(Path(folder) / "m.gguf", ("qwen3.pooling_type", 4, struct.pack("<I", 3)), ("tokenizer.ggml.add_eos_token", 7, b"\1"))
            server = Serve(model=path, context=256)
            plain = Serve(context=256)
            try:
                self.assertEqual(server.post("/api/show", {"model": "m"})[2]["capabilities"][0], "embedding")
                tokens = lambda text: plain.post("/tokenize", {"content": text})[2]["tokens"]
                vector = lambda where, input: where.post("/v1/embeddings", {"input": input})[2]["data"][0]["embedding"]
                differ = lambda a, b: max(abs(x - y) for x, y in zip(a, b, strict=True))
                got = vector(server, "The fox sleeps.")
                self.assertLess(differ(got, vector(plain, tokens("The fox sleeps.") + [end])), 2e-3)
                self.assertGreater(differ(got, vector(plain, "The fox sleeps.")), 2e-2)
                long = "the fox and the bear and " * 200
                cut = server.post("/api/embed", {"input": long})[2]
                self.assertEqual(cut["prompt_eval_count"], 256)
                self.assertLess(differ(cut["embeddings"][0], vector(plain, tokens(long)[:255] + [end])), 2e-3)
            finally:
                server.stop()
                plain.stop()

    def test_a_pooling_that_it_does_not_have(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Serve(model=with_metadata(Path(folder) / "m.gguf", ("qwen3.pooling_type", 4, struct.pack("<I", 4))), context=256)
            try:
                status, _, body = server.post("/v1/embeddings", {"input": "x"})
                self.assertEqual((status, body["error"]["type"]), (400, "invalid_request_error"))
                self.assertIn("pooling_type is 4", body["error"]["message"])
                self.assertEqual(server.metric("answers_in_flight"), 0)
                self.assertEqual(server.chat(max_tokens=2)[0], 200)
            finally:
                server.stop()


class Errors(Served):
    def check(self, status, kind, word, answer):
        self.assertEqual(answer[0], status, answer[2])
        error = answer[2]["error"]
        self.assertEqual(error["type"], kind)
        self.assertIn(word, error["message"])
        self.assertTrue({"message", "type", "param", "code"} <= set(error))

    def test_fields_out_of_their_range_are_named(self):
        for field, value in (
            ("temperature", -1), ("temperature", "hot"), ("temperature", 1e300), ("top_p", 1.5), ("top_p", -0.1), ("min_p", 2), ("top_k", -2),
            ("top_k", 1.5), ("n", 0), ("n", -1), ("n", 2**31), ("n", 10**30), ("max_tokens", -2), ("max_tokens", 2**63), ("max_tokens", 2**64),
            ("max_completion_tokens", "many"), ("seed", "x"), ("seed", 2**64), ("stop", 5), ("stop", [1]), ("stop", ["x"] * 100),
            ("logit_bias", {"x": 1}), ("logit_bias", {"1": "y"}), ("logit_bias", {"99999999": 1}), ("logit_bias", {"-1": 1}), ("logit_bias", 7),
            ("logit_bias", [[1]]), ("logit_bias", [[2**64, 1]]), ("presence_penalty", 1e9), ("frequency_penalty", []), ("repeat_penalty", 0),
            ("repeat_last_n", -2), ("dry_base", 0), ("xtc_probability", 2), ("typical_p", 7), ("top_logprobs", -1), ("top_logprobs", 1000),
            ("stream", "yes"), ("stream_options", 5), ("stream_options", {"include_usage": 1}), ("tool_choice", "sometimes"), ("tool_choice", 5),
            ("tool_choice", "required"), ("tool_choice", {"type": "function", "function": {"name": "nope"}}), ("tools", {}), ("tools", [5]),
            ("tools", [{"type": "function", "function": {}}]), ("response_format", {"type": "poem"}), ("response_format", 5),
            ("response_format", {"type": "json_schema"}), ("messages", []), ("messages", None), ("messages", "Hi"), ("messages", [1]),
            ("messages", [{}]), ("messages", [{"role": "user", "content": 5}]), ("messages", [{"role": "wizard", "content": "Hi"}]), ("lora", [{"id": 0, "scale": 1}]), ("modalities", ["audio"]),
            ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]),
            ("chat_template_kwargs", 5), ("thinking_budget", -7), ("n_probs", 10**9),
        ):
            for stream in (False, True):
                self.check(400, "invalid_request_error", field, self.server.chat(**({"stream": stream} | {field: value})))

    def test_an_answer_has_one_form(self):
        forms = {"response_format": {"type": "json_object"}, "json_schema": {"type": "object"}, "grammar": "root ::= \"a\""}
        for one in forms:
            for other in forms:
                if one < other:
                    answer = self.server.chat(**{one: forms[one], other: forms[other]})
                    self.assertEqual(answer[0], 400, (one, other, answer[2]))
                    self.assertIn("one form", answer[2]["error"]["message"])
            self.assertEqual(self.server.chat(**({"response_format": {"type": "text"}} | {one: forms[one]}))[0], 200)

    def test_bodies_that_are_no_json(self):
        for body in (b"", b"{", b"nope", b"[]", b"5", b"{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}", b"[" * 100000,
                     b"{\"a\":" * 100000, b"{\"temperature\": 1e999}", b"\x00" * 100):
            for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template", "/infill"):
                self.check(400, "invalid_request_error", "body", self.server.post(path, body))
        self.assertIn("line 2, column 3", self.server.post("/v1/chat/completions", b"{\n  oops}")[2]["error"]["message"])

    def test_a_prompt_that_is_too_long_says_how_much(self):
        answer = self.server.chat(messages=[{"role": "user", "content": "a b c d " * 20000}])
        self.check(400, "invalid_request_error", "maximum context length is 32767 tokens", answer)
        self.assertEqual(answer[2]["error"]["code"], "context_length_exceeded")
        self.assertGreater(answer[2]["error"]["n_prompt_tokens"], 32767)

    def test_what_is_not_there(self):
        for word in ("/v1/nothing", "POST /v1/chat/completions"):
            self.check(404, "not_found_error", word, self.server.get("/v1/nothing"))
        answer = self.server.get("/v1/chat/completions")
        self.check(405, "invalid_request_error", "POST", answer)
        self.assertEqual(answer[1]["Allow"], "POST")
        self.check(501, "not_supported_error", "reranking", self.server.post("/v1/rerank", {"query": "x"}))

    def test_what_is_refused_early_has_the_form_of_its_path(self):
        head = "POST {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n"
        for path, form in (("/v1/messages?beta=true", lambda e: e["type"] == "error" and e["error"]["message"]), ("/api/chat", lambda e: isinstance(e["error"], str)),
                           ("/v1/responses", lambda e: e["error"]["message"])):
            for header, status in (("Content-Length: 999999999999", b"413"), ("Transfer-Encoding: gzip", b"501"), ("Content-Length: x", b"400")):
                answer = self.server.raw(head.format(path, header).encode())
                self.assertIn(status, answer.split(b"\r\n")[0])
                self.assertTrue(form(json.loads(answer.split(b"\r\n\r\n", 1)[1])), answer)

    def test_requests_that_are_no_http(self):
        for data, status in ((b"nonsense\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nX: " + b"x" * 70000, b"431"),
                             (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n", b"413"),
                             (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
                             (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"501"),
                             (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"501"),
                             (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", b"501"),
                             (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400")):
            answer = self.server.raw(data, shut=len(data) < 20)
            if answer or len(data) >= 20:
                self.assertIn(status, answer.split(b"\r\n")[0], data[:60])


class Connections(Served):
    def test_an_answer_ends_when_its_client_leaves(self):
        for stream in (True, False):
            for how in ("close", "half"):
                cancelled = self.server.metric("answers_cancelled_total")
                s = self.server.socket()
                s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": stream} | ENDLESS))
                wait_until(lambda: self.server.active() == 1)
                start = time.time()
                if how == "close":
                    s.close()
                else:
                    s.shutdown(socket.SHUT_WR)
                wait_until(lambda: self.server.active() == 0, 5)
                self.assertLess(time.time() - start, 1.5, (stream, how))
                wait_until(lambda: self.server.metric("answers_cancelled_total") == cancelled + 1)
                s.close()

    def test_headers_come_before_the_prompt_is_read(self):
        with self.server.socket() as s:
            s.sendall(request_bytes("/v1/chat/completions", {"messages": [{"role": "user", "content": "a b c " * 4000}], "stream": True} | ENDLESS))
            first = s.recv(65536)
            self.assertIn(b"200 OK", first)
            while b"assistant" not in first:
                first += s.recv(65536)
            self.assertEqual(first.count(b"data: "), 1)
        wait_until(lambda: self.server.active() == 0, 10)

    def test_identical_requests_that_overlap_read_their_prompt_once(self):
        body = {"messages": [{"role": "user", "content": "nine eight seven six five four three two. " * 1500}], "max_tokens": 2}
        self.server.ask("DELETE", "/v1/cache")
        before = len(self.server.lines)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: self.server.post("/v1/chat/completions", body)[2]["usage"], range(4)))
        prompt = answers[0]["prompt_tokens"]
        self.assertGreater(prompt, 8000)
        self.assertLess(sum(prompt - a["prompt_tokens_details"]["cached_tokens"] for a in answers), prompt + 4 * 32)
        lines = lambda: [l for l in self.server.lines[before:] if "status=200" in l and " computed=" in l]
        wait_until(lambda: len(lines()) == 4)
        self.assertLess(sum(int(re.search(r" computed=(\d+)", l)[1]) for l in lines()), prompt + 4 * 32)

    def test_the_log_has_what_was_computed_for_who_left_and_why_it_was_not_cached(self):
        body = {"messages": [{"role": "user", "content": "here and there and now and then and so on. " * 2500}], "stream": True, "return_progress": True}
        self.server.ask("DELETE", "/v1/cache")
        before = len(self.server.lines)
        with self.server.socket() as s:
            s.sendall(request_bytes("/v1/chat/completions", body))
            data = b""
            while b'"processed"' not in data:
                data += s.recv(65536)
        lines = lambda: [l for l in self.server.lines[before:] if "path=/v1/chat" in l and "status=" in l]
        wait_until(lambda: len(lines()) == 1)
        line = lines()[0]
        self.assertIn("gone=yes", line)
        prompt, cached, computed = (int(re.search(rf" {name}=(\d+)", line)[1]) for name in ("prompt", "cached", "computed"))
        self.assertEqual(cached, 0)
        self.assertTrue(0 < computed < prompt, line)
        self.server.post("/v1/chat/completions", body | {"stream": False, "max_tokens": 1})
        wait_until(lambda: len(lines()) == 2)
        self.assertRegex(lines()[1], rf" cached={computed // 16 * 16} .* miss=longer miss_at={computed // 16 * 16} ")

    def test_the_log_names_the_model_and_quotes_what_clients_send(self):
        def line(act, method, status):
            before = len(self.server.lines)
            act()
            lines = lambda: [l for l in self.server.lines[before:] if f" method={method} " in l and f" status={status} " in l]
            wait_until(lambda: lines())
            return lines()[0]

        id = self.server.get("/v1/models")[2]["data"][0]["id"]
        asked = line(lambda: self.server.chat(model="claude-\"opus\"", max_tokens=1), "POST", 200)
        self.assertIn(f' model="{id}" asked="claude-\\"opus\\"" prompt=', asked)
        for name in (id, id + ":latest"):
            self.assertNotIn("asked=", line(lambda: self.server.chat(model=name, max_tokens=1), "POST", 200))
        wrong = line(lambda: self.server.chat(top_k='a "b" \n error="c"'), "POST", 400)
        self.assertRegex(wrong, r' error="([^"\\]|\\.)*"\n$')
        self.assertIn('error="top_k: ', wrong)
        self.assertIn(' path="/a status=200 \\"b" status=404 ', line(lambda: self.server.get("/a%20status=200%20%22b"), "GET", 404))

    def test_each_protocol_has_its_own_way_to_say_no_limit(self):
        for path, field, text, good, bad in (("/v1/chat/completions", "max_tokens", "messages", (0, -1), (-2,)), ("/v1/completions", "max_tokens", "prompt", (0, -1), (-2,)),
                                             ("/v1/messages", "max_tokens", "messages", (0, 1), (-1,)), ("/v1/responses", "max_output_tokens", "input", (1,), (0, -1)),
                                             ("/api/chat", "num_predict", "messages", (0, -1, -2), (-3,))):
            for number in (*good, *bad):
                limit = {"options": {field: number}} if path == "/api/chat" else {field: number}
                status, _, answer = self.server.post(path, {"model": "m", text: "Hi" if text != "messages" else HI, "stream": False} | limit)
                self.assertEqual(status, 200 if number in good else 400, (path, number, answer))
                if number in bad:
                    self.assertIn(field, json.dumps(answer))

    def test_who_asks_again_goes_on_where_the_prompt_was(self):
        body = {"messages": [{"role": "user", "content": "one two three four five six seven eight. " * 1500}], "stream": True,
                "return_progress": True, "max_tokens": 1}
        with self.server.socket() as s:
            s.sendall(request_bytes("/v1/chat/completions", body))
            data = b""
            while not (found := re.findall(rb'"processed":(\d+),"total":(\d+)', data)) or int(found[-1][0]) * 2 < int(found[-1][1]):
                piece = s.recv(65536)
                self.assertTrue(piece, data[-500:])
                data += piece
        self.assertLess(int(found[-1][0]), int(found[-1][1]))
        wait_until(lambda: self.server.active() == 0, 10)
        usage = self.server.post("/v1/chat/completions", body | {"stream": False})[2]["usage"]
        self.assertGreater(usage["prompt_tokens"], 8000)
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], int(found[-1][0]) // 16 * 16)

    def test_connections_are_used_again(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", json.dumps({"messages": HI, "max_tokens": 2, "stream": True}))
            self.assertIn(b"[DONE]", connection.getresponse().read())
            connection.request("GET", "/nothing")
            self.assertEqual(connection.getresponse().read()[:9], b'{"error":')
        connection.close()
        two = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.assertEqual(self.server.raw(two).count(b"200 OK"), 2)
        old = self.server.raw(b"GET /health HTTP/1.0\r\n\r\n")
        self.assertTrue(old.endswith(b'{"status":"ok"}'), old)

    def test_slow_clients_hold_nobody_up(self):
        slow = [self.server.socket() for _ in range(40)]
        for s in slow:
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc")
        start = time.time()
        self.assertEqual(self.server.chat(max_tokens=2)[0], 200)
        self.assertLess(time.time() - start, 5)
        answers = [receive_all(s) for s in slow]  # after the time that headers have
        for s in slow:
            s.close()
        self.assertTrue(all(a.startswith(b"HTTP/1.1 408") for a in answers), answers[0])

    def test_many_at_once(self):
        alone = self.server.chat(max_tokens=24)[2]["choices"][0]["message"]["content"]
        results = [None] * 32

        def one(i):
            if i % 2:
                results[i] = self.server.chat(max_tokens=24)[2]["choices"][0]["message"]["content"]
            else:
                events = self.server.stream("/v1/chat/completions", {"messages": HI, "temperature": 0, "max_tokens": 24})
                results[i] = "".join(c["choices"][0]["delta"].get("content", "") for c in events[:-1])

        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(results))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertTrue(all(results))
        # The order of float sums may differ, so that a few may take another turn.
        self.assertGreaterEqual(results.count(alone), 16, (alone, results))
        wait_until(lambda: self.server.active() == 0)

    def test_random_bodies_never_break_it(self):
        rng = random.Random(5)
        seeds = [json.dumps({"messages": HI, "max_tokens": 2, "tools": [TOOL], "tool_choice": "auto", "stop": ["a"], "n": 1,
                             "logit_bias": {"5": 1}, "stream_options": {"include_usage": True}, "temperature": 0.5, "seed": 1}),
                 json.dumps({"prompt": ["Once", "upon"], "max_tokens": 2, "echo": True, "logprobs": 2, "top_k": 5, "stop": "x"}),
                 json.dumps({"content": "hello", "tokens": [1, 2, 3], "messages": HI, "input_prefix": "a", "input_suffix": "b"})]
        values = ["-1", "null", "1e999", "9" * 30, "true", "[]", "{}", '""', "[[]]", "0", "2147483648", "-0.0", '"\\ud800"', "1.5"]
        paths = ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template", "/infill"]
        connection = self.server.connect()
        for _ in range(400):
            body = rng.choice(seeds)
            for _ in range(rng.randint(1, 3)):
                kind = rng.random()
                if kind < 0.5:  # another value
                    spots = list(re.finditer(r'(?<=: )("[^"]*"|[-0-9.]+|true)', body))
                    if spots:
                        spot = rng.choice(spots)
                        body = body[:spot.start()] + rng.choice(values) + body[spot.end():]
                elif kind < 0.75:  # another byte
                    at = rng.randrange(len(body))
                    body = body[:at] + chr(rng.randrange(1, 256)) + body[at + 1:]
                else:  # a piece less
                    at = rng.randrange(len(body))
                    body = body[:at] + body[at + rng.randint(1, 20):]
            # A mutation may ask for a long answer: this keeps each short.
            body = re.sub(r'"max_tokens": (null|[0-9]{2,}|-1)\b', '"max_tokens": 3', body)
            path = rng.choice(paths)
            try:
                connection.request("POST", path, body.encode("latin-1"), {"Content-Type": "application/json"})
                response = connection.getresponse()
                data = response.read()
            except (http.client.HTTPException, OSError) as error:
                self.fail(f"{path} {body!r}: {error!r}")
            self.assertLess(response.status, 500, (path, body, data))
        connection.close()
        self.assertEqual(self.server.get("/health")[0], 200)


class Full(Served):
    ARGS = ("--parallel", "1", "--queue", "1")

    def test_who_may_not_wait_is_told_when_to_come_back(self):
        waiting = []
        for _ in range(2):
            s = self.server.socket()
            s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True} | ENDLESS))
            waiting.append(s)
        wait_until(lambda: self.server.metric("answers_in_flight") == 2)
        wait_until(lambda: self.server.active() == 2)
        status, headers, body = self.server.chat(max_tokens=2)
        self.assertEqual((status, body["error"]["code"]), (503, "overloaded"))
        self.assertGreater(int(headers["Retry-After"]), 0)
        status, headers, body = self.server.post("/v1/embeddings", {"input": ["a", "b"]})
        self.assertEqual((status, body["error"]["code"]), (503, "overloaded"))
        waiting[1].close()  # it had not begun
        wait_until(lambda: self.server.active() == 1, 5)
        waiting[0].close()
        wait_until(lambda: self.server.active() == 0, 5)
        self.assertEqual(self.server.chat(max_tokens=2)[0], 200)


    def test_who_waits_is_kept_waiting(self):
        busy = self.server.socket()
        busy.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True, "logit_bias": {"0": -1}} | ENDLESS))
        wait_until(lambda: self.server.active() == 1)
        with self.server.socket() as s:
            s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True, "max_tokens": 2}))
            start = time.time()
            data = b""
            while data.count(b"data: ") < 2:
                data += s.recv(65536)
            if time.time() - start > 9:  # unless the busy one was done before
                self.assertLess(time.time() - start, 15)
                chunk = json.loads(data.split(b"data: ")[2].split(b"\n\n")[0])
                self.assertEqual(chunk["choices"], [{"index": 0, "delta": {}, "finish_reason": None}])
        busy.close()
        wait_until(lambda: self.server.active() == 0, 5)

    def test_many_prompts_take_the_places_that_run_and_keep_them(self):
        """One place, whatever the number of prompts: somebody else waits meanwhile, and nothing of them fails."""
        prompts = [f"Once upon a time {i}" for i in range(12)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            many = pool.submit(self.server.post, "/v1/completions", {"prompt": prompts, "max_tokens": 60, "ignore_eos": True})
            wait_until(lambda: self.server.active() > 0)
            self.assertEqual(self.server.metric("answers_in_flight"), 1)
            other = pool.submit(self.server.chat, max_tokens=2)
            status, _, body = many.result()
            self.assertEqual((status, len(body["choices"])), (200, 12), body)
            self.assertEqual(body["usage"]["completion_tokens"], 12 * 60)
            self.assertEqual(other.result()[0], 200)


class Keys(Served):
    ARGS = ("--api-key", "secret-1", "--api-key", "secret-2", "--alias", "my-model", "--allow-origin", "https://chat.example")

    def test_keys(self):
        for headers in ({"Authorization": "Bearer secret-1"}, {"Authorization": "bearer secret-2"}, {"x-api-key": "secret-1"}):
            status, _, body = self.server.get("/v1/models", headers=headers)
            self.assertEqual((status, body["data"][0]["id"]), (200, "my-model"))
        for headers in ({}, {"Authorization": "Bearer secret"}, {"Authorization": "Bearer secret-12"}, {"Authorization": "secret-1"},
                        {"Authorization": "Bearer "}, {"x-api-key": ""}, {"x-api-key": "secret-3"}):
            for path in ("/v1/models", "/metrics", "/props", "/v1/cache", "/nothing"):
                status, answer, body = self.server.get(path, headers=headers)
                self.assertEqual((status, body["error"]["code"]), (401, "invalid_api_key"), (path, headers))
            self.assertEqual(self.server.post("/v1/chat/completions", {"messages": HI}, headers=headers)[0], 401)
        for path in ("/health", "/", "/api/hello"):
            self.assertEqual(self.server.get(path)[0], 200, path)

    def test_who_may_not_ask_sends_no_body(self):
        for path, headers, status in (("/v1/messages", "", b"401"), ("/api/chat", "x-api-key: nothing\r\n", b"401"),
                                      ("/tokenize", "Origin: https://evil.example\r\nx-api-key: secret-1\r\n", b"403")):
            answer = self.server.raw(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n{headers}"
                                     "Content-Length: 50000000\r\n\r\n".encode())
            self.assertIn(status, answer.split(b"\r\n")[0], path)
        memory = self.memory()
        senders = [self.server.socket() for _ in range(4)]
        for s in senders:
            s.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n")
            try:
                for _ in range(50):
                    s.sendall(bytes(1 << 20))
            except OSError:
                pass
        self.assertLess(self.memory() - memory, 40 << 20)
        for s in senders:
            s.close()

    def memory(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.server.process.pid}/status").read_text())[1]) << 10

    def test_bodies_of_all_connections_have_a_limit(self):
        """256 MiB, of 64 MiB each."""
        memory = self.memory()
        head = "POST {} HTTP/1.1\r\nHost: localhost\r\nx-api-key: secret-1\r\nContent-Length: {}\r\n\r\n"
        senders = []
        for _ in range(4):
            senders.append(self.server.socket())
            senders[-1].sendall(head.format("/tokenize", 64 << 20).encode())
            for _ in range(63):
                senders[-1].sendall(bytes(1 << 20))
        wait_until(lambda: self.memory() - memory > 240 << 20)
        for path, status in (("/v1/chat/completions", b"503"), ("/v1/messages", b"529"), ("/api/chat", b"503")):
            with self.server.socket() as s:
                s.sendall(head.format(path, 32 << 20).encode())
                try:
                    for _ in range(32):
                        s.sendall(bytes(1 << 20))
                except OSError:
                    pass
                answer = receive_all(s)
            self.assertIn(status, answer.split(b"\r\n")[0], answer)
            self.assertIn(b"Retry-After: 5", answer)
        for s in senders:
            s.close()
        wait_until(lambda: self.memory() - memory < 100 << 20)
        self.assertEqual(self.server.post("/tokenize", "{}", headers={"x-api-key": "secret-1"})[0], 400)

    def test_hosts(self):
        key = {"x-api-key": "secret-1"}
        for host in ("localhost", "localhost:1", "127.0.0.1:8080", "[::1]:80", "LOCALHOST", "127.1.2.3"):
            self.assertEqual(self.server.get("/health", headers={"Host": host} | key)[0], 200, host)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1", "[::2]", "", "localhost@evil", "[::1].evil.example", "[::1", "localhost:x", "localhost:999999"):
            self.assertEqual(self.server.get("/health", headers={"Host": host} | key)[0], 403, host)

    def test_origins(self):
        key = {"x-api-key": "secret-1"}
        for origin in ("http://localhost:3000", "http://127.0.0.1", "https://chat.example", f"http://127.0.0.1:{self.server.port}"):
            status, headers, _ = self.server.get("/v1/models", headers={"Origin": origin} | key)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, origin))
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
            status, headers, _ = self.server.ask("OPTIONS", "/v1/chat/completions", headers=asked)
            self.assertEqual((status, headers["Access-Control-Allow-Headers"]), (204, "authorization"))
        for origin in ("https://evil.example", "null", "http://localhost.evil.example", "https://chat.example.evil", "file://", "http://[::1].evil.example", "http://localhost:80.evil.example"):
            status, headers, _ = self.server.get("/v1/models", headers={"Origin": origin} | key)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (403, None), origin)


class Crowded(Served):
    ARGS = ("--max-connections", "2")

    def test_one_connection_too_many_hears_it_in_its_own_form(self):
        held = [self.server.socket() for _ in range(2)]
        forms = {"/v1/chat/completions": (503, lambda body: body["error"]["code"] == "overloaded"),
                 "/v1/messages": (529, lambda body: body["type"] == "error" and body["error"]["type"] == "overloaded_error"),
                 "/api/chat": (503, lambda body: "too many connections" in body["error"])}
        for path, (wanted, form) in forms.items():
            status, headers, body = self.server.post(path, {"messages": HI, "max_tokens": 2})
            self.assertEqual(status, wanted, body)
            self.assertTrue(form(body), body)
            self.assertEqual((headers["Retry-After"], headers["Connection"]), ("2", "close"))
        self.assertEqual(self.server.get("/health")[::2], (200, {"status": "ok"}))
        self.assertEqual(self.server.get("/v1/models")[0], 503)
        with self.server.socket() as silent:  # is not waited for long
            start = time.time()
            self.assertEqual(receive_all(silent), b"")
            self.assertLess(time.time() - start, 6)
        for s in held:
            s.close()
        wait_until(lambda: self.server.get("/v1/models")[0] == 200)


class SeveralModels(unittest.TestCase):
    """The model in the box under two names, a tiny one without a chat template, and a file that is none."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        golden = Path(__file__).resolve().parent.parent / "data" / "golden"
        for name, target in (("first", MODEL), ("second", MODEL), ("tiny", golden / "qwen3.gguf")):
            (self.folder / f"{name}.gguf").symlink_to(target)
        (self.folder / "broken.gguf").write_text("This is no model.")

    def serve(self, *names, args=()):
        paths = [str(self.folder / f"{name}.gguf") for name in names]
        server = Serve(*paths[1:], *args, model=paths[0])
        self.addCleanup(server.stop)
        self.assertTrue(server.port, server.lines)
        return server

    def statuses(self, server):
        return {m["id"]: m["status"] for m in server.get("/v1/models")[2]["data"]}

    def test_names_choose_and_the_default_takes_the_rest(self):
        server = self.serve("first", "second", "tiny", args=("--alias", "big", "--alias", "claude-small=tiny", "--alias", "gpt=second"))
        self.assertEqual(self.statuses(server), {"big": "ready", "second": "unloaded", "tiny": "unloaded"})
        for name, id in (("big", "big"), ("claude-other", "big"), ("", "big"), (7, "big"), ("first", "big"), ("second", "second"),
                         ("gpt", "second"), ("second:latest", "second")):
            status, headers, answer = server.chat(model=name, max_tokens=2)
            self.assertEqual((status, answer["model"], headers["X-Hearth-Model"]), (200, id, id), name)
            events = server.stream("/v1/chat/completions", {"model": name, "messages": HI, "max_tokens": 2})
            self.assertEqual(events[0]["model"], id)
        for path, body in (("/v1/messages", {"messages": HI, "max_tokens": 2}), ("/v1/messages/count_tokens", {"messages": HI}),
                           ("/v1/responses", {"input": "Hi", "max_output_tokens": 2}), ("/v1/responses/input_tokens", {"input": "Hi"}),
                           ("/api/chat", {"messages": HI, "options": {"num_predict": 2}}), ("/api/show", {}),
                           ("/api/generate", {"prompt": "Hi", "options": {"num_predict": 2}}), ("/apply-template", {"messages": HI})):
            for name, id in (("gpt", "second"), ("claude-other", "big")):
                status, headers, _ = server.post(path, body | {"model": name})
                self.assertEqual((status, headers["X-Hearth-Model"]), (200, id), path)
        for name, told in (("gpt", "gpt"), ("second:latest", "second:latest"), ("claude-other", "big")):  # Ollama's own name of it, or what answered
            for call in ({"prompt": "Hi", "options": {"num_predict": 2}, "stream": False}, {}):
                self.assertEqual(server.post("/api/generate", call | {"model": name})[2]["model"], told)
        self.assertEqual(self.statuses(server), {"big": "ready", "second": "ready", "tiny": "unloaded"})
        self.assertEqual([m["name"] for m in server.get("/api/tags")[2]["models"]], ["big", "second", "tiny"])
        tiny = lambda: server.get("/api/tags")[2]["models"][2]
        wait_until(lambda: tiny()["details"]["family"] == "qwen3")  # though it was never loaded
        file = (self.folder / "tiny.gguf").stat()
        self.assertEqual((tiny()["size"], tiny()["modified_at"][:19]), (file.st_size, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(file.st_mtime))))
        self.assertEqual([m["name"] for m in server.get("/api/ps")[2]["models"]], ["big", "second"])
        status, _, answer = server.post("/v1/completions", {"model": "claude-small", "prompt": "abc", "max_tokens": 2})
        self.assertEqual((status, answer["model"]), (200, "tiny"))
        listed = {m["id"]: m for m in server.get("/v1/models")[2]["data"]}
        self.assertEqual(listed["tiny"]["aliases"], ["claude-small"])
        self.assertLess(listed["tiny"]["context_length"], listed["big"]["context_length"])
        self.assertEqual(server.get("/v1/models/claude-small")[2]["id"], "tiny")
        self.assertEqual(server.get("/v1/models/what")[2]["id"], "big")
        self.assertEqual(server.get("/props?x=1&model=claude%2Dsmall")[2]["model"], "tiny")
        self.assertEqual(server.get("/props")[2]["model"], "big")
        few, many = (server.post("/tokenize", {"model": m, "content": "Once upon a time"})[2]["tokens"] for m in ("big", "tiny"))
        self.assertLess(len(few), len(many))
        self.assertEqual(server.metric("models_loaded"), 3)
        self.assertGreater(server.get("/v1/cache?model=second")[2]["pages_cached"], 0)
        self.assertEqual(server.ask("DELETE", "/v1/cache?model=second")[2]["pages_cached"], 0)
        self.assertGreater(server.get("/v1/cache")[2]["pages_cached"], 0)
        self.assertTrue(any('path=/v1/completions' in l and 'model="tiny"' in l for l in server.lines), server.lines)

    def test_first_requests_at_once_load_once(self):
        server = self.serve("first", "second")
        status, _, answer = server.get("/v1/cache?model=second")
        self.assertEqual((status, answer["error"]["code"]), (503, "model_unavailable"))
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(server.chat(model="second", max_tokens=4))) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual([(a[0], a[2]["model"]) for a in answers], [(200, "second")] * 8)
        self.assertEqual(server.metric("model_loads_total"), 2)

    def test_who_is_not_used_goes_and_comes_back(self):
        server = self.serve("first", "second", args=("--idle-unload", "0.5"))
        answer = server.chat(model="second")[2]
        s = server.socket()
        s.sendall(request_bytes("/v1/chat/completions", {"model": "second", "messages": HI, "stream": True} | ENDLESS))
        s.recv(100)
        wait_until(lambda: self.statuses(server)["first"] == "unloaded")
        self.assertEqual(server.get("/health")[0], 200)
        time.sleep(1)
        self.assertEqual(self.statuses(server)["second"], "ready")  # an answer runs
        s.close()
        wait_until(lambda: self.statuses(server)["second"] == "unloaded")
        self.assertEqual(server.metric("models_loaded"), 0)
        self.assertGreaterEqual(server.metric("generated_tokens_total"), 16)  # nothing is forgotten
        self.assertEqual({m["context_length"] for m in server.get("/v1/models")[2]["data"]}, {32768})
        again = server.chat(model="second")[2]
        self.assertEqual(again["choices"][0]["message"], answer["choices"][0]["message"])
        self.assertEqual(server.chat()[2]["model"], "first")
        self.assertTrue(any("second unloaded" in line for line in server.lines), server.lines)

    def test_the_cache_file_outlives_unloading(self):
        server = self.serve("first", args=("--idle-unload", "0.01", "--prompt-cache", str(self.folder / "cache")))
        prompt = [{"role": "user", "content": "Tell me a story about " + "a very big garden and " * 20}]
        server.chat(messages=prompt, max_tokens=2)
        wait_until(lambda: self.statuses(server)["first"] == "unloaded")
        usage = server.chat(messages=prompt, max_tokens=2)[2]["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"] // 16 * 16)

    def test_a_model_that_cannot_be_loaded_is_no_end(self):
        server = self.serve("first", "broken")
        for _ in range(2):
            status, _, answer = server.chat(model="broken")
            self.assertEqual((status, answer["error"]["code"]), (503, "model_unavailable"))
            self.assertIn("broken.gguf", answer["error"]["message"])
            self.assertEqual(self.statuses(server), {"first": "ready", "broken": "failed"})
            self.assertEqual(server.get("/health")[0], 200)
            self.assertEqual(server.chat(max_tokens=2)[0], 200)
        (self.folder / "broken.gguf").unlink()
        (self.folder / "broken.gguf").symlink_to(MODEL)
        self.assertEqual(server.chat(model="broken", max_tokens=2)[2]["model"], "broken")

    def test_a_folder(self):
        for name in ("split-00001-of-00002.gguf", "split-00002-of-00002.gguf", "mmproj-first.gguf", "notes.txt"):
            (self.folder / name).write_text("x")
        server = self.serve("second", args=("--models-dir", str(self.folder)))
        self.assertEqual(list(self.statuses(server)), ["second", "broken", "first", "split", "tiny"])

    def test_what_does_not_go_together(self):
        one, two = str(self.folder / "first.gguf"), str(self.folder / "second.gguf")
        for args, word in (((one, two, "--prompt-cache", "x"), "--prompt-cache"), ((one, two, "--alias", "x=third"), "second"),
                           ((one, two, "--alias", "second=first"), "second"), ((one, "--alias", "a", "--alias", "b"), "--alias")):
            done = subprocess.run([HEARTH, "serve", *args, "--port", "0"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)
        (self.folder / "none").mkdir()
        done = subprocess.run([HEARTH, "serve", "--models-dir", self.folder / "none"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)


class Notified:
    """The socket of a service manager."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(0.01)
        self.told = []

    def states(self):
        """All that was told so far."""
        try:
            while True:
                self.told.append(self.socket.recv(4096).decode())
        except TimeoutError:
            return self.told


class Service(unittest.TestCase):
    """What operators see. A pipe in the place of the cache file lets the engine's thread hang until somebody opens it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = f"{folder.name}/cache"
        self.address = f"{folder.name}/notify"

    def manager(self, address):
        manager = Notified(address)
        self.addCleanup(manager.socket.close)
        return manager

    def hang(self, server):
        os.mkfifo(self.cache)
        restoring = concurrent.futures.ThreadPoolExecutor().submit(server.post, "/v1/cache/restore", {})
        wait_until(lambda: server.metric("quiet_seconds") > 0.2)
        return restoring

    def test_a_manager_is_told_how_it_is(self):
        for address in (self.address, f"\0hearth-test-{os.getpid()}"):
            manager = self.manager(address)
            server = Serve(env={"NOTIFY_SOCKET": address.replace("\0", "@")})
            wait_until(lambda: "WATCHDOG=1" in manager.states())
            self.assertEqual(manager.told[0], "READY=1")
            self.assertNotIn("STOPPING=1", manager.told)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(manager.states()[-1], "STOPPING=1")
            self.assertEqual(set(manager.told), {"READY=1", "WATCHDOG=1", "STOPPING=1"})

    def test_a_manager_that_is_gone_is_no_matter(self):
        server = Serve(env={"NOTIFY_SOCKET": self.address})
        self.assertEqual(server.chat()[0], 200)
        self.assertEqual(server.stop(), 0)

    def test_a_stall_is_told_and_ends(self):
        manager = self.manager(self.address)
        server = Serve("--prompt-cache", self.cache, "--stall", "1", env={"NOTIFY_SOCKET": self.address})
        restoring = self.hang(server)
        self.assertEqual(server.get("/health")[0], 200)  # not yet
        status, headers, body = restoring.result()
        self.assertEqual((status, headers["Retry-After"]), (503, "30"), body)
        self.assertEqual(server.get("/health")[::2], (503, {"status": "stalled", "model": "pocket-dense"}))
        self.assertEqual(server.chat()[0], 503)
        wait_until(lambda: any("stalls" in line for line in server.lines))
        manager.states()
        told = len(manager.told)
        time.sleep(2.5)
        self.assertEqual(manager.states()[told:], [])
        self.assertEqual(sum("pocket-dense stalls" in line and "restore the cache" in line for line in server.lines), 1, server.lines)
        os.close(os.open(self.cache, os.O_WRONLY))
        wait_until(lambda: server.get("/health")[0] == 200)
        self.assertEqual(server.chat()[0], 200)
        wait_until(lambda: "WATCHDOG=1" in manager.states()[told:])
        self.assertTrue(any("goes on" in line for line in server.lines), server.lines)
        os.unlink(self.cache)
        self.assertEqual(server.stop(), 0)

    def test_a_stall_does_not_keep_it_from_ending(self):
        for stall in ("0.5", "1000"):  # it is known to have stalled; it is not
            server = Serve("--prompt-cache", self.cache, "--stall", stall, "--grace", "0.2")
            restoring = self.hang(server)
            if stall == "0.5":
                wait_until(lambda: server.get("/health")[0] == 503)
            start = time.time()
            self.assertEqual(server.stop(), 1)
            self.assertLess(time.time() - start, 20)
            self.assertIn("hangs", server.lines[-1])
            self.assertTrue(restoring.exception() or restoring.result()[0] == 503)
            os.unlink(self.cache)


class Process(unittest.TestCase):
    def test_the_key_can_come_from_the_environment(self):
        server = Serve(env={"HEARTH_API_KEY": "hush"})
        self.assertEqual(server.get("/v1/models")[0], 401)
        self.assertEqual(server.get("/v1/models", headers={"x-api-key": "hush"})[0], 200)
        self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_a_prompt_cache_that_is_something_else_stays_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "notes.txt"
            path.write_text("my only copy")
            server = Serve("--prompt-cache", str(path))
            server.chat()
            self.assertEqual(server.stop(), 1, server.lines)
            self.assertEqual(path.read_text(), "my only copy")
            self.assertIn("stays as it is", "".join(server.lines))

    def test_an_empty_key_and_a_further_model_that_is_not_there(self):
        for args, code, word in ((("--api-key", ""), 2, "--api-key is empty"), (("/no/such.gguf",), 1, "/no/such.gguf")):
            server = Serve(*args)
            self.assertEqual((server.stop(), server.port), (code, None))
            self.assertIn(word, server.lines[-1])

    def test_a_port_that_is_taken_and_a_model_that_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = Serve("--port", str(taken.getsockname()[1]))
            self.assertEqual(server.stop(), 2)
            self.assertIn("another program has it", server.lines[-1])
        server = Serve("--host", "no.such.host.invalid")
        self.assertEqual(server.stop(), 2)
        done = subprocess.run([HEARTH, "serve", "/nonexistent.gguf", "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent.gguf", done.stderr)

    def test_a_context_beyond_the_trained_one_is_memory_for_more_conversations(self):
        server = Serve(context=131072)
        self.assertTrue(any("room for 131072 tokens" in line and "trained for 65536" in line for line in server.lines), server.lines)
        props = server.get("/props")[2]
        self.assertEqual((props["context_tokens"], props["kv_tokens"]), (65536, 131072))
        server.stop()
        server = Serve()
        self.assertFalse(any("room for" in line for line in server.lines), server.lines)
        server.stop()

    def test_a_server_for_everyone_without_a_key_warns(self):
        server = Serve("--host", "0.0.0.0")
        self.assertTrue(any("warning" in line and "--api-key" in line for line in server.lines), server.lines)
        self.assertEqual(server.get("/health", headers={"Host": "any.name"})[0], 200)
        server.stop()

    def test_answers_that_run_are_finished_before_it_stops(self):
        server = Serve("--grace", "20")
        idle = server.socket()
        s = server.socket()
        s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True, "ignore_eos": True, "max_tokens": 400}))
        s.recv(100)
        wait_until(lambda: server.active() == 1)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any("Stopping" in line for line in server.lines) or server.process.poll() is not None)
        with self.assertRaises(OSError):
            server.socket()
        self.assertIn(b"[DONE]", receive_all(s))
        self.assertEqual(server.process.wait(20), 0)
        self.assertEqual(server.stop(), 0)
        s.close()
        idle.close()

    def test_what_runs_longer_than_the_grace_is_cut_off(self):
        server = Serve("--grace", "0.3")
        s = server.socket()
        s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True} | ENDLESS))
        wait_until(lambda: server.active() == 1)
        start = time.time()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.time() - start, 10)
        answer = receive_all(s)
        self.assertIn(b'data: {"error":', answer)  # nobody may take it for a whole answer
        self.assertNotIn(b"[DONE]", answer)
        s.close()

    def test_a_second_signal_ends_it_at_once(self):
        server = Serve("--grace", "60")
        s = server.socket()
        s.sendall(request_bytes("/v1/chat/completions", {"messages": HI, "stream": True} | ENDLESS))
        wait_until(lambda: server.active() == 1)
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: any("Stopping" in line for line in server.lines))
        self.assertEqual(server.stop(signal.SIGINT), -signal.SIGINT)
        s.close()

    def test_each_request_has_a_line_in_the_log(self):
        server = Serve()
        server.chat()
        server.get("/noth%1B%0Aing")
        server.stop()
        line = next(l for l in server.lines if "path=/v1/chat/completions" in l)
        for field in ("time=", "id=req_", "method=POST", "status=200", "seconds=", "prompt=", "cached=", "computed=", "generated=16", "ttft=", "tok_s="):
            self.assertIn(field, line)
        self.assertTrue(any(r'path="/noth\u001b\ning" status=404' in l for l in server.lines), server.lines)


if __name__ == "__main__":
    unittest.main()
