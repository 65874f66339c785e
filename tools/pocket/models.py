"""The two pocket models as functions of a dict of tensors; layers of one kind lie stacked in one tensor.

Stacked weights make the optimizer, the fake quantization and the export a few batched operations. Weights have torch
order [layer, out, in]. Norm weights are f32, matrices have the type that the caller gives them.
"""
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F


@dataclass
class Dense:
    """`qwen3`"""

    arch: str = "qwen3"
    vocab: int = 4096
    width: int = 256
    layers: int = 11
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    ffn: int = 768
    theta: float = 1e6
    eps: float = 1e-6
    context: int = 65536


@dataclass
class Hybrid:
    """`qwen35moe`: gated DeltaNet, every fourth layer full attention; experts in every layer; one extra MTP block"""

    arch: str = "qwen35moe"
    vocab: int = 4096
    width: int = 256
    layers: int = 8
    interval: int = 4
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    rotary: int = 32
    experts: int = 24
    used: int = 4
    expert_ffn: int = 128
    shared_ffn: int = 256
    k_heads: int = 2
    v_heads: int = 4
    state: int = 64
    conv: int = 4
    theta: float = 1e6
    eps: float = 1e-6
    context: int = 65536

    @property
    def full(self):
        return [i for i in range(self.layers) if (i + 1) % self.interval == 0]


def init(cfg, seed):
    """Master weights, f32."""
    g = torch.Generator().manual_seed(seed)
    d, p = cfg.width, {}

    def matrix(name, *shape, gain=1.0):
        p[name] = torch.randn(*shape, generator=g) * (gain * 0.6 / math.sqrt(shape[-1]))

    def ones(name, *shape):
        p[name] = torch.ones(*shape)

    p["embed"] = torch.randn(cfg.vocab, d, generator=g) * 0.02
    ones("norm", d)
    q, kv = cfg.heads * cfg.head, cfg.kv_heads * cfg.head
    deep = 1 / math.sqrt(2 * cfg.layers)
    if cfg.arch == "qwen3":
        n = cfg.layers
        ones("attn_norm", n, d), ones("ffn_norm", n, d)
        matrix("q", n, q, d), matrix("k", n, kv, d), matrix("v", n, kv, d), matrix("o", n, d, q, gain=deep)
        ones("q_norm", n, cfg.head), ones("k_norm", n, cfg.head)
        matrix("gate", n, cfg.ffn, d), matrix("up", n, cfg.ffn, d), matrix("down", n, d, cfg.ffn, gain=deep)
        return p
    # Blocks 0..layers-1 are the trunk, block `layers` predicts one token further (always full attention).
    n, full = cfg.layers + 1, len(cfg.full) + 1
    lin = cfg.layers - len(cfg.full)
    e, f, s = cfg.experts, cfg.expert_ffn, cfg.shared_ffn
    ones("attn_norm", n, d), ones("ffn_norm", n, d)
    matrix("q", full, 2 * q, d), matrix("k", full, kv, d), matrix("v", full, kv, d), matrix("o", full, d, q, gain=deep)
    ones("q_norm", full, cfg.head), ones("k_norm", full, cfg.head)
    kd, vd = cfg.k_heads * cfg.state, cfg.v_heads * cfg.state
    matrix("qkv", lin, 2 * kd + vd, d), matrix("z", lin, vd, d), matrix("lin_out", lin, d, vd, gain=deep)
    matrix("beta", lin, cfg.v_heads, d), matrix("alpha", lin, cfg.v_heads, d)
    p["conv"] = torch.randn(lin, 2 * kd + vd, cfg.conv, generator=g) * 0.3
    p["a_log"] = torch.rand(lin, cfg.v_heads, generator=g).mul(15).add(1).log()
    step = torch.exp(torch.rand(lin, cfg.v_heads, generator=g) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
    p["dt"] = step + torch.log(-torch.expm1(-step))
    ones("lin_norm", lin, cfg.state)
    p["router"] = torch.randn(n, e, d, generator=g) * 0.02
    matrix("gate", n, e * f, d), matrix("up", n, e * f, d)
    matrix("down", n, d, e * f, gain=deep * math.sqrt(e))
    matrix("s_gate", n, s, d), matrix("s_up", n, s, d), matrix("s_down", n, d, s, gain=deep)
    p["s_router"] = torch.randn(n, d, generator=g) * 0.02
    matrix("eh", d, 2 * d)
    ones("enorm", d), ones("hnorm", d), ones("mtp_norm", d)
    return p


# Kept in f32 in the file and while training.
FLOATS = {
    "norm",
    "attn_norm",
    "ffn_norm",
    "q_norm",
    "k_norm",
    "lin_norm",
    "conv",
    "a_log",
    "dt",
    "router",
    "s_router",
    "enorm",
    "hnorm",
    "mtp_norm",
}
SMALL = {"beta", "alpha"}  # matrices with few rows: Q8_0


def rms(x, w, eps):
    f = x.float()
    return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + eps) * w).to(x.dtype)


