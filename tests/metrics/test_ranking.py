"""Nearest neighbours: every back end gives the same bits."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from lookalike.metrics import ranking
from lookalike.metrics.positives import count_positives
from lookalike.metrics.ranking import FEWEST_PER_THREAD, SPARE_CANDIDATES, default_backend, describe_backend, nearest
from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings, retrieval_metrics_from_ranking

BACKENDS = ("faiss", "torch")


def clusters(seed=0, *, classes=30, per_class=10, dim=24, spread=0.5, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    labels = torch.arange(classes).repeat_interleave(per_class)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    return (centres[labels] + spread * noise).to(dtype), labels


def duplicates(*, copies, dtype=torch.float32):
    """Every vector ``copies`` times, spread over the gallery, some of them off by a few units in the last place."""
    base, _ = clusters(1, classes=6, per_class=2, dim=40, dtype=dtype)
    vectors = base.repeat(copies, 1)
    vectors[5::7] *= 1 + 4 * torch.finfo(dtype).eps
    vectors[3::11, 0] += 8 * torch.finfo(dtype).eps
    return vectors


def nearest_by_loops(query, gallery, k, *, self_match):
    query = torch.nn.functional.normalize(query.double())
    gallery = torch.nn.functional.normalize(gallery.double())
    rows = (query @ gallery.T).tolist()
    return [
        sorted((j for j in range(len(row)) if not (self_match and i == j)), key=lambda j, row=row: (-row[j], j))[:k]
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbours_equal_those_of_a_sorted_list(dtype, self_match, backend):
    gallery, _ = clusters(dtype=dtype)
    query = gallery if self_match else clusters(5, dtype=dtype)[0][::7]
    scores, indices = nearest(query, gallery, 20, self_match=self_match, backend=backend)
    assert scores.dtype == dtype
    assert indices.dtype == torch.int64
    assert indices.tolist() == nearest_by_loops(query, gallery, 20, self_match=self_match)
    cosine = torch.nn.functional.normalize(query.double()) @ torch.nn.functional.normalize(gallery.double()).T
    assert torch.allclose(scores.double(), cosine.gather(1, indices), rtol=0, atol=1e-7)


@pytest.mark.parametrize("copies", [3, 10, 30])
@pytest.mark.parametrize("k", [1, 9, 25])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_back_ends_and_blocks_agree_in_every_bit_on_duplicates(dtype, k, copies):
    vectors = duplicates(copies=copies, dtype=dtype)
    expected_scores, expected = nearest(vectors, vectors, k, self_match=True, backend="torch")
    for backend in BACKENDS:
        for block in (1, 50, 1024):
            scores, indices = nearest(vectors, vectors, k, self_match=True, backend=backend, block=block)
            assert torch.equal(indices, expected)
            assert torch.equal(scores, expected_scores)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exact_duplicates_are_listed_by_index(backend):
    base, _ = clusters(2, classes=4, per_class=1, dim=37)
    gallery = base.repeat(100, 1)  # item j equals base vector j % 4
    _, indices = nearest(base, gallery, 90, self_match=False, backend=backend)
    assert indices.tolist() == [list(range(i, 360, 4)) for i in range(4)]
    _, indices = nearest(gallery, gallery, 90, self_match=True, backend=backend)
    assert indices[8].tolist() == [j for j in range(0, 400, 4) if j != 8][:90]


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_vectors_everywhere_are_listed_by_index(backend):
    gallery = torch.ones(SPARE_CANDIDATES + 40, 3)
    _, indices = nearest(gallery, gallery, 5, self_match=True, backend=backend)
    assert indices[0].tolist() == [1, 2, 3, 4, 5]
    assert indices[50].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dim", [7, 24, 40])
def test_scores_that_are_equal_only_before_rounding_tie(dim, backend):
    # One vector with its components in 300 orders: every cosine with the diagonal is the same sum.
    generator = torch.Generator().manual_seed(0)
    base = torch.rand(dim, generator=generator)
    gallery = torch.stack([base[torch.randperm(dim, generator=generator)] for _ in range(300)])
    scores, indices = nearest(torch.ones(2, dim), gallery, 5, self_match=False, backend=backend)
    assert indices.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert len(scores.unique()) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_other_items_can_be_asked_for(backend):
    vectors = duplicates(copies=12)
    _, indices = nearest(vectors, vectors, len(vectors) - 1, self_match=True, backend=backend)
    for i, row in enumerate(indices.tolist()):
        assert sorted(row) == [j for j in range(len(vectors)) if j != i]
    _, indices = nearest(vectors[:3], vectors, len(vectors), self_match=False, backend=backend)
    assert all(sorted(row) == list(range(len(vectors))) for row in indices.tolist())


def test_faiss_settles_well_separated_neighbours_by_itself(monkeypatch):
    vectors, _ = clusters(spread=0.5)
    expected = nearest(vectors, vectors, 5, self_match=True, backend="torch")[1]

    def refuse(*arguments):
        raise AssertionError("the torch back end was asked")

    monkeypatch.setattr(ranking, "_search_with_torch", refuse)
    assert torch.equal(nearest(vectors, vectors, 5, self_match=True, backend="faiss")[1], expected)


def test_faiss_hands_over_exactly_the_queries_it_cannot_settle(monkeypatch):
    separated, _ = clusters(dim=40)
    crowd = torch.ones(1, 40).repeat(SPARE_CANDIDATES + 30, 1)
    vectors = torch.cat([separated, crowd])
    handed_over = []
    search = ranking._search_with_torch

    def count(query, *arguments):
        handed_over.append(len(query[0]))
        return search(query, *arguments)

    expected = nearest(vectors, vectors, 5, self_match=True, backend="torch")[1]
    monkeypatch.setattr(ranking, "_search_with_torch", count)
    assert torch.equal(nearest(vectors, vectors, 5, self_match=True, backend="faiss")[1], expected)
    assert sum(handed_over) == len(crowd)


def test_faiss_is_asked_for_matrix_products_and_left_as_it_was(monkeypatch):
    import faiss

    usual = faiss.cvar.distance_compute_blas_threshold
    seen = []

    def search(index, vectors, count):
        seen.append(faiss.cvar.distance_compute_blas_threshold)
        raise RuntimeError("stopped here")

    monkeypatch.setattr(faiss.IndexFlatIP, "search", search)
    with pytest.raises(RuntimeError, match="stopped here"):
        nearest(torch.eye(8), torch.eye(8), 3, self_match=True, backend="faiss")
    assert seen == [min(usual, FEWEST_PER_THREAD * faiss.omp_get_max_threads())]
    assert faiss.cvar.distance_compute_blas_threshold == usual


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_ranking_by_any_back_end_gives_the_metrics_of_all_scores(backend):
    vectors, labels = clusters(3, spread=2.0)
    vectors, labels = torch.cat([vectors, vectors[::3]]), torch.cat([labels, labels[::3].flip(0)])
    sizes = count_positives(labels, labels, self_match=True)
    _, indices = nearest(vectors, vectors, int(sizes.max()), self_match=True, backend=backend)
    metrics = retrieval_metrics_from_ranking(indices, labels, labels, class_sizes=sizes, ks=(1, 8))
    complete = retrieval_metrics_from_embeddings(vectors, labels, vectors, labels, ks=(1, 8), self_match=True)
    assert metrics == {name: value for name, value in complete.items() if name != "mAP"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_is_searched_as_float32(backend):
    vectors = clusters(4)[0].half()
    scores, indices = nearest(vectors, vectors, 4, self_match=True, backend=backend)
    as_floats = nearest(vectors.float(), vectors.float(), 4, self_match=True, backend=backend)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, as_floats[0])
    assert torch.equal(indices, as_floats[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_search_takes_vectors_that_require_gradients(backend):
    vectors = clusters(4)[0].requires_grad_()
    scores, _ = nearest(vectors, vectors, 4, self_match=True, backend=backend)
    assert not scores.requires_grad


def test_wrong_arguments_are_refused():
    vectors, _ = clusters()
    with pytest.raises(ValueError, match=r"k=300 is outside \[1, 299\], the gallery size less the query"):
        nearest(vectors, vectors, 300, self_match=True)
    with pytest.raises(ValueError, match=r"k=0 is outside \[1, 300\]"):
        nearest(vectors, vectors, 0, self_match=False)
    with pytest.raises(ValueError, match="needs Q = G, not 10 queries and 300"):
        nearest(vectors[:10], vectors, 1, self_match=True)
    with pytest.raises(ValueError, match="backend='annoy' is not one of 'faiss', 'torch'"):
        nearest(vectors, vectors, 1, self_match=True, backend="annoy")
    with pytest.raises(ValueError, match="block=0"):
        nearest(vectors, vectors, 1, self_match=True, block=0)
    with pytest.raises(ValueError, match="agree in D and dtype"):
        nearest(vectors[:, :5], vectors, 1, self_match=False)
    with pytest.raises(ValueError, match="searches tensors on the CPU"):
        nearest(vectors.to("meta"), vectors.to("meta"), 1, self_match=True, backend="faiss")
    vectors[2, 0] = math.nan
    for backend in BACKENDS:
        with pytest.raises(ValueError, match="embedding 2 holds NaN"):
            nearest(vectors, vectors, 1, self_match=True, backend=backend)


def test_back_ends_can_be_recorded():
    assert default_backend(torch.device("cpu")) == "faiss"
    assert default_backend(torch.device("cuda:1")) == "torch"
    assert describe_backend("torch").startswith(f"torch {torch.__version__}")
    assert "IndexFlatIP" in describe_backend("faiss")


def test_faiss_is_imported_only_where_it_is_used():
    code = "import sys; import lookalike.metrics.ranking, lookalike.metrics.retrieval; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
