"""Committed evaluations are read where a call would make the same, with those of the same training."""

import hashlib

import pytest

from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import REFERENCE
from lookalike.workflow.plan.reuse import MADE_BY, differs
from lookalike.workflow.running.records import decided_by
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from recorded import leave

TODAY = {"code": "c", "settings": "s", "weights": "none"}
ROWS = ("margin", "margin_diml", "margin_structure", "margin_structure_uniform")  # of diml_2, with one training
METRICS = "results/reference/mini/metrics/margin/figurines_birds/seed0.json"
ANEW = "`--config suffix=again` makes all anew"
MADE = [f"results/mini/metrics/{recipe}/figurines_birds/seed0.json" for recipe in ("margin", "margin_diml")]


def test_metrics_differ_by_what_their_record_says():
    assert differs(TODAY, TODAY) == ""
    for key in TODAY:
        assert differs({**TODAY, key: "another"}, TODAY) == f"{MADE_BY[key]}, another, not today's {TODAY[key]}"
    assert differs({"code": "c"}, TODAY) == ""
    assert differs({}, TODAY) == "older code, without a digest, not today's c"


def where(inputs, recipe="margin", kind="metrics", seed=0):
    return inputs.stored(kind, recipe, "figurines_birds", seed)


@pytest.fixture
def commits(params, monkeypatch):
    """Evaluations of a call, committed as it would make them; what the call reads."""
    monkeypatch.chdir(params.parent)

    def commit(names=ROWS):
        config = {
            **read("params/config.yaml", Configuration).dump(),
            "scale": "mini",
            "tracking": False,
            "tables": ["diml_2"],
        }
        inputs = Inputs(Plan(config))
        for recipe in names:
            made = inputs.made("evaluation", recipe, "figurines_birds", 0)
            file = params.parent / made.replace("results/", f"{REFERENCE}/")
            leave(file, {"R@1": 0.5}, **inputs.today(recipe, "figurines_birds", 0))
            file.with_name("seed0.classes.csv").touch()
        return inputs

    return commit


def test_what_fits_is_read_where_it_is_committed_and_all_else_where_a_run_leaves_it(commits):
    inputs = commits()
    assert where(inputs) == where(inputs, kind="evaluation") == METRICS
    assert where(inputs, kind="classes") == METRICS.replace(".json", ".classes.csv")
    assert where(inputs, kind="history") == "results/mini/models/margin/figurines_birds/seed0.csv"
    assert where(inputs, seed=1) == "results/mini/metrics/margin/figurines_birds/seed1.json"
    assert inputs.read_in("margin", "figurines_birds", 0) == inputs.reference_folder == "results/reference/mini"
    assert inputs.notices == [f"{inputs.reference_folder}: metrics that fit are read there, not made; {ANEW}"]


def test_rows_of_one_training_are_read_together_or_not_at_all(commits, params):
    assert where(commits(ROWS[1:]), "margin_diml") in MADE
    inputs = commits()
    made_here = params.parent / inputs.made("evaluation", "margin_structure", "figurines_birds", 0)
    made_here.parent.mkdir(parents=True)
    made_here.touch()
    assert where(inputs) in MADE


def test_what_has_no_classes_is_made(commits, params):
    inputs = commits()
    (params.parent / METRICS).with_name("seed0.classes.csv").unlink()
    assert where(inputs) in MADE


@pytest.mark.parametrize("key", ["code", "settings", "scored_by", "reads", "weights"])
def test_what_says_otherwise_or_nothing_is_made(commits, key):
    for others in ({key: "another"}, {}):
        inputs = commits()
        said = decided_by(METRICS)
        said.pop(key)
        leave(METRICS, {"R@1": 0.5}, **said | others)
        assert where(inputs) in MADE


def test_another_split_is_noticed_once_it_is_there(commits, params):
    assert where(commits()) == METRICS
    split = params.parent / "data/splits/figurines_birds.csv"
    split.parent.mkdir(parents=True)
    split.write_text("path,label")
    assert where(commits(())) in MADE
    assert where(commits()) == METRICS
    assert decided_by(METRICS)["data"] == hashlib.sha256(b"path,label").hexdigest()


def test_a_metric_of_one_half_never_passes_for_one_of_the_other(params, monkeypatch):
    monkeypatch.chdir(params.parent)
    given = {"scale": "ci", "tracking": False, "tables": ["ci_levels"], "halves": "crossed"}
    inputs = Inputs(Plan({**read("params/config.yaml", Configuration).dump(), **given}))
    run = "contrastive", "figurines_few_birds"
    of_seeds = [inputs.today(*run, seed) for seed in range(4)]
    assert of_seeds[0] == of_seeds[2] != of_seeds[1] == of_seeds[3]
    made = inputs.made("evaluation", *run, 1)
    file = params.parent / made.replace("results/", f"{REFERENCE}/")
    for fits, today in ((False, of_seeds[0]), (True, of_seeds[1])):
        leave(file, {"R@1": 0.5}, **today)
        file.with_name("seed1.classes.csv").touch()
        inputs = Inputs(inputs.plan)
        assert (inputs.read_in(*run, 1) == inputs.reference_folder) == fits
    assert "another description of the data set" in differs(of_seeds[0], of_seeds[1])


def reads(more, **config):
    birds = {"layout": "cub", "archive": "there.tar", "classes": {"train": [1, 50], "test": [51, 100]}}
    birds |= {"counts": {role: {"classes": 50, "images": 500} for role in ("train", "test")}}
    given = {**read("params/config.yaml", Configuration).dump(), "tracking": False, "name": "mine", **config}
    plan = Plan({**given, "datasets": {"birds": {**birds, **more}}})
    return Inputs(plan).today("compared_margin", "birds", 0)["reads"]


def test_metrics_say_how_their_data_set_is_read_but_not_where_it_is_had():
    assert reads({}) == reads({"archive": "elsewhere.tar", "title": "Birds"})
    cache = {"shorter_side_px": 64, "encoding": "png", "broken": "stop"}
    changed = [
        reads({"recall_at": [1, 2, 4, 8, 16]}),
        reads({"classes": {"train": [1, 40], "test": [41, 100]}}),
        reads({}, picture_cache=cache),
    ]
    assert reads({}) not in changed
