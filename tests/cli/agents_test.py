#!/usr/bin/env python3
"""The commands that talk to servers, against one that says what the test wants: agents_test.py PATH/TO/hearth."""
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mock_server import MockServer, anthropic_events, openai_chunks  # noqa: E402

HEARTH = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
ROOT = Path(__file__).resolve().parent.parent.parent


def hearth(*args, env=None, stdin=""):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEARTH_", "XDG_", "CODEX_", "OPENCLAW_"))}
    return subprocess.run([HEARTH, *args], input=stdin, env=clean | {"XDG_CONFIG_HOME": "/nonexistent"} | (env or {}),
                          capture_output=True, text=True, timeout=120)


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def user(text):
    return {"op": "append", "message": {"role": "user", "content": text}}


def line(session="a", edits=None, **fields):
    return {"session": session, "max_tokens": 8, "edits": [user("hi")] if edits is None else edits, **fields}


def say(text, **fields):
    return {"role": "assistant", "content": text, **fields}


class BenchAgent(unittest.TestCase):
    def bench(self, server, lines, *args):
        trace = lines if isinstance(lines, str) else "".join(json.dumps(l) + "\n" for l in lines)
        url = server if isinstance(server, str) else server.url
        return hearth("bench", "agent", "-", "--url", url, "--time-scale", "0", *args, stdin=trace)

    def check_fails(self, done, *words, code=1):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_histories_are_edited_and_answers_forced(self):
        tools = [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}]
        call = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}]
        result = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
        lines = [
            line(edits=[{"op": "system", "text": "S1"}, user("one")], tools=tools, answer=say("forced", reasoning_content="r", tool_calls=call)),
            line(edits=[{"op": "append", "message": result}], answer=say("end")),
            line(edits=[{"op": "replace", "index": 1, "message": say("bare", tool_calls=call)}, {"op": "replace", "index": -2, "message": {**result, "content": "[old]"}}, user("two")]),
            line(edits=[{"op": "drop", "index": 0, "count": 4}, {"op": "system", "text": "S2"}], extra={"top_k": 1}),
        ]
        with MockServer() as server:
            done = self.bench(server, lines)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            bodies = [body for _, _, body in server.requests]
        self.assertEqual({path for path, _, _ in server.requests}, {"/v1/chat/completions"})
        self.assertEqual(bodies[0]["messages"], [{"role": "system", "content": "S1"}, {"role": "user", "content": "one"}])
        self.assertEqual(bodies[1]["messages"][2:], [lines[0]["answer"], result])
        self.assertEqual([m["content"] for m in bodies[2]["messages"]], ["S1", "one", "bare", "[old]", "end", "two"])
        self.assertNotIn("reasoning_content", bodies[2]["messages"][2])
        self.assertEqual([m["content"] for m in bodies[3]["messages"]], ["S2", "two"])
        self.assertTrue(all(body["tools"] == tools and body["stream"] and body["model"] == "mock" for body in bodies))
        self.assertEqual((bodies[3]["top_k"], bodies[0].get("top_k"), bodies[0]["max_tokens"]), (1, None, 8))

        with MockServer(answer=lambda handler, body, number: handler.stream(anthropic_events())) as server:
            done = self.bench(server, lines, "--api", "anthropic", "--json", "--api-key", "secret")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            path, headers, body = server.requests[1]
        self.assertEqual(path, "/v1/messages")
        self.assertEqual((headers["x-api-key"], headers["Authorization"]), ("secret", "Bearer secret"))
        self.assertEqual(body["system"][0]["text"], "S1")
        self.assertEqual(body["tools"], [{"name": "look", "description": "d", "input_schema": {"type": "object"}}])
        self.assertEqual([m["role"] for m in body["messages"]], ["user", "assistant", "user"])
        self.assertEqual(body["messages"][1]["content"], [
            {"type": "thinking", "thinking": "r", "signature": ""}, {"type": "text", "text": "forced"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}])
        self.assertEqual(body["messages"][2]["content"], [{"type": "tool_result", "tool_use_id": "c1", "content": "seen"}])
        tokens = json.loads(done.stdout)["tokens"]
        self.assertEqual(tokens, {"prompt": 400, "cached": 240, "computed": 160, "generated": 8})

    def test_figures(self):
        def slow(handler, body, number):
            handler.stream(openai_chunks("a b c d e"), size=120, pause=0.1)

        with MockServer(answer=slow) as server:
            done = self.bench(server, [line(answer=say("x")), line(edits=[])], "--json")
            table = self.bench(server, [line()])
        report = json.loads(done.stdout)
        self.assertEqual((report["requests"], report["errors"], report["tokens"]["cached"]), (2, 0, 120))
        ttft = report["ttft_seconds"]
        self.assertTrue(0 < ttft["mean"] <= ttft["p95"] <= ttft["max"] < report["seconds"])
        self.assertTrue(0 < report["decode_tokens_per_second"]["p5"] <= report["decode_tokens_per_second"]["mean"] < 100)
        self.assertTrue(0.05 < report["worst_gap_seconds"] < 30)
        self.assertEqual([(r["line"], r["session"], r["generated_tokens"]) for r in report["results"]], [(1, "a", 5), (2, "a", 5)])
        for word in ("time to first token", "decode, tok/s", "worst gap", "cached", "60 (60.0 %)", "errors"):
            self.assertIn(word, table.stdout)

    def test_sessions_wait_for_each_other_and_scale(self):
        lines = [line("main", answer=say("x")), line("sub", wait_for=["main"]), line("other", [user("o")], at=0),
                 line("main", [user("after")], wait_for=["sub"])]
        with MockServer() as server:
            done = self.bench(server, lines, "--concurrency-scale", "3", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            texts = [body["messages"] for _, _, body in server.requests]
        report = json.loads(done.stdout)
        self.assertEqual((len(texts), report["requests"]), (12, 12))
        self.assertEqual(len({m[0]["content"] for m in texts}), 6)  # the copies do not share what users say
        for copy in ("", " (copy 1)", " (copy 2)"):
            order = [(r["session"], r["line"]) for r in report["results"] if r["session"] in ("main" + copy, "sub" + copy)]
            self.assertEqual(order, [("main" + copy, 1), ("sub" + copy, 2), ("main" + copy, 4)])

    def test_streams_cut_anywhere_into_pieces(self):
        for api, text in (("openai", openai_chunks()), ("anthropic", anthropic_events())):
            for ends in ("\n", "\r\n"):
                body = ": comment\n\n" + text
                with MockServer(answer=lambda handler, _, number: handler.stream(body.replace("\n", ends), size=number + 1)) as server:
                    done = self.bench(server, [line(edits=[user("x")]) for _ in range(9)], "--api", api, "--json")
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(json.loads(done.stdout)["tokens"]["generated"], 18)

    def test_what_goes_wrong_is_counted_and_said(self):
        def each(answers):
            return lambda handler, body, number: answers[number](handler)

        good = lambda handler: handler.stream(openai_chunks())
        for bad, word in (
            (lambda h: h.reply(500, {"error": {"message": "the roof is on fire"}}), "status 500: the roof is on fire"),
            (lambda h: h.reply(503, b"<html>busy</html>", "text/html"), "status 503: <html>busy"),
            (lambda h: h.stream(openai_chunks(), cut=200), "broke off"),
            (lambda h: h.stream(openai_chunks(finish=False)), "the stream ended before the answer did"),
            (lambda h: h.stream("data: {\"choices\": [}\n\n"), "not a JSON object"),
            (lambda h: h.stream("data: [1]\n\n"), "not a JSON object"),
            (lambda h: h.stream('data: {"error": {"message": "out of luck"}}\n\n'), "out of luck"),
            (lambda h: h.stream('data: {"choices": 7, "usage": []}\n\ndata: [DONE]\n\n'), "choices that are no list: 7"),
            (lambda h: h.reply(200, b"hello", "text/plain"), "the stream ended before the answer did"),
            (lambda h: h.stream("data: " + "x" * (17 << 20)), "an event of the stream has more than"),
            (lambda h: h.wfile.write(b"HTTP/1.1 banana\r\n\r\n"), "broke off"),
            (lambda h: h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n"), "broke off"),
        ):
            with MockServer(answer=each([good, bad, good])) as server:
                done = self.bench(server, [line(edits=[user(c)]) for c in "abc"], "--json", "--timeout", "20")
            self.check_fails(done, "1 of 3 requests failed", "line 2", word)
            report = json.loads(done.stdout)
            self.assertEqual((report["errors"], report["tokens"]["generated"]), (1, 4))
            self.assertIn(word, report["results"][1]["error"])

    def test_an_answer_without_tokens_is_no_error(self):
        with MockServer(answer=lambda handler, body, number: handler.stream(openai_chunks("" if number else "a b"))) as server:
            done = self.bench(server, [line(edits=[user(c)]) for c in "ab"], "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual((report["empty_answers"], report["results"][1]["ttft_seconds"]), (1, None))
        self.assertEqual(report["ttft_seconds"]["mean"], report["results"][0]["ttft_seconds"])

    def test_what_is_computed_again_is_found(self):
        ids = {"a": list(range(100)), "b": [*range(100), 7, 8, 9, *range(50)], "c": [5, *range(99)]}

        def answer(cached):
            def reply(handler, body, number):
                self.assertEqual(body["return_token_ids"], True)
                prompt = ids[body["messages"][-1]["content"]]
                events = [{"choices": [{"delta": {"content": "x"}}], "prompt_token_ids": prompt},
                          {"choices": [{"delta": {}, "finish_reason": "stop", "token_ids": [7, 8, 9]}]},
                          {"choices": [], "usage": {"prompt_tokens": len(prompt), "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": cached[number]}}}]
                handler.stream("".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n")
            return reply

        lines = [line(edits=[user(c)]) for c in "abc"]
        # b begins with a and what was answered to it but its last token, which nobody processed: 102 tokens are known.
        for cached, again in ((0, 96, 0), 0), ((0, 86, 0), 0), ((0, 85, 0), 1), ((0, 0, 0), 86):
            with MockServer(answer=answer(cached)) as server:
                done = self.bench(server, lines, "--check-cache", "--json")
            tokens = json.loads(done.stdout)["tokens"]
            self.assertEqual((tokens["new"], tokens["most_computed_again"]), (100 + 51 + 100, again))
            if again:
                self.check_fails(done, "line 2", f"{again} more")
            else:
                self.assertEqual(done.returncode, 0, done.stderr)
        with MockServer() as server:
            self.check_fails(self.bench(server, lines, "--check-cache"), "return_token_ids")
            self.check_fails(self.bench(server, lines, "--check-cache", "--api", "anthropic"), "--api openai", code=2)

    def test_silence_has_a_limit(self):
        import time
        with MockServer(answer=lambda handler, body, number: time.sleep(3)) as server:
            self.check_fails(self.bench(server, [line()], "--timeout", "0.3"), "nothing came for 0.3 s")

    def test_a_server_that_goes_away_ends_the_replay(self):
        def vanish(handler, body, number):
            handler.server.socket.close()
            handler.stream(openai_chunks())

        with MockServer(answer=vanish) as server:
            done = self.bench(server, [line(edits=[user(str(i))]) for i in range(5)], "--json")
        # The system may still take one connection and break it; the next one is refused.
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "requests failed and [23] were not sent; the first was line 2: ")
        self.assertIn("cannot connect", json.loads(done.stdout)["results"][-1]["error"])

    def test_nobody_there(self):
        url = f"http://127.0.0.1:{closed_port()}"
        self.check_fails(self.bench(url, [line()]), "cannot connect", url, "hearth serve MODEL", "--url")

    def test_bad_addresses_models_and_keys(self):
        for url in ("", "localhost:8080", "https://x", "http://", "http://:80", "http://x:0", "http://x:99999", "http://x:1y",
                    "http://[::1", "http://a b", "http://x/\r\nA: b", "http://u@x", "http://x?y"):
            self.check_fails(self.bench(url, [line()]), "is no address of a server", code=2)
        with MockServer(key="k") as server:
            self.check_fails(self.bench(server, [line()]), "--api-key", code=2)
            self.check_fails(self.bench(server, [line()], "--api-key", "a\nb"), "control characters", code=2)
            self.check_fails(self.bench(server, [line()], "--api-key", "k", "--model", "gone"), "no model gone; it has mock", code=2)
            self.assertEqual(self.bench(server.url + "/v1/", [line()], "--api-key", "k").returncode, 0)
        with MockServer(models=[]) as server:
            self.check_fails(self.bench(server, [line()]), "has no model")
        with MockServer(models=[7, {"id": 3}, {}]) as server:
            self.check_fails(self.bench(server, [line()]), "has no model")
        with MockServer(models="x") as server:
            self.check_fails(self.bench(server, [line()]), "no list of models")

    def test_trace_errors_name_the_line(self):
        for bad, *words in (
            ("{", "not usable JSON"),
            ("[]", "must be a JSON object"),
            ('{"max_tokens": 3}', "session is missing"),
            (line(max_tokens=None), "max_tokens is missing"),
            (line(max_tokens="many"), "max_tokens"),
            (line(max_tokens=0), "max_tokens"),
            (line(think=-1), "think"),
            (line(edit=[]), 'no field "edit"'),
            (line("b", []), "no message to send"),
            (line("b", [{"op": "appendd"}]), "edit.op must be"),
            (line("b", ["x"]), "an edit must be an object"),
            (line("b", [{"op": "append"}]), "needs a message"),
            (line("b", [{"op": "append", "message": {"role": "king", "content": ""}}]), 'found "king"'),
            (line("b", [{"op": "append", "message": {"role": "user", "content": 7}}]), "message.content"),
            (line("b", [{"op": "append", "message": say("", tool_calls=[{}])}]), "tool_calls"),
            (line(edits=[{"op": "replace", "index": 2, "message": say("x")}]), "the history has 2 messages"),
            (line(edits=[{"op": "replace", "index": -3, "message": say("x")}]), "the history has 2 messages"),
            (line(edits=[{"op": "drop", "index": 1, "count": 2}]), "the history has 2 messages"),
            (line(edits=[{"op": "drop"}]), "needs an index"),
            (line(edits=[{"op": "drop", "index": 0, "cuont": 2}]), 'no field "cuont"'),
            (line(tools=[{"name": "x"}]), "tools"),
            (line(wait_for=["nobody"]), "nobody"),
            (line(wait_for=["a"]), "no other session"),
            (line(answer={"role": "user", "content": "x"}), "answer.role"),
        ):
            text = json.dumps(line(answer=say("first"))) + "\n\n" + (bad if isinstance(bad, str) else json.dumps(bad)) + "\n"
            self.check_fails(self.bench("http://127.0.0.1:9", text), "- line 3: ", *words)
        self.check_fails(self.bench("http://127.0.0.1:9", "\n \n"), "no request")
        self.check_fails(hearth("bench", "agent", "/no/such/trace"), "/no/such/trace")

    def test_bench_without_agent_is_the_command_that_measures(self):
        self.assertIn("hearth bench [OPTIONS] [MODEL]\n       hearth bench agent [OPTIONS] TRACE\n", hearth("bench", "--help").stdout)
        self.check_fails(hearth("bench", "agent"), "TRACE is required", code=2)
        self.check_fails(hearth("bench", "/no/such/model.gguf"), "/no/such/model.gguf")
        self.check_fails(hearth("bench", "a", "b"), "b is one argument too many", code=2)

    def test_synthetic_traces_replay(self):
        for kind, requests in (("R2", 30), ("R3", 40), ("R4", 26), ("R5", 14), ("R6", 38), ("R7", 18), ("MIX", 32)):
            make = [sys.executable, ROOT / "tools" / "traces" / "make_traces.py", kind, "--scale", "0.005"]
            trace = subprocess.run(make, capture_output=True, text=True, check=True).stdout
            self.assertEqual(subprocess.run(make, capture_output=True, text=True, check=True).stdout, trace)
            with MockServer() as server:
                done = self.bench(server, trace, "--json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertGreaterEqual(json.loads(done.stdout)["requests"], requests, kind)


class RecordedTraces(unittest.TestCase):
    """What tools/traces/record_trace.py writes asks again what was asked."""

    TOOLS = [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}]
    CALL = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}]
    RESULT = {"role": "tool", "tool_call_id": "c1", "content": "seen"}

    def record(self, path, bodies, answer=None):
        """The trace of requests that are sent one after the other, and what the server got of them."""
        with MockServer(answer=answer) as server, tempfile.TemporaryDirectory() as folder:
            recorder = subprocess.Popen([sys.executable, ROOT / "tools" / "traces" / "record_trace.py", "--url", server.url, "--port", "0",
                                         "-o", f"{folder}/trace.jsonl"], stdout=subprocess.PIPE, text=True)
            port = int(recorder.stdout.readline().split(":")[-1])
            for body in bodies:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", path, json.dumps(body), {"Authorization": "Bearer secret"})
                response = connection.getresponse()
                self.assertTrue(response.status == 200 and response.read(), response.status)
                connection.close()
            recorder.send_signal(signal.SIGTERM)
            said = recorder.communicate(timeout=30)[0]
            self.assertEqual(recorder.returncode, 0)
            trace = Path(f"{folder}/trace.jsonl").read_text()
            self.assertNotIn("secret", trace)
            return trace, said, [got for _, _, got in server.requests]

    def test_openai(self):
        turn = [{"role": "system", "content": "S1"}, {"role": "user", "content": [{"type": "text", "text": "one"}]}]
        called = say("I look.", reasoning_content="hm", tool_calls=self.CALL)
        bodies = [{"messages": m, "tools": self.TOOLS, "stream": True, "max_tokens": 999} for m in (
            turn,
            [{"role": "user", "content": "a title for: one"}],  # of another session
            turn + [called, self.RESULT],
            turn + [say("I look.", tool_calls=self.CALL), {**self.RESULT, "content": "[old]"}, say("done"), {"role": "user", "content": "two"}],
            [{"role": "system", "content": "S2"}, *turn[1:], {"role": "user", "content": "three"}])]
        del bodies[1]["tools"]
        trace, said, got = self.record("/v1/chat/completions", bodies)
        self.assertEqual(got, bodies)
        self.assertIn("5 requests of 2 sessions", said)
        lines = [json.loads(l) for l in trace.splitlines()]
        self.assertEqual([l["session"] for l in lines], ["s1", "s2", "s1", "s1", "s1"])
        self.assertEqual([l["max_tokens"] for l in lines], [2] * 5)  # what the server said
        self.assertEqual((lines[0]["answer"], lines[2]["answer"]), (called, say("done")))
        with MockServer() as server:
            done = hearth("bench", "agent", "-", "--url", server.url, "--time-scale", "0", stdin=trace)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            again = sorted(server.requests, key=lambda r: "title" in str(r))
        turn[1]["content"] = "one"
        self.assertEqual([body["messages"] for _, _, body in again], [bodies[i]["messages"] for i in (0, 2, 3, 4, 1)])
        self.assertEqual([body.get("tools") for _, _, body in again], [self.TOOLS] * 4 + [None])

    def test_anthropic(self):
        text = lambda t: {"type": "text", "text": t}
        turn = [{"role": "user", "content": [text("one")]}]
        more = [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, text("I look."),
                                                  {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "seen"}, text("go on")]}]
        tools = [{"name": "look", "description": "d", "input_schema": {"type": "object"}}]
        bodies = [{"messages": m, "system": [text("S1")], "tools": tools, "stream": True, "max_tokens": 999} for m in (turn, turn + more)]
        stream = lambda handler, body, number: handler.stream(anthropic_events())
        trace, _, got = self.record("/v1/messages?beta=true", bodies, stream)
        self.assertEqual(got, bodies)
        with MockServer(answer=stream) as server:
            done = hearth("bench", "agent", "-", "--url", server.url, "--api", "anthropic", "--time-scale", "0", stdin=trace)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            again = [body for _, _, body in server.requests]
        for body in again:
            body["system"][0].pop("cache_control", None)
        self.assertEqual([b["messages"] for b in again], [b["messages"] for b in bodies])
        self.assertEqual([(b["system"], b["tools"], b["max_tokens"]) for b in again], [([text("S1")], tools, 2)] * 2)


