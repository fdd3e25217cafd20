"""R@1 alone is R@1 of the whole search."""

import pytest
import torch

from lookalike.metrics.search import FirstRank, Search


def search_of(kind, *, queries=40, gallery=40, self_match=True, cameras=False, classes=2):
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(classes, (queries,), generator=generator)
    others = labels if self_match else torch.randint(classes, (gallery,), generator=generator)
    seen = [torch.randint(2, (len(side),), generator=generator) if cameras else None for side in (labels, others)]
    if cameras and self_match:
        seen[1] = seen[0]
    return kind(labels, others, (1,), self_match=self_match, query_cameras=seen[0], gallery_cameras=seen[1])


def sides(queries, gallery, self_match):
    generator = torch.Generator().manual_seed(2)
    # Few distinct vectors, so that first ranks are shared and the lower index decides.
    vectors = torch.randn(9, 4, generator=generator)
    query = vectors[torch.randint(9, (queries,), generator=generator)]
    return query, query if self_match else vectors[torch.randint(9, (gallery,), generator=generator)]


@pytest.mark.parametrize("cameras", [False, True])
@pytest.mark.parametrize(("queries", "gallery", "self_match"), [(40, 40, True), (30, 50, False)])
@pytest.mark.parametrize("score", ["cosine", lambda some, others: -torch.cdist(some, others)])
def test_the_recall_is_that_of_the_whole_search(queries, gallery, self_match, cameras, score, monkeypatch):
    monkeypatch.setattr("lookalike.metrics.order.WORKING_SET", 200)  # several blocks
    shape = {"queries": queries, "gallery": gallery, "self_match": self_match, "cameras": cameras}
    pair = sides(queries, gallery, self_match)
    expected = search_of(Search, **shape).by_score(*pair, score=score)["R@1"]
    assert 0 < expected < 1
    assert search_of(FirstRank, **shape).by_score(*pair, score=score) == {"R@1": expected}


def test_of_a_ranking_one_rank_is_asked_for_and_decides():
    whole, first = search_of(Search), search_of(FirstRank)
    assert (whole.depth > 1, first.depth) == (True, 1)
    random = torch.Generator().manual_seed(0)
    ranking = torch.stack([torch.randperm(40, generator=random) for _ in range(40)])
    rows = torch.arange(40)[:, None]
    ranking = ranking[ranking != rows].view(40, 39)
    assert first.by_ranking(ranking[:, :1]) == {"R@1": whole.by_ranking(ranking)["R@1"]}


def test_queries_without_a_positive_do_not_count():
    query = torch.eye(4)
    search = FirstRank(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 1, 2]), (1,), self_match=True)
    assert search.by_score(query, query) == {"R@1": 1.0}  # the second finds the first and the first the second
    alone = FirstRank(torch.tensor([0, 1]), torch.tensor([0, 1]), (1,), self_match=True)
    with pytest.raises(ValueError, match="no query has a positive"):
        alone.by_score(query[:2], query[:2])


def test_a_score_that_is_no_number_is_refused():
    search = search_of(FirstRank)
    pair = sides(40, 40, True)
    with pytest.raises(ValueError, match="is NaN"):
        search.by_score(*pair, score=lambda some, others: torch.full((len(some), len(others)), torch.nan))
