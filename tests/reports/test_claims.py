"""A claim holds, does not hold, is about a small difference or stays undecided, and all of it is told."""

import math

import numpy as np
import pandas as pd
import pytest

from lookalike.reports.claims import claim_cells, claim_summaries, markdown, verdict
from lookalike.statistics.crossed import crossed_estimate
from lookalike.statistics.decisions import RATES
from lookalike.statistics.verdict import Verdict

CLASSES = pd.Index(range(40), name="label")
QUERIES = np.tile([16, 20], 20)
CLAIMS = {
    "raises": {
        "says": "Changing raises it.",
        "place": "A paper, Table 1",
        "metric": "R@1",
        "direction": "higher",
        "datasets": ["cub", "cars"],
        "pairs": [{"changed": "new", "baseline": "old"}, {"changed": "newer", "baseline": "old"}],
    },
    "elsewhere": {
        "says": "Of other data.",
        "place": "A paper, Table 2",
        "metric": "mAP",
        "direction": "lower",
        "datasets": ["sop"],
        "pairs": [{"changed": "new", "baseline": "old"}],
    },
}
# True differences and deviations in percent points.
BETTER, WORSE, LITTLE, NOISE = (8.0, 1.0), (-8.0, 1.0), (0.0, 1.0), (1.0, 40.0)
MIXED = {("cub", "new"): BETTER, ("cub", "newer"): NOISE, ("cars", "new"): WORSE, ("cars", "newer"): LITTLE}


def differences(place, cell, seeds=3):
    """``(S, C)`` fractions of one comparison."""
    mean, deviation = cell
    return np.random.default_rng(place).normal(mean, deviation, (seeds, len(CLASSES))) / 100


def frame(cells, seeds=3, told_apart=True):
    """Runs of the claim `raises`."""
    rows = []
    for place, ((published, changed), cell) in enumerate(cells.items()):
        drawn = differences(place, cell, seeds)
        for seed, of_classes in enumerate(drawn):
            by_class = pd.DataFrame({"difference": of_classes, "queries": QUERIES}, index=CLASSES)
            value = float(of_classes @ QUERIES / QUERIES.sum())
            rows.append(
                {"claim": "raises", "metric": "R@1", "published": published, "dataset": f"figurines_{published}"}
                | {"changed": changed, "baseline": "old", "seed": seed}
                | {"changed_value": 0.5 + value, "baseline_value": 0.5, "classes": by_class if told_apart else None}
            )
    return pd.DataFrame(rows)


def cells_of(runs, best=None):
    return claim_cells(CLAIMS, runs, runs if best is None else best)


def told(runs, scale):
    return markdown(CLAIMS, cells_of(runs), seeds=sorted(set(runs["seed"])), chosen_on="the test classes", scale=scale)


@pytest.mark.parametrize(
    ("direction", "reached", "expected"),
    [
        ("higher", "higher", "holds"),
        ("higher", "lower", "does not hold"),
        ("higher", "equal", "does not hold"),
        ("higher", "small", "small"),
        ("higher", "undecided", "undecided"),
        ("lower", "lower", "holds"),
        ("lower", "higher", "does not hold"),
        ("different", "higher", "holds"),
        ("different", "lower", "holds"),
        ("different", "small", "small"),
        ("different", "equal", "does not hold"),
    ],
)
def test_a_verdict_follows_from_what_the_difference_comes_to(direction, reached, expected):
    assert verdict(direction, Verdict(reached)) == expected


@pytest.mark.parametrize("told_apart", [True, False])
def test_a_cell_holds_means_in_percent_and_the_interval_over_seeds_and_classes(told_apart):
    cells = cells_of(frame(MIXED, told_apart=told_apart))
    first = cells.iloc[0]
    assert (first["published"], first["dataset"], first["changed"]) == ("cub", "figurines_cub", "new")
    drawn = 100 * differences(0, BETTER)
    means = drawn @ QUERIES / QUERIES.sum()
    expected = crossed_estimate(drawn, QUERIES) if told_apart else crossed_estimate(means[:, None])
    assert first["baseline_mean"] == pytest.approx(50)
    assert first["changed_mean"] == pytest.approx(50 + means.mean())
    assert first["difference"] == pytest.approx(means.mean())
    assert (first["low"], first["high"]) == pytest.approx(expected.interval(1 - first["level"] / 100))
    assert (first["seeds"], first["classes"]) == (3, 40 if told_apart else 1)


def test_comparisons_are_decided_together_and_the_level_says_how_many():
    cells = cells_of(frame(MIXED))
    assert list(cells["verdict"]) == ["holds", "undecided", "does not hold", "small"]
    assert set(cells["level"]) == {100 * (1 - RATES[0] * 3 / 4)}


def test_the_last_epoch_decides_and_the_best_one_stands_beside():
    cells = cells_of(frame(MIXED), best=frame(dict.fromkeys(MIXED, BETTER)))
    alone = cells_of(frame(MIXED))
    assert list(cells["verdict"]) == list(alone["verdict"]) == ["holds", "undecided", "does not hold", "small"]
    assert list(cells["best_verdict"]) == ["holds"] * 4
    assert list(cells["difference"]) == list(alone["difference"])
    assert cells["best_difference"].min() > 7


def test_a_single_seed_without_classes_leaves_every_claim_undecided():
    cells = cells_of(frame(MIXED, seeds=1, told_apart=False))
    assert set(cells["verdict"]) == {"undecided"}
    assert cells["low"].isna().all()


def test_what_a_look_has_decided_stays_as_it_was_then_and_the_others_take_all_seeds():
    cells = cells_of(frame({**MIXED, ("cub", "newer"): (3.0, 15.0)}, seeds=10))
    assert list(cells["seeds"]) == [3, 10, 3, 3]
    assert list(cells["verdict"]) == ["holds", "holds", "does not hold", "small"]


