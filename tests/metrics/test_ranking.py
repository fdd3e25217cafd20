"""Nearest neighbours: every back end gives the same bits.

The stable order against full stable sorts.
"""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from lookalike.metrics import ranking
from lookalike.metrics.definitions import count_positives
from lookalike.metrics.ranking import (
    FEWEST_PER_THREAD,
    SPARE_CANDIDATES,
    WORKING_SET,
    default_backend,
    describe_backend,
    nearest,
    refuse_nan,
    row_blocks,
    stable_ranks,
    stable_topk,
    working_set,
)
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


def scores_of_kind(kind, *, rows=6, width=400, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    if kind == "distinct":
        return scores.to(dtype)
    if kind == "few values":
        return (2 * scores).round().to(dtype)
    if kind == "all equal":
        return torch.zeros_like(scores, dtype=dtype)
    if kind == "infinite":
        return scores.masked_fill(scores > 1, math.inf).masked_fill(scores < -1, -math.inf).to(dtype)
    if kind == "outliers":  # all but a few scores share the first bin
        return torch.where(scores > 2, torch.finfo(dtype).max / 8 * scores, scores).to(dtype)
    if kind == "largest range":
        return scores.sign().to(dtype) * torch.finfo(dtype).max
    if kind == "subnormal":
        return (scores.round() * torch.finfo(dtype).smallest_normal / 4).to(dtype)
    assert kind == "neighbouring"  # differences of one unit in the last place
    return (1 + (4 * scores).round() * torch.finfo(dtype).eps).to(dtype)


KINDS = ("distinct", "few values", "all equal", "infinite", "outliers", "largest range", "subnormal", "neighbouring")


def ranking_by_loops(row, excluded=None):
    return sorted((j for j in range(len(row)) if j != excluded), key=lambda j: (-row[j], j))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("listed", [1, 2, 30])
def test_ranks_by_counting_equal_those_of_a_sorted_list(listed, kind, dtype, device):
    scores = scores_of_kind(kind, dtype=dtype).to(device)
    generator = torch.Generator().manual_seed(listed)
    items = torch.randint(400, (6, listed), generator=generator)
    ranks = stable_ranks(scores, items.to(device)).tolist()
    for row, own_items, own_ranks in zip(scores.tolist(), items.tolist(), ranks, strict=True):
        ranking = ranking_by_loops(row)
        assert own_ranks == [ranking.index(item) + 1 for item in own_items]


@pytest.mark.parametrize("kind", KINDS)
def test_an_excluded_column_takes_no_part(kind):
    scores = scores_of_kind(kind)
    excluded = torch.tensor([0, 399, 7, 200, 201, 5])
    items = torch.tensor([[1, 2, 8, 100, 398, 300]]).expand(6, 6)
    ranks = stable_ranks(scores, items, excluded=excluded).tolist()
    for row, left_out, own_ranks in zip(scores.tolist(), excluded.tolist(), ranks, strict=True):
        ranking = ranking_by_loops(row, left_out)
        assert own_ranks == [ranking.index(item) + 1 for item in items[0].tolist()]


@pytest.mark.parametrize("levels", [None, 3000, 5])
def test_ranks_are_exact_where_there_are_fewer_bins_than_scores(levels):
    generator = torch.Generator().manual_seed(1)
    scores = torch.rand(3, 20_000, generator=generator)
    if levels is not None:
        scores = (scores * levels).round()
    items = torch.randint(20_000, (3, 40), generator=generator)
    sorted_to = scores.argsort(dim=1, descending=True, stable=True)
    expected = sorted_to.argsort(dim=1).gather(1, items) + 1
    assert torch.equal(stable_ranks(scores, items), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3, 50, 400])
def test_top_items_equal_the_head_of_a_sorted_list(k, kind, device):
    scores = scores_of_kind(kind).to(device)
    values, indices = stable_topk(scores, k)
    assert indices.tolist() == [ranking_by_loops(row)[:k] for row in scores.tolist()]
    assert torch.equal(values, scores.gather(1, indices))


@pytest.mark.parametrize("k", [0, 401])
def test_topk_rejects_a_length_beyond_the_items(k):
    with pytest.raises(ValueError, match=rf"k={k} is outside \[1, 400\]"):
        stable_topk(scores_of_kind("distinct"), k)


def test_nan_is_refused_with_its_place():
    scores = scores_of_kind("distinct")
    scores[4, 17] = math.nan
    with pytest.raises(ValueError, match="row 4, column 17 is NaN"):
        stable_topk(scores, 3)
    with pytest.raises(ValueError, match="row 104, column 17 is NaN"):
        refuse_nan(scores, first_row=100)


def test_row_blocks_hold_every_row_once():
    scores = torch.arange(12.0).view(4, 3)
    assert torch.equal(torch.cat(row_blocks(scores)), scores)
    wide = torch.zeros(3, 300_000)
    assert [len(block) for block in row_blocks(wide)] == [1, 1, 1]
    assert row_blocks(wide)[1].data_ptr() == wide[1].data_ptr()


@pytest.mark.parametrize(
    ("free", "expected"), [(0, WORKING_SET), (2**30, 2**20), (80 * 2**30, 80 * 2**20), (2**40, 2**28)]
)
def test_a_device_takes_as_many_scores_as_a_quarter_of_its_free_memory_holds(monkeypatch, free, expected):
    monkeypatch.setattr("lookalike.metrics.ranking.torch.cuda.mem_get_info", lambda device: (free, 2**40))
    assert working_set(torch.device("cuda")) == expected
    assert working_set(torch.device("cpu")) == WORKING_SET
