"""What a call will run: recipes x data sets x seeds, read from ``params/`` and checked before any job starts.

A *scale* names data sets and lays its own values over every recipe; an overlay given with ``--configfile`` is a scale
of the user's own. A recipe has one section per stage. Runs whose sections are equal up to a stage share the result of
that stage, under the name of the recipe that is defined first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from lookalike.parameters import Settings, canonical, check, merge, read
from lookalike.paths import project_root
from lookalike.recipes import STAGES, check_recipe, known, read_recipes, sections_on

# Which sections decide the result of a stage.
SECTIONS = {"train": ("train",), "embed": ("train", "embed"), "evaluate": ("train", "embed", "evaluate")}


@dataclass(frozen=True)
class Dataset:
    """One data set of a scale."""

    name: str
    stands_for: str | None  # the published data set whose recipe values it takes
    specification: Settings  # layout, classes, counts, archives: see workflow/schemas/dataset.schema.yaml
    own: bool  # given by the user's overlay, so hashed in its manifest instead of tracked by DVC
    folder: str  # below which the data of this scale lie

    @property
    def root(self) -> str:
        """Folder that readers take: the user's own where it is read in place."""
        return str(self.specification.get("folder", f"{self.folder}/{self.name}"))

    @property
    def record(self) -> str:
        """File that says the download is complete."""
        return f"{self.folder}/{self.name}.json"


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
        own = self.is_overlay = "name" in config
        self.scale: str = config["name"] if own else config["scale"]
        source_file = "the overlay" if own else f"params/scales/{self.scale}.yaml"
        if own:
            overlay = {"title": self.scale, "tables": ["comparison"], **_overlay(config)}
            check(overlay, "scale", source_file)
            self._values = overlay
        else:
            self._values = _scale(self.scale)
        self.title: str = self._values["title"]
        self.data_folder = f"data/{self.scale}" if own else "data"
        self.datasets = {
            name: _dataset(name, value or {}, self.data_folder, source_file)
            for name, value in self._values["datasets"].items()
        }
        self._recipes, self._papers = read_recipes()
        tables = _tables()
        self.table_names: list[str] = list(config.get("tables", self._values["tables"]))
        for name in self.table_names:
            known(name, tables, f"{source_file}, tables")
        self.tables = {name: tables[name] for name in self.table_names}

    @property
    def overlay(self) -> Settings:
        """What the scale lays over every recipe."""
        overlay: Settings = self._values.get("recipe", {})
        return overlay

    @property
    def recipe_names(self) -> list[str]:
        """All recipes of ``params/recipes``, in order of definition."""
        return list(self._recipes)

    def paper_of(self, recipe: str) -> str:
        """File of ``params/recipes`` that defines a recipe: its paper."""
        return self._papers[recipe]

    def runs_of(self, table: str) -> pd.DataFrame:
        """Runs behind one table, each with whether data, backbone and setting are the printed ones."""
        runs = self.runs[self.runs["table"] == table].drop(columns="table").copy()
        as_printed = {name for name, dataset in self.datasets.items() if name == dataset.stands_for}
        unchanged = not self._values.get("recipe") and not self.is_overlay
        runs["comparable"] = runs["dataset"].isin(as_printed) & unchanged
        return runs

    def published_digest(self, table: str) -> str:
        """Digest of the printed numbers that stand beside a table, empty for a table of our own."""
        printed = self.tables[table].get("published")
        if printed is None:
            return ""
        path = project_root() / "params" / "published" / f"{printed['paper']}.csv"
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per table cell group and seed: ``table, row, label, recipe, dataset, published, seed``."""
        rows = [
            {"table": table, "row": row, "label": entry["label"], "recipe": entry["recipe"]}
            | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
            for table, values in self.tables.items()
            for row, entry in enumerate(values["rows"])
            for dataset in self.datasets_of(table)
            if dataset.stands_for in entry.get("datasets", [dataset.stands_for])
            for seed in self.seeds
        ]
        columns = ["table", "row", "label", "recipe", "dataset", "published", "seed"]
        frame = pd.DataFrame(rows, columns=columns)
        for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            self.check_run(recipe, dataset)
        return frame

    def datasets_of(self, table: str) -> list[Dataset]:
        """Data sets of this scale that fill a table, in the table's order."""
        wanted = self.tables[table]["datasets"]
        if wanted == "own":
            return [each for name, each in self.datasets.items() if name != self._values.get("strangers")]
        return [each for name in wanted for each in self.datasets.values() if each.stands_for == name]

    def settings(self, recipe: str, dataset: str, stage: str = "evaluate") -> Settings:
        """Sections of a recipe as they apply to a data set at this scale, those that decide the result of a stage."""
        return {section: self._resolved[recipe, dataset][section] for section in SECTIONS[stage]}

    def shared(self, stage: str, recipe: str, dataset: str) -> str:
        """Recipe under whose name the result of a stage is stored: the first one with equal sections."""
        return self._shared[stage, recipe, dataset]

    def strangers(self, recipe: str, dataset: str) -> Dataset | None:
        """Data set whose pictures replace training pictures, ``None`` for a recipe without image noise."""
        noisy = self.settings(recipe, dataset, "train")["train"]["noise"]["images"] > 0
        return self.datasets[self._values["strangers"]] if noisy else None

    def check_run(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that cannot run on a data set of this scale, with a ``ValueError``."""
        place, sections = f"recipe {recipe} on {dataset}", self.settings(recipe, dataset)
        check_recipe(sections, place)
        alone = self.datasets[dataset].specification.get("self_match", True)
        if sections["evaluate"]["scoring"]["name"] == "shared_neighbours" and not alone:
            raise ValueError(
                f"{place}, evaluate.scoring.name: 'shared_neighbours' needs a test set that searches itself, "
                "not queries and gallery"
            )
        if sections["train"]["noise"]["images"] > 0:
            if "strangers" not in self._values:
                raise ValueError(f"{place}, train.noise.images: scale {self.scale} names no data set as its strangers")
            known(self._values["strangers"], self.datasets, f"scale {self.scale}, strangers")

    @cached_property
    def _resolved(self) -> dict[tuple[str, str], Settings]:
        return {
            (recipe, dataset.name): self._resolve(recipe, dataset)
            for recipe in self._recipes
            for dataset in self.datasets.values()
        }

    @cached_property
    def _shared(self) -> dict[tuple[str, str, str], str]:
        first: dict[tuple[str, str, str], str] = {}
        shared: dict[tuple[str, str, str], str] = {}
        for (recipe, dataset), sections in self._resolved.items():
            for stage in STAGES:
                key = (stage, dataset, canonical([sections[section] for section in SECTIONS[stage]]))
                shared[stage, recipe, dataset] = first.setdefault(key, recipe)
        return shared

    def _resolve(self, recipe: str, dataset: Dataset) -> Settings:
        return sections_on(self._recipes[recipe], self._papers[recipe], dataset.stands_for, self._values)


def _typed(config: Mapping[str, Any]) -> Settings:
    """Values as ``--config`` gives them: Snakemake reads lists and ``false`` there as text."""
    typed = dict(config)
    if str(typed.get("tracking")).lower() in ("true", "false"):
        typed["tracking"] = str(typed["tracking"]).lower() == "true"
    if isinstance(typed.get("seeds"), list):
        typed["seeds"] = [int(seed) if str(seed).isdigit() else seed for seed in typed["seeds"]]
    return typed


def _scale(name: str) -> Settings:
    """Values of a scale, laid over those of the one it is ``like``; data sets and tables are always its own."""
    values = read(f"params/scales/{name}.yaml", "scale")
    if "like" in values:
        base = read(f"params/scales/{values['like']}.yaml", "scale")
        values = merge({key: base[key] for key in ("embedding_dims", "recipe")}, values)
    return values


def _overlay(config: Mapping[str, Any]) -> Settings:
    keys = ("title", "tables", "datasets", "strangers", "embedding_dims", "recipe")
    return {key: config[key] for key in keys if key in config}


def _dataset(name: str, values: Mapping[str, Any], folder: str, source_file: str) -> Dataset:
    values = dict(values)
    stands_for = values.pop("stands_for", None)
    own = "layout" in values
    if own:
        values = {"title": name, "recall_at": [1, 2, 4, 8], "self_match": True, **values}
        check(values, "dataset", f"{source_file}, datasets.{name}")
    elif values:
        raise ValueError(f"{source_file}, datasets.{name}: own data name their layout; found only {', '.join(values)}")
    specification = values if own else read(f"params/datasets/{name}.yaml", "dataset")
    return Dataset(name, stands_for, specification, own, folder)


def _tables() -> dict[str, Settings]:
    tables: dict[str, Settings] = {}
    for path in sorted((project_root() / "params" / "tables").glob("*.yaml")):
        content = read(path.relative_to(project_root()), "tables")
        for name in content.keys() & tables.keys():
            raise ValueError(f"{path}: a table named {name!r} exists already; names are shared by all files")
        tables |= content
    recipes, _ = read_recipes()
    for name, values in tables.items():
        for row in values["rows"]:
            known(row["recipe"], recipes, f"table {name}, row {row['label']!r}, recipe")
    return tables
