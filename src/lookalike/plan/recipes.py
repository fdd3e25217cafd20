"""Recipes as ``params/recipes`` states them: read, laid over each other, and checked before any job starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.checks import require_known
from lookalike.methods import METHODS
from lookalike.parameters import Settings, copied, merge, read
from lookalike.paths import project_root
from lookalike.plan import fidelity

STAGES = ("train", "embed", "evaluate", "segment")


def _recipe_files() -> list[Path]:
    """Those of papers first: a result that two recipes share carries the name of the first."""
    params = project_root() / "params"
    papers = {path.stem for path in (params / "published").glob("*.csv")}
    return sorted((params / "recipes").glob("*.yaml"), key=lambda path: (path.stem not in papers, path.stem))


def read_recipes() -> tuple[dict[str, list[Settings]], dict[str, str]]:
    """All recipes, each as layers to lay over each other, and the files that define them: their papers.

    The layers are ``params/defaults.yaml``, the file's defaults, the recipes that it is ``like``, and its own values.
    To the recipes of the files come those that try the options of `lookalike.plan.fidelity`.

    Raises:
        ValueError: for a name that two files use, a recipe that is like itself or like none.
    """
    raw: dict[str, tuple[Settings, Settings]] = {}
    papers: dict[str, str] = {}
    for path in _recipe_files():
        content = read(path.relative_to(project_root()), "recipes")
        for name, values in content["recipes"].items():
            if name in raw:
                raise ValueError(f"{path}: a recipe named {name!r} exists already; names are shared by all files")
            raw[name] = (content.get("defaults", {}), values)
            papers[name] = path.stem
    general = read("params/defaults.yaml", "sections")

    def layers(name: str, trail: tuple[str, ...]) -> list[Settings]:
        if name in trail:
            raise ValueError(f"recipe {trail[0]!r} is like itself: {' -> '.join((*trail, name))}")
        defaults, values = raw[name]
        if "like" not in values:
            return [general, defaults, values]
        require_known(f"recipe {name}, like", values["like"], raw)
        return [*layers(values["like"], (*trail, name)), values]

    # Originals before those that are like them: shared results carry the original's name.
    ordered = sorted(raw, key=lambda name: "like" in raw[name][1])
    recipes = {name: layers(name, ()) for name in ordered}
    for trial in fidelity.trials():
        require_known(f"params/fidelity/{trial.paper}.yaml, {trial.option}, recipe", trial.recipe, raw)
        recipes[trial.name] = [*recipes[trial.recipe], trial.settings]
        papers[trial.name] = "fidelity"
    return recipes, papers


def sections_on(layers: Sequence[Settings], paper: str, published: str | None, scale: Mapping[str, Any]) -> Settings:
    """The sections of a recipe as they apply to one data set at one scale.

    Each layer's values for the data set lie right above the layer: a recipe's own values hold on every data set.
    Sizes follow the scale's ``embedding_dims``: those of embedding and projector, and what a method scales with them. A
    batch is cut to whole groups of the sampler.

    Args:
        layers: the recipe's layers, from `read_recipes`.
        paper: the recipe's paper, whose options a ``fidelity`` sets.
        published: published data set that is stood in for, ``None`` for own pictures.
        scale: the scale's values.
    """
    values = _laid({}, layers, published)
    if (level := values.get("fidelity", "recommended")) != "recommended":
        values = _laid(values, [fidelity.overrides(paper, level, values)], published)
    stated = _part(values["train"], "embedding").get("dim")
    segments = values.get("segment") is not None
    values = _laid(values, [scale.get("recipe", {})], published)
    values["segment"] = values["segment"] if segments else None  # a scale cuts episodes, it does not ask for any
    sections: Settings = copied({stage: values.get(stage, {}) for stage in STAGES})
    if isinstance(sections["train"], dict):
        _fit(sections["train"], stated, scale.get("embedding_dims", {}))
    return sections


def _fit(train: Settings, stated: Any, sizes: Mapping[Any, int]) -> None:
    """Bring sizes to those of a scale. What has another form than it must have stays, for the schema to name."""
    embedding = _part(train, "embedding")
    if "dim" in embedding and not isinstance(embedding["dim"], (dict, list)):
        embedding["dim"] = sizes.get(embedding["dim"], embedding["dim"])
    group, batch = _part(train, "sampler").get("per_class", 1), train.get("batch_size", 0)
    if isinstance(group, int) and isinstance(batch, int) and batch >= group > 0:
        train["batch_size"] -= batch % group
    projector = _part(train, "projector")
    if "width" in projector and not isinstance(projector["width"], (dict, list)):
        projector["width"] = sizes.get(projector["width"], projector["width"])
    name, dim = _part(train, "method").get("name"), embedding.get("dim")
    method = METHODS.get(name) if isinstance(name, str) else None
    if method and isinstance(stated, int) and isinstance(dim, int) and stated and dim:
        for option in method.scaled:
            if isinstance(value := train["method"].get(option), int):
                train["method"][option] = max(1, round(value * dim / stated))


def _part(train: Any, name: str) -> Settings:
    """A mapping within settings; an empty one where there is something else."""
    found = train.get(name) if isinstance(train, dict) else None
    return found if isinstance(found, dict) else {}


def _laid(values: Settings, layers: Sequence[Settings], published: str | None) -> Settings:
    for layer in layers:
        values = merge(merge(values, layer), _part(layer, "per_dataset").get(published or "", {}))
    return values
