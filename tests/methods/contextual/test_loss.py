from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ContrastiveLoss, ProxyAnchorLoss
from torch import Tensor

from draws import unit
from lookalike.methods.contextual.loss import (
    ContextualLoss,
    Regularised,
    contextual_loss,
    contrastive_loss,
    similarity_regulariser,
)
from lookalike.methods.contextual.products import cosine_similarity
from lookalike.methods.contextual.similarity import contextual_similarity

SETTINGS = {
    "k": 4,
    "eps": 0.05,
    "lam": 0.4,
    "gamma": 0.1,
    "target_similarity": 0.25,
    "positive_margin": 0.75,
    "negative_margin": 0.6,
}


def test_cosine_similarity_has_the_gradient_of_the_product():
    embeddings = (unit(6, 3, 5) * 2).requires_grad_()
    assert torch.autograd.gradcheck(cosine_similarity, (embeddings,), atol=1e-8)


def test_the_module_is_the_weighted_sum_of_its_parts_on_unit_embeddings(device):
    labels = torch.arange(6).repeat(4).to(device)
    embeddings = unit(24, 8, 6).to(device)
    similarity = embeddings @ embeddings.T
    expected = (
        0.4 * contextual_loss(similarity, labels, 4, 0.05)
        + 0.6 * contrastive_loss(similarity, labels, 0.75, 0.6)
        + 0.1 * similarity_regulariser(similarity, 0.25)
    )
    lengths = torch.linspace(0.5, 30, 24, dtype=torch.float64, device=device)[:, None]
    actual = ContextualLoss(**SETTINGS)(lengths * embeddings, labels)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_the_module_takes_the_contrastive_weight_of_the_released_code():
    labels = torch.arange(6).repeat(4)
    embeddings = unit(24, 8, 7)
    paper = ContextualLoss(**SETTINGS)(embeddings, labels)
    released = ContextualLoss(**SETTINGS, contrastive_weight=1 - 0.4 - 0.1)(embeddings, labels)
    contrastive = contrastive_loss(embeddings @ embeddings.T, labels, 0.75, 0.6)
    torch.testing.assert_close(paper - released, 0.1 * contrastive, rtol=0, atol=1e-12)


def test_the_module_passes_variant_and_correction_on():
    labels = torch.arange(6).repeat(4)
    similarity = unit(24, 8, 8) @ unit(24, 8, 8).T
    only_contextual = SETTINGS | {"lam": 1.0, "gamma": 0.0}
    leaf = unit(24, 8, 8).requires_grad_()
    actual = ContextualLoss(**only_contextual, variant="l2", correct_gradient=True)(leaf, labels)
    expected = contextual_loss(similarity, labels, 4, 0.05, variant="l2")
    torch.testing.assert_close(actual.detach(), expected, rtol=0, atol=1e-12)
    plain = ContextualLoss(**only_contextual, variant="l2")(leaf, labels)
    difference = torch.autograd.grad(actual, leaf)[0] - torch.autograd.grad(plain, leaf)[0]
    assert difference.abs().max() > 1e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_module_computes_16_bit_embeddings_in_float32(dtype):
    labels = torch.arange(6).repeat(4)
    leaf = unit(24, 8, 9).to(dtype).requires_grad_()
    loss = ContextualLoss(**SETTINGS)(leaf, labels)
    loss.backward()
    assert loss.dtype == torch.float32
    assert leaf.grad.dtype == dtype
    expected = ContextualLoss(**SETTINGS)(leaf.detach().float(), labels)
    assert loss.item() == expected.item()


