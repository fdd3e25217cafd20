"""Sampling of triplets: what each must be, and how often."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from pytorch_metric_learning import miners as library

from lookalike.sampling.miners import inverse_density
from lookalike.sampling.miners.triplets import distance_weighted_triplets, hardest_triplets
from miner_batches import DRAWS, LABELS, drawn, negatives, positives, seeded


def test_random_miner_draws_as_many_triplets_as_items_without_repeats(embeddings):
    anchor, positive, negative = seeded("random")(embeddings, LABELS)
    rows = set(zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True))
    assert len(rows) == len(anchor) == 8
    few = torch.tensor([0, 0, 1])
    assert len(seeded("random")(embeddings[:3], few)[0]) == 2  # all there are


def test_random_miner_reaches_all_triplets(embeddings):
    expected = {(a, p, n) for a in range(8) for p in positives(a) for n in negatives(a)}
    assert set(drawn("random", embeddings)) == expected
    found = zip(*[part.tolist() for part in seeded("all")(embeddings, LABELS)], strict=True)
    assert set(found) == expected


def test_hardest_takes_the_farthest_positive_and_the_nearest_negative_of_each_anchor(embeddings, distance):
    expected = [
        (a, max(positives(a), key=lambda p, a=a: distance[a][p]), min(negatives(a), key=lambda n, a=a: distance[a][n]))
        for a in (0, 1, 2, 3, 4, 6, 7)
    ]
    found = zip(*[part.tolist() for part in seeded("hardest")(5 * embeddings, LABELS)], strict=True)
    assert list(found) == expected


def test_hardest_clamped_takes_the_first_of_the_negatives_within_the_bound_of_the_batch(embeddings, distance):
    farthest = max(distance[a][p] for a in (0, 1, 2, 3, 4, 6, 7) for p in positives(a))
    for cutoff in (0.5, 0.9, 5.0):
        counts = drawn("hardest_clamped", embeddings, cutoff=cutoff)
        bound = min(cutoff, farthest)
        for a in (0, 1, 2, 3, 4, 6, 7):
            nearest = min(sorted(negatives(a)), key=lambda n, a=a, bound=bound: max(distance[a][n], bound))
            assert {n for x, _, n in counts if x == a} == {nearest}
            assert {p for x, p, _ in counts if x == a} == positives(a)


def test_semihard_negatives_are_a_little_farther_than_the_positive_or_any(embeddings, distance):
    counts = drawn("semihard", embeddings)
    for a in range(8):
        for p in positives(a):
            near = {n for n in negatives(a) if distance[a][p] < distance[a][n] < distance[a][p] + 0.2}
            assert {n for x, y, n in counts if (x, y) == (a, p)} == (near or negatives(a))


def test_the_semihard_band_can_be_changed(embeddings, distance):
    for a, p, n in drawn("semihard", embeddings, margin=2.0):
        farther = [m for m in negatives(a) if distance[a][m] > distance[a][p]]
        assert n in farther or not farther


def test_softhard_pairs_overlap_or_are_any(embeddings, distance):
    counts = drawn("softhard", embeddings)
    restricted = 0
    for a in (0, 1, 2, 3, 4, 6, 7):
        far = {p for p in positives(a) if distance[a][p] > min(distance[a][n] for n in negatives(a))}
        near = {n for n in negatives(a) if distance[a][n] < max(distance[a][p] for p in positives(a))}
        assert {p for x, p, _ in counts if x == a} == (far or positives(a))
        assert {n for x, _, n in counts if x == a} == (near or negatives(a))
        restricted += 0 < len(near) < len(negatives(a))
    assert restricted > 0


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


SEVEN_LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 3])


@pytest.fixture
def seven_distances():
    points = torch.randn(7, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    points = torch.nn.functional.normalize(points)
    return (points[:, None] - points).square().sum(-1)


def looped_negative(distance, labels, anchor, cutoff):
    largest = 0.0  # between any two images of one class, whosever class it is
    for i in range(len(labels)):
        for j in range(len(labels)):
            if i != j and labels[i] == labels[j]:
                largest = max(largest, float(distance[i, j]))
    floor = min(cutoff, largest)
    raised = [(max(float(d), floor), i) for i, d in enumerate(distance[anchor]) if labels[i] != labels[anchor]]
    return min(raised)[1]


@pytest.mark.parametrize("cutoff", [0.0, 0.5, 1.5, 4.0])
def test_hardest_triplets_equal_the_loops(seven_distances, cutoff):
    triplets = hardest_triplets(seven_distances, SEVEN_LABELS, cutoff, torch.Generator().manual_seed(0))
    assert triplets[:, 0].tolist() == [0, 1, 2, 4, 5]  # classes 2 and 3 have a single image
    for anchor, positive, negative in triplets.tolist():
        assert SEVEN_LABELS[anchor] == SEVEN_LABELS[positive]
        assert anchor != positive
        assert negative == looped_negative(seven_distances, SEVEN_LABELS, anchor, cutoff)


def test_the_lowest_index_wins_among_negatives_that_are_too_near():
    distance = torch.tensor([[0.0, 1.0, 0.4, 0.1], [1.0, 0.0, 3, 3], [0.4, 3, 0, 3], [0.1, 3, 3, 0]])
    labels = torch.tensor([0, 0, 1, 2])
    assert hardest_triplets(distance, labels, 0.5)[0].tolist() == [0, 1, 2]
    assert hardest_triplets(distance, labels, 0.3)[0].tolist() == [0, 1, 3]


def test_the_floor_is_that_of_the_whole_batch_and_not_of_the_anchors_class():
    # The anchor's own positive is at 0.1, but another class of the batch spans 0.4: negatives up to there count alike.
    distance = torch.tensor(
        [
            [0.0, 0.1, 0.3, 0.2],
            [0.1, 0.0, 0.9, 0.9],
            [0.3, 0.9, 0.0, 0.4],
            [0.2, 0.9, 0.4, 0.0],
        ]
    )
    labels = torch.tensor([0, 0, 1, 1])
    assert hardest_triplets(distance, labels, 0.5)[0].tolist() == [0, 1, 2]
    assert hardest_triplets(distance, labels, 0.25)[0].tolist() == [0, 1, 3]


@pytest.mark.parametrize("sample", [hardest_triplets, partial(distance_weighted_triplets, dim=8)])
def test_positives_are_uniform_over_the_rest_of_the_class(seven_distances, sample):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([sample(seven_distances, SEVEN_LABELS, generator=generator)[0, 1] for _ in range(400)])
    assert set(drawn.tolist()) == {2, 5}
    assert abs(int((drawn == 2).sum()) - 200) < 50  # five standard deviations


@pytest.mark.parametrize(
    "labels", [torch.zeros(7, dtype=torch.int64), torch.arange(7)], ids=["one class", "one image per class"]
)
def test_without_positive_or_negative_there_is_no_triplet(seven_distances, labels):
    for triplets in (hardest_triplets(seven_distances, labels), distance_weighted_triplets(seven_distances, labels, 8)):
        assert triplets.shape == (0, 3)
        assert triplets.dtype == torch.int64


def test_a_generator_repeats_the_draw(seven_distances):
    first, second = (
        hardest_triplets(seven_distances, SEVEN_LABELS, generator=torch.Generator().manual_seed(8)) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_distance_weights_are_the_inverse_density_of_distances():
    dim, squared = 4, [0.09, 0.49, 1.0, 1.69, 3.0]
    labels = torch.tensor([0, 0, 1, 2, 3, 4, 5])
    distance = torch.zeros(7, 7, dtype=torch.float64)
    distance[0, 2:] = torch.tensor(squared, dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    draws = torch.stack(
        [distance_weighted_triplets(distance, labels, dim, generator=generator)[0] for _ in range(4000)]
    )
    weights = []
    for value in squared:
        d = max(math.sqrt(value), 0.5)
        weights.append(0.0 if d > 1.4 else d ** (2 - dim) * (1 - d * d / 4) ** ((3 - dim) / 2))
    for index, weight in enumerate(weights):
        share = float((draws[:, 2] == index + 2).double().mean())
        assert share == pytest.approx(weight / sum(weights), abs=0.04)  # five standard deviations


def test_distance_weighting_draws_far_negatives_where_all_are_far():
    distance = torch.full((3, 3), 3.5)
    triplets = distance_weighted_triplets(distance, torch.tensor([0, 0, 1]), 512)
    assert triplets.tolist() == [[0, 1, 2], [1, 0, 2]]


def test_distance_weights_of_a_large_embedding_do_not_overflow():
    distance = torch.rand(20, 20, generator=torch.Generator().manual_seed(0)) * 2
    triplets = distance_weighted_triplets(distance, torch.arange(20) // 2, 2048)
    assert len(triplets) == 20


def test_wrong_arguments_of_the_samplers_are_refused(seven_distances):
    with pytest.raises(ValueError, match="distance has shape"):
        hardest_triplets(seven_distances[:5], SEVEN_LABELS)
    with pytest.raises(ValueError, match="labels has shape"):
        hardest_triplets(seven_distances, SEVEN_LABELS[:5])
    with pytest.raises(ValueError, match="nonzero_loss_cutoff"):
        distance_weighted_triplets(seven_distances, SEVEN_LABELS, 8, cutoff=1.5)
