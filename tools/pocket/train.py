"""Step 2: trains one of the two models for a given time, exports it and judges it.

    python3 train.py dense DATA OUT --seconds 390
    python3 train.py hybrid DATA OUT --seconds 180 --rows 32 --start ../../models/pocket.gguf --keep embed gate up down

DATA is what corpus.py writes or is still writing. Matrices are trained by Muon, the rest by AdamW, in bf16. From 20 % of
the time on (with --start from the first step on), the forward pass sees the weights as the exported file will hold them,
and gradients go straight through to the master weights. In the end the weights *are* those of the file: the BF16 form is
made from them.
"""
import argparse
import base64
import json
import time
from pathlib import Path

import numpy as np
import torch

import corpus
import evaluate
import export
import models

ADAM = models.FLOATS | models.SMALL | {"embed"}
SEED = 5


def orthogonalize(g):
    """Newton-Schulz: about U V^T of g = U S V^T, for a stack of matrices."""
    x = g.bfloat16() if g.is_cuda else g
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).to(x.dtype)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.mT if tall else x).float()


class Muon:
    """Keller Jordan's update: orthogonalized Nesterov momentum, scaled by max(1, rows / columns)^0.5."""

    def __init__(self, cfg, masters, momentum=0.95):
        self.cfg, self.momentum = cfg, momentum
        self.state = {n: torch.zeros_like(w) for n, w in masters.items()}

    def _matrices(self, name, g):
        """View of the stack as single matrices: experts count one by one."""
        if self.cfg.arch == "qwen35moe" and name in ("gate", "up"):
            return g.view(-1, self.cfg.expert_ffn, g.shape[-1])
        if self.cfg.arch == "qwen35moe" and name == "down":
            return g.unflatten(-1, (self.cfg.experts, -1)).transpose(1, 2).flatten(0, 1)
        return g if g.dim() == 3 else g[None]

    def _back(self, name, u, like):
        if self.cfg.arch == "qwen35moe" and name == "down":
            return u.unflatten(0, (-1, self.cfg.experts)).transpose(1, 2).reshape(like.shape)
        return u.reshape(like.shape)

    def step(self, masters, grads, lr, decay):
        for n, w in masters.items():
            g, m = grads[n].float(), self.state[n]
            m.lerp_(g, 1 - self.momentum)
            one = self._matrices(n, g.lerp(m, self.momentum))
            scale = max(1.0, one.shape[-2] / one.shape[-1]) ** 0.5
            w.mul_(1 - lr * decay).sub_(self._back(n, orthogonalize(one), w), alpha=lr * scale)


class Rows:
    """The training rows that are there so far; every row is used once before any is used again."""

    def __init__(self, data, device):
        self.data, self.device, self.files, self.queue = data, device, set(), None
        self.ids, self.learn = [], []
        self.order = torch.Generator(device=device)
        self.order.manual_seed(SEED)
        while not self.files:
            self.poll()
            time.sleep(0.1)

    def poll(self):
        found = sorted(set(self.data.glob("train-*.npz")) - self.files)
        fresh = []
        for path in found:
            part = np.load(path)
            fresh += range(self.count(), self.count() + len(part["ids"]))
            self.ids.append(torch.from_numpy(part["ids"].astype(np.int16)).to(self.device))
            self.learn.append(torch.from_numpy(part["learn"]).to(self.device))
            self.files.add(path)
        if fresh:
            self.ids, self.learn = [torch.cat(self.ids)], [torch.cat(self.learn)]
            fresh = torch.tensor(fresh, device=self.device)
            self.queue = self._mixed(fresh if self.queue is None else torch.cat([self.queue, fresh]))

    def count(self):
        return sum(map(len, self.ids))

    def _mixed(self, rows):
        return rows[torch.randperm(len(rows), generator=self.order, device=self.device)]

    def take(self, count):
        while len(self.queue) < count:
            again = torch.arange(self.count(), device=self.device)
            self.queue = torch.cat([self.queue, self._mixed(again)])
        pick, self.queue = self.queue[:count], self.queue[count:]
        return self.ids[0][pick].long(), self.learn[0][pick].float()


