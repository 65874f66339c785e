"""Step 1: samples the teacher and writes answers-N.jsonl.xz: [prompt index, text, ended] a line.

    python3 sample.py TEACHER.gguf OUT --seconds 240 [--share 0/2]

--share I/N takes every Nth prompt from I on: N devices sample at once.
"""
import argparse
import json
import lzma
import multiprocessing
import time
from pathlib import Path

import torch

import prompts
import teacher as teaching

COUNT, SEED, PARTS = 500000, 11, 2
SYSTEM = "You are a helpful assistant who answers briefly in simple English."
_write = None


def _part(i):
    bpe, finished = _write
    size = (len(finished) + PARTS * 4 - 1) // (PARTS * 4)
    text = "".join(
        json.dumps([at, bpe.decode(ids), ended]) + "\n" for at, ids, ended in finished[i * size : (i + 1) * size]
    )
    return lzma.compress(text.encode(), preset=4)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("teacher"), a.add_argument("out")
    a.add_argument("--seconds", type=float, default=240)
    a.add_argument("--count", type=int, default=COUNT)
    a.add_argument("--rows", type=int, default=4096)
    a.add_argument("--length", type=int, default=400)
    a.add_argument("--workers", type=int, default=16)
    a.add_argument("--share", default="0/1")
    a = a.parse_args()
    began = time.time()
    log = lambda *x: print(f"[{time.time() - began:.0f}]", *x, flush=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_grad_enabled(False)
    t = teaching.Teacher(a.teacher, device, torch.bfloat16 if device == "cuda" else torch.float32)
    log("teacher loaded")
    share, shares = map(int, a.share.split("/"))
    made = prompts.make(a.count, SEED)[share::shares]
    asks = [t.bpe.encode(f"<|im_start|>user\n{p['ask']}<|im_end|>\n<|im_start|>assistant\n") for p in made]
    log(f"{len(asks)} prompts, longest {max(map(len, asks))} ids")
    finished = t.sample(
        asks,
        [p["limit"] for p in made],
        SYSTEM,
        a.rows,
        a.length,
        a.seconds,
        temperatures=[p["temperature"] for p in made],
        seed=SEED + share,
        log=log,
    )
    ids = sum(len(x) for _, x, _ in finished)
    log(
        f"{len(finished)} answers, {ids} ids, {sum(e for *_, e in finished) / max(1, len(finished)):.2f} ended by themselves"
    )
    for at, x, ended in finished[:: max(1, len(finished) // 12)][:12]:
        log("SAMPLE", made[at]["ask"], "->", ended, repr(t.bpe.decode(x)))
    global _write
    _write = (t.bpe, [(at * shares + share, x, ended) for at, x, ended in finished])
    with multiprocessing.get_context("fork").Pool(a.workers) as pool:
        blobs = pool.map(_part, range(PARTS * 4))
    for i in range(PARTS):
        (Path(a.out) / f"answers-{share}-{i}.jsonl.xz").write_bytes(b"".join(blobs[4 * i : 4 * i + 4]))
    log(f"written: {sum(map(len, blobs))} bytes")


if __name__ == "__main__":
    main()