def rope_tables(cfg, length, device, start=0):
    n = getattr(cfg, "rotary", cfg.head)
    inv = cfg.theta ** (-torch.arange(0, n, 2, dtype=torch.float64, device=device) / n)
    angle = torch.arange(start, start + length, dtype=torch.float64, device=device)[:, None] * inv
    return angle.cos().float(), angle.sin().float()


def rope(x, cos, sin):
    """x [batch, heads, time, head]; pairs (j, j + n/2) of the first n dims rotate."""
    n = 2 * cos.shape[-1]
    a, b, rest = x[..., : n // 2].float(), x[..., n // 2 : n].float(), x[..., n:]
    return torch.cat([(a * cos - b * sin).to(x.dtype), (a * sin + b * cos).to(x.dtype), rest], -1)


def attention(cfg, h, wq, wk, wv, wo, q_norm, k_norm, tables, gated):
    b, t, _ = h.shape
    q = F.linear(h, wq).view(b, t, cfg.heads, -1)
    gate = None
    if gated:
        q, gate = q.split(cfg.head, -1)
    k = F.linear(h, wk).view(b, t, cfg.kv_heads, cfg.head)
    v = F.linear(h, wv).view(b, t, cfg.kv_heads, cfg.head).transpose(1, 2)
    q = rope(rms(q, q_norm, cfg.eps).transpose(1, 2), *tables)
    k = rope(rms(k, k_norm, cfg.eps).transpose(1, 2), *tables)
    r = cfg.heads // cfg.kv_heads
    k, v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    if gate is not None:
        a = a * torch.sigmoid(gate)
    return F.linear(a.reshape(b, t, -1), wo)


def dense_block(cfg, x, tables, attn_norm, attn, ffn_norm, gate, up, down):
    x = x + attention(cfg, rms(x, attn_norm, cfg.eps), *attn, tables, False)
    h = rms(x, ffn_norm, cfg.eps)
    return x + F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down)


def dense_hidden(cfg, p, ids):
    x = F.embedding(ids, p["embed"])
    tables = rope_tables(cfg, ids.shape[1], ids.device)
    p = {n: (w if n in ("embed", "norm") else w.unbind(0)) for n, w in p.items()}
    for i in range(cfg.layers):
        attn = [p[n][i] for n in ("q", "k", "v", "o", "q_norm", "k_norm")]
        x = dense_block(cfg, x, tables, p["attn_norm"][i], attn, *(p[n][i] for n in ("ffn_norm", "gate", "up", "down")))
    return rms(x, p["norm"], cfg.eps)


def delta_chunked(q, k, v, g, beta, chunk=64):
    """Gated delta rule over whole sequences; q, k, v [b, h, t, s], g, beta [b, h, t]; f32, exact up to rounding."""
    b, h, t, s = q.shape
    pad = -t % chunk
    if pad:
        q, k, v = (F.pad(x, (0, 0, 0, pad)) for x in (q, k, v))
        g, beta = F.pad(g, (0, pad)), F.pad(beta, (0, pad))
    n = (t + pad) // chunk
    q, k, v = (x.view(b, h, n, chunk, s) for x in (q, k, v))
    cum = g.view(b, h, n, chunk).cumsum(-1)
    beta = beta.view(b, h, n, chunk, 1)
    lower = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    decay = (cum[..., :, None] - cum[..., None, :]).masked_fill(~lower, -1e30).exp()
    kk = beta * decay * (k @ k.transpose(-1, -2))
    system = kk.tril(-1) + torch.eye(chunk, device=q.device)
    grow = cum.exp()[..., None]
    solved = torch.linalg.solve_triangular(
        system, torch.cat([beta * v, beta * grow * k], -1), upper=False, unitriangular=True
    )
    u, w = solved.split(s, -1)
    qk = (q @ k.transpose(-1, -2)) * decay
    qg = q * grow
    last = cum[..., -1:]
    kl = (k * (last - cum).exp()[..., None]).transpose(-1, -2)
    # Each chunk maps the state S to carry @ S + add; a scan over the chunks gives the state that enters each of them.
    carry = last.exp()[..., None] * torch.eye(s, device=q.device) - kl @ w
    add = kl @ u
    shift = 1
    while shift < n:
        far = carry[:, :, shift:]
        add = torch.cat([add[:, :, :shift], far @ add[:, :, :-shift] + add[:, :, shift:]], 2)
        carry = torch.cat([carry[:, :, :shift], far @ carry[:, :, :-shift]], 2)
        shift *= 2
    state = torch.cat([torch.zeros_like(add[:, :, :1]), add[:, :, :-1]], 2)
    out = qg @ state + qk @ (u - w @ state)
    return out.reshape(b, h, n * chunk, s)[:, :, :t]


