"""Lists of positives against loops.

Cameras and levels of a hierarchy against loops written from the protocols.
"""

from __future__ import annotations

import math

import pytest
import torch

from lookalike.metrics.definitions import count_positives, find_positives
from lookalike.metrics.retrieval import retrieval_metrics, retrieval_metrics_from_embeddings


def positives_by_loops(query_labels, gallery_labels, *, self_match):
    return [
        [j for j, other in enumerate(gallery_labels.tolist()) if other == label and not (self_match and i == j)]
        for i, label in enumerate(query_labels.tolist())
    ]


@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("classes", [1, 4, 30])
def test_positives_are_the_items_of_the_label_without_the_query(classes, self_match):
    generator = torch.Generator().manual_seed(classes)
    gallery_labels = torch.randint(-3, classes - 3, (25,), generator=generator)
    query_labels = gallery_labels if self_match else torch.randint(-3, classes, (12,), generator=generator)
    expected = positives_by_loops(query_labels, gallery_labels, self_match=self_match)
    counts = count_positives(query_labels, gallery_labels, self_match=self_match)
    assert counts.tolist() == [len(items) for items in expected]
    queries = counts.nonzero().flatten()
    listed = find_positives(query_labels, gallery_labels, self_match=self_match).of(queries)
    for query, row in zip(queries.tolist(), listed.tolist(), strict=True):
        count = len(expected[query])
        assert row[:count] == expected[query]
        assert row[count:] == [expected[query][-1]] * (len(row) - count)


@pytest.mark.parametrize("self_match", [False, True])
def test_with_cameras_a_positive_was_seen_by_another_one(self_match):
    generator = torch.Generator().manual_seed(3)
    gallery_labels, gallery_cameras = (torch.randint(-2, high, (40,), generator=generator) for high in (5, 2))
    rows = slice(None) if self_match else slice(0, 11)
    query_labels, query_cameras = gallery_labels[rows], gallery_cameras[rows]
    counts = count_positives(
        query_labels,
        gallery_labels,
        self_match=self_match,
        query_cameras=query_cameras,
        gallery_cameras=gallery_cameras,
    )
    assert counts.tolist() == [
        sum(
            int(label == other and camera != seen)
            for other, seen in zip(gallery_labels.tolist(), gallery_cameras.tolist(), strict=True)
        )
        for label, camera in zip(query_labels.tolist(), query_cameras.tolist(), strict=True)
    ]


def test_labels_that_differ_are_refused_where_the_query_is_in_the_gallery():
    labels = torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match=r"differ \(3 and 2 labels\)"):
        count_positives(labels, labels[:2], self_match=True)
    with pytest.raises(ValueError, match=r"differ \(3 and 3 labels\)"):
        count_positives(labels, labels.flip(0), self_match=True)


KS = (1, 3)


def ranking_by_loops(row, left_out):
    """Gallery indices, best first, lower index first on ties, without those left out."""
    return sorted((j for j in range(len(row)) if j not in left_out), key=lambda j: (-row[j], j))


def values_of_a_query(correct, ks, count_query_in_r):
    """The metrics of one query, from whether each ranked item is a positive."""
    positives = sum(correct)
    r = positives + count_query_in_r
    precision_at = [sum(correct[: i + 1]) / (i + 1) for i in range(len(correct))]
    within = [precision for precision, hit in zip(precision_at[:r], correct[:r], strict=True) if hit]
    of_all = [precision for precision, hit in zip(precision_at, correct, strict=True) if hit]
    recall = {f"R@{k}": float(any(correct[:k])) for k in ks}
    return recall | {
        "P@1": float(correct[0]),
        "RP": sum(correct[:r]) / r,
        "MAP@R": sum(within) / r,
        "mAP": sum(of_all) / positives,
    }


