"""Representations can be moved, cut, joined and stored."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load, save

from lookalike.methods.diml.representation import Representation


def make(count, seed=0, locations=4):
    generator = torch.Generator().manual_seed(seed)
    return Representation(
        torch.randn(count, locations, 6, generator=generator), torch.randn(count, 6, generator=generator)
    )


def equal(left, right):
    return all(torch.equal(left.state()[key], right.state()[key]) for key in ("regions", "global_vector"))


def test_stored_representation_comes_back_the_same():
    assert equal(Representation.from_state(load(save(make(3).state()))), make(3))
    view = Representation(make(3).regions.mT.contiguous().mT, make(3).global_vector)
    assert equal(Representation.from_state(load(save(view.state()))), make(3))


def test_joined_parts_equal_the_whole():
    whole = make(5)
    assert equal(Representation.cat([whole[:2], whole[2], whole[torch.tensor([3, 4])]]), whole)
    assert len(whole[3]) == 1
    assert equal(whole[[0, -1, 4]], whole[torch.tensor([0, 4, 4])])


def test_conversion_reaches_every_tensor():
    assert {tensor.dtype for tensor in make(2).to(torch.float64).state().values()} == {torch.float64}
    assert {tensor.device.type for tensor in make(2).to("meta").state().values()} == {"meta"}
    assert equal(make(2).cpu(), make(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Representation(torch.zeros(2, 3), torch.zeros(2, 3)), "regions"),
        (lambda: Representation(torch.zeros(2, 4, 3), torch.zeros(3, 3)), "global_vector"),
        (lambda: Representation(torch.zeros(2, 4, 3), torch.zeros(2, 4)), "global_vector"),
        (lambda: Representation.cat([]), "parts"),
        (lambda: Representation.cat([make(2), make(2, locations=9)]), "parts"),
        (lambda: Representation.from_state({"regions": torch.zeros(2, 4, 3)}), "global_vector"),
        (lambda: Representation.from_state({**make(2).state(), "other": torch.zeros(2)}), "other"),
    ],
)
def test_wrong_parts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
