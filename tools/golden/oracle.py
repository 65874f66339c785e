"""A plain f64 forward pass of the llama-shaped families, computed from a GGUF file, with switches for every mistake.

It is the second opinion beside transformers: slow, without caches or batching, one sequence at a time. `mistakes()`
lists the deliberately wrong variants that a fixture must be able to tell from the right one.

    python3 tools/golden/oracle.py tests/data/golden/*.gguf    # compares each file with its recorded logits
"""

import dataclasses
import json
import math
import os
import struct
import sys

import numpy as np

import gguf_file

LOGITS_MAGIC = b"HGLD"
AGREEMENT = 2e-5  # of f32 logits with ours, as deviation(): single precision alone costs up to 1e-5


@dataclasses.dataclass(frozen=True)
class Spec:
    """What the metadata of a file says, and the ingredients that a mistake can replace."""

    arch: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    window: int  # keys that a query sees, itself included; 0 means all
    scale: float
    pairing: str  # "interleaved": dims (2j, 2j+1) rotate together; "half": dims (j, j + head_dim/2)
    yarn_factor: float  # 0 means no YaRN
    yarn_original: int
    experts: int
    experts_used: int
    rope_magnitude: float  # multiplies cos and sin
    freq_factors: str = "divide"  # or "ignore", "multiply"
    yarn_ramp: str = "right"  # or "interpolate" (all pairs), "extrapolate" (no pair)
    query_group: str = "contiguous"  # head h reads kv head h / (H / Hkv); "strided": h mod Hkv
    look_ahead: int = 0  # keys after its own position that a query sees; negative hides its own
    norm_placement: str = "pre"  # or "post" (after the residual sum), "residual" (the sum takes the normed input)
    swap_norms: bool = False  # attn_norm and ffn_norm exchanged
    final_norm: bool = True
    norm_offset: float = 0.0  # added to every norm weight
    qk_norm: str = "head"  # where the file has one; or "none", "after_rope", "whole" (over all heads at once)
    swap_qk_norms: bool = False
    glu: str = "gate"  # silu goes on the gate; or "up"
    drop_bias: tuple = ()  # tensor names without layer, such as "attn_q"
    tie_output: bool = False  # use token_embd where the file has its own output
    renormalize: bool = True  # of the chosen experts' weights
    rank_by: str = "high"  # or "low": the worst experts
    skip: tuple = ()  # (layer, "attn" or "ffn") blocks that add nothing


