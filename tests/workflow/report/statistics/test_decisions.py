"""Verdicts follow from intervals whose level follows from how many are decided; false ones stay at the stated rate."""

import numpy as np
import pytest

from lookalike.workflow.report.statistics.crossed import Crossed, Estimate, crossed_estimate
from lookalike.workflow.report.statistics.decisions import LOOKS, RATES, decide, decisions, look_at, margin_of
from lookalike.workflow.report.statistics.verdict import Verdict
from measured import DEVIATIONS, claims_of_retrieval

WRONG = {
    Verdict.HIGHER: lambda true, margin: true <= 0,
    Verdict.LOWER: lambda true, margin: true >= 0,
    Verdict.SMALL: lambda true, margin: abs(true) >= margin,
}


def estimate(mean, error=1.0, freedom=1e6):
    return Estimate(mean, ((error**2, freedom),), 3, 50)


def slow_decisions(estimates, margin, rate):
    """The largest number R of comparisons that are decided where each interval misses with rate R / m."""
    for decided in range(len(estimates), -1, -1):
        error = rate * max(decided, 1) / len(estimates)
        verdicts = []
        for each in estimates:
            low, high = each.interval(error)
            side = 1 if low > 0 else -1 if high < 0 else 0
            verdicts.append(side or ("small" if abs(low) < margin and abs(high) < margin else None))
        if sum(verdict is not None for verdict in verdicts) >= decided:
            return verdicts if decided else [None] * len(verdicts), error
    raise AssertionError


@pytest.mark.parametrize("seed", range(8))
def test_they_are_those_of_the_step_up_rule(seed):
    rng = np.random.default_rng(seed)
    estimates = [
        estimate(mean, error) for mean, error in zip(rng.normal(0, 3, 12), rng.uniform(0.2, 1.5, 12), strict=True)
    ]
    found = decisions(estimates, [2.0] * 12, 0.05)
    verdicts, error = slow_decisions(estimates, 2.0, 0.05)
    words = {1: Verdict.HIGHER, -1: Verdict.LOWER, "small": Verdict.SMALL, None: Verdict.UNDECIDED}
    assert [each.verdict for each in found] == [words[verdict] for verdict in verdicts]
    assert {each.level for each in found} == {1 - error}
    assert [(each.low, each.high) for each in found] == [each.interval(error) for each in estimates]


def test_the_sign_comes_before_the_size_and_equal_runs_are_equal():
    found = decisions(
        [estimate(1.0, 0.1), estimate(-1.0, 0.1), estimate(0.1, 0.1), estimate(0.0, 0.0)], [2.0] * 4, 0.05
    )
    assert [each.verdict for each in found] == [Verdict.HIGHER, Verdict.LOWER, Verdict.SMALL, Verdict.EQUAL]


def test_what_was_not_repeated_is_undecided():
    (found,) = decisions([crossed_estimate([[5.0]])], [2.0], 0.05)
    assert found.verdict == Verdict.UNDECIDED
    assert decisions([], [], 0.05) == []


def test_one_clear_difference_among_many_takes_a_wider_interval_than_alone():
    clear, rest = estimate(2.5), [estimate(0.0, 5.0)] * 19
    assert decisions([clear], [2.0], 0.05)[0].verdict == Verdict.HIGHER
    assert decisions([clear, *rest], [2.0] * 20, 0.05)[0].verdict == Verdict.UNDECIDED


def test_looks_and_margins_are_as_stated():
    assert [look_at(seeds) for seeds in (1, 3, 9, 10, 19, 20, 40)] == [0, 0, 0, 1, 1, 2, 2]
    assert (len(LOOKS), round(sum(RATES), 10)) == (len(RATES), 0.05)
    assert [margin_of(name) for name in ("R@1", "P@1", "mAP", "train_R@1", "MAP@R", "coverage")] == [2, 2, 2, 2, 1, 2]


def test_what_a_look_decides_stays_and_the_last_look_takes_all_seeds():
    rng = np.random.default_rng(0)
    clear, open_ = rng.normal(9, 1, (12, 50)), rng.normal(0, 40, (12, 50))
    found = decide([Crossed(clear), Crossed(open_)], [2.0] * 2)
    assert [each.estimate.seeds for each in found] == [3, 12]
    alone = decisions([crossed_estimate(each[:3]) for each in (clear, open_)], [2.0] * 2, RATES[0])
    assert found[0].decision == alone[0]
    assert found[0].estimate == crossed_estimate(clear[:3])
    assert decide([], []) == []


def test_comparisons_of_fewer_seeds_end_with_an_earlier_look():
    rng = np.random.default_rng(0)
    few, many = rng.normal(9, 1, (5, 50)), rng.normal(9, 40, (12, 50))
    found = decide([Crossed(few), Crossed(many)], [2.0] * 2)
    assert [each.estimate.seeds for each in found] == [5, 12]
    assert found[0].decision.verdict == "higher"


def test_comparisons_that_a_look_does_not_ask_do_not_loosen_it():
    """Sixty differences that three seeds nearly decide, and forty of ten seeds without any: false ones stay rare."""
    rng = np.random.default_rng(4)
    few = [Crossed(11 / np.sqrt(3) * np.ones((3, 1)) + np.array([[-1.0], [0.0], [1.0]]))] * 60
    shares = []
    for _ in range(30):
        many = [Crossed(rng.normal(0, 1, (10, 1))) for _ in range(40)]
        verdicts = [each.decision.verdict for each in decide([*few, *many], [0.0] * 100)]
        decided = [place for place, verdict in enumerate(verdicts) if verdict != Verdict.UNDECIDED]
        shares.append(sum(place >= 60 for place in decided) / max(1, len(decided)))
    assert np.mean(shares) <= sum(RATES[:2])


