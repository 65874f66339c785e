"""A small GGUF v3 writer and reader for test fixtures: F32 tensors, scalar and flat-array metadata, nothing else.

It is independent of the C++ reader on purpose. Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import struct

import numpy as np

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?",
           10: "<Q", 11: "<q", 12: "<d"}
TENSOR_F32 = 0


def _string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _scalar(kind, value):
    return _string(value) if kind == STRING else struct.pack(SCALARS[kind], value)


def _kind(value, in_array=False):
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return I32 if in_array else U32
    if isinstance(value, float):
        return F32
    if isinstance(value, str):
        return STRING
    raise TypeError(f"no GGUF type for {value!r}")


def _value(value):
    if isinstance(value, list):
        kind = _kind(value[0], in_array=True)
        head = struct.pack("<IIQ", ARRAY, kind, len(value))
        return head + b"".join(_scalar(kind, item) for item in value)
    kind = _kind(value)
    return struct.pack("<I", kind) + _scalar(kind, value)


def _padding(length):
    return b"\0" * (-length % ALIGNMENT)


def write(path, metadata, tensors):
    """Writes {key: value} and {name: float32 array}. Array shapes are outermost first; the file lists them reversed."""
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for key, value in metadata.items():
        out += _string(key) + _value(value)
    offset = 0
    for name, array in tensors.items():
        assert array.dtype == np.float32, name
        out += _string(name) + struct.pack("<I", array.ndim)
        out += struct.pack(f"<{array.ndim}Q", *reversed(array.shape))
        out += struct.pack("<IQ", TENSOR_F32, offset)
        offset += array.nbytes + len(_padding(array.nbytes))
    out += _padding(len(out))
    for array in tensors.values():
        data = np.ascontiguousarray(array).astype("<f4").tobytes()
        out += data + _padding(len(data))
    with open(path, "wb") as file:
        file.write(out)


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values[0] if len(values) == 1 else values

    def string(self):
        length = self.take("<Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            item, count = self.take("<I"), self.take("<Q")
            return [self.value(item) for _ in range(count)]
        return self.take(SCALARS[kind])


def read(path):
    """Returns ({key: value}, {name: float32 array with its shape outermost first})."""
    with open(path, "rb") as file:
        cursor = _Cursor(file.read())
    if cursor.data[:4] != b"GGUF":
        raise ValueError(f"{path} is not a GGUF file")
    cursor.at = 4
    version, tensor_count, value_count = cursor.take("<I"), cursor.take("<Q"), cursor.take("<Q")
    if version not in (2, 3):
        raise ValueError(f"{path} has GGUF version {version}, this reader takes 2 and 3")
    metadata = {}
    for _ in range(value_count):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.take("<I"))
    infos = []
    for _ in range(tensor_count):
        name = cursor.string()
        shape = [cursor.take("<Q") for _ in range(cursor.take("<I"))][::-1]
        kind, offset = cursor.take("<I"), cursor.take("<Q")
        if kind != TENSOR_F32:
            raise ValueError(f"{path}: tensor {name} has type {kind}, this reader takes F32 (0) only")
        infos.append((name, shape, offset))
    start = cursor.at + len(_padding(cursor.at))
    tensors = {}
    for name, shape, offset in infos:
        count = int(np.prod(shape))
        tensors[name] = np.frombuffer(cursor.data, "<f4", count, start + offset).reshape(shape)
    return metadata, tensors
