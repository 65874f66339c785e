"""Makes tests/data/golden: tiny random checkpoints with the logits that Hugging Face transformers computes for them.

Each fixture is NAME.gguf (F32 weights, as a converter would write them), NAME.bin (token ids and f32 logits of every
position, layout in oracle.py) and NAME.json (configuration, versions, and how far each mistake moves the logits).
The weights come from numpy alone, so a run without transformers makes the same models:

    python3 tools/golden/make_fixtures.py OUT             # needs torch and transformers (5.x), CPU only
    python3 tools/golden/make_fixtures.py --dry-run OUT   # logits from the oracle instead: to try a new fixture

A fixture is refused unless the oracle agrees with transformers, every layer's attention and ffn changes the logits by
at least 10 %, and every mistake in oracle.py moves them by more than 1 % of their RMS.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import json
import math
import sys
import traceback

import numpy as np

import gguf_file
import oracle

LENGTHS = (52, 21, 6)  # longer than three 16-token pages and than any window; none a multiple of a tile
BASE = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "max_position_embeddings": 512, "attention_dropout": 0.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 5.0, "original_max_position_embeddings": 512}

# name: (transformers class, GGUF architecture, pre-tokenizer, rope parameters, configuration, options)
FIXTURES = {
    "llama3-rope": ("Llama", "llama", "llama-bpe", {"rope_theta": 1700.0, **LLAMA3},
                    {**BASE, "vocab_size": 261, "intermediate_size": 36, "rms_norm_eps": 0.03,
                     "tie_word_embeddings": False}, {"seed": 1}),
    # Nine query heads on a width of 72, as in SmolLM2 (9 on 576); every bias that the architecture can have.
    "llama-bias-tied": ("Llama", "llama", "smollm", {"rope_theta": 420.0},
                        {**BASE, "vocab_size": 267, "hidden_size": 72, "num_hidden_layers": 2, "intermediate_size": 40,
                         "num_attention_heads": 9, "num_key_value_heads": 3, "rms_norm_eps": 0.02,
                         "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}, {"seed": 2}),
    "mistral-window": ("Mistral", "llama", "llama-bpe", {"rope_theta": 900.0},
                       {**BASE, "vocab_size": 259, "intermediate_size": 28, "rms_norm_eps": 0.04, "sliding_window": 17,
                        "tie_word_embeddings": False}, {"seed": 3}),
    "qwen2": ("Qwen2", "qwen2", "qwen2", {"rope_theta": 2500.0},
              {**BASE, "vocab_size": 263, "intermediate_size": 36, "rms_norm_eps": 0.025, "use_sliding_window": False,
               "tie_word_embeddings": True}, {"seed": 4, "key_bias": 4.0}),
    "qwen2-yarn": ("Qwen2", "qwen2", "qwen2", {"rope_theta": 900.0, **YARN},
                   {**BASE, "vocab_size": 257, "num_hidden_layers": 2, "intermediate_size": 60, "rms_norm_eps": 0.05,
                    "max_position_embeddings": 2560, "use_sliding_window": False, "tie_word_embeddings": False},
                   {"seed": 5, "key_bias": 1.5}),
    "qwen3": ("Qwen3", "qwen3", "qwen2", {"rope_theta": 3300.0},
              {**BASE, "vocab_size": 271, "num_hidden_layers": 2, "head_dim": 32, "intermediate_size": 36,
               "rms_norm_eps": 0.03, "attention_bias": False, "use_sliding_window": False,
               "tie_word_embeddings": True}, {"seed": 6}),
    "qwen3moe": ("Qwen3Moe", "qwen3moe", "qwen2", {"rope_theta": 2100.0},
                 {**BASE, "vocab_size": 265, "hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 56,
                  "moe_intermediate_size": 20, "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": True,
                  "decoder_sparse_step": 1, "mlp_only_layers": [], "rms_norm_eps": 0.03, "attention_bias": False,
                  "use_sliding_window": False, "tie_word_embeddings": False}, {"seed": 7}),
}


def random_weights(kind, config, options):
    """{transformers name: f32 array}. Norm weights spread around one, biases as large as what they are added to."""
    draw = np.random.default_rng(options["seed"])
    n, d = config["hidden_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * d, config["num_key_value_heads"] * d
    out = {}

    def normal(name, shape, std):
        out[name] = (draw.standard_normal(shape) * std).astype(np.float32)

    def norm(name, size):
        out[name] = draw.uniform(0.4, 1.6, size).astype(np.float32)

    def linear(name, rows, columns, gain, bias=0.0):
        normal(f"{name}.weight", (rows, columns), gain / math.sqrt(columns))
        if bias:
            normal(f"{name}.bias", rows, bias)

    normal("model.embed_tokens.weight", (config["vocab_size"], n), 0.45)
    attention_bias = 1.0 if kind == "Qwen2" or config.get("attention_bias") else 0.0
    output_bias = 0.5 if config.get("attention_bias") else 0.0
    mlp_bias = 0.7 if config.get("mlp_bias") else 0.0
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        norm(f"{at}.input_layernorm.weight", n)
        norm(f"{at}.post_attention_layernorm.weight", n)
        linear(f"{at}.self_attn.q_proj", q, n, 1.0, attention_bias)
        linear(f"{at}.self_attn.k_proj", kv, n, 1.0, attention_bias * options.get("key_bias", 1.0))
        linear(f"{at}.self_attn.v_proj", kv, n, 1.0, attention_bias)
        linear(f"{at}.self_attn.o_proj", n, q, 1.0, output_bias)
        if kind.startswith("Qwen3"):
            norm(f"{at}.self_attn.q_norm.weight", d)
            norm(f"{at}.self_attn.k_norm.weight", d)
        if kind == "Qwen3Moe":
            linear(f"{at}.mlp.gate", config["num_experts"], n, 1.5)
            for e in range(config["num_experts"]):
                linear(f"{at}.mlp.experts.{e}.gate_proj", config["moe_intermediate_size"], n, 1.4)
                linear(f"{at}.mlp.experts.{e}.up_proj", config["moe_intermediate_size"], n, 1.4)
                linear(f"{at}.mlp.experts.{e}.down_proj", n, config["moe_intermediate_size"], 1.6)
        else:
            linear(f"{at}.mlp.gate_proj", config["intermediate_size"], n, 1.2, mlp_bias)
            linear(f"{at}.mlp.up_proj", config["intermediate_size"], n, 1.2, mlp_bias)
            linear(f"{at}.mlp.down_proj", n, config["intermediate_size"], 1.3, mlp_bias)
    norm("model.norm.weight", n)
    if not config["tie_word_embeddings"]:
        linear("lm_head", config["vocab_size"], n, 2.0)
    return out


def interleave(rows, heads):
    """Rows of q or k from half-split to interleaved rotary pairs: row c * d/2 + j of a head becomes row 2j + c."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def to_gguf_tensors(arch, config, rope, weights):
    blocks = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
              "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    out = {"token_embd.weight": weights["model.embed_tokens.weight"]}
    if rope.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = llama3_factors(config["head_dim"], rope)
    for name, array in weights.items():
        if not name.startswith("model.layers.") or ".experts." in name:
            continue
        _, _, layer, rest = name.split(".", 3)
        module, leaf = rest.rsplit(".", 1)
        block = blocks[module]
        if arch == "llama" and block in heads:
            array = interleave(array, heads[block])
        out[f"blk.{layer}.{block}.{leaf}"] = array
    for layer in range(config["num_hidden_layers"] if "num_experts" in config else 0):
        for part in ("gate", "up", "down"):
            stack = [weights[f"model.layers.{layer}.mlp.experts.{e}.{part}_proj.weight"]
                     for e in range(config["num_experts"])]
            out[f"blk.{layer}.ffn_{part}_exps.weight"] = np.stack(stack)
    out["output_norm.weight"] = weights["model.norm.weight"]
    if "lm_head.weight" in weights:
        out["output.weight"] = weights["lm_head.weight"]
    return out


