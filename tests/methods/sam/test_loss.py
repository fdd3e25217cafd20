from __future__ import annotations

import math

import pytest
import torch

from lookalike.losses.identity import PartCrossEntropyLoss
from lookalike.losses.pairwise import ContrastiveLoss
from lookalike.losses.triplet import SemihardTripletLoss, TripletLoss
from lookalike.methods.sam.head import PoolingHead, unit
from lookalike.methods.sam.loss import SimilarityMiningLoss, mined_tuples
from lookalike.methods.sam.mining import read_maps, similarity_mining
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.sampling.miners import HardestMiner

ROLES = {"siamese_same": 2, "triplet": 3, "quadruplet": 4}
LABELS = torch.arange(4).repeat_interleave(3)


def trainer(network, **options) -> tuple[SimilarityMiningLoss, SimilarityAttention]:
    metric_loss = options.pop("metric_loss", None) or SemihardTripletLoss(generator=torch.Generator().manual_seed(0))
    given = {"warm_up_epochs": 0, "generator": torch.Generator().manual_seed(0), **options}
    return SimilarityMiningLoss(metric_loss, **given), SimilarityAttention(*network())


@pytest.mark.parametrize("kind", ["siamese_same", "triplet", "quadruplet"])
@pytest.mark.parametrize("form", ["absolute", "hinge"])
def test_total_is_the_metric_loss_plus_gamma_times_the_mean_of_the_mined_tuples(kind, form, network, draw, gradients):
    loss, model = trainer(network, kind=kind, gamma=0.3, form=form)
    images = draw(12, 3, 8, 6, seed=10)
    total = loss(model, images, LABELS)

    features = model(images)
    mined = SemihardTripletLoss(generator=torch.Generator().manual_seed(0)).miner(features.detach(), LABELS)
    metric = SemihardTripletLoss()(features, LABELS, mined)
    chosen = mined_tuples(mined, LABELS, kind, 12 // 3, torch.Generator().manual_seed(0))
    assert chosen.shape == (ROLES[kind], 4)
    mining = similarity_mining(model.trunk, model.head, images[chosen], kind, form=form).mean()
    torch.testing.assert_close(total, metric + 0.3 * mining, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradients(total, model), gradients(metric + 0.3 * mining, model), rtol=1e-9, atol=1e-13)
    measures = loss.measures()
    assert measures["metric_loss"] == pytest.approx(metric.item())
    assert measures["mining_loss"] == pytest.approx(mining.item())
    assert measures["tuples"] == 4


def test_measures_tell_masks_empty_maps_and_spread_of_masked_features(network, draw):
    loss, model = trainer(network)
    miner, choice = (torch.Generator().manual_seed(0) for _ in range(2))  # as those of `trainer`
    masks, distances = [], []
    for seed in (11, 12):
        images = draw(12, 3, 8, 6, seed=seed)
        loss(model, images, LABELS)
        mined = SemihardTripletLoss(generator=miner).miner(model(images).detach(), LABELS)
        chosen = images[mined_tuples(mined, LABELS, "triplet", 4, choice)]
        erased = model.erase(chosen, read_maps(model.trunk, chosen), "triplet")
        masks.append(float(erased.masks.mean()))
        features = erased.features.flatten(0, 1)
        apart = [float((features[i] - features[j]).norm()) for i in range(12) for j in range(i)]
        distances.append(sum(apart) / len(apart))
    measures = loss.measures()
    assert set(measures) == {"metric_loss", "mining_loss", "tuples", "mean_mask", "zero_maps", "masked_distance"}
    assert measures["mean_mask"] == pytest.approx(sum(masks) / 2, rel=1e-9)
    assert measures["masked_distance"] == pytest.approx(sum(distances) / 2, rel=1e-9)
    assert measures["zero_maps"] == 0
    loss.set_epoch(1)
    assert loss.measures() == {}

    same = images[:1].expand(12, 3, 8, 6)  # all images alike: no attention, nothing to tell apart
    loss(model, same, LABELS)
    measures = loss.measures()
    assert measures["zero_maps"] == 1
    assert measures["mean_mask"] == pytest.approx(1 / (1 + math.exp(5)))
    assert measures["masked_distance"] == pytest.approx(0, abs=1e-6)


def test_mining_starts_after_the_warm_up(network, draw):
    images = draw(12, 3, 8, 6, seed=13)
    loss, model = trainer(network, warm_up_epochs=2)
    alone = SemihardTripletLoss(generator=torch.Generator().manual_seed(0))
    for epoch in (0, 1):
        loss.set_epoch(epoch)
        assert loss(model, images, LABELS).item() == alone(model(images), LABELS).item()
        assert loss.measures() == {}
    loss.set_epoch(2)
    assert loss(model, images, LABELS).item() != alone(model(images), LABELS).item()
    assert loss.measures()["tuples"] == 4


@pytest.mark.parametrize("reason", ["gamma", "one class"])
def test_without_weight_or_tuples_the_metric_loss_stays_alone(reason, network, draw):
    loss, model = trainer(network, gamma=0.0 if reason == "gamma" else 0.2)
    labels = torch.zeros(12, dtype=torch.int64) if reason == "one class" else LABELS
    value = loss(model, draw(12, 3, 8, 6, seed=14), labels)
    assert value.isfinite()
    value.backward()
    assert loss.measures() == {}


def test_tuples_are_capped_and_drawn_by_the_generator(network, draw):
    images = draw(12, 3, 8, 6, seed=15)
    values = []
    for seed in (0, 0, 1):
        loss, model = trainer(
            network, metric_loss=TripletLoss(miner=None), generator=torch.Generator().manual_seed(seed)
        )
        values.append(loss(model, images, LABELS).item())
        assert loss.measures()["tuples"] == 4
    assert values[0] == values[1] != values[2]
    loss, model = trainer(network, metric_loss=TripletLoss(miner=None), images_per_tuple=1)
    loss(model, images, LABELS)
    assert loss.measures()["tuples"] == 12


def test_pairs_are_mined_from_a_loss_of_pairs(network, draw):
    metric_loss = ContrastiveLoss(generator=torch.Generator().manual_seed(0))
    loss, model = trainer(network, metric_loss=metric_loss, kind="siamese_same")
    loss(model, draw(12, 3, 8, 6, seed=16), LABELS).backward()
    assert loss.measures()["mining_loss"] < 0


def test_a_classification_loss_gets_embeddings_as_they_are_and_a_miner_gives_the_tuples(network, draw, gradients):
    def classifier() -> PartCrossEntropyLoss:
        generator = torch.Generator().manual_seed(3)
        return PartCrossEntropyLoss(classes=4, embedding_dim=5, parts=1, generator=generator)

    loss, model = trainer(network, metric_loss=classifier(), gamma=0.3, miner="hardest")
    images = draw(12, 3, 8, 6, seed=18)
    total = loss(model, images, LABELS)

    raw = model.head.project(model.trunk(images))
    assert (raw.norm(dim=1) - 1).abs().min() > 1e-3
    features = unit(raw)
    triplets = HardestMiner()(features.detach(), LABELS)
    chosen = mined_tuples(triplets, LABELS, "triplet", 12 // 3, torch.Generator().manual_seed(0))
    assert set(map(tuple, chosen.T.tolist())) < set(map(tuple, torch.stack(triplets).T.tolist()))
    mining = similarity_mining(model.trunk, model.head, images[chosen], "triplet").mean()
    expected = classifier()(raw, LABELS) + 0.3 * mining
    torch.testing.assert_close(total, expected, rtol=1e-9, atol=0)
    torch.testing.assert_close(gradients(total, model), gradients(expected, model), rtol=1e-9, atol=1e-13)


def test_a_miner_of_the_mining_leaves_the_tuples_of_the_metric_loss_alone(network, draw):
    images = draw(12, 3, 8, 6, seed=19)
    loss, model = trainer(network, miner="hardest")
    loss(model, images, LABELS)
    alone = SemihardTripletLoss(generator=torch.Generator().manual_seed(0))
    assert loss.measures()["metric_loss"] == pytest.approx(alone(model(images), LABELS).item(), rel=1e-12)


def test_a_loss_that_reads_lengths_needs_a_head_that_has_them(network, draw):
    loss, model = trainer(network, metric_loss=PartCrossEntropyLoss(classes=4, embedding_dim=5, parts=1))
    model.head = torch.nn.Sequential(model.head)
    with pytest.raises(ValueError, match=r"need a UnitHead with its project\(\), not Sequential"):
        loss(model, draw(12, 3, 8, 6, seed=20), LABELS)


def test_a_step_trains_trunk_and_head_and_leaves_the_masked_images_out_of_the_statistics(network, draw):
    loss = SimilarityMiningLoss(SemihardTripletLoss(), warm_up_epochs=0)
    model = SimilarityAttention(*network(batch_norm=True))
    images = draw(12, 3, 8, 6, seed=17)
    loss(model, images, LABELS).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    after = [buffer.clone() for buffer in model.buffers()]
    other = SimilarityAttention(*network(batch_norm=True))
    other(images)
    assert all(torch.equal(one, two) for one, two in zip(after, other.buffers(), strict=True))
    assert list(loss.parameters()) == []


def test_batch_norm_of_a_head_learns_its_statistics_from_the_batch_alone(network, draw):
    def model() -> SimilarityAttention:
        trunk, head = network(batch_norm=True)
        norm = torch.nn.Sequential(head.linear, torch.nn.BatchNorm1d(5).double(), torch.nn.ReLU())
        return SimilarityAttention(trunk, PoolingHead(lambda maps: maps.mean(dim=(2, 3)), norm))

    mined, plain = model(), model()
    images = draw(12, 3, 8, 6, seed=21)
    loss = SimilarityMiningLoss(SemihardTripletLoss(), warm_up_epochs=0)
    loss(mined, images, LABELS)
    plain(images)
    assert loss.measures()["tuples"] == 4
    assert len(list(plain.buffers())) == 6
    assert all(torch.equal(one, two) for one, two in zip(mined.buffers(), plain.buffers(), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "siamese_different"}, "Known: quadruplet, siamese_same, triplet"),
        ({"form": "huber"}, "form: unknown 'huber'"),
        ({"gamma": -0.1}, "gamma=-0.1"),
        ({"gamma": math.nan}, "gamma=nan"),
        ({"warm_up_epochs": -1}, "warm_up_epochs=-1"),
        ({"images_per_tuple": 0}, "images_per_tuple=0"),
        ({"miner": "hard"}, "miner: unknown 'hard'"),
    ],
)
def test_settings_outside_their_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SimilarityMiningLoss(TripletLoss(), **options)


