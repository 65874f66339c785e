#!/usr/bin/env python3
"""A second, independent GGUF reader: written from the format's description, not from Hearth's reader.

    gguf_reader.py FILE...     prints what each file holds, or why it is refused
    gguf_reader.py --serve     differential tests: reads cases (u32 length, bytes) from stdin and answers each with
                               one byte (1 accepted, 0 refused) and the u32 CRC-32 of the canonical summary (0 if refused)

Only the standard library is used. All integers are little-endian.
"""

import struct
import sys
import zlib

MAX_KEYS = 65536
MAX_TENSORS = 1 << 20
MAX_KEY = 65535
MAX_NAME = 63
MAX_STRING = 64 << 20
MAX_ARRAY = 64 << 20
INT64_MAX = (1 << 63) - 1

# ggml type id -> (name, elements of a block, bytes of a block)
TENSOR_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}

# value type id -> (struct letter, bytes); strings (8) and arrays (9) are apart
SCALARS = {0: ("B", 1), 1: ("b", 1), 2: ("H", 2), 3: ("h", 2), 4: ("I", 4), 5: ("i", 4), 6: ("f", 4), 7: ("B", 1),
           10: ("Q", 8), 11: ("q", 8), 12: ("d", 8)}
UNSIGNED = (0, 2, 4, 10)
SIGNED = (1, 3, 5, 11)


class Refused(Exception):
    pass


class Cursor:
    def __init__(self, data):
        self.data = data
        self.pos = 0

    def left(self):
        return len(self.data) - self.pos

    def take(self, letter, size):
        if self.left() < size:
            raise Refused("ends early")
        value = struct.unpack_from("<" + letter, self.data, self.pos)[0]
        self.pos += size
        return value

    def u32(self):
        return self.take("I", 4)

    def u64(self):
        return self.take("Q", 8)

    def string(self, limit):
        length = self.u64()
        if length > limit or length > self.left():
            raise Refused("string of %d bytes" % length)
        text = self.data[self.pos:self.pos + length]
        self.pos += length
        return text


def narrow(value):
    """The f32 bits of a double, NaN as one pattern."""
    if value != value:
        return 0x7FC00000
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def read_value(cur, kind):
    """-> (canonical bytes, value type, python value)"""
    if kind == 8:
        text = cur.string(MAX_STRING)
        return b"\x04" + struct.pack("<Q", len(text)) + text, text
    if kind == 9:
        element, count = cur.u32(), cur.u64()
        if element not in SCALARS and element != 8:
            raise Refused("array of type %d" % element)
        if count > MAX_ARRAY:
            raise Refused("array of %d" % count)
        if element == 8:
            if count > cur.left() // 8:
                raise Refused("array past the end")
            items = [cur.string(MAX_STRING) for _ in range(count)]
            parts = [b"\x07", struct.pack("<Q", count)]
            for item in items:
                parts += (struct.pack("<Q", len(item)), item)
            return b"".join(parts), items
        letter, size = SCALARS[element]
        if count > cur.left() // size:
            raise Refused("array past the end")
        items = struct.unpack_from("<%d%s" % (count, letter), cur.data, cur.pos)
        cur.pos += count * size
        if element in (6, 12):
            return b"\x06" + struct.pack("<Q%dI" % count, count, *map(narrow, items)), items
        if element == 7:
            items = [1 if item else 0 for item in items]
        if element == 10 and any(item > INT64_MAX for item in items):
            raise Refused("array element out of range")
        return b"\x05" + struct.pack("<Q%dq" % count, count, *items), items
    if kind not in SCALARS:
        raise Refused("value type %d" % kind)
    value = cur.take(*SCALARS[kind])
    if kind == 7:
        return (b"\x00\x01" if value else b"\x00\x00"), bool(value)
    if kind in SIGNED:
        return b"\x01" + struct.pack("<q", value), value
    if kind in UNSIGNED:
        return b"\x02" + struct.pack("<Q", value), value
    if value != value:
        return b"\x03" + struct.pack("<Q", 0x7FF8000000000000), value
    return b"\x03" + struct.pack("<d", value), value


