"""Byte-level BPE in plain Python: encodes, decodes and trains; pieces are cut by the qwen2 or the smollm pattern."""
import collections
import heapq
import re

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
# Letters are [^\W\d_]; \w minus letters minus digits leaves "_" and marks, which count as neither.
PATTERNS = {
    "smollm": [r"\d", _GPT2],
    "qwen2": [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
}


def _byte_alphabet():
    shown = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    hidden = [b for b in range(256) if b not in shown]
    table = {b: chr(b) for b in shown}
    table.update({b: chr(0x100 + i) for i, b in enumerate(hidden)})
    return table


TO_CHAR = _byte_alphabet()
TO_BYTE = {c: b for b, c in TO_CHAR.items()}


def pieces(text, steps):
    """Cuts text by each compiled pattern in turn; what no pattern matches stays a piece."""
    parts = [text]
    for step in steps:
        cut = []
        for part in parts:
            at = 0
            for m in step.finditer(part):
                if m.start() > at:
                    cut.append(part[at : m.start()])
                cut.append(m.group())
                at = m.end()
            if at < len(part):
                cut.append(part[at:])
        parts = cut
    return parts


class Bpe:
    """tokens: vocabulary texts in the byte alphabet; merges: (left, right) pairs by rank; specials: text -> id."""

    def __init__(self, tokens, merges, pre, specials):
        self.tokens, self.merges, self.pre, self.specials = tokens, merges, pre, specials
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.ranks = {pair: i for i, pair in enumerate(merges)}
        self.steps = [re.compile(p) for p in PATTERNS[pre]]
        self.cut_specials = re.compile("(" + "|".join(map(re.escape, sorted(specials, key=len, reverse=True))) + ")")
        self.cache = {}
        self.raw = [t.encode("utf-8") if t in specials else bytes(TO_BYTE.get(c, 63) for c in t) for t in tokens]

    def _piece(self, piece):
        known = self.cache.get(piece)
        if known is None:
            symbols = [TO_CHAR[b] for b in piece.encode("utf-8")]
            while len(symbols) > 1:
                rank, i = min((self.ranks.get(p, 1 << 60), i) for i, p in enumerate(zip(symbols, symbols[1:])))
                if rank == 1 << 60:
                    break
                symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
            known = self.cache[piece] = [self.ids[s] for s in symbols]
        return known

    def encode(self, text, specials=True):
        out = []
        for part in self.cut_specials.split(text) if specials else [text]:
            if specials and part in self.specials:
                out.append(self.specials[part])
            else:
                for piece in pieces(part, self.steps):
                    out.extend(self._piece(piece))
        return out

    def decode(self, ids, skip=()):
        return b"".join(self.raw[i] for i in ids if i not in skip).decode("utf-8", "replace")


def count_pieces(texts, pre, specials):
    """Counter of pieces over texts, special tokens left out."""
    steps = [re.compile(p) for p in PATTERNS[pre]]
    cut = re.compile("|".join(map(re.escape, specials)))
    counts = collections.Counter()
    for text in texts:
        for part in cut.split(text):
            counts.update(pieces(part, steps))
    return counts


def train(counts, merges_wanted):
    """Merges by frequency; ties go to the smaller pair, so that the same counts always give the same merges."""
    words = [([TO_CHAR[b] for b in w.encode("utf-8")], n) for w, n in sorted(counts.items())]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (symbols, n) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += n
            where[pair].add(i)
    merges = []
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    while len(merges) < merges_wanted and heap:
        n, best = heapq.heappop(heap)
        if pairs.get(best) != -n:  # an older count of this pair
            continue
        if n > -2:
            break
        touched = set()
        merges.append(best)
        joined = best[0] + best[1]
        for i in sorted(where.pop(best)):
            symbols, n = words[i]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= n
                touched.add(pair)
            new, k = [], 0
            while k < len(symbols):
                if k + 1 < len(symbols) and (symbols[k], symbols[k + 1]) == best:
                    new.append(joined)
                    k += 2
                else:
                    new.append(symbols[k])
                    k += 1
            words[i] = (new, n)
            for pair in zip(new, new[1:]):
                pairs[pair] += n
                where[pair].add(i)
                touched.add(pair)
        pairs.pop(best, None)
        for pair in touched:
            if pairs.get(pair, 0) > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
    return merges
