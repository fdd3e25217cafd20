"""What the queries of each class reach adds up to what all queries reach."""

import numpy as np
import pandas as pd
import pytest
import torch

from lookalike.metrics.of_classes import COLUMNS, SearchOfClasses, over_classes
from lookalike.metrics.search import Search

METRICS = ["R@1", "RP", "MAP@R", "mAP"]


def embeddings(count, seed=0):
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def search(kind, *, self_match=True, counted=False):
    labels = torch.tensor([7, 7, 3, 3, 3, 3, 5, 9, 9, 9])  # 5 stands alone, and has nothing to find
    others = labels if self_match else torch.tensor([3, 9, 9, 7, 7, 7, 3])
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
def test_the_metrics_are_those_of_a_plain_search_and_of_its_classes(self_match, counted):
    kinds = [search(kind, self_match=self_match, counted=counted) for kind in (Search, SearchOfClasses)]
    query = embeddings(10)
    gallery = query if self_match else embeddings(7, 1)
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
