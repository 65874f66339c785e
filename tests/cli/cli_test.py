#!/usr/bin/env python3
"""Runs the built command as a user does: cli_test.py PATH/TO/hearth [unittest arguments]."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HEARTH = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
GOLDEN = Path(__file__).resolve().parent.parent / "data" / "golden"
MODEL = str(GOLDEN / "qwen3.gguf")  # tiny, random weights, byte vocabulary, no chat template
BOX = str(GOLDEN.parent.parent.parent / "models" / "pocket-dense.gguf")


def hearth(*args, stdin="", env=None):
    """Runs the command with an empty configuration; returns the finished process with text streams."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEARTH_", "XDG_"))}
    clean["XDG_CONFIG_HOME"] = "/nonexistent"
    clean.update(env or {})
    return subprocess.run([HEARTH, *args], input=stdin, env=clean, capture_output=True, text=True, timeout=120)


class Usage(unittest.TestCase):
    def test_help_and_version_go_to_stdout(self):
        for args in (["--help"], ["run", "--help"], ["--version"], ["version"]):
            done = hearth(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)
            self.assertTrue(done.stdout, args)

    def test_usage_errors_have_code_2_one_line_and_empty_stdout(self):
        for args in (
            [],
            ["frobnicate"],
            ["run", MODEL, "-p", "x", "--no-such-flag"],
            ["run", MODEL, "-p", "x", "-t", "-3"],
            ["run", MODEL, "-p", "x", "-c", "ten"],
            ["run", MODEL, "-p", "x", "-f", "/dev/null"],
            ["run", MODEL, "-p", "x", "--raw", "--think"],
            ["run", MODEL, "-p", "x", "--logprobs", "3"],
            ["run", MODEL, "-p", "x", "--device", "quantum"],
            ["run", MODEL, "-p", "x", "--isa", "mmx"],
            ["run", MODEL, "-p", "x", "--kv-type", "q1"],
            ["run", MODEL, "-p", "x", "--activations", "int2"],
            ["run", MODEL, "-p", "x", "--layout", "diagonal"],
            ["run", MODEL, "-p", "x", "--no-pass", "fold_everything"],
            ["run", MODEL, "--raw", "-p", "x", "--logit-bias", "nonsense"],
            ["run", MODEL, "--raw", "-p", "x", "--logit-bias", "99999999=1"],
            ["run", MODEL, "--raw", "-p", "x", "--logit-bias", "99999999999=1"],
            ["run", MODEL, "--raw", "-p", "x", "--logit-bias", "=1"],
            ["run", MODEL, "--raw", "-p", "x", "--temperature", "-1"],
            ["run", MODEL, "--raw", "-p", "x", "--top-p", "2"],
            ["run", MODEL, "--raw"],
            ["run", MODEL, "--raw", "-p", "word " * 3000, "-c", "512"],
            ["bench"],
            ["synth", "qwen9-1t", "/tmp/never.gguf"],
            ["synth", "qwen3-0.6b", "/tmp/never.gguf", "--mix", "q17_z"],
            ["completions", "tcsh"],
        ):
            done = hearth(*args)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertEqual(done.stdout, "", args)
            self.assertTrue(done.stderr.startswith("hearth: "), (args, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, (args, done.stderr))

    def test_without_a_model_the_box_answers_and_says_how_to_get_a_bigger_one(self):
        for done in (hearth("run", "-p", "Tell me a story about a cat.", "-n", "60", "--temperature", "0"),
                     hearth("chat", "-n", "60", "--temperature", "0", stdin="Tell me a story about a cat.\n")):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"curl -LO https://\S+\.gguf")
            self.assertRegex(done.stdout, r"(?i)\bcat\b")


class BadFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.bytes = Path(MODEL).read_bytes()

    def tearDown(self):
        self.folder.cleanup()

    def check(self, content, *words):
        path = os.path.join(self.folder.name, "model.gguf")
        Path(path).write_bytes(content)
        done = hearth("run", path, "-p", "x")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("model.gguf", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_each_kind_has_one_clear_message(self):
        self.check(b"", "empty")
        self.check(b"PK\x03\x04" + b"\0" * 100)
        self.check(b"<!DOCTYPE html><html></html>")
        self.check(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        self.check(os.urandom(4096))
        self.check(self.bytes[: len(self.bytes) // 2])
        self.check(self.bytes[:-1])
        self.check(self.bytes.replace(b"qwen3", b"qwenX"), "qwenX")

    def test_missing_file_and_folder(self):
        done = hearth("run", "/no/such/model.gguf", "-p", "x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/model.gguf", done.stderr)
        self.assertEqual(hearth("inspect", self.folder.name).returncode, 1)

    def test_too_little_memory_names_need_have_and_the_flag(self):
        done = hearth("run", MODEL, "-p", "x", "-c", "1000000000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"needs .* are available; -c \d+ would fit")


class Run(unittest.TestCase):
    ARGS = ("run", MODEL, "--raw", "-n", "8", "--seed", "1", "--temperature", "1")

    def test_text_on_stdout_only(self):
        done = hearth(*self.ARGS, "-p", "hello")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("\n"))

    def test_prompt_from_flag_file_and_stdin_agree(self):
        flag = hearth(*self.ARGS, "-p", "hello").stdout
        self.assertEqual(hearth(*self.ARGS, stdin="hello").stdout, flag)
        self.assertEqual(hearth(*self.ARGS, "-f", "-", stdin="hello").stdout, flag)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("hello")
            file.flush()
            self.assertEqual(hearth(*self.ARGS, "-f", file.name).stdout, flag)

    def test_json_has_text_usage_timings_and_logprobs(self):
        done = hearth(*self.ARGS, "-p", "hello", "--json", "--logprobs", "3")
        document = json.loads(done.stdout)
        self.assertEqual(document["usage"]["completion_tokens"], 8)
        self.assertEqual(document["finish_reason"], "length")
        self.assertGreater(document["timings"]["decode_tokens_per_second"], 0)
        self.assertEqual(len(document["tokens"]), 8)
        self.assertEqual(len(document["tokens"][0]["top"]), 3)
        self.assertLessEqual(document["tokens"][0]["top"][0]["logprob"], 0)

    def test_settings_flag_over_environment_over_file(self):
        def tokens(*args, env=None):
            done = hearth("run", MODEL, "--raw", "-p", "x", "--json", "--seed", "1", *args, env=env)
            return json.loads(done.stdout)["usage"]["completion_tokens"]

        with tempfile.TemporaryDirectory() as home:
            config = Path(home) / "hearth" / "config"
            config.parent.mkdir()
            config.write_text("max-tokens = 3\n")
            xdg = {"XDG_CONFIG_HOME": home}
            self.assertEqual(tokens(env=xdg), 3)
            self.assertEqual(tokens(env=xdg | {"HEARTH_MAX_TOKENS": "4"}), 4)
            self.assertEqual(tokens("-n", "5", env=xdg | {"HEARTH_MAX_TOKENS": "4"}), 5)
            config.write_text("temprature = 0\n")
            self.assertEqual(hearth("run", MODEL, "-p", "x", env=xdg).returncode, 2)
            config.write_text("max-tokens = many\n")
            self.assertEqual(hearth("run", MODEL, "-p", "x", env=xdg).returncode, 2)

    def test_devices_and_passes_agree(self):
        greedy = ("run", MODEL, "--raw", "-p", "hello there", "-n", "12", "--kv-type", "f32", "--temperature", "0")
        expected = hearth(*greedy, "--device", "reference").stdout
        self.assertTrue(expected.strip())
        self.assertEqual(hearth(*greedy).stdout, expected)
        self.assertEqual(hearth(*greedy, "--no-pass", "all").stdout, expected)
        self.assertEqual(hearth(*greedy, "--layout", "native").stdout, expected)


class Output(unittest.TestCase):
    def test_lost_output_is_a_failure_and_never_a_crash(self):
        for args in (("run", MODEL, "--raw", "-p", "x", "-n", "3"), ("inspect", MODEL, "--json"), ("inspect", MODEL, "--tensors"),
                     ("completions", "bash"), ("completions", "fish"), ("tokenize", MODEL, "word " * 3000)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([HEARTH, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), (args, done.stderr))
        with open("/dev/full", "w") as full:
            done = subprocess.run([HEARTH, "run", "/no/such", "-p", "x"], stderr=full, timeout=60)
        self.assertEqual(done.returncode, 1)

    def test_deep_json_is_an_error(self):
        done = hearth("render", BOX, "-", stdin='{"messages":[],"x":' + "[" * 60000 + "]" * 60000 + "}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("nested", done.stderr)


class Tools(unittest.TestCase):
    def test_inspect(self):
        document = json.loads(hearth("inspect", MODEL, "--json").stdout)
        self.assertEqual(document["metadata"]["general.architecture"], "qwen3")
        self.assertTrue(any(t["name"] == "blk.0.attn_q.weight" for t in document["tensors"]))
        self.assertIn("blk.0.attn_q.weight", hearth("inspect", MODEL, "--tensors").stdout)

    def test_tokenize(self):
        ids = json.loads(hearth("tokenize", MODEL, "hi there", "--json").stdout)
        self.assertEqual("".join(t["piece"] for t in ids), "hi there")
        self.assertEqual(json.loads(hearth("tokenize", MODEL, "--json", stdin="hi there").stdout), ids)

    def test_render(self):
        template = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
        conversation = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(template)
            file.flush()
            done = hearth("render", MODEL, "-", "--chat-template", file.name, stdin=conversation)
            self.assertEqual(done.stdout, "[user:hi]", done.stderr)
        for bad in ("{", '{"messages": 3}', '{"messages": [{"role": 7}]}'):
            done = hearth("render", MODEL, "-", stdin=bad)
            self.assertNotEqual(done.returncode, 0, bad)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_bench(self):
        done = hearth("bench", MODEL, "--json", "--prefill", "32", "--depth", "0,40", "--decode-tokens", "4", "--rounds", "1", "-t", "2")
        document = json.loads(done.stdout)
        self.assertEqual([r["kind"] for r in document["results"]], ["prefill", "decode", "decode"])
        self.assertTrue(all(r["tokens_per_second"] > 0 for r in document["results"]))
        self.assertGreater(document["read_bandwidth"], 1e8)
        self.assertEqual(document["threads"], 2)

    def test_eval(self):
        text = "The quick brown fox jumps over the lazy dog. " * 4
        kl = json.loads(hearth("eval", "kl", MODEL, "-f", "-", "--json", stdin=text).stdout)
        self.assertLess(kl["mean_kl"], 1e-4)
        ppl = json.loads(hearth("eval", "ppl", MODEL, "-f", "-", "--json", stdin=text).stdout)
        self.assertGreater(ppl["perplexity"], 1)
        logits = json.loads(hearth("eval", "logits", MODEL, "-f", "-", "--top", "5", stdin=text).stdout)
        self.assertEqual(len(logits["rows"]), len(logits["ids"]))
        self.assertEqual(len(logits["rows"][0]["top"]), 5)

    def test_completions_know_every_command(self):
        for shell in ("bash", "zsh", "fish"):
            script = hearth("completions", shell).stdout
            for word in ("chat", "run", "bench", "temperature"):
                self.assertIn(word, script)
        script = hearth("completions", "bash").stdout + "\nCOMP_WORDS=(hearth be); COMP_CWORD=1; _hearth; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "bench")


def has_terminals():
    try:
        for fd in os.openpty():
            os.close(fd)
        return True
    except OSError:  # a bare chroot has no /dev/pts
        return False


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, *args, env=None):
        self.state = tempfile.mkdtemp()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"XDG_CONFIG_HOME": "/nonexistent", "XDG_STATE_HOME": self.state, "TERM": "xterm"})
            os.environ.update(env or {})
            os.execv(HEARTH, [str(HEARTH), *args])
        self.seen = ""

    def expect(self, pattern, seconds=60):
        """Reads until the pattern appears in what came since the last match; returns the text before it."""
        end = time.time() + seconds
        while not (match := re.search(pattern, self.seen)):
            if time.time() > end or not select.select([self.fd], [], [], max(0, end - time.time()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen[-500:]!r}")
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                raise AssertionError(f"ended without {pattern!r}: {self.seen[-500:]!r}") from None
        before, self.seen = self.seen[: match.start()], self.seen[match.end() :]
        return before

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        shutil.rmtree(self.state)
        return os.waitstatus_to_exitcode(status)


class Chat(unittest.TestCase):
    ARGS = ("chat", BOX, "--seed", "1", "-n", "6")

    def test_lines_from_a_pipe_are_answered_on_stdout(self):
        done = hearth(*self.ARGS, stdin="hello\nagain\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreaterEqual(done.stdout.count("\n"), 2)

    def test_save_load_clear_regen_stats_system(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/talk.json"
            done = hearth(*self.ARGS, stdin=f"/system be brief\nhello\n/regen\n/stats\n/save {path}\n/clear\n/load {path}\n/nope\n/exit\nx\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            saved = json.loads(Path(path).read_text())["messages"]
            self.assertEqual([m["role"] for m in saved], ["system", "user", "assistant"])
            for words in ("tok/s", "Saved 2 messages", "Loaded 2 messages", "no command /nope"):
                self.assertIn(words, done.stderr)

    def test_a_refused_message_forgets_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            hearth("chat", BOX, "-c", "512", "-n", "8", stdin=f"hi\nhello\n{'a' * 5000}\n/save {folder}/after.json\n")
            saved = json.loads(Path(f"{folder}/after.json").read_text())["messages"]
            self.assertEqual([m["role"] for m in saved], ["user", "assistant"] * 2)

    def test_save_and_load_lose_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            part, target, link, pipe = (Path(folder, n) for n in ("x.json.part", "target", "link", "pipe"))
            part.write_text("precious")
            target.write_text("old")
            link.symlink_to(target)
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            done = hearth("chat", BOX, "-n", "3", stdin=f"hi\n/save {folder}/x.json\n/save {link}\n/save {pipe}\n")
            self.assertEqual(done.stderr.count("Saved"), 3, done.stderr)
            self.assertEqual(part.read_text(), "precious")
            self.assertTrue(link.is_symlink() and "messages" in target.read_text())
            self.assertTrue(pipe.is_fifo() and b"messages" in os.read(reader, 65536))
            os.close(reader)
            for rich in ('{"messages":[{"role":"user","content":[{"type":"text","text":"Important"}]}]}',
                         '{"messages":[{"role":"user","content":"x","name":"bob"}]}', '{"messages":[],"tools":[1]}'):
                target.write_text(rich)
                self.assertIn("cannot hold", hearth("chat", BOX, stdin=f"/load {target}\n").stderr)
                self.assertEqual(target.read_text(), rich)

    def test_full_context_drops_the_oldest_turns_and_says_so(self):
        done = hearth("chat", BOX, "-c", "512", "-n", "60", "--seed", "3", stdin="tell me a very long story about it\n" * 12)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("forgot the oldest", done.stderr)
        too_long = hearth("chat", BOX, "-c", "512", "-n", "4", stdin="x" * 2000 + "\nhi\n")
        self.assertIn("start with -c", too_long.stderr)
        self.assertTrue(too_long.stdout.strip(), "the next message is answered")

    @unittest.skipUnless(has_terminals(), "this system has no pseudo-terminals")
    def test_terminal_ctrl_c_stops_the_answer_only(self):
        end = json.loads(hearth("tokenize", BOX, "--special", "--json", "<|im_end|>").stdout)[0]["id"]
        terminal = Terminal("chat", BOX, "--seed", "1", "--logit-bias", f"{end}=-inf", "-c", "30000")
        terminal.expect("> ")
        terminal.send("hello\n")
        terminal.expect("hello")
        time.sleep(0.5)
        terminal.send("\x03")
        terminal.expect(r"\[stopped\]")
        terminal.expect("> ")
        terminal.send("half a line")
        terminal.expect("half a line")  # the editor reads: a Ctrl-C before that is lost
        time.sleep(0.2)
        terminal.send("\x03")
        terminal.expect(r"\^C")
        terminal.expect("> ")
        terminal.send("/stats\n")
        terminal.expect("tok/s")
        terminal.send("\x04")
        self.assertEqual(terminal.wait(), 0)

    @unittest.skipUnless(has_terminals(), "this system has no pseudo-terminals")
    def test_history_comes_back(self):
        with tempfile.TemporaryDirectory() as state:
            first = Terminal(*self.ARGS, env={"XDG_STATE_HOME": state})
            first.expect("> ")
            first.send("/system remember me\n")
            first.expect("system: remember me")
            first.send("\x04")
            self.assertEqual(first.wait(), 0)
            second = Terminal(*self.ARGS, env={"XDG_STATE_HOME": state})
            second.expect("> ")
            second.send("\x1b[A")
            second.expect("remember me")
            second.send("\n")
            second.expect("system: remember me")
            second.send("/exit\n")
            self.assertEqual(second.wait(), 0)


if __name__ == "__main__":
    unittest.main()
