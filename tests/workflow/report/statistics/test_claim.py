"""Verdicts on claims follow from intervals of rows and metrics, at a level that follows from how many are decided."""

from dataclasses import replace

import numpy as np
import pytest

from lookalike.workflow.report.statistics.claim import (
    LOOKS,
    LOOKS_AT_HALVES,
    RATES,
    SILENT,
    Claim,
    Direction,
    Errors,
    Quantifier,
    Row,
    closed,
    errors_of,
    judge,
    learned,
    of_every,
    of_some,
)
from lookalike.workflow.report.statistics.crossed import Crossed, Estimate, crossed_estimate, variances
from lookalike.workflow.report.statistics.moderated import estimated_prior, moderated
from lookalike.workflow.report.statistics.verdict import Verdict

MARGIN = 2.0
HOLDS, FAILS, SMALL, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.SMALL, Verdict.UNDECIDED
EVERY, SOME, MEAN = Quantifier.EVERY, Quantifier.SOME, Quantifier.MEAN


def estimate(mean, error=1.0, freedom=30.0):
    return Estimate(mean, ((error**2, freedom), (error**2, 49.0)), 3, 50)


def drawn(rng, mean, *, seeds=3, classes=50, of_seeds=0.3, of_classes=2.8, of_both=5.2):
    return Crossed(
        mean
        + rng.normal(0, of_seeds, (seeds, 1))
        + rng.normal(0, of_classes, (1, classes))
        + rng.normal(0, of_both, (seeds, classes))
    )


def row(rng, mean, name="a", *, tested=True, family="birds", metric="R@1", **spread):
    return Row(f"changed_{name}", f"baseline_{name}", family, metric, drawn(rng, mean, **spread), tested)


def first_seeds(claim, seeds):
    rows = [replace(each, differences=Crossed(each.differences.differences[:seeds])) for each in claim.rows]
    return replace(claim, rows=rows)


def slow_row(estimate, error):
    """Sides on which a row is by its interval: above zero, below, above -margin, below margin."""
    low, high = estimate.interval(error)
    return low > 0, high < 0, low > -MARGIN, high < MARGIN


def slow_verdict(rows, quantifier, error):
    every, some = ([slow_row(each, part) for each in rows] for part in (error, error / len(rows)))
    higher, lower, above, below = zip(*every, strict=True)
    one_higher, one_lower, one_above, one_below = zip(*some, strict=True)
    if quantifier == EVERY:
        holds, fails, small = all(higher), any(one_lower), all(above) and any(one_below)
    else:
        holds, fails, small = any(one_higher), all(lower), any(one_above) and all(below)
    return HOLDS if holds else FAILS if fails else SMALL if small else OPEN


@pytest.mark.parametrize("quantifier", [EVERY, SOME])
@pytest.mark.parametrize("count", [1, 3])
def test_errors_say_what_intervals_of_rows_say(quantifier, count):
    rng, seen = np.random.default_rng(count), set()
    for _ in range(300):
        centre = rng.choice([-4, 0, 4])
        rows = [estimate(rng.normal(centre, 1), MARGIN * rng.uniform(0.1, 0.6)) for _ in range(count)]
        found = (of_every if quantifier == EVERY else of_some)([errors_of(each, MARGIN) for each in rows])
        for error in (0.001, 0.02, 0.2):
            assert found.verdict(error) == slow_verdict(rows, quantifier, error)
            seen.add(found.verdict(error))
        assert found.verdict(found.least * 1.0001) != OPEN or found.least == 1
        assert found.verdict(found.least * 0.9999) == OPEN
    assert seen == {HOLDS, FAILS, SMALL, OPEN}


def test_a_row_that_is_equal_in_all_is_small():
    assert errors_of(crossed_estimate(np.zeros((3, 5))), 2).verdict(0.001) == SMALL


def test_what_was_not_repeated_says_nothing():
    assert errors_of(crossed_estimate([[5.0]]), 2) == SILENT


def test_toward_lower_is_the_same_of_differences_with_the_other_sign():
    first, second = errors_of(estimate(1.5), 2), errors_of(estimate(-1.5), 2)
    assert first.toward(Direction.LOWER) == second
    assert first.toward(Direction.HIGHER) == first


def test_a_claim_of_a_difference_holds_on_either_side_and_is_small_within_the_margin():
    for mean in (3, -3):
        assert errors_of(estimate(mean, 0.2), 2).toward(Direction.DIFFERENT).verdict(0.01) == HOLDS
    assert errors_of(estimate(0.1, 0.2), 2).toward(Direction.DIFFERENT).verdict(0.01) == SMALL


