"""Reads and writes GGUF v3 files and converts the block formats that the pocket models use."""
import struct

import numpy as np

ALIGNMENT = 32
F32, Q4_0, Q8_0, Q6_K = 0, 2, 8, 14
BLOCKS = {F32: (1, 4), Q4_0: (32, 18), Q8_0: (32, 34), Q6_K: (256, 210)}
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


# --- block formats: every function works on the last axis and keeps the others --------------------------------------


def _groups(x, size):
    return x.reshape(*x.shape[:-1], x.shape[-1] // size, size)


def q4_0_codes(x):
    """Codes 0..15 and f16 scales of Q4_0: y = d * (q - 8), d chosen so that the largest magnitude maps to -8 * d."""
    g = _groups(x.astype(np.float32), 32)
    at = np.abs(g).argmax(-1, keepdims=True)
    d = (np.take_along_axis(g, at, -1) / np.float32(-8)).astype(np.float16)
    d32 = d.astype(np.float32)
    inv = np.where(d32 != 0, 1 / np.where(d32 != 0, d32, 1), 0).astype(np.float32)
    return np.clip(np.rint(g * inv) + 8, 0, 15).astype(np.uint8), d


def q4_0_encode(x):
    q, d = q4_0_codes(x)
    packed = q[..., :16] | (q[..., 16:] << 4)
    return np.concatenate([d.view(np.uint8), packed], -1).tobytes()


def q6_k_codes(x):
    """Codes -32..31, int8 scales of 16 values and the f16 scale of 256 of Q6_K: y = d * s * q."""
    g = _groups(_groups(x.astype(np.float32), 256), 16)
    at = np.abs(g).argmax(-1, keepdims=True)
    s = np.take_along_axis(g, at, -1)[..., 0] / np.float32(-32)
    peak = np.take_along_axis(s, np.abs(s).argmax(-1, keepdims=True), -1)
    d = (peak / np.float32(-128)).astype(np.float16)
    d32 = d.astype(np.float32)
    inv = np.where(d32 != 0, 1 / np.where(d32 != 0, d32, 1), 0).astype(np.float32)
    sc = np.clip(np.rint(s * inv), -128, 127).astype(np.int8)
    step = d32 * sc
    inv = np.where(step != 0, 1 / np.where(step != 0, step, 1), 0).astype(np.float32)[..., None]
    return np.clip(np.rint(g * inv), -32, 31).astype(np.int8), sc, d


def q6_k_encode(x):
    """Encodes until decoding and encoding again changes nothing, so that a file survives the round trip bit for bit."""
    q, sc, d = q6_k_codes(x)
    for _ in range(64):
        x = (d.astype(np.float32) * sc)[..., None] * q
        x = x.reshape(*x.shape[:-3], -1)
        again = q6_k_codes(x)
        same = all(np.array_equal(a, b) for a, b in zip((q, sc, d), again))
        q, sc, d = again
        if same:
            break
    u = (q.reshape(*q.shape[:-2], 2, 4, 32).astype(np.int16) + 32).astype(np.uint8)  # half h, quarter g, l
    lo, hi = u & 15, u >> 4
    ql = np.concatenate([lo[..., :2, :] | (lo[..., 2:, :] << 4)], -2)  # quarters (0, 2) and (1, 3) share bytes
    ql = ql.reshape(*ql.shape[:-3], 128)
    qh = hi[..., 0, :] | (hi[..., 1, :] << 2) | (hi[..., 2, :] << 4) | (hi[..., 3, :] << 6)
    qh = qh.reshape(*qh.shape[:-2], 64)
    return np.concatenate([ql, qh, sc.view(np.uint8), d.view(np.uint8)], -1).tobytes()


def q8_0_encode(x):
    g = _groups(x.astype(np.float32), 32)
    d = (np.abs(g).max(-1, keepdims=True) / np.float32(127)).astype(np.float16)
    d32 = d.astype(np.float32)
    inv = np.where(d32 != 0, 1 / np.where(d32 != 0, d32, 1), 0).astype(np.float32)
    q = np.clip(np.rint(g * inv), -127, 127).astype(np.int8)
    return np.concatenate([d.view(np.uint8), q.view(np.uint8)], -1).tobytes()


ENCODERS = {
    F32: lambda x: x.astype("<f4").tobytes(),
    Q4_0: q4_0_encode,
    Q8_0: q8_0_encode,
    Q6_K: q6_k_encode,
}


def decode(kind, data, shape):
    """f32 values of a tensor from its bytes; shape is outermost first."""
    size, width = BLOCKS[kind]
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.frombuffer(data, np.uint8, count // size * width).reshape(-1, width)
    f16 = lambda a, b: raw[:, a:b].copy().view(np.float16).astype(np.float32)
    if kind == F32:
        return raw.reshape(-1).view("<f4").reshape(shape).copy()
    if kind == Q4_0:
        q = raw[:, 2:]
        y = f16(0, 2) * (np.concatenate([q & 15, q >> 4], 1).astype(np.float32) - 8)
    elif kind == Q8_0:
        y = f16(0, 2) * raw[:, 2:].view(np.int8).astype(np.float32)
    elif kind == Q6_K:
        ql = raw[:, :128].reshape(-1, 2, 2, 32)
        qh = raw[:, 128:192].reshape(-1, 2, 1, 32)
        lo = np.concatenate([ql & 15, ql >> 4], 2)
        hi = np.concatenate([(qh >> s) & 3 for s in (0, 2, 4, 6)], 2)
        q = (lo | (hi << 4)).astype(np.float32) - 32
        sc = raw[:, 192:208].view(np.int8).astype(np.float32)
        y = q.reshape(-1, 16, 16) * (f16(208, 210) * sc)[..., None]
    else:
        raise ValueError(f"cannot decode tensor type {kind}")
    return y.astype(np.float32).reshape(shape)


# --- reading --------------------------------------------------------------------------------------------------------


class Reader:
    """Metadata as a dict and tensors as f32 arrays (outermost dimension first)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = memoryview(f.read())
        magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", self.data, 0)
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: not a GGUF v2 or v3 file")
        self.at, self.meta, self.infos = 24, {}, {}
        for _ in range(pairs):
            key = self._string()
            self.meta[key] = self._value(self._scalar("<I"))
        for _ in range(tensors):
            name = self._string()
            dims = [self._scalar("<Q") for _ in range(self._scalar("<I"))]
            kind, offset = self._scalar("<I"), self._scalar("<Q")
            self.infos[name] = (tuple(reversed(dims)), kind, offset)
        align = self.meta.get("general.alignment", ALIGNMENT)
        self.base = (self.at + align - 1) // align * align

    def _scalar(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def _string(self):
        size = self._scalar("<Q")
        self.at += size
        return bytes(self.data[self.at - size : self.at]).decode("utf-8", "surrogateescape")

    def _value(self, kind):
        if kind == 8:
            return self._string()
        if kind == 9:
            inner, count = self._scalar("<I"), self._scalar("<Q")
            return [self._value(inner) for _ in range(count)]
        return self._scalar(SCALARS[kind])

    def tensor(self, name):
        shape, kind, offset = self.infos[name]
        return decode(kind, self.data[self.base + offset :], shape)


# --- writing --------------------------------------------------------------------------------------------------------


def _pack_string(text):
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _pack_value(value):
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _pack_string(value)
    if isinstance(value, np.ndarray):  # int32 array
        return struct.pack("<IIQ", 9, 5, value.size) + value.astype("<i4").tobytes()
    if isinstance(value[0], bool):
        return struct.pack("<IIQ", 9, 7, len(value)) + bytes(value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_pack_string, value))


def write(path, meta, tensors):
    """meta: key -> bool, int (u32), float (f32), str, list of str or bool, int32 array. tensors: [(name, f32, type)]."""
    out = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(meta))]
    out += [_pack_string(k) + _pack_value(v) for k, v in meta.items()]
    blobs, offset = [], 0
    for name, values, kind in tensors:
        if values.shape[-1] % BLOCKS[kind][0]:
            raise ValueError(f"{name}: row of {values.shape[-1]} is no multiple of {BLOCKS[kind][0]}")
        blob = ENCODERS[kind](np.ascontiguousarray(values))
        dims = tuple(reversed(values.shape))
        out.append(_pack_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset))
        blobs.append(blob + b"\0" * (-len(blob) % ALIGNMENT))
        offset += len(blobs[-1])
    head = b"".join(out)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % ALIGNMENT) + b"".join(blobs))
