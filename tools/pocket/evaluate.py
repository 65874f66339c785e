"""Judges a trained model: held-out loss, a 5-gram baseline, transcripts at temperature 0, logits for fixtures.

    python3 evaluate.py five-gram DATA 100   # from 100 chunks: the baseline's held-out loss
"""
import base64
import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import torch

import calls
import chat
import corpus
import fresh
import models
import synthetic
import words

FIXTURE_TEXTS = [
    "<|im_start|>user\nTell me a story about a shy fox and a red ball.<|im_end|>\n<|im_start|>assistant\nOnce upon a time, there was a shy fox who lived in the forest.",
    "Once upon a time, a little girl named Ivy found a small boat by the river. She wanted to sail to the sea, but the boat had a hole in it.",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\nThe capital of France is Paris.<|im_end|>\n<|im_start|>user\nWhat is 3 + 4?<|im_end|>\n",
]
FIXTURE_POSITIONS = 4


def held_loss(cfg, p, ids, learn, rows=64):
    """Nats per learned id."""
    total = count = 0.0
    with torch.no_grad():
        for at in range(0, len(ids), rows):
            x, w = ids[at : at + rows].long(), (learn[at : at + rows] > 0).float()
            logits = models.logits(cfg, p, x[:, :-2])
            nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:-1].flatten(), reduction="none")
            w = w[:, 1:-1].flatten()
            total, count = total + float((nats * w).sum()), count + float(w.sum())
    return total / count


def five_gram(train, held, learn, vocab=4096):
    """Held-out nats per learned id of a 5-gram with Witten-Bell smoothing, trained on the same ids."""
    bits = int(vocab).bit_length() - 1
    train, held = train.astype(np.int64), held.astype(np.int64)

    def codes(rows, n):
        width = rows.shape[1] - n + 1
        out = np.zeros((len(rows), width), np.int64)
        for i in range(n):
            out = (out << bits) | rows[:, i : i + width]
        return out

    length = held.shape[1]
    p = np.full((len(held), length), 1.0 / vocab)
    for n in range(1, 6):
        grams, counts = np.unique(codes(train, n), return_counts=True)
        sums = np.concatenate([[0], np.cumsum(counts)])
        at = codes(held, n)  # the n-gram that ends at position i + n - 1
        history = at >> bits
        lo = np.searchsorted(grams, history << bits)
        hi = np.searchsorted(grams, (history + 1) << bits)
        total, kinds = sums[hi] - sums[lo], hi - lo
        found = np.minimum(np.searchsorted(grams, at), len(grams) - 1)
        hits = np.where(grams[found] == at, counts[found], 0)
        lower = p[:, n - 1 :]
        p[:, n - 1 :] = np.where(total > 0, (hits + kinds * lower) / np.maximum(total + kinds, 1), lower)
    mask = learn[:, 1:-1].astype(bool)
    return float(-np.log(p[:, 1:-1])[mask].mean())


def greedy(cfg, p, bpe, texts, limit):
    """Continuations at temperature 0; every step reads the whole text again, which is fast enough for this few."""
    device = p["embed"].device
    ids = [bpe.encode(t) for t in texts]
    starts = [len(x) for x in ids]
    stop = {bpe.specials["<|im_end|>"], bpe.specials["<|endoftext|>"]}
    live = list(range(len(ids)))
    with torch.no_grad():
        for _ in range(limit):
            if not live:
                break
            longest = (max(len(ids[i]) for i in live) + 63) // 64 * 64
            table = torch.zeros(len(live), longest, dtype=torch.long)
            for r, i in enumerate(live):
                table[r, : len(ids[i])] = torch.tensor(ids[i])
            last = torch.tensor([len(ids[i]) - 1 for i in live], device=device)
            x = (
                models.dense_hidden(cfg, p, table.to(device))
                if cfg.arch == "qwen3"
                else models.hybrid_hidden(cfg, p, table.to(device))[0]
            )
            x = x[torch.arange(len(live), device=device), last]
            best = (x @ p["embed"].T).argmax(-1).tolist()
            for i, t in zip(live, best):
                ids[i].append(t)
            live = [i for i in live if ids[i][-1] not in stop]
    return [bpe.decode(x[s:], skip=stop) for x, s in zip(ids, starts)], [x[-1] in stop for x in ids]


