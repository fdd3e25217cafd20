from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning import miners as library

from lookalike.miners import inverse_density
from miner_batches import DRAWS, drawn, negatives, positives, seeded


def weight(d: float, dim: int, lower: float = 0.5) -> float:
    """One over the density of distances on the sphere, from DIML's formula."""
    d = max(d, lower)
    return math.exp(-((dim - 2) * math.log(d) + (dim - 3) / 2 * math.log(1 - d * d / 4)))


@pytest.mark.parametrize("upper", [None, 1.4])
def test_distance_weighted_negatives_come_with_their_probabilities(upper, embeddings, distance):
    counts = drawn("distance_weighted", embeddings, upper=upper)
    for a in (0, 1, 2, 3, 4, 6, 7):
        allowed = {n: weight(distance[a][n], dim=5) for n in negatives(a) if upper is None or distance[a][n] < upper}
        assert {n for x, _, n in counts if x == a} <= set(allowed)
        for n, value in allowed.items():
            share = value / sum(allowed.values())
            seen = sum(count for (x, _, m), count in counts.items() if (x, m) == (a, n)) / DRAWS
            assert seen == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / DRAWS) + 1e-9)  # 4 sigma
        for p in positives(a):
            seen = sum(count for (x, q, _), count in counts.items() if (x, q) == (a, p)) / DRAWS
            share = 1 / len(positives(a))
            assert seen == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / DRAWS) + 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 128])
def test_the_inverse_density_follows_its_formula_up_to_a_constant(dim):
    distances = torch.tensor([0.1, 0.5, 0.9, 1.3, 1.41, 1.7, 1.95], dtype=torch.float64)
    found = inverse_density(distances, dim)
    expected = torch.tensor([math.log(weight(d, dim)) for d in distances.tolist()], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 3, 128, 512, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_inverse_density_is_finite_at_the_ends_of_the_range(dim, dtype):
    distances = torch.tensor([0.0, 2.0, 2.0 + 1e-6], dtype=dtype)
    assert inverse_density(distances, dim).isfinite().all()
    assert inverse_density(distances, dim, upper=1.4).isfinite().tolist() == [True, False, False]


@pytest.mark.parametrize(("dim", "library_keeps_all"), [(64, True), (512, False), (2048, False)])
def test_no_anchor_is_lost_in_high_dimensions(dim, library_keeps_all):
    # The library loses nearly all of them from D = 256 on: one hard pair makes all other weights vanish.
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(16).repeat_interleave(4)
    centres = torch.randn(16, dim, generator=generator)
    embeddings = centres[labels] + 0.5 * torch.randn(64, dim, generator=generator)
    embeddings[4] = embeddings[0] + 0.3 * torch.randn(dim, generator=generator)
    anchor, _, _ = seeded("distance_weighted")(embeddings, labels)
    assert anchor.tolist() == list(range(64))
    kept = library.DistanceWeightedMiner(nonzero_loss_cutoff=2.0)(embeddings, labels)[0].unique()
    assert (len(kept) == 64) == library_keeps_all


def test_anchors_without_a_negative_below_the_upper_distance_have_no_triplet():
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1], [0.6, 1.0]])
    anchor, _, negative = seeded("distance_weighted", upper=1.0)(embeddings, torch.tensor([0, 0, 1, 1, 2]))
    assert anchor.tolist() == [0, 1]
    assert negative.tolist() == [4, 4]
