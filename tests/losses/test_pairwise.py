from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning import losses as library
from pytorch_metric_learning.losses import MarginLoss as LibraryMarginLoss
from torch.autograd import gradcheck

from lookalike.losses.pairwise import (
    ContrastiveLoss,
    CosineContrastiveLoss,
    HistogramLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NTXentLoss,
    SquaredContrastiveLoss,
)


def similarity(unit, i: int, j: int) -> float:
    return (unit[i] @ unit[j]).item()


def positives_and_negatives(labels, unit, i: int) -> tuple[list[float], list[float]]:
    near = [similarity(unit, i, j) for j in range(len(labels)) if j != i and labels[j] == labels[i]]
    return near, [similarity(unit, i, j) for j in range(len(labels)) if labels[j] != labels[i]]


def multi_similarity_terms(labels, unit, beta: float, epsilon: float | None) -> list[float]:
    terms = []
    for i in range(len(labels)):
        near, far = positives_and_negatives(labels, unit, i)
        if epsilon is not None:
            if not near:  # the rule compares with positives and negatives
                near, far = [], []
            else:
                near, far = (
                    [s for s in near if s - epsilon < max(far)],
                    [s for s in far if s + epsilon > min(near)],
                )
        pull = math.log(1 + sum(math.exp(-2 * (s - 0.5)) for s in near)) / 2
        push = math.log(1 + sum(math.exp(beta * (s - 0.5)) for s in far)) / beta
        terms.append(pull + push)
    return terms


def test_multi_similarity_averages_over_the_anchors_that_keep_pairs(embeddings, labels, unit):
    terms = multi_similarity_terms(labels.tolist(), unit, beta=40, epsilon=0.1)
    active = [term for term in terms if term > 0]
    assert 0 < len(active) < len(terms)
    assert MultiSimilarityLoss()(embeddings, labels).item() == pytest.approx(sum(active) / len(active), abs=1e-10)


def test_multi_similarity_of_the_contextual_paper_averages_over_the_batch(embeddings, labels, unit):
    for miner, epsilon in [("multi_similarity", 0.1), (None, None)]:
        terms = multi_similarity_terms(labels.tolist(), unit, beta=50, epsilon=epsilon)
        loss = MultiSimilarityLoss(beta=50, average_over="all", miner=miner)
        assert loss(embeddings, labels).item() == pytest.approx(sum(terms) / len(terms), abs=1e-10)
    with pytest.raises(ValueError, match="average_over: unknown 'batch', did you mean"):
        MultiSimilarityLoss(average_over="batch")


def test_ntxent_compares_each_positive_with_all_negatives_of_its_anchor(embeddings, labels, unit):
    terms = []
    for i in range(8):
        near, far = positives_and_negatives(labels.tolist(), unit, i)
        for s in near:
            terms.append(math.log(math.exp(s / 0.07) + sum(math.exp(t / 0.07) for t in far)) - s / 0.07)
    assert NTXentLoss()(embeddings, labels).item() == pytest.approx(sum(terms) / len(terms), abs=1e-9)


def histogram_by_loops(labels, unit, bins: int) -> float:
    delta = 2 / bins
    nodes = [-1 + r * delta for r in range(bins + 1)]
    near, far = [0.0] * (bins + 1), [0.0] * (bins + 1)
    counts = {True: 0, False: 0}
    for i in range(len(labels)):
        for j in range(i):
            same = bool(labels[i] == labels[j])
            counts[same] += 1
            for r, node in enumerate(nodes):
                (near if same else far)[r] += max(0.0, 1 - abs(similarity(unit, i, j) - node) / delta)
    total = 0.0
    for r in range(bins + 1):
        for q in range(r + 1):
            total += far[r] / counts[False] * near[q] / counts[True]
    return total


@pytest.mark.parametrize("bins", [64, 10, 1])
def test_histogram_loss_equals_its_definition(bins, embeddings, labels, unit):
    loss = HistogramLoss(bins=bins)(embeddings, labels)
    assert loss.item() == pytest.approx(histogram_by_loops(labels, unit, bins), abs=1e-12)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")  # the library's
