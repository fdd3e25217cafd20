"""Every benchmark is a job of the target `benchmarks`, and all findings stand in one table."""

import importlib
import inspect
import json
import re
import shutil
import sys

import pytest

from lookalike.stages.train import train
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
    assert cells(summary([tmp_path / "steps.json"])) == {
        ("steps", "a step"): ["at most 3", "2", "ms", "0.50", "kept"],
    }


def test_the_stage_that_a_benchmark_calls_by_names_takes_these(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    imports = importlib.import_module("imports")
    for prepared in ("obtain", "assign"):
        monkeypatch.setattr(imports, prepared, lambda *_: None)
    plan = imports.Plan({**imports.read("params/config.yaml", imports.Configuration).dump(), "scale": "mini"})
    arguments = imports.make_training(plan, tmp_path)
    inspect.signature(train).bind(
        **{name: value for name, value in arguments.items() if name not in {"log", "job", "tracked"}}
    )
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
    assert sorted(planned) == sorted(concluding)
    assert {"newest", "avsl_distance", "imports"} <= set(planned)
