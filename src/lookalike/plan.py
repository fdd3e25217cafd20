"""What a call will run: recipes x data sets x seeds, read from ``params/`` and checked before any job starts.

A *scale* names data sets and lays its own values over every recipe; an overlay given with ``--configfile`` is a scale
of the user's own. A recipe has one section per stage. Runs whose sections are equal up to a stage share the result of
that stage, under the name of the recipe that is defined first.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from lookalike import source
from lookalike.parameters import Settings, canonical, check, merge, read
from lookalike.paths import project_root

STAGES = ("train", "embed", "evaluate")
# Which sections decide the result of a stage.
SECTIONS = {"train": ("train",), "embed": ("train", "embed"), "evaluate": ("train", "embed", "evaluate")}
# Parts that a recipe chooses by name, and the dictionaries they are looked up in.
LOOKUPS = {
    "backbone": ("lookalike.models.backbones", "BACKBONES"),
    "loss": ("lookalike.losses", "LOSSES"),
    "sampler": ("lookalike.samplers", "SAMPLERS"),
}


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
            self._values = read(f"params/scales/{self.scale}.yaml", "scale")
        self.title: str = self._values["title"]
        self.data_folder = f"data/{self.scale}" if own else "data"
        self.datasets = {
            name: _dataset(name, value or {}, self.data_folder, source_file)
            for name, value in self._values["datasets"].items()
        }
        self._recipes, self._papers = _recipes()
        tables = _tables()
        self.table_names: list[str] = list(config.get("tables", self._values["tables"]))
        for name in self.table_names:
            _known(name, tables, f"{source_file}, tables")
        self.tables = {name: tables[name] for name in self.table_names}

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
            for seed in self.seeds
        ]
        columns = ["table", "row", "label", "recipe", "dataset", "published", "seed"]
        frame = pd.DataFrame(rows, columns=columns)
        for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            self._check_recipe(recipe, dataset)
        return frame

    def datasets_of(self, table: str) -> list[Dataset]:
        """Data sets of this scale that fill a table, in the table's order."""
        wanted = self.tables[table]["datasets"]
        if wanted == "own":
            return list(self.datasets.values())
        return [each for name in wanted for each in self.datasets.values() if each.stands_for == name]

    def settings(self, recipe: str, dataset: str) -> Settings:
        """Sections of a recipe as they apply to a data set at this scale."""
        return self._resolved[recipe, dataset]

    def shared(self, stage: str, recipe: str, dataset: str) -> str:
        """Recipe under whose name the result of a stage is stored: the first one with equal sections."""
        return self._shared[stage, recipe, dataset]

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
        values = dict(self._recipes[recipe])
        differing = values.pop("per_dataset", {}).get(dataset.stands_for, {})
        values = merge(merge(values, differing), self._values.get("recipe", {}))
        sections: Settings = {stage: values.get(stage, {}) for stage in STAGES}
        embedding = sections["train"].get("embedding", {})
        embedding["dim"] = self._values.get("embedding_dims", {}).get(embedding.get("dim"), embedding.get("dim"))
        return sections

    def _check_recipe(self, recipe: str, dataset: str) -> None:
        place = f"recipe {recipe} on {dataset}"
        sections = self.settings(recipe, dataset)
        check(sections, "recipe", place)
        for part, (module, dictionary) in LOOKUPS.items():
            chosen = sections["train"][part]
            if chosen is None:
                continue
            entries = source.lookup(module, dictionary)
            _known(chosen["name"], entries, f"{place}, train.{part}.name")
            if part != "backbone":
                arguments = source.constructor_arguments(entries[chosen["name"]])
                for key in chosen.keys() - {"name"}:
                    _known(key, arguments, f"{place}, train.{part}")


def _typed(config: Mapping[str, Any]) -> Settings:
    """Values as ``--config`` gives them: Snakemake reads lists and ``false`` there as text."""
    typed = dict(config)
    if str(typed.get("tracking")).lower() in ("true", "false"):
        typed["tracking"] = str(typed["tracking"]).lower() == "true"
    if isinstance(typed.get("seeds"), list):
        typed["seeds"] = [int(seed) if str(seed).isdigit() else seed for seed in typed["seeds"]]
    return typed


def _overlay(config: Mapping[str, Any]) -> Settings:
    keys = ("title", "tables", "datasets", "embedding_dims", "recipe")
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


def _recipes() -> tuple[dict[str, Settings], dict[str, str]]:
    """All recipes, and the files that define them.

    A recipe is laid over the one it is ``like``, or else over its file's defaults. Per-data-set values stay apart.
    """
    raw: dict[str, tuple[Settings, Settings]] = {}
    papers: dict[str, str] = {}
    for path in sorted((project_root() / "params" / "recipes").glob("*.yaml")):
        content = read(path.relative_to(project_root()), "recipes")
        for name, values in content["recipes"].items():
            if name in raw:
                raise ValueError(f"{path}: a recipe named {name!r} exists already; names are shared by all files")
            raw[name] = (content.get("defaults", {}), values)
            papers[name] = path.stem

    def resolved(name: str, trail: tuple[str, ...]) -> Settings:
        if name in trail:
            raise ValueError(f"recipe {trail[0]!r} is like itself: {' -> '.join((*trail, name))}")
        defaults, values = raw[name]
        own = {key: value for key, value in values.items() if key != "like"}
        if "like" not in values:
            return merge(defaults, own)
        _known(values["like"], raw, f"recipe {name}, like")
        return merge(resolved(values["like"], (*trail, name)), own)

    # Originals before those that are like them: shared results carry the original's name.
    ordered = sorted(raw, key=lambda name: "like" in raw[name][1])
    return {name: resolved(name, ()) for name in ordered}, papers


def _tables() -> dict[str, Settings]:
    tables: dict[str, Settings] = {}
    for path in sorted((project_root() / "params" / "tables").glob("*.yaml")):
        content = read(path.relative_to(project_root()), "tables")
        for name in content.keys() & tables.keys():
            raise ValueError(f"{path}: a table named {name!r} exists already; names are shared by all files")
        tables |= content
    recipes, _ = _recipes()
    for name, values in tables.items():
        for row in values["rows"]:
            _known(row["recipe"], recipes, f"table {name}, row {row['label']!r}, recipe")
    return tables


def _known(name: str, known: Iterable[str], place: str) -> None:
    names = sorted(known)
    if name not in names:
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"{place}: unknown {name!r}{hint} Known: {', '.join(names)}")
