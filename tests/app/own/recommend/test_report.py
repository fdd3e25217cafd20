"""The page, the lines and the data of a recommendation say the same; rows are read from what the workflow leaves."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lookalike.app.own.recommend.classes import Classes
from lookalike.app.own.recommend.report import Report, _next_lines, read_row
from lookalike.app.own.recommend.training import Network, Way, Work, works_of
from lookalike.app.own.recommend.verdict import recommend
from lookalike.base.files import write_json
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import merge
from recommended_rows import matched, row, untrained

OVERLAY = {"name": "own_x", "datasets": {"pictures": {"layout": "folder", "folder": "x"}}, "seeds": [0, 1]}


@pytest.fixture
def report():
    found = recommend([untrained(), matched(), row("ProxyAnchor", 60.0), row("Margin", 51.0, query_ms=None)])
    lines = ["lookalike search a b --in 'c d'"]
    return Report("<pictures>", found, {"Triplet": "takes 3 h", "Pull": "takes 3 h"}, ["Half is held out."], lines)


def test_the_page_shows_answer_rows_and_what_was_not_tried_and_needs_no_other_file(report):
    shown = report.page()
    assert f"<b>{report.recommendation.sentence}</b>" in shown.replace("&#43;", "+")
    assert "http" not in shown
    assert "&lt;pictures&gt;" in shown and "<pictures>" not in shown
    for words in (
        "Not tried: Triplet, Pull: takes 3 h.",
        "Half is held out.",
        '<code>lookalike search a b --in &#39;c d&#39;</code> <button class="copy">',
        "<b>60.0</b></button> <small>n 3</small>",
    ):
        assert words in shown


def test_a_network_that_cannot_be_used_stands_among_what_was_not_tried(report):
    broken = replace(report, unusable={"resnet18": "weights x.pth: cannot be read"})
    assert "Not tried: resnet18: weights x.pth: cannot be read." in broken.text()
    assert "Not tried: resnet18: weights x.pth: cannot be read." in broken.page()
    assert broken.data()["not_tried"]["resnet18"] == "weights x.pth: cannot be read"


def test_the_lines_mark_the_recommended_row_and_name_the_reference(report):
    lines = report.text().splitlines()
    assert lines[0] == report.recommendation.sentence
    (chosen,) = [line for line in lines if line.startswith("* ")]
    assert re.match(r"\* ProxyAnchor +net +60\.0 +\+10\.0 \(\+.* to .*\), higher +30\.0 ", chosen)
    assert any(line.startswith("untrained ") and line.count("reference") == 2 for line in lines)
    assert any(line.startswith("Margin ") and "–" in line for line in lines)
    assert "Not tried: Triplet, Pull: takes 3 h." in lines


def test_the_data_are_json_with_every_number(report):
    found = json.loads(json.dumps(report.data(), allow_nan=False))
    assert found["case"] == "trained"
    assert found["recommended"]["label"] == "ProxyAnchor"
    against = {each["label"]: each["against_reference"] for each in found["rows"]}
    assert against["untrained"] == {}
    assert against["ProxyAnchor"]["R@1"]["verdict"] == "higher"
    assert against["ProxyAnchor"]["R@1"]["low"] < 10 < against["ProxyAnchor"]["R@1"]["high"]


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        ("-photos", "./-photos"),
        ("Tee & Kanne", "'Tee & Kanne'"),
        ("a\nb`c", r"$'a\x0ab\x60c'"),
        ("groceries:x", "./groceries:x"),
    ],
)
def test_lines_to_be_pasted_name_the_folder_as_a_shell_takes_it(tmp_path, monkeypatch, called, typed):
    for name in ("0.png", "1.png"):
        (tmp_path / called / "a").mkdir(parents=True, exist_ok=True)
        (tmp_path / called / "a" / name).touch()
    monkeypatch.chdir(tmp_path)
    classes = Classes(Path(called), pd.DataFrame(), False, (), (), None)
    network = Network("tiny", {"name": "tiny", "weights": None}, {"resize_px": 32, "crop_px": 24})
    (work,) = works_of(classes, [network], size_px=24)
    rows = pd.DataFrame({"path": ["a/0.png", "a/1.png"], "label": [1, 1], "role": "test"})
    monkeypatch.setattr("lookalike.app.own.recommend.report.read_manifest", lambda path: rows)
    plan = SimpleNamespace(datasets={"pictures": SimpleNamespace(root=tmp_path / called)})
    monkeypatch.setattr(Work, "plan", lambda self: plan)
    search, _ = _next_lines(work, untrained())
    assert f" --in {typed} --out" in search
    assert len(search.splitlines()) == 1
    script = f"printf '%s\\0' {search}"
    words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode().split("\0")
    assert (tmp_path / words[words.index("--in") + 1]).resolve() == (tmp_path / called)


def test_a_row_holds_percent_by_seed_and_class_with_its_costs(tmp_path):
    plan = Plan(merge(read("params/config.yaml", Configuration).dump(), OVERLAY))
    for seed in (0, 1):
        stem = tmp_path / "metrics" / "compared_margin" / "pictures" / f"seed{seed}"
        facts = {"best_epoch": 2, "epochs": 2, "pictures": 50, "searched": 50}
        write_json(stem.with_suffix(".json"), {"best": {}, "last": {}, **facts})
        rows = {"label": [3, 5], "queries": [30, 20], "R@1": [0.5 + seed / 10, 0.25], "MAP@R": [0.25, 0.1]}
        frame = pd.DataFrame(rows).assign(checkpoint="best", pictures="test")  # the last epoch is the best one
        frame.to_csv(stem.with_suffix(".classes.csv"), index=False)
        for stage, columns, took in (("train", "s", "120"), ("evaluate", "s\tembed_s", "15\t5")):
            path = tmp_path / "timings" / stage / f"compared_margin-pictures-seed{seed}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{columns}\n{took}\n")
    found = read_row(
        plan, tmp_path, Way("Margin", "compared_margin"), network="net", seeds=[0, 1], overlay=tmp_path / "x.yaml"
    )
    np.testing.assert_allclose(found.of_classes["R@1"], [[50, 25], [60, 25]])
    assert found.mean() == pytest.approx((30 * 55 + 20 * 25) / 50)
    assert (found.trained, found.structural, found.seeds, found.training_s) == (True, False, 2, 120)
    assert found.query_ms == pytest.approx(1000 * (5 / 50 + 10 / 50))
    assert (found.name, found.origin["recipe"]) == ("Margin (net)", "compared_margin")
    assert found.origin["runs"] == "compared_margin/pictures/seed0 compared_margin/pictures/seed1"
