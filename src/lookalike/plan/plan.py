"""What a call will run: recipes x data sets x seeds, read from ``params/`` and checked before any job starts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from lookalike.checks import require_known
from lookalike.methods import METHODS
from lookalike.metrics.names import of_table
from lookalike.paths import project_root
from lookalike.plan.checks import IncompatibleError, check_recipe, is_right
from lookalike.plan.on_data import RecipesOnData
from lookalike.plan.rates import kind_of, rates_note
from lookalike.plan.recipes import part_of
from lookalike.plan.scales import HELD_OUT, TABLES_OF_OVERLAY, Dataset
from lookalike.plan.sweeps import Point, by_reason
from lookalike.plan.tables import tables_of_papers
from lookalike.plan.terms import Row, terms_notes
from lookalike.settings.call import Configuration, read_overlay
from lookalike.settings.layers import Tree
from lookalike.settings.model import checked

SEEDS = [0, 1, 2]  # of comparisons in a call with a single one


class Plan(RecipesOnData):
    """Recipes, data sets and tables of one call.

    Args:
        config: the configuration, as ``params/config.yaml`` describes it.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        call = checked(Configuration, _typed(config), "configuration")
        super().__init__(call)
        self.seeds, self.tracking, self.mixed, self.suffix = call.seeds, call.tracking, call.mixed, call.suffix
        self.holds_out = call.selection == "held_out"
        self.picture_cache: Tree | None = call.picture_cache.dump() if call.picture_cache else None
        self.decoded_gb = call.decoded_gb
        self._checked: set[tuple[str, str]] = set()
        self._runs_of: dict[str, pd.DataFrame] = {}
        self.overlays = call.overlays
        self.table_names = _named(call.tables or self._scale.settings.tables)
        for name in self.table_names:
            if name not in self._tables:
                chosen_in = "configuration" if call.tables and not self.is_overlay else self.scale_file
                require_known(f"{chosen_in}, tables", name, [*self._tables, *self.sweeps])

    @property
    def compared_as(self) -> str:
        """Whose committed numbers a call is held against: one per scale and way to choose the epoch."""
        return f"{self.scale}{HELD_OUT}" if self.holds_out else self.scale

    @property
    def folder(self) -> str:
        """Folder of results: beside the others with a suffix, where the call has one."""
        return f"{self.compared_as}_{self.suffix}" if self.suffix else self.compared_as

    @property
    def notices(self) -> list[str]:
        """What a call says before its first job: where chosen rates hold in place of those that overlays state."""
        rates = part_of(part_of(part_of(self.overlay, "train"), "optimiser"), "lr")
        replaced = [part for part in ("trunk", "head") if part in rates]
        if not (self.is_overlay and self._chosen_rates and replaced):
            return []
        return [
            f"params/rates/{self.rates_of}.csv: for methods and losses that were tried, rates chosen there hold in "
            f"place of those of {self.scale_file}, recipe.train.optimiser.lr ({' and '.join(replaced)})"
        ]

    @property
    def several_seeds(self) -> list[int]:
        """Seeds of comparisons: a single one, which has no interval, makes way for `SEEDS`."""
        return self.seeds if len(self.seeds) > 1 else SEEDS

    def picture_cache_of(self, dataset: str) -> Tree | None:
        """Copies that trainings on a data set read: those the call asks for, else the data set's own, or ``None``."""
        return self.picture_cache or self.datasets[dataset].specification.get("picture_cache")

    def broken_of(self, dataset: str) -> str:
        """What to do about a picture that cannot be read, as copies of the data set say it: ``stop`` or ``skip``."""
        return str((self.picture_cache_of(dataset) or {}).get("broken", "stop"))

    def table(self, name: str) -> Tree:
        """Entry of a table, with ``remarks`` on what the plan makes of it; that of a sweep has a row per point.

        Its metrics are those that its data sets have.
        """
        entry = self._entry(name)
        remarks = [
            f"Not possible, as {reason}: {'; '.join(points)}."
            for reason, points in by_reason(self._refused(name)).items()
        ]
        rows = self._terms(name)
        if entry.get("terms"):
            remarks += terms_notes(rows)
        kinds = [kind for row in rows if (kind := kind_of(row.train))]
        if self._chosen_rates and kinds:
            remarks.append(rates_note(self.rates_of, kinds, self._chosen_rates))
        metrics = of_table(entry["metrics"], [dataset.specification for dataset in self.datasets_of(name)])
        entry = {**entry, "metrics": metrics, "remarks": remarks}
        if self.holds_out and entry.get("checkpoint", "best") == "best":
            entry = {**entry, "checkpoint": "selected"}
        return entry

    def _terms(self, table: str) -> list[Row]:
        """Trained rows of a table on each of its data sets, with and without what the scale lays over them."""
        pairs = [
            Row(
                row["label"],
                self.stated(row["recipe"], dataset.name)["train"],
                self.settings(row["recipe"], dataset.name).train,
            )
            for dataset in self.datasets_of(table)
            for _, row in self._possible(table)
        ]
        return [row for row in pairs if row.train.loss is not None]

    @cached_property
    def tables_of_scale(self) -> list[str]:
        """All tables of the scale, of which the command line may have chosen some; it can of an overlay's, too."""
        of_scale = self._scale.settings.tables
        if self.is_overlay and self.overlays:
            of_scale = read_overlay([project_root() / each for each in self.overlays]).get("tables", TABLES_OF_OVERLAY)
        return _named(of_scale)

    @property
    def tables_page(self) -> str:
        """The page of the call's tables, below the results: some of a scale's tables leave the page of all as it is."""
        if self.table_names == self.tables_of_scale:
            return "tables.html"
        return f"tables/{self.table_names[0] if len(self.table_names) == 1 else 'selected'}.html"

    @property
    def tables(self) -> dict[str, Tree]:
        """Entries of the call's tables."""
        return {name: self.table(name) for name in self.table_names}

    def runs_of(self, table: str) -> pd.DataFrame:
        """Runs behind one table: ``row, label, recipe, dataset, published, seed, trivial, comparable``.

        ``published`` is the data set that is stood in for, ``trivial`` whether the row is of ``params/trivial.yaml``,
        ``comparable`` whether data, backbone, setting and choice of the epoch are the printed ones.

        Raises:
            ValueError: for a recipe that cannot run on a data set of this scale.
        """
        if table not in self._runs_of:
            self._runs_of[table] = self._runs(table)
        runs = self._runs_of[table].copy()
        as_printed = {name for name, dataset in self.datasets.items() if dataset.is_published}
        unchanged = not (self.overlay or self.is_overlay or self.picture_cache or self.holds_out)
        runs["comparable"] = runs["dataset"].isin(as_printed) & unchanged
        return runs

    def published_digest(self, table: str) -> str:
        """Digest of the printed numbers that stand beside a table, empty for a table of our own."""
        printed = self.table(table).get("published")
        if printed is None:
            return ""
        path = project_root() / "params" / "published" / f"{printed['paper']}.csv"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Runs behind all tables of the call: ``table`` and the columns of `runs_of`."""
        return pd.concat([self.runs_of(name).assign(table=name) for name in self.table_names], ignore_index=True)

    def _runs(self, table: str) -> pd.DataFrame:
        rows = [
            {"row": row, "label": values["label"], "recipe": values["recipe"]}
            | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
            | {"trivial": values.get("trivial", False)}
            for row, values in self._possible(table)
            for dataset in self.datasets_of(table)
            if dataset.stands_for in values.get("datasets", [dataset.stands_for])
            for seed in values.get("seeds", self.seeds)
        ]
        frame = pd.DataFrame(rows, columns=["row", "label", "recipe", "dataset", "published", "seed", "trivial"])
        for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            self.check_run(recipe, dataset)
        return frame

    def _possible(self, table: str) -> list[tuple[int, Tree]]:
        """Rows of a table that can run, with their numbers."""
        rows = self._entry(table)["rows"]
        refused = {point.name for point, _ in self._refused(table)}
        return [(number, row) for number, row in enumerate(rows) if row["recipe"] not in refused]

    def _refused(self, table: str) -> list[tuple[Point, str]]:
        """Points of a sweep whose parts cannot be combined, with the reasons; none for a table of the files."""
        refused = []
        for point in () if table in self._tables else self.sweeps[table].points:
            try:
                for dataset in self.datasets_of(table):
                    self.check_run(point.name, dataset.name)
            except IncompatibleError as error:
                refused.append((point, error.reason))
        return refused

    def datasets_of(self, table: str) -> list[Dataset]:
        """Data sets of this scale that fill a table, in the table's order; none that models of another one embed."""
        wanted = self._entry(table)["datasets"]
        filling = [each for each in self.datasets.values() if each.trained_on is None]
        if wanted == "own":
            return [each for each in filling if each != self._scale.strangers]
        return [each for name in wanted for each in filling if each.stands_for == name]

    def check_training(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that does not exist or says what cannot be, with a ``ValueError``.

        The message begins with the file whose value is wrong: what a scale lays over the recipe may be.
        """
        self.refuse_unknown(recipe=recipe, dataset=dataset)
        if not is_right(sections := self.deciding(recipe, dataset)):
            of_scale = is_right(self.stated(recipe, dataset))
            check_recipe(sections, self.place_of(recipe, dataset, of_scale=of_scale))

    def check_run(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that cannot run on a data set of this scale, with a ``ValueError``, as `check_training`."""
        if (recipe, dataset) in self._checked:
            return
        self.check_training(recipe, dataset)
        where, sections = self.place_of(recipe, dataset), self.settings(recipe, dataset)
        alone = self.datasets[dataset].specification.get("self_match", True)
        if sections.evaluate.scoring.name == "shared_neighbours" and not alone:
            raise ValueError(
                f"{where}, evaluate.scoring.name: 'shared_neighbours' needs a test set that searches itself, "
                "not queries and gallery"
            )
        if (layout := self.datasets[dataset].specification["layout"]) == "pascal5i" or sections.segment:
            if layout != "pascal5i":
                raise ValueError(f"{where}, segment: only data of layout 'pascal5i' have episodes, not {layout!r}")
            if not sections.segment:
                raise ValueError(f"{where}, segment: data of layout 'pascal5i' need this section, not null")
            if not METHODS[method := sections.train.method.name].has_attention:
                having = " or ".join(repr(name) for name, each in METHODS.items() if each.has_attention)
                raise ValueError(f"{where}, train.method.name: attention is that of {having}, not {method!r}")
            self.training_dataset(recipe, dataset)
        if sections.train.noise.images > 0 and self._scale.strangers is None:
            reason = f"train.noise.images: scale {self.scale} names no data set as its strangers"
            raise IncompatibleError(f"{where}, ", reason)
        self._checked.add((recipe, dataset))


def _named(tables: str | Sequence[str] | None) -> list[str]:
    return tables_of_papers() if isinstance(tables, str) else list(tables or [])


def _typed(config: Mapping[str, Any]) -> Tree:
    """Values as ``--config`` gives them: Snakemake reads lists, ``true`` and ``false`` there as text."""
    typed = dict(config)
    for key in ("tracking", "mixed"):
        if str(typed.get(key)).lower() in ("true", "false"):
            typed[key] = str(typed[key]).lower() == "true"
    if isinstance(typed.get("seeds"), list):
        typed["seeds"] = [int(seed) if re.fullmatch(r"-?\d+", str(seed)) else seed for seed in typed["seeds"]]
    return typed
