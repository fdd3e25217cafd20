"""Rows that reach less than an answer without looking."""

import pandas as pd
import pytest

from lookalike.workflow.report.tables.notes import below_trivial, table_notes
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.tables import Table
from measured_runs import planned

TABLE = {
    "metrics": ["mean_iou_fold0", "mean_iou_mean", "binary_iou_mean"],
    "rows": [
        {"label": "ours", "recipe": "a"},
        {"label": "No object", "recipe": "b", "trivial": True},
        {"label": "All object", "recipe": "c", "trivial": True},
        {"label": "two classes", "recipe": "d"},
    ],
}


def cells(**reached):
    """Cells of the mean IoU and of the binary IoU of each row; one fold is always low."""
    rows = [
        {
            "label": label.replace("_", " "),
            "dataset": "pascal5i",
            "stand_in": "pascal5i",
            "metric": metric,
            "mean": value,
            "n": 1,
            "seeds": "0",
        }
        | {"departs": "", "rests_on": "", "query_in_r": "no", "printed": ""}
        for label, values in reached.items()
        for metric, value in zip(TABLE["metrics"], (0.0, *values), strict=True)
    ]
    return pd.DataFrame(rows)


def test_a_row_below_a_trivial_answer_is_named_with_its_numbers():
    found = cells(ours=(6.6, 31.9), No_object=(0.0, 43.0), All_object=(14.4, 7.2), two_classes=(0.0, 0.0))
    expected = [
        "Below 'No object': ours (binary IoU 31.9 against 43.0).",
        "Below 'All object': ours (mean IoU 6.6 against 14.4).",
    ]
    assert below_trivial(planned(TABLE), found) == expected
    assert table_notes(planned(TABLE), found, "small")[-2:] == expected


def test_a_row_above_all_of_them_needs_no_note():
    assert below_trivial(planned(TABLE), cells(ours=(20.0, 50.0), No_object=(0.0, 43.0), All_object=(14.4, 7.2))) == []


def test_rows_of_retrieval_are_held_against_their_own_data_set_by_the_first_metric():
    rows = [{"label": "ours"}, {"label": "theirs"}, {"label": "Untrained", "trivial": True}]
    reached = {"cub": {"ours": 40, "theirs": 60, "Untrained": 50}, "cars": {"ours": 45, "theirs": 20, "Untrained": 30}}
    found = pd.DataFrame(
        [
            {"label": label, "dataset": dataset, "stand_in": "", "metric": metric, "mean": float(value), "n": 1}
            for dataset, values in reached.items()
            for label, value in values.items()
            for metric in ("R@1", "R@2")
        ]
    )
    sentence = "Below 'Untrained': ours (CUB: R@1 40.0 against 50.0); theirs (Cars196: R@1 20.0 against 30.0)."
    assert below_trivial(planned({"metrics": ["R@1", "R@2"], "rows": rows}), found) == [sentence]


def test_rows_of_one_label_on_different_data_sets_are_each_told_once():
    rows = [
        {"label": "ours", "datasets": ["cub"]},
        {"label": "ours", "datasets": ["cars"]},
        {"label": "Untrained", "trivial": True},
    ]
    reached = {"cub": {"ours": 40, "Untrained": 50}, "cars": {"ours": 45, "Untrained": 30}}
    found = pd.DataFrame(
        {"label": label, "dataset": dataset, "stand_in": "", "metric": "R@1", "mean": float(value), "n": 1}
        for dataset, values in reached.items()
        for label, value in values.items()
    )
    assert below_trivial(planned({"metrics": ["R@1"], "rows": rows}), found) == [
        "Below 'Untrained': ours (CUB: R@1 40.0 against 50.0)."
    ]


def test_two_sets_that_stand_for_one_are_told_apart_and_what_reads_equal_is_not_below():
    rows = [{"label": "ours"}, {"label": "theirs"}, {"label": "Untrained", "trivial": True}]
    reached = {
        "sketches": {"ours": 40, "theirs": 49.96, "Untrained": 50.04},
        "figurines_birds": {"ours": 60, "theirs": 70, "Untrained": 50},
    }
    found = pd.DataFrame(
        {"label": label, "dataset": "cub", "stand_in": name, "metric": "R@1", "mean": float(value), "n": 1}
        for name, values in reached.items()
        for label, value in values.items()
    )
    assert below_trivial(planned({"metrics": ["R@1"], "rows": rows}), found) == [
        "Below 'Untrained': ours (CUB, sketches: R@1 40.0 against 50.0)."
    ]


def test_of_more_rows_than_a_reader_takes_in_their_number_and_the_lowest_are_told():
    of_row = {"no_grad = 1": (10, 40), "margin": (30, 20), "triplet": (20, 60), "npair": (45, 30), "snr": (55, 45)}
    rows = [*({"label": label} for label in of_row), {"label": "Untrained", "trivial": True}]
    found = pd.DataFrame(
        {"label": label, "dataset": dataset, "stand_in": "", "metric": "R@1", "mean": float(value), "n": 1}
        for label, values in {**of_row, "Untrained": (50, 61)}.items()
        for dataset, value in zip(("cub", "cars"), values, strict=True)
    )
    assert below_trivial(planned({"metrics": ["R@1"], "rows": rows}), found) == [
        "Below 'Untrained': 4 of 5 rows (CUB: R@1 10.0 against 50.0 in 'no grad = 1', the lowest); "
        "all 5 rows (Cars196: R@1 20.0 against 61.0 in 'margin', the lowest)."
    ]
    few = {"metrics": ["R@1"], "rows": [row for row in rows if row["label"] not in ("no_grad = 1", "npair")]}
    assert below_trivial(planned(few), found) == [
        "Below 'Untrained': margin (CUB: R@1 30.0 against 50.0); margin (Cars196: R@1 20.0 against 61.0); "
        "triplet (CUB: R@1 20.0 against 50.0); triplet (Cars196: R@1 60.0 against 61.0); "
        "snr (Cars196: R@1 45.0 against 61.0)."
    ]


@pytest.mark.parametrize(
    ("file", "table", "blocks"), [("sam", "sam_4", 1), ("sam", "sam_5", 1), ("ci", "ci_segmentation", 2)]
)
def test_every_table_of_segmentation_has_both_trivial_answers(file, table, blocks):
    rows = read_entries(f"params/tables/{file}.yaml", Table)[table].rows
    trivial = [row.recipe for row in rows if row.trivial]
    assert len(trivial) == 2 * blocks
    assert [name.split("_")[2] for name in trivial] == ["nothing", "everything"] * blocks
