#!/usr/bin/env python3
"""How long clients that are being answered wait, and how fast they go on, while another one's long prompt is read:
gap_test.py PATH/TO/hearth MODEL PROMPT_TOKENS DECODERS [MOST_SECONDS]

MODEL: a GGUF file, or a preset of `hearth synth`, whose model is made for the test."""
import json
import random
import subprocess
import sys
import tempfile
import threading
import time

MODEL, TOKENS, DECODERS, MOST = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]) if len(sys.argv) > 5 else 0.5
del sys.argv[2:]
from serve_test import HEARTH, Serve


def decode(server, seed, arrivals, stop):
    """Notes when each piece of an endless answer arrives."""
    connection = server.connect(timeout=None)
    body = {"prompt": f"Once upon a time {seed}", "max_tokens": 7000, "ignore_eos": True, "temperature": 1, "seed": seed, "stream": True,
            "logit_bias": {"97": 100}}  # made-up models have many tokens without text
    connection.request("POST", "/v1/completions", json.dumps(body))
    response = connection.getresponse()
    while not stop.is_set() and (line := response.readline()):
        if line.startswith(b"data: {"):
            arrivals.append(time.time())
    connection.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = MODEL
        if not model.endswith(".gguf"):
            model = f"{folder}/{MODEL}.gguf"
            subprocess.run([HEARTH, "synth", MODEL, model], check=True)
        measure(model)


def measure(model):
    server = Serve(model=model, context=TOKENS + DECODERS * 8000 + 2000)
    arrivals, stop = [[] for _ in range(DECODERS)], threading.Event()
    threads = [threading.Thread(target=decode, args=(server, i, arrivals[i], stop)) for i in range(DECODERS)]
    for thread in threads:
        thread.start()
    while min(len(a) for a in arrivals) < 20:
        time.sleep(0.05)
    alone_since = time.time()
    time.sleep(2)
    rng = random.Random(1)
    prompt = [rng.randrange(1000, 10_000) for _ in range(TOKENS)]
    begin = time.time()
    status, _, answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1}, timeout=None)
    end = time.time()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    server.stop()
    assert status == 200, answer
    assert all(times[-1] > end for times in arrivals), "an answer ended before the prompt was read"
    gaps = [b - a for times in arrivals for a, b in zip(times, times[1:]) if b >= begin and a <= end]
    rate = lambda since, until: sum(1 for times in arrivals for t in times if since <= t <= until) / (until - since)
    alone, beside = rate(alone_since, begin), rate(begin, end)
    print(f"prompt of {TOKENS} tokens read in {end - begin:.1f} s beside {DECODERS} answers, which went on at {beside:.1f} of {alone:.1f} tok/s "
          f"together; worst gap {max(gaps):.3f} s")
    assert max(gaps) <= MOST, max(gaps)
    assert beside > alone / 7, (beside, alone)  # the share is 0.3; the answers read ever more keys


if __name__ == "__main__":
    main()
