"""Step 4: from the reports of train.py to models/transcripts.md (as they came) and models/expert-load.svg.

    python3 card.py REPORTS MODELS
"""
import json
import sys
from pathlib import Path

TITLES = dict(
    stories="Stories: `Tell me a story about ...`, topics not in the training text",
    questions="Questions, none of them in the training text word for word",
    tools="Requests for a given tool, none of them in the training text",
    talk="Small talk",
    thinking="The same with thinking on (the prompt ends in `<think>`)",
    raw="Plain continuation, no chat template",
)


def transcripts(report, name):
    lines = [f"# {name}\n"]
    for group, items in report["transcripts"].items():
        lines.append(f"## {TITLES[group]}\n")
        for x in items:
            notes = [] if x["ended"] else ["cut at 330 tokens"]
            notes += [f"{x['words']} words"] if "words" in x else []
            notes += ["no parsable call"] if x.get("parses") is False else []
            notes += ["not the value that was asked for"] if x.get("right_value") is False else []
            lines.append(
                f"**{x['prompt']}**" + (f" ({', '.join(notes)})" if notes else "") + f"\n```\n{x['answer']}\n```"
            )
    return "\n".join(lines) + "\n"


def load_plot(loads, used):
    """One cell an expert: its share of the tokens of a layer, 1 = even."""
    cell, left, top = 26, 70, 34
    rows, columns = len(loads), len(loads[0])
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + columns * cell + 10}" height="{top + rows * cell + 10}" '
        'font-family="sans-serif" font-size="9">',
        f'<text x="{left}" y="14" font-size="12">Load of each expert relative to an even share ({columns} experts, top {used})'
        "</text>",
    ]
    for e in range(columns):
        out.append(f'<text x="{left + e * cell + cell / 2}" y="{top - 4}" text-anchor="middle">{e}</text>')
    for i, row in enumerate(loads):
        label = "MTP block" if i == rows - 1 else f"layer {i}"
        out.append(f'<text x="{left - 6}" y="{top + i * cell + 16}" text-anchor="end">{label}</text>')
        for e, share in enumerate(row):
            x = share * columns
            shade = max(0, min(255, int(255 - 100 * x)))
            out.append(
                f'<rect x="{left + e * cell}" y="{top + i * cell}" width="{cell - 1}" height="{cell - 1}" '
                f'fill="rgb({shade},{shade},255)"/><text x="{left + e * cell + cell / 2}" y="{top + i * cell + 16}" '
                f'text-anchor="middle">{x:.2f}</text>'
            )
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    dense, hybrid = (json.loads((source / f"{m}-report.json").read_text()) for m in ("dense", "hybrid"))
    text = transcripts(dense, "pocket-dense.gguf") + "\n" + transcripts(hybrid, "pocket.gguf")
    (target / "transcripts.md").write_text(
        "Temperature 0, exactly as they came, computed from the shipped files in f32.\n\n" + text
    )
    (target / "expert-load.svg").write_text(load_plot(hybrid["expert_load"], hybrid["config"]["used"]))


if __name__ == "__main__":
    main()
