"""The page of a scale: a folder with all that there is to see, which opens without a server.

Its front, the pair explorer, shows runs pair by pair, which are made where they are missing, as those of a table. All
tables, figures and claims stand beside it where they exist at the time, so that the page of a scale can be had without
all that the scale can measure. A page from disk may load scripts, other than JSON, so data lie in scripts: an index,
and of each query what all rows found.
"""

from __future__ import annotations

import csv
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from lookalike.base.checks import require_known, workflow_extra
from lookalike.base.files import file_digest, json_text, read_json, write_text
from lookalike.base.text import one_line
from lookalike.methods.method import FITTED
from lookalike.metrics.names import REPORTED
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.inputs import recipe_digest
from lookalike.workflow.plan.origin import DEPARTURES
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import timing_files
from lookalike.workflow.plan.terms import row_costs, warm_query_ms
from lookalike.workflow.report.html import SHARED, TEMPLATES, as_html, html, pictures_of, shown_tables, tables_html
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import Tree, canonical, merge, settings_digest
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.pages import Page

LOG = logging.getLogger(__name__)
FILE = "params/page.yaml"
DOCUMENTS = ("claims", "explanations", "figures")  # written as Markdown by targets of their own
DRAWN = ("seed", "queries", "matches")  # what a run's pairs depend on
# Of how a recipe keeps and matches locations, which its explanations follow.
OF_STRUCTURE = ("side", "pooling", "global_vector", "marginal", "reg", "tolerance", "solver")
# Representations without a network, and those through a map that explanations do not follow.
UNEXPLAINED = ("random_vectors", *FITTED)
FILES = (*SHARED, "pair.js", "explorer.js")  # that the pages load
TITLES = {
    "index": "Pairs",
    "tables": "Tables",
    "figures": "Figures",
    "claims": "Claims",
    "explanations": "Quality of explanations",
}
RECALL = "R@1"
STEPS = 32  # of the colour map
COLOURS = "plasma"  # even steps of a map are even steps for the eye, also without colour
AGAINST = (30, 110, 230)  # what is below zero
OPACITY, CONTRAST = 0.85, 1.5  # of the colour where a map is largest, and the power by which it falls from there


@dataclass(frozen=True)
class ShownRun:
    """A run whose pairs are shown, with its row's label."""

    label: str
    recipe: str
    dataset: str
    seed: int


@dataclass(frozen=True)
class Row:
    """A row of the pair explorer.

    Attributes:
        label: of the row.
        recipe: of its run.
        dataset: of its run.
        title: of the data set.
        found: what the stage ``pairs`` wrote.
        recall: R@1 as a fraction, ``None`` where it was not measured.
        query_ms: milliseconds per query, ``None`` where nobody has measured it.
        training_s: seconds of its training, likewise.
    """

    label: str
    recipe: str
    dataset: str
    title: str
    found: Tree
    recall: float | None
    query_ms: float | None
    training_s: float | None


def read_page(plan: Plan) -> Page:
    """Settings of ``params/page.yaml``, with those that the scale lays over them.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown key or table.
    """
    place = f"{plan.scale_file}, page" if plan.page else FILE
    settings = checked(Page, merge(read(FILE, Page).dump(), plan.page), place)
    for table in settings.tables:
        require_known(f"{place}, tables", table, [*plan.known_tables, *plan.sweeps])
    return settings


def page_rows(plan: Plan, settings: Page) -> list[ShownRun]:
    """Rows that are shown pair by pair, each of a table on one of the data sets that this scale has for it.

    Args:
        plan: of this call; the first of its seeds is shown.
        settings: as `read_page` gives them.

    Returns:
        Runs without those that no network is behind or that segment.
    """
    rows: dict[tuple[str, str], ShownRun] = {}
    for table in settings.tables:
        if plan.table(table).datasets == "own" and not plan.is_overlay:
            continue  # which would be every data set of the scale
        for run in plan.runs_of(table).to_dict("records"):
            recipe, dataset = str(run["recipe"]), str(run["dataset"])
            shown = plan.settings(recipe, dataset)
            if shown.segment or shown.embed.representation.name in UNEXPLAINED:
                continue
            rows.setdefault((recipe, dataset), ShownRun(run["label"], recipe, dataset, int(run["seed"])))
    return list(rows.values())


