import math

import numpy as np
import pytest
from scipy import stats

from lookalike.workflow.report.statistics.pairs import of_halves, paired_difference


def test_the_interval_is_that_of_a_paired_t_test():
    generator = np.random.default_rng(0)
    first, second = generator.normal(1, 1, 5), generator.normal(0, 1, 5)
    found = paired_difference(first, second)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.mean == pytest.approx((first - second).mean())
    assert found.n == 5


def test_a_single_seed_has_no_interval():
    found = paired_difference([2.0], [1.0])
    assert found.mean == 1
    assert math.isnan(found.low)


def test_values_without_a_partner_are_refused():
    with pytest.raises(ValueError, match="2 and 1 values cannot be paired"):
        paired_difference([1.0, 2.0], [1.0])


def test_either_half_weighs_the_same_however_many_seeds_it_has():
    values, halves = [1.0, 3.0, 10.0], ["", "", "second"]
    mean, deviation = of_halves(values, halves)
    assert mean == (2.0 + 10.0) / 2
    assert deviation == pytest.approx(math.sqrt(2.0))  # of the one half that has two, with their one degree of freedom
    assert of_halves(values) == pytest.approx((14 / 3, np.std(values, ddof=1)))


def test_the_interval_of_two_halves_is_that_of_their_pooled_seeds():
    first, halves = np.array([1.0, 1.5, 9.0, 9.2, 8.8]), ["", "", "second", "second", "second"]
    found = paired_difference(first, np.zeros(5), halves)
    pooled = (first[:2].var() * 2 + first[2:].var() * 3) / 3
    half = stats.t.ppf(0.975, 3) * math.sqrt(pooled * (1 / 2 + 1 / 3)) / 2
    assert found.mean == pytest.approx((1.25 + 9.0) / 2)
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))
    alone = paired_difference([1.0, 9.0], [0.0, 0.0], ["", "second"])
    assert (alone.mean, alone.n) == (5.0, 2)
    assert math.isnan(alone.low)
