"""Metrics of older code or other settings are refused where nobody would notice them."""

import json
from pathlib import Path

import pytest

from lookalike.plan.older import is_older, refuse_unnoticed


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
