"""Step 2: from the teacher's answers and the templates to packed ids: filter, deduplicate, train the tokenizer, encode.

    python3 corpus.py DATA   # reads DATA/answers-*.jsonl.xz; writes tokenizer.json, train.npz, held.npz there
"""
import argparse
import collections
import json
import lzma
import multiprocessing
import random
import re
from pathlib import Path

import numpy as np

import bpe
import chat
import knowledge
import prompts
import stories
import synthetic

ROW = 1026  # ids of one training row: 1,024 inputs and the two ids that follow
VOCAB = 4096

_FOLD = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": " - ",
    "\u2026": "...",
    "\u00e9": "e",
    "\u00e8": "e",
    "\u00ef": "i",
    "\u00f1": "n",
    "\u00e7": "c",
    "\u00a0": " ",
    "\u00b0": " degrees",
}
_BAD = re.compile(
    r"\b(AI|chatbot|language model|SmolLM|Hugging|as an assistant|I cannot|I can't assist|I'm sorry, but|unable to|word count|"
    r"short sentences|simple sentences?|simple words|simple terms|two sentences|happy ending|story for (small )?children|your request|"
    r"I'm here to|feel free to|question is|five year old|bedtime story|the prompt|the user|guidelines?|https?|www)\b|[\[\]{}<>|#_=\\@^~`]|\*\*|\.\.\.\.",
    re.I,
)
_LEAD = re.compile(r"^(sure|certainly|of course|okay|here'?s?|here is|title)\b[^\n]{0,120}?(:|!)\s*\n+", re.I)
_END = re.compile(r'[.!?]["\')]?(?=\s|$)')


def repeats(words, size, most):
    """Whether a run of `size` words occurs more than `most` times."""
    seen = collections.Counter(tuple(words[i : i + size]) for i in range(len(words) - size + 1))
    return bool(seen) and max(seen.values()) > most


