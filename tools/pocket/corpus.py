"""Step 1: writes training text as packed ids, in chunks that train.py may read while later ones are still being made.

    python3 corpus.py VOCABULARY.gguf DATA --chunks 400   # tokenizer.json, held.npz, train-NNNN.npz
"""
import argparse
import collections
import json
import multiprocessing
import os
import random
from pathlib import Path

import numpy as np

import asks
import bpe
import chat
import fresh
import gguf
import stories
import synthetic

ROW = 1026  # ids of one training row: 1,024 inputs and the two ids that follow
SEED = 23
DOCUMENTS = 3000  # a chunk
STORIES = 0.26  # share of the documents

THOUGHTS = [
    "The user wants a story about {}. I will write a short one in simple words.",
    "I will write a short story about {} with a clear ending.",
    "A short story about {}. I keep it simple.",
]


def repeats(words, size, most):
    """Whether a run of `size` words occurs more than `most` times."""
    seen = collections.Counter(tuple(words[i : i + size]) for i in range(len(words) - size + 1))
    return bool(seen) and max(seen.values()) > most


def _weigh(segments, weight):
    """Loss weights in place of marks; short answers count more than the many ids of stories."""
    return [(text, weight * int(flag)) for text, flag in segments]


def story_document(r):
    topic, text = stories.make(r)
    if asks.held_out(topic):
        return None
    x = r.random()
    if x < 0.08:  # plain text
        return [(text, 1)]
    ask = r.choice(asks.ANY_STORY) if x < 0.12 else asks.story(r, topic)
    thought = r.choice(THOUGHTS).format(topic) if x > 0.12 and r.random() < 0.06 else None
    messages = [synthetic.user(synthetic.loosen(r, ask)), synthetic.said(text, reasoning=thought)]
    if r.random() < 0.08:
        topic, text = stories.make(r)
        if asks.held_out(topic):
            return None
        messages += [synthetic.user(r.choice(asks.MORE)), synthetic.said(text)]
    while r.random() < 0.12:
        question, answer = synthetic.one_turn(r)
        messages += synthetic.small_talk(r) if r.random() < 0.5 else [synthetic.user(question), synthetic.said(answer)]
    if r.random() < 0.12:
        messages = synthetic.small_talk(r) + messages
    if r.random() < 0.2:
        messages = [dict(role="system", content=r.choice(synthetic.SYSTEMS))] + messages
    return (
        None
        if any(asks.held_out(m["content"]) for m in messages if m["role"] == "user")
        else _weigh(chat.segments(messages), 1)
    )


def other_document(r):
    _, messages, tools = synthetic.conversation(r)
    if any(asks.held_out(m["content"]) for m in messages if m["role"] == "user"):
        return None
    return _weigh(chat.segments(messages, tools), 2)


def documents(seed, count):
    r, out = random.Random(seed), []
    while len(out) < count:
        document = story_document(r) if r.random() < STORIES else other_document(r)
        if document:
            out.append(document)
    return out


def load_tokenizer(values):
    specials = {t: values["tokens"].index(t) for t in values["specials"]}
    return bpe.Bpe(values["tokens"], [tuple(m) for m in values["merges"]], specials)


def vocabulary(path):
    """That of a shipped file, as tokenizer.json holds it."""
    meta = gguf.Reader(path).meta
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    return dict(
        tokens=tokens,
        merges=[x.split(" ") for x in meta["tokenizer.ggml.merges"]],
        specials=[t for t, k in zip(tokens, kinds) if k != 1],
    )


def _encode(tokenizer, document):
    ids, learn = [], []
    for text, flag in document:
        part = tokenizer.encode(text)
        ids += part
        learn += [flag] * len(part)
    return ids, learn


def pack(encoded, end):
    """Rows of ROW ids; each begins with a document; the last document of a row is cut. Loss weights beside."""
    rows, marks, ids, learn = [], [], [], []
    for one, flags in encoded:
        ids += [end] + one if ids else one
        learn += [0] + flags if learn else flags
        if len(ids) >= ROW:
            rows.append(ids[:ROW])
            marks.append(learn[:ROW])
            ids, learn = [], []
    return np.array(rows, np.uint16), np.array(marks, np.uint8)


_tokenizer = None


def _chunk(job):
    """Writes one file; it appears under its name only when it is whole."""
    path, seed, count = job
    if len(_tokenizer.cache) > 400000:  # words to copy are new every time
        _tokenizer.cache.clear()
    ids, learn = pack([_encode(_tokenizer, d) for d in documents(seed, count)], _tokenizer.specials["<|endoftext|>"])
    part = path.with_suffix(".part")
    with open(part, "wb") as f:
        np.savez(f, ids=ids, learn=learn)
    os.rename(part, path)
    return ids.size, int((learn > 0).sum())


def main():
    global _tokenizer
    a = argparse.ArgumentParser()
    a.add_argument("vocabulary"), a.add_argument("data")
    a.add_argument("--chunks", type=int, default=400)
    a.add_argument("--first", type=int, default=1, help="number of the first chunk; others give other text")
    a.add_argument("--workers", type=int, default=os.cpu_count())
    a = a.parse_args()
    out = Path(a.data)
    out.mkdir(parents=True, exist_ok=True)
    values = vocabulary(a.vocabulary)
    fresh.use(values["tokens"])
    _tokenizer = load_tokenizer(values)
    jobs = [(out / "held.npz", SEED, 2 * DOCUMENTS // 3)]
    jobs += [(out / f"train-{i:04d}.npz", SEED * 100000 + i, DOCUMENTS) for i in range(a.first, a.first + a.chunks)]
    (out / "tokenizer.json").write_text(json.dumps(values))
    total = learned = 0
    with multiprocessing.get_context("fork").Pool(a.workers) as pool:
        for i, (ids, learn) in enumerate(pool.imap(_chunk, jobs)):
            total, learned = total + ids, learned + learn
            if i % 50 == 0 or i == len(jobs) - 1:
                print(f"[corpus] {i} chunks, {total / 1e6:.1f} M ids, {learned / 1e6:.1f} M learned", flush=True)


if __name__ == "__main__":
    main()
