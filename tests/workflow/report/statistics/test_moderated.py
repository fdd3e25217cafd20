"""How much seeds vary, pooled over comparisons: against densities written out, and against simulation."""

import numpy as np
import pytest
from scipy.stats import f as fisher

from lookalike.workflow.report.statistics.crossed import variances
from lookalike.workflow.report.statistics.moderated import (
    FREEDOMS,
    RATIOS,
    Prior,
    estimated_prior,
    moderated,
    worth,
)

RNG = np.random.default_rng


def apart(count):
    return [(f"changed{place}", f"baseline{place}") for place in range(count)]


def draw(rng, of_seeds, *, seeds=3, classes=50, of_classes=2.8, of_both=5.2):
    shape = seeds, classes
    return rng.normal(0, of_seeds, (seeds, 1)) + rng.normal(0, of_classes, (1, classes)) + rng.normal(0, of_both, shape)


def slow_prior(ratios, freedom, share=1.0):
    """Means of the ratio and of the inverse of the freedom over the likelihood, point by point.

    Each comparison counts for a share of one.
    """
    weights, known = [], []
    for ratio in RATIOS:
        for prior in FREEDOMS:
            weights.append(np.prod(fisher.pdf(np.array(ratios) / ratio, freedom, prior) / ratio) ** share)
            known.append((ratio, 1 / (prior + freedom)))
    ratio, inverse = np.average(known, axis=0, weights=weights)
    return ratio, 1 / inverse - freedom


def test_the_prior_is_the_mean_over_the_likelihood_of_a_scaled_f():
    rng = RNG(0)
    family = [variances(draw(rng, of_seeds)) for of_seeds in (0, 0.5, 1, 0, 2)]
    found = estimated_prior(family, apart(5))
    ratios = [each.over_seeds.variance / each.of_both.variance for each in family]
    assert (found.ratio, found.freedom) == pytest.approx(slow_prior(ratios, 2))
    assert found.most == pytest.approx(10)


@pytest.mark.parametrize("pairs", [[("a", "x"), ("b", "x"), ("c", "x")], [("a", "x")] * 3])
def test_comparisons_that_share_a_side_count_for_less_than_one_each(pairs):
    rng = RNG(7)
    family = [variances(draw(rng, of_seeds)) for of_seeds in (0.2, 1.5, 3)]
    found = estimated_prior(family, pairs)
    ratios = [each.over_seeds.variance / each.of_both.variance for each in family]
    assert (found.ratio, found.freedom) == pytest.approx(slow_prior(ratios, 2, worth(pairs) / 3))
    assert found.most == pytest.approx(2 * worth(pairs))


def test_the_variance_is_the_weighted_mean_of_own_and_pooled_ratio():
    own = variances(draw(RNG(1), 3.0))
    noise = own.of_both.variance
    found = moderated(own, Prior(1.5, 10.0, 100.0))
    variance, freedom = found.parts[0]
    assert variance == pytest.approx((10 * 1.5 * noise + 2 * own.over_seeds.variance) / 12)
    assert 1 / freedom == pytest.approx(1 / 12 + 1 / 98)
    assert found.parts[1:] == own.estimate().parts[1:]
    assert (found.mean, found.seeds, found.classes) == (own.mean, 3, 50)


def test_seeds_that_are_alike_by_luck_vary_as_the_noise_within_classes():
    values = draw(RNG(2), 0.0)
    values -= values.mean(axis=1, keepdims=True)  # all seeds alike
    own = variances(values)
    assert own.over_seeds.variance == pytest.approx(0)
    assert moderated(own, Prior(1.0, 50.0, 60.0)).parts[0][0] == pytest.approx(own.of_both.variance)


def test_no_more_is_known_than_all_comparisons_know_together():
    own = variances(draw(RNG(3), 0.0))
    assert 1 / moderated(own, Prior(1.2, 500.0, 7.0)).parts[0][1] == pytest.approx(1 / 7 + 1 / 98)


def test_alone_a_comparison_has_its_own_freedom():
    own = variances(draw(RNG(3), 1.0))
    prior = estimated_prior([own], apart(1))
    assert moderated(own, prior).parts[0][1] <= 2


def test_comparisons_that_differ_in_how_seeds_vary_lend_each_other_little():
    rng = RNG(4)
    alike = estimated_prior([variances(draw(rng, 0.3)) for _ in range(40)], apart(40))
    unlike = estimated_prior([variances(draw(rng, 3.0 if place % 4 == 0 else 0.1)) for place in range(40)], apart(40))
    assert unlike.freedom < 5 < 15 < alike.freedom
    assert 1 <= alike.ratio < 1.5


def test_without_noise_within_classes_or_several_seeds_there_is_no_prior():
    single = variances([[1.0, 2.0, 3.0]])
    untold = variances([[1.0], [2.0], [4.0]])
    assert estimated_prior([single, untold, variances(np.zeros((3, 4)))], apart(3)) is None
    assert estimated_prior([], []) is None
    for own in (single, untold):
        assert moderated(own, None) == own.estimate()
        assert moderated(own, Prior(1.0, 10.0, 20.0)) == own.estimate()


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="1 comparisons and 2 pairs do not go together"):
        estimated_prior([variances([[1.0], [2.0]])], apart(2))


def test_comparisons_that_share_nothing_count_each_and_one_twice_counts_once():
    assert worth(apart(6)) == pytest.approx(6)
    assert worth([("a", "b")] * 5) == pytest.approx(1)
    assert worth([("a", "b"), ("b", "a")]) == pytest.approx(1)
    assert worth([("a", "c"), ("b", "c")]) == pytest.approx(4 / (2 + 2 / 4))


def test_a_family_is_worth_as_many_as_its_pooled_variance_says():
    """Drawn: every model has seeds of its own, and the mean of the family's variances varies as that of so many."""
    rng, drawn = RNG(5), 20_000
    pairs = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("a", "b"), ("e", "y"), ("f", "y")]
    models = {name: rng.normal(size=(drawn, 3)) for name in sorted({each for pair in pairs for each in pair})}
    own = np.array([(models[first] - models[second]).var(axis=1, ddof=1) for first, second in pairs])
    of_one = np.mean([each.var() for each in own])
    assert of_one / own.mean(axis=0).var() == pytest.approx(worth(pairs), rel=0.05)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("calm", "wild", "error"), [(0.0, 0.0, 0.01), (0.5, 0.5, 0.01), (0.3, 2.0, 0.05)])
def test_over_a_family_intervals_miss_no_more_than_they_say(calm, wild, error, shared):
    """A tenth of thirty comparisons at another spread; where baselines are shared, three have the same one."""
    rng, missed, families = RNG(6), [], 60
    for _ in range(families):
        models, pairs, values = {}, [], []
        for place in range(30):
            pair = f"changed{place}", f"baseline{place // 3 if shared else place}"
            for name, of_seeds in zip(pair, (wild if place % 10 == 9 else calm, calm), strict=True):
                if name not in models:
                    models[name] = draw(rng, of_seeds / np.sqrt(2), of_classes=2, of_both=3.7)
            pairs.append(pair)
            values.append(variances(models[pair[0]] - models[pair[1]]))
        prior = estimated_prior(values, pairs)
        ends = [moderated(each, prior).interval(error) for each in values]
        missed.append(np.mean([not low <= 0 <= high for low, high in ends]))
    assert np.mean(missed) <= error + 2 * np.std(missed) / np.sqrt(families)
