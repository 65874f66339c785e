"""Samples answers from SmolLM2-135M-Instruct: plain PyTorch, static KV cache, one CUDA graph per step.

Every row of the batch is a slot. A slot consumes the forced tokens of its prompt, then samples until <|im_end|> or its
limit, then takes the next prompt from a queue on the device: all slots stay busy and the host never waits.
The system turn is computed once; its keys and values are the first positions of every slot.
"""
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import bpe
import gguf

END, START = 2, 1
try:
    import triton
    import triton.language as tl

    @triton.jit
    def _decode_attention(
        q,
        k,
        v,
        out,
        pos,
        heads: tl.constexpr,
        groups: tl.constexpr,
        length,
        dim: tl.constexpr,
        block: tl.constexpr,
        scale,
    ):
        row, kv = tl.program_id(0), tl.program_id(1)
        p = tl.load(pos + row)
        d = tl.arange(0, dim)
        h = tl.arange(0, 4)
        live = h < groups
        at = (row * heads + kv * groups + h[:, None]) * dim + d[None, :]
        qs = tl.load(q + at, mask=live[:, None], other=0.0).to(tl.float32) * scale
        base = (row.to(tl.int64) * (heads // groups) + kv) * length * dim
        top = tl.full([4], -1e30, tl.float32)
        total = tl.zeros([4], tl.float32)
        acc = tl.zeros([4, dim], tl.float32)
        for start in range(0, p + 1, block):
            t = start + tl.arange(0, block)
            seen = t <= p
            ks = tl.load(k + base + t[:, None] * dim + d[None, :], mask=seen[:, None], other=0.0).to(tl.float32)
            vs = tl.load(v + base + t[:, None] * dim + d[None, :], mask=seen[:, None], other=0.0).to(tl.float32)
            s = tl.sum(qs[:, None, :] * ks[None, :, :], 2)
            s = tl.where(seen[None, :], s, -1e30)
            new = tl.maximum(top, tl.max(s, 1))
            w = tl.exp(s - new[:, None])
            fade = tl.exp(top - new)
            total = total * fade + tl.sum(w, 1)
            acc = acc * fade[:, None] + tl.sum(w[:, :, None] * vs[None, :, :], 1)
            top = new
        tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), mask=live[:, None])

except ImportError:
    triton = None


