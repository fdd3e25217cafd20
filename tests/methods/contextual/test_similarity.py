from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from draws import unit
from lookalike.methods.contextual.loss import contextual_loss, contextual_similarity
from lookalike.methods.contextual.similarity import VARIANTS

HEAVISIDE = [name for name in VARIANTS if "sigmoid" not in name]
UNEXPANDED = ["l1", "l1_sigmoid", "l2", "positive_only_no_expansion"]


# The paper's steps, one pair at a time, on scalars with automatic differentiation.


def theta(x: Tensor, alpha: float) -> Tensor:
    return alpha * (x - x.detach()) + (1.0 if x.item() >= 0 else 0.0)


def sigma(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x / 0.01))


def times(a: Tensor, b: Tensor) -> Tensor:
    return a * b


def total(terms) -> Tensor:
    return torch.stack(list(terms)).sum()


def share(count: Tensor, size: Tensor) -> Tensor:
    return torch.zeros_like(count) if size.item() == 0 else count / size


def contextual_by_loops(s: Tensor, k: int, eps: float, alpha: float, variant: str) -> Tensor:
    n = len(s)
    every = range(n)
    both = torch.minimum if variant == "min" else times
    D = [[2 - 2 * s[i, j] for j in every] for i in every]

    def margin(i: int, j: int, rank: int) -> Tensor:
        return (-D[i][j] + eps) + sorted(D[i][p].item() for p in every)[rank - 1]

    def membership(rank: int) -> list[list[Tensor]]:
        soft = variant in ("sigmoid", "l1_sigmoid")
        return [[sigma(margin(i, j, rank)) if soft else theta(margin(i, j, rank), alpha) for j in every] for i in every]

    N, H = membership(k), membership(max(k // 2, 1))
    if variant in ("l1", "l1_sigmoid"):
        return torch.stack([torch.stack(row) for row in N])

    r = [total(N[i]) for i in every]
    c = [total(1 - N[i][p] for p in every) for i in every]
    if variant != "no_stop_gradient":
        r, c = [x.detach() for x in r], [x.detach() for x in c]

    def intersection(i: int, j: int) -> Tensor:
        if variant == "skip_intersection":
            return N[i][j]
        inside = share(total(both(N[i][p], N[j][p]) for p in every), r[i])
        if variant.startswith("positive_only"):
            return inside * N[i][j]
        outside = share(total(both(1 - N[i][p], 1 - N[j][p]) for p in every), c[i])
        return both((inside + outside) / 2, N[i][j])

    W1 = [[intersection(i, j) for j in every] for i in every]
    if variant in ("l2", "positive_only_no_expansion"):
        return torch.stack([torch.stack(row) for row in W1])

    R = [[both(H[i][j], H[j][i]) for j in every] for i in every]
    q = [total(R[i]) for i in every]
    if variant == "detach_reciprocal":
        q = [x.detach() for x in q]
    W2 = [[share(total(both(R[i][p], W1[p][j]) for p in every), q[i]) for j in every] for i in every]
    return torch.stack([torch.stack([(W2[i][j] + W2[j][i]) / 2 for j in every]) for i in every])


def loss_by_loops(w: Tensor, labels: Tensor) -> Tensor:
    n = len(w)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    return total((float(labels[i] == labels[j]) - w[i, j]) ** 2 for i, j in pairs) / n**2


def cosine(n: int, d: int, seed: int) -> Tensor:
    embeddings = unit(n, d, seed)
    return embeddings @ embeddings.T


def with_duplicates(n: int, seed: int) -> Tensor:
    embeddings = unit(n, 4, seed)
    embeddings[1] = embeddings[0]
    embeddings[4:7] = embeddings[3]
    return embeddings @ embeddings.T


def asymmetric(n: int, seed: int) -> Tensor:
    similarity = torch.rand(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1
    return similarity.fill_diagonal_(1)


CASES = {
    "plain": (cosine(8, 4, 0), 4, 0.05),
    "no margin, odd k": (cosine(7, 3, 1), 3, 0.0),
    "wide margin": (cosine(8, 3, 2), 2, 0.7),
    "duplicates": (with_duplicates(8, 3), 2, 0.0),
    "grid of ties": ((cosine(7, 3, 4) * 4).round() / 4, 3, 0.5),
    "asymmetric": (asymmetric(7, 5), 4, 0.3),
    "self not nearest": (asymmetric(6, 6).fill_diagonal_(-1), 4, 0.0),
    "collapsed": (torch.ones(6, 6, dtype=torch.float64), 2, 0.05),
    "one row takes all": (torch.eye(5, dtype=torch.float64).index_fill(0, torch.tensor([2]), 1.0), 2, 0.0),
    "k is the batch": (cosine(5, 3, 7), 5, 0.0),
    "one neighbour": (cosine(5, 3, 8), 1, 0.1),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_has_the_value_and_gradient_of_the_loops(variant, case):
    similarity, k, eps = CASES[case]
    cotangent = torch.randn(similarity.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)

    leaf = similarity.clone().requires_grad_()
    expected = contextual_by_loops(leaf, k, eps, 10.0, variant)
    (expected_gradient,) = torch.autograd.grad((expected * cotangent).sum(), leaf)

    leaf = similarity.clone().requires_grad_()
    actual = contextual_similarity(leaf, k, eps, variant=variant)
    (gradient,) = torch.autograd.grad((actual * cotangent).sum(), leaf)

    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-9)
    assert actual.dtype == torch.float64


@pytest.mark.parametrize("variant", VARIANTS)
def test_contextual_loss_has_the_value_and_gradient_of_the_loops(variant, device):
    similarity, labels = cosine(8, 4, 0), torch.tensor([0, 1, 0, 1, 2, 2, 0, 1])
    leaf = similarity.clone().requires_grad_()
    expected = loss_by_loops(contextual_by_loops(leaf, 3, 0.05, 10.0, variant), labels)
    (expected_gradient,) = torch.autograd.grad(expected, leaf)

    leaf = similarity.to(device).requires_grad_()
    actual = contextual_loss(leaf, labels.to(device), 3, 0.05, variant=variant)
    (gradient,) = torch.autograd.grad(actual, leaf)
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient.cpu(), expected_gradient, rtol=1e-9, atol=1e-9)
    assert gradient.abs().max() > 0


def dense_similarity(s: Tensor, k: int, eps: float) -> Tensor:
    """Eq. 2-4 on whole matrices; the largest batches are too slow for the loops."""
    D = 2 - 2 * s

    def mask(rank: int) -> Tensor:
        margin = (-D + eps) + D.detach().sort(dim=1).values[:, rank - 1, None]
        return 10 * (margin - margin.detach()) + (margin.detach() >= 0).to(s)

    N, H = mask(k), mask(k // 2)
    r, c = N.sum(1, keepdim=True).detach(), (1 - N).sum(1, keepdim=True).detach()
    outside = torch.where(c > 0, (1 - N) @ (1 - N).T / c.clamp(min=1), 0)
    W1 = (N @ N.T / r + outside) / 2 * N
    R = H * H.T
    W2 = R @ W1 / R.sum(1, keepdim=True)
    return (W2 + W2.T) / 2


@pytest.mark.parametrize("eps", [0.0, 0.05, 0.6, 5.0])
def test_large_batches_agree_with_dense_matrices_at_every_density(eps):
    similarity = cosine(288, 16, 10)
    cotangent = torch.randn(288, 288, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    gradients, values = [], []
    for function in (dense_similarity, contextual_similarity):
        leaf = similarity.clone().requires_grad_()
        values.append(function(leaf, 4, eps))
        gradients.append(torch.autograd.grad((values[-1] * cotangent).sum(), leaf)[0])
    torch.testing.assert_close(values[1], values[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("variant", ["min", "no_stop_gradient", "detach_reciprocal"])
def test_these_variants_change_the_gradient_and_not_the_value(variant):
    values, gradients = [], []
    for name in ("full", variant):
        leaf = cosine(16, 4, 12).requires_grad_()
        values.append(contextual_similarity(leaf, 4, 0.05, variant=name))
        gradients.append(torch.autograd.grad(values[-1].square().sum(), leaf)[0])
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-14)
    assert (gradients[0] - gradients[1]).abs().max() > 1e-3


def test_without_expansion_and_margin_the_weight_is_linear_in_the_shared_neighbours():
    n, k = 14, 4
    similarity = cosine(n, 5, 13)
    neighbours = contextual_similarity(similarity, k, 0.0, variant="l1")
    slope, offset = 1 / (2 * k) + 1 / (2 * (n - k)), (n - 2 * k) / (2 * (n - k))
    expected = neighbours * (slope * (neighbours @ neighbours.T) + offset)
    torch.testing.assert_close(contextual_similarity(similarity, k, 0.0, variant="l2"), expected, rtol=0, atol=1e-14)


def test_rows_have_exactly_k_neighbours_without_margin_and_ties():
    neighbours = contextual_similarity(cosine(20, 6, 14), 4, 0.0, variant="l1")
    assert torch.equal(neighbours.sum(dim=1), torch.full((20,), 4.0, dtype=torch.float64))
    assert torch.equal(neighbours.diagonal(), torch.ones(20, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kth_neighbour_is_kept_without_margin_in_either_precision(dtype):
    embeddings = unit(200, 32, 15, dtype)
    neighbours = contextual_similarity(embeddings @ embeddings.T, 7, 0.0, variant="l1")
    assert neighbours.sum(dim=1).min() >= 7


def test_ties_with_the_kth_neighbour_are_all_neighbours():
    similarity = torch.tensor([[1.0, 0.5, 0.5, 0.5], [0.5, 1, 0, 0], [0.5, 0, 1, 0], [0.5, 0, 0, 1]])
    neighbours = contextual_similarity(similarity, 2, 0.0, variant="l1")
    assert neighbours.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]


def test_the_margin_is_on_squared_distance_so_that_half_of_it_counts_in_similarity():
    similarity = torch.eye(3, dtype=torch.float64)
    similarity[0, 1:] = torch.tensor([0.5, 0.375])
    reached = contextual_similarity(similarity, 2, 0.25, variant="l1")
    missed = contextual_similarity(similarity, 2, 0.2499, variant="l1")
    assert reached[0].tolist() == [1, 1, 1]
    assert missed[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_similarity_lies_between_0_and_1(variant):
    for seed in range(5):
        contextual = contextual_similarity(cosine(16, 3, seed), 4, 0.1 * seed, variant=variant)
        assert contextual.min() >= 0
        assert contextual.max() <= 1 + 1e-15


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name not in UNEXPANDED])
def test_similarity_is_symmetric_after_query_expansion(variant):
    contextual = contextual_similarity(cosine(16, 3, 16), 4, 0.05, variant=variant)
    assert torch.equal(contextual, contextual.T)


@pytest.mark.parametrize("variant", VARIANTS)
def test_permuting_the_batch_permutes_the_similarity(variant):
    similarity = cosine(12, 4, 17)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(18))
    expected = contextual_similarity(similarity, 4, 0.05, variant=variant)[order][:, order]
    actual = contextual_similarity(similarity[order][:, order], 4, 0.05, variant=variant)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", HEAVISIDE)
def test_the_gradient_is_linear_in_alpha_and_the_value_does_not_know_it(variant):
    labels = torch.arange(4).repeat(3)
    values, gradients = [], []
    for alpha in (10.0, 25.0):
        leaf = cosine(12, 4, 19).requires_grad_()
        values.append(contextual_loss(leaf, labels, 3, 0.05, alpha=alpha, variant=variant))
        gradients.append(torch.autograd.grad(values[-1], leaf)[0])
    assert values[0].item() == values[1].item()
    torch.testing.assert_close(gradients[0] * 2.5, gradients[1], rtol=1e-12, atol=1e-15)


def test_a_single_neighbour_leaves_every_sample_to_itself():
    assert torch.equal(contextual_similarity(cosine(6, 4, 20), 1, 0.0), torch.eye(6, dtype=torch.float64))


def test_float32_agrees_with_float64():
    embeddings = unit(300, 32, 21)
    labels = torch.arange(75).repeat(4)
    results = []
    for dtype in (torch.float64, torch.float32):
        leaf = (embeddings @ embeddings.T).to(dtype).requires_grad_()
        loss = contextual_loss(leaf, labels, 4, 0.05)
        assert loss.dtype == dtype
        results.append((loss.double(), torch.autograd.grad(loss, leaf)[0].double()))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=0)
    # a pair on the edge of a neighbourhood may fall on the other side in float32 and change a few entries
    difference = (results[1][1] - results[0][1]).norm() / results[0][1].norm()
    assert difference < 1e-2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [2, 300])
def test_collapsed_embeddings_give_no_nan(variant, n):
    for similarity in (torch.ones(n, n), torch.zeros(n, n), torch.eye(n)):
        leaf = similarity.clone().requires_grad_()
        loss = contextual_loss(leaf, torch.arange(n) // 2, 2, 0.05, variant=variant)
        loss.backward()
        assert math.isfinite(loss.item())
        assert leaf.grad.isfinite().all()


def test_a_neighbourhood_of_the_whole_batch_has_no_share_of_non_neighbours():
    contextual = contextual_similarity(torch.ones(6, 6, dtype=torch.float64), 2, 0.05)
    torch.testing.assert_close(contextual, torch.full((6, 6), 0.5, dtype=torch.float64), rtol=0, atol=0)


@pytest.mark.parametrize("k", [0, -1, 6])
def test_similarity_rejects_a_k_outside_the_batch(k):
    with pytest.raises(ValueError, match=rf"k={k} is outside \[1, 5\]"):
        contextual_similarity(cosine(5, 3, 0), k, 0.05)


def test_similarity_names_the_known_variants():
    with pytest.raises(
        ValueError, match=r"variant: unknown 'median', did you mean '.*'. Known: .*detach_reciprocal.*, full, l1"
    ):
        contextual_similarity(cosine(5, 3, 0), 2, 0.05, variant="median")


def test_similarity_rejects_a_matrix_that_is_not_square():
    with pytest.raises(ValueError, match=r"\(5, 4\)"):
        contextual_similarity(torch.zeros(5, 4), 2, 0.05)


def test_similarity_rejects_a_negative_margin():
    with pytest.raises(ValueError, match=r"eps=-0\.1"):
        contextual_similarity(cosine(5, 3, 0), 2, -0.1)
