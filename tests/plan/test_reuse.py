"""Evaluations that came from elsewhere are kept where a call would make the same, with those of the same training.

Metrics of older code or other settings are refused where nobody would notice them.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace as Names

import pytest

from lookalike.plan.inputs import Inputs
from lookalike.plan.plan import Plan
from lookalike.plan.reuse import FOLDERS, MADE_BY, Brought, asks_again, differs, is_older, refuse_unnoticed
from lookalike.settings.call import Configuration, configuration
from lookalike.settings.files import read
from projects import ROOT

TODAY = {"code": "c", "settings": "s", "weights": None}
ROWS = ("margin", "margin_diml", "margin_structure", "margin_structure_uniform")  # of diml_2, with one training
METRICS = "results/mini/metrics/margin/figurines_birds/seed0.json"


def test_metrics_differ_by_what_they_say_of_themselves():
    assert differs({**TODAY, "R@1": 0.5}, TODAY) == ""
    for key in TODAY:
        assert differs({**TODAY, key: "another"}, TODAY) == f"{MADE_BY[key]}, another, not today's {TODAY[key]}"
    assert differs({"code": "c"}, TODAY) == ""
    assert differs({}, TODAY) == "older code, without a digest, not today's c"


def test_a_call_asks_for_evaluations_again_by_a_rule_or_a_file_behind_them():
    assert asks_again(["train"])
    assert asks_again(["table", "evaluate"])
    for folder in FOLDERS:
        assert asks_again([f"results/mini/{folder}/margin/figurines_birds/seed0.classes.csv"])
    assert not asks_again(["table", "tables", "results/mini/tables/diml_1.csv", "results/mini/figures/diml_3.json"])
    assert not asks_again([])


def job(recipe="margin", seed=0):
    return Names(recipe=recipe, dataset="figurines_birds", seed=str(seed))


@pytest.fixture
def brings(params, monkeypatch):
    """Makes evaluations of a call as they would be made, older than the script."""
    monkeypatch.chdir(params.parent)
    script = params.parent / "workflow" / "scripts" / "evaluate.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.touch()

    def bring(names=ROWS, made_of=lambda file: None, makes_anew=lambda: False):
        config = {
            **read("params/config.yaml", Configuration).dump(),
            "scale": "mini",
            "tracking": False,
            "tables": ["diml_2"],
        }
        inputs = Inputs(Plan(config), made_of)
        for recipe in names:
            file = params.parent / inputs.stored("evaluation", recipe, "figurines_birds", 0)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**inputs.today(recipe, "figurines_birds"), "R@1": 0.5}))
            file.with_name("seed0.classes.csv").touch()
            for each in file.parent.iterdir():
                os.utime(each, (100, 100))
        return Brought(inputs, makes_anew)

    return bring


def test_what_fits_needs_nothing_behind_it_and_becomes_newer_than_the_script(brings, params):
    brought = brings()
    assert brought.behind("model")(job()) == brought.behind("embeddings")(job("margin_diml")) == []
    for file in (params.parent / METRICS).parent.iterdir():
        assert file.stat().st_mtime > 100
        os.utime(file, (2**31, 2**31))
    assert brought.is_kept(job())
    assert file.stat().st_mtime == 2**31
    assert brought.behind("model")(job(seed=1)) == "results/mini/models/margin/figurines_birds/seed1.safetensors"


def test_rows_of_one_training_are_kept_together_or_not_at_all(brings, params):
    assert not brings(ROWS[1:]).is_kept(job("margin_diml"))
    brought = brings()
    model = params.parent / brought.inputs.stored("model", "margin", "figurines_birds", 0)
    model.parent.mkdir(parents=True)
    model.touch()
    assert not brought.is_kept(job())


def test_what_was_made_here_or_is_asked_for_again_or_has_no_classes_is_not_kept(brings, params):
    assert not brings(made_of=lambda file: []).is_kept(job())
    assert not brings(makes_anew=lambda: True).is_kept(job())
    brought = brings()
    (params.parent / METRICS).with_name("seed0.classes.csv").unlink()
    assert not brought.is_kept(job())


@pytest.mark.parametrize("key", ["code", "settings", "scored_by", "reads", "weights"])
def test_what_says_otherwise_or_nothing_is_not_kept(brings, params, key):
    for others in ({key: "another"}, {}):
        brought = brings()
        content = json.loads((params.parent / METRICS).read_text())
        content.pop(key)
        (params.parent / METRICS).write_text(json.dumps(content | others))
        assert not brought.is_kept(job())


def test_another_split_is_noticed_once_it_is_there(brings, params):
    brought = brings()
    assert brought.is_kept(job())
    split = params.parent / "data/splits/figurines_birds.csv"
    split.parent.mkdir(parents=True)
    split.write_text("path,label")
    assert not brings(()).is_kept(job())
    assert brings().is_kept(job())
    assert json.loads((params.parent / METRICS).read_text())["data"] == hashlib.sha256(b"path,label").hexdigest()


def test_a_result_of_somebody_else_that_seems_old_is_told(brings, monkeypatch):
    brought = brings()

    def refused(path):
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr("pathlib.Path.touch", refused)
    with pytest.raises(ValueError, match=r"seed0\.json: is older than .*evaluate\.py, and its time cannot be set"):
        brought.is_kept(job())


def reads(more, **config):
    birds = {"layout": "cub", "archive": "there.tar", "classes": {"train": [1, 50], "test": [51, 100]}}
    birds |= {"counts": {role: {"classes": 50, "images": 500} for role in ("train", "test")}}
    given = {**read("params/config.yaml", Configuration).dump(), "tracking": False, "name": "mine", **config}
    plan = Plan({**given, "datasets": {"birds": {**birds, **more}}})
    return Inputs(plan).today("compared_margin", "birds")["reads"]


def test_metrics_say_how_their_data_set_is_read_but_not_where_it_is_had():
    assert reads({}) == reads({"archive": "elsewhere.tar", "title": "Birds"})
    cache = {"shorter_side_px": 64, "encoding": "png", "broken": "stop"}
    changed = [
        reads({"recall_at": [1, 2, 4, 8, 16]}),
        reads({"classes": {"train": [1, 40], "test": [41, 100]}}),
        reads({}, picture_cache=cache),
    ]
    assert reads({}) not in changed


def test_kept_metrics_take_the_name_of_todays_code_and_no_other_name(params, monkeypatch):
    tools = params.parent / ".ci"
    tools.mkdir()
    shutil.copy(ROOT / ".ci" / "keep", tools)
    inputs = Inputs(Plan(configuration(None, [params / "overlays" / "birds.yaml"])))
    file = params.parent / inputs.stored("evaluation", "margin", "cub100", 0)
    file.parent.mkdir(parents=True)
    today = inputs.today("margin", "cub100")

    def keep(**made_otherwise):
        file.write_text(json.dumps({**today, **made_otherwise, "R@1": 0.5}))
        called = {**os.environ, "PYTHON": sys.executable}
        said = subprocess.run([tools / "keep"], check=True, capture_output=True, text=True, env=called).stdout
        return said, json.loads(file.read_text())

    said, metrics = keep(code="older", scored_by="older")
    assert said.endswith("seed0.json: names today's code\n")
    assert metrics == {**today, "R@1": 0.5}
    said, metrics = keep(code="older", settings="others")
    assert "made by other settings, others, not today's" in said
    assert metrics["code"] == "older"
    assert keep()[0] == ""


def metrics_file(folder, name, code):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"code": code}))
    return {"metrics_file": str(path), "today": {"code": "new"}, "options": " --config scale=ci"}


def test_only_metrics_of_older_code_without_a_record_are_refused(tmp_path):
    runs = [metrics_file(tmp_path, name, code) for name, code in (("a", "new"), ("b", "old"), ("c", "older"))]
    files = [run["metrics_file"] for run in runs]
    refuse_unnoticed(runs, [files[0], str(tmp_path / "not there yet.json")])
    message = (
        rf"b\.json \(and 1 more\): made by older code, old, not today's new.*`snakemake {files[1]} {files[2]} --cores"
    )
    with pytest.raises(ValueError, match=message):
        refuse_unnoticed(runs, files)


def test_metrics_of_other_settings_are_refused_and_those_that_do_not_say_are_not(tmp_path):
    runs = [metrics_file(tmp_path, name, "new") | {"today": {"code": "new", "settings": "today"}} for name in "abc"]
    files = [run["metrics_file"] for run in runs]
    for run, settings in zip(runs, ("today", "other"), strict=False):
        Path(run["metrics_file"]).write_text(json.dumps({"code": "new", "settings": settings}))
    refuse_unnoticed(runs, [files[0], files[2]])
    with pytest.raises(ValueError, match=r"b\.json: made by other settings, other, not today's today, and Snakemake"):
        refuse_unnoticed(runs, files)


def test_metrics_without_a_digest_are_older_and_a_run_that_asks_for_none_is_not():
    assert is_older({"code_today": "new"}, {})
    assert not is_older({}, {"code": "old"})
