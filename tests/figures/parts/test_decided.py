"""What the papers say of figures is decided for all of them together, by a number per seed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lookalike.figures.parts.decided import findings
from lookalike.figures.parts.form import Check
from lookalike.figures.parts.trends import always, best_within, flat, mostly
from lookalike.statistics.decisions import LOOKS, RATES


def test_all_figures_are_decided_together():
    def verdicts(*statistics):  # of a unit each, so that none says how much the others vary
        checks = [Check("x", statistic=each, unit=f"unit {place}") for place, each in enumerate(statistics)]
        return [finding.verdict for finding in findings(checks)]

    clear, unclear = (5.0, 5.1, 4.9), (1.0, 1.2, 0.4)
    assert verdicts(clear, unclear) == ["yes", "undecided"]
    # with more that are decided each interval may miss as often, and the fainter one is decided, too
    assert verdicts((1.0, 1.12, 0.88)) == ["yes"]
    assert verdicts((1.0, 1.12, 0.88), *[(0.0, 9.0, -9.0)] * 30) == ["undecided"] * 31
    assert verdicts(*[(1.0, 1.12, 0.88)] * 30, (0.0, 9.0, -9.0)) == ["yes"] * 30 + ["undecided"]
    assert verdicts((-5.0, -5.1, -4.9), (0.1, -0.1, 0.05), (0.0, 0.0, 0.0)) == ["no", "small", "no"]
    assert verdicts((5.0,)) == ["undecided"]


def test_checks_of_one_unit_tell_together_how_much_seeds_vary():
    checks = [Check("x", statistic=(mean, mean + spread, mean - spread)) for mean in (4, -4, 5) for spread in (0.7, 1)]
    assert {finding.verdict for finding in findings(checks)} == {"yes", "no"}
    apart = [replace(check, unit=f"unit {place}") for place, check in enumerate(checks)]
    assert {finding.verdict for finding in findings(apart)} == {"undecided"}


@pytest.mark.parametrize("spread", [0, 0.4, 0.8])
@pytest.mark.parametrize(("seeds", "rate"), [(LOOKS[0], RATES[0]), (LOOKS[1], sum(RATES[:2]))])
def test_false_verdicts_on_figures_keep_their_rate_where_checks_vary_unlike_each_other(spread, seeds, rate):
    """Units of 20 checks down to one; ``spread`` is that of the logarithm of how much seeds deviate."""
    wrong = {"yes": lambda true: true <= 0, "no": lambda true: true >= 0, "small": lambda true: abs(true) >= 2}
    rng = np.random.default_rng(3)
    units = [f"unit {place}" for place, size in enumerate((20, 15, 10, 7, 5, 3, 1, 1)) for _ in range(size)]
    shares = []
    for _ in range(300 if seeds == LOOKS[0] else 60):
        true = rng.choice([0.0, 0.0, 0.5, 2.0, -2.0, 3.0, -5.0], len(units))
        drawn = true + rng.normal(0, np.exp(rng.normal(0, spread, len(units))), (seeds, len(units)))
        checks = [Check("x", statistic=tuple(each), unit=unit) for each, unit in zip(drawn.T, units, strict=True)]
        verdicts = [str(finding.verdict) for finding in findings(checks)]
        decided = [wrong[verdict](mean) for mean, verdict in zip(true, verdicts, strict=True) if verdict in wrong]
        shares.append(sum(decided) / max(1, len(decided)))
    assert np.mean(shares) <= rate


def test_a_check_without_a_margin_is_never_small():
    [finding] = findings([Check("x", statistic=(0.01, -0.01, 0.0), margin=0, unit="below 2")])
    assert finding.verdict == "undecided"
    assert finding.words.startswith("+0 below 2 (")
    assert finding.words.endswith("3 seeds, no margin)")
    [finding] = findings([Check("x", statistic=(0.01, -0.01, 0.0), margin=1)])
    assert finding.words.endswith("3 seeds, margin 1)")
    [finding] = findings([Check("x", statistic=(0.01, -0.01, 0.0))])
    assert finding.words.endswith("3 seeds)")


def share_of_yes(draw, check, *, seeds, studies=300):
    """How often a claim that is just not so is called so, at the level of a single check at its looks."""
    rng = np.random.default_rng(5)
    found = [findings([check(pd.DataFrame(draw(rng, seeds)))])[0].verdict for _ in range(studies)]
    return np.mean([verdict == "yes" for verdict in found])


def at_the_edge(true, noise=1.0):
    return lambda rng, seeds: np.array(true)[:, None] + rng.normal(0, noise, (len(true), seeds))


@pytest.mark.parametrize("seeds", LOOKS)
@pytest.mark.parametrize(
    ("true", "check"),
    [
        ([*np.linspace(0, 1.2, 10)], lambda values: flat(values, 1.0, "x")),
        ([0.0] * 8 + [0.6, -0.6], lambda values: flat(values, 1.0, "x")),
        ([0.0, 0.5, 1.0, 1.5], lambda values: always(rows_of(values), "x")),
        ([0.0] * 5, lambda values: always(rows_of(values), "x")),
        ([0.0] * 10, lambda values: best_within(values, [0, 1], "x")),
        ([0.0, 0.0, 3.0, 3.0], lambda values: mostly(rows_of(values), "x")),
    ],
)
def test_claims_of_several_cases_are_not_favoured_by_the_choice_of_the_case(true, check, seeds):
    rate = sum(RATES[: LOOKS.index(seeds) + 1])
    assert share_of_yes(at_the_edge(true), check, seeds=seeds) <= rate


def rows_of(values):
    return [values.loc[row] for row in values.index]


def test_a_claim_of_several_cases_and_one_seed_is_undecided_beside_others():
    others = [Check("x", statistic=(4.0, 4.0 + spread, 4.0 - spread), unit="u") for spread in (0.7, 1, 0.8)]
    single = Check("x", statistic=(4.0,), unit="u", cases=((4.0,), (5.0,)))
    assert [finding.verdict for finding in findings([*others, single])][-1] == "undecided"


def test_a_claim_of_several_cases_is_decided_where_all_of_them_are():
    cases = [pd.Series([5.0, 5.1, 4.9]), pd.Series([3.0, 3.1, 2.9]), pd.Series([4.0, 4.1, 3.9])]
    [finding] = findings([always(cases, "x")])
    assert finding.verdict == "yes"
    [finding] = findings([always([*cases, pd.Series([0.0, 9.0, -3.0])], "x")])
    assert finding.verdict == "undecided"
    [finding] = findings([always([*cases, pd.Series([-5.0, -5.1, -4.9])], "x")])
    assert finding.verdict == "no"
    [finding] = findings([mostly([*cases, pd.Series([0.0, 9.0, -3.0])], "x")])
    assert finding.verdict == "undecided"  # of four, with an error that the others leave to each
    [finding] = findings([mostly([*cases, *cases, pd.Series([3.0, 4.0, 2.0])], "x")])
    assert finding.verdict == "yes"
