"""Stands between a client and the server, and writes down what the client sends."""
import contextlib
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            connection.request(self.command, self.path, data or None, {k: v for k, v in self.headers.items() if k.lower() != "host"})
            response = connection.getresponse()
            with contextlib.suppress(ValueError):
                entry = {"method": self.command, "path": self.path,
                         "headers": {k: v for k, v in self.headers.items() if k.lower() in HEADERS},
                         "body": shortened(json.loads(data)) if data else None}
                if response.status == 200:
                    requests.append(entry)
            self.send_response(response.status)
            for name, value in response.headers.items():
                if name.lower() in ("content-type", "request-id"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                while piece := response.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
            connection.close()
            self.close_connection = True

        do_GET = do_POST = do_DELETE = do_HEAD = forward

        def log_message(self, *_):
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield proxy.server_address[1]
    finally:
        proxy.shutdown()
        proxy.server_close()
        Path(path).write_text(json.dumps(requests, indent=1, ensure_ascii=False) + "\n")
