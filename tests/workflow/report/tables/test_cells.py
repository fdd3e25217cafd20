"""Cells hold our mean over seeds, the printed value, and a difference only where both mean the same."""

import math
import statistics

import pandas as pd
import pytest
from scipy import stats

from lookalike.workflow.plan.published import printed_table, published_numbers
from lookalike.workflow.report.tables.cells import read_cells, write_cells
from measured_runs import TABLE, run, table_cells


def cell(cells, label, dataset, metric):
    found = cells[(cells["label"] == label) & (cells["dataset"] == dataset) & (cells["metric"] == metric)]
    assert len(found) == 1
    return found.iloc[0]


def test_a_cell_is_mean_and_deviation_over_seeds_in_percent():
    values = [0.61, 0.64, 0.66]
    cells = table_cells(TABLE, [run(0, seed, value) for seed, value in enumerate(values)])
    found = cell(cells, "Margin", "cub", "P@1")
    assert found["mean"] == pytest.approx(100 * statistics.mean(values), abs=1e-9)
    assert found["std"] == pytest.approx(100 * statistics.stdev(values), abs=1e-9)
    assert (found["n"], found["seeds"], found["of_seeds"]) == (3, "0 1 2", "61.00 64.00 66.00")


def test_a_single_seed_has_no_deviation():
    found = cell(table_cells(TABLE, [run(0, 0, 0.6)]), "Margin", "cub", "P@1")
    assert math.isnan(found["std"]) and found["of_seeds"] == ""


def test_the_printed_number_stands_beside_ours_and_differs_only_from_its_like():
    stand_in = cell(table_cells(TABLE, [run(0, 0, 0.6)]), "Margin", "cub", "P@1")
    assert stand_in["published"] == 62.47
    assert math.isnan(stand_in["difference"])
    same = table_cells(TABLE, [run(0, 0, 0.6, dataset="cub", comparable=True)])
    assert cell(same, "Margin", "cub", "P@1")["difference"] == pytest.approx(60 - 62.47)


def test_rows_stand_in_printed_order_and_ours_alone_come_last():
    cells = table_cells(TABLE, [run(0, 0, 0.6), run(1, 0, 0.7)])
    labels = list(cells[cells["dataset"] == "cub"]["label"].drop_duplicates())
    assert labels[-1] == "Ours"
    assert labels.index("Margin") == list(printed_table("diml", "T1")["method"].drop_duplicates()).index("Margin")


def test_a_row_that_no_paper_prints_is_refused():
    rows = [{"label": "Margin", "recipe": "margin", "published": {"method": "Margins", "setting": "baseline"}}]
    with pytest.raises(ValueError, match=r"row 'Margin' names .*Margins.*: 0 printed rows"):
        table_cells({**TABLE, "rows": rows}, [run(0, 0, 0.6)])


def test_a_cell_says_where_it_comes_from():
    cells = table_cells(TABLE, [run(0, 1, 0.6), run(0, 0, 0.62), run(1, 0, 0.7)])
    two, one = cell(cells, "Margin", "cub", "P@1"), cell(cells, "Ours", "cub", "P@1")
    assert two["runs"] == "margin/figurines_birds/seed0 margin/figurines_birds/seed1"
    folder = "results/mini/metrics/margin/figurines_birds"
    assert two["rebuild"] == f"snakemake --cores all {folder}/seed0.json {folder}/seed1.json"
    assert two["mlflow"] == "tags.scale = 'mini' and tags.recipe = 'margin' and tags.dataset = 'figurines_birds'"
    assert one["mlflow"].endswith("tags.recipe = 'ours' and tags.dataset = 'figurines_birds' and tags.seed = '0'")
    assert (two["settings"], two["code"], two["query_in_r"]) == ("0123456789ab", "fedcba9876543210", "yes")
    assert (two["departs"], one["departs"]) == ("DB", "DB1")


def test_seeds_of_different_splits_and_marks_share_a_cell_that_says_so():
    first, second = run(0, 0, 0.6), {**run(0, 1, 0.5), "queries": 450, "departs": "DC"}
    found = cell(table_cells(TABLE, [first, second]), "Margin", "cub", "P@1")
    assert (found["n"], found["queries"], found["departs"]) == (2, 450, "DBC")


def test_codes_of_different_versions_are_all_named():
    runs = [run(0, 0, 0.6), {**run(0, 1, 0.6), "code": "other"}, {**run(0, 2, 0.6), "code": "other"}]
    assert cell(table_cells(TABLE, runs), "Margin", "cub", "P@1")["code"] == "fedcba9876543210 other"


def against(label):
    return {**TABLE, "rows": [TABLE["rows"][0], {**TABLE["rows"][1], "against": label}]}


