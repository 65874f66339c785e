"""Byte-level BPE in plain Python: encodes and decodes; pieces are cut by the qwen2 pattern."""
import re

# Letters are [^\W\d_]; \w minus letters minus digits leaves "_" and marks, which count as neither.
_CUT = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_alphabet():
    shown = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    hidden = [b for b in range(256) if b not in shown]
    table = {b: chr(b) for b in shown}
    table.update({b: chr(0x100 + i) for i, b in enumerate(hidden)})
    return table


TO_CHAR = _byte_alphabet()
TO_BYTE = {c: b for b, c in TO_CHAR.items()}


class Bpe:
    """tokens: vocabulary texts in the byte alphabet; merges: (left, right) pairs by rank; specials: text -> id."""

    def __init__(self, tokens, merges, specials):
        self.tokens, self.merges, self.specials = tokens, merges, specials
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.ranks = {pair: i for i, pair in enumerate(merges)}
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
                for m in _CUT.finditer(part):  # matches every character
                    out.extend(self._piece(m.group()))
        return out

    def decode(self, ids, skip=()):
        return b"".join(self.raw[i] for i in ids if i not in skip).decode("utf-8", "replace")
