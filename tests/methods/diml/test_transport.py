"""Plans against POT, slow loops and the conditions that define them."""

from __future__ import annotations

import math

import ot
import pytest
import torch

from lookalike.methods.diml import transport
from lookalike.methods.diml.similarity import structural_similarity, transport_plan
from lookalike.methods.diml.transport import exact_plans, newton, released_plans, scale


def problem(count=6, rows=5, columns=4, *, seed=0, zeros=False, peaked=1.0):
    """Costs in [0, 2] and marginals that sum to one."""
    generator = torch.Generator().manual_seed(seed)
    cost = 2 * torch.rand(count, rows, columns, generator=generator, dtype=torch.float64)
    sides = []
    for size in (rows, columns):
        weight = torch.rand(count, size, generator=generator, dtype=torch.float64) ** peaked
        if zeros:
            weight = weight * (torch.rand(count, size, generator=generator) > 0.5)
            weight[:, 0] += 0.1
        sides.append(weight / weight.sum(-1, keepdim=True))
    return cost, *sides


def near_duplicates(count=4, size=8, shift=0.05, seed=0):
    """Locations that match one to one, with marginals that do not: Sinkhorn needs very many iterations."""
    generator = torch.Generator().manual_seed(seed)
    cost = 1 - torch.eye(size, dtype=torch.float64) + 0.05 * torch.rand(count, size, size, generator=generator)
    rows = torch.full((count, size), 1 / size, dtype=torch.float64)
    columns = rows * (1 + shift * torch.randn(count, size, generator=generator, dtype=torch.float64))
    return cost.double(), rows, columns / columns.sum(-1, keepdim=True)


def plan_by_loops(cost, a, b, reg, iterations=3000):
    """Sinkhorn with Python numbers, as in the notes."""
    rows, columns = cost.shape
    K = [[math.exp(-float(cost[i, j]) / reg) for j in range(columns)] for i in range(rows)]
    r, c = [1.0] * rows, [1.0] * columns
    for _ in range(iterations):
        r = [float(a[i]) / sum(K[i][j] * c[j] for j in range(columns)) for i in range(rows)]
        c = [float(b[j]) / sum(K[i][j] * r[i] for i in range(rows)) for j in range(columns)]
    return torch.tensor([[r[i] * K[i][j] * c[j] for j in range(columns)] for i in range(rows)], dtype=torch.float64)


def by_pot(cost, a, b, reg):
    plans = [
        torch.from_numpy(ot.sinkhorn(x, y, z, reg, stopThr=1e-10, numItermax=20_000, warn=False))
        for x, y, z in zip(a.numpy(), b.numpy(), cost.numpy(), strict=True)
    ]
    return torch.stack(plans)


@pytest.mark.parametrize("zeros", [False, True])
def test_plan_agrees_with_loops(zeros):
    cost, a, b = problem(3, zeros=zeros)
    expected = torch.stack([plan_by_loops(*pair, 0.05) for pair in zip(cost, a, b, strict=True)])
    torch.testing.assert_close(transport_plan(cost, a, b), expected, atol=2e-6, rtol=0)
    torch.testing.assert_close(transport_plan(cost, a, b, tolerance=0.0), expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("reg", [0.5, 0.1, 0.05, 0.02, 0.01])
@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (4, 9), (1, 4), (4, 1)])
def test_plan_agrees_with_pot(reg, rows, columns):
    cost, a, b = problem(3, rows, columns, seed=rows)
    plan = transport_plan(cost, a, b, reg=reg)
    torch.testing.assert_close(plan, by_pot(cost, a, b, reg), atol=2e-6, rtol=0)


def test_hard_pairs_agree_with_pot():
    cost, a, b = near_duplicates()
    _, _, left = scale((-cost / 0.05).exp(), a, b, 1e-6, 48)
    assert len(left) == 4  # these do reach Newton's method
    torch.testing.assert_close(transport_plan(cost, a, b), by_pot(cost, a, b, 0.05), atol=2e-6, rtol=0)


@pytest.mark.parametrize("make", [problem, near_duplicates])
@pytest.mark.parametrize("reg", [0.05, 0.01, 0.002])
def test_float32_plans_agree_with_float64(make, reg):
    cost, a, b = make()
    plan = transport_plan(cost.float(), a.float(), b.float(), reg=reg)
    assert plan.dtype == torch.float32
    exact = transport_plan(cost.float().double(), a.float().double(), b.float().double(), reg=reg, tolerance=0.0)
    torch.testing.assert_close(plan.double(), exact, atol=2e-6, rtol=0)


