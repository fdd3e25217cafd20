"""Tolerances are measured over settings, and mean what they say."""

import numpy as np
import pandas as pd
import pytest

from lookalike.reports.regression import compare, lost
from lookalike.reports.tolerance import reference_cells

LABELS = [f"row {number}" for number in range(40)]


def tables(values, queries=500):
    rows = pd.DataFrame({"label": LABELS[: len(values)], "mean": values})
    return {"t": rows.assign(dataset="cub", metric="R@1", std=None, n=1, queries=queries)}


def cells(values, queries=500):
    frame = tables(values, queries)["t"].assign(table="t").rename(columns={"mean": "value"})
    return frame[["table", "label", "dataset", "metric", "value", "queries"]]


def reference(draws):
    return reference_cells({f"setting {number}": cells(values) for number, values in enumerate(draws)})


def test_the_gate_closes_on_about_one_in_a_hundred_unbroken_runs():
    random = np.random.default_rng(0)
    spread = random.uniform(0.5, 3.0, 40)
    shares = []
    for _ in range(8):
        committed = reference(50 + spread * random.normal(size=(10, 40)))
        value, tolerance = ([cell[key] for cell in committed] for key in ("value", "tolerance"))
        assert [cell["label"] for cell in committed] == sorted(LABELS)
        fresh = 50 + spread * random.normal(size=(500, 40))
        beyond = np.abs(fresh[:, np.argsort(LABELS)] - value) > tolerance
        shares.append(beyond.any(axis=1).mean())
        told = compare(tables(fresh[0]), committed).set_index("label")["verdict"] != "pass"
        assert list(told[sorted(LABELS)]) == list(beyond[0])
    # 0.01 is expected where all cells are equally steady, somewhat more where they are not
    assert 0.004 <= np.mean(shares) <= 0.025


def test_a_row_that_no_setting_moves_may_move_by_two_queries():
    draws = 50 + np.random.default_rng(0).normal(size=(6, 5))
    draws[:, 0] = 30.0
    committed = reference(draws)
    assert committed[0]["tolerance"] == pytest.approx(0.4)
    assert committed[0]["settings"] == 1
    assert min(cell["tolerance"] for cell in committed[1:]) > 2


def test_settings_that_agree_in_all_numbers_of_a_row_count_once():
    draws = 50 + np.random.default_rng(1).normal(size=(4, 5))
    once, twice = reference(draws), reference([*draws, *draws])
    assert once == twice
    assert {cell["settings"] for cell in once} == {4}


def test_the_reference_is_the_mean_over_settings():
    draws = [[40.0, 50.0], [41.0, 52.0], [42.0, 51.0], [45.0, 51.0]]
    assert [cell["value"] for cell in reference(draws)] == [42.0, 51.0]


def test_too_few_settings_are_refused():
    with pytest.raises(ValueError, match="at least 4 settings, found 3"):
        reference([[40.0], [41.0], [42.0]])


def test_settings_with_other_cells_are_refused():
    frames = {str(number): cells([40.0 + number, 50.0]) for number in range(4)}
    with pytest.raises(ValueError, match="setting 3 has other cells than 0"):
        reference_cells({**frames, "3": cells([40.0])})


def test_a_table_compared_with_its_own_settings_passes():
    draws = 50 + np.random.default_rng(2).normal(size=(5, 8))
    assert not len(lost(compare(tables(draws[0]), reference(draws))))
