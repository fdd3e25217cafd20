from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from pytorch_metric_learning import losses as library
from pytorch_metric_learning.distances import DotProductSimilarity, LpDistance
from torch.autograd import gradcheck

from lookalike.losses.npair import AngularLoss, GeneralisedLiftedLoss, NPairLoss

PAIRS = torch.arange(4).repeat_interleave(2)  # two items per class: the drawn positive is the only one


@pytest.fixture
def paired():
    return torch.randn(8, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def partner(i: int) -> int:
    return i + 1 if i % 2 == 0 else i - 1


def mean_length(embeddings) -> float:
    return sum(row.square().sum().sqrt().item() for row in embeddings) / len(embeddings)


def npair_by_loops(embeddings, cap: float = math.inf) -> float:
    total = 0.0
    for a in range(8):
        p = partner(a)
        others = [n for n in range(8) if n not in (a, p)]
        exponents = [(embeddings[a] @ embeddings[n] - embeddings[a] @ embeddings[p]).item() for n in others]
        total += math.log(1 + sum(math.exp(min(exponent, cap)) for exponent in exponents))
    return total / 8


def angular_by_loops(unit) -> float:
    total = 0.0
    for a in range(8):
        p = partner(a)
        others = [n for n in range(8) if n not in (a, p)]
        # tan(45 degrees) is 1
        exponents = [4 * ((unit[a] + unit[p]) @ unit[n]).item() - 4 * (unit[a] @ unit[p]).item() for n in others]
        total += math.log(1 + sum(math.exp(exponent) for exponent in exponents))
    return total / 8


def test_npair_loss_equals_its_definition(paired):
    expected = npair_by_loops(paired) + 0.005 * mean_length(paired)
    assert NPairLoss()(paired, PAIRS).item() == pytest.approx(expected, abs=1e-12)


def test_npair_loss_equals_the_librarys_ntxent_with_the_same_pairs(embeddings, labels):
    loss = NPairLoss(length_weight=0.0, generator=torch.Generator().manual_seed(0))
    pairs = loss.miner(embeddings, labels)
    reference = library.NTXentLoss(temperature=1, distance=DotProductSimilarity(normalize_embeddings=False))
    torch.testing.assert_close(
        loss(embeddings, labels, pairs), reference(embeddings, labels, pairs), rtol=0, atol=1e-10
    )


def test_npair_loss_keeps_its_gradient_where_exponents_are_large(paired):
    embeddings = (30 * paired.float()).requires_grad_()
    loss = NPairLoss(length_weight=0.0)(embeddings, PAIRS)
    loss.backward()
    assert loss > 88
    assert embeddings.grad.abs().amax(dim=1).min() > 1


def test_angular_loss_equals_its_definition(paired):
    unit = F.normalize(paired, dim=1)
    expected = npair_by_loops(paired) + 2 * angular_by_loops(unit) + 0.005 * mean_length(paired)
    assert AngularLoss()(paired, PAIRS).item() == pytest.approx(expected, abs=1e-12)


def test_angular_loss_bounds_the_exponents_of_its_npair_part_at_50(paired):
    embeddings = 7 * paired
    assert npair_by_loops(embeddings, cap=50) < npair_by_loops(embeddings) - 1
    loss = AngularLoss(angular_weight=0.0, length_weight=0.0)(embeddings, PAIRS)
    assert loss.item() == pytest.approx(npair_by_loops(embeddings, cap=50), abs=1e-10)


def test_the_angular_part_equals_the_library_on_normalised_input(paired):
    unit = F.normalize(paired, dim=1)
    both = AngularLoss(angular_weight=1.0)(unit, PAIRS) - AngularLoss(angular_weight=0.0)(unit, PAIRS)
    torch.testing.assert_close(both, library.AngularLoss(alpha=45)(unit, PAIRS), rtol=0, atol=1e-10)


def test_lifted_loss_equals_its_definition(embeddings, labels):
    total, anchors = 0.0, 0
    for a in range(8):
        distances = [(embeddings[a] - embeddings[j]).square().sum().sqrt().item() for j in range(8)]
        positives = [distances[j] for j in range(8) if j != a and labels[j] == labels[a]]
        if positives:
            negatives = [distances[j] for j in range(8) if labels[j] != labels[a]]
            near = math.log(sum(math.exp(d) for d in positives))
            far = math.log(sum(math.exp(1 - d) for d in negatives))
            total, anchors = total + max(0.0, near + far), anchors + 1
    assert anchors == 7
    expected = total / anchors + 0.005 * mean_length(embeddings)
    assert GeneralisedLiftedLoss()(embeddings, labels).item() == pytest.approx(expected, abs=1e-10)


def test_lifted_loss_equals_the_library_where_every_item_has_a_positive(paired):
    reference = library.GeneralizedLiftedStructureLoss(
        neg_margin=1, pos_margin=0, distance=LpDistance(normalize_embeddings=False)
    )
    loss = GeneralisedLiftedLoss(length_weight=0.0)(paired, PAIRS)
    torch.testing.assert_close(loss, reference(paired, PAIRS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", [NPairLoss(), AngularLoss(degrees=30), GeneralisedLiftedLoss()])
def test_gradients_are_those_of_finite_differences(loss, paired):
    assert gradcheck(lambda e: loss(e, PAIRS), paired.requires_grad_(), atol=1e-6)


@pytest.mark.parametrize("degrees", [0, 90, -5])
def test_an_angle_outside_its_range_is_refused(degrees):
    with pytest.raises(ValueError, match=r"outside \(0, 90\)"):
        AngularLoss(degrees=degrees)
