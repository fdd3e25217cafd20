"""Agreement of orders, against SciPy and pairs counted one by one, on drawn numbers and on tables of real birds."""

from io import StringIO
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from lookalike.workflow.report.statistics.agreement import Agreement, agreement, agreement_of_gains, with_print
from lookalike.workflow.report.tables.cells import read_cells
from projects import ROOT, committed


@pytest.mark.parametrize("seed", range(5))
def test_it_is_spearmans_and_the_share_of_pairs_counted_one_by_one(seed):
    printed, measured = np.random.default_rng(seed).integers(0, 8, (2, 12)).astype(float)
    found = agreement(printed, measured)
    same = other = 0
    for first in range(12):
        for second in range(first):
            sign = (printed[first] - printed[second]) * (measured[first] - measured[second])
            same, other = same + (sign > 0), other + (sign < 0)
    assert found.spearman == pytest.approx(spearmanr(printed, measured).statistic)
    assert (found.concordant, found.pairs, found.rows) == (pytest.approx(same / (same + other)), same + other, 12)


def test_rows_that_only_one_has_do_not_count():
    assert agreement([1, nan, 3, 4], [10, 20, 30, nan]) == Agreement(pytest.approx(1), 1, 1, 2)


@pytest.mark.parametrize("rows", [0, 1])
def test_fewer_than_two_rows_say_nothing(rows):
    found = agreement([1.0] * rows, [2.0] * rows)
    assert isnan(found.spearman)
    assert isnan(found.concordant)
    assert (found.pairs, found.rows) == (0, rows)


def test_rows_that_are_all_equal_say_nothing():
    found = agreement([1, 2, 3], [5, 5, 5])
    assert isnan(found.spearman)
    assert (found.pairs, found.rows) == (0, 3)


def test_gains_are_over_baselines():
    printed = {"plain": 60, "a": 63, "b": 65, "other": 70, "c": 71}
    measured = {"plain": 50, "a": 52, "b": 51, "other": 80, "c": 80.5}
    found = agreement_of_gains(printed, measured, [("a", "plain"), ("b", "plain"), ("c", "other"), ("d", "other")])
    assert found == agreement([3, 5, 1], [2, 1, 0.5])
    assert found.rows == 3


def test_other_numbers_of_rows_are_refused():
    with pytest.raises(ValueError, match="2 printed and 1 measured rows do not go together"):
        agreement([1, 2], [1])


def rows_of(table, metric, dataset="cub"):
    cells = pd.read_csv(StringIO(committed(f"birds/tables/{table}.csv")))
    cells = cells[(cells["metric"] == metric) & (cells["dataset"] == dataset)].dropna(subset=["published", "mean"])
    return cells.set_index("recipe")


def test_real_birds_keep_the_order_of_contextuals_table_4_but_for_three_pairs_of_rows():
    cells = rows_of("contextual_4", "R@1")
    found = agreement(cells["published"], cells["mean"])
    assert found.spearman == pytest.approx(spearmanr(cells["published"], cells["mean"]).statistic)
    assert (found.concordant, found.pairs) == (pytest.approx(25 / 28), 28)


def test_real_birds_keep_the_order_of_dimls_losses_but_not_of_its_gains():
    cells = rows_of("diml_1", "P@1")
    plain = cells[~cells.index.str.endswith("_diml")]
    assert len(plain) == 17
    assert agreement(plain["published"], plain["mean"]).spearman == pytest.approx(0.73, abs=0.005)
    pairs = [(f"{name}_diml", name) for name in plain.index]
    found = agreement_of_gains(dict(cells["published"]), dict(cells["mean"]), pairs)
    assert (found.spearman, found.rows) == (pytest.approx(0.10, abs=0.005), 17)


def test_of_a_table_all_rows_count_and_gains_are_over_the_rows_that_these_are_held_against():
    cells = read_cells(ROOT / "results/reference/birds/tables/diml_1.csv")
    found = with_print(cells[cells["dataset"] == "cub"], ["R@1", "P@1", "RP"])
    assert (found.metric, found.rows.rows, found.gains.rows) == ("P@1", 34, 17)
    assert found.rows.spearman == pytest.approx(0.70, abs=0.005)
    assert found.gains.spearman == pytest.approx(0.10, abs=0.005)
    nothing = with_print(cells[cells["dataset"] == "cars"], ["P@1"])
    assert (nothing.metric, nothing.rows.rows, nothing.rows.says) == ("", 0, False)