def read_spec(metadata, tensors):
    arch = metadata["general.architecture"]
    key = lambda name, default=None: metadata.get(f"{arch}.{name}", default)
    heads = key("attention.head_count")
    head_dim = key("attention.key_length", key("embedding_length") // heads)
    yarn = key("rope.scaling.type") == "yarn"
    factor = key("rope.scaling.factor", 1.0) if yarn else 0.0
    return Spec(
        arch=arch,
        layers=key("block_count"),
        heads=heads,
        kv_heads=key("attention.head_count_kv", heads),
        head_dim=head_dim,
        eps=key("attention.layer_norm_rms_epsilon"),
        theta=key("rope.freq_base", 10000.0),
        window=key("attention.sliding_window", 0),
        scale=1.0 / math.sqrt(head_dim),
        pairing="interleaved" if arch == "llama" else "half",
        yarn_factor=factor,
        yarn_original=key("rope.scaling.original_context_length", key("context_length")) if yarn else 0,
        experts=key("expert_count", 0),
        experts_used=key("expert_used_count", 0),
        rope_magnitude=1.0 + 0.1 * math.log(factor) if yarn else 1.0,
    )


def frequencies(spec, weights):
    """Angle per position of every pair, [head_dim / 2]."""
    d = spec.head_dim
    pair = np.arange(d // 2)
    angle = spec.theta ** (-2.0 * pair / d)
    factors = weights.get("rope_freqs.weight")
    if factors is not None and spec.freq_factors != "ignore":
        angle = angle / factors if spec.freq_factors == "divide" else angle * factors
    if spec.yarn_factor:
        turn = lambda beta: d * math.log(spec.yarn_original / (beta * 2 * math.pi)) / (2 * math.log(spec.theta))
        low, high = max(0, math.floor(turn(32.0))), min(d - 1, math.ceil(turn(1.0)))
        keep = 1.0 - np.clip((pair - low) / max(0.001, high - low), 0.0, 1.0)
        keep = {"right": keep, "interpolate": 0.0 * keep, "extrapolate": 0.0 * keep + 1.0}[spec.yarn_ramp]
        angle = angle / spec.yarn_factor * (1.0 - keep) + angle * keep
    return angle


def rotate(spec, angle, x):
    """x [tokens, heads, head_dim], at positions 0, 1, …"""
    phi = np.arange(x.shape[0])[:, None, None] * angle
    cos, sin = np.cos(phi) * spec.rope_magnitude, np.sin(phi) * spec.rope_magnitude
    half = spec.head_dim // 2
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if spec.pairing == "interleaved" else (
        np.s_[..., :half], np.s_[..., half:])
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[first] * sin + x[second] * cos
    return out


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu(x):
    return x / (1.0 + np.exp(-x))


class Forward:
    def __init__(self, spec, weights):
        self.spec = spec
        self.weights = {name: np.asarray(array, np.float64) for name, array in weights.items()}
        self.routing_gap = math.inf  # smallest relative distance of the last chosen expert to the first not chosen

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.spec.eps) * (weight + self.spec.norm_offset)

    def linear(self, layer, name, x):
        y = x @ self.weights[f"blk.{layer}.{name}.weight"].T
        bias = self.weights.get(f"blk.{layer}.{name}.bias")
        return y if bias is None or name in self.spec.drop_bias else y + bias

    def qk_norm(self, layer, which, x):
        weight = self.weights.get(f"blk.{layer}.attn_{which}_norm.weight")
        if weight is None or self.spec.qk_norm == "none":
            return x
        if self.spec.qk_norm == "whole":
            return self.norm(x.reshape(len(x), -1), np.tile(weight, x.shape[1])).reshape(x.shape)
        return self.norm(x, weight)

    def attention(self, layer, h):
        spec, count = self.spec, len(h)
        q = self.linear(layer, "attn_q", h).reshape(count, spec.heads, spec.head_dim)
        k = self.linear(layer, "attn_k", h).reshape(count, spec.kv_heads, spec.head_dim)
        v = self.linear(layer, "attn_v", h).reshape(count, spec.kv_heads, spec.head_dim)
        angle = frequencies(spec, self.weights)
        names = ("k", "q") if spec.swap_qk_norms else ("q", "k")
        if spec.qk_norm == "after_rope":
            q, k = rotate(spec, angle, q), rotate(spec, angle, k)
        q, k = self.qk_norm(layer, names[0], q), self.qk_norm(layer, names[1], k)
        if spec.qk_norm != "after_rope":
            q, k = rotate(spec, angle, q), rotate(spec, angle, k)
        i, j = np.arange(count)[:, None], np.arange(count)[None, :]
        visible = j <= np.maximum(i + spec.look_ahead, 0)
        if spec.window:
            visible &= j > i - spec.window
        out = np.empty_like(q)
        for head in range(spec.heads):
            group = spec.heads // spec.kv_heads
            kv = head // group if spec.query_group == "contiguous" else head % spec.kv_heads
            scores = np.where(visible, spec.scale * (q[:, head] @ k[:, kv].T), -np.inf)
            out[:, head] = softmax(scores) @ v[:, kv]
        return self.linear(layer, "attn_output", out.reshape(count, -1))

    def glu(self, gate, up):
        return silu(gate) * up if self.spec.glu == "gate" else gate * silu(up)

    def ffn(self, layer, h):
        spec = self.spec
        if not spec.experts:
            hidden = self.glu(self.linear(layer, "ffn_gate", h), self.linear(layer, "ffn_up", h))
            return self.linear(layer, "ffn_down", hidden)
        share = softmax(self.linear(layer, "ffn_gate_inp", h))
        gate, up, down = (self.weights[f"blk.{layer}.ffn_{name}_exps.weight"] for name in ("gate", "up", "down"))
        out = np.zeros_like(h)
        for token, p in enumerate(share):
            order = np.argsort(-p if spec.rank_by == "high" else p, kind="stable")
            chosen = order[: spec.experts_used]
            last, rest = p[chosen[-1]], p[order[spec.experts_used]]
            self.routing_gap = min(self.routing_gap, abs(last - rest) / max(last, rest))
            total = p[chosen].sum() if spec.renormalize else 1.0
            for e in chosen:
                out[token] += p[e] / total * (down[e] @ self.glu(gate[e] @ h[token], up[e] @ h[token]))
        return out

    def block(self, layer, part, x):
        if (layer, part) in self.spec.skip:
            return x
        names = {"attn": "attn_norm", "ffn": "ffn_norm"}
        if self.spec.swap_norms:
            names = {"attn": "ffn_norm", "ffn": "attn_norm"}
        weight = self.weights[f"blk.{layer}.{names[part]}.weight"]
        run = self.attention if part == "attn" else self.ffn
        if self.spec.norm_placement == "post":
            return self.norm(x + run(layer, x), weight)
        h = self.norm(x, weight)
        return (x if self.spec.norm_placement == "pre" else h) + run(layer, h)

    def logits(self, tokens):
        """[len(tokens), vocabulary]"""
        x = self.weights["token_embd.weight"][np.asarray(tokens)]
        for layer in range(self.spec.layers):
            x = self.block(layer, "ffn", self.block(layer, "attn", x))
        if self.spec.final_norm:
            x = self.norm(x, self.weights["output_norm.weight"])
        head = self.weights["token_embd.weight"]
        if not self.spec.tie_output:
            head = self.weights.get("output.weight", head)
        return x @ head.T


def run(spec, weights, sequences):
    """Logits of all sequences stacked, [sum of lengths, vocabulary]."""
    forward = Forward(spec, weights)
    return np.concatenate([forward.logits(tokens) for tokens in sequences])


def deviation(wrong, right):
    """max |wrong - right| / RMS(right)"""
    return float(np.abs(wrong - right).max() / math.sqrt((right * right).mean()))


def mistakes(spec, weights):
    """{name: fields of Spec that a wrong implementation would have}; only those that apply to this file."""
    has = lambda suffix: any(name.endswith(suffix) for name in weights)
    out = {
        "theta_default": {"theta": 10000.0},
        "theta_10_percent": {"theta": spec.theta * 1.1},
        "eps_1e-6": {"eps": 1e-6},
        "eps_double": {"eps": spec.eps * 2},
        "mask_none": {"look_ahead": 1 << 20},
        "mask_one_ahead": {"look_ahead": 1},
        "mask_hides_self": {"look_ahead": -1},
        "scale_10_percent": {"scale": spec.scale * 1.1},
        "scale_linear": {"scale": 1.0 / spec.head_dim},
        "scale_one": {"scale": 1.0},
        "norm_post": {"norm_placement": "post"},
        "norm_in_residual": {"norm_placement": "residual"},
        "norm_swapped": {"swap_norms": True},
        "norm_final_missing": {"final_norm": False},
        "norm_weight_plus_one": {"norm_offset": 1.0},
        "rope_pairing": {"pairing": "half" if spec.pairing == "interleaved" else "interleaved"},
        "glu_swapped": {"glu": "up"},
    }
    width = weights["token_embd.weight"].shape[1]
    if spec.heads * spec.head_dim != width:
        out["scale_from_width"] = {"scale": 1.0 / math.sqrt(width / spec.heads)}
    if 1 < spec.kv_heads < spec.heads:
        out["head_mapping_strided"] = {"query_group": "strided"}
    if spec.window:
        out["window_none"] = {"window": 0}
        out["window_one_more"] = {"window": spec.window + 1}
        out["window_one_less"] = {"window": spec.window - 1}
    else:
        out["window_invented"] = {"window": 16}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        if has(f".{name}.bias"):
            out[f"bias_{name}"] = {"drop_bias": (name,)}
    if "rope_freqs.weight" in weights:
        out["rope_factors_ignored"] = {"freq_factors": "ignore"}
        out["rope_factors_multiplied"] = {"freq_factors": "multiply"}
    if spec.yarn_factor:
        out["yarn_ignored"] = {"yarn_factor": 0.0, "rope_magnitude": 1.0}
        out["yarn_factor_10_percent"] = {"yarn_factor": spec.yarn_factor * 1.1}
        out["yarn_interpolates_all"] = {"yarn_ramp": "interpolate"}
        out["yarn_extrapolates_all"] = {"yarn_ramp": "extrapolate"}
        out["yarn_magnitude_missing"] = {"rope_magnitude": 1.0}
        out["yarn_magnitude_once"] = {"rope_magnitude": math.sqrt(spec.rope_magnitude)}
        out["yarn_magnitude_twice"] = {"rope_magnitude": spec.rope_magnitude**2}
        out["yarn_original_context"] = {"yarn_original": round(spec.yarn_original * spec.yarn_factor)}
    if has("attn_q_norm.weight"):
        out["qk_norm_missing"] = {"qk_norm": "none"}
        out["qk_norm_after_rope"] = {"qk_norm": "after_rope"}
        out["qk_norm_over_all_heads"] = {"qk_norm": "whole"}
        out["qk_norm_swapped"] = {"swap_qk_norms": True}
    if "output.weight" in weights:
        out["output_tied"] = {"tie_output": True}
    if spec.experts:
        out["experts_one_less"] = {"experts_used": spec.experts_used - 1}
        out["experts_one_more"] = {"experts_used": spec.experts_used + 1}
        out["experts_not_renormalized"] = {"renormalize": False}
        out["experts_worst"] = {"rank_by": "low"}
    return out


def wrong(spec, fields):
    return dataclasses.replace(spec, **fields)


def write_logits(path, sequences, logits):
    """Magic "HGLD", u32 version 1, u32 vocabulary, u32 sequences; per sequence u32 length and its u32 token ids; then
    f32 logits [sum of lengths, vocabulary]. Little-endian."""
    with open(path, "wb") as file:
        file.write(LOGITS_MAGIC + struct.pack("<III", 1, logits.shape[1], len(sequences)))
        for tokens in sequences:
            file.write(struct.pack(f"<I{len(tokens)}I", len(tokens), *tokens))
        file.write(np.ascontiguousarray(logits).astype("<f4").tobytes())


def read_logits(path):
    with open(path, "rb") as file:
        data = file.read()
    version, vocabulary, count = struct.unpack_from("<III", data, 4)
    if data[:4] != LOGITS_MAGIC or version != 1:
        raise ValueError(f"{path} is not a file of golden logits")
    at, sequences = 16, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        sequences.append(list(struct.unpack_from(f"<{length}I", data, at + 4)))
        at += 4 + 4 * length
    return sequences, np.frombuffer(data, "<f4", offset=at).reshape(-1, vocabulary)


def check(path):
    """Returns complaints about one fixture: its logits, the mistakes it must show, the layers that must matter."""
    base = os.path.splitext(path)[0]
    metadata, weights = gguf_file.read(path)
    sequences, golden = read_logits(base + ".bin")
    with open(base + ".json", encoding="utf-8") as file:
        recorded = json.load(file)
    spec = read_spec(metadata, weights)
    right = run(spec, weights, sequences)
    off = deviation(golden, right)
    complaints = [] if off < AGREEMENT else [f"recorded logits differ from the oracle by {off:.2e}"]
    if sequences != recorded["sequences"]:
        complaints.append("the .bin and the .json disagree about the tokens")
    least = ("", math.inf)
    found = mistakes(spec, weights)
    if set(found) != set(recorded["mistakes"]):
        complaints.append("the list of mistakes in the .json is out of date")
    for name, fields in found.items():
        size = deviation(run(wrong(spec, fields), weights, sequences), right)
        least = min(least, (name, size), key=lambda item: item[1])
        if not size > 1e-2:
            complaints.append(f"mistake {name} shows only {size:.2e}")
    print(f"{os.path.basename(base)}: off by {off:.1e}; {len(found)} mistakes, least visible {least[0]} {least[1]:.1e}")
    return complaints


if __name__ == "__main__":
    failures = [f"{path}: {text}" for path in sys.argv[1:] for text in check(path)]
    print("\n".join(failures))
    sys.exit(1 if failures else 0)
