from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from pytorch_metric_learning.losses import ContrastiveLoss, ProxyAnchorLoss

from lookalike.methods.contextual.regularised import Regularised


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
