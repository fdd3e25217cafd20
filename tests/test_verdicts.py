"""The simulation of verdicts on claims, and the page that tells what it found."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from lookalike.workflow.report.statistics.claim import LOOKS, LOOKS_AT_HALVES, RATES, Quantifier
from lookalike.workflow.report.statistics.decisions import margin_of
from lookalike.workflow.report.statistics.verdict import Verdict
from projects import ROOT

PAGE = ROOT / "docs" / "verdicts.md"


@pytest.fixture
def verdicts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("verdicts")
    sys.modules.pop("verdicts")


def percent(number, digits):
    return "–" if np.isnan(number) else f"{100 * number:.{digits}f}"


def test_the_page_shows_what_the_committed_simulation_found(verdicts):
    found = pd.read_csv(ROOT / "results" / "benchmarks" / "verdicts.csv").set_index(["scenario", "rule"])
    told = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    told = [cells for cells in told if cells[0] in verdicts.SCENARIOS]
    expected = []
    for name in verdicts.SCENARIOS:
        false, shares = found.loc[name]["false_claims"], found.loc[name]["found_rows"]
        cells = [
            (percent(false[rule], 1), percent(shares[rule], 0)) for rule in (verdicts.BY_RECALL, verdicts.BY_PRECISION)
        ]
        expected.append([name, *cells[0], *cells[1]])
    assert told == expected
    assert (found["draws"] >= 200).all()


def test_what_the_page_promises_was_simulated(verdicts):
    found = pd.read_csv(ROOT / "results" / "benchmarks" / "verdicts.csv")
    by_claims = found[found["rule"] != verdicts.BEFORE]
    assert (by_claims["false_claims"] + 2 * by_claims["error_of_false_claims"] < sum(RATES)).all()
    calm = ["seeds 0.1 to 0.5", "seeds 0.5", "heavy tails, seeds 0.5"]
    assert (by_claims[by_claims["scenario"].isin([*calm, "a tenth at 2"])]["found_rows"] > 0.8).all()


def test_the_page_states_looks_rates_and_margins_as_they_are():
    text = " ".join(PAGE.read_text().split())
    first, *others = LOOKS
    assert f"after {first}, {others[0]} and {others[1]} trainings" in text
    assert "on crossed halves after {}, {} and {}".format(*LOOKS_AT_HALVES) in text
    assert "at most {:g} %, {:g} % and {:g} % are false".format(*(100 * rate for rate in RATES)) in text
    assert f"{margin_of('R@1'):g} points of R@1, {margin_of('RP'):g} of RP" in text


def slow_row(truth):
    """What is true of a row in margins: higher, lower, above minus the margin, below it."""
    return truth > 0, truth < 0, truth > -1, truth < 1


@pytest.mark.parametrize("quantifier", Quantifier)
def test_what_is_true_of_a_claim_follows_from_its_rows(verdicts, quantifier):
    rng = np.random.default_rng(0)
    for _ in range(200):
        truth = rng.choice([-1.5, -1, -0.5, 0, 0.5, 1, 1.5], 3)
        rows = [slow_row(each) for each in ([truth.mean()] if quantifier == Quantifier.MEAN else truth)]
        higher, lower, above, below = zip(*rows, strict=True)
        expected = all(higher), any(lower), all(above) and any(below)
        if quantifier == Quantifier.SOME:
            expected = any(higher), all(lower), any(above) and all(below)
        kinds = (Verdict.HOLDS, Verdict.FAILS, Verdict.SMALL)
        assert tuple(verdicts.is_true(each, truth, quantifier) for each in kinds) == expected


def test_drawn_comparisons_vary_as_asked(verdicts):
    spread = verdicts.Spread(np.array([3.0, 1.0]), np.array([5.0, 2.0]), 0.5, 0.2, False)
    scenario, rng = verdicts.Scenario(calm=(0.5, 0.5)), np.random.default_rng(0)
    pairs = verdicts._drawn_pairs(scenario, [spread], rng)
    noise = np.array([next(pairs)[3] for _ in range(1500)])
    assert noise.shape[1:] == (2, 3, 50)
    deviations = np.array([[verdicts.variances(each) for each in metrics] for metrics in noise])
    of_both, over_seeds, over_classes = (
        np.array([[getattr(each, name) for each in metrics] for metrics in deviations])
        for name in ("of_both", "over_seeds", "over_classes")
    )
    mean = np.vectorize(lambda part: part.variance)
    both = mean(of_both).mean(axis=0)
    assert both * 150 == pytest.approx([25, 4], rel=0.05)
    assert (mean(over_classes).mean(axis=0) - both) * 50 == pytest.approx([9, 1], rel=0.05)
    assert (mean(over_seeds).mean(axis=0) - both) * 3 == pytest.approx([0.25, 0.04], rel=0.3)


def test_heavy_tails_leave_deviation_and_correlation_as_they_are(verdicts):
    first, second = verdicts._alike(0.5, (400_000,), np.random.default_rng(1), heavy=True)
    assert [first.std(), second.std()] == pytest.approx([1, 1], rel=0.05)
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(0.5, abs=0.05)
    assert (abs(first) > 3).mean() > 3 * 0.0027  # of normal numbers


def test_a_simulation_is_the_same_whenever_it_runs(verdicts):
    first, second = (pd.DataFrame(verdicts.simulated("4 claims on 6 comparisons", 1)) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