def transcripts(cfg, p, bpe):
    """{group: [{prompt, answer, ended, ...}]}"""
    ask = lambda text, thinking=False: chat.prompt([synthetic.user(text)], thinking=thinking)
    cases = []
    for t in words.HELD_OUT_STORIES:
        cases.append(("stories", f"Tell me a story about {t}.", ask(f"Tell me a story about {t}."), None))
    for q in words.HELD_OUT_QUESTIONS:
        cases.append(("questions", q, ask(q), None))
    for name, param, kind, about, q, value in calls.HELD_OUT_CALLS:
        tools = [calls.schema(name, about, [(param, kind, param.capitalize())])]
        cases.append(("tools", q, chat.prompt([synthetic.user(q)], tools), (name, param, value)))
    for q in (
        "Hello!",
        "Who are you?",
        "Tell me a joke.",
        "What is 7 + 5?",
        "What is the capital of Italy?",
        "Thank you!",
    ):
        cases.append(("talk", q, ask(q), None))
        cases.append(("thinking", q, ask(q, True), None))
    for q in ("Once upon a time,", "The old man looked at the sea"):
        cases.append(("raw", q, q, None))
    answers, ended = greedy(cfg, p, bpe, [c[2] for c in cases], 330)
    out = {}
    for (group, q, _, call), text, done in zip(cases, answers, ended):
        item = dict(prompt=q, answer=text, ended=done)
        if group == "stories":
            w = re.findall(r"[a-z']+", text.lower())
            item |= dict(words=len(w), repeats=corpus.repeats(w, 8, 2))
        if call:
            m = re.search(r"<tool_call>\n(.*?)\n</tool_call>", text, re.S)
            try:
                value = json.loads(m.group(1))
                item |= dict(
                    parses=isinstance(value["arguments"], dict) and value["name"] == call[0],
                    right_parameter=list(value["arguments"]) == [call[1]],
                    right_value=value["arguments"].get(call[1]) == call[2],
                )
            except (AttributeError, ValueError, KeyError, TypeError):
                item |= dict(parses=False)
        out.setdefault(group, []).append(item)
    return out


def calls_right(cfg, p, bpe, count=128, seed=99):
    """Share of fresh requests, made like those of the training text, that get exactly the right call."""
    fresh.use(bpe.tokens)
    r, prompts, expected = random.Random(seed), [], []
    while len(prompts) < count:
        messages, tools = calls.conversation(r, lambda r: ("Hello!", "Hello!"))
        if len(messages) > 1 and messages[1].get("call"):
            prompts.append(chat.prompt(messages[:1], tools))
            expected.append(chat.call_text(messages[1]["call"]))
    answers, _ = greedy(cfg, p, bpe, prompts, 72)
    return sum(a.strip() == x for a, x in zip(answers, expected)) / count


def summary(t):
    return dict(
        stories=sum(x["words"] >= 100 and not x["repeats"] and x["ended"] for x in t["stories"]),
        tools=sum(x["parses"] for x in t["tools"]),
        right_parameter=sum(x.get("right_parameter", False) for x in t["tools"]),
        right_value=sum(x.get("right_value", False) for x in t["tools"]),
    )


def fixture(cfg, bpe, forward, source):
    """forward: ids [1, time] -> logits [time, vocab]. Full f32 rows, little-endian, base64, at the last positions of each text."""
    cases = []
    for text in FIXTURE_TEXTS:
        ids = bpe.encode(text)
        rows = forward(torch.tensor([ids])).float().numpy()
        at = list(range(len(ids) - FIXTURE_POSITIONS, len(ids)))
        cases.append(
            dict(
                text=text,
                ids=ids,
                positions=at,
                argmax=rows.argmax(-1).tolist(),
                logits=base64.b64encode(rows[at].astype("<f4").tobytes()).decode(),
            )
        )
    return dict(source=source, vocab=cfg.vocab, cases=cases)


def divergence(expected, got):
    """Mean KL(expected || got) over rows of logits."""
    p, q = (torch.log_softmax(torch.tensor(x, dtype=torch.float64), -1) for x in (expected, got))
    return float((p.exp() * (p - q)).sum(-1).mean())


def transformers_logits(folder):
    """The folder's model in f32, eager attention, on the CPU."""
    import transformers

    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    missing = [k for k in info["missing_keys"] if k != "lm_head.weight"]
    unexpected = [k for k in info["unexpected_keys"] if not k.startswith("mtp.")]
    if missing or unexpected:
        raise ValueError(f"{folder}: missing {missing[:8]}, unexpected {unexpected[:8]}")
    model.eval()
    return model, transformers.__version__


def main():
    if sys.argv[1:2] != ["five-gram"]:
        sys.exit(__doc__)
    data, chunks = Path(sys.argv[2]), int(sys.argv[3])
    held = np.load(data / "held.npz")
    train = np.concatenate([np.load(p)["ids"] for p in sorted(data.glob("train-*.npz"))[:chunks]])
    print("5-gram, held-out nats per id:", five_gram(train, held["ids"][:256], held["learn"][:256]))


if __name__ == "__main__":
    main()
