"""Retrieval metrics against loops written from the definitions, and against pytorch-metric-learning."""

from __future__ import annotations

import math

import pytest
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

from lookalike.metrics.definitions import count_positives
from lookalike.metrics.names import AVERAGE_PRECISIONS
from lookalike.metrics.retrieval import (
    retrieval_metrics,
    retrieval_metrics_from_embeddings,
    retrieval_metrics_from_ranking,
)
from lookalike.metrics.similarity import exact_cosine, fixed_point
from projects import ROOT


def ranking_by_loops(similarity, *, self_match):
    """Gallery indices of each query, best first, lower index first on ties, the query itself left out."""
    rows = similarity.tolist()
    return [
        sorted((j for j in range(len(row)) if not (self_match and j == i)), key=lambda j, row=row: (-row[j], j))
        for i, row in enumerate(rows)
    ]


def metrics_by_loops(similarity, query_labels, gallery_labels, *, ks, self_match, count_query_in_r=False):
    """The definitions of the notes, one query at a time."""
    query_labels, gallery_labels = query_labels.tolist(), gallery_labels.tolist()
    per_query = []
    for label, ranking in zip(query_labels, ranking_by_loops(similarity, self_match=self_match), strict=True):
        correct = [gallery_labels[j] == label for j in ranking]
        positives = sum(correct)
        if positives == 0:
            continue
        r = positives + 1 if count_query_in_r else positives
        precision_at = [sum(correct[: i + 1]) / (i + 1) for i in range(len(correct))]
        values = {f"R@{k}": float(any(correct[:k])) for k in ks}
        values["P@1"] = float(correct[0])
        values["RP"] = sum(correct[:r]) / r
        values["MAP@R"] = sum(p for p, hit in zip(precision_at[:r], correct[:r], strict=True) if hit) / r
        values["mAP"] = sum(p for p, hit in zip(precision_at, correct, strict=True) if hit) / positives
        per_query.append(values)
    return {name: sum(values[name] for values in per_query) / len(per_query) for name in per_query[0]}


def random_case(seed, *, queries=23, gallery=41, classes=6, dtype=torch.float64, levels=None):
    generator = torch.Generator().manual_seed(seed)
    similarity = torch.randn(queries, gallery, generator=generator, dtype=torch.float64)
    if levels is not None:  # few different scores, so nearly everything ties
        similarity = (similarity * levels / 4).round() / 2
    query_labels = torch.randint(classes, (queries,), generator=generator)
    gallery_labels = torch.randint(classes, (gallery,), generator=generator)
    return similarity.to(dtype), query_labels, gallery_labels


def clustered_embeddings(seed, *, classes=12, per_class=5, dim=16, spread=0.9, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)[
        torch.randperm(classes * per_class, generator=generator)
    ]
    centres = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    return (centres[labels] + spread * noise).to(dtype), labels


def cosine(query, gallery):
    return torch.nn.functional.normalize(query.double()) @ torch.nn.functional.normalize(gallery.double()).T


@pytest.mark.parametrize("count_query_in_r", [False, True])
@pytest.mark.parametrize("levels", [None, 4, 1])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_of_a_separate_gallery_equal_the_definitions(seed, levels, count_query_in_r, device):
    similarity, query_labels, gallery_labels = (part.to(device) for part in random_case(seed, levels=levels))
    arguments = {"ks": (1, 3, 41), "self_match": False, "count_query_in_r": count_query_in_r}
    expected = metrics_by_loops(similarity, query_labels, gallery_labels, **arguments)
    assert retrieval_metrics(similarity, query_labels, gallery_labels, **arguments) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("count_query_in_r", [False, True])
@pytest.mark.parametrize("levels", [None, 4, 1])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_without_the_query_itself_equal_the_definitions(seed, levels, count_query_in_r):
    similarity, labels, _ = random_case(seed, queries=29, gallery=29, classes=9, levels=levels)
    arguments = {"ks": (1, 2, 28), "self_match": True, "count_query_in_r": count_query_in_r}
    expected = metrics_by_loops(similarity, labels, labels, **arguments)
    assert retrieval_metrics(similarity, labels, labels, **arguments) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_metrics_of_shorter_floats_are_those_of_the_numbers_they_hold(dtype):
    similarity, query_labels, gallery_labels = random_case(5, dtype=dtype)
    expected = metrics_by_loops(similarity.double(), query_labels, gallery_labels, ks=(1, 5), self_match=False)
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, ks=(1, 5), self_match=False)
    assert metrics == pytest.approx(expected, abs=1e-12)


