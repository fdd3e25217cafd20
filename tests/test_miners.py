from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from pytorch_metric_learning import miners as library

from lookalike.miners import MINERS, build_miner, draw_columns, inverse_density

TRIPLET_MINERS = ["random", "semihard", "softhard", "distance_weighted", "hardest_clamped", "all"]
DRAWING = ["random", "semihard", "softhard", "distance_weighted", "hardest_clamped"]
LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])  # class 2 has one item
DRAWS = 400


@pytest.fixture
def embeddings():
    generator = torch.Generator().manual_seed(1)
    centres = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    return centres[LABELS] + torch.randn(8, 5, generator=generator, dtype=torch.float64)


@pytest.fixture
def distance(embeddings):
    unit = F.normalize(embeddings, dim=1)
    return [[(first - second).square().sum().sqrt().item() for second in unit] for first in unit]


def seeded(name: str, seed: int = 0, **parameters):
    return build_miner(name, parameters, generator=torch.Generator().manual_seed(seed))


def positives(a: int) -> set[int]:
    return {j for j in range(8) if j != a and LABELS[j] == LABELS[a]}


def negatives(a: int) -> set[int]:
    return {j for j in range(8) if LABELS[j] != LABELS[a]}


def drawn(name: str, embeddings, **parameters) -> Counter[tuple[int, int, int]]:
    """How often each triplet is drawn in many calls of one miner."""
    miner, counts = seeded(name, **parameters), Counter()
    for _ in range(DRAWS):
        counts.update(zip(*[part.tolist() for part in miner(embeddings, LABELS)], strict=True))
    return counts


@pytest.mark.parametrize("name", TRIPLET_MINERS)
def test_triplets_are_valid_and_int64(name, embeddings):
    anchor, positive, negative = seeded(name)(embeddings, LABELS)
    assert anchor.dtype == positive.dtype == negative.dtype == torch.int64
    assert len(anchor) == len(positive) == len(negative) > 0
    assert (anchor != positive).all()
    assert (LABELS[anchor] == LABELS[positive]).all()
    assert (LABELS[anchor] != LABELS[negative]).all()


@pytest.mark.parametrize("name", ["semihard", "softhard", "distance_weighted"])
@pytest.mark.parametrize("count", [1, 3])
def test_each_anchor_with_a_positive_has_its_number_of_triplets(name, count, embeddings):
    anchor, _, _ = seeded(name, triplets_per_anchor=count)(embeddings, LABELS)
    assert Counter(anchor.tolist()) == dict.fromkeys((0, 1, 2, 3, 4, 6, 7), count)


@pytest.mark.parametrize("name", sorted(MINERS))
@pytest.mark.parametrize("labels", [torch.arange(6), torch.zeros(1).long()], ids=["one item per class", "one item"])
def test_a_batch_without_positives_has_no_positive_pair(name, labels):
    tuples = seeded(name)(torch.randn(len(labels), 4), labels)
    assert [len(part) for part in tuples[:2]] == [0, 0]
    assert all(part.dtype == torch.int64 for part in tuples)


@pytest.mark.parametrize("name", TRIPLET_MINERS)
def test_a_batch_of_one_class_has_no_triplet(name):
    assert [len(part) for part in seeded(name)(torch.randn(6, 4), torch.zeros(6).long())] == [0, 0, 0]


@pytest.mark.parametrize("name", DRAWING)
def test_draws_depend_on_the_generator_alone(name, embeddings):
    def first(seed):
        return torch.stack(seeded(name, seed)(embeddings, LABELS)).tolist()

    assert first(0) == first(0)
    assert len({str(first(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize("name", DRAWING)
def test_without_a_generator_the_global_one_is_drawn_from(name, embeddings):
    def first(seed):
        torch.manual_seed(seed)
        return torch.stack(build_miner(name, {})(embeddings, LABELS)).tolist()

    assert first(0) == first(0)
    assert len({str(first(seed)) for seed in range(6)}) > 1


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


def test_hardest_clamped_takes_the_first_of_the_negatives_within_the_bound(embeddings, distance):
    for cutoff in (0.5, 0.9, 5.0):
        counts = drawn("hardest_clamped", embeddings, cutoff=cutoff)
        for a in (0, 1, 2, 3, 4, 6, 7):
            bound = min(cutoff, max(distance[a][p] for p in positives(a)))
            nearest = min(sorted(negatives(a)), key=lambda n, a=a, bound=bound: max(distance[a][n], bound))
            assert {n for x, _, n in counts if x == a} == {nearest}
            assert {p for x, p, _ in counts if x == a} == positives(a)


def test_npair_miner_takes_one_positive_and_all_others_as_negatives(embeddings):
    miner, seen = seeded("npair"), set()
    for _ in range(50):
        anchor, positive, other_anchor, negative = [part.tolist() for part in miner(embeddings, LABELS)]
        assert anchor == [0, 1, 2, 3, 4, 6, 7]
        for a, p in zip(anchor, positive, strict=True):
            assert p in positives(a)
            rest = [n for x, n in zip(other_anchor, negative, strict=True) if x == a]
            assert sorted(rest) == [j for j in range(8) if j not in (a, p)]
            seen.add((a, p))
    assert seen == {(a, p) for a in range(8) for p in positives(a)}


def test_multi_similarity_miner_keeps_pairs_by_its_rule(embeddings):
    unit = F.normalize(embeddings, dim=1)
    similarity = unit @ unit.T
    expected_positive, expected_negative = set(), set()
    for a in range(8):
        if positives(a):
            hardest = max(similarity[a, n] for n in negatives(a))
            expected_positive |= {(a, p) for p in positives(a) if similarity[a, p] - 0.1 < hardest}
            easiest = min(similarity[a, p] for p in positives(a))
            expected_negative |= {(a, n) for n in negatives(a) if similarity[a, n] + 0.1 > easiest}
    a, p, b, n = [part.tolist() for part in seeded("multi_similarity")(embeddings, LABELS)]
    assert set(zip(a, p, strict=True)) == expected_positive
    assert set(zip(b, n, strict=True)) == expected_negative
    assert 0 < len(expected_positive) < sum(len(positives(a)) for a in range(8))


def test_columns_are_drawn_in_proportion_to_their_weights_over_any_range():
    weights = torch.tensor([0.0, 0.5, 0.3, 0.2])
    rows = (weights.log() + 5000).repeat(4000, 1)
    counts = torch.bincount(draw_columns(rows, torch.Generator().manual_seed(0)), minlength=4) / 4000
    assert counts[0] == 0
    torch.testing.assert_close(counts, weights, rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("hard", {}, "unknown miner 'hard'; known: all, distance_weighted, hardest_clamped"),
        ("semihard", {"epsilon": 1}, "miner 'semihard' has no parameter 'epsilon'; known: margin, triplets_per_anchor"),
        ("all", {"margin": 1}, "miner 'all' has no parameter 'margin'; known: none"),
        ("distance_weighted", {"lower": 0.0}, r"lower=0.0 is outside \(0, 2\)"),
        ("distance_weighted", {"upper": 0.4}, "upper=0.4 must lie above lower=0.5"),
        ("softhard", {"triplets_per_anchor": 0}, "triplets_per_anchor=0 must be at least 1"),
    ],
)
def test_unknown_names_and_impossible_values_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        build_miner(name, parameters)
