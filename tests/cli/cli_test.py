#!/usr/bin/env python3
"""Runs the built command as a user does: cli_test.py PATH/TO/hearth [unittest arguments]."""
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

HEARTH = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
GOLDEN = Path(__file__).resolve().parent.parent / "data" / "golden"
MODEL = str(GOLDEN / "qwen3.gguf")  # tiny, random weights, byte vocabulary, no chat template
BOX = str(GOLDEN.parent.parent.parent / "models" / "pocket-dense.gguf")


def environment(env=None):
    """An empty configuration, and what the test adds. The CPU computes, whatever else the machine has."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HEARTH_", "XDG_"))}
    return clean | {"XDG_CONFIG_HOME": "/nonexistent", "HEARTH_DEVICE": "cpu"} | (env or {})


def hearth(*args, stdin="", env=None, under=()):
    """Runs the command, as an argument of the command `under` if one is given; returns the finished process with text
    streams."""
    return subprocess.run([*under, HEARTH, *args], input=stdin, env=environment(env), capture_output=True, text=True, timeout=120)


def start(*args, **options):
    """Runs the command; returns the running process with pipes."""
    # A shell that started these tests in the background has told its children to ignore Ctrl-C.
    unignore = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([HEARTH, *args], env=environment(), preexec_fn=unignore, text=True, **(pipes | options))


def wait_until(condition, seconds=60):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("it did not happen")
        time.sleep(0.01)


def endless(*args, context=30000):
    """Arguments of a chat or run whose answer goes on until it is stopped."""
    end = json.loads(hearth("tokenize", BOX, "--special", "--json", "<|im_end|>").stdout)[0]["id"]
    return (*args, "--seed", "1", "--logit-bias", f"{end}=-inf", "-c", str(context))


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
            ["bench", MODEL, "--prompts", "3"],
            ["bench", MODEL, "--compare"],
            ["bench", MODEL, "--compare", MODEL, "--json"],
            ["synth", "qwen9-1t", "/tmp/never.gguf"],
            ["synth", "qwen3-0.6b", "/tmp/never.gguf", "--mix", "q17_z"],
            ["completions", "tcsh"],
        ):
            done = hearth(*args)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertEqual(done.stdout, "", args)
            self.assertTrue(done.stderr.startswith("hearth: "), (args, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, (args, done.stderr))

    def check_message(self, args, *words, code=2, **options):
        done = hearth(*args, **options)
        self.assertEqual((done.returncode, done.stdout), (code, ""), (args, done.stderr))
        self.assertEqual(done.stderr.count("\n"), 1, (args, done.stderr))
        for word in words:
            self.assertIn(word, done.stderr, args)

    def test_what_is_mistyped_is_named_and_the_nearest_word_suggested(self):
        for args, *words in (
            (["frobnicate"], "there is no command frobnicate; there are chat, run, serve, ", "`hearth --help`"),
            (["launch", "nosuch"], "there is no command nosuch; there are claude, codex, "),
            (["synth", "list"], "PRESET: expected one of qwen3-0.6b, ", 'found "list"'),
            (["synth", "qwen3-0.6b", "/dev/null", "--mix", "Best"], "--mix: expected one of q2_k, ", "q8_0", 'found "Best"'),
            (["serve", MODEL, "--alias", "=x"], "--alias: expected NAME or NAME=ID"),
            (["rum", "-p", "x"], "no command rum", "did you mean run?"),
            (["eval", "pll"], "no command pll", "did you mean ppl?", "`hearth eval --help`"),
            ([], "a command is missing", "chat", "synth"),
            (["eval"], "a command is missing", "logits, ppl, kl"),
            (["run", "--promp", "x"], "no flag --promp", "did you mean --prompt?", "`hearth run --help`"),
            (["run", "--temprature=1"], "no flag --temprature;", "did you mean --temperature?"),
            (["run", "--xyzzy"], "no flag --xyzzy;"),
            (["--verbose"], "no flag --verbose"),
            (["render", MODEL, "--templat"], "no flag --templat"),
            (["inspect", MODEL, "more"], "more is one argument too many"),
            (["render", MODEL], "CONVERSATION is required"),
        ):
            self.check_message(args, *words)

    def test_what_is_no_number_is_named_with_what_would_be_one(self):
        for flag in ("-c", "-t", "-n", "--top-k", "--seed", "--penalty-last-n", "--prefill-rows"):
            for value in ("abc", "", "1e3", "1.5", "0x10", "7 ", "99999999999999999999999"):
                self.check_message(["run", MODEL, "-p", "x", flag, value], "expected a whole number from", f'found "{value}"')
        for flag in ("--temperature", "--top-p", "--dry-base"):
            for value in ("abc", "", "inf", "-inf", "nan", "1e39", "0x10", "1,5"):
                self.check_message(["run", MODEL, "-p", "x", flag, value], "expected a number", f'found "{value}"')
        for value in ("-1", str(1 << 64)):
            self.check_message(["run", MODEL, "-p", "x", "--seed", value], f"from 0 to {(1 << 64) - 1}")
            self.check_message(["synth", "qwen3-0.6b", "/dev/null", "--seed", value], f"from 0 to {(1 << 64) - 1}")
        for value in ("abc", "", "-1", "4 GiB", "4gigs", "inf", "1e30", "GiB"):
            self.check_message(["run", MODEL, "-p", "x", "--cache-ram", value], "--cache-ram: expected a size such as 4GiB", f'found "{value}"')
        for value, text in (("9TiB", "9216.0 GiB"), ("9000000", "8789.1 GiB"), ("9437184M", "9216.0 GiB"), ("9.5e0T", None)):
            words = [f"prefix cache {text}", "are available", "a smaller --cache-ram would fit"] if text else ['found "9.5e0T"']
            self.check_message(["run", MODEL, "-p", "x", "--device", "cpu", "--cache-ram", value], *words, code=1 if text else 2)
        for args in (["--sequences", "0"], ["--depth", "0,x"], ["--prefill", "0"], ["--rounds", "many"]):
            self.check_message(["bench", MODEL, *args], "expected a whole number from")
        for flag, value, range in (("-c", "-5", "0 to 1073741824"), ("-t", "5000", "0 to 1024"), ("--prefill-rows", "0", "1 to 2048"),
                                   ("--prefill-rows", "2049", "1 to 2048"), ("-n", "-2", "-1 to"), ("--top-k", "-1", "0 to 1000000000"),
                                   ("--penalty-last-n", "-2", "-1 to 1000000000"), ("--dry-allowed-length", "0", "1 to 1000000000")):
            self.check_message(["run", MODEL, "-p", "x", flag, value], f"expected a whole number from {range}", f'found "{value}"')
        for args in (["bench", MODEL, "--sequences", "65"], ["serve", MODEL, "-P", "0"]):
            self.check_message(args, "expected a whole number from 1 to 64")
        ten = hearth("run", MODEL, "--raw", "-p", "x", "--json", "-n", "010", "--seed", str((1 << 64) - 1))
        self.assertEqual(json.loads(ten.stdout)["usage"]["completion_tokens"], 10)

    def test_what_is_no_choice_is_named_with_those_that_are(self):
        for flag, value, *words in (("--device", "quantum", "auto, cpu", "cuda:1"), ("--isa", "mmx", "portable, found"), ("--kv-type", "q1", "f32, f16, q8"),
                                    ("--activations", "int2", "default, int8"), ("--layout", "diagonal", "auto, native, planar"),
                                    ("--no-pass", "fold_everything", "all, merge_linears")):
            variable = "HEARTH_" + flag[2:].upper().replace("-", "_")
            self.check_message(["run", MODEL, "-p", "x", flag, value], f"{flag}: expected one of ", f'found "{value}"', *words)
            self.check_message(["run", MODEL, "-p", "x"], f"{variable}: {flag}: expected one of ", *words, env={variable: value})
        done = hearth("run", MODEL, "--raw", "-p", "x", "-n", "1", "--isa", "amx")  # what this machine may lack
        if "expected one of" not in done.stderr and done.returncode != 0:
            self.check_message(["run", MODEL, "-p", "x", "--isa", "amx"], "CPU instruction set amx needs", "this machine has", "and runs: ", code=1)

    def test_int8_activations_where_no_product_has_them_are_noted(self):
        for model, device, taken in ((MODEL, "cpu", False), (BOX, "reference", False), (BOX, "cpu", True)):  # the first has floats for weights
            done = hearth("run", model, "--raw", "-p", "x", "-n", "3", "--temperature", "0", "--activations", "int8", "--device", device)
            self.assertEqual((done.returncode, "int8 activations change nothing" in done.stderr), (0, not taken), done.stderr)
        for model, taken in ((MODEL, False), (BOX, True)):
            bench = ("bench", model, "--prefill", "16", "--depth", "0", "--decode-tokens", "2", "--rounds", "1", "--activations", "int8")
            self.assertEqual(", int8 activations\n" in hearth(*bench).stdout, taken)
            self.assertEqual(json.loads(hearth(*bench, "--json").stdout)["activations"], "int8" if taken else "default")

    def test_nothing_that_was_given_is_ignored(self):
        with tempfile.NamedTemporaryFile() as empty:
            for args in (
                ["run", MODEL, "--raw", "-p", "x", "--system", "y"],
                ["run", MODEL, "-p", "x", "-f", "/dev/null"],
                ["run", MODEL, "-p", ""],
                ["run", MODEL, "-p", "x", "--chat-template", ""],
                ["chat", MODEL, "--chat-template", ""],
                ["render", MODEL, "-", "--chat-template", ""],
                ["tokenize", MODEL, "text", "-f", "/dev/null"],
            ):
                self.check_message(args, stdin="text")
            self.check_message(["run", MODEL, "-p", "x", "--chat-template", empty.name], "is empty", code=1)
            self.check_message(["render", MODEL, "-", "--chat-template", empty.name], "is empty", code=1, stdin="{}")
        self.assertEqual(hearth("tokenize", MODEL, "--json", "", stdin="not this").stdout, "[]\n")

    def test_a_list_flag_takes_one_value_as_it_is(self):
        text = hearth("run", "--stop", "[x]", "--no-pass", "all", "--logit-bias", "1=-1", MODEL, "--raw", "-p", "x", "-n", "3")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        plain = hearth("run", MODEL, "--raw", "-p", "x", "-n", "40", "--temperature", "0").stdout
        bracket = plain.strip()[5]  # as a whole it never occurs; its middle does
        same = hearth("run", MODEL, "--raw", "-p", "x", "-n", "40", "--temperature", "0", "--stop", f"[{bracket}]")
        self.assertEqual(same.stdout, plain)

    def test_without_a_model_the_box_answers_and_says_how_to_get_a_bigger_one(self):
        for done in (hearth("run", "-p", "Tell me a story about a cat.", "-n", "60", "--temperature", "0"),
                     hearth("chat", "-n", "60", "--temperature", "0", stdin="Tell me a story about a cat.\n")):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"curl -LO https://\S+\.gguf")
            self.assertRegex(done.stdout, r"(?i)\bcat\b")
        done = hearth("bench", "--prefill", "16", "--depth", "0", "--decode-tokens", "2", "--rounds", "1", "--json")
        self.assertEqual(json.loads(done.stdout)["path"], BOX)
        self.assertIn("curl -LO", done.stderr)


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

    def test_a_pipe_is_refused_at_once(self):
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)  # nobody writes to it
        for args in (["run", pipe, "-p", "x"], ["inspect", pipe], ["tokenize", pipe, "x"]):
            done = hearth(*args)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn("not a regular file", done.stderr)

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

    def test_an_answer_that_the_context_cuts_off_says_so(self):
        done = hearth(*endless("run", BOX, "-p", "Hi", context=64))
        self.assertEqual((done.returncode, done.stderr), (0, "hearth: note: the answer is cut off: the context of 64 tokens is full; -c gives more\n"))

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
            config.write_bytes(b"\xef\xbb\xbfmax-tokens = 3\n")
            self.assertEqual(tokens(env=xdg), 3)
            config.write_text('stop = ["never", "ever"]\nmax_tokens = 3\n')
            self.assertEqual(tokens(env=xdg), 3)
            for bad in ("max-tokens = 3\nmax-tokens = 4\n", "max-tokens = 3\nmax_tokens = 3\n", "[section]\nmax-tokens = 3\n"):
                config.write_text(bad)
                done = hearth("run", MODEL, "-p", "x", env=xdg)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), bad)
                self.assertIn(str(config), done.stderr)
            for bad in (home, "/no/such/config"):
                done = hearth("run", MODEL, "-p", "x", env={"HEARTH_CONFIG": bad})
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(bad, done.stderr)
                self.assertEqual(hearth("version", env={"HEARTH_CONFIG": bad}).returncode, 0)

    def test_help_has_the_defaults(self):
        text = hearth("serve", "--help").stdout
        for words in ("--port UINT=8080", "--host TEXT=127.0.0.1", "--kv-type TEXT=f16", "--grace FLOAT=10", "--api-key TEXT ..."):
            self.assertIn(words, text)

    def test_the_environment_reaches_every_flag_and_no_other_command(self):
        commands = (["run", MODEL, "-p", "x"], ["chat", BOX], ["bench", MODEL], ["eval", "ppl", MODEL, "-f", MODEL], ["synth", "qwen3-0.6b", "/dev/null"])
        for command in commands:
            words = command[: 2 if command[0] == "eval" else 1]
            flags = set(re.findall(r"--([a-z-]+)(?:,--\w+)? (?:INT|UINT|FLOAT)", hearth(*words, "--help").stdout))
            self.assertTrue(flags, command)
            bad = {"HEARTH_" + flag.upper().replace("-", "_"): "x" for flag in flags}
            for variable, value in bad.items():
                done = hearth(*command, env={variable: value})
                self.assertEqual((done.returncode, done.stdout), (2, ""), (command, variable))
                self.assertIn(variable, done.stderr)
            for other in (["version"], ["inspect", MODEL], ["tokenize", MODEL, "x"], ["completions", "bash"], ["--help"]):
                self.assertEqual(hearth(*other, env=bad).returncode, 0, other)

        def answer(*args, **env):
            return hearth("run", MODEL, "--seed", "1", *args, env={f"HEARTH_{k}": v for k, v in env.items()})

        settings = {"PROMPT": "x", "MAX_TOKENS": "4", "JSON": "true", "LOGPROBS": "2", "STOP": "[x]", "LOGIT_BIAS": "1=-1", "NO_PASS": "all"}
        document = json.loads(answer("--raw", **settings, THINK="1", SYSTEM="be brief").stdout)  # --raw has no use for these
        self.assertEqual(len(document["tokens"]), 4)
        self.assertEqual(json.loads(answer(**settings, RAW="yes").stdout)["text"], document["text"])
        self.assertIn("HEARTH_THINK", answer("-p", "x", THINK="1", NO_THINK="1").stderr)
        self.assertIn("HEARTH_RAW", answer("-p", "x", RAW="perhaps").stderr)

    def test_devices_and_passes_agree(self):
        greedy = ("run", MODEL, "--raw", "-p", "hello there", "-n", "12", "--kv-type", "f32", "--temperature", "0")
        expected = hearth(*greedy, "--device", "reference").stdout
        self.assertTrue(expected.strip())
        self.assertEqual(hearth(*greedy).stdout, expected)
        self.assertEqual(hearth(*greedy, "--no-pass", "all").stdout, expected)
        self.assertEqual(hearth(*greedy, "--layout", "native").stdout, expected)


    def test_the_automatic_device_is_named_with_its_reason(self):
        run = ("run", MODEL, "--raw", "-p", "x", "-n", "2", "--temperature", "0")
        gpus = json.loads(hearth("doctor", "--json", "--quick").stdout)["cuda"]["gpus"]
        usable = [gpu for gpu in gpus if not gpu["problem"]]
        for args, env in (((), {"HEARTH_DEVICE": ""}), (("--device", "auto"), {})):
            done = hearth(*run, *args, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            if usable:
                self.assertRegex(done.stderr, r"^hearth: note: the model runs on (the CPU: .+|cuda:\d+: .+; --device cpu would use the processor)\n$")
            else:  # there was no choice
                self.assertEqual(done.stderr, "")
        # What was asked for needs no explanation, and instructions of the CPU are such a wish.
        for args in ((), ("--device", "reference"), ("--device", "auto", "--isa", "portable")):
            done = hearth(*run, *args)
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)

    def test_a_gpu_that_is_not_there_is_an_error(self):
        gpus = json.loads(hearth("doctor", "--json", "--quick").stdout)["cuda"]["gpus"]
        for device, code, *words in [("cuda:99", 2, "cuda:0") if gpus else ("cuda:99", 1, "--device cpu"),
                                     *((bad, 2, f'"{bad}"', "cuda:1") for bad in ("cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:" + "9" * 20))]:
            done = hearth("run", MODEL, "-p", "x", "--device", device)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)


class Doctor(unittest.TestCase):
    def test_json_has_everything(self):
        done = hearth("doctor", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertLessEqual(report["cpu"]["workers"], len(os.sched_getaffinity(0)))
        self.assertGreater(report["cpu"]["read_bandwidth"], 1e8)
        self.assertTrue(report["cpu"]["kernels"])
        self.assertGreater(report["memory"]["total_bytes"], 1 << 28)
        self.assertLessEqual(report["memory"]["available_bytes"], report["memory"]["total_bytes"])
        self.assertEqual(report["models"]["box"], str(Path(BOX)))
        self.assertGreaterEqual(report["models"]["files"], 1)
        self.assertTrue(report["cuda"]["gpus"] or report["cuda"]["problem"])
        for gpu in report["cuda"]["gpus"]:
            self.assertTrue(gpu["problem"] or gpu["read_bandwidth"] > 1e9, gpu)
        for finding in report["findings"]:
            self.assertIn(finding["kind"], ("good", "slow", "broken"))
            self.assertTrue(finding["text"])

    def test_quick_measures_nothing(self):
        report = json.loads(hearth("doctor", "--json", "--quick").stdout)
        self.assertIsNone(report["cpu"]["read_bandwidth"])
        self.assertIsNone(report["models"]["disk_read"])
        done = hearth("doctor", "--quick")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("CPU", "Memory", "Vulkan", "Models", "Port", "Nothing was measured"):
            self.assertIn(word, done.stdout)

    def test_limits_are_found(self):
        cpu = str(min(os.sched_getaffinity(0)))
        report = json.loads(hearth("doctor", "--json", "--quick", under=("taskset", "-c", cpu)).stdout)
        self.assertEqual((report["cpu"]["cores"], report["cpu"]["workers"]), (1, 1))

    def test_a_port_in_use_and_a_folder_that_is_not_there_are_findings(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = hearth("doctor", "--json", "--quick", "--port", str(port), "--models-dir", "/nowhere/at/all")
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, done.stderr.count("\n"), report["port"]), (1, 1, {"number": port, "free": False}))
        found = "\n".join(finding["text"] for finding in report["findings"])
        self.assertIn(f"port {port} is in use", found)
        self.assertIn("/nowhere/at/all", found)

    def test_what_is_broken_is_a_failure(self):
        for flags in ([], ["--json"]):
            done = hearth("doctor", "--quick", *flags, env={"HEARTH_ISA": "mmx"})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            for words in ("the CPU cannot run models: HEARTH_ISA: ", "mmx", "this machine runs: ", "portable"):
                self.assertIn(words, done.stdout)
        done = hearth("doctor", "--quick", env={"HEARTH_CPU_KERNEL": "nonsense"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("the CPU cannot run models: HEARTH_CPU_KERNEL: ", done.stdout)


class Workers(unittest.TestCase):
    """Without -t there are as many as cores, affinity and quota allow; `hearth bench` says how many."""

    @staticmethod
    def workers(under=()):
        done = hearth("bench", MODEL, "--json", "--prefill", "16", "--depth", "0", "--decode-tokens", "2", "--rounds", "1", under=under)
        return json.loads(done.stdout)["threads"]

    @classmethod
    def setUpClass(cls):
        if cls.workers() < 2:
            raise unittest.SkipTest("this machine has one core")

    def test_affinity_to_one_cpu_is_one_worker(self):
        for cpu in (min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))):
            self.assertEqual(self.workers(("taskset", "-c", str(cpu))), 1)

    def test_a_quota_of_one_cpu_is_one_worker(self):
        """The control groups that the command sees are files of ours, mounted for it alone."""
        for files, one in (({"cpu.max": "100000 100000"}, True), ({"cpu.max": "max 100000"}, False),
                           ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, True)):
            with tempfile.TemporaryDirectory() as groups:
                for name, text in files.items():
                    Path(groups, name).parent.mkdir(exist_ok=True)
                    Path(groups, name).write_text(text + "\n")
                mount = 'mount --bind "$0" /sys/fs/cgroup && exec "$@"'
                under = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, groups)
                if subprocess.run([*under, "true"], capture_output=True).returncode != 0:
                    self.skipTest("this system grants no mount namespaces")
                self.assertEqual(self.workers(under) == 1, one, files)


class Output(unittest.TestCase):
    def test_lost_output_is_a_failure_and_never_a_crash(self):
        for args in (("run", MODEL, "--raw", "-p", "x", "-n", "3"), ("inspect", MODEL, "--json"), ("inspect", MODEL, "--tensors"),
                     ("completions", "bash"), ("completions", "fish"), ("tokenize", MODEL, "word " * 3000)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([HEARTH, *args], env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), (args, done.stderr))
        with open("/dev/full", "w") as full:
            done = subprocess.run([HEARTH, "run", "/no/such", "-p", "x"], stderr=full, timeout=60)
        self.assertEqual(done.returncode, 1)

    def test_streams_that_are_closed_or_full_stop_nothing(self):
        def shell(redirections, *args, stdin=""):
            script = f'exec "$@" {redirections}'
            return subprocess.run(["bash", "-c", script, "-", HEARTH, *args], input=stdin, env=environment(), capture_output=True, text=True, timeout=60)

        expected = hearth("chat", BOX, "--seed", "1", "-n", "6", stdin="hello\n").stdout
        for redirections in ("2>&-", "2>/dev/full"):
            with tempfile.TemporaryDirectory() as folder:
                saved = f"{folder}/talk.json"
                done = shell(redirections, "chat", BOX, "--seed", "1", "-n", "6", stdin=f"/stats\nhello\n/save {saved}\n/nope\n/stats\n")
                self.assertEqual((done.returncode, done.stdout), (0, expected), redirections)
                self.assertEqual(len(json.loads(Path(saved).read_text())["messages"]), 2)
        for redirections in (">&-", ">/dev/full"):
            self.assertEqual(shell(redirections, "inspect", MODEL).returncode, 1)
            self.assertEqual(shell(redirections + " 2>&-", "version").returncode, 1)
        self.assertEqual(shell("<&-", "run", MODEL).returncode, 2)
        self.assertEqual(shell("<&-", "chat", BOX).returncode, 0)

    def test_no_control_byte_of_a_file_or_a_name_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "m\x1b[31m.gguf")
            model.write_bytes(Path(MODEL).read_bytes().replace(b"general.name", b"gener\x1bl\n\x9b.ae").replace(b"general.", b"gen\x1b[2J."))
            for args in (["run", f"{folder}/no\x1b[31m\n", "-p", "x"], ["run", f"{folder}\x1b", "-p", "x"], ["fro\x1bbnicate"],
                         ["run", "--\x1b[2J"], ["run", model, "-p", "x", "--device", "\x1b]0;"], ["run", model, "-p", "x"]):
                done = hearth(*args)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual((re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr), done.stderr.count("\n")), ([], 1), args)
            if not has_terminals():
                return
            with Terminal("inspect", str(model), "--tensors") as terminal:
                shown = terminal.expect("output_norm.weight")
            self.assertIn(r"\x1b", shown)
            self.assertEqual(re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", shown), [])

    def test_json_errors_have_a_position(self):
        done = hearth("render", BOX, "-", stdin='{"messages": [\n  {"role": "user" "content": 1}]}')
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("line 2, column 27", done.stderr)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write('{"messages": [}')
            file.flush()
            loaded = hearth("chat", BOX, stdin=f"/load {file.name}\n")
            self.assertIn("line 1, column 15", loaded.stderr)
            self.assertIn(file.name, loaded.stderr)

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

    @unittest.skipIf("HEARTH_TEST_SANITIZED" in os.environ, "a sanitizer keeps what was freed")
    def test_a_long_text_is_tokenized_in_little_memory(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("the quick brown fox jumps over it, again.\n" * 200_000)
            file.flush()
            size = os.path.getsize(file.name)
            for flags in ([], ["--json"]):
                process = start("tokenize", BOX, "-f", file.name, *flags, stdout=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                self.assertLess(usage.ru_maxrss * 1024, 40e6 + 12 * size)
                for pipe in (process.stdin, process.stderr):
                    pipe.close()

    def test_synth_leaves_a_complete_file_or_none(self):
        with tempfile.TemporaryDirectory() as folder:
            nowhere = hearth("synth", "qwen3-0.6b", Path(folder, "no", "m.gguf"))
            self.assertEqual((nowhere.returncode, nowhere.stdout), (1, ""))
            self.assertIn(f"there is no folder {folder}/no", nowhere.stderr)
            out = Path(folder, "m.gguf")
            out.write_text("old")
            for end in (signal.SIGINT, signal.SIGTERM):
                process = start("synth", "qwen3-8b", out)
                wait_until(lambda: len(os.listdir(folder)) == 2)  # the part that is written
                process.send_signal(end)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, -end)
                self.assertEqual((os.listdir(folder), out.read_text()), (["m.gguf"], "old"))
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
            full = subprocess.run([HEARTH, "synth", "qwen3-0.6b", out], preexec_fn=limit, restore_signals=False, capture_output=True, text=True, timeout=60)
            self.assertEqual(full.returncode, 1)
            self.assertIn("cannot write", full.stderr)
            self.assertEqual((os.listdir(folder), out.read_text()), (["m.gguf"], "old"))
            done = hearth("synth", "qwen3-0.6b", out, "--mix", "q2_k")
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertRegex(done.stderr, rf"^{re.escape(str(out))}: [\d.]+ MiB of random weights; `hearth bench {re.escape(str(out))}` measures it\n$")
            self.assertEqual(hearth("tokenize", out, "the pattern").stderr, "")  # its vocabulary is sound

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
        self.assertNotIn("first_token", document)
        done = hearth("bench", MODEL, "--json", "--prefill", "32", "--depth", "0", "--decode-tokens", "4", "--rounds", "1",
                      "--first-token", "8,40", "--prompts", "3")
        waits = json.loads(done.stdout)["first_token"]
        self.assertEqual([(w["tokens"], w["prompts"]) for w in waits], [(8, 3), (40, 3)])
        self.assertTrue(all(0 < w["p50_seconds"] <= w["p99_seconds"] for w in waits), waits)
        alone = json.loads(hearth("bench", MODEL, "--json", "--rounds", "1", "--first-token", "8,8", "--prompts", "1").stdout)
        self.assertEqual((alone["results"], [w["tokens"] for w in alone["first_token"]]), ([], [8]))
        alone = hearth("bench", MODEL, "--rounds", "1", "--first-token", "8", "--prompts", "1").stdout
        self.assertNotIn("tok/s", alone)
        self.assertIn("(1 prompt)", alone)
        done = hearth("bench", MODEL, "--json", "--prefill", "32,16,32", "--depth", "0", "--depth", "0", "--decode-tokens", "4", "--rounds", "1")
        self.assertEqual([r["tokens"] for r in json.loads(done.stdout)["results"]], [32, 16, 4])
        for prefill, depth, tokens in ((32, 600, 8), (32, 500, 40), (512, 0, 8)):
            args = ["--prefill", str(prefill), "--depth", str(depth), "--decode-tokens", str(tokens)]
            done = hearth("bench", MODEL, "-c", "512", "--rounds", "1", *args)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (args, done.stderr))
            self.assertIn("the model was made for 512; less of ", done.stderr)
        self.assertIn("takes 512; -c 1065 would work", hearth("bench", BOX, "-c", "512", "--depth", "1000").stderr)

    def test_what_bench_advises_satisfies_it(self):
        args = ("bench", BOX, "--prefill", "16", "--depth", "64", "--sequences", "16", "--rounds", "1", "--decode-tokens")
        few = hearth(*args, "4")
        self.assertEqual((few.returncode, few.stdout), (2, ""))
        self.assertEqual(hearth(*args, re.search(r"--decode-tokens (\d+) or more would work", few.stderr)[1]).returncode, 0)
        for much in ("--prefill", "--depth", "--first-token"):  # more than any -c could give
            done = hearth("bench", BOX, much, "100000")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("the model was made for 65536; less of ", done.stderr)

    def test_bench_compares_with_an_earlier_run(self):
        args = ("bench", MODEL, "--prefill", "32", "--decode-tokens", "4", "--rounds", "1", "-t", "1")
        document = json.loads(hearth(*args, "--depth", "0,40", "--json").stdout)
        for result, rate in zip(document["results"], (125.0, 250.0, 500.0)):
            result["tokens_per_second"] = rate
        with tempfile.TemporaryDirectory() as folder:
            earlier = Path(folder, "earlier.json")
            earlier.write_text(json.dumps(document))
            done = hearth(*args, "--depth", "0,80", "--compare", earlier)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            rows = {re.split(r"\s\s+", line)[0]: line for line in done.stdout.splitlines()}
            for work, rate in (("prefill 32", 125), ("decode 4 at depth 0", 250)):
                figures = rows[work].removeprefix(work).split()
                self.assertEqual(figures[-2], f"{rate}.00")
                self.assertAlmostEqual(float(figures[-1]), float(figures[0]) / rate, delta=0.01)
            self.assertRegex(rows["decode 4 at depth 80"], r"\d% only in this run$")
            self.assertRegex(rows["decode 4 at depth 40"], rf"  500\.00 only in {earlier}$")
            self.assertNotIn("another", done.stdout)
            earlier.write_text(json.dumps(document | {"model": "x", "device": "y"}))
            self.assertIn("another model, another device", hearth(*args, "--depth", "0", "--compare", earlier).stdout)
            for bad in ("", "{", "[]", "7", "{}", "[" * 60000, json.dumps(document | {"results": None}),
                        json.dumps(document | {"results": [{}]}), json.dumps(document).replace("125.0", '"fast"'),
                        json.dumps(document).replace("125.0", "0"), json.dumps(document).replace("prefill", "sleep")):
                earlier.write_text(bad)
                done = hearth(*args, "--compare", earlier)
                self.assertEqual((done.returncode, done.stdout), (1, ""), bad[:200])
                self.assertEqual(done.stderr, f"hearth: cannot compare with {earlier}: it is not what `hearth bench --json` prints\n")
            self.assertEqual(hearth(*args, "--compare", MODEL).returncode, 1)
            missing = hearth(*args, "--compare", f"{folder}/nothing.json")
            self.assertEqual((missing.returncode, missing.stderr.count("\n")), (1, 1), missing.stderr)

    def test_eval(self):
        text = "The quick brown fox jumps over the lazy dog. " * 4
        kl = json.loads(hearth("eval", "kl", MODEL, "-f", "-", "--json", stdin=text).stdout)
        self.assertLess(kl["mean_kl"], 1e-4)
        one = json.loads(hearth("eval", "kl", MODEL, "-f", "-", "--json", "--tokens", "1", stdin=text).stdout)
        self.assertEqual(one["positions"], 1)
        self.assertTrue(hearth("eval", "kl", MODEL, "-f", "-", "--tokens", "1", stdin=text).stdout.startswith("1 position: "))
        self.assertTrue(hearth("eval", "ppl", MODEL, "-f", "-", "--tokens", "2", stdin=text).stdout.startswith("1 token, "))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"caf\xc3\xa9 and caf\xe9")
            file.flush()
            for kind in ("kl", "ppl", "logits"):
                bad = hearth("eval", kind, MODEL, "-f", file.name)
                self.assertEqual((bad.returncode, bad.stdout), (1, ""))
                self.assertIn(f"{file.name} is not a text: byte 13 is not UTF-8", bad.stderr)
            for args in (["-f", file.name], ["-p", os.fsdecode(b"caf\xc3\xa9 and caf\xe9")]):
                bad = hearth("run", MODEL, *args)
                self.assertEqual((bad.returncode, bad.stdout), (1, ""))
                self.assertIn("the prompt is not a text: byte 13 is not UTF-8", bad.stderr)
            bad = subprocess.run([HEARTH, "chat", BOX, "-n", "2"], input=b"caf\xe9\n", env=environment(), capture_output=True, timeout=60)
            self.assertEqual(bad.stdout, b"")
            self.assertIn(b"the message is not a text: byte 3 is not UTF-8", bad.stderr)
        none = hearth("eval", "ppl", MODEL, "-f", "-", "--tokens", "1", stdin=text)
        self.assertEqual(none.returncode, 2)
        self.assertIn("from 2 to", none.stderr)
        ppl = json.loads(hearth("eval", "ppl", MODEL, "-f", "-", "--json", stdin=text).stdout)
        self.assertGreater(ppl["perplexity"], 1)
        logits = json.loads(hearth("eval", "logits", MODEL, "-f", "-", "--top", "5", stdin=text).stdout)
        self.assertEqual(len(logits["rows"]), len(logits["ids"]))
        self.assertEqual(len(logits["rows"][0]["top"]), 5)
        # Models that cannot be compared are refused before anything is read or computed.
        other = hearth("eval", "kl", MODEL, "--reference", BOX, "-f", "/no/such/text")
        self.assertEqual(other.returncode, 2)
        self.assertIn("vocabularies", other.stderr)

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
    """The command on a pseudo-terminal; what a test leaves running is ended."""

    def __init__(self, *args, env=None):
        self.state = tempfile.mkdtemp()
        env = environment({"XDG_STATE_HOME": self.state, "TERM": "xterm"} | (env or {}))
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(HEARTH, [str(HEARTH), *args], env)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

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
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def type(self, text):
        """Sends it to the editor: what arrives before that is set up, the terminal takes as its own (it swallows a Ctrl-D
        and echoes the rest a second time)."""
        wait_until(self.edits)
        self.send(text)

    def edits(self):
        """True while the terminal is set up for editing, that is, not for lines that it echoes itself."""
        return not termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)

    def wait(self, seconds=60):
        end = time.time() + seconds
        while True:
            if not select.select([self.fd], [], [], max(0, end - time.time()))[0]:
                raise AssertionError(f"it does not end: {self.seen[-500:]!r}")
            try:
                if not (more := os.read(self.fd, 65536)):
                    break
                self.seen += more.decode(errors="replace")
            except OSError:
                break
        status = os.waitpid(self.pid, 0)[1]
        self.pid = 0
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

    def test_what_would_fail_each_turn_fails_at_the_start(self):
        for args, code in ((["--top-p", "2"], 2), (["--temperature", "-1"], 2), (["--logit-bias", "99999999=1"], 2), (["--logit-bias", "x"], 2)):
            done = hearth("chat", BOX, *args, stdin="hello\n")
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), args)
        bare = hearth("chat", MODEL, stdin="hello\n")
        self.assertEqual((bare.returncode, bare.stdout, bare.stderr.count("\n")), (1, "", 1))
        self.assertIn("no chat template", bare.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ raise_exception('not today') }}")
            file.flush()
            self.assertIn("not today", hearth("chat", BOX, "--chat-template", file.name, stdin="hello\n").stderr)

    def test_ctrl_c_stops_an_answer_to_a_pipe(self):
        process = start(*endless("chat", BOX))
        try:
            for message in ("hello", "word " * 3000):
                process.stdin.write(message + "\n")
                process.stdin.flush()
                if message == "hello":  # stopped while it is answered
                    self.assertTrue(process.stdout.read(1))
                else:  # stopped while the model reads it: the chat has it, and it is long
                    wait_until(lambda: fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) == bytes(4))
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.stderr.readline(), "[stopped]\n")
            process.stdin.write("/stats\n")
            process.stdin.flush()
            self.assertIn(" on ", process.stderr.readline())
            process.send_signal(signal.SIGINT)  # with no answer to stop it ends the input
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
        finally:
            process.kill()

    def test_ctrl_c_ends_run_with_what_it_has(self):
        process = start(*endless("run", BOX, "-p", "hello"))
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (1, ""))


@unittest.skipUnless(has_terminals(), "this system has no pseudo-terminals")
class ChatOnATerminal(unittest.TestCase):
    ARGS = ("chat", BOX, "--seed", "1", "-n", "6")

    def test_ctrl_c_stops_the_answer_only(self):
        with Terminal(*endless("chat", BOX)) as terminal:
            terminal.expect("> ")
            terminal.send("\x03")  # nothing is typed yet
            terminal.expect(r"\^C\s+> ")
            for _ in range(3):
                terminal.type("hello\n")
                terminal.expect("hello\r?\n")
                terminal.expect(r"\w")
                terminal.send("\x03")
                terminal.expect(r"\[stopped\]\s+> ")
                terminal.type("half a line")
                terminal.expect("half a line")
                terminal.send("\x03")
                terminal.expect(r"\^C\s+> ")
            terminal.type("hello\n")
            terminal.expect("hello\r?\n")
            terminal.expect(r"\w")
            terminal.send("\x03" * 5)  # all but one find nothing to stop
            terminal.expect(r"\[stopped\]")
            terminal.type("/stats\n")
            terminal.expect("tok/s")
            terminal.type("\x04")
            self.assertEqual(terminal.wait(), 0)

    def test_signals_find_the_terminal_as_it_was(self):
        for end in (signal.SIGTERM, signal.SIGHUP):
            with Terminal(*self.ARGS) as terminal:
                terminal.expect("> ")
                terminal.type("typed")
                terminal.expect("typed")
                os.kill(terminal.pid, end)
                wait_until(lambda: not terminal.edits())
                self.assertEqual(terminal.wait(), -end)

    def test_editing_goes_on_after_a_stop_and_a_resize(self):
        with Terminal(*self.ARGS) as terminal:
            terminal.expect("> ")
            terminal.type("/sys")
            terminal.expect("/sys")
            os.kill(terminal.pid, signal.SIGSTOP)
            os.waitpid(terminal.pid, os.WUNTRACED)
            cooked = termios.tcgetattr(terminal.fd)  # as a shell sets it for itself
            cooked[3] |= termios.ICANON | termios.ECHO
            termios.tcsetattr(terminal.fd, termios.TCSANOW, cooked)
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.expect("> /sys")  # shown again
            terminal.type("\x1a")  # Ctrl-Z: without a shell to return to, the system does not stop it
            terminal.expect("> /sys")
            for columns in (40, 100):
                fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
            terminal.type("tem stay\n")
            terminal.expect("system: stay")
            terminal.type("\x04")
            self.assertEqual(terminal.wait(), 0)

    def test_every_character_is_kept_whatever_the_locale(self):
        for locale in ("C", "POSIX", "C.UTF-8", "no_SUCH"):
            with Terminal(*self.ARGS, env={"LC_ALL": locale}) as terminal:
                terminal.expect("> ")
                terminal.type("/system Gr\u00fc\u00dfe \u4e16\u754c \U0001f642 caf\u00e9\n")
                terminal.expect("system: Gr\u00fc\u00dfe \u4e16\u754c \U0001f642 caf\u00e9\r?\n")
                terminal.expect("> ")
                terminal.type(b"/system a\xffb\xc3c\n")  # what is not UTF-8 is dropped
                terminal.expect("system: abc\r?\n")
                terminal.type("\x04")
                self.assertEqual(terminal.wait(), 0)

    def test_history_comes_back(self):
        with tempfile.TemporaryDirectory() as state:
            with Terminal(*self.ARGS, env={"XDG_STATE_HOME": state}) as first:
                first.expect("> ")
                first.type("/system remember me\n")
                first.expect("system: remember me")
                first.type("\x04")
                self.assertEqual(first.wait(), 0)
            with Terminal(*self.ARGS, env={"XDG_STATE_HOME": state}) as second:
                second.expect("> ")
                second.type("\x1b[A")
                second.expect("remember me")
                second.type("\n")
                second.expect("system: remember me")
                second.type("/exit\n")
                self.assertEqual(second.wait(), 0)


if __name__ == "__main__":
    unittest.main()
