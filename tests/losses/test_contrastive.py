from __future__ import annotations

import pytest
import torch

from lookalike.losses.contrastive import ContrastiveLoss, CosineContrastiveLoss


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
