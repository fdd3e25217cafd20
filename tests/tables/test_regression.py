"""The gate closes on a loss, and on nothing else."""

import pandas as pd
import pytest

from lookalike.tables.regression import compare, compare_printed, lost, reference_cells

CELL = {"table": "t", "dataset": "cub", "metric": "R@1", "n": 3, "queries": 500}
REFERENCE = [
    {**CELL, "label": "Margin", "mean": 60.0, "std": 1.0},
    {**CELL, "label": "Steady", "mean": 50.0, "std": 0.0},
    {**CELL, "label": "Usual", "mean": 40.0, "std": 0.5},
]


def tables(**means):
    rows = [{"label": label, "mean": mean} for label, mean in means.items()]
    return {"t": pd.DataFrame(rows).assign(dataset="cub", metric="R@1", std=0.5, n=3, queries=500)}


def verdicts(**means):
    return dict(compare(tables(**means), REFERENCE)[["label", "verdict"]].itertuples(index=False))


def test_a_cell_may_move_by_three_deviations_and_a_steady_one_by_those_of_its_column():
    inside = {"Margin": 57.1, "Steady": 48.6, "Usual": 41.4}
    assert set(verdicts(**inside).values()) == {"pass"}
    assert set(verdicts(Margin=56.9, Steady=48.4, Usual=38.4).values()) == {"worse"}
    assert set(verdicts(Margin=63.1, Steady=51.6, Usual=41.6).values()) == {"better"}


def test_a_cell_may_always_move_by_two_queries():
    alone = [{**CELL, "label": "Steady", "mean": 50.0, "std": 0.0}]
    for mean, verdict in ((49.7, "pass"), (49.5, "worse"), (50.5, "better")):
        assert list(compare(tables(Steady=mean), alone)["verdict"]) == [verdict]


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


def test_a_table_compared_with_its_own_reference_passes():
    measured = tables(Margin=61.23456, Steady=40.0)
    comparison = compare(measured, reference_cells(measured))
    assert set(comparison["verdict"]) == {"pass"}


def test_a_reference_of_one_seed_is_refused():
    with pytest.raises(ValueError, match="at least 2 seeds"):
        reference_cells({"t": tables(Margin=60.0)["t"].assign(n=1)})