class AgainstHearth(unittest.TestCase):
    def test_a_session_is_replayed_and_mostly_cached(self):
        model = ROOT / "models" / "pocket-dense.gguf"
        server = subprocess.Popen([HEARTH, "serve", model, "-c", "8192", "--port", "0"], stderr=subprocess.PIPE, text=True,
                                  env=os.environ | {"XDG_CONFIG_HOME": "/nonexistent", "HEARTH_DEVICE": "cpu"})
        try:
            url = next(l.split()[-1] for l in server.stderr if l.startswith("Listening on "))
            make = [sys.executable, ROOT / "tools" / "traces" / "make_traces.py", "R6", "--scale", "0.002", "--output-tokens", "3"]
            trace = subprocess.run(make, capture_output=True, text=True, check=True).stdout
            done = hearth("bench", "agent", "-", "--url", url, "--time-scale", "0", "--json", stdin=trace)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            tokens = json.loads(done.stdout)["tokens"]
            self.assertGreater(tokens["cached"], tokens["computed"])
            plan = hearth("launch", "claude", "--url", url, "--dry-run")
            self.assertIn("export CLAUDE_CODE_MAX_CONTEXT_TOKENS=8192", plan.stdout)
        finally:
            server.terminate()
            server.wait()
            server.stderr.close()