def metrics_by_loops(
    similarity, query_labels, gallery_labels, *, self_match, cameras=None, levels=None, count_query_in_r=False, ks=KS
):
    """Notes: same identity and same camera is junk; on a level the positives are those of the coarse label."""
    per_query, per_level = [], {name: [] for name in levels or {}}
    for i, row in enumerate(similarity.tolist()):
        junk = {
            j
            for j in range(len(row))
            if cameras is not None and gallery_labels[j] == query_labels[i] and cameras[1][j] == cameras[0][i]
        }
        ranking = ranking_by_loops(row, junk | ({i} if self_match else set()))
        correct = [bool(gallery_labels[j] == query_labels[i]) for j in ranking]
        if any(correct):
            per_query.append(values_of_a_query(correct, ks, count_query_in_r))
        for name, (query, gallery) in (levels or {}).items():
            correct = [bool(gallery[j] == query[i]) for j in ranking]
            if any(correct):
                per_level[name].append(values_of_a_query(correct, (), False)["mAP"])
    means = {name: sum(values[name] for values in per_query) / len(per_query) for name in per_query[0]}
    if cameras is not None:
        means["rank1"] = means["P@1"]
    return means | {f"mAP_{name}": sum(values) / len(values) for name, values in per_level.items()}


def case(seed, *, queries=19, gallery=37, classes=6, cameras=3, steps=None, self_match=False):
    """Similarity; labels, cameras and two levels, each of queries and gallery."""
    generator = torch.Generator().manual_seed(seed)
    gallery = queries if self_match else gallery
    similarity = torch.randn(queries, gallery, generator=generator, dtype=torch.float64)
    if steps is not None:  # few different scores, so that nearly everything ties
        similarity = (similarity * steps / 4).round() / 2

    def drawn(high):
        query = torch.randint(high, (queries,), generator=generator)
        return query, query if self_match else torch.randint(high, (gallery,), generator=generator)

    labels, seen = drawn(classes), drawn(cameras)
    levels = {"mid": tuple(side // 2 for side in labels), "coarse": tuple(side // 4 for side in labels)}
    return similarity, labels, seen, levels


@pytest.mark.parametrize("count_query_in_r", [False, True])
@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("steps", [None, 4, 1])
@pytest.mark.parametrize("seed", range(3))
def test_pictures_of_the_querys_identity_and_camera_take_no_rank(seed, steps, self_match, count_query_in_r):
    similarity, labels, cameras, _ = case(seed, steps=steps, self_match=self_match)
    arguments = {"self_match": self_match, "count_query_in_r": count_query_in_r, "ks": KS}
    found = retrieval_metrics(similarity, *labels, query_cameras=cameras[0], gallery_cameras=cameras[1], **arguments)
    assert found == pytest.approx(metrics_by_loops(similarity, *labels, cameras=cameras, **arguments), abs=1e-12)
    assert found != retrieval_metrics(similarity, *labels, **arguments)
    assert found["rank1"] == found["R@1"]


@pytest.mark.parametrize("with_cameras", [False, True])
@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("steps", [None, 4, 1])
@pytest.mark.parametrize("seed", range(3))
def test_on_a_level_all_pictures_of_the_coarser_label_are_positives(seed, steps, self_match, with_cameras):
    similarity, labels, cameras, levels = case(seed, steps=steps, self_match=self_match)
    seen = {"query_cameras": cameras[0], "gallery_cameras": cameras[1]} if with_cameras else {}
    found = retrieval_metrics(similarity, *labels, ks=KS, self_match=self_match, levels=levels, **seen)
    expected = metrics_by_loops(
        similarity, *labels, self_match=self_match, cameras=cameras if with_cameras else None, levels=levels
    )
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_small_case_of_re_identification_worked_by_hand():
    # Order: own camera's (junk), stranger's from the own camera, own from another, stranger's, own from another.
    similarity = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5]])
    identities, cameras = torch.tensor([1, 2, 1, 2, 1]), torch.tensor([1, 1, 2, 2, 3])
    found = retrieval_metrics(
        similarity,
        torch.tensor([1]),
        identities,
        ks=(1, 2),
        self_match=False,
        query_cameras=torch.tensor([1]),
        gallery_cameras=cameras,
    )
    expected = {"R@1": 0, "R@2": 1, "P@1": 0, "RP": 1 / 2, "MAP@R": 1 / 4, "mAP": (1 / 2 + 2 / 4) / 2, "rank1": 0}
    assert found == pytest.approx(expected, abs=1e-15)


