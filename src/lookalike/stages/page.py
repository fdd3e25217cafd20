"""Lay out the page of a scale: a folder with all that there is to see, which opens without a server."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookalike.files import read_json, write_text
from lookalike.plan.origin import DEPARTURES
from lookalike.plan.terms import row_costs, warm_query_ms
from lookalike.reports.page.documents import as_html, pictures_of
from lookalike.reports.page.explorer import assigned, index, of_query, view_key
from lookalike.tables.cells import read_cells
from lookalike.tables.layout import for_readers
from lookalike.tables.render import TEMPLATES as OF_TABLES
from lookalike.tables.render import environment, page_values

PARTS = Path(__file__).parents[1] / "reports" / "page"
SCRIPTS = ("overlay.js", "explained.js", "explorer.js")
TITLES = {
    "index": "Pairs",
    "tables": "Tables",
    "figures": "Figures",
    "claims": "Claims",
    "explanations": "Quality of explanations",
}
CHECKPOINT, RECALL = "best", "R@1"


def page(
    rows: Sequence[Mapping[str, Any]],
    *,
    pairs: Sequence[str],
    metrics: Sequence[str],
    pictures: Mapping[str, str],
    tables: Mapping[str, Mapping[str, Any]],
    cells: Mapping[str, str],
    other_settings: Mapping[str, str],
    documents: Mapping[str, str],
    scale: str,
    folder: str,
) -> None:
    """Write ``index.html``, the pages beside it, and the data that it loads as scripts.

    Args:
        rows: that are shown pair by pair, ``label, recipe, dataset, title, seed`` and ``timings`` by stage.
        pairs: JSON of the stage ``pairs`` of each row.
        metrics: JSON of the stage ``evaluate`` of each row.
        pictures: JSON of the stage ``thumbnails`` of each data set.
        tables: entries of ``params/tables``, in the order of the page.
        cells: CSV of each table.
        other_settings: of tables with rows of other settings than this call's, how many of how many.
        documents: Markdown by name, see `TITLES`.
        scale: what the scale calls itself.
        folder: to write.

    Raises:
        ValueError: for rows of a data set with different queries.
    """
    target = Path(folder)
    found = [_row(row, *files) for row, files in zip(rows, zip(pairs, metrics, strict=True), strict=True)]
    listed = index(found)
    _write_data(listed, found, pictures, target / "data")
    shown = [for_readers(name, table, read_cells(cells[name]), scale) for name, table in tables.items()]
    shown = [replace(each, notes=(*_remark(other_settings.get(each.name)), *each.notes)) for each in shown]
    names = ["index", *(["tables"] if shown else []), *(name for name in TITLES if name in documents)]
    templates = environment(PARTS, OF_TABLES)
    about = {"pages": {f"{name}.html": TITLES[name] for name in names}, "scale": scale}

    def write(name: str, template: str, values: Mapping[str, Any]) -> None:
        text = templates.get_template(template).render(**values, **about, here=f"{name}.html", title=TITLES[name])
        write_text(target / f"{name}.html", text)

    methods = [
        {**row, "title": dataset["title"], "queries": len(dataset["queries"])}
        for dataset in listed["datasets"].values()
        for row in dataset["rows"]
    ]
    write("index", "explorer.html", {"rows": methods, "scripts": SCRIPTS})
    if shown:
        values = page_values(shown, scale=scale, legend=DEPARTURES)
        write("tables", "tables.html", {key: value for key, value in values.items() if key != "scale"})
    for name, path in documents.items():
        text, drawn = pictures_of(Path(path).read_text(encoding="utf-8"), Path(path).parent)
        for each in drawn:
            (target / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(path).parent / each, target / each)
        write(name, "document.html", {"document": as_html(text, TITLES[name]), "target": name})
    write_text(
        target / "page.css",
        (OF_TABLES / "style.css").read_text(encoding="utf-8") + (PARTS / "page.css").read_text(encoding="utf-8"),
    )
    shutil.copyfile(OF_TABLES / "sorting.js", target / "sorting.js")
    for script in SCRIPTS:
        shutil.copyfile(PARTS / script, target / script)


def _remark(count: str | None) -> list[str]:
    """What is said above a table that shows older numbers."""
    return [f"Older settings: {count} measured rows were made by settings that are not today's."] if count else []


def _row(row: Mapping[str, Any], pairs: str, metrics: str) -> dict[str, Any]:
    measured, found = read_json(metrics), read_json(pairs)
    facts = {"found": found, "view": view_key(found["view"]), "recall": measured[CHECKPOINT].get(RECALL)}
    costs = row_costs(row["timings"], measured)
    warm = warm_query_ms(row["timings"])
    return {**row, **facts, **costs, **({} if warm is None else {"query_ms": warm})}


def _write_data(
    listed: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], pictures: Mapping[str, str], folder: Path
) -> None:
    """The index, and files of its data sets, which are loaded where somebody looks at them."""
    write_text(folder / "index.js", "const PICTURES = {}, PAIRS = {};\n" + assigned("const SHOWN", listed))
    for name, dataset in listed["datasets"].items():
        text = assigned(f'PICTURES["{name}"]', read_json(pictures[name]))
        write_text(folder / name / "pictures.js", text)
        for query in range(len(dataset["queries"])):
            matches = of_query(rows, name, query)
            write_text(folder / name / f"{query}.js", assigned(f'PAIRS["{name}/{query}"]', matches))
