"""Recipes as ``params/recipes`` states them: read, laid over each other, and checked before any job starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from lookalike.checks import require_keys, require_known
from lookalike.parameters import Settings, canonical, check, merge, read
from lookalike.paths import project_root
from lookalike.plan import fidelity
from lookalike.running.code import constructor_arguments, lookup

STAGES = ("train", "embed", "evaluate", "segment")
# Parts that a recipe chooses by name, and the dictionaries they are looked up in.
LOOKUPS = {
    ("train", "backbone"): ("lookalike.models.backbones", "BACKBONES"),
    ("train", "method"): ("lookalike.learners", "LEARNERS"),
    ("train", "sampler"): ("lookalike.samplers", "SAMPLERS"),
    ("embed", "representation"): ("lookalike.learners.representations", "REPRESENTATIONS"),
    ("evaluate", "scoring"): ("lookalike.learners.scorings", "SCORINGS"),
}
# Definitions whose arguments are a part's options, where those are not the arguments of the part itself.
OPTIONS = {
    "avsl": ("lookalike.methods.avsl.model:AVSL",),
    "diml": ("lookalike.methods.diml.model:DIML",),
    "embedder": (),
    "sam": ("lookalike.methods.sam.model:SimilarityAttention", "lookalike.methods.sam.loss:SimilarityMiningLoss"),
}
# Arguments that the pipeline passes by itself.
SUPPLIED = {"backbone", "levels", "embedding_dim", "image_size", "generator", "trunk", "head", "metric_loss"}
SUPPLIED |= {"embedder", "feature_layer", "projection", "classes", "model", "query", "gallery", "search", "learner"}
SUPPLIED |= {"labels", "coarse_labels", "batch_size", "seed", "batches", "options"}
_RIGHT: set[str] = set()  # sections, as text, that `check_recipe` has found right
# How the representations of a method can be compared.
SCORINGS_OF = {
    "avsl": ("graph",),
    "diml": ("structural_matching", "cosine", "shared_neighbours"),
    "embedder": ("cosine", "structural_matching", "shared_neighbours"),
    "sam": ("cosine", "structural_matching", "shared_neighbours"),
}


class IncompatibleError(ValueError):
    """Parts that exist, but cannot be combined.

    Args:
        place: what the message begins with.
        reason: what does not fit, the same for all recipes that it concerns.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}{reason}")
        self.reason = reason


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
    Sizes follow the scale's ``embedding_dims``: those of embedding and projector, and AVSL's edges per node, which keep
    their share of the nodes. A batch is cut to whole groups of the sampler.

    Args:
        layers: of the recipe, as `read_recipes` gives them.
        paper: of the recipe, whose options a ``fidelity`` sets.
        published: published data set that is stood in for, ``None`` for own pictures.
        scale: the scale's values.
    """
    values = _laid({}, layers, published)
    if (level := values.get("fidelity", "recommended")) != "recommended":
        values = _laid(values, [fidelity.overrides(paper, level, values)], published)
    stated = values["train"].get("embedding", {}).get("dim")
    segments = values.get("segment") is not None
    values = _laid(values, [scale.get("recipe", {})], published)
    values["segment"] = values["segment"] if segments else None  # a scale cuts episodes, it does not ask for any
    sections: Settings = deepcopy({stage: values.get(stage, {}) for stage in STAGES})
    train, sizes = sections["train"], scale.get("embedding_dims", {})
    embedding = train.get("embedding", {})
    embedding["dim"] = sizes.get(embedding.get("dim"), embedding.get("dim"))
    group = train.get("sampler", {}).get("per_class", 1)
    if train.get("batch_size", 0) >= group:
        train["batch_size"] -= train["batch_size"] % group
    if train.get("projector"):
        train["projector"]["width"] = sizes.get(train["projector"]["width"], train["projector"]["width"])
    if "k" in train["method"] and stated and embedding["dim"]:
        train["method"]["k"] = max(1, round(train["method"]["k"] * embedding["dim"] / stated))
    return sections


def _laid(values: Settings, layers: Sequence[Settings], published: str | None) -> Settings:
    for layer in layers:
        values = merge(merge(values, layer), layer.get("per_dataset", {}).get(published, {}))
    return values


def check_recipe(sections: Settings, place: str) -> None:
    """Refuse a recipe with a part, an option or a combination that does not exist.

    Args:
        sections: as `sections_on` gives them.
        place: what the message calls the recipe.

    Raises:
        ValueError: naming the place, the key and what would be right.
    """
    check(sections, "recipe", place)
    for (stage, part), (module, dictionary) in LOOKUPS.items():
        chosen, at = sections[stage][part], f"{place}, {stage}.{part}"
        entries = lookup(module, dictionary)
        if part != "backbone" or "stages" not in chosen:  # at stages of one's own any network of torchvision is read
            require_known(f"{at}.name", chosen["name"], entries)
        if part != "backbone":
            options = _arguments(OPTIONS.get(chosen["name"], (entries[chosen["name"]],)))
            require_keys(at, chosen.keys() - {"name"}, options)
    train, method = sections["train"], sections["train"]["method"]["name"]
    if train["loss"] is not None:
        losses, of_method = losses_of(method), "" if method == "embedder" else f" (method {method})"
        every = losses_of("embedder")
        if (loss := train["loss"]["name"]) not in losses and loss in every:
            others = sorted(every.keys() - losses.keys())
            takes = f"only {', '.join(sorted(losses))}" if len(losses) < len(others) else f"all but {', '.join(others)}"
            raise IncompatibleError(f"{place}, train.loss.name {loss!r}: ", f"method {method!r} takes {takes}")
        require_known(f"{place}, train.loss.name{of_method}", loss, losses)
        require_keys(f"{place}, train.loss", train["loss"].keys() - {"name"}, _loss_arguments(method, losses[loss]))
    elif method != "embedder":
        raise IncompatibleError(
            f"{place}, ", f"train.loss: method {method!r} needs a loss: {', '.join(losses_of(method))}"
        )
    if (scoring := sections["evaluate"]["scoring"]["name"]) not in SCORINGS_OF[method]:
        allowed = ", ".join(SCORINGS_OF[method])
        raise IncompatibleError(
            f"{place}, ", f"evaluate.scoring.name: method {method!r} is not compared by {scoring!r}, but by {allowed}"
        )
    _check_together(sections, place)


def is_right(sections: Settings) -> bool:
    """Whether `check_recipe` refuses nothing."""
    if (text := canonical(sections)) not in _RIGHT:
        try:
            check_recipe(sections, "")
        except ValueError:
            return False
        _RIGHT.add(text)
    return True


def losses_of(method: str) -> dict[str, str]:
    """Losses that a method can be trained with: the plain ones, or for AVSL and DIML their own forms of some."""
    if method in ("avsl", "diml"):
        return lookup(f"lookalike.methods.{method}.loss", "TERMS")
    losses = lookup("lookalike.losses", "LOSSES")
    if method == "sam":
        del losses["contextual"]  # has no tuples that could be mined
    return losses


def _check_together(sections: Settings, place: str) -> None:
    train, scoring = sections["train"], sections["evaluate"]["scoring"]["name"]
    method, dim = train["method"]["name"], train["embedding"]["dim"]
    representation = sections["embed"]["representation"]["name"]
    located, structured = representation == "locations", method in ("avsl", "diml")
    if representation != "own" and structured:
        raise IncompatibleError(
            f"{place}, ", f"embed.representation.name: method {method!r} keeps its 'own', not {representation!r}"
        )
    if scoring == "structural_matching" and not located and method != "diml":
        raise IncompatibleError(
            f"{place}, ", f"embed.representation.name: 'structural_matching' needs 'locations', not {representation!r}"
        )
    if located and not train["embedding"]["pooling"].startswith("average"):
        raise IncompatibleError(
            f"{place}, ",
            f"train.embedding.pooling: locations are those of a mean over the map, "
            f"'average' or 'average_max', not {train['embedding']['pooling']!r}",
        )
    if dim is None and (located or structured):
        needs = "'locations' need" if located else f"method {method!r} needs"
        raise IncompatibleError(f"{place}, ", f"train.embedding.dim: {needs} a size, not null")
    if (k := train["method"].get("k")) is not None and k > dim:
        raise IncompatibleError(
            f"{place}, ", f"train.method.k: {k} edges per node exceed the {dim} nodes (embedding.dim)"
        )
    _check_stripes(train, structured, place)
    for part in ("projector", "regulariser"):
        if train[part] is not None and method != "embedder":
            raise IncompatibleError(f"{place}, ", f"train.{part}: method {method!r} takes none, it must be null")
    if train["projector"] is not None and "projector" not in train["optimiser"]["lr"]:
        raise IncompatibleError(f"{place}, ", "train.optimiser.lr: a projector needs a rate of its own, 'projector'")


def _check_stripes(train: Settings, structured: bool, place: str) -> None:
    embedding, parts = train["embedding"], train["embedding"].get("parts")
    if (embedding["pooling"] == "stripes") != (parts is not None):
        raise IncompatibleError(
            f"{place}, ", f"train.embedding.parts: pooling 'stripes' needs them and no other takes them, not {parts}"
        )
    if parts is not None and (structured or not embedding["dim"] or embedding["dim"] % parts):
        raise IncompatibleError(
            f"{place}, ",
            f"train.embedding.dim: {parts} stripes embed to a multiple of {parts} with method 'embedder' or 'sam', "
            f"not to {embedding['dim']} with {train['method']['name']!r}",
        )
    if train["loss"] and train["loss"]["name"] == "part_cross_entropy" and train["loss"].get("parts") != parts:
        raise IncompatibleError(
            f"{place}, ", f"train.loss.parts: {train['loss'].get('parts')} classifiers do not fit {parts} stripes"
        )
    if (train["image"]["scale"] is None) != (train["image"]["ratio"] is None):
        raise IncompatibleError(f"{place}, ", "train.image.ratio: null belongs to scale null, a range to a range")
    if train["method"]["name"] == "avsl" and not isinstance(train["test_image"]["crop_px"], int):
        raise IncompatibleError(f"{place}, ", "train.test_image.crop_px: method 'avsl' reads squares, one number")


def _loss_arguments(method: str, definition: str) -> set[str]:
    extra = {"avsl": ("lookalike.methods.avsl.loss:AVSLLoss",), "diml": ("lookalike.methods.diml.matching:Matching",)}
    return _arguments((definition, *extra.get(method, ()))) - {"kind"}


def _arguments(definitions: Iterable[str]) -> set[str]:
    return {name for definition in definitions for name in constructor_arguments(definition)} - SUPPLIED