def test_a_small_hierarchy_worked_by_hand():
    # Ranking of the only query: cousin, sister, stranger, cousin; classes 0 and 1 are one group, 2 is another.
    similarity = torch.tensor([[0.9, 0.8, 0.7, 0.6]])
    found = retrieval_metrics(
        similarity,
        torch.tensor([0]),
        torch.tensor([1, 0, 2, 1]),
        ks=(1,),
        self_match=False,
        levels={"coarse": (torch.tensor([0]), torch.tensor([0, 0, 1, 0]))},
    )
    assert found["mAP"] == 1 / 2
    assert found["mAP_coarse"] == pytest.approx((1 + 1 + 3 / 4) / 3, abs=1e-15)


def test_a_query_whose_positives_are_all_junk_is_left_out():
    similarity = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
    arguments = {"ks": (1,), "self_match": False, "gallery_cameras": torch.tensor([1, 2])}
    found = retrieval_metrics(
        similarity, torch.tensor([0, 1]), torch.tensor([0, 1]), query_cameras=torch.tensor([1, 1]), **arguments
    )
    assert found["R@1"] == 0.0  # of the second query alone
    with pytest.raises(ValueError, match="no query has a positive"):
        retrieval_metrics(
            similarity, torch.tensor([0, 1]), torch.tensor([0, 1]), query_cameras=torch.tensor([1, 2]), **arguments
        )


def test_one_camera_for_each_picture_changes_nothing():
    similarity, labels, _, levels = case(7, self_match=True)
    cameras = torch.arange(len(similarity))
    seen = {"query_cameras": cameras, "gallery_cameras": cameras}
    found = retrieval_metrics(similarity, *labels, ks=KS, self_match=True, levels=levels, **seen)
    without = retrieval_metrics(similarity, *labels, ks=KS, self_match=True, levels=levels)
    assert {name: value for name, value in found.items() if name != "rank1"} == without


def test_junk_keeps_its_score_from_mattering():
    similarity, labels, cameras, levels = case(8)
    seen = {"query_cameras": cameras[0], "gallery_cameras": cameras[1]}
    junk = (labels[0][:, None] == labels[1]) & (cameras[0][:, None] == cameras[1])
    assert junk.any()
    found = [
        retrieval_metrics(similarity.masked_fill(junk, score), *labels, ks=KS, self_match=False, levels=levels, **seen)
        for score in (-math.inf, 0.0, math.inf)
    ]
    assert found[1:] == found[:1] * 2


def test_levels_leave_the_other_metrics_as_they_are():
    similarity, labels, _, levels = case(9)
    found = retrieval_metrics(similarity, *labels, ks=KS, self_match=False, levels=levels)
    assert {name: found[name] for name in found if name not in ("mAP_mid", "mAP_coarse")} == retrieval_metrics(
        similarity, *labels, ks=KS, self_match=False
    )


def test_a_level_of_the_labels_themselves_has_their_average_precision():
    similarity, labels, cameras, _ = case(10, steps=3)
    seen = {"query_cameras": cameras[0], "gallery_cameras": cameras[1]}
    found = retrieval_metrics(similarity, *labels, ks=KS, self_match=False, levels={"same": labels}, **seen)
    assert found["mAP_same"] == pytest.approx(found["mAP"], abs=1e-12)


def test_a_class_of_one_counts_on_a_level_where_it_has_company():
    similarity = torch.tensor([[0.0, 0.2, 0.9], [0.2, 0.0, 0.1], [0.9, 0.1, 0.0]])
    labels, coarse = torch.tensor([0, 0, 1]), torch.tensor([0, 0, 0])
    found = retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True, levels={"top": (coarse, coarse)})
    assert found["mAP"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["mAP_top"] == 1.0
    alone = torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="no query has a positive in the gallery on level 'top'"):
        retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True, levels={"top": (alone, alone)})