LABELS_TUPLES = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])


def triplets(*rows: tuple[int, int, int]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(rows).T)


def test_triplets_are_those_that_were_mined():
    mined = triplets((0, 1, 3), (1, 2, 5), (6, 7, 4))
    chosen = mined_tuples(mined, LABELS_TUPLES, "triplet", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1, 3], [1, 2, 5], [6, 7, 4]]


def test_all_triplets_of_the_batch_stand_in_for_none_mined():
    chosen = mined_tuples(None, LABELS_TUPLES, "triplet", 1000)
    expected = [
        [a, p, n]
        for a in range(8)
        for p in range(8)
        for n in range(8)
        if a != p and LABELS_TUPLES[a] == LABELS_TUPLES[p] and LABELS_TUPLES[a] != LABELS_TUPLES[n]
    ]
    assert sorted(chosen.T.tolist()) == expected


def test_pairs_become_triplets_where_they_share_an_anchor():
    mined = (torch.tensor([0, 3]), torch.tensor([1, 4]), torch.tensor([0, 0, 5]), torch.tensor([4, 6, 1]))
    chosen = mined_tuples(mined, LABELS_TUPLES, "triplet", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1, 4], [0, 1, 6]]


def test_positive_pairs_come_once_whatever_their_order():
    mined = triplets((0, 1, 3), (1, 0, 5), (0, 1, 6), (4, 3, 0))
    chosen = mined_tuples(mined, LABELS_TUPLES, "siamese_same", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1], [3, 4]]


