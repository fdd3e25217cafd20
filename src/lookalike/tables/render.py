"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import pandas as pd

DASH = "–"


def wide(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One frame of text per data set: a row per method; per metric our value, and beside it what was printed.

    Args:
        cells: as ``table_cells`` returns them.
    """
    frames = {}
    for dataset, part in cells.groupby("dataset", sort=False):
        columns = {}
        printed = part["published"].notna().any()
        decimals = max((_decimals(value) for value in part["published"].dropna()), default=1)
        for metric, column in part.groupby("metric", sort=False):
            by_row = column.set_index("row")
            columns[metric] = by_row.apply(_ours, axis=1)
            if printed:
                columns[f"{metric} printed"] = by_row.apply(_printed, axis=1, decimals=decimals)
            if column["difference"].notna().any():
                columns[f"{metric} difference"] = by_row["difference"].map(lambda value: _number(value, "+.1f"))
        labels = part.drop_duplicates("row").set_index("row")["label"].rename("method")
        frame = pd.DataFrame(columns, index=labels.index).fillna(DASH)
        frames[str(dataset)] = frame.assign(method=labels).set_index("method")
    return frames


def _ours(cell: pd.Series) -> str:
    if pd.isna(cell["mean"]):
        return DASH
    deviation = "" if pd.isna(cell["std"]) else f" ± {cell['std']:.1f}"
    return f"{cell['mean']:.1f}{deviation}"


def _printed(cell: pd.Series, decimals: int) -> str:
    if pd.isna(cell["published"]):
        return DASH
    deviation = "" if pd.isna(cell["published_std"]) else f" ± {cell['published_std']:g}"
    return f"{cell['published']:.{decimals}f}{deviation}"


def _decimals(value: float) -> int:
    return len(f"{value:g}".partition(".")[2])


def _number(value: float, form: str) -> str:
    return DASH if pd.isna(value) else format(value, form)


def markdown(title: str, notes: list[str], cells: pd.DataFrame) -> str:
    """The table as Markdown: a heading, what was measured, and one table per data set."""
    parts = [f"# {title}", *notes]
    for dataset, frame in wide(cells).items():
        parts.append(f"## {_heading(dataset, cells)}")
        parts.append(frame.reset_index().to_markdown(index=False, disable_numparse=True))
    return "\n\n".join(parts) + "\n"


def latex(title: str, notes: list[str], cells: pd.DataFrame) -> str:
    """The table as LaTeX for ``booktabs``, one ``table`` environment per data set."""
    parts = []
    for dataset, frame in wide(cells).items():
        caption = " ".join([f"{title}.", f"{_heading(dataset, cells)}.", *notes])
        form = "l" + "r" * len(frame.columns)
        escaped = (
            frame.reset_index().style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
        )
        parts.append(escaped.to_latex(hrules=True, column_format=form, caption=_escape(caption), position="t"))
    return "\n".join(parts).replace("±", r"$\pm$").replace(DASH, "--")


def _heading(dataset: str, cells: pd.DataFrame) -> str:
    stand_ins = [
        name for name in cells.loc[cells["dataset"] == dataset, "stand_in"].dropna().unique() if name != dataset
    ]
    return f"{dataset} ({', '.join(stand_ins)} stands in)" if stand_ins else dataset


def _escape(text: str) -> str:
    for character in "&%#_":
        text = text.replace(character, f"\\{character}")
    return text
