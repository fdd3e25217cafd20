"""A search ranks as deep as its metrics ask, and no deeper than its gallery.

R@1 alone is R@1 of the whole search.
The first items of a search are kept as every scoring ranks them.
What the queries of each class reach adds up to what all queries reach.
"""

import numpy as np
import pandas as pd
import pytest
import torch

from lookalike.metrics.retrieval import retrieval_metrics
from lookalike.metrics.search import COLUMNS, FirstMatches, FirstRank, Search, SearchOfClasses, cosine, over_classes
from lookalike.workflow.training.evaluation import NEED_ALL, SCORINGS

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


def search_of(kind, *, queries=40, gallery=40, self_match=True, cameras=False, classes=2, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(classes, (queries,), generator=generator)
    others = labels if self_match else torch.randint(classes, (gallery,), generator=generator)
    seen = [torch.randint(2, (len(side),), generator=generator) if cameras else None for side in (labels, others)]
    if cameras and self_match:
        seen[1] = seen[0]
    labels, others, *seen = (each if each is None else each.to(device) for each in (labels, others, *seen))
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
def test_the_recall_is_that_of_the_whole_search(queries, gallery, self_match, cameras, score, monkeypatch, device):
    monkeypatch.setattr("lookalike.metrics.ranking.WORKING_SET", 200)  # several blocks
    shape = {"queries": queries, "gallery": gallery, "self_match": self_match, "cameras": cameras, "device": device}
    pair = [side.to(device) for side in sides(queries, gallery, self_match)]
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


LABELS_MATCHES = torch.arange(12) % 3


@pytest.fixture(params=["whole", "blocks"])
def handled(request, monkeypatch):
    """Searches handle all scores at once, or five queries at a time and at last two."""
    if request.param == "blocks":
        monkeypatch.setattr("lookalike.metrics.ranking.WORKING_SET", 60)


def vectors(seed=0):
    drawn = torch.randn(12, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn / drawn.norm(dim=1, keepdim=True)


@pytest.mark.usefixtures("handled")
def test_cosine_keeps_the_nearest_with_their_scores_and_itself_only_where_it_may():
    units = vectors()
    similarity = units @ units.T
    search = FirstMatches(LABELS_MATCHES, LABELS_MATCHES, (), self_match=False, count=3)
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    places, scores = search.found[0]
    assert places.tolist() == similarity.topk(3, dim=1).indices.tolist()
    torch.testing.assert_close(scores, similarity.topk(3, dim=1).values, atol=1e-6, rtol=0)
    assert places[:, 0].tolist() == list(range(12))
    search = FirstMatches(LABELS_MATCHES, LABELS_MATCHES, (), self_match=True, count=3)
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    assert search.found[0][0].tolist() == similarity.fill_diagonal_(-2).topk(3, dim=1).indices.tolist()


@pytest.mark.usefixtures("handled")
def test_what_the_querys_camera_saw_of_its_class_comes_last():
    units, cameras = vectors(), torch.arange(12) % 2
    search = FirstMatches(
        LABELS_MATCHES, LABELS_MATCHES, (), self_match=False, query_cameras=cameras, gallery_cameras=cameras, count=12
    )
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    places, scores = search.found[0]
    junk = (LABELS_MATCHES[places] == LABELS_MATCHES[:, None]) & (cameras[places] == cameras[:, None])
    assert torch.equal(scores.isinf(), junk)
    assert int(junk.sum()) == 24
    assert not bool(junk[:, :10].any())


def test_a_ranking_has_no_scores():
    units = vectors()
    kept = {"embedding": units, "regions": torch.stack([units, units.flip(1)], dim=1)}
    search = FirstMatches(LABELS_MATCHES[:4], LABELS_MATCHES, (), self_match=False, count=3)
    SCORINGS["structural_matching"](None, {name: each[:4] for name, each in kept.items()}, kept, search)
    places, scores = search.found[0]
    assert places.shape == (4, 3)
    assert bool(scores.isnan().all())


@pytest.mark.parametrize("name", sorted(NEED_ALL))
def test_what_compares_by_neighbours_ranks_all_at_once(name):
    units = vectors()
    search = FirstMatches(LABELS_MATCHES, LABELS_MATCHES, (), self_match=True, count=2)
    SCORINGS[name](None, {"embedding": units}, {"embedding": units}, search, k=3)
    places = search.found[0][0]
    assert not bool((places == torch.arange(12)[:, None]).any())


METRICS = ["R@1", "RP", "MAP@R", "mAP"]


def embeddings(count, seed=0):
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def search(kind, *, self_match=True, counted=False, device="cpu"):
    labels = torch.tensor([7, 7, 3, 3, 3, 3, 5, 9, 9, 9], device=device)  # 5 stands alone, and has nothing to find
    others = labels if self_match else torch.tensor([3, 9, 9, 7, 7, 7, 3], device=device)
    return kind(labels, others, (1, 2), self_match=self_match, count_query_in_r=counted)


def slow_means(found, labels, similarity):
    """R@1 of each class, counted one by one."""
    rows = {}
    for label in sorted(set(labels.tolist())):
        hits = []
        for query in range(len(labels)):
            others = [i for i in range(len(labels)) if i != query]
            if labels[query] == label and any(labels[i] == label for i in others):
                hits.append(labels[max(others, key=lambda i: float(similarity[query, i]))] == label)
        if hits:
            rows[label] = len(hits), float(np.mean([bool(hit) for hit in hits]))
    return rows


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("self_match", [False, True])
def test_the_metrics_are_those_of_a_plain_search_and_of_its_classes(self_match, counted, device):
    shape = {"self_match": self_match, "counted": counted, "device": device}
    kinds = [search(kind, **shape) for kind in (Search, SearchOfClasses)]
    query = embeddings(10).to(device)
    gallery = query if self_match else embeddings(7, 1).to(device)
    plain, of_classes = (kind.by_score(query, gallery) for kind in kinds)
    assert of_classes == plain
    means = kinds[1].means()
    assert tuple(means.columns) == COLUMNS
    assert over_classes(means, METRICS) == pytest.approx({name: plain[name] for name in METRICS})


def test_a_class_counts_its_queries_that_have_something_to_find():
    of_classes, vectors = search(SearchOfClasses), embeddings(10)
    of_classes.by_score(vectors, vectors)
    means = of_classes.means()
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    expected = slow_means(means, of_classes.query_labels, unit @ unit.T)
    found = {row["label"]: (row["queries"], row["R@1"]) for row in means.to_dict("records")}
    assert found == expected
    assert list(found) == [3, 7, 9]


def test_first_ranks_give_the_same_but_no_map():
    whole, ranked, vectors = search(SearchOfClasses), search(SearchOfClasses), embeddings(10)
    whole.by_score(vectors, vectors)
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    similarity = (unit @ unit.T).fill_diagonal_(-torch.inf)
    ranked.by_ranking(similarity.argsort(dim=1, descending=True, stable=True)[:, : ranked.depth])
    pd.testing.assert_frame_equal(ranked.means().drop(columns="mAP"), whole.means().drop(columns="mAP"))
    assert ranked.means()["mAP"].isna().all()