def test_half_precision_is_computed_in_float32():
    cost, a, b = (part.half() for part in problem())
    plan = transport_plan(cost, a, b)
    assert plan.dtype == torch.float16
    exact = transport_plan(cost.double(), a.double() / a.double().sum(-1, keepdim=True), b.double())
    torch.testing.assert_close(plan.double(), exact, atol=2e-3, rtol=0)


@pytest.mark.parametrize("reg", [0.05, 0.004])
@pytest.mark.parametrize("options", [{}, {"zeros": True}, {"peaked": 20.0}])
def test_rows_and_columns_sum_to_the_marginals(reg, options):
    cost, a, b = problem(8, 6, 7, **options)
    plan = transport_plan(cost, a, b, reg=reg)
    assert plan.min() >= 0
    assert (plan.sum(-1) - a).abs().sum(-1).max() <= 1.0001e-6
    assert (plan.sum(-2) - b).abs().sum(-1).max() <= 1.0001e-6
    assert (plan[a == 0] == 0).all()
    assert (plan.mT[b == 0] == 0).all()


def test_plan_is_a_scaled_kernel():
    cost, a, b = problem()
    logarithm = transport_plan(cost, a, b).log() + cost / 0.05
    interaction = logarithm - logarithm[:, :1] - logarithm[:, :, :1] + logarithm[:, :1, :1]
    assert interaction.abs().max() < 1e-9


def test_exchanging_the_sides_transposes_the_plan():
    cost, a, b = problem()
    plan, other = transport_plan(cost, a, b), transport_plan(cost.mT.contiguous(), b, a)
    torch.testing.assert_close(plan, other.mT, atol=2e-6, rtol=0)


@pytest.mark.parametrize("reg", [0.05, 0.01])
def test_a_plan_does_not_depend_on_its_companions(reg):
    easy, hard = problem(9, 8, 8), near_duplicates()
    cost, a, b = (torch.cat(parts) for parts in zip(easy, hard, strict=True))
    together = transport_plan(cost, a, b, reg=reg)
    alone = torch.cat([transport_plan(cost[i : i + 1], a[i : i + 1], b[i : i + 1], reg=reg) for i in range(13)])
    torch.testing.assert_close(together, alone, atol=1e-14, rtol=0)
    order = torch.randperm(13, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        together[order], transport_plan(cost[order], a[order], b[order], reg=reg), atol=1e-14, rtol=0
    )


def test_pairs_of_wide_and_narrow_costs_may_be_mixed():
    cost, a, b = problem(4)
    cost[1] *= 30  # in float32 beyond the reach of a plain kernel
    cost[2] -= 7  # a constant changes nothing
    plan = transport_plan(cost.float(), a.float(), b.float())
    exact = transport_plan(cost, a, b, tolerance=0.0)
    torch.testing.assert_close(plan.double(), exact, atol=1e-5, rtol=0)
    torch.testing.assert_close(exact[2], transport_plan(cost + 7, a, b, tolerance=0.0)[2], atol=1e-12, rtol=0)


def test_any_leading_shape_will_do():
    cost, a, b = problem(6)
    plan = transport_plan(cost, a, b)
    shaped = transport_plan(cost.view(2, 3, 5, 4), a.view(2, 3, 5), b.view(2, 3, 4))
    assert torch.equal(shaped, plan.view(2, 3, 5, 4))
    torch.testing.assert_close(transport_plan(cost[0], a[0], b[0]), plan[0], atol=1e-15, rtol=0)
    assert transport_plan(cost[:0], a[:0], b[:0]).shape == (0, 5, 4)
    assert transport_plan(cost[:0].view(0, 2, 5, 4), a[:0].view(0, 2, 5), b[:0].view(0, 2, 4)).shape == (0, 2, 5, 4)


def test_mass_need_not_be_one():
    cost, a, b = problem()
    torch.testing.assert_close(transport_plan(cost, 8 * a, 8 * b), 8 * transport_plan(cost, a, b), atol=1e-12, rtol=0)


