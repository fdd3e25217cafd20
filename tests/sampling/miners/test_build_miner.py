from __future__ import annotations

from collections import Counter

import pytest
import torch

from lookalike.sampling.miners import MINERS, build_miner
from miner_batches import LABELS, seeded

TRIPLET_MINERS = ["random", "semihard", "softhard", "distance_weighted", "hardest", "hardest_clamped", "all"]
DRAWING = ["random", "semihard", "softhard", "distance_weighted", "hardest_clamped"]


@pytest.mark.parametrize("name", TRIPLET_MINERS)
def test_triplets_are_valid_and_int64(name, embeddings, device):
    miner = build_miner(name, {}) if device.type == "cuda" else seeded(name)
    mined = miner(embeddings.to(device), LABELS.to(device))
    assert {part.device.type for part in mined} == {device.type}
    anchor, positive, negative = (part.cpu() for part in mined)
    assert anchor.dtype == positive.dtype == negative.dtype == torch.int64
    assert len(anchor) == len(positive) == len(negative) > 0
    assert (anchor != positive).all()
    assert (LABELS[anchor] == LABELS[positive]).all()
    assert (LABELS[anchor] != LABELS[negative]).all()


@pytest.mark.parametrize("name", ["semihard", "softhard", "distance_weighted"])
@pytest.mark.parametrize("count", [1, 3])
def test_each_anchor_with_a_positive_has_its_number_of_triplets(name, count, embeddings, device):
    anchor, _, _ = build_miner(name, {"triplets_per_anchor": count})(embeddings.to(device), LABELS.to(device))
    assert Counter(anchor.tolist()) == dict.fromkeys((0, 1, 2, 3, 4, 6, 7), count)


@pytest.mark.parametrize("name", sorted(MINERS))
@pytest.mark.parametrize("labels", [torch.arange(6), torch.zeros(1).long()], ids=["one item per class", "one item"])
def test_a_batch_without_positives_has_no_positive_pair(name, labels, device):
    tuples = build_miner(name, {})(torch.randn(len(labels), 4).to(device), labels.to(device))
    assert [len(part) for part in tuples[:2]] == [0, 0]
    assert all(part.dtype == torch.int64 for part in tuples)


@pytest.mark.parametrize("name", TRIPLET_MINERS)
def test_a_batch_of_one_class_has_no_triplet(name, device):
    mined = build_miner(name, {})(torch.randn(6, 4).to(device), torch.zeros(6, device=device).long())
    assert [len(part) for part in mined] == [0, 0, 0]


@pytest.mark.parametrize("name", DRAWING)
def test_draws_depend_on_the_generator_alone(name, embeddings):
    def first(seed):
        return torch.stack(seeded(name, seed)(embeddings, LABELS)).tolist()

    assert first(0) == first(0)
    assert len({str(first(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize("name", DRAWING)
def test_without_a_generator_the_global_one_is_drawn_from(name, embeddings, device):
    def first(seed):
        torch.manual_seed(seed)
        return torch.stack(build_miner(name, {})(embeddings.to(device), LABELS.to(device))).tolist()

    assert first(0) == first(0)
    assert len({str(first(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("hard", {}, "miner: unknown 'hard', did you mean 'hardest'"),
        (
            "semihard",
            {"epsilon": 1},
            "miner 'semihard', parameter: unknown 'epsilon', did you mean '.*'. Known: margin, triplets_per_anchor",
        ),
        ("all", {"margin": 1}, "miner 'all', parameter: unknown 'margin'. Known: none"),
        ("distance_weighted", {"lower": 0.0}, r"lower=0.0 is outside \(0, 2\)"),
        ("distance_weighted", {"upper": 0.4}, "upper=0.4 must lie above lower=0.5"),
        ("softhard", {"triplets_per_anchor": 0}, "triplets_per_anchor=0 must be at least 1"),
    ],
)
def test_unknown_names_and_impossible_values_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        build_miner(name, parameters)
