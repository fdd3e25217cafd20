"""Refuse recipes with parts, options and combinations that do not exist, before any job starts."""

from __future__ import annotations

from collections.abc import Iterable

from lookalike.base.checks import require_keys, require_known
from lookalike.base.paths import CHECKOUT
from lookalike.base.text import in_yaml
from lookalike.methods import METHODS
from lookalike.methods.method import ANY_LOSS, FITTED, Method
from lookalike.metrics.names import BETWEEN_EPOCHS
from lookalike.workflow.settings.layers import Tree, canonical
from lookalike.workflow.settings.model import Part, checked
from lookalike.workflow.settings.recipes import Recipe, Train
from lookalike.workflow.settings.sources.code import (
    constructor_arguments,
    constructor_values,
    defined_in,
    inherits,
    keys_of,
    lookup,
)
from lookalike.workflow.settings.sources.trees import path_of

# Arguments that the pipeline passes by itself.
SUPPLIED = {"backbone", "levels", "embedding_dim", "image_size", "generator", "trunk", "head", "metric_loss"}
SUPPLIED |= {"embedder", "feature_layer", "projection", "classes", "model", "query", "gallery", "search", "learner"}
SUPPLIED |= {"labels", "coarse_labels", "batch_size", "seed", "batches", "options", "fit"}
WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
_RIGHT: dict[str, Recipe] = {}  # by its sections, as text, each that `check_recipe` has found right


