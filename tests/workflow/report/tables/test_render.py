"""Readers see ours beside what is printed, the best in bold, departures marked, and where a number comes from."""

import json
import re

import pytest

from lookalike.workflow.report.html import tables_html, tables_page
from lookalike.workflow.report.tables.cells import WARM, read_cells, write_cells
from lookalike.workflow.report.tables.layout import for_readers
from lookalike.workflow.report.tables.picture import picture_of
from lookalike.workflow.report.tables.render import latex, markdown, tables
from measured_runs import TABLE, planned, run, table_cells
from recorded import leave


@pytest.fixture
def shown(tmp_path):
    def laid_out(table, runs):
        write_cells(tmp_path / "cells.csv", table_cells(table, runs))
        return for_readers("diml_1", planned(table), read_cells(tmp_path / "cells.csv"), "a `tiny` scale")

    return laid_out


def test_the_dialog_of_a_row_says_what_each_of_several_seeds_gave(shown):
    text = tables_html([shown(TABLE, [run(0, 1, 0.62), run(0, 0, 0.6), run(1, 0, 0.7)])], scale="x", legend={})
    assert text.count("<dt>each seed</dt>") == 1
    assert "<dt>seeds</dt><dd>0 1</dd><dt>each seed</dt><dd>P@1 60.0, 62.0" in text


def test_the_dialog_of_a_row_names_what_it_differs_in_from_the_row_that_it_is_held_against(shown):
    against = {"against": "Margin", "under_test": ["train.method", "evaluate.scoring"]}
    plain, changed = TABLE["rows"][:2]
    for own in ({}, {"as_in_paper": ["train.loss"]}):
        table = {**TABLE, "rows": [plain, {**changed, **against, **own}]}
        text = tables_html([shown(table, [run(0, 0, 0.6), run(1, 0, 0.5)])], scale="x", legend={})
        assert text.count("<dt>held against</dt><dd>Margin</dd>") == 1
        assert "<dt>under test</dt><dd>train.method, evaluate.scoring</dd>" in text
        assert ("<dt>as in the paper, too</dt><dd>train.loss</dd>" in text) == bool(own)