def clean(text, ended, kind):
    """The answer as the student shall give it, or None."""
    for a, b in _FOLD.items():
        text = text.replace(a, b)
    text = _LEAD.sub("", text.strip()).replace("**", "").strip()
    text = re.sub(r"[ \t]+", " ", re.sub(r"\n{2,}", "\n\n", re.sub(r" *\n *", "\n", text)))
    if not text.isascii() or not text or _BAD.search(text):
        return None
    if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') == 2:
        text = text[1:-1]
    if not ended or not _END.search(text[-2:]):
        ends = [m.end() for m in _END.finditer(text)]
        if not ends or ends[-1] < 0.6 * len(text):
            return None
        text = text[: ends[-1]]
        if text.rstrip().endswith(("1.", "2.", "3.", "4.", "5.")):
            return None
    words = text.lower().split()
    if kind == prompts.STORY:
        if not 80 <= len(words) <= 260 or repeats(words, 5, 2) or repeats(words, 8, 1) or text.count("\n") > 14:
            return None
        lines = [line for line in text.split("\n") if line]
        if len(lines) > 1 and not _END.search(lines[0]) and len(lines[0].split()) < 12:  # a title
            text = text[len(lines[0]) :].strip()
        if re.match(r"(title|story)\b", text, re.I):
            return None
    elif not 3 <= len(words) <= 110 or repeats(words, 4, 1) or repeats(words, 1, max(6, len(words) // 5)):
        return None
    if not (text[0].isupper() or text[0] in "\"'1"):
        return None
    return text


def on_topic(topic, text):
    """A story must name at least half of the longer words of its topic."""
    words = [
        x for x in re.findall(r"[a-z]+", topic.lower()) if len(x) > 3 and x not in ("finds", "named", "with", "their")
    ]
    low = text.lower()
    return not words or sum(x[:4] in low for x in words) * 2 >= len(words)


THOUGHTS = {
    prompts.STORY: [
        "The user wants a story about {}. I will write a short one in simple words.",
        "I will write a short story about {} with a clear ending.",
        "A short story about {}. I keep it simple.",
    ],
    prompts.QA: [
        "The user says: {} I will answer in simple words.",
        "I will give a short and simple answer.",
        "I should answer this briefly: {}",
    ],
}


def agreed(group):
    """The half of several answers to one question that says most of what the others say too."""
    if len(group) < 3:
        return group
    bags = [set(re.findall(r"[a-z]{3,}", text.lower())) for _, text in group]
    common = collections.Counter(x for bag in bags for x in bag)
    score = [sum(common[x] for x in bag) / (len(bag) + 4) for bag in bags]
    best = sorted(range(len(group)), key=lambda i: (-score[i], i))
    return [group[i] for i in best[: (len(group) + 1) // 2]]


def teacher_documents(made, answers, seed):
    """([document], counts): questions with the answers on which samples agree, and filtered stories as plain text."""
    r, seen, why = random.Random(seed), set(), collections.Counter()
    groups, raw = collections.defaultdict(list), []
    known = {prompts.plain(q) for asks, _ in knowledge.ASKED for q in asks}  # answered by hand
    for index, text, ended in answers:
        p = made[index]
        text = clean(text, ended, p["kind"])
        if text is None or prompts.plain(p["topic"]) in known:
            why["filtered " + p["kind"]] += 1
            continue
        if p["kind"] == prompts.STORY and not on_topic(p["topic"], text):
            why["off topic"] += 1
            continue
        key = prompts.plain(text)[:80] if p["kind"] == prompts.STORY else prompts.plain(p["topic"] + text)
        if key in seen:
            why["duplicate"] += 1
            continue
        seen.add(key)
        if p["kind"] == prompts.STORY:
            raw.append(text)
        else:
            groups[p["topic"]].append((p, text))
    kept = [x for topic in sorted(groups) for x in agreed(groups[topic])]
    why["kept questions"], why["kept stories"] = len(kept), len(raw)
    documents, i = [[(text, 1)] for text in raw], 0
    r.shuffle(kept)
    while i < len(kept):
        p, text = kept[i]
        i += 1
        thought = r.choice(THOUGHTS[prompts.QA]).format(p["topic"]) if r.random() < 0.10 else None
        messages = [synthetic.user(p["user"]), synthetic.said(text, reasoning=thought)]
        if r.random() < 0.25:
            messages = [dict(role="system", content=r.choice(synthetic.SYSTEMS))] + messages
        while r.random() < 0.25:  # more turns of the same conversation
            if r.random() < 0.5 and i < len(kept):
                q, a = kept[i]
                i += 1
                messages += [synthetic.user(q["user"]), synthetic.said(a)]
            else:
                messages += synthetic.small_talk(r)
        documents.append(_weigh(chat.segments(messages), 2))
    return documents, why


def _weigh(segments, weight):
    """Loss weights in place of marks; short answers count more than the many ids of stories."""
    return [(text, weight * int(flag)) for text, flag in segments]


def story_documents(count_seed):
    """Conversations around stories of the story grammar."""
    count, seed = count_seed
    r, out = random.Random(seed), []
    while len(out) < count:
        topic, text = stories.make(r)
        if prompts.plain(topic) in prompts.HELD_OUT:
            continue
        if r.random() < 0.04:
            out.append([(text, 1)])
            continue
        thought = r.choice(THOUGHTS[prompts.STORY]).format(topic) if r.random() < 0.08 else None
        messages = [
            synthetic.user(prompts.loosen(r, prompts.story_ask(r, topic))),
            synthetic.said(text, reasoning=thought),
        ]
        if r.random() < 0.2:
            messages = [dict(role="system", content=r.choice(synthetic.SYSTEMS))] + messages
        if r.random() < 0.15:
            messages = (
                synthetic.small_talk(r) + messages
                if messages[0]["role"] == "user"
                else messages + synthetic.small_talk(r)
            )
        out.append(_weigh(chat.segments(messages), 1))
    return out


def template_documents(count_seed):
    out = []
    for _, messages, tools in synthetic.conversations(*count_seed):
        asks = {prompts.plain(m["content"]) for m in messages if m["role"] == "user"}
        if not asks & prompts.HELD_OUT:
            out.append(_weigh(chat.segments(messages, tools), 2))
    return out


_bpe = None


def _encode(document):
    ids, learn = [], []
    for text, flag in document:
        part = _bpe.encode(text)
        ids += part
        learn += [flag] * len(part)
    return np.array(ids, np.uint16), np.array(learn, np.uint8)


def _read(file):
    with lzma.open(file, "rt") as f:
        return [json.loads(line) for line in f]


def _count(texts):
    return bpe.count_pieces(texts, "qwen2", chat.SPECIALS)


def _spread(work, items, workers):
    if workers <= 1:
        return [work(x) for x in items]
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(work, items, chunksize=max(1, len(items) // (workers * 8)))


def make_tokenizer(documents, workers, log=print):
    texts = ["".join(t for t, _ in d) for d in documents]
    parts = [texts[i::64] for i in range(64)]
    counts = sum(_spread(_count, parts, workers), collections.Counter())
    alphabet = [bpe.TO_CHAR[b] for b in range(256)]
    merges = bpe.train(counts, VOCAB - 256 - len(chat.SPECIALS))
    tokens = alphabet + [a + b for a, b in merges]
    while len(tokens) < VOCAB - len(chat.SPECIALS):  # only where the texts are very few
        tokens.append(f"<|unused_{len(tokens)}|>")
    tokens += chat.SPECIALS
    assert len(set(tokens)) == len(tokens) == VOCAB
    log(f"tokenizer: {len(counts)} different pieces, {len(merges)} merges")
    return dict(tokens=tokens, merges=[list(m) for m in merges], specials=chat.SPECIALS)


def load_tokenizer(values):
    specials = {t: values["tokens"].index(t) for t in values["specials"]}
    return bpe.Bpe(values["tokens"], [tuple(m) for m in values["merges"]], "qwen2", specials)


def pack(encoded, end, seed):
    """Rows of ROW ids; each begins with a document; the last document of a row is cut. Loss weights beside."""
    order = list(range(len(encoded)))
    random.Random(seed).shuffle(order)
    rows, marks = [], []
    buffer, flags, size = [], [], 0
    for i in order:
        buffer += [np.array([end], np.uint16), encoded[i][0]] if size else [encoded[i][0]]
        flags += [np.zeros(1, np.uint8), encoded[i][1]] if size else [encoded[i][1]]
        size += len(encoded[i][0]) + bool(size)
        if size >= ROW:
            rows.append(np.concatenate(buffer)[:ROW])
            marks.append(np.concatenate(flags)[:ROW])
            buffer, flags, size = [], [], 0
    return np.stack(rows), np.stack(marks)


def build(out, answers_files, made, story_count, template_count, workers, seed=7, log=print):
    """Writes tokenizer.json (ours), train.npz and held.npz into out."""
    global _bpe
    out = Path(out)
    parts = lambda count: [(count // 64, seed * 1000 + i) for i in range(64)]
    answers = [x for part in _spread(_read, list(answers_files), min(workers, len(answers_files))) for x in part]
    taught, why = teacher_documents(made, answers, seed)
    told = [d for part in _spread(story_documents, parts(story_count), workers) for d in part]
    templated = [d for part in _spread(template_documents, parts(template_count), workers) for d in part]
    log(
        f"answers of the teacher: {dict(why)}; documents: {len(taught)} taught, {len(told)} stories, {len(templated)} from templates"
    )
    documents = taught + told + templated
    random.Random(seed).shuffle(documents)
    values = make_tokenizer(documents[::4], workers, log)
    (out / "tokenizer.json").write_text(json.dumps(values))
    _bpe = load_tokenizer(values)
    encoded = _spread(_encode, documents, workers)
    end = _bpe.specials["<|endoftext|>"]
    cut = max(8, len(encoded) // 200)
    for name, items in (("held", encoded[:cut]), ("train", encoded[cut:])):
        ids, learn = pack(items, end, seed)
        np.savez(out / f"{name}.npz", ids=ids, learn=learn)
        log(f"{name}: {len(items)} documents, {ids.size} ids in {len(ids)} rows, {int((learn > 0).sum())} learned")
    return values


def main():
    import sample

    a = argparse.ArgumentParser()
    a.add_argument("data")
    a.add_argument("--count", type=int, default=sample.COUNT)
    a.add_argument("--stories", type=int, default=96000)
    a.add_argument("--templates", type=int, default=192000)
    a.add_argument("--workers", type=int, default=16)
    a = a.parse_args()
    made = prompts.make(a.count, sample.SEED)
    build(
        a.data,
        sorted(Path(a.data).glob("answers-*.jsonl.xz")),
        made,
        a.stories,
        a.templates,
        a.workers,
        log=lambda x: print(x, flush=True),
    )


if __name__ == "__main__":
    main()
