from __future__ import annotations

import pytest
import torch

from lookalike.losses.average_precision import blackbox_ap_loss, smooth_ap_loss, softbin_ap_loss, sup_ap_loss
from lookalike.losses.listwise import BlackboxAPLoss, FastAPLoss, RoadmapLoss, SmoothAPLoss, SoftbinAPLoss
from lookalike.losses.pairwise import CosineContrastiveLoss


@pytest.fixture
def table(unit):
    return torch.stack([torch.stack([first @ second for second in unit]) for first in unit])


def test_modules_pass_cosines_and_their_numbers_to_the_functions(embeddings, labels, table):
    contrastive = CosineContrastiveLoss()(embeddings, labels)
    expected = {
        SmoothAPLoss(temperature=0.1): smooth_ap_loss(table, labels, temperature=0.1),
        SmoothAPLoss(contrastive_weight=0.25): 0.75 * smooth_ap_loss(table, labels) + 0.25 * contrastive,
        RoadmapLoss(): 0.5 * sup_ap_loss(table, labels) + 0.5 * contrastive,
        RoadmapLoss(rho=7.0, delta=0.1, offset=1.5, temperature=0.02, contrastive_weight=0.0): sup_ap_loss(
            table, labels, rho=7.0, delta=0.1, offset=1.5, temperature=0.02
        ),
        SoftbinAPLoss(bins=9): softbin_ap_loss(table, labels, bins=9),
        BlackboxAPLoss(margin=0.0, lam=2.0): blackbox_ap_loss(table, labels, margin=0.0, lam=2.0),
    }
    for loss, value in expected.items():
        torch.testing.assert_close(loss(embeddings, labels), value, rtol=0, atol=1e-12)


def test_the_contrastive_part_has_margins_of_its_own(embeddings, labels):
    loss = RoadmapLoss(contrastive_weight=1.0, positive_margin=0.75, negative_margin=0.3)
    expected = CosineContrastiveLoss(positive_margin=0.75, negative_margin=0.3)(embeddings, labels)
    torch.testing.assert_close(loss(embeddings, labels), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_contrastive_weight_outside_zero_and_one_is_refused(weight):
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        RoadmapLoss(contrastive_weight=weight)


@pytest.mark.parametrize("bins", [10, 4])
def test_fast_ap_equals_its_definition(bins, embeddings, labels, unit):
    width, total, queries = 4 / bins, 0.0, 0
    for i in range(8):
        near, every = [0.0] * (bins + 1), [0.0] * (bins + 1)
        for j in range(8):
            if j == i:
                continue
            squared = (unit[i] - unit[j]).square().sum().item()
            for m in range(bins + 1):
                weight = max(0.0, 1 - abs(squared - m * width) / width)
                every[m] += weight
                near[m] += weight * bool(labels[i] == labels[j])
        positives = sum(near)
        if positives > 0:
            queries += 1
            terms = [near[m] * sum(near[: m + 1]) / sum(every[: m + 1]) for m in range(bins + 1) if near[m] > 0]
            total += 1 - sum(terms) / positives
    assert queries == 7
    assert FastAPLoss(bins=bins)(embeddings, labels).item() == pytest.approx(total / queries, abs=1e-10)
