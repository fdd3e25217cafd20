"""Losses are read now and then, and what happens in between is as if they had been read at once.

A batch that is too large for a device is told with one that fits.
"""

import pytest
import torch
from torch import nn

from lookalike.workflow.training.steps import Steps, take_step

CPU = torch.device("cpu")


def steps_of(network, *, read_every, scaled=False, clip_norm=None):
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.1, fused=read_every > 1 or None)
    device = network.weight.device
    return optimiser, Steps(optimiser, device, scaled=scaled, clip_norm=clip_norm, read_every=read_every)


def network(device="cpu"):
    torch.manual_seed(0)
    return nn.Linear(3, 1).to(device)


def take(net, optimiser, steps, factors):
    for factor in factors:
        optimiser.zero_grad()
        steps.take((net(torch.full((2, 3), 0.5, device=net.weight.device)) ** 2).sum() * factor)


def test_read_late_the_losses_are_those_read_at_once(device):
    found = []
    for every in (1, 4):
        net = network(device)
        optimiser, steps = steps_of(net, read_every=every)
        steps.begin(0)
        take(net, optimiser, steps, [1.0] * 6)
        steps.read()
        found.append(steps.losses)
    assert len(found[0]) == 6
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize(("scaled", "clip_norm"), [(False, None), (False, 1.0), (True, None), (True, 1.0)])
def test_the_first_loss_that_is_no_number_is_named_and_no_later_step_changes_a_weight(scaled, clip_norm, device):
    net = network(device)
    optimiser, steps = steps_of(net, read_every=5, scaled=scaled, clip_norm=clip_norm)
    steps.begin(6)
    take(net, optimiser, steps, [1.0, 1.0])
    before = [parameter.detach().clone() for parameter in net.parameters()]
    take(net, optimiser, steps, [torch.nan, 1.0])
    with pytest.raises(ValueError, match=r"loss is nan at epoch 7, batch 3: training diverged"):
        take(net, optimiser, steps, [1.0])
    for parameter, old in zip(net.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_an_epoch_that_ends_between_two_readings_is_read_whole():
    net = network()
    optimiser, steps = steps_of(net, read_every=50)
    steps.begin(0)
    take(net, optimiser, steps, [1.0, torch.inf, 1.0])
    with pytest.raises(ValueError, match="loss is inf at epoch 1, batch 2"):
        steps.read()


def test_steps_that_read_at_once_stop_before_anything_is_changed():
    net = network()
    optimiser, steps = steps_of(net, read_every=1)
    steps.begin(0)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    with pytest.raises(ValueError, match="epoch 1, batch 1"):
        take(net, optimiser, steps, [torch.nan])
    assert all(torch.equal(parameter, old) for parameter, old in zip(net.parameters(), before, strict=True))


@pytest.mark.parametrize("scaled", [False, True])
def test_the_gradient_of_each_group_is_clipped_to_its_own_norm(scaled):
    steep, flat = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    optimiser = torch.optim.SGD([{"params": [steep]}, {"params": [flat]}], lr=1.0)
    steps = Steps(optimiser, CPU, scaled=scaled, clip_norm=2.0)
    steps.begin(0)
    steps.take((steep * torch.tensor([3.0, 4.0])).sum() + (flat * torch.tensor([0.6, 0.8])).sum())
    assert steep.tolist() == pytest.approx([-1.2, -1.6], rel=1e-5)  # of length 2 instead of 5
    assert flat.tolist() == pytest.approx([-0.6, -0.8], rel=1e-5)  # as it is, of length 1


@pytest.mark.parametrize("scaled", [False, True])
def test_a_resting_part_keeps_its_weights_and_its_moments(scaled):
    resting, learning = (nn.Parameter(torch.ones(2)) for _ in range(2))
    optimiser = torch.optim.AdamW([{"params": [resting], "lr": 0.0}, {"params": [learning]}], lr=0.1)
    steps = Steps(optimiser, CPU, scaled=scaled)
    steps.begin(0)
    for rate in (0.0, 0.1, 0.0):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        steps.take(resting.square().sum() + learning.square().sum())
        if rate:
            before, moment = resting.detach().clone(), optimiser.state[resting]["exp_avg"].clone()
    assert not torch.equal(before, torch.ones(2))
    assert torch.equal(resting, before)
    assert torch.equal(optimiser.state[resting]["exp_avg"], moment)
    assert (optimiser.state[resting]["step"], optimiser.state[learning]["step"]) == (1, 3)


NETWORK = nn.Linear(3, 1)
PROXY = nn.Parameter(torch.ones(1))
NO_SCALAR = [
    (lambda embeddings: embeddings.square(), r"^PullLoss gives a tensor of shape \(4, 1\), a scalar is right: "),
    (lambda embeddings: embeddings.mean(dim=0), r"^PullLoss gives a tensor of shape \(1,\), a scalar is right: "),
    (lambda embeddings: embeddings.mean().item(), r"^PullLoss gives a float, a scalar is right: "),
    (lambda embeddings: (embeddings.mean(), None), r"^PullLoss gives a tuple, a scalar is right: "),
    (lambda embeddings: embeddings.detach().mean(), r"^PullLoss gives a scalar without a gradient; it has to"),
    (lambda embeddings: (embeddings.detach() * PROXY).mean(), r"^PullLoss gives the network no gradient; it has to"),
    (
        lambda embeddings: (embeddings - torch.inf).mean() * 0,
        r"^PullLoss is nan at epoch 1, batch 1, a scalar before any",
    ),
]


@pytest.mark.parametrize(("loss", "message"), NO_SCALAR)
def test_a_loss_from_which_nothing_is_learned_is_named_at_the_first_step(loss, message):
    groups = [{"params": NETWORK.parameters(), "name": "head"}, {"params": [PROXY], "name": "proxies"}]
    optimiser = torch.optim.SGD(groups, lr=0.1)
    steps = Steps(optimiser, CPU, named="PullLoss")
    steps.begin(0)
    optimiser.zero_grad()
    before = [parameter.detach().clone() for parameter in (*NETWORK.parameters(), PROXY)]
    with pytest.raises(ValueError, match=message):
        steps.take(loss(NETWORK(torch.ones(4, 3))))
    assert all(torch.equal(*pair) for pair in zip((*NETWORK.parameters(), PROXY), before, strict=True))


def test_a_loss_that_moves_a_part_of_the_network_is_a_loss():
    trunk, head = nn.Linear(3, 3), nn.Linear(3, 1)
    groups = [{"params": trunk.parameters(), "name": "trunk"}, {"params": head.parameters(), "name": "head"}]
    steps = Steps(torch.optim.SGD(groups, lr=0.1), CPU)
    steps.begin(0)
    with torch.no_grad():
        seen = trunk(torch.ones(4, 3))
    steps.take(head(seen).square().mean())
    assert len(steps.losses) == 1


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
