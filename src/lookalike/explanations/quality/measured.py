"""All measures of a method's explanations of some triplets, a number per triplet.

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

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.quality.annotations import Parts
from lookalike.explanations.quality.deletion import STEPS, margin_between, margin_deletion
from lookalike.explanations.quality.inside import mass_beyond_centre
from lookalike.explanations.quality.parts import part_agreement
from lookalike.explanations.quality.planted import draw_boxes, planted, planted_hits, planted_rank
from lookalike.explanations.quality.pooled import GRID, pooled
from lookalike.explanations.quality.randomised import map_correlation, weight_randomisation
from lookalike.explanations.quality.scores import Scores
from lookalike.explanations.quality.signs import of_difference, of_likeness
from lookalike.explanations.quality.substitutes import SUBSTITUTES
from lookalike.explanations.quality.transfer import ALPHAS, ceiling, point_transfer, same_place

Explain = Callable[[nn.Module, Tensor, Tensor, Tensor | None], Explanation]


@dataclass(frozen=True)
class Triplets:
    """T triplets with a random partner of each anchor, and what is known of their pictures.

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
    """Seconds on a clock, once a device has done what it was asked for."""
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
