"""Readers see ours beside what is printed, the best in bold, departures marked, and where a number comes from."""

import re

import pytest

from lookalike.tables.cells import read_cells, table_cells, write_cells
from lookalike.tables.layout import for_readers
from lookalike.tables.render import latex, markdown, page
from measured_runs import TABLE, run


@pytest.fixture
def shown(tmp_path):
    def laid_out(table, runs):
        write_cells(tmp_path / "cells.csv", table_cells(table, runs))
        return for_readers("diml_1", table, read_cells(tmp_path / "cells.csv"), "a `tiny` scale")

    return laid_out


def grid(text, heading):
    """First table below a heading, as lists of texts."""
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    header, _, *rows = [[word.strip() for word in line.strip("|").split(" |")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)]


def test_a_cut_off_beyond_the_gallery_prints_a_dash(shown):
    one = run(0, 0, 0.6)
    del one["metrics"]["MAP@R"]
    rows = grid(markdown(shown(TABLE, [one, run(1, 0, 0.5)])), "cub (figurines_birds stands in)")
    line = next(row for row in rows if row["method"] == "Margin")
    assert (line["P@1"], line["P@1 printed"]) == ("**60.0**", "62.47")
    assert (line["MAP@R"], line["MAP@R printed"]) == ("–", "23.14")


def test_ours_and_the_printed_numbers_each_have_their_best_and_ties_share_it(shown):
    runs = [run(0, 0, 0.60001), run(1, 0, 0.60002)]
    rows = grid(markdown(shown(TABLE, runs)), "cub (figurines_birds stands in)")
    assert {row["method"] for row in rows if row["P@1"].startswith("**")} == {"Margin", "Ours"}
    best = [row for row in rows if row["P@1 printed"].startswith("**")]
    values = [float(row["P@1 printed"].strip("*")) for row in rows if row["P@1 printed"] != "–"]
    assert [float(row["P@1 printed"].strip("*")) for row in best] == [max(values)]
    assert r"\textbf{60.0}" in latex(shown(TABLE, runs))
    assert "<b>60.0</b>" in page([shown(TABLE, runs)], scale="x", legend={})


def test_a_number_alone_in_its_column_and_one_of_training_pictures_are_no_best(shown):
    rows = grid(markdown(shown(TABLE, [run(0, 0, 0.6)])), "cub (figurines_birds stands in)")
    assert [row["P@1"] for row in rows if row["method"] == "Margin"] == ["60.0"]
    table = {"title": "T", "datasets": ["cub"], "metrics": ["train_P@1"], "rows": TABLE["rows"][1:] * 2}
    runs = [{**run(1, 0, 0.6), "row": row, "metrics": {"train_P@1": 0.6 + row / 10}} for row in (0, 1)]
    assert "**" not in markdown(shown(table, runs))


def test_columns_that_hold_nothing_are_left_out(shown):
    table = shown(TABLE, [run(0, 0, 0.6)])
    birds, cars, products = table.sections
    assert "P@1" in birds.header
    assert "RP printed" in birds.header
    assert "RP" not in birds.header
    assert "P@1 difference" not in birds.header
    assert [products.dataset, "P@1" in products.header, "departs" in products.header] == ["sop", False, False]
    assert "Not run at this scale: printed numbers only." in cars.remarks
    assert "Printed rows: size 128, backbone resnet50." in birds.remarks


def test_a_difference_stands_only_beside_what_is_set_up_as_printed(shown):
    table = shown(TABLE, [run(0, 0, 0.6, dataset="cub", comparable=True)])
    row = next(row for row in grid(markdown(table), "cub") if row["method"] == "Margin")
    assert row["P@1 difference"] == "-2.5"


def test_readers_see_what_stands_in_and_how_far_it_spreads(shown):
    table = shown({**TABLE, "notes": ["100 % of a note."]}, [run(0, 0, 0.6), run(0, 1, 0.62)])
    text, source = markdown(table), latex(table)
    assert "## cub (figurines_birds stands in)" in text
    assert "61.0 ± 1.4" in text
    assert "n = 2 (seeds 0, 1), mean ± standard deviation over seeds. R counts the query itself, too." in text
    assert "the epoch with the best R@1 on the test split" in text
    assert "100 % of a note." in text
    assert r"\toprule" in source
    assert r"61.0 $\pm$ 1.4" in source
    assert r"100 \% of a note" in source
    assert r"figurines\_birds" in source


def test_a_note_on_one_data_set_stands_in_its_section(shown):
    birds, cars, _ = shown({**TABLE, "notes": {"cars": ["Only here."]}}, []).sections
    assert "Only here." in cars.remarks
    assert "Only here." not in birds.remarks


