"""Comparisons of one kind tell together how much seeds vary, as far as they agree."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from lookalike.statistics.crossed import Estimate, crossed_estimate
from lookalike.statistics.moderated import moderated


def estimate(variance, *, seeds=3):
    """Of seeds that deviate by a variance, and classes by 1."""
    return Estimate(2.0, ((variance / seeds, seeds - 1.0), (1.0, 49.0)), seeds, 50)


def of_seeds(estimates):
    return [(each.parts[0][0] * each.seeds, each.parts[0][1]) for each in estimates]


def test_variances_that_agree_are_one_with_the_freedom_of_all():
    found = moderated([estimate(variance) for variance in (1.0, 2.0, 1.5, 1.2)])
    (variance, freedom), *others = of_seeds(found)
    assert others == [(pytest.approx(variance), freedom)] * 3
    assert 1.0 < variance < 3.0  # of a draw from chi-squared with two degrees of freedom the logarithm is low
    assert freedom == 8
    assert all(each.parts[1] == (1.0, 49.0) and each.mean == 2.0 for each in found)


def test_variances_that_differ_are_weighed_with_what_is_common():
    variances = np.exp(np.random.default_rng(0).normal(0, 3, 60))
    found = of_seeds(moderated([estimate(variance) for variance in variances]))
    logs = np.log(variances) - digamma(1) + np.log(1)
    excess = logs.var(ddof=1) - polygamma(1, 1)
    half = brentq(lambda x: polygamma(1, x) - excess, 1e-3, 1e3)
    common = np.exp(logs.mean() + digamma(half) - np.log(half))
    for variance, (borrowed, freedom) in zip(variances, found, strict=True):
        assert freedom == pytest.approx(2 + 2 * half)
        assert borrowed == pytest.approx((2 * half * common + 2 * variance) / (2 * half + 2))


@pytest.mark.parametrize("kind", [(2.0, 3), (0.5, 4)])
def test_the_kind_is_found_again(kind):
    """Of variances that were drawn from it: scaled inverse chi-squared, seen through two degrees of freedom."""
    common, weight = kind
    rng = np.random.default_rng(1)
    true = common * weight / rng.chisquare(weight, 20_000)
    seen = true * rng.chisquare(2, len(true)) / 2
    found = of_seeds(moderated([estimate(variance) for variance in seen]))
    assert found[0][1] - 2 == pytest.approx(weight, rel=0.1)
    borrowed = np.array([variance for variance, _ in found])
    assert np.mean((np.log(borrowed) - np.log(true)) ** 2) < 0.5 * np.mean((np.log(seen) - np.log(true)) ** 2)


def test_too_few_or_what_does_not_vary_or_was_not_repeated_stays_as_it_is():
    two = [estimate(1.0), estimate(2.0)]
    assert moderated(two) == two
    single = crossed_estimate([[1.0, 2.0, 4.0]])
    given = [estimate(1.0), estimate(0.0), estimate(2.0), single, estimate(1.5), crossed_estimate([[3.0]])]
    found = moderated(given)
    assert [found[place] == given[place] for place in range(6)] == [False, True, False, True, False, True]
    assert moderated([]) == []


def test_seeds_that_are_equal_but_for_rounding_tell_nothing_of_the_others():
    rng = np.random.default_rng(2)
    drawn = [7 + rng.normal(0, 1, (3, 1)) + rng.normal(0, 12, (3, 200)) for _ in range(8)]
    equal = np.repeat(rng.normal(7, 3, (1, 200)), 3, axis=0)
    estimates = [crossed_estimate(each) for each in (*drawn, equal)]
    assert estimates[-1].parts[0][0] < 1e-20
    found = moderated(estimates)
    assert found[:-1] == moderated(estimates[:-1])
    assert found[-1] == estimates[-1]