def parse(data):
    """-> (version, alignment, data offset, {key: (canonical, value)}, [(name, type, shape, offset, bytes)])"""
    if data[:4] != b"GGUF":
        raise Refused("magic")
    cur = Cursor(data)
    cur.pos = 4
    version = cur.u32()
    if version not in (2, 3):
        raise Refused("version %d" % version)
    tensor_count, key_count = cur.u64(), cur.u64()
    if key_count > MAX_KEYS or tensor_count > MAX_TENSORS or key_count > cur.left() // 14:
        raise Refused("counts")
    alignment = 32
    keys = {}
    for _ in range(key_count):
        key = cur.string(MAX_KEY)
        if not key:
            raise Refused("empty key")
        kind = cur.u32()
        value = read_value(cur, kind)
        if key in keys:
            raise Refused("key twice")
        keys[key] = value
        if key == b"general.alignment":
            if kind != 4:
                raise Refused("alignment type")
            alignment = value[1]
            if alignment not in [1 << n for n in range(3, 21)]:
                raise Refused("alignment %d" % alignment)
    if tensor_count > cur.left() // 24:
        raise Refused("counts")
    tensors = []
    names = set()
    for _ in range(tensor_count):
        name = cur.string(MAX_NAME)
        if name in names:
            raise Refused("tensor twice")
        names.add(name)
        rank = cur.u32()
        if rank > 4:
            raise Refused("rank %d" % rank)
        dims = [cur.u64() for _ in range(rank)]
        kind, offset = cur.u32(), cur.u64()
        if kind not in TENSOR_TYPES:
            raise Refused("tensor type %d" % kind)
        _, elems, size = TENSOR_TYPES[kind]
        inner = dims[0] if dims else 1
        if inner % elems:
            raise Refused("row of %d" % inner)
        # A zero dimension makes the tensor empty, but must not hide that the others are out of range.
        product = 1
        for dim in dims:
            product *= max(dim, 1)
        blocks = max(inner // elems, 1)
        for dim in dims[1:]:
            blocks *= max(dim, 1)
        if max(dims, default=1) > INT64_MAX or product > INT64_MAX or blocks * size > INT64_MAX:
            raise Refused("size")
        tensors.append((name, kind, dims[::-1], offset, 0 if 0 in dims else blocks * size))
    start = -(-cur.pos // alignment) * alignment
    room = max(len(data) - start, 0)
    spans = []
    for name, kind, shape, offset, size in tensors:
        if offset % alignment or offset + size > room:
            raise Refused("tensor outside of the file")
        if size:
            spans.append((offset, offset + size))
    spans.sort()
    for before, after in zip(spans, spans[1:]):
        if before[1] > after[0]:
            raise Refused("tensors overlap")
    return version, alignment, start, keys, [(n, k, s, o + start, z) for n, k, s, o, z in tensors]


def summary(parsed):
    version, alignment, start, keys, tensors = parsed
    parts = [struct.pack("<IIQQ", version, alignment, start, len(keys))]
    for key in sorted(keys):
        parts += (struct.pack("<Q", len(key)), key, keys[key][0])
    for name, kind, shape, offset, size in tensors:
        parts += (struct.pack("<Q", len(name)), name,
                  struct.pack("<II%dqQQ" % len(shape), kind, len(shape), *shape, offset, size))
    return b"".join(parts)


def serve():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = source.read(4)
        if len(head) < 4:
            return
        data = source.read(struct.unpack("<I", head)[0])
        try:
            answer = struct.pack("<BI", 1, zlib.crc32(summary(parse(data))))
        except Refused:
            answer = struct.pack("<BI", 0, 0)
        sink.write(answer)
        sink.flush()


def show(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        parsed = parse(data)
    except Refused as refused:
        print("%s: refused: %s" % (path, refused))
        return
    version, alignment, start, keys, tensors = parsed
    print("%s: version %d, alignment %d, data at %d, crc %08x" %
          (path, version, alignment, start, zlib.crc32(summary(parsed))))
    for key in sorted(keys):
        value = keys[key][1]
        text = repr(value) if not isinstance(value, (list, tuple)) else "%d values" % len(value)
        print("  %s = %s" % (key.decode("utf-8", "replace"), text[:100]))
    for name, kind, shape, offset, size in tensors:
        print("  %s %s %s at %d, %d bytes" % (name.decode("utf-8", "replace"), TENSOR_TYPES[kind][0], shape, offset, size))


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        for argument in sys.argv[1:]:
            show(argument)
