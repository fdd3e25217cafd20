"""Transport plans between the locations of two images.

Symbols of the paper: ``T`` the plan, ``C`` the cost, ``mu^s, mu^t`` the marginals, ``lambda`` the weight ``reg`` of
the entropy. The plan minimises ``sum T C - reg * entropy(T)`` among those with the given marginals.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 4 to 6.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.methods.diml.newton import column_step, newton
from lookalike.methods.diml.scaling import scale, widest_spread

SINKHORN_ITERATIONS = 48
"""Pairs that need more are finished by Newton's method."""

MASS_TOLERANCE = 1e-3
"""Relative; marginals that were rounded or rounded off differ by less."""


def transport_plan(
    cost: Tensor,
    row_marginal: Tensor,
    column_marginal: Tensor,
    *,
    reg: float = 0.05,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> Tensor:
    """Plan of least cost and most entropy, by Sinkhorn's iterations and, where these are slow, Newton's method.

    Where an input has a gradient, so has the plan: that of the converged plan, however it was found. A location
    without mass keeps none and gets no gradient. Second derivatives are not those of the plan.

    Differs: the released code stops all pairs together on a rule that depends on the candidates and leaves errors of
    up to 7e-3 in the rows (`released_plans`); here every pair is solved by itself.

    Args:
        cost: ``(..., R, R')``, rows the query.
        row_marginal: ``(..., R)``, not negative. All zero counts as uniform.
        column_marginal: ``(..., R')``, of the same sum.
        reg: weight of the entropy, above 0.
        tolerance: sum of absolute errors that the columns may have for a marginal of sum one; no finer than rounding.
        max_iterations: largest number for each method and pair; after them the plan is as good as it got.

    Returns:
        ``(..., R, R')``, at least float32 in its computations.

    Raises:
        ValueError: if shapes do not belong together, a value is negative or not finite, the marginals of a pair have
            different sums, ``reg <= 0``, ``tolerance < 0`` or ``max_iterations < 1``.
    """
    check_solver(reg, tolerance, max_iterations)
    if cost.ndim < 2 or 0 in cost.shape[-2:]:
        raise ValueError(f"cost has shape {tuple(cost.shape)}, it must be (..., R, R') with R, R' >= 1")
    if row_marginal.shape != cost.shape[:-1] or column_marginal.shape != (*cost.shape[:-2], cost.shape[-1]):
        raise ValueError(
            f"row_marginal {tuple(row_marginal.shape)} and column_marginal {tuple(column_marginal.shape)} do not fit "
            f"a cost of shape {tuple(cost.shape)}: (..., R) and (..., R') are needed"
        )
    precise = torch.promote_types(cost.dtype, torch.float32)
    flat = cost.flatten(0, -3) if cost.ndim > 2 else cost.unsqueeze(0)  # (n, R, R')
    rows, columns = (
        _filled(name, marginal.reshape(len(flat), marginal.shape[-1]).to(precise))
        for name, marginal in (("row_marginal", row_marginal), ("column_marginal", column_marginal))
    )
    mass, other = rows.sum(dim=-1, keepdim=True), columns.sum(dim=-1, keepdim=True)  # (n, 1)
    if bool(((mass - other).abs() > MASS_TOLERANCE * mass).any()):
        pair = int(((mass - other).abs() - MASS_TOLERANCE * mass).argmax())
        raise ValueError(
            f"row_marginal sums to {float(mass[pair])} and column_marginal to {float(other[pair])} in pair {pair}, "
            "the sums must be equal"
        )
    plan = mass.unsqueeze(-1) * plans(flat.to(precise), rows / mass, columns / other, reg, tolerance, max_iterations)
    return plan.to(cost.dtype).view(cost.shape)


def plans(
    cost: Tensor, rows: Tensor, columns: Tensor, reg: float, tolerance: float = 1e-6, max_iterations: int = 1000
) -> Tensor:
    """`transport_plan` of ``(n, R, R')`` costs with marginals that sum to one, unchecked but for the cost.

    Raises:
        ValueError: if a cost is not finite.
    """
    with torch.no_grad():
        plan = _solve(cost, rows, columns, reg, tolerance, max_iterations)
    if torch.is_grad_enabled() and any(part.requires_grad for part in (cost, rows, columns)):
        return _with_gradient(plan, cost, rows, columns, reg)
    return plan


def check_solver(reg: float, tolerance: float, max_iterations: int = 1) -> None:
    """Refuse numbers that no solver can work with.

    Raises:
        ValueError: naming the number.
    """
    if not reg > 0:
        raise ValueError(f"reg={reg} must be above 0")
    if not tolerance >= 0:
        raise ValueError(f"tolerance={tolerance} must be 0 or more")
    if max_iterations < 1:
        raise ValueError(f"max_iterations={max_iterations} must be at least 1")


def _filled(name: str, marginal: Tensor) -> Tensor:
    """The marginal, uniform where it is all zero."""
    if not bool((marginal.isfinite() & (marginal >= 0)).all()):
        raise ValueError(f"{name} holds {float(marginal.min())}, its values must be finite and at least 0")
    return torch.where((marginal > 0).any(dim=-1, keepdim=True), marginal, 1 / marginal.shape[-1])


def _solve(cost: Tensor, rows: Tensor, columns: Tensor, reg: float, tolerance: float, max_iterations: int) -> Tensor:
    """Plans of all pairs, each by the method that suits it."""
    logits = cost / -reg  # (n, R, R')
    highest = logits.amax(dim=(-2, -1), keepdim=True)  # (n, 1, 1)
    spread = (highest - logits.amin(dim=(-2, -1), keepdim=True)).flatten()  # (n,)
    if not bool(spread.isfinite().all()):
        raise ValueError("cost holds NaN or infinity, its values must be finite")
    logits = logits - highest  # a constant in the exponent changes no plan, and no kernel exceeds 1
    wide = spread > widest_spread(logits.dtype)  # (n,), pairs whose scalings would leave the dtype's range
    if not bool(wide.any()):
        return _by_scaling(logits, rows, columns, tolerance, max_iterations)
    plan = torch.empty_like(logits)
    plan[~wide] = _by_scaling(logits[~wide], rows[~wide], columns[~wide], tolerance, max_iterations)
    start = torch.zeros_like(columns[wide])
    plan[wide] = _by_newton(logits[wide], rows[wide], columns[wide], start, tolerance, max_iterations)
    return plan


def _by_scaling(logits: Tensor, rows: Tensor, columns: Tensor, tolerance: float, max_iterations: int) -> Tensor:
    """Plans by Sinkhorn's iterations, those that take too many by Newton's method from there."""
    kernel = logits.exp()  # (n, R, R')
    iterations = min(SINKHORN_ITERATIONS, max_iterations)
    row_scale, column_scale, unsettled = scale(kernel, rows, columns, tolerance, iterations)  # (n, R), (n, R'), (m,)
    plan = row_scale.unsqueeze(-1) * kernel * column_scale.unsqueeze(-2)  # diag(u) K diag(v)
    if len(unsettled):
        start = column_scale[unsettled].log()  # Newton's potentials are logarithms of scalings, (m, R')
        plan[unsettled] = _by_newton(
            logits[unsettled], rows[unsettled], columns[unsettled], start, tolerance, max_iterations
        )
    return plan


def _by_newton(
    logits: Tensor, rows: Tensor, columns: Tensor, start: Tensor, tolerance: float, max_iterations: int
) -> Tensor:
    """Plans by Newton's method, in float64: float32 would lose the digits of large exponents."""
    plan = newton(logits.double(), rows.double(), columns.double(), start.double(), tolerance, max_iterations)
    return plan.to(logits.dtype)


def _with_gradient(plan: Tensor, cost: Tensor, rows: Tensor, columns: Tensor, reg: float) -> Tensor:
    """The converged plan with its derivative: one more Newton step on both marginals, taken with gradient.

    At a solution the derivative of a Newton step is the implicit one, so nothing of the iterations is kept.
    """
    precise, plan, rows, columns = cost.double(), plan.double(), rows.double(), columns.double()
    # Factor by which the plan changes at fixed potentials; a first order around the value 1 is all that is needed.
    change = 1 + (precise.detach() - precise) / reg  # (n, R, R'), ones
    mass = plan.sum(dim=-1)  # (n, R)
    inverse = torch.where(mass > 0, 1 / mass, 0)
    row_residual = (rows - (plan * change).sum(dim=-1)) * inverse  # (n, R), what the rows lack, relative
    column_residual = columns - (plan * change).sum(dim=-2) - (plan.mT @ row_residual.unsqueeze(-1)).squeeze(-1)
    column_change = column_step(plan, column_residual)  # (n, R')
    row_change = row_residual - inverse * (plan @ column_change.unsqueeze(-1)).squeeze(-1)  # (n, R)
    return (plan * (change + row_change.unsqueeze(-1) + column_change.unsqueeze(-2))).to(cost.dtype)
