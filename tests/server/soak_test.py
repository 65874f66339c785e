#!/usr/bin/env python3
"""Many clients that come and go at random: soak_test.py PATH/TO/hearth [REQUESTS]. Nothing may stay behind: no sequence,
no page, no memory, no connection that is not served."""
import json
import os
import random
import socket
import struct
import sys
import threading
import time

COUNT = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 10_000
from serve_test import Serve, wait_until

CLIENTS = 24
WORDS = "fox dog story once upon time there was garden sun rain friend and the a little big".split()


def text(random, words):
    return " ".join(random.choices(WORDS, k=words))


def request(random):
    """A path and a body, some of them wrong."""
    long = random.random() < 0.1
    words = random.randint(200, 1500) if long else random.randint(1, 60)
    options = {"max_tokens": random.choice([1, 4, 16, 64]), "temperature": random.choice([0, 1]), "stream": random.random() < 0.6}
    messages = [{"role": "user", "content": text(random, words)}]
    if random.random() < 0.3:  # another turn of the same few conversations
        topic = __import__("random").Random(random.randint(0, 5))
        messages = [{"role": "user", "content": text(topic, 80)}, {"role": "assistant", "content": text(topic, 20)}, *messages]
    kind = random.random()
    if kind < 0.5:
        if random.random() < 0.1:
            options["n"] = 2
        if random.random() < 0.1:
            options["response_format"] = {"type": "json_object"}
        return "/v1/chat/completions", options | {"messages": messages}
    if kind < 0.75:
        return "/v1/completions", options | {"prompt": text(random, words)}
    if kind < 0.85:
        return "/tokenize", {"content": text(random, words)}
    return random.choice([
        ("/v1/chat/completions", options | {"messages": "x"}),
        ("/v1/chat/completions", options | {"messages": messages, "temperature": -1}),
        ("/v1/completions", options | {"prompt": [[]]}),
        ("/v1/nothing", {}),
    ])


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Soak:
    def __init__(self, server):
        self.server = server
        self.lock = threading.Lock()
        self.left = COUNT
        self.done = {}
        self.faults = []

    def note(self, outcome):
        with self.lock:
            self.done[outcome] = self.done.get(outcome, 0) + 1

    def client(self, seed):
        rng = random.Random(seed)
        while True:
            with self.lock:
                if self.left <= 0 or self.faults:
                    return
                self.left -= 1
            try:
                self.once(rng)
            except Exception as error:  # whatever it is ends the soak and is told
                with self.lock:
                    self.faults.append(repr(error))
                return

    def once(self, rng):
        path, body = request(rng)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        leave = rng.random() < 0.4
        with self.server.socket() as s:
            if leave and rng.random() < 0.2:  # in the middle of the request
                s.sendall((head + data)[: rng.randrange(len(head + data))])
                return self.note("left early")
            s.sendall(head + data)
            if leave:
                s.settimeout(rng.random() * 0.2 + 0.001)
                try:
                    for _ in range(rng.randint(0, 5)):
                        s.recv(4096)
                except TimeoutError:
                    pass
                if rng.random() < 0.5:  # with a reset
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return self.note("left")
            answer = b""
            while piece := s.recv(65536):
                answer += piece
        status = int(answer.split(b" ", 2)[1])
        if status not in (200, 400, 404, 503):
            raise AssertionError(f"{status} for {path} {data[:300]}: {answer[:500]}")
        if status == 200 and body.get("stream") and b"data: [DONE]" not in answer:
            raise AssertionError(f"no end of the stream of {path}: {answer[-500:]}")
        self.note(status)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def run(self):
        files = self.open_files()
        threads = [threading.Thread(target=self.client, args=(seed,)) for seed in range(CLIENTS)]
        begin = time.time()
        for thread in threads:
            thread.start()
        settled = None
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.5)
            if settled is None and self.left < COUNT * 3 / 4:  # by now everything has been used once
                settled = resident_bytes(self.server.process.pid)
        assert not self.faults, self.faults
        wait_until(lambda: self.server.active() == 0)
        state = self.server.get("/v1/cache")[2]
        assert state["pages_in_use"] == 0, state
        cleared = self.server.ask("DELETE", "/v1/cache")[2]
        assert cleared["pages_cached"] == 0 and cleared["pages_in_use"] == 0, cleared
        growth = resident_bytes(self.server.process.pid) - settled
        print(f"{COUNT} requests in {time.time() - begin:.0f} s: {self.done}; resident memory grew by {growth / 1e6:.1f} MB in the last three quarters")
        assert growth < 8e6, growth
        status, _, answer = self.server.chat()
        assert status == 200, answer
        assert self.open_files() <= files + 2, (self.open_files(), files)


if __name__ == "__main__":
    # So small a context that every page of it has been touched when memory is looked at first.
    server = Serve("--queue", "40", "--parallel", "8", "--cache-ram", "32MiB", context=4096)
    try:
        Soak(server).run()
    finally:
        code = server.stop()
    assert code == 0, "".join(server.lines[-20:])
