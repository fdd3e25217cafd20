"""Certified retrieval finds what evaluating every pair finds, whatever the parameters, and seldom evaluates one."""

import pytest
import torch
from torch.utils._pytree import tree_map_only

from graphs import made_graph
from lookalike.methods.avsl import exact_search, retrieval
from lookalike.methods.avsl.retrieval import certified_metrics, fixed_error, fixed_weights
from lookalike.methods.avsl.similarity import overall_distance, sensitivities
from lookalike.metrics.retrieval import retrieval_metrics

ALPHAS = [0.0, 0.3, 1.0, 3.0, 30.0, 300.0, 1e4]


def doubled(values):
    return [None if each is None else each.double() for each in values]


def dense_metrics(query, gallery, labels, model, **options):
    """Every pair in float64, also of a set against itself: mirrored, equal images would not round alike."""
    sides = [[each.double().clone() for each in part] for part in (*query, *gallery)]
    distance = overall_distance(*sides, **{name: doubled(values) for name, values in model.items()})
    return retrieval_metrics(-distance, *labels, **options)


def drawn(alpha, seed, *, itself, count=90, others=70, classes=12, **more):
    labels = torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))
    other_labels = torch.randint(classes, (others,), generator=torch.Generator().manual_seed(seed + 1))
    query, gallery, model = made_graph(alpha, seed=seed, labels=(labels, other_labels), **more)
    return (query, query, (labels, labels), model) if itself else (query, gallery, (labels, other_labels), model)


def both(query, gallery, labels, model, **options):
    found, report = certified_metrics(*query, *gallery, *labels, **model, **options)
    return found, dense_metrics(query, gallery, labels, model, **options), report


@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("seed", [0, 10, 20])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_metrics_are_those_of_every_pair(alpha, seed, itself, monkeypatch, device):
    monkeypatch.setattr(retrieval, "QUERIES", 32)  # several blocks of both sides
    monkeypatch.setattr(retrieval, "GALLERY", 24)
    monkeypatch.setattr(retrieval, "MUTUAL", 40)
    given = drawn(alpha, seed, itself=itself, dtype=torch.float32 if seed else torch.float64)
    given = tree_map_only(torch.Tensor, lambda part: part.to(device), given)
    found, expected, report = both(*given, ks=(1, 2, 4, 8), self_match=itself, count_query_in_r=seed == 10)
    assert found == expected
    assert 0 < report["exact_share"] <= 1
    assert 0 <= report["undecided_share"] <= 1


@pytest.mark.parametrize("alpha", [1.0, 1e4])
def test_a_set_against_itself_is_bounded_both_ways_at_once_or_by_side_with_the_same_outcome(alpha, monkeypatch):
    query, _, (labels, _), model = drawn(alpha, 4, itself=True)
    labels = torch.where(torch.arange(len(labels)) % 5 == 0, 100 + torch.arange(len(labels)), labels)  # no positive
    for held in (0, retrieval.HELD):
        monkeypatch.setattr(retrieval, "HELD", held)
        monkeypatch.setattr(retrieval, "QUERIES", 32)
        monkeypatch.setattr(retrieval, "MUTUAL", 32)
        found, expected, _ = both(query, query, (labels, labels), model, ks=(1, 4), self_match=True)
        assert found == expected


def test_half_of_the_blocks_products_are_made_of_a_set_against_itself(monkeypatch):
    made = []
    bounds = exact_search.block_bounds
    monkeypatch.setattr(exact_search, "block_bounds", lambda *sides: made.append(1) or bounds(*sides))
    monkeypatch.setattr(retrieval, "MUTUAL", 30)
    query, _, labels, model = drawn(1.0, 3, itself=True)
    certified_metrics(*query, *query, *labels, **model, ks=(1,), self_match=True)
    assert len(made) == 3 * 4 / 2


def test_a_set_against_another_that_only_has_its_labels_is_bounded_by_side(monkeypatch):
    query, _, labels, model = drawn(1.0, 2, itself=True)
    other = [[each.clone() for each in part] for part in query]
    other[0][1] = other[0][1].flip(0)
    found, expected, _ = both(query, other, labels, model, ks=(1, 4), self_match=True)
    assert found == expected


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_any_number_of_levels(levels):
    found, expected, _ = both(*drawn(3.0, 5, itself=True, levels=levels), ks=(1, 4), self_match=True)
    assert found == expected


def test_edges_of_either_sign():
    found, expected, _ = both(*drawn(30.0, 6, itself=True, negative_edges=True), ks=(1, 4), self_match=True)
    assert found == expected


@pytest.mark.parametrize("alpha", [0.0, 3.0, 1e4])
def test_of_equal_images_the_lower_index_comes_first(alpha):
    query, _, (labels, _), model = drawn(alpha, 7, itself=True, count=40)
    copied = [[torch.cat([values, values.flip(0), values[:9]]) for values in part] for part in query]
    mixed = torch.cat([labels, labels.roll(3).flip(0), labels[:9].roll(1)])  # copies under other labels too
    found, expected, _ = both(copied, copied, (mixed, mixed), model, ks=(1, 2, 4), self_match=True)
    assert found == expected


def test_where_the_pair_hardly_matters_few_pairs_are_evaluated_and_where_it_decides_all():
    few = both(*drawn(1.0, 8, itself=True, count=400, classes=100, nodes=64), ks=(1,), self_match=True)
    assert few[0] == few[1]
    positives = 0.011  # of all pairs, always evaluated
    assert few[2]["exact_share"] < positives + 0.02
    every = both(*drawn(1e4, 8, itself=True, count=400, classes=100, nodes=64), ks=(1,), self_match=True)
    assert every[2]["exact_share"] == 1