def llama3_factors(head_dim, rope):
    """Divisors of the rotary angles, [head_dim / 2]: 1 for short waves, the factor for long ones, a blend between."""
    wave = 2 * math.pi * rope["rope_theta"] ** (2 * np.arange(head_dim // 2) / head_dim)
    original, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    t = np.clip((original / wave - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - t) / rope["factor"] + t)).astype(np.float32)


def tokenizer(vocabulary, pre):
    """Byte-level BPE: 256 bytes, one control token, and merges of common pairs up to the wanted size."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letter = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    space = letter[32]
    pairs = [("t", "h"), ("th", "e"), (space, "the"), ("i", "n"), ("e", "r"), ("a", "n"), (space, "a"), ("o", "n"),
             ("r", "e"), ("an", "d"), ("in", "g"), (space, "t"), ("e", "n"), ("o", "r"), (space, "s")]
    pairs = pairs[: vocabulary - 257]
    tokens = [letter[byte] for byte in range(256)] + ["<|end|>"] + [a + b for a, b in pairs]
    assert len(tokens) == vocabulary, f"{len(tokens)} tokens for a vocabulary of {vocabulary}"
    out = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token == "<|end|>" else 1 for token in tokens],
        "tokenizer.ggml.bos_token_id": 256,
        "tokenizer.ggml.eos_token_id": 256,
        "tokenizer.ggml.add_bos_token": False,
    }
    # An array without elements has no type, so a vocabulary of bytes alone gets one merge that never applies.
    out["tokenizer.ggml.merges"] = [f"{a} {b}" for a, b in pairs] or ["<|end|> <|end|>"]
    return out


def to_gguf_metadata(name, arch, pre, config, rope):
    values = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.dimension_count": config["head_dim"],
        "rope.freq_base": rope["rope_theta"],
        "vocab_size": config["vocab_size"],
    }
    if config.get("sliding_window"):
        values["attention.sliding_window"] = config["sliding_window"]
    if rope.get("rope_type") == "yarn":
        values["rope.scaling.type"] = "yarn"
        values["rope.scaling.factor"] = rope["factor"]
        values["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    if "num_experts" in config:
        values["expert_count"] = config["num_experts"]
        values["expert_used_count"] = config["num_experts_per_tok"]
        values["expert_feed_forward_length"] = config["moe_intermediate_size"]
    head = {"general.architecture": arch, "general.name": f"golden {name}", "general.file_type": 0}
    return head | {f"{arch}.{key}": value for key, value in values.items()} | tokenizer(config["vocab_size"], pre)


def transformers_logits(kind, config, rope, weights, sequences):
    """Logits of all positions from transformers: eager attention, f32, CPU."""
    import torch
    import transformers

    torch.set_num_threads(1)
    parameters = {"rope_type": "default", **rope}
    settings = getattr(transformers, f"{kind}Config")(**config, rope_parameters=parameters, bos_token_id=None,
                                                      eos_token_id=None, pad_token_id=None)
    settings._attn_implementation = "eager"
    settings._experts_implementation = "eager"
    model = getattr(transformers, f"{kind}ForCausalLM")(settings).to(torch.float32).eval()
    state = dict(weights)
    wanted = model.state_dict()
    if "model.layers.0.mlp.experts.gate_up_proj" in wanted:  # since 5.0 the experts of a layer are stacked
        for layer in range(config["num_hidden_layers"]):
            at = f"model.layers.{layer}.mlp.experts"
            take = lambda part: np.stack([state.pop(f"{at}.{e}.{part}_proj.weight")
                                          for e in range(config["num_experts"])])
            gate, up, down = take("gate"), take("up"), take("down")
            state[f"{at}.gate_up_proj"], state[f"{at}.down_proj"] = np.concatenate([gate, up], axis=1), down
    if config["tie_word_embeddings"]:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    for name, array in state.items():
        if tuple(wanted[name].shape) != array.shape:
            raise ValueError(f"{name} is {array.shape} here and {tuple(wanted[name].shape)} in transformers")
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()}, strict=True)
    print(f"  attention {model.config._attn_implementation}, window {getattr(model.config, 'sliding_window', None)}, "
          f"inverse frequencies {model.model.rotary_emb.inv_freq.tolist()}", flush=True)
    with torch.no_grad():
        parts = [model(torch.tensor([tokens]), use_cache=False).logits[0].numpy() for tokens in sequences]
    return np.concatenate(parts), {"transformers": transformers.__version__, "torch": torch.__version__}


def layer_changes(spec, weights, sequences, right):
    """RMS change of the logits, relative to their RMS, when a layer or one of its two blocks adds nothing."""
    out = []
    for layer in range(spec.layers):
        change = {}
        for label, parts in (("layer", ("attn", "ffn")), ("attn", ("attn",)), ("ffn", ("ffn",))):
            skip = tuple((layer, part) for part in parts)
            skipped = oracle.run(oracle.wrong(spec, {"skip": skip}), weights, sequences)
            change[label] = math.sqrt(((skipped - right) ** 2).mean() / (right**2).mean())
        out.append(change)
    return out


def make(name, folder, dry_run):
    kind, arch, pre, rope, config, options = FIXTURES[name]
    weights = random_weights(kind, config, options)
    path = os.path.join(folder, f"{name}.gguf")
    gguf_file.write(path, to_gguf_metadata(name, arch, pre, config, rope), to_gguf_tensors(arch, config, rope, weights))
    draw = np.random.default_rng(1000 + options["seed"])
    sequences = [draw.integers(0, config["vocab_size"], length).tolist() for length in LENGTHS]

    metadata, tensors = gguf_file.read(path)
    spec = oracle.read_spec(metadata, tensors)
    forward = oracle.Forward(spec, tensors)
    right = np.concatenate([forward.logits(tokens) for tokens in sequences])
    problems = []
    if forward.routing_gap < 2e-3:
        problems.append(f"two experts are only {forward.routing_gap:.1e} apart: choose another seed")
    if dry_run:
        golden, versions = right.astype(np.float32), {"transformers": "none: dry run"}
    else:
        golden, versions = transformers_logits(kind, config, rope, weights, sequences)
    oracle.write_logits(os.path.join(folder, f"{name}.bin"), sequences, golden)
    off = oracle.deviation(golden, right)
    if not off < oracle.AGREEMENT:
        problems.append(f"transformers and the oracle differ by {off:.2e}")
    changes = layer_changes(spec, tensors, sequences, right)
    for layer, change in enumerate(changes):
        problems += [f"layer {layer}: {part} changes the logits by only {size:.1%}"
                     for part, size in change.items() if not size >= 0.1]
    sizes = {}
    for mistake, fields in oracle.mistakes(spec, tensors).items():
        size = oracle.deviation(oracle.run(oracle.wrong(spec, fields), tensors, sequences), right)
        sizes[mistake] = {"deviation": round(size, 5), "fields": fields}
        if not size > 1e-2:
            problems.append(f"mistake {mistake} moves the logits by only {size:.2e}")
    report = {
        "name": name, "transformers_class": f"{kind}ForCausalLM", "architecture": arch, "versions": versions,
        "config": config, "rope": rope, "oracle_difference": off, "logits_rms": math.sqrt((right**2).mean()),
        "layer_change": [{part: round(size, 4) for part, size in change.items()} for change in changes],
        "mistakes": sizes, "sequences": sequences,
    }
    with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    least = min(sizes, key=lambda mistake: sizes[mistake]["deviation"])
    weakest = min(size for change in changes for size in change.values())
    print(f"{name}: {os.path.getsize(path)} + {os.path.getsize(path[:-4] + 'bin')} bytes, off by {off:.1e}, "
          f"RMS {report['logits_rms']:.2f}, weakest block {weakest:.0%}, least visible mistake {least} "
          f"{sizes[least]['deviation']}", flush=True)
    return problems


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--dry-run"]
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    os.makedirs(arguments[0], exist_ok=True)
    failed = False
    for name in FIXTURES:
        try:
            problems = make(name, arguments[0], "--dry-run" in sys.argv)
        except Exception:  # one broken fixture must not hide what the others show
            problems = [traceback.format_exc()]
        for problem in problems:
            failed = True
            print(f"{name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
