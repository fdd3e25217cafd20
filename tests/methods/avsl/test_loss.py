"""Losses on a distance matrix against loops."""

import math

import pytest
import torch

from lookalike.methods.avsl.loss import margin_loss, proxy_anchor_loss


def looped_proxy_anchor(distance, labels, proxy_labels, scale, inner, outer):
    pulls, pushes = [], []
    for j, proxy_label in enumerate(proxy_labels):
        positives = [distance[i][j] for i, label in enumerate(labels) if label == proxy_label]
        negatives = [distance[i][j] for i, label in enumerate(labels) if label != proxy_label]
        if positives:
            pulls.append(math.log(1 + sum(math.exp(scale * (d - inner)) for d in positives)))
        pushes.append(math.log(1 + sum(math.exp(-scale * (d - outer)) for d in negatives)))
    return (sum(pulls) / len(pulls) if pulls else 0.0) + sum(pushes) / len(pushes)


def looped_margin(distance, triplets, labels, boundary, margin, average):
    pulls = [max(distance[a][p] - boundary[labels[a]] + margin, 0) for a, p, _ in triplets]
    pushes = [max(boundary[labels[a]] + margin - distance[a][n], 0) for a, _, n in triplets]
    if average == "separate":
        return sum(pulls) / len(pulls) + sum(pushes) / len(pushes)
    active = [value for value in pulls + pushes if value > 0]
    return sum(active) / len(active) if active else 0.0


@pytest.fixture
def distance():
    return 4 * torch.rand(6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


LABELS = torch.tensor([0, 0, 1, 1, 2, 0])
TRIPLETS = torch.tensor([[0, 1, 2], [1, 5, 4], [2, 3, 0], [3, 2, 5], [5, 0, 3]])


@pytest.mark.parametrize("proxy_labels", [[0, 1, 2, 3, 4, 5], [2, 1, 0, 7, 7, 7], [5, 6, 7, 8, 9, 10]])
@pytest.mark.parametrize("settings", [(16.0, 1.8, 2.2), (4.0, 1.0, 2.4)])
def test_proxy_anchor_equals_the_loops(distance, proxy_labels, settings):
    scale, inner, outer = settings
    found = proxy_anchor_loss(
        distance, LABELS, torch.tensor(proxy_labels), scale=scale, positive_margin=inner, negative_margin=outer
    )
    expected = looped_proxy_anchor(distance.tolist(), LABELS.tolist(), proxy_labels, *settings)
    assert float(found) == pytest.approx(expected, abs=1e-9)


def test_proxy_anchor_of_a_single_class_has_no_negatives(distance):
    found = proxy_anchor_loss(distance[:, :1], torch.zeros(6, dtype=torch.int64), torch.tensor([0]))
    expected = math.log(1 + sum(math.exp(16 * (d - 1.8)) for d in distance[:, 0].tolist()))
    assert float(found) == pytest.approx(expected, abs=1e-9)


def test_proxy_anchor_neither_overflows_nor_gives_nan():
    distance = torch.tensor([[0.0, 4.0], [4.0, 0.0]]).requires_grad_()
    loss = proxy_anchor_loss(distance, torch.tensor([1, 0]), torch.tensor([0, 1]), scale=1000.0)
    loss.backward()
    assert loss.item() == pytest.approx(1000 * (4 - 1.8) + 1000 * 2.2, rel=1e-6)
    assert distance.grad.isfinite().all()


def test_proxy_anchor_gradient_equals_finite_differences(distance):
    assert torch.autograd.gradcheck(
        lambda d: proxy_anchor_loss(d, LABELS, torch.tensor([0, 1, 2, 3, 9, 0])), distance.requires_grad_()
    )


def test_proxy_anchor_ignores_the_order_of_the_batch(distance):
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    proxies = torch.arange(6)
    found = proxy_anchor_loss(distance[order], LABELS[order], proxies)
    assert float(found) == pytest.approx(float(proxy_anchor_loss(distance, LABELS, proxies)), abs=1e-12)


@pytest.mark.parametrize("average", ["pooled", "separate"])
def test_margin_loss_equals_the_loops(distance, average):
    boundary = torch.tensor([1.2, 0.9, 1.5], dtype=torch.float64)
    found = margin_loss(distance, TRIPLETS, LABELS, boundary, average=average)
    expected = looped_margin(distance.tolist(), TRIPLETS.tolist(), LABELS.tolist(), boundary.tolist(), 0.2, average)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_margin_loss_without_active_hinges_is_zero_with_zero_gradient():
    distance = torch.tensor([[0.0, 0.1, 4.0], [0.1, 0.0, 4.0], [4.0, 4.0, 0.0]], requires_grad=True)
    boundary = torch.full((2,), 1.2, requires_grad=True)
    loss = margin_loss(distance, torch.tensor([[0, 1, 2]]), torch.tensor([0, 0, 1]), boundary)
    loss.backward()
    assert loss.item() == 0
    assert not distance.grad.any()
    assert not boundary.grad.any()


@pytest.mark.parametrize("average", ["pooled", "separate"])
def test_margin_loss_without_triplets_is_zero(distance, average):
    empty = torch.empty(0, 3, dtype=torch.int64)
    assert float(margin_loss(distance, empty, LABELS, torch.ones(3), average=average)) == 0


def test_margin_loss_gradient_equals_finite_differences(distance):
    boundary = torch.tensor([1.2, 0.9, 1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda d, b: margin_loss(d, TRIPLETS, LABELS, b), (distance.requires_grad_(), boundary)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: proxy_anchor_loss(d, LABELS[:5], torch.arange(6)), "labels"),
        (lambda d: proxy_anchor_loss(d, LABELS, torch.arange(5)), "proxy_labels"),
        (lambda d: proxy_anchor_loss(d[:, :0], LABELS, torch.arange(0)), "P >= 1"),
        (lambda d: margin_loss(d[:5], TRIPLETS, LABELS, torch.ones(3)), "distance"),
        (lambda d: margin_loss(d, TRIPLETS[:, :2], LABELS, torch.ones(3)), "triplets has shape"),
        (lambda d: margin_loss(d, TRIPLETS + 1, LABELS, torch.ones(3)), "triplets holds 1 to 6"),
        (lambda d: margin_loss(d, TRIPLETS - 1, LABELS, torch.ones(3)), "triplets holds -1 to 4"),
        (lambda d: margin_loss(d, TRIPLETS, LABELS, torch.ones(2)), "labels holds 0 to 2"),
        (lambda d: margin_loss(d, TRIPLETS, LABELS, torch.ones(3, 1)), "boundary"),
        (lambda d: margin_loss(d, TRIPLETS, LABELS, torch.ones(3), average="mean"), "average: unknown 'mean'"),
    ],
)
def test_wrong_arguments_of_the_losses_are_refused(distance, call, message):
    with pytest.raises(ValueError, match=message):
        call(distance)
