"""Transport plans between the locations of two images: by Sinkhorn's iterations, Newton's method, or exactly.

Symbols of the paper: ``T`` the plan, ``C`` the cost, ``mu^s, mu^t`` the marginals, ``lambda`` the weight ``reg`` of
the entropy. The plan minimises ``sum T C - reg * entropy(T)`` among those with the given marginals.

Sinkhorn's iterations scale rows and columns of a kernel in turn. Where they are slow, Newton's method takes over: a
plan is ``P = diag(a) softmax(v - cost / reg)`` with the row marginal ``a`` and one number ``v`` per column, such that
the columns of P sum to ``b``. That is where a concave function of ``v``, the semi-dual, has its maximum; its second
derivative is ``-H``, ``H = diag(d) - P' diag(1 / a) P`` with the columns' sums ``d`` of P. Where P falls apart, as with
very little entropy, it starts from the solution at twice the entropy, and that one likewise.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3, Eq. 4 to 6; Cuturi
2013. Cuturi and Peyré, "A Smoothed Dual Approach for Variational Wasserstein Problems", 2016, for the semi-dual; Bach,
"Self-concordant analysis for logistic regression", 2010, for steps that need no search.
"""

from __future__ import annotations

import logging
import math

import torch
from torch import Tensor

RIDGE = 1e-12
"""Added to the scaled H, whose eigenvalues lie in [0, 1], so that float64 can factor it where P falls apart."""
CYCLE = 6
"""Iterations between two looks at the error; a look costs as much as three."""
SLOWEST = 0.95
"""Largest rate of convergence that is believed."""
FARTHEST = 8.0
"""Largest extrapolation of a logarithm, so that scalings stay within reach."""
SINKHORN_ITERATIONS = 48
"""Pairs that need more are finished by Newton's method."""
NARROW = 64.0
"""Range of the exponents at which Newton's method starts where it missed a plan, and then doubles it."""
ROUGH = 1e-5
"""Largest error of a marginal that passes as rounding of large exponents."""
MASS_TOLERANCE = 1e-3
"""Relative; marginals that were rounded or rounded off differ by less."""
LOG = logging.getLogger(__name__)


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
        max_iterations: largest number for each method, entropy and pair. Plans that miss the tolerance then are as good
            as they got, and a warning tells their number and largest error.

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
    wide = spread > widest_spread(logits.dtype)  # (n,), pairs whose scalings would leave the dtype's range
    finite, some_wide = torch.stack([spread.isfinite().all(), wide.any()]).tolist()  # one look at the device
    if not finite:
        raise ValueError("cost holds NaN or infinity, its values must be finite")
    logits = logits - highest  # a constant in the exponent changes no plan, and no kernel exceeds 1
    if not some_wide:
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
    problem = logits.double(), rows.double(), columns.double()
    plan = newton(*problem, start.double(), tolerance, max_iterations)
    limit = _finest(problem[0]).clamp(min=tolerance, max=max(tolerance, ROUGH))  # (n,)
    errors = _errors(plan, columns)
    missed = (~(errors <= limit)).nonzero().squeeze(1)  # NaN is missed, too
    if len(missed):
        hard, hard_rows, hard_columns = (part[missed] for part in problem)
        potentials = _by_halving_entropy(hard, hard_rows, hard_columns, tolerance, max_iterations)
        again = _plan(hard, hard_rows, potentials)
        better = ~(_errors(again, hard_columns) >= errors[missed])
        plan[missed[better]] = again[better]
        errors = _errors(plan, columns)
        _tell_of_missed(errors, int((~(errors <= limit)).sum()))
    return plan.to(logits.dtype)


def _by_halving_entropy(logits: Tensor, rows: Tensor, columns: Tensor, tolerance: float, max_iterations: int) -> Tensor:
    """Potentials ``(n, R')`` from those at twice the entropy, beginning where exponents are `NARROW`.

    Source: Schmitzer, "Stabilized Sparse Scaling Algorithms for Entropy Regularized Transport Problems", 2019, 3.2.
    """
    potentials = torch.zeros_like(columns)
    spread = -logits.amin(dim=(-2, -1))  # (n,); the highest exponent is 0
    halvings = (spread / NARROW).clamp(min=1).log2().ceil()  # (n,), of each pair by itself
    for more in range(int(halvings.max()), -1, -1):
        at = (halvings >= more).nonzero().squeeze(1)
        problem = logits[at] * 0.5**more, rows[at], columns[at]
        potentials[at] = _potentials(*problem, 2 * potentials[at], tolerance, max_iterations)
    return potentials


def _errors(plan: Tensor, columns: Tensor) -> Tensor:
    """Sum of absolute errors of the columns ``(n,)``."""
    return (plan.sum(dim=-2) - columns).abs().sum(dim=-1)


def _tell_of_missed(errors: Tensor, missed: int) -> None:
    if missed:
        LOG.warning(
            "%d of %d transport plans miss a marginal, by up to %.2g in sum; a larger reg or more iterations reach it",
            missed,
            len(errors),
            errors.max().item(),
        )


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
        max_iterations: largest number of iterations; a warning tells where they do not suffice.

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
    plan = row_scale.unsqueeze(-1) * kernel * column_scale.unsqueeze(-2)
    if len(cost) and not bool((row_scale - before).abs().mean() < threshold):
        _tell_of_missed((plan.sum(dim=-1) - rows).abs().sum(dim=-1), len(cost))
    return plan


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
    return _plan(logits, rows, _potentials(logits, rows, columns, potentials, tolerance, iterations))


def _finest(logits: Tensor) -> Tensor:
    """Error ``(n,)`` below which no plan comes: exponents are no finer than their own rounding."""
    return 8 * torch.finfo(logits.dtype).eps * (1 + logits.abs().amax(dim=(-2, -1)))


def _potentials(
    logits: Tensor, rows: Tensor, columns: Tensor, potentials: Tensor, tolerance: float, iterations: int
) -> Tensor:
    """``v`` of `newton`'s plans, ``(n, R')``."""
    solution = potentials.clone()
    active = torch.arange(len(logits), device=logits.device)  # (m,), pairs still on their way; all of them at first
    limit = _finest(logits).clamp(min=tolerance)
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
    return solution


def _plan(logits: Tensor, rows: Tensor, potentials: Tensor) -> Tensor:
    return rows.unsqueeze(-1) * (logits + potentials.unsqueeze(-2)).softmax(dim=-1)


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
        unsettled = (~(error <= tolerance)).nonzero().squeeze(1)  # positions in ``active``; also of NaN
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
