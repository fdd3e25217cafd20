"""The tuples that a metric loss mined, in the form that mining by erasure takes."""

from __future__ import annotations

import torch
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs, convert_to_triplets
from torch import Tensor

from lookalike.checks import require_known
from lookalike.methods.sam.weights import ROLES
from lookalike.sampling.miners import Tuples, draw_columns, evenly, negative_pairs, preferring

TRAINED_KINDS = ("siamese_same", "triplet", "quadruplet")


def mined_tuples(
    mined: Tuples | None, labels: Tensor, kind: str, limit: int, generator: torch.Generator | None = None
) -> Tensor:
    """Up to ``limit`` tuples of a batch, a random choice of those that were mined.

    Args:
        mined: what a miner returns, triplets or pairs; ``None`` stands for all tuples of the batch.
        labels: ``(N,)`` int64.
        kind: ``siamese_same`` takes the positive pairs, each once whatever its order; ``triplet`` the triplets;
            ``quadruplet`` adds a second negative to each, drawn from a third class, or if there is none from the other
            negatives of the anchor. Pairs become triplets where they share an anchor.
        limit: largest number of tuples, at least 0.
        generator: source of the choice; ``None`` is the global one.

    Returns:
        ``(R, T)`` int64 indices within the batch, T at most ``limit``; fewer if fewer were mined.

    Raises:
        ValueError: for another kind (pairs of different images are not mined by erasure), or a negative limit.
    """
    require_known("kind", kind, TRAINED_KINDS)
    if limit < 0:
        raise ValueError(f"limit={limit} is negative")
    if kind == "siamese_same":
        anchor, positive, _, _ = convert_to_pairs(mined, labels)
        pairs = torch.stack([anchor, positive]).sort(dim=0).values
        return _some(torch.unique(pairs, dim=1), limit, generator)
    triplets = torch.stack(convert_to_triplets(mined, labels, t_per_anchor="all"))
    if kind == "triplet":
        return _some(triplets, limit, generator)
    return _with_second_negative(_some(triplets[:, _extensible(triplets, labels)], limit, generator), labels, generator)


def _some(tuples: Tensor, limit: int, generator: torch.Generator | None) -> Tensor:
    """A random choice of columns."""
    device = tuples.device if generator is None else generator.device
    order = torch.randperm(tuples.shape[1], generator=generator, device=device)[:limit]
    return tuples[:, order.to(tuples.device)]


def _extensible(triplets: Tensor, labels: Tensor) -> Tensor:
    """Whether the anchor has a second negative, ``(T,)`` bool."""
    return negative_pairs(labels)[triplets[0]].sum(dim=1) > 1


def _with_second_negative(triplets: Tensor, labels: Tensor, generator: torch.Generator | None) -> Tensor:
    anchor, _, negative = triplets
    if not len(anchor):
        return triplets.new_empty(ROLES["quadruplet"], 0)
    apart = negative_pairs(labels)
    others = apart[anchor].scatter(1, negative[:, None], False)  # (T, N)
    allowed = preferring(others & apart[negative], others)
    weights = evenly(allowed, torch.empty(allowed.shape, device=labels.device))
    return torch.cat([triplets, draw_columns(weights, generator)[None]])
