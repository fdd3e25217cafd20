"""The stable order against full stable sorts."""

from __future__ import annotations

import math

import pytest
import torch

from lookalike.metrics.order import WORKING_SET, refuse_nan, row_blocks, stable_ranks, stable_topk, working_set


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
def test_ranks_by_counting_equal_those_of_a_sorted_list(listed, kind, dtype):
    scores = scores_of_kind(kind, dtype=dtype)
    generator = torch.Generator().manual_seed(listed)
    items = torch.randint(400, (6, listed), generator=generator)
    ranks = stable_ranks(scores, items).tolist()
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
def test_top_items_equal_the_head_of_a_sorted_list(k, kind):
    scores = scores_of_kind(kind)
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
    monkeypatch.setattr("lookalike.metrics.order.torch.cuda.mem_get_info", lambda device: (free, 2**40))
    assert working_set(torch.device("cuda")) == expected
    assert working_set(torch.device("cpu")) == WORKING_SET
