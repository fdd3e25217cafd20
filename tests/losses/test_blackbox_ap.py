from __future__ import annotations

import pytest
import torch
from torch import Tensor

from draws import similarities
from lookalike.losses.blackbox_ap import blackbox_ap_loss

LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 3, 1])  # class 2 and 3 have one item each


def rank_by_loops(row: list[float]) -> list[float]:
    """Descending, 1-based, over n; of equal values the lower index first."""
    return [
        sum(other > value or (other == value and q <= p) for q, other in enumerate(row)) / len(row)
        for p, value in enumerate(row)
    ]


def blackbox_by_loops(similarity: Tensor, labels: Tensor, lam: float) -> tuple[float, list[list[float]]]:
    """Loss and its gradient with respect to the (already shifted) similarities."""
    s, y = similarity.tolist(), labels.tolist()
    n, loss, gradient = len(y), 0.0, []
    for i in range(n):
        positives = [j for j in range(n) if y[j] == y[i]]
        rank = rank_by_loops(s[i])
        among = {j: sum(rank[p] <= rank[j] for p in positives) / n for j in positives}
        loss += 1 - sum(among[j] / rank[j] for j in positives) / (len(positives) + 1e-5)
        incoming = [among[j] / rank[j] ** 2 / (len(positives) + 1e-5) / n if j in positives else 0.0 for j in range(n)]
        shifted = rank_by_loops([value + lam * g for value, g in zip(s[i], incoming, strict=True)])
        gradient.append([-(before - after) / lam for before, after in zip(rank, shifted, strict=True)])
    return loss / n, gradient


@pytest.mark.parametrize("lam", [0.5, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_blackbox_ap_and_its_gradient_equal_their_definition(lam, seed):
    similarity = similarities(seed=seed, scale=0.5).requires_grad_()
    loss = blackbox_ap_loss(similarity, LABELS, lam=lam, margin=0.0)
    loss.backward()
    expected, gradient = blackbox_by_loops(similarity.detach(), LABELS, lam)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(similarity.grad, torch.tensor(gradient, dtype=torch.float64), rtol=0, atol=1e-12)
    assert similarity.grad.abs().max() > 0


def test_blackbox_ap_lowers_positives_and_lifts_negatives_by_the_margin():
    similarity, noise = similarities(scale=0.5), similarities(seed=7)
    same = (LABELS[:, None] == LABELS).double()
    shifted = similarity - 0.3 * noise.abs() * (same - 0.5)
    loss = blackbox_ap_loss(similarity, LABELS, margin=0.3, noise=noise)
    assert loss == blackbox_ap_loss(shifted, LABELS, margin=0)
    assert loss > blackbox_ap_loss(similarity, LABELS, margin=0)


def test_blackbox_ap_draws_its_noise_from_the_generator():
    similarity = similarities(scale=0.2)
    draw = lambda seed: blackbox_ap_loss(  # noqa: E731
        similarity, LABELS, margin=0.5, generator=torch.Generator().manual_seed(seed)
    ).item()
    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(5)}) > 1
