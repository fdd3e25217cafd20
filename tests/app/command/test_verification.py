"""Results are read against their records, and what does not fit is named."""

import shutil

import pytest

from lookalike.app.command import main
from lookalike.base.files import read_json, write_json, write_tensors, write_text
from lookalike.workflow.running.records import Recording, record_of, write_sums

MODEL, METRICS, TABLE = (
    f"results/small/{name}" for name in ("models/a/b/seed0.safetensors", "metrics/a/b/seed0.json", "t.csv")
)
SAID = {"code": "c0de", "data": "da7a", "weights": None, "seed": 0}


def made(stage, output, inputs, content):
    facts = {"stage": stage, "outputs": [output], "inputs": inputs, "code": "0f" * 8, "settings": "abc"}
    with Recording(facts):
        if output == MODEL:
            write_tensors(output, {}, {**SAID, **content})
        else:
            write_json(output, content)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a training, its metrics and a table of these."""
    (tmp_path / "params").mkdir()
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    made("train", MODEL, [], {"epoch": 1})
    made("evaluate", METRICS, [MODEL], {"R@1": 0.5})
    made("tables", TABLE, [METRICS], {"cells": []})
    return tmp_path


def test_results_that_are_as_their_stages_left_them_are_right(project, capsys):
    assert main(["verify", "results/small"]) == 0
    assert capsys.readouterr().out == "ok     results/small: 3 files as recorded\n0 faults\n"
    assert main(["verify"]) == 0


def test_folders_that_no_stage_leaves_results_in_are_passed_over_unless_named(project, capsys):
    for name in ("benchmarks/summary.md", "own_birds/schedule.json"):
        (project / "results" / name).parent.mkdir()
        (project / "results" / name).write_text("{}")
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == "ok     results/small: 3 files as recorded\n0 faults\n".replace(
        "results", f"{project}/results"
    )
    assert main(["verify", "results/own_birds"]) == 1
    assert main(["verify", "results/benchmarks"]) == 2


def test_committed_results_are_held_against_their_digests(project, capsys):
    folder = project / "results" / "reference" / "mini"
    for name in ("tables/diml_1.csv", "claims.md", "call.json"):
        write_text(folder / name, name)
    write_sums(folder)
    assert main(["verify", "results/reference/mini"]) == main(["verify"]) == 0
    assert main(["verify", "results/reference"]) == 0  # of all scales
    assert "results/reference/mini: 3 committed files\n0 faults\n" in capsys.readouterr().out
    (folder / "claims.md").write_text("better")
    (folder / "call.json").unlink()
    (folder / "claims.csv").touch()
    assert main(["verify", "results/reference/mini"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "fault  results/reference/mini/call.json: is missing; sha256sums has its digest",
        "fault  results/reference/mini/claims.csv: has no digest in sha256sums; the target `adopt` writes them",
        "fault  results/reference/mini/claims.md: has other bytes than those of sha256sums",
        "ok     results/reference/mini: 1 committed file",
        "3 faults",
    ]
    (folder / "sha256sums").write_text("broken\n")
    assert main(["verify", "results/reference/mini", "results/small"]) == 1
    fault, right, count = capsys.readouterr().out.splitlines()
    assert fault.startswith("fault  ") and "'broken' is no digest and name of a file" in fault
    assert (right, count) == ("ok     results/small: 3 files as recorded", "1 fault")


def test_results_that_came_without_any_record_are_one_line(project, capsys):
    shutil.rmtree(project / "results" / "small" / "records")
    assert main(["verify", "results/small"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(
        "fault  results/small: 3 files without any record; results of an earlier version have none; remove them"
    )
    assert said.count("\n") == 2
    (project / "results" / "empty").mkdir()
    assert main(["verify", "results/empty"]) == 0


def flip_a_bit(project):
    content = bytearray((project / METRICS).read_bytes())
    content[10] ^= 1
    (project / METRICS).write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (flip_a_bit, f"fault  {METRICS}: has other bytes than those that evaluate left"),
        (lambda project: (project / METRICS).write_text("{"), f"fault  {METRICS}: has 1 bytes, evaluate left"),
        (lambda project: (project / METRICS).unlink(), f"fault  {METRICS}: is missing; evaluate left it with"),
        (
            lambda project: (project / record_of(METRICS)).unlink(),
            f"fault  {METRICS}: has no record of how it was made",
        ),
        (lambda project: (project / record_of(METRICS)).write_text("{}"), "is no record of a result. Remove it"),
        (lambda project: (project / record_of(METRICS)).write_text("{"), "is no whole JSON file"),
        (lambda project: (project / "results/small/new.md").touch(), "results/small/new.md: has no record"),
        (
            lambda project: made("train", MODEL, [], {"epoch": 2}),
            f"fault  {METRICS}: was made of another {MODEL} than the one that lies there now",
        ),
    ],
    ids=["bit", "short", "missing", "no record", "empty record", "broken record", "stranger", "other input"],
)
def test_each_fault_is_one_line_and_the_exit_status(project, capsys, spoil, said):
    spoil(project)
    assert main(["verify", "results/small"]) == 1
    out = capsys.readouterr().out
    assert said in out
    assert out.endswith("\n1 fault\n")


def test_what_is_unfinished_or_written_by_snakemake_needs_no_record(project):
    for name in ("models/a/b/.seed1.unfinished", "timings/train/a-b-seed0.tsv"):
        (project / "results" / "small" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "results" / "small" / name).touch()
    assert main(["verify", "results/small"]) == 0


def test_a_copied_folder_keeps_its_records(project):
    shutil.move(project / "results" / "small", project / "results" / "copy")
    assert main(["verify", "results/copy"]) == 0


def test_a_part_of_a_scale_can_be_read_alone(project, capsys):
    (project / METRICS).unlink()
    assert main(["verify", "results/small/models"]) == 0
    assert main(["verify", "results/small/metrics"]) == 1


@pytest.mark.parametrize("content", ["a,b\n1\n1,2,3\n", "", "path,label,role\n\xff\n"])
def test_a_broken_split_is_a_fault_beside_what_others_list(project, capsys, content):
    (project / "data" / "small" / "street").mkdir(parents=True)
    (project / "data" / "small" / "alley").mkdir()
    (project / "data" / "small" / "splits").mkdir()
    (project / "data" / "small" / "splits" / "alley.csv").write_bytes(content.encode("latin-1"))
    (project / "data" / "small" / "splits" / "street.csv").write_text("path,label,role,sha256\na.png,1,train,00\n")
    assert main(["verify", "results/small"]) == 1
    faults = [line for line in capsys.readouterr().out.splitlines() if line.startswith("fault")]
    assert "alley.csv" in faults[0] and "remove it, and the next call makes it again" in faults[0]
    assert "street/a.png" in faults[1]
    assert len(faults) == 2


@pytest.mark.parametrize("name", ["nowhere", "params", "results"])
def test_what_is_no_folder_of_results_is_refused(project, capsys, name):
    assert main(["verify", name]) == 2
    assert "is no folder below results/; there are results/" in capsys.readouterr().err


def test_a_record_says_how_its_file_was_made(project):
    record = read_json(record_of(METRICS))
    assert record["trained"] == {"code": ["c0de"], "data": ["da7a"], "weights": ["none"], "seed": ["0"]}
    assert read_json(record_of(TABLE))["trained"] == record["trained"]
    assert list(record["made_of"]) == [MODEL]
    assert (record["stage"], record["code"], record["settings"]) == ("evaluate", "0f" * 8, "abc")
    assert {"python", "torch", "lookalike"} <= record["versions"].keys()
    assert record["device"]
    assert record["peak_mb"] > 1
    assert record["seconds"] >= 0
