"""Stands between a client and the server, and writes down what the client sends."""
import contextlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools" / "traces"))
from record_trace import proxy  # noqa: E402

# What can matter to the server. Keys and the names of machines and people are not kept.
HEADERS = ("anthropic-version", "anthropic-beta", "accept", "content-type")
SECRET = ("user_id", "prompt_cache_key", "client_metadata")


def shortened(value):
    """Without the text that clients bring along, but with all of its structure."""
    if isinstance(value, str):
        return value if len(value) <= 64 else value[:32] + " ..."
    if isinstance(value, list):
        return [shortened(v) for v in value]
    if isinstance(value, dict):
        return {k: "left out" if k in SECRET and isinstance(v, str) else shortened(v) for k, v in value.items()
                if not (k in SECRET and not isinstance(v, str))}
    return value


@contextlib.contextmanager
def Recorder(port, path):
    """The port for the client: the server's own when there is nothing to write."""
    if not path:
        yield port
        return
    requests = []

    def exchanged(exchange):
        if exchange.status == 200:
            requests.append({"method": exchange.method, "path": exchange.target,
                             "headers": {k: v for k, v in exchange.headers.items() if k.lower() in HEADERS}, "body": shortened(exchange.body)})

    try:
        with proxy(f"http://127.0.0.1:{port}", 0, exchanged) as recorder:
            yield recorder
    finally:
        Path(path).write_text(json.dumps(requests, indent=1, ensure_ascii=False) + "\n")