def test_second_negative_comes_from_a_third_class():
    mined = tuple(torch.stack(triplets((0, 1, 3), (1, 2, 5), (6, 7, 4))).repeat(1, 20))
    chosen = mined_tuples(mined, LABELS_TUPLES, "quadruplet", 60, torch.Generator().manual_seed(0))
    assert chosen.shape == (4, 60)
    a, p, first, second = LABELS_TUPLES[chosen]
    assert torch.equal(a, p)
    assert ((first != a) & (second != a) & (second != first)).all()
    assert len(chosen[3].unique()) == 8
    assert sorted(set(map(tuple, chosen[:3].T.tolist()))) == [(0, 1, 3), (1, 2, 5), (6, 7, 4)]


def test_second_negative_without_a_third_class_is_another_of_the_second():
    labels = torch.tensor([0, 0, 0, 1, 1])
    mined = triplets((0, 1, 3), (1, 2, 4), (3, 4, 0))
    chosen = mined_tuples(mined, labels, "quadruplet", 10, torch.Generator().manual_seed(0))
    by_triplet = {tuple(column[:3]): column[3] for column in chosen.T.tolist()}
    assert by_triplet[(0, 1, 3)] == 4
    assert by_triplet[(1, 2, 4)] == 3
    assert by_triplet[(3, 4, 0)] in (1, 2)


def test_triplets_without_a_second_negative_give_no_quadruplet():
    labels = torch.tensor([0, 0, 0, 1])
    assert mined_tuples(None, labels, "quadruplet", 10).shape == (4, 0)
    assert mined_tuples(None, labels, "triplet", 10).shape == (3, 6)


@pytest.mark.parametrize(("kind", "roles"), [("siamese_same", 2), ("triplet", 3), ("quadruplet", 4)])
def test_choice_is_capped_random_and_repeatable(kind, roles):
    choices = [
        mined_tuples(None, LABELS_TUPLES, kind, 3, torch.Generator().manual_seed(seed)).tolist()
        for seed in (0, 0, 1, 2, 3)
    ]
    assert all(len(choice) == roles and len(choice[0]) == 3 for choice in choices)
    assert choices[0] == choices[1]
    assert any(choice != choices[0] for choice in choices[2:])
    assert mined_tuples(None, LABELS_TUPLES, kind, 0).shape == (roles, 0)


@pytest.mark.parametrize("kind", ["siamese_same", "triplet", "quadruplet"])
def test_a_batch_without_tuples_gives_none(kind):
    assert mined_tuples(None, torch.arange(5), kind, 3).shape[1] == 0
    empty = torch.zeros(0, dtype=torch.int64)
    assert mined_tuples((empty, empty, empty), LABELS_TUPLES, kind, 3).shape[1] == 0


def test_pairs_of_different_images_and_negative_limits_are_refused():
    with pytest.raises(ValueError, match="kind: unknown 'siamese_different', did you mean"):
        mined_tuples(None, LABELS_TUPLES, "siamese_different", 3)
    with pytest.raises(ValueError, match="limit=-1 is negative"):
        mined_tuples(None, LABELS_TUPLES, "triplet", -1)
