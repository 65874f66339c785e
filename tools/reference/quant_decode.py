#!/usr/bin/env python3
"""A second, independent decoder of tensor blocks: written from the formats' description, not from Hearth's decoders.

Reads cases from stdin: u32 byte count, u32 ggml type, block bytes. Answers each with the f32 values. Arithmetic is in
f64, where every product of a scale and a code is exact, and rounded to f32 once.
"""

import struct
import sys

KV = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
# E2M1; nibble 8 is minus zero, which decoders take as plus zero
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


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
    10: (84, q2_k), 11: (110, q3_k), 12: (144, q4_k), 13: (176, q5_k), 14: (210, q6_k), 20: (18, iq4_nl),
    23: (136, iq4_xs), 24: (1, plain("b")), 25: (2, plain("h")), 26: (4, plain("i")), 27: (8, plain("q")),
    28: (8, plain("d")), 30: (2, lambda b: [struct.unpack("<f", b"\0\0" + b)[0]]), 34: (54, tq1_0), 35: (66, tq2_0),
    39: (17, mxfp4), 40: (36, nvfp4), 41: (18, q1_0), 42: (18, q2_0),
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
