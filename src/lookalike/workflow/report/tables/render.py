"""One table, assembled from the metrics of its runs, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from lookalike.base.files import read_json, replacing, write_text
from lookalike.base.text import counted, in_markdown
from lookalike.metrics.names import BEST, REPORTED
from lookalike.workflow.plan.origin import MIXED, OLDER, OWN_SPLIT, mixed_runs, refuse_mixture
from lookalike.workflow.plan.reuse import differs
from lookalike.workflow.plan.terms import row_costs, warm_query_ms
from lookalike.workflow.report.tables.cells import Run, read_cells, table_cells, write_cells
from lookalike.workflow.report.tables.layout import DASH, Cell, Grid, ReaderTable, agreement_words, for_readers
from lookalike.workflow.running.records import decided_by
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.tables import PlannedTable

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
    table: str,
    entry: Tree,
    runs: Sequence[Tree],
    *,
    scale: str,
    metrics: Sequence[str],
    output: str,
    mixed: bool = False,
) -> None:
    """Write one table as CSV, Markdown and LaTeX.

    Args:
        table: its name.
        entry: the table, as `PlannedTable` is dumped.
        runs: the runs behind it, as `lookalike.workflow.plan.evidence.Evidence.runs_of_table` gives them.
        scale: what the scale calls itself.
        metrics: JSON files of the runs, in their order.
        output: CSV to write, with every cell; ``.md`` and ``.tex`` beside it are made of it for readers.
        mixed: whether runs that read other data or weights under one name stand beside each other, marked.

    Raises:
        ValueError: for such runs, unless they are to be ``mixed``.
    """
    planned = checked(PlannedTable, entry, f"table {table}")
    said = [decided_by(path) for path in metrics]
    if not mixed:
        refuse_mixture(runs, said)
    differing = {index for group in mixed_runs(runs, said) for index in group}
    scored = [
        _measured(run, read_json(path), said[index].get("code", ""), planned, MIXED * (index in differing))
        for index, (run, path) in enumerate(zip(runs, metrics, strict=True))
    ]
    with replacing(output) as path:
        write_cells(path, table_cells(planned, scored))
    shown = for_readers(table, planned, read_cells(output), scale)
    write_text(Path(output).with_suffix(".md"), markdown(shown))
    write_text(Path(output).with_suffix(".tex"), latex(shown))


def _measured(run: Tree, metrics: Tree, code: str, table: PlannedTable, mark: str) -> Run:
    """A run with the content of its metrics file, the code that trained it, and a further mark."""
    given = {each.name: run[each.name] for each in fields(Run) if each.name in run}
    given |= {"metrics": metrics[REPORTED], "queries": metrics["queries"], "code": code}
    given |= {"beside": metrics[BEST]} if table.beside else {}
    given |= {"departs": run["departs"] + _marks(run, metrics, code) + mark, "apart": _apart(metrics)}
    if table.terms:
        given |= {**row_costs(run["timings"], metrics), "warm_query_ms": warm_query_ms(run["timings"])}
    return Run(**given)


def _apart(metrics: Tree) -> str:
    """Pictures and queries of its data set that a run does not count, empty where it counts everything."""
    said = []
    if left_out := metrics.get("left_out"):
        copies = f" ({metrics['copies']} as copies of others)" if "copies" in metrics else ""
        said.append(f"{counted(left_out, 'picture')} left out by the split{copies}, named in its manifest")
    if alone := metrics.get("queries_without_positive"):
        said.append(
            f"{alone:,} of {metrics['queries']:,} queries in no metric, their class having no other picture there"
        )
    return "; ".join(said)


def _marks(run: Tree, metrics: Tree, code: str) -> str:
    """Marks that a run has once it is measured: an own split, older code."""
    is_own, is_older = metrics.get("split") == "own", differs({"code": code}, {"code": run["today"]["code"]})
    return f"{OWN_SPLIT * is_own}{OLDER * bool(is_older)}"


def markdown(table: ReaderTable) -> str:
    """The table as Markdown: a heading, notes, and one table per data set, the best in bold.

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
            parts += [paired_words(section.pairs), _markdown_grid(section.pairs)]
        parts += [agreement_words(section.agreement)] if section.agreement else []
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
            said = paired_words(section.pairs)
            caption.append(f"Below: {said[0].lower()}{said[1:]}")
            grids.append(_latex_grid(section.pairs))
        caption += [agreement_words(section.agreement)] if section.agreement else []
        body = "\n\n\\medskip\n".join(grids)
        parts.append(f"\\begin{{table}}[t]\n\\caption{{{_escape(' '.join(caption))}}}\n{body}\n\\end{{table}}\n")
    return "\n".join(parts)


def quoted_words(quoted: Grid) -> str:
    """Words over printed rows that are folded away: their number."""
    return f"{counted(len(quoted.rows), 'printed row')} without a number of ours"


def paired_words(pairs: Grid) -> str:
    """Words above paired differences."""
    printed = any(name.endswith(" printed") for name in pairs.header)
    return f"{PAIRED} A printed difference is within that interval or outside." if printed else PAIRED


def _markdown_grid(grid: Grid) -> str:
    from tabulate import tabulate

    lines = [[_bold(cell, "**{}**", in_markdown) for cell in row.cells] for row in grid.rows]
    for line, row in zip(lines, grid.rows, strict=True):
        line[0] = f"*{line[0]}*" if row.trivial else line[0]
    align = ["left"] * len(grid.header)
    headers = [in_markdown(name) for name in grid.header]
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
