from __future__ import annotations

import math

import pytest
import torch
from torch.autograd import gradcheck

from lookalike.losses.identity import PartCrossEntropyLoss

PARTS, SIZE = 3, 4


@pytest.fixture
def vectors() -> torch.Tensor:
    """Embeddings ``(8, 12)`` of three parts."""
    return torch.randn(8, PARTS * SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def loss() -> PartCrossEntropyLoss:
    generator = torch.Generator().manual_seed(1)
    return PartCrossEntropyLoss(classes=6, embedding_dim=PARTS * SIZE, parts=PARTS, generator=generator)


def by_loops(loss, vectors, labels) -> list[float]:
    """Summed cross entropies of each row, one classifier at a time."""
    weight, bias = loss.weight.detach().double(), loss.bias.detach().double()
    sums = []
    for row, label in zip(vectors, labels.tolist(), strict=True):
        total = 0.0
        for part in range(PARTS):
            piece = row[SIZE * part : SIZE * (part + 1)].tolist()
            logits = [
                sum(w * x for w, x in zip(weight[part, c].tolist(), piece, strict=True)) + bias[part, c].item()
                for c in range(6)
            ]
            total += math.log(sum(math.exp(logit) for logit in logits)) - logits[label]
        sums.append(total)
    return sums


def test_it_is_the_sum_of_the_parts_cross_entropies_averaged_over_the_batch(loss, vectors, labels):
    assert loss(vectors, labels).item() == pytest.approx(sum(by_loops(loss, vectors, labels)) / 8, rel=1e-12)


def test_tuples_weigh_the_items_that_they_name(loss, vectors, labels, triplets):
    named = torch.cat(triplets).bincount(minlength=8).double()
    weights = (named / named.max()).tolist()
    expected = sum(w * value for w, value in zip(weights, by_loops(loss, vectors, labels), strict=True)) / 8
    assert loss(vectors, labels, triplets).item() == pytest.approx(expected, rel=1e-6)


def test_a_part_is_seen_by_its_own_classifier_alone(loss, vectors, labels):
    vectors.requires_grad_()
    with torch.no_grad():
        loss.weight[1:] = 0
    loss(vectors, labels).backward()
    assert vectors.grad[:, :SIZE].abs().min() > 0
    assert vectors.grad[:, SIZE:].abs().max() == 0


def test_its_gradient_is_that_of_finite_differences(loss, vectors, labels):
    def value(vectors, weight, bias):
        return torch.func.functional_call(loss, {"weight": weight, "bias": bias}, (vectors, labels))

    start = [parameter.detach().double().requires_grad_() for parameter in (loss.weight, loss.bias)]
    assert gradcheck(value, (vectors.requires_grad_(), *start), atol=1e-6)


def test_classifiers_start_uniform_within_one_over_the_root_of_their_size():
    loss = PartCrossEntropyLoss(classes=300, embedding_dim=50, parts=2, generator=torch.Generator().manual_seed(0))
    assert (loss.weight.shape, loss.bias.shape) == ((2, 300, 25), (2, 300))
    for start in (loss.weight, loss.bias):
        assert start.abs().max() <= 0.2
        assert start.std().item() == pytest.approx(0.2 / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("parts", [0, 5])
def test_parts_that_cannot_share_the_dimensions_are_refused(parts):
    with pytest.raises(ValueError, match=f"embedding_dim=12 must be a multiple of parts={parts}, at least 1"):
        PartCrossEntropyLoss(classes=3, embedding_dim=12, parts=parts)
