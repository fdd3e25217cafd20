"""The stage reads what both sides have reached, and writes all of it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from lookalike.stages.claims import claims
from projects import ROOT

ABOUT = {"scale": "small", "chosen_on": "the test classes"}
BEST = 0.02  # more at the best epoch
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
        path.write_text(json.dumps({"best": {"R@1": value + BEST, "mAP": 0.1}, "last": {"R@1": value, "mAP": 0.0}}))
    return [str(path) for path in paths]


def with_classes(paths, values):
    """Beside each file what its classes reached: 40 of ten queries, of which some find little."""
    for path, value in zip(paths, values, strict=True):
        rows = [
            (epoch, "test", label, 10, value + more + (0.1 if label % 2 else -0.1))
            for epoch, more in (("best", BEST), ("last", 0.0))
            for label in range(40)
        ]
        rows += [("best", "train", label, 10, 1.0) for label in range(3)]
        lines = [",".join(map(str, row)) for row in rows]
        Path(path).with_suffix(".classes.csv").write_text(
            "\n".join(["checkpoint,pictures,label,queries,R@1", *lines]) + "\n"
        )


def test_the_last_epochs_are_compared_and_written_twice(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6, 0.55]), "baseline": files(tmp_path, "old", [0.25, 0.34, 0.3])}
    with_classes(sides["changed"], [0.5, 0.6, 0.55])
    with_classes(sides["baseline"], [0.25, 0.34, 0.3])
    claims(CLAIMS, runs(3), **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        [cell] = csv.DictReader(stream)
    assert (cell["claim"], cell["dataset"], cell["verdict"]) == ("better", "birds", "holds")
    assert (cell["seeds"], cell["classes"]) == ("3", "40")
    assert float(cell["difference"]) == pytest.approx(25.333, abs=1e-3)
    assert float(cell["best_difference"]) == pytest.approx(25.333, abs=1e-3)
    assert "+25.3 [" in (tmp_path / "claims.md").read_text()


def test_readers_see_the_numbers_of_the_file_rounded_once_more(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5384997]), "baseline": files(tmp_path, "old", [0.5])}
    claims(CLAIMS, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))
    assert ",3.8500," in (tmp_path / "claims.csv").read_text()
    assert "| +3.9 [" in (tmp_path / "claims.md").read_text()


def test_without_the_classes_of_both_sides_the_seeds_alone_are_compared(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6]), "baseline": files(tmp_path, "old", [0.25, 0.34])}
    with_classes(sides["changed"], [0.5, 0.6])
    claims(CLAIMS, runs(2), **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        [cell] = csv.DictReader(stream)
    assert (cell["seeds"], cell["classes"]) == ("2", "1")


def test_sides_that_were_tested_on_other_classes_are_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    with_classes(sides["changed"], [0.5])
    with_classes(sides["baseline"], [0.25])
    path = tmp_path / "old0.classes.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:30]) + "\n")
    with pytest.raises(ValueError, match=r"new0\.json and .*old0\.json were not tested on the same pictures"):
        claims(CLAIMS, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_sides_with_other_numbers_of_queries_in_a_class_are_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    for side in sides.values():
        with_classes(side, [0.5])
    path = tmp_path / "old0.classes.csv"
    rows = pd.read_csv(path)
    rows.assign(queries=rows["queries"] + 1).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"new0\.json and .*old0\.json were not tested on the same pictures"):
        claims(CLAIMS, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_a_file_that_its_classes_contradict_is_named(tmp_path):
    sides = {"changed": files(tmp_path, "new", [0.5]), "baseline": files(tmp_path, "old", [0.25])}
    with_classes(sides["changed"], [0.5])
    with_classes(sides["baseline"], [0.3])
    with pytest.raises(ValueError, match=r"old0\.json says R@1 0\.2500, its classes come to 0\.3000; remove it and"):
        claims(CLAIMS, runs(1), **ABOUT, **sides, output=str(tmp_path / "claims"))


def test_a_file_without_the_claimed_metric_is_named(tmp_path):
    lacking = {"better": {**CLAIMS["better"], "metric": "RP"}}
    changed, baseline = files(tmp_path, "new", [0.5]), files(tmp_path, "old", [0.5])
    wrong = [{**run, "metric": "RP"} for run in runs(1)]
    with pytest.raises(ValueError, match=r"new0\.json holds no RP; it holds R@1, mAP"):
        claims(
            lacking,
            wrong,
            scale="small",
            chosen_on="the test classes",
            changed=changed,
            baseline=baseline,
            output=str(tmp_path / "claims"),
        )
    assert not (tmp_path / "claims.csv").exists()


def test_what_lies_on_the_object_is_not_tested_where_pictures_have_no_masks(tmp_path):
    claimed = {"better": CLAIMS["better"], "on_object": {**CLAIMS["better"], "metric": "on_object"}}
    asked = [*runs(2), *({**run, "claim": "on_object", "metric": "on_object"} for run in runs(2))]
    sides = {"changed": files(tmp_path, "new", [0.5, 0.6]) * 2, "baseline": files(tmp_path, "old", [0.25, 0.34]) * 2}
    claims(claimed, asked, **ABOUT, **sides, output=str(tmp_path / "claims"))
    with (tmp_path / "claims.csv").open() as stream:
        assert [cell["claim"] for cell in csv.DictReader(stream)] == ["better"]
    assert (tmp_path / "claims.md").read_text().count("Not tested: no data.") == 1


def test_judging_claims_needs_no_torch():
    program = "import sys, lookalike.stages.claims, lookalike.plan.claims; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