@pytest.mark.parametrize("self_match", [False, True])
def test_blocks_of_embeddings_change_no_bit_and_every_score_is_computed_once(self_match):
    _, labels, cameras, levels = case(11, queries=40, gallery=50, self_match=self_match)
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(40, 5, generator=generator)
    gallery = query if self_match else torch.randn(50, 5, generator=generator)
    gallery[7:14] = gallery[:7]  # duplicates tie
    arguments = {"ks": KS, "self_match": self_match, "levels": levels}
    arguments |= {"query_cameras": cameras[0], "gallery_cameras": cameras[1]}
    results = [
        retrieval_metrics_from_embeddings(query, labels[0], gallery, labels[1], block=block, **arguments)
        for block in (1, 7, 1024)
    ]
    assert results[1:] == results[:1] * 2
    unit = [torch.nn.functional.normalize(side.double()) for side in (query, gallery)]
    expected = metrics_by_loops(
        (unit[0] @ unit[1].T).float(), *labels, self_match=self_match, cameras=cameras, levels=levels
    )
    assert results[0] == pytest.approx(expected, abs=1e-12)
    seen = []

    def score(some, others):
        seen.append(len(some))
        return some @ others.T

    retrieval_metrics_from_embeddings(query, labels[0], gallery, labels[1], block=16, score=score, **arguments)
    assert seen == [16, 16, 8]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_zeros_of_both_signs_and_infinities_keep_the_stable_order(dtype):
    similarity = torch.tensor([[-0.0, 0.0, math.inf, -math.inf, 0.0, math.inf]], dtype=dtype)
    labels, gallery_labels = torch.tensor([0]), torch.tensor([1, 0, 1, 0, 1, 0])
    arguments = {"self_match": False, "levels": {"same": (labels, gallery_labels)}}
    found = retrieval_metrics(similarity, labels, gallery_labels, ks=(1,), **arguments)
    # Order 2, 5, 0, 1, 4, 3: positives at 2, 4 and 6.
    assert found["mAP_same"] == found["mAP"] == 1 / 2


def test_cameras_and_levels_that_do_not_fit_are_refused():
    similarity, labels, cameras, levels = case(12)

    def metrics(query=cameras[0], gallery=cameras[1], levels=levels):
        return retrieval_metrics(
            similarity,
            *labels,
            ks=KS,
            self_match=False,
            query_cameras=query,
            gallery_cameras=gallery,
            levels=levels,
        )

    with pytest.raises(ValueError, match=r"cameras of the queries must be \(19,\) int64, not \(18,\) torch.int64"):
        metrics(query=cameras[0][1:])
    with pytest.raises(ValueError, match=r"cameras of the gallery items must be \(37,\) int64, not \(37, 1\)"):
        metrics(gallery=cameras[1][:, None])
    with pytest.raises(ValueError, match=r"must be \(37,\) int64, not \(37,\) torch.float64"):
        metrics(gallery=cameras[1].double())
    with pytest.raises(ValueError, match="gallery_cameras is missing"):
        metrics(gallery=None)
    with pytest.raises(ValueError, match="query_cameras is missing"):
        metrics(query=None)
    with pytest.raises(ValueError, match=r"labels of level 'mid' of the queries must be \(19,\) int64, not \(37,\)"):
        metrics(levels={"mid": (labels[1], labels[1])})


def test_cameras_and_levels_that_differ_are_refused_where_the_query_is_in_the_gallery():
    similarity, labels, cameras, _ = case(13, self_match=True)
    other = cameras[0].flip(0)
    with pytest.raises(
        ValueError, match="self_match=True needs query i to be gallery item i, but their cameras differ"
    ):
        retrieval_metrics(similarity, *labels, ks=KS, self_match=True, query_cameras=cameras[0], gallery_cameras=other)
    with pytest.raises(ValueError, match="but their labels of level 'coarse' differ"):
        retrieval_metrics(similarity, *labels, ks=KS, self_match=True, levels={"coarse": (cameras[0], other)})
