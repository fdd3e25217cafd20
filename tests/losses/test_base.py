"""What holds for every loss, whatever it computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lookalike.losses import LOSSES, build_loss

# Losses whose every term needs a positive and a negative of one anchor; the second set adds the mean length.
TUPLES = {"contrastive", "margin", "quadruplet", "snr", "triplet", "triplet_distance", "triplet_random"} | {
    "quadruplet_two_hinges",
    "triplet_semihard",
    "triplet_softhard",
    "histogram",
    "multi_similarity",
    "ntxent",
}
RAW = {"npair", "angular", "gen_lifted"}
READING_LENGTHS = RAW | {"part_cross_entropy"}
PER_CLASS = {"arcface", "margin", "part_cross_entropy", "proxy_anchor", "proxy_nca", "proxy_nca_softmax", "softmax"}
BATCH_ONLY = {"contextual", "smooth_ap", "roadmap", "softbin_ap", "blackbox_ap"}
NEEDED = {  # by losses that have no default for it
    "contextual": {"k": 2, "eps": 0.05, "lam": 0.4, "gamma": 0.1}
    | {"target_similarity": 0.3, "positive_margin": 0.75, "negative_margin": 0.6}
}
GROUPS = {
    "two items per class": torch.arange(14).repeat_interleave(2),
    "one class": torch.zeros(28, dtype=torch.int64),
    "one item per class": torch.arange(28),
    "two items": torch.tensor([0, 1]),
    "one item": torch.tensor([0]),
}


def made(name: str, seed: int = 0, **parameters) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    return build_loss(name, NEEDED.get(name, {}) | parameters, classes=28, embedding_dim=6, generator=generator)


def gaussian(n: int, seed: int = 1, dim: int = 6) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def all_triplets(labels: Tensor) -> tuple[Tensor, ...]:
    n = range(len(labels))
    found = [(a, p, m) for a in n for p in n for m in n if a != p and labels[a] == labels[p] and labels[a] != labels[m]]
    return tuple(torch.tensor(found).T)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("labels", GROUPS.values(), ids=GROUPS.keys())
@pytest.mark.parametrize("kind", ["spread", "collapsed", "collapsed on a diagonal"])
def test_every_loss_and_its_gradients_are_finite(name, labels, kind):
    embeddings = {
        "spread": gaussian(len(labels)),
        "collapsed": gaussian(1).repeat(len(labels), 1),
        "collapsed on a diagonal": torch.ones(len(labels), 6),
    }[kind].requires_grad_()
    loss = made(name, **({"k": min(2, len(labels))} if name == "contextual" else {}))
    value = loss(embeddings, labels, None)
    value.backward()
    assert value.shape == ()
    assert value.isfinite()
    assert embeddings.grad.isfinite().all()
    assert all(each.grad.isfinite().all() for each in loss.parameters() if each.grad is not None)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_card_gives_the_value_and_the_gradient_of_the_processor(name):
    found = []
    for device in ("cpu", "cuda"):
        leaf = gaussian(28).to(device).requires_grad_()
        value = made(name).to(device)(leaf, GROUPS["two items per class"].to(device))
        value.backward()
        found.append((value.detach().cpu(), leaf.grad.cpu()))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(TUPLES | RAW))
@pytest.mark.parametrize("group", ["one item per class", "one item"])
def test_a_batch_without_a_valid_tuple_costs_nothing_but_stays_on_the_graph(name, group, device):
    embeddings = gaussian(len(GROUPS[group])).to(device).requires_grad_()
    parameters = {"length_weight": 0.0} if name in RAW else {}
    value = made(name, **parameters).to(device)(embeddings, GROUPS[group].to(device))
    value.backward()
    assert value.item() == 0
    assert embeddings.grad.abs().max() == 0


@pytest.mark.parametrize("name", sorted(TUPLES - {"multi_similarity"}))
def test_a_batch_of_one_class_costs_nothing_where_a_negative_is_needed(name):
    assert made(name)(gaussian(28).requires_grad_(), GROUPS["one class"]).item() == 0


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - READING_LENGTHS))
def test_the_length_of_embeddings_does_not_count(name):
    lengths = torch.linspace(0.2, 5, 28)[:, None]
    labels = GROUPS["two items per class"]
    torch.testing.assert_close(
        made(name)(gaussian(28) * lengths, labels), made(name)(gaussian(28), labels), rtol=2e-4, atol=2e-6
    )


@pytest.mark.parametrize("name", sorted(READING_LENGTHS))
def test_the_length_of_embeddings_counts_for_losses_on_raw_embeddings(name):
    labels = GROUPS["two items per class"]
    assert made(name)(3 * gaussian(28), labels) > 1.1 * made(name)(gaussian(28), labels)


def test_losses_say_whether_they_read_the_length_of_embeddings():
    assert {name for name in LOSSES.keys() - {"contextual"} if LOSSES[name].reads_length} == READING_LENGTHS


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_same_seed_gives_the_same_loss(name):
    labels = GROUPS["two items per class"]
    assert made(name, seed=3)(gaussian(28), labels) == made(name, seed=3)(gaussian(28), labels)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_float64_stays_float64_and_half_precision_is_promoted(name, device):
    labels = GROUPS["two items per class"].to(device)
    assert made(name).to(device)(gaussian(28).to(device).double(), labels).dtype == torch.float64
    loss, half = made(name).to(device), gaussian(28).to(device).half()
    torch.manual_seed(0)
    value = loss(half, labels)
    assert value.dtype == torch.float32
    torch.manual_seed(0)
    torch.testing.assert_close(value, made(name).to(device)(half.float(), labels), rtol=1e-6, atol=0)
    assert all(parameter.dtype == torch.float32 for parameter in loss.parameters())


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_autocast_changes_no_value(name):
    labels = GROUPS["two items per class"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = made(name)(gaussian(28), labels)
    assert within == made(name)(gaussian(28), labels)


@pytest.mark.parametrize(
    "name", sorted((TUPLES | RAW | {"contrastive_squared"}) - {"quadruplet", "quadruplet_two_hinges"})
)
def test_given_tuples_take_the_place_of_the_miner(name, device):
    labels, embeddings = torch.tensor([0, 0, 1, 1, 2, 2], device=device), gaussian(6).to(device)
    given = tuple(part.to(device) for part in all_triplets(labels.cpu()))
    loss = made(name).to(device)
    loss.miner = None  # calling it would fail
    expected = made(name, miner="all").to(device)(embeddings, labels)
    torch.testing.assert_close(loss(embeddings, labels, given), expected)


@pytest.mark.parametrize("name", sorted(BATCH_ONLY))
def test_losses_that_rank_the_batch_refuse_tuples(name):
    labels = torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match="indices_tuple must be None"):
        made(name)(gaussian(4), labels, all_triplets(labels))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, {}) for name in sorted(LOSSES.keys() - BATCH_ONLY)] + [("arcface", {"margin_on": "every_class"})],
)
def test_every_other_loss_looks_at_the_tuples_it_is_given(name, parameters, device):
    labels, embeddings = torch.tensor([0, 0, 1, 1, 2, 2], device=device), gaussian(6).to(device)
    triplets = [part.to(device) for part in all_triplets(labels.cpu())]
    first, last = (tuple(each[chosen] for each in triplets) for chosen in (slice(9), slice(-9, None)))
    loss = made(name, **parameters).to(device)
    assert loss(embeddings, labels, first) != loss(embeddings, labels, last)


@pytest.mark.parametrize("name", sorted(PER_CLASS))
@pytest.mark.parametrize("labels", [[0, 28], [-1, 0]])
def test_labels_outside_the_classes_are_refused(name, labels, device):
    with pytest.raises(ValueError, match=r"outside \[0, 28\)"):
        made(name).to(device)(gaussian(2).to(device), torch.tensor(labels, device=device))


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"contextual"}))  # that one has tests of its own
def test_shapes_that_do_not_belong_together_are_refused(name):
    for embeddings, labels in [(gaussian(4), torch.zeros(3)), (gaussian(4)[0], torch.zeros(6)), (gaussian(0), [])]:
        with pytest.raises(ValueError, match=r"must be \(B, D\) and \(B,\)"):
            made(name)(embeddings, torch.as_tensor(labels).long())


@pytest.mark.parametrize("name", sorted(PER_CLASS))
def test_losses_with_a_value_per_class_have_parameters_that_learn(name, device):
    loss = made(name).to(device)
    parameters = list(loss.parameters())
    assert len(parameters) == (2 if name == "part_cross_entropy" else 1)
    loss(gaussian(28).to(device), GROUPS["two items per class"].to(device)).backward()
    assert all(28 in parameter.shape and parameter.grad.abs().max() > 0 for parameter in parameters)


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - PER_CLASS))
def test_other_losses_have_no_parameters(name):
    assert not list(made(name).parameters())
