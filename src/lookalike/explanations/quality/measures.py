"""All measures of a method's explanations of some triplets, a number per triplet, and controls to be better than.

Symbols: ``a, p, n`` anchor, positive, negative; ``r`` a random partner of the anchor; ``s`` the measure of likeness.
Maps of pairs ``(a, p)`` and ``(a, r)`` serve agreement and transfer of parts, mass inside and partner randomisation;
those of triplets the deletion of the margin; those of ``(a, a')``, with a box of another picture in ``a'``, the planted
difference. Each measure draws from a generator of its own, so that rows of a table share every draw. What nobody knows
of the pictures is not measured: without parts no agreement and no transfer, without an object no mass inside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.explanations.choice import explain
from lookalike.explanations.decomposition import SIDE, STRUCTURE, located_by, pair_nodes
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.quality.cells import GRID, centre_maps, edge_maps, pooled, random_maps
from lookalike.explanations.quality.deletion import STEPS, SUBSTITUTES, cosines, margin_between, margin_deletion
from lookalike.explanations.quality.parts import (
    ALPHAS,
    Parts,
    ceiling,
    mass_beyond_centre,
    part_agreement,
    point_transfer,
    same_place,
)
from lookalike.explanations.quality.sanity_checks import (
    draw_boxes,
    map_correlation,
    planted,
    planted_hits,
    planted_rank,
    weight_randomisation,
)
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML, LocatedEmbedder
from lookalike.methods.diml.representation import Representation
from lookalike.models.embedder import Embedder

TOWARDS_LIKENESS = {"cosine": 1, "structural similarity": 1, "distance": -1}  # sign of the evidence, by measure
Explain = Callable[[nn.Module, Tensor, Tensor, Tensor | None], Explanation]
CONTROLS = ("random", "centre", "edges")


@dataclass(frozen=True)
class Scores:
    """A measure of likeness of pairs, without its explanation.

    Attributes:
        represent: images ``(N, 3, H, W)`` to what is kept of them.
        similarity: of N pairs of what is kept, ``(N,)`` float64; larger means closer, a distance with its sign changed.
    """

    represent: Callable[[Tensor], Any]
    similarity: Callable[[Any, Any], Tensor]


def scores_of(model: nn.Module, method: str) -> Scores:
    """The measure that a method of `lookalike.explain` explains.

    Args:
        model: in evaluation mode.
        method: ``structure``, or any other, which explains an AVSL model's distance and else the cosine.
    """
    if isinstance(model, AVSL):
        return Scores(model, lambda query, gallery: -pair_nodes(model, query, gallery)[0].double())
    if method == STRUCTURE:
        located = model if isinstance(model, LocatedEmbedder) else located_by(cast(Embedder, model), SIDE)
        matcher = model.matcher if isinstance(model, DIML) else StructuralMatcher()
        return Scores(located.represent, lambda query, gallery: _structural(matcher, query, gallery))
    embedder = model.embedder if isinstance(model, LocatedEmbedder) else model
    return Scores(embedder, cosines)


def _structural(matcher: StructuralMatcher, query: Representation, gallery: Representation) -> Tensor:
    one, other = query.to(torch.float64), gallery.to(torch.float64)
    match = matcher.matching(one.regions, one.global_vector, other.regions[:, None], other.global_vector[:, None])
    similarity: Tensor = match.similarity[:, 0]
    return similarity


def of_likeness(found: Explanation, role: int = 0) -> Tensor:
    """Map of a pair's likeness, low where the pair differs: `deletion` takes cells away in its order.

    Args:
        found: of pairs; or of triplets, where the query's map speaks for the gallery image.
        role: 0 for the map of the query, 1 for that of the gallery image.

    Returns:
        ``(N, h, w)``, the map of a similarity, or that of a distance with its sign changed. Nothing is clipped.

    Raises:
        ValueError: for an unknown measure or another role.
    """
    require_known("measure", found.measure, TOWARDS_LIKENESS)
    if role not in (0, 1):
        raise ValueError(f"role={role} must be 0, the query, or 1, the gallery image")
    return TOWARDS_LIKENESS[found.measure] * found.maps[role]


def of_difference(found: Explanation, role: int = 1) -> Tensor:
    """Map of a pair's difference: `of_likeness` with its sign changed.

    Of a map that shows only what is alike, never below zero, the lowest places count as the difference.
    """
    return -of_likeness(found, role)


@dataclass(frozen=True)
class Triplets:
    """T triplets with a random partner of each anchor, and the annotations of their pictures.

    Attributes:
        images: ``(4, T, 3, H, W)`` of anchors, positives, negatives and partners, as the model takes them.
        parts: of anchors, of positives, and of partners, or ``None``.
        objects: ``(T, H, W)`` bool, pixels of the anchors' objects, or ``None``.
        reach: by alpha how far off a transferred point may be, ``(T,)`` pixels, or ``None``.
    """

    images: Tensor
    parts: tuple[Parts, Parts, Parts] | None
    objects: Tensor | None
    reach: dict[float, Tensor] | None


def measured(
    explain: Explain,
    model: nn.Module,
    scores: Scores,
    triplets: Triplets,
    *,
    seed: int,
    side: int = GRID,
    steps: int = STEPS,
    substitutes: Sequence[str] = tuple(SUBSTITUTES),
) -> dict[str, Tensor]:
    """Values of all measures by name, each ``(T,)``; NaN where one is not defined.

    Args:
        explain: a method: of a model, queries, gallery images and perhaps negatives.
        model: in evaluation mode; stays as it is.
        scores: the measure that the method explains.
        triplets: T of them.
        seed: of all draws.
        side: cells to a side of the grid that all methods share.
        steps: in which an anchor is deleted.
        substitutes: for which patches make way, of `SUBSTITUTES`.

    Returns:
        ``deletion_<substitute>`` with ``whole_<substitute>``, in which units a table gives them; ``partner``;
        ``weights``; ``planted``, the rank, and ``planted_hit``; ``milliseconds``; where parts are known ``agreement``,
        and if the method has pairs of places ``pck@0.1`` and ``pck@0.2`` with ``ceiling@...`` and ``same_place@...``;
        where the object is known ``inside``; where the method has a sum ``gap``.
    """
    anchor, positive, negative, partner = triplets.images
    start = _now(anchor)
    found = explain(model, anchor, positive, None)
    seconds = _now(anchor) - start
    other = explain(model, anchor, partner, None)
    maps, others = ([pooled(each, side) for each in explained.maps] for explained in (found, other))
    values = {"milliseconds": torch.full((len(anchor),), 1000 * seconds / len(anchor), dtype=torch.float64)}
    values |= _deleted(explain, model, scores, triplets.images[:3], seed, side, steps, substitutes)
    if triplets.parts is not None:
        with_positive = part_agreement((maps[0], maps[1]), triplets.parts[:2])
        values["agreement"] = with_positive - part_agreement((others[0], others[1]), triplets.parts[::2])
    if triplets.objects is not None:
        values["inside"] = mass_beyond_centre(maps[0], triplets.objects)
    values["partner"] = map_correlation(maps[0], others[0], side)
    generator = torch.Generator().manual_seed(seed)
    values["weights"] = weight_randomisation(
        lambda each: explain(each, anchor, positive, None).maps[0], model, generator, steps=1, side=side
    )[0]
    boxes = draw_boxes(len(anchor), torch.Generator().manual_seed(seed + 1), side)
    spoilt = explain(model, anchor, planted(anchor, negative, boxes), None)
    difference = pooled(of_difference(spoilt), side)
    values["planted"], values["planted_hit"] = planted_rank(difference, boxes), planted_hits(difference, boxes)
    if found.gap is not None:
        values["gap"] = found.gap.double()
    return values | _transferred(found, triplets)


def _now(images: Tensor) -> float:
    """Seconds on a clock, once a CUDA device has finished its work."""
    if images.is_cuda:
        torch.cuda.synchronize(images.device)
    return time.perf_counter()


def _deleted(
    explain: Explain,
    model: nn.Module,
    scores: Scores,
    images: Tensor,
    seed: int,
    side: int,
    steps: int,
    substitutes: Sequence[str],
) -> dict[str, Tensor]:
    anchor, positive, negative = images
    maps = of_likeness(explain(model, anchor, positive, negative))
    margin = margin_between(scores.represent, scores.similarity, positive, negative)
    values = {}
    for name in substitutes:
        require_known("substitute", name, SUBSTITUTES)
        generator = torch.Generator().manual_seed(seed + 2)
        substitute = SUBSTITUTES[name](anchor)
        deletion = margin_deletion(margin, anchor, substitute, maps, generator=generator, side=side, steps=steps)
        values[f"deletion_{name}"], values[f"whole_{name}"] = deletion.area, deletion.whole
    return values


def _transferred(found: Explanation, triplets: Triplets) -> dict[str, Tensor]:
    if found.pairs is None or found.grid is None or triplets.parts is None or triplets.reach is None:
        return {}
    first, second, _ = triplets.parts
    values = {}
    for alpha in ALPHAS:
        given = (found.grid, first, second, triplets.reach[alpha])
        values[f"pck@{alpha}"] = point_transfer(found.pairs, *given)
        values[f"ceiling@{alpha}"], values[f"same_place@{alpha}"] = ceiling(*given), same_place(*given)
    return values


def explainer(method: str, *, seed: int, side: int = GRID) -> Explain:
    """A method of `lookalike.explain`, or one of `CONTROLS`, which know nothing of the pair.

    Args:
        method: its name.
        seed: of random maps, which are others with every call.
        side: of the controls' maps.
    """
    if method not in CONTROLS:
        return lambda model, query, gallery, negative: explain(model, query, gallery, negative, method=method)
    calls = 0

    def control(model: nn.Module, query: Tensor, gallery: Tensor, negative: Tensor | None) -> Explanation:
        nonlocal calls
        calls += 1
        images = torch.stack([query, gallery] if negative is None else [query, gallery, negative])
        if method == "random":
            maps = random_maps(images, side, seed * 1_000_003 + calls)
        else:
            maps = (centre_maps if method == "centre" else edge_maps)(images, side)
        return Explanation(method, "cosine", torch.full((len(query),), torch.nan), maps)

    return control
