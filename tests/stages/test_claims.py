"""The stage reads what both sides have reached, and writes all of it."""

import csv
import json
import subprocess
import sys

import pytest

from lookalike.stages.claims import claims
from projects import ROOT

CLAIM = {"says": "It is better.", "place": "Somewhere", "metric": "R@1", "direction": "higher"}
CLAIMS = {"better": {**CLAIM, "datasets": ["cub"], "pairs": [{"changed": "new", "baseline": "old"}]}}


def runs(seeds):
    run = {
        "claim": "better",
        "metric": "R@1",
        "published": "cub",
        "dataset": "birds",
        "changed": "new",
        "baseline": "old",
    }
    return [{**run, "seed": seed} for seed in range(seeds)]


def files(folder, name, values):
    paths = [folder / f"{name}{seed}.json" for seed in range(len(values))]
    for path, value in zip(paths, values, strict=True):
        path.write_text(json.dumps({"best": {"R@1": value, "mAP": 0.1}, "last": {"R@1": 0.0, "mAP": 0.0}}))
    return [str(path) for path in paths]


def test_the_best_epochs_are_compared_and_written_twice(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6]), "baseline": files(tmp_path, "old", [0.25, 0.34])}
    claims(CLAIMS, runs(2), scale="small", **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        [cell] = csv.DictReader(stream)
    assert (cell["claim"], cell["dataset"], cell["verdict"], cell["n"]) == ("better", "birds", "holds", "2")
    assert float(cell["difference"]) == pytest.approx(25.5)
    assert "+25.5 [" in (tmp_path / "claims.md").read_text()


def test_a_file_without_the_claimed_metric_is_named(tmp_path):
    lacking = {"better": {**CLAIMS["better"], "metric": "RP"}}
    changed, baseline = files(tmp_path, "new", [0.5]), files(tmp_path, "old", [0.5])
    wrong = [{**run, "metric": "RP"} for run in runs(1)]
    with pytest.raises(ValueError, match=r"new0\.json holds no RP; it holds R@1, mAP"):
        claims(lacking, wrong, scale="small", changed=changed, baseline=baseline, output=str(tmp_path / "claims"))
    assert not (tmp_path / "claims.csv").exists()


def test_judging_claims_needs_no_torch():
    program = "import sys, lookalike.stages.claims, lookalike.plan.claims; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
