#!/usr/bin/env python3
"""Draws the tables of a Markdown page that set Hearth beside a peer, as docs/performance.md does: one PNG a table.

    python3 tools/performance/plot.py docs/performance.md FOLDER

A table is drawn when one of its columns is headed "Hearth ..."; the column right of it is the peer's. What stands left
of the two names the bars. A figure is the number that a cell begins with; where a cell has several, separated by
semicolons, the best counts. Needs matplotlib (Debian: python3-matplotlib).
"""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

NUMBER = re.compile(r"\s*~?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", re.I)


class PageError(Exception):
    """The page cannot be drawn; the message says why."""


@dataclass
class Row:
    label: str
    hearth: float | None  # None: not measured
    peer: float | None


@dataclass
class Table:
    heading: str  # the nearest one above the table
    hearth: str  # headers of the two columns
    peer: str
    line: int  # of the header, from 1
    rows: list[Row] = field(default_factory=list)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def figure(cell: str, lower_is_better: bool) -> float | None:
    values = [float(match[1]) for part in cell.split(";") if (match := NUMBER.match(part))]
    return None if not values else min(values) if lower_is_better else max(values)


def read_table(heading: str, lines: list[str], first_line: int) -> Table | None:
    """None: no column is Hearth's. An empty cell left of the figures repeats the one above it."""
    header = cells(lines[0])
    at = next((i for i, name in enumerate(header) if name.startswith("Hearth")), None)
    if at is None:
        return None
    where = f"line {first_line}"
    if at + 1 >= len(header):
        raise PageError(f"{where}: no column of a peer right of {header[at]!r}")
    table = Table(heading, header[at], header[at + 1], first_line)
    lower_is_better = re.search(r"\s(s|ms|µs|MB|GB|MiB|GiB)$", table.hearth) is not None
    above = [""] * at
    for offset, line in enumerate(lines[2:], 2):
        row = cells(line)
        if len(row) != len(header):
            raise PageError(f"line {first_line + offset}: {len(row)} cells under {len(header)} headers")
        above = [new or old for new, old in zip(row[:at], above)]
        values = [figure(cell, lower_is_better) for cell in row[at : at + 2]]
        if values != [None, None]:
            table.rows.append(Row("\n".join(above), *values))
    for name, side in ((table.hearth, "hearth"), (table.peer, "peer")):
        if all(getattr(row, side) is None for row in table.rows):
            raise PageError(f"{where}: no cell under {name!r} begins with a number")
    return table


def read_tables(text: str) -> list[Table]:
    tables, heading, lines = [], "", []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.lstrip().startswith("|"):
            lines.append(line)
            continue
        if lines:
            tables.append(read_table(heading, lines, number - len(lines)))
            lines = []
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
    tables = [table for table in tables if table]
    if not tables:
        raise PageError("no table has a column headed \"Hearth ...\"")
    return tables


def file_names(tables: list[Table]) -> list[str]:
    """From the headings; tables under the same one are numbered."""
    names: list[str] = []
    for table in tables:
        stem = name = re.sub(r"[^a-z0-9]+", "-", table.heading.lower()).strip("-") or "table"
        count = 1
        while name in names:
            count += 1
            name = f"{stem}-{count}"
        names.append(name)
    return [name + ".png" for name in names]


def draw(table: Table, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.8 * len(table.rows)), layout="constrained")
    for side, offset, color, label in (("hearth", -0.2, "#c8501e", table.hearth), ("peer", 0.2, "#8a8f98", table.peer)):
        values = [getattr(row, side) for row in table.rows]
        at = [i + offset for i in range(len(values))]
        bars = axes.barh(at, [value or 0 for value in values], 0.38, color=color, label=label)
        axes.bar_label(bars, ["" if value is None else f"{value:g}" for value in values], padding=3)
    axes.set_yticks(range(len(table.rows)), [row.label for row in table.rows])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(table.heading, x=0.01, ha="left")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.3, ncols=2, frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    page, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        tables = read_tables(page.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, PageError) as error:
        print(f"{page}: {error}", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for table, name in zip(tables, file_names(tables)):
        draw(table, folder / name)
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
