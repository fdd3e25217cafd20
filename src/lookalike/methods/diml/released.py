"""Plans as the authors' released code finds them, for comparison with its numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def released_plans(
    cost: Tensor, rows: Tensor, columns: Tensor, reg: float = 0.05, threshold: float = 0.1, max_iterations: int = 100
) -> Tensor:
    """Sinkhorn's iterations, stopped for all pairs together.

    They stop when the scalings of the rows change by less than ``threshold`` on average over all pairs and rows, an
    absolute number although the scalings grow like the inverse of the kernel. A plan therefore depends on its
    companions; columns are exact, rows are off by up to 7e-3, and the similarity by about 2e-3.

    Source: DIML, released code, where the rows are the gallery image's locations.

    Args:
        cost: ``(n, R, R')``, of the candidates of one query.
        rows: ``(n, R)`` marginals.
        columns: ``(n, R')``.
        reg: weight of the entropy; from about 0.02 downwards float32 underflows.
        threshold: mean change of the rows' scalings below which the iterations stop.
        max_iterations: largest number of iterations.

    Returns:
        ``(n, R, R')``.
    """
    kernel = torch.exp(cost / -reg)
    row_scale, column_scale = torch.ones_like(rows), torch.ones_like(columns)
    for _ in range(max_iterations):
        before = row_scale
        row_scale = rows / (kernel @ column_scale.unsqueeze(-1)).squeeze(-1)
        column_scale = columns / (kernel.mT @ row_scale.unsqueeze(-1)).squeeze(-1)
        if bool((row_scale - before).abs().mean() < threshold):
            break
    return row_scale.unsqueeze(-1) * kernel * column_scale.unsqueeze(-2)
