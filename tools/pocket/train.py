"""Step 3: trains one of the two models for a given time, exports it and judges it.

    python3 train.py dense|hybrid DATA OUT --until 470

DATA holds train.npz, held.npz and tokenizer.json of corpus.py. Matrices are trained by Muon, the rest by AdamW, in
bf16. From 65 % of the time on, the forward pass sees the weights as the exported file will hold them, and gradients go
straight through to the master weights.
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


def schedule(f):
    """Learning-rate factor at the fraction f of the time: short warm-up, flat to 0.4, then linear to 0.02."""
    return min(1.0, f / 0.02 + 0.02) if f < 0.4 else 1.0 - 0.98 * (f - 0.4) / 0.6


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model", choices=["dense", "hybrid"]), a.add_argument("data"), a.add_argument("out")
    a.add_argument(
        "--until",
        type=float,
        default=470,
        help="training ends this many seconds after the start; judging takes up to 90 more",
    )
    a.add_argument("--work", default="/tmp/pocket-hf", help="folder for the Hugging Face form")
    a.add_argument("--rows", type=int, default=64)
    a.add_argument("--steps", type=int, default=1 << 30)
    a.add_argument("--tiny", action="store_true", help="a model of two layers, to try the script")
    a.add_argument("--warm", action="store_true", help="only compile, so that a later run finds it done")
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
    tokenizer = json.loads((data / "tokenizer.json").read_text())
    train, held = np.load(data / "train.npz"), np.load(data / "held.npz")
    ids = torch.from_numpy(train["ids"].astype(np.int16)).to(device)
    learn = torch.from_numpy(train["learn"]).to(device)
    held_ids = torch.from_numpy(held["ids"].astype(np.int16)).to(device)[:256]
    held_learn = torch.from_numpy(held["learn"]).to(device)[:256]
    log(f"{ids.numel()} ids in {len(ids)} rows, held out {held_ids.numel()}")

    masters = {n: w.to(device) for n, w in models.init(cfg, SEED).items()}
    seen = {n: (w if n in models.FLOATS else w.to(kind)).clone().requires_grad_() for n, w in masters.items()}
    muon = Muon(cfg, {n: w for n, w in masters.items() if n not in ADAM})
    rest = [n for n in masters if n in ADAM]
    for n in rest:
        masters[n].requires_grad_()
    adam = torch.optim.AdamW([masters[n] for n in rest], lr=2e-3, betas=(0.9, 0.95), weight_decay=0.0)
    log(f"{sum(w.numel() for w in masters.values())} weights")

    loss_of = lambda x, w, p: models.loss(cfg, p, x, w)
    if device == "cuda" and not a.no_compile:
        loss_of = torch.compile(loss_of, dynamic=False)

    order = torch.Generator(device=device)
    order.manual_seed(SEED)
    queue, curve, loads, step, started = None, [], [], 0, None
    muon_lr, adam_lr = 0.02, 3e-3
    while step < a.steps:
        f = 0.0 if started is None else (time.time() - started) / (a.until - (started - began))
        f = max(f, step / a.steps)
        if f >= 1:
            break
        with torch.no_grad():
            for n, w in masters.items():
                seen[n].copy_(models.fake_quantize(n, w) if f > 0.65 else w)
                seen[n].grad = None
        if queue is None or len(queue) < a.rows:
            queue = torch.randperm(len(ids), generator=order, device=device)
        pick, queue = queue[: a.rows], queue[a.rows :]
        x, w = ids[pick].long(), learn[pick].float()
        try:
            total, plain, load = loss_of(x, w, seen)
            total.backward()
        except Exception as e:
            if step or device == "cpu":
                raise
            log("compiled step failed, going on without:", repr(e)[:600])
            loss_of = lambda x, w, p: models.loss(cfg, p, x, w)
            total, plain, load = loss_of(x, w, seen)
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
        if started is None:  # the first step includes compilation
            if device == "cuda":
                torch.cuda.synchronize()
            started = time.time()
            log(f"first step done, loss {float(plain):.3f}")
        if step % 20 == 0 or a.tiny:
            value = float(plain)  # waits for the device
            if load is not None:
                loads.append(load.detach().cpu().numpy())
            if step % 200 == 0 or a.tiny:
                took = time.time() - started
                curve.append((step, round(took, 1), round(value, 4)))
                log(
                    f"step {step}, {f * 100:.0f} % of the time, loss {value:.4f}, {step * a.rows * 1024 / took / 1e6:.2f} M ids/s"
                )
    if a.warm:
        return
    log(f"trained {step} steps, {step * a.rows * 1024 / 1e6:.0f} M ids, {step * a.rows / len(ids):.2f} epochs")

    masters = {n: w.detach() for n, w in masters.items()}
    file = out / f"pocket{'-dense' if a.model == 'dense' else ''}.gguf"
    export.write_gguf(file, cfg, masters, tokenizer)
    size = file.stat().st_size
    log(f"{file.name}: {size} bytes")
    _, shipped, _ = export.read_gguf(file)
    shipped = {n: w.to(device, torch.float32) for n, w in shipped.items()}
    torch.backends.cuda.matmul.allow_tf32 = False
    bpe = corpus.load_tokenizer(tokenizer)
    said = evaluate.transcripts(cfg, shipped, bpe)
    report = dict(
        config=models.as_dict(cfg),
        steps=step,
        rows=a.rows,
        seconds=round(time.time() - started, 1),
        ids=step * a.rows * 1024,
        epochs=step * a.rows / len(ids),
        seed=SEED,
        bytes=size,
        curve=curve,
        summary=evaluate.summary(said),
        transcripts=said,
    )
    save = lambda: (out / f"{a.model}-report.json").write_text(json.dumps(report))
    save()
    log("summary", report["summary"])
    rounded = {n: (w if n in models.FLOATS else w.bfloat16().float()) for n, w in masters.items()}
    report["held_loss"] = dict(
        bf16=evaluate.held_loss(cfg, rounded, held_ids, held_learn),
        shipped=evaluate.held_loss(cfg, shipped, held_ids, held_learn),
    )
    log("held-out nats per id:", report["held_loss"])
    if loads:
        report["expert_load"] = np.mean(loads[-50:], 0).round(5).tolist()
    save()
    export.write_hf(work / f"hf-{a.model}", cfg, rounded, tokenizer)
    export.write_hf(work / f"hf-{a.model}-shipped", cfg, shipped, tokenizer)
    own = lambda p: (lambda t: models.logits(cfg, p, t.to(device))[0].cpu())
    fixtures = {}
    with torch.no_grad():
        for name, p in (("unquantized", rounded), ("shipped", shipped)):
            mine = evaluate.fixture(cfg, bpe, own(p), "tools/pocket/models.py, f32")
            try:
                folder = work / (f"hf-{a.model}" + ("-shipped" if name == "shipped" else ""))
                model, version = evaluate.transformers_logits(str(folder))
                exact = export.hf_weights(cfg, {n: w.float().cpu() for n, w in p.items()})
                state = model.state_dict()
                for key, value in exact.items():  # the folder is BF16; the fixture uses the exact f32 values
                    if key in state:
                        state[key].copy_(value)
                theirs = evaluate.fixture(
                    cfg, bpe, lambda t: model(t).logits[0], f"transformers {version}, f32, eager, CPU"
                )
                far = max(
                    np.abs(
                        np.frombuffer(base64.b64decode(x["logits"]), "<f4")
                        - np.frombuffer(base64.b64decode(y["logits"]), "<f4")
                    ).max()
                    for x, y in zip(mine["cases"], theirs["cases"])
                )
                log(f"{name}: transformers and our forward pass differ by at most {far:.2e}")
                fixtures[name] = theirs
            except Exception as e:
                log(f"{name}: transformers failed: {repr(e)[:1500]}")
                fixtures[name] = mine
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
