"""What the values of many pairs and a few trainings come to."""

from __future__ import annotations

from torch import Tensor

from lookalike.statistics.crossed import Estimate, crossed_estimate


def over_pairs(values: Tensor) -> Estimate:
    """Mean over pairs and seeds, for other pairs and other trainings of their kind.

    Args:
        values: ``(S, N)``, of the same N pairs in each of S trainings. A pair with NaN in any of them is left out of
            all: `Estimate.classes` says how many are in.

    Returns:
        The estimate, pairs in the place of classes; ``interval(0.05)`` holds 95 %.

    Raises:
        ValueError: for another shape, infinity, or if no pair is left.
    """
    if values.ndim != 2:
        raise ValueError(f"values must be (S, N), seeds and pairs, not {tuple(values.shape)}")
    defined = ~values.isnan().any(dim=0)
    if not bool(defined.any()):
        raise ValueError(f"none of {values.shape[1]} pairs has a value in all of {values.shape[0]} trainings")
    return crossed_estimate(values[:, defined].double().cpu().numpy())
