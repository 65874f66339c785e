"""Writes the shipped GGUF files and their Hugging Face form, and reads a shipped file back.

    python3 export.py hf MODEL.gguf FOLDER      # BF16 safetensors, config.json, tokenizer.json, ...
    python3 export.py again MODEL.gguf OUT.gguf # decodes and encodes again: the bytes are the same
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch

import gguf
import models

TEMPLATE = Path(__file__).with_name("chat_template.jinja")
NAMES = {"qwen3": "Hearth Pocket Dense", "qwen35moe": "Hearth Pocket"}


# --- GGUF -----------------------------------------------------------------------------------------------------------


def metadata(cfg, tokenizer):
    a = cfg.arch
    meta = {
        "general.architecture": a,
        "general.type": "model",
        "general.name": NAMES[a],
        "general.license": "mit",
        "general.description": "A very small chat model that ships with Hearth: short stories, simple questions, tool calls.",
        "general.file_type": 2,
        "general.quantization_version": 2,
        "general.sampling.temp": 0.5,
        "general.sampling.top_p": 0.9,
        f"{a}.context_length": cfg.context,
        f"{a}.embedding_length": cfg.width,
        f"{a}.attention.head_count": cfg.heads,
        f"{a}.attention.head_count_kv": cfg.kv_heads,
        f"{a}.attention.key_length": cfg.head,
        f"{a}.attention.value_length": cfg.head,
        f"{a}.attention.layer_norm_rms_epsilon": cfg.eps,
        f"{a}.rope.freq_base": cfg.theta,
        f"{a}.vocab_size": cfg.vocab,
    }
    if a == "qwen3":
        meta |= {
            f"{a}.block_count": cfg.layers,
            f"{a}.feed_forward_length": cfg.ffn,
            f"{a}.rope.dimension_count": cfg.head,
        }
    else:
        pairs = cfg.rotary // 2
        sections = [(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3, 0]
        meta |= {
            f"{a}.block_count": cfg.layers + 1,
            f"{a}.nextn_predict_layers": 1,
            f"{a}.rope.dimension_count": cfg.rotary,
            f"{a}.rope.dimension_sections": np.array(sections),
            f"{a}.full_attention_interval": cfg.interval,
            f"{a}.attention.recurrent_layers": [i < cfg.layers and i not in cfg.full for i in range(cfg.layers + 1)],
            f"{a}.ssm.conv_kernel": cfg.conv,
            f"{a}.ssm.state_size": cfg.state,
            f"{a}.ssm.group_count": cfg.k_heads,
            f"{a}.ssm.time_step_rank": cfg.v_heads,
            f"{a}.ssm.inner_size": cfg.v_heads * cfg.state,
            f"{a}.expert_count": cfg.experts,
            f"{a}.expert_used_count": cfg.used,
            f"{a}.expert_feed_forward_length": cfg.expert_ffn,
            f"{a}.expert_shared_feed_forward_length": cfg.shared_ffn,
        }
    tokens, specials = tokenizer["tokens"], tokenizer["specials"]
    kinds = np.ones(len(tokens), np.int32)
    for t in specials:
        kinds[tokens.index(t)] = 3 if t.startswith("<|") else 4
    return meta | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [" ".join(m) for m in tokenizer["merges"]],
        "tokenizer.ggml.bos_token_id": tokens.index("<|endoftext|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        "tokenizer.ggml.padding_token_id": tokens.index("<|endoftext|>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE.read_text(),
    }


def _tiled(cfg):
    """Value heads by tile (GGUF) as indices of value heads by group (ours, Hugging Face)."""
    r = cfg.v_heads // cfg.k_heads
    return np.array([(v % cfg.k_heads) * r + v // cfg.k_heads for v in range(cfg.v_heads)])


def _rows(cfg, order):
    return (order[:, None] * cfg.state + np.arange(cfg.state)).ravel()


_DENSE = {
    "attn_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "ffn_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
_FULL = ("q", "k", "v", "o", "q_norm", "k_norm")


def _layout(cfg):
    """[(GGUF name, our name, index or None, to GGUF, from GGUF, type)]; our arrays are f32."""
    same = lambda x: x
    out = [
        ("token_embd.weight", "embed", None, same, same, gguf.Q6_K),
        ("output_norm.weight", "norm", None, same, same, gguf.F32),
    ]

    def put(name, ours, i, to=same, back=same, kind=None):
        kind = (
            (gguf.F32 if ours in models.FLOATS else gguf.Q8_0 if ours in models.SMALL else gguf.Q4_0)
            if kind is None
            else kind
        )
        out.append((name, ours, i, to, back, kind))

    if cfg.arch == "qwen3":
        for i in range(cfg.layers):
            for ours, theirs in _DENSE.items():
                put(f"blk.{i}.{theirs}.weight", ours, i)
        return out
    order = _tiled(cfg)
    back = np.argsort(order)
    v_rows, v_back = _rows(cfg, order), _rows(cfg, back)
    kd = 2 * cfg.k_heads * cfg.state
    tail = lambda rows: (lambda x: np.concatenate([x[:kd], x[kd:][rows]]))
    e, f, d = cfg.experts, cfg.expert_ffn, cfg.width
    full = lin = 0
    for i in range(cfg.layers + 1):
        b = f"blk.{i}."
        put(b + "attn_norm.weight", "attn_norm", i)
        if i in cfg.full or i == cfg.layers:
            for ours in _FULL:
                put(b + _DENSE[ours] + ".weight", ours, full)
            full += 1
        else:
            put(b + "attn_qkv.weight", "qkv", lin, tail(v_rows), tail(v_back))
            put(b + "attn_gate.weight", "z", lin, lambda x: x[v_rows], lambda x: x[v_back])
            put(b + "ssm_beta.weight", "beta", lin, lambda x: x[order], lambda x: x[back])
            put(b + "ssm_alpha.weight", "alpha", lin, lambda x: x[order], lambda x: x[back])
            put(b + "ssm_conv1d.weight", "conv", lin, tail(v_rows), tail(v_back))
            put(b + "ssm_dt.bias", "dt", lin, lambda x: x[order], lambda x: x[back])
            put(b + "ssm_a", "a_log", lin, lambda x: -np.exp(x[order]), lambda x: np.log(-x.astype(np.float64))[back])
            put(b + "ssm_norm.weight", "lin_norm", lin)
            put(b + "ssm_out.weight", "lin_out", lin, lambda x: x[:, v_rows], lambda x: x[:, v_back])
            lin += 1
        put(b + "post_attention_norm.weight", "ffn_norm", i)
        put(b + "ffn_gate_inp.weight", "router", i)
        stack, flat = (lambda x: x.reshape(e, f, d)), (lambda x: x.reshape(e * f, d))
        put(b + "ffn_gate_exps.weight", "gate", i, stack, flat)
        put(b + "ffn_up_exps.weight", "up", i, stack, flat)
        put(
            b + "ffn_down_exps.weight",
            "down",
            i,
            lambda x: x.reshape(d, e, f).transpose(1, 0, 2),
            lambda x: x.transpose(1, 0, 2).reshape(d, e * f),
        )
        put(b + "ffn_gate_inp_shexp.weight", "s_router", i)
        put(b + "ffn_gate_shexp.weight", "s_gate", i)
        put(b + "ffn_up_shexp.weight", "s_up", i)
        put(b + "ffn_down_shexp.weight", "s_down", i)
    b = f"blk.{cfg.layers}.nextn."
    put(b + "eh_proj.weight", "eh", None)
    put(b + "enorm.weight", "enorm", None), put(b + "hnorm.weight", "hnorm", None), put(
        b + "shared_head_norm.weight", "mtp_norm", None
    )
    return out


def write_gguf(path, cfg, weights, tokenizer):
    """weights: our names -> f32 tensors (master weights or those of a decoded file)."""
    arrays = {n: w.detach().double().cpu().numpy() for n, w in weights.items()}
    tensors = [
        (name, to(arrays[ours] if i is None else arrays[ours][i]).astype(np.float32), kind)
        for name, ours, i, to, _, kind in _layout(cfg)
    ]
    gguf.write(path, metadata(cfg, tokenizer), tensors)


def read_gguf(path):
    """(config, weights decoded to f32, tokenizer)"""
    file = gguf.Reader(path)
    m, a = file.meta, file.meta["general.architecture"]
    common = dict(
        vocab=m[f"{a}.vocab_size"],
        width=m[f"{a}.embedding_length"],
        heads=m[f"{a}.attention.head_count"],
        kv_heads=m[f"{a}.attention.head_count_kv"],
        head=m[f"{a}.attention.key_length"],
        theta=m[f"{a}.rope.freq_base"],
        eps=1e-6,
        context=m[f"{a}.context_length"],
    )
    if a == "qwen3":
        cfg = models.Dense(layers=m[f"{a}.block_count"], ffn=m[f"{a}.feed_forward_length"], **common)
    else:
        cfg = models.Hybrid(
            layers=m[f"{a}.block_count"] - 1,
            interval=m[f"{a}.full_attention_interval"],
            rotary=m[f"{a}.rope.dimension_count"],
            experts=m[f"{a}.expert_count"],
            used=m[f"{a}.expert_used_count"],
            expert_ffn=m[f"{a}.expert_feed_forward_length"],
            shared_ffn=m[f"{a}.expert_shared_feed_forward_length"],
            k_heads=m[f"{a}.ssm.group_count"],
            v_heads=m[f"{a}.ssm.time_step_rank"],
            state=m[f"{a}.ssm.state_size"],
            conv=m[f"{a}.ssm.conv_kernel"],
            **common,
        )
    lists = {}
    for name, ours, i, _, back, _ in _layout(cfg):
        value = torch.from_numpy(np.ascontiguousarray(back(file.tensor(name))))
        if i is None:
            lists[ours] = value
        else:
            lists.setdefault(ours, []).append(value)
    weights = {n: torch.stack(v) if isinstance(v, list) else v for n, v in lists.items()}
    tokens, kinds = m["tokenizer.ggml.tokens"], m["tokenizer.ggml.token_type"]
    tokenizer = dict(
        tokens=tokens,
        merges=[x.split(" ") for x in m["tokenizer.ggml.merges"]],
        specials=[t for t, k in zip(tokens, kinds) if k != 1],
    )
    return cfg, weights, tokenizer


# --- Hugging Face ---------------------------------------------------------------------------------------------------


def hf_weights(cfg, w):
    out = {"model.embed_tokens.weight": w["embed"]}
    if cfg.arch == "qwen3":
        out["model.norm.weight"] = w["norm"]
        names = dict(
            attn_norm="input_layernorm",
            q="self_attn.q_proj",
            k="self_attn.k_proj",
            v="self_attn.v_proj",
            o="self_attn.o_proj",
            q_norm="self_attn.q_norm",
            k_norm="self_attn.k_norm",
            ffn_norm="post_attention_layernorm",
            gate="mlp.gate_proj",
            up="mlp.up_proj",
            down="mlp.down_proj",
        )
        for ours, theirs in names.items():
            for i in range(cfg.layers):
                out[f"model.layers.{i}.{theirs}.weight"] = w[ours][i]
        return out
    out["model.norm.weight"] = w["norm"] - 1  # this family multiplies by 1 + weight
    full = lin = 0
    e, f, d = cfg.experts, cfg.expert_ffn, cfg.width
    for i in range(cfg.layers + 1):
        b = f"model.layers.{i}." if i < cfg.layers else "mtp.layers.0."
        out[b + "input_layernorm.weight"] = w["attn_norm"][i] - 1
        out[b + "post_attention_layernorm.weight"] = w["ffn_norm"][i] - 1
        if i in cfg.full or i == cfg.layers:
            for ours in ("q", "k", "v", "o"):
                out[b + f"self_attn.{ours}_proj.weight"] = w[ours][full]
            out[b + "self_attn.q_norm.weight"] = w["q_norm"][full] - 1
            out[b + "self_attn.k_norm.weight"] = w["k_norm"][full] - 1
            full += 1
        else:
            b2 = b + "linear_attn."
            for ours, theirs in dict(
                qkv="in_proj_qkv",
                z="in_proj_z",
                beta="in_proj_b",
                alpha="in_proj_a",
                lin_norm="norm",
                lin_out="out_proj",
            ).items():
                out[b2 + theirs + ".weight"] = w[ours][lin]
            out[b2 + "conv1d.weight"] = w["conv"][lin][:, None]
            out[b2 + "dt_bias"], out[b2 + "A_log"] = w["dt"][lin], w["a_log"][lin]
            lin += 1
        b2 = b + "mlp."
        out[b2 + "gate.weight"] = w["router"][i]
        out[b2 + "experts.gate_up_proj"] = torch.cat([w["gate"][i].view(e, f, d), w["up"][i].view(e, f, d)], 1)
        out[b2 + "experts.down_proj"] = w["down"][i].view(d, e, f).transpose(0, 1)
        out[b2 + "shared_expert_gate.weight"] = w["s_router"][i][None]
        for part in ("gate", "up", "down"):
            out[b2 + f"shared_expert.{part}_proj.weight"] = w["s_" + part][i]
    out["mtp.fc.weight"] = w["eh"]
    out["mtp.pre_fc_norm_embedding.weight"], out["mtp.pre_fc_norm_hidden.weight"] = w["enorm"] - 1, w["hnorm"] - 1
    out["mtp.norm.weight"] = w["mtp_norm"] - 1
    return out


def hf_config(cfg, tokenizer):
    ids = tokenizer["tokens"].index
    common = dict(
        vocab_size=cfg.vocab,
        hidden_size=cfg.width,
        num_hidden_layers=cfg.layers,
        num_attention_heads=cfg.heads,
        num_key_value_heads=cfg.kv_heads,
        head_dim=cfg.head,
        rms_norm_eps=cfg.eps,
        max_position_embeddings=cfg.context,
        hidden_act="silu",
        attention_bias=False,
        tie_word_embeddings=True,
        bos_token_id=ids("<|endoftext|>"),
        eos_token_id=ids("<|im_end|>"),
        dtype="bfloat16",
    )
    if cfg.arch == "qwen3":
        return dict(
            architectures=["Qwen3ForCausalLM"],
            model_type="qwen3",
            intermediate_size=cfg.ffn,
            rope_theta=cfg.theta,
            rope_parameters=dict(rope_type="default", rope_theta=cfg.theta),
            **common,
        )
    pairs = cfg.rotary // 2
    rotary = cfg.rotary / cfg.head
    return dict(
        architectures=["Qwen3_5MoeForCausalLM"],
        model_type="qwen3_5_moe_text",
        partial_rotary_factor=rotary,
        rope_parameters=dict(
            rope_type="default",
            rope_theta=cfg.theta,
            partial_rotary_factor=rotary,
            mrope_interleaved=True,
            mrope_section=[(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3],
        ),
        layer_types=["full_attention" if i in cfg.full else "linear_attention" for i in range(cfg.layers)],
        full_attention_interval=cfg.interval,
        linear_conv_kernel_dim=cfg.conv,
        linear_key_head_dim=cfg.state,
        linear_value_head_dim=cfg.state,
        linear_num_key_heads=cfg.k_heads,
        linear_num_value_heads=cfg.v_heads,
        num_experts=cfg.experts,
        num_experts_per_tok=cfg.used,
        moe_intermediate_size=cfg.expert_ffn,
        shared_expert_intermediate_size=cfg.shared_ffn,
        mtp_num_hidden_layers=1,
        **common,
    )


def hf_tokenizer(tokenizer):
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokens = tokenizer["tokens"]
    added = [
        dict(
            id=tokens.index(t),
            content=t,
            single_word=False,
            lstrip=False,
            rstrip=False,
            normalized=False,
            special=t.startswith("<|"),
        )
        for t in tokenizer["specials"]
    ]
    return dict(
        version="1.0",
        truncation=None,
        padding=None,
        added_tokens=added,
        normalizer=dict(type="NFC"),
        pre_tokenizer=dict(
            type="Sequence",
            pretokenizers=[dict(type="Split", pattern=dict(Regex=pattern), behavior="Isolated", invert=False), level],
        ),
        post_processor=None,
        decoder=level,
        model=dict(
            type="BPE",
            dropout=None,
            unk_token=None,
            continuing_subword_prefix=None,
            end_of_word_suffix=None,
            fuse_unk=False,
            byte_fallback=False,
            ignore_merges=False,
            vocab={t: i for i, t in enumerate(tokens) if t not in tokenizer["specials"]},
            merges=tokenizer["merges"],
        ),
    )


def write_safetensors(path, tensors):
    """BF16, sorted by name."""
    head, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(tensors):
        t = tensors[name].detach().to(torch.bfloat16).contiguous().cpu()
        raw = t.view(torch.int16).numpy().tobytes()
        head[name] = dict(dtype="BF16", shape=list(t.shape), data_offsets=[at, at + len(raw)])
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(blobs)


def write_hf(folder, cfg, weights, tokenizer):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", hf_weights(cfg, weights))
    put = lambda name, value: (folder / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    put("config.json", hf_config(cfg, tokenizer))
    put("tokenizer.json", hf_tokenizer(tokenizer))
    put(
        "tokenizer_config.json",
        dict(
            tokenizer_class="PreTrainedTokenizerFast",
            bos_token="<|endoftext|>",
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            add_bos_token=False,
            clean_up_tokenization_spaces=False,
            model_max_length=cfg.context,
            chat_template=TEMPLATE.read_text(),
        ),
    )
    ids = tokenizer["tokens"].index
    put(
        "generation_config.json",
        dict(
            bos_token_id=ids("<|endoftext|>"),
            eos_token_id=[ids("<|im_end|>"), ids("<|endoftext|>")],
            do_sample=True,
            temperature=0.5,
            top_p=0.9,
        ),
    )


def main():
    how, source, target = sys.argv[1:]
    cfg, weights, tokenizer = read_gguf(source)
    if how == "hf":
        write_hf(target, cfg, weights, tokenizer)
    elif how == "again":
        write_gguf(target, cfg, weights, tokenizer)
        print("same bytes" if Path(source).read_bytes() == Path(target).read_bytes() else "bytes differ")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