class Launch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name)
        self.bin = self.home / "bin"
        self.bin.mkdir()
        self.env = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", "XDG_CONFIG_HOME": ""}

    def tearDown(self):
        self.folder.cleanup()

    def install(self, name):
        """A client that prints its arguments and environment."""
        program = self.bin / name
        program.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ)]))\n")
        program.chmod(0o755)

    def launch(self, server, *args, env=None):
        return hearth("launch", *args, "--url", getattr(server, "url", server), env=self.env | (env or {}))

    def run_client(self, server, name, *args, arguments=(), env=None):
        self.install(name)
        done = hearth("launch", name, "--url", server.url, *args, "--", *arguments, env=self.env | (env or {}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_claude_is_all_environment(self):
        with MockServer() as server:
            words, env = self.run_client(server, "claude", arguments=["-p", "say [hi]", "--model=x", "[a,b]", ""],
                                         env={"ANTHROPIC_API_KEY": "sk-secret"})
            self.assertEqual(words, ["-p", "say [hi]", "--model=x", "[a,b]", ""])
            self.assertEqual(env["ANTHROPIC_BASE_URL"], server.url)
            self.assertNotIn("ANTHROPIC_API_KEY", env)
            self.assertEqual({env[f"ANTHROPIC_DEFAULT_{t}_MODEL"] for t in ("OPUS", "SONNET", "HAIKU")}, {"mock"})
            self.assertEqual((env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"], env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"]), ("100000",) * 2)
            self.assertEqual(env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"], "25000")
            self.assertEqual([p.name for p in self.home.iterdir()], ["bin"])

    def test_dry_run_writes_nothing_and_says_all(self):
        with MockServer(models=[{"id": "it's", "meta": {"n_ctx": 70000}}], key="k") as server:
            for name, words in (("claude", ["export ANTHROPIC_MODEL='it'\\''s'", "unset ANTHROPIC_API_KEY", "export ANTHROPIC_AUTH_TOKEN=k"]),
                                ("codex", ["hearth.config.toml would hold", "codex --profile hearth", "export HEARTH_API_KEY=k"]),
                                ("opencode", ["opencode.json would hold", '"context": 70000', '"output": 17500']),
                                ("openclaw", ["openclaw.json would hold", '"contextWindow": 70000'])):
                done = self.launch(server, name, "--dry-run", "--api-key", "k")
                self.assertEqual(done.returncode, 0, done.stderr)
                for word in words:
                    self.assertIn(word, done.stdout)
                self.assertIn("is not installed; `npm install -g", done.stderr)
        self.assertEqual([p.name for p in self.home.iterdir()], ["bin"])

    def test_json_configurations_keep_everything_else(self):
        for name, place, old in (
            ("opencode", ".config/opencode/opencode.json", {"theme": "dark", "model": "mine", "provider": {"other": {"x": 1.5}, "hearth": {"old": 1}}}),
            ("openclaw", ".openclaw/openclaw.json", {"z": [1, None], "a": "\u00e9", "models": {"providers": {"other": {}}}, "agents": {"defaults": {"model": {"primary": "p", "fallbacks": ["q"]}, "w": 1}, "list": []}}),
        ):
            path = self.home / place
            path.parent.mkdir(parents=True)
            before = json.dumps(old, indent="\t", ensure_ascii=False)
            path.write_text(before)
            with MockServer() as server:
                _, env = self.run_client(server, name)
                first = path.read_text()
                stamp = path.stat().st_mtime_ns
                self.run_client(server, name)
                self.assertEqual((path.read_text(), path.stat().st_mtime_ns), (first, stamp))
                self.run_client(server, name, "--context", "80000")
            self.assertEqual(path.with_name(path.name + ".bak-hearth").read_text(), before)
            self.assertIn('\n\t"', first)
            new = json.loads(first)
            if name == "opencode":
                self.assertEqual(new["provider"].pop("hearth")["models"], {"mock": {"name": "mock", "limit": {"context": 100000, "output": 25000}}})
                self.assertEqual(json.loads(env["OPENCODE_CONFIG_CONTENT"])["model"], "hearth/mock")
                old["provider"].pop("hearth")
                self.assertEqual(json.loads(path.read_text())["provider"]["hearth"]["models"]["mock"]["limit"]["context"], 80000)
            else:
                self.assertEqual(new["models"]["providers"].pop("hearth")["models"][0]["maxTokens"], 25000)
                self.assertEqual(new["agents"]["defaults"]["model"]["primary"], "hearth/mock")
                old["agents"]["defaults"]["model"]["primary"] = "hearth/mock"
            self.assertEqual(new, old)
            self.assertEqual(list(new), list(old))

    def test_what_was_edited_since_is_kept_too(self):
        path = self.home / ".config/opencode/opencode.json"
        path.parent.mkdir(parents=True)
        backup = lambda n: path.with_name(path.name + ".bak-hearth" + n)
        path.write_text('{"edit": 0}')
        edits = []
        with MockServer() as server:
            self.run_client(server, "opencode")
            for edit in range(1, 6):
                edits.append(json.dumps(json.loads(path.read_text()) | {"edit": edit}))
                path.write_text(edits[-1])
                self.run_client(server, "opencode")
                self.assertEqual(json.loads(path.read_text())["edit"], edit)
        self.assertEqual(backup("").read_text(), '{"edit": 0}')
        self.assertEqual([backup(f".{n}").read_text() for n in (1, 2, 3)], edits[:-4:-1])
        self.assertFalse(backup(".4").exists())
        # What was kept last is not kept again.
        path.write_text(edits[-1])
        with MockServer() as server:
            self.run_client(server, "opencode", "--context", "80000")
        self.assertEqual([backup(f".{n}").read_text() for n in (1, 2, 3)], edits[:-4:-1])

    def test_new_files_are_private(self):
        with MockServer() as server:
            for name, place in (("opencode", ".config/opencode/opencode.json"), ("openclaw", ".openclaw/openclaw.json"), ("codex", ".codex/hearth.config.toml")):
                self.run_client(server, name)
                self.assertEqual(stat.S_IMODE((self.home / place).stat().st_mode), 0o600)
                self.assertFalse((self.home / (place + ".bak-hearth")).exists())

    def test_what_cannot_be_kept_is_refused(self):
        path = self.home / ".openclaw/openclaw.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        for text, word in (('{\n // mine\n "a": 1}', "has comments"), ("{a: 1}", "is not plain JSON"), ('{"a": 1,}', "is not plain JSON"),
                           ("[1]", "is not plain JSON"), ('{"provider": 3, "models": 3}', "is no object"), ("\0\xff", "is not plain JSON")):
            path.write_bytes(text.encode("latin-1"))
            self.install("openclaw")
            with MockServer() as server:
                done = self.launch(server, "openclaw")
            self.assertEqual((done.returncode, done.stdout), (1, ""), text)
            for expected in (word, str(path)):
                self.assertIn(expected, done.stderr)
            self.assertEqual(path.read_bytes(), text.encode("latin-1"))
            self.assertEqual(list(path.parent.iterdir()), [path])

    def test_codex_block_is_replaced(self):
        path = self.home / ".codex" / "hearth.config.toml"
        path.parent.mkdir()
        path.write_text('approval_policy = "never"\n\n[tools]\nx = 1\n')
        try:
            import tomllib
        except ImportError:
            self.skipTest("python has no tomllib")
        with MockServer(models=[{"id": 'a "b" \\ c', "context_length": 40000}]) as server:
            words, env = self.run_client(server, "codex", arguments=["exec", "hi"])
            self.assertEqual(words, ["--profile", "hearth", "exec", "hi"])
            self.run_client(server, "codex", "--context", "50000", "--api-key", "k")
            text = path.read_text()
            config = tomllib.loads(text)
            self.assertEqual((config["model"], config["model_context_window"]), ('a "b" \\ c', 50000))
            self.assertEqual((config["approval_policy"], config["tools"]), ("never", {"x": 1}))
            provider = config["model_providers"]["hearth"]
            self.assertEqual((provider["base_url"], provider["wire_api"], provider["env_key"]), (server.url + "/v1", "responses", "HEARTH_API_KEY"))
            self.assertEqual(text.count("hearth launch"), 2)
            path.write_text(text.replace("# <<< hearth launch\n", ""))
            done = self.launch(server, "codex")
            self.assertEqual(done.returncode, 1)
            self.assertIn("marks", done.stderr)

    def test_messages(self):
        self.assertIn("cannot connect", self.launch(f"http://127.0.0.1:{closed_port()}", "claude").stderr)
        with MockServer() as server:
            done = self.launch(server, "claude")
            self.assertEqual(done.returncode, 1)
            self.assertIn("`npm install -g @anthropic-ai/claude-code` installs it", done.stderr)
            for args in (["emacs"], [], ["claude", "stray"], ["claude", "--dry"]):
                self.assertEqual(hearth("launch", *args, env=self.env).returncode, 2, args)
        with MockServer(models=[{"id": "small", "context_length": 4096}]) as server:
            done = self.launch(server, "claude", "--dry-run")
            self.assertEqual(done.returncode, 0)
            self.assertIn("needs a context of about 65536 tokens, small has 4096", done.stderr)
        with MockServer(models=[{"id": "silent"}]) as server:
            self.assertIn("--context", self.launch(server, "claude", "--dry-run").stderr)
            self.assertEqual(self.launch(server, "claude", "--dry-run", "-c", "70000").returncode, 0)
        with MockServer(models=[{"id": "props"}], props={"default_generation_settings": {"n_ctx": 90000}}) as server:
            self.assertIn("CLAUDE_CODE_MAX_CONTEXT_TOKENS=90000", self.launch(server, "claude", "--dry-run").stdout)
        with MockServer(key="k") as server:
            self.assertIn("--api-key", self.launch(server, "claude").stderr)

    def test_a_server_that_loads_is_waited_for(self):
        def loads(model):
            answers = iter([None, [model | {"status": "loading"}], [model | {"status": "loading"}]])
            return lambda: next(answers, [model | {"status": "ready"}])

        with MockServer(models=loads({"id": "late", "context_length": 70000})) as server:
            done = self.launch(server, "claude", "--dry-run")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("CLAUDE_CODE_MAX_CONTEXT_TOKENS=70000", done.stdout)
        with MockServer(models=loads({"id": "late"})) as server:
            trace = json.dumps(line())
            done = hearth("bench", "agent", "-", "--url", server.url, stdin=trace)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_for_the_client_follows_two_dashes(self):
        for words, hint in ((["exec", "hi"], "hearth launch codex -- exec hi"), (["--yolo"], "flags of the client follow --"), (["--dry-runn"], "did you mean --dry-run?")):
            done = hearth("launch", "codex", *words, env=self.env)
            self.assertEqual(done.returncode, 2)
            self.assertIn(hint, done.stderr)

    def test_opencode_with_comments_is_started_all_the_same(self):
        path = self.home / ".config/opencode/opencode.json"
        path.parent.mkdir(parents=True)
        for text in ('{\n // mine\n "theme": "dark"}', '{"theme": "dark",}'):
            path.write_text(text)
            with MockServer() as server:
                _, env = self.run_client(server, "opencode")
            content = json.loads(env["OPENCODE_CONFIG_CONTENT"])
            self.assertEqual((content["model"], content["provider"]["hearth"]["options"]["baseURL"]), ("hearth/mock", server.url + "/v1"))
            self.assertEqual(content["provider"]["hearth"]["models"]["mock"]["limit"], {"context": 100000, "output": 25000})
            self.assertEqual((path.read_text(), list(path.parent.iterdir())), (text, [path]))


class Completions(unittest.TestCase):
    def test_they_know_the_commands(self):
        for shell in ("bash", "zsh", "fish"):
            script = hearth("completions", shell).stdout
            for word in ("launch", "agent", "opencode", "concurrency-scale"):
                self.assertIn(word, script, shell)
        script = hearth("completions", "bash").stdout
        for words, known in ((["launch", ""], "claude codex openclaw opencode"), (["launch", "op"], "openclaw opencode"), (["bench", "ag"], "agent"),
                             (["bench", ""], ""), (["bench", "agent", "--conc"], "--concurrency-scale"), (["launch", "codex", "--dr"], "--dry-run"),
                             (["bench", "m.gguf", "--dep"], "--depth"), (["eval", "p"], "ppl"), (["run", "--promp"], "--prompt")):
            ask = f"{script}\nCOMP_WORDS=(hearth {' '.join(w or chr(39) * 2 for w in words)}); COMP_CWORD={len(words)}; _hearth; echo ${{COMPREPLY[@]}}"
            done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True)
            self.assertEqual((done.stdout.strip(), done.stderr), (known, ""), words)


if __name__ == "__main__":
    unittest.main()
