from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.losses import MarginLoss as LibraryMarginLoss
from torch.autograd import gradcheck

from lookalike.losses.margin import MarginLoss


def with_boundaries(values: list[float], **options) -> MarginLoss:
    loss = MarginLoss(classes=len(values), **options).double()
    with torch.no_grad():
        loss.boundaries.copy_(torch.tensor(values))
    return loss


@pytest.mark.parametrize("divisor", ["either", "both"])
@pytest.mark.parametrize("boundaries", [[1.2] * 4, [0.4, 1.5, 1.0, 0.9]])
def test_margin_loss_equals_its_definition(divisor, boundaries, embeddings, labels, unit, triplets):
    total, either, both = 0.0, 0, 0
    for a, p, n in zip(*[part.tolist() for part in triplets], strict=True):
        boundary = torch.tensor(boundaries)[labels[a]].item()  # the boundaries are float32
        too_far = max(0.0, (unit[a] - unit[p]).square().sum().sqrt().item() - boundary + 0.2)
        too_near = max(0.0, boundary - (unit[a] - unit[n]).square().sum().sqrt().item() + 0.2)
        total += too_far + too_near
        either += too_far > 0 or too_near > 0
        both += (too_far > 0) + (too_near > 0)
    expected = total / {"either": either, "both": both}[divisor]
    loss = with_boundaries(boundaries, divisor=divisor)
    assert loss(embeddings, labels, triplets).item() == pytest.approx(expected, abs=1e-12)


def test_the_two_divisors_differ_where_both_terms_of_a_triplet_are_positive(embeddings, labels, triplets):
    either = with_boundaries([1.0] * 4, divisor="either")(embeddings, labels, triplets)
    both = with_boundaries([1.0] * 4, divisor="both")(embeddings, labels, triplets)
    assert either > both


def test_the_divisor_both_is_the_library(embeddings, labels, triplets):
    library = LibraryMarginLoss(margin=0.2, nu=0, beta=1.2, learn_beta=True, num_classes=4)
    loss = MarginLoss(classes=4, divisor="both")
    expected = library(embeddings, labels, triplets)
    torch.testing.assert_close(loss(embeddings, labels, triplets), expected, rtol=0, atol=1e-7)
    expected.backward()
    loss(embeddings, labels, triplets).backward()
    torch.testing.assert_close(loss.boundaries.grad, library.beta.grad, rtol=0, atol=1e-6)


def test_only_boundaries_of_anchors_learn(embeddings, labels, triplets):
    loss = MarginLoss(classes=6)
    loss(embeddings, labels, triplets).backward()
    assert (loss.boundaries.grad != 0).tolist() == [True, True, False, True, False, False]


def test_gradients_of_the_margin_loss_are_those_of_finite_differences(embeddings, labels, triplets):
    loss = with_boundaries([0.7, 1.1, 1.0, 0.9])
    boundaries = loss.boundaries.detach().clone().requires_grad_()

    def value(vectors, boundaries):
        return torch.func.functional_call(loss, {"boundaries": boundaries}, (vectors, labels, triplets))

    assert gradcheck(value, (embeddings.requires_grad_(), boundaries), atol=1e-6)


def test_an_unknown_divisor_is_refused():
    with pytest.raises(ValueError, match="divisor: unknown 'sum', did you mean"):
        MarginLoss(classes=2, divisor="sum")