def test_a_small_case_worked_by_hand():
    # Ranking of the only query: wrong, right, right, wrong, right. Positives at ranks 2, 3 and 5, so R is 3 or 4.
    similarity = torch.tensor([[0.1, 0.9, 0.8, 0.7, 0.4]])
    query_labels, gallery_labels = torch.tensor([1]), torch.tensor([1, 0, 1, 1, 0])
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, ks=(1, 2), self_match=False)
    assert metrics == pytest.approx(
        {
            "R@1": 0,
            "R@2": 1,
            "P@1": 0,
            "RP": 2 / 3,
            "MAP@R": (1 / 2 + 2 / 3) / 3,
            "mAP": (1 / 2 + 2 / 3 + 3 / 5) / 3,
        },
        abs=1e-15,
    )
    counted = retrieval_metrics(
        similarity, query_labels, gallery_labels, ks=(1, 2), self_match=False, count_query_in_r=True
    )
    changed = {"RP": 2 / 4, "MAP@R": (1 / 2 + 2 / 3) / 4}
    assert counted == pytest.approx(metrics | changed, abs=1e-15)


def test_metrics_are_python_floats_under_the_agreed_keys():
    similarity, labels, _ = random_case(0, queries=30, gallery=30)
    metrics = retrieval_metrics(similarity, labels, labels, self_match=True)
    assert list(metrics) == ["R@1", "R@2", "R@4", "R@8", "P@1", "RP", "MAP@R", "mAP"]
    assert all(type(value) is float for value in metrics.values())


@pytest.mark.parametrize("seed", range(3))
def test_metrics_agree_with_pytorch_metric_learning(seed):
    embeddings, labels = clustered_embeddings(seed, classes=15, per_class=6)
    unit = torch.nn.functional.normalize(embeddings)
    calculator = AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r", "mean_average_precision"),
        k=len(unit) - 1,
    )
    reference = calculator.get_accuracy(unit, labels, unit, labels, ref_includes_query=True)
    exact = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1,), self_match=True)
    assert exact["P@1"] == pytest.approx(reference["precision_at_1"], abs=1e-6)
    # PML's R is the number of positives when its list is at least that long.
    assert exact["RP"] == pytest.approx(reference["r_precision"], abs=1e-6)
    assert exact["MAP@R"] == pytest.approx(reference["mean_average_precision_at_r"], abs=1e-6)
    assert exact["mAP"] == pytest.approx(reference["mean_average_precision"], abs=1e-6)


def test_metrics_agree_with_pytorch_metric_learning_on_a_separate_gallery():
    embeddings, labels = clustered_embeddings(7, classes=10, per_class=9)
    unit = torch.nn.functional.normalize(embeddings)
    calculator = AccuracyCalculator(include=("precision_at_1", "r_precision", "mean_average_precision_at_r"), k=None)
    reference = calculator.get_accuracy(unit[:30], labels[:30], unit[30:], labels[30:], ref_includes_query=False)
    metrics = retrieval_metrics(cosine(unit[:30], unit[30:]), labels[:30], labels[30:], ks=(1,), self_match=False)
    assert metrics["P@1"] == pytest.approx(reference["precision_at_1"], abs=1e-6)
    assert metrics["RP"] == pytest.approx(reference["r_precision"], abs=1e-6)
    assert metrics["MAP@R"] == pytest.approx(reference["mean_average_precision_at_r"], abs=1e-6)


def test_the_order_of_the_gallery_does_not_matter_without_ties():
    similarity, query_labels, gallery_labels = random_case(1)
    order = torch.randperm(41, generator=torch.Generator().manual_seed(0))
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, self_match=False)
    assert retrieval_metrics(similarity[:, order], query_labels, gallery_labels[order], self_match=False) == metrics


def test_the_order_of_the_queries_does_not_matter():
    similarity, query_labels, gallery_labels = random_case(2, levels=4)
    order = torch.randperm(23, generator=torch.Generator().manual_seed(0))
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, self_match=False)
    assert retrieval_metrics(similarity[order], query_labels[order], gallery_labels, self_match=False) == metrics


@pytest.mark.parametrize("transform", [torch.exp, lambda s: s**3 - 5, lambda s: 1e300 * s, lambda s: 1e-300 * s])
def test_a_monotone_transform_of_the_scores_changes_nothing(transform):
    similarity, query_labels, gallery_labels = random_case(3, levels=40)
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, self_match=False)
    assert retrieval_metrics(transform(similarity), query_labels, gallery_labels, self_match=False) == metrics


def test_only_the_order_of_one_row_matters_not_its_offset():
    similarity, query_labels, gallery_labels = random_case(4, levels=40)
    offsets = torch.arange(23.0, dtype=torch.float64)[:, None] * 8
    metrics = retrieval_metrics(similarity, query_labels, gallery_labels, self_match=False)
    assert retrieval_metrics(similarity + offsets, query_labels, gallery_labels, self_match=False) == metrics


