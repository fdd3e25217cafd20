"""What was made takes the place of what is committed, once it is said what moves, and nothing else does."""

import json
from pathlib import Path

import pytest

import recorded
from lookalike.base.files import read_json, write_json, write_text
from lookalike.workflow.plan.reuse import EQUAL_CODE
from lookalike.workflow.report.reference import adopt, take_over
from lookalike.workflow.running.records import Recording, read_sums, record_of

MADE, COMMITTED = "results/mini", "results/reference/mini"
CALL = {"scale": "mini", "overlays": []}
TABLE, METRICS = "tables/diml_1.csv", "metrics/margin/birds/seed0.json"


def leave(file, text):
    facts = {"stage": "table", "outputs": [f"{MADE}/{file}"], "inputs": [], "code": None, "settings": None}
    with Recording(facts):
        write_text(f"{MADE}/{file}", text)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text(f"{COMMITTED}/{TABLE}", "label,mean,code\na,50.0,old\nb,60.0,old\n")
    write_text(f"{COMMITTED}/claims.md", "# Claims\n")
    leave(TABLE, "label,mean,code\na,50.5,new\nb,60.0,new\n")
    return tmp_path


def held(folder=COMMITTED):
    files = sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*") if file.is_file())
    return [file for file in files if file not in ("call.json", "sha256sums")]


def test_cells_that_move_are_counted_by_column_before_they_are_taken(here, capsys):
    adopt(MADE, COMMITTED, CALL)
    assert capsys.readouterr().out.splitlines() == [
        f"{TABLE}: mean, 1 of 2 cells by 0.5 on average: 50.0 -> 50.5",
        f"{TABLE}: code, 2 of 2 cells: old -> new",
        f"{COMMITTED}: 1 file made, 1 other, 0 new; 3 of 6 cells moved",
    ]
    assert (here / COMMITTED / TABLE).read_text() == (here / MADE / TABLE).read_text()
    adopt(MADE, COMMITTED, CALL)
    assert capsys.readouterr().out == f"{COMMITTED}: 1 file made, 0 other, 0 new; 0 of 6 cells moved\n"


def test_what_is_committed_has_digests_and_says_what_call_made_it(here):
    adopt(MADE, COMMITTED, CALL)
    assert read_json(here / COMMITTED / "call.json") == CALL
    assert [*read_sums(here / COMMITTED)] == ["call.json", "claims.md", TABLE]
    take_over(MADE, COMMITTED)
    assert read_json(here / COMMITTED / "call.json") == CALL


def test_of_a_scale_that_is_committed_its_parts_are_taken_and_of_another_one_all(capsys):
    for file in ("tables/avsl_1.csv", "tables/avsl_1.tex", METRICS, "figures/diml_3.svg", "embeddings/x.json"):
        leave(file, "{}")
    adopt(MADE, COMMITTED, CALL)
    assert held() == ["claims.md", "tables/avsl_1.csv", TABLE]
    assert "tables/avsl_1.csv: new" in capsys.readouterr().out
    adopt(MADE, "results/reference/own", CALL)
    assert held("results/reference/own") == [METRICS, f"records/{METRICS}.record", "tables/avsl_1.csv", TABLE]


def test_metrics_are_told_as_one_and_rows_by_their_number(capsys):
    for seed, value in enumerate((0.5, 0.75)):
        file = METRICS.replace("0", str(seed))
        write_text(f"{COMMITTED}/{file}", json.dumps({"best": {"R@1": 0.5}, "code": "old"}))
        leave(file, json.dumps({"best": {"R@1": value}, "code": "old"}))
    leave(TABLE, "label,mean,code\na,50.0,old\n")
    adopt(MADE, COMMITTED, CALL)
    assert capsys.readouterr().out.splitlines() == [
        f"{TABLE}: rows, 1 of 1 cell by 1 on average: 2 -> 1",
        "metrics: best.R@1, 1 of 2 cells by 0.25 on average: 0.5 -> 0.75",
        f"{COMMITTED}: 3 files made, 2 other, 0 new; 2 of 5 cells moved",
    ]


def test_records_of_metrics_are_taken_where_what_decides_them_moved_and_not_where_seconds_did(capsys):
    record, taken = record_of(f"{MADE}/{METRICS}"), record_of(f"{COMMITTED}/{METRICS}")
    write_text(f"{COMMITTED}/{METRICS}", "{}")
    for code, seconds, kept in (("old", 1, 1), ("old", 2, 1), ("new", 3, 3)):
        recorded.leave(f"{MADE}/{METRICS}", {"R@1": 0.5}, code=code)
        write_json(record, {**read_json(record), "seconds": seconds})
        adopt(MADE, COMMITTED, CALL)
        assert read_json(taken)["seconds"] == kept
    assert "metrics: code, 1 of 1 cell: old -> new" in capsys.readouterr().out
    assert not record_of(f"{COMMITTED}/{TABLE}").exists()


def test_digests_that_the_files_taken_name_no_longer_leave_the_list_of_equal_code(capsys):
    Path("Snakefile").touch()
    Path("params").mkdir()
    write_text(EQUAL_CODE, "before,after,commit\nold,new,c0ffee\n")
    adopt(MADE, COMMITTED, CALL)
    assert f"{EQUAL_CODE}: 0 digests of code noted, 1 left out; commit it" in capsys.readouterr().out
    assert Path(EQUAL_CODE).read_text() == "before,after,commit\n"


def test_nothing_made_is_refused():
    with pytest.raises(ValueError, match=r"results/ci holds nothing that results/reference/mini is to show: make a"):
        adopt("results/ci", COMMITTED, CALL)
    with pytest.raises(ValueError, match=r"results/ci holds nothing"):
        take_over("results/ci", "results/reference/ci")


def test_what_no_stage_left_as_it_is_is_refused_and_nothing_taken(here):
    leave("tables/avsl_1.csv", "label,mean\n")
    write_text(f"{MADE}/tables/avsl_1.csv", "label,mean\na,99.9\n")
    with pytest.raises(ValueError, match=r"avsl_1\.csv is not what table left there\. Remove it, and the next call"):
        adopt(MADE, COMMITTED, CALL)
    record_of(here / MADE / "tables/avsl_1.csv").unlink()
    with pytest.raises(ValueError, match=r"avsl_1\.csv has no record of how it was made"):
        adopt(MADE, COMMITTED, CALL)
    assert held() == ["claims.md", TABLE]
    assert "50.0" in (here / COMMITTED / TABLE).read_text()


def test_times_that_snakemake_writes_need_no_record(here):
    write_text(f"{COMMITTED}/timings/train/a.tsv", "s\n1.0\n")
    write_text(f"{MADE}/timings/train/a.tsv", "s\n2.0\n")
    adopt(MADE, COMMITTED, CALL)
    assert (here / COMMITTED / "timings/train/a.tsv").read_text() == "s\n2.0\n"
