"""What is said of several cases is decided by all of them; no verdict is favoured by which of them is worst or best."""

import numpy as np
import pytest

from lookalike.workflow.report.statistics.cases import Cases
from lookalike.workflow.report.statistics.crossed import crossed_estimate

ERROR = 0.1


def slow_interval(values, needed, error):
    """Ends written out, from the intervals of single cases at the error that is left to each."""
    groups, cases, _ = values.shape

    def ends(of_seed, share):
        return crossed_estimate(of_seed[:, None]).interval(share)

    if needed is None:
        low = max(min(ends(case, error / groups)[0] for case in group) for group in values)
        return low, max(min(ends(case, error / cases)[1] for case in group) for group in values)
    [group], spare = values, cases - needed  # so many cases may fail; one more decides that too few are so
    low = sorted((ends(case, error / (spare + 1))[0] for case in group), reverse=True)[needed - 1]
    high = sorted(ends(case, error / 2 / needed)[1] for case in group)[spare]
    together = group.mean(axis=0)
    return min(low, ends(together, error)[0]), min(high, ends(together, error / 2)[1])


@pytest.mark.parametrize(("shape", "needed"), [((1, 1, 4), None), ((3, 4, 5), None), ((1, 5, 3), 4), ((1, 4, 3), 1)])
def test_ends_are_those_of_the_cases(shape, needed):
    values = np.random.default_rng(0).normal(size=shape)
    assert Cases(values, needed).interval(ERROR) == pytest.approx(slow_interval(values, needed, ERROR))


def test_a_single_case_is_its_own_difference():
    values = np.array([1.0, 2.0, 4.0])
    found, expected = Cases(values[None, None]), crossed_estimate(values[:, None])
    assert (found.mean, found.seeds, found.interval(ERROR)) == (expected.mean, 3, expected.interval(ERROR))


def test_what_it_comes_to_is_the_worst_case_of_the_best_group():
    means = np.array([[3.0, -1.0], [2.0, 1.0], [0.0, 9.0]])
    assert Cases(means[:, :, None]).mean == 1
    assert Cases(np.array([[[3.0], [1.0], [2.0], [-9.0]]]), 3).mean == -0.75  # their mean; three reach 1
    assert Cases(np.array([[[9.0], [9.0], [-1.0], [-1.0]]]), 3).mean == -1


@pytest.mark.parametrize(("shape", "needed"), [((2, 3, 12), None), ((1, 4, 12), 3)])
def test_seeds_that_come_later_change_nothing_of_a_look(shape, needed):
    values = np.random.default_rng(1).normal(size=shape)
    look, alone = Cases(values, needed).estimate(3), Cases(values[:, :, :3], needed)
    assert (look.seeds, look.mean, look.interval(ERROR)) == (3, alone.mean, alone.interval(ERROR))


def test_of_a_single_seed_nothing_is_known():
    assert np.isnan(Cases(np.ones((1, 2, 1))).interval(ERROR)).all()
    assert np.isnan(Cases(np.ones((1, 2, 1)), 2).interval(ERROR)).all()


@pytest.mark.parametrize("seeds", [3, 10, 20])
@pytest.mark.parametrize(
    ("means", "needed", "true"),
    [
        (np.zeros((1, 20)), None, 0.0),  # the worst of twenty that are alike
        (np.array([[0.0] * 5 + [1.0] * 5]), None, 0.0),
        (np.zeros((2, 8)), None, 0.0),  # the best of two against the best of eight
        (np.zeros((8, 1)), None, 0.0),
        (np.array([[0.0], [0.5], [-1.0]]) - np.array([0.0, 0.2, 0.4]), None, 0.1),
        (np.array([[5.0] * 5 + [0.0] * 3]), 6, 0.0),
        (np.array([[0.0] * 6 + [-5.0] * 2]), 6, -1.25),  # the mean decides
        (np.array([[12.0] + [0.0] * 5 + [-5.0] * 2]), 6, 0.0),  # the sixth decides, one of five alike
        (np.zeros((1, 8)), 6, 0.0),
    ],
)
def test_each_end_misses_no_more_than_half_the_error(means, needed, true, seeds):
    rng, drawn = np.random.default_rng(2), 600
    missed = np.zeros(2)
    for _ in range(drawn):
        low, high = Cases(means[..., None] + rng.normal(size=(*means.shape, seeds)), needed).interval(ERROR)
        missed += low > true, high < true
    limit = ERROR / 2
    assert (missed / drawn <= limit + 2.5 * np.sqrt(limit / drawn)).all()  # deviations of this simulation


@pytest.mark.parametrize(
    ("values", "needed", "said"),
    [
        (np.ones((2, 3)), None, r"values must be \(G, K, S\) finite numbers, at least one, not \(2, 3\)"),
        (np.full((1, 1, 3), np.nan), None, "finite numbers"),
        (np.ones((1, 2, 3)), 3, r"needed=3 of \(1, 2\) cases: 1 to all of a single group can be"),
        (np.ones((2, 2, 3)), 1, "of a single group"),
    ],
)
def test_what_cannot_be_is_refused(values, needed, said):
    with pytest.raises(ValueError, match=said):
        Cases(values, needed)