def test_queries_without_a_positive_are_left_out_and_none_at_all_is_an_error():
    query, gallery, labels, model = drawn(1.0, 9, itself=False)
    few = (labels[0], torch.full_like(labels[1], int(labels[0][0])))
    found, expected, _ = both(query, gallery, few, model, ks=(1,), self_match=False)
    assert found == expected
    none = (labels[0], labels[1] + 100)
    with pytest.raises(ValueError, match="no query has a positive"):
        certified_metrics(*query, *gallery, *none, **model, ks=(1,), self_match=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda given: given[2][1].fill_(0) is None, r"self_match=True needs query i to be gallery item i"),
        (lambda given: given[0][1][1].fill_(torch.nan), r"query_statistics\[1\] holds a value that is not finite"),
        (lambda given: given[1][0].pop(), r"gallery has 2 levels of embeddings and 3 of statistics"),
        (lambda given: given[3]["alpha"].pop(), r"alpha has 2 entries, it must have 3"),
        (lambda given: given[1][0].__setitem__(0, given[1][0][0][:-1]), r"gallery has levels of 69 and of 70 images"),
    ],
)
def test_what_does_not_belong_together_is_refused(change, said):
    given = drawn(1.0, 11, itself=False)
    change(given)
    query, gallery, labels, model = given
    with pytest.raises(ValueError, match=said):
        certified_metrics(*query, *gallery, *labels, **model, ks=(1,), self_match="self_match" in said)


def test_a_cut_off_beyond_the_gallery_and_labels_of_others_are_refused():
    query, gallery, labels, model = drawn(1.0, 12, itself=False)
    with pytest.raises(ValueError, match=r"k=71 is outside \[1, 70\]"):
        certified_metrics(*query, *gallery, *labels, **model, ks=(71,), self_match=False)
    with pytest.raises(ValueError, match=r"need as many labels, not 89 and 70"):
        certified_metrics(*query, *gallery, labels[0][1:], labels[1], **model, ks=(1,), self_match=False)


def test_fixed_weights_are_the_sensitivities_of_two_images_with_the_mean_statistics():
    (embeddings, statistics), _, model = made_graph(3.0, seed=13)
    mean = [each.mean(dim=0, keepdim=True) for each in statistics]
    one = [each[:1] for each in embeddings]
    expected = [each[0, 0] for each in sensitivities(one, mean, one, mean, **model)]
    found = fixed_weights(statistics, **model)
    assert len(found) == 3
    for weights, other in zip(found, expected, strict=True):
        assert weights.shape == (16,)
        torch.testing.assert_close(weights, other)
    assert float(sum(weights.sum() for weights in found)) == pytest.approx(16)


def test_at_small_slopes_fixed_weights_give_nearly_the_overall_distance():
    query, gallery, model = made_graph(1.0, seed=14, nodes=64)
    weights = fixed_weights(query[1], **model)
    units = [[torch.nn.functional.normalize(each, dim=1) for each in side[0]] for side in (query, gallery)]
    fixed = sum(
        ((one[:, None] - other).square() * weight).sum(-1) for one, other, weight in zip(*units, weights, strict=True)
    )
    torch.testing.assert_close(fixed, overall_distance(*query, *gallery, **model), rtol=2e-3, atol=0)


@pytest.mark.parametrize("statistics", [[], [torch.zeros(0, 4)], [torch.zeros(4)]])
def test_fixed_weights_of_nothing_are_refused(statistics):
    with pytest.raises(ValueError, match=r"they must be \(N, r\) with N >= 1, at least one level"):
        fixed_weights(statistics, alpha=[None], beta=[None], edges=[None])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("group", [7, 256])
def test_no_pair_is_farther_from_the_fixed_form_than_its_bound(alpha, group, monkeypatch):
    monkeypatch.setattr(retrieval, "GROUP", group)
    query, gallery, _, model = drawn(alpha, 9, itself=False)
    model = {name: doubled(values) for name, values in model.items()}
    query, gallery = ([[each.double() for each in part] for part in side] for side in (query, gallery))
    weights = fixed_weights(gallery[1], **model)
    bound = fixed_error(query[1], gallery[1], weights, **model)
    exact = overall_distance(*query, *gallery, **model)
    units = [[torch.nn.functional.normalize(each, dim=1) for each in side[0]] for side in (query, gallery)]
    fixed = sum(((one[:, None] - other) ** 2 @ weight) for one, other, weight in zip(*units, weights, strict=True))
    worst = float(((fixed - exact).abs() / exact).max())
    assert worst <= bound * (1 + 1e-9) + 1e-9
    if alpha == 0:
        assert bound < 1e-9
    elif alpha <= 3:
        assert bound < 100 * worst  # a bound that says something


def test_smaller_groups_bound_closer():
    query, gallery, _, model = drawn(3.0, 9, itself=False)
    model = {name: doubled(values) for name, values in model.items()}
    statistics = [[each.double() for each in side[1]] for side in (query, gallery)]
    weights = fixed_weights(statistics[1], **model)
    bounds = []
    for group in (5, 1000):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(retrieval, "GROUP", group)
            bounds.append(fixed_error(*statistics, weights, **model))
    assert bounds[0] < bounds[1]
