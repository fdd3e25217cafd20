from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import SmoothAPLoss
from torch import Tensor
from torch.autograd import gradcheck

from draws import similarities
from lookalike.losses.average_precision import blackbox_ap_loss, smooth_ap_loss, softbin_ap_loss, sup_ap_loss

LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 3, 1])  # class 2 and 3 have one item each
ALL = [smooth_ap_loss, sup_ap_loss, softbin_ap_loss, blackbox_ap_loss]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def step(t: float) -> float:
    return 1.0 if t >= 0 else 0.0


def surrogate_by_loops(similarity: Tensor, labels: Tensor, positive_step, negative_step) -> float:
    s, y = similarity.tolist(), labels.tolist()
    total = 0.0
    for i in range(len(y)):
        positives = [j for j in range(len(y)) if y[j] == y[i]]
        ap = 0.0
        for j in positives:
            above = 1 + sum(positive_step(s[i][p] - s[i][j]) for p in positives if p != j)
            wrong = sum(negative_step(s[i][p] - s[i][j]) for p in range(len(y)) if p not in positives)
            ap += above / (above + wrong)
        total += ap / len(positives)
    return 1 - total / len(y)


def sup_step(t: float, temperature=0.01, rho=100.0, delta=0.05, offset=1.44) -> float:
    if t <= 0:
        return sigmoid(t / temperature)
    return 0.5 + sigmoid(t / temperature) if t <= delta else rho * (t - delta) + offset


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [0.01, 0.2])
def test_smooth_ap_equals_its_definition(scale, temperature):
    similarity = similarities(scale=scale)
    soft_step = lambda t: sigmoid(t / temperature)  # noqa: E731
    expected = surrogate_by_loops(similarity, LABELS, soft_step, soft_step)
    assert smooth_ap_loss(similarity, LABELS, temperature=temperature).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
def test_sup_ap_equals_its_definition(scale):
    similarity = similarities(scale=scale)
    expected = surrogate_by_loops(similarity, LABELS, step, sup_step)
    assert sup_ap_loss(similarity, LABELS).item() == pytest.approx(expected, abs=1e-12)


def test_sup_ap_is_an_upper_bound_of_one_minus_average_precision():
    for seed in range(5):
        similarity = similarities(seed=seed, scale=0.3)
        assert sup_ap_loss(similarity, LABELS).item() >= surrogate_by_loops(similarity, LABELS, step, step)


def test_sup_ap_of_a_negative_far_above_the_positive_by_hand():
    similarity = torch.tensor([[1.0, 0.2, 0.7], [0.2, 1.0, 0.0], [0.7, 0.0, 1.0]], dtype=torch.float64)
    # Row 0: the item itself is 0.3 above the negative, which is 0.5 above the other positive: 100 * 0.45 + 1.44.
    # Row 1: the negative is 0.2 below the other positive. Row 2: a class of one, its negatives 0.3 and 1 below.
    tail = [sigmoid(-30), sigmoid(-100), sigmoid(-20), sigmoid(-30), sigmoid(-100)]
    row_0 = (1 / (1 + tail[0]) + 2 / (2 + 46.44)) / 2
    row_1 = (1 / (1 + tail[1]) + 2 / (2 + tail[2])) / 2
    row_2 = 1 / (1 + tail[3] + tail[4])
    expected = 1 - (row_0 + row_1 + row_2) / 3
    assert sup_ap_loss(similarity, torch.tensor([0, 0, 1])).item() == pytest.approx(expected, abs=1e-12)


def softbin_by_loops(similarity: Tensor, labels: Tensor, bins: int) -> float:
    s, y = similarity.tolist(), labels.tolist()
    width = 2 / (bins - 1)
    centres = [1 - m * width for m in range(bins)]

    def weight(value: float, m: int) -> float:
        if m == 0 and value > centres[0]:
            return 1.0
        if m == bins - 1 and value < centres[-1]:
            return 1.0
        return max(0.0, 1 - abs(value - centres[m]) / width)

    total = 0.0
    for i in range(len(y)):
        positive = [sum(weight(s[i][j], m) for j in range(len(y)) if y[j] == y[i]) for m in range(bins)]
        every = [sum(weight(s[i][j], m) for j in range(len(y))) for m in range(bins)]
        for m in range(bins):
            if sum(every[: m + 1]) > 0:
                total += sum(positive[: m + 1]) / sum(every[: m + 1]) * positive[m] / sum(positive)
    return 1 - total / len(y)


