#!/usr/bin/env python3
"""Checks what a compiler does not: formatting, include directions between layers, words that must not stay.

    python3 tools/lint.py [FILE...]      without files: every tracked C++ source
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folder -> folders it may include (beside itself and "hearth/"). The arrows of docs/architecture.md.
MAY_INCLUDE = {
    "base": set(),
    "quant": {"base"},
    "files": {"base", "quant"},
    "text": {"base", "files"},
    "text/template": {"base"},
    "text/output": {"base"},
    "text/grammar": {"base", "text"},
    "graph": {"base", "quant", "files"},
    "plan": {"base", "graph"},
    "models": {"base", "quant", "files", "graph"},
    "memory": {"base"},
    "backends": {"base", "quant", "files", "graph", "plan"},
    "engine": {"base", "quant", "files", "text", "text/template", "text/output", "text/grammar", "graph", "plan", "models", "memory", "backends"},
    "server": {"base"},
    "cli": {"base", "quant", "files", "server"},
}
# Only these headers of backends/ may be included from other folders.
BACKEND_INTERFACE = {"backends/backend.h", "backends/probe.h"}
# What backends share among themselves.
BACKEND_COMMON = {"backends/step_check.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
WORDS = re.compile(r"\b(TODO|FIXME|XXX)\b")


def folder_of(path: str) -> str:
    """The layer of a path below src/: its folder, those below text/ apart, a backend's own folder folded up."""
    parts = path.split("/")[:-1]
    if parts[0:1] == ["text"] and len(parts) > 1:
        return "/".join(parts[:2])
    return parts[0] if parts else ""


def check_includes(name: str, text: str) -> list[str]:
    if not name.startswith("src/"):
        return []
    inside = name.removeprefix("src/")
    layer = folder_of(inside)
    problems = []
    for include in INCLUDE.findall(text):
        if include.startswith("hearth/"):
            continue
        target = folder_of(include)
        if target == layer:
            if layer == "backends" and include not in BACKEND_INTERFACE | BACKEND_COMMON and include.split("/")[1] != inside.split("/")[1]:
                problems.append(f"{name}: one backend includes another: {include}")
            continue
        if target not in MAY_INCLUDE.get(layer, set()):
            problems.append(f"{name}: {layer}/ may not include {include}")
        elif target == "backends" and include not in BACKEND_INTERFACE:
            problems.append(f"{name}: only {sorted(BACKEND_INTERFACE)} may be included from outside backends/: {include}")
    return problems


def main() -> int:
    names = sys.argv[1:] or subprocess.run(
        ["git", "ls-files", "*.cpp", "*.h", "*.cu", "*.cuh"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    problems = []
    for name in names:
        text = (ROOT / name).read_text()
        problems += check_includes(name, text)
        problems += [f"{name}: unfinished work is marked {word}" for word in WORDS.findall(text)]
        if name.endswith((".h", ".cuh")) and "#pragma once" not in text:
            problems.append(f"{name}: has no #pragma once")
    for problem in problems:
        print(problem, file=sys.stderr)
    formatted = subprocess.run(["clang-format", "--dry-run", "--Werror", *names], cwd=ROOT)
    print(f"lint: {len(names)} files, {len(problems)} problems" + ("" if formatted.returncode == 0 else ", badly formatted"))
    return 1 if problems or formatted.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