@pytest.mark.parametrize("own_score", [-math.inf, 0.0, 5.0, math.inf])
def test_the_query_is_masked_by_index_whatever_its_own_score(own_score):
    similarity, labels, _ = random_case(6, queries=20, gallery=20, classes=4, levels=6)
    expected = metrics_by_loops(similarity, labels, labels, ks=(1, 2), self_match=True)
    metrics = retrieval_metrics(similarity.fill_diagonal_(own_score), labels, labels, ks=(1, 2), self_match=True)
    assert metrics == pytest.approx(expected, abs=1e-12)


def test_a_duplicate_of_the_query_stays_in_the_gallery():
    # Images 0 and 1 are one picture under two labels, as are 2 and 3 under one: dropping by value would lose them.
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.9, 0.1]])
    labels = torch.tensor([0, 1, 2, 2, 0])
    metrics = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1, 2), self_match=True)
    # Query 0 finds 1 (wrong), 4 (right); 2 and 3 find each other; 4 finds 0 before its duplicate 1; 1 is left out.
    assert metrics["R@1"] == 3 / 4
    assert metrics["R@2"] == 1


def test_equal_scores_are_ranked_by_index():
    labels = torch.tensor([7, 8])
    assert retrieval_metrics(torch.zeros(1, 2), labels[:1], labels, ks=(1,), self_match=False)["P@1"] == 1
    assert retrieval_metrics(torch.zeros(1, 2), labels[1:], labels, ks=(1,), self_match=False)["P@1"] == 0
    signed = torch.tensor([[-0.0, 0.0]])
    assert retrieval_metrics(signed, labels[:1], labels, ks=(1,), self_match=False)["P@1"] == 1


def test_infinite_scores_come_first_and_last():
    similarity = torch.tensor([[0.5, -math.inf, math.inf, -math.inf, math.inf, 0.1]])
    gallery_labels = torch.tensor([0, 1, 0, 0, 1, 1])
    for label in (0, 1):
        query_labels = torch.tensor([label])
        expected = metrics_by_loops(similarity, query_labels, gallery_labels, ks=(1, 6), self_match=False)
        metrics = retrieval_metrics(similarity, query_labels, gallery_labels, ks=(1, 6), self_match=False)
        assert metrics == pytest.approx(expected, abs=1e-15)


def test_float64_scores_are_not_rounded_to_float32():
    similarity = torch.tensor([[1.0, 1.0 + 1e-12]], dtype=torch.float64)
    metrics = retrieval_metrics(similarity, torch.tensor([1]), torch.tensor([0, 1]), ks=(1,), self_match=False)
    assert metrics["P@1"] == 1


def test_float64_embeddings_are_not_rounded_to_float32():
    gallery = torch.tensor([[1.0, 1e-5], [1.0, 0.9e-5]], dtype=torch.float64)  # cosines differ by 1e-11
    query = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    metrics = retrieval_metrics_from_embeddings(
        query, torch.tensor([1]), gallery, torch.tensor([0, 1]), ks=(1,), self_match=False
    )
    assert metrics["P@1"] == 1


@pytest.mark.parametrize("images", [2, 6, 60])
def test_a_perfect_ranking_reaches_one_and_with_the_query_counted_only_the_share_of_the_others(images):
    labels = torch.arange(3).repeat_interleave(images)
    similarity = (labels[:, None] == labels).double()
    metrics = retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True)
    assert set(metrics.values()) == {1.0}
    counted = retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True, count_query_in_r=True)
    assert counted["RP"] == pytest.approx((images - 1) / images, abs=1e-15)
    assert counted["MAP@R"] == pytest.approx((images - 1) / images, abs=1e-15)
    assert counted["mAP"] == counted["R@1"] == counted["P@1"] == 1


@pytest.mark.parametrize("count_query_in_r", [False, True])
def test_one_class_only_is_always_right(count_query_in_r):
    similarity, _, _ = random_case(0, queries=7, gallery=7)
    labels = torch.zeros(7, dtype=torch.int64)
    metrics = retrieval_metrics(
        similarity, labels, labels, ks=(1, 6), self_match=True, count_query_in_r=count_query_in_r
    )
    assert metrics["R@1"] == metrics["R@6"] == metrics["mAP"] == 1
    assert metrics["RP"] == pytest.approx(6 / 7 if count_query_in_r else 1, abs=1e-15)


