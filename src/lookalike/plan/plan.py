"""What a call will run: recipes x data sets x seeds, read from ``params/`` and checked before any job starts.

A recipe has one section per stage. Runs whose sections are equal up to a stage share the result of that stage, under
the name of the recipe that is defined first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

from lookalike.checks import require_known
from lookalike.methods import METHODS
from lookalike.parameters import Settings, canonical, check
from lookalike.paths import project_root
from lookalike.plan.checks import IncompatibleError, check_recipe, is_right
from lookalike.plan.rates import chosen_rates, laid_over, rates_note
from lookalike.plan.recipes import read_recipes, sections_on
from lookalike.plan.scales import Dataset, read_scale
from lookalike.plan.sweeps import Point, Sweep, by_reason, read_sweeps
from lookalike.plan.tables import check_table, read_tables, tables_of_papers
from lookalike.plan.terms import Row, terms_notes
from lookalike.plan.trivial import trivial_rows

SEEDS = [0, 1, 2]  # of comparisons in a call with a single one
# Which sections decide the result of a stage.
SECTIONS = {
    "train": ("train",),
    "embed": ("train", "embed"),
    "evaluate": ("train", "embed", "evaluate"),
    "segment": ("train", "segment"),
}


class Plan:
    """Recipes, data sets and tables of one call.

    Args:
        config: the configuration, as ``params/config.yaml`` describes it.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        config = _typed(config)
        check(config, "config", "configuration")
        self.seeds: list[int] = config["seeds"]
        self.tracking: bool = config["tracking"]
        self.suffix: str = config.get("suffix", "")
        self.holds_out: bool = config.get("selection") == "held_out"
        self.picture_cache: Settings | None = config.get("picture_cache")
        self.decoded_gb: float = config.get("decoded_gb", 0.0)
        self._scale = scale = read_scale(config)
        self.scale, self.is_overlay, self.data_folder = scale.name, scale.own, scale.data_folder
        self.title: str = scale.settings["title"]
        self.overlay = scale.overlay  # what the scale lays over every recipe
        self.rates: Settings = scale.settings.get("rates", {})  # among which `lookalike.plan.rates` chooses
        self.rates_of: str = scale.rates_of
        self.explanations: Settings = scale.settings.get("explanations", {})  # over params/explanations.yaml
        self.page: Settings = scale.settings.get("page", {})  # over params/page.yaml
        self._chosen_rates = chosen_rates(scale.rates_of)
        self.datasets = scale.datasets
        self._recipes, self._papers = read_recipes()
        self._values_of: dict[tuple[str, str], str | None] = {}
        self._resolved: dict[tuple[str, str | None], tuple[Settings, dict[str, str]]] = {}
        self._stated: dict[tuple[str, str | None], Settings] = {}
        self._shared: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
        self._checked: set[tuple[str, str]] = set()
        self._runs_of: dict[str, pd.DataFrame] = {}
        self._tables = read_tables(self._recipes, self._stand_ins)
        files = dict(self._recipes)
        for name, entry in self._tables.items():
            rows, recipes = trivial_rows(name, entry, files, files[entry["rows"][0]["recipe"]])
            self._tables[name] = {**entry, "rows": [*entry["rows"], *rows]}
            self._recipes |= recipes
            self._papers |= dict.fromkeys(recipes, "comparison")
        self.tables_of_scale = _named(scale.settings["tables"])
        self.table_names = _named(config.get("tables", scale.settings["tables"]))
        for name in self.table_names:
            if name not in self._tables:
                chosen_in = "configuration" if "tables" in config and not scale.own else scale.file
                require_known(f"{chosen_in}, tables", name, [*self._tables, *self.sweeps])

    @property
    def compared_as(self) -> str:
        """Whose committed numbers a call is held against: one per scale and way to choose the epoch."""
        return f"{self.scale}_held_out" if self.holds_out else self.scale

    @property
    def folder(self) -> str:
        """Folder of results: beside the others with a suffix, where the call has one."""
        return f"{self.compared_as}_{self.suffix}" if self.suffix else self.compared_as

    @property
    def scale_file(self) -> str:
        """Where the scale stands, as messages call it."""
        return self._scale.file

    @property
    def several_seeds(self) -> list[int]:
        """Seeds of comparisons: a single one, which has no interval, makes way for `SEEDS`."""
        return self.seeds if len(self.seeds) > 1 else SEEDS

    def picture_cache_of(self, dataset: str) -> Settings | None:
        """Copies that trainings on a data set read: those the call asks for, else the data set's own, or ``None``."""
        return self.picture_cache or self.datasets[dataset].specification.get("picture_cache")

    @property
    def known_tables(self) -> list[str]:
        """All tables of ``params/tables``, without those of sweeps."""
        return list(self._tables)

    @property
    def recipe_names(self) -> list[str]:
        """All recipes of ``params/recipes``, in order of definition."""
        return list(self._recipes)

    def refuse_unknown(self, *, recipe: str = "", dataset: str = "", table: str = "") -> None:
        """Refuse names that a file was asked for by and that do not exist, with a ``ValueError``."""
        if recipe and recipe not in self._recipes and recipe not in self._points:
            require_known("params/recipes and params/sweeps", recipe, [*self._recipes, *self._points])
        if dataset and dataset not in self.datasets:
            require_known(f"data set of scale {self.scale}", dataset, self.datasets)
        if table and table not in self._tables and table not in self.sweeps:
            require_known("params/tables and params/sweeps", table, [*self._tables, *self.sweeps])

    def paper_of(self, recipe: str) -> str:
        """File of ``params/recipes`` that defines a recipe, its paper, or of ``params/sweeps``."""
        return self._papers[recipe] if recipe in self._papers else self.sweeps[self._points[recipe][0]].family

    @cached_property
    def sweeps(self) -> dict[str, Sweep]:
        """All sweeps of ``params/sweeps``.

        Raises:
            ValueError: as `read_sweeps` and `check_table`, and for a sweep with the name of a table.
        """
        sweeps = read_sweeps(self._recipes)
        for name in sweeps.keys() & self._tables.keys():
            raise ValueError(f"params/sweeps/{sweeps[name].family}.yaml: a table named {name!r} exists already")
        for name, sweep in sweeps.items():
            check_table(sweep.table, f"params/sweeps/{sweep.family}.yaml, {name}", self._stand_ins)
            rows, recipes = trivial_rows(name, sweep.table, self._recipes, sweep.points[0].layers)
            points = tuple(Point(recipe, {}, layers) for recipe, layers in recipes.items())
            table = {**sweep.table, "rows": [*sweep.table["rows"], *rows]}
            sweeps[name] = replace(sweep, table=table, trivial=points)
        return sweeps

    @property
    def _stand_ins(self) -> list[tuple[str | None, Settings]]:
        return [(each.stands_for, each.specification) for each in self.datasets.values()]

    def table(self, name: str) -> Settings:
        """Entry of a table, with ``remarks`` on what the plan makes of it; that of a sweep has a row per point."""
        entry = self._entry(name)
        remarks = [
            f"Not possible, as {reason}: {'; '.join(points)}."
            for reason, points in by_reason(self._refused(name)).items()
        ]
        if entry.get("terms"):
            remarks += terms_notes(self._terms(name))
        if self._chosen_rates and self._terms(name):
            remarks.append(rates_note(self.rates_of))
        entry = {**entry, "remarks": remarks}
        if self.holds_out and entry.get("checkpoint", "best") == "best":
            entry = {**entry, "checkpoint": "selected"}
        return entry

    def _terms(self, table: str) -> list[Row]:
        """Trained rows of a table on each of its data sets, with and without what the scale lays over them."""
        pairs = [
            Row(row["label"], self.stated(row["recipe"], dataset.name)["train"], settings["train"])
            for dataset in self.datasets_of(table)
            for row in self._entry(table)["rows"]
            for settings in [self.settings(row["recipe"], dataset.name)]
        ]
        return [row for row in pairs if row.train["loss"] is not None]

    def _entry(self, table: str) -> Settings:
        if table not in self._tables:
            require_known("table", table, (*self._tables, *self.sweeps))
        return self._tables[table] if table in self._tables else self.sweeps[table].table

    @property
    def tables(self) -> dict[str, Settings]:
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
        entry = self._entry(table)
        refused = {point.name for point, _ in self._refused(table)}
        rows = [
            {"row": row, "label": values["label"], "recipe": values["recipe"]}
            | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
            | {"trivial": values.get("trivial", False)}
            for row, values in enumerate(entry["rows"])
            if values["recipe"] not in refused
            for dataset in self.datasets_of(table)
            if dataset.stands_for in values.get("datasets", [dataset.stands_for])
            for seed in values.get("seeds", self.seeds)
        ]
        frame = pd.DataFrame(rows, columns=["row", "label", "recipe", "dataset", "published", "seed", "trivial"])
        for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            self.check_run(recipe, dataset)
        return frame

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

    def settings(self, recipe: str, dataset: str, stage: str | None = None) -> Settings:
        """Sections of a recipe as they apply to a data set at this scale: all, or those that decide a stage."""
        sections, _ = self._sections(recipe, dataset)
        return {section: sections[section] for section in (SECTIONS[stage] if stage else sections)}

    def stated(self, recipe: str, dataset: str) -> Settings:
        """Sections of a recipe on a data set without what this scale lays over them."""
        published = self._published(recipe, dataset)
        if (recipe, published) not in self._stated:
            self._stated[recipe, published] = sections_on(self._layers(recipe), self.paper_of(recipe), published, {})
        return self._stated[recipe, published]

    def shared(self, stage: str, recipe: str, dataset: str) -> str:
        """Recipe under whose name the result of a stage is stored: the first one with equal sections."""
        sweep = "" if recipe in self._recipes else self._points[recipe][0]
        if (dataset, sweep) not in self._shared:
            self._shared[dataset, sweep] = self._sharing(dataset, sweep)
        return self._shared[dataset, sweep][stage, recipe]

    def last_stage(self, recipe: str) -> str:
        """Stage whose metrics fill the tables: ``segment`` for recipes that segment, else ``evaluate``."""
        return "segment" if self._trained_on(recipe) else "evaluate"

    def training_dataset(self, recipe: str, dataset: str) -> str:
        """Data set that the model of a run learns from: the run's own, but where recipe or data set name another.

        Raises:
            ValueError: if no data set of this scale stands for the one that the recipe names.
        """
        trained_on = self._trained_on(recipe)
        if trained_on is None:
            return self.datasets[dataset].trained_on or dataset
        names = [each.name for each in self.datasets.values() if each.stands_for == trained_on]
        if not names:
            raise ValueError(
                f"recipe {recipe}, segment.trained_on: no data set of scale {self.scale} stands for {trained_on!r}"
            )
        return names[0]

    def strangers(self, recipe: str, dataset: str) -> Dataset | None:
        """Data set whose pictures replace training pictures, ``None`` for a recipe without image noise."""
        noisy = self.settings(recipe, dataset, "train")["train"]["noise"]["images"] > 0
        return self._scale.strangers if noisy else None

    def strangers_super(self, recipe: str, dataset: str) -> int | None:
        """Coarse class that the strangers of a recipe are taken from, ``None`` without strangers or for all of them."""
        return self._scale.strangers_super if self.strangers(recipe, dataset) else None

    def check_training(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that does not exist or says what cannot be, with a ``ValueError``.

        The message begins with the file whose value is wrong: what a scale lays over the recipe may be.
        """
        self.refuse_unknown(recipe=recipe, dataset=dataset)
        if not is_right(sections := self.settings(recipe, dataset)):
            of_scale = is_right(self.stated(recipe, dataset))
            check_recipe(sections, self.place_of(recipe, dataset, of_scale=of_scale))

    def check_run(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that cannot run on a data set of this scale, with a ``ValueError``, as `check_training`."""
        if (recipe, dataset) in self._checked:
            return
        self.check_training(recipe, dataset)
        where, sections = self.place_of(recipe, dataset), self.settings(recipe, dataset)
        alone = self.datasets[dataset].specification.get("self_match", True)
        if sections["evaluate"]["scoring"]["name"] == "shared_neighbours" and not alone:
            raise ValueError(
                f"{where}, evaluate.scoring.name: 'shared_neighbours' needs a test set that searches itself, "
                "not queries and gallery"
            )
        if (layout := self.datasets[dataset].specification["layout"]) == "pascal5i" or sections["segment"]:
            if layout != "pascal5i":
                raise ValueError(f"{where}, segment: only data of layout 'pascal5i' have episodes, not {layout!r}")
            if not sections["segment"]:
                raise ValueError(f"{where}, segment: data of layout 'pascal5i' need this section, not null")
            if not METHODS[method := sections["train"]["method"]["name"]].has_attention:
                having = " or ".join(repr(name) for name, each in METHODS.items() if each.has_attention)
                raise ValueError(f"{where}, train.method.name: attention is that of {having}, not {method!r}")
            self.training_dataset(recipe, dataset)
        if sections["train"]["noise"]["images"] > 0 and self._scale.strangers is None:
            reason = f"train.noise.images: scale {self.scale} names no data set as its strangers"
            raise IncompatibleError(f"{where}, ", reason)
        self._checked.add((recipe, dataset))

    def place_of(self, recipe: str, dataset: str, *, of_scale: bool = False) -> str:
        """What messages on a run begin with: the recipe's files, or where what the scale lays over it is wrong its."""
        file = f"{self.scale_file}, recipe" if of_scale else self._files(recipe)
        return f"{file}: recipe {recipe} on {dataset}"

    def _sharing(self, dataset: str, sweep: str) -> dict[tuple[str, str], str]:
        """By stage and recipe, the first recipe of equal sections: of those in the files and in the sweep, if any."""
        points = [point.name for point in self.sweeps[sweep].every] if sweep else []
        first: dict[tuple[str, ...], str] = {}
        shared: dict[tuple[str, str], str] = {}
        for recipe in (*self._recipes, *points):
            _, texts = self._sections(recipe, dataset)
            for stage, sections in SECTIONS.items():
                key = (stage, *(texts[section] for section in sections))
                shared[stage, recipe] = first.setdefault(key, recipe)
        return shared

    def _sections(self, recipe: str, dataset: str) -> tuple[Settings, dict[str, str]]:
        """Sections of a recipe on a data set, and each as text that is equal for equal sections."""
        published = self._published(recipe, dataset)
        if (recipe, published) not in self._resolved:
            sections = sections_on(self._layers(recipe), self.paper_of(recipe), published, self._scale.settings)
            sections["train"] = laid_over(sections["train"], self._chosen_rates)
            self._resolved[recipe, published] = sections, {key: canonical(value) for key, value in sections.items()}
        return self._resolved[recipe, published]

    def _files(self, recipe: str) -> str:
        """Where the values of a recipe stand: its own file and those of the recipes that it is like."""
        if recipe not in self._recipes or self._papers[recipe] == "fidelity":
            return f"params/{'fidelity' if recipe in self._recipes else f'sweeps/{self.paper_of(recipe)}.yaml'}"
        names = [recipe]
        while "like" in (layer := self._recipes[names[-1]][-1]):
            names.append(layer["like"])
        return ", ".join(dict.fromkeys(f"params/recipes/{self._papers[name]}.yaml" for name in names))

    def _published(self, recipe: str, dataset: str) -> str | None:
        """Published data set whose values a recipe takes, ``None`` where none has values of its own.

        Most recipes are the same on all data sets, and so are resolved once.
        """
        if (recipe, dataset) not in self._values_of:
            learned = self.datasets[self.datasets[dataset].trained_on or dataset]
            published, layers = self._trained_on(recipe) or learned.stands_for, (*self._layers(recipe), self.overlay)
            has_own = any(published in layer.get("per_dataset", ()) or "fidelity" in layer for layer in layers)
            self._values_of[recipe, dataset] = published if has_own else None
        return self._values_of[recipe, dataset]

    def _layers(self, recipe: str) -> list[Settings]:
        return self._recipes[recipe] if recipe in self._recipes else self._points[recipe][1].layers

    @cached_property
    def _points(self) -> dict[str, tuple[str, Point]]:
        """Points of all sweeps by the name of their recipe, each with the name of its sweep."""
        return {point.name: (name, point) for name, sweep in self.sweeps.items() for point in sweep.every}

    def _trained_on(self, recipe: str) -> str | None:
        """Published data set that a recipe names to learn from, ``None`` for those that learn where they are tested."""
        named = [layer["segment"] for layer in self._layers(recipe) if layer.get("segment")]
        return next((section["trained_on"] for section in reversed(named) if "trained_on" in section), None)


def _named(tables: str | list[str] | None) -> list[str]:
    return tables_of_papers() if isinstance(tables, str) else list(tables or [])


def _typed(config: Mapping[str, Any]) -> Settings:
    """Values as ``--config`` gives them: Snakemake reads lists and ``false`` there as text."""
    typed = dict(config)
    if str(typed.get("tracking")).lower() in ("true", "false"):
        typed["tracking"] = str(typed["tracking"]).lower() == "true"
    if isinstance(typed.get("seeds"), list):
        typed["seeds"] = [int(seed) if re.fullmatch(r"-?\d+", str(seed)) else seed for seed in typed["seeds"]]
    return typed