def test_seeds_are_paired_whatever_the_order_of_the_runs():
    runs = frame(MIXED)
    shuffled = runs.sample(frac=1, random_state=0)
    keys = ["published", "changed"]
    pd.testing.assert_frame_equal(
        cells_of(runs).sort_values(keys, ignore_index=True),
        cells_of(shuffled).sort_values(keys, ignore_index=True),
    )


def test_seeds_that_were_tested_on_other_classes_are_refused():
    runs = frame({("cub", "new"): BETTER})
    runs["classes"] = [*runs["classes"][:2], runs["classes"][2].iloc[1:]]
    with pytest.raises(ValueError, match=r"^new on figurines_cub: seed 2 was not tested on the classes of seed 0"):
        cells_of(runs)


def test_a_seed_without_numbers_by_class_beside_others_with_them_is_refused():
    runs = frame({("cub", "new"): BETTER})
    runs["classes"] = [*runs["classes"][:2], None]
    with pytest.raises(ValueError, match=r"^new on figurines_cub: seed 2 has no numbers by class, others have; remove"):
        cells_of(runs)


def test_comparisons_of_different_numbers_of_seeds_are_refused():
    runs = frame(MIXED)
    fewer = runs[(runs["published"] != "cars") | (runs["changed"] != "new") | (runs["seed"] < 2)]
    with pytest.raises(
        ValueError, match=r"^new on figurines_cars has 2 seeds, new on figurines_cub has 3 seeds; a loo"
    ):
        cells_of(fewer)


def test_a_summary_counts_the_single_verdicts():
    summary = claim_summaries(CLAIMS, cells_of(frame(MIXED))).set_index("claim").loc["raises"]
    cells = cells_of(frame(MIXED))
    assert summary["difference"] == pytest.approx(cells["difference"].mean())
    assert [summary[each] for each in ("holds", "does not hold", "small", "undecided")] == [1, 1, 1, 1]


def test_deviations_are_of_all_seeds_whatever_a_look_has_taken():
    cells = cells_of(frame(MIXED, seeds=10))
    first = cells.iloc[0]
    values = 100 * differences(0, BETTER, seeds=10) @ QUERIES / QUERIES.sum()
    assert first["seeds"] == 3
    assert first["changed_mean"] == pytest.approx(50 + values[:3].mean())
    assert first["changed_deviation"] == pytest.approx(values.std(ddof=1))
    assert first["baseline_deviation"] == 0
    alone = frame(MIXED, seeds=1)
    assert cells_of(alone)["changed_deviation"].isna().all()
    assert f"| {100 * alone['changed_value'].iloc[0]:.1f} " in told(alone, "one seed")


def test_the_difference_of_all_seeds_stands_beside_that_of_fewer():
    cells, text = cells_of(frame(MIXED, seeds=10)), told(frame(MIXED, seeds=10), "mini")
    first, open_one = cells.iloc[0], cells.iloc[1]
    of_all = (100 * differences(0, BETTER, seeds=10) @ QUERIES / QUERIES.sum()).mean()
    assert first["difference_of_all"] == pytest.approx(of_all)
    assert f"{first['difference']:+.1f} [{first['low']:+.1f}, {first['high']:+.1f}] ({of_all:+.1f}) |" in text
    assert (open_one["seeds"], open_one["difference_of_all"]) == (10, open_one["difference"])
    interval = f"{open_one['difference']:+.1f} [{open_one['low']:+.1f}, {open_one['high']:+.1f}]"
    assert interval in text
    assert f"{interval} (" not in text


@pytest.mark.parametrize(
    ("seeds", "said"), [(1, False), (2, True), (3, False), (5, True), (10, False), (12, True), (20, False)]
)
def test_between_two_looks_verdicts_are_called_provisional(seeds, said):
    words = f"{seeds} seeds are none of the 3, 10, 20 of a look: what they decide is provisional."
    assert (words in told(frame(MIXED, seeds=seeds), "mini")) == said


def test_a_claim_without_data_is_told_as_not_tested():
    summary = claim_summaries(CLAIMS, cells_of(frame(MIXED))).set_index("claim").loc["elsewhere"]
    assert math.isnan(summary["difference"])
    assert [summary[each] for each in ("holds", "does not hold", "small", "undecided")] == [0, 0, 0, 0]
    text = told(frame(MIXED), "mini")
    assert "not tested" in next(line for line in text.splitlines() if line.startswith("| elsewhere"))


def test_readers_see_every_comparison_with_its_numbers():
    text, cells = told(frame(MIXED), "a scale"), cells_of(frame(MIXED))
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    shown = [row for row in rows if "figurines" in row[0]]
    assert len(shown) == len(MIXED)
    for row, cell in zip(shown, cells.to_dict("records"), strict=True):
        interval = f"{cell['difference']:+.1f} [{cell['low']:+.1f}, {cell['high']:+.1f}]"
        assert row[1:3] == [cell["changed"], "old"]
        beside = f"{interval}, 3 seeds: {cell['verdict']}"  # here both epochs are one
        assert row[3:5] == [f"{cell['changed_mean']:.1f} ± {cell['changed_deviation']:.1f}", "50.0 ± 0.0"]
        assert row[5:] == [interval, "99.25 %", "3", "40", cell["verdict"], beside]
    for words in ("Changing raises it.", "A paper, Table 1", "seeds 0, 1, 2", "Scale: a scale", "within 2 points"):
        assert words in text


def test_no_claim_with_data_at_all_is_still_a_document():
    text = told(frame({}).reindex(columns=frame(MIXED).columns), "bare")
    assert text.count("Not tested") == 2
