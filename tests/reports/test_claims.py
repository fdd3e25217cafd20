"""A claim holds, does not hold or stays undecided, and all of it is told."""

import math

import pandas as pd
import pytest
from scipy import stats

from lookalike.reports.claims import claim_cells, claim_summaries, markdown, verdict
from lookalike.statistics.pairs import paired_difference

BETTER, WORSE, SAME, NOISE = [0.52, 0.55, 0.53], [0.41, 0.44, 0.43], [0.5, 0.51, 0.49], [0.6, 0.4, 0.55]
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


def frame(cells):
    """Runs of the claim `raises`, with values per data set and changed recipe; the baseline's are always the same."""
    return pd.DataFrame(
        [
            {"claim": "raises", "metric": "R@1", "published": published, "dataset": f"figurines_{published}"}
            | {
                "changed": changed,
                "baseline": "old",
                "seed": seed,
                "changed_value": value,
                "baseline_value": SAME[seed],
            }
            for (published, changed), values in cells.items()
            for seed, value in enumerate(values)
        ]
    )


MIXED = {("cub", "new"): BETTER, ("cub", "newer"): NOISE, ("cars", "new"): WORSE, ("cars", "newer"): SAME}


@pytest.mark.parametrize(
    ("direction", "changed", "expected"),
    [
        ("higher", BETTER, "holds"),
        ("higher", WORSE, "does not hold"),
        ("higher", NOISE, "undecided"),
        ("higher", SAME, "does not hold"),
        ("lower", WORSE, "holds"),
        ("lower", BETTER, "does not hold"),
        ("lower", NOISE, "undecided"),
        ("different", BETTER, "holds"),
        ("different", WORSE, "holds"),
        ("different", NOISE, "undecided"),
        ("different", SAME, "does not hold"),
    ],
)
def test_verdicts_from_given_numbers(direction, changed, expected):
    assert verdict(direction, paired_difference(changed, SAME)) == expected


def test_a_single_seed_leaves_every_claim_undecided():
    for direction in ("higher", "lower", "different"):
        assert verdict(direction, paired_difference([0.9], [0.1])) == "undecided"


def test_a_cell_holds_means_in_percent_and_the_interval_of_a_paired_t_test():
    cells = claim_cells(CLAIMS, frame(MIXED))
    assert list(cells["verdict"]) == ["holds", "undecided", "does not hold", "does not hold"]
    first = cells.iloc[0]
    assert (first["published"], first["dataset"], first["changed"]) == ("cub", "figurines_cub", "new")
    expected = stats.ttest_rel(BETTER, SAME).confidence_interval(0.95)
    assert first["changed_mean"] == pytest.approx(100 * 1.60 / 3)
    assert first["baseline_mean"] == pytest.approx(50)
    assert first["difference"] == pytest.approx(10 / 3)
    assert (first["low"], first["high"]) == pytest.approx((100 * expected.low, 100 * expected.high))
    assert first["n"] == 3


def test_seeds_are_paired_whatever_the_order_of_the_runs():
    runs = frame(MIXED)
    shuffled = runs.sample(frac=1, random_state=0)
    keys = ["published", "changed"]
    pd.testing.assert_frame_equal(
        claim_cells(CLAIMS, runs).sort_values(keys, ignore_index=True),
        claim_cells(CLAIMS, shuffled).sort_values(keys, ignore_index=True),
    )


def test_a_summary_averages_within_each_seed_and_counts_the_single_verdicts():
    summary = claim_summaries(CLAIMS, frame(MIXED)).set_index("claim").loc["raises"]
    by_seed = [sum(values[seed] for values in MIXED.values()) / 4 for seed in range(3)]
    expected = stats.ttest_rel(by_seed, SAME)
    assert summary["difference"] == pytest.approx(100 * (sum(by_seed) - sum(SAME)) / 3)
    assert summary["low"] == pytest.approx(100 * expected.confidence_interval(0.95).low)
    assert (summary["n"], summary["verdict"]) == (3, "undecided")
    assert (summary["holds"], summary["does not hold"], summary["undecided"]) == (1, 2, 1)


def test_a_claim_without_data_is_told_as_not_tested():
    summary = claim_summaries(CLAIMS, frame(MIXED)).set_index("claim").loc["elsewhere"]
    assert math.isnan(summary["difference"])
    assert (summary["holds"], summary["does not hold"], summary["undecided"]) == (0, 0, 0)
    text = markdown(CLAIMS, frame(MIXED), "mini")
    assert "not tested" in next(line for line in text.splitlines() if line.startswith("| elsewhere"))


def test_readers_see_every_comparison_with_its_numbers():
    text = markdown(CLAIMS, frame(MIXED), "a scale")
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert ["cub (figurines_cub)", "new", "old", "53.3", "50.0", "+3.3 [+0.5, +6.2]", "3", "holds"] in rows
    assert ["cars (figurines_cars)", "newer", "old", "50.0", "50.0", "+0.0 [+0.0, +0.0]", "3", "does not hold"] in rows
    assert sum("figurines" in row[0] for row in rows) == len(MIXED)
    for words in ("Changing raises it.", "A paper, Table 1", "seeds 0, 1, 2", "Scale: a scale"):
        assert words in text


def test_no_claim_with_data_at_all_is_still_a_document():
    text = markdown(CLAIMS, frame({}).reindex(columns=frame(MIXED).columns), "bare")
    assert text.count("Not tested") == 2