def test_queries_without_a_positive_are_left_out_and_can_be_counted():
    similarity, labels, _ = random_case(8, queries=12, gallery=12, classes=3)
    alone = torch.cat([labels[:9], torch.tensor([50, 51, 52])])
    expected = metrics_by_loops(similarity, alone, alone, ks=(1,), self_match=True)
    assert retrieval_metrics(similarity, alone, alone, ks=(1,), self_match=True) == pytest.approx(expected, abs=1e-12)
    assert count_positives(alone, alone, self_match=True)[9:].tolist() == [0, 0, 0]
    assert int((count_positives(alone, alone, self_match=True) == 0).sum()) == sum(
        alone.tolist().count(label) == 1 for label in alone.tolist()
    )


def test_single_image_classes_alone_are_refused():
    labels = torch.arange(5)
    with pytest.raises(ValueError, match="no query has a positive"):
        retrieval_metrics(torch.rand(5, 5), labels, labels, ks=(1,), self_match=True)
    with pytest.raises(ValueError, match="no query has a positive"):
        retrieval_metrics_from_embeddings(torch.rand(5, 2), labels, torch.rand(5, 2), labels, ks=(1,), self_match=True)
    with pytest.raises(ValueError, match="no query has a positive"):
        retrieval_metrics(torch.rand(5, 5), labels + 9, labels, ks=(1,), self_match=False)


@pytest.mark.parametrize("self_match", [False, True])
def test_recall_rejects_a_cutoff_beyond_the_gallery(self_match):
    similarity, labels, _ = random_case(0, queries=10, gallery=10, classes=2)
    width = 9 if self_match else 10
    assert f"R@{width}" in retrieval_metrics(similarity, labels, labels, ks=(width,), self_match=self_match)
    for k in (0, -1, width + 1):
        with pytest.raises(ValueError, match=rf"k={k} is outside \[1, {width}\]"):
            retrieval_metrics(similarity, labels, labels, ks=(1, k), self_match=self_match)
        with pytest.raises(ValueError, match=rf"k={k} is outside \[1, {width}\]"):
            retrieval_metrics_from_embeddings(similarity, labels, similarity, labels, ks=(k,), self_match=self_match)


@pytest.mark.parametrize(("row", "column"), [(2, 3), (4, 4)])
def test_nan_is_refused_and_named(row, column):
    similarity, labels, _ = random_case(0, queries=10, gallery=10, classes=2)
    similarity[row, column] = math.nan
    with pytest.raises(ValueError, match=f"row {row}, column {column} is NaN"):
        retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True)


def test_nan_in_a_later_block_is_named_by_its_query():
    embeddings, labels = clustered_embeddings(0)

    def score(query, gallery):
        scores = query @ gallery.T
        scores[query[:, 0] == embeddings[33, 0], 2] = math.nan
        return scores

    with pytest.raises(ValueError, match="row 33, column 2 is NaN"):
        retrieval_metrics_from_embeddings(
            embeddings, labels, embeddings, labels, ks=(1,), self_match=True, score=score, block=7
        )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_embeddings_that_are_not_finite_are_refused(value):
    embeddings, labels = clustered_embeddings(0)
    embeddings[3, 2] = value
    with pytest.raises(ValueError, match="embedding 3 holds NaN or infinity"):
        retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1,), self_match=True)


def test_shapes_that_do_not_belong_together_are_refused():
    similarity, query_labels, gallery_labels = random_case(0, queries=10, gallery=12)
    with pytest.raises(ValueError, match=r"similarity must be \(10, 11\)"):
        retrieval_metrics(similarity, query_labels, gallery_labels[:11], self_match=False)
    with pytest.raises(ValueError, match=r"similarity must be \(9, 12\)"):
        retrieval_metrics(similarity, query_labels[:9], gallery_labels, self_match=False)
    with pytest.raises(ValueError, match="float, not"):
        retrieval_metrics(similarity.long(), query_labels, gallery_labels, self_match=False)
    with pytest.raises(ValueError, match="self_match=True needs query i to be gallery item i"):
        retrieval_metrics(similarity, query_labels, gallery_labels, self_match=True)
    with pytest.raises(ValueError, match="self_match=True needs query i to be gallery item i"):
        retrieval_metrics(similarity[:, :10], query_labels, query_labels.flip(0), self_match=True)
    with pytest.raises(ValueError, match="query_labels must be a vector of int64"):
        retrieval_metrics(similarity, query_labels.double(), gallery_labels, self_match=False)
    with pytest.raises(ValueError, match="gallery_labels must be a vector of int64"):
        retrieval_metrics(similarity, query_labels, gallery_labels[:, None], self_match=False)


