import math

import numpy as np
import pytest
from scipy import stats

from lookalike.statistics.pairs import paired_difference


def test_the_interval_is_that_of_a_paired_t_test():
    generator = np.random.default_rng(0)
    first, second = generator.normal(1, 1, 5), generator.normal(0, 1, 5)
    found = paired_difference(first, second)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.mean == pytest.approx((first - second).mean())
    assert found.n == 5


def test_verdicts_follow_the_interval():
    assert paired_difference([2.0, 2.1, 1.9], [1.0, 1.0, 1.0]).verdict == "higher"
    assert paired_difference([1.0, 1.0, 1.0], [2.0, 2.1, 1.9]).verdict == "lower"
    assert paired_difference([1.0, 3.0, 2.0], [2.0, 2.0, 1.9]).verdict == "undecided"
    assert paired_difference([1.0, 3.0], [1.0, 3.0]).verdict == "equal"


def test_a_single_seed_decides_nothing():
    found = paired_difference([2.0], [1.0])
    assert found.mean == 1
    assert math.isnan(found.low)
    assert found.verdict == "undecided"


def test_values_without_a_partner_are_refused():
    with pytest.raises(ValueError, match="2 and 1 values cannot be paired"):
        paired_difference([1.0, 2.0], [1.0])
