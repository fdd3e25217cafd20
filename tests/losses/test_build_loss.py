from __future__ import annotations

import inspect
from typing import Unpack

import pytest
import torch
from torch import nn

from lookalike.losses import LOSSES, arguments_of, build_loss
from lookalike.losses.base import BatchLoss, Mining, MiningOptions
from lookalike.losses.pairwise import MarginLoss
from lookalike.sampling.miners import MINERS, SemihardMiner
from lookalike.workflow.settings.sources import code

NAMES = {
    *("contrastive", "contrastive_cosine", "triplet", "triplet_random", "triplet_semihard", "triplet_softhard"),
    *("triplet_distance", "npair", "angular", "gen_lifted", "proxy_nca", "proxy_nca_softmax", "histogram"),
    *("quadruplet", "snr", "softmax", "margin", "arcface", "multi_similarity", "proxy_anchor", "ntxent", "fast_ap"),
    *("smooth_ap", "roadmap", "softbin_ap", "blackbox_ap", "contextual", "contrastive_squared"),
    *("quadruplet_two_hinges", "part_cross_entropy"),
}


def test_every_baseline_has_its_name():
    assert LOSSES.keys() >= NAMES


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_is_found_in_the_syntax_tree_with_all_its_arguments(name):
    definition = code.lookup("lookalike.losses", "LOSSES")[name]
    assert code.constructor_arguments(definition) == arguments_of(LOSSES[name]).keys()