def test_only_marks_that_occur_are_explained(shown):
    notes = shown(TABLE, [run(0, 0, 0.6), run(0, 1, 0.6)]).notes
    assert notes[1] == "Departs from the paper: D other data that stand in; B other backbone or other initial weights."
    assert "1 one seed" in shown(TABLE, [run(0, 0, 0.6)]).notes[1]
    assert len(shown(TABLE, []).notes) == 1


def test_the_last_epoch_is_named_where_it_is_shown(shown):
    assert "; the last epoch; n = 1 (seed 0)." in shown({**TABLE, "checkpoint": "last"}, [run(0, 0, 0.6)]).notes[0]


def test_paired_differences_stand_below_with_their_interval(shown):
    table = {**TABLE, "rows": [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]}
    runs = [run(row, seed, 0.6 + row / 10 + row * seed / 100) for row in (0, 1) for seed in (0, 1, 2)]
    # Differences of 10, 11 and 12 points: mean 11, deviation 1, Student's quantile 4.3027 for two degrees of freedom.
    assert re.search(r"\| Ours +\| Margin +\| 3 +\| \+11\.0 \[\+8\.5, \+13\.5\]", markdown(shown(table, runs)))
    one = markdown(shown(table, [run(0, 0, 0.6), run(1, 0, 0.7)]))
    assert re.search(r"\| Ours +\| Margin +\| 1 +\| \+10\.0 +\|", one)


def test_several_stand_ins_have_a_section_each(shown):
    table = shown(TABLE, [run(0, 0, 0.6), run(0, 0, 0.5, dataset="sketches")])
    assert [section.heading for section in table.sections[:2]] == [
        "cub (figurines_birds stands in)",
        "cub (sketches stands in)",
    ]
    labels = [[row[0].text for row in section.rows] for section in table.sections[:2]]
    assert labels[0] == labels[1]
    assert len(set(labels[0])) == len(labels[0])


def test_the_page_folds_away_where_a_number_comes_from_and_needs_no_other_file(shown):
    table = shown(TABLE, [run(0, 0, 0.6)])
    text = page([table], scale="a `tiny` scale", legend={"D": "other data"})
    assert '<a href="#diml_1">DIML Table 1</a>' in text
    assert '<h2 id="diml_1">DIML Table 1</h2>' in text
    assert "<dd>0123456789ab</dd>" in text
    assert "snakemake --cores all results/mini/metrics/margin/figurines_birds/seed0.json" in text
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import", text)
    assert "<b>D</b> other data." in text
    assert "`" not in text


def test_text_from_parameters_is_escaped(shown):
    rows = [{"label": "a < b & c_d | γ * 2", "recipe": "ours"}]
    table = {"title": "50 % & more", "datasets": ["cub"], "metrics": ["P@1"], "rows": rows}
    laid_out = shown(table, [{**run(1, 0, 0.6), "row": 0}])
    assert r"a $<$ b \& c\_d | $\gamma$ * 2" in latex(laid_out)
    assert r"50 \% \& more" in latex(laid_out)
    assert "a &lt; b &amp; c_d | γ * 2" in page([laid_out], scale="x", legend={})
    assert r"a < b & c_d \| γ \* 2" in markdown(laid_out)


def test_a_table_of_terms_shows_them_beside_the_metrics_with_what_the_rows_cost(shown):
    table = {"title": "mine", "datasets": "own", "metrics": ["P@1"], "terms": True, "rows": TABLE["rows"]}
    table = {**table, "rows": [{"label": row["label"], "recipe": row["recipe"]} for row in table["rows"]]}
    said = {"rates": "1e-4 / 1e-3", "pooling": "gem", "embedding": "3 x 512"}
    seeds = [run(0, seed, 0.6) | said | {"query_ms": 10.0 + seed, "training_s": 100.0} for seed in (0, 1)]
    unmeasured = run(1, 0, 0.5) | {**said, "rates": "–", "query_ms": None, "training_s": None}
    laid_out = shown(table, [*seeds, unmeasured])
    first, second = (dict(zip(laid_out.sections[0].header, row, strict=True)) for row in laid_out.sections[0].rows)
    assert [first[name].text for name in ("rates", "pooling", "embedding")] == list(said.values())
    assert (first["ms per query"].text, first["training"].text) == ("10.5", "2 min")
    assert (second["rates"].text, second["ms per query"].text, second["training"].text) == ("–", "–", "–")
    assert "ms per query" in markdown(laid_out)
    assert "ms per query" in latex(laid_out)
    assert "ms per query" in page([laid_out], scale="x", legend={})
