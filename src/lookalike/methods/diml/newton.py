"""Newton's method for plans that Sinkhorn's iterations are slow to find.

A plan is ``P = diag(a) softmax(v - cost / reg)`` with the row marginal ``a`` and one number ``v`` per column, such that
the columns of P sum to ``b``. That is where a concave function of ``v``, the semi-dual, has its maximum; its second
derivative is ``-H``, ``H = diag(d) - P' diag(1 / a) P`` with the columns' sums ``d`` of P.

Source: Cuturi and Peyré, "A Smoothed Dual Approach for Variational Wasserstein Problems", 2016, for the semi-dual;
Bach, "Self-concordant analysis for logistic regression", 2010, for steps that need no search.
"""

from __future__ import annotations

import torch
from torch import Tensor

RIDGE = 1e-12
"""Added to the scaled H, whose eigenvalues lie in [0, 1], so that float64 can factor it where P falls apart."""


def column_step(plan: Tensor, residual: Tensor) -> Tensor:
    """Solve ``H step = residual``.

    H does not see a constant, which moves no mass: ``d d'`` is added to fix it. Both are scaled by the root of ``d``,
    so that rare columns are as exact as others.

    Args:
        plan: ``(n, R, R')``; rows and columns may be zero.
        residual: ``(n, R')`` with a sum of zero.

    Returns:
        ``(n, R')``, zero at columns without mass.
    """
    row_root, column_root = plan.sum(dim=-1).sqrt(), plan.sum(dim=-2).sqrt()  # (n, R), (n, R')
    row_inverse, column_inverse = (torch.where(root > 0, 1 / root, 0) for root in (row_root, column_root))
    scaled = row_inverse.unsqueeze(-1) * plan * column_inverse.unsqueeze(-2)  # (n, R, R'), singular values up to 1
    matrix = column_root.unsqueeze(-1) * column_root.unsqueeze(-2) - scaled.mT @ scaled  # (n, R', R') less I
    matrix.diagonal(dim1=-2, dim2=-1).add_(1 + RIDGE)
    factor = torch.linalg.cholesky_ex(matrix).L  # (n, R', R'); unchecked, as a check would wait for the device
    solution = torch.cholesky_solve((column_inverse * residual).unsqueeze(-1), factor).squeeze(-1)  # (n, R')
    return column_inverse * solution


def newton(
    logits: Tensor, rows: Tensor, columns: Tensor, potentials: Tensor, tolerance: float, iterations: int
) -> Tensor:
    """Plans from any start, by damped Newton steps with an iteration of Sinkhorn between them.

    Both kinds of step raise the semi-dual. With M the range of a full Newton step, its third derivative along the step
    is at most M times the second, so that ``log(1 + M) / M`` of the step is sure to raise it; near the solution that
    is the full step. Everything is computed from logarithms, and nothing underflows.

    Args:
        logits: ``(n, R, R')`` float64, minus cost over reg.
        rows: ``(n, R)`` marginals, which may hold zeros.
        columns: ``(n, R')``.
        potentials: ``(n, R')``, where ``v`` starts.
        tolerance: largest root of the Newton decrement, which bounds the error of the columns and estimates the sum of
            absolute differences to the plan.
        iterations: largest number of steps, at least 1.

    Returns:
        ``(n, R, R')``; rows are exact.
    """
    solution = potentials.clone()
    active = torch.arange(len(logits), device=logits.device)  # (m,), pairs still on their way; all of them at first
    everything = logits, rows
    # Exponents are no finer than their own rounding.
    floor = 8 * torch.finfo(logits.dtype).eps * (1 + logits.abs().amax(dim=(-2, -1)))
    limit = floor.clamp(min=tolerance)
    for _ in range(iterations):
        row_potentials = rows.log() - (logits + potentials.unsqueeze(-2)).logsumexp(dim=-1)  # (m, R)
        potentials = columns.log() - (logits + row_potentials.unsqueeze(-1)).logsumexp(dim=-2)  # (m, R')
        plan = _plan(logits, rows, potentials)  # (m, R, R')
        residual = columns - plan.sum(dim=-2)  # (m, R'), the gradient of the semi-dual
        step = column_step(plan, residual)
        decrement = (residual * step).sum(dim=-1).clamp(min=0).sqrt()  # (m,)
        reach = step.amax(dim=-1) - step.amin(dim=-1)  # (m,), M of the docstring
        potentials = potentials + torch.where(reach > 0, reach.log1p() / reach, 1).unsqueeze(-1) * step
        solution[active] = potentials
        unsettled = decrement > limit
        if not bool(unsettled.all()):
            active, logits, rows, columns, potentials, limit = (
                part[unsettled] for part in (active, logits, rows, columns, potentials, limit)
            )
        if not len(active):
            break
    return _plan(*everything, solution)


def _plan(logits: Tensor, rows: Tensor, potentials: Tensor) -> Tensor:
    return rows.unsqueeze(-1) * (logits + potentials.unsqueeze(-2)).softmax(dim=-1)
