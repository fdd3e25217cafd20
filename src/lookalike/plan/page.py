"""What the page shows: which runs pair by pair, and which finished tables, figures and claims beside them.

The runs are made where they are missing, as those of a table. The rest is shown where it exists at the time, so that
the page of a scale can be had without all that the scale can measure.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from lookalike.checks import require_known
from lookalike.data.checksums import file_digest
from lookalike.plan.digests import recipe_digest
from lookalike.plan.evidence import Evidence, Runs
from lookalike.plan.plan import Plan
from lookalike.plan.results import timing_files
from lookalike.settings.files import read
from lookalike.settings.layers import Tree, merge, settings_digest
from lookalike.settings.model import checked
from lookalike.settings.pages import Page

FILE = "params/page.yaml"
DOCUMENTS = ("claims", "explanations", "figures")  # written as Markdown by targets of their own
DRAWN = ("seed", "queries", "matches")  # what a run's pairs depend on
# Of how a recipe keeps and matches locations, which its explanations follow.
OF_STRUCTURE = ("side", "pooling", "global_vector", "marginal", "reg", "tolerance", "solver")
UNEXPLAINED = ("random_vectors",)  # representations without a network


def read_page(plan: Plan) -> Tree:
    """What ``params/page.yaml`` says, with what the scale lays over it.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown key or table.
    """
    settings = merge(read(FILE, Page).dump(), plan.page)
    place = f"{plan.scale_file}, page" if plan.page else FILE
    checked(Page, settings, place)
    for table in settings["tables"]:
        require_known(f"{place}, tables", table, [*plan.known_tables, *plan.sweeps])
    return settings


def page_rows(plan: Plan, settings: Tree) -> Runs:
    """Rows that are shown pair by pair, each of a table on one of the data sets that this scale has for it.

    Args:
        plan: of this call; the first of its seeds is shown.
        settings: as `read_page` gives them.

    Returns:
        Entries with ``label, recipe, dataset, seed``, without those that no network is behind or that segment.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for table in settings["tables"]:
        if plan.table(table)["datasets"] == "own" and not plan.is_overlay:
            continue  # which would be every data set of the scale
        for run in plan.runs_of(table).to_dict("records"):
            recipe, dataset = str(run["recipe"]), str(run["dataset"])
            settings_of = plan.settings(recipe, dataset)
            if settings_of.segment or settings_of.embed.representation.name in UNEXPLAINED:
                continue
            entry = {"label": run["label"], "recipe": recipe, "dataset": dataset, "seed": int(run["seed"])}
            rows.setdefault((recipe, dataset), entry)
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
        """How many queries and matches a job takes, and the seed of their draw."""
        return {key: self.settings[key] for key in DRAWN}

    def method(self, wildcards: Any) -> dict[str, Any]:
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
        return recipe_digest(["lookalike.stages.pairs:pairs"], sections | chosen)

    @property
    def datasets(self) -> list[str]:
        """Data sets whose pictures are shown."""
        return list(dict.fromkeys(row["dataset"] for row in self._rows))

    def pairs_of(self, wildcards: Any) -> list[str]:
        """Files with the pairs of a data set's rows."""
        return [self._pairs(row) for row in self._rows if row["dataset"] == wildcards.dataset]

    def pairs(self, wildcards: Any) -> list[str]:
        """Files with the pairs of all rows, in their order."""
        return [self._pairs(row) for row in self._rows]

    def metrics(self, wildcards: Any) -> list[str]:
        """Files with the metrics of all rows, in their order."""
        return [self.inputs.stored("metrics", row["recipe"], row["dataset"], row["seed"]) for row in self._rows]

    def pictures(self, wildcards: Any) -> list[str]:
        """Files with the pictures of each data set."""
        return [f"{self._results}/pairs/{dataset}.pictures.json" for dataset in self.datasets]

    def rows(self, wildcards: Any, input: Any) -> Runs:
        """Rows of the page with where Snakemake has written how long their jobs took; refuses those of older code."""
        self.evidence.check_results(input.metrics, [(row["recipe"], row["dataset"]) for row in self._rows])
        return [
            row | {"title": self.plan.datasets[row["dataset"]].specification["title"]} | {"timings": self._timings(row)}
            for row in self._rows
        ]

    def tables(self, wildcards: Any = None) -> dict[str, Tree]:
        """Entries of the tables that exist."""
        names = [*self.plan.table_names, *self.plan.sweeps]
        return {name: self.plan.table(name) for name in names if Path(self._table(name)).is_file()}

    def cells(self, wildcards: Any = None) -> dict[str, str]:
        """Their files."""
        return {name: self._table(name) for name in self.tables()}

    def other_settings(self, wildcards: Any = None) -> dict[str, str]:
        """Of tables with rows that today's settings would not give, how many: the page shows what it finds."""
        counts = {name: self._measured_otherwise(name, file) for name, file in self.cells().items()}
        return {name: f"{some} of {every}" for name, (some, every) in counts.items() if some}

    def documents(self, wildcards: Any = None) -> dict[str, str]:
        """Of what else exists the Markdown, by name."""
        files = {name: f"{self._results}/{name}.md" for name in DOCUMENTS}
        return {name: file for name, file in files.items() if Path(file).is_file()}

    def found(self, wildcards: Any = None) -> dict[str, str]:
        """Digests of the tables and documents: where one is new or has changed, the page is made again."""
        return {file: file_digest(Path(file)) for file in [*self.cells().values(), *self.documents().values()]}

    @property
    def _rows(self) -> Runs:
        return page_rows(self.plan, self.settings)

    def _pairs(self, row: dict[str, Any]) -> str:
        recipe = self.plan.shared("evaluate", row["recipe"], row["dataset"])
        return f"{self._results}/pairs/{recipe}/{row['dataset']}/seed{row['seed']}.json"

    def _timings(self, row: dict[str, Any]) -> dict[str, str]:
        files = timing_files(self.plan, row["recipe"], row["dataset"], row["seed"])
        return {stage: f"{self._results}/{file}" for stage, file in files.items()}

    def _measured_otherwise(self, name: str, file: str) -> tuple[int, int]:
        """How many of a table's measured rows have other settings than this call, and how many there are."""
        with Path(file).open(encoding="utf-8", newline="") as lines:
            found = {(cell["recipe"], cell["stand_in"], cell["settings"]) for cell in csv.DictReader(lines)}
        found = {row for row in found if row[2]}
        runs = self.plan.runs_of(name)[["recipe", "dataset"]].drop_duplicates()
        planned = [(str(recipe), str(dataset)) for recipe, dataset in runs.itertuples(index=False, name=None)]
        last = {recipe: self.plan.last_stage(recipe) for recipe, _ in planned}
        today = {(*run, settings_digest(self.plan.deciding(*run, last[run[0]]))) for run in planned}
        return len(found - today), len(found)

    def _table(self, name: str) -> str:
        return f"{self._results}/tables/{name}.csv"