class Shown:
    """Files and settings of the page.

    Args:
        evidence: of the call.

    Raises:
        ValueError: as `read_page`.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.inputs, self.plan = evidence, evidence.inputs, evidence.plan
        self.settings = read_page(self.plan)
        self._results = self.inputs.results_folder

    def drawn(self, wildcards: Any) -> Tree:
        """Numbers of queries and matches that a job takes, and the seed of their draw."""
        return self.settings.model_dump(include={*DRAWN})

    def method(self, wildcards: Any) -> Tree:
        """By which method of `lookalike.explain` a run's pairs are explained, and its options.

        That whose measure ranks them; ``None`` stands for the one that says most of the model.
        """
        recipe = self.plan.settings(wildcards.recipe, wildcards.dataset)
        if recipe.train.method.name == "avsl":
            return {"name": "graph"}
        if recipe.evaluate.scoring.name == "structural_matching":
            given = {**recipe.embed.representation.options, **recipe.evaluate.scoring.options}
            return {"name": "structure"} | {option: given[option] for option in OF_STRUCTURE if option in given}
        return {"name": "attention" if recipe.train.method.name == "sam" else None}

    def code(self, wildcards: Any) -> str:
        """Digest of the code that ranks and explains a run's pairs."""
        sections = self.plan.deciding(wildcards.recipe, wildcards.dataset, "evaluate")
        name = self.method(wildcards)["name"]
        chosen = {"explained": [name] if name else ["activation", "attention"]}
        return recipe_digest(["lookalike.workflow.stages.pairs:pairs"], sections | chosen)

    @property
    def datasets(self) -> list[str]:
        """Data sets whose pictures are shown."""
        return list(dict.fromkeys(row.dataset for row in self._rows))

    def pairs_of(self, wildcards: Any) -> list[str]:
        """Files with the pairs of a data set's rows."""
        return [self._pairs(row) for row in self._rows if row.dataset == wildcards.dataset]

    def pairs(self, wildcards: Any) -> list[str]:
        """Files with the pairs of all rows, in their order."""
        return [self._pairs(row) for row in self._rows]

    def metrics(self, wildcards: Any) -> list[str]:
        """Files with the metrics of all rows, in their order."""
        return [self.inputs.stored("metrics", row.recipe, row.dataset, row.seed) for row in self._rows]

    def pictures(self, wildcards: Any) -> list[str]:
        """Files with the pictures of each data set."""
        return [f"{self._results}/pairs/{dataset}.pictures.json" for dataset in self.datasets]

    def rows(self, wildcards: Any, input: Any) -> list[Tree]:
        """Rows of the page with where Snakemake has written how long their jobs took; refuses those of older code."""
        self.evidence.check_results(input.metrics, [(row.recipe, row.dataset, row.seed) for row in self._rows])
        titles = {name: dataset.about.title for name, dataset in self.plan.datasets.items()}
        return [asdict(row) | {"title": titles[row.dataset], "timings": self._timings(row)} for row in self._rows]

    def tables(self, wildcards: Any = None) -> dict[str, Tree]:
        """The tables that exist, as jobs are given them."""
        names = [*self.plan.table_names, *self.plan.sweeps]
        return {name: self.plan.table(name).dump() for name in names if Path(self._table(name)).is_file()}

    def cells(self, wildcards: Any = None) -> dict[str, str]:
        """Their files."""
        return {name: self._table(name) for name in self.tables()}

    def other_settings(self, wildcards: Any = None) -> dict[str, str]:
        """Number of rows by table that today's settings would not give: the page shows every table that it finds."""
        counts = {name: self._measured_otherwise(name, file) for name, file in self.cells().items()}
        return {name: f"{some} of {every}" for name, (some, every) in counts.items() if some}

    def documents(self, wildcards: Any = None) -> dict[str, str]:
        """Markdown files of the documents that exist, by name."""
        files = {name: f"{self._results}/{name}.md" for name in DOCUMENTS}
        return {name: file for name, file in files.items() if Path(file).is_file()}

    def found(self, wildcards: Any = None) -> dict[str, str]:
        """Digests of the tables and documents: where one is new or has changed, the page is made again."""
        return {file: file_digest(Path(file)) for file in [*self.cells().values(), *self.documents().values()]}

    @property
    def _rows(self) -> list[ShownRun]:
        return page_rows(self.plan, self.settings)

    def _pairs(self, row: ShownRun) -> str:
        recipe = self.plan.shared("evaluate", row.recipe, row.dataset)
        return f"{self._results}/pairs/{recipe}/{row.dataset}/seed{row.seed}.json"

    def _timings(self, row: ShownRun) -> dict[str, str]:
        named = row.recipe, row.dataset, row.seed
        folder, files = self.inputs.read_in(*named), timing_files(self.plan, *named)
        return {stage: f"{folder}/{file}" for stage, file in files.items()}

    def _measured_otherwise(self, name: str, file: str) -> tuple[int, int]:
        """Number of a table's measured rows with other settings than this call's, and number of all."""
        try:
            with Path(file).open(encoding="utf-8", newline="") as lines:
                found = {(cell["recipe"], cell["stand_in"], cell["settings"]) for cell in csv.DictReader(lines)}
        except (LookupError, OSError, ValueError, csv.Error):  # which the page leaves out
            return 0, 0
        found = {row for row in found if row[2]}
        runs = self.plan.runs_of(name)[["recipe", "dataset"]].drop_duplicates()
        planned = [(str(recipe), str(dataset)) for recipe, dataset in runs.itertuples(index=False, name=None)]
        last = {recipe: self.plan.last_stage(recipe) for recipe, _ in planned}
        today = {
            run: {settings_digest(self.plan.deciding(*run, last[run[0]], half)) for half in self.plan.halves_of(run[1])}
            for run in planned
        }
        other = [row for row in found if not {*row[2].split()} <= today.get(row[:2], set())]
        return len(other), len(found)

    def _table(self, name: str) -> str:
        return f"{self._results}/tables/{name}.csv"


