from __future__ import annotations

import pytest
import torch

from draws import unit
from lookalike.methods.contextual.cosine import cosine_similarity
from lookalike.methods.contextual.loss import (
    ContextualLoss,
    contextual_loss,
    contrastive_loss,
    similarity_regulariser,
)

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


def test_the_module_is_the_weighted_sum_of_its_parts_on_unit_embeddings():
    labels = torch.arange(6).repeat(4)
    embeddings = unit(24, 8, 6)
    similarity = embeddings @ embeddings.T
    expected = (
        0.4 * contextual_loss(similarity, labels, 4, 0.05)
        + 0.6 * contrastive_loss(similarity, labels, 0.75, 0.6)
        + 0.1 * similarity_regulariser(similarity, 0.25)
    )
    lengths = torch.linspace(0.5, 30, 24, dtype=torch.float64)[:, None]
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
def test_one_class_one_sample_per_class_and_collapse_give_finite_gradients(labels, spread):
    leaf = (torch.ones(8, 4) + spread * unit(8, 4, 11).float()).requires_grad_()
    ContextualLoss(**SETTINGS | {"gamma": 0.1})(leaf, labels).backward()
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
