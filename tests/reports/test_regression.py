"""The gate closes on a loss, and on nothing else."""

import numpy as np
import pandas as pd

from lookalike.reports.regression import compare, compare_printed, lost

CELL = {"table": "t", "dataset": "cub", "metric": "R@1", "tolerance": 3.0}
REFERENCE = [
    {**CELL, "label": "Margin", "value": 60.0},
    {**CELL, "label": "Steady", "value": 50.0, "tolerance": 0.4},
    {**CELL, "label": "Usual", "value": 40.0},
]


def tables(**means):
    rows = [{"label": label, "mean": mean} for label, mean in means.items()]
    return {"t": pd.DataFrame(rows).assign(dataset="cub", metric="R@1", std=0.5, n=3, queries=500)}


def verdicts(**means):
    return dict(compare(tables(**means), REFERENCE)[["label", "verdict"]].itertuples(index=False))


def test_a_cell_may_move_by_its_own_tolerance():
    inside = {"Margin": 57.1, "Steady": 49.7, "Usual": 42.9}
    assert set(verdicts(**inside).values()) == {"pass"}
    assert set(verdicts(Margin=56.9, Steady=49.5, Usual=36.9).values()) == {"worse"}
    assert set(verdicts(Margin=63.1, Steady=50.5, Usual=43.1).values()) == {"better"}


def test_what_a_method_adds_is_held_against_a_tolerance_of_its_own():
    frame = tables(Margin=60.0, Method=61.0)["t"].assign(against=[None, "Margin"], against_difference=[np.nan, 1.0])
    gain = {**CELL, "label": "Method", "metric": "R@1 over Margin", "value": 5.0, "tolerance": 0.5}
    reference = [REFERENCE[0], {**CELL, "label": "Method", "value": 61.0}, gain]
    closed = lost(compare({"t": frame}, reference))
    assert list(closed[["label", "metric"]].itertuples(index=False)) == [("Method", "R@1 over Margin")]


def test_a_missing_cell_closes_the_gate_and_a_new_or_better_one_does_not():
    comparison = compare(tables(Margin=64.0, Usual=40.0, Fresh=10.0), REFERENCE)
    assert dict(comparison[["label", "verdict"]].itertuples(index=False)) == {
        "Margin": "better",
        "Usual": "pass",
        "Steady": "missing",
        "Fresh": "new",
    }
    assert list(lost(comparison)["label"]) == ["Steady"]


def test_a_cell_that_is_too_good_closes_the_gate():
    comparison = compare(tables(Margin=65.0, Usual=40.0, Steady=50.0), REFERENCE)
    assert list(lost(comparison)[["label", "verdict"]].itertuples(index=False)) == [("Margin", "suspicious")]


def printed(difference, std=None, published_std=None):
    cells = tables(Margin=60.0)["t"].assign(std=std, published_std=published_std, difference=difference)
    return list(compare_printed({"t": cells.assign(published=cells["mean"] - (difference or 0))})["verdict"])


def test_a_printed_number_is_held_against_the_larger_deviation_of_both_sides():
    assert printed(-2.9, std=1.0, published_std=0.1) == printed(-2.9, std=0.1, published_std=1.0) == ["pass"]
    assert printed(-3.1, std=1.0) == ["worse"]
    assert printed(3.1, published_std=1.0) == ["better"]


def test_a_printed_number_without_any_deviation_is_undecided_and_one_of_another_set_up_left_out():
    assert printed(-30.0) == ["undecided"]
    assert printed(None, std=1.0) == []
