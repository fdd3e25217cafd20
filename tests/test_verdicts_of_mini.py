"""Claims of `mini` are judged by today's rule from the deviations in their committed file."""

import numpy as np
import pandas as pd
import pytest
import verdicts_of_mini as mini

from lookalike.workflow.report.statistics.crossed import Crossed, deviations, variances

COMMITTED = pd.read_csv(mini.FOLDER / "claims.csv")


def drawn(rng, of_seeds, queries):
    shape = mini.SEEDS, len(queries)
    noise = rng.normal(0, of_seeds, (mini.SEEDS, 1)) + rng.normal(0, 4, (1, len(queries))) + rng.normal(0, 9, shape)
    return Crossed(3 + noise, queries)


def as_committed(crossed, name):
    """Columns of the old file, whose interval is by the variance of the row itself."""
    low, high = crossed.estimate().interval(0.02)
    told = zip(("seeds", "classes", "both"), deviations(crossed.differences, crossed.weights), strict=True)
    return {
        "dataset": "birds",
        "changed": name,
        "seeds": mini.SEEDS,
        "classes": crossed.differences.shape[1],
        "low": low,
        "high": high,
        "level": 98.0,
        "difference_of_all": crossed.estimate().mean,
        **{f"deviation_of_{part}": value for part, value in told},
    }


def test_variances_follow_from_deviations_and_interval_though_classes_differ_in_size():
    rng = np.random.default_rng(0)
    queries = rng.integers(2, 12, 120)
    crossed = [drawn(rng, of_seeds, queries) for of_seeds in (0, 0, 0, 0, 2, 2, 3, 3)]
    rows = pd.DataFrame([as_committed(each, str(place)) for place, each in enumerate(crossed)])
    assert (rows["deviation_of_seeds"] == 0).sum() > 1
    [effective] = mini.effective_classes(rows).values()
    assert effective == pytest.approx(queries.sum() ** 2 / (queries**2).sum(), rel=0.02)
    for each, row in zip(crossed, rows.to_dict("records"), strict=True):
        true = variances(each.differences, each.weights)
        expected = true.over_seeds.variance, true.over_classes.variance, true.of_both.variance
        found = mini.variances_of(row, effective)
        assert found[::2] == pytest.approx(expected[::2], rel=0.05)
        assert found[1] == pytest.approx(max(expected[1], expected[2]), rel=0.05)


def test_seeds_that_vary_less_than_the_noise_are_taken_for_it_where_no_interval_of_all_tells():
    row = COMMITTED[(COMMITTED["seeds"] == 3) & (COMMITTED["deviation_of_seeds"] == 0)].iloc[0]
    over_seeds, _, of_both = mini.variances_of(row, row["classes"])
    assert over_seeds == of_both > 0


@pytest.mark.parametrize(("told", "classes"), [((0.4, 0.9, 0.3), 50), ((0.4, 0.0, 0.0), 1)])
def test_numbers_have_the_variances_that_were_asked_for(told, classes):
    found = variances(mini.with_variances(2.5, *told, classes).differences)
    assert found.mean == pytest.approx(2.5)
    parts = (found.over_seeds, found.over_classes, found.of_both)
    assert [part.variance for part in parts] == pytest.approx(list(told))


def test_the_committed_verdicts_are_those_of_the_committed_deviations():
    for name, frame in zip(("claims_judged", "claim_verdicts"), mini.verdicts(COMMITTED), strict=True):
        committed = pd.read_csv(mini.FOLDER / f"{name}.csv").fillna({"besides": ""})
        pd.testing.assert_frame_equal(committed, frame, check_dtype=False, atol=1e-4)


def test_every_row_is_judged_and_marked():
    rows = pd.read_csv(mini.FOLDER / "claims_judged.csv")
    assert len(rows) == len(COMMITTED)
    assert {*rows["learned"]} == {"unknown"}
    assert list(rows["before"]) == list(COMMITTED["verdict"])
