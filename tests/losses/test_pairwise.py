from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning import losses as library
from torch.autograd import gradcheck

from lookalike.losses.pairwise import HistogramLoss, MultiSimilarityLoss, NTXentLoss


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
