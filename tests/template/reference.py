"""Hugging Face's chat template environment on jinja2, and the comparison of our engine with it.

Usage: reference.py CLI templates DIR CONVERSATIONS.json   every template with every conversation
       reference.py CLI expressions COUNT SEED             random small templates
Prints what differs and exits with 1 if anything does; with 77 if jinja2 is missing.
"""
import datetime
import functools
import json
import os
import re
import subprocess
import sys
import warnings

try:
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("jinja2 is not installed")
    sys.exit(77)

warnings.simplefilter("ignore")
NOW = datetime.datetime(2025, 7, 4, 15, 9, 26)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return env


ENV = environment()
COMPILED = functools.lru_cache(maxsize=64)(ENV.from_string)


def render(case):
    """(True, text) or (False, error)."""
    try:
        template = COMPILED(case["template"])
        # Through JSON, so that no object is shared between cases.
        context = json.loads(json.dumps(case["context"]))
        return True, template.render(bos_token="<s>", eos_token="</s>", **context)
    except Exception as error:  # a template can make Python raise anything
        return False, f"{type(error).__name__}: {error}"


def compare(cli, cases):
    process = subprocess.run([cli], input="".join(json.dumps(case) + "\n" for case in cases), capture_output=True,
                             text=True, encoding="utf-8")
    outputs = process.stdout.splitlines()
    if process.returncode != 0 or len(outputs) != len(cases):
        print(f"{cli}: exit {process.returncode} after {len(outputs)} of {len(cases)} cases\n{process.stderr[-3000:]}")
        if len(outputs) < len(cases):
            print(json.dumps(cases[len(outputs)], ensure_ascii=False))
        return 1
    different = rendered = raised = 0
    for case, line in zip(cases, outputs):
        ok, want = render(case)
        output = json.loads(line)
        if ok and re.search(" at 0x|object at|<built-in", want, re.IGNORECASE):
            continue  # Python printed an address
        rendered += ok
        raised += not ok
        if ok == output["ok"] and (not ok or want == output["text"]):
            continue
        different += 1
        if different <= int(os.environ.get("SHOW", "20")):
            print(f"--- {case['name']}")
            if len(case["template"]) < 300:
                print("template:", case["template"])
            print("jinja2:", repr(want) if len(want) < 300 else locate(want, output.get("text", "")))
            print("hearth:", repr(output.get("text", output.get("error")))[:600])
    print(f"{len(cases)} cases: jinja2 rendered {rendered} and raised {raised}; {different} differ")
    return 1 if different else 0


def locate(want, got):
    """The surroundings of the first difference."""
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    return f"differs at {at}: {want[max(0, at - 40):at + 60]!r} against {got[max(0, at - 40):at + 60]!r}"


def main():
    cli, mode = sys.argv[1:3]
    cases = []
    if mode == "templates":
        directory, conversations = sys.argv[3:5]
        with open(conversations, encoding="utf-8") as file:
            conversations = json.load(file)
        for name in sorted(os.listdir(directory)):
            if not name.endswith(".jinja"):
                continue
            with open(os.path.join(directory, name), encoding="utf-8", newline="") as file:
                template = file.read()
            for conversation, context in conversations.items():
                cases.append({"name": f"{name} {conversation}", "template": template, "context": context})
    else:
        import generate
        cases = generate.cases(int(sys.argv[3]), int(sys.argv[4]))
    return compare(cli, cases)


if __name__ == "__main__":
    sys.exit(main())
