"""Edges against loops written from the method's description."""

import math

import pytest
import torch

from lookalike.methods.avsl.graph import Step, batch_edges, normalise_edges, update_edges


def looped_edges(upper, lower):
    """Mean cosine of maps; the lower map's side is twice the upper's."""
    images, nodes, height, width = upper.shape
    edges = torch.zeros(nodes, lower.shape[1], dtype=upper.dtype)
    for n in range(images):
        for i in range(nodes):
            for j in range(lower.shape[1]):
                above = [float(upper[n, i, h, w]) for h in range(height) for w in range(width)]
                below = [
                    sum(float(lower[n, j, 2 * h + a, 2 * w + b]) for a in (0, 1) for b in (0, 1)) / 4
                    for h in range(height)
                    for w in range(width)
                ]
                lengths = [max(math.sqrt(sum(v * v for v in side)), 1e-12) for side in (above, below)]
                edges[i, j] += sum(a * b for a, b in zip(above, below, strict=True)) / (lengths[0] * lengths[1])
    return edges / images


def looped_normalisation(state, k):
    edges = torch.zeros_like(state)
    for i, row in enumerate(state.tolist()):
        positive = [max(value, 0.0) for value in row]
        threshold = sorted(positive, reverse=True)[k - 1] - 1e-8
        kept = [value if value >= threshold else 0.0 for value in positive]
        for j, value in enumerate(kept):
            edges[i, j] = value / (sum(kept) + 1e-8)
    return edges


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(5)


def test_batch_edges_equal_the_loops(generator):
    upper = torch.randn(3, 4, 2, 3, generator=generator, dtype=torch.float64)
    lower = torch.randn(3, 5, 4, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(batch_edges(upper, lower), looped_edges(upper, lower), atol=1e-12, rtol=0)


def test_edge_of_a_map_with_itself_is_one_and_with_its_negative_minus_one(generator):
    cams = torch.randn(2, 1, 3, 3, generator=generator, dtype=torch.float64)
    edges = batch_edges(cams, torch.cat([cams, -cams], dim=1))
    torch.testing.assert_close(edges, torch.tensor([[1.0, -1.0]], dtype=torch.float64), atol=1e-12, rtol=0)


def test_all_zero_maps_have_no_edges():
    assert not batch_edges(torch.zeros(2, 3, 2, 2), torch.ones(2, 3, 4, 4)).any()


def test_first_batch_is_copied_and_later_ones_are_mixed_in(generator):
    first, second = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    state = update_edges(None, first, 0.5)
    assert torch.equal(state, first)
    assert state.data_ptr() != first.data_ptr()
    torch.testing.assert_close(update_edges(state, second, 0.25), 0.25 * first + 0.75 * second, atol=1e-15, rtol=0)
    assert torch.equal(update_edges(state, second, 0.0), second)
    assert torch.equal(update_edges(state, second, 1.0), first)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_normalised_edges_equal_the_loops(generator, k):
    state = torch.randn(5, 7, generator=generator, dtype=torch.float64)
    state[2] = -state[2].abs()  # a row without a positive edge
    state[3, 1:4] = state[3].max() + 0.5  # ties at the top
    torch.testing.assert_close(normalise_edges(state, k), looped_normalisation(state, k), atol=1e-12, rtol=0)


def test_rows_sum_to_one_and_an_empty_row_to_zero(generator):
    state = torch.rand(4, 6, generator=generator, dtype=torch.float64)
    state[1] = -1
    sums = normalise_edges(state, 3).sum(dim=1)
    torch.testing.assert_close(sums, torch.tensor([1.0, 0, 1, 1], dtype=torch.float64), atol=1e-7, rtol=0)
    assert sums[1] == 0


def test_exact_ties_keep_more_than_k_edges():
    assert normalise_edges(torch.tensor([[0.5, 0.5, 0.5, 0.1]]), 2).count_nonzero() == 3


def test_normalised_edges_of_zero_state_are_zero():
    assert not normalise_edges(torch.zeros(3, 3), 2).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch_edges(torch.zeros(2, 3, 2, 2), torch.zeros(3, 3, 2, 2)), "same N"),
        (lambda: batch_edges(torch.zeros(2, 3, 4), torch.zeros(2, 3, 2, 2)), "N, r, H, W"),
        (lambda: update_edges(None, torch.zeros(2, 2), 1.5), "momentum=1.5"),
        (lambda: update_edges(None, torch.zeros(2, 2), -0.1), "momentum=-0.1"),
        (lambda: update_edges(torch.zeros(3, 3), torch.zeros(2, 2), 0.5), "state has shape"),
        (lambda: normalise_edges(torch.zeros(2, 3), 0), "k=0 is outside"),
        (lambda: normalise_edges(torch.zeros(2, 3), 4), "k=4 is outside"),
        (lambda: normalise_edges(torch.zeros(3), 1), "state has shape"),
    ],
)
def test_wrong_edges_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("nodes", [6, 16, 128])
def test_equal_pairs_are_predicted_alike_however_many_stand_beside_them(nodes):
    """MKL rounds the rows beyond a multiple of four otherwise on processors without AMX."""
    edges, pair = torch.rand(2, nodes, nodes, dtype=torch.float64)[0], torch.rand(nodes, dtype=torch.float64)
    step = Step(edges[0], edges[0], edges, None)
    found = [step.predict(pair.expand(count, nodes)) for count in (1, 2, 3, 5, 31, 64, 67)]
    assert torch.cat(found).unique(dim=0).shape == (1, nodes)
    square = step.predict(pair.expand(3, 7, nodes))
    assert square.shape == (3, 7, nodes)
    assert torch.equal(square[1, 2], found[0][0])