def delta_net(cfg, h, wqkv, wz, wb, wa, conv, a_log, dt, norm, wo):
    b, t, _ = h.shape
    kd = cfg.k_heads * cfg.state
    u = F.linear(h, wqkv)
    wide = F.pad(u, (0, 0, cfg.conv - 1, 0)).float()
    c = sum(wide[:, i : i + t] * conv[:, i] for i in range(cfg.conv))
    c = F.silu(c)
    split = lambda x, n: x.view(b, t, n, cfg.state).transpose(1, 2)
    q, k, v = (
        split(c[..., :kd], cfg.k_heads),
        split(c[..., kd : 2 * kd], cfg.k_heads),
        split(c[..., 2 * kd :], cfg.v_heads),
    )
    q = q * torch.rsqrt(q.pow(2).sum(-1, keepdim=True) + 1e-6) / math.sqrt(cfg.state)
    k = k * torch.rsqrt(k.pow(2).sum(-1, keepdim=True) + 1e-6)
    r = cfg.v_heads // cfg.k_heads
    q, k = q.repeat_interleave(r, 1), k.repeat_interleave(r, 1)
    beta = torch.sigmoid(F.linear(h, wb).float()).transpose(1, 2)
    g = (-a_log.float().exp() * F.softplus(F.linear(h, wa).float() + dt)).transpose(1, 2)
    o = delta_chunked(q, k, v, g, beta).transpose(1, 2)
    o = rms(o, norm, cfg.eps) * F.silu(F.linear(h, wz).float()).view(b, t, cfg.v_heads, cfg.state)
    return F.linear(o.reshape(b, t, -1).to(h.dtype), wo)


def moe(cfg, h, router, gate, up, down, s_router, s_gate, s_up, s_down):
    """Every expert is computed and those not chosen get weight 0: for experts this small that is faster than a gather."""
    probs = F.linear(h.float(), router).softmax(-1)
    top, which = probs.topk(cfg.used, -1)
    weights = torch.zeros_like(probs).scatter(-1, which, top / top.sum(-1, keepdim=True))
    act = F.silu(F.linear(h, gate)) * F.linear(h, up)
    act = (act.unflatten(-1, (cfg.experts, cfg.expert_ffn)) * weights[..., None].to(h.dtype)).flatten(-2)
    shared = F.linear(F.silu(F.linear(h, s_gate)) * F.linear(h, s_up), s_down)
    mix = torch.sigmoid((h.float() * s_router).sum(-1, keepdim=True)).to(h.dtype)
    load = (weights > 0).float().mean((0, 1)) / cfg.used
    balance = cfg.experts * (load * probs.mean((0, 1))).sum()
    return F.linear(act, down) + mix * shared, balance, load


def hybrid_block(cfg, x, tables, full, attn_norm, mixer, ffn_norm, ffn):
    """full: whether the mixer is full attention. (x, balance loss, load)"""
    h = rms(x, attn_norm, cfg.eps)
    x = x + (attention(cfg, h, *mixer, tables, True) if full else delta_net(cfg, h, *mixer))
    y, balance, load = moe(cfg, rms(x, ffn_norm, cfg.eps), *ffn)
    return x + y, balance, load