def test_all_zero_marginals_count_as_uniform():
    cost, a, b = problem()
    a[1], b[2] = 0, 0
    plan = transport_plan(cost, a, b)
    assert plan.isfinite().all()
    torch.testing.assert_close(plan[1].sum(-1), torch.full((5,), 0.2, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(plan[2].sum(-2), torch.full((4,), 0.25, dtype=torch.float64), atol=1e-6, rtol=0)


def test_constant_cost_gives_the_product_of_the_marginals():
    _, a, b = problem()
    plan = transport_plan(torch.ones(6, 5, 4, dtype=torch.float64), a, b)
    torch.testing.assert_close(plan, a[:, :, None] * b[:, None, :], atol=1e-12, rtol=0)


def test_less_entropy_comes_closer_to_the_least_cost():
    cost, a, b = problem()
    least = (exact_plans(cost, a, b) * cost).sum((1, 2))
    excess = [(transport_plan(cost, a, b, reg=reg) * cost).sum((1, 2)) - least for reg in (0.5, 0.05, 0.005)]
    assert (excess[0] > excess[1]).all()
    assert (excess[1] > excess[2]).all()
    assert excess[2].min() > -1e-6
    assert excess[2].max() < 0.005 * math.log(20)


def test_exact_plans_are_those_of_pot():
    cost, a, b = problem(zeros=True)
    plans = exact_plans(cost.float(), a.float(), b.float())
    assert plans.dtype == torch.float32
    for plan, x, y, z in zip(plans, a, b, cost, strict=True):
        assert (plan.double() * z).sum().item() == pytest.approx(ot.emd2(x.numpy(), y.numpy(), z.numpy()), abs=1e-6)
        torch.testing.assert_close(plan.sum(-1).double(), x, atol=1e-6, rtol=0)
        torch.testing.assert_close(plan.sum(-2).double(), y, atol=1e-6, rtol=0)
    assert exact_plans(cost[:0], a[:0], b[:0]).shape == (0, 5, 4)


@pytest.mark.parametrize("reg", [0.3, 0.05, 0.02])
def test_gradients_are_those_of_the_converged_plan(reg):
    cost, a, b = problem(2, 3, 4, seed=3)
    weight = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inputs = [part.clone().requires_grad_() for part in (cost, a, b)]

    def value(*parts):
        return (weight * transport_plan(*parts, reg=reg, tolerance=0.0)).sum()

    assert torch.autograd.gradcheck(value, inputs, eps=1e-7, atol=1e-5, rtol=1e-4)


def test_gradients_of_hard_pairs_and_zero_weights_are_finite():
    for cost, a, b in (near_duplicates(), problem(zeros=True)):
        inputs = [part.clone().requires_grad_() for part in (cost, a, b)]
        plan = transport_plan(*inputs)
        torch.testing.assert_close(plan.detach(), transport_plan(cost, a, b), atol=2e-6, rtol=0)
        plan.square().sum().backward()
        assert all(part.grad.isfinite().all() for part in inputs)
        assert all(part.grad.any() for part in inputs)


def test_gradients_agree_with_differentiating_every_iteration():
    cost, a, b = problem(3)
    weight = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inputs = [part.clone().requires_grad_() for part in (cost, a, b)]
    expected = torch.autograd.grad((weight * released_plans(*inputs, threshold=0.0, max_iterations=400)).sum(), inputs)
    found = torch.autograd.grad((weight * transport_plan(*inputs, tolerance=0.0)).sum(), inputs)
    torch.testing.assert_close(found[0], expected[0], atol=1e-8, rtol=0)
    for one, other in zip(found[1:], expected[1:], strict=True):  # equal along marginals of sum one
        torch.testing.assert_close(
            one - one.mean(-1, keepdim=True), other - other.mean(-1, keepdim=True), atol=1e-8, rtol=0
        )


def test_newton_alone_finds_the_plan_from_anywhere():
    cost, a, b = problem(4, zeros=True)
    start = 20 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plan = newton(-cost / 0.05, a, b, start, 1e-9, 100)
    torch.testing.assert_close(plan, transport_plan(cost, a, b, tolerance=0.0), atol=1e-9, rtol=0)


def test_more_iterations_come_closer():
    cost, a, b = problem(20, 8, 8)
    exact = transport_plan(cost, a, b, tolerance=0.0)
    errors = []
    for iterations in (1, 4, 6, 12, 48):
        rows, columns, left = scale((-cost / 0.05).exp(), a, b, 0.0, iterations)
        assert len(left) == 20
        plan = rows[:, :, None] * (-cost / 0.05).exp() * columns[:, None]
        torch.testing.assert_close(plan.sum(-2), b, atol=1e-12, rtol=0)
        errors.append(float((plan - exact).abs().sum((1, 2)).mean()))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3 * errors[0]


def units(generator, *shape):
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@pytest.mark.parametrize("reg", [1e-4, 1e-5, 1e-7])
def test_plans_of_little_entropy_come_as_close_to_the_best_as_theory_allows(reg, caplog):
    generator = torch.Generator().manual_seed(0)
    images = [units(generator, count, *rest, 8) for count in (40, 10) for rest in ((4,), ())]
    exact = structural_similarity(*images, solver="exact")
    off = exact - structural_similarity(*images, reg=reg)
    assert off.min() >= -1e-6  # no plan is better than the best
    assert off.max() <= reg * math.log(16) + 1e-6
    assert not caplog.records


@pytest.mark.parametrize("make", [problem, near_duplicates])
def test_marginals_are_met_with_little_entropy(make, caplog):
    cost, a, b = make()
    for reg in (1e-5, 1e-8):
        plan = transport_plan(cost, a, b, reg=reg)
        assert (plan.sum(-2) - b).abs().sum(-1).max() <= 1e-5
        assert ((plan * cost).sum((1, 2)) - (exact_plans(cost, a, b) * cost).sum((1, 2))).abs().max() <= 1e-4
    assert not caplog.records


def test_plans_that_miss_their_marginals_are_told(caplog):
    cost, a, b = near_duplicates()
    transport_plan(cost, a, b, max_iterations=1)
    (told,) = caplog.records
    assert told.getMessage().startswith("4 of 4 transport plans miss a marginal, by up to ")
    released_plans(cost, a, b, max_iterations=3, threshold=0.0)
    assert len(caplog.records) == 2
    transport_plan(cost, a, b, reg=1e-15)  # of which float64 knows no digit
    assert len(caplog.records) == 3


def test_few_iterations_are_obeyed(monkeypatch):
    cost, a, b = near_duplicates()
    seen = []
    monkeypatch.setattr(transport, "newton", lambda *arguments: seen.append(arguments[-1]) or newton(*arguments))
    plan = transport_plan(cost, a, b, max_iterations=1)
    assert seen == [1]
    assert plan.isfinite().all()
    assert (plan - transport_plan(cost, a, b)).abs().max() > 1e-4


def test_released_plans_stop_by_the_mean_change_of_the_rows():
    cost, a, b = problem(4)
    cost = 0.3 * cost
    K = (-cost / 0.05).exp()
    r, c, iterations = torch.ones_like(a), torch.ones_like(b), 0
    while True:
        iterations += 1
        new = a / torch.einsum("nij,nj->ni", K, c)
        c = b / torch.einsum("nij,ni->nj", K, new)
        change, r = float((new - r).abs().mean()), new
        if change < 0.1:
            break
    assert 2 < iterations < 100
    expected = r[:, :, None] * K * c[:, None]
    torch.testing.assert_close(released_plans(cost, a, b), expected, atol=1e-14, rtol=0)
    capped = released_plans(cost, a, b, max_iterations=1)
    assert not torch.allclose(capped, expected, atol=1e-3)


def test_a_released_plan_depends_on_its_companions():
    cost, a, b = problem(4)
    cost[3] += 1  # its scalings are 5e8 times as large
    alone = released_plans(cost[:1], a[:1], b[:1])
    assert not torch.equal(released_plans(cost, a, b)[:1], alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reg": 0.0}, "reg=0.0"),
        ({"reg": -1.0}, "reg=-1.0"),
        ({"reg": math.nan}, "reg=nan"),
        ({"tolerance": -1e-9}, "tolerance=-1e-09"),
        ({"max_iterations": 0}, "max_iterations=0"),
        ({"cost": torch.zeros(5)}, r"cost has shape \(5,\)"),
        ({"cost": torch.zeros(2, 0, 4), "row_marginal": torch.zeros(2, 0)}, "R, R' >= 1"),
        ({"row_marginal": torch.ones(2, 4)}, "row_marginal"),
        ({"column_marginal": torch.ones(3, 4)}, "column_marginal"),
        ({"row_marginal": torch.ones(5)}, "row_marginal"),
        ({"column_marginal": torch.full((2, 4), 0.5)}, "sums to 1.0.*2.0 in pair 0"),
        ({"row_marginal": torch.tensor([[1.5, -0.5, 0, 0, 0]] * 2)}, "row_marginal holds -0.5"),
        ({"row_marginal": torch.full((2, 5), math.nan)}, "row_marginal holds nan"),
        ({"cost": torch.full((2, 5, 4), math.nan)}, "cost holds NaN"),
        ({"cost": torch.full((2, 5, 4), math.inf)}, "cost holds NaN or infinity"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {
        "cost": torch.zeros(2, 5, 4),
        "row_marginal": torch.full((2, 5), 0.2),
        "column_marginal": torch.full((2, 4), 0.25),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        transport_plan(**arguments)
