"""The terms at which a table compares methods: settings of its trainings, and a scale's changes to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.base.text import in_yaml
from lookalike.methods import METHODS
from lookalike.workflow.plan.recipes import part_of
from lookalike.workflow.plan.timings import seconds
from lookalike.workflow.settings.layers import Tree, flat
from lookalike.workflow.settings.recipes import Recipe, Train
from lookalike.workflow.settings.sources import code

# Parts of the section ``train`` that are equal for all rows of a fair comparison; what else it holds makes the method.
TERMS = ("batch_size", "mixed_precision", "acceleration", "image", "test_image", "optimiser", "schedule", "budget")
# Said too where they are not the recipe's own: a network is chosen for the pictures, the head's size for the searches.
CHOSEN = ("backbone", "embedding")
RATES = ("trunk", "head", "projector", "proxies", "boundaries")
DASH = "–"
COSTS = (
    "Milliseconds per query, warm: a picture loaded and represented, and searched for, once all is loaded. Where a row "
    "has no such measure, milliseconds per query of all: the job that represents pictures, for each of its pictures, "
    "and the job that scores, for each of its queries, their start included. Training: its job. All as measured here."
)


@dataclass(frozen=True)
class Row:
    """A trained row on one data set.

    Attributes:
        label: of the row.
        stated: the section ``train`` of its recipe, without what the scale lays over it.
        train: the section as it is run.
    """

    label: str
    stated: Tree
    train: Train


def terms_notes(rows: Sequence[Row]) -> list[str]:
    """Notes on a table: the terms of its rows, those that are not the recipes' own, and the measurement of costs."""
    labels = tuple(dict.fromkeys(row.label for row in rows))
    by_rows: dict[tuple[str, ...], list[str]] = {}
    for change, concerned in _changes(rows).items():
        by_rows.setdefault(tuple(dict.fromkeys(concerned)), []).append(change)
    return [
        *([_stated([row.train for row in rows])] if rows else []),
        *_not_equal(rows),
        *(
            f"Differs from the comparison's own terms, in "
            f"{'all rows' if concerned == labels else ', '.join(concerned)}: {'; '.join(changes)}."
            for concerned, changes in by_rows.items()
        ),
        COSTS,
    ]


def constant_note(rows: Iterable[Row]) -> list[str]:
    """Says which rows a scale's cosine does not hold for."""
    kept = {row.label: part_of(row.stated, "schedule").get("no_cosine") is True for row in rows}
    said = "all rows" if all(kept.values()) else ", ".join(label for label, wish in kept.items() if wish)
    return (
        [f"About the course of a training, so that rates do not fall along a cosine: {said}."] if kept and said else []
    )


def row_terms(recipe: Recipe) -> dict[str, str]:
    """Terms of a row: its ``rates``, ``pooling``, and as ``embedding`` the numbers that a picture takes."""
    train = recipe.train
    rates = train.optimiser.lr.dump()
    each = [_number(rates[part]) if part in rates and has_part(train, part) else DASH for part in RATES]
    drawn = recipe.embed.representation.name == "random_vectors"
    return {
        "rates": " / ".join(each) if train.loss else DASH,
        "pooling": DASH if drawn else train.embedding.pooling,
        "embedding": _embedding(recipe),
    }


def rate_words(rates: str) -> str:
    """The rates of `row_terms`, each with its part; nothing for a row without."""
    each = zip(RATES, rates.split(" / "), strict=True) if rates not in ("", DASH) else ()
    return ", ".join(f"{part} {rate}" for part, rate in each if rate != DASH)


def has_part(train: Train, part: str) -> bool:
    """Whether a training learns a part that has a rate of its own."""
    loss = train.loss.name if train.loss else ""
    if part in METHODS[train.method.name].learns:
        return True
    if part == "projector":
        return train.projector is not None
    if part == "proxies":  # vectors, one per class; a loss that has them asks for their size
        definition = code.lookup("lookalike.losses", "LOSSES").get(loss)
        return definition is not None and "embedding_dim" in code.constructor_arguments(definition)
    return part != "boundaries" or loss == "margin"


