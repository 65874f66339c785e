#!/usr/bin/env python3
"""No turn of an agent computes again what was computed before: traces_test.py PATH/TO/hearth [SCALE [COPIES]].

Replays the synthetic traces against `hearth serve` and the model in the box. On each request the computed tokens are at
most those that are new in its prompt and 16."""
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HEARTH = Path(sys.argv[1]).resolve()
SCALE, COPIES = (sys.argv[2:] + ["0.002", "2"][len(sys.argv) - 2:])[:2]
ROOT = Path(__file__).resolve().parent.parent.parent


def replay(trace, url, *flags):
    done = subprocess.run([HEARTH, "bench", "agent", trace, "--url", url, "--time-scale", "0", "--check-cache", "--json", *flags], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main():
    environment = os.environ | {"XDG_CONFIG_HOME": "/nonexistent"}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("R2", "R3", "R4", "R5", "R6", "R7", "MIX"):
            trace = f"{folder}/{kind}"
            subprocess.run([sys.executable, ROOT / "tools" / "traces" / "make_traces.py", kind, "--scale", SCALE, "--output-tokens", "6", "-o", trace], check=True)
            # Room for all that is said: what had to go would be computed again. R7 finds it in host memory.
            room = ["-c", "262144"] if kind != "R7" else ["-c", str(max(512, round(30000 * float(SCALE)))), "--cache-ram", "1GiB"]
            server = subprocess.Popen([HEARTH, "serve", ROOT / "models" / "pocket-dense.gguf", *room, "--port", "0"], stderr=subprocess.PIPE, text=True, env=environment)
            try:
                url = next(line.split()[-1] for line in server.stderr if line.startswith("Listening on "))
                threading.Thread(target=server.stderr.read, daemon=True).start()  # the log must not fill its pipe
                report = replay(trace, url, "--concurrency-scale", COPIES)
                tokens = report["tokens"]
                print(f"{kind}: {report['requests']} requests, {tokens}, worst time to first token {report['ttft_seconds']['max']:.2f} s", flush=True)
                assert tokens["most_computed_again"] == 0, tokens
                assert kind == "MIX" or tokens["cached"] > tokens["computed"], tokens  # people share little
            finally:
                server.terminate()
                assert server.wait(60) == 0


if __name__ == "__main__":
    main()