class IncompatibleError(ValueError):
    """Parts that exist, but cannot be combined.

    Args:
        place: what the message begins with.
        reason: what does not fit, the same for all recipes that it concerns.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}{reason}")
        self.reason = reason


def check_recipe(sections: Tree, place: str) -> Recipe:
    """Refuse a recipe with a part, an option or a combination that does not exist.

    Args:
        sections: all sections of a recipe, as `layers_on` and `laid` give them.
        place: what the message calls the recipe.

    Returns:
        The recipe.

    Raises:
        ValueError: naming the place, the key and what would be right.
    """
    recipe = checked(Recipe, sections, place)
    train, name = recipe.train, recipe.train.method.name
    _require_listed(f"{place}, train.method.name", name, "lookalike.methods:METHODS")
    method = METHODS[name]
    _check_options(train.method, f"{place}, train.method", method.options)
    if train.backbone.stages is None:  # at stages of one's own any network of torchvision is read
        _require_listed(f"{place}, train.backbone.name", train.backbone.name, "lookalike.models.backbones:BACKBONES")
    _check_part(train.sampler, f"{place}, train.sampler", "lookalike.sampling.samplers:SAMPLERS")
    _check_part(
        recipe.embed.representation,
        f"{place}, embed.representation",
        "lookalike.workflow.training.evaluation:REPRESENTATIONS",
    )
    _check_part(
        recipe.evaluate.scoring, f"{place}, evaluate.scoring", "lookalike.workflow.training.evaluation:SCORINGS"
    )
    # Stripes stand in no dictionary: unlike the others they need a number, and a head of their own.
    poolings = [*keys_of("lookalike.models.embedder", "POOLINGS"), "stripes"]
    _require_listed(
        f"{place}, train.embedding.pooling", train.embedding.pooling, "lookalike.models.embedder:POOLINGS", poolings
    )
    algorithm = train.optimiser.algorithm
    _require_listed(
        f"{place}, train.optimiser.algorithm", algorithm, "lookalike.workflow.training.optimiser:OPTIMISERS"
    )
    for metric in train.budget.metrics:
        require_known(f"{place}, train.budget.metrics", metric, BETWEEN_EPOCHS)
    _check_loss(train, method, place)
    if (scoring := recipe.evaluate.scoring.name) not in method.scorings:
        allowed = ", ".join(method.scorings)
        raise IncompatibleError(
            f"{place}, ", f"evaluate.scoring.name: method {name!r} is not compared by {scoring!r}, but by {allowed}"
        )
    _check_representation(recipe, method, place)
    _check_stripes(train, method, place)
    _check_beside_loss(train, method, place)
    if refused := method.check(recipe):
        raise IncompatibleError(f"{place}, ", refused)
    return recipe


def right(sections: Tree) -> Recipe | None:
    """The recipe of some sections, ``None`` where `check_recipe` refuses them."""
    if (text := canonical(sections)) not in _RIGHT:
        try:
            _RIGHT[text] = check_recipe(sections, "")
        except ValueError:
            return None
    return _RIGHT[text]


def _check_part(part: Part, place: str, dictionary: str) -> None:
    _require_listed(f"{place}.name", part.name, dictionary)
    _check_options(part, place, [lookup(*dictionary.split(":"))[part.name]])


def losses_of(method: str) -> dict[str, str]:
    """Losses that a method can be trained with, ``module:definition`` by name: the plain ones, or its own forms."""
    losses, needed = lookup(*METHODS[method].losses.split(":")), METHODS[method].loss_class
    return {name: each for name, each in losses.items() if needed is None or inherits(each, needed)}


def _check_loss(train: Train, method: Method, place: str) -> None:
    name = train.method.name
    losses = losses_of(name)
    if train.loss is None:
        if method.needs_loss:
            raise IncompatibleError(f"{place}, ", f"train.loss: method {name!r} needs a loss: {', '.join(losses)}")
        return
    every, loss = lookup(*ANY_LOSS.split(":")), train.loss.name
    if loss not in losses and loss in every:
        others = sorted(every.keys() - losses.keys())
        takes = f"only {', '.join(sorted(losses))}" if len(losses) < len(others) else f"all but {', '.join(others)}"
        raise IncompatibleError(f"{place}, train.loss.name {loss!r}: ", f"method {name!r} takes {takes}")
    of_method = "" if losses.keys() == every.keys() else f" (method {name})"
    _require_listed(f"{place}, train.loss.name{of_method}", loss, method.losses, losses)
    if miner := train.loss.options.get("miner"):
        _require_listed(f"{place}, train.loss.miner", miner, "lookalike.sampling.miners:MINERS")
    _check_options(train.loss, f"{place}, train.loss", (losses[loss], *method.loss_options), {"kind"})


def _require_listed(where: str, name: str, dictionary: str, known: Iterable[str] = ()) -> None:
    """As `require_known` of a dictionary ``module:NAME``, or of some of it, which says how a new part gets into it."""
    module, _, capital = dictionary.partition(":")
    listed, part = f"{capital} of {_source(module)}", f"{module}.{name}"
    try:
        require_known(where, name, known or keys_of(module, capital))
    except ValueError as error:
        if not (defined := defined_in(part)) or any(
            each.startswith(f"{part}:") for each in lookup(module, capital).values()
        ):
            raise ValueError(f"{error} ({listed})") from None
        line = f'"{name}": {" or ".join(defined)},'
        raise ValueError(
            f"{where}: {name!r} stands in {_source(part)}, but not in {listed}; import it there and add `{line}`"
        ) from None


def _source(module: str) -> str:
    """File of a module of the package, as the checkout has it."""
    path = path_of(module)
    return str(path.relative_to(CHECKOUT) if path and path.is_relative_to(CHECKOUT) else path)


def _check_representation(recipe: Recipe, method: Method, place: str) -> None:
    train, scoring = recipe.train, recipe.evaluate.scoring.name
    name, representation = train.method.name, recipe.embed.representation.name
    located = representation == "locations"
    if representation not in method.representations:
        kept = ", ".join(map(repr, method.representations))
        raise IncompatibleError(
            f"{place}, ", f"embed.representation.name: method {name!r} keeps its {kept}, not {representation!r}"
        )
    if scoring == "structural_matching" and not (located or method.keeps_locations):
        raise IncompatibleError(
            f"{place}, ", f"embed.representation.name: 'structural_matching' needs 'locations', not {representation!r}"
        )
    if representation in FITTED and train.embedding.pooling == "stripes":
        raise IncompatibleError(
            f"{place}, ", f"embed.representation.name: {representation!r} maps one vector, pooling 'stripes' has more"
        )
    if located and not train.embedding.pooling.startswith("average"):
        raise IncompatibleError(
            f"{place}, ",
            f"train.embedding.pooling: locations are those of a mean over the map, "
            f"'average' or 'average_max', not {train.embedding.pooling!r}",
        )
    if train.embedding.dim is None and method.is_structured:
        raise IncompatibleError(f"{place}, ", f"train.embedding.dim: method {name!r} needs a size, not null")


def _check_beside_loss(train: Train, method: Method, place: str) -> None:
    for part in ("projector", "regulariser"):
        if getattr(train, part) is not None and part not in method.beside_loss:
            name = train.method.name
            raise IncompatibleError(f"{place}, ", f"train.{part}: method {name!r} takes none, it must be null")
    if train.projector is not None and train.optimiser.lr.projector is None:
        raise IncompatibleError(f"{place}, ", "train.optimiser.lr: a projector needs a rate of its own, 'projector'")


def _check_stripes(train: Train, method: Method, place: str) -> None:
    embedding, parts = train.embedding, train.embedding.parts
    if (embedding.pooling == "stripes") != (parts is not None):
        raise IncompatibleError(
            f"{place}, ", f"train.embedding.parts: pooling 'stripes' needs them and no other takes them, not {parts}"
        )
    if parts is not None and (method.is_structured or not embedding.dim or embedding.dim % parts):
        plain = " or ".join(repr(name) for name, each in METHODS.items() if not each.is_structured)
        raise IncompatibleError(
            f"{place}, ",
            f"train.embedding.dim: {parts} stripes embed to a multiple of {parts} with method {plain}, "
            f"not to {embedding.dim} with {train.method.name!r}",
        )
    classifiers = train.loss.options.get("parts") if train.loss else None
    if train.loss and train.loss.name == "part_cross_entropy" and classifiers != parts:
        raise IncompatibleError(f"{place}, ", f"train.loss.parts: {classifiers} classifiers do not fit {parts} stripes")
    if (train.image.scale is None) != (train.image.ratio is None):
        raise IncompatibleError(f"{place}, ", "train.image.ratio: null belongs to scale null, a range to a range")


def _check_options(part: Part, place: str, definitions: Iterable[str], besides: Iterable[str] = ()) -> None:
    """Refuse an option that none of some definitions takes, or a value of another type than its annotation's."""
    known, values = set[str](), dict[str, tuple[object, ...]]()
    for definition in definitions:
        known |= constructor_arguments(definition)
        values = constructor_values(definition) | values
    require_keys(place, part.options, known - SUPPLIED - {*besides})
    for key, value in part.options.items():
        allowed = values.get(key, ())
        if not allowed or any(_is_one(value, each) for each in allowed):
            continue
        if words := [each for each in allowed if isinstance(each, str)]:
            require_known(f"{place}.{key}", value, words)
        right = " or ".join(WORDS[each] if isinstance(each, type) else in_yaml(each) for each in allowed)
        raise ValueError(f"{place}.{key}: {in_yaml(value)} is not {right}")


def _is_one(value: object, allowed: object) -> bool:
    if not isinstance(allowed, type):
        return type(value) is type(allowed) and value == allowed
    if isinstance(value, bool):  # which Python takes for a number
        return allowed is bool
    return isinstance(value, (int, float) if allowed is float else allowed)