def grid(text, heading):
    """First table below a heading, as lists of texts."""
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = next(block for block in part.split("\n\n") if block.startswith("|")).splitlines()
    header, _, *rows = [[word.strip() for word in line.strip("|").split(" |")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_a_cut_off_beyond_the_gallery_prints_a_dash(shown):
    one = run(0, 0, 0.6)
    del one["metrics"]["MAP@R"]
    rows = grid(markdown(shown(TABLE, [one, run(1, 0, 0.5)])), "CUB (figurines birds in its place)")
    line = next(row for row in rows if row["method"] == "Margin")
    assert (line["P@1"], line["P@1 printed"]) == ("**60.0**", "62.47")
    assert (line["MAP@R"], line["MAP@R printed"]) == ("–", "23.14")


def test_ours_and_the_printed_numbers_each_have_their_best_and_ties_share_it(shown):
    runs = [run(0, 0, 0.60001), run(1, 0, 0.60002)]
    rows = grid(markdown(shown(TABLE, runs)), "CUB (figurines birds in its place)")
    assert {row["method"] for row in rows if row["P@1"].startswith("**")} == {"Margin", "Ours"}
    assert [row["P@1 printed"] for row in rows] == ["62.47", "–"]  # a folded row has a better one
    assert "| **66.46** " in markdown(shown(TABLE, runs)).split("## Cars196")[0]
    assert r"\textbf{60.0}" in latex(shown(TABLE, runs))
    assert "<b>60.0</b>" in tables_html([shown(TABLE, runs)], scale="x", legend={})


def test_a_number_alone_in_its_column_and_one_of_training_pictures_are_no_best(shown):
    rows = grid(markdown(shown(TABLE, [run(0, 0, 0.6)])), "CUB (figurines birds in its place)")
    assert [row["P@1"] for row in rows if row["method"] == "Margin"] == ["60.0"]
    table = {"title": "T", "datasets": ["cub"], "metrics": ["train_P@1"], "rows": TABLE["rows"][1:] * 2}
    runs = [{**run(1, 0, 0.6), "row": row, "metrics": {"train_P@1": 0.6 + row / 10}} for row in (0, 1)]
    assert "**" not in markdown(shown(table, runs))


def test_columns_that_hold_nothing_are_left_out(shown):
    table = shown(TABLE, [run(0, 0, 0.6)])
    birds, cars, products = table.sections
    assert birds.measured.header == ("method", "P@1", "P@1 printed", "RP printed", "MAP@R", "MAP@R printed")
    assert birds.quoted.header[:4] == ("method", "P@1 printed", "RP printed", "MAP@R printed")
    assert (products.dataset, products.measured, products.pairs) == ("sop", None, None)
    assert "Not run at this scale: printed numbers only." in cars.remarks
    assert "Printed rows: size 128, backbone ResNet-50." in birds.remarks


def test_a_difference_stands_only_beside_what_is_set_up_as_printed(shown):
    table = shown(TABLE, [run(0, 0, 0.6, dataset="cub", comparable=True)])
    row = next(row for row in grid(markdown(table), "CUB") if row["method"] == "Margin")
    assert row["P@1 difference"] == "-2.5"


def test_what_rests_on_a_choice_of_ours_says_so_beside_its_difference(shown):
    chosen = {"departs": "F", "rests_on": "margin of the baseline; miner"}
    runs = [run(0, 0, 0.6, dataset="cub", comparable=True) | chosen, run(1, 0, 0.7, dataset="cub", comparable=True)]
    table = shown(TABLE, runs)
    row = next(row for row in grid(markdown(table), "CUB") if row["method"] == "Margin")
    assert (row["P@1 difference"], row["departs"]) == ("-2.5 F", "F1")
    assert "F: margin of the baseline (Margin); miner (Margin)." in table.notes


def test_readers_see_what_stands_in_and_how_far_it_spreads(shown):
    table = shown({**TABLE, "notes": ["100 % of a note."]}, [run(0, 0, 0.6), run(0, 1, 0.62)])
    text, source = markdown(table), latex(table)
    assert "## CUB (figurines birds in its place)" in text
    assert "61.0 ± 1.4" in text
    assert "n = 2 (seeds 0, 1), mean ± standard deviation over seeds. R counts the query itself, too." in text
    assert "100 % of a note." in text
    assert r"\toprule" in source
    assert r"61.0 $\pm$ 1.4" in source
    assert r"100 \% of a note" in source


def test_a_note_on_one_data_set_stands_in_its_section(shown):
    birds, cars, _ = shown({**TABLE, "notes": {"cars": ["Only here."]}}, []).sections
    assert "Only here." in cars.remarks
    assert "Only here." not in birds.remarks


def test_only_marks_that_occur_are_explained(shown):
    notes = shown(TABLE, [run(0, 0, 0.6), run(0, 1, 0.6)]).notes
    assert notes[2] == "Departs from the paper: D other data that stand in; B other backbone or other initial weights."
    assert "1 one seed" in shown(TABLE, [run(0, 0, 0.6)]).notes[2]
    assert len(shown(TABLE, []).notes) == 1


def test_the_last_epoch_is_shown_and_beside_it_that_of_the_papers_numbers(shown):
    others = dict.fromkeys(run(0, 0, 0.6)["metrics"], 0.3)
    runs = [run(0, seed, 0.6 + seed / 50) | {"beside": others | {"P@1": 0.65 + seed / 100}} for seed in (0, 1)]
    table = shown(TABLE, runs)
    assert "; the last epoch; n = 2 (seeds 0, 1)" in table.notes[0]
    assert table.notes[1] == (
        "Beside it, as the papers report it, the epoch with the best R@1 on the test classes: best on test. "
        "The CSV has that of all metrics."
    )
    row = next(row for row in grid(markdown(table), "CUB (figurines birds in its place)") if row["method"] == "Margin")
    assert (row["P@1"], row["P@1 best on test"], row["P@1 printed"]) == ("61.0 ± 1.4", "65.5", "62.47")
    assert [column for column in row if column.endswith("best on test")] == ["P@1 best on test"]  # of the first alone
    for other in ({**TABLE, "checkpoint": "last"}, {**TABLE, "published": None, "rows": TABLE["rows"][1:] * 2}):
        assert "best on test" not in markdown(shown(other, runs))


def test_an_epoch_selected_on_held_out_classes_stands_in_every_table(shown):
    table = {**TABLE, "published": None, "checkpoint": "selected", "rows": TABLE["rows"][1:] * 2}
    text = markdown(shown(table, [run(0, 0, 0.6) | {"beside": {"P@1": 0.55}}]))
    assert "P@1 at the selected epoch" in text
    assert "| 55.0 " in text


def test_a_difference_is_that_of_the_epoch_that_the_print_is_of(shown):
    one = run(0, 0, 0.6, dataset="cub", comparable=True) | {"beside": {"P@1": 0.62}}
    for checkpoint, difference in (("best", "-0.5"), ("last", "-2.5")):
        text = markdown(shown({**TABLE, "checkpoint": checkpoint}, [one]))
        assert next(row for row in grid(text, "CUB") if row["method"] == "Margin")["P@1 difference"] == difference


def test_paired_differences_stand_below_with_their_interval(shown):
    table = {**TABLE, "rows": [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]}
    runs = [run(row, seed, 0.6 + row / 10 + row * seed / 100) for row in (0, 1) for seed in (0, 1, 2)]
    # Differences of 10, 11 and 12 points: mean 11, deviation 1, Student's quantile 4.3027 for two degrees of freedom.
    assert re.search(r"\| Ours +\| Margin +\| 3 +\| \+11\.0 \[\+8\.5, \+13\.5\]", markdown(shown(table, runs)))
    one = markdown(shown(table, [run(0, 0, 0.6), run(1, 0, 0.7)]))
    assert re.search(r"\| Ours +\| Margin +\| 1 +\| \+10\.0 +\|", one)


def test_a_metric_that_fewer_pairs_have_says_how_many(shown):
    table = {**TABLE, "rows": [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]}
    runs = [run(row, seed, 0.5 + 0.1 * row) for row in (0, 1) for seed in (0, 1, 2)]
    del runs[-1]["metrics"]["MAP@R"]
    text = markdown(shown(table, runs))
    assert "| 3   | +10.0 [+10.0, +10.0] | +5.0 [+5.0, +5.0] (n = 2) |" in text


PRINTED = {
    "Margin": {"method": "Margin", "setting": "baseline"},
    "Margin + DIML": {"method": "Margin + DIML"},
    "MS": {"method": "MS", "setting": "baseline"},
    "MS + DIML": {"method": "MS + DIML"},
}


@pytest.fixture
def matched(shown):
    """Rows of DIML Table 1 as measured, P@1 by row and seed; each + DIML against its loss."""

    def laid_out(**values):
        rows = [
            {"label": label, "recipe": "any", "published": named, "against": label.rpartition(" + ")[0]}
            for label, named in PRINTED.items()
        ]
        measured = [
            {**run(0, seed, value), "row": row}
            for row, label in enumerate(PRINTED)
            for seed, value in enumerate(values.get(label, ()))
        ]
        return shown({**TABLE, "datasets": ["cub"], "rows": rows}, measured)

    return laid_out


def test_a_printed_gain_stands_beside_ours_and_is_within_its_interval_or_outside(matched):
    table = matched(**{"Margin": (0.6, 0.6), "Margin + DIML": (0.62, 0.63), "MS": (0.6, 0.6), "MS + DIML": (0.7, 0.7)})
    first, second = table.sections[0].pairs.rows
    assert [cell.text for cell in first.cells[3:5]] == ["+2.5 [-3.9, +8.9]", "+2.7, within"]
    assert [cell.text for cell in second.cells[3:5]] == ["+10.0 [+10.0, +10.0]", "+2.3, outside"]
    assert table.sections[0].pairs.header[3:] == ("P@1", "P@1 printed", "MAP@R", "MAP@R printed")
    one = matched(**{"Margin": (0.6,), "Margin + DIML": (0.62,)}).sections[0].pairs.rows[0]
    assert [cell.text for cell in one.cells[3:5]] == ["+2.0", "+2.7"]


def test_below_a_table_stands_how_far_its_rows_and_gains_lie_in_the_printed_order(matched):
    table = matched(**{"Margin": (0.5,), "Margin + DIML": (0.7,), "MS": (0.6,), "MS + DIML": (0.65,)})
    line = "Agreement with print in P@1, of 4 rows: Spearman 1.00, 100 % of pairs in the same order."
    for text in (markdown(table), tables_html([table], scale="x", legend={})):
        assert line in text
    assert line.replace("%", r"\%") in latex(table)
    assert "<td>4</td><td>1.00</td><td>1.00</td>" in tables_html([table], scale="x", legend={})


def test_a_page_opens_with_all_gains_of_ours_beside_the_printed_ones(matched):
    table = matched(**{"Margin": (0.6, 0.6), "Margin + DIML": (0.62, 0.63), "MS": (0.6, 0.6), "MS + DIML": (0.7, 0.7)})
    picture = picture_of([table])
    (line,) = picture.lines
    assert (line.table, line.words, line.metric) == ("diml_1", "DIML Table 1, CUB", "P@1")
    assert [round(gain.ours, 6) for gain in line.gains] == [2.5, 10]
    assert [round(gain.printed, 6) for gain in line.gains] == [2.69, 2.33]
    assert line.said == "+6.2, print +2.5 (mean of 2)"
    ends = [end for gain in line.gains for end in (gain.low, gain.high)]
    assert picture.ticks[0] <= min(ends) and max(ends) <= picture.ticks[-1]
    assert 0 in picture.ticks and len(picture.ticks) <= 9
    assert [picture.at(picture.ticks[0]), picture.at(picture.ticks[-1])] == ["0.00%", "100.00%"]
    before = tables_html([table], scale="x", legend={}).partition("<h2")[0]
    assert '<a href="#diml_1">DIML Table 1, CUB</a>' in before
    assert 'title="Margin + DIML against Margin: P@1 +2.5"' in before
    assert 'title="Margin + DIML against Margin: printed +2.7"' in before
    assert before.count('<i class="span"') == 2  # intervals of two seeds
    one = tables_html([matched(**{"Margin": (0.6,), "Margin + DIML": (0.62,)})], scale="x", legend={})
    assert '<i class="span"' not in one and 'aria-label="P@1 +2.0, print +2.7"' in one


def test_a_page_without_a_gain_has_no_picture_of_them(matched):
    table = matched(Margin=(0.5,), MS=(0.6,))
    assert picture_of([table]) is None
    assert 'class="gains"' not in tables_html([table], scale="x", legend={})


def test_each_stand_in_of_a_data_set_has_a_line_of_its_own(shown):
    rows = [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]
    runs = [
        run(row, 0, 0.6 + row / 10, dataset=dataset) for row in (0, 1) for dataset in ("figurines_birds", "sketches")
    ]
    lines = picture_of([shown({**TABLE, "rows": rows}, runs)]).lines
    assert [line.words for line in lines] == [
        "DIML Table 1, CUB (figurines birds in its place)",
        "DIML Table 1, CUB (sketches in its place)",
    ]


def test_gains_of_nothing_have_a_scale_too(shown):
    rows = [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]
    picture = picture_of([shown({**TABLE, "rows": rows}, [run(0, 0, 0.6), run(1, 0, 0.6)])])
    assert (picture.lines[0].said, picture.at(0), picture.at(1)) == ("+0.0", "0.00%", "100.00%")


def test_means_of_a_line_are_over_the_gains_that_are_printed(shown):
    rows = [TABLE["rows"][0], {**TABLE["rows"][1], "against": "Margin"}]
    (line,) = picture_of([shown({**TABLE, "rows": rows}, [run(0, 0, 0.6), run(1, 0, 0.7)])]).lines
    assert (line.said, line.gains[0].printed) == ("+10.0", None)


def test_fewer_than_three_printed_rows_have_no_order(matched):
    table = matched(Margin=(0.5,), MS=(0.6,))
    assert "Agreement with print: none, of fewer than 3 printed rows that differ." in markdown(table)
    assert "in the printed order?" not in tables_html([table], scale="x", legend={})
    assert "Agreement" not in markdown(matched())


def test_several_stand_ins_have_a_section_each(shown):
    table = shown(TABLE, [run(0, 0, 0.6), run(0, 0, 0.5, dataset="sketches")])
    assert [section.heading for section in table.sections[:2]] == [
        "CUB (figurines birds in its place)",
        "CUB (sketches in its place)",
    ]
    labels = [[row.cells[0].text for row in section.quoted.rows] for section in table.sections[:2]]
    assert labels[0] == labels[1]
    assert len(set(labels[0])) == len(labels[0])


def test_the_page_folds_away_where_a_number_comes_from_and_needs_no_other_file(shown):
    table = shown(TABLE, [run(0, 0, 0.6)])
    text = tables_html([table], scale="a `tiny` scale", legend={"D": "other data"})
    assert '<a href="#diml_1">DIML Table 1</a>' in text
    assert '<h2 id="diml_1">DIML Table 1</h2>' in text
    assert "<dd>0123456789ab</dd>" in text
    assert "snakemake --cores all results/mini/metrics/margin/figurines_birds/seed0.json" in text
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import", text)
    assert "<b>D</b> other data." in text
    first = text.partition("<table>")[0]
    assert "A number of ours does not compare with a printed one" in first
    assert first.index("<summary>How to read the tables") < first.index("<b>D</b>") < first.index("</details>")
    assert text.index(table.notes[0].replace("`", "")) > text.rindex("</table>")
    assert len(text.split("<table>")) - 1 == text.count("</table>")
    assert "`" not in text


def test_text_from_parameters_is_escaped(shown):
    rows = [{"label": "a < b & c_d | γ * 2 `x`", "recipe": "ours"}]
    table = {"title": "50 % & more", "datasets": ["cub"], "metrics": ["P@1"], "rows": rows}
    laid_out = shown(table, [{**run(1, 0, 0.6), "row": 0}])
    assert r"a $<$ b \& c d \textbar{} $\gamma$ * 2" in latex(laid_out)
    assert r"50 \% \& more" in latex(laid_out)
    assert "a &lt; b &amp; c d | γ * 2" in tables_html([laid_out], scale="x", legend={})
    assert r"a &lt; b &amp; c d \| γ \* 2 \`x\`" in markdown(laid_out)


def test_a_label_that_latex_would_take_for_the_length_of_a_line_is_none(shown):
    rows = [{"label": "first", "recipe": "margin"}, {"label": "[new] 5 %", "recipe": "ours"}]
    laid_out = shown(
        {"title": "", "datasets": ["cub"], "metrics": ["P@1"], "rows": rows}, [run(0, 0, 0.6), run(1, 0, 0.5)]
    )
    assert "\n{}[new] 5 \\% &" in latex(laid_out)


TRIVIAL = {"label": "Untrained features", "recipe": "diml_1_untrained", "trivial": True, "says": "before any training"}


OWN = {"title": "Mine", "datasets": "own", "metrics": ["P@1", "MAP@R"], "rows": [*TABLE["rows"], TRIVIAL]}


OWN["rows"] = [{key: row[key] for key in row if key != "published"} for row in OWN["rows"]]


def own_run(row, seed, value):
    return {**run(min(row, 1), seed, value, dataset="street", published=""), "row": row, "departs": "BS"}


def test_printed_rows_without_a_number_of_ours_are_folded(shown):
    table = shown(TABLE, [run(0, 0, 0.6), run(1, 0, 0.5)])
    birds = table.sections[0]
    assert [row.cells[0].text for row in birds.measured.rows] == ["Margin", "Ours"]
    assert "Contrasitive + DIML" in [row.cells[0].text for row in birds.quoted.rows]
    for text in (markdown(table), tables_html([table], scale="x", legend={})):
        folded = text.split("<details><summary>33 printed rows without a number of ours</summary>")[1]
        assert "Contrasitive + DIML" in folded.split("</details>")[0]


def test_what_a_paper_prints_of_a_row_is_named_so_and_stands_last(shown):
    table = {**TABLE, "published": {"paper": "avsl", "table": "T1"}, "metrics": ["R@1"], "rows": []}
    birds = shown(table, []).sections[0]
    assert birds.quoted.header[-3:] == ("printed: size", "printed: backbone", "printed: set-up")
    assert "BN-Inception" in {cell.text for row in birds.quoted.rows for cell in row.cells}


def test_no_key_of_the_files_is_a_heading_or_a_value(shown):
    tables = [
        ("sam", "T4"),
        ("sam", "T3"),
        ("sam", "T1"),
        ("contextual", "T10"),
        ("contextual", "T9"),
        ("contextual", "T6"),
    ]
    texts = []
    for paper, number in tables:
        entry = {**TABLE, "published": {"paper": paper, "table": number}, "metrics": ["R@1"], "rows": []}
        for section in shown(entry, []).sections:
            rows = section.quoted.rows
            texts += [section.heading, *section.remarks, *section.quoted.header]
            texts += [cell.text for row in rows for cell in row.cells]
    assert not [text for text in texts if re.search(r"_|;|\w=\w|delta|resnet50", text)]
    assert {"binary IoU, fold 0", "gain in mAP", "mAP, mid level"} <= {text.removesuffix(" printed") for text in texts}


def test_rows_beside_which_the_others_count_stand_apart(shown):
    table = {**TABLE, "rows": [*TABLE["rows"], TRIVIAL]}
    found = shown(table, [run(0, 0, 0.6), {**run(1, 0, 0.2), "row": 2, "departs": ""}])
    rows = grid(markdown(found), "CUB (figurines birds in its place)")
    assert (rows[-1]["method"], rows[-1]["P@1"], rows[-1]["P@1 printed"]) == ("*Untrained features*", "20.0", "–")
    assert r"\textit{Untrained features}" in latex(found)
    assert '<tr class="trivial"><th scope="row">Untrained features' in tables_html([found], scale="x", legend={})
    assert "In italics, for the others to be held against: Untrained features (before any training)." in found.notes
    assert "Departs, all rows of ours: DB1." in found.sections[0].remarks


def test_own_pictures_hear_nothing_of_papers_but_which_row_is_best_and_by_how_much(shown):
    table = shown(OWN, [own_run(0, 0, 0.61), own_run(1, 0, 0.66), own_run(2, 0, 0.52)])
    for text in (markdown(table), tables_html([table], scale="mine", legend={"B": "other backbone"})):
        assert not re.search(r"paper|printed|published|BS1|departs", text, re.IGNORECASE)
        assert (
            "Best by P@1: Ours (66.0), 5.0 points above the next, Margin (61.0), 14.0 points above "
            "Untrained features (52.0). One seed: another may change the order"
        ) in text


def test_the_best_row_says_whether_it_is_above_the_untrained_one_and_what_several_seeds_say(shown):
    runs = [own_run(row, seed, value + seed / 50) for row, value in enumerate((0.60, 0.61, 0.7)) for seed in (0, 1)]
    remark = shown(OWN, runs).sections[0].best
    assert "1.0 points above the next, Margin (61.0), 9.0 points below Untrained features (71.0)" in remark
    assert "The first two are 1.0 points apart, less than a standard deviation of 1.4 over seeds." in remark
    assert not shown(OWN, [own_run(0, 0, 0.6), own_run(2, 0, 0.5)]).sections[0].best  # nothing to choose from


def test_older_code_is_still_marked_on_own_pictures(shown):
    table = shown(OWN, [{**own_run(0, 0, 0.6), "departs": "BSC"}, own_run(1, 0, 0.5)])
    assert [row["departs"] for row in grid(markdown(table), "street")] == ["C", "–"]
    assert "Marked: C trained by other code than today's." in table.notes


def test_seeds_stand_at_the_number_and_where_it_comes_from_once_a_row(shown):
    text = tables_html([shown(TABLE, [run(0, 0, 0.6), run(0, 1, 0.6), run(1, 0, 0.5)])], scale="x", legend={})
    assert re.search(r'<button popovertarget="diml_1-1-1"><b>60\.0 ± 0\.0</b></button> <small>n 2</small>', text)
    assert re.search(r'<button popovertarget="diml_1-1-2">50\.0</button> <small>n 1</small>', text)
    assert text.count('<div popover id="diml_1-1-1">') == 1
    targets = set(re.findall(r'popovertarget="([^"]+)"', text))
    assert targets == set(re.findall(r'popover id="([^"]+)"', text))


def test_columns_that_only_some_tables_have_are_shown_as_they_are(tmp_path):
    cells = table_cells(OWN, [own_run(0, 0, 0.6), own_run(1, 0, 0.5)])
    cells = cells.assign(rates="1e-4 / – / – / – / –", query_ms=0.1234, training_s=[300.0, 300.0, None, None])
    write_cells(tmp_path / "cells.csv", cells)
    found = for_readers("mine", planned(OWN), read_cells(tmp_path / "cells.csv"), "mine")
    rows = grid(markdown(found), "street")
    assert [(row["rates"], row["ms per query"], row["training"]) for row in rows] == [
        ("1e-4 / – / – / – / –", "0.123", "5 min"),
        ("1e-4 / – / – / – / –", "0.123", "–"),
    ]


def test_nmi_that_some_rows_do_not_have_is_explained(shown):
    table = {**OWN, "metrics": ["P@1", "NMI"]}
    first, second = own_run(0, 0, 0.6), own_run(1, 0, 0.5)
    first["metrics"] = {"P@1": 0.6, "NMI": 0.7}
    remark = "NMI is not defined where scoring compares no vectors: a dash."
    assert remark in shown(table, [first, second]).sections[0].remarks
    assert remark not in shown(table, [first]).sections[0].remarks


def test_a_table_of_terms_shows_them_beside_the_metrics_with_what_the_rows_cost(shown):
    said = {"rates": "1e-4 / 1e-3 / – / – / 5e-3", "pooling": "gem", "embedding": "3 x 512"}
    seeds = [own_run(0, seed, 0.6) | said | {"query_ms": 10.0 + seed, "training_s": 100.0} for seed in (0, 1)]
    unmeasured = own_run(1, 0, 0.5) | {**said, "rates": "–", "query_ms": None, "training_s": None}
    laid_out = shown({**OWN, "terms": True}, [*seeds, unmeasured])
    first, second = grid(markdown(laid_out), "street")
    assert [first[name] for name in ("rates", "pooling", "embedding")] == list(said.values())
    assert (first["ms per query"], first["training"]) == ("10.5", "2 min")
    assert (second["rates"], second["ms per query"], second["training"]) == ("–", "–", "–")
    assert "ms per query" in latex(laid_out)
    text = tables_html([laid_out], scale="x", legend={})
    assert "ms per query" in text
    # A page sorts by what is meant: 2 min are more than 68 s, three levels of 512 more than 1,024.
    assert '<td data-order="100.0">2 min</td>' in text
    assert '<td data-order="1536.0">3 x 512</td>' in text
    assert text.count("<dt>rates</dt>") == 1  # which no column of the page repeats, and no row without a training has
    assert "<dt>rates</dt><dd>trunk 1e-4, head 1e-3, boundaries 5e-3</dd>" in text
    heads = re.findall(r"<button>([^<]*)</button>", text)
    assert heads == ["method", "P@1 %", "MAP@R %", "pooling", "embedding", "ms per query", "training"]


def test_a_query_is_timed_in_one_way_for_all_rows_of_a_table():
    table = {**OWN, "terms": True}
    said = {"rates": "–", "pooling": "gem", "embedding": "512", "query_ms": 10.0, "training_s": 1.0}
    warm = [own_run(place, 0, 0.5) | said | {WARM: 2.0} for place in (0, 1)]
    cells = table_cells(table, warm)
    assert (set(cells[WARM]), "query_ms" in cells) == ({2.0}, False)
    cells = table_cells(table, [warm[0], {**warm[1], WARM: None}])
    assert (set(cells["query_ms"]), WARM in cells) == ({10.0}, False)


@pytest.fixture
def written(tmp_path):
    runs = [run(row, seed, 0) for row in (0, 1) for seed in (0, 1)]
    files = []
    for place, each in enumerate(runs):
        values = {"P@1": 0.6 + place / 100, "MAP@R": 0.3}
        content = {"last": values, "best": {"P@1": 0.9, "MAP@R": 0.9}, "queries": 500}
        files.append(tmp_path / f"results/small/{place}.json")
        leave(files[-1], content, code="0f" * 8)
        each["today"] = {"code": "0f" * 8}
        for key in ("metrics", "queries", "code"):
            del each[key]

    def write(table):
        tables(
            "diml_1", table, runs, scale="small", metrics=[str(file) for file in files], output=f"{tmp_path}/diml_1.csv"
        )
        return tmp_path

    return write


def test_a_table_is_written_as_csv_markdown_and_latex(written):
    folder = written(TABLE)
    assert "60.5 ± 0.7" in (folder / "diml_1.md").read_text()
    assert r"60.5 $\pm$ 0.7" in (folder / "diml_1.tex").read_text()
    assert ",60.5000,0.7071,2,0 1,margin,500,62.4700," in (folder / "diml_1.csv").read_text()


def test_the_best_epoch_stands_beside_the_last_one_but_where_the_printed_numbers_are_of_the_last(written):
    assert "| 90.0 " in (written(TABLE) / "diml_1.md").read_text()
    assert set(read_cells(written(TABLE) / "diml_1.csv")["best"].dropna()) == {90.0}
    assert "90.0" not in (written({**TABLE, "checkpoint": "last"}) / "diml_1.md").read_text()


def test_runs_of_other_data_under_one_name_are_refused_unless_they_are_to_be_shown_with_a_mark(tmp_path):
    runs, files = [], []
    for seed, data in enumerate("aab"):
        runs.append({**run(0, seed, 0), "reads": {"data": "figurines_birds"}, "today": {"code": "0f" * 8}})
        files.append(str(tmp_path / f"results/small/{seed}.json"))
        scores = {"P@1": 0.6, "MAP@R": 0.3}
        leave(files[-1], {"last": scores, "best": scores, "queries": 500}, code="0f" * 8, data=data)
    given = {"scale": "small", "metrics": files, "output": f"{tmp_path}/diml_1.csv"}
    with pytest.raises(
        ValueError, match=r"2\.json was trained on another split of figurines_birds \(b\) than .*0\.json"
    ):
        tables("diml_1", TABLE, runs, **given)
    assert not (tmp_path / "diml_1.csv").exists()
    tables("diml_1", TABLE, runs, **given, mixed=True)
    assert "M beside runs of another split or other weights" in (tmp_path / "diml_1.md").read_text()
    assert set(read_cells(tmp_path / "diml_1.csv").query("label == 'Margin' and n > 0")["departs"]) == {"DBM"}


def test_the_page_shows_what_the_tables_hold(written):
    folder = written(TABLE)
    tables_page({"diml_1": TABLE}, cells={"diml_1": f"{folder}/diml_1.csv"}, scale="small", output=f"{folder}/all.html")
    text = (folder / "all.html").read_text()
    assert "60.5 ± 0.7" in text
    assert "<dd>0f0f0f0f0f0f0f0f</dd>" in text
    assert "<b>D</b> other data that stand in" in text


def test_what_no_run_counts_stands_with_its_data_set(written, tmp_path):
    folder = written(TABLE)
    assert "apart" not in (folder / "diml_1.csv").read_text().splitlines()[0]
    for file in tmp_path.glob("results/small/?.json"):
        said = {"left_out": 5, "copies": 3, "queries_without_positive": 4}
        file.write_text(json.dumps({**json.loads(file.read_text()), **said}))
    written(TABLE)
    remark = (
        "5 pictures left out by the split (3 as copies of others), named in its manifest; "
        "4 of 500 queries in no metric, their class having no other picture there."
    )
    assert (folder / "diml_1.md").read_text().count(remark) == 1
    assert (
        remark in for_readers("diml_1", planned(TABLE), read_cells(folder / "diml_1.csv"), "small").sections[0].remarks
    )