def test_mining_options_are_the_keywords_of_a_loss_of_tuples_and_no_loss_takes_others():
    assert MiningOptions.__annotations__.keys() == inspect.signature(BatchLoss).parameters.keys() - {"classes"}
    for loss in (loss for loss in LOSSES.values() if "miner" in arguments_of(loss)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'minor'"):
            loss(minor="random", **({"classes": 2} if loss is MarginLoss else {}))


@pytest.mark.parametrize("name", sorted(name for name in LOSSES if getattr(LOSSES[name], "mining", Mining()).miner))
def test_the_miner_that_a_loss_states_is_built_and_is_part_of_its_code(name):
    stated = LOSSES[name].mining
    loss = build_loss(name, {}, classes=2, embedding_dim=2)
    assert type(loss.miner) is MINERS[stated.miner]
    assert {key: getattr(loss.miner, key) for key in stated.parameters or {}} == (stated.parameters or {})
    definition = code.lookup("lookalike.losses", "LOSSES")[name]
    assert stated.miner in code._defaults(code._closure((definition,), frozenset()))


class ShortLoss(BatchLoss):
    mining = Mining("semihard", {"triplets_per_anchor": 2})

    def batch_loss(self, embeddings, labels, tuples):
        return embeddings[tuples[0]].sum()


class LongerLoss(ShortLoss):
    def __init__(self, *, weight: float = 1.0, **mining: Unpack[MiningOptions]):
        super().__init__(**mining)
        self.weight = weight


@pytest.mark.parametrize("kind", [ShortLoss, LongerLoss])
def test_a_loss_states_its_miner_and_can_be_told_another(kind, monkeypatch):
    monkeypatch.setitem(LOSSES, "short", kind)
    build = lambda **parameters: build_loss("short", parameters, classes=2, embedding_dim=2).miner  # noqa: E731
    assert isinstance(build(), SemihardMiner)
    assert build().triplets_per_anchor == 2
    assert build(miner="semihard").triplets_per_anchor == 2
    assert build(miner="softhard").triplets_per_anchor == 1
    assert build(miner_parameters={}).triplets_per_anchor == 1
    assert build(miner=None) is None
    generator = torch.Generator()
    assert kind(generator=generator).miner.generator is generator
    with pytest.raises(ValueError, match="loss 'short', parameter: unknown 'minor', did you mean 'miner'"):
        build(minor="random")


def test_a_parameter_that_a_loss_needs_is_asked_for():
    given = {"eps": 0.05, "lam": 0.4, "gamma": 0.1, "target_similarity": 0.3, "negative_margin": 0.6}
    with pytest.raises(ValueError, match=r"loss 'contextual' needs k, positive_margin$"):
        build_loss("contextual", given, classes=2, embedding_dim=2)


def test_a_loss_without_a_constructor_of_its_own_needs_nothing_and_takes_nothing(monkeypatch):
    class PullLoss(nn.Module):
        def forward(self, embeddings, labels, indices_tuple=None):
            return embeddings.square().mean()

    monkeypatch.setitem(LOSSES, "pull", PullLoss)
    assert isinstance(build_loss("pull", {}, classes=2, embedding_dim=2), PullLoss)
    with pytest.raises(ValueError, match="loss 'pull', parameter: unknown 'margin'"):
        build_loss("pull", {"margin": 0.1}, classes=2, embedding_dim=2)


def test_parameters_reach_the_loss():
    loss = build_loss("margin", {"margin": 0.3, "boundary": 1.0, "miner": None}, classes=7, embedding_dim=5)
    assert isinstance(loss, MarginLoss)
    assert loss.margin == 0.3
    assert loss.miner is None
    assert loss.boundaries.tolist() == [1.0] * 7


def test_parameters_of_the_miner_reach_it():
    loss = build_loss(
        "contrastive", {"miner_parameters": {"upper": 1.4, "triplets_per_anchor": 3}}, classes=7, embedding_dim=5
    )
    assert (loss.miner.upper, loss.miner.triplets_per_anchor) == (1.4, 3)


@pytest.mark.parametrize("name", ["softmax", "arcface", "proxy_nca", "proxy_nca_softmax", "proxy_anchor"])
def test_the_start_of_class_vectors_comes_from_the_generator(name):
    def start(seed):
        generator = torch.Generator().manual_seed(seed)
        (vectors,) = build_loss(name, {}, classes=9, embedding_dim=4, generator=generator).parameters()
        return vectors

    assert torch.equal(start(0), start(0))
    assert not torch.equal(start(0), start(1))
    assert start(0).numel() == 36


def test_the_triplet_loss_mines_like_the_library_unless_told_otherwise():
    build = lambda **parameters: build_loss("triplet", parameters, classes=2, embedding_dim=2).miner  # noqa: E731
    assert (build().upper, build().triplets_per_anchor) == (1.4, 4)
    assert build(miner_parameters={}).upper is None
    assert build(miner="semihard").triplets_per_anchor == 1


def test_an_unknown_loss_is_refused_with_the_nearest_names():
    with pytest.raises(ValueError, match="loss: unknown 'proxyanchor', did you mean 'proxy_anchor'"):
        build_loss("proxyanchor", {}, classes=2, embedding_dim=2)
    with pytest.raises(ValueError, match=r"angular, arcface, .*, triplet_softhard"):
        build_loss("zzz", {}, classes=2, embedding_dim=2)


@pytest.mark.parametrize("unknown", ["alfa", "classes", "embedding_dim", "generator"])
def test_an_unknown_parameter_is_refused_with_the_known_ones(unknown):
    with pytest.raises(
        ValueError,
        match=f"loss 'proxy_anchor', parameter: unknown '{unknown}', did you mean '.*'. Known: margin, scale",
    ):
        build_loss("proxy_anchor", {unknown: 1}, classes=2, embedding_dim=2)


def test_an_unknown_miner_or_parameter_of_it_is_refused():
    with pytest.raises(ValueError, match="miner: unknown 'hard', did you mean 'hardest'"):
        build_loss("triplet_random", {"miner": "hard"}, classes=2, embedding_dim=2)
    with pytest.raises(ValueError, match="miner 'random', parameter: unknown 'upper'"):
        build_loss("triplet", {"miner": "random", "miner_parameters": {"upper": 1}}, classes=2, embedding_dim=2)
    with pytest.raises(ValueError, match="without a miner"):
        build_loss("margin", {"miner": None, "miner_parameters": {"lower": 0.1}}, classes=2, embedding_dim=2)