def test_embeddings_and_options_that_do_not_fit_are_refused():
    embeddings, labels = clustered_embeddings(0)

    def metrics(query=embeddings, gallery=embeddings, **options):
        arguments = {"ks": (1,), "self_match": True} | options
        return retrieval_metrics_from_embeddings(query, labels, gallery, labels, **arguments)

    with pytest.raises(ValueError, match="59 queries and 60 gallery items need as many labels, not 60 and 60"):
        metrics(query=embeddings[:59])
    with pytest.raises(ValueError, match="agree in D and dtype"):
        metrics(gallery=embeddings[:, :8])
    with pytest.raises(ValueError, match="agree in D and dtype"):
        metrics(gallery=embeddings.double())
    with pytest.raises(ValueError, match="block=0 must be at least 1"):
        metrics(block=0)
    with pytest.raises(ValueError, match="'euclidean' is neither 'cosine' nor a function"):
        metrics(score="euclidean")
    with pytest.raises(ValueError, match=r"score must return \(60, 60\) float, not \(60, 1\)"):
        metrics(score=lambda query, gallery: (query @ gallery.T)[:, :1])
    with pytest.raises(ValueError, match=r"embeddings must be \(N, D\) float"):
        metrics(embeddings.long(), embeddings.long())


@pytest.mark.parametrize("count_query_in_r", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_metrics_of_embeddings_equal_the_definitions(dtype, count_query_in_r, device):
    embeddings, labels = (part.to(device) for part in clustered_embeddings(9, dtype=dtype))
    arguments = {"ks": (1, 4), "self_match": True, "count_query_in_r": count_query_in_r}
    expected = metrics_by_loops(cosine(embeddings, embeddings), labels, labels, **arguments)
    metrics = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, **arguments)
    assert metrics == pytest.approx(expected, abs=1e-12)
    lengths = torch.logspace(-3, 3, len(embeddings), base=2).round(decimals=2)
    rescaled = embeddings * lengths[:, None].to(device, dtype)
    metrics = retrieval_metrics_from_embeddings(rescaled, labels, rescaled, labels, **arguments)
    assert metrics == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_embeddings_are_scored_as_float32(dtype):
    embeddings, labels = clustered_embeddings(10)
    halves = embeddings.to(dtype)
    metrics = retrieval_metrics_from_embeddings(halves, labels, halves, labels, ks=(1,), self_match=True)
    floats = halves.float()
    assert metrics == retrieval_metrics_from_embeddings(floats, labels, floats, labels, ks=(1,), self_match=True)


def test_metrics_of_a_separate_gallery_of_embeddings_equal_the_definitions():
    embeddings, labels = clustered_embeddings(11)
    query, gallery = embeddings[:17], embeddings[17:]
    expected = metrics_by_loops(cosine(query, gallery), labels[:17], labels[17:], ks=(1, 43), self_match=False)
    metrics = retrieval_metrics_from_embeddings(query, labels[:17], gallery, labels[17:], ks=(1, 43), self_match=False)
    assert metrics == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_block_size_changes_no_bit(dtype):
    embeddings, labels = clustered_embeddings(12, classes=40, per_class=5, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    copies = torch.randint(len(embeddings), (60,), generator=generator)  # duplicates, some under another label
    embeddings = torch.cat([embeddings, embeddings[copies], embeddings[copies] * (1 + 1e-6)])
    labels = torch.cat([labels, labels[copies], torch.randint(40, (60,), generator=generator)])
    results = [
        retrieval_metrics_from_embeddings(
            embeddings, labels, embeddings, labels, ks=(1, 9), self_match=True, block=block
        )
        for block in (1, 7, 64, 1024)
    ]
    assert results[1:] == results[:1] * 3


def test_duplicates_are_ranked_by_index_wherever_they_stand():
    # Every vector is there many times: a product that rounds by column would put them out of order.
    embeddings, labels = clustered_embeddings(13, classes=8, per_class=2, dim=37)
    embeddings, labels = embeddings.repeat(9, 1), labels.repeat(9)
    labels[::5] = 3
    unique_scores = cosine(embeddings[:16], embeddings[:16])
    similarity = unique_scores.repeat(9, 9)  # equal vectors get equal scores by construction
    expected = metrics_by_loops(similarity, labels, labels, ks=(1, 8), self_match=True)
    for dtype in (torch.float32, torch.float64):
        vectors = embeddings.to(dtype)
        metrics = retrieval_metrics_from_embeddings(vectors, labels, vectors, labels, ks=(1, 8), self_match=True)
        assert metrics == pytest.approx(expected, abs=1e-12)


def test_a_score_function_sees_blocks_of_queries_and_the_whole_gallery():
    embeddings, labels = clustered_embeddings(14, dtype=torch.float64)
    seen = []

    def negative_distance(query, gallery):
        seen.append((len(query), len(gallery)))
        return -torch.cdist(query, gallery)

    metrics = retrieval_metrics_from_embeddings(
        embeddings, labels, embeddings, labels, ks=(1, 2), self_match=True, score=negative_distance, block=16
    )
    assert seen == [(16, 60), (16, 60), (16, 60), (12, 60)]
    expected = metrics_by_loops(-torch.cdist(embeddings, embeddings), labels, labels, ks=(1, 2), self_match=True)
    assert metrics == pytest.approx(expected, abs=1e-12)


def test_a_score_function_may_take_anything_that_can_be_sliced():
    class Levels:
        def __init__(self, parts):
            self.parts = parts

        def __len__(self):
            return len(self.parts[0])

        def __getitem__(self, rows):
            return Levels([part[rows] for part in self.parts])

    embeddings, labels = clustered_embeddings(15, dtype=torch.float64)
    levels = Levels([embeddings[:, :8], embeddings[:, 8:]])

    def score(query, gallery):
        return sum(a @ b.T for a, b in zip(query.parts, gallery.parts, strict=True))

    metrics = retrieval_metrics_from_embeddings(
        levels, labels, levels, labels, ks=(1,), self_match=True, score=score, block=13
    )
    assert metrics == pytest.approx(
        retrieval_metrics(embeddings @ embeddings.T, labels, labels, ks=(1,), self_match=True), abs=1e-12
    )
    with pytest.raises(ValueError, match="'cosine' needs tensors, not Levels"):
        retrieval_metrics_from_embeddings(levels, labels, levels, labels, ks=(1,), self_match=True)


def test_scores_and_embeddings_may_require_gradients():
    embeddings, labels = clustered_embeddings(16)
    expected = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1,), self_match=True)
    leaf = embeddings.clone().requires_grad_()
    assert retrieval_metrics_from_embeddings(leaf, labels, leaf, labels, ks=(1,), self_match=True) == expected
    similarity = cosine(leaf, leaf)
    assert retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True)["P@1"] == expected["P@1"]