def test_a_row_is_held_against_its_baseline_over_the_seeds_that_both_have():
    margin, ours = {0: 0.60, 1: 0.63, 2: 0.61, 5: 0.9}, {0: 0.66, 1: 0.64, 2: 0.69, 7: 0.1}
    runs = [run(row, seed, value) for row, values in enumerate((margin, ours)) for seed, value in values.items()]
    cells = table_cells(against("Margin"), runs)
    found = cell(cells, "Ours", "cub", "P@1")
    differences = [100 * (ours[seed] - margin[seed]) for seed in (0, 1, 2)]
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (found["against"], found["against_n"]) == ("Margin", 3)
    assert found["against_difference"] == pytest.approx(statistics.mean(differences))
    assert (found["against_low"], found["against_high"]) == pytest.approx((expected.low, expected.high))
    assert math.isnan(cell(cells, "Margin", "cub", "P@1")["against_difference"])


def test_a_baseline_that_is_split_by_data_set_is_found_on_each():
    rows = [
        {"label": "Base", "recipe": "margin", "datasets": ["cub"]},
        {"label": "Base", "recipe": "margin", "datasets": ["cars"]},
        {"label": "Ours", "recipe": "ours", "against": "Base"},
    ]
    table = {"title": "T", "datasets": ["cub", "cars"], "metrics": ["P@1"], "rows": rows}
    cars = {"dataset": "figurines_vehicles", "published": "cars"}
    runs = [run(0, 0, 0.5), {**run(0, 0, 0.6, **cars), "row": 1}]
    runs += [{**run(1, 0, 0.7), "row": 2}, {**run(1, 0, 0.9, **cars), "row": 2}]
    cells = table_cells(table, runs)
    assert cell(cells, "Ours", "cub", "P@1")["against_difference"] == pytest.approx(20)
    assert cell(cells, "Ours", "cars", "P@1")["against_difference"] == pytest.approx(30)


@pytest.mark.parametrize("label", ["Margins", "Ours"])
def test_a_baseline_that_is_no_other_row_is_refused(label):
    with pytest.raises(ValueError, match=f"row 'Ours', against: '{label}' is no other row; other rows: Margin"):
        table_cells(against(label), [])


def test_cells_read_from_their_file_are_those_that_were_written(tmp_path):
    cells = table_cells(against("Margin"), [run(0, 0, 0.6), run(1, 0, 0.7)])
    write_cells(tmp_path / "cells.csv", cells)
    found = read_cells(tmp_path / "cells.csv")
    assert list(found.columns) == list(cells.columns)
    pd.testing.assert_series_equal(found["mean"], cells["mean"])
    assert list(found["seeds"]) == list(cells["seeds"].fillna(""))
    assert list(found["printed"]) == list(cells["printed"].fillna(""))


def test_a_row_may_be_called_what_means_nothing_elsewhere(tmp_path):
    rows = [{"label": label, "recipe": "ours"} for label in ("NA", "None")]
    table = {"title": "", "datasets": ["cub"], "metrics": ["P@1"], "rows": rows}
    write_cells(tmp_path / "cells.csv", table_cells(table, [{**run(1, 0, 0.6), "row": row} for row in (0, 1)]))
    assert list(read_cells(tmp_path / "cells.csv")["label"]) == ["NA", "None"]


def test_several_stand_ins_for_one_data_set_all_stand_beside_the_printed_number():
    other = run(0, 0, 0.5, dataset="sketches")
    cells = table_cells(TABLE, [run(0, 0, 0.6), other])
    found = cells[(cells["label"] == "Margin") & (cells["dataset"] == "cub") & (cells["metric"] == "P@1")]
    assert dict(zip(found["stand_in"], found["mean"], strict=True)) == {"figurines_birds": 60, "sketches": 50}
    assert list(found["printed"]) == ["62.47", "62.47"]


def test_a_table_of_our_own_needs_no_printed_one():
    table = {"title": "Own", "datasets": "own", "metrics": ["P@1"], "rows": TABLE["rows"][1:]}
    one = {**run(1, 0, 0.6, dataset="pictures", published=""), "row": 0}
    cells = table_cells(table, [one])
    assert list(cells["dataset"]) == ["pictures"]
    assert cells["published"].isna().all()


def test_all_published_numbers_are_here_unaltered():
    counts = {paper: len(published_numbers(paper)) for paper in ("avsl", "contextual", "diml", "sam")}
    assert counts == {"avsl": 247 + 1, "contextual": 927, "diml": 462, "sam": 149}  # and what a text says of a figure


