"""One table, assembled from the metrics of its runs, as CSV, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.plan.mixture import mixed_runs, refuse_mixture
from lookalike.plan.origin import MIXED, OLDER, OWN_SPLIT
from lookalike.plan.reuse import is_older
from lookalike.plan.terms import row_costs, warm_query_ms
from lookalike.tables.cells import APART, WARM, read_cells, table_cells, write_cells
from lookalike.tables.layout import DASH, Cell, Grid, ReaderTable, for_readers
from lookalike.text import counted

PAIRED = (
    "Paired differences, seed by seed, in percent points, with Student's interval of 95 %; one seed has no interval."
)
# What pdflatex does not read as it stands.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{character: f"\\{character}" for character in "&%#_${}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "`": "'",
        "±": r"$\pm$",
        DASH: "--",
        "×": r"$\times$",
        "λ": r"$\lambda$",
        "γ": r"$\gamma$",
        "σ": r"$\sigma$",
        "β": r"$\beta$",
        "α": r"$\alpha$",
        "δ": r"$\delta$",
        "ε": r"$\epsilon$",
        "†": r"$\dagger$",
        "|": r"\textbar{}",
        "τ": r"$\tau$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
    }
)


def tables(
    name: str,
    table: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    metrics: Sequence[str],
    output: str,
    mixed: bool = False,
) -> None:
    """Write one table as CSV, Markdown and LaTeX.

    Args:
        name: name of the table.
        table: the table's entry of ``params/tables``.
        runs: the runs behind it, as ``table_cells`` takes them, their metrics still in files.
        scale: what the scale calls itself.
        metrics: JSON files of the runs, in their order.
        output: path without extension; ``.csv`` holds every cell, ``.md`` and ``.tex`` are made of it for readers.
        mixed: whether runs that read other data or weights under one name stand beside each other, marked.

    Raises:
        ValueError: for such runs, unless they are to be ``mixed``.
    """
    checkpoint = "last" if table.get("checkpoint") == "last" else "best"
    measured = [read_json(path) for path in metrics]
    if not mixed:
        refuse_mixture([{**run, "metrics_file": path} for run, path in zip(runs, metrics, strict=True)], measured)
    differing = {index for group in mixed_runs(runs, measured) for index in group}
    scored = [
        {**run, "metrics": content[checkpoint], "queries": content["queries"], "code": content.get("code", "")}
        | {"departs": run["departs"] + _marks(run, content) + MIXED * (index in differing), APART: _apart(content)}
        | (_costs(run["timings"], content) if table.get("terms") else {})
        for index, (run, content) in enumerate(zip(runs, measured, strict=True))
    ]
    with replacing(f"{output}.csv") as path:
        write_cells(path, table_cells(table, scored))
    shown = for_readers(name, table, read_cells(f"{output}.csv"), scale)
    write_text(f"{output}.md", markdown(shown))
    write_text(f"{output}.tex", latex(shown))


def _apart(metrics: Mapping[str, Any]) -> str:
    """What of its data set a run does not count, empty where it counts everything."""
    said = []
    if left_out := metrics.get("left_out"):
        copies = f" ({metrics['copies']} as copies of others)" if "copies" in metrics else ""
        said.append(f"{counted(left_out, 'picture')} left out by the split{copies}, named in its manifest")
    if alone := metrics.get("queries_without_positive"):
        said.append(
            f"{alone:,} of {metrics['queries']:,} queries in no metric, their class having no other picture there"
        )
    return "; ".join(said)


def _costs(files: Mapping[str, str], metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {**row_costs(files, metrics), WARM: warm_query_ms(files)}


def _marks(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """What the metrics of a run say of where they come from."""
    return OWN_SPLIT * (metrics.get("split") == "own") + OLDER * is_older(run, metrics)


def markdown(table: ReaderTable) -> str:
    """The table as Markdown: a heading, what was measured, and one table per data set, the best in bold.

    Printed rows without a number of ours are folded away.
    """
    parts = [f"# {table.title}", *table.notes]
    for section in table.sections:
        parts += [f"## {section.heading}", *filter(None, [section.best, *section.remarks])]
        if section.measured:
            parts.append(_markdown_grid(section.measured))
        if section.quoted:
            said = quoted_words(section.quoted)
            parts.append(f"<details><summary>{said}</summary>\n\n{_markdown_grid(section.quoted)}\n\n</details>")
        if section.pairs:
            parts += [PAIRED, _markdown_grid(section.pairs)]
    return "\n\n".join(parts) + "\n"


def latex(table: ReaderTable) -> str:
    """The table as LaTeX for ``booktabs``, one ``table`` environment per data set, scaled to the width of a line."""
    parts = []
    for section in table.sections:
        caption = [
            f"{table.title}.",
            f"{section.heading}.",
            *table.notes,
            *filter(None, [section.best, *section.remarks]),
        ]
        grids = [_latex_grid(grid) for grid in (section.measured, section.quoted) if grid]
        if section.pairs:
            caption.append(f"Below: {PAIRED[0].lower()}{PAIRED[1:]}")
            grids.append(_latex_grid(section.pairs))
        body = "\n\n\\medskip\n".join(grids)
        parts.append(f"\\begin{{table}}[t]\n\\caption{{{_escape(' '.join(caption))}}}\n{body}\n\\end{{table}}\n")
    return "\n".join(parts)


def quoted_words(quoted: Grid) -> str:
    """What is said of printed rows that are folded away."""
    return f"{counted(len(quoted.rows), 'printed row')} without a number of ours"


def _markdown_grid(grid: Grid) -> str:
    from tabulate import tabulate

    lines = [[_bold(cell, "**{}**", _escape_markdown) for cell in row.cells] for row in grid.rows]
    for line, row in zip(lines, grid.rows, strict=True):
        line[0] = f"*{line[0]}*" if row.trivial else line[0]
    align = ["left"] * len(grid.header)
    headers = [_escape_markdown(name) for name in grid.header]
    return tabulate(lines, headers=headers, tablefmt="pipe", disable_numparse=True, colalign=align)


def _latex_grid(grid: Grid) -> str:
    lines = [[_escape(name) for name in grid.header]]
    lines += [[_bold(cell, r"\textbf{{{}}}", _escape) for cell in row.cells] for row in grid.rows]
    for line, row in zip(lines[1:], grid.rows, strict=True):
        line[0] = rf"\textit{{{line[0]}}}" if row.trivial else line[0]
        # Which the end of the row before would take for a length.
        line[0] = f"{{}}{line[0]}" if line[0].startswith(("[", "*")) else line[0]
    first, *others = (f"{' & '.join(line)} \\\\" for line in lines)
    body = "\n".join([r"\toprule", first, r"\midrule", *others, r"\bottomrule"])
    columns = "l" + "r" * (len(grid.header) - 1)
    return f"\\resizebox{{\\linewidth}}{{!}}{{%\n\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}}}"


def _bold(cell: Cell, form: str, escape: Callable[[str], str]) -> str:
    return form.format(escape(cell.text)) if cell.best else escape(cell.text)


def _escape(text: str) -> str:
    return text.translate(_LATEX)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([|*~`])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
