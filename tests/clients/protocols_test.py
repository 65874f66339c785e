#!/usr/bin/env python3
"""The protocols of Anthropic, OpenAI Responses and Ollama with scripted answers: protocols_test.py SERVER MODEL"""
import copy
import http.client
import json
import random
import socket
import sys
import time
import unittest
from pathlib import Path

from scripted import PATCH, RULES, Scripted, anthropic_message, call, chat_message, events_of, ollama_objects, openai_response

SERVER, MODEL = sys.argv.pop(1), sys.argv.pop(1)
REQUESTS = Path(__file__).resolve().parent / "requests"


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PARAMETERS = {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}
IMAGE = "iVBORw0KGgo="


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Scripted(SERVER, MODEL, RULES)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def gone_within(self, path, body, seconds=3):
        """Leaves in the middle of a stream; the log says that the server noticed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", path, json.dumps(body))
        connection.getresponse().read1(100)
        before = len(self.server.lines)
        connection.sock and connection.sock.close()
        connection.close()
        end = time.time() + seconds
        while not any("gone=yes" in line for line in self.server.lines[before:]):
            self.assertLess(time.time(), end, self.server.lines[before:])
            time.sleep(0.02)


class Anthropic(Protocol):
    TOOL = {"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}

    def body(self, text="hello", **fields):
        return {"model": "claude-x", "max_tokens": 200, "messages": [{"role": "user", "content": text}]} | fields

    def both(self, *args, **fields):
        """The message, whole and streamed: they are the same but for the id."""
        body = self.body(*args, **fields)
        whole = self.server.json("POST", "/v1/messages?beta=true", body)
        headers, text = self.server.stream("/v1/messages?beta=true", body | {"stream": True})
        streamed = anthropic_message(text)
        strip = lambda m: json.loads(json.dumps(m), object_hook=lambda o: {k: v for k, v in o.items() if k != "id"})
        self.assertEqual(strip(whole), strip(streamed))
        return streamed

    def refusal(self, body, kind="invalid_request_error", status=400):
        answer = self.server.json("POST", "/v1/messages", body, status=status)
        self.assertEqual((answer["type"], answer["error"]["type"]), ("error", kind))
        return answer["error"]["message"]

    def test_text(self):
        message = self.both()
        self.assertEqual(message["content"], [{"type": "text", "text": "One, two, three."}])
        self.assertEqual((message["type"], message["role"], message["stop_reason"], message["stop_sequence"]),
                         ("message", "assistant", "end_turn", None))
        usage = message["usage"]
        count = self.server.json("POST", "/v1/messages/count_tokens?beta=true", self.body())["input_tokens"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"], count)
        self.assertGreater(usage["cache_read_input_tokens"], 0)
        self.assertGreater(usage["output_tokens"], 3)

    def test_ends(self):
        self.assertEqual(self.both(max_tokens=2)["stop_reason"], "max_tokens")
        message = self.both(stop_sequences=["xyz", " three"])
        self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("stop_sequence", " three"))
        self.assertEqual(message["content"][0]["text"], "One, two,")

    def test_tools(self):
        message = self.both("WEATHER", tools=[self.TOOL, {"type": "web_search_20250305", "name": "web_search"}])
        self.assertEqual([b["type"] for b in message["content"]], ["text", "tool_use", "tool_use"])
        self.assertEqual([b["input"] for b in message["content"][1:]], [{"city": "Rome"}, {"city": "Oslo"}])
        self.assertEqual(message["stop_reason"], "tool_use")
        one = self.both("WEATHER", tools=[self.TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
        self.assertEqual([b["type"] for b in one["content"]], ["text", "tool_use"])
        use = message["content"][1]
        for content in ("rain", [{"type": "text", "text": "rain"}], None,
                        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}]):
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": content, "is_error": False}
            turn = [{"role": "user", "content": "WEATHER"}, {"role": "assistant", "content": message["content"]},
                    {"role": "user", "content": [result, {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}}]}]
            self.assertEqual(self.both(messages=turn, tools=[self.TOOL])["content"][0]["text"], "It rains in Rome.")

    def test_a_call_that_is_cut_off(self):
        message = self.server.json("POST", "/v1/messages", self.body("WEATHER", tools=[self.TOOL], max_tokens=20))
        self.assertEqual(message["stop_reason"], "max_tokens")
        self.assertNotIn("tool_use", [b["type"] for b in message["content"]])

    def test_tool_choice(self):
        count = lambda **fields: self.server.json("POST", "/v1/messages/count_tokens", self.body(**fields))["input_tokens"]
        self.assertEqual(count(tools=[self.TOOL], tool_choice={"type": "none"}), count())
        self.assertGreater(count(tools=[self.TOOL], tool_choice={"type": "any"}), count() + 20)
        self.refusal(self.body(tools=[self.TOOL], tool_choice={"type": "tool", "name": "other"}))
        self.refusal(self.body(tools=[self.TOOL], tool_choice={"type": "sometimes"}))

    def test_thinking(self):
        for thinking in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
            message = self.both("PONDER", thinking=thinking, output_config={"effort": "medium"})
            self.assertEqual([b["type"] for b in message["content"]], ["thinking", "text"])
            self.assertIn("I wonder.", message["content"][0]["thinking"])
            self.assertTrue(message["content"][0]["signature"])
        for fields in ({"thinking": {"type": "disabled"}}, {}):
            self.assertEqual([b["type"] for b in self.both("PONDER", **fields)["content"]], ["text"])
        hidden = self.both("PONDER", thinking={"type": "adaptive", "display": "omitted"})
        self.assertEqual(hidden["content"][0]["thinking"], "")
        history = [{"role": "user", "content": "x"},
                   {"role": "assistant", "content": message["content"] + [{"type": "redacted_thinking", "data": "abc"}]},
                   {"role": "user", "content": "and now?"}]
        self.both(messages=history)

    def test_system_messages_everywhere(self):
        billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=1;"}
        system = [billing, {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
        count = lambda **f: self.server.json("POST", "/v1/messages/count_tokens", self.body(**f))["input_tokens"]
        self.assertEqual(count(system=system), count(system="Be brief."))
        for place in range(3):
            messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
            messages.insert(place, {"role": "system", "content": [{"type": "text", "text": "Agents: none."}]})
            self.both(messages=messages, system=system)

    def test_a_final_assistant_message_is_continued(self):
        self.both(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}])

    def test_what_it_does_not_know_is_ignored(self):
        self.both(metadata={"user_id": "u"}, context_management={"edits": []}, betas=["x"], service_tier="auto",
                  mcp_servers=[], speed="fast")

    def test_errors(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
        self.assertIn("image", self.refusal(self.body([image])))
        self.assertIn("messages", self.refusal({"max_tokens": 5}))
        self.assertIn("temperature", self.refusal(self.body(temperature="hot")))
        self.assertRegex(self.refusal(self.body("word " * 70000)), r"^prompt is too long: \d+ tokens > \d+ maximum$")
        answer = self.server.json("GET", "/v1/messages", status=405)
        self.assertEqual(answer["type"], "error")
        for content in (5, [5], [{"type": 5}], [{"type": "text"}], {"a": 1}):
            for role in ("user", "assistant", "system"):
                status = self.server.ask("POST", "/v1/messages", {"max_tokens": 1, "messages": [{"role": role, "content": content}]})[0]
                self.assertIn(status, (200, 400))

    def test_an_answer_that_fails(self):
        self.assertIn("device", self.refusal(self.body("BREAK"), "api_error", 500))
        events = events_of(self.server.stream("/v1/messages", self.body("BREAK", stream=True))[1])
        self.assertEqual((events[-1]["type"], events[-1]["error"]["type"]), ("error", "api_error"))
        self.assertNotIn("message_stop", [e["type"] for e in events])

    def test_a_client_that_leaves(self):
        self.gone_within("/v1/messages", self.body("SLOW", stream=True))


class Responses(Protocol):
    FUNCTION = {"type": "function", "strict": False} | PARAMETERS

    def both(self, input="hello", **fields):
        body = {"model": "x", "input": input, "store": False} | fields
        whole = self.server.json("POST", "/v1/responses", body)
        streamed = openai_response(self.server.stream("/v1/responses", body | {"stream": True})[1])
        drop = ("id", "call_id", "created_at", "stream")
        strip = lambda m: json.loads(json.dumps(m), object_hook=lambda o: {k: v for k, v in o.items() if k not in drop})
        self.assertEqual(strip(whole), strip(streamed))
        return streamed

    def test_text(self):
        response = self.both(instructions="Be brief.", metadata={"a": "b"}, reasoning={"effort": None})
        self.assertEqual((response["object"], response["status"], response["error"]), ("response", "completed", None))
        self.assertEqual([i["type"] for i in response["output"]], ["message"])
        part = response["output"][0]["content"][0]
        self.assertEqual((part["type"], part["text"], part["annotations"]), ("output_text", "One, two, three.", []))
        usage = response["usage"]
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertGreater(usage["input_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(usage["output_tokens_details"]["reasoning_tokens"], 0)
        self.assertEqual((response["instructions"], response["metadata"]), ("Be brief.", {"a": "b"}))
        count = self.server.json("POST", "/v1/responses/input_tokens", {"input": "hello", "instructions": "Be brief."})
        self.assertEqual(count["input_tokens"], usage["input_tokens"])

    def test_too_few_tokens(self):
        response = self.both(max_output_tokens=2)
        self.assertEqual((response["status"], response["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))

    def test_kinds_of_tools(self):
        tools = [self.FUNCTION,
                 {"type": "custom", "name": "apply_patch", "description": "Edits files",
                  "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
                 {"type": "local_shell"}, {"type": "web_search", "external_web_access": False}, {"type": "image_generation"},
                 {"type": "namespace", "name": "mcp__files", "description": "x", "tools": [
                     {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]},
                 {"type": "something_new"}]
        response = self.both("WEATHER", tools=tools)
        self.assertEqual([i["type"] for i in response["output"]], ["message", "function_call", "function_call"])
        function = response["output"][1]
        self.assertEqual((function["name"], json.loads(function["arguments"])), ("get_weather", {"city": "Rome"}))
        one = self.both("WEATHER", tools=tools, parallel_tool_calls=False)
        self.assertEqual([i["type"] for i in one["output"]], ["message", "function_call"])
        patch = self.both("PATCH", tools=tools)["output"][0]
        self.assertEqual((patch["type"], patch["name"], patch["input"]), ("custom_tool_call", "apply_patch", PATCH))
        shell = self.both("SHELL", tools=tools)["output"][0]
        self.assertEqual((shell["type"], shell["action"]["command"]), ("local_shell_call", ["ls", "-l"]))
        spaced = self.both("SPACED", tools=tools)["output"][0]
        self.assertEqual((spaced["type"], spaced["namespace"], spaced["name"]), ("function_call", "mcp__files", "read"))
        # All of it comes back.
        outputs = []
        for item, output in ((function, [{"type": "input_text", "text": "rain"}]), (patch, "ok"), (shell, "{}"), (spaced, {"content": "x"})):
            kind = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
                    "local_shell_call": "local_shell_call_output"}[item["type"]]
            outputs += [item, {"type": kind, "call_id": item["call_id"], "output": output}]
        image = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "data:x"}]}
        again = self.both([{"role": "user", "content": "WEATHER"}] + outputs + [
            {"type": "function_call", "call_id": "c", "name": "view", "arguments": "{}"}, image], tools=tools)
        self.assertEqual(again["output"][0]["content"][0]["text"], "It rains in Rome.")

    def test_tool_choice(self):
        for choice in ("auto", "none", {"type": "allowed_tools", "mode": "auto", "tools": []}, {"type": "web_search"}):
            self.both(tools=[self.FUNCTION], tool_choice=choice)
        self.server.json("POST", "/v1/responses", {"input": "x", "tools": [self.FUNCTION], "tool_choice": "often"}, status=400)

    def test_reasoning(self):
        plain = self.both("PONDER", reasoning={"effort": "high"})
        self.assertEqual([i["type"] for i in plain["output"]], ["reasoning", "message"])
        self.assertIn("I wonder.", plain["output"][0]["content"][0]["text"])
        self.assertGreater(plain["usage"]["output_tokens_details"]["reasoning_tokens"], 0)
        summed = self.both("PONDER", reasoning={"effort": "medium", "summary": "auto"}, include=["reasoning.encrypted_content"])
        item = summed["output"][0]
        self.assertIn("I wonder.", item["summary"][0]["text"])
        self.assertEqual(self.both("PONDER", reasoning={"effort": "none"})["output"][0]["type"], "message")
        turn = lambda item: [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "WEATHER"}]}, item,
                             {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": "{}"},
                             {"type": "function_call_output", "call_id": "c", "output": "rain"}]
        count = lambda item: self.server.json("POST", "/v1/responses/input_tokens", {"input": turn(item), "tools": [self.FUNCTION]})["input_tokens"]
        nothing = count({"type": "reasoning", "id": "r"})
        sealed = {"type": "reasoning", "summary": [], "encrypted_content": item["encrypted_content"]}
        self.assertEqual(count(sealed), count(item))
        self.assertGreater(count(sealed), nothing)
        self.assertEqual(count({"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAA"}), nothing)

    def test_messages_of_all_roles(self):
        text = lambda kind, t: [{"type": kind, "text": t}]
        self.both([{"type": "message", "role": "developer", "content": text("input_text", "rules")},
                   {"role": "user", "content": "a"},
                   {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                    "content": [{"type": "output_text", "text": "b", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
                   {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
                   {"role": "system", "content": "late"}, {"role": "user", "content": text("input_text", "c")}])

    def test_items_come_in_pages(self):
        asked = [{"role": "user", "content": str(i)} for i in range(45)]
        asked[7]["id"] = "msg_seven"
        path = "/v1/responses/" + self.server.json("POST", "/v1/responses", {"input": asked})["id"] + "/input_items"
        seen, after = [], ""
        for count, more in ((20, True), (20, True), (5, False)):
            page = self.server.json("GET", path + after)
            self.assertEqual((page["object"], len(page["data"]), page["has_more"]), ("list", count, more))
            self.assertEqual((page["first_id"], page["last_id"]), (page["data"][0]["id"], page["data"][-1]["id"]))
            seen += page["data"]
            after = "?after=" + page["last_id"]
        self.assertEqual([i["content"] for i in seen], [str(i) for i in reversed(range(45))])
        self.assertEqual({i["type"] for i in seen}, {"message"})
        self.assertEqual(len({i["id"] for i in seen}), 45)
        page = self.server.json("GET", path + "?order=asc&limit=2&after=msg_seven")
        self.assertEqual([i["content"] for i in page["data"]], ["8", "9"])
        self.assertEqual(self.server.json("GET", path + "?limit=100&after=" + seen[-1]["id"])["data"], [])
        for query in ("limit=0", "limit=101", "limit=x", "limit=-1", "limit=1x", "order=up", "after=nothing"):
            self.server.json("GET", path + "?" + query, status=400)

    def test_what_was_stored_goes_on(self):
        first = self.server.json("POST", "/v1/responses", {"input": "hello", "model": "x"})
        path = "/v1/responses/" + first["id"]
        self.assertEqual(self.server.json("GET", path), first)
        self.assertEqual(self.server.json("GET", path + "/input_items")["data"][0]["content"][0]["text"], "hello")
        second = openai_response(self.server.stream("/v1/responses", {"input": "and?", "previous_response_id": first["id"], "stream": True})[1])
        self.assertEqual(second["previous_response_id"], first["id"])
        whole = self.server.json("POST", "/v1/responses/input_tokens", {"input": [
            {"role": "user", "content": "hello"}, {"type": "item_reference", "id": first["output"][0]["id"]}, {"role": "user", "content": "and?"}]})
        self.assertEqual(second["usage"]["input_tokens"], whole["input_tokens"])
        self.assertTrue(self.server.json("DELETE", path)["deleted"])
        for method in ("GET", "DELETE"):
            self.assertIn("error", self.server.json(method, path, status=404))
        self.server.json("POST", "/v1/responses", {"input": "x", "previous_response_id": first["id"]}, status=400)
        kept = self.server.json("POST", "/v1/responses", {"input": "hello", "store": False})
        self.server.json("GET", "/v1/responses/" + kept["id"], status=404)

    def test_errors(self):
        refusal = lambda body: self.server.json("POST", "/v1/responses", body, status=400)["error"]["message"]
        self.assertIn("input_image", refusal({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}))
        self.assertIn("input", refusal({"model": "x"}))
        self.assertIn("background", refusal({"input": "x", "background": True}))
        long = {"input": "word " * 70000}
        self.assertIn("maximum context length", refusal(long))
        failed = openai_response(self.server.stream("/v1/responses", long | {"stream": True})[1])
        self.assertEqual((failed["status"], failed["error"]["code"]), ("failed", "context_length_exceeded"))
        for item in (5, {}, {"type": 5}, {"role": "user"}, {"role": "user", "content": [5]}, {"type": "function_call"},
                     {"type": "reasoning", "summary": [5], "content": 5}, {"type": "function_call_output"}, {"type": "item_reference", "id": "x"}):
            self.assertIn(self.server.ask("POST", "/v1/responses", {"input": [item]})[0], (200, 400), item)

    def test_an_answer_that_fails(self):
        self.server.json("POST", "/v1/responses", {"input": "BREAK"}, status=500)
        events = events_of(self.server.stream("/v1/responses", {"input": "BREAK", "stream": True})[1])
        self.assertEqual((events[-1]["type"], events[-1]["response"]["error"]),
                         ("response.failed", {"code": "server_error", "message": "the device is gone"}))

    def test_a_client_that_leaves(self):
        self.gone_within("/v1/responses", {"input": "SLOW", "stream": True})


class Ollama(Protocol):
    TOOL = {"type": "function", "function": PARAMETERS}

    def chat(self, text="hello", **fields):
        """The whole answer and the objects of its stream."""
        body = {"model": "scripted:latest", "messages": [{"role": "user", "content": text}]} | fields
        whole = self.server.json("POST", "/api/chat", body | {"stream": False})
        headers, text = self.server.stream("/api/chat", body)
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        objects = ollama_objects(text)
        for field in ("content", "thinking"):
            self.assertEqual("".join(o["message"].get(field, "") for o in objects), whole["message"].get(field, ""))
        self.assertEqual(objects[-1]["done_reason"], whole["done_reason"])
        return whole, objects

    def test_chat(self):
        whole, objects = self.chat()
        self.assertEqual(whole["message"], {"role": "assistant", "content": "One, two, three."})
        self.assertEqual((whole["model"], whole["done"], whole["done_reason"]), ("scripted:latest", True, "stop"))
        self.assertRegex(whole["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
        for name in ("total_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count"):
            self.assertGreater(objects[-1][name], 0, name)
        for last in (whole, objects[-1]):
            self.assertEqual(last["prompt_cached_count"] + last["prompt_computed_count"], last["prompt_eval_count"])
            self.assertEqual(last["prompt_cached_count"], last["prompt_eval_count"] // 2)
        self.assertEqual(self.chat(options={"num_predict": 2, "num_ctx": 4096, "num_gpu": 1, "seed": 3, "top_k": 5, "min_p": 0.1})[0]["done_reason"], "length")
        self.assertEqual(self.chat(options={"num_predict": -1, "stop": [", three"]})[0]["message"]["content"], "One, two")
        self.assertEqual(self.server.json("POST", "/api/chat", {"model": "m", "messages": []})["done_reason"], "load")

    def test_tools(self):
        whole, objects = self.chat("WEATHER", tools=[self.TOOL])
        calls = whole["message"]["tool_calls"]
        self.assertEqual([c["function"]["arguments"] for c in calls], [{"city": "Rome"}, {"city": "Oslo"}])
        streamed = [c for o in objects for c in o["message"].get("tool_calls", [])]
        self.assertEqual([c["function"] for c in streamed], [c["function"] for c in calls])
        turn = [{"role": "user", "content": "WEATHER"}, whole["message"], {"role": "tool", "tool_name": "get_weather", "content": "rain"}]
        self.assertEqual(self.chat(messages=turn, tools=[self.TOOL])[0]["message"]["content"], "It rains in Rome.")

    def test_thinking(self):
        for think in (True, "high"):
            self.assertIn("I wonder.", self.chat("PONDER", think=think)[0]["message"]["thinking"])
        self.assertNotIn("thinking", self.chat("PONDER", think=False)[0]["message"])

    def test_generate(self):
        body = {"model": "m", "prompt": "hello", "system": "Be brief.", "keep_alive": "5m"}
        whole = self.server.json("POST", "/api/generate", body | {"stream": False})
        objects = ollama_objects(self.server.stream("/api/generate", body)[1])
        self.assertEqual(whole["response"], "One, two, three.")
        self.assertEqual("".join(o["response"] for o in objects), whole["response"])
        self.assertEqual(objects[-1]["context"], whole["context"])
        again = self.server.json("POST", "/api/generate", {"prompt": "WEATHER", "context": whole["context"], "stream": False})
        self.assertGreater(again["prompt_eval_count"], len(whole["context"]))
        raw = self.server.json("POST", "/api/generate", {"prompt": "Once", "raw": True, "stream": False})
        self.assertNotIn("context", raw)
        self.assertLess(raw["prompt_eval_count"], 5)
        self.assertEqual(self.server.json("POST", "/api/generate", {"model": "m"})["done_reason"], "load")
        self.assertIn("suffix", self.server.json("POST", "/api/generate", {"prompt": "a", "suffix": "b"}, status=400)["error"])  # no tokens for it
        for field, value in (("images", [IMAGE]), ("template", "x"), ("context", [-1]), ("format", 5), ("think", 5)):
            self.assertIn(field, self.server.json("POST", "/api/generate", {"prompt": "a", field: value}, status=400)["error"])

    def test_the_model(self):
        tags = self.server.json("GET", "/api/tags")["models"]
        self.assertEqual((tags[0]["name"], tags[0]["details"]["family"]), ("scripted", "qwen3"))
        self.assertEqual(tags[0]["size"], Path(MODEL).stat().st_size)
        self.assertEqual(self.server.json("GET", "/api/ps")["models"][0]["context_length"], 65536)
        shown = self.server.json("POST", "/api/show", {"model": "x"})
        self.assertEqual(shown["model_info"]["qwen3.context_length"], 65536)
        self.assertEqual(shown["capabilities"], ["completion", "tools", "thinking"])
        self.assertRegex(self.server.json("GET", "/api/version")["version"], r"^\d+\.\d+\.\d+$")

    def test_errors(self):
        message = {"role": "user", "content": "a", "images": [IMAGE]}
        self.assertIn("images", self.server.json("POST", "/api/chat", {"messages": [message]}, status=400)["error"])
        self.assertIn("models that it was started with", self.server.json("POST", "/api/pull", {"model": "x"}, status=501)["error"])

    def test_embeddings(self):
        near = lambda a, b: self.assertLess(max(abs(x - y) for x, y in zip(a, b, strict=True)), 2e-3)
        embed = lambda input, **fields: self.server.json("POST", "/api/embed", {"model": "m", "input": input} | fields)
        both = embed(["One fox.", "Two bears."])
        self.assertEqual((both["model"], both["load_duration"], len(both["embeddings"])), ("m", 0, 2))
        self.assertGreater(both["total_duration"], 0)
        one = embed("Two bears.")
        near(one["embeddings"][0], both["embeddings"][1])
        self.assertGreater(both["prompt_eval_count"], one["prompt_eval_count"])
        near(self.server.json("POST", "/api/embeddings", {"model": "m", "prompt": "Two bears."})["embedding"], one["embeddings"][0])
        short = embed("Two bears.", dimensions=3)["embeddings"][0]
        self.assertAlmostEqual(sum(x * x for x in short), 1, places=5)
        self.assertAlmostEqual(short[0] / short[2], one["embeddings"][0][0] / one["embeddings"][0][2], places=2)
        # Nothing to embed only loads the model.
        self.assertEqual((embed([])["embeddings"], embed("")["embeddings"]), ([], []))
        self.assertEqual(self.server.json("POST", "/api/embeddings", {"prompt": ""})["embedding"], [])
        self.assertEqual(self.server.json("POST", "/api/show", {"model": "x"})["model_info"]["qwen3.embedding_length"], len(one["embeddings"][0]))

    def test_embeddings_that_cannot_be(self):
        for body in ({"input": ["a", ""]}, {"input": [1]}, {"input": 1}, {"input": "a", "dimensions": 10**6}, {"input": "a", "truncate": "no"}):
            self.assertIn(next(reversed(body)), self.server.json("POST", "/api/embed", body, status=400)["error"])
        self.assertIn("prompt", self.server.json("POST", "/api/embeddings", {"prompt": ["a", "b"]}, status=400)["error"])

    def test_an_answer_that_fails(self):
        self.assertEqual(self.server.json("POST", "/api/generate", {"prompt": "BREAK", "stream": False}, status=500)["error"], "the device is gone")
        self.assertEqual(json.loads(self.server.stream("/api/generate", {"prompt": "BREAK"})[1].splitlines()[-1]), {"error": "the device is gone"})

    def test_a_client_that_leaves(self):
        self.gone_within("/api/generate", {"prompt": "SLOW"})


class Keepalive(unittest.TestCase):
    """What the model writes does not reach the client for seconds: a stream is never silent for longer than it may be."""
    WORDS = "one two three four five six seven eight nine ten " * 6
    RULES = [{"has": ["CALLS"], "say": call("get_weather", city="Rome") + "\n" + call("get_weather", city=WORDS), "token_ms": 40},
             {"has": ["CALL"], "say": call("get_weather", city=WORDS), "token_ms": 40},
             {"has": ["SHELL"], "say": call("local_shell", command=["echo", WORDS]), "token_ms": 40},
             {"has": ["PONDER"], "say": WORDS + "\n</think>\n\nYes.", "token_ms": 40}]

    @classmethod
    def setUpClass(cls):
        cls.server = Scripted(SERVER, MODEL, cls.RULES, "0.2")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def stream(self, path, body):
        """The text of a stream, in which something came at least every second and a half."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", path, json.dumps(body | {"stream": True}))
        response = connection.getresponse()
        start = last = time.time()
        text, gap = b"", 0
        while piece := response.read1(65536):
            gap, last = max(gap, time.time() - last), time.time()
            text += piece
        connection.close()
        self.assertGreater(last - start, 2)
        self.assertLess(gap, 1.5)
        return text.decode()

    def said(self, text):
        return [{"role": "user", "content": text}]

    def test_openai_chat(self):
        tools = [{"type": "function", "function": PARAMETERS}]
        message = chat_message(self.stream("/v1/chat/completions", {"messages": self.said("CALLS"), "tools": tools, "parallel_tool_calls": False}))
        self.assertEqual([json.loads(c["arguments"]) for c in message["tool_calls"]], [{"city": "Rome"}])
        message = chat_message(self.stream("/v1/chat/completions", {"messages": self.said("CALL"), "tools": tools}))
        self.assertEqual([json.loads(c["arguments"]) for c in message["tool_calls"]], [{"city": self.WORDS}])

    def test_anthropic(self):
        text = self.stream("/v1/messages", {"messages": self.said("PONDER"), "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1500, "display": "omitted"}})
        self.assertEqual(anthropic_message(text)["content"][-1]["text"], "Yes.")
        self.assertGreater(text.count("event: ping"), 4)
        tool = {"name": "get_weather", "description": "x", "input_schema": SCHEMA}
        for choice in ({}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}):
            text = self.stream("/v1/messages", {"messages": self.said("CALLS"), "max_tokens": 2000, "tools": [tool]} | choice)
            self.assertEqual(anthropic_message(text)["content"][0]["input"], {"city": "Rome"})

    def test_openai_responses(self):
        text = self.stream("/v1/responses", {"input": "SHELL", "tools": [{"type": "local_shell"}]})
        self.assertEqual(openai_response(text)["output"][-1]["action"]["command"], ["echo", self.WORDS])
        self.assertGreater(text.count("event: response.in_progress"), 5)
        tool = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
        text = self.stream("/v1/responses", {"input": "CALLS", "tools": [tool], "parallel_tool_calls": False})
        self.assertEqual(json.loads(openai_response(text)["output"][-1]["arguments"]), {"city": "Rome"})

    def test_ollama(self):
        objects = ollama_objects(self.stream("/api/chat", {"messages": self.said("CALL"), "tools": [{"type": "function", "function": PARAMETERS}]}))
        self.assertEqual([c["function"]["arguments"] for o in objects for c in o["message"].get("tool_calls", [])], [{"city": self.WORDS}])
        self.assertGreater(len(objects), 6)
        objects = ollama_objects(self.stream("/api/generate", {"prompt": "PONDER", "think": True}))
        self.assertEqual("".join(o["response"] for o in objects), "Yes.")


class All(Protocol):
    """What holds in every protocol."""
    CHAT = "/v1/chat/completions"
    TOOLS = {CHAT: {"type": "function", "function": PARAMETERS}, "/v1/responses": {"type": "function"} | PARAMETERS,
             "/v1/messages": {"name": "get_weather", "input_schema": SCHEMA}, "/api/chat": {"type": "function", "function": PARAMETERS}}

    def body(self, path, text, **fields):
        asked = {"input": text} if path == "/v1/responses" else {"prompt": text} if path == "/api/generate" else {"messages": [{"role": "user", "content": text}]}
        return asked | ({"max_tokens": 200} if path == "/v1/messages" else {}) | ({"stream": False} if path.startswith("/api/") else {}) | fields

    def test_a_call_before_the_end_of_a_thought(self):
        thinks = {self.CHAT: {"reasoning_effort": "high"}, "/v1/responses": {"reasoning": {"effort": "high"}},
                  "/v1/messages": {"thinking": {"type": "adaptive"}}, "/api/chat": {"think": True}}
        read = {self.CHAT: chat_message, "/v1/responses": openai_response, "/v1/messages": anthropic_message, "/api/chat": ollama_objects}
        for path, tool in self.TOOLS.items():
            body = self.body(path, "MUSE", tools=[tool], **thinks[path])
            whole = self.server.json("POST", path, body)
            streamed = read[path](self.server.stream(path, body | {"stream": True})[1])
            for answer in (whole, streamed):
                text = json.dumps(answer)
                self.assertIn(" look", text, path)
                self.assertNotIn("<tool_call>", text, path)
            if path == self.CHAT:
                self.assertEqual((whole["choices"][0]["finish_reason"], streamed["finish_reason"]), ("tool_calls", "tool_calls"))
                for calls in ([c["function"] for c in whole["choices"][0]["message"]["tool_calls"]], streamed["tool_calls"]):
                    self.assertEqual([(c["name"], json.loads(c["arguments"])) for c in calls], [("get_weather", {"city": "Rome"})])
            elif path == "/v1/messages":
                for message in (whole, streamed):
                    self.assertEqual(([b["type"] for b in message["content"]], message["stop_reason"]), (["thinking", "tool_use"], "tool_use"))
            elif path == "/v1/responses":
                for response in (whole, streamed):
                    self.assertEqual([i["type"] for i in response["output"]], ["reasoning", "function_call"])
            else:
                for calls in (whole["message"]["tool_calls"], [c for o in streamed for c in o["message"].get("tool_calls", [])]):
                    self.assertEqual([c["function"]["arguments"] for c in calls], [{"city": "Rome"}])

    def test_strict(self):
        odd = {"type": "object", "properties": {"city": {"type": "string", "pattern": r"(?<=x)(a\1"}}, "required": ["city"]}
        for path, tool in self.TOOLS.items():
            for strict, status in ((True, 400), (False, 200), (None, 200)):
                changed = json.loads(json.dumps(tool))
                function = changed.get("function", changed)
                function |= {"input_schema" if path == "/v1/messages" else "parameters": odd, "strict": strict}
                self.assertEqual(self.server.ask("POST", path, self.body(path, "x", tools=[changed]))[0], status, (path, strict))

    def test_what_it_does_not_have_is_refused(self):
        for path in (*self.TOOLS, "/v1/messages/count_tokens", "/v1/completions", "/api/generate"):
            for field, value in (("lora", [{"id": 0, "scale": 1}]), ("audio", {"voice": "x"}), ("modalities", ["audio"])):
                prompt = {"prompt": "x"} if path == "/v1/completions" else {}
                status, _, text = self.server.ask("POST", path, self.body(path, "x", **prompt) | {field: value})
                self.assertEqual((status, field in text), (400, True), (path, text))

    def test_images_that_a_tool_gave_are_named(self):
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}}
        call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
        turn = [{"role": "user", "content": "WEATHER"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        parts = [{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "look"}, picture]}]
        prompt = self.server.json("POST", "/apply-template", {"messages": turn + parts})["prompt"]
        self.assertIn("look\n[image_url: this server takes text only]", prompt)
        self.server.json("POST", self.CHAT, {"messages": turn + parts})
        self.server.json("POST", self.CHAT, {"messages": [{"role": "user", "content": [picture]}]}, status=400)
        call["function"]["arguments"] = {}
        self.server.json("POST", "/api/chat", {"messages": turn + [{"role": "tool", "content": "look", "images": [IMAGE]}], "stream": False})
        self.server.json("POST", "/v1/responses", {"input": [{"role": "assistant", "content": [{"type": "input_image", "image_url": "x"}]}, {"role": "user", "content": "x"}]})

    def test_forms_of_tool_choice(self):
        custom = {"type": "custom", "name": "apply_patch"}
        space = {"type": "namespace", "name": "mcp__files", "tools": [{"type": "function", "name": "read"}, {"type": "function", "name": "same"}]}
        other = {"type": "namespace", "name": "mcp__web", "tools": [{"type": "function", "name": "same"}]}
        named = lambda name, kind="function": {"type": kind, "name": name}
        allowed = lambda mode, *tools: {"type": "allowed_tools", "mode": mode, "tools": list(tools)}
        tools = [self.TOOLS["/v1/responses"], custom, space, other, {"type": "local_shell"}]
        for choice, status in ((named("get_weather"), 200), (named("apply_patch", "custom"), 200), (named("read"), 200), (named("mcp__files__read"), 200),
                               (named("same"), 400), (named("same") | {"namespace": "mcp__web"}, 200), (named("none"), 400), ({"type": "local_shell"}, 200),
                               ("required", 200), ({"type": "any"}, 200), ({"type": "required"}, 200), ({"type": "web_search"}, 200),
                               (allowed("auto", named("read"), {"type": "web_search"}), 200), (allowed("required", named("read")), 200),
                               (allowed("required", {"type": "web_search"}), 400), (allowed("auto", {"type": "web_search"}), 200),
                               (allowed("auto", named("nothing")), 400), (allowed("often", named("read")), 400), (5, 400), ({"type": "function"}, 400)):
            self.assertEqual(self.server.ask("POST", "/v1/responses", {"input": "x", "tools": tools, "tool_choice": choice})[0], status, choice)
        tools = [self.TOOLS[self.CHAT]]
        inner = lambda choice: {"type": "allowed_tools", "allowed_tools": choice}
        weather = {"type": "function", "function": {"name": "get_weather"}}
        for choice, status in ((weather, 200), (named("get_weather"), 200), ({"type": "custom", "custom": {"name": "get_weather"}}, 200), ({"type": "any"}, 200),
                               ({"type": "required"}, 200), ({"type": "auto"}, 200), ("any", 200), (inner({"mode": "required", "tools": [weather]}), 200),
                               (allowed("auto", weather), 200), (inner({"mode": "required", "tools": [named("other")]}), 400), (inner(5), 400), ({"type": "web_search"}, 400)):
            self.assertEqual(self.server.ask("POST", self.CHAT, {"messages": [{"role": "user", "content": "x"}], "tools": tools, "tool_choice": choice})[0], status, choice)
        self.assertIn("custom", self.server.json("POST", self.CHAT, self.body(self.CHAT, "x", tools=[{"type": "custom", "custom": {"name": "p"}}]), status=400)["error"]["message"])

    def test_functions_as_they_were_before_tools(self):
        body = self.body(self.CHAT, "WEATHER", functions=[PARAMETERS])
        choice = self.server.json("POST", self.CHAT, body)["choices"][0]
        made = choice["message"]["function_call"]
        self.assertEqual((choice["finish_reason"], made["name"], json.loads(made["arguments"])), ("function_call", "get_weather", {"city": "Rome"}))
        self.assertNotIn("tool_calls", choice["message"])
        chunks = [json.loads(block.removeprefix("data: "))["choices"][0] for block in self.server.stream(self.CHAT, body | {"stream": True})[1].split("\n\n")[:-2]]
        pieces = [c["delta"]["function_call"] for c in chunks if "function_call" in c["delta"]]
        self.assertEqual((pieces[0]["name"], "".join(p["arguments"] for p in pieces), chunks[-1]["finish_reason"]), ("get_weather", made["arguments"], "function_call"))
        body["messages"] += [choice["message"], {"role": "function", "name": "get_weather", "content": "rain"}]
        self.assertEqual(self.server.json("POST", self.CHAT, body)["choices"][0]["message"]["content"], "It rains in Rome.")
        for choice, status in (("auto", 200), ("none", 200), ({"name": "get_weather"}, 200), ({"name": "other"}, 400)):
            self.server.json("POST", self.CHAT, body | {"function_call": choice}, status=status)
        modern = [{"role": "user", "content": "WEATHER"},
                  {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": made}]},
                  {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": "rain"}]
        prompt = lambda **fields: self.server.json("POST", "/apply-template", fields)["prompt"]
        older = [modern[0], {"role": "assistant", "content": None, "function_call": made}, body["messages"][2]]
        self.assertEqual(prompt(messages=older, functions=[PARAMETERS]), prompt(messages=modern, tools=[self.TOOLS[self.CHAT]]))

    def test_a_failed_response_ends_its_stream(self):
        for input in ("BREAK", "word " * 70000):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
                body = json.dumps({"input": input, "stream": True}).encode()
                s.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                data = b""
                while piece := s.recv(65536):
                    data += piece
            self.assertIn(b"event: response.failed\n", data)
            last = data[data.rindex(b"event: "):]
            self.assertTrue(last.startswith(b"event: response.failed\n") and last.endswith(b"\r\n0\r\n\r\n"), last[-200:])


# Values that no field expects.
ODD = [None, True, -1, 2**63, 1e300, 0.5, "", "x", "\ud83d", [], [[]], [None], {}, {"type": None}, {"type": "text"}, {"type": "image"}]


def places(value):
    """Every place in a body, as (container, key)."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


class Recorded(Protocol):
    """What clients sent once."""

    def recorded(self):
        files = sorted(REQUESTS.glob("*.json"))
        self.assertGreaterEqual(len(files), 3)
        return [(file.name, request) for file in files for request in json.loads(file.read_text())]

    def test_nothing_in_a_body_breaks_the_server(self):
        """One to three values of real bodies are replaced by what nobody expects."""
        chosen = random.Random(1)
        bodies = [(r["path"], r["body"]) for name, r in self.recorded() if r["body"]]
        tool = {"type": "function", "function": PARAMETERS}
        called = {"role": "assistant", "content": "a", "thinking": "b", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}
        bodies += 4 * [
            ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "a", "images": []}, called, {"role": "tool", "content": "c"}],
                           "tools": [tool], "format": "", "options": {"num_predict": 5, "stop": ["x"]}, "think": True}),
            ("/api/generate", {"prompt": "a", "system": "b", "context": [5, 6], "raw": False, "options": {"seed": 1}, "suffix": ""})]
        for _ in range(150):
            path, body = chosen.choice(bodies)
            body = json.loads(json.dumps(body))
            for _ in range(chosen.randint(1, 3)):
                container, key = chosen.choice(list(places(body)))
                container[key] = copy.deepcopy(chosen.choice(ODD))
            status, _, text = self.server.ask("POST", path, body)
            self.assertIn(status, (200, 400), (path, text, json.dumps(body)[:3000]))

    def test_all(self):
        for name, request in self.recorded():
            with self.subTest(name, path=request["path"]):
                status, headers, text = self.server.ask(request["method"], request["path"], request["body"], request["headers"])
                self.assertEqual(status, 200, text)
                if request["method"] != "POST":
                    continue
                path = request["path"].split("?")[0]
                stream = request["body"].get("stream", path in ("/api/chat", "/api/generate"))
                if stream:
                    {"/v1/messages": anthropic_message, "/v1/responses": openai_response, "/v1/chat/completions": chat_message,
                     "/api/chat": ollama_objects, "/api/generate": ollama_objects,
                     "/v1/completions": lambda t: t.index("[DONE]")}[path](text)
                else:
                    json.loads(text)


if __name__ == "__main__":
    unittest.main()