def test_a_broken_line_of_published_numbers_is_named(tmp_path, monkeypatch):
    (tmp_path / "params" / "published").mkdir(parents=True)
    (tmp_path / "Snakefile").touch()
    header = "paper,table,dataset,method,loss,setting,embedding_dim,backbone,metric,value,std,source_note\n"
    path = tmp_path / "params" / "published" / "mine.csv"
    path.write_text(header + "mine,T1,cub,A,,,128,resnet50,R@1,61.2,,x\nmine,T1,cub,B,,,128,resnet50,R@1,6l.2,,x\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"mine\.csv, line 3, value: '6l\.2' is no number"):
        published_numbers("mine")
    with pytest.raises(ValueError, match=r"no published numbers of 'yours' .* known: mine"):
        published_numbers("yours")


def test_numbers_under_a_wrong_caption_stand_beside_what_they_are():
    published = {"paper": "sam", "table": "T4", "read_as": {"binary_iou_mean": "mean_iou_mean"}}
    row = {"label": "SAM", "recipe": "sam", "published": {"method": "SAM"}}
    metrics = ["mean_iou_mean", "binary_iou_mean"]
    table = {"title": "T", "published": published, "datasets": ["pascal5i"], "metrics": metrics, "rows": [row]}
    one = run(0, 0, 0, dataset="pascal5i", published="pascal5i", comparable=True)
    cells = table_cells(table, [{**one, "metrics": {"mean_iou_mean": 0.4, "binary_iou_mean": 0.6}}])
    mean, binary = (cell(cells, "SAM", "pascal5i", metric) for metric in metrics)
    assert (mean["printed"], mean["difference"]) == ("41.6", pytest.approx(40 - 41.6))
    assert binary["mean"] == pytest.approx(60)
    assert math.isnan(binary["published"])
    assert math.isnan(binary["difference"])
    with pytest.raises(ValueError, match=r"read_as: table T4 of sam prints no 'iou'; it has binary_iou_fold0, "):
        table_cells({**table, "published": {**published, "read_as": {"iou": "mean_iou_mean"}}}, [])


def test_a_file_of_older_code_is_read_with_its_missing_columns_empty(tmp_path):
    cells = table_cells(TABLE, [run(0, 0, 0.61)])
    write_cells(tmp_path / "cells.csv", cells.drop(columns=["rests_on", "trivial"]))
    found = read_cells(tmp_path / "cells.csv")
    assert set(found["rests_on"]) == set(found["trivial"]) == {""}
    assert cell(found, "Margin", "cub", "P@1")["mean"] == pytest.approx(61)


def test_a_point_of_a_sweep_has_the_printed_numbers_of_its_data_set_and_metrics_alone():
    point = {"table": {"paper": "diml", "table": "T1"}, "row": {"method": "Margin", "setting": "baseline"}}
    rows = [{"label": "K = 0", "prints": {"cub": point}}, {"label": "K = 10"}]
    cells = table_cells({"datasets": ["cub", "cars"], "metrics": ["R@1"], "rows": rows}, [])
    assert cells[["label", "dataset", "metric", "printed"]].to_numpy().tolist() == [["K = 0", "cub", "R@1", "62.47"]]
    runs = [{**run(row, 0, 0.6), "metrics": {"R@1": 0.6, "RP": 0.3}} for row in (0, 1)]
    cells = table_cells({"datasets": ["cub"], "metrics": ["RP", "R@1"], "rows": rows}, runs)
    assert list(cells["label"]) == ["K = 0", "K = 0", "K = 10", "K = 10"]
    assert list(cells["metric"]) == ["RP", "R@1"] * 2
    assert cells["published"].tolist()[:2] == [34.12, 62.47]
    assert cells["published"][2:].isna().all()


def of_half(seed, value, row=0, settings="0123456789ab"):
    return run(row, seed, value) | {"half": "second" if seed % 2 else "", "settings": settings}


def test_a_cell_of_crossed_halves_is_the_mean_of_their_means_and_names_what_decides_either():
    runs = [of_half(0, 0.5), of_half(1, 0.8, settings="ba9876543210"), of_half(2, 0.6)]
    found = cell(table_cells(TABLE, runs), "Margin", "cub", "P@1")
    assert (found["mean"], found["n"], found["seeds"]) == (pytest.approx((55 + 80) / 2), 3, "0 1 2")
    assert found["std"] == pytest.approx(100 * statistics.stdev([0.5, 0.6]))
    assert found["settings"] == "0123456789ab ba9876543210"
    table = {**TABLE, "rows": [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]}
    others = [of_half(seed, value, row=1) for seed, value in ((0, 0.6), (1, 1.0), (2, 0.7))]
    pair = cell(table_cells(table, [*runs, *others]), "Ours", "cub", "P@1")
    assert pair["against_difference"] == pytest.approx((10 + 20) / 2)


def test_a_cut_off_beyond_the_pictures_of_one_half_is_left_out():
    runs = [of_half(0, 0.5), of_half(1, 0.8)]
    del runs[1]["metrics"]["MAP@R"]
    cells = table_cells(TABLE, runs)
    assert cell(cells, "Margin", "cub", "P@1")["n"] == 2
    assert pd.isna(cell(cells, "Margin", "cub", "MAP@R")["mean"])