def test_what_is_decided_counts_in_the_next_look():
    open_ = [estimate(2.5), estimate(0.0, 5.0)]
    assert decisions(open_, [2.0] * 2, 0.05, others=18)[0].verdict == Verdict.UNDECIDED
    found = decisions(open_, [2.0] * 2, 0.05, others=18, decided=18)
    assert [each.verdict for each in found] == [Verdict.HIGHER, Verdict.UNDECIDED]
    assert found[0].level == pytest.approx(1 - 0.05 * 19 / 20)
    with pytest.raises(ValueError, match="3 decided of 2 others do not go together"):
        decisions(open_, [2.0] * 2, 0.05, others=2, decided=3)


@pytest.mark.parametrize(("estimates", "margins", "rate"), [([], [1.0], 0.05), ([estimate(1)], [1.0], 0.0)])
def test_what_does_not_go_together_is_refused(estimates, margins, rate):
    with pytest.raises(ValueError, match="do not go together"):
        decisions(estimates, margins, rate)


def test_a_verdict_of_few_seeds_is_the_same_beside_a_comparison_of_many():
    few, many = np.array([[3.0], [4.0], [5.0]]), np.arange(10.0)[:, None]
    alone, beside = (decide([Crossed(few), Crossed(other)], [2.0] * 2)[0] for other in (few, many))
    assert alone.decision.level == 1 - RATES[0] / 2
    assert beside == alone


# Deviations of seeds, classes and single numbers, of each comparison.
MEASURED = claims_of_retrieval()[DEVIATIONS].to_numpy()
TRUE = [0.0, 0.0, 0.5, 2.0, -2.0, 3.0, -5.0]


def study(rng, true, *, classes=200, seeds=LOOKS[-1], spread=0.0, shared=0.0):
    """The whole procedure on drawn comparisons: looks at 3, 10 and 20 seeds, what is decided stays.

    Args:
        spread: of the logarithm of how much seeds and classes deviate, from one comparison to the next.
        shared: part of the variances over seeds and over classes that all comparisons have in common.
    """
    common = rng.normal(size=(seeds, 1)), rng.normal(size=(1, classes))

    def drawn(mean, deviations):
        *own, of_both = np.array(deviations) * np.exp(rng.normal(0, spread, 3))
        effects = [
            deviation * (np.sqrt(shared) * each + np.sqrt(1 - shared) * rng.normal(size=each.shape))
            for deviation, each in zip(own, common, strict=True)
        ]
        return Crossed(mean + effects[0] + effects[1] + rng.normal(0, of_both, (seeds, classes)))

    comparisons = [drawn(mean, MEASURED[place % len(MEASURED)]) for place, mean in enumerate(true)]
    return [each.decision.verdict for each in decide(comparisons, [2.0] * len(true))]


def share_of_false(true, verdicts):
    decided = [(mean, verdict) for mean, verdict in zip(true, verdicts, strict=True) if verdict in WRONG]
    return sum(WRONG[verdict](mean, 2.0) for mean, verdict in decided) / max(1, len(decided))


@pytest.mark.parametrize("seeds", LOOKS)
@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_without_any_difference_no_more_are_called_different_than_the_looks_allow(seeds, spread):
    rng, rate = np.random.default_rng(0), sum(RATES[: LOOKS.index(seeds) + 1])
    called = [study(rng, [0.0] * 20, seeds=seeds, spread=spread, classes=50) for _ in range(150)]
    false = np.mean([share_of_false([0.0] * 20, verdicts) for verdicts in called])
    assert false <= rate + 2 * np.sqrt(rate / len(called))  # two deviations of this simulation


def test_three_points_are_called_different_in_four_of_five_by_two_hundred_classes():
    rng = np.random.default_rng(1)
    true = [3.0, -3.0] * 5 + [0.0] * 10
    called = [verdict for _ in range(20) for verdict in study(rng, true)[:10]]
    right = sum(verdict == (Verdict.HIGHER, Verdict.LOWER)[place % 2] for place, verdict in enumerate(called))
    assert right >= 0.8 * len(called)


@pytest.mark.parametrize("seeds", LOOKS)
@pytest.mark.parametrize(("classes", "spread"), [(50, 0.0), (200, 0.0), (200, 0.6)])
def test_false_verdicts_among_the_decided_keep_their_rate_after_each_look(seeds, classes, spread):
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(80):
        true = rng.choice(TRUE, 20)
        shares.append(share_of_false(true, study(rng, true, classes=classes, seeds=seeds, spread=spread)))
    assert np.mean(shares) <= sum(RATES[: LOOKS.index(seeds) + 1])


@pytest.mark.parametrize("seeds", LOOKS[:2])
def test_false_verdicts_keep_their_rate_where_comparisons_move_together(seeds):
    """As those of one claim do, which share seeds, classes and sides: four fifths of both variances are common."""
    rng = np.random.default_rng(6)
    shares = []
    for _ in range(150):
        true = rng.choice(TRUE, 17)
        shares.append(share_of_false(true, study(rng, true, seeds=seeds, shared=0.8)))
    assert np.mean(shares) <= sum(RATES[: LOOKS.index(seeds) + 1])
