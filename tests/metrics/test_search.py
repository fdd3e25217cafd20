"""A search ranks as deep as its metrics ask, and no deeper than its gallery."""

import pytest
import torch

from lookalike.metrics.retrieval import retrieval_metrics
from lookalike.metrics.search import Search, cosine

LABELS = {
    "one_class": ([0] * 5, [0] * 6),
    "singles": ([0, 1, 2, 2], [3, 2, 1, 0]),
    "uneven": ([0, 0, 0, 0, 1, 1, 2, 3, 3], [0, 1, 1, 1, 1, 2, 5]),
    "no_positive_for_some": ([0, 7, 0, 8, 0], [0, 1, 0, 9]),
}
CASES = [
    (name, self_match, counted, ks)
    for name in LABELS
    for self_match in (True, False)
    for counted in (True, False)
    for ks in ((1,), (1, 3), (2, 1))
]


def made(name, self_match, counted, ks):
    query, gallery = (torch.tensor(labels) for labels in LABELS[name])
    gallery = query if self_match else gallery
    similarity = torch.rand(len(query), len(gallery), generator=torch.Generator().manual_seed(1))
    return Search(query, gallery, ks, self_match=self_match, count_query_in_r=counted), similarity


def ranked(similarity, self_match):
    scores = similarity.clone()
    if self_match:
        scores.fill_diagonal_(-torch.inf)
    return scores.argsort(dim=1, descending=True)[:, : scores.shape[1] - self_match]


@pytest.mark.parametrize(("name", "self_match", "counted", "ks"), CASES)
def test_the_depth_is_enough_for_every_metric(name, self_match, counted, ks):
    search, similarity = made(name, self_match, counted, ks)
    found = search.by_ranking(ranked(similarity, self_match)[:, : search.depth])
    expected = retrieval_metrics(
        similarity, search.query_labels, search.gallery_labels, ks=ks, self_match=self_match, count_query_in_r=counted
    )
    del expected["mAP"]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("name", "self_match", "counted", "ks"), CASES)
def test_the_depth_is_the_largest_cutoff_or_class_within_the_gallery(name, self_match, counted, ks):
    search, similarity = made(name, self_match, counted, ks)
    sizes = [
        sum(
            int(label) == int(other)
            for place, other in enumerate(search.gallery_labels)
            if not self_match or place != row
        )
        for row, label in enumerate(search.query_labels)
    ]
    assert search.class_sizes.tolist() == sizes
    assert search.depth == min(max([size + counted for size in sizes] + list(ks)), similarity.shape[1] - self_match)


def test_a_search_without_cut_offs_is_as_deep_as_its_largest_class():
    search, _ = made("uneven", True, False, ())
    assert search.depth == 3


def test_a_rank_less_is_not_enough():
    search, similarity = made("uneven", True, False, (1,))
    with pytest.raises(ValueError, match=r"need more than the K = 2 ranks given"):
        search.by_ranking(ranked(similarity, True)[:, : search.depth - 1])


@pytest.mark.parametrize("self_match", [True, False])
def test_scores_and_cosine_count_as_the_search_says(self_match):
    search, similarity = made("uneven", self_match, True, (1, 3))
    rows = torch.arange(len(similarity))
    columns = rows if self_match else torch.arange(similarity.shape[1])
    found = search.by_score(rows, columns, score=lambda some, others: similarity[some][:, others])
    expected = retrieval_metrics(
        similarity, search.query_labels, search.gallery_labels, ks=(1, 3), self_match=self_match, count_query_in_r=True
    )
    assert found == expected
    generator = torch.Generator().manual_seed(2)
    query = {"embedding": torch.randn(len(rows), 4, generator=generator)}
    gallery = query if self_match else {"embedding": torch.randn(len(columns), 4, generator=generator)}
    by_cosine = search.by_score(query["embedding"], gallery["embedding"])
    assert cosine(torch.nn.Identity(), query, gallery, search) == by_cosine
    assert by_cosine.keys() == {"R@1", "R@3", "P@1", "RP", "MAP@R", "mAP"}


def seen_and_grouped():
    generator = torch.Generator().manual_seed(3)
    query, gallery = torch.tensor(LABELS["uneven"][0]), torch.tensor(LABELS["uneven"][1])
    cameras = {"query_cameras": query % 2, "gallery_cameras": torch.arange(len(gallery)) % 3}
    levels = {"coarse": (query // 2, gallery // 2)}
    sides = [{"embedding": torch.randn(len(labels), 4, generator=generator)} for labels in (query, gallery)]
    return query, gallery, cameras, levels, sides


def test_cameras_and_levels_reach_the_metrics_of_all_scores():
    query, gallery, cameras, levels, sides = seen_and_grouped()
    search = Search(query, gallery, (1, 3), self_match=False, **cameras, levels=levels)
    found = cosine(torch.nn.Identity(), *sides, search)
    unit = [torch.nn.functional.normalize(side["embedding"].double()) for side in sides]
    expected = retrieval_metrics(
        unit[0] @ unit[1].T, query, gallery, ks=(1, 3), self_match=False, **cameras, levels=levels
    )
    assert found == pytest.approx(expected, abs=1e-12)
    assert {"rank1", "mAP_coarse"} < found.keys()


def test_a_ranking_is_refused_where_junk_takes_no_rank():
    query, gallery, cameras, _, _ = seen_and_grouped()
    search = Search(query, gallery, (1,), self_match=False, **cameras)
    with pytest.raises(ValueError, match="cannot be scored with cameras"):
        search.depth  # noqa: B018
    with pytest.raises(ValueError, match="use a scoring that gives all scores, such as 'cosine'"):
        search.by_ranking(torch.arange(len(gallery)).expand(len(query), -1))


def test_a_ranking_has_no_metrics_of_levels():
    query, gallery, _, levels, _ = seen_and_grouped()
    ranking = torch.arange(len(gallery)).expand(len(query), -1)
    found, plain = (
        Search(query, gallery, (1,), self_match=False, levels=some).by_ranking(ranking) for some in (levels, {})
    )
    assert found == plain
