"""A batch that is too large for a device is told with one that fits."""

import pytest
import torch
from torch import nn

from lookalike.training.memory import take_step
from lookalike.training.steps import Steps

OUT = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 4.00 GiB"


class Small(nn.Module):
    """Raises what torch raises, where a device has room for so many pictures only."""

    def __init__(self, room, pairs_from=1):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.room, self.pairs_from = room, pairs_from

    def forward(self, pictures, labels):
        if len(pictures) > self.room:
            raise torch.OutOfMemoryError(OUT)
        if len(pictures) < self.pairs_from:
            raise ValueError("no pair of a class")
        return self.weight * pictures.mean()


def step(learner, count=48):
    optimiser = torch.optim.SGD(learner.parameters(), lr=0.1)
    steps = Steps(optimiser, torch.device("cpu"))
    steps.begin(0)
    take_step(steps, learner, torch.ones(count, 3, 8, 6), torch.zeros(count))
    return steps


@pytest.mark.parametrize(
    ("room", "fits"), [(47, "batch_size: 24 fits"), (11, "batch_size: 6 fits"), (0, "not even one picture fits")]
)
def test_the_line_names_batch_pictures_device_and_what_fits(room, fits):
    said = rf"a batch of 48 pictures of 8 x 6 px does not fit into the memory of cpu \(CUDA .* 20\.00 MiB\): {fits}"
    with pytest.raises(ValueError, match=said):
        step(Small(room))


def test_a_part_too_small_to_have_a_pair_is_still_one_that_fits():
    with pytest.raises(ValueError, match="batch_size: 12 fits"):
        step(Small(room=12, pairs_from=20))


def test_no_parameter_moves():
    learner = Small(room=11)
    with pytest.raises(ValueError, match="does not fit"):
        step(learner)
    assert learner.weight.item() == 1


def test_a_batch_that_fits_is_one_step():
    learner = Small(room=48)
    step(learner)
    assert learner.weight.item() == pytest.approx(0.9)
