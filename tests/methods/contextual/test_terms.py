from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ContrastiveLoss
from torch import Tensor

from draws import unit
from lookalike.methods.contextual.similarity import contextual_similarity
from lookalike.methods.contextual.terms import (
    contextual_loss,
    contrastive_loss,
    similarity_regulariser,
)


def clusters(classes: int, k: int, spread: float, seed: int) -> tuple[Tensor, Tensor]:
    """``k`` samples around each of orthogonal class means."""
    labels = torch.arange(classes).repeat_interleave(k)
    noise = torch.randn(classes * k, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    embeddings = F.normalize(F.one_hot(labels, classes) + spread * noise, dim=1)
    return embeddings @ embeddings.T, labels


def perfectly_ranked(similarity: Tensor, labels: Tensor) -> bool:
    for row, label in zip(similarity, labels, strict=True):
        if row[labels == label].min() <= row[labels != label].max():
            return False
    return True


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_a_perfectly_ranked_batch_has_no_loss_and_no_gradient(k):
    similarity, labels = clusters(4, k, 0.05, seed=k)
    assert perfectly_ranked(similarity, labels)
    leaf = similarity.clone().requires_grad_()
    loss = contextual_loss(leaf, labels, k, 0.0)
    loss.backward()
    assert loss.item() == 0
    assert leaf.grad.abs().max() == 0


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_any_wrong_rank_costs_something(k):
    wrong = 0
    for seed in range(60):
        similarity, labels = clusters(4, k, 0.22, seed)
        loss = contextual_loss(similarity, labels, k, 0.0).item()
        assert (loss == 0) == perfectly_ranked(similarity, labels)
        wrong += loss > 0
    assert 0 < wrong < 60


def test_the_diagonal_costs_nothing():
    similarity = unit(10, 3, 0) @ unit(10, 3, 0).T
    same = torch.eye(10, dtype=torch.bool)
    apart = torch.arange(10)
    contextual = contextual_similarity(similarity, 4, 0.05)
    assert (contextual.diagonal() - 1).abs().max() > 1e-3
    expected = contextual[~same].square().sum() / 100
    torch.testing.assert_close(contextual_loss(similarity, apart, 4, 0.05), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("variant", ["full", "min", "l2"])
def test_the_corrected_gradient_keeps_only_the_helpful_signs(variant):
    labels = torch.arange(5).repeat(3)
    values, gradients = [], []
    for correct in (False, True):
        embeddings = unit(15, 4, 1)
        leaf = (embeddings @ embeddings.T).requires_grad_()
        values.append(contextual_loss(leaf, labels, 3, 0.05, variant=variant, correct_gradient=correct))
        gradients.append(torch.autograd.grad(values[-1], leaf)[0])
    assert values[0].item() == values[1].item()
    changed = 0
    for i in range(15):
        for j in range(15):
            plain, corrected = gradients[0][i, j].item(), gradients[1][i, j].item()
            helpful = plain <= 0 if labels[i] == labels[j] else plain >= 0
            assert corrected == (plain if helpful else 0)
            changed += not helpful
    assert changed > 0


def test_the_corrected_gradient_is_cut_before_it_reaches_the_embeddings():
    labels = torch.arange(5).repeat(3)
    leaf = unit(15, 4, 2).requires_grad_()
    contextual_loss(leaf @ leaf.T, labels, 3, 0.05, correct_gradient=True).backward()
    similarity = (leaf @ leaf.T).detach().requires_grad_()
    contextual_loss(similarity, labels, 3, 0.05).backward()
    same = labels[:, None] == labels
    cut = torch.where(same, similarity.grad.clamp(max=0), similarity.grad.clamp(min=0))
    torch.testing.assert_close(leaf.grad, (cut + cut.T) @ leaf.detach(), rtol=1e-12, atol=1e-15)


def contrastive_by_loops(s: Tensor, labels: Tensor, positive_margin: float, negative_margin: float) -> Tensor:
    sides = {True: [], False: []}
    for i in range(len(s)):
        for j in range(len(s)):
            same = bool(labels[i] == labels[j])
            violation = positive_margin - s[i, j] if same else s[i, j] - negative_margin
            if violation > 0:
                sides[same].append(violation)
    return sum((torch.stack(side).mean() for side in sides.values() if side), start=0 * s.sum())


@pytest.mark.parametrize(("positive_margin", "negative_margin"), [(0.75, 0.6), (0.2, -0.1), (0.9, 0.99), (-0.99, 0.3)])
def test_contrastive_loss_agrees_with_loops_in_value_and_gradient(positive_margin, negative_margin):
    embeddings, labels = unit(10, 3, 3), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    results = []
    for function in (contrastive_by_loops, contrastive_loss):
        leaf = (embeddings @ embeddings.T).requires_grad_()
        loss = function(leaf, labels, positive_margin, negative_margin)
        results.append((loss, torch.autograd.grad(loss, leaf)[0]))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-14)


def test_contrastive_loss_agrees_with_pytorch_metric_learning():
    embeddings, labels = unit(24, 8, 4), torch.arange(6).repeat(4)
    reference = ContrastiveLoss(pos_margin=0.75, neg_margin=0.1, distance=CosineSimilarity())
    gradients, values = [], []
    for loss in (
        reference,
        lambda f, y: contrastive_loss(F.normalize(f, dim=1) @ F.normalize(f, dim=1).T, y, 0.75, 0.1),
    ):
        leaf = embeddings.clone().requires_grad_()
        values.append(loss(leaf, labels))
        gradients.append(torch.autograd.grad(values[-1], leaf)[0])
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-12)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-12)


def test_contrastive_loss_without_a_violation_is_zero_on_the_graph():
    leaf = torch.eye(4, dtype=torch.float64).requires_grad_()
    loss = contrastive_loss(leaf, torch.arange(4), 0.75, 0.6)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(leaf.grad, torch.zeros(4, 4, dtype=torch.float64))


def test_the_regulariser_counts_the_diagonal():
    n, target = 8, 0.3
    value = similarity_regulariser(torch.eye(n, dtype=torch.float64), target)
    assert value.item() == pytest.approx((target - 1 / n) ** 2, abs=1e-15)
    mean = sum(0.1 * i * j for i in range(5) for j in range(5)) / 25
    grid = 0.1 * torch.outer(torch.arange(5.0), torch.arange(5.0))
    assert similarity_regulariser(grid, target).item() == pytest.approx((target - mean) ** 2, rel=1e-5)


def test_losses_reject_shapes_that_do_not_belong_together():
    square, oblong = torch.eye(5), torch.zeros(5, 4)
    for labels in (torch.arange(4), torch.arange(5)[:, None]):
        with pytest.raises(ValueError, match="labels have shape"):
            contextual_loss(square, labels, 2, 0.05)
        with pytest.raises(ValueError, match="labels have shape"):
            contrastive_loss(square, labels, 0.75, 0.6)
    for function in (
        lambda: contextual_loss(oblong, torch.arange(5), 2, 0.05),
        lambda: contrastive_loss(oblong, torch.arange(5), 0.75, 0.6),
        lambda: similarity_regulariser(oblong, 0.3),
    ):
        with pytest.raises(ValueError, match=r"\(5, 4\)"):
            function()
