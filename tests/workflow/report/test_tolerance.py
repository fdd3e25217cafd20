"""Tolerances are measured over settings, and mean what they say."""

import numpy as np
import pandas as pd
import pytest

from lookalike.workflow.report.regression import compare, compare_claims, lost
from lookalike.workflow.report.statistics.crossed import variances
from lookalike.workflow.report.statistics.moderated import estimated_prior, moderated
from lookalike.workflow.report.tolerance import reference_cells

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


def gains(random, rows, deviation, mean=0.0, seeds=4, classes=100):
    """Rows of claims as they are written, of differences whose seeds have one deviation."""
    of_classes = np.random.default_rng(9).normal(scale=6, size=(rows, 1, classes))  # that another run has again
    of_seeds = random.normal(scale=deviation, size=(rows, seeds, 1))
    drawn = mean + of_classes + of_seeds + random.normal(scale=5, size=(rows, seeds, classes))
    told = [variances(each) for each in drawn]
    prior = estimated_prior(told, [(f"new {row}", f"old {row}") for row in range(rows)])
    errors = [moderated(each, prior).parts[0] for each in told]
    cells = {"difference": [each.mean for each in told], "seeds_error": [each[0] ** 0.5 for each in errors]}
    frame = pd.DataFrame({**cells, "seeds_freedom": [each[1] for each in errors], "seeds": seeds})
    both = frame.assign(**{f"rp_{name}": frame[name] if name == "difference" else np.nan for name in frame})
    both["rp_difference"] = np.nan
    names = {"changed": [f"new {row}" for row in range(rows)], "baseline": [f"old {row}" for row in range(rows)]}
    return both.assign(claim="raises", dataset="birds", metric="R@1", queries=2000, **names)


def compared(folder, measured, committed, held=("birds",)):
    for name, frame in (("measured.csv", measured), ("committed.csv", committed)):
        frame.to_csv(folder / name, index=False)
    return compare_claims(str(folder / "measured.csv"), str(folder / "committed.csv"), held)


def test_gains_of_an_unbroken_run_close_the_gate_about_once_in_a_hundred(tmp_path):
    random = np.random.default_rng(0)
    closed = [
        len(compared(tmp_path, *(gains(random, 60, 0.6) for _ in range(2))).query("verdict != 'pass'")) > 0
        for _ in range(150)
    ]
    assert sum(closed) <= 5  # 1.5 are expected; six or more come once in 240 such tests


def test_a_gain_that_is_gone_closes_the_gate_where_it_is_larger_than_what_seeds_do(tmp_path):
    random = np.random.default_rng(1)
    verdicts = []
    for _ in range(20):
        committed, measured = gains(random, 60, 0.6, mean=4.0), gains(random, 60, 0.6, mean=4.0)
        measured.loc[:2, "difference"] -= 4.0  # of three rows
        told = compared(tmp_path, measured, committed)
        verdicts.append(told.set_index("label")["verdict"][[f"new {row} over old {row}" for row in range(3)]])
    assert np.mean([(each != "pass").any() for each in verdicts]) >= 0.95


def test_a_row_that_is_gone_closes_the_gate_and_one_that_no_seed_moves_may_move_by_two_queries(tmp_path):
    committed = gains(np.random.default_rng(2), 5, 0.6).assign(queries=500)
    committed.loc[0, "seeds_error"] = 0.0
    measured = committed.copy()
    measured.loc[0, "difference"] += 0.3
    told = compared(tmp_path, measured.drop(index=4), committed).set_index("label")
    assert told["tolerance"]["new 0 over old 0"] == pytest.approx(0.4)
    assert list(lost(told.reset_index())["label"]) == ["new 4 over old 4"]


def test_gains_on_data_sets_that_are_not_held_are_left_out_and_one_that_is_held_may_not_be_gone(tmp_path):
    committed = gains(np.random.default_rng(4), 4, 0.6).assign(dataset=["birds", "birds", "cars", "cars"])
    birds = committed[committed["dataset"] == "birds"]
    assert set(compared(tmp_path, birds, committed)["dataset"]) == {"birds"}
    assert list(compared(tmp_path, birds, committed)["verdict"]) == ["pass", "pass"]
    assert len(lost(compared(tmp_path, birds, committed, ["birds", "cars"]))) == 2


def test_two_metrics_of_a_row_are_two_gains_and_fewer_seeds_have_more_room(tmp_path):
    committed = gains(np.random.default_rng(3), 3, 0.6)
    committed = committed.assign(
        **{f"rp_{name}": committed[name] for name in ("difference", "seeds", "seeds_error", "seeds_freedom")}
    )
    told = compared(tmp_path, committed, committed)
    assert sorted(told["metric"]) == ["R@1"] * 3 + ["RP"] * 3
    fewer = compared(tmp_path, committed.assign(seeds=2, rp_seeds=2), committed)
    assert (fewer["tolerance"] > 1.2 * told["tolerance"]).all()