def schedule(f):
    """Learning-rate factor at the fraction f of the time: short warm-up, flat to 0.4, then linear to 0.02."""
    return min(1.0, f / 0.02 + 0.02) if f < 0.4 else 1.0 - 0.98 * (f - 0.4) / 0.6


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model", choices=["dense", "hybrid"]), a.add_argument("data"), a.add_argument("out")
    a.add_argument("--seconds", type=float, default=390, help="of training; compiling and judging come on top")
    a.add_argument(
        "--until", type=float, default=1e9, help="training ends this many seconds after the start at the latest"
    )
    a.add_argument("--work", default="/tmp/pocket-hf", help="folder for the Hugging Face form")
    a.add_argument("--rows", type=int, default=64)
    a.add_argument("--start", help="a shipped file to go on from")
    a.add_argument("--keep", nargs="*", default=[], help="tensors of --start that stay as they are")
    a.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    a.add_argument("--after", type=Path, help="compiles at once, but trains only when this file exists")
    a.add_argument("--done", type=Path, help="file to write when training ends and judging begins")
    a.add_argument("--steps", type=int, default=1 << 30)
    a.add_argument("--tiny", action="store_true", help="a model of two layers, to try the script")
    a.add_argument("--no-compile", action="store_true")
    a = a.parse_args()
    began = time.time()
    out, data, work = Path(a.out), Path(a.data), Path(a.work)
    log = lambda *x: print(f"[{a.model} {time.time() - began:.0f}]", *x, flush=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    kind = torch.bfloat16 if device == "cuda" else torch.float32

    cfg = models.Dense() if a.model == "dense" else models.Hybrid()
    if a.tiny:
        cfg.layers = 2 if a.model == "dense" else 4
    if a.start:
        cfg, masters, _ = export.read_gguf(a.start)
        masters = {n: w.float().to(device) for n, w in masters.items()}
    else:
        masters = {n: w.to(device) for n, w in models.init(cfg, SEED).items()}
    rows = Rows(data, device)
    while not (data / "held.npz").exists():
        time.sleep(0.1)
    tokenizer, held = json.loads((data / "tokenizer.json").read_text()), np.load(data / "held.npz")
    held_ids = torch.from_numpy(held["ids"].astype(np.int16)).to(device)[:256]
    held_learn = torch.from_numpy(held["learn"]).to(device)[:256]
    log(f"{rows.count()} rows so far, held out {held_ids.numel()} ids")

    train = [n for n in masters if n not in a.keep]
    seen = {n: (w if n in models.FLOATS else w.to(kind)).clone().requires_grad_(n in train) for n, w in masters.items()}
    muon = Muon(cfg, {n: masters[n] for n in train if n not in ADAM})
    rest = [n for n in train if n in ADAM]
    for n in rest:
        masters[n].requires_grad_()
    muon_lr, adam_lr = 0.02 * a.rate, 3e-3 * a.rate
    adam = torch.optim.AdamW([masters[n] for n in rest], lr=adam_lr, betas=(0.9, 0.95), weight_decay=0.0)
    log(f"{sum(w.numel() for w in masters.values())} weights, {sum(masters[n].numel() for n in train)} of them trained")

    parts = ("dense_block", "hybrid_block", "cross_entropy")
    eager = {n: getattr(models, n) for n in parts}
    if device == "cuda" and not a.no_compile:  # one block stands for all of its kind: far quicker than the whole model
        for n in parts:
            setattr(models, n, torch.compile(eager[n], dynamic=False))
    result = models.loss(cfg, seen, *rows.take(a.rows))
    result[0].backward()
    log(f"compiled, loss {float(result[1]):.3f}")
    del result
    if a.after:
        if device == "cuda":
            torch.cuda.empty_cache()
        while not a.after.exists():
            rows.poll()
            time.sleep(0.3)

    curve, loads, step, started, f = [], [], 0, time.time(), 0.0
    a.seconds = min(a.seconds, a.until - (started - began))
    while step < a.steps and f < 1:
        f = max((time.time() - started) / a.seconds, step / a.steps)
        with torch.no_grad():
            for n in train:
                seen[n].copy_(models.fake_quantize(n, masters[n]) if f > 0.2 or a.start else masters[n])
                seen[n].grad = None
        total, plain, load = models.loss(cfg, seen, *rows.take(a.rows))
        total.backward()
        rate = schedule(f)
        with torch.no_grad():
            muon.step({n: masters[n] for n in muon.state}, {n: seen[n].grad for n in muon.state}, muon_lr * rate, 0.02)
            for n in rest:
                masters[n].grad = seen[n].grad.float()
            for group in adam.param_groups:
                group["lr"] = adam_lr * rate
        adam.step()
        step += 1
        if step % 20 == 0 or a.tiny:
            value = float(plain)  # waits for the device
            rows.poll()
            if load is not None:
                loads.append(load.detach().cpu().numpy())
            if step % 400 == 0 or a.tiny:
                took = time.time() - started
                curve.append((step, round(took, 1), round(value, 4)))
                log(
                    f"step {step}, {f * 100:.0f} % of the time, loss {value:.4f}, {step * a.rows * 1024 / took / 1e6:.2f} M ids/s, {rows.count()} rows"
                )
    took = time.time() - started
    for n in parts:
        setattr(models, n, eager[n])
    if a.done:
        a.done.touch()
    passes = step * a.rows / rows.count()
    log(f"trained {step} steps, {step * a.rows * 1024 / 1e6:.0f} M ids, {passes:.2f} passes over {rows.count()} rows")

    masters = {n: w.detach() for n, w in masters.items()}
    file = out / f"pocket{'-dense' if a.model == 'dense' else ''}.gguf"
    export.write_gguf(file, cfg, masters, tokenizer)
    size = file.stat().st_size
    log(f"{file.name}: {size} bytes")
    _, shipped, _ = export.read_gguf(file)
    shipped = {n: w.to(device, torch.float32) for n, w in shipped.items()}
    settled = {n: (w if n in models.FLOATS else w.bfloat16().float()) for n, w in shipped.items()}
    torch.backends.cuda.matmul.allow_tf32 = False
    bpe = corpus.load_tokenizer(tokenizer)
    said = evaluate.transcripts(cfg, shipped, bpe)
    report = dict(
        config=models.as_dict(cfg),
        steps=step,
        rows=a.rows,
        seconds=round(took, 1),
        ids=step * a.rows * 1024,
        passes=passes,
        seed=SEED,
        bytes=size,
        curve=curve,
        summary=evaluate.summary(said),
        transcripts=said,
    )
    save = lambda: (out / f"{a.model}-report.json").write_text(json.dumps(report))
    save()
    log("summary", report["summary"])
    report["held_loss"] = {
        name: evaluate.held_loss(cfg, p, held_ids, held_learn)
        for name, p in (("masters", masters), ("bf16", settled), ("shipped", shipped))
    }
    log("held-out nats per id:", report["held_loss"])
    report["calls_right"] = evaluate.calls_right(cfg, shipped, bpe)
    log("fresh requests with exactly the right call:", report["calls_right"])
    if loads:
        report["expert_load"] = np.mean(loads[-50:], 0).round(5).tolist()
    save()
    export.write_hf(work / f"hf-{a.model}", cfg, settled, tokenizer)
    own = lambda p: (lambda t: models.logits(cfg, p, t.to(device))[0].cpu())
    fixtures, rows_of = {}, lambda x: np.frombuffer(base64.b64decode(x["logits"]), "<f4").reshape(-1, cfg.vocab)
    with torch.no_grad():
        for name, p in (("bf16", settled), ("shipped", shipped)):
            mine = evaluate.fixture(cfg, bpe, own(p), "tools/pocket/models.py, f32")
            try:
                model, version = evaluate.transformers_logits(str(work / f"hf-{a.model}"))
                exact = export.hf_weights(cfg, {n: w.float().cpu() for n, w in p.items()})
                state = model.state_dict()
                for key, value in exact.items():  # the folder is BF16; the fixture uses the exact f32 values
                    if key in state:
                        state[key].copy_(value)
                theirs = evaluate.fixture(
                    cfg, bpe, lambda t: model(t).logits[0], f"transformers {version}, f32, eager, CPU"
                )
                far = max(np.abs(rows_of(x) - rows_of(y)).max() for x, y in zip(mine["cases"], theirs["cases"]))
                log(f"{name}: transformers and our forward pass differ by at most {far:.2e}")
                fixtures[name] = theirs
            except Exception as e:
                log(f"{name}: transformers failed: {repr(e)[:1500]}")
                fixtures[name] = mine
    report["divergence"] = evaluate.divergence(
        *(np.concatenate([rows_of(x) for x in fixtures[name]["cases"]]) for name in ("bf16", "shipped"))
    )
    log("mean KL between the BF16 form and the file, nats:", report["divergence"])
    try:
        import tokenizers

        theirs = tokenizers.Tokenizer.from_file(str(work / f"hf-{a.model}" / "tokenizer.json"))
        texts = (
            evaluate.FIXTURE_TEXTS
            + [said["stories"][i]["answer"] for i in range(5)]
            + ["  x\n\n y 12's\t<tool_call>{}", "caf\u00e9 \u2603 na\u00efve"]
        )
        log("tokenizer.json agrees:", all(theirs.encode(t).ids == bpe.encode(t) for t in texts))
    except Exception as e:
        log("tokenizers failed:", repr(e)[:500])
    (out / f"{a.model}-fixtures.json").write_text(json.dumps(fixtures))
    save()
    log("done")


if __name__ == "__main__":
    main()
