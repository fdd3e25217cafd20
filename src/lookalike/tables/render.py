"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable

from lookalike.tables.layout import DASH, Cell, Grid, ReaderTable
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
