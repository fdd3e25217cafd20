"""Training losses against loops over triplets and pairs, with plans from POT."""

from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.losses import MarginLoss, MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from pytorch_metric_learning.reducers import AvgNonZeroReducer
from torch.nn import functional as F

from lookalike.base.tensors import unit
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.loss import DIMLLoss, margin_loss, multi_similarity_loss, pair_distance
from lookalike.methods.diml.matching import Matching

LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 2])
TRIPLETS = torch.tensor([[0, 1, 2], [1, 0, 6], [2, 3, 0], [4, 5, 1], [5, 6, 3], [6, 4, 2]])
BOUNDARY = torch.tensor([0.7, 0.9, 1.2], dtype=torch.float64)


@pytest.fixture
def regions():
    """Locations that are not normalised, with classes that overlap."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(3, 1, 6, generator=generator, dtype=torch.float64)
    return 1 + centres[LABELS] + torch.randn(7, 4, 6, generator=generator, dtype=torch.float64)


def pair_by_loops(regions, k, m, swapped):
    """Plan of cosine cost, unit locations and unit mean vectors of a pair: notes, sections 2 and 5."""
    x, y = (z / z.norm(dim=1, keepdim=True) for z in (regions[k], regions[m]))
    gx, gy = (z.mean(0) / z.mean(0).norm() for z in (regions[k], regions[m]))
    mu, nu = (x @ gy).clamp(min=0), (y @ gx).clamp(min=0)
    if swapped:
        mu, nu = nu, mu
    rows, columns = mu.nonzero().flatten(), nu.nonzero().flatten()
    cost = 1 - x[rows] @ y[columns].T
    a, b = (mu / mu.sum())[rows], (nu / nu.sum())[columns]
    import ot  # a machine with a card may lack it

    plan = ot.sinkhorn(a.numpy(), b.numpy(), cost.numpy(), 0.05, stopThr=1e-11, numItermax=20_000, warn=False)
    return torch.from_numpy(plan), x[rows], y[columns], gx, gy


def distance_by_loops(regions, k, m, swapped):
    plan, x, y, gx, gy = pair_by_loops(regions, k, m, swapped)
    total = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            total += float(plan[i, j]) * math.sqrt(float((x[i] - y[j]).square().sum()) + 1e-6)
    return (total + math.sqrt(float((gx - gy).square().sum()) + 1e-6)) / 2


def similarity_by_loops(regions, swapped):
    result = torch.zeros(len(regions), len(regions), dtype=torch.float64)
    for k in range(len(regions)):
        for m in range(len(regions)):
            plan, x, y, gx, gy = pair_by_loops(regions, k, m, swapped)
            for i in range(len(x)):
                for j in range(len(y)):
                    result[k, m] += float(plan[i, j]) * (float(x[i] @ y[j]) + float(gx @ gy)) / 2
    return result


@pytest.mark.parametrize("marginal", ["cross_correlation", "swapped"])
def test_margin_loss_agrees_with_loops(regions, marginal):
    swapped = marginal == "swapped"
    total, active = 0.0, 0
    for anchor, positive, negative in TRIPLETS.tolist():
        beta = float(BOUNDARY[LABELS[anchor]])
        too_far = max(0.0, distance_by_loops(regions, anchor, positive, swapped) - beta + 0.2)
        too_near = max(0.0, beta - distance_by_loops(regions, anchor, negative, swapped) + 0.2)
        total += too_far + too_near
        active += too_far > 0 or too_near > 0
    assert 0 < active < len(TRIPLETS)  # the data cover both
    found = margin_loss(regions, TRIPLETS, LABELS, BOUNDARY, marginal=marginal)
    assert found.item() == pytest.approx(total / active, abs=3e-6)


@pytest.mark.parametrize("marginal", ["cross_correlation", "swapped"])
def test_multi_similarity_loss_agrees_with_loops(regions, marginal):
    similarity, losses = similarity_by_loops(regions, marginal == "swapped"), []
    for k in range(7):
        positives = [float(similarity[k, m]) for m in range(7) if m != k and LABELS[m] == LABELS[k]]
        negatives = [float(similarity[k, m]) for m in range(7) if LABELS[m] != LABELS[k]]
        hard_negatives = [s for s in negatives if s + 0.1 > min(positives)]
        hard_positives = [s for s in positives if s - 0.1 < max(negatives)]
        if not hard_positives or not hard_negatives:
            continue
        pull = math.log(1 + sum(math.exp(-2 * (s - 0.5)) for s in hard_positives)) / 2
        push = math.log(1 + sum(math.exp(40 * (s - 0.5)) for s in hard_negatives)) / 40
        losses.append(pull + push)
    assert 0 < len(losses) < 7  # the data cover both
    found = multi_similarity_loss(regions, LABELS, marginal=marginal)
    assert found.item() == pytest.approx(sum(losses) / len(losses), abs=3e-6)


def test_one_location_gives_the_losses_of_ordinary_embeddings(regions):
    embeddings = regions[:, 0]
    triplets = tuple(TRIPLETS.unbind(1))
    margin = margin_loss(regions[:, :1], TRIPLETS, LABELS, torch.full((3,), 0.9, dtype=torch.float64))
    library = MarginLoss(margin=0.2, nu=0, beta=0.9)
    # The library divides by the number of active hinges, DIML by that of triplets with one.
    distance = torch.cdist(F.normalize(embeddings, dim=1), F.normalize(embeddings, dim=1))
    far = (distance[triplets[0], triplets[1]] - 0.7).relu()
    near = (1.1 - distance[triplets[0], triplets[2]]).relu()
    expected = library(embeddings, LABELS, triplets) * ((far > 0).sum() + (near > 0).sum())
    found = margin * ((far > 0) | (near > 0)).sum()
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)

    # Where there is but one pair to keep, the library returns 0; so classes overlap more here.
    embeddings = 0.5 + torch.randn(7, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    criterion = MultiSimilarityLoss(2, 40, 0.5, reducer=AvgNonZeroReducer())
    expected = criterion(embeddings, LABELS, MultiSimilarityMiner(epsilon=0.1)(embeddings, LABELS))
    found = multi_similarity_loss(embeddings[:, None], LABELS)
    assert expected > 0
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)


def test_distance_of_an_image_to_itself_is_the_root_of_the_smoothing(regions):
    z = regions[:, :1].clone().requires_grad_()
    same, other = torch.tensor([0, 1]), torch.tensor([0, 5])
    distance = pair_distance(z, same, other)
    assert distance[0].item() == pytest.approx(1e-3, abs=1e-6)
    assert distance[1].item() == pytest.approx(distance_by_loops(regions[:, :1], 1, 5, swapped=False), abs=1e-9)
    distance.sum().backward()
    assert z.grad.isfinite().all()


def test_losses_do_not_depend_on_order_or_length(regions, device):
    order = torch.tensor([3, 6, 0, 5, 1, 4, 2], device=device)
    regions, triplets, labels, boundary = (each.to(device) for each in (regions, TRIPLETS, LABELS, BOUNDARY))
    place, lengths = order.argsort(), torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0, 4.0, 0.1], dtype=torch.float64)
    scaled = regions * lengths.to(device)[:, None, None]
    margin = margin_loss(regions, triplets, labels, boundary)
    shuffled = margin_loss(scaled[order], place[triplets], labels[order], boundary)
    torch.testing.assert_close(shuffled, margin, atol=1e-9, rtol=0)
    similarity = multi_similarity_loss(regions, labels)
    torch.testing.assert_close(multi_similarity_loss(scaled[order], labels[order]), similarity, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", ["margin", "multi_similarity"])
def test_gradients_treat_the_plan_as_a_constant_unless_asked(regions, kind, monkeypatch):
    def value(z, **options):
        if kind == "margin":
            return margin_loss(z, TRIPLETS, LABELS, BOUNDARY, tolerance=0.0, **options)
        return multi_similarity_loss(z, LABELS, tolerance=0.0, **options)

    z = regions.clone().requires_grad_()
    through = torch.autograd.grad(value(z, plan_gradient=True), z)[0]
    constant = torch.autograd.grad(value(z), z)[0]
    assert not torch.allclose(through, constant, atol=1e-4)

    fixed = []  # the plans of the regions as they are, whatever the regions are changed to
    original = Matching._plans
    monkeypatch.setattr(Matching, "_plans", lambda *arguments: fixed.append(original(*arguments)) or fixed[-1])
    value(regions)
    step, generator = 1e-6, torch.Generator().manual_seed(2)
    direction = torch.randn(regions.shape, generator=generator, dtype=torch.float64)

    def slope():
        up, down = value(regions + step * direction), value(regions - step * direction)
        return float(up - down) / (2 * step)

    monkeypatch.setattr(Matching, "_plans", lambda *arguments: fixed[0])
    assert float((constant * direction).sum()) == pytest.approx(slope(), abs=1e-6)
    monkeypatch.setattr(Matching, "_plans", original)
    assert float((through * direction).sum()) == pytest.approx(slope(), abs=1e-6)


def test_every_pair_meets_the_boundary_of_its_own_anchor(regions):
    boundary = BOUNDARY.clone().requires_grad_()
    anchor_of_class_two = TRIPLETS[3:]
    margin_loss(regions, anchor_of_class_two, LABELS, boundary).backward()
    assert boundary.grad[:2].tolist() == [0.0, 0.0]
    assert boundary.grad[2] != 0


@pytest.mark.parametrize("labels", [[0] * 7, list(range(7))])
def test_batches_without_pairs_of_a_kind_give_zero_with_a_gradient(regions, labels, device):
    z = regions.to(device).requires_grad_()
    labels = torch.tensor(labels, device=device)
    for kind in ("margin", "multi_similarity"):
        loss = DIMLLoss(kind, 7).to(device)(z, labels)
        assert loss.item() == 0
        assert not torch.autograd.grad(loss, z)[0].any()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_collapsed_regions_give_numbers(value, device):
    z = torch.full((7, 4, 6), value, device=device, requires_grad=True)
    for kind in ("margin", "multi_similarity"):
        loss = DIMLLoss(kind, 3, plan_gradient=True).to(device)(z, LABELS.to(device))
        assert loss.isfinite()
        assert torch.autograd.grad(loss, z)[0].isfinite().all()


def test_module_draws_its_triplets_and_learns_boundaries(regions):
    first = DIMLLoss("margin", 3, generator=torch.Generator().manual_seed(1))
    second = DIMLLoss("margin", 3, generator=torch.Generator().manual_seed(1))
    loss = first(regions, LABELS)
    assert loss == second(regions, LABELS)
    loss.backward()
    assert first.term.boundaries.shape == (3,)
    assert first.term.boundaries.tolist() == [pytest.approx(1.2)] * 3
    assert first.term.boundaries.grad.any()
    generator = torch.Generator().manual_seed(1)
    triplets = torch.stack(type(first.term.miner)(generator=generator)(mean_vector(regions), LABELS), dim=1)
    expected = margin_loss(regions, triplets, LABELS, torch.full((3,), 1.2, dtype=torch.float64))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


def test_module_passes_its_numbers_on(regions):
    options = {"alpha": 1.0, "beta": 10.0, "base": 0.3, "epsilon": 0.5, "marginal": "uniform", "reg": 0.1}
    module = DIMLLoss("multi_similarity", 3, **options)
    assert module(regions, LABELS) == multi_similarity_loss(regions, LABELS, **options)
    assert not list(module.parameters())


def test_half_precision_is_computed_in_float32(regions):
    loss = DIMLLoss("multi_similarity", 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss(regions.bfloat16(), LABELS)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(multi_similarity_loss(regions, LABELS).item(), abs=0.05)


def test_training_lowers_the_losses(regions):
    for kind in ("margin", "multi_similarity"):
        z = regions.float().requires_grad_()
        loss = DIMLLoss(kind, 3, **({"generator": torch.Generator().manual_seed(0)} if kind == "margin" else {}))
        optimiser = torch.optim.Adam([z, *loss.parameters()], lr=0.03)
        values = []
        for _ in range(20):
            optimiser.zero_grad()
            value = loss(z, LABELS)
            value.backward()
            optimiser.step()
            values.append(value.item())
        assert values[-1] < 0.8 * values[0]


def test_wrong_arguments_are_refused(regions):
    for call, error, message in (
        (lambda: margin_loss(regions, TRIPLETS[:, :2], LABELS, BOUNDARY), ValueError, "triplets"),
        (lambda: margin_loss(regions, TRIPLETS + 1, LABELS, BOUNDARY), ValueError, "triplets holds 1 to 7"),
        (lambda: margin_loss(regions, TRIPLETS, LABELS, BOUNDARY[:2]), ValueError, "labels holds 0 to 2"),
        (lambda: margin_loss(regions, TRIPLETS, LABELS, BOUNDARY[None]), ValueError, "boundary"),
        (lambda: margin_loss(regions, TRIPLETS, LABELS[:3], BOUNDARY), ValueError, "labels"),
        (lambda: margin_loss(regions, TRIPLETS, LABELS, BOUNDARY, solver="none"), ValueError, "solver: unknown 'none'"),
        (lambda: multi_similarity_loss(regions[0], LABELS), ValueError, "regions"),
        (lambda: multi_similarity_loss(regions[:0], LABELS[:0]), ValueError, "B >= 1"),
        (lambda: multi_similarity_loss(regions, LABELS, reg=0.0), ValueError, "reg=0.0"),
        (lambda: DIMLLoss("triplet", 3), ValueError, "kind: unknown 'triplet'.*margin"),
        (lambda: DIMLLoss("margin", 0), ValueError, "classes=0"),
        (lambda: DIMLLoss("margin", 3, reg=-1.0), ValueError, "reg=-1.0"),
        (lambda: DIMLLoss("multi_similarity", 3, marginal="all"), ValueError, "marginal: unknown 'all'"),
        (lambda: DIMLLoss("margin", 3, alpha=2.0), TypeError, "alpha"),
        (lambda: DIMLLoss("multi_similarity", 2)(regions, LABELS), ValueError, "labels holds 0 to 2"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_unit_and_mean_are_taken_inside(regions):
    module = DIMLLoss("multi_similarity", 3)
    assert module(regions, LABELS) != module(unit(regions), LABELS)  # the mean is that of vectors not yet normalised
