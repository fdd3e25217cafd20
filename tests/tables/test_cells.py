"""Cells hold our mean over seeds, the printed value, and a difference only where both mean the same."""

import math
import statistics

import pytest

from lookalike.tables.cells import table_cells
from lookalike.tables.published import printed_table, published_numbers
from lookalike.tables.render import latex, markdown

TABLE = {
    "title": "DIML Table 1",
    "published": {"paper": "diml", "table": "T1"},
    "datasets": ["cub", "cars"],
    "metrics": ["P@1", "MAP@R"],
    "rows": [
        {"label": "Margin", "recipe": "margin", "published": {"method": "Margin", "setting": "baseline"}},
        {"label": "Ours", "recipe": "ours"},
    ],
}


def run(row, seed, value, *, dataset="figurines_birds", published="cub", comparable=False):
    recipe = TABLE["rows"][row]["recipe"]
    return {"row": row, "recipe": recipe, "dataset": dataset, "published": published, "seed": seed} | {
        "comparable": comparable,
        "queries": 500,
        "metrics": {"P@1": value, "MAP@R": value / 2},
    }


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
    assert (found["n"], found["seeds"]) == (3, "0 1 2")


def test_a_single_seed_has_no_deviation():
    assert math.isnan(cell(table_cells(TABLE, [run(0, 0, 0.6)]), "Margin", "cub", "P@1")["std"])


def test_the_printed_number_stands_beside_ours_and_differs_only_from_its_like():
    stand_in = cell(table_cells(TABLE, [run(0, 0, 0.6)]), "Margin", "cub", "P@1")
    assert stand_in["published"] == 62.47
    assert math.isnan(stand_in["difference"])
    same = table_cells(TABLE, [run(0, 0, 0.6, dataset="cub", comparable=True)])
    assert cell(same, "Margin", "cub", "P@1")["difference"] == pytest.approx(60 - 62.47)


def test_every_printed_number_of_the_chosen_columns_is_in_the_table_once():
    cells = table_cells(TABLE, [run(0, 0, 0.6), run(1, 0, 0.7)])
    printed = printed_table("diml", "T1")
    printed = printed[printed["dataset"].isin(TABLE["datasets"]) & printed["metric"].isin(TABLE["metrics"])]
    assert sorted(cells["published"].dropna()) == sorted(printed["value"])


def test_rows_stand_in_printed_order_and_ours_alone_come_last():
    cells = table_cells(TABLE, [run(0, 0, 0.6), run(1, 0, 0.7)])
    labels = list(cells[cells["dataset"] == "cub"]["label"].drop_duplicates())
    assert labels[-1] == "Ours"
    assert labels.index("Margin") == list(printed_table("diml", "T1")["method"].drop_duplicates()).index("Margin")


def test_a_row_that_no_paper_prints_is_refused():
    rows = [{"label": "Margin", "recipe": "margin", "published": {"method": "Margins", "setting": "baseline"}}]
    with pytest.raises(ValueError, match=r"row 'Margin' names .*Margins.*: 0 printed rows"):
        table_cells({**TABLE, "rows": rows}, [run(0, 0, 0.6)])


def test_a_cut_off_beyond_the_gallery_prints_a_dash():
    one = run(0, 0, 0.6)
    del one["metrics"]["MAP@R"]
    text = markdown("Title", [], table_cells(TABLE, [one]))
    line = next(line for line in text.splitlines() if line.startswith("| Margin"))
    assert [part.strip() for part in line.strip("|").split("|")] == ["Margin", "60.0", "62.47", "–", "23.14"]


def test_readers_see_what_stands_in_and_how_far_it_spreads():
    cells = table_cells(TABLE, [run(0, 0, 0.6), run(0, 1, 0.62)])
    text = markdown("DIML Table 1", ["A note."], cells)
    assert "## cub (figurines_birds stands in)" in text
    assert "61.0 ± 1.4" in text
    source = latex("DIML Table 1", ["A note, 100 % of it."], cells)
    assert r"\toprule" in source
    assert r"61.0 $\pm$ 1.4" in source
    assert r"100 \% of it" in source
    assert "figurines\\_birds" in source


def test_a_table_of_our_own_needs_no_printed_one():
    table = {"title": "Own", "datasets": "own", "metrics": ["P@1"], "rows": TABLE["rows"][1:]}
    one = {**run(1, 0, 0.6, dataset="pictures", published=""), "row": 0}
    cells = table_cells(table, [one])
    assert list(cells["dataset"]) == ["pictures"]
    assert "printed" not in markdown("Own", [], cells)


def test_all_published_numbers_are_here_unaltered():
    counts = {paper: len(published_numbers(paper)) for paper in ("avsl", "contextual", "diml", "sam")}
    assert counts == {"avsl": 247, "contextual": 927, "diml": 462, "sam": 149}


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
