from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from lookalike.losses.contrastive import ContrastiveLoss, CosineContrastiveLoss, SquaredContrastiveLoss


def test_contrastive_loss_averages_positive_distances_and_negative_hinges_apart(embeddings, labels, unit, triplets):
    distance = lambda i, j: (unit[i] - unit[j]).square().sum().sqrt().item()  # noqa: E731
    rows = list(zip(*[part.tolist() for part in triplets], strict=True))
    near = sum(distance(a, p) for a, p, _ in rows) / len(rows)
    far = sum(max(0.0, 1.0 - distance(a, n)) for a, _, n in rows) / len(rows)
    loss = ContrastiveLoss()(embeddings, labels, triplets)
    assert loss.item() == pytest.approx(near + far, abs=1e-7)
    assert far > 0


def test_cosine_contrastive_loss_averages_over_the_violating_pairs(embeddings, labels, unit):
    too_low, too_high = [], []
    for i in range(8):
        for j in range(8):
            similarity = (unit[i] @ unit[j]).item()
            if i != j and labels[i] == labels[j]:
                too_low += [0.9 - similarity] if similarity < 0.9 else []
            elif labels[i] != labels[j]:
                too_high += [similarity - 0.6] if similarity > 0.6 else []
    expected = sum(too_low) / len(too_low) + sum(too_high) / len(too_high)
    assert CosineContrastiveLoss()(embeddings, labels).item() == pytest.approx(expected, abs=1e-12)


def test_cosine_contrastive_loss_of_classes_apart_is_zero_with_a_gradient():
    embeddings = torch.eye(4)[[0, 0, 1, 1]].requires_grad_()
    loss = CosineContrastiveLoss()(embeddings, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert loss == 0
    assert embeddings.grad.abs().max() == 0


@pytest.mark.parametrize("margin", [0.5, 1.0])
def test_squared_contrastive_loss_pulls_all_positives_and_pushes_negatives_within_the_margin(
    margin, embeddings, labels, unit
):
    positives, negatives = [], []
    for i in range(8):
        for j in range(8):
            distance = (unit[i] - unit[j]).square().sum().sqrt().item()
            if i != j and labels[i] == labels[j]:
                positives.append(distance**2)
            elif labels[i] != labels[j] and distance < margin:
                negatives.append((margin - distance) ** 2)
    assert 0 < len(negatives) < 48
    expected = sum(positives) / len(positives) + sum(negatives) / len(negatives)
    loss = SquaredContrastiveLoss(margin=margin)
    assert loss(embeddings, labels).item() == pytest.approx(expected, abs=1e-12)
    assert gradcheck(lambda e: loss(e, labels), embeddings.requires_grad_(), atol=1e-6)


def test_squared_contrastive_loss_takes_the_pairs_it_is_given(embeddings, labels, unit):
    pairs = torch.tensor([0]), torch.tensor([1]), torch.tensor([2]), torch.tensor([0])
    expected = (unit[0] - unit[1]).square().sum() + (1.9 - (unit[2] - unit[0]).square().sum().sqrt()).clamp_min(0) ** 2
    loss = SquaredContrastiveLoss(margin=1.9)
    assert loss(embeddings, labels, pairs).item() == pytest.approx(expected.item(), abs=1e-12)


def test_squared_contrastive_loss_of_equal_embeddings_is_finite_with_a_gradient():
    embeddings = torch.ones(4, 3, requires_grad=True)
    loss = SquaredContrastiveLoss()(embeddings, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert loss.item() == pytest.approx(0.25)
    assert embeddings.grad.isfinite().all()
