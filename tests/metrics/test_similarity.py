"""Exact cosines against rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch

from lookalike.metrics.similarity import exact_cosine, exact_cosine_of_pairs, fixed_point, fixed_point_pair


def vectors(count, dim, *, seed=0, dtype=torch.float32):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def cosine_by_loops(query, gallery):
    def one(a, b):
        product = math.fsum(x * y for x, y in zip(a, b, strict=True))
        return product / math.sqrt(math.fsum(x * x for x in a)) / math.sqrt(math.fsum(y * y for y in b))

    return torch.tensor([[one(a, b) for b in gallery.tolist()] for a in query.tolist()], dtype=torch.float64)


@pytest.mark.parametrize("dim", [1, 7, 512])
def test_the_product_of_one_part_is_the_rational_sum(dim):
    query, gallery = fixed_point(vectors(5, dim))[0], fixed_point(vectors(6, dim, seed=1))[0]
    scores = exact_cosine((query,), (gallery,))
    for row, a in zip(scores.tolist(), query.tolist(), strict=True):
        for score, b in zip(row, gallery.tolist(), strict=True):
            assert Fraction(score) == sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))


def test_each_product_of_two_parts_is_the_rational_sum():
    query, gallery = (
        fixed_point(vectors(4, 512, dtype=torch.float64)),
        fixed_point(vectors(4, 512, seed=1, dtype=torch.float64)),
    )
    for left, right in ((0, 0), (0, 1), (1, 0)):
        product = query[left] @ gallery[right].T
        exact = sum(
            Fraction(x) * Fraction(y) for x, y in zip(query[left][2].tolist(), gallery[right][3].tolist(), strict=True)
        )
        assert Fraction(product[2, 3].item()) == exact


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-7), (torch.float64, 1e-13), (torch.float16, 1e-7)])
def test_scores_are_cosines_of_vectors_of_any_length(dtype, tolerance, device):
    query, gallery = vectors(9, 64, dtype=dtype), vectors(11, 64, seed=1, dtype=dtype) * 3
    scores = exact_cosine(*fixed_point_pair(query.to(device), gallery.to(device))).cpu()
    assert scores.dtype == torch.float64
    assert torch.allclose(scores, cosine_by_loops(query, gallery), rtol=0, atol=tolerance)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_lengths_neither_overflow_nor_underflow(scale):
    query = vectors(3, 8, dtype=torch.float64)
    scores = exact_cosine(*fixed_point_pair(query * scale, query))
    assert torch.allclose(scores, cosine_by_loops(query, query), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_order_of_the_sum_changes_no_bit(dtype):
    query, gallery = fixed_point(vectors(20, 300, dtype=dtype)), fixed_point(vectors(50, 300, seed=1, dtype=dtype))
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    shuffled = exact_cosine(tuple(part[:, order] for part in query), tuple(part[:, order] for part in gallery))
    assert torch.equal(exact_cosine(query, gallery), shuffled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_single_row_or_column_has_the_bits_of_the_whole(dtype):
    query, gallery = fixed_point(vectors(20, 300, dtype=dtype)), fixed_point(vectors(50, 300, seed=1, dtype=dtype))
    whole = exact_cosine(query, gallery)
    for i in range(20):
        assert torch.equal(exact_cosine(tuple(part[i : i + 1] for part in query), gallery)[0], whole[i])
    for j in range(50):
        assert torch.equal(exact_cosine(query, tuple(part[j : j + 1] for part in gallery))[:, 0], whole[:, j])
    assert torch.equal(exact_cosine(gallery, query), whole.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pairs_have_the_bits_of_the_matrix(dtype, device):
    sides = vectors(8, 100, dtype=dtype), vectors(30, 100, seed=1, dtype=dtype)
    query, gallery = (fixed_point(side.to(device)) for side in sides)
    candidates = torch.randint(30, (8, 5), generator=torch.Generator().manual_seed(2)).to(device)
    pairs = exact_cosine_of_pairs(query, tuple(part[candidates] for part in gallery))
    assert torch.equal(pairs, exact_cosine(query, gallery).gather(1, candidates))


def test_a_zero_vector_is_equally_far_from_everything():
    gallery = vectors(4, 6)
    gallery[2] = 0
    scores = exact_cosine(*fixed_point_pair(vectors(3, 6, seed=1), gallery))
    assert torch.equal(scores[:, 2], torch.zeros(3, dtype=torch.float64))


def test_a_vector_and_its_double_are_the_same_direction():
    query = vectors(5, 33)
    gallery = torch.cat([query, 2 * query])
    scores = exact_cosine(*fixed_point_pair(query, gallery))
    assert torch.equal(scores[:, :5], scores[:, 5:])


def test_matrices_of_other_shapes_and_types_are_refused():
    for wrong in (torch.zeros(3), torch.zeros(3, 0), torch.zeros(3, 4, dtype=torch.int64), torch.zeros(1, 3, 4)):
        with pytest.raises(ValueError, match=r"must be \(N, D\) float"):
            fixed_point(wrong)
    with pytest.raises(ValueError, match="agree in D and dtype"):
        fixed_point_pair(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="embedding 1 holds NaN or infinity"):
        fixed_point(torch.tensor([[1.0, 2.0], [math.nan, 0.0]]))
