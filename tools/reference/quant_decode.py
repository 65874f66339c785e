#!/usr/bin/env python3
"""A second, independent decoder of tensor blocks: written from the formats' description, not from Hearth's decoders.

Reads cases from stdin: u32 byte count, u32 ggml type, block bytes. Answers each with the f32 values. Arithmetic is in
f64, where every product of a scale and a code is exact, and rounded to f32 once.
"""

import os
import re
import struct
import sys
import zlib

KV = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
# E2M1; nibble 8 is minus zero, which decoders take as plus zero
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]

NF4 = [struct.unpack(">f", bytes.fromhex(bits))[0] for bits in (
    "bf800000 bf3239b1 bf066b30 beca32a0 be91a24d be3d353f bdba7871 00000000 "
    "3da2faff 3e24cae3 3e7c04dd 3ead033a 3ee1a4b8 3f1007ab 3f3913b3 3f800000").split()]


def load_grids():
    """The codebooks, from the data file of the decoders, as lists of element lists; checked against CRC-32s of the
    tables as ggml holds them (one byte per element)."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/quant/formats/grids.cpp")
    with open(path) as file:
        text = file.read()
    kinds = {
        "kIq2XxsGrid": (8, 2, (8, 25, 43), 0x9924FF02), "kIq2XsGrid": (8, 2, (8, 25, 43), 0xFA1E1BFD),
        "kIq2SGrid": (8, 2, (8, 25, 43), 0x25AE5BF1), "kIq3XxsGrid": (4, 3, (4, 12, 20, 28, 36, 44, 52, 62), 0x07BA9ED0),
        "kIq3SGrid": (4, 3, (1, 3, 5, 7, 9, 11, 13, 15), 0xF576E4F3), "kIq1Grid": (8, 2, (-1, 0, 1), 0xB85E6CCF),
    }
    grids = {}
    for name, (length, bits, levels, crc) in kinds.items():
        body = re.search(r"kPacked%s\[\d+\] = \{(.*?)\};" % name[1:], text, re.S).group(1)
        grid = []
        for word in re.findall(r"0x[0-9a-f]+", body):
            grid.append([levels[(int(word, 16) >> (bits * k)) % (1 << bits)] for k in range(length)])
        table = b"".join(bytes(v & 255 for v in entry) for entry in grid)
        if zlib.crc32(table) != crc:
            sys.exit("quant_decode.py: the codebook %s is damaged" % name)
        grids[name] = grid
    return grids


GRIDS = load_grids()


def half(block, at):
    return struct.unpack_from("<e", block, at)[0]


def nibbles(data):
    """32 (or 2n) elements: low nibbles of all bytes, then high nibbles."""
    return [byte & 15 for byte in data] + [byte >> 4 for byte in data]


def q4_0(b):
    d = half(b, 0)
    return [d * (q - 8) for q in nibbles(b[2:18])]


def q4_1(b):
    d, m = half(b, 0), half(b, 2)
    return [d * q + m for q in nibbles(b[4:20])]


def fifth(mask, codes):
    return [q | ((mask >> i) & 1) << 4 for i, q in enumerate(codes)]


def q5_0(b):
    d = half(b, 0)
    return [d * (q - 16) for q in fifth(int.from_bytes(b[2:6], "little"), nibbles(b[6:22]))]


def q5_1(b):
    d, m = half(b, 0), half(b, 2)
    return [d * q + m for q in fifth(int.from_bytes(b[4:8], "little"), nibbles(b[8:24]))]


def q8_0(b):
    d = half(b, 0)
    return [d * q for q in struct.unpack_from("<32b", b, 2)]


def crumbs(data):
    """64 bytes of 2-bit codes: per half of 32 bytes, the lowest pair of all bytes first."""
    out = []
    for h in (0, 32):
        for shift in (0, 2, 4, 6):
            out += [(byte >> shift) & 3 for byte in data[h:h + 32]]
    return out


def q2_k(b):
    d, dmin = half(b, 80), half(b, 82)
    return [d * (b[i // 16] & 15) * q - dmin * (b[i // 16] >> 4) for i, q in enumerate(crumbs(b[16:80]))]


def q3_k(b):
    d = half(b, 108)
    s = b[96:108]
    scales = []
    for k in range(16):
        low = s[k] % 16 if k < 8 else s[k - 8] // 16
        high = (s[8 + k % 4] >> (2 * (k // 4))) & 3
        scales.append(low + 16 * high - 32)
    out = []
    for i, q in enumerate(crumbs(b[32:96])):
        bit = (b[i % 32] >> (i // 32)) & 1
        out.append(d * scales[i // 16] * (q - (0 if bit else 4)))
    return out


def six_bit(s):
    scales = [s[j] & 63 for j in range(4)]
    mins = [s[j + 4] & 63 for j in range(4)]
    for j in range(4, 8):
        scales.append((s[j + 4] & 15) + 16 * (s[j - 4] >> 6))
        mins.append((s[j + 4] >> 4) + 16 * (s[j] >> 6))
    return scales, mins


def pairs_of_32(data):
    """128 bytes: each 32 bytes hold 32 low nibbles, then the next 32 elements in the high ones."""
    out = []
    for at in range(0, 128, 32):
        out += nibbles(data[at:at + 32])
    return out


def q4_k(b):
    d, dmin = half(b, 0), half(b, 2)
    scales, mins = six_bit(b[4:16])
    return [d * scales[i // 32] * q - dmin * mins[i // 32] for i, q in enumerate(pairs_of_32(b[16:144]))]


def q5_k(b):
    d, dmin = half(b, 0), half(b, 2)
    scales, mins = six_bit(b[4:16])
    out = []
    for i, q in enumerate(pairs_of_32(b[48:176])):
        q += 16 * ((b[16 + i % 32] >> (i // 32)) & 1)
        out.append(d * scales[i // 32] * q - dmin * mins[i // 32])
    return out


def q6_k(b):
    d = half(b, 208)
    scales = struct.unpack_from("<16b", b, 192)
    codes = []
    for h in range(2):
        low = b[64 * h:64 * h + 64]
        high = b[128 + 32 * h:160 + 32 * h]
        quarters = ([x & 15 for x in low[:32]], [x & 15 for x in low[32:]],
                    [x >> 4 for x in low[:32]], [x >> 4 for x in low[32:]])
        for g, quarter in enumerate(quarters):
            codes += [q + 16 * ((high[l] >> (2 * g)) & 3) for l, q in enumerate(quarter)]
    return [d * scales[i // 16] * (q - 32) for i, q in enumerate(codes)]


def iq4_nl(b):
    d = half(b, 0)
    return [d * KV[q] for q in nibbles(b[2:18])]


def iq4_xs(b):
    d = half(b, 0)
    high = int.from_bytes(b[2:4], "little")
    low = int.from_bytes(b[4:8], "little")
    out = []
    for g in range(8):
        scale = ((low >> (4 * g)) & 15) + 16 * ((high >> (2 * g)) & 3) - 32
        out += [d * scale * KV[q] for q in nibbles(b[8 + 16 * g:24 + 16 * g])]
    return out


def signed(scale, vector, signs):
    return [-(scale * v) if (signs >> k) & 1 else scale * v for k, v in enumerate(vector)]


def even(n):
    return n + 128 * (bin(n).count("1") % 2)


def iq2_xxs(b):
    d = half(b, 0)
    out = []
    for at in range(2, 66, 8):
        w = int.from_bytes(b[at + 4:at + 8], "little")
        scale = d * (0.5 + (w >> 28)) / 4
        for l in range(4):
            out += signed(scale, GRIDS["kIq2XxsGrid"][b[at + l]], even((w >> (7 * l)) % 128))
    return out


def iq2_xs(b):
    d = half(b, 0)
    out = []
    for v, word in enumerate(struct.unpack_from("<32H", b, 2)):
        nibble = (b[66 + v // 4] >> (0 if v % 4 < 2 else 4)) % 16
        out += signed(d * (0.5 + nibble) / 4, GRIDS["kIq2XsGrid"][word % 512], even(word // 512))
    return out


def iq2_s(b):
    d = half(b, 0)
    out = []
    for v in range(32):
        nibble = (b[74 + v // 4] >> (0 if v % 4 < 2 else 4)) % 16
        index = b[2 + v] + 256 * ((b[66 + v // 4] >> (2 * (v % 4))) % 4)
        out += signed(d * (0.5 + nibble) / 4, GRIDS["kIq2SGrid"][index], b[34 + v])
    return out


def iq3_xxs(b):
    d = half(b, 0)
    out = []
    for g, w in enumerate(struct.unpack_from("<8I", b, 66)):
        scale = d * (0.5 + (w >> 28)) / 2
        for l in range(4):
            at = 2 + 8 * g + 2 * l
            vector = GRIDS["kIq3XxsGrid"][b[at]] + GRIDS["kIq3XxsGrid"][b[at + 1]]
            out += signed(scale, vector, even((w >> (7 * l)) % 128))
    return out


def iq3_s(b):
    d = half(b, 0)
    out = []
    for g in range(8):
        scale = d * (1 + 2 * ((b[106 + g // 2] >> (4 * (g % 2))) % 16))
        for l in range(4):
            vector = []
            for k in range(2):
                index = b[2 + 8 * g + 2 * l + k] + 256 * ((b[66 + g] >> (2 * l + k)) % 2)
                vector += GRIDS["kIq3SGrid"][index]
            out += signed(scale, vector, b[74 + 4 * g + l])
    return out


def iq1_s(b):
    d = half(b, 0)
    out = []
    for g, w in enumerate(struct.unpack_from("<8H", b, 34)):
        scale = d * (2 * ((w >> 12) % 8) + 1)
        delta = -0.125 if w >= 32768 else 0.125
        for l in range(4):
            out += [scale * (v + delta) for v in GRIDS["kIq1Grid"][b[2 + 4 * g + l] + 256 * ((w >> (3 * l)) % 8)]]
    return out


def iq1_m(b):
    words = struct.unpack_from("<4H", b, 48)
    d = struct.unpack("<e", struct.pack("<H", sum((w >> 12) << (4 * i) for i, w in enumerate(words))))[0]
    out = []
    for g in range(8):
        for l in range(4):
            scale = d * (2 * ((words[g // 2] >> (6 * (g % 2) + 3 * (l // 2))) % 8) + 1)
            n = (b[32 + 2 * g + l // 2] >> (4 * (l % 2))) % 16
            delta = -0.125 if n >= 8 else 0.125
            out += [scale * (v + delta) for v in GRIDS["kIq1Grid"][b[4 * g + l] + 256 * (n % 8)]]
    return out


def mxfp4(b):
    scale = 2.0 ** (b[0] - 127)
    return [scale * FP4[q] for q in nibbles(b[1:17])]


def nvfp4(b):
    out = []
    for s in range(4):
        x = b[s] & 127
        if x == 127:
            scale = 0.0
        elif x < 8:
            scale = x * 2.0 ** -9
        else:
            scale = (1 + (x % 8) / 8) * 2.0 ** (x // 8 - 7)
        out += [scale * FP4[q] for q in nibbles(b[4 + 8 * s:12 + 8 * s])]
    return out


def nf4(b):
    d = half(b, 0)
    return [d * NF4[q] for byte in b[2:34] for q in (byte & 15, byte >> 4)]


def trit(byte, n):
    return (((byte * 3 ** n) % 256) * 3 // 256) - 1


def tq1_0(b):
    d = half(b, 52)
    digits = [trit(x, n) for n in range(5) for x in b[0:32]]
    digits += [trit(x, n) for n in range(5) for x in b[32:48]]
    digits += [trit(x, n) for n in range(4) for x in b[48:52]]
    return [d * t for t in digits]


def tq2_0(b):
    d = half(b, 64)
    return [d * (q - 1) for q in crumbs(b[0:64])]


def q1_0(b):
    d = half(b, 0)
    bits = int.from_bytes(b[2:18], "little")
    return [d if (bits >> i) & 1 else -d for i in range(128)]


def q2_0(b):
    d = half(b, 0)
    bits = int.from_bytes(b[2:18], "little")
    return [d * (((bits >> (2 * i)) & 3) - 1) for i in range(64)]


def plain(letter):
    return lambda b: [float(struct.unpack("<" + letter, b)[0])]


# ggml type id -> (bytes of a block, decoder)
DECODERS = {
    0: (4, plain("f")), 1: (2, plain("e")), 2: (18, q4_0), 3: (20, q4_1), 6: (22, q5_0), 7: (24, q5_1), 8: (34, q8_0),
    10: (84, q2_k), 11: (110, q3_k), 12: (144, q4_k), 13: (176, q5_k), 14: (210, q6_k), 16: (66, iq2_xxs),
    17: (74, iq2_xs), 18: (98, iq3_xxs), 19: (50, iq1_s), 20: (18, iq4_nl), 21: (110, iq3_s), 22: (82, iq2_s),
    23: (136, iq4_xs), 24: (1, plain("b")), 25: (2, plain("h")), 26: (4, plain("i")), 27: (8, plain("q")),
    28: (8, plain("d")), 29: (56, iq1_m),
    30: (2, lambda b: [struct.unpack("<f", b"\0\0" + b)[0]]), 34: (54, tq1_0), 35: (66, tq2_0),
    39: (17, mxfp4), 40: (36, nvfp4), 41: (18, q1_0), 42: (18, q2_0), 0x34464E: (34, nf4),
}


def pack(value):
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = source.read(8)
        if len(head) < 8:
            return
        count, kind = struct.unpack("<II", head)
        data = source.read(count)
        size, decode = DECODERS[kind]
        for at in range(0, count, size):
            sink.write(b"".join(map(pack, decode(data[at:at + size]))))
        sink.flush()


if __name__ == "__main__":
    main()
