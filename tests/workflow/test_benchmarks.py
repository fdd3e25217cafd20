"""Every benchmark is a job of the target `benchmarks`, and all findings stand in one table."""

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from lookalike.app.command.costs.cards import read_cards
from lookalike.workflow.stages.train import train
from projects import ROOT, make_project


@pytest.fixture
def summary(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("summary").summary
    for name in ("summary", "measure"):
        sys.modules.pop(name)


def finding(what, measured, **values):
    return {"what": what, "unit": "ms", "measured": measured, "limit": None, "at_least": False, "plain": None, **values}


def write(path, *findings, others=0.0):
    path.write_text(
        json.dumps({"cores": 2, "machine": "a processor", "others": others, "torch": "2.15.0", "findings": findings})
    )
    return path


def cells(text):
    """Benchmark, what and all other cells of each row of the table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {(row[0], row[1]): row[2:] for row in rows[2:]}


def test_the_summary_holds_each_finding_against_its_limit_and_the_plain_path(summary, tmp_path):
    first = write(
        tmp_path / "first.json",
        finding("within", 5.0, limit=11, plain=20.0),
        finding("at the limit", 11.0, limit=11),
        finding("beyond", 12.5, limit=11, plain=10.0),
    )
    second = write(
        tmp_path / "second.json",
        finding("too little", 99.0, limit=100, at_least=True),
        finding("enough", 100.0, limit=100, at_least=True, plain=80.0),
        finding("nothing promised", 1234.5),
        others=0.75,
    )
    text = summary([first, second])
    assert cells(text) == {
        ("first", "within"): ["at most 11", "5", "ms", "0.25", "kept"],
        ("first", "at the limit"): ["at most 11", "11", "ms", "–", "kept"],
        ("first", "beyond"): ["at most 11", "12.5", "ms", "1.25", "over"],
        ("second", "too little"): ["at least 100", "99", "ms", "–", "missed"],
        ("second", "enough"): ["at least 100", "100", "ms", "1.25", "kept"],
        ("second", "nothing promised"): ["–", "1234", "ms", "–", "–"],
    }
    assert "3 limits kept, 2 over" in text
    assert "Of 2 processors, busy with other work meanwhile: first 0.0, second 0.8" in text


def test_what_a_benchmark_concludes_is_what_the_summary_reads(summary, tmp_path):
    measure = sys.modules["measure"]
    measure.conclude([measure.Finding("a step", "ms", 2.0, limit=3.0, plain=4.0)], tmp_path / "steps.json")
    assert cells(summary([tmp_path / "steps.json"])) == {("steps", "a step"): ["at most 3", "2", "ms", "0.50", "kept"]}


def test_the_stage_that_a_benchmark_calls_by_names_takes_these(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    imports = importlib.import_module("imports")
    for prepared in ("obtain", "assign"):
        monkeypatch.setattr(imports, prepared, lambda *_: None)
    plan = imports.Plan({**imports.read("params/config.yaml", imports.Configuration).dump(), "scale": "mini"})
    arguments = imports.make_training(plan, tmp_path)
    inspect.signature(train).bind(**arguments)
    for name in ("imports", "measure"):
        sys.modules.pop(name)


@pytest.mark.slow
def test_every_script_that_concludes_is_one_job_beside_a_committed_summary_and_a_new_one_is_not_forgotten(tmp_path):
    project = make_project(tmp_path / "project")
    folder = project.root / "benchmarks"
    shutil.copytree(ROOT / "benchmarks", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(folder / "dry_run.py", folder / "newest.py")
    committed = project.root / "results" / "benchmarks" / "summary.md"  # which must not stand for measurements
    committed.parent.mkdir(parents=True)
    committed.write_text("from another machine\n")
    concluding = [path.stem for path in folder.glob("*.py") if re.search(r"^ +conclude\(", path.read_text(), re.M)]
    done = project.run("-n --cores all benchmarks")
    assert done.returncode == 0, done.stderr
    planned = re.findall(r"Job \d+: Measure (\w+)", done.stdout + done.stderr)
    assert sorted([*planned, "gpu_day", "whitening"]) == sorted(concluding)  # for who has a card, or photographs
    assert {"newest", "avsl_distance", "imports"} <= set(planned)


@pytest.fixture
def gpu_day(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("gpu_day")
    for name in ("gpu_day", "measure"):
        sys.modules.pop(name)


def lines_of(out):
    return [json.loads(line) for line in (out / "gpu_day.jsonl").read_text().splitlines()]


def small_day(out, *options):
    line = [sys.executable, str(ROOT / "benchmarks" / "gpu_day.py"), str(out), *options]
    environment = {**os.environ, "GPU_DAY_SMALL": "1"}
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_the_day_of_a_card_fits_into_its_ten_minutes(gpu_day):
    assert sum(part.seconds for part in gpu_day.PARTS.values()) == gpu_day.TOGETHER == 555


def test_a_part_ends_when_its_time_is_over_and_the_next_one_has_its_own(gpu_day, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_day, "PARTS", {name: gpu_day.PARTS[name]._replace(seconds=1) for name in ("card", "tests")})
    waiting = [sys.executable, "-c", "import sys, time; time.sleep(60 * (sys.argv[2] == 'card'))"]
    assert not gpu_day.run_day(["card", "tests"], gpu_day.Day(tmp_path, tmp_path, ""), waiting)
    card, tests = lines_of(tmp_path)
    assert (card["part"], card["ended"], card["limit_s"]) == ("card", -9, 1)
    assert card["seconds"] < 20
    assert tests["part"] == "tests"
    assert json.loads((tmp_path / "gpu_day.json").read_text())["findings"] == []


@pytest.mark.slow
def test_a_part_that_fails_says_so_and_what_the_others_find_is_read_as_of_every_benchmark(params, summary):
    out = params.parent / "out"
    done = small_day(out, "--only", "learning", "card", "--weights", "no such file")
    assert done.returncode == 1, done.stderr
    failed, ended, *lines = lines_of(out)
    assert (failed["part"], "no such file" in failed["error"]) == ("learning", True)
    assert (ended["part"], ended["ended"]) == ("learning", 1)
    assert (lines[-1]["part"], lines[-1]["ended"]) == ("card", 0)
    ((card,), _) = read_cards()
    assert (out / "cards" / f"{next((params / 'cards').iterdir()).name}").is_file()
    (kind,) = card.kinds
    assert ("gpu_day", kind) in cells(summary([out / "gpu_day.json"]))


@pytest.mark.long
@pytest.mark.nightly
def test_the_whole_day_of_a_card_ends_well_on_a_processor(params, gpu_day):
    out = params.parent / "out"
    done = small_day(out)
    lines = lines_of(out)
    assert [line for line in lines if "error" in line] == []
    assert [line["part"] for line in lines if "ended" in line] == list(gpu_day.PARTS)
    assert done.returncode == 0, done.stderr
    agreeing = [line for line in lines if line["part"] == "agreement" and "measured" in line]
    assert len(agreeing) > 5
    assert all(line["measured"] <= line["limit"] for line in agreeing)