def test_closed_testing_adjusts_as_holm_does():
    """Slow: a row is told if each set of rows with it has one at the error divided by their number."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        errors = rng.uniform(0, 0.4, 4)
        sets = [[place for place in range(4) if code >> place & 1] for code in range(1, 16)]
        slow = [
            max(min(1, len(each) * min(errors[place] for place in each)) for each in sets if own in each)
            for own in range(4)
        ]
        assert closed(list(errors)) == pytest.approx(slow)


def test_learned_is_above_the_start_by_a_one_sided_test():
    assert learned(estimate(2.5, 1.0))
    assert not learned(estimate(2.3, 1.0))  # the interval of 90 % ends at 2.4
    assert not learned(estimate(-9.0, 1.0))


def test_every_needs_each_row_some_one_of_them_and_mean_the_average():
    rng = np.random.default_rng(0)
    rows = [row(rng, 9, "a"), row(rng, 9, "b"), row(rng, -9, "c")]
    verdicts = {quantifier: judge([Claim(rows, quantifier)])[0] for quantifier in Quantifier}
    assert {name: each.verdict for name, each in verdicts.items()} == {EVERY: FAILS, SOME: HOLDS, MEAN: HOLDS}
    assert all(each.rows == (HOLDS, HOLDS, FAILS) for each in verdicts.values())
    assert judge([Claim(rows[:2], EVERY)])[0].verdict == HOLDS


def test_a_claim_that_something_is_lower_holds_where_it_is():
    rng = np.random.default_rng(0)
    found = judge([Claim([row(rng, -9)], direction=Direction.LOWER), Claim([row(rng, 9)], direction=Direction.LOWER)])
    assert [(each.verdict, *each.rows) for each in found] == [(HOLDS, HOLDS), (FAILS, FAILS)]


def test_rows_that_are_not_tested_say_nothing_and_count():
    rng = np.random.default_rng(0)
    tested, untested = row(rng, 9, "a"), row(rng, 9, "b", tested=False)
    found = judge([Claim([tested, untested], quantifier) for quantifier in (EVERY, SOME, MEAN)] + [Claim([untested])])
    assert [each.verdict for each in found] == [OPEN, HOLDS, HOLDS, Verdict.NOT_TESTED]
    assert found[0].rows == (HOLDS, Verdict.NOT_TESTED)
    assert found[2].mean == found[2].estimates[0]
    assert found[0].error == pytest.approx(RATES[0] * 2 / 4)


def test_rows_and_claims_that_are_not_run_say_nothing_and_count():
    rng = np.random.default_rng(0)
    rows = [row(rng, 9, "a"), row(rng, 9, "b")]
    found = judge([Claim(rows, quantifier, silent=1) for quantifier in (EVERY, SOME, MEAN)])
    assert [each.verdict for each in found] == [OPEN, HOLDS, HOLDS]
    assert found[1].rows == (HOLDS, HOLDS)
    assert judge([Claim(rows, SOME)], silent=3)[0].error == pytest.approx(RATES[0] / 4)


def test_the_mean_counts_what_rows_share():
    """Its variance is that of the covariances of all rows, here of two that share a baseline of much variance."""
    rng = np.random.default_rng(3)
    base = drawn(rng, 0, of_seeds=3).differences
    values = [drawn(rng, 5).differences - base for _ in range(2)]
    rows = [Row(f"c{place}", "b", "birds", "R@1", Crossed(each)) for place, each in enumerate(values)]
    found = judge([Claim(rows, MEAN)])[0].mean
    prior = estimated_prior([variances(each) for each in values], [("c0", "b"), ("c1", "b")])
    assert found == moderated(variances((values[0] + values[1]) / 2), prior)
    of_seeds = np.cov([each.mean(axis=1) for each in values])
    assert variances((values[0] + values[1]) / 2).over_seeds.variance == pytest.approx(of_seeds.sum() / 4 / 3)


def test_the_mean_over_data_sets_adds_variances_by_their_share_of_rows():
    rng = np.random.default_rng(4)
    birds = [row(rng, 3, "a"), row(rng, 3, "b")]
    cars = row(rng, 6, "a", family="cars", classes=20)
    found = judge([Claim([*birds, cars], MEAN), Claim(birds, MEAN), Claim([cars], MEAN)])
    together, first, second = (each.mean for each in found)
    assert together.mean == pytest.approx(2 / 3 * first.mean + second.mean / 3)
    expected = [(4 / 9 * value, freedom) for value, freedom in first.parts]
    expected += [(value / 9, freedom) for value, freedom in second.parts]
    assert np.array(together.parts) == pytest.approx(np.array(expected))
    assert (together.seeds, together.classes) == (3, 70)


def test_rows_of_other_classes_have_no_mean():
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="were not tested on the same classes"):
        judge([Claim([row(rng, 3, "a"), row(rng, 3, "b", classes=20)], MEAN)])


@pytest.mark.parametrize("seed", range(4))
def test_the_level_is_that_of_the_step_up_rule(seed):
    """The largest number R of claims that are decided where each is at rate R / m."""
    rng = np.random.default_rng(seed)
    claims = [Claim([row(rng, mean, str(place))]) for place, mean in enumerate(rng.choice([0, 0, 1.5, 3, 5], 12))]
    found = judge(claims)
    ends = [errors_of(judged.estimates[0], MARGIN) for judged in found]
    for decided in range(12, -1, -1):
        error = RATES[0] * max(decided, 1) / 12
        verdicts = [each.verdict(error) for each in ends]
        if sum(verdict != OPEN for verdict in verdicts) >= decided:
            break
    assert [each.verdict for each in found] == verdicts
    assert [each.error for each in found] == pytest.approx([error] * 12)


def test_what_a_look_decides_stays_and_counts_in_the_next():
    rng = np.random.default_rng(0)
    clear = Claim([row(rng, 9, "a", seeds=12)])
    unclear = Claim([row(rng, 0, "b", seeds=12, of_both=60)])
    found = judge([clear, unclear])
    assert [each.seeds for each in found] == [3, 12]
    assert found[0].verdict == HOLDS
    assert found[1].error == pytest.approx(RATES[2] * 1 / 2)
    assert judge([first_seeds(claim, 3) for claim in (clear, unclear)])[0] == found[0]
    assert judge([]) == []


def test_halves_are_judged_at_looks_of_their_own():
    rng = np.random.default_rng(1)
    whole = row(rng, 9, seeds=6, classes=100)
    values = whole.differences.differences
    values[::2, :50] = values[1::2, 50:] = np.nan
    found = judge([Claim([whole])], LOOKS_AT_HALVES)[0]
    assert (found.verdict, found.seeds, found.estimates[0].classes) == (HOLDS, 4, 100)


def test_only_rows_of_one_metric_data_set_and_network_tell_of_each_others_seeds():
    """Each pool has rows of the same recipes; those of another one vary by other seeds."""
    rng = np.random.default_rng(6)
    pools = [("birds, tiny", "mAP"), ("birds, tiny", "train_R@1"), ("cars, tiny", "mAP"), ("birds, large", "mAP")]
    rows = {
        pool: [row(rng, 1, str(place), family=pool[0], metric=pool[1], of_seeds=of_seeds) for place in range(4)]
        for pool, of_seeds in zip(pools, (0.1, 1, 2, 4), strict=True)
    }
    found = iter(judge([Claim([each]) for own in rows.values() for each in own]))
    for own in rows.values():
        told = [variances(each.differences.differences) for each in own]
        prior = estimated_prior(told, [(each.changed, each.baseline) for each in own])
        assert [next(found).estimates[0] for _ in own] == [moderated(each, prior) for each in told]


def test_a_comparison_that_several_claims_name_tells_of_seeds_once():
    rng = np.random.default_rng(2)
    same, other = row(rng, 3, "a"), row(rng, 3, "b")
    once = judge([Claim([same]), Claim([other])])
    often = judge([Claim([same]), Claim([other]), *[Claim([same])] * 5])
    assert often[1].estimates == once[1].estimates


def test_rates_add_up_to_one_in_twenty():
    assert sum(RATES) == pytest.approx(0.05)
    assert len(LOOKS) == len(LOOKS_AT_HALVES) == len(RATES)


def test_without_any_difference_claims_are_called_true_or_false_as_rarely_as_stated():
    """Baselines are shared by two rows, a tenth of comparisons varies by 2 points; looks at 3, 6 and 10 seeds."""
    rng, said = np.random.default_rng(7), []
    spread = {"seeds": 10, "of_both": 3.7, "of_classes": 2}
    for _ in range(25):
        claims = []
        for place in range(12):
            base = drawn(rng, 0, **spread).differences
            changed = [drawn(rng, 0, of_seeds=own, **spread).differences for own in (0.2 if place % 5 else 2.0, 0.2)]
            rows = [
                Row(f"c{place}{side}", f"b{place}", "birds", "R@1", Crossed(each - base))
                for side, each in enumerate(changed)
            ]
            claims.append(Claim(rows, (EVERY, SOME, MEAN)[place % 3]))
        verdicts = [each.verdict for each in judge(claims)]
        decided = [verdict for verdict in verdicts if verdict != OPEN]
        said.append(sum(verdict != SMALL for verdict in decided) / max(1, len(decided)))
    assert np.mean(said) <= sum(RATES)


def test_three_points_are_found_by_three_seeds_and_fifty_classes():
    rng = np.random.default_rng(8)
    claims = [Claim([row(rng, 3.0 * (place % 2), str(place), of_seeds=0.5, of_both=5.2)]) for place in range(40)]
    found = [each.verdict for each in judge(claims)]
    assert sum(verdict == HOLDS for verdict in found[1::2]) >= 16
    assert found[::2].count(HOLDS) + found[::2].count(FAILS) <= 1


def test_an_error_is_told_of_what_was_seen():
    errors = Errors(0.01, 1.0, 0.001, 0.6)
    assert errors.least == 0.01
    assert [errors.verdict(each) for each in (0.005, 0.01)] == [OPEN, HOLDS]
