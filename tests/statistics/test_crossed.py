"""The error of a difference over seeds and classes, against analysis of variance written out and against simulation."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from lookalike.statistics.crossed import crossed_estimate

RNG = np.random.default_rng


def anova(values):
    """Mean squares of a two-way table with one observation in each cell, term by term."""
    seeds, classes = values.shape
    mean = sum(sum(row) for row in values) / (seeds * classes)
    of_seed = [sum(row) / classes for row in values]
    of_class = [sum(values[s][c] for s in range(seeds)) / seeds for c in range(classes)]
    a = classes * sum((each - mean) ** 2 for each in of_seed) / (seeds - 1)
    b = seeds * sum((each - mean) ** 2 for each in of_class) / (classes - 1)
    e = sum((values[s][c] - of_seed[s] - of_class[c] + mean) ** 2 for s in range(seeds) for c in range(classes))
    return mean, a, b, e / ((seeds - 1) * (classes - 1))


def draw(seeds, classes, deviations, *, mean=0.0, rng):
    of_seed, of_class, of_both = deviations
    return (
        mean
        + rng.normal(0, of_seed, (seeds, 1))
        + rng.normal(0, of_class, (1, classes))
        + rng.normal(0, of_both, (seeds, classes))
    )


def test_with_equal_weights_it_is_the_analysis_of_variance():
    values = draw(4, 7, (3, 3, 1), mean=2.0, rng=RNG(0))
    mean, a, b, e = anova(values)
    assert min(a, b) > e
    found = crossed_estimate(values)
    assert found.mean == pytest.approx(mean)
    assert found.standard_error**2 == pytest.approx((a + b - e) / 28)
    assert found.of_seeds == pytest.approx((a - e) / 28)
    assert found.of_classes == pytest.approx((b - e) / 28)
    assert found.freedom == pytest.approx((a + b - e) ** 2 / (a**2 / 3 + b**2 / 6 + e**2 / 18))
    low, high = found.interval(0.05)
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, found.freedom) * found.standard_error)
    assert found.probability() == pytest.approx(2 * student.sf(mean / found.standard_error, found.freedom))


def test_a_part_that_shows_no_variance_of_its_own_leaves_the_other():
    rng = RNG(1)
    values = draw(6, 8, (0, 5, 2), rng=rng)
    values -= values.mean(axis=1, keepdims=True)  # all seeds alike
    _, _, b, _ = anova(values)
    found = crossed_estimate(values)
    assert (found.standard_error**2, found.freedom, found.of_seeds) == (pytest.approx(b / 48), pytest.approx(7), 0)


def test_without_classes_it_is_students_interval_over_seeds():
    values = np.array([[1.0], [2.0], [4.0]])
    found = crossed_estimate(values)
    assert found.standard_error == pytest.approx(np.std([1, 2, 4], ddof=1) / math.sqrt(3))
    assert (found.freedom, found.classes, found.seeds) == (2, 1, 3)


def test_one_seed_leaves_the_classes_alone_and_one_number_nothing():
    values = np.array([[1.0, 2.0, 4.0]])
    found = crossed_estimate(values)
    assert found.standard_error == pytest.approx(np.std([1, 2, 4], ddof=1) / math.sqrt(3))
    assert found.freedom == pytest.approx(2)
    alone = crossed_estimate([[3.0]])
    assert alone.mean == 3
    assert all(math.isnan(each) for each in (alone.standard_error, *alone.interval(0.05), alone.probability()))


def test_weights_are_shares_whatever_their_sum_and_a_class_of_weight_two_counts_twice_in_the_mean():
    values = draw(3, 4, (1, 1, 1), rng=RNG(2))
    weights = np.array([2.0, 1.0, 1.0, 1.0])
    found = crossed_estimate(values, weights)
    assert found == crossed_estimate(values, 10 * weights)
    assert found.mean == pytest.approx((values * weights).sum() / (3 * 5))


def test_estimates_of_the_variance_have_no_bias_with_unequal_weights():
    rng, weights = RNG(3), np.array([1.0, 2.0, 3.0, 5.0, 8.0, 1.0])
    shares = weights / weights.sum()
    true = 4 / 5 + 9 * (shares**2).sum() + 1 * (shares**2).sum() / 5
    drawn = [crossed_estimate(draw(5, 6, (2, 3, 1), rng=rng), weights) for _ in range(4000)]
    assert np.mean([each.standard_error**2 for each in drawn]) == pytest.approx(true, rel=0.05)
    assert np.var([each.mean for each in drawn]) == pytest.approx(true, rel=0.07)


def test_no_difference_anywhere_is_certain():
    found = crossed_estimate(np.zeros((3, 4)))
    assert (found.mean, found.standard_error, found.interval(0.05), found.probability()) == (0, 0, (0, 0), 1)


@pytest.mark.parametrize("deviations", [(0.7, 7, 12), (2, 7, 12), (1, 7, 25), (2, 1, 3)])
@pytest.mark.parametrize("seeds", [3, 10, 20])
def test_intervals_cover_within_two_points_of_their_level(seeds, deviations):
    rng, weights = RNG(4), RNG(5).integers(16, 21, 50)
    covered = 0
    for _ in range(2000):
        low, high = crossed_estimate(draw(seeds, 50, deviations, rng=rng), weights).interval(0.05)
        covered += low <= 0 <= high
    assert 0.93 <= covered / 2000 <= 0.975  # two points, and half a point of this simulation


@pytest.mark.parametrize(
    ("values", "weights", "said"),
    [
        ([1.0, 2.0], None, r"differences must be \(S, C\) finite numbers, at least one, not \(2,\)"),
        (np.empty((0, 3)), None, r"not \(0, 3\)"),
        ([[1.0, math.nan]], None, r"finite numbers"),
        ([[1.0, 2.0]], [1.0], r"weights must be \(2,\) numbers above 0, not \(1,\)"),
        ([[1.0, 2.0]], [1.0, 0.0], r"numbers above 0"),
    ],
)
def test_what_cannot_be_estimated_is_refused(values, weights, said):
    with pytest.raises(ValueError, match=said):
        crossed_estimate(values, weights)