def test_inputs_are_left_as_they_were():
    similarity, labels, _ = random_case(0, queries=10, gallery=10, classes=2)
    before = similarity.clone(), labels.clone()
    retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True)
    retrieval_metrics_from_embeddings(similarity, labels, similarity, labels, ks=(1,), self_match=True)
    assert torch.equal(similarity, before[0])
    assert torch.equal(labels, before[1])


# Rankings


@pytest.mark.parametrize("count_query_in_r", [False, True])
@pytest.mark.parametrize("self_match", [False, True])
def test_a_ranking_gives_the_metrics_of_the_scores_it_was_made_from(self_match, count_query_in_r, device):
    parts = random_case(20, queries=30, gallery=30, classes=8, levels=6)
    similarity, labels, _ = (part.to(device) for part in parts)
    arguments = {"ks": (1, 4), "count_query_in_r": count_query_in_r}
    full = retrieval_metrics(similarity, labels, labels, self_match=self_match, **arguments)
    sizes = count_positives(labels, labels, self_match=self_match)
    depth = int(sizes.max()) + count_query_in_r
    ranking = torch.tensor(ranking_by_loops(similarity, self_match=self_match), device=device)[:, :depth]
    metrics = retrieval_metrics_from_ranking(ranking, labels, labels, class_sizes=sizes, **arguments)
    assert "mAP" not in metrics
    assert metrics == {name: value for name, value in full.items() if name != "mAP"}


def test_a_ranking_too_short_for_r_is_refused():
    similarity, labels, _ = random_case(21, queries=30, gallery=30, classes=3)
    sizes = count_positives(labels, labels, self_match=True)
    largest = int(sizes.max())
    ranking = torch.tensor(ranking_by_loops(similarity, self_match=True))
    retrieval_metrics_from_ranking(ranking[:, :largest], labels, labels, class_sizes=sizes, ks=(1,))
    with pytest.raises(ValueError, match=f"need more than the K = {largest - 1} ranks given; rank the first {largest}"):
        retrieval_metrics_from_ranking(ranking[:, : largest - 1], labels, labels, class_sizes=sizes, ks=(1,))
    with pytest.raises(ValueError, match=f"need more than the K = {largest} ranks given; rank the first {largest + 1}"):
        retrieval_metrics_from_ranking(
            ranking[:, :largest], labels, labels, class_sizes=sizes, ks=(1,), count_query_in_r=True
        )


