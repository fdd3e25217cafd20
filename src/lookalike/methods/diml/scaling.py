"""Sinkhorn's iterations: rows and columns of a kernel are scaled in turn.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3; Cuturi 2013.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

CYCLE = 6
"""Iterations between two looks at the error; a look costs as much as three."""

SLOWEST = 0.95
"""Largest rate of convergence that is believed."""

FARTHEST = 8.0
"""Largest extrapolation of a logarithm, so that scalings stay within reach."""


def widest_spread(dtype: torch.dtype) -> float:
    """Largest difference of exponents that is safe: kernel times scaling, or two scalings, must fit into ``dtype``."""
    return math.log(torch.finfo(dtype).max) / 2


def scale(
    kernel: Tensor, rows: Tensor, columns: Tensor, tolerance: float, iterations: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Scale every kernel until its marginals are met.

    After each cycle the scalings are extrapolated to where the slowest error would take them. The iterations converge
    to the same plan from any positive start, so this can save some of them but not change the result.

    Each pair stops by itself and is set aside, so that its plan does not depend on the pairs beside it.

    Args:
        kernel: ``(n, R, R')``, positive.
        rows: ``(n, R)`` marginals, which may hold zeros.
        columns: ``(n, R')``.
        tolerance: largest sum of absolute errors of the columns, while the rows are exact.
        iterations: largest number of iterations, at least 1.

    Returns:
        Scalings of the rows ``(n, R)`` and of the columns ``(n, R')``, so that columns are exact, and the indices
        ``(m,)`` of pairs that have not come within the tolerance.
    """
    row_scales, column_scales = torch.empty_like(rows), torch.empty_like(columns)
    active = torch.arange(len(kernel), device=kernel.device)  # (m,), pairs still on their way; all of them at first
    # With the pairs last, sums over locations run along the vector units; a batched product is slower at this size.
    # (R, R', m), (R, m) and (R', m).
    kernel, rows, columns = kernel.permute(1, 2, 0).contiguous(), rows.T.contiguous(), columns.T.contiguous()
    column_scale = columns
    for start in range(0, iterations, CYCLE):
        sums: list[Tensor] = []  # of the columns before they are scaled, in the last three iterations
        for _ in range(min(CYCLE, iterations - start)):
            row_scale = rows / (kernel * column_scale).sum(dim=1)  # (R, m)
            sums = [*sums[-2:], (kernel * row_scale.unsqueeze(1)).sum(dim=0)]  # (R', m) each
            before, column_scale = column_scale, columns / sums[-1]
        error = (before * sums[-1] - columns).abs().sum(dim=0)  # (m,)
        row_scales.index_copy_(0, active, row_scale.T)
        column_scales.index_copy_(0, active, column_scale.T)
        unsettled = (error > tolerance).nonzero().squeeze(1)  # positions in ``active``
        if not len(unsettled) or start + CYCLE >= iterations:
            return row_scales, column_scales, active.index_select(0, unsettled)
        column_scale = column_scale * _remainder(columns, *sums)
        if len(unsettled) < len(active):
            active, kernel, rows, columns, column_scale = (
                part.index_select(-1, unsettled) for part in (active, kernel, rows, columns, column_scale)
            )
    raise ValueError(f"iterations={iterations} must be at least 1")


def _remainder(columns: Tensor, first: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """Factor that takes the scalings ``columns / third`` to the limit of their geometric progression (Aitken)."""
    step, next_step = (first / second).log(), (second / third).log()  # (R', m), of the scalings' logarithms
    # The iteration is symmetric in the scalar product weighted by the marginal: a quotient there lies in [0, 1].
    weighted = columns * step
    length = (weighted * step).sum(dim=0).clamp(min=torch.finfo(step.dtype).tiny)  # (m,)
    rate = ((weighted * next_step).sum(dim=0) / length).clamp(0, SLOWEST)  # (m,)
    return (next_step * (rate / (1 - rate))).clamp(-FARTHEST, FARTHEST).exp()