def row_costs(files: Mapping[str, str], metrics: Tree) -> dict[str, float | None]:
    """Costs of a run: ``query_ms`` and ``training_s``, each ``None`` where it was not measured.

    Args:
        files: what training and evaluation took, which need not exist.
        metrics: content of the run's metrics file.
    """
    checkpoints = 1 if metrics.get("best_epoch") == metrics.get("epochs") else 2  # each is represented and scored
    whole, embed = seconds(files["evaluate"]), seconds(files["evaluate"], "embed_s")
    pictures, queries = metrics.get("pictures"), metrics.get("searched")
    query = None
    if whole is not None and embed is not None and pictures and queries:
        query = 1000 * (embed / pictures + (whole - embed) / queries) / checkpoints
    return {"query_ms": query, "training_s": seconds(files["train"]) if metrics.get("epochs") else None}


def _not_equal(rows: Iterable[Row]) -> list[str]:
    """A note where rows differ in the start of the embedding's layer, which no method under comparison is about."""
    starts: dict[str, list[str]] = {}
    for row in rows:
        starts.setdefault(row.train.embedding.initialisation, []).append(row.label)
    if len(starts) < 2:
        return []
    *few, (most, _) = sorted(starts.items(), key=lambda start: len(start[1]))
    said = "; ".join(f"{start} in {', '.join(dict.fromkeys(labels))}" for start, labels in few)
    return [
        f"Not equal: pooling (its column), and the start of the embedding's layer, {said}, {most} in all others. "
        "A gain over a row of another pooling or start is not the method's alone."
    ]


def warm_query_ms(files: Mapping[str, str]) -> float | None:
    """Milliseconds of a query once all is loaded, ``None`` where its evaluation has not measured them."""
    return seconds(files["evaluate"], "ms")


def _changes(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Terms that are not the recipe's own, as ``key value instead of value``, with the rows that they hold for."""
    changes: dict[str, list[str]] = {}
    for row in rows:
        stated, used = _terms(row.stated), _terms(row.train.dump())
        for key in sorted(stated.keys() | used.keys()):
            if (here := used.get(key)) != (own := stated.get(key)):
                changes.setdefault(f"{key} {_word(here)} instead of {_word(own)}", []).append(row.label)
    return changes


def _terms(train: Tree) -> dict[str, Any]:
    """Dotted keys of the terms with their values."""
    return dict(flat({term: train[term] for term in (*CHOSEN, *TERMS)}))


def _stated(trainings: Sequence[Train]) -> str:
    """The terms of all trainings in a sentence; where they differ, each value."""
    flattened = [dict(flat(train.dump())) for train in trainings]

    def each(key: str) -> str:
        return " or ".join(dict.fromkeys(_word(values[key]) for values in flattened))

    return (
        f"Trained rows: {each('optimiser.algorithm')}, weight decay {each('optimiser.weight_decay')}; batches of "
        f"{each('batch_size')}; {each('budget.epochs')} epochs of {each('budget.batches_per_epoch')} batches; "
        f"crops of {each('image.crop_px')} px. Rates: {' / '.join(RATES)}, each where a row has such a part."
    )


def _embedding(recipe: Recipe) -> str:
    kept, method, dim = recipe.embed.representation, recipe.train.method, recipe.train.embedding.dim
    if kept.name == "random_vectors":
        return str(kept.options["dim"])
    if dim is None:
        return "as pooled"
    side = kept.options.get("side")
    vectors = side**2 + 1 if side else METHODS[method.name].vectors(method.options)
    return f"{vectors} x {dim}" if vectors > 1 else str(dim)


def _word(value: Any) -> str:
    """A value as YAML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, float):
        return _number(value)
    return in_yaml(value)


def _number(value: float) -> str:
    """``1e-4`` rather than 0.0001 or 1e-04."""
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:g}"
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