def attend_plain(q, k, v, pos):
    """q [rows, heads, dim]; k, v [rows, kv heads, length, dim]; row r sees positions 0..pos[r]."""
    rows, heads, dim = q.shape
    kv, length = k.shape[1:3]
    s = torch.matmul(q.view(rows, kv, heads // kv, dim), k.transpose(2, 3)).float() / math.sqrt(dim)
    seen = torch.arange(length, device=q.device)[None, :] <= pos[:, None]
    w = s.masked_fill(~seen[:, None, None, :], -1e30).softmax(-1).to(v.dtype)
    return torch.matmul(w, v).reshape(rows, heads, dim)


def attend_triton(q, k, v, pos):
    rows, heads, dim = q.shape
    kv, length = k.shape[1:3]
    out = torch.empty_like(q)
    _decode_attention[(rows, kv)](
        q, k, v, out, pos, heads, heads // kv, length, dim, 32, 1 / math.sqrt(dim), num_warps=2
    )
    return out


class Teacher:
    def __init__(self, path, device, dtype):
        file = gguf.Reader(path)
        meta = file.meta
        tokens = meta["tokenizer.ggml.tokens"]
        merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
        special = {t: i for i, t in enumerate(tokens[:17]) if meta["tokenizer.ggml.token_type"][i] == 3}
        self.bpe = bpe.Bpe(tokens, merges, "smollm", special)
        self.layers = meta["llama.block_count"]
        self.heads, self.kv = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
        self.eps, self.dim = meta["llama.attention.layer_norm_rms_epsilon"], 64
        self.device, self.dtype = device, dtype
        load = lambda name: torch.from_numpy(file.tensor(name)).to(device, dtype)
        self.embed, self.norm = load("token_embd.weight"), load("output_norm.weight")
        self.blocks = []
        for i in range(self.layers):
            get = lambda name: load(f"blk.{i}.{name}.weight")
            qkv = torch.cat([get("attn_q"), get("attn_k"), get("attn_v")])
            up = torch.cat([get("ffn_gate"), get("ffn_up")])
            self.blocks.append((get("attn_norm"), qkv, get("attn_output"), get("ffn_norm"), up, get("ffn_down")))
        base = meta["llama.rope.freq_base"]
        angle = torch.arange(4096, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, 64, 2).double() / 64)
        self.cos, self.sin = angle.cos().float().to(device), angle.sin().float().to(device)
        self.attend = attend_plain
        if triton is not None and device == "cuda":
            self._try_triton()

    def _try_triton(self):
        q = torch.randn(64, self.heads, 64, device="cuda", dtype=self.dtype)
        k, v = (torch.randn(64, self.kv, 96, 64, device="cuda", dtype=self.dtype) for _ in range(2))
        pos = torch.randint(0, 96, (64,), device="cuda")
        try:
            error = (attend_triton(q, k, v, pos).float() - attend_plain(q, k, v, pos).float()).abs().max().item()
            print(f"triton attention: largest difference {error:.4f}", flush=True)
            if error < 0.05:
                self.attend = attend_triton
        except Exception as e:  # the plain form is right too, only slower
            print("triton attention failed:", repr(e)[:400], flush=True)

    def _rms(self, x, w):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * w

    def _rope(self, x, cos, sin):
        """Pairs (2j, 2j + 1), as rows are permuted in GGUF files of this architecture."""
        a, b = x.float().unflatten(-1, (32, 2)).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)

    def logits(self, tokens, pos, cache):
        """tokens, pos [rows] -> logits [rows, vocab]; writes the cache [layers, 2, rows, kv, length, dim] at pos."""
        x = self.embed[tokens]
        rows = torch.arange(len(tokens), device=x.device)
        cos, sin = self.cos[pos][:, None], self.sin[pos][:, None]
        split = [self.heads * 64, self.kv * 64, self.kv * 64]
        for (norm1, qkv, out, norm2, up, down), (keys, values) in zip(self.blocks, cache):
            q, k, v = F.linear(self._rms(x, norm1), qkv).split(split, -1)
            q = self._rope(q.unflatten(-1, (self.heads, 64)), cos, sin)
            keys[rows, :, pos] = self._rope(k.unflatten(-1, (self.kv, 64)), cos, sin)
            values[rows, :, pos] = v.unflatten(-1, (self.kv, 64))
            x = x + F.linear(self.attend(q.contiguous(), keys, values, pos).flatten(1), out)
            gate, lift = F.linear(self._rms(x, norm2), up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * lift, down)
        return F.linear(self._rms(x, self.norm), self.embed)

    def sample(self, prompts, limits, system, rows, length, seconds, temperatures, min_p=0.1, seed=0, log=None):
        """prompts: lists of ids (user turn and assistant header). Returns (index, ids, ended) of the
        answers: ended says whether the model itself stopped before the limit."""
        device = self.device
        prefix = self.bpe.encode(f"<|im_start|>system\n{system}<|im_end|>\n")
        cache = torch.zeros(self.layers, 2, rows, self.kv, length, 64, device=device, dtype=self.dtype)
        cache = [tuple(pair) for pair in cache]
        everywhere = torch.zeros(rows, dtype=torch.long, device=device)
        for i, t in enumerate(prefix):
            self.logits(everywhere + t, everywhere + i, cache)
        start = len(prefix)

        count, widest = len(prompts), max(map(len, prompts))
        queue = np.zeros((count + 1, widest), np.int32)
        for i, p in enumerate(prompts):
            queue[i, : len(p)] = p
        size = torch.tensor([len(p) for p in prompts] + [1], device=device)
        limit = torch.tensor(list(limits) + [1 << 30], device=device)
        warmth = torch.tensor(list(temperatures) + [1.0], device=device, dtype=self.dtype)
        queue = torch.from_numpy(queue).to(device)
        assert start + widest + int(max(limits)) < length, "cache too short"

        slot = torch.arange(rows, device=device) % count
        next_prompt = torch.tensor(rows, device=device)
        step_in = torch.zeros(rows, dtype=torch.long, device=device)
        token = queue[slot, 0].long()
        # Row `count` of the answers takes what slots write while they read a prompt or have none left.
        answers = torch.full((count + 1, int(max(limits))), -1, dtype=torch.int32, device=device)
        torch.manual_seed(seed)

        def step():
            logits = self.logits(token, start + step_in, cache)
            logits.div_(warmth[slot][:, None])
            floor = logits.max(-1, keepdim=True).values + math.log(min_p)
            noise = torch.empty(logits.shape, device=device, dtype=torch.float32).exponential_().log_()
            drawn = torch.sub(logits, noise).masked_fill_(logits < floor, -1e30).argmax(-1)
            after = step_in + 1
            n = size[slot]
            forced = after < n
            made = after - n  # ids of this answer before this one
            chosen = torch.where(forced, queue[slot, after.clamp(max=widest - 1)].long(), drawn)
            answers[torch.where(forced, count, slot), made.clamp(0, answers.shape[1] - 1)] = chosen.int()
            done = ~forced & ((drawn == END) | (made + 1 >= limit[slot]))
            fresh = (next_prompt + done.long().cumsum(0) - 1).clamp(max=count)
            slot.copy_(torch.where(done, fresh, slot))
            next_prompt.add_(done.sum())
            # A slot without a prompt stays on its first position.
            step_in.copy_(torch.where(done | (slot == count), torch.zeros_like(after), after))
            token.copy_(torch.where(done, queue[slot, 0].long(), chosen))

        state, run = (slot, next_prompt, step_in, token), step
        if device == "cuda":
            saved = [t.clone() for t in state]
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                step()
                step()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            for t, s in zip(state, saved):
                t.copy_(s)
            answers.fill_(-1)
            run = graph.replay

        began, steps = time.time(), 0
        while time.time() - began < seconds:
            for _ in range(32):
                run()
            steps += 32
            taken = int(next_prompt)  # waits for the device
            if log and steps % 1024 == 0:
                took = time.time() - began
                log(f"{took:.0f} s: {steps} steps, {steps * rows / took:.0f} positions/s, {taken} prompts taken")
            if taken >= count + rows:
                break
        table = answers[:count].cpu().numpy()
        finished = []
        for i in range(min(count, int(next_prompt))):
            row = table[i, : limits[i]]
            ends = np.nonzero(row == END)[0]
            if len(ends):
                finished.append((i, row[: ends[0]].tolist(), True))
            elif row[-1] >= 0:
                finished.append((i, row.tolist(), False))
        return finished


def check(teacher, shared):
    """Compares log-probabilities with the reference that lies beside the model (mean and largest difference)."""
    ref = json.loads((Path(shared) / "SmolLM2-135M-Instruct.logits.json").read_text())
    ids = ref["ids"][:32]
    cache = torch.zeros(teacher.layers, 2, 1, teacher.kv, 64, 64, device=teacher.device, dtype=teacher.dtype)
    cache = [tuple(pair) for pair in cache]
    rows = []
    for i, t in enumerate(ids):
        rows.append(teacher.logits(torch.tensor([t]), torch.tensor([i]), cache).float().log_softmax(-1)[0])
    return torch.stack(rows), ref
