"""A model server that says what a test tells it to, and remembers what it was asked."""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def openai_chunks(text="hello there", usage=True, finish=True):
    """The events of one streamed answer of the OpenAI protocol, one for each word."""
    chunks = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]
    chunks += [{"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in text.split()]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": len(text.split()),
                                                "prompt_tokens_details": {"cached_tokens": 60}}})
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + ("data: [DONE]\n\n" if finish else "")


def anthropic_events(text="hello there"):
    events = [{"type": "message_start", "message": {"usage": {"input_tokens": 40, "cache_read_input_tokens": 60}}},
              {"type": "ping"}, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
    events += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in text.split()]
    events += [{"type": "content_block_stop", "index": 0},
               {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": len(text.split())}},
               {"type": "message_stop"}]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # many clients at once: five would be turned away


class MockServer:
    """with MockServer(...) as server: server.url, server.requests (path, headers, body). `models` may be a function; when
    it gives None the server says 503."""

    def __init__(self, models=None, answer=None, props=None, key=None):
        self.models = [{"id": "mock", "context_length": 100000}] if models is None else models
        self.answer = answer or (lambda handler, body, number: handler.stream(openai_chunks()))
        self.props, self.key = props, key
        self.requests = []

    def __enter__(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body, kind="application/json"):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self, text, size=None, cut=None, pause=0):
                """In chunks of `size` bytes; `cut`: the connection ends after so many bytes."""
                data = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                size = size or len(data)
                for at in range(0, len(data[:cut]), size):
                    piece = data[:cut][at : at + size]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                    if pause:
                        time.sleep(pause)
                if cut is not None:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            def do_GET(self):
                if owner.key and self.headers.get("Authorization") != f"Bearer {owner.key}":
                    self.reply(401, {"error": {"message": "no key"}})
                elif self.path == "/v1/models":
                    models = owner.models() if callable(owner.models) else owner.models
                    self.reply(503 if models is None else 200, {"object": "list", "data": models})
                elif self.path == "/props" and owner.props:
                    self.reply(200, owner.props)
                else:
                    self.reply(404, {"error": {"message": "not here"}})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.requests.append((self.path, dict(self.headers), body))
                try:
                    owner.answer(self, body, len(owner.requests) - 1)
                except (BrokenPipeError, ConnectionResetError):
                    pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
