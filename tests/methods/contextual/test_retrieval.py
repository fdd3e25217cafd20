from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from draws import unit
from lookalike.methods.contextual import retrieval
from lookalike.methods.contextual.loss import rerank
from lookalike.methods.contextual.retrieval import Reranker
from lookalike.metrics.retrieval import retrieval_metrics, retrieval_metrics_from_embeddings


def rerank_by_loops(s: Tensor, k: int, beta: float) -> Tensor:
    n = len(s)
    near = []
    for i in range(n):
        D = [2 - 2 * s[i, j].item() for j in range(n)]
        near.append({j for j in range(n) if D[j] <= sorted(D)[k - 1]})
    scores = torch.empty(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            shared = len(near[i] & near[j]) / len(near[i]) if j in near[i] else 0.0
            scores[i, j] = beta * shared + (1 - beta) * math.exp(2 * s[i, j].item() - 2)
    return scores


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0])
def test_rerank_agrees_with_loops(k, beta, device):
    similarity = unit(12, 4, 0) @ unit(12, 4, 0).T
    actual = rerank(similarity.to(device), k, beta).cpu()
    torch.testing.assert_close(actual, rerank_by_loops(similarity, k, beta), rtol=0, atol=1e-14)


def test_rerank_counts_ties_with_the_kth_as_neighbours():
    similarity = (unit(12, 3, 1) @ unit(12, 3, 1).T * 4).round() / 4
    actual = rerank(similarity, 3, 0.5)
    torch.testing.assert_close(actual, rerank_by_loops(similarity, 3, 0.5), rtol=0, atol=1e-14)


def test_rerank_of_a_collapsed_set_is_constant():
    assert torch.equal(rerank(torch.ones(5, 5), 2), torch.ones(5, 5))


def test_rerank_takes_matrices_that_are_not_symmetric():
    generator = torch.Generator().manual_seed(2)
    similarity = torch.rand(9, 9, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(rerank(similarity, 3), rerank_by_loops(similarity, 3, 0.1), rtol=0, atol=1e-14)


def test_rerank_works_through_several_blocks(monkeypatch):
    monkeypatch.setattr(retrieval, "BLOCK", 5)
    similarity = unit(12, 4, 3) @ unit(12, 4, 3).T
    torch.testing.assert_close(rerank(similarity, 3), rerank_by_loops(similarity, 3, 0.1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rerank_keeps_the_dtype_and_its_input(dtype):
    similarity = (unit(12, 4, 4) @ unit(12, 4, 4).T).to(dtype)
    before = similarity.clone()
    assert rerank(similarity, 3).dtype == dtype
    assert torch.equal(similarity, before)


def test_the_reranker_gives_rows_of_rerank(monkeypatch):
    monkeypatch.setattr(retrieval, "BLOCK", 4)
    embeddings = unit(15, 4, 5)
    expected = rerank(embeddings @ embeddings.T, 4, 0.3)
    reranker = Reranker(3 * embeddings, 4, 0.3)
    queries = torch.tensor([14, 0, 0, 7])
    torch.testing.assert_close(reranker(queries), expected[queries], rtol=0, atol=1e-12)
    torch.testing.assert_close(reranker(torch.arange(15)), expected, rtol=0, atol=1e-12)


def test_the_reranker_scores_for_the_metrics():
    embeddings, labels = unit(30, 4, 6), torch.arange(30) % 6
    reranker, images = Reranker(embeddings, 4, 0.5), torch.arange(30)
    expected = retrieval_metrics(rerank(embeddings @ embeddings.T, 4, 0.5), labels, labels, ks=(1, 2), self_match=True)
    actual = retrieval_metrics_from_embeddings(
        images, labels, images, labels, ks=(1, 2), self_match=True, score=lambda queries, gallery: reranker(queries)
    )
    assert actual == pytest.approx(expected, abs=1e-12)


def test_reranking_rejects_values_outside_their_range():
    similarity, embeddings = torch.eye(5), torch.eye(5)
    for call in (lambda k, beta: rerank(similarity, k, beta), lambda k, beta: Reranker(embeddings, k, beta)):
        for k in (0, 6):
            with pytest.raises(ValueError, match=rf"k={k} is outside \[1, 5\]"):
                call(k, 0.1)
        for beta in (-0.1, 1.1, math.nan):
            with pytest.raises(ValueError, match=rf"beta={beta} is outside \[0, 1\]"):
                call(2, beta)
    with pytest.raises(ValueError, match=r"\(5, 4\)"):
        rerank(torch.zeros(5, 4), 2)
    with pytest.raises(ValueError, match=r"\(5,\)"):
        Reranker(torch.zeros(5), 2)