def test_a_ranking_that_holds_all_positives_is_long_enough():
    # One class: R counts the query and is 4, but only 3 items can be ranked.
    labels = torch.zeros(4, dtype=torch.int64)
    ranking = torch.tensor([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    sizes = torch.full((4,), 3)
    metrics = retrieval_metrics_from_ranking(
        ranking, labels, labels, class_sizes=sizes, ks=(1, 3), count_query_in_r=True
    )
    assert metrics == {"R@1": 1.0, "R@3": 1.0, "P@1": 1.0, "RP": 0.75, "MAP@R": 0.75}


def test_class_sizes_may_leave_out_items_that_are_not_ranked():
    # Gallery item 2 has the query's label but is junk (the query's own camera), so neither ranked nor counted.
    metrics = retrieval_metrics_from_ranking(
        torch.tensor([[1, 0]]), torch.tensor([5]), torch.tensor([5, 6, 5]), class_sizes=torch.tensor([1]), ks=(1, 2)
    )
    assert metrics == {"R@1": 0.0, "R@2": 1.0, "P@1": 0.0, "RP": 0.0, "MAP@R": 0.0}


def test_rankings_and_class_sizes_that_do_not_fit_are_refused():
    similarity, labels, _ = random_case(22, queries=20, gallery=20, classes=5)
    ranking = torch.tensor(ranking_by_loops(similarity, self_match=True))
    sizes = count_positives(labels, labels, self_match=True)

    def metrics(ranking=ranking, class_sizes=sizes, ks=(1,)):
        return retrieval_metrics_from_ranking(ranking, labels, labels, class_sizes=class_sizes, ks=ks)

    def with_entry(tensor, place, value):
        changed = tensor.clone()
        changed[place] = value
        return changed

    with pytest.raises(ValueError, match=r"k=20 is outside \[1, 19\]"):
        metrics(ks=(20,))
    with pytest.raises(ValueError, match="indices from 0 to 20, allowed is 0 to 19"):
        metrics(with_entry(ranking, (3, 4), 20))
    with pytest.raises(ValueError, match="indices from -1 to 19, allowed is 0 to 19"):
        metrics(with_entry(ranking, (3, 4), -1))
    with pytest.raises(ValueError, match="ranking of query 3 holds an index more than once"):
        metrics(with_entry(ranking, (3, 4), ranking[3, 5]))
    with pytest.raises(ValueError, match=r"ranking must be \(20, K\) int64"):
        metrics(ranking[:19])
    with pytest.raises(ValueError, match=r"ranking must be \(20, K\) int64"):
        metrics(ranking.double())
    with pytest.raises(ValueError, match="with K >= 1"):
        metrics(ranking[:, :0])
    with pytest.raises(ValueError, match=r"class_sizes must be \(20,\) int64"):
        metrics(class_sizes=sizes[:19])
    with pytest.raises(ValueError, match="class_sizes of query 2 is -1"):
        metrics(class_sizes=with_entry(sizes, 2, -1))
    with pytest.raises(ValueError, match="class_sizes of query 2 is 19, but the gallery holds"):
        metrics(class_sizes=with_entry(sizes, 2, 19))
    with pytest.raises(ValueError, match=r"holds \d items of its label, but its class_sizes is"):
        metrics(class_sizes=sizes - 1)
    with pytest.raises(ValueError, match="holds 4 items of its label, but its class_sizes is 3; the query itself"):
        retrieval_metrics_from_ranking(  # the query itself is ranked
            torch.arange(4).expand(4, 4),
            torch.zeros(4, dtype=torch.int64),
            torch.zeros(4, dtype=torch.int64),
            class_sizes=torch.full((4,), 3),
            ks=(1,),
        )
    with pytest.raises(ValueError, match="no query has a positive"):
        retrieval_metrics_from_ranking(
            torch.tensor([[1], [0]]),
            torch.tensor([1, 2]),
            torch.tensor([1, 2]),
            class_sizes=torch.tensor([0, 0]),
            ks=(1,),
        )


def trapezoids_by_loops(similarity, labels, cameras):
    """mAP as the evaluation of CUHK03-NP sums it up, item after item: trapezoids below precision over recall."""
    areas = []
    for row, label, camera in zip(similarity.tolist(), labels[0].tolist(), cameras[0].tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))
        kinds = [(int(labels[1][j]) == label, int(cameras[1][j]) == camera) for j in order]
        good = [same for same, seen in kinds if not (same and seen)]  # what the query's own camera saw takes no rank
        if not any(good):
            continue
        area, found, recall, precision = 0.0, 0, 0.0, 1.0
        for rank, is_good in enumerate(good, start=1):
            found += is_good
            new_recall, new_precision = found / sum(good), found / rank
            area += (new_recall - recall) * (precision + new_precision) / 2
            recall, precision = new_recall, new_precision
        areas.append(area)
    return sum(areas) / len(areas)


def seen_persons(seed, *, persons, spread, per_camera=4):
    """Similarities of a query per person and camera to a gallery in the form of CUHK03-NP, labels and cameras."""
    generator = torch.Generator().manual_seed(seed)
    labels = [torch.arange(persons).repeat_interleave(2), torch.arange(persons).repeat_interleave(2 * per_camera)]
    cameras = [torch.arange(2).repeat(persons), torch.arange(2).repeat_interleave(per_camera).repeat(persons)]
    centres = torch.randn(persons, 16, generator=generator, dtype=torch.float64)
    places = [
        centres[each] + spread * torch.randn(len(each), 16, generator=generator, dtype=torch.float64) for each in labels
    ]
    return cosine(*places), labels, cameras


def map_of_persons(similarity, labels, cameras, **options):
    found = retrieval_metrics(
        similarity, *labels, ks=(1,), self_match=False, query_cameras=cameras[0], gallery_cameras=cameras[1], **options
    )
    return found["mAP"]


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_map_of_trapezoids_is_that_of_the_evaluation_of_cuhk03_np(seed, spread):
    persons = seen_persons(seed, persons=9, spread=spread)
    expected = trapezoids_by_loops(*persons)
    assert map_of_persons(*persons, average_precision="trapezoids") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("spread", "ours", "theirs"), [(0.55, 69.5, 67.3), (0.6, 59.3, 56.5)])