def _block(cfg, p, i, x, tables, full, at):
    """Block i, whose mixer is number `at` of its kind."""
    names = ("q", "k", "v", "o", "q_norm", "k_norm")
    if not full:
        names = ("qkv", "z", "beta", "alpha", "conv", "a_log", "dt", "lin_norm", "lin_out")
    ffn = [p[n][i] for n in ("router", "gate", "up", "down", "s_router", "s_gate", "s_up", "s_down")]
    mixer = [p[n][at] for n in names]
    return hybrid_block(cfg, x, tables, full, p["attn_norm"][i], mixer, p["ffn_norm"][i], ffn)


def hybrid_hidden(cfg, p, ids, mtp_ids=None):
    """Hidden states after the last norm, those of the MTP block (or None), balance loss, load [blocks, experts].

    mtp_ids: the token after each of ids; the MTP block then predicts the one after that.
    """
    flat = ("embed", "norm", "eh", "enorm", "hnorm", "mtp_norm")
    p = {n: (w if n in flat else w.unbind(0)) for n, w in p.items()}
    x = F.embedding(ids, p["embed"])
    tables = rope_tables(cfg, ids.shape[1], ids.device)
    full, lin, balances, loads = 0, 0, [], []
    for i in range(cfg.layers):
        is_full = i in cfg.full
        x, balance, load = _block(cfg, p, i, x, tables, is_full, full if is_full else lin)
        full, lin = full + is_full, lin + (not is_full)
        balances.append(balance), loads.append(load)
    x = rms(x, p["norm"], cfg.eps)
    if mtp_ids is None:
        return x, None, sum(balances) / len(balances), torch.stack(loads)
    e = rms(F.embedding(mtp_ids, p["embed"]), p["enorm"], cfg.eps)
    y = F.linear(torch.cat([e, rms(x, p["hnorm"], cfg.eps)], -1), p["eh"])
    y, balance, load = _block(cfg, p, cfg.layers, y, tables, True, full)
    balances.append(balance), loads.append(load)
    return x, rms(y, p["mtp_norm"], cfg.eps), sum(balances) / len(balances), torch.stack(loads)


def cross_entropy(hidden, embed, targets, weights):
    """Sum of weighted losses and of weights."""
    logits = F.linear(hidden, embed).float()
    losses = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return (losses * weights.flatten()).sum()


def loss(cfg, p, ids, weights):
    """ids [batch, time + 2], weights [batch, time + 2] of each id as a target. (training loss, plain loss, load)"""
    now, nxt, after = ids[:, :-2], ids[:, 1:-1], ids[:, 2:]
    total = weights[:, 1:-1].sum()
    if cfg.arch == "qwen3":
        main = cross_entropy(dense_hidden(cfg, p, now), p["embed"], nxt, weights[:, 1:-1]) / total
        return main, main.detach(), None
    x, y, balance, load = hybrid_hidden(cfg, p, now, nxt)
    main = cross_entropy(x, p["embed"], nxt, weights[:, 1:-1]) / total
    further = cross_entropy(y, p["embed"], after, weights[:, 2:]) / weights[:, 2:].sum()
    return main + 0.15 * further + 0.01 * balance, main.detach(), load


def logits(cfg, p, ids):
    x = dense_hidden(cfg, p, ids) if cfg.arch == "qwen3" else hybrid_hidden(cfg, p, ids)[0]
    return F.linear(x, p["embed"]).float()


# --- fake quantization: the values that the exported file will hold -------------------------------------------------


def _peak(g):
    return torch.gather(g, -1, g.abs().argmax(-1, keepdim=True))


def fake_q4_0(x):
    g = x.float().unflatten(-1, (-1, 32))
    d = (_peak(g) / -8).half().float()
    inv = torch.where(d != 0, 1 / torch.where(d != 0, d, torch.ones_like(d)), torch.zeros_like(d))
    return (d * ((g * inv).round() + 8).clamp(0, 15).sub(8)).flatten(-2)


def fake_q6_k(x):
    g = x.float().unflatten(-1, (-1, 16, 16))
    s = _peak(g)[..., 0] / -32
    d = (_peak(s) / -128).half().float()
    inverse = lambda v: torch.where(v != 0, 1 / torch.where(v != 0, v, torch.ones_like(v)), torch.zeros_like(v))
    step = (d * (s * inverse(d)).round().clamp(-128, 127))[..., None]
    return (step * (g * inverse(step)).round().clamp(-32, 31)).flatten(-3)


def fake_quantize(name, w):
    if name in FLOATS or name in SMALL:
        return w.float()
    return fake_q6_k(w) if name == "embed" else fake_q4_0(w)


def as_dict(cfg):
    return asdict(cfg)
