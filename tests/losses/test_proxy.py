from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from lookalike.losses.proxy import ArcFaceLoss, ProxyAnchorLoss, ProxyNCALoss, ProxyNCASoftmaxLoss, SoftmaxLoss


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(5)


def vectors_of(loss) -> torch.Tensor:
    """Unit class vectors ``(classes, D)``, float64."""
    (vectors,) = loss.parameters()
    vectors = vectors.detach().double()
    return F.normalize(vectors if len(vectors) == 6 else vectors.T, dim=1)


def cosines(unit, loss) -> list[list[float]]:
    return [[(row @ vector).item() for vector in vectors_of(loss)] for row in unit]


def cross_entropy(logits: list[float], label: int) -> float:
    return math.log(sum(math.exp(logit) for logit in logits)) - logits[label]


def test_proxy_nca_leaves_the_own_proxy_out_of_the_sum(embeddings, labels, unit, generator):
    loss = ProxyNCALoss(classes=6, embedding_dim=5, generator=generator)
    total = 0.0
    for row, label in zip(cosines(unit, loss), labels.tolist(), strict=True):
        squared = [9 * (2 - 2 * cosine) for cosine in row]  # both at length 3
        total += squared[label] + math.log(sum(math.exp(-d) for c, d in enumerate(squared) if c != label))
    assert loss(embeddings, labels).item() == pytest.approx(total / 8, abs=1e-10)


def test_the_gradient_of_proxy_nca_is_that_of_finite_differences(embeddings, labels, generator):
    loss = ProxyNCALoss(classes=6, embedding_dim=5, generator=generator).double()
    proxies = loss.proxies.detach().clone().requires_grad_()

    def value(vectors, proxies):
        return torch.func.functional_call(loss, {"proxies": proxies}, (vectors, labels))

    assert gradcheck(value, (embeddings.requires_grad_(), proxies), atol=1e-6)


def test_proxy_nca_needs_a_second_class():
    with pytest.raises(ValueError, match="classes=1 must be at least 2"):
        ProxyNCALoss(classes=1, embedding_dim=5)


def test_proxies_of_proxy_nca_start_as_normal_numbers_over_eight(generator):
    start = ProxyNCALoss(classes=500, embedding_dim=50, generator=generator).proxies
    assert start.std().item() == pytest.approx(1 / 8, rel=0.02)


@pytest.mark.parametrize("scale", [9.0, 10.0])
def test_proxy_nca_softmax_is_a_softmax_of_twice_the_scaled_cosine(scale, embeddings, labels, unit, generator):
    loss = ProxyNCASoftmaxLoss(classes=6, embedding_dim=5, scale=scale, generator=generator)
    rows = zip(cosines(unit, loss), labels.tolist(), strict=True)
    total = sum(cross_entropy([2 * scale * cosine for cosine in row], label) for row, label in rows)
    assert loss(embeddings, labels).item() == pytest.approx(total / 8, abs=1e-10)
    assert ProxyNCASoftmaxLoss(classes=6, embedding_dim=5).criterion.softmax_scale == 9


def test_softmax_is_a_cross_entropy_of_cosines_over_the_temperature(embeddings, labels, unit, generator):
    loss = SoftmaxLoss(classes=6, embedding_dim=5, generator=generator)
    rows = zip(cosines(unit, loss), labels.tolist(), strict=True)
    total = sum(cross_entropy([cosine / 0.05 for cosine in row], label) for row, label in rows)
    assert loss(embeddings, labels).item() == pytest.approx(total / 8, abs=1e-10)


@pytest.mark.parametrize("loss_class", [SoftmaxLoss, ArcFaceLoss])
def test_class_vectors_start_uniform_within_one_over_the_root_of_the_dimension(loss_class, generator):
    (start,) = loss_class(classes=400, embedding_dim=25, generator=generator).parameters()
    assert start.abs().max() <= 0.2
    assert start.std().item() == pytest.approx(0.2 / math.sqrt(3), rel=0.03)


def test_arcface_adds_the_margin_to_the_angle_of_the_own_class(embeddings, labels, unit, generator):
    loss = ArcFaceLoss(classes=6, embedding_dim=5, generator=generator)
    total = 0.0
    for row, label in zip(cosines(unit, loss), labels.tolist(), strict=True):
        assert math.acos(row[label]) < math.pi - 0.5
        logits = [16 * math.cos(math.acos(cosine) + 0.5 * (c == label)) for c, cosine in enumerate(row)]
        total += cross_entropy(logits, label)
    assert loss(embeddings, labels).item() == pytest.approx(total / 8, abs=1e-7)


def test_arcface_with_the_margin_on_every_class_is_a_softmax_of_raised_cosines(embeddings, labels, unit, generator):
    loss = ArcFaceLoss(classes=6, embedding_dim=5, margin_on="every_class", generator=generator)
    rows = zip(cosines(unit, loss), labels.tolist(), strict=True)
    total = sum(cross_entropy([16 * max(cosine, 1e-10) for cosine in row], label) for row, label in rows)
    assert loss(embeddings, labels).item() == pytest.approx(total / 8, abs=1e-10)
    with pytest.raises(ValueError, match="margin_on: unknown 'all', did you mean"):
        ArcFaceLoss(classes=6, embedding_dim=5, margin_on="all")


def test_proxy_anchor_equals_its_definition(embeddings, labels, unit, generator):
    loss = ProxyAnchorLoss(classes=6, embedding_dim=5, generator=generator)
    table = cosines(unit, loss)
    pulled, pushed, present = 0.0, 0.0, 0
    for c in range(6):
        own = [table[i][c] for i in range(8) if labels[i] == c]
        other = [table[i][c] for i in range(8) if labels[i] != c]
        pulled += math.log(1 + sum(math.exp(-32 * (s - 0.1)) for s in own))
        pushed += math.log(1 + sum(math.exp(32 * (s + 0.1)) for s in other))
        present += bool(own)
    assert present == 4
    assert loss(embeddings, labels).item() == pytest.approx(pulled / present + pushed / 6, abs=1e-9)
