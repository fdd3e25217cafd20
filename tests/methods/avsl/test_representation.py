"""Representations can be moved, cut, joined and stored."""

import pytest
import torch
from safetensors.torch import load, save

from lookalike.methods.avsl.representation import Explanation, Representation


def make(count, seed=0, maps=True):
    generator = torch.Generator().manual_seed(seed)
    return Representation(
        tuple(torch.randn(count, 4, generator=generator) for _ in range(3)),
        tuple(torch.rand(count, 4, generator=generator) for _ in range(3)),
        tuple(torch.randn(count, 4, side, side, generator=generator) for side in (4, 2, 1)) if maps else (),
    )


def equal(left, right):
    one, other = left.state(), right.state()
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("maps", [True, False])
def test_stored_representation_comes_back_the_same(maps):
    representation = make(3, maps=maps)
    assert equal(Representation.from_state(load(save(representation.state()))), representation)


def test_state_names_field_and_level():
    assert list(make(2, maps=False).state()) == [
        "embeddings.0", "embeddings.1", "embeddings.2", "statistics.0", "statistics.1", "statistics.2",
    ]  # fmt: skip


def test_joined_parts_equal_the_whole():
    whole = make(5)
    assert equal(Representation.cat([whole[:2], whole[2], whole[torch.tensor([3, 4])]]), whole)
    assert len(whole[3]) == 1
    assert len(whole[[0, 4, 4]]) == 3


def test_conversion_reaches_every_tensor():
    assert {tensor.dtype for tensor in make(2).to(torch.float64).state().values()} == {torch.float64}
    assert {tensor.device.type for tensor in make(2).to("meta").state().values()} == {"meta"}
    assert equal(make(2).cpu(), make(2))
    assert {tensor.dtype for tensor in make(2).to(torch.float16).float().state().values()} == {torch.float32}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Representation((), ()), "levels"),
        (lambda: Representation((torch.zeros(2, 3),), ()), "levels"),
        (lambda: Representation((torch.zeros(2, 3),), (torch.zeros(3, 3),)), "same number"),
        (lambda: Representation.cat([]), "parts"),
        (lambda: Representation.cat([make(2), make(2, maps=False)]), "parts"),
        (lambda: Representation.from_state({**make(2).state(), "other.0": torch.zeros(2)}), "other.0"),
        (lambda: Representation.from_state({"embeddings.1": torch.zeros(2, 3)}), "levels from 0"),
    ],
)
def test_broken_representations_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_attention_without_maps_is_refused():
    part = (torch.zeros(1, 1, 2),)
    with pytest.raises(ValueError, match="cams"):
        Explanation(torch.zeros(1, 1), part, part, part).attention((2, 2))