def test_of_persons_found_as_in_print_trapezoids_have_two_to_three_points_less_as_the_fidelity_document_says(
    spread, ours, theirs
):
    persons = seen_persons(0, persons=700, spread=spread)
    found = [100 * map_of_persons(*persons, average_precision=kind) for kind in AVERAGE_PRECISIONS]
    assert [round(each, 1) for each in found] == [ours, theirs]
    assert f"{theirs} for {ours}" in (ROOT / "params" / "fidelity" / "sam.yaml").read_text()


def test_trapezoids_change_map_and_no_other_metric_and_levels_follow():
    similarity, query_labels, gallery_labels = random_case(3)
    levels = {"fine": (query_labels, gallery_labels)}  # whose average precision is counted in another way
    arguments = {"ks": (1, 3), "self_match": False, "levels": levels}
    hits, trapezoids = (
        retrieval_metrics(similarity, query_labels, gallery_labels, **arguments, average_precision=kind)
        for kind in AVERAGE_PRECISIONS
    )
    assert {name for name in hits if hits[name] != trapezoids[name]} == {"mAP", "mAP_fine"}
    assert trapezoids["mAP"] == pytest.approx(trapezoids["mAP_fine"], abs=1e-12)
    labels, cameras = (query_labels, gallery_labels), (torch.zeros_like(query_labels), torch.ones_like(gallery_labels))
    assert trapezoids["mAP"] == pytest.approx(trapezoids_by_loops(similarity, labels, cameras), abs=1e-12)


@pytest.mark.parametrize(
    ("ranks", "areas"),
    [
        ([1, 2], [1, 1]),
        ([1, 3], [1, (2 / 3 + 1 / 2) / 2]),
        ([2, 3], [(1 / 2 + 0) / 2, (2 / 3 + 1 / 2) / 2]),
    ],
)
def test_a_positive_adds_the_mean_of_its_precision_and_of_the_one_before_it(ranks, areas):
    hit = torch.tensor([[rank in ranks for rank in (1, 2, 3)]])
    found = retrieval_metrics(
        torch.tensor([[3.0, 2.0, 1.0]]),
        torch.ones(1, dtype=torch.int64),
        hit[0].long(),
        ks=(1,),
        self_match=False,
        average_precision="trapezoids",
    )
    assert found["mAP"] == pytest.approx(sum(areas) / 2, abs=1e-12)


def test_another_kind_of_average_precision_is_refused():
    with pytest.raises(ValueError, match=r"average_precision: unknown 'trapezoid', did you mean 'trapezoids'\?"):
        retrieval_metrics(*random_case(0), ks=(1,), self_match=False, average_precision="trapezoid")


@pytest.mark.parametrize("precision", ["highest", "medium"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 0.0])
def test_ranks_that_float32_leaves_open_are_those_of_exact_scores(spread, dtype, precision):
    generator = torch.Generator().manual_seed(3)
    centre = torch.randn(4, 64, generator=generator, dtype=dtype).repeat(40, 1)
    embeddings = centre + spread * torch.randn(160, 64, generator=generator, dtype=dtype)
    labels = torch.randint(12, (160,), generator=generator)
    scores = exact_cosine(fixed_point(embeddings), fixed_point(embeddings))
    expected = retrieval_metrics(scores, labels, labels, ks=(1, 4), self_match=True)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        found = retrieval_metrics_from_embeddings(
            embeddings, labels, embeddings, labels, ks=(1, 4), self_match=True, block=50
        )
    finally:
        torch.set_float32_matmul_precision(before)
    assert found == expected
