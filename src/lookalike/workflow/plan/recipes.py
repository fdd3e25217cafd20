"""Recipes as ``params/recipes`` states them, and the layers over them on a data set at a scale.

The layers, each over those before it: ``params/defaults.yaml``; the defaults of the recipe's file; the recipes that it
is ``like``, the first one first, and itself; the point of a sweep, or the option of fidelity that it tries; what
``fidelity`` sets; the scale, or overlays; the scale's sizes of what all these come to; what a recipe wishes of the
scale (``budget.times``, ``schedule.no_cosine``); the chosen rates. Values for a published data set lie right above the
layer that they stand in: what a recipe states itself holds on every data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lookalike.base.checks import require_known
from lookalike.base.paths import project_root
from lookalike.methods import METHODS
from lookalike.workflow.plan import fidelity
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import Layer, Tree, copied, laid, merge
from lookalike.workflow.settings.recipes import RecipeFile, RecipePart

STAGES = ("train", "embed", "evaluate", "segment")
DEFAULTS = "params/defaults.yaml"


@dataclass(frozen=True)
class StatedRecipe:
    """A recipe by the layers that state it, with their values for single data sets.

    Attributes:
        paper: file that defines it.
        layers: below the scale's.
        like: the recipe that it starts from, if any.
        level: whose side is taken where paper and released code disagree.
    """

    paper: str
    layers: tuple[Layer, ...]
    like: str | None = None
    level: str = "recommended"

    @property
    def trained_on(self) -> str | None:
        """Published data set that it names to learn from, ``None`` where it learns where it is tested."""
        named = [layer.values["segment"] for layer in self.layers if layer.values.get("segment")]
        return next((section["trained_on"] for section in reversed(named) if "trained_on" in section), None)


def _recipe_files() -> list[Path]:
    """Those of papers first: a result that two recipes share carries the name of the first."""
    params = project_root() / "params"
    papers = {path.stem for path in (params / "published").glob("*.csv")}
    return sorted((params / "recipes").glob("*.yaml"), key=lambda path: (path.stem not in papers, path.stem))


def read_recipes() -> dict[str, StatedRecipe]:
    """All recipes by name, also those that try the options of `lookalike.workflow.plan.fidelity`.

    An option is a choice of its recipe: where a scale sets the same key, the scale's value holds.

    Raises:
        ValueError: for a name that two files use, a recipe that is like itself or like none.
    """
    files: dict[str, RecipeFile] = {}
    file_of: dict[str, str] = {}
    for path in _recipe_files():
        file = str(path.relative_to(project_root()))
        files[file] = read(file, RecipeFile)
        for name in files[file].recipes:
            if name in file_of:
                raise ValueError(f"{path}: a recipe named {name!r} exists already; names are shared by all files")
            file_of[name] = file
    entries = {name: files[file].recipes[name] for name, file in file_of.items()}
    general = Layer(DEFAULTS, read(DEFAULTS, RecipePart).dump())

    def stated(name: str, trail: tuple[str, ...]) -> StatedRecipe:
        if name in trail:
            raise ValueError(f"recipe {trail[0]!r} is like itself: {' -> '.join((*trail, name))}")
        entry, file = entries[name], file_of[name]
        own = Layer(f"{file}, recipes.{name}", entry.dump())
        if entry.like is None:
            defaults = Layer(f"{file}, defaults", files[file].defaults.dump())
            return StatedRecipe(Path(file).stem, (general, defaults, own), level=entry.fidelity)
        require_known(f"recipe {name}, like", entry.like, entries)
        base = stated(entry.like, (*trail, name))
        level = entry.fidelity if "fidelity" in entry.model_fields_set else base.level
        return StatedRecipe(Path(file).stem, (*base.layers, own), entry.like, level=level)

    # Originals before those that are like them: shared results carry the original's name.
    recipes = {name: stated(name, ()) for name in sorted(entries, key=lambda name: entries[name].like is not None)}
    for trial in fidelity.trials():
        file = f"params/fidelity/{trial.paper}.yaml"
        require_known(f"{file}, {trial.option}, recipe", trial.recipe, entries)
        tried = recipes[trial.recipe]
        layer = Layer(f"{file}, options.{trial.option}, {trial.level}", trial.settings.dump())
        recipes[trial.name] = replace(tried, paper="fidelity", layers=(*tried.layers, layer))
    return recipes


@dataclass(frozen=True)
class Terms:
    """Layers, sizes and rates that a scale lays over every recipe.

    Attributes:
        layers: its own, or those of overlays; none for what recipes state by themselves.
        sizes: published embedding size to size at this scale.
        file: where they stand.
        rates: the layer of the rates that were chosen for a recipe, by its section ``train``.
    """

    layers: tuple[Layer, ...] = ()
    sizes: Mapping[int, int] = field(default_factory=dict)
    file: str = ""
    rates: Callable[[Tree], Sequence[Layer]] = lambda train: ()


def layers_on(recipe: StatedRecipe, published: str | None, terms: Terms) -> list[Layer]:
    """Layers of a recipe as it applies to a data set at some terms.

    Sizes follow the scale's: those of embedding and projector, and what a method scales with them. A batch is cut to
    whole groups of the sampler.

    Args:
        recipe: as `read_recipes` gives it.
        published: published data set that is stood in for, ``None`` for own pictures.
        terms: of the scale.
    """
    below = list(_on_dataset(recipe.layers, published))
    if recipe.level != "recommended":
        options = fidelity.overrides(recipe.paper, recipe.level, laid(below))
        below += _on_dataset([Layer(f"params/fidelity/{recipe.paper}.yaml, {recipe.level}", options)], published)
    own = laid(below)
    scale = list(_on_dataset(terms.layers, published))
    if own.get("segment") is None:  # a scale cuts episodes, it does not ask for any
        scale = [Layer(origin, {key: values[key] for key in values if key != "segment"}) for origin, values in scale]
    layers, values = [*below, *scale], laid([Layer("", own), *scale])
    dim = part_of(part_of(own, "train"), "embedding").get("dim")
    fitting: dict[str, Callable[[Tree], Tree]] = {
        f"{terms.file}, embedding_dims": partial(_sized, stated=dim, sizes=terms.sizes),
        "whole groups of the sampler": _in_whole_groups,
        "budget.times": _lengthened,
        "schedule.no_cosine": _without_cosine,
    }
    for origin, fit in fitting.items():
        layers.append(Layer(origin, fit(part_of(values, "train"))))
        values = merge(values, layers[-1].values)
    return [*layers, *terms.rates(part_of(values, "train"))]


def sections_on(recipe: StatedRecipe, published: str | None, terms: Terms) -> Tree:
    """All sections of a recipe as `layers_on` lays them, with the same arguments."""
    values = laid(layers_on(recipe, published, terms))
    found = copied({**{stage: values.get(stage, {}) for stage in STAGES}, "segment": values.get("segment")})
    if terms.layers:  # of a scale, which has met the wish or has nothing against it: such runs are those without it
        part_of(found["train"], "schedule").pop("no_cosine", None)
    return found


def part_of(tree: Any, name: str) -> Tree:
    """A mapping within settings; an empty one where there is something else."""
    found = tree.get(name) if isinstance(tree, dict) else None
    return found if isinstance(found, dict) else {}


def _on_dataset(layers: Iterable[Layer], published: str | None) -> Iterator[Layer]:
    for layer in layers:
        yield Layer(layer.origin, {stage: layer.values[stage] for stage in STAGES if stage in layer.values})
        if published and (values := part_of(layer.values, "per_dataset").get(published)):
            yield Layer(f"{layer.origin}.per_dataset.{published}", values)


def _sized(train: Tree, stated: Any, sizes: Mapping[int, int]) -> Tree:
    """Sizes of a scale. Values of a wrong form stay, for the check to name."""
    fitted: Tree = {}
    for part, key in (("embedding", "dim"), ("projector", "width")):
        size = part_of(train, part).get(key)
        if isinstance(size, int) and sizes.get(size, size) != size:
            fitted[part] = {key: sizes[size]}
    name, dim = part_of(train, "method").get("name"), part_of(merge(train, fitted), "embedding").get("dim")
    method = METHODS.get(name) if isinstance(name, str) else None
    if method and isinstance(stated, int) and isinstance(dim, int) and stated and dim:
        scaled = {option: train["method"].get(option) for option in method.scaled}
        options = {key: max(1, round(value * dim / stated)) for key, value in scaled.items() if isinstance(value, int)}
        if changed := {key: value for key, value in options.items() if value != scaled[key]}:
            fitted["method"] = changed
    return {"train": fitted} if fitted else {}


def _lengthened(train: Tree) -> Tree:
    budget = part_of(train, "budget")
    times, epochs = budget.get("times", 1), budget.get("epochs")
    if times == 1 or not isinstance(times, int) or not isinstance(epochs, int):
        return {}
    return {"train": {"budget": {"epochs": times * epochs}}}


def _without_cosine(train: Tree) -> Tree:
    schedule = part_of(train, "schedule")
    if schedule.get("no_cosine") is not True or schedule.get("decay") != "cosine":
        return {}
    return {"train": {"schedule": {"decay": "steps"}}}


def _in_whole_groups(train: Tree) -> Tree:
    group, batch = part_of(train, "sampler").get("per_class", 1), train.get("batch_size", 0)
    if isinstance(group, int) and isinstance(batch, int) and batch >= group > 0 and batch % group:
        return {"train": {"batch_size": batch - batch % group}}
    return {}
