"""A table is written in three forms, and all tables on one page."""

import json
from pathlib import Path

import pytest

from lookalike.reports.html import tables_page
from lookalike.stages.tables import tables
from lookalike.tables.cells import read_cells
from lookalike.tables.layout import for_readers
from measured_runs import TABLE, run


@pytest.fixture
def written(tmp_path):
    runs = [run(row, seed, 0) for row in (0, 1) for seed in (0, 1)]
    files = []
    for place, each in enumerate(runs):
        values = {"P@1": 0.6 + place / 100, "MAP@R": 0.3}
        content = {"best": values, "last": {"P@1": 0.1, "MAP@R": 0.1}, "queries": 500, "code": "0f" * 8}
        files.append(tmp_path / f"{place}.json")
        files[-1].write_text(json.dumps(content))
        for key in ("metrics", "queries", "code"):
            del each[key]

    def write(table):
        tables("diml_1", table, runs, scale="small", metrics=[str(file) for file in files], output=f"{tmp_path}/diml_1")
        return tmp_path

    return write


def test_a_table_is_written_as_csv_markdown_and_latex(written):
    folder = written(TABLE)
    assert "60.5 ± 0.7" in (folder / "diml_1.md").read_text()
    assert r"60.5 $\pm$ 0.7" in (folder / "diml_1.tex").read_text()
    assert ",60.5000,0.7071,2,0 1,margin,500,62.4700," in (folder / "diml_1.csv").read_text()


def test_the_last_epoch_is_shown_where_the_table_asks_for_it(written):
    text = (written({**TABLE, "checkpoint": "last"}) / "diml_1.md").read_text()
    assert "10.0 ± 0.0" in text
    assert "; the last epoch; n = 2 (seeds 0, 1)" in text


def test_runs_of_other_data_under_one_name_are_refused_unless_they_are_to_be_shown_with_a_mark(tmp_path):
    runs, files = [], []
    for seed, data in enumerate("aab"):
        runs.append({**run(0, seed, 0), "reads": {"data": "figurines_birds"}})
        content = {"best": {"P@1": 0.6, "MAP@R": 0.3}, "queries": 500, "code": "0f" * 8, "data": data}
        files.append(str(tmp_path / f"{seed}.json"))
        Path(files[-1]).write_text(json.dumps(content))
    given = {"scale": "small", "metrics": files, "output": f"{tmp_path}/diml_1"}
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
    for file in tmp_path.glob("?.json"):
        said = {"left_out": 5, "copies": 3, "queries_without_positive": 4}
        file.write_text(json.dumps({**json.loads(file.read_text()), **said}))
    written(TABLE)
    remark = (
        "5 pictures left out by the split (3 as copies of others), named in its manifest; "
        "4 of 500 queries in no metric, their class having no other picture there."
    )
    assert (folder / "diml_1.md").read_text().count(remark) == 1
    assert remark in for_readers("diml_1", TABLE, read_cells(folder / "diml_1.csv"), "small").sections[0].remarks