def test_the_module_leaves_autocast():
    labels = torch.arange(6).repeat(4)
    embeddings = unit(24, 8, 10).float()
    expected = ContextualLoss(**SETTINGS)(embeddings, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = ContextualLoss(**SETTINGS)(embeddings, labels)
    assert actual.item() == expected.item()


@pytest.mark.parametrize("labels", [torch.zeros(8, dtype=torch.int64), torch.arange(8)])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_one_class_one_sample_per_class_and_collapse_give_finite_gradients(labels, spread, device):
    leaf = (torch.ones(8, 4) + spread * unit(8, 4, 11).float()).to(device).requires_grad_()
    ContextualLoss(**SETTINGS | {"gamma": 0.1})(leaf, labels.to(device)).backward()
    assert leaf.grad.isfinite().all()


def test_a_batch_of_two_gives_finite_gradients():
    leaf = unit(2, 4, 12).requires_grad_()
    ContextualLoss(**SETTINGS | {"k": 2})(leaf, torch.tensor([0, 1])).backward()
    assert leaf.grad.isfinite().all()


def test_a_second_backward_pass_gives_the_same_gradient():
    leaf = unit(24, 8, 15).requires_grad_()
    loss = ContextualLoss(**SETTINGS)(leaf, torch.arange(6).repeat(4))
    (first,) = torch.autograd.grad(loss, leaf, retain_graph=True)
    (second,) = torch.autograd.grad(loss, leaf)
    assert torch.equal(first, second)


def test_a_single_sample_gives_a_finite_gradient():
    leaf = unit(1, 4, 16).requires_grad_()
    ContextualLoss(**SETTINGS | {"k": 1})(leaf, torch.tensor([3])).backward()
    assert leaf.grad.isfinite().all()


def test_nan_embeddings_are_not_hidden():
    embeddings = unit(8, 4, 13)
    embeddings[3, 1] = torch.nan
    assert ContextualLoss(**SETTINGS | {"lam": 1.0, "gamma": 0.0})(embeddings, torch.arange(8) // 2).isnan()


def test_the_module_lowers_the_loss_of_free_embeddings():
    labels = torch.arange(8).repeat(4)
    embeddings = unit(32, 8, 14).requires_grad_()
    loss = ContextualLoss(**SETTINGS)
    start = loss(embeddings, labels).item()
    for _ in range(60):
        (gradient,) = torch.autograd.grad(loss(embeddings, labels), embeddings)
        embeddings = (embeddings - 0.02 * gradient / gradient.abs().mean()).detach().requires_grad_()
    assert loss(embeddings, labels).item() < start / 2


@pytest.mark.parametrize(
    "change",
    [{"k": 0}, {"eps": -0.1}, {"lam": 1.5}, {"lam": -0.1}, {"gamma": -1.0}, {"variant": "median"}],
)
def test_the_module_rejects_settings_outside_their_range(change):
    name = next(iter(change))
    with pytest.raises(ValueError, match=f"^{name}[=:]"):
        ContextualLoss(**SETTINGS | change)


def test_the_module_rejects_a_batch_smaller_than_k():
    with pytest.raises(ValueError, match=r"k=4 is outside \[1, 3\]"):
        ContextualLoss(**SETTINGS)(unit(3, 4, 0), torch.arange(3))


def test_the_module_rejects_embeddings_that_are_no_matrix():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\)"):
        ContextualLoss(**SETTINGS)(torch.zeros(2, 3, 4), torch.arange(2))


def test_the_module_is_called_like_those_of_the_library_and_refuses_tuples():
    embeddings, labels = unit(8, 4, 15), torch.arange(2).repeat(4)
    loss = ContextualLoss(**SETTINGS)
    assert torch.equal(loss(embeddings, labels, None), loss(embeddings, labels))
    index = torch.tensor([0])
    with pytest.raises(ValueError, match="indices_tuple must be None: this loss takes all pairs of the batch"):
        loss(embeddings, labels, (index, index, index))


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


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 3 * torch.randn(12, 5, generator=generator, dtype=torch.float64), torch.arange(4).repeat(3)


@pytest.mark.parametrize(("combine", "loss_weight"), [("convex", 0.9), ("add", 1.0)])
def test_the_regulariser_is_weighed_against_or_added_to_the_loss(combine, loss_weight):
    embeddings, labels = batch()
    mean = (F.normalize(embeddings, dim=1) @ F.normalize(embeddings, dim=1).T).mean()
    expected = loss_weight * ContrastiveLoss()(embeddings, labels) + 0.1 * (0.3 - mean) ** 2
    actual = Regularised(ContrastiveLoss(), 0.1, 0.3, combine)(embeddings, labels)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_the_parameters_of_the_loss_are_kept():
    proxies = ProxyAnchorLoss(4, 5)
    wrapped = Regularised(proxies, 0.1, 0.3)
    assert [parameter is proxies.proxies for parameter in wrapped.parameters()] == [True]


@pytest.mark.parametrize(("gamma", "combine"), [(-0.1, "convex"), (1.1, "convex"), (-0.1, "add"), (0.1, "product")])
def test_settings_outside_their_range_are_rejected(gamma, combine):
    with pytest.raises(ValueError, match=f"combine(=|: unknown )'{combine}'"):
        Regularised(ContrastiveLoss(), gamma, 0.3, combine)


def test_a_sum_takes_a_weight_above_one():
    embeddings, labels = batch()
    assert Regularised(ContrastiveLoss(), 2.0, 0.3, "add")(embeddings, labels).isfinite()


def test_tuples_are_those_of_the_loss():
    embeddings, labels = batch()
    pairs = torch.tensor([0]), torch.tensor([4]), torch.tensor([0]), torch.tensor([1])
    mean = (F.normalize(embeddings, dim=1) @ F.normalize(embeddings, dim=1).T).mean()
    expected = 0.9 * ContrastiveLoss()(embeddings, labels, pairs) + 0.1 * (0.3 - mean) ** 2
    actual = Regularised(ContrastiveLoss(), 0.1, 0.3)(embeddings, labels, pairs)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