@pytest.mark.parametrize("bins", [64, 10])
def test_histogram_loss_equals_the_library(bins):
    labels = torch.arange(5).repeat_interleave(3)
    embeddings = torch.randn(15, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = library.HistogramLoss(n_bins=bins)(embeddings, labels)
    torch.testing.assert_close(HistogramLoss(bins=bins)(embeddings, labels), expected, rtol=0, atol=1e-6)


def test_histogram_loss_of_pairs_at_the_ends_of_the_range():
    embeddings = torch.tensor([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])  # a positive pair at 1, negatives at -1
    assert HistogramLoss()(embeddings, torch.tensor([0, 0, 1])) == 0
    # A positive pair at -1, negatives at 1 and -1: each negative is at least as similar as the positive.
    assert HistogramLoss()(embeddings, torch.tensor([0, 1, 0])) == 1


def test_histogram_loss_counts_a_pair_once_whatever_its_order(embeddings, labels, triplets):
    a, p, n = triplets
    turned = torch.cat([a, p]), torch.cat([p, a]), torch.cat([a, n]), torch.cat([n, a])
    torch.testing.assert_close(
        HistogramLoss()(embeddings, labels, turned), HistogramLoss()(embeddings, labels, triplets), rtol=0, atol=1e-12
    )


def test_the_gradient_of_the_histogram_loss_is_that_of_finite_differences(embeddings, labels):
    assert gradcheck(lambda e: HistogramLoss(bins=8)(e, labels), embeddings.requires_grad_(), atol=1e-6)


def test_a_histogram_without_bins_is_refused():
    with pytest.raises(ValueError, match="bins=0 must be at least 1"):
        HistogramLoss(bins=0)


def test_contrastive_loss_averages_positive_distances_and_negative_hinges_apart(embeddings, labels, unit, triplets):
    distance = lambda i, j: (unit[i] - unit[j]).square().sum().sqrt().item()  # noqa: E731
    rows = list(zip(*[part.tolist() for part in triplets], strict=True))
    near = sum(distance(a, p) for a, p, _ in rows) / len(rows)
    far = sum(max(0.0, 1.0 - distance(a, n)) for a, _, n in rows) / len(rows)
    loss = ContrastiveLoss()(embeddings, labels, triplets)
    assert loss.item() == pytest.approx(near + far, abs=1e-7)
    assert far > 0


def test_cosine_contrastive_loss_averages_over_the_violating_pairs(embeddings, labels, unit):
    too_low, too_high = [], []
    for i in range(8):
        for j in range(8):
            similarity = (unit[i] @ unit[j]).item()
            if i != j and labels[i] == labels[j]:
                too_low += [0.9 - similarity] if similarity < 0.9 else []
            elif labels[i] != labels[j]:
                too_high += [similarity - 0.6] if similarity > 0.6 else []
    expected = sum(too_low) / len(too_low) + sum(too_high) / len(too_high)
    assert CosineContrastiveLoss()(embeddings, labels).item() == pytest.approx(expected, abs=1e-12)


def test_cosine_contrastive_loss_of_classes_apart_is_zero_with_a_gradient():
    embeddings = torch.eye(4)[[0, 0, 1, 1]].requires_grad_()
    loss = CosineContrastiveLoss()(embeddings, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert loss == 0
    assert embeddings.grad.abs().max() == 0


@pytest.mark.parametrize("margin", [0.5, 1.0])
def test_squared_contrastive_loss_pulls_all_positives_and_pushes_negatives_within_the_margin(
    margin, embeddings, labels, unit
):
    positives, negatives = [], []
    for i in range(8):
        for j in range(8):
            distance = (unit[i] - unit[j]).square().sum().sqrt().item()
            if i != j and labels[i] == labels[j]:
                positives.append(distance**2)
            elif labels[i] != labels[j] and distance < margin:
                negatives.append((margin - distance) ** 2)
    assert 0 < len(negatives) < 48
    expected = sum(positives) / len(positives) + sum(negatives) / len(negatives)
    loss = SquaredContrastiveLoss(margin=margin)
    assert loss(embeddings, labels).item() == pytest.approx(expected, abs=1e-12)
    assert gradcheck(lambda e: loss(e, labels), embeddings.requires_grad_(), atol=1e-6)


def test_squared_contrastive_loss_takes_the_pairs_it_is_given(embeddings, labels, unit):
    pairs = torch.tensor([0]), torch.tensor([1]), torch.tensor([2]), torch.tensor([0])
    expected = (unit[0] - unit[1]).square().sum() + (1.9 - (unit[2] - unit[0]).square().sum().sqrt()).clamp_min(0) ** 2
    loss = SquaredContrastiveLoss(margin=1.9)
    assert loss(embeddings, labels, pairs).item() == pytest.approx(expected.item(), abs=1e-12)


def test_squared_contrastive_loss_of_equal_embeddings_is_finite_with_a_gradient():
    embeddings = torch.ones(4, 3, requires_grad=True)
    loss = SquaredContrastiveLoss()(embeddings, torch.tensor([0, 0, 1, 1]))
    loss.backward()
    assert loss.item() == pytest.approx(0.25)
    assert embeddings.grad.isfinite().all()


def with_boundaries(values: list[float], **options) -> MarginLoss:
    loss = MarginLoss(classes=len(values), **options).double()
    with torch.no_grad():
        loss.boundaries.copy_(torch.tensor(values))
    return loss


@pytest.mark.parametrize("divisor", ["either", "both"])
@pytest.mark.parametrize("boundaries", [[1.2] * 4, [0.4, 1.5, 1.0, 0.9]])
def test_margin_loss_equals_its_definition(divisor, boundaries, embeddings, labels, unit, triplets):
    total, either, both = 0.0, 0, 0
    for a, p, n in zip(*[part.tolist() for part in triplets], strict=True):
        boundary = torch.tensor(boundaries)[labels[a]].item()  # the boundaries are float32
        too_far = max(0.0, (unit[a] - unit[p]).square().sum().sqrt().item() - boundary + 0.2)
        too_near = max(0.0, boundary - (unit[a] - unit[n]).square().sum().sqrt().item() + 0.2)
        total += too_far + too_near
        either += too_far > 0 or too_near > 0
        both += (too_far > 0) + (too_near > 0)
    expected = total / {"either": either, "both": both}[divisor]
    loss = with_boundaries(boundaries, divisor=divisor)
    assert loss(embeddings, labels, triplets).item() == pytest.approx(expected, abs=1e-12)


def test_the_two_divisors_differ_where_both_terms_of_a_triplet_are_positive(embeddings, labels, triplets):
    either = with_boundaries([1.0] * 4, divisor="either")(embeddings, labels, triplets)
    both = with_boundaries([1.0] * 4, divisor="both")(embeddings, labels, triplets)
    assert either > both


def test_the_divisor_both_is_the_library(embeddings, labels, triplets):
    library = LibraryMarginLoss(margin=0.2, nu=0, beta=1.2, learn_beta=True, num_classes=4)
    loss = MarginLoss(classes=4, divisor="both")
    expected = library(embeddings, labels, triplets)
    torch.testing.assert_close(loss(embeddings, labels, triplets), expected, rtol=0, atol=1e-7)
    expected.backward()
    loss(embeddings, labels, triplets).backward()
    torch.testing.assert_close(loss.boundaries.grad, library.beta.grad, rtol=0, atol=1e-6)


def test_only_boundaries_of_anchors_learn(embeddings, labels, triplets):
    loss = MarginLoss(classes=6)
    loss(embeddings, labels, triplets).backward()
    assert (loss.boundaries.grad != 0).tolist() == [True, True, False, True, False, False]


def test_gradients_of_the_margin_loss_are_those_of_finite_differences(embeddings, labels, triplets):
    loss = with_boundaries([0.7, 1.1, 1.0, 0.9])
    boundaries = loss.boundaries.detach().clone().requires_grad_()

    def value(vectors, boundaries):
        return torch.func.functional_call(loss, {"boundaries": boundaries}, (vectors, labels, triplets))

    assert gradcheck(value, (embeddings.requires_grad_(), boundaries), atol=1e-6)


def test_an_unknown_divisor_is_refused():
    with pytest.raises(ValueError, match="divisor: unknown 'sum', did you mean"):
        MarginLoss(classes=2, divisor="sum")
