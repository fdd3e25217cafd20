"""Plans without entropy: the optimal transport problem itself."""

from __future__ import annotations

import torch
from torch import Tensor


def exact_plans(cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Plans of least cost, by the network simplex of POT, pair by pair on the processor.

    Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 4.

    Args:
        cost: ``(n, R, R')``.
        rows: ``(n, R)`` marginals with a sum of one.
        columns: ``(n, R')``.

    Returns:
        ``(n, R, R')``, constants.
    """
    import ot

    triples = zip(*(part.detach().double().cpu().numpy() for part in (rows, columns, cost)), strict=True)
    plans = [torch.from_numpy(ot.emd(row / row.sum(), column / column.sum(), pair)) for row, column, pair in triples]
    return torch.stack(plans).to(cost) if plans else torch.zeros_like(cost)