@pytest.mark.parametrize("bins", [2, 5, 20])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_softbin_ap_equals_its_definition(bins, scale):
    similarity = similarities(scale=scale)
    expected = softbin_by_loops(similarity, LABELS, bins)
    assert softbin_ap_loss(similarity, LABELS, bins=bins).item() == pytest.approx(expected, abs=1e-12)


def test_softbin_ap_counts_values_beyond_the_range_in_the_outer_bins():
    similarity = 1.5 * similarities(scale=2.0)
    assert similarity.max() > 1
    assert similarity.min() < -1
    assert softbin_ap_loss(similarity, LABELS).item() == pytest.approx(
        softbin_by_loops(similarity, LABELS, 20), abs=1e-12
    )


def test_losses_by_hand_on_three_items():
    similarity = torch.tensor([[1.0, 0.2, 0.5], [0.2, 1.0, 0.0], [0.5, 0.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1])
    # Row 0 finds itself first and its partner after the negative: (1 + 2/3) / 2. The other rows are perfect.
    expected = 1 - (5 / 6 + 1 + 1) / 3
    assert smooth_ap_loss(similarity, labels, temperature=1e-3).item() == pytest.approx(expected, abs=1e-9)
    by_hand = 1 - ((5 / 3 + 2) / (2 + 1e-5) + 1 / (1 + 1e-5)) / 3
    assert blackbox_ap_loss(similarity, labels, margin=0.0).item() == pytest.approx(by_hand, abs=1e-12)


def test_smooth_ap_agrees_with_the_library_where_that_is_right():
    labels = torch.arange(4).repeat_interleave(4)
    embeddings = torch.randn(16, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    expected = SmoothAPLoss(temperature=0.01)(embeddings, labels).double()  # the library falls back to float32
    torch.testing.assert_close(smooth_ap_loss(unit @ unit.T, labels), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", [smooth_ap_loss, sup_ap_loss])
def test_gradients_of_the_smooth_losses_are_those_of_finite_differences(loss):
    similarity = similarities(scale=0.05).requires_grad_()
    assert gradcheck(lambda s: loss(s, LABELS, temperature=0.05), similarity, atol=1e-6)


def test_the_gradient_of_softbin_ap_is_that_of_finite_differences():
    similarity = (0.9 * similarities()).requires_grad_()  # off the diagonal's kink at 1
    assert gradcheck(lambda s: softbin_ap_loss(s, LABELS, bins=7), similarity, atol=1e-6)


@pytest.mark.parametrize("loss", ALL)
def test_average_precision_does_not_depend_on_the_order_of_the_batch(loss):
    similarity, order = similarities(scale=0.3), torch.randperm(8, generator=torch.Generator().manual_seed(0))
    options = {"margin": 0.0} if loss is blackbox_ap_loss else {}
    shuffled = loss(similarity[order][:, order], LABELS[order], **options)
    torch.testing.assert_close(shuffled, loss(similarity, LABELS, **options), rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ALL)
def test_a_perfect_ranking_costs_next_to_nothing(loss):
    labels = torch.arange(3).repeat_interleave(3)
    similarity = (labels[:, None] == labels).double() * 2 - 1
    assert loss(similarity, labels).item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("labels", [torch.zeros(6).long(), torch.arange(6)], ids=["one class", "one item per class"])
@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_edge_cases_are_finite_and_keep_the_dtype(loss, labels, collapsed, dtype):
    similarity = (torch.ones(6, 6) if collapsed else similarities(6)).to(dtype).requires_grad_()
    value = loss(similarity, labels)
    value.backward()
    assert value.dtype == similarity.grad.dtype == dtype
    assert value.isfinite()
    assert similarity.grad.isfinite().all()
    assert 0 <= value < 1


@pytest.mark.parametrize("loss", ALL)
def test_shapes_that_do_not_belong_together_are_refused(loss):
    with pytest.raises(ValueError, match=r"\(3, 4\).*must be \(n, n\)"):
        loss(torch.ones(3, 4), torch.zeros(3).long())
    with pytest.raises(ValueError, match=r"labels \(2,\)"):
        loss(torch.ones(3, 3), torch.zeros(2).long())


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        (smooth_ap_loss, {"temperature": 0.0}, "temperature=0.0"),
        (sup_ap_loss, {"temperature": -1.0}, "temperature=-1.0"),
        (sup_ap_loss, {"delta": -0.1}, "delta=-0.1"),
        (softbin_ap_loss, {"bins": 1}, "bins=1"),
        (blackbox_ap_loss, {"lam": 0.0}, "lam=0.0"),
        (blackbox_ap_loss, {"margin": -1.0}, "margin=-1.0"),
        (blackbox_ap_loss, {"noise": torch.zeros(2, 2)}, r"noise \(2, 2\)"),
    ],
)
def test_parameters_outside_their_range_are_refused(loss, options, message):
    with pytest.raises(ValueError, match=message):
        loss(torch.eye(3), torch.arange(3), **options)


def rank_by_loops(row: list[float]) -> list[float]:
    """Descending, 1-based, over n; of equal values the lower index first."""
    return [
        sum(other > value or (other == value and q <= p) for q, other in enumerate(row)) / len(row)
        for p, value in enumerate(row)
    ]


def blackbox_by_loops(similarity: Tensor, labels: Tensor, lam: float) -> tuple[float, list[list[float]]]:
    """Loss and its gradient with respect to the (already shifted) similarities."""
    s, y = similarity.tolist(), labels.tolist()
    n, loss, gradient = len(y), 0.0, []
    for i in range(n):
        positives = [j for j in range(n) if y[j] == y[i]]
        rank = rank_by_loops(s[i])
        among = {j: sum(rank[p] <= rank[j] for p in positives) / n for j in positives}
        loss += 1 - sum(among[j] / rank[j] for j in positives) / (len(positives) + 1e-5)
        incoming = [among[j] / rank[j] ** 2 / (len(positives) + 1e-5) / n if j in positives else 0.0 for j in range(n)]
        shifted = rank_by_loops([value + lam * g for value, g in zip(s[i], incoming, strict=True)])
        gradient.append([-(before - after) / lam for before, after in zip(rank, shifted, strict=True)])
    return loss / n, gradient


@pytest.mark.parametrize("lam", [0.5, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_blackbox_ap_and_its_gradient_equal_their_definition(lam, seed):
    similarity = similarities(seed=seed, scale=0.5).requires_grad_()
    loss = blackbox_ap_loss(similarity, LABELS, lam=lam, margin=0.0)
    loss.backward()
    expected, gradient = blackbox_by_loops(similarity.detach(), LABELS, lam)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(similarity.grad, torch.tensor(gradient, dtype=torch.float64), rtol=0, atol=1e-12)
    assert similarity.grad.abs().max() > 0


def test_blackbox_ap_lowers_positives_and_lifts_negatives_by_the_margin():
    similarity, noise = similarities(scale=0.5), similarities(seed=7)
    same = (LABELS[:, None] == LABELS).double()
    shifted = similarity - 0.3 * noise.abs() * (same - 0.5)
    loss = blackbox_ap_loss(similarity, LABELS, margin=0.3, noise=noise)
    assert loss == blackbox_ap_loss(shifted, LABELS, margin=0)
    assert loss > blackbox_ap_loss(similarity, LABELS, margin=0)


def test_blackbox_ap_draws_its_noise_from_the_generator():
    similarity = similarities(scale=0.2)
    draw = lambda seed: blackbox_ap_loss(  # noqa: E731
        similarity, LABELS, margin=0.5, generator=torch.Generator().manual_seed(seed)
    ).item()
    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(5)}) > 1