def page(
    rows: Sequence[Tree],
    *,
    pairs: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str],
    pictures: Sequence[str],
    tables: Mapping[str, Tree],
    cells: Mapping[str, str],
    other_settings: Mapping[str, str],
    documents: Mapping[str, str],
    scale: str,
    folder: str,
) -> None:
    """Write ``index.html``, the pages beside it, and the data that it loads as scripts.

    Args:
        rows: that are shown pair by pair, as `Shown.rows` gives them.
        pairs: JSON of the stage ``pairs`` of each row.
        metrics: JSON of the stage ``evaluate`` of each row.
        datasets: by name.
        pictures: JSON of the stage ``thumbnails`` of each data set.
        tables: as `lookalike.workflow.report.html.tables_page` takes them.
        cells: CSV of each table.
        other_settings: of tables with rows of other settings than this call's, how many of how many.
        documents: Markdown by name, see `TITLES`.
        scale: what the scale calls itself.
        folder: to write.

    A table or document that cannot be read is a warning, and no part of the page.

    Raises:
        ValueError: for rows of a data set with different queries.
    """
    target = Path(folder)
    found = [_row(row, *files) for row, files in zip(rows, zip(pairs, metrics, strict=True), strict=True)]
    listed = index(found)
    _write_data(listed, found, dict(zip(datasets, pictures, strict=True)), target / "data")
    shown, texts = [], {}
    for name, table in tables.items():
        with _left_out_if_broken(cells[name], "tables"):
            (each,) = shown_tables({name: table}, cells, scale)
            shown.append(replace(each, notes=(*_remark(other_settings.get(name)), *each.notes)))
    for name, path in documents.items():
        with _left_out_if_broken(path, name):
            texts[name] = Path(path).read_text(encoding="utf-8")
    names = ["index", *(["tables"] if shown else []), *(name for name in TITLES if name in texts)]
    pages = {f"{name}.html": TITLES[name] for name in names}

    def about(name: str) -> dict[str, Any]:
        return {"scale": scale, "pages": pages, "here": f"{name}.html"}

    methods = [
        {**row, "title": dataset["title"], "queries": len(dataset["queries"])}
        for dataset in listed["datasets"].values()
        for row in dataset["rows"]
    ]
    write_text(target / "index.html", html("explorer.html", title=TITLES["index"], rows=methods, **about("index")))
    if shown:
        write_text(target / "tables.html", tables_html(shown, legend=DEPARTURES, **about("tables")))
    for name, whole in texts.items():
        beside = Path(documents[name]).parent
        text, drawn = pictures_of(whole, beside)
        for picture in drawn:
            (target / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(beside / picture, target / picture)
        values: dict[str, Any] = {"document": as_html(text, TITLES[name]), "target": name}
        write_text(target / f"{name}.html", html("document.html", title=TITLES[name], **values, **about(name)))
    for file in FILES:
        shutil.copyfile(TEMPLATES / file, target / file)


@contextmanager
def _left_out_if_broken(file: str, made_by: str) -> Iterator[None]:
    """Leave a table or document out of the page, with a warning, where the block cannot read it."""
    try:
        yield
    except (LookupError, OSError, TypeError, ValueError) as error:
        again = f"remove it, and the target `{made_by}` makes it again"
        LOG.warning("%s is left out of the page, it cannot be read (%s); %s", file, one_line(str(error)), again)


def _remark(count: str | None) -> list[str]:
    """Remark above a table that shows older numbers."""
    return [f"Older settings: {count} measured rows were made by settings that are not today's."] if count else []


def _row(row: Tree, pairs: str, metrics: str) -> Row:
    measured, warm = read_json(metrics), warm_query_ms(row["timings"])
    costs, recall = row_costs(row["timings"], measured), measured[REPORTED].get(RECALL)
    query = costs["query_ms"] if warm is None else warm
    said = row["label"], row["recipe"], row["dataset"], row["title"]
    return Row(*said, read_json(pairs), recall, query, costs["training_s"])


def _write_data(listed: Tree, rows: Sequence[Row], pictures: Mapping[str, str], folder: Path) -> None:
    """The index, and files of its data sets, which are loaded where somebody looks at them."""
    write_text(folder / "index.js", "const PICTURES = {}, PAIRS = {};\n" + assigned("const SHOWN", listed))
    for name, dataset in listed["datasets"].items():
        text = assigned(f'PICTURES["{name}"]', read_json(pictures[name]))
        write_text(folder / name / "pictures.js", text)
        for query in range(len(dataset["queries"])):
            matches = of_query(rows, name, query)
            write_text(folder / name / f"{query}.js", assigned(f'PAIRS["{name}/{query}"]', matches))


def index(rows: Sequence[Row]) -> Tree:
    """Data sets with their queries and rows.

    Args:
        rows: in the order of the page.

    Returns:
        ``datasets`` by name, each with its ``title``, ``queries`` and ``rows``, and how maps are coloured.

    Raises:
        ValueError: for rows of a data set with different queries.
    """
    datasets: dict[str, Tree] = {}
    for row in rows:
        queries = [
            {"picture": query["picture"], "name": called(query["picture"]), "label": query["label"]}
            for query in row.found["queries"]
        ]
        dataset = datasets.setdefault(row.dataset, {"title": row.title, "queries": queries, "rows": []})
        if queries != dataset["queries"]:
            raise ValueError(
                f"{row.recipe} on {row.dataset} has other queries than the rows before it; remove its pairs"
            )
        dataset["rows"].append(_described(row))
    return {
        "datasets": datasets,
        "colours": colours(),
        "against": list(AGAINST),
        "opacity": OPACITY,
        "contrast": CONTRAST,
    }


def of_query(rows: Sequence[Row], dataset: str, query: int) -> list[list[Tree]]:
    """Matches that each row of a data set found for one of its queries."""
    return [row.found["queries"][query]["matches"] for row in rows if row.dataset == dataset]


def colours() -> list[list[int]]:
    """The colour map in even steps, red, green and blue up to 255."""
    with workflow_extra():
        from matplotlib import colormaps
    steps = [place / (STEPS - 1) for place in range(STEPS)]
    return [[round(255 * part) for part in colormaps[COLOURS](step)[:3]] for step in steps]


def called(picture: str) -> str:
    """A picture's name for readers: that of its file."""
    return PurePosixPath(picture).stem.replace("_", " ")


def view_key(view: Tree) -> str:
    """Resizing and crop of a view of a picture, as a key that tells it from others."""
    return canonical([view.get("resize_px"), view["crop_px"]])


def assigned(target: str, value: object) -> str:
    """A line of JavaScript that gives a value to a name, which a page from disk can read, other than JSON."""
    return f"{target} = {json_text(value, where=target, separators=(',', ':'), sort_keys=True)};\n"


def _described(row: Row) -> Tree:
    shown = [match for query in row.found["queries"] for match in query["matches"]]
    first = [query["matches"][0] for query in row.found["queries"] if query["matches"]]
    return {
        "label": row.label,
        "recipe": row.recipe,
        "view": view_key(row.found["view"]),
        "method": row.found.get("method", ""),
        "measure": shown[0]["measure"] if shown else "",
        "recall": row.recall,
        "query_ms": row.query_ms,
        "training_s": row.training_s,
        "right": sum(match["right"] for match in shown),
        "first": sum(match["right"] for match in first),
        "shown": len(shown),
    }
